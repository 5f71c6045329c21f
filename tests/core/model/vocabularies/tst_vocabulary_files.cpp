// SPDX-License-Identifier: GPL-3.0-or-later
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/model/open_model.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::CheckpointBuilder;
using tests::TemporaryFolder;

constexpr std::int64_t built_rows = 40;

using Files = std::vector<std::pair<std::string, std::string>>;

/// A tiny BERT of 40 words with other vocabulary files and none of its own.
std::shared_ptr<const OpenModel> opened_with(const Files& files, const nlohmann::json& config = {})
{
    CheckpointBuilder builder;
    builder.words.clear();
    if (config.is_object()) builder.config.update(config);
    const TemporaryFolder folder;
    builder.write_to(folder);
    for (const auto& [name, content] : files) folder.write(name, content);
    return *open_model(folder.path(), {});
}

/// `special` first, then words spelled by `word` from their numbers, up to 40.
std::vector<std::string> word_list(std::vector<std::string> special, const std::string& before = {},
                                   const std::string& after = {})
{
    for (std::size_t n = special.size(); n < built_rows; ++n)
        special.push_back(before + "w" + std::to_string(n) + after);
    return special;
}

std::string json_object(const std::vector<std::string>& words)
{
    nlohmann::json ids;
    for (std::size_t n = 0; n < words.size(); ++n) ids[words[n]] = n;
    return ids.dump();
}

std::string lines(const std::vector<std::string>& words, const std::string& end = "\n")
{
    std::string text;
    for (const std::string& word : words) text += word + end;
    return text;
}

std::string varint(std::uint64_t value)
{
    std::string out;
    for (; value >= 0x80; value >>= 7u) out += static_cast<char>(0x80u | (value & 0x7Fu));
    return out + static_cast<char>(value);
}

/// A piece as sentencepiece writes it: text, score, type (1 normal, 2 unknown, 3 control, 4 user's, 5 unused, 6 byte).
std::string piece(const std::string& text, std::uint64_t type)
{
    std::string body = "\x0A" + varint(text.size()) + text;
    body += std::string("\x15\x00\x00\x80\xBF", 5);
    if (type != 1) body += "\x18" + varint(type);
    return "\x0A" + varint(body.size()) + body;
}

std::string sentencepiece_model(const std::vector<std::string>& words)
{
    std::string bytes;
    for (const std::string& word : words)
        bytes += piece(word, word == "<unk>" ? 2 : word.front() == '<' ? 3 : 1);
    return bytes + "\x12\x02\x20\x01"; // a trainer's settings
}

/// A folder with the weights and the config of a fixture, and other vocabulary files.
void copy_family(const std::string& family, const TemporaryFolder& folder, const Files& files,
                 const std::vector<const char*>& keys_left_out = {})
{
    const std::string fixture = std::string(POSISCOPE_TEST_DATA) + "/families/" + family + "/";
    const auto bytes = [&](const char* name) {
        std::ifstream file(fixture + name, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    auto config = nlohmann::json::parse(bytes("config.json"));
    for (const char* key : keys_left_out) config.erase(key);
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", bytes("model.safetensors"));
    for (const auto& [name, content] : files) folder.write(name, content);
}

std::string tokenizer_json(const nlohmann::json& vocabulary,
                           const nlohmann::json& added = nlohmann::json::array())
{
    return nlohmann::json{
        {"version", "1.0"},
        {"added_tokens", added},
        {"decoder", nullptr},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {{"a", "b"}, {"c", "d"}}}}}}
        .dump(1);
}

nlohmann::json unigram(const std::vector<std::string>& words)
{
    nlohmann::json list = nlohmann::json::array();
    for (const std::string& word : words) list.push_back({word, -1.5});
    return list;
}

} // namespace

/// Each kind of vocabulary file, good and broken.
class TestVocabularyFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void each_kind_names_its_words_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<int>("first_word");  // ids before it are special
        QTest::addColumn<QString>("special"); // shown for the id before
        const auto row = [](const char* title, const char* name, const std::string& content, int first_word,
                            const char* special) {
            QTest::newRow(title) << QString(name) << QByteArray::fromStdString(content) << first_word
                                 << QString(special);
        };
        const auto bert = word_list({"[PAD]", "[UNK]", "[CLS]", "[SEP]"});
        const auto byte_level = word_list({"[PAD]", "<s>", "</s>"}, "\u0120");
        const auto end_of_word = word_list({"[PAD]"}, "", "</w>");
        const auto pieces = word_list({"[PAD]", "<unk>", "<s>", "</s>"}, "\u2581");
        const nlohmann::json added{{{"id", 1}, {"content", "<s>"}, {"special", true}},
                                   {{"id", 2}, {"content", "</s>"}, {"special", true}},
                                   {{"id", 7}, {"content", "\u0120w7"}, {"special", false}}};
        row("lines", "vocab.txt", lines(bert), 4, "[SEP]");
        row("lines of a byte-level vocabulary", "vocab.txt", lines(word_list({"[PAD]"}, "\u0120")), 1,
            "[PAD]");
        row("ids by word", "vocab.json", json_object(bert), 4, "[SEP]");
        row("ids by word, end marks", "vocab.json", json_object(end_of_word), 1, "[PAD]");
        row("tokenizer, byte level", "tokenizer.json",
            tokenizer_json(nlohmann::json::parse(json_object(byte_level)), added), 3, "</s>");
        row("tokenizer, WordPiece", "tokenizer.json",
            tokenizer_json(nlohmann::json::parse(json_object(bert))), 4, "[SEP]");
        row("tokenizer, Unigram", "tokenizer.json",
            tokenizer_json(unigram(word_list({"[PAD]", "<s>", "</s>"}, "\u2581")), added), 3, "</s>");
        for (const char* name : {"spiece.model", "spm.model", "tokenizer.model"})
            row(name, name, sentencepiece_model(pieces), 4, "</s>");
        row("sentencepiece of fairseq in its own order", "sentencepiece.bpe.model",
            sentencepiece_model(pieces), 4, "</s>");
        std::string dictionary;
        for (std::size_t n = 4; n < built_rows; ++n)
            dictionary += "w" + std::to_string(n) + " " + std::to_string(1000 - n) +
                          (n == 9 ? " #fairseq:overwrite\n" : "\n");
        row("fairseq's dictionary", "dict.txt", dictionary, 4, "<unk>");
        row("source words", "source_vocab.txt", lines(bert), 4, "[SEP]");
    }

    void each_kind_names_its_words()
    {
        QFETCH(const QString, name);
        QFETCH(const QByteArray, content);
        QFETCH(const int, first_word);
        QFETCH(const QString, special);
        const auto model = opened_with({{name.toStdString(), content.toStdString()}}, {{"pad_token_id", 0}});
        const Vocabulary& vocabulary = model->vocabulary;
        QVERIFY2(model->warnings.empty(), model->warnings.empty() ? "" : model->warnings.front().c_str());
        QCOMPARE(vocabulary.entries().size(), std::size_t{built_rows});
        QCOMPARE(vocabulary.drawable_count(), static_cast<std::size_t>(built_rows - first_word));
        for (const Vocabulary::Entry& entry : vocabulary.entries())
            QCOMPARE(entry.drawable, entry.id >= first_word);
        QCOMPARE(vocabulary.find_word("w17")->id, std::int64_t{17});
        QCOMPARE(vocabulary.shown(17), std::string("w17"));
        QCOMPARE(vocabulary.shown(first_word - 1), special.toStdString());
        QVERIFY(vocabulary.find_word("w40") == nullptr);
        QVERIFY(vocabulary.find_word("") == nullptr);
    }

    void pieces_of_sentencepiece_have_types()
    {
        std::string bytes;
        for (std::size_t n = 0; n < built_rows - 6; ++n) bytes += piece("\u2581w" + std::to_string(n), 1);
        const std::int64_t at = built_rows - 6;
        bytes += piece("\u2581own", 4) + piece("<0x0A>", 6) + piece("\u2581gone", 5) + piece("<unk>", 2) +
                 piece("\u2581</s>", 3) + piece("ing", 1);
        const auto model = opened_with({{"tokenizer.model", bytes}});
        const Vocabulary& vocabulary = model->vocabulary;
        QVERIFY(vocabulary.find_id(at)->drawable);
        QCOMPARE(vocabulary.shown(at), std::string("own"));
        for (std::int64_t id = at + 1; id < built_rows; ++id) QVERIFY(!vocabulary.find_id(id)->drawable);
        QCOMPARE(vocabulary.shown(at + 1), std::string("<0x0A>"));
        QCOMPARE(vocabulary.shown(at + 5), std::string("\u2026ing"));
        QCOMPARE(vocabulary.find_word("ing")->id, at + 5);
        QCOMPARE(model->architecture.special_token_ids,
                 (std::vector<std::int64_t>{0, at + 1, at + 2, at + 3, at + 4}));
    }

    void fairseq_moves_the_pieces_of_sentencepiece()
    {
        std::vector<std::string> pieces{"<unk>", "<s>", "</s>"};
        for (std::size_t n = 3; n < 38; ++n) pieces.push_back("\u2581p" + std::to_string(n));
        const Files file{{"sentencepiece.bpe.model", sentencepiece_model(pieces)}};
        const auto xlmr = opened_with(file); // 38 pieces, <pad> and <mask>
        QVERIFY2(xlmr->warnings.empty(), xlmr->warnings.empty() ? "" : xlmr->warnings.front().c_str());
        QCOMPARE(xlmr->vocabulary.find_id(0)->text, std::string("<s>"));
        QCOMPARE(xlmr->vocabulary.find_id(1)->text, std::string("<pad>"));
        QCOMPARE(xlmr->vocabulary.find_id(2)->text, std::string("</s>"));
        QCOMPARE(xlmr->vocabulary.find_id(3)->text, std::string("<unk>"));
        QCOMPARE(xlmr->vocabulary.find_word("p3")->id, std::int64_t{4});
        QCOMPARE(xlmr->vocabulary.find_word("p37")->id, std::int64_t{38});
        QCOMPARE(xlmr->vocabulary.find_id(39)->text, std::string("<mask>"));

        // CamemBERT keeps all pieces behind four tokens: 195 pieces for the 200 rows of the fixture.
        pieces.resize(3);
        for (int n = 3; n < 195; ++n) pieces.push_back("\u2581p" + std::to_string(n));
        const TemporaryFolder folder;
        copy_family("camembert", folder, {{"sentencepiece.bpe.model", sentencepiece_model(pieces)}});
        const auto opened = open_model(folder.path(), {});
        QVERIFY2(opened, tests::failure(opened).c_str());
        const OpenModel& camembert = **opened;
        QVERIFY2(camembert.warnings.empty(),
                 camembert.warnings.empty() ? "" : camembert.warnings.front().c_str());
        // Its config says <s> 5, </s> 6, <pad> 1.
        QCOMPARE(camembert.vocabulary.find_id(5)->text, std::string("<s>"));
        QCOMPARE(camembert.vocabulary.find_id(6)->text, std::string("</s>"));
        QCOMPARE(camembert.vocabulary.find_id(1)->text, std::string("<pad>"));
        QCOMPARE(camembert.vocabulary.find_word("p3")->id, std::int64_t{7});
        QCOMPARE(camembert.vocabulary.find_id(199)->text, std::string("<mask>"));
        QCOMPARE(camembert.vocabulary.drawable_count(), std::size_t{192});
    }

    void bytes_become_characters_again()
    {
        auto words = word_list({"[PAD]"}, "\u0120");
        words[10] = "\u0120\u00C3\u00A9t\u00C3\u00A9"; // été
        words[11] = "\u00C3\u00A9t\u00C3\u00A9";
        words[12] = "\u0120\u00C3"; // half of a character
        words[13] = "\u0120";       // a blank
        words[14] = "\u010A";       // a line end
        words[15] = "\u0120\u0120\u0120";
        words[16] = "\u0120\u4E2D"; // not of the alphabet: shown as it stands
        const auto model = opened_with({{"vocab.json", json_object(words)}});
        const Vocabulary& vocabulary = model->vocabulary;
        QCOMPARE(vocabulary.shown(10), std::string("\u00E9t\u00E9"));
        QCOMPARE(vocabulary.shown(11), std::string("\u2026\u00E9t\u00E9"));
        QCOMPARE(vocabulary.shown(12), std::string("\\xC3"));
        QCOMPARE(vocabulary.shown(14), std::string("\u2026\\x0A"));
        QCOMPARE(vocabulary.find_word("\u00E9t\u00E9")->id, std::int64_t{10});
        QVERIFY(vocabulary.find_id(10)->drawable);
        QVERIFY(vocabulary.find_id(16)->drawable);
        for (const std::int64_t id : {11, 12, 13, 14, 15}) QVERIFY(!vocabulary.find_id(id)->drawable);
    }

    void a_typed_word_means_the_one_that_begins_a_word()
    {
        auto words = word_list({"[PAD]"}, "\u2581");
        words[5] = "the";
        words[6] = "\u2581the";
        words[7] = "ing";
        const auto pieces = opened_with({{"vocab.json", json_object(words)}});
        QCOMPARE(pieces->vocabulary.find_word("the")->id, std::int64_t{6});
        QCOMPARE(pieces->vocabulary.find_word("ing")->id, std::int64_t{7});
        QCOMPARE(pieces->vocabulary.find_word("\u2581the")->id, std::int64_t{6});
        QCOMPARE(pieces->vocabulary.find_text("the")->id, std::int64_t{5});
        QVERIFY(pieces->vocabulary.find_word("\u2581ing") == nullptr);

        words = word_list({"[PAD]"}, "", "</w>");
        words[5] = "the";
        words[6] = "the</w>";
        const auto ends = opened_with({{"vocab.json", json_object(words)}});
        QCOMPARE(ends->vocabulary.find_word("the")->id, std::int64_t{6});
        QCOMPARE(ends->vocabulary.shown(5), std::string("the\u2026"));
        QVERIFY(!ends->vocabulary.find_id(5)->drawable);

        words = word_list({"[PAD]"});
        words[5] = "th@@";
        const auto continued = opened_with({{"vocab.json", json_object(words)}});
        QCOMPARE(continued->vocabulary.shown(5), std::string("th\u2026"));
        QVERIFY(!continued->vocabulary.find_id(5)->drawable);
        QVERIFY(continued->vocabulary.find_id(6)->drawable);
    }

    void a_letter_that_looks_like_a_mark_is_none()
    {
        // Multilingual BERT has words that begin with the Maltese letter.
        CheckpointBuilder builder;
        builder.words[20] = "\u0120urdan";
        const TemporaryFolder folder;
        builder.write_to(folder);
        const auto model = *open_model(folder.path(), {});
        QCOMPARE(model->vocabulary.mark(), WordMark::continuation);
        QCOMPARE(model->vocabulary.shown(20), std::string("\u0120urdan"));
        QVERIFY(model->vocabulary.find_id(20)->drawable);
        QVERIFY(model->vocabulary.find_id(21)->drawable);
        QCOMPARE(model->vocabulary.shown(6), std::string("##ing"));
    }

    void letters_have_no_marks()
    {
        const auto model = opened_with({{"vocab.txt", lines(word_list({"[PAD]", "[UNK]"}, "L"))}});
        QCOMPARE(model->vocabulary.mark(), WordMark::none);
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{38});
    }

    void place_holders_are_never_drawn_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("drawn");
        for (const char* text : {"[unused3]", "<unused12>", "<extra_id_0>", "<0x0A>", "madeupword0003"})
            QTest::newRow(text) << QString(text) << false;
        for (const char* text : {"unused3", "extra_id_0", "0x0A", "<0x0G>x", "madeupwords", "a"})
            QTest::newRow(text) << QString(text) << true;
    }
    void place_holders_are_never_drawn()
    {
        QFETCH(const QString, text);
        QFETCH(const bool, drawn);
        auto words = word_list({"[PAD]"});
        words[9] = text.toStdString();
        const auto model = opened_with({{"vocab.txt", lines(words)}});
        QCOMPARE(model->vocabulary.find_id(9)->drawable, drawn);
        QCOMPARE(model->vocabulary.shown(9), text.toStdString());
    }

    void files_beside_it_tell_special_tokens()
    {
        const std::string words = lines(word_list({"[PAD]", "BEGIN", "END"}));
        const auto drawn = [](const std::shared_ptr<const OpenModel>& model) {
            std::vector<std::int64_t> ids;
            for (const Vocabulary::Entry& entry : model->vocabulary.entries())
                if (!entry.drawable) ids.push_back(entry.id);
            return ids;
        };
        QCOMPARE(drawn(opened_with({{"vocab.txt", words}})), (std::vector<std::int64_t>{0}));
        QCOMPARE(
            drawn(opened_with({{"vocab.txt", words},
                               {"special_tokens_map.json",
                                R"({"bos_token": "BEGIN", "eos_token": {"content": "END", "lstrip": false},
                                         "additional_special_tokens": ["w9", {"content": "w8"}], "pad_token": 7})"}})),
            (std::vector<std::int64_t>{0, 1, 2, 8, 9}));
        QCOMPARE(
            drawn(opened_with({{"vocab.txt", words},
                               {"tokenizer_config.json",
                                R"({"cls_token": "BEGIN", "add_bos_token": true, "model_max_length": 1e30,
                                         "added_tokens_decoder": {"2": {"content": "END", "special": true},
                                                                  "5": {"content": "w5", "special": false},
                                                                  "99": {"content": "far", "special": true}}})"}})),
            (std::vector<std::int64_t>{0, 1, 2}));
        QCOMPARE(drawn(opened_with({{"vocab.txt", words}}, {{"bos_token_id", 1}, {"eos_token_id", 2}})),
                 (std::vector<std::int64_t>{0, 1, 2}));
    }

    void tokens_beside_a_vocabulary_fill_its_gaps()
    {
        auto words = word_list({"[PAD]"});
        words.resize(38);
        const auto model =
            opened_with({{"vocab.txt", lines(words)},
                         {"added_tokens.json", R"({"brandnew": 38, "<extra_id_0>": 39, "w3x": 3})"}});
        QVERIFY2(model->warnings.empty(), model->warnings.empty() ? "" : model->warnings.front().c_str());
        QCOMPARE(model->vocabulary.find_word("brandnew")->id, std::int64_t{38});
        QVERIFY(model->vocabulary.find_id(38)->drawable);
        QVERIFY(!model->vocabulary.find_id(39)->drawable);
        QCOMPARE(model->vocabulary.shown(3), std::string("w3"));
    }

    void a_broken_file_of_special_tokens_is_a_warning()
    {
        const auto model = opened_with(
            {{"vocab.txt", lines(word_list({"[PAD]"}))}, {"special_tokens_map.json", "{\"bos_token\": "}});
        QVERIFY(any_holds(model->warnings, {"special_tokens_map.json", "not valid JSON"}));
        QCOMPARE(model->vocabulary.find_word("w9")->id, std::int64_t{9});
    }

    void a_broken_file_is_a_warning_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("said");
        const auto row = [](const char* title, const char* name, const std::string& content,
                            const char* said) {
            QTest::newRow(title) << QString(name) << QByteArray::fromStdString(content) << QString(said);
        };
        row("json: empty", "vocab.json", "", "not valid JSON");
        row("json: cut", "vocab.json", R"({"a": 0, "b": )", "byte 14");
        row("json: more behind it", "vocab.json", R"({"a": 0} {})", "byte 9");
        row("json: comma at the end", "vocab.json", R"({"a": 0,})", "not valid JSON");
        row("json: a list", "vocab.json", R"(["a", "b"])", "byte 0");
        row("json: text as id", "vocab.json", R"({"a": "0"})", "'a'");
        row("json: fraction as id", "vocab.json", R"({"a": 1.5})", "'a'");
        row("json: negative id", "vocab.json", R"({"a": -1})", "'a'");
        row("json: id of 30 digits", "vocab.json", R"({"a": 100000000000000000000000000000})", "'a'");
        row("json: per language", "vocab.json", R"({"eng": {"a": 0}})", "'eng'");
        row("json: half of a pair", "vocab.json", R"({"\ud83d": 0})", "not valid JSON");
        row("json: bad escape", "vocab.json", R"({"\x": 0})", "not valid JSON");
        row("json: control character", "vocab.json", "{\"a\nb\": 0}", "not valid JSON");
        row("json: no UTF-8", "vocab.json", "{\"\xFF\": 0}", "not UTF-8");
        row("tokenizer: no model", "tokenizer.json", R"({"version": "1.0"})", "'model'");
        row("tokenizer: no vocabulary", "tokenizer.json", R"({"model": {"type": "BPE"}})", "'vocab'");
        row("tokenizer: number as vocabulary", "tokenizer.json", R"({"model": {"vocab": 3}})", "'vocab'");
        row("tokenizer: pieces without scores", "tokenizer.json", R"({"model": {"vocab": [["a"], ["b"]]}})",
            "number 1");
        row("tokenizer: deep", "tokenizer.json", R"({"x": )" + std::string(100'000, '['), "not valid JSON");
        row(
            "tokenizer: deep objects", "tokenizer.json",
            [] {
                std::string deep;
                for (int n = 0; n < 100'000; ++n) deep += R"({"x":)";
                return deep;
            }(),
            "not valid JSON");
        row("sentencepiece: empty", "spiece.model", "", "no pieces");
        row("sentencepiece: a piece of 2^32 bytes", "spiece.model",
            "\x0A\xFF\xFF\xFF\xFF\x0F"
            "abc",
            "cut short");
        row("sentencepiece: endless number", "spiece.model", std::string(100, '\x8A'), "0 pieces");
        row("sentencepiece: cut in the second piece", "spiece.model",
            piece("a", 1) + piece("bcd", 1).substr(0, 6), "1 piece");
        row("sentencepiece: piece without text", "spiece.model", std::string("\x0A\x02\x18\x01"), "piece 0");
        row("sentencepiece: no UTF-8", "spiece.model", piece("a", 1) + piece("\xC0\x80", 1), "piece 1");
        row("sentencepiece: a group", "spiece.model",
            "\x0B"
            "abc",
            "sentencepiece");
        row("sentencepiece: field 0", "spiece.model",
            std::string("\x02\x01"
                        "a"),
            "sentencepiece");
        row("sentencepiece: plain text", "tokenizer.model", "IQ== 0\nIg== 1\n", "sentencepiece");
        row("fairseq: no count", "dict.txt", "the 10\nof\n", "line 2");
        row("fairseq: count is no number", "dict.txt", "the 10\nof many\n", "line 2");
        row("Marian without its ids", "source.spm", piece("a", 1), "vocab.json");
    }
    void a_broken_file_is_a_warning()
    {
        QFETCH(const QString, name);
        QFETCH(const QByteArray, content);
        QFETCH(const QString, said);
        const auto model = opened_with({{name.toStdString(), content.toStdString()}});
        QVERIFY2(any_holds(model->warnings, {name.toStdString(), said.toStdString(), "by id"}),
                 model->warnings.empty() ? "no warning" : model->warnings.front().c_str());
        QVERIFY(!model->vocabulary.has_texts());
        QCOMPARE(model->vocabulary.drawable_count(), std::size_t{39});
    }

    void a_sound_file_stands_in_for_a_broken_one()
    {
        const auto model = opened_with({{"tokenizer.json", "{"}, {"vocab.txt", lines(word_list({"[PAD]"}))}});
        QVERIFY(any_holds(model->warnings, {"tokenizer.json", "not valid JSON", "vocab.txt", "is taken"}));
        QCOMPARE(model->vocabulary.find_word("w9")->id, std::int64_t{9});
    }

    void words_beyond_the_table_and_ids_given_twice_are_told()
    {
        auto words = word_list({"[PAD]"});
        words.push_back("w40");
        const auto longer = opened_with({{"vocab.json", json_object(words)}});
        QVERIFY(any_holds(longer->warnings, {"vocab.json", "41 words", "40 rows"}));
        QVERIFY(longer->vocabulary.find_word("w40") == nullptr);
        QVERIFY(any_holds(opened_with({{"vocab.json", R"({"a": 1000000000000, "b": 0})"}})->warnings,
                          {"2 words"}));

        const auto twice = opened_with({{"vocab.json", R"({"a": 3, "b": 3, "c": 4})"}});
        QVERIFY(any_holds(twice->warnings, {"vocab.json", "same id", "3"}));
        QCOMPARE(twice->vocabulary.shown(3), std::string("a"));
    }

    void escapes_of_a_cut_vocabulary_are_undone()
    {
        std::string text =
            "row\ttoken\toriginal_id\n0\t\\n<s>\\n\t7\n1\t\\\\\t8\n2\t\\\"\t9\n3\t\\\t10\n4\t t\t11\n";
        const auto model = opened_with({{"vocab.tsv", text}}, {{"bos_token_id", 7}});
        QCOMPARE(model->vocabulary.find_id(7)->text, std::string("\n<s>\n"));
        QVERIFY(!model->vocabulary.find_id(7)->drawable);
        QCOMPARE(model->vocabulary.find_id(8)->text, std::string("\\"));
        QCOMPARE(model->vocabulary.find_id(9)->text, std::string("\""));
        QCOMPARE(model->vocabulary.find_id(10)->text, std::string("\\"));
        QCOMPARE(model->vocabulary.mark(), WordMark::blank);
        QCOMPARE(model->vocabulary.find_word("t")->id, std::int64_t{11});
        const auto again = opened_with({{"vocab.tsv", "head\n0\ta\t1\n0\tb\t2\n"}});
        QVERIFY(any_holds(again->warnings, {"vocab.tsv", "line 3", "row 0"}));
    }

    void stacks_may_read_words_of_their_own()
    {
        const TemporaryFolder folder;
        std::string source = "<s>\n<pad>\n</s>\n", target = source;
        for (int n = 3; n < 200; ++n) {
            source += "s" + std::to_string(n) + "\n";
            target += "t" + std::to_string(n) + "\n";
        }
        copy_family("bart", folder, {{"source_vocab.txt", source}, {"target_vocab.txt", target}});
        const auto opened = open_model(folder.path(), {});
        QVERIFY2(opened, tests::failure(opened).c_str());
        const OpenModel& model = **opened;
        QVERIFY2(model.warnings.empty(), model.warnings.empty() ? "" : model.warnings.front().c_str());
        QCOMPARE(model.vocabulary_of("encoder").shown(9), std::string("s9"));
        QCOMPARE(model.vocabulary_of("decoder").shown(9), std::string("t9"));
        QCOMPARE(&model.vocabulary_of("encoder"), &model.vocabulary);
        QVERIFY(!model.vocabulary_of("decoder").find_id(1)->drawable);

        folder.write("target_vocab.txt", "\xFF\n");
        const auto broken = open_model(folder.path(), {});
        QVERIFY(any_holds((*broken)->warnings, {"target_vocab.txt", "not UTF-8"}));
        QCOMPARE(&(*broken)->vocabulary_of("decoder"), &(*broken)->vocabulary);
    }

    void special_tokens_around_the_words_are_known_by_their_texts()
    {
        const TemporaryFolder folder;
        auto words = word_list({"<s>", "<pad>", "</s>", "<unk>"}, "\u0120");
        for (int n = built_rows; n < 200; ++n) words.push_back("\u0120w" + std::to_string(n));
        copy_family("roberta", folder, {{"vocab.json", json_object(words)}},
                    {"bos_token_id", "eos_token_id"});
        const auto model = open_model(folder.path(), {});
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE((*model)->architecture.stacks.front().special_leading, std::vector<std::int64_t>{0});
        QCOMPARE((*model)->architecture.stacks.front().special_trailing, std::vector<std::int64_t>{2});
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestVocabularyFiles)
#include "tst_vocabulary_files.moc"
