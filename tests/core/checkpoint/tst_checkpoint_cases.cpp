// SPDX-License-Identifier: GPL-3.0-or-later
// Faults that users of other programs reported, and what is right in their place. The numbers are those of the public
// reports.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/hub_cache.h"
#include "core/checkpoint/name_dialects.h"
#include "core/checkpoint/read_recorder.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/tensor_statistics.h"
#include "core/model/tensor_names.h"
#include "core/tensor/quantized_blocks.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::any_holds;
using tests::CheckpointBuilder;
using tests::failure;
using tests::refusal;
using tests::TemporaryFolder;

const std::string torch_files = std::string(POSISCOPE_TEST_DATA) + "/torch/";

std::string bytes_of(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Opens a file of tests/data/torch beside an empty config.
struct OpenedFile {
    explicit OpenedFile(const std::string& name, const std::string& as = {})
    {
        folder.write("config.json", "{}");
        folder.write(as.empty() ? name : as, bytes_of(torch_files + name));
        checkpoint = open_checkpoint(folder.file(as.empty() ? name : as), {});
    }
    TemporaryFolder folder;
    Result<std::shared_ptr<const Checkpoint>> checkpoint{Error{}};
};

std::vector<float> values(const Checkpoint& checkpoint, const std::string& name)
{
    const auto read = checkpoint.read(name);
    return read ? std::vector<float>(read->values().begin(), read->values().end())
                : std::vector<float>{-999.0f};
}

/// Multiples of 1/4: what make_checkpoints.py calls "weight".
std::vector<float> quarters()
{
    std::vector<float> out(12);
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = static_cast<float>(n) / 4;
    return out;
}

std::string little(std::uint64_t value, int bytes)
{
    std::string out;
    for (int n = 0; n < bytes; ++n) out += static_cast<char>(value >> (8 * n));
    return out;
}

std::string gguf_text(const std::string& text)
{
    return little(text.size(), 8) + text;
}

/// A GGUF file with one table of four F32 numbers and, where asked for, a second tensor of another type.
std::string gguf_bytes(std::uint32_t version, std::optional<std::uint32_t> other_type = {})
{
    std::string out = "GGUF" + little(version, 4) + little(other_type ? 2 : 1, 8) + little(1, 8);
    out += gguf_text("general.architecture") + little(8, 4) + gguf_text("bert");
    out += gguf_text("position_embd.weight") + little(2, 4) + little(2, 8) + little(2, 8) + little(0, 4) +
           little(0, 8);
    if (other_type)
        out +=
            gguf_text("other.weight") + little(1, 4) + little(32, 8) + little(*other_type, 4) + little(0, 8);
    out.resize((out.size() + 31) / 32 * 32, '\0');
    for (const float value : {1.0f, 2.0f, 3.0f, 4.0f}) out += tests::encoded(DType::f32, value);
    return out;
}

long resident_kilobytes()
{
    std::ifstream in("/proc/self/statm");
    long all = 0, resident = 0;
    in >> all >> resident;
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

} // namespace

class TestCheckpointCases : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void old_and_new_serialisation_hold_the_same() // candle 2666, 1348; burn 3605; pytorch 67902, 100741
    {
        for (const auto& [file, format] : {std::pair{"zip.pt", "pytorch_zip"},
                                           {"legacy.pt", "pytorch_legacy"},
                                           {"streamed.pt", "pytorch_zip"}}) {
            // Told apart by content: the name says nothing.
            const OpenedFile opened(file, "weights.safetensors");
            QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
            const Checkpoint& checkpoint = **opened.checkpoint;
            QCOMPARE(checkpoint.format(), std::string(format));
            QCOMPARE(checkpoint.tensors().size(), std::size_t{2});
            QCOMPARE(checkpoint.tensors()[0].name, std::string("count")); // in file order
            QCOMPARE(checkpoint.tensors()[0].dtype, DType::i64);
            QCOMPARE(values(checkpoint, "count"), (std::vector<float>{3, 1, 4}));
            QCOMPARE(values(checkpoint, "weight"), quarters());
        }
    }

    void views_have_their_logical_values() // burn 5383
    {
        for (const char* file : {"views.pt", "views-legacy.pt"}) {
            const OpenedFile opened(file);
            QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
            const Checkpoint& checkpoint = **opened.checkpoint;
            QCOMPARE(checkpoint.find("view")->shape, (Shape{3, 4}));
            QVERIFY(!checkpoint.find("view")->axes.empty());
            QCOMPARE(values(checkpoint, "view"), quarters());
            QCOMPARE(values(checkpoint, "column"), (std::vector<float>{0.25f, 1.25f, 2.25f}));
            QCOMPARE(values(checkpoint, "part"), (std::vector<float>{1.25f, 1.5f, 2.25f, 2.5f}));
            QCOMPARE(values(checkpoint, "repeated"), (std::vector<float>{5, 5, 5, 7, 7, 7}));
            const auto rows = checkpoint.read_rows("view", std::vector<std::int64_t>{2, 0, 2});
            QVERIFY2(rows, failure(rows).c_str());
            const std::vector<float> wanted{2,    2.25f, 2.5f, 2.75f, 0,    0.25f,
                                            0.5f, 0.75f, 2,    2.25f, 2.5f, 2.75f};
            QCOMPARE(std::vector<float>(rows->values().begin(), rows->values().end()), wanted);
        }
    }

    void modules_are_read_as_far_as_tensors_go()
    {
        for (const char* file : {"module.pt", "module-in-dict.pt"}) {
            const OpenedFile opened(file);
            QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
            const Checkpoint& checkpoint = **opened.checkpoint;
            QCOMPARE(checkpoint.tensors().size(), std::size_t{4}); // the optimiser's are left out
            QCOMPARE(values(checkpoint, "first.weight"), std::vector<float>(6, 1.0f));
            QCOMPARE(values(checkpoint, "second.bias"), std::vector<float>(3, 4.0f));
        }
    }

    void every_type_of_torch_is_read()
    {
        const OpenedFile opened("types.pt");
        QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
        for (const TensorInfo& info : (*opened.checkpoint)->tensors()) {
            const std::vector<float> wanted = info.dtype == DType::boolean ? std::vector<float>{0, 1}
                                              : is_floating(info.dtype) ? std::vector<float>{0, 1, 2, 4, 0.5f}
                                                                        : std::vector<float>{0, 1, 2, 4, 8};
            QVERIFY2(values(**opened.checkpoint, info.name) == wanted, info.name.c_str());
        }
        QCOMPARE((*opened.checkpoint)->tensors().size(), std::size_t{12});
    }

    void forced_64_bit_sizes_and_data_descriptors() // cnpy PR 103; pytorch PR 40722
    {
        const OpenedFile opened("streamed.npz");
        QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
        std::vector<float> wanted(12);
        for (std::size_t n = 0; n < wanted.size(); ++n) wanted[n] = static_cast<float>(n) / 2;
        for (const char* name : {"table", "big", "fortran", "half"})
            QVERIFY2(values(**opened.checkpoint, name) == wanted, name);
    }

    void arrays_that_hold_no_numbers_are_skipped_with_the_reason() // cnpy 72
    {
        const OpenedFile opened("mixed.npz");
        QVERIFY2(opened.checkpoint, failure(opened.checkpoint).c_str());
        const Checkpoint& checkpoint = **opened.checkpoint;
        QCOMPARE(values(checkpoint, "scalar"), std::vector<float>{2.5f});
        QCOMPARE(values(checkpoint, "empty"), std::vector<float>{});
        QCOMPARE(values(checkpoint, "table").size(), std::size_t{12});
        QVERIFY(any_holds(checkpoint.warnings(), {"words", "text"}));
        QVERIFY(any_holds(checkpoint.warnings(), {"objects", "never read"}));
    }

    void lengths_beyond_the_limit_are_refused() // safetensors 668
    {
        const TemporaryFolder folder;
        folder.write("config.json", "{}");
        folder.write("a.safetensors", little(std::uint64_t{1} << 40u, 8) + "{}" + std::string(100, ' '));
        QCOMPARE(refusal(open_checkpoint(folder.file("a.safetensors"), {}), ErrorCode::corrupt_file,
                         {"100000000"}),
                 QString());
        const std::string sparse = folder.write("b.safetensors", little(101'000'000, 8) + "{");
        std::filesystem::resize_file(sparse, 102'000'000);
        QCOMPARE(refusal(open_checkpoint(sparse, {}), ErrorCode::corrupt_file, {"100000000"}), QString());
    }

    void other_content_says_what_it_is() // safetensors 414; transformers 8497
    {
        const TemporaryFolder folder;
        CheckpointBuilder().write_to(folder);
        folder.write("model.safetensors",
                     "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 437955512\n");
        QCOMPARE(refusal(open_checkpoint(folder.path(), {}), ErrorCode::unsupported_format,
                         {"Git LFS", "git lfs pull"}),
                 QString());
        folder.write("model.safetensors", "<!DOCTYPE html><html></html>");
        QCOMPARE(refusal(open_checkpoint(folder.path(), {}), ErrorCode::unsupported_format, {"web page"}),
                 QString());
        folder.write("model.safetensors", bytes_of(torch_files + "zip.pt"));
        const auto zip = open_checkpoint(folder.path(), {});
        QVERIFY2(zip, failure(zip).c_str());
        QCOMPARE((*zip)->format(), std::string("pytorch_zip"));
    }

    void shards_that_are_missing() // sglang PR 32279; mlx-vlm PR 1827
    {
        const CheckpointBuilder builder;
        const TemporaryFolder folder;
        builder.write_to(folder);
        std::filesystem::remove(folder.file("model.safetensors"));
        nlohmann::json map;
        std::vector<std::vector<tests::BuiltTensor>> shards(3);
        for (const auto& tensor : builder.tensors) {
            const std::size_t shard = tensor.name.starts_with("embeddings")                ? 0
                                      : tensor.name.find("attention") != std::string::npos ? 1
                                                                                           : 2;
            shards[shard].push_back(tensor);
            map[tensor.name] = "part-" + std::to_string(shard) + ".safetensors";
        }
        folder.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
        for (std::size_t n = 0; n < 2; ++n)
            folder.write("part-" + std::to_string(n) + ".safetensors", tests::safetensors_bytes(shards[n]));
        // The last is absent: what is there opens, and it is said.
        const auto opened = open_checkpoint(folder.path(), {});
        QVERIFY2(opened, failure(opened).c_str());
        QVERIFY(any_holds((*opened)->warnings(), {"part-2.safetensors", "missing"}));
        QCOMPARE(values(**opened, tests::query_weight_name), builder.tensor(tests::query_weight_name).values);
        // The one with the embeddings is absent: whoever needs them learns where they should be.
        std::filesystem::rename(folder.file("part-0.safetensors"), folder.file("part-2.safetensors.away"));
        folder.write("part-2.safetensors", tests::safetensors_bytes(shards[2]));
        const auto without = open_checkpoint(folder.path(), {});
        QVERIFY2(without, failure(without).c_str());
        const TensorNames names(**without, {});
        QCOMPARE(refusal(names.require(tests::word_table_name, {-1, -1}), ErrorCode::not_found,
                         {tests::word_table_name, "part-0.safetensors", "missing"}),
                 QString());
        // A tensor that its shard lacks.
        folder.write("part-0.safetensors",
                     tests::safetensors_bytes({shards[0].begin() + 1, shards[0].end()}));
        QCOMPARE(refusal(open_checkpoint(folder.path(), {}), ErrorCode::corrupt_file,
                         {shards[0][0].name, "part-0.safetensors"}),
                 QString());
    }

    void indexes_do_not_lead_in_circles()
    {
        const TemporaryFolder folder;
        folder.write("config.json", "{}");
        folder.write("a.index.json", R"({"weight_map": {"x": "b.index.json"}})");
        folder.write("b.index.json", R"({"weight_map": {"x": "a.index.json"}})");
        QCOMPARE(refusal(open_checkpoint(folder.file("a.index.json"), {}), ErrorCode::corrupt_file,
                         {"b.index.json", "index itself"}),
                 QString());
    }

    void each_file_of_a_tensorflow_checkpoint_opens_it() // google-research/language 41; bert 487
    {
        const std::string from = std::string(POSISCOPE_TEST_DATA) + "/formats/tf-google/";
        const TemporaryFolder folder;
        folder.write("bert_config.json", bytes_of(from + "bert_config.json"));
        const std::string index = folder.write("m.ckpt.index", bytes_of(from + "bert_model.ckpt.index"));
        std::string data = bytes_of(from + "bert_model.ckpt.data-00000-of-00001");
        folder.write("m.ckpt.data-00000-of-00001", data);
        for (const char* name : {"m.ckpt", "m.ckpt.index", "m.ckpt.data-00000-of-00001", ""}) {
            const auto opened = open_checkpoint(folder.path() + "/" + name, {});
            QVERIFY2(opened, failure(opened).c_str());
            QVERIFY((*opened)->find("bert.encoder.layer.0.attention.self.query.weight") != nullptr);
            // Slots of the optimiser are no weights.
            for (const TensorInfo& info : (*opened)->tensors())
                QVERIFY2(info.name.find("adam") == std::string::npos, info.name.c_str());
        }
        folder.write("m.ckpt.data-00000-of-00001", data.substr(0, data.size() / 2));
        QCOMPARE(refusal(open_checkpoint(folder.file("m.ckpt"), {}), ErrorCode::corrupt_file,
                         {"tensor 'bert/", "cut short"}),
                 QString());
        std::filesystem::remove(index);
        QCOMPARE(refusal(open_checkpoint(folder.file("m.ckpt"), {}), ErrorCode::not_found, {"m.ckpt.index"}),
                 QString());
    }

    void partitioned_variables_are_put_together()
    {
        // Made by TensorFlow 2.21 with a partitioner of three parts; element n of the table is n / 8.
        const auto opened = open_checkpoint(std::string(POSISCOPE_TEST_DATA) + "/tensorflow-partitioned", {});
        QVERIFY2(opened, failure(opened).c_str());
        const std::string name = "bert.embeddings.word_embeddings.weight";
        QCOMPARE((*opened)->find(name)->shape, (Shape{700, 3}));
        QCOMPARE((*opened)->find(name)->runs.size(), std::size_t{3});
        const auto table = values(**opened, name);
        for (std::size_t n = 0; n < table.size(); ++n) QCOMPARE(table[n], static_cast<float>(n) / 8);
        const auto rows = (*opened)->read_rows(name, std::vector<std::int64_t>{233, 234, 235, 699});
        QVERIFY2(rows, failure(rows).c_str());
        for (std::size_t n = 0; n < 9; ++n) QCOMPARE(rows->values()[n], static_cast<float>(233 * 3 + n) / 8);
    }

    void gguf_versions_and_types() // aprender 310; llama.cpp PR 3908
    {
        const TemporaryFolder folder;
        const auto open = [&](const std::string& bytes) {
            folder.write("model.gguf", bytes);
            return open_checkpoint(folder.file("model.gguf"), {});
        };
        for (const std::uint32_t version : {2u, 3u}) {
            const auto opened = open(gguf_bytes(version));
            QVERIFY2(opened, failure(opened).c_str());
            QCOMPARE(values(**opened, "embeddings.position_embeddings.weight"),
                     (std::vector<float>{1, 2, 3, 4}));
        }
        QCOMPARE(refusal(open(gguf_bytes(1)), ErrorCode::unsupported_format, {"version 1"}), QString());
        QCOMPARE(refusal(open(gguf_bytes(0x03000000)), ErrorCode::unsupported_format, {"big-endian"}),
                 QString());
        for (const std::uint32_t type : {36u, 99u}) {
            const auto opened = open(gguf_bytes(3, type));
            QVERIFY2(opened, failure(opened).c_str());
            QVERIFY(any_holds((*opened)->warnings(), {"other.weight", std::to_string(type)}));
            QCOMPARE(values(**opened, "embeddings.position_embeddings.weight"),
                     (std::vector<float>{1, 2, 3, 4}));
            QCOMPARE(refusal((*opened)->read("other.weight"), ErrorCode::corrupt_file,
                             {"other.weight", std::to_string(type)}),
                     QString());
        }
    }

    void rows_that_the_conversion_to_gguf_turned_round_are_turned_back()
    {
        // Two heads of four rows each; the conversion of LLaMA puts rows 0 1 2 3 of a head in the order 0 2 1 3.
        std::vector<float> stored;
        for (const int row : {0, 2, 1, 3, 4, 6, 5, 7})
            for (int col = 0; col < 3; ++col) stored.push_back(static_cast<float>(10 * row + col));
        TensorFile file;
        file.format = "gguf";
        file.enclosed_files["config.json"] = R"({"model_type": "llama", "num_attention_heads": 2})";
        file.sources.push_back(memory_source("memory", std::as_bytes(std::span(stored))));
        TensorInfo info;
        info.name = "blk.5.attn_q.weight";
        info.shape = {8, 3};
        info.end = stored.size() * sizeof(float);
        file.tensors.push_back(info);
        translate_names(file);
        QCOMPARE(file.tensors[0].name, std::string("model.layers.5.self_attn.q_proj.weight"));
        const auto whole = read_tensor(file.tensors[0], file.sources);
        QVERIFY2(whole, failure(whole).c_str());
        for (std::size_t n = 0; n < 24; ++n)
            QCOMPARE(whole->data()[n], static_cast<float>(10 * (n / 3) + n % 3));
        const auto row = read_tensor_rows(file.tensors[0], file.sources, std::vector<std::int64_t>{6});
        QVERIFY2(row, failure(row).c_str());
        QCOMPARE(row->data()[2], 62.0f);
    }

    void a_model_of_eleven_gigabytes_costs_its_header()
    {
        // T5-3B's names and shapes in a sparse file.
        nlohmann::ordered_json header;
        std::uint64_t at = 0;
        const auto add = [&](const std::string& name, const Shape& shape) {
            const std::uint64_t size = *element_count(shape) * 4;
            header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {at, at + size}}};
            at += size;
        };
        add("shared.weight", {32'128, 1'024});
        for (const std::string stack : {"encoder", "decoder"}) {
            const bool decoder = stack == "decoder";
            for (int block = 0; block < 24; ++block) {
                const std::string prefix = stack + ".block." + std::to_string(block) + ".layer.";
                for (const std::string attention : {"0.SelfAttention.", "1.EncDecAttention."}) {
                    if (attention.front() == '1' && !decoder) continue;
                    for (const char* part : {"q", "k", "v"})
                        add(prefix + attention + part + ".weight", {4'096, 1'024});
                    add(prefix + attention + "o.weight", {1'024, 4'096});
                    add(prefix + attention.substr(0, 2) + "layer_norm.weight", {1'024});
                }
                if (block == 0) add(prefix + "0.SelfAttention.relative_attention_bias.weight", {32, 32});
                const std::string last = decoder ? "2." : "1.";
                add(prefix + last + "DenseReluDense.wi.weight", {16'384, 1'024});
                add(prefix + last + "DenseReluDense.wo.weight", {1'024, 16'384});
                add(prefix + last + "layer_norm.weight", {1'024});
            }
            add(stack + ".final_layer_norm.weight", {1'024});
        }
        const TemporaryFolder folder;
        folder.write("config.json", R"({"model_type": "t5"})");
        const std::string text = header.dump();
        const std::string path = folder.write("model.safetensors", little(text.size(), 8) + text);
        std::filesystem::resize_file(path, 8 + text.size() + at);
        const long before = resident_kilobytes();
        const auto opened = open_checkpoint(folder.path(), {});
        QVERIFY2(opened, failure(opened).c_str());
        QVERIFY((*opened)->file_size() > 11'000'000'000u);
        const auto bias =
            (*opened)->read("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
        QVERIFY2(bias, failure(bias).c_str());
        QCOMPARE(bias->size(), std::size_t{1'024});
        QVERIFY2((*opened)->bytes_read() < 1'000'000, std::to_string((*opened)->bytes_read()).c_str());
        QVERIFY(resident_kilobytes() - before < 100'000);
    }

    void a_file_that_changes_while_it_is_open_is_an_error()
    {
        const TemporaryFolder folder;
        CheckpointBuilder().write_to(folder);
        const std::string path = folder.file("model.safetensors");
        const auto opened = open_checkpoint(folder.path(), {});
        QVERIFY2(opened, failure(opened).c_str());
        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 3);
        QCOMPARE(refusal((*opened)->read(tests::word_table_name), ErrorCode::unreadable, {path}), QString());
    }

    void blocks_of_quantised_numbers_are_those_of_the_reference()
    {
        const auto rows =
            nlohmann::json::parse(bytes_of(std::string(POSISCOPE_TEST_DATA) + "/reference/gguf_blocks.json"));
        QCOMPARE(rows.size(), std::size_t{8});
        for (const auto& row : rows) {
            const auto dtype = dtype_from_name(row.at("type").get<std::string>());
            QVERIFY(dtype);
            const auto digits = row.at("bytes").get<std::string>();
            std::vector<std::byte> bytes;
            for (std::size_t n = 0; n < digits.size(); n += 2)
                bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(n, 2), nullptr, 16)));
            const auto wanted = row.at("values").get<std::vector<double>>();
            std::vector<float> found(wanted.size());
            QCOMPARE(bytes.size(), std::size_t{3} * dtype_size(*dtype));
            QCOMPARE(found.size(), std::size_t{3} * dtype_block(*dtype));
            convert_to_float(*dtype, bytes, found);
            for (std::size_t n = 0; n < wanted.size(); ++n) QCOMPARE(found[n], static_cast<float>(wanted[n]));
        }
    }

    void names_of_tensorflow_and_keras_are_translated() // transformers 2706, 10774
    {
        const auto translated = [](const std::string& name, const Shape& shape) {
            TensorFile file;
            file.format = "tensorflow";
            TensorInfo info;
            info.name = name;
            info.shape = shape;
            file.tensors.push_back(info);
            translate_names(file);
            return file.tensors[0];
        };
        const auto query = translated("bert/encoder/layer_3/attention/self/query/kernel", {4, 6});
        QCOMPARE(query.name, std::string("bert.encoder.layer.3.attention.self.query.weight"));
        QCOMPARE(query.shape, (Shape{6, 4}));
        QCOMPARE(query.stored_name, std::string("bert/encoder/layer_3/attention/self/query/kernel"));
        const auto name = [&](const char* stored, const Shape& shape) {
            return translated(stored, shape).name;
        };
        QCOMPARE(name("bert/embeddings/position_embeddings", {5, 4}),
                 std::string("bert.embeddings.position_embeddings.weight"));
        QCOMPARE(name("bert/encoder/layer_0/output/layer_normalization_3/gamma", {4}),
                 std::string("bert.encoder.layer.0.output.LayerNorm.weight"));
        QCOMPARE(name("bert/encoder/layer/1/attention/self_attention/key/kernel/.ATTRIBUTES/VARIABLE_VALUE",
                      {4, 4}),
                 std::string("bert.encoder.layer.1.attention.self.key.weight"));
        QCOMPARE(name("bert/encoder/layer/1/attention/dense_output/LayerNorm/beta/.ATTRIBUTES/VARIABLE_VALUE",
                      {4}),
                 std::string("bert.encoder.layer.1.attention.output.LayerNorm.bias"));
        QCOMPARE(name("model/layer_with_weights-1/embeddings/.ATTRIBUTES/VARIABLE_VALUE", {5, 4}),
                 std::string("embeddings.position_embeddings.weight"));
        const auto garden = translated(
            "model/layer_with_weights-5/_attention_layer/_query_dense/kernel/.ATTRIBUTES/VARIABLE_VALUE",
            {4, 2, 3});
        QCOMPARE(garden.name, std::string("encoder.layer.1.attention.self.query.weight"));
        QCOMPARE(garden.shape, (Shape{6, 4}));
        QCOMPARE(name("bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel", {4, 4}),
                 std::string("bert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"));
    }

    void a_copy_of_the_cache_without_links_opens()
    {
        const TemporaryFolder cache;
        CheckpointBuilder builder;
        const TemporaryFolder model;
        builder.write_to(model);
        for (const char* file : {"config.json", "model.safetensors", "vocab.txt"}) {
            cache.write("models--org--tiny/blobs/of-" + std::string(file), bytes_of(model.file(file)));
            cache.write("models--org--tiny/snapshots/0123abcd/" + std::string(file),
                        "../../blobs/of-" + std::string(file));
        }
        cache.write("models--org--tiny/refs/main", "0123abcd");
        const auto opened = open_checkpoint(cache.file("models--org--tiny"), {});
        QVERIFY2(opened, failure(opened).c_str());
        QVERIFY((*opened)->find("bert.embeddings.word_embeddings.weight") != nullptr ||
                (*opened)->find("embeddings.word_embeddings.weight") != nullptr);
        const auto list = list_hub_cache(cache.path(), {});
        QVERIFY2(list, failure(list).c_str());
        QCOMPARE(list->front().bytes,
                 std::uint64_t{std::filesystem::file_size(model.file("model.safetensors"))});
        // Nothing outside the blobs is followed.
        cache.write("models--org--tiny/snapshots/0123abcd/model.safetensors", "../../blobs/../refs/main");
        QVERIFY(!open_checkpoint(cache.file("models--org--tiny"), {}));
    }

    void the_cache_of_hugging_face_is_listed_and_opened()
    {
        const TemporaryFolder cache;
        CheckpointBuilder builder;
        const TemporaryFolder model;
        builder.write_to(model);
        const std::string snapshot = "models--org--tiny/snapshots/0123abcd/";
        for (const char* file : {"config.json", "model.safetensors", "vocab.txt"}) {
            cache.write("models--org--tiny/blobs/" + std::string(file), bytes_of(model.file(file)));
            std::filesystem::create_directories(cache.file(snapshot));
            std::filesystem::create_symlink("../../blobs/" + std::string(file), cache.file(snapshot + file));
        }
        cache.write("models--org--tiny/refs/main", "0123abcd");
        cache.write("models--org--empty/refs/main", "none");
        cache.write("datasets--org--data/refs/main", "none");
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.path()));
        QCOMPARE(hub_cache_folder().string(), cache.path());
        const auto list = list_hub_cache(hub_cache_folder(), {});
        QVERIFY2(list, failure(list).c_str());
        QCOMPARE(list->size(), std::size_t{1});
        QCOMPARE(list->front().name, std::string("org/tiny"));
        QCOMPARE(list->front().family, std::string("bert"));
        QCOMPARE(list->front().revision, std::string("main"));
        QCOMPARE(list->front().bytes,
                 std::uint64_t{std::filesystem::file_size(model.file("model.safetensors"))});
        for (const std::string& location : {list->front().location, cache.file(snapshot), cache.path()}) {
            const auto opened = open_checkpoint(location, {});
            QVERIFY2(opened, failure(opened).c_str());
            QCOMPARE((*opened)->display_name(), std::string("org/tiny"));
        }
        // Another revision is another row; one without weights is none.
        cache.write("models--org--tiny/refs/pr/1", "cafe\n");
        cache.write("models--org--tiny/refs/v1.0", "cafe");
        cache.write("models--org--tiny/snapshots/cafe/model.safetensors",
                    bytes_of(model.file("model.safetensors")));
        cache.write("models--org--tiny/snapshots/cafe/config.json", bytes_of(model.file("config.json")));
        cache.write("models--org--tiny/snapshots/beef/config.json", "{}");
        const auto several = list_hub_cache(hub_cache_folder(), {});
        QVERIFY2(several, failure(several).c_str());
        QCOMPARE(several->size(), std::size_t{2});
        QCOMPARE((*several)[0].revision, std::string("main"));
        QCOMPARE((*several)[0].location, cache.file("models--org--tiny"));
        QCOMPARE((*several)[1].revision, std::string("pr/1, v1.0"));
        QCOMPARE((*several)[1].location, cache.file("models--org--tiny/snapshots/cafe"));
        QVERIFY(open_checkpoint((*several)[1].location, {}));
        std::filesystem::remove_all(cache.file("models--org--tiny/snapshots/cafe"));
        std::filesystem::remove_all(cache.file("models--org--tiny/snapshots/beef"));
        // Two snapshots and no valid reference: not to be guessed.
        std::filesystem::create_directories(cache.file("models--org--tiny/snapshots/ffff"));
        cache.write("models--org--tiny/refs/main", "../../../etc");
        QCOMPARE(refusal(open_checkpoint(list->front().location, {}), ErrorCode::not_found,
                         {"refs/main", "0123abcd"}),
                 QString());
        qunsetenv("HF_HUB_CACHE");
        qputenv("HF_HOME", "/somewhere");
        QCOMPARE(hub_cache_folder().string(), std::string("/somewhere/hub"));
        qunsetenv("HF_HOME");
    }

    void statistics_leave_out_what_is_not_finite()
    {
        CheckpointBuilder builder;
        auto& bias = builder.tensor("embeddings.LayerNorm.bias");
        bias.values.assign(bias.values.size(), 2.0f);
        bias.values[0] = -1.0f;
        bias.values[1] = std::numeric_limits<float>::quiet_NaN();
        bias.values[2] = std::numeric_limits<float>::infinity();
        bias.values[3] = 5.0f;
        const TemporaryFolder folder;
        builder.write_to(folder);
        const auto opened = open_checkpoint(folder.path(), {});
        const auto found = tensor_statistics(**opened, bias.name, {});
        QVERIFY2(found, failure(found).c_str());
        QCOMPARE(found->count, std::uint64_t{16});
        QCOMPARE(found->nan_count, std::uint64_t{1});
        QCOMPARE(found->infinite_count, std::uint64_t{1});
        QCOMPARE(found->least, -1.0);
        QCOMPARE(found->most, 5.0);
        QCOMPARE(found->mean, 2.0); // (-1 + 5 + 12 * 2) / 14
        QVERIFY(std::abs(found->standard_deviation - std::sqrt(18.0 / 14.0)) < 1e-12);
        QCOMPARE(refusal(tensor_statistics(**opened, "no.such", {}), ErrorCode::not_found, {"no.such"}),
                 QString());
    }

    void digests_are_those_of_the_values_whatever_the_format()
    {
        const auto digest = [](const std::string& path, const std::string& name) {
            const auto opened = open_checkpoint(std::string(POSISCOPE_TEST_DATA) + path, {});
            const ReadRecorder recorder;
            const auto read = (*opened)->read(name);
            return read ? recorder.digests().at(name).sha256 : std::string("unreadable");
        };
        const std::string name = "encoder.layer.0.attention.self.query.weight";
        const std::string original = digest("/families/bert", name);
        QCOMPARE(original.size(), std::size_t{64});
        for (const char* path :
             {"/formats/bin-zip", "/formats/flax", "/formats/npz-bert", "/formats/safetensors-f64"})
            QCOMPARE(digest(path, name), original);
        QVERIFY(digest("/formats/safetensors-bf16", name) != original);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestCheckpointCases)
#include "tst_checkpoint_cases.moc"
