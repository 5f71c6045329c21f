// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/base/run_context.h"

namespace posiscope::app {

struct ModelsArguments {
    std::string folder; ///< empty: the user's own cache
    bool json = false;
};

struct TensorArguments {
    std::string checkpoint;
    std::string name;
    std::string out; ///< .npy
    bool json = false;
};

/// Each prints to standard output, warnings and errors to standard error, and returns the exit status.
int run_models(const ModelsArguments& arguments, const core::RunContext& ctx);
int run_tensor(const TensorArguments& arguments, const core::RunContext& ctx);

} // namespace posiscope::app
