// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/architecture.h"

namespace posiscope::core {

/// Words of a model: id of the original vocabulary <-> row of the word table <-> text, and which may be drawn.
/// A cut sample's vocab.tsv gives rows other ids; elsewhere id and row are the same number.
class Vocabulary {
public:
    struct Entry {
        std::int64_t id = 0;  ///< in the original vocabulary
        std::int64_t row = 0; ///< in the word table of this file
        std::string text;     ///< empty where unknown
        bool drawable = true; ///< not special, unused or padding, and begins a word
    };

    Vocabulary() = default;
    explicit Vocabulary(std::vector<Entry> entries, bool has_texts);

    [[nodiscard]] const std::vector<Entry>& entries() const { return m_entries; }
    [[nodiscard]] const Entry* find_id(std::int64_t id) const;
    [[nodiscard]] const Entry* find_text(std::string_view text) const;
    [[nodiscard]] bool has_texts() const { return m_has_texts; }
    [[nodiscard]] std::size_t drawable_count() const { return m_drawable; }

    /// How an id is shown: its text, made safe for one line, or "id 17".
    [[nodiscard]] std::string shown(std::int64_t id) const;

private:
    std::vector<Entry> m_entries;
    std::unordered_map<std::int64_t, std::size_t> m_by_id;
    std::unordered_map<std::string, std::size_t> m_by_text;
    bool m_has_texts = false;
    std::size_t m_drawable = 0;
};

struct ModelFamily;

/// Reads the vocabulary beside a checkpoint (vocab.tsv, vocab.txt) and lets the family mark special tokens and the
/// words that may be drawn. A missing or broken one is a warning: words are then shown by id, and every row that is
/// not special may be drawn.
Vocabulary read_vocabulary(const Checkpoint& checkpoint, Architecture& architecture,
                           const ModelFamily& family, std::vector<std::string>& warnings);

} // namespace posiscope::core
