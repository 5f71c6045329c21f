// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli_commands.h"
#include "core/base/result.h"
#include "core/base/text.h"

namespace posiscope::app {

/// Prints the error's sentence to standard error. @return the exit status
inline int fail(const core::Error& error)
{
    std::fprintf(stderr, "posiscope-cli: %s\n", core::printable(error.message, 4000).c_str());
    return error.code == core::ErrorCode::cancelled ? exit_interrupted : exit_refused;
}

inline void warn(const std::vector<std::string>& warnings)
{
    for (const std::string& warning : warnings)
        std::fprintf(stderr, "warning: %s\n", core::printable(warning, 4000).c_str());
}

inline void print(const nlohmann::ordered_json& object)
{
    const std::string text =
        object.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
}

inline void print_line(const std::string& text)
{
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
}

inline nlohmann::ordered_json as_json(const std::vector<std::string>& texts)
{
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const std::string& text : texts) list.push_back(core::printable(text, 4000));
    return list;
}

} // namespace posiscope::app
