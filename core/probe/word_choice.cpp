// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/word_choice.h"

#include <algorithm>

#include "core/base/random.h"
#include "core/base/text.h"

namespace posiscope::core {
namespace {

Error refused(const std::string& message)
{
    return Error{ErrorCode::invalid_argument, message, "choosing words"};
}

Result<const Vocabulary::Entry*> listed_word(const OpenModel& model, const Vocabulary::Entry* entry,
                                             const std::string& asked)
{
    if (entry == nullptr)
        return refused(asked + " is not in the vocabulary of " + in_quotes(model.checkpoint->display_name()));
    if (model.architecture.pad_token_id == entry->id)
        return refused(asked + " is the padding token, which the network masks out; choose another word");
    return entry;
}

} // namespace

Result<std::vector<const Vocabulary::Entry*>> choose_words(const OpenModel& model, std::string_view stack,
                                                           const WordSelection& selection, std::uint64_t seed,
                                                           std::vector<std::string>& warnings)
{
    const Vocabulary& vocabulary = model.vocabulary_of(stack);
    std::vector<const Vocabulary::Entry*> chosen;
    if (selection.kind == WordSelection::Kind::listed) {
        std::vector<std::string> special;
        const auto add = [&](const Vocabulary::Entry* entry, const std::string& asked) -> Result<void> {
            const auto word = listed_word(model, entry, asked);
            if (!word) return word.error();
            if (!(*word)->drawable) special.push_back(vocabulary.shown((*word)->id));
            chosen.push_back(*word);
            return {};
        };
        for (const std::int64_t id : selection.ids)
            if (auto added = add(vocabulary.find_id(id), "the word id " + std::to_string(id)); !added)
                return added.error();
        for (const std::string& word : selection.words) {
            if (!vocabulary.has_texts())
                return refused("the model has no vocabulary to look up the word " + in_quotes(word, 40) +
                               "; give ids instead");
            if (auto added = add(vocabulary.find_word(word), "the word " + in_quotes(word, 40)); !added)
                return added.error();
        }
        if (!special.empty())
            warnings.push_back(join_for_message(special) +
                               (special.size() == 1 ? " is no whole word" : " are no whole words") +
                               " and would not be drawn by themselves");
        if (chosen.empty()) return refused("no word is listed; at least one is needed");
        return chosen;
    }

    std::vector<std::int64_t> drawable;
    for (const Vocabulary::Entry& entry : vocabulary.entries())
        if (entry.drawable) drawable.push_back(entry.id);
    if (drawable.empty()) return refused("the vocabulary holds no word that may be drawn");
    if (selection.kind == WordSelection::Kind::sampled) {
        if (selection.count == 0) return refused("0 words were asked for; at least one is needed");
        if (selection.count > drawable.size())
            warnings.push_back("the vocabulary holds " + counted(drawable.size(), "word", "words") +
                               " that may be drawn; all are taken");
        drawable = sample_without_replacement(std::move(drawable), selection.count, seed);
    }
    for (const std::int64_t id : drawable) chosen.push_back(vocabulary.find_id(id));
    return chosen;
}

std::vector<std::size_t> group_sizes(std::size_t words)
{
    const std::size_t groups = std::min(words, most_groups);
    std::vector<std::size_t> sizes(groups, groups == 0 ? 0 : words / groups);
    for (std::size_t g = 0; g < (groups == 0 ? 0 : words % groups); ++g) ++sizes[g];
    return sizes;
}

} // namespace posiscope::core
