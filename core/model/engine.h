// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/network.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

struct ForwardOptions {
    std::string device = "cpu";             ///< "cpu" or "cuda"
    std::vector<std::size_t> group_of_word; ///< [words], group of each word
    std::size_t groups = 1;
    std::vector<std::size_t> layers; ///< whose maps are wanted, ascending; empty: the last one's
    bool probabilities = true;
    std::size_t threads = 1;
};

/// Sums of one layer's maps over the words of each group, kept in double, returned as means.
struct ForwardMaps {
    HostTensor attention_logits;              ///< [heads, L, L] mean over all words
    HostTensor attention_probabilities;       ///< the same, or empty
    HostTensor group_attention_logits;        ///< [groups, heads, L, L]
    HostTensor group_attention_probabilities; ///< the same, or empty
};

struct ForwardResult {
    std::vector<ForwardMaps> layers; ///< one for each of the wanted layers
    std::string device;              ///< "cpu", "cuda:0"
    std::vector<std::string> warnings;
};

/// Forward passes over plain arrays. Implemented on LibTorch in a library of its own that is opened on demand, and
/// by a fake in tests; nothing here knows torch.
class Engine {
public:
    virtual ~Engine() = default;

    /// "LibTorch 1.13.1"
    [[nodiscard]] virtual std::string version() const = 0;
    /// Which matrix kernels run, for About and provenance ("OpenBLAS, Haswell kernels").
    [[nodiscard]] virtual std::string kernels() const = 0;
    /// "cpu", and "cuda:0 NVIDIA H200" and so on.
    [[nodiscard]] virtual std::vector<std::string> devices() const = 0;
    [[nodiscard]] virtual bool has_cuda() const = 0;
    /// Soft problems of this engine (reference BLAS, wrong products).
    [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;

    /// Attention maps of the wanted layers in one pass, averaged over words. Words run in batches sized to memory;
    /// memory does not grow with their number. Where CUDA runs out of memory the batch is halved.
    /// @error invalid_argument (no such device), out_of_memory, numeric_failure, cancelled
    virtual Result<ForwardResult> attention_maps(const Network& network, const ForwardOptions& options,
                                                 const RunContext& ctx) = 0;
};

/// The engine library, opened on first use and kept for the life of the program. Thread-safe. Tests install a fake.
/// @error not_found: the library is missing or does not load, with the loader's reason
Result<Engine*> load_engine();

/// Puts `engine` in the place of the library (null: back to the library). For tests.
void install_engine(std::shared_ptr<Engine> engine);

} // namespace posiscope::core
