// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>
#include <vector>

#include <QTest>

#include "core/model/open_model.h"
#include "core/probe/word_choice.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::CheckpointBuilder;
using tests::refusal;
using tests::TemporaryFolder;

std::shared_ptr<const OpenModel> opened(const CheckpointBuilder& builder = CheckpointBuilder())
{
    const TemporaryFolder folder;
    builder.write_to(folder);
    return *open_model(folder.path(), {});
}

/// The tiny BERT with another vocabulary file (and none of its own).
std::shared_ptr<const OpenModel> opened_with(const std::string& name, const std::string& content)
{
    CheckpointBuilder builder;
    builder.words.clear();
    const TemporaryFolder folder;
    builder.write_to(folder);
    folder.write(name, content);
    return *open_model(folder.path(), {});
}

std::vector<std::int64_t> ids_of(const std::vector<const Vocabulary::Entry*>& words)
{
    std::vector<std::int64_t> ids;
    for (const Vocabulary::Entry* word : words) ids.push_back(word->id);
    return ids;
}

WordSelection sampled(std::size_t count)
{
    WordSelection selection;
    selection.count = count;
    return selection;
}

WordSelection listed(std::vector<std::int64_t> ids, std::vector<std::string> words = {})
{
    WordSelection selection;
    selection.kind = WordSelection::Kind::listed;
    selection.ids = std::move(ids);
    selection.words = std::move(words);
    return selection;
}

Result<std::vector<const Vocabulary::Entry*>> choose(const OpenModel& model, const WordSelection& selection,
                                                     std::uint64_t seed = 0)
{
    std::vector<std::string> warnings;
    auto words = choose_words(model, "encoder", selection, seed, warnings);
    if (words && !warnings.empty())
        return Error{ErrorCode::internal, "there was a warning: " + warnings.front(), {}};
    return words;
}

} // namespace

class TestVocabulary : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void words_are_looked_up_both_ways()
    {
        const auto model = opened();
        const Vocabulary& vocabulary = model->vocabulary;
        QVERIFY(model->warnings.empty());
        QVERIFY(vocabulary.has_texts());
        QCOMPARE(vocabulary.entries().size(), std::size_t{40});
        QCOMPARE(vocabulary.find_text("w17")->id, std::int64_t{17});
        QCOMPARE(vocabulary.find_id(17)->text, std::string("w17"));
        QCOMPARE(vocabulary.shown(17), std::string("w17"));
        QCOMPARE(vocabulary.shown(4711), std::string("id 4711"));
        QVERIFY(vocabulary.find_id(40) == nullptr);
        QVERIFY(vocabulary.find_id(-1) == nullptr);
        QVERIFY(vocabulary.find_text("W17") == nullptr);
        QVERIFY(vocabulary.find_text("") == nullptr);
    }

    void special_words_and_pieces_are_never_drawn()
    {
        const auto model = opened();
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{32});
        for (const Vocabulary::Entry& entry : model->vocabulary.entries())
            QCOMPARE(entry.drawable, entry.id >= tests::built_first_word);
        QCOMPARE(model->architecture.special_token_ids, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
    }

    void brackets_alone_make_no_special_word()
    {
        CheckpointBuilder builder;
        builder.words[10] = "[";
        builder.words[11] = "]";
        builder.words[12] = "[]";
        builder.words[13] = "[x";
        builder.words[14] = "#";
        builder.words[15] = "##";
        const auto model = opened(builder);
        for (const std::int64_t id : {10, 11, 12, 13, 14}) QVERIFY(model->vocabulary.find_id(id)->drawable);
        // WordPiece writes a continuing piece with the mark "##"; alone it begins no word either.
        QVERIFY(!model->vocabulary.find_id(15)->drawable);
    }

    void the_padding_token_of_the_config_is_never_drawn()
    {
        CheckpointBuilder builder;
        builder.config["pad_token_id"] = 12;
        const auto model = opened(builder);
        QVERIFY(!model->vocabulary.find_id(12)->drawable);
        QCOMPARE(refusal(choose(*model, listed({12})), ErrorCode::invalid_argument, {"12", "padding"}),
                 QString());
    }

    void lines_may_end_as_on_windows_and_begin_with_a_mark()
    {
        std::string text = "\xEF\xBB\xBF";
        for (const std::string& word : CheckpointBuilder().words) text += word + "\r\n";
        const auto model = opened_with("vocab.txt", text);
        QVERIFY(model->warnings.empty());
        QCOMPARE(model->vocabulary.find_text("[PAD]")->id, std::int64_t{0});
        QCOMPARE(model->vocabulary.find_text("w39")->id, std::int64_t{39});
    }

    void a_padded_table_keeps_its_words()
    {
        // 40 rows, 36 words: tables are often padded to a round number.
        CheckpointBuilder builder;
        builder.words.resize(36);
        const auto model = opened(builder);
        QVERIFY(any_holds(model->warnings, {"vocab.txt", "36 words", "40 rows", "by id"}));
        QCOMPARE(model->vocabulary.find_text("w35")->id, std::int64_t{35});
        QCOMPARE(model->vocabulary.shown(36), std::string("id 36"));
        // Padding rows were never trained: they are not drawn, but may be listed.
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{28});
        std::vector<std::string> warnings;
        QVERIFY(choose_words(*model, "encoder", listed({38}), 0, warnings));
    }

    void a_vocabulary_longer_than_the_table_is_cut()
    {
        CheckpointBuilder builder;
        for (int n = 0; n < 100; ++n) builder.words.push_back("more" + std::to_string(n));
        const auto model = opened(builder);
        QVERIFY(any_holds(model->warnings, {"vocab.txt", "140 words", "40 rows"}));
        QCOMPARE(model->vocabulary.entries().size(), std::size_t{40});
        QVERIFY(model->vocabulary.find_text("more0") == nullptr);
    }

    void a_word_that_is_listed_twice_means_the_first()
    {
        CheckpointBuilder builder;
        builder.words[20] = builder.words[30] = "w9";
        const auto model = opened(builder);
        QVERIFY(any_holds(model->warnings, {"vocab.txt", "'w9'", "9 and 20"}));
        QCOMPARE(model->vocabulary.find_text("w9")->id, std::int64_t{9});
        QCOMPARE(model->vocabulary.shown(30), std::string("w9"));
    }

    void without_a_vocabulary_words_are_shown_by_id()
    {
        CheckpointBuilder builder;
        builder.words.clear();
        const auto model = opened(builder);
        QVERIFY(any_holds(model->warnings, {"no vocabulary", "by id"}));
        QVERIFY(!model->vocabulary.has_texts());
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{39}); // all but the padding token
        QCOMPARE(model->vocabulary.shown(7), std::string("id 7"));
        QVERIFY(model->architecture.stacks.front().special_leading.empty());
        QCOMPARE(refusal(choose(*model, listed({}, {"w9"})), ErrorCode::invalid_argument, {"'w9'", "ids"}),
                 QString());
    }

    void a_broken_vocabulary_is_a_warning_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("said");
        const auto row = [](const char* title, const char* name, const std::string& content,
                            const char* said) {
            QTest::newRow(title) << QString::fromLatin1(name) << QByteArray::fromStdString(content)
                                 << QString::fromLatin1(said);
        };
        row("no UTF-8", "vocab.txt", "[PAD]\n\xFF\xFE\n", "not UTF-8");
        row("empty", "vocab.txt", "", "0 words");
        row("row beyond the table", "vocab.tsv", "row\ttoken\toriginal_id\n0\t[PAD]\t0\n40\tthe\t1996\n",
            "line 3");
        row("row is no number", "vocab.tsv", "row\ttoken\toriginal_id\nx\t[PAD]\t0\n", "line 2");
        row("negative id", "vocab.tsv", "row\ttoken\toriginal_id\n0\t[PAD]\t-1\n", "line 2");
        row("two columns", "vocab.tsv", "row\ttoken\n0\t[PAD]\n", "line 2");
        row("number and more", "vocab.tsv", "row\ttoken\toriginal_id\n0\t[PAD]\t0x\n", "line 2");
    }
    void a_broken_vocabulary_is_a_warning()
    {
        QFETCH(const QString, name);
        QFETCH(const QByteArray, content);
        QFETCH(const QString, said);
        const auto model = opened_with(name.toStdString(), content.toStdString());
        QVERIFY(any_holds(model->warnings, {name.toStdString(), said.toStdString()}));
        QVERIFY(any_holds(model->warnings, {"by id"}));
        QCOMPARE(model->vocabulary.entries().size(), std::size_t{40});
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{39});
    }

    void a_cut_table_keeps_the_original_ids()
    {
        CheckpointBuilder builder;
        builder.words.clear();
        builder.config["vocab_size"] = 30522; // as in the whole model: the table is cut
        const TemporaryFolder folder;
        builder.write_to(folder);
        std::string text = "row\ttoken\toriginal_id\n0\t[PAD]\t0\n1\t[CLS]\t101\n2\t[SEP]\t102\n";
        for (int row = 3; row < 40; ++row)
            text +=
                std::to_string(row) + "\tw" + std::to_string(row) + "\t" + std::to_string(2000 + row) + "\n";
        folder.write("vocab.tsv", text);
        const auto opened_model = open_model(folder.path(), {});
        QVERIFY2(opened_model, tests::failure(opened_model).c_str());
        const OpenModel& model = **opened_model;
        QVERIFY(model.warnings.empty());
        QCOMPARE(model.vocabulary.find_id(2005)->row, std::int64_t{5});
        QVERIFY(model.vocabulary.find_id(5) == nullptr);
        QCOMPARE(model.architecture.stacks.front().special_trailing, std::vector<std::int64_t>{102});
        QCOMPARE(ids_of(*choose(model, listed({2039}, {"w4"}))), (std::vector<std::int64_t>{2039, 2004}));
    }

    void samples_follow_the_seed()
    {
        const auto model = opened();
        const auto first = ids_of(*choose(*model, sampled(10), 1));
        QCOMPARE(first.size(), std::size_t{10});
        QCOMPARE(ids_of(*choose(*model, sampled(10), 1)), first);
        QVERIFY(ids_of(*choose(*model, sampled(10), 2)) != first);
        auto all = ids_of(*choose(*model, sampled(32), 3));
        std::sort(all.begin(), all.end());
        QCOMPARE(all.front(), tests::built_first_word);
        QCOMPARE(all.back(), std::int64_t{39});
        QVERIFY(std::adjacent_find(all.begin(), all.end()) == all.end());
    }

    void all_words_are_every_word_that_may_be_drawn()
    {
        const auto model = opened();
        WordSelection selection;
        selection.kind = WordSelection::Kind::all;
        const auto ids = ids_of(*choose(*model, selection, 5));
        QCOMPARE(ids.size(), std::size_t{32});
        QVERIFY(std::is_sorted(ids.begin(), ids.end()));
    }

    void fewer_words_than_asked_for_are_a_warning()
    {
        const auto model = opened();
        std::vector<std::string> warnings;
        const auto words = choose_words(*model, "encoder", sampled(300), 0, warnings);
        QVERIFY(words);
        QCOMPARE(words->size(), std::size_t{32});
        QVERIFY(any_holds(warnings, {"32 words"}));
        warnings.clear();
        QVERIFY(choose_words(*model, "encoder", sampled(32), 0, warnings));
        QVERIFY(warnings.empty());
    }

    void listed_words_keep_their_order()
    {
        const auto model = opened();
        QCOMPARE(ids_of(*choose(*model, listed({30, 9, 30}, {"w8", "w20"}))),
                 (std::vector<std::int64_t>{30, 9, 30, 8, 20}));
    }

    void special_words_may_be_listed_with_a_warning()
    {
        const auto model = opened();
        std::vector<std::string> warnings;
        QVERIFY(choose_words(*model, "encoder", listed({2, 9, 6}), 0, warnings));
        QVERIFY(any_holds(warnings, {"[CLS]", "##ing", "no whole words"}));
    }

    void senseless_selections_are_refused()
    {
        const auto model = opened();
        const auto refused = [&](const WordSelection& selection, const std::vector<std::string>& named) {
            return refusal(choose(*model, selection), ErrorCode::invalid_argument, named);
        };
        QCOMPARE(refused(sampled(0), {"0 words"}), QString());
        QCOMPARE(refused(listed({}), {"no word"}), QString());
        QCOMPARE(refused(listed({40}), {"40", "vocabulary"}), QString());
        QCOMPARE(refused(listed({-1}), {"-1"}), QString());
        QCOMPARE(refused(listed({}, {"cat\n"}), {"'cat\\x0A'", "vocabulary"}), QString());
        QCOMPARE(refused(listed({9, tests::built_pad_id}), {"0", "padding"}), QString());
        QCOMPARE(refused(listed({}, {"[PAD]"}), {"'[PAD]'", "padding"}), QString());
        CheckpointBuilder builder;
        for (std::string& word : builder.words) word = "[" + word + "]";
        QCOMPARE(refusal(choose(*opened(builder), sampled(5)), ErrorCode::invalid_argument, {"no word"}),
                 QString());
    }

    void groups_are_even_runs()
    {
        using Sizes = std::vector<std::size_t>;
        QCOMPARE(group_sizes(0), Sizes{});
        QCOMPARE(group_sizes(1), Sizes{1});
        QCOMPARE(group_sizes(5), Sizes(5, 1));
        QCOMPARE(group_sizes(32), Sizes(32, 1));
        Sizes expected(32, 1);
        expected[0] = 2;
        QCOMPARE(group_sizes(33), expected);
        expected.assign(32, 9);
        std::fill(expected.begin(), expected.begin() + 12, 10);
        QCOMPARE(group_sizes(300), expected);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestVocabulary)
#include "tst_vocabulary.moc"
