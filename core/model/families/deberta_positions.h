// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/model/families/bert_body.h"

namespace posiscope::core {

/// What the two DeBERTas call the maps of their relative vectors, and how they number offsets.
struct DebertaPositions {
    std::string key_map, query_map; ///< behind "attention.self."
    std::int64_t buckets = 0;       ///< logarithmic buckets; 0: each offset its own row
    bool norm_allowed = false;      ///< norm_rel_ebd may put a norm on the table
};

/// The table "encoder.rel_embeddings.weight" and what projects it in each layer; the scale counts the terms.
void read_deberta_positions(StackReader& reader, Stack& stack, const DebertaPositions& positions);

} // namespace posiscope::core
