// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/probe_arguments.h"
#include "core/base/run_context.h"

namespace posiscope::app {

/// How a command ended: 0 done, 1 input refused, 130 interrupted (2, wrong usage, is the parser's).
inline constexpr int exit_done = 0;
inline constexpr int exit_refused = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_interrupted = 130;

struct InfoArguments {
    std::string checkpoint;
    bool json = false;
};

struct ProbeCommandArguments {
    std::vector<std::string> checkpoints;
    ProbeArguments probe;
    bool terms = false;
    bool groups = false;
    bool logits_only = false;
    bool no_errors = false; ///< no bootstrap standard errors
    std::string out;
    bool json = false;
};

struct MetricsArguments {
    std::string map;
    bool probabilities = false;
    bool causal = false;
    std::string grid;
    bool json = false;
};

/// Each prints to standard output, warnings and errors to standard error, and returns the exit status.
int run_info(const InfoArguments& arguments, const core::RunContext& ctx);
int run_probe(const ProbeCommandArguments& arguments, const core::RunContext& ctx);
int run_metrics(const MetricsArguments& arguments, const core::RunContext& ctx);

} // namespace posiscope::app
