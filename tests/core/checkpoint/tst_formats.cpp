// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <QTest>

#include "core/checkpoint/checkpoint.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::failure;

const std::string data_folder = std::string(POSISCOPE_TEST_DATA);

/// A file's name for a tensor without the prefixes that the fixtures carry.
std::string canonical(std::string name)
{
    for (const std::string prefix : {"module.", "bert.", "vit."})
        if (name.starts_with(prefix)) name.erase(0, prefix.size());
    if (name.ends_with(".gamma")) name.replace(name.size() - 5, 5, "weight");
    if (name.ends_with(".beta")) name.replace(name.size() - 4, 4, "bias");
    return name;
}

} // namespace

/// The same BERT in every file format: each tensor against the safetensors original, read whole and by rows.
class TestFormats : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_format_gives_the_numbers_of_the_original_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("format");
        QTest::addColumn<double>("tolerance");
        const auto row = [](const char* path, const char* format, double tolerance = 0.0) {
            QTest::newRow(path) << QString::fromLatin1(path) << QString::fromLatin1(format) << tolerance;
        };
        // Largest weight: about 4. fp16 keeps 11 bits, bf16 8; Q8_0 keeps 8 of the largest in a block.
        row("safetensors-prefixed", "safetensors");
        row("safetensors-no-metadata", "safetensors");
        row("safetensors-sharded", "safetensors");
        row("safetensors-fp16", "safetensors", 2e-3);
        row("safetensors-bf16", "safetensors", 1.6e-2);
        row("safetensors-f64", "safetensors");
        row("bin-zip", "pytorch_zip");
        row("bin-fp16", "pytorch_zip", 2e-3);
        row("bin-bf16", "pytorch_zip", 1.6e-2);
        row("bin-f64", "pytorch_zip");
        row("bin-legacy", "pytorch_legacy");
        row("bin-sharded", "pytorch_zip");
        row("bin-sharded/pytorch_model.bin.index.json", "pytorch_zip");
        row("bin-nested-state_dict", "pytorch_zip");
        row("bin-nested-model", "pytorch_zip");
        row("bin-gamma-beta", "pytorch_legacy");
        row("bin-parameters", "pytorch_zip");
        row("bin-views", "pytorch_zip");
        row("gguf-f32", "gguf");
        row("gguf-f16", "gguf", 2e-3);
        row("gguf-q8_0", "gguf", 2e-2);
        row("gguf-q8_0-table", "gguf", 2e-2);
        row("tf-google", "tensorflow");
        row("tf-google/bert_model.ckpt", "tensorflow");
        row("tf-google/bert_model.ckpt.index", "tensorflow");
        row("tf-google/bert_model.ckpt.data-00000-of-00001", "tensorflow");
        row("npz-bert", "npz");
        row("npz-bert-compressed", "npz");
        row("flax", "flax_msgpack");
        row("flax-chunked", "flax_msgpack");
        row("onnx-initializers", "onnx");
        row("onnx-external", "onnx");
        row("onnx-float-data", "onnx");
        row("onnx-exported", "onnx");
    }

    void every_format_gives_the_numbers_of_the_original()
    {
        QFETCH(const QString, path);
        QFETCH(const QString, format);
        QFETCH(const double, tolerance);
        const auto original = open_checkpoint(data_folder + "/families/bert", {});
        const auto opened = open_checkpoint(data_folder + "/formats/" + path.toStdString(), {});
        QVERIFY2(opened, failure(opened).c_str());
        QCOMPARE((*opened)->format(), format.toStdString());
        std::map<std::string, std::string> names;
        for (const TensorInfo& info : (*opened)->tensors()) names[canonical(info.name)] = info.name;
        for (const TensorInfo& info : (*original)->tensors()) {
            if (info.name.starts_with("pooler.")) continue; // not every format keeps it
            const auto at = names.find(info.name);
            QVERIFY2(at != names.end(), info.name.c_str());
            const auto wanted = (*original)->read(info.name), found = (*opened)->read(at->second);
            QVERIFY2(found, failure(found).c_str());
            QCOMPARE(found->shape(), wanted->shape());
            for (std::size_t n = 0; n < wanted->size(); ++n) {
                const double a = wanted->data()[n], b = found->data()[n];
                QVERIFY2(std::abs(a - b) <= tolerance,
                         (info.name + ": " + std::to_string(a) + " " + std::to_string(b)).c_str());
            }
            if (info.shape.size() != 2) continue;
            const std::vector<std::int64_t> rows{info.shape[0] - 1, 0, info.shape[0] - 1, info.shape[0] / 2};
            const auto some = (*opened)->read_rows(at->second, rows);
            QVERIFY2(some, failure(some).c_str());
            const auto cols = static_cast<std::size_t>(info.shape[1]);
            for (std::size_t n = 0; n < rows.size(); ++n)
                QVERIFY2(std::equal(some->data() + n * cols, some->data() + (n + 1) * cols,
                                    found->data() + static_cast<std::size_t>(rows[n]) * cols),
                         info.name.c_str());
        }
    }

    void every_folder_is_in_the_list()
    {
        std::vector<std::string> folders;
        for (const auto& entry : std::filesystem::directory_iterator(data_folder + "/formats"))
            folders.push_back(entry.path().filename().string());
        // The ViT's own test is below.
        QCOMPARE(folders.size(), std::size_t{31});
    }

    void arrays_of_a_vit_take_the_order_of_pytorch()
    {
        const auto original = open_checkpoint(data_folder + "/families/vit", {});
        const auto opened = open_checkpoint(data_folder + "/formats/npz-vit-jax", {});
        QVERIFY2(original, failure(original).c_str());
        QVERIFY2(opened, failure(opened).c_str());
        std::size_t compared = 0;
        for (const TensorInfo& info : (*original)->tensors()) {
            if (info.name.find("pooler.") != std::string::npos) continue;
            const auto found = (*opened)->read(canonical(info.name));
            QVERIFY2(found, failure(found).c_str());
            const auto wanted = (*original)->read(info.name);
            QCOMPARE(found->shape(), wanted->shape());
            QVERIFY2(std::equal(found->data(), found->data() + found->size(), wanted->data()),
                     info.name.c_str());
            ++compared;
        }
        QVERIFY(compared > 20);
    }

    void opening_reads_headers_only()
    {
        for (const char* path :
             {"safetensors-f64", "bin-zip", "bin-legacy", "gguf-f32", "flax", "tf-google"}) {
            const auto opened = open_checkpoint(data_folder + "/formats/" + path, {});
            QVERIFY2(opened, failure(opened).c_str());
            QVERIFY2((*opened)->bytes_read() < 32'000, path);
            QVERIFY2((*opened)->file_size() > 100'000, path);
        }
    }

    void a_gguf_file_brings_config_and_words_along()
    {
        const auto opened = open_checkpoint(data_folder + "/formats/gguf-f32/model.gguf", {});
        QVERIFY2(opened, failure(opened).c_str());
        const ConfigJson& config = (*opened)->config();
        QCOMPARE(*config.integer("hidden_size", 1, 1000), std::int64_t{32});
        QCOMPARE(*config.integer("num_attention_heads", 1, 1000), std::int64_t{4});
        QCOMPARE(*config.optional_text("model_type"), std::optional<std::string>("bert"));
        QCOMPARE(*config.integer("sep_token_id", 0, 1000), std::int64_t{3});
        const auto words = (*opened)->store().open("tokenizer.ggml.tokens");
        QVERIFY2(words, failure(words).c_str());
        const auto text = (*words)->read_text(100'000);
        QVERIFY(text->starts_with("3\t[PAD]\n3\t[UNK]\n3\t[CLS]\n3\t[SEP]\n3\t[MASK]\n1\tpovisu\n"));
        QCOMPARE(std::count(text->begin(), text->end(), '\n'), std::ptrdiff_t{200});
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestFormats)
#include "tst_formats.moc"
