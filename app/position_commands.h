// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/base/run_context.h"

namespace posiscope::app {

struct MapArguments {
    std::string checkpoint;
    std::string stack;
    std::string method = "tsne";
    double perplexity = 30.0;
    std::uint64_t seed = 0;
    std::size_t iterations = 1000;
    std::string start = "pca";
    std::int64_t length = 0; ///< rows of computed vectors
    std::string out;         ///< .csv, .json or .npy
    bool json = false;
};

struct BiasArguments {
    std::string checkpoint;
    std::string stack;
    int layer = 0;
    std::int64_t length = 128;
    std::string out; ///< .npy
    bool json = false;
};

struct SimilarityArguments {
    std::string checkpoint;
    std::string stack;
    bool dot = false;
    std::uint64_t seed = 0;
    std::int64_t length = 0;
    std::string out; ///< .npy
    bool json = false;
};

/// Each prints to standard output, warnings and errors to standard error, and returns the exit status.
int run_map(const MapArguments& arguments, const core::RunContext& ctx);
int run_bias(const BiasArguments& arguments, const core::RunContext& ctx);
int run_similarity(const SimilarityArguments& arguments, const core::RunContext& ctx);

} // namespace posiscope::app
