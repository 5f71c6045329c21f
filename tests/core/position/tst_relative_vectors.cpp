// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <cmath>

#include "core/position/grid_bias.h"
#include "core/position/relative_vectors.h"

using namespace posiscope::core;

class TestRelativeVectors : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rows_are_clipped_at_the_table()
    {
        RelativeVectors scheme; // Shaw et al. 2018 with a clipping distance of 2
        scheme.rows = 5;
        scheme.centre = 2;
        QCOMPARE(*relative_vector_row(-9, scheme), 0);
        QCOMPARE(*relative_vector_row(-2, scheme), 0);
        QCOMPARE(*relative_vector_row(0, scheme), 2);
        QCOMPARE(*relative_vector_row(1, scheme), 3);
        QCOMPARE(*relative_vector_row(9, scheme), 4);
    }

    void rows_may_count_backwards()
    {
        RelativeVectors scheme; // DeBERTa: [-4, 4) of i - j
        scheme.rows = 8;
        scheme.centre = 4;
        scheme.counts_back = true;
        QCOMPARE(*relative_vector_row(-9, scheme), 7);
        QCOMPARE(*relative_vector_row(1, scheme), 3);
        QCOMPARE(*relative_vector_row(9, scheme), 0);
    }

    void offsets_outside_may_have_no_vector()
    {
        RelativeVectors scheme;
        scheme.rows = 3;
        scheme.centre = 1;
        scheme.zero_outside = true;
        scheme.features = 2;
        QVERIFY(!relative_vector_row(2, scheme));
        QVERIFY(!relative_vector_row(-2, scheme));
        const HostTensor table({3, 2}, {1, 2, 3, 4, 5, 6});
        const HostTensor vectors = vectors_of_offsets(table, scheme, 3);
        QCOMPARE(vectors.shape(), (Shape{5, 2}));
        const std::vector<float> expected{0, 0, 1, 2, 3, 4, 5, 6, 0, 0};
        QVERIFY(std::equal(expected.begin(), expected.end(), vectors.data()));
    }

    void sinusoids_need_no_table()
    {
        RelativeVectors scheme; // Transformer-XL: [sin | cos] of i - j
        scheme.counts_back = true;
        scheme.computed = true;
        scheme.features = 2;
        const HostTensor vectors = vectors_of_offsets({}, scheme, 3);
        for (int o = 0; o < 5; ++o) {
            QVERIFY(std::abs(vectors.data()[2 * o] - std::sin(2.0f - static_cast<float>(o))) < 1e-6f);
            QVERIFY(std::abs(vectors.data()[2 * o + 1] - std::cos(2.0f - static_cast<float>(o))) < 1e-6f);
        }
    }

    void logarithmic_buckets_data()
    {
        QTest::addColumn<int>("distance");
        QTest::addColumn<int>("bucket");
        // ceil(log(r / 4) / log(63 / 4) * 3) + 4 of 8 buckets up to 64
        for (const auto& [distance, bucket] : {std::pair(0, 0),
                                              {1, 1},
                                              {4, 4},
                                              {5, 5},
                                              {10, 5},
                                              {11, 6},
                                              {25, 6},
                                              {26, 7},
                                              {63, 7},
                                              {64, 8},
                                              {-4, -4},
                                              {-5, -5},
                                              {-26, -7}})
            QTest::addRow("%d", distance) << distance << bucket;
    }
    void logarithmic_buckets()
    {
        QFETCH(int, distance);
        QFETCH(int, bucket);
        QCOMPARE(log_bucket(distance, 8, 64), bucket);
    }

    void grid_rows_count_both_directions()
    {
        const GridBias scheme{2, 3, false};
        QCOMPARE(scheme.table_rows(), 15);
        QCOMPARE(grid_bias_row(0, 0, scheme), 7);  // no offset: the middle of 3 x 5
        QCOMPARE(grid_bias_row(5, 0, scheme), 14); // one row down, two columns right
        QCOMPARE(grid_bias_row(0, 5, scheme), 0);
        QCOMPARE(grid_bias_row(0, 3, scheme), 2); // the key one row below
        QCOMPARE(grid_bias_row(0, 1, scheme), 6); // the key one column to the right
    }

    void the_prefix_has_three_rows_of_its_own()
    {
        const GridBias scheme{2, 2, true};
        QCOMPARE(scheme.table_rows(), 12);
        QCOMPARE(grid_bias_row(0, 3, scheme), 9);
        QCOMPARE(grid_bias_row(3, 0, scheme), 10);
        QCOMPARE(grid_bias_row(0, 0, scheme), 11);
        QCOMPARE(grid_bias_row(1, 1, scheme), 4);
    }

    void a_shifted_window_hides_patches_that_lie_apart()
    {
        const GridBias scheme{2, 2, false}; // windows of 2 x 2 on a grid of 4 x 4, shifted by one
        for (const std::int64_t open : {0}) {
            const HostTensor mask = shifted_window_mask(scheme, 4, 4, 1, open);
            QVERIFY(
                std::all_of(mask.values().begin(), mask.values().end(), [](float v) { return v == 0.0f; }));
        }
        const HostTensor right =
            shifted_window_mask(scheme, 4, 4, 1, 1); // columns 2 and 3 (from the other end)
        const std::vector<float> expected{0, -100, 0, -100, -100, 0, -100, 0,
                                          0, -100, 0, -100, -100, 0, -100, 0};
        QVERIFY(std::equal(expected.begin(), expected.end(), right.data()));
        const HostTensor last = shifted_window_mask(scheme, 4, 4, 1, 3); // four regions
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) QCOMPARE(last.data()[4 * i + j], i == j ? 0.0f : -100.0f);
    }
};

QTEST_APPLESS_MAIN(TestRelativeVectors)
#include "tst_relative_vectors.moc"
