// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/result.h"

#include "core/base/text.h"

namespace posiscope::core {

std::string_view error_code_name(ErrorCode code)
{
    switch (code) {
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::unreadable: return "unreadable";
    case ErrorCode::unsupported_format: return "unsupported_format";
    case ErrorCode::corrupt_file: return "corrupt_file";
    case ErrorCode::unsupported_model: return "unsupported_model";
    case ErrorCode::shape_mismatch: return "shape_mismatch";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::numeric_failure: return "numeric_failure";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::internal: return "internal";
    }
    return "internal";
}

std::string describe(const Error& error)
{
    std::string text = error.message;
    if (!error.context.empty()) text += " (" + error.context + ")";
    return printable(text, 4000);
}

} // namespace posiscope::core
