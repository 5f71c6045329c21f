// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/result.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::app {

/// The probe's command-line options, the same for every command that runs a probe.
struct ProbeArguments {
    std::int64_t length = default_length;
    std::string words; ///< a number of words to draw, or words separated by commas
    std::vector<std::int64_t> word_ids;
    bool all_words = false;
    std::uint64_t seed = 0;
    std::string stack;
    std::string layer = "0"; ///< a number, or "all" where the command allows it
    bool special = false;
    bool no_positions = false;
    std::string device = "auto";
    bool forward = false;
    std::string content; ///< a .npy file
    std::int64_t window = 0;
    bool no_segments = false;

    /// Whether the length was given; else it is shortened to what the model's table allows.
    bool length_given = false;

    static constexpr std::int64_t default_length = 128;
};

/// Adds the options to a command.
void add_probe_arguments(CLI::App& command, ProbeArguments& arguments);

/// Options for the probe of one model. A default length beyond the model's table becomes the table's, with a warning; that
/// of an image is its number of patches. Without --layer all, options.layer is the one asked for.
/// @error invalid_argument: --words that is neither a number nor words, --layer that is no layer; what is wrong with the
///        file of --content
core::Result<core::ProbeOptions> probe_options(const ProbeArguments& arguments, const core::OpenModel& model,
                                               std::vector<std::string>& warnings);

/// The layers of the stack that --layer asks for: one, or with "all" every one that the file holds.
std::vector<int> chosen_layers(const ProbeArguments& arguments, const core::ProbeOptions& options,
                               const core::OpenModel& model);

/// Adds --threads, and sets the number of threads when the command line is parsed.
void add_threads_argument(CLI::App& command);

} // namespace posiscope::app
