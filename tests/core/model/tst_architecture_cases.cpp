// SPDX-License-Identifier: GPL-3.0-or-later
// Faults in names, architectures and T5's biases that users of other programs reported, and what is right in their place. The
// numbers are those of the public reports.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <QTest>

#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/metrics/position_similarity.h"
#include "core/metrics/relative_bias.h"
#include "core/model/engine.h"
#include "core/probe/identical_word_probe.h"
#include "core/probe/network_reader.h"
#include "core/projection/position_vectors.h"
#include "core/projection/tsne.h"
#include "tests/support/expected_error.h"
#include "tests/support/fixture_checkpoint.h"
#include "tests/support/gguf_file.h"

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::BuiltTensor;
using tests::CheckpointBuilder;
using tests::failure;
using tests::fixture_checkpoint;
using tests::OpenedCheckpoint;
using tests::refusal;
using tests::TemporaryFolder;

const std::vector<std::int64_t> fixture_words{17, 42, 66};

void as_it_is(CheckpointBuilder&) {}

ProbeOptions options_of(std::int64_t length, const std::string& stack = {}, int layer = 0)
{
    ProbeOptions options;
    options.stack = stack;
    options.layer = layer;
    options.length = length;
    options.words.kind = WordSelection::Kind::listed;
    options.words.ids = fixture_words;
    return options;
}

Result<ProbeResult> probed(const OpenModel& model, const ProbeOptions& options)
{
    return run_identical_word_probe(model, options, {});
}

/// The logits, and behind them the probabilities; empty where the probe was refused. What does not exist is infinite, so
/// that it equals itself.
std::vector<float> maps(const OpenModel& model, const ProbeOptions& options)
{
    const auto probe = probed(model, options);
    if (!probe) return {};
    std::vector<float> all(probe->attention_logits.values().begin(), probe->attention_logits.values().end());
    all.insert(all.end(), probe->attention_probabilities.values().begin(),
               probe->attention_probabilities.values().end());
    for (float& value : all)
        if (std::isnan(value)) value = std::numeric_limits<float>::infinity();
    return all;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b)
{
    if (a.size() != b.size() || a.empty()) return 1e30f;
    float largest = 0.0f;
    for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::abs(a[n] - b[n]));
    return largest;
}

bool all_finite(std::span<const float> values)
{
    return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

/// A table whose row i holds i everywhere.
void number_rows(BuiltTensor& table, std::int64_t rows)
{
    table.shape[0] = rows;
    table.values.assign(static_cast<std::size_t>(rows * table.shape[1]), 0.0f);
    for (std::size_t n = 0; n < table.values.size(); ++n)
        table.values[n] = static_cast<float>(static_cast<std::int64_t>(n) / table.shape[1]);
}

void resize_rows(BuiltTensor& table, std::int64_t rows)
{
    Random random(5);
    const std::size_t before = table.values.size();
    table.shape[0] = rows;
    table.values.resize(static_cast<std::size_t>(rows * table.shape[1]));
    for (std::size_t n = before; n < table.values.size(); ++n)
        table.values[n] = static_cast<float>(random.normal());
}

constexpr const char* t5_table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
constexpr const char* t5_decoder_table =
    "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";

} // namespace

class TestArchitectureCases : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void prefixes_are_taken_off_at_the_start_only_data()
    {
        QTest::addColumn<QString>("prefix");
        for (const char* prefix : {"", "module.", "_orig_mod.module.", "model.bert."})
            QTest::newRow(*prefix == '\0' ? "none" : prefix) << prefix;
    }
    void prefixes_are_taken_off_at_the_start_only() // transformers 48722; mmf PR 47
    {
        QFETCH(const QString, prefix);
        const std::string before = prefix.toStdString();
        CheckpointBuilder builder;
        const OpenedCheckpoint plain(builder);
        ProbeOptions options = options_of(9);
        options.words.ids = {9, 12};
        const std::vector<float> wanted = maps(*plain, options);
        builder.tensors.push_back({"embeddings.module.word_embeddings.weight", {1}, {0.0f}});
        builder.tensors.push_back({"cls.predictions.bias", {40}, std::vector<float>(40, 0.0f)});
        builder.add_prefix(before);
        const OpenedCheckpoint opened(builder);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QCOMPARE(maps(*opened, options), wanted);
        QVERIFY(!wanted.empty());
        // What is left over keeps its name, and is counted.
        QCOMPARE(opened->unmatched_tensors,
                 (std::vector<std::string>{before + "embeddings.module.word_embeddings.weight",
                                           before + "cls.predictions.bias"}));
        QCOMPARE(opened->prefixes, before.empty() ? std::vector<std::string>{} : std::vector{before});
        // A name with the prefix in the middle stands for nothing, and nothing is invented in its place.
        builder.rename(before + tests::position_table_name,
                       before + "embeddings.module.position_embeddings.weight");
        QCOMPARE(refusal(OpenedCheckpoint(builder).model, ErrorCode::not_found,
                         {"'embeddings.position_embeddings.weight'", "model.safetensors",
                          before + "embeddings.module.position_embeddings.weight"}),
                 QString());
    }

    void prefixes_in_nested_dicts_are_taken_off() // transformers 48722; mmf PR 47
    {
        const auto original = open_model(tests::family_folder("bert").string(), {});
        QVERIFY(original);
        const std::vector<float> wanted = maps(**original, options_of(13));
        for (const auto& [folder, prefix] :
             {std::pair{"bin-nested-state_dict", "module.bert."}, {"bin-nested-model", "module."}}) {
            const auto model =
                open_model(std::string(POSISCOPE_TEST_DATA) + "/formats/" + std::string(folder), {});
            QVERIFY2(model, failure(model).c_str());
            QCOMPARE(maps(**model, options_of(13)), wanted);
            QVERIFY(std::find((*model)->prefixes.begin(), (*model)->prefixes.end(), prefix) !=
                    (*model)->prefixes.end());
        }
    }

    void a_bert_whose_queries_and_keys_match_nothing_stops() // bertviz 12, 22
    {
        CheckpointBuilder builder;
        for (BuiltTensor& tensor : builder.tensors)
            for (const char* part : {"self.query", "self.key"})
                if (const std::size_t at = tensor.name.find(part); at != std::string::npos)
                    tensor.name.replace(at, 4, "sa");
        const OpenedCheckpoint opened(builder);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        const std::vector<std::string> named{
            "'encoder.layer.0.attention.self.query.weight'", "'encoder.layer.0.attention.self.key.weight'",
            "'encoder.layer.0.attention.sa.query.weight'", "'encoder.layer.0.attention.sa.key.weight'",
            "model.safetensors"};
        QVERIFY(any_holds(opened->warnings, named));
        ProbeOptions options = options_of(5);
        options.words.ids = {9};
        QCOMPARE(refusal(probed(*opened, options), ErrorCode::not_found, named), QString());
    }

    void a_buffer_of_position_ids_is_ignored_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("buffer");
        QTest::addColumn<int>("first");
        for (const auto& [family, buffer, first] : {std::tuple{"bert", "bert.embeddings.position_ids", 0},
                                                    {"longformer", "longformer.embeddings.position_ids", 2},
                                                    {"roberta", "roberta.embeddings.position_ids", 2}})
            QTest::newRow(family) << family << buffer << first;
    }
    void a_buffer_of_position_ids_is_ignored() // transformers 25330; longformer 95
    {
        QFETCH(const QString, family);
        QFETCH(const QString, buffer);
        QFETCH(const int, first);
        constexpr std::int64_t rows = 560; // longer than the buffer
        const auto with_buffer = [&](std::int64_t ids) {
            return OpenedCheckpoint(family.toStdString(), [&](CheckpointBuilder& builder) {
                builder.config["max_position_embeddings"] = rows;
                for (BuiltTensor& tensor : builder.tensors)
                    if (tensor.name.ends_with("position_embeddings.weight")) resize_rows(tensor, rows);
                if (ids == 0) return;
                BuiltTensor stored{buffer.toStdString(), {1, ids}, {}, DType::i64};
                for (std::int64_t n = 0; n < ids; ++n) stored.values.push_back(static_cast<float>(n));
                builder.tensors.insert(builder.tensors.begin(), stored);
            });
        };
        const OpenedCheckpoint without = with_buffer(0);
        QVERIFY2(without.model, failure(without.model).c_str());
        ProbeOptions options = options_of(rows - first);
        options.words.ids = {17};
        options.group_spread = false;
        const auto wanted = probed(*without, options);
        QVERIFY2(wanted, failure(wanted).c_str());
        for (const std::int64_t ids : {rows, std::int64_t{512}}) {
            const OpenedCheckpoint opened = with_buffer(ids);
            QVERIFY2(opened.model, failure(opened.model).c_str());
            QCOMPARE(opened.stack().length_limit, std::optional(rows - first));
            const auto found = probed(*opened, options);
            QVERIFY2(found, failure(found).c_str());
            const auto a = found->attention_logits.values(), b = wanted->attention_logits.values();
            QVERIFY(std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
                return x == y || (std::isnan(x) && std::isnan(y)); // outside Longformer's window
            }));
        }
    }

    void masks_of_gpt2_are_no_bias() // transformers 29725; minGPT PR 122
    {
        const OpenedCheckpoint plain("gpt2", as_it_is);
        QVERIFY2(plain.model, failure(plain.model).c_str());
        const std::vector<float> wanted = maps(*plain, options_of(17));
        QVERIFY(!wanted.empty());
        for (const char* prefix : {"", "transformer."}) {
            const OpenedCheckpoint masked("gpt2", [&](CheckpointBuilder& builder) {
                for (int layer = 0; layer < 2; ++layer) {
                    BuiltTensor mask{"h." + std::to_string(layer) + ".attn.bias", {1, 1, 64, 64}, {}};
                    for (int n = 0; n < 64 * 64; ++n) mask.values.push_back(n % 64 <= n / 64 ? 1.0f : 0.0f);
                    mask.dtype = DType::boolean;
                    builder.tensors.push_back(mask);
                    builder.tensors.push_back(
                        {"h." + std::to_string(layer) + ".attn.masked_bias", {}, {-10000.0f}});
                }
                builder.add_prefix(prefix);
            });
            QVERIFY2(masked.model, failure(masked.model).c_str());
            QCOMPARE(maps(*masked, options_of(17)), wanted);
            QCOMPARE(masked->unmatched_tensors.size(), plain->unmatched_tensors.size() + 4);
            QCOMPARE(refusal(read_relative_bias(*masked, masked.stack(), 0, 17, {}),
                             ErrorCode::unsupported_model, {"no relative scheme", "learned absolute"}),
                     QString());
        }
    }

    void packed_queries_keys_and_values_are_split_in_order() // transformers 29725; minGPT PR 122
    {
        // Columns of the matrix [in, out], which is stored transposed, and entries of its bias.
        const auto with_parts = [](const std::vector<int>& order) {
            return OpenedCheckpoint("gpt2", [&](CheckpointBuilder& builder) {
                for (const char* name : {"h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias"}) {
                    BuiltTensor& packed = builder.tensor(name);
                    const std::vector<float> before = packed.values;
                    constexpr std::size_t third = 32;
                    for (std::size_t n = 0; n < before.size(); ++n) {
                        const int from = order[n % (3 * third) / third];
                        packed.values[n] = from < 0
                                               ? 0.0f
                                               : before[n / (3 * third) * 3 * third +
                                                        static_cast<std::size_t>(from) * third + n % third];
                    }
                }
            });
        };
        const auto logits = [](const OpenedCheckpoint& opened) {
            const auto probe = probed(*opened, options_of(9));
            return probe ? probe->attention_logits : HostTensor{};
        };
        const HostTensor wanted = logits(with_parts({0, 1, 2}));
        QVERIFY(!wanted.empty());
        // Values play no part in the first layer's map.
        const HostTensor no_values = logits(with_parts({0, 1, -1}));
        QVERIFY(std::equal(wanted.values().begin(), wanted.values().end(), no_values.values().begin(),
                           no_values.values().end()));
        // With queries and keys exchanged the map is transposed.
        const HostTensor exchanged = logits(with_parts({1, 0, 2}));
        for (std::size_t n = 0; n < wanted.size(); ++n) {
            const std::size_t h = n / 81, i = n / 9 % 9, j = n % 9;
            QVERIFY(std::abs(wanted.values()[n] - exchanged.values()[h * 81 + j * 9 + i]) < 1e-5f);
        }
        // Without keys, or queries, it is zero.
        for (const std::vector<int>& order : {std::vector{-1, 1, 2}, std::vector{0, -1, 2}}) {
            const HostTensor zero = logits(with_parts(order));
            QVERIFY(!zero.empty());
            for (const float value : zero.values()) QCOMPARE(value, 0.0f);
        }
    }

    void rows_of_roberta_begin_behind_the_padding_token_data()
    {
        QTest::addColumn<int>("pad");
        QTest::newRow("pad 1") << 1;
        QTest::newRow("pad 0") << 0;
    }
    void rows_of_roberta_begin_behind_the_padding_token() // fairseq 1187; transformers 5285, 34528
    {
        QFETCH(const int, pad);
        constexpr std::int64_t rows = 10;
        const std::int64_t usable = rows - pad - 1;
        const OpenedCheckpoint opened("roberta", [&](CheckpointBuilder& builder) {
            builder.config["pad_token_id"] = pad;
            builder.config["max_position_embeddings"] = rows;
            BuiltTensor& table = builder.tensor("roberta.embeddings.position_embeddings.weight");
            resize_rows(table, rows);
            // The padding token's row is zero, as trained, and one that a position uses too.
            for (const int row : {pad, 5})
                std::fill_n(table.values.begin() + row * table.shape[1], table.shape[1], 0.0f);
        });
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QCOMPARE(opened.stack().first_position_row, std::int64_t{pad} + 1);
        QCOMPARE(opened.stack().length_limit, std::optional(usable));
        const std::vector<float> longest = maps(*opened, options_of(usable));
        QVERIFY(!longest.empty() && all_finite(longest));
        QCOMPARE(refusal(probed(*opened, options_of(usable + 1)), ErrorCode::invalid_argument,
                         {std::to_string(usable + 1), "rows for " + std::to_string(usable) + " positions"}),
                 QString());

        const auto vectors = read_position_vectors(*opened, opened.stack(), 0, {});
        QVERIFY2(vectors, failure(vectors).c_str());
        QCOMPARE(vectors->count(), std::size_t{rows}); // the others stay visible
        QCOMPARE(vectors->used_positions().size(), static_cast<std::size_t>(usable));
        QCOMPARE(vectors->used_positions().front(), std::int64_t{0});
        for (int row = 0; row <= pad; ++row)
            QCOMPARE(vectors->roles[static_cast<std::size_t>(row)], RowRole::unused);
        const HostTensor used = vectors->used_vectors();
        for (const SimilarityKind kind : {SimilarityKind::cosine, SimilarityKind::dot}) {
            SimilarityOptions options;
            options.kind = kind;
            const auto similarity = position_similarity(used.matrix(), options, {});
            QVERIFY2(similarity, failure(similarity).c_str());
            for (const double value : similarity->map.values) QVERIFY(std::isfinite(value));
        }
        const auto map = tsne(vectors->vectors.matrix(), {}, {});
        QVERIFY2(map, failure(map).c_str());
        for (std::size_t row = 0; row < map->points.size(); ++row)
            QVERIFY(std::isfinite(map->points.x[row]) && std::isfinite(map->points.y[row]));
    }

    void the_padding_token_is_refused_as_the_word() // transformers 1761
    {
        const OpenedCheckpoint roberta("roberta", as_it_is);
        ProbeOptions options = options_of(9);
        options.words.ids = {1};
        QCOMPARE(refusal(probed(*roberta, options), ErrorCode::invalid_argument, {"padding token"}),
                 QString());
        options.words.ids = {17, 1};
        QCOMPARE(refusal(probed(*roberta, options), ErrorCode::invalid_argument, {"padding token"}),
                 QString());
        const OpenedCheckpoint bert{CheckpointBuilder()};
        options.words.ids.clear();
        options.words.words = {"[PAD]"};
        QCOMPARE(refusal(probed(*bert, options), ErrorCode::invalid_argument, {"'[PAD]'", "padding token"}),
                 QString());
        // Nor is it ever drawn.
        for (const OpenedCheckpoint* opened : {&roberta, &bert}) {
            ProbeOptions all = options_of(3);
            all.words.kind = WordSelection::Kind::all;
            const auto probe = probed(**opened, all);
            QVERIFY2(probe, failure(probe).c_str());
            const auto pad = *(*opened)->architecture.pad_token_id;
            QVERIFY(std::find(probe->word_ids.begin(), probe->word_ids.end(), pad) == probe->word_ids.end());
        }
    }

    void tables_with_rows_before_the_first_position_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("offset");
        QTest::newRow("BART") << "bart" << 2;
        QTest::newRow("OPT") << "opt" << 2;
        QTest::newRow("Blenderbot-small") << "blenderbot-small" << 0;
    }
    void tables_with_rows_before_the_first_position() // transformers 19240, 20761
    {
        QFETCH(const QString, family);
        QFETCH(const int, offset);
        const auto is_table = [](const BuiltTensor& tensor) {
            return tensor.name.ends_with("embed_positions.weight");
        };
        const OpenedCheckpoint opened(family.toStdString(), as_it_is);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        for (const Stack& stack : opened->architecture.stacks) {
            QCOMPARE(stack.first_position_row, std::int64_t{offset});
            QCOMPARE(stack.length_limit, std::optional<std::int64_t>(64));
            const ProbeOptions options = options_of(9, stack.id);
            const std::vector<float> wanted = maps(*opened, options);
            QVERIFY(!wanted.empty());
            // The map depends on the rows from the offset on, and on none before.
            for (int row = 0; row < offset + 2; ++row) {
                const OpenedCheckpoint changed(family.toStdString(), [&](CheckpointBuilder& builder) {
                    for (BuiltTensor& tensor : builder.tensors)
                        if (is_table(tensor))
                            tensor.values[static_cast<std::size_t>(row * tensor.shape[1])] += 1.0f;
                });
                QCOMPARE(maps(*changed, options) == wanted, row < offset);
            }
        }
        // The config is held against it: it counts positions, not rows.
        const auto with_rows = [&](std::int64_t rows) {
            return OpenedCheckpoint(family.toStdString(), [&](CheckpointBuilder& builder) {
                for (BuiltTensor& tensor : builder.tensors)
                    if (is_table(tensor)) resize_rows(tensor, rows);
            });
        };
        std::vector<std::string> named{"'max_position_embeddings' is 64",
                                       std::to_string(62 + offset) + " rows"};
        if (offset > 0) named.push_back(std::to_string(64 + offset));
        QCOMPARE(refusal(with_rows(62 + offset).model, ErrorCode::shape_mismatch, named), QString());
        const OpenedCheckpoint longer = with_rows(66 + offset);
        QVERIFY2(longer.model, failure(longer.model).c_str());
        QVERIFY(any_holds(longer->warnings, {std::to_string(66 + offset) + " rows", "the table decides"}));
        QCOMPARE(longer.stack().length_limit, std::optional<std::int64_t>(66));
    }

    void a_converted_roberta_is_not_shifted_twice() // llama.cpp PR 8658
    {
        const CheckpointBuilder roberta = fixture_checkpoint("roberta");
        tests::GgufFile file = tests::converted_bert(roberta, "roberta.", 2);
        // Its tokens are GPT-2's, though the architecture is "bert".
        std::vector<std::string> tokens{"<s>", "<pad>", "</s>", "<unk>", "\u0120the", "ing"};
        std::vector<int> types{3, 3, 3, 2, 1, 1};
        for (int id = 6; id < 200; ++id) {
            tokens.push_back((id % 2 == 0 ? "\u0120w" : "x") + std::to_string(id));
            types.push_back(1);
        }
        file.text("tokenizer.ggml.model", "gpt2");
        file.texts("tokenizer.ggml.tokens", tokens);
        file.numbers("tokenizer.ggml.token_type", types);
        file.number("tokenizer.ggml.padding_token_id", 1);
        const TemporaryFolder folder;
        const auto converted = open_model(folder.write("roberta.gguf", file.bytes()), {});
        QVERIFY2(converted, failure(converted).c_str());
        const OpenedCheckpoint original(roberta);
        QVERIFY2(original.model, failure(original.model).c_str());
        const Stack& stack = (*converted)->architecture.stacks.front();
        QCOMPARE(stack.first_position_row, std::int64_t{0});
        QCOMPARE(stack.length_limit, original.stack().length_limit);
        for (const InputVariant variant : {InputVariant::plain, InputVariant::special})
            for (const std::int64_t length : {std::int64_t{17}, *stack.length_limit}) {
                ProbeOptions options = options_of(length);
                options.variant = variant;
                const auto probe = probed(**converted, options);
                QVERIFY2(probe, failure(probe).c_str());
                QVERIFY(largest_difference(maps(**converted, options), maps(*original, options)) < 1e-5f);
            }
        // Words by their names: no "##" is invented where GPT-2's mark stands.
        QCOMPARE((*converted)->vocabulary.find_word("the")->id, std::int64_t{4});
        QVERIFY(!(*converted)->vocabulary.find_id(5)->drawable);
        ProbeOptions padding = options_of(9);
        padding.words.ids = {1};
        QCOMPARE(refusal(probed(**converted, padding), ErrorCode::invalid_argument, {"padding token"}),
                 QString());
    }

    void a_converted_t5_has_the_maps_of_the_original_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("t5") << "t5";
        QTest::newRow("gated") << "t5-v1_1";
    }
    void a_converted_t5_has_the_maps_of_the_original()
    {
        QFETCH(QString, family);
        const CheckpointBuilder t5 = fixture_checkpoint(family.toStdString());
        const bool gated = t5.config.at("is_gated_act").get<bool>();
        // As llama.cpp's conversion names them.
        const std::vector<std::pair<std::string, std::string>> parts{
            {"layer.0.SelfAttention.relative_attention_bias", "attn_rel_b"},
            {"layer.0.SelfAttention.", "attn_"},
            {"layer.0.layer_norm", "attn_norm"},
            {"layer.1.EncDecAttention.", "cross_attn_"},
            {"DenseReluDense.wi_0", "ffn_gate"},
            {"DenseReluDense.wi_1", "ffn_up"},
            {"DenseReluDense.wi", "ffn_up"},
            {"DenseReluDense.wo", "ffn_down"}};
        tests::GgufFile file;
        file.text("general.architecture", "t5");
        const auto number = [&](const char* key, const char* config) {
            file.number(key, t5.config.at(config).get<std::uint64_t>());
        };
        number("t5.block_count", "num_layers");
        number("t5.decoder_block_count", "num_decoder_layers");
        number("t5.embedding_length", "d_model");
        number("t5.feed_forward_length", "d_ff");
        number("t5.attention.head_count", "num_heads");
        number("t5.attention.key_length", "d_kv");
        number("t5.attention.relative_buckets_count", "relative_attention_num_buckets");
        file.real("t5.attention.layer_norm_rms_epsilon", t5.config.at("layer_norm_epsilon").get<float>());
        for (BuiltTensor tensor : t5.tensors) {
            const bool decoder = tensor.name.starts_with("decoder.");
            const std::string stack = decoder ? "dec." : "enc.";
            std::string& name = tensor.name;
            if (name == "shared.weight") name = "token_embd.weight";
            if (name.ends_with("final_layer_norm.weight")) name = stack + "output_norm.weight";
            if (const std::size_t at = name.find(".block."); at != std::string::npos) {
                const std::size_t dot = name.find('.', at + 7);
                std::string rest = name.substr(dot + 1);
                for (const auto& [from, to] : parts)
                    if (const std::size_t found = rest.find(from); found != std::string::npos) {
                        rest = to + rest.substr(found + from.size());
                        break;
                    }
                if (rest == "layer.1.layer_norm.weight")
                    rest = decoder ? "cross_attn_norm.weight" : "ffn_norm.weight";
                if (rest == "layer.2.layer_norm.weight") rest = "ffn_norm.weight";
                name = stack + "blk." + name.substr(at + 7, dot - at - 7) + "." + rest;
            }
            file.tensors.push_back(std::move(tensor));
        }
        const TemporaryFolder folder;
        const auto converted = open_model(folder.write("t5.gguf", file.bytes()), {});
        QVERIFY2(converted, failure(converted).c_str());
        const OpenedCheckpoint original(t5);
        QCOMPARE((*converted)->architecture.stacks.size(), std::size_t{2});
        for (const char* stack : {"encoder", "decoder"})
            for (const int layer : {0, 1}) {
                ProbeOptions options = options_of(17);
                options.stack = stack;
                options.layer = layer;
                const auto probe = probed(**converted, options);
                QVERIFY2(probe, failure(probe).c_str());
                QVERIFY(largest_difference(maps(**converted, options), maps(*original, options)) < 1e-5f);
            }
        QCOMPARE((*converted)->architecture.stacks.front().layer_names.front().feed_forward_gate.empty(),
                 !gated);
    }

    void a_longer_table_than_the_config_says_wins() // transformers 11301
    {
        CheckpointBuilder builder;
        builder.config["max_position_embeddings"] = 8;
        BuiltTensor& table = builder.tensor(tests::position_table_name);
        table.shape = {16, 16};
        table.values.resize(256);
        const OpenedCheckpoint opened(builder);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QVERIFY(
            any_holds(opened->warnings, {"'max_position_embeddings' is 8", "16 rows", "the table decides"}));
        ProbeOptions options = options_of(16);
        options.words.ids = {9};
        QVERIFY(!maps(*opened, options).empty());
        options.length = 17;
        QCOMPARE(refusal(probed(*opened, options), ErrorCode::invalid_argument, {"17", "16 positions"}),
                 QString());
    }

    void a_config_without_model_type_is_known_by_its_tensors_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("id");
        for (const auto& [family, id] : {std::pair{"bert", "bert"},
                                         {"roberta", "roberta"},
                                         {"albert", "albert"},
                                         {"distilbert", "distilbert"},
                                         {"mpnet", "mpnet"},
                                         {"gpt2", "gpt2"},
                                         {"openai-gpt", "openai_gpt"},
                                         {"gpt_neox", "gpt_neox"},
                                         {"bloom", "bloom"},
                                         {"t5", "t5"},
                                         {"t5-v1_1", "t5"},
                                         {"xlnet", "xlnet"},
                                         {"transfo-xl", "transfo-xl"}})
            QTest::newRow(family) << family << id;
    }
    void a_config_without_model_type_is_known_by_its_tensors() // transformers 11301
    {
        QFETCH(const QString, family);
        QFETCH(const QString, id);
        const OpenedCheckpoint known(family.toStdString(), as_it_is);
        const OpenedCheckpoint opened(family.toStdString(),
                                      [](CheckpointBuilder& builder) { builder.config.erase("model_type"); });
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QCOMPARE(opened->architecture.family_id, id.toStdString());
        QVERIFY(any_holds(opened->warnings, {"config.json", "no 'model_type'", "tensor names"}));
        QVERIFY(!maps(*opened, options_of(9)).empty());
        QCOMPARE(maps(*opened, options_of(9)), maps(*known, options_of(9)));
    }

    void names_that_bart_and_fairseq_share_are_not_guessed() // transformers 11301
    {
        // The words' factor and the norms differ, so a guess would be wrong without a sign of it.
        const OpenedCheckpoint opened("bart", [](CheckpointBuilder& builder) {
            builder.config.erase("model_type");
            for (BuiltTensor& tensor : builder.tensors)
                if (tensor.name == "model.shared.weight") {
                    const BuiltTensor shared = tensor;
                    for (const char* stack : {"encoder", "decoder"}) {
                        builder.tensors.push_back(shared);
                        builder.tensors.back().name = std::string("model.") + stack + ".embed_tokens.weight";
                    }
                    break;
                }
        });
        QCOMPARE(refusal(opened.model, ErrorCode::unsupported_model, {"config.json", "'model_type'", "BART"}),
                 QString());
    }

    void albert_maps_its_rows_before_the_attention() // albert_zh 86, 17
    {
        constexpr std::int64_t embedding = 4, hidden = 8, rows = 12;
        constexpr const char* map_weight = "albert.encoder.embedding_hidden_mapping_in.weight";
        constexpr const char* map_bias = "albert.encoder.embedding_hidden_mapping_in.bias";
        CheckpointBuilder builder = fixture_checkpoint("albert");
        builder.config["embedding_size"] = embedding;
        builder.config["hidden_size"] = hidden;
        builder.config["num_attention_heads"] = 2;
        builder.config["intermediate_size"] = hidden;
        builder.config["max_position_embeddings"] = rows;
        builder.config["vocab_size"] = 200;
        Random random(3);
        for (BuiltTensor& tensor : builder.tensors) {
            // 16 columns become 4, 32 become 8, and the inner 64 become 8.
            const bool is_position = tensor.name.ends_with("position_embeddings.weight");
            for (std::int64_t& size : tensor.shape)
                size = size == 16 ? embedding : size == 32 || size == 64 ? hidden : size;
            if (is_position) tensor.shape = {rows, embedding};
            tensor.values.resize(static_cast<std::size_t>(*element_count(tensor.shape)));
            for (float& value : tensor.values) value = static_cast<float>(0.5 * random.normal());
        }
        const OpenedCheckpoint opened(builder);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QCOMPARE(opened.stack().hidden_size, hidden);
        QCOMPARE(opened.stack().embedding_size, embedding);

        // The definition, in double: norm over 4 features, map to 8, queries and keys.
        const auto of = [&](const std::string& name) -> const std::vector<float>& {
            return builder.tensor("albert." + name).values;
        };
        const auto mapped = [](const std::vector<float>& weight, const std::vector<float>& bias,
                               const std::vector<double>& row) {
            std::vector<double> out;
            for (std::size_t r = 0; r < bias.size(); ++r) {
                double sum = static_cast<double>(bias[r]);
                for (std::size_t f = 0; f < row.size(); ++f)
                    sum += static_cast<double>(weight[r * row.size() + f]) * row[f];
                out.push_back(sum);
            }
            return out;
        };
        constexpr std::size_t length = 3, word = 17;
        std::vector<std::vector<double>> queries, keys;
        for (std::size_t position = 0; position < length; ++position) {
            std::vector<double> row;
            for (std::size_t f = 0; f < embedding; ++f)
                row.push_back(
                    static_cast<double>(of("embeddings.word_embeddings.weight")[word * embedding + f]) +
                    static_cast<double>(
                        of("embeddings.position_embeddings.weight")[position * embedding + f]) +
                    static_cast<double>(of("embeddings.token_type_embeddings.weight")[f]));
            double mean = 0.0, variance = 0.0;
            for (const double value : row) mean += value / static_cast<double>(embedding);
            for (const double value : row)
                variance += (value - mean) * (value - mean) / static_cast<double>(embedding);
            for (std::size_t f = 0; f < embedding; ++f)
                row[f] = (row[f] - mean) / std::sqrt(variance + 1e-12) *
                             static_cast<double>(of("embeddings.LayerNorm.weight")[f]) +
                         static_cast<double>(of("embeddings.LayerNorm.bias")[f]);
            row = mapped(builder.tensor(map_weight).values, builder.tensor(map_bias).values, row);
            const std::string attention = "encoder.albert_layer_groups.0.albert_layers.0.attention.";
            queries.push_back(mapped(of(attention + "query.weight"), of(attention + "query.bias"), row));
            keys.push_back(mapped(of(attention + "key.weight"), of(attention + "key.bias"), row));
        }
        ProbeOptions options = options_of(length);
        options.words.ids = {word};
        const auto probe = probed(*opened, options);
        QVERIFY2(probe, failure(probe).c_str());
        for (std::size_t n = 0; n < probe->attention_logits.size(); ++n) {
            const std::size_t h = n / (length * length), i = n / length % length, j = n % length;
            double wanted = 0.0;
            for (std::size_t f = 4 * h; f < 4 * h + 4; ++f) wanted += queries[i][f] * keys[j][f] / 2.0;
            QVERIFY(std::abs(static_cast<double>(probe->attention_logits.values()[n]) - wanted) < 1e-5);
        }

        CheckpointBuilder without = builder;
        without.remove(map_weight);
        QCOMPARE(refusal(OpenedCheckpoint(without).model, ErrorCode::not_found,
                         {"'encoder.embedding_hidden_mapping_in.weight'", "model.safetensors"}),
                 QString());
    }

    void relative_keys_end_at_their_table_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("keys") << "bert-relative_key";
        QTest::newRow("keys and queries") << "bert-relative_key_query";
    }
    void relative_keys_end_at_their_table() // transformers 17026
    {
        QFETCH(const QString, family);
        constexpr std::int64_t most = 64; // tables of 127 rows
        const OpenedCheckpoint opened(family.toStdString(), as_it_is);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        const std::vector<float> longest = maps(*opened, options_of(most));
        QVERIFY(!longest.empty() && all_finite(longest));
        QCOMPARE(refusal(probed(*opened, options_of(most + 1)), ErrorCode::invalid_argument, {"65", "64"}),
                 QString());
        const OpenedCheckpoint short_table(family.toStdString(), [](CheckpointBuilder& builder) {
            for (BuiltTensor& tensor : builder.tensors)
                if (tensor.name.ends_with("layer.0.attention.self.distance_embedding.weight"))
                    resize_rows(tensor, 126);
        });
        QCOMPARE(refusal(short_table.model, ErrorCode::shape_mismatch, {"distance_embedding", "126", "127"}),
                 QString());
    }

    void xlnet_attends_as_its_config_says() // transformers 21626
    {
        const auto with_type = [](const nlohmann::json& type) {
            return OpenedCheckpoint("xlnet", [&](CheckpointBuilder& builder) {
                builder.config.erase("attn_type");
                if (!type.is_null()) builder.config["attn_type"] = type;
            });
        };
        const OpenedCheckpoint both = with_type("bi"), missing = with_type(nullptr), one = with_type("uni");
        for (const OpenedCheckpoint* opened : {&both, &missing, &one})
            QVERIFY2(opened->model, failure(opened->model).c_str());
        QVERIFY(!both.stack().causal && !missing.stack().causal && one.stack().causal);
        const std::vector<float> wanted = maps(*both, options_of(17));
        QVERIFY(!wanted.empty());
        QCOMPARE(maps(*missing, options_of(17)), wanted);
        QVERIFY(any_holds(missing->warnings, {"config.json", "'attn_type'", "'bi'"}));
        QVERIFY(!any_holds(both->warnings, {"'attn_type'"}));
        const auto probe = probed(*one, options_of(17));
        QVERIFY2(probe, failure(probe).c_str());
        QVERIFY(probe->causal);
        for (std::size_t n = 0; n < probe->attention_probabilities.size(); ++n)
            if (n % 17 > n / 17 % 17) QCOMPARE(probe->attention_probabilities.values()[n], 0.0f);
        // What both see of the past is the same.
        for (std::size_t n = 0; n < probe->attention_logits.size(); ++n)
            if (n % 17 <= n / 17 % 17) QCOMPARE(probe->attention_logits.values()[n], wanted[n]);
        QCOMPARE(refusal(with_type("sideways").model, ErrorCode::corrupt_file,
                         {"config.json", "'attn_type'", "'sideways'", "'bi' or 'uni'"}),
                 QString());
    }

    void sinusoids_that_no_file_holds_are_computed_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("interleaved");
        QTest::addColumn<int>("first");
        QTest::addColumn<bool>("one_less");
        QTest::newRow("Marian: halves") << "marian" << false << 0 << false;
        QTest::newRow("fairseq: halves, from row 2") << "fairseq-transformer" << false << 2 << true;
        QTest::newRow("OpenNMT: halves, from row 1") << "opennmt-transformer" << false << 1 << true;
        QTest::newRow("the original: interleaved") << "torch-nn-transformer" << true << 0 << false;
    }
    void sinusoids_that_no_file_holds_are_computed() // transformer-xl 119; fairseq 4648
    {
        QFETCH(const QString, family);
        QFETCH(const bool, interleaved);
        QFETCH(const int, first);
        QFETCH(const bool, one_less);
        const OpenedCheckpoint opened(family.toStdString(), [](CheckpointBuilder& builder) {
            std::erase_if(builder.tensors, [](const BuiltTensor& tensor) {
                return tensor.name.find("pos_encoding") != std::string::npos;
            });
        });
        QVERIFY2(opened.model, failure(opened.model).c_str());
        for (const Stack& stack : opened->architecture.stacks) {
            QVERIFY(stack.position_table.empty());
            QVERIFY(stack.scheme_label.find("computed") != std::string::npos);
            const auto vectors = read_position_vectors(*opened, stack, 40, {});
            QVERIFY2(vectors, failure(vectors).c_str());
            QCOMPARE(vectors->kind, PositionVectorKind::sinusoids);
            QVERIFY(vectors->source.find("computed") != std::string::npos);
            const std::int64_t d = vectors->vectors.dim(1), half = d / 2;
            for (std::int64_t p = 0; p < 40; ++p)
                for (std::int64_t k = 0; k < half; ++k) {
                    const double angle =
                        static_cast<double>(p + first) *
                        std::pow(10000.0,
                                 -static_cast<double>(k) / static_cast<double>(one_less ? half - 1 : half));
                    const float* row = vectors->vectors.data() + p * d;
                    const std::int64_t sine = interleaved ? 2 * k : k,
                                       cosine = interleaved ? 2 * k + 1 : half + k;
                    QVERIFY(std::abs(static_cast<double>(row[sine]) - std::sin(angle)) < 1e-6);
                    QVERIFY(std::abs(static_cast<double>(row[cosine]) - std::cos(angle)) < 1e-6);
                }
            QVERIFY(!maps(*opened, options_of(100, stack.id)).empty()); // nothing limits the length
        }
        if (!interleaved) return;
        // Where the file does hold the table, it is the same.
        const OpenedCheckpoint stored(family.toStdString(), as_it_is);
        QVERIFY(stored.stack().scheme_label.find("stored") != std::string::npos);
        QVERIFY(largest_difference(maps(*opened, options_of(17)), maps(*stored, options_of(17))) < 1e-5f);
    }

    void dropout_is_off_data()
    {
        QTest::addColumn<QString>("family");
        for (const auto& folder :
             std::filesystem::directory_iterator(std::filesystem::path(POSISCOPE_TEST_DATA) / "families"))
            QTest::newRow(folder.path().filename().string().c_str())
                << QString::fromStdString(folder.path().string());
    }
    void dropout_is_off() // transformers 1146; the layers behind the first: tst_families
    {
        QFETCH(const QString, family);
        const auto model = open_model(family.toStdString(), {});
        QVERIFY2(model, failure(model).c_str());
        for (const Stack& stack : (*model)->architecture.stacks) {
            if (stack.layers_present == 0) continue;
            for (const InputVariant variant : {InputVariant::plain, InputVariant::special}) {
                if (variant == InputVariant::plain ? !stack.has_plain_input() : !stack.has_special_input())
                    continue;
                ProbeOptions options;
                options.stack = stack.id;
                options.variant = variant;
                options.words.count = 3;
                options.length = default_length(stack, variant, 15);
                const auto probe = probed(**model, options);
                if (!probe && !load_engine()) QSKIP("the engine is not built");
                QVERIFY2(probe, failure(probe).c_str());
                const auto L = static_cast<std::size_t>(probe->length);
                const auto values = std::as_const(probe->attention_probabilities).values();
                QVERIFY(!values.empty());
                for (std::size_t row = 0; row < values.size(); row += L) {
                    double sum = 0.0;
                    for (std::size_t j = 0; j < L; ++j) sum += static_cast<double>(values[row + j]);
                    QVERIFY(std::abs(sum - 1.0) < 1e-5);
                }
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------ T5

    void buckets_that_the_config_does_not_tell_are_32_up_to_128() // transformers PR 16155, 16170
    {
        const std::string buckets = "relative_attention_num_buckets",
                          distance = "relative_attention_max_distance";
        for (const auto& missing :
             {std::vector{distance}, std::vector{buckets}, std::vector{buckets, distance}}) {
            const OpenedCheckpoint opened("t5", [&](CheckpointBuilder& builder) {
                builder.config[buckets] = 32;
                builder.config[distance] = 100;
                for (const char* table : {t5_table, t5_decoder_table}) number_rows(builder.tensor(table), 32);
                for (const std::string& key : missing) builder.config.erase(key);
            });
            QVERIFY2(opened.model, failure(opened.model).c_str());
            const auto lacks = [&](const std::string& key) {
                return std::find(missing.begin(), missing.end(), key) != missing.end();
            };
            for (const Stack& stack : opened->architecture.stacks) {
                QCOMPARE(stack.bucketed_bias->buckets, std::int64_t{32});
                QCOMPARE(stack.bucketed_bias->max_distance, std::int64_t{lacks(distance) ? 128 : 100});
                const auto bias = read_relative_bias(*opened, stack, 0, 20, {});
                QVERIFY2(bias, failure(bias).c_str());
                // Said in the warnings, and with the curve.
                for (const auto* sentences : {&opened->warnings, &bias->notes}) {
                    QCOMPARE(any_holds(*sentences, {"config.json", buckets, "32 is taken"}), lacks(buckets));
                    QCOMPARE(any_holds(*sentences, {"config.json", distance, "128 is taken"}),
                             lacks(distance));
                }
            }
        }
    }

    void buckets_of_t5_begin_where_they_should() // x-transformers PR 10; candle PR 1312
    {
        const OpenedCheckpoint opened("t5", [](CheckpointBuilder& builder) {
            builder.config.erase("relative_attention_num_buckets");
            builder.config.erase("relative_attention_max_distance");
            for (const char* table : {t5_table, t5_decoder_table}) number_rows(builder.tensor(table), 32);
        });
        QVERIFY2(opened.model, failure(opened.model).c_str());
        const std::vector<std::int64_t> both{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
        const std::vector<std::int64_t> back{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                             16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
        const auto bucket_of = [](const std::vector<std::int64_t>& begins, std::int64_t distance) {
            return static_cast<double>(std::upper_bound(begins.begin(), begins.end(), distance) -
                                       begins.begin() - 1);
        };
        constexpr std::int64_t length = 300;
        const auto encoder = read_relative_bias(*opened, opened.stack(0), 0, length, {});
        const auto decoder = read_relative_bias(*opened, opened.stack(1), 0, length, {});
        QVERIFY2(encoder && decoder, (failure(encoder) + failure(decoder)).c_str());
        for (const OffsetProfile* profile : {&encoder->profile, &encoder->head_profiles.back()})
            for (std::size_t n = 0; n < profile->offsets.size(); ++n) {
                const std::int64_t offset = profile->offsets[n];
                const double wanted = bucket_of(both, std::abs(offset)) + (offset > 0 ? 16.0 : 0.0);
                QCOMPARE(profile->mean[n], wanted);
            }
        for (std::size_t n = 0; n < decoder->profile.offsets.size(); ++n) {
            const std::int64_t offset = decoder->profile.offsets[n];
            if (offset > 0)
                QVERIFY(std::isnan(decoder->profile.mean[n])); // the future does not exist
            else
                QCOMPARE(decoder->profile.mean[n], bucket_of(back, -offset));
        }
        // Those that lie exactly on an edge, by name.
        const auto at = [](const RelativeBias& bias, std::int64_t offset) {
            return bias.profile.mean[static_cast<std::size_t>(offset + length - 1)];
        };
        for (const auto& [offset, bucket] : {std::pair{-16, 10.0},
                                             {16, 26.0},
                                             {-32, 12.0},
                                             {32, 28.0},
                                             {-64, 14.0},
                                             {64, 30.0},
                                             {1, 17.0},
                                             {7, 23.0},
                                             {8, 24.0},
                                             {91, 31.0},
                                             {299, 31.0},
                                             {-299, 15.0}})
            QCOMPARE(at(*encoder, offset), bucket);
        for (const auto& [offset, bucket] : {std::pair{-15, 15.0},
                                             {-16, 16.0},
                                             {-18, 16.0},
                                             {-31, 21.0},
                                             {-32, 21.0},
                                             {-64, 26.0},
                                             {-113, 31.0},
                                             {-299, 31.0}})
            QCOMPARE(at(*decoder, offset), bucket);
    }

    void the_decoder_of_t5_looks_back_and_not_across() // transformers PR 8518, 7323
    {
        const OpenedCheckpoint opened("t5", as_it_is);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        QVERIFY(opened.stack(0).bucketed_bias->bidirectional);
        QVERIFY(!opened.stack(1).bucketed_bias->bidirectional);
        const std::vector<float> wanted = maps(*opened, options_of(17, "decoder", 1));
        QVERIFY(!wanted.empty());
        // The two tables are two: the encoder's changes the decoder's map only through what the encoder reads.
        const OpenedCheckpoint other("t5", [](CheckpointBuilder& builder) {
            for (float& value : builder.tensor(t5_table).values) value += 1.0f;
        });
        QCOMPARE(maps(*other, options_of(17, "decoder")), maps(*opened, options_of(17, "decoder")));
        // Old files carry a table in the cross-attention, which nothing reads.
        const OpenedCheckpoint across("t5", [](CheckpointBuilder& builder) {
            BuiltTensor table = builder.tensor(t5_decoder_table);
            table.name = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
            for (float& value : table.values) value = 50.0f;
            builder.tensors.push_back(table);
        });
        QVERIFY2(across.model, failure(across.model).c_str());
        for (const int layer : {0, 1}) {
            QCOMPARE(maps(*across, options_of(17, "decoder", layer)),
                     maps(*opened, options_of(17, "decoder", layer)));
        }
        QVERIFY(std::find(across->unmatched_tensors.begin(), across->unmatched_tensors.end(),
                          "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight") !=
                across->unmatched_tensors.end());
    }

    void the_table_of_block_0_serves_all_blocks() // mlx-examples PR 1013
    {
        const OpenedCheckpoint opened("t5", as_it_is);
        QVERIFY2(opened.model, failure(opened.model).c_str());
        const OpenedCheckpoint without("t5", [](CheckpointBuilder& builder) {
            for (const char* table : {t5_table, t5_decoder_table})
                for (float& value : builder.tensor(table).values) value = 0.0f;
        });
        for (const Stack& stack : opened->architecture.stacks) {
            QCOMPARE(stack.layers, std::int64_t{2});
            const auto first = read_relative_bias(*opened, stack, 0, 17, {});
            const auto second = read_relative_bias(*opened, stack, 1, 17, {});
            QVERIFY2(first && second, (failure(first) + failure(second)).c_str());
            for (std::size_t n = 0; n < first->profile.mean.size(); ++n)
                if (!std::isnan(first->profile.mean[n]))
                    QCOMPARE(second->profile.mean[n], first->profile.mean[n]);
            // What block 1's logits have by offset is that bias, and nothing else: with one row per word the rest is
            // constant.
            for (const int layer : {0, 1}) {
                const auto with = probed(*opened, options_of(17, stack.id, layer));
                const auto flat = probed(*without, options_of(17, stack.id, layer));
                QVERIFY2(with && flat, (failure(with) + failure(flat)).c_str());
                for (std::size_t n = 0; n < with->attention_logits.size(); ++n) {
                    const std::size_t h = n / (17 * 17), i = n / 17 % 17, j = n % 17;
                    const double bias = first->heads[h](i, j);
                    if (std::isnan(bias)) continue;
                    QVERIFY(std::abs(static_cast<double>(with->attention_logits.values()[n] -
                                                         flat->attention_logits.values()[n]) -
                                     bias) < 1e-5);
                }
            }
        }
    }

    void a_table_that_layers_share_is_in_memory_once()
    {
        const auto read = [](const OpenedCheckpoint& opened, ProbeOptions options,
                             const std::vector<int>& layers) {
            ProbeInput input;
            for (const std::int64_t id : fixture_words) input.words.push_back(opened->vocabulary.find_id(id));
            input.count = input.words.size();
            std::vector<std::int64_t> special;
            const Stack& stack = *opened->architecture.find_stack(options.stack);
            return read_network(*opened, stack, options, layers, input, special, {});
        };
        for (const char* family : {"t5", "llama", "bloom", "nezha", "mpnet", "tupe", "deberta-v2", "xlnet"}) {
            const OpenedCheckpoint opened(family, as_it_is);
            QVERIFY2(opened.model, failure(opened.model).c_str());
            ProbeOptions options = options_of(17);
            options.force_forward = true; // every layer uses its positions
            const auto network = read(opened, options, {1});
            QVERIFY2(network, failure(network).c_str());
            // XLNet's and DeBERTa's vectors pass a map of each layer.
            const bool own = std::string(family) == "xlnet" || std::string(family) == "deberta-v2";
            QCOMPARE(network->layers[0].positions == network->layers[1].positions, !own);
        }
        // With one row per word only the layers asked for have theirs.
        const OpenedCheckpoint opened("t5", as_it_is);
        const auto network = read(opened, options_of(17, "decoder", 1), {1});
        QVERIFY2(network, failure(network).c_str());
        QVERIFY(network->layers[0].positions->bias.empty());
        QVERIFY(!network->layers[1].positions->bias.empty());
        for (const NetworkLayer& layer : network->encoder->layers) QVERIFY(layer.positions->bias.empty());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestArchitectureCases)
#include "tst_architecture_cases.moc"
