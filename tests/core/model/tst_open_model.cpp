// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/model/family_table.h"
#include "core/model/open_model.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

Q_DECLARE_METATYPE(std::function<void(posiscope::tests::CheckpointBuilder&)>)

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::CheckpointBuilder;
using tests::refusal;
using tests::TemporaryFolder;

using Change = std::function<void(CheckpointBuilder&)>;

tests::TinyBert two_layers()
{
    tests::TinyBert sizes;
    sizes.layers = 2;
    return sizes;
}

Result<std::shared_ptr<const OpenModel>> opened(const CheckpointBuilder& builder)
{
    const TemporaryFolder folder;
    builder.write_to(folder);
    return open_model(folder.path(), {});
}

Result<std::shared_ptr<const OpenModel>> opened(const Change& change)
{
    CheckpointBuilder builder(two_layers());
    change(builder);
    return opened(builder);
}

const Stack& stack_of(const OpenModel& model)
{
    return model.architecture.stacks.front();
}

} // namespace

class TestOpenModel : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void families_are_listed_once()
    {
        std::vector<std::string_view> types;
        for (const ModelFamily& family : model_families()) {
            QVERIFY(!family.id.empty() && !family.label.empty());
            QVERIFY(!family.model_types.empty() || !family.signature.empty());
            QVERIFY(family.read_architecture != nullptr && family.apply_vocabulary != nullptr);
            types.insert(types.end(), family.model_types.begin(), family.model_types.end());
        }
        std::sort(types.begin(), types.end());
        QVERIFY(std::adjacent_find(types.begin(), types.end()) == types.end());
    }

    void a_bert_is_described()
    {
        const auto model = opened([](CheckpointBuilder&) {});
        QVERIFY2(model, tests::failure(model).c_str());
        QVERIFY((*model)->warnings.empty());
        const Architecture& architecture = (*model)->architecture;
        QCOMPARE(architecture.family_label, std::string("BERT"));
        QCOMPARE(architecture.stacks.size(), std::size_t{1});
        QCOMPARE(architecture.vocabulary_size, std::int64_t{40});
        QCOMPARE(architecture.pad_token_id, std::optional<std::int64_t>(0));
        QCOMPARE(architecture.find_stack(""), &architecture.stacks.front());
        QCOMPARE(architecture.find_stack("encoder"), &architecture.stacks.front());
        QVERIFY(architecture.find_stack("decoder") == nullptr);
        const Stack& stack = architecture.stacks.front();
        QCOMPARE(stack.id, std::string("encoder"));
        QCOMPARE(stack.scheme_id, std::string("absolute_learned"));
        QCOMPARE(stack.layers, std::int64_t{2});
        QCOMPARE(stack.layers_present, std::int64_t{2});
        QCOMPARE(stack.heads, std::int64_t{2});
        QCOMPARE(stack.head_dim, std::int64_t{8});
        QCOMPARE(stack.logit_scale, 1.0 / std::sqrt(8.0));
        QVERIFY(!stack.causal);
        QCOMPARE(stack.word_table, std::string(tests::word_table_name));
        QCOMPARE(stack.position_table, std::string(tests::position_table_name));
        QCOMPARE(stack.first_position_row, std::int64_t{0});
        QCOMPARE(stack.length_limit, std::optional<std::int64_t>(40));
        QCOMPARE(stack.token_type_table, std::string("embeddings.token_type_embeddings.weight"));
        QCOMPARE(stack.embedding_norm.gain, std::string("embeddings.LayerNorm.weight"));
        QCOMPARE(stack.embedding_norm.epsilon, 1e-12);
        QCOMPARE(stack.special_leading, std::vector<std::int64_t>{tests::built_cls_id});
        QCOMPARE(stack.special_trailing, std::vector<std::int64_t>{tests::built_sep_id});
        QCOMPARE(stack.layer_names.size(), std::size_t{2});
        QCOMPARE(stack.layer_names[1].key.bias, std::string("encoder.layer.1.attention.self.key.bias"));
        QCOMPARE(stack.layer_names[0].feed_forward_output_norm.gain,
                 std::string("encoder.layer.0.output.LayerNorm.weight"));
    }

    void no_weight_is_read()
    {
        const auto model = opened([](CheckpointBuilder&) {});
        QVERIFY(model);
        QVERIFY((*model)->checkpoint->bytes_read() < 8000);
    }

    void names_with_prefixes_are_those_of_the_file()
    {
        for (const char* prefix : {"bert.", "module.", "_orig_mod.module.", "model.bert."}) {
            const auto model = opened([prefix](CheckpointBuilder& builder) { builder.add_prefix(prefix); });
            QVERIFY2(model, tests::failure(model).c_str());
            QCOMPARE(stack_of(**model).word_table, prefix + std::string(tests::word_table_name));
            QCOMPARE(stack_of(**model).layers_present, std::int64_t{2});
        }
    }

    void old_names_of_norms_are_read()
    {
        const auto model = opened([](CheckpointBuilder& builder) {
            for (tests::BuiltTensor& tensor : builder.tensors) {
                const std::size_t at = tensor.name.find("LayerNorm.");
                if (at == std::string::npos) continue;
                tensor.name.replace(at + 10, std::string::npos,
                                    tensor.name.ends_with("weight") ? "gamma" : "beta");
            }
        });
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE(stack_of(**model).embedding_norm.gain, std::string("embeddings.LayerNorm.gamma"));
        QCOMPARE(stack_of(**model).layer_names[1].attention_output_norm.bias,
                 std::string("encoder.layer.1.attention.output.LayerNorm.beta"));
    }

    void a_position_ids_buffer_is_ignored()
    {
        const auto model = opened([](CheckpointBuilder& builder) {
            builder.tensors.insert(
                builder.tensors.begin(),
                {"embeddings.position_ids", {1, 512}, std::vector<float>(512, 3.0f), DType::i64});
        });
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE(stack_of(**model).length_limit, std::optional<std::int64_t>(40));
        QVERIFY((*model)->warnings.empty());
    }

    void tensors_of_other_parts_are_ignored()
    {
        const auto model = opened([](CheckpointBuilder& builder) {
            builder.add_prefix("bert.");
            builder.tensors.push_back({"cls.predictions.bias", {40}, std::vector<float>(40, 0.0f)});
            builder.tensors.push_back({"bert.pooler.dense.bias", {16}, std::vector<float>(16, 0.0f)});
            builder.tensors.push_back({"bert.embeddings.module.word_embeddings.weight", {1}, {0.0f}});
        });
        QVERIFY2(model, tests::failure(model).c_str());
        QVERIFY((*model)->warnings.empty());
    }

    void a_longer_table_than_the_config_says_wins_with_a_note()
    {
        const auto model = opened([](CheckpointBuilder& builder) {
            builder.config["max_position_embeddings"] = 8;
            builder.tensor(tests::position_table_name).shape = {16, 16};
            builder.tensor(tests::position_table_name).values.resize(256);
        });
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE(stack_of(**model).length_limit, std::optional<std::int64_t>(16));
        QVERIFY(
            any_holds((*model)->warnings, {"max_position_embeddings", "8", "16 rows", "the table decides"}));
    }

    void what_the_config_lacks_is_taken_from_elsewhere_and_said_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("said");
        QTest::newRow("model_type") << "model_type"
                                    << "BERT";
        QTest::newRow("hidden_size") << "hidden_size"
                                     << "16";
        QTest::newRow("num_hidden_layers") << "num_hidden_layers"
                                           << "2";
        QTest::newRow("layer_norm_eps") << "layer_norm_eps"
                                        << "1e-12";
        QTest::newRow("hidden_act") << "hidden_act"
                                    << "gelu";
    }
    void what_the_config_lacks_is_taken_from_elsewhere_and_said()
    {
        QFETCH(const QString, key);
        QFETCH(const QString, said);
        const std::string name = key.toStdString();
        for (const bool null : {false, true}) {
            const auto model = opened([&](CheckpointBuilder& builder) {
                builder.config.erase(name);
                if (null) builder.config[name] = nullptr;
            });
            QVERIFY2(model, tests::failure(model).c_str());
            QVERIFY(any_holds((*model)->warnings, {"config.json", name, said.toStdString()}));
            QCOMPARE(stack_of(**model).layers, std::int64_t{2});
            QCOMPARE(stack_of(**model).hidden_size, std::int64_t{16});
            QCOMPARE(stack_of(**model).embedding_norm.epsilon, 1e-12);
        }
    }

    void sizes_that_no_layer_needs_may_be_missing()
    {
        const auto model = opened([](CheckpointBuilder& builder) {
            for (const char* key :
                 {"vocab_size", "max_position_embeddings", "intermediate_size", "type_vocab_size"})
                builder.config.erase(key);
        });
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE((*model)->architecture.vocabulary_size, std::int64_t{40});
    }

    void the_padding_token_is_the_configs()
    {
        const auto pad = [](const nlohmann::json& value) {
            const auto model =
                opened([&](CheckpointBuilder& builder) { builder.config["pad_token_id"] = value; });
            return (*model)->architecture.pad_token_id;
        };
        QCOMPARE(pad(9), std::optional<std::int64_t>(9));
        QCOMPARE(pad(nullptr), std::optional<std::int64_t>());
        QCOMPARE(pad(-1), std::optional<std::int64_t>());
        const auto absent = opened([](CheckpointBuilder& builder) { builder.config.erase("pad_token_id"); });
        QCOMPARE((*absent)->architecture.pad_token_id, std::optional<std::int64_t>(0));
    }

    void a_decoder_is_causal()
    {
        const auto model = opened([](CheckpointBuilder& builder) { builder.config["is_decoder"] = true; });
        QVERIFY(stack_of(**model).causal);
        QCOMPARE(stack_of(**model).id, std::string("decoder"));
    }

    void a_file_without_token_types_opens()
    {
        const auto model = opened(
            [](CheckpointBuilder& builder) { builder.remove("embeddings.token_type_embeddings.weight"); });
        QVERIFY2(model, tests::failure(model).c_str());
        QVERIFY(stack_of(**model).token_type_table.empty());
    }

    void a_partial_file_says_what_it_lacks()
    {
        const auto model = opened(
            [](CheckpointBuilder& builder) { builder.remove("encoder.layer.1.attention.self.key.weight"); });
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE(stack_of(**model).layers, std::int64_t{2});
        QCOMPARE(stack_of(**model).layers_present, std::int64_t{1});
        QVERIFY(any_holds((*model)->warnings, {"1 layer of 2"}));
        QVERIFY(
            any_holds({stack_of(**model).missing_tensor}, {"'encoder.layer.1.attention.self.key.weight'"}));
    }

    void names_that_match_nothing_are_shown_with_the_nearest()
    {
        const auto no_query = opened([](CheckpointBuilder& builder) {
            for (tests::BuiltTensor& tensor : builder.tensors)
                for (const char* part : {"self.query", "self.key"})
                    if (const std::size_t at = tensor.name.find(part); at != std::string::npos)
                        tensor.name.replace(at, 4, "sa");
        });
        QVERIFY2(no_query, tests::failure(no_query).c_str());
        QCOMPARE(stack_of(**no_query).layers_present, std::int64_t{0});
        QVERIFY(any_holds((*no_query)->warnings,
                          {"'encoder.layer.0.attention.self.query.weight'",
                           "'encoder.layer.0.attention.sa.query.weight'", "no layer can be probed"}));
        const auto no_table = opened([](CheckpointBuilder& builder) {
            builder.rename(tests::position_table_name, "embeddings.position_embedding.weight");
        });
        QCOMPARE(refusal(no_table, ErrorCode::not_found,
                         {"'embeddings.position_embeddings.weight'", "'embeddings.position_embedding.weight'",
                          "model.safetensors"}),
                 QString());
    }

    void faults_are_refused_by_name_data()
    {
        QTest::addColumn<Change>("change");
        QTest::addColumn<int>("code");
        QTest::addColumn<QStringList>("named");
        const auto row = [](const char* name, ErrorCode code, const QStringList& named,
                            const Change& change) {
            QTest::newRow(name) << change << static_cast<int>(code) << named;
        };
        const auto config = [&](const char* key, const nlohmann::json& value, ErrorCode code,
                                const QStringList& named) {
            row((std::string(key) + " = " + value.dump()).c_str(), code,
                QStringList{"config.json", key} + named,
                [key = std::string(key), value](CheckpointBuilder& builder) { builder.config[key] = value; });
        };
        const auto without = [&](const char* name) {
            row((std::string("no ") + name).c_str(), ErrorCode::not_found, {name, "model.safetensors"},
                [name = std::string(name)](CheckpointBuilder& builder) { builder.remove(name); });
        };
        const auto reshaped = [&](const char* name, const Shape& shape, const QStringList& named) {
            row((std::string("shape of ") + name).c_str(), ErrorCode::shape_mismatch,
                QStringList{name, "model.safetensors"} + named,
                [name = std::string(name), shape](CheckpointBuilder& builder) {
                    builder.tensor(name).shape = shape;
                    builder.tensor(name).values.assign(*element_count(shape), 0.0f);
                });
        };
        const auto corrupt = ErrorCode::corrupt_file;
        const auto mismatch = ErrorCode::shape_mismatch;
        config("model_type", "no_such_model", ErrorCode::unsupported_model, {"no_such_model", "bert"});
        config("model_type", 7, corrupt, {"7"});
        config("position_embedding_type", "complex", ErrorCode::unsupported_model, {"complex", "absolute"});
        config("hidden_size", 8, mismatch, {"8", "[40, 16]"});
        config("hidden_size", "16", corrupt, {"the text '16'"});
        config("hidden_size", -16, corrupt, {"-16"});
        config("num_attention_heads", 0, corrupt, {"0"});
        config("num_attention_heads", 3, corrupt, {"3", "16"});
        config("num_attention_heads", 2.5, corrupt, {"2.5"});
        config("num_attention_heads", nullptr, corrupt, {"missing"});
        config("num_hidden_layers", 0, corrupt, {"0"});
        config("num_hidden_layers", 1000000000, corrupt, {"1000000000"});
        config("max_position_embeddings", 64, mismatch, {"64", "40 rows"});
        config("vocab_size", 30522, mismatch, {"30522", "40 rows"});
        config("intermediate_size", 48, mismatch, {});
        config("layer_norm_eps", -1, corrupt, {"-1"});
        config("hidden_act", "no_such_act", corrupt, {"no_such_act", "gelu"});
        config("is_decoder", "yes", corrupt, {"yes"});
        without(tests::word_table_name);
        without(tests::position_table_name);
        without("embeddings.LayerNorm.weight");
        without("embeddings.LayerNorm.bias");
        reshaped(tests::position_table_name, {40, 8}, {"[40, 8]", "[any, 16]"});
        reshaped(tests::position_table_name, {40}, {"[40]"});
        reshaped(tests::word_table_name, {40, 4, 4}, {"[40, 4, 4]"});
        reshaped("embeddings.LayerNorm.weight", {8}, {"[8]", "[16]"});
        reshaped(tests::query_weight_name, {16, 8}, {"[16, 8]", "[16, 16]"});
        reshaped("encoder.layer.1.attention.self.key.bias", {8}, {"[8]"});
        row("word table of integers", mismatch, {tests::word_table_name, "I32"},
            [](CheckpointBuilder& builder) { builder.tensor(tests::word_table_name).dtype = DType::i32; });
        row("no names that are known and no model_type", ErrorCode::unsupported_model,
            {"config.json", "model_type", "bert"}, [](CheckpointBuilder& builder) {
                builder.config.erase("model_type");
                builder.add_prefix("net.");
            });
    }
    void faults_are_refused_by_name()
    {
        QFETCH(const Change, change);
        QFETCH(const int, code);
        QFETCH(const QStringList, named);
        std::vector<std::string> wanted;
        // What the config's rows name is what is wrong; the name of the file is added where the tensors are.
        for (const QString& name : named) wanted.push_back(name.toStdString());
        if (wanted.size() > 1 && wanted[1] == "intermediate_size")
            wanted = {"encoder.layer.0.intermediate.dense.weight", "[24, 16]", "[48, 16]"};
        QCOMPARE(refusal(opened(change), static_cast<ErrorCode>(code), wanted), QString());
    }

    void the_tensors_of_a_layer_may_only_be_of_their_shape()
    {
        // Also those that the first layer's map does not need: a file that contradicts itself is not half believed.
        const auto model = opened([](CheckpointBuilder& builder) {
            auto& tensor = builder.tensor("encoder.layer.1.output.dense.weight");
            tensor.shape = {24, 16};
        });
        QCOMPARE(
            refusal(model, ErrorCode::shape_mismatch, {"encoder.layer.1.output.dense.weight", "[24, 16]"}),
            QString());
    }

    void the_sample_opens()
    {
        const auto model = open_model("sample:minilm-l6-first-layer", {});
        QVERIFY2(model, tests::failure(model).c_str());
        QCOMPARE((*model)->checkpoint->display_name(), std::string("minilm-l6-first-layer"));
        const Stack& stack = stack_of(**model);
        QCOMPARE(stack.hidden_size, std::int64_t{384});
        QCOMPARE(stack.heads, std::int64_t{12});
        QCOMPARE(stack.layers, std::int64_t{6});
        QCOMPARE(stack.layers_present, std::int64_t{1});
        QCOMPARE(stack.length_limit, std::optional<std::int64_t>(512));
        QCOMPARE((*model)->architecture.vocabulary_size, std::int64_t{305});
        // Ids are those of the original vocabulary.
        QCOMPARE(stack.special_leading, std::vector<std::int64_t>{101});
        QCOMPARE((*model)->vocabulary.find_id(101)->row, std::int64_t{2});
        QVERIFY((*model)->vocabulary.drawable_count() >= 300);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestOpenModel)
#include "tst_open_model.moc"
