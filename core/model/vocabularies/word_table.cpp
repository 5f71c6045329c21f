// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/vocabularies/word_table.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/model/vocabularies/word_mark.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most_reported = 100;

void set(Vocabulary::Entry& entry, std::string_view text, TokenUse use)
{
    entry.text = text;
    entry.special = use != TokenUse::text || is_placeholder(text);
}

} // namespace

WordTable::WordTable(std::int64_t rows) : m_rows(rows), m_entries(static_cast<std::size_t>(rows))
{
    for (std::size_t row = 0; row < m_entries.size(); ++row)
        m_entries[row].id = m_entries[row].row = static_cast<std::int64_t>(row);
}

void WordTable::place(std::int64_t id, std::string_view text, TokenUse use)
{
    ++m_words;
    if (id < 0 || id >= m_rows) return;
    Vocabulary::Entry& entry = m_entries[static_cast<std::size_t>(id)];
    if (entry.text.empty())
        set(entry, text, use);
    else if (--m_words; m_ids_twice.size() < most_reported)
        m_ids_twice.push_back(id);
}

bool WordTable::place_cut(std::int64_t row, std::int64_t id, std::string_view text)
{
    if (!m_cut) {
        m_entries.clear();
        m_taken.assign(static_cast<std::size_t>(m_rows), false);
        m_cut = true;
    }
    if (row < 0 || row >= m_rows || m_taken[static_cast<std::size_t>(row)]) return false;
    m_taken[static_cast<std::size_t>(row)] = true;
    Vocabulary::Entry entry;
    entry.id = id;
    entry.row = row;
    set(entry, text, TokenUse::text);
    m_entries.push_back(std::move(entry));
    ++m_words;
    return true;
}

void WordTable::add(std::span<const AddedToken> tokens)
{
    std::unordered_map<std::int64_t, std::size_t> cut_rows;
    for (std::size_t n = 0; m_cut && n < m_entries.size(); ++n) cut_rows.emplace(m_entries[n].id, n);
    const auto find = [&](std::int64_t id) -> Vocabulary::Entry* {
        if (!m_cut) return id >= 0 && id < m_rows ? &m_entries[static_cast<std::size_t>(id)] : nullptr;
        const auto at = cut_rows.find(id);
        return at == cut_rows.end() ? nullptr : &m_entries[at->second];
    };
    std::unordered_set<std::string_view> special_texts;
    for (const AddedToken& token : tokens) {
        if (token.text.empty()) continue;
        if (!token.id) {
            if (token.special) special_texts.insert(token.text);
            continue;
        }
        Vocabulary::Entry* entry = find(*token.id);
        if (entry == nullptr) continue;
        if (entry->text.empty()) {
            set(*entry, token.text, TokenUse::text);
            ++m_words;
        }
        entry->special = entry->special || token.special;
    }
    if (special_texts.empty()) return;
    for (Vocabulary::Entry& entry : m_entries)
        if (special_texts.contains(entry.text)) entry.special = true;
}

std::vector<Vocabulary::Entry> WordTable::take()
{
    return std::move(m_entries);
}

} // namespace posiscope::core
