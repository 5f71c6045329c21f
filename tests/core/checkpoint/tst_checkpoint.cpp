// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <QTest>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/format_table.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::CheckpointBuilder;
using tests::failure;
using tests::refusal;
using tests::TemporaryFolder;

/// A good folder on disk.
class GoodFolder {
public:
    GoodFolder() { builder.write_to(folder); }

    [[nodiscard]] std::string path() const { return folder.path(); }
    [[nodiscard]] std::shared_ptr<const Checkpoint> open() const { return *open_checkpoint(path(), {}); }

    TemporaryFolder folder;
    CheckpointBuilder builder;
};

std::vector<float> values_of(const HostTensor& tensor)
{
    return {tensor.values().begin(), tensor.values().end()};
}

} // namespace

class TestCheckpoint : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void a_folder_opens()
    {
        const GoodFolder good;
        const auto checkpoint = open_checkpoint(good.path(), {});
        QVERIFY2(checkpoint, failure(checkpoint).c_str());
        QCOMPARE((*checkpoint)->location(), good.path());
        QCOMPARE((*checkpoint)->format(), std::string("safetensors"));
        QCOMPARE((*checkpoint)->display_name(), std::filesystem::path(good.path()).filename().string());
        QCOMPARE((*checkpoint)->weights_name(), good.folder.file("model.safetensors"));
        QCOMPARE((*checkpoint)->tensors().size(), good.builder.tensors.size());
        QCOMPARE((*checkpoint)->file_size(),
                 std::filesystem::file_size(good.folder.file("model.safetensors")));
        QVERIFY((*checkpoint)->warnings().empty());
        for (const tests::BuiltTensor& written : good.builder.tensors) {
            const TensorInfo* info = (*checkpoint)->find(written.name);
            QVERIFY(info != nullptr);
            QCOMPARE(info->shape, written.shape);
        }
        QVERIFY((*checkpoint)->find("no.such.tensor") == nullptr);
    }

    void every_way_to_name_a_checkpoint_leads_to_it()
    {
        const TemporaryFolder folder;
        CheckpointBuilder().write_to(folder);
        std::filesystem::create_directory(folder.file("tiny-bert"));
        for (const char* file : {"config.json", "model.safetensors", "vocab.txt"})
            std::filesystem::rename(folder.file(file), folder.file("tiny-bert/" + std::string(file)));
        const std::string path = folder.file("tiny-bert");
        const auto before = std::filesystem::current_path();
        for (const std::string& location :
             {path, path + "/", path + "/.", path + "/../tiny-bert", path + "/model.safetensors"}) {
            const auto checkpoint = open_checkpoint(location, {});
            QVERIFY2(checkpoint, failure(checkpoint).c_str());
            QCOMPARE((*checkpoint)->display_name(), std::string("tiny-bert"));
        }
        std::filesystem::current_path(path);
        for (const char* location : {".", "./", "model.safetensors", "../tiny-bert"}) {
            const auto checkpoint = open_checkpoint(location, {});
            QVERIFY2(checkpoint, failure(checkpoint).c_str());
            QCOMPARE((*checkpoint)->display_name(), std::string("tiny-bert"));
        }
        std::filesystem::current_path(before);
    }

    void a_weight_file_of_another_name_is_found_when_it_is_the_only_one()
    {
        const GoodFolder good;
        std::filesystem::rename(good.folder.file("model.safetensors"),
                                good.folder.file("weights.safetensors"));
        QVERIFY(open_checkpoint(good.path(), {}));
        std::filesystem::copy(good.folder.file("weights.safetensors"), good.folder.file("other.safetensors"));
        QCOMPARE(refusal(open_checkpoint(good.path(), {}), ErrorCode::not_found,
                         {good.path(), "model.safetensors", "weights.safetensors", "other.safetensors"}),
                 QString());
        // The content counts, not the name.
        std::filesystem::rename(good.folder.file("weights.safetensors"), good.folder.file("weights.bin"));
        QVERIFY(open_checkpoint(good.folder.file("weights.bin"), {}));
    }

    void tensors_are_read_as_they_were_written()
    {
        const GoodFolder good;
        const auto checkpoint = good.open();
        for (const tests::BuiltTensor& written : good.builder.tensors) {
            const auto read = checkpoint->read(written.name);
            QVERIFY2(read, failure(read).c_str());
            QCOMPARE(read->shape(), written.shape);
            QCOMPARE(values_of(*read), written.values);
        }
        QCOMPARE(refusal(checkpoint->read("no.such.tensor"), ErrorCode::not_found,
                         {"no.such.tensor", "model.safetensors"}),
                 QString());
    }

    void rows_are_read_in_the_order_asked_for()
    {
        const GoodFolder good;
        const auto checkpoint = good.open();
        const auto& table = good.builder.tensor(tests::word_table_name);
        const std::vector<std::int64_t> rows{5, 6, 7, 3, 39, 0, 0, 1, 38, 39};
        const auto read = checkpoint->read_rows(table.name, rows);
        QVERIFY2(read, failure(read).c_str());
        QCOMPARE(read->shape(), (Shape{10, 16}));
        for (std::size_t n = 0; n < rows.size(); ++n)
            for (std::size_t f = 0; f < 16; ++f)
                QCOMPARE(read->values()[n * 16 + f],
                         table.values[static_cast<std::size_t>(rows[n]) * 16 + f]);
        for (const std::int64_t absent : {-1, 40})
            QCOMPARE(refusal(checkpoint->read_rows(table.name, std::vector<std::int64_t>{2, absent}),
                             ErrorCode::invalid_argument,
                             {table.name, "40 rows", "row " + std::to_string(absent)}),
                     QString());
        const auto none = checkpoint->read_rows(table.name, {});
        QVERIFY(none && none->shape() == (Shape{0, 16}));
        // A vector is one row.
        const auto bias = checkpoint->read_rows("embeddings.LayerNorm.bias", std::vector<std::int64_t>{0});
        QVERIFY(bias && bias->shape() == (Shape{1, 16}));
        QCOMPARE(values_of(*bias), values_of(*checkpoint->read("embeddings.LayerNorm.bias")));
        QCOMPARE(refusal(checkpoint->read_rows("embeddings.LayerNorm.bias", rows),
                         ErrorCode::invalid_argument, {"embeddings.LayerNorm.bias", "1 rows", "row 5"}),
                 QString());
        QCOMPARE(
            refusal(checkpoint->read_rows("no.such.tensor", rows), ErrorCode::not_found, {"no.such.tensor"}),
            QString());
    }

    void only_what_is_asked_for_is_read()
    {
        const GoodFolder good;
        const auto checkpoint = good.open();
        const std::uint64_t header = checkpoint->bytes_read();
        QVERIFY(header < 8000);
        const auto rows = checkpoint->read_rows(tests::word_table_name, std::vector<std::int64_t>{4, 5, 30});
        QVERIFY(rows);
        QCOMPARE(checkpoint->bytes_read() - header, std::uint64_t{3 * 16 * 4});
    }

    void each_type_is_converted()
    {
        for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
            const TemporaryFolder folder;
            tests::TinyBert sizes;
            sizes.exact_values = true;
            CheckpointBuilder builder(sizes);
            builder.set_dtype(dtype);
            builder.write_to(folder);
            const auto checkpoint = *open_checkpoint(folder.path(), {});
            const auto& table = builder.tensor(tests::word_table_name);
            QCOMPARE(checkpoint->find(table.name)->dtype, dtype);
            QCOMPARE(values_of(*checkpoint->read(table.name)), table.values);
            const auto row = checkpoint->read_rows(table.name, std::vector<std::int64_t>{7});
            QCOMPARE(values_of(*row),
                     (std::vector<float>{table.values.begin() + 7 * 16, table.values.begin() + 8 * 16}));
        }
    }

    void missing_parts_are_named()
    {
        QCOMPARE(refusal(open_checkpoint("/no/such/folder", {}), ErrorCode::not_found, {"'/no/such/folder'"}),
                 QString());
        QCOMPARE(refusal(open_checkpoint("", {}), ErrorCode::not_found, {"''"}), QString());
        QCOMPARE(refusal(open_checkpoint("sample:no-such", {}), ErrorCode::not_found, {"no-such", "minilm"}),
                 QString());
        const GoodFolder good;
        std::filesystem::remove(good.folder.file("config.json"));
        for (const std::string& location : {good.path(), good.folder.file("model.safetensors")})
            QCOMPARE(
                refusal(open_checkpoint(location, {}), ErrorCode::not_found, {"config.json", good.path()}),
                QString());
        std::filesystem::remove(good.folder.file("model.safetensors"));
        QCOMPARE(refusal(open_checkpoint(good.path(), {}), ErrorCode::not_found,
                         {"model.safetensors", good.path()}),
                 QString());
    }

    void what_a_file_really_is_gets_said_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QByteArray>("named");
        const auto row = [](const char* name, const std::string& content, const char* named) {
            QTest::newRow(name) << QByteArray::fromStdString(content) << QByteArray(named);
        };
        row("Git LFS pointer",
            "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
                "\nsize 90868376\n",
            "git lfs pull");
        row("web page", "<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>", "a web page");
        row("web page with a mark", "\xEF\xBB\xBF\r\n <html></html>", "a web page");
        row("HDF5", "\x89HDF\r\n\x1a\n" + std::string(100, '\0'), "HDF5");
    }
    void what_a_file_really_is_gets_said()
    {
        QFETCH(const QByteArray, content);
        QFETCH(const QByteArray, named);
        const GoodFolder good;
        good.folder.write("model.safetensors", content.toStdString());
        QCOMPARE(refusal(open_checkpoint(good.path(), {}), ErrorCode::unsupported_format,
                         {"model.safetensors", named.toStdString(), "Safetensors"}),
                 QString());
    }

    void senseless_content_is_refused()
    {
        const GoodFolder good;
        good.folder.write("model.safetensors", "");
        QVERIFY(!open_checkpoint(good.path(), {}));
        const std::string path = good.folder.write("notes.txt", "just a few lines of text");
        QCOMPARE(
            refusal(open_checkpoint(path, {}), ErrorCode::unsupported_format, {"notes.txt", "Safetensors"}),
            QString());
        QCOMPARE(describe_unknown_content(*memory_source("x", {})), std::string("an empty file"));
    }

    void what_is_no_file_is_refused_at_once()
    {
        const GoodFolder good;
        const std::string path = good.folder.file("model.safetensors");
        std::filesystem::remove(path);
        std::filesystem::create_directory(path);
        QCOMPARE(
            refusal(open_checkpoint(good.path(), {}), ErrorCode::unreadable, {"model.safetensors", "folder"}),
            QString());
        std::filesystem::remove(path);
        QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
        for (const std::string& location : {good.path(), path})
            QCOMPARE(refusal(open_checkpoint(location, {}), ErrorCode::unreadable,
                             {"model.safetensors", "regular file"}),
                     QString());
        std::filesystem::remove(path);
        std::filesystem::create_symlink("model.safetensors", path);
        QVERIFY(!open_checkpoint(good.path(), {}));
        QVERIFY(!open_checkpoint(path, {}));
    }

    void a_config_that_is_no_config_is_refused()
    {
        const GoodFolder good;
        for (const char* content : {"", "[1, 2]", "{\"model_type\": ", "\"bert\""}) {
            good.folder.write("config.json", content);
            QCOMPARE(refusal(open_checkpoint(good.path(), {}), ErrorCode::corrupt_file, {"config.json"}),
                     QString());
        }
        good.folder.write("config.json", std::string(17'000'000, ' '));
        QCOMPARE(
            refusal(open_checkpoint(good.path(), {}), ErrorCode::corrupt_file, {"config.json", "16000000"}),
            QString());
        std::filesystem::remove(good.folder.file("config.json"));
        std::filesystem::create_directory(good.folder.file("config.json"));
        QCOMPARE(refusal(open_checkpoint(good.path(), {}), ErrorCode::unreadable, {"config.json", "folder"}),
                 QString());
    }

    void a_key_given_twice_is_a_warning()
    {
        const GoodFolder good;
        std::string text = good.builder.config.dump();
        text.insert(1, "\"num_attention_heads\": 4, ");
        good.folder.write("config.json", text);
        QVERIFY(tests::any_holds(good.open()->warnings(), {"config.json", "num_attention_heads", "twice"}));
    }

    void a_file_that_changes_while_it_is_open_is_an_error()
    {
        const GoodFolder good;
        const std::string path = good.folder.file("model.safetensors");
        std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() -
                                                   std::chrono::hours(1));
        const auto checkpoint = good.open();
        QVERIFY(checkpoint->read(tests::word_table_name));
        const std::string whole = tests::safetensors_bytes(good.builder.tensors);
        good.folder.write("model.safetensors", whole);
        QCOMPARE(refusal(checkpoint->read(tests::word_table_name), ErrorCode::unreadable,
                         {"model.safetensors", "changed"}),
                 QString());
        std::filesystem::resize_file(path, whole.size() / 2);
        const auto& last = good.builder.tensors.back().name;
        QCOMPARE(
            refusal(checkpoint->read(last), ErrorCode::unreadable, {"model.safetensors", "ends at byte"}),
            QString());
    }

    void opening_can_be_stopped()
    {
        const GoodFolder good;
        std::stop_source stop;
        stop.request_stop();
        QCOMPARE(refusal(open_checkpoint(good.path(), {stop.get_token(), {}}), ErrorCode::cancelled, {}),
                 QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestCheckpoint)
#include "tst_checkpoint.moc"
