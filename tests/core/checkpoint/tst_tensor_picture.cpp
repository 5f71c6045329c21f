// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

#include <QTest>

#include "core/checkpoint/tensor_picture.h"
#include "core/checkpoint/tensor_statistics.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::failure;
using tests::refusal;
using tests::TemporaryFolder;

/// A tensor with the values 0, 1, 2, ...
tests::BuiltTensor counting(const std::string& name, Shape shape)
{
    tests::BuiltTensor tensor{name, std::move(shape), {}};
    std::size_t size = 1;
    for (const std::int64_t axis : tensor.shape) size *= static_cast<std::size_t>(axis);
    tensor.values.resize(size);
    std::iota(tensor.values.begin(), tensor.values.end(), 0.0f);
    return tensor;
}

struct Opened {
    TemporaryFolder folder;
    std::shared_ptr<const Checkpoint> checkpoint;

    explicit Opened(const std::vector<tests::BuiltTensor>& tensors)
    {
        folder.write("config.json", "{}");
        folder.write("model.safetensors", tests::safetensors_bytes(tensors));
        auto opened = open_checkpoint(folder.path(), {});
        if (opened) checkpoint = *std::move(opened);
    }
};

PictureOptions at_most(std::int64_t rows, std::int64_t columns)
{
    PictureOptions options;
    options.most_rows = rows;
    options.most_columns = columns;
    return options;
}

} // namespace

class TestTensorPicture : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void a_small_matrix_is_its_own_picture()
    {
        const Opened opened({counting("m", {2, 3})});
        const auto picture = tensor_picture(*opened.checkpoint, "m", {}, {});
        QVERIFY2(picture, failure(picture).c_str());
        QCOMPARE(picture->plan.rows, std::int64_t{2});
        QCOMPARE(picture->plan.columns, std::int64_t{3});
        QCOMPARE(picture->values, (std::vector<double>{0, 1, 2, 3, 4, 5}));
        QCOMPARE(picture->plan.bytes, std::uint64_t{24});
    }

    void cells_are_means_and_the_last_ones_may_stand_for_fewer()
    {
        const Opened opened({counting("m", {5, 3})});
        const auto picture = tensor_picture(*opened.checkpoint, "m", at_most(2, 2), {});
        QVERIFY2(picture, failure(picture).c_str());
        QCOMPARE(picture->plan.row_step, std::int64_t{3});
        QCOMPARE(picture->plan.column_step, std::int64_t{2});
        QVERIFY(!picture->plan.samples_rows);
        // Rows 0-2 and 3-4, columns 0-1 and 2 of 0 1 2 / 3 4 5 / 6 7 8 / 9 10 11 / 12 13 14.
        QCOMPARE(picture->values, (std::vector<double>{3.5, 5.0, 11.0, 12.5}));
    }

    void of_a_large_matrix_single_rows_are_read()
    {
        const Opened opened({counting("m", {10, 4})});
        PictureOptions options = at_most(4, 4);
        options.most_values = 12; // three rows
        const std::uint64_t before = opened.checkpoint->bytes_read();
        const auto picture = tensor_picture(*opened.checkpoint, "m", options, {});
        QVERIFY2(picture, failure(picture).c_str());
        QVERIFY(picture->plan.samples_rows);
        QCOMPARE(picture->plan.row_step, std::int64_t{4});
        QCOMPARE(picture->values, (std::vector<double>{0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35}));
        QCOMPARE(opened.checkpoint->bytes_read() - before, std::uint64_t{12 * 4});
        QCOMPARE(picture->plan.bytes, std::uint64_t{12 * 4});
    }

    void tensors_of_more_axes_are_shown_matrix_by_matrix()
    {
        const Opened opened({counting("t", {2, 3, 2, 2})});
        QCOMPARE(matrix_shape(*opened.checkpoint->find("t")).slices, std::int64_t{6});
        PictureOptions options;
        options.slice = 4;
        const std::uint64_t before = opened.checkpoint->bytes_read();
        const auto picture = tensor_picture(*opened.checkpoint, "t", options, {});
        QVERIFY2(picture, failure(picture).c_str());
        QCOMPARE(picture->values, (std::vector<double>{16, 17, 18, 19}));
        QCOMPARE(opened.checkpoint->bytes_read() - before, std::uint64_t{16});
        options.slice = 6;
        QCOMPARE(refusal(tensor_picture(*opened.checkpoint, "t", options, {}), ErrorCode::invalid_argument,
                         {"'t'", "6 matrices"}),
                 QString());
    }

    void vectors_are_one_row_and_scalars_one_cell()
    {
        const Opened opened({counting("v", {5}), counting("s", {})});
        const auto vector = tensor_picture(*opened.checkpoint, "v", at_most(1024, 3), {});
        QVERIFY2(vector, failure(vector).c_str());
        QCOMPARE(vector->plan.rows, std::int64_t{1});
        QCOMPARE(vector->values, (std::vector<double>{0.5, 2.5, 4.0}));
        const auto scalar = tensor_picture(*opened.checkpoint, "s", {}, {});
        QVERIFY2(scalar, failure(scalar).c_str());
        QCOMPARE(scalar->values, (std::vector<double>{0.0}));
    }

    void what_is_not_finite_is_seen()
    {
        tests::BuiltTensor tensor = counting("m", {2, 4});
        tensor.values[1] = std::numeric_limits<float>::quiet_NaN();
        tensor.values[6] = std::numeric_limits<float>::infinity();
        const Opened opened({tensor});
        const auto picture = tensor_picture(*opened.checkpoint, "m", at_most(2, 2), {});
        QVERIFY2(picture, failure(picture).c_str());
        QVERIFY(std::isnan(picture->values[0]));
        QCOMPARE(picture->values[1], 2.5);
        QCOMPARE(picture->values[2], 4.5);
        QVERIFY(std::isinf(picture->values[3]));
    }

    void what_has_no_picture_is_refused()
    {
        const Opened opened({counting("m", {2, 8}), counting("none", {0, 8})});
        QCOMPARE(refusal(plan_picture(*opened.checkpoint, "x", {}), ErrorCode::not_found, {"'x'"}),
                 QString());
        QCOMPARE(refusal(plan_picture(*opened.checkpoint, "none", {}), ErrorCode::invalid_argument,
                         {"'none'", "[0, 8]"}),
                 QString());
        PictureOptions options;
        options.most_values = 7;
        QCOMPARE(refusal(plan_picture(*opened.checkpoint, "m", options), ErrorCode::invalid_argument,
                         {"'m'", "rows of 8", "7"}),
                 QString());
    }

    /// 5 GB of zeros that take no room on the disk.
    void a_table_of_gigabytes_costs_a_few_rows()
    {
        const TemporaryFolder folder;
        folder.write("config.json", "{}");
        constexpr std::uint64_t rows = 250'000, columns = 5'000, size = rows * columns * 4;
        const std::string start =
            tests::safetensors_bytes(R"({"table":{"dtype":"F32","shape":[250000,5000],"data_offsets":[0,)" +
                                         std::to_string(size) + "]}}",
                                     {});
        const std::string path = folder.write("model.safetensors", start);
        std::filesystem::resize_file(path, start.size() + size);
        const auto opened = open_checkpoint(folder.path(), {});
        QVERIFY2(opened, failure(opened).c_str());
        const auto picture = tensor_picture(**opened, "table", {}, {});
        QVERIFY2(picture, failure(picture).c_str());
        QVERIFY(picture->plan.samples_rows);
        QVERIFY(picture->plan.rows <= 1024 && picture->plan.rows >= 1000);
        QCOMPARE(picture->plan.column_step, std::int64_t{5});
        QVERIFY((*opened)->bytes_read() < 64'000'000);
        // The whole is counted part by part, and can be left in the middle.
        std::stop_source stop;
        RunContext ctx;
        ctx.stop = stop.get_token();
        ctx.progress = [&](const Progress& now) {
            if (now.done > 0) stop.request_stop();
        };
        QCOMPARE(refusal(tensor_statistics(**opened, "table", ctx), ErrorCode::cancelled, {}), QString());
        QVERIFY((*opened)->bytes_read() < 200'000'000);
    }

    void it_stops_at_the_first_progress()
    {
        const Opened opened({counting("m", {2, 1'100'000})});
        std::stop_source stop;
        int calls = 0;
        RunContext ctx;
        ctx.stop = stop.get_token();
        ctx.progress = [&](const Progress&) {
            ++calls;
            stop.request_stop();
        };
        QCOMPARE(refusal(tensor_picture(*opened.checkpoint, "m", {}, ctx), ErrorCode::cancelled, {}),
                 QString());
        QCOMPARE(calls, 1);
    }

    void statistics_of_many_axes_are_those_of_all_values()
    {
        const Opened opened({counting("t", {2, 3, 700'000})});
        const auto found = tensor_statistics(*opened.checkpoint, "t", {});
        QVERIFY2(found, failure(found).c_str());
        QCOMPARE(found->count, std::uint64_t{4'200'000});
        QCOMPARE(found->least, 0.0);
        QCOMPARE(found->most, 4'199'999.0);
        QVERIFY(std::abs(found->mean - 2'099'999.5) < 1e-3);
        QVERIFY(std::abs(found->standard_deviation / std::sqrt((4.2e6 * 4.2e6 - 1.0) / 12.0) - 1.0) < 1e-9);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestTensorPicture)
#include "tst_tensor_picture.moc"
