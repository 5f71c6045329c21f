// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/model/families/stack_reader.h"

namespace posiscope::core {

/// What image models share: patches of `patch_size` mapped to rows, tokens before them, and perhaps a position table
/// over both. Names are canonical.
struct ImageInput {
    std::string patches;                  ///< "embeddings.patch_embeddings.projection"
    std::vector<std::string> prefix = {}; ///< "embeddings.cls_token", ...
    std::string positions = {};           ///< full name of the table; empty: none
    bool positions_in_batch = true;       ///< the table is [1, rows, size], else [rows, size]
};

/// Sets content, grid, prefix and positions of `stack`; its hidden size is known.
void read_image_input(StackReader& reader, Stack& stack, const ImageInput& input);

/// The sizes that ViT's relatives call alike: hidden size, heads, activation.
Stack read_image_encoder(StackReader& reader);

/// How ViT and BEiT call the parts of a layer, with the epsilon and the inner size of the config.
LayerPattern read_vit_pattern(StackReader& reader);

/// Counts and reads the layers of a stack whose queries are "encoder.layer.N.attention.attention.query".
void read_image_layers(StackReader& reader, Stack& stack, const LayerPattern& layers);

/// "image_size" and the like: a number, or a pair [rows, columns].
std::pair<std::int64_t, std::int64_t> integer_or_pair(StackReader& reader, std::string_view key,
                                                      std::int64_t published);

/// Images have no words: nothing to mark.
void apply_no_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries);

} // namespace posiscope::core
