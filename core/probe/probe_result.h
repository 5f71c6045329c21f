// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// What the network reads: `plain`, L copies of the word; `special`, the same between the family's special tokens,
/// total length L.
enum class InputVariant { plain, special };

/// How the logits were computed: from projected classes of rows, by one row per word, or by the real forward pass.
enum class ProbeWay { closed_form, one_row, forward };
std::string_view probe_way_name(ProbeWay way);

/// `automatic` takes the closed form where there is one and CUDA for forward passes where there is one; `cpu` the
/// closed form where there is one; `cuda` the real pass on the GPU for every layer.
enum class DeviceChoice { automatic, cpu, cuda };

/// Which words the maps are averaged over.
struct WordSelection {
    enum class Kind { sampled, listed, all };
    Kind kind = Kind::sampled;
    std::size_t count = 300;        ///< sampled: how many, drawn with the seed
    std::vector<std::int64_t> ids;  ///< listed: ids of the original vocabulary
    std::vector<std::string> words; ///< listed: words as typed, looked up in the vocabulary

    bool operator==(const WordSelection&) const = default;
};

/// Settings of one identical-word probe.
struct ProbeOptions {
    std::string stack; ///< "encoder", "decoder", ...; empty: the model's default
    int layer = 0;
    std::int64_t length = 128; ///< L, special tokens included
    InputVariant variant = InputVariant::plain;
    WordSelection words;
    std::uint64_t seed = 0;
    bool no_positions = false; ///< takes the position vectors out
    bool segments = true;      ///< XLNet: with the terms of the first segment
    std::int64_t window = 0;   ///< Swin: which window of a shifted layer
    /// Patches [N, channels, side, side] or vectors [N, d] in the place of words; null: drawn with the seed.
    std::shared_ptr<const HostTensor> content;
    bool probabilities = true;  ///< also after the softmax
    bool terms = false;         ///< also the parts of the logits
    bool group_spread = true;   ///< keep each group's mean, for the spread over words
    bool force_forward = false; ///< the real forward pass even where there is a closed form
    DeviceChoice device = DeviceChoice::automatic;

    bool operator==(const ProbeOptions&) const = default;
};

/// One part of the mean logits; the parts sum to the logits.
struct ProbeTerm {
    std::string id;    ///< "word_word", "word_position", "position_word", "position_position", "relative"
    HostTensor values; ///< [heads, L, L]
};

/// Means over the words of each group; words fall into groups by draw order.
struct GroupMeans {
    std::vector<std::size_t> word_counts; ///< words in each group
    HostTensor attention_logits;          ///< [groups, heads, L, L]
    HostTensor attention_probabilities;   ///< the same, or empty
};

/// Largest number of groups for the spread over words.
inline constexpr std::size_t most_groups = 32;

/// Result of one identical-word probe. Row i is the query position, column j the key position.
struct ProbeResult {
    ProbeOptions options; ///< as asked for, with the stack resolved
    std::string model_name;
    std::string family;
    std::string scheme;
    std::int64_t heads = 0;
    std::int64_t length = 0;
    bool causal = false;
    std::int64_t grid_rows = 0,
                 grid_columns = 0; ///< of an image's patches, behind the special positions; 0: no image

    std::vector<std::int64_t>
        word_ids;                   ///< ids of the original vocabulary, in draw order; 0, 1, ... of contents
    std::vector<std::string> words; ///< as shown
    std::vector<std::int64_t> special_positions; ///< positions that hold a special token, ascending

    HostTensor attention_logits;        ///< [heads, L, L], mean over words; the mask is not applied
    HostTensor attention_probabilities; ///< [heads, L, L], 0 in a decoder's future; empty where not asked for
    GroupMeans groups;                  ///< empty where not asked for
    std::vector<ProbeTerm> terms;

    ProbeWay way = ProbeWay::closed_form;
    std::string device;  ///< "cpu", "cuda:0"
    std::string kernels; ///< which kernels ran ("x86-64-v3", "LibTorch 1.13.1")
    double seconds = 0.0;
    std::vector<std::string> warnings;
};

} // namespace posiscope::core
