// SPDX-License-Identifier: GPL-3.0-or-later
// t-SNE: by hand and by property, on the cases of other tools' bug reports, and against scikit-learn's divergences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QIODevice>
#include <QTest>

#include "core/base/random.h"
#include "core/checkpoint/checkpoint.h"
#include "core/kernels/thread_pool.h"
#include "core/projection/tsne.h"
#include "core/projection/tsne_affinities.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

HostTensor random_vectors(std::int64_t n, std::int64_t d, std::uint64_t seed)
{
    Random random(seed);
    HostTensor vectors({n, d});
    for (float& value : vectors.values()) value = static_cast<float>(random.normal());
    return vectors;
}

/// Position vectors as learned ones are: each a small step from the one before.
HostTensor walk(std::int64_t n, std::int64_t d)
{
    HostTensor vectors = random_vectors(n, d, 1);
    for (std::int64_t i = d; i < n * d; ++i) vectors.data()[i] += vectors.data()[i - d];
    return vectors;
}

double distance(const PointMap2D& map, std::size_t a, std::size_t b)
{
    return std::hypot(map.x[a] - map.x[b], map.y[a] - map.y[b]);
}

bool same_bits(const PointMap2D& a, const PointMap2D& b)
{
    return a.x == b.x && a.y == b.y;
}

bool all_finite(const PointMap2D& map)
{
    const auto finite = [](double value) { return std::isfinite(value); };
    return std::all_of(map.x.begin(), map.x.end(), finite) && std::all_of(map.y.begin(), map.y.end(), finite);
}

} // namespace

class TestTsne : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void affinities_have_the_perplexity()
    {
        const HostTensor vectors = random_vectors(60, 5, 3);
        const auto found = find_affinities(vectors.matrix(), 12.0, {});
        QVERIFY(found);
        double total = 0.0;
        for (std::size_t i = 0; i < 60; ++i) {
            double sum = 0.0, entropy = 0.0;
            for (std::size_t j = 0; j < 60; ++j) {
                total += static_cast<double>(found->dense[i * 60 + j]);
                QCOMPARE(found->dense[i * 60 + j], found->dense[j * 60 + i]);
                if (j != i)
                    sum += std::exp(-found->precisions[i] *
                                    static_cast<double>(found->squared_distances[i * 60 + j]));
            }
            for (std::size_t j = 0; j < 60; ++j) {
                if (j == i) continue;
                const double p = std::exp(-found->precisions[i] *
                                          static_cast<double>(found->squared_distances[i * 60 + j])) /
                                 sum;
                entropy -= p * std::log(p);
            }
            QVERIFY2(std::abs(std::exp(entropy) - 12.0) < 1e-3,
                     qPrintable(QString::number(std::exp(entropy))));
            QCOMPARE(found->dense[i * 61], 0.0F);
        }
        QVERIFY(std::abs(total - 1.0) < 1e-5);
    }

    void affinities_of_many_vectors_are_symmetric_lists()
    {
        const HostTensor vectors = walk(1100, 8);
        const auto found = find_affinities(vectors.matrix(), 10.0, {});
        QVERIFY(found);
        QVERIFY(found->dense.empty());
        QCOMPARE(found->first.size(), std::size_t{1101});
        double total = 0.0;
        for (std::size_t i = 0; i < 1100; ++i) {
            const auto begin = found->neighbours.begin() + static_cast<std::ptrdiff_t>(found->first[i]);
            const auto end = found->neighbours.begin() + static_cast<std::ptrdiff_t>(found->first[i + 1]);
            QVERIFY(end - begin >= 30);
            QVERIFY(std::is_sorted(begin, end));
            for (auto at = begin; at != end; ++at) {
                QVERIFY(*at != i);
                const float value = found->values[static_cast<std::size_t>(at - found->neighbours.begin())];
                total += static_cast<double>(value);
                const auto back = std::lower_bound(
                    found->neighbours.begin() + static_cast<std::ptrdiff_t>(found->first[*at]),
                    found->neighbours.begin() + static_cast<std::ptrdiff_t>(found->first[*at + 1]),
                    static_cast<std::uint32_t>(i));
                QCOMPARE(*back, static_cast<std::uint32_t>(i));
                QCOMPARE(found->values[static_cast<std::size_t>(back - found->neighbours.begin())], value);
            }
        }
        QVERIFY(std::abs(total - 1.0) < 1e-5);
    }

    void divergence_by_hand()
    {
        // Four corners of a square at distance 1: with p = q the divergence is 0; with all points in one place every
        // q is 1/12, so it is log(12) less the entropy of p.
        const HostTensor corners({4, 2}, {0, 0, 1, 0, 1, 1, 0, 1});
        const auto found = find_affinities(corners.matrix(), 1.0, {});
        QVERIFY(found);
        double entropy = 0.0;
        for (const float p : found->dense)
            if (p > 1e-11F) entropy -= static_cast<double>(p) * std::log(static_cast<double>(p));
        const std::vector<double> zeros(4, 0.0);
        QVERIFY(std::abs(divergence(*found, zeros, zeros) - (std::log(12.0) - entropy)) < 1e-5);
    }

    void keeps_groups_apart()
    {
        HostTensor vectors = random_vectors(90, 20, 5);
        for (std::int64_t i = 0; i < 90; ++i) vectors.data()[i * 20 + i / 30] += 40.0F;
        const auto map = tsne(vectors.matrix(), {}, {});
        QVERIFY(map);
        const auto nearest = nearest_points(map->points, 5);
        for (std::size_t i = 0; i < 90; ++i)
            for (const std::size_t j : nearest[i]) QCOMPARE(j / 30, i / 30);
        QVERIFY(map->divergence >= 0.0);
        double sum = 0.0;
        for (const double x : map->points.x) sum += x;
        QVERIFY(std::abs(sum) < 1e-6);
    }

    void a_tree_agrees_with_all_pairs()
    {
        // The same vectors with a tree that opens every cell and with the usual one end equally good.
        const HostTensor vectors = walk(static_cast<std::int64_t>(most_all_pairs) + 52, 16);
        TsneOptions options;
        options.iterations = 300;
        const auto usual = tsne(vectors.matrix(), options, {});
        options.openness = 0.0;
        const auto exact = tsne(vectors.matrix(), options, {});
        QVERIFY(usual && exact);
        QVERIFY2(std::abs(usual->divergence - exact->divergence) < 0.02 * exact->divergence,
                 qPrintable(QStringLiteral("%1 and %2").arg(usual->divergence).arg(exact->divergence)));
        QVERIFY(!same_bits(usual->points, exact->points));
    }

    // Rtsne 42, openTSNE 180
    void copies_lie_together()
    {
        HostTensor vectors({200, 16});
        const HostTensor centres = random_vectors(4, 16, 7);
        for (std::int64_t i = 0; i < 200; ++i)
            for (std::int64_t f = 0; f < 16; ++f)
                vectors.data()[i * 16 + f] = centres.data()[i / 50 * 16 + f];
        for (const TsneStart start : {TsneStart::pca, TsneStart::random}) {
            TsneOptions options;
            options.start = start;
            const auto map = tsne(vectors.matrix(), options, {});
            QVERIFY(map);
            QVERIFY(all_finite(map->points));
            QVERIFY(map->divergence >= 0.0);
            const auto nearest = nearest_points(map->points, 49);
            for (std::size_t i = 0; i < 200; ++i)
                for (const std::size_t j : nearest[i]) QCOMPARE(j / 50, i / 50);
        }
    }

    // scikit-learn PR 32789
    void equal_vectors_are_refused()
    {
        HostTensor vectors({128, 8});
        std::fill(vectors.values().begin(), vectors.values().end(), 0.25F);
        QCOMPARE(
            tests::refusal(tsne(vectors.matrix(), {}, {}), ErrorCode::invalid_argument, {"128", "equal"}),
            QString());
    }

    // bhtsne 2
    void a_row_that_is_not_finite_is_named()
    {
        for (const float fault :
             {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            HostTensor vectors = random_vectors(20, 4, 1);
            vectors.data()[13 * 4 + 2] = fault;
            QCOMPARE(tests::refusal(tsne(vectors.matrix(), {}, {}), ErrorCode::numeric_failure,
                                    {"row 13", "not finite"}),
                     QString());
        }
    }

    // scikit-learn PR 23471, seurat 1424
    void perplexity_is_capped_data()
    {
        QTest::addColumn<int>("n");
        for (const int n : {1, 2, 3, 4, 5, 16, 90, 91, 128}) QTest::addRow("%d vectors", n) << n;
    }
    void perplexity_is_capped()
    {
        QFETCH(int, n);
        const HostTensor vectors = random_vectors(n, 6, 2);
        TsneOptions options;
        options.perplexity = 30.0;
        const auto map = tsne(vectors.matrix(), options, {});
        if (n < 4) {
            QCOMPARE(tests::refusal(map, ErrorCode::invalid_argument, {std::to_string(n), "at least 4"}),
                     QString());
            return;
        }
        QVERIFY(map);
        QVERIFY(all_finite(map->points));
        QVERIFY(map->divergence >= -1e-9);
        const double most = (n - 1) / 3.0;
        QCOMPARE(map->perplexity, std::min(30.0, most));
        QCOMPARE(map->warnings.empty(), most >= 30.0);
        if (most < 30.0) QVERIFY(tests::any_holds(map->warnings, {"30", std::to_string(n)}));
    }

    // Multicore-TSNE 22, tensorboard 6161
    void same_bits_on_any_number_of_threads_data()
    {
        QTest::addColumn<int>("n");
        QTest::addColumn<bool>("random");
        QTest::addRow("all pairs") << 300 << false;
        QTest::addRow("all pairs, random start") << 300 << true;
        QTest::addRow("lists") << 1200 << false;
        QTest::addRow("tree") << 2200 << false;
    }
    void same_bits_on_any_number_of_threads()
    {
        QFETCH(int, n);
        QFETCH(bool, random);
        const HostTensor vectors = walk(n, 24);
        TsneOptions options;
        options.seed = 42;
        options.iterations = 120;
        options.start = random ? TsneStart::random : TsneStart::pca;
        std::vector<TsneResult> maps;
        for (const std::size_t threads : {1U, 2U, 4U}) {
            set_thread_count(threads);
            auto map = tsne(vectors.matrix(), options, {});
            QVERIFY(map);
            maps.push_back(*std::move(map));
        }
        set_thread_count(default_thread_count());
        QVERIFY(same_bits(maps[0].points, maps[1].points));
        QVERIFY(same_bits(maps[0].points, maps[2].points));
        QCOMPARE(maps[0].divergence, maps[1].divergence);
        QCOMPARE(maps[0].divergence, maps[2].divergence);
        if (!random) return;
        options.seed = 43;
        const auto other = tsne(vectors.matrix(), options, {});
        QVERIFY(other);
        QVERIFY(!same_bits(maps[0].points, other->points));
    }

    void scale_does_not_matter()
    {
        const HostTensor vectors = walk(100, 8);
        const auto wanted = tsne(vectors.matrix(), {}, {});
        QVERIFY(wanted);
        for (const float scale : {1.0F / 1073741824.0F, 1099511627776.0F}) { // powers of two: exact
            HostTensor scaled = vectors;
            for (float& value : scaled.values()) value *= scale;
            const auto map = tsne(scaled.matrix(), {}, {});
            QVERIFY(map);
            QVERIFY(std::abs(map->divergence - wanted->divergence) < 1e-3);
        }
    }

    void vectors_on_a_line_leave_it()
    {
        HostTensor vectors({50, 3});
        for (std::int64_t i = 0; i < 50; ++i) vectors.data()[i * 3] = static_cast<float>(i);
        const auto map = tsne(vectors.matrix(), {}, {});
        QVERIFY(map);
        QVERIFY(all_finite(map->points));
        double height = 0.0;
        for (const double y : map->points.y) height = std::max(height, std::abs(y));
        QVERIFY(height > 0.1);
        QVERIFY(distance(map->points, 0, 1) < distance(map->points, 0, 25));
    }

    void options_out_of_range_are_refused()
    {
        const HostTensor vectors = random_vectors(20, 4, 1);
        for (const double perplexity : {0.5, -3.0, std::numeric_limits<double>::quiet_NaN()}) {
            TsneOptions options;
            options.perplexity = perplexity;
            QCOMPARE(tests::refusal(tsne(vectors.matrix(), options, {}), ErrorCode::invalid_argument,
                                    {"perplexity"}),
                     QString());
        }
        TsneOptions options;
        options.iterations = 0;
        QCOMPARE(
            tests::refusal(tsne(vectors.matrix(), options, {}), ErrorCode::invalid_argument, {"iterations"}),
            QString());
    }

    void can_be_watched()
    {
        const HostTensor vectors = random_vectors(20, 4, 1);
        TsneOptions options;
        options.iterations = 60;
        options.least_gradient_norm = 0.0;
        std::size_t seen = 0;
        double last = 0.0;
        const auto map = tsne(vectors.matrix(), options, {}, [&](const TsneSnapshot& now) {
            QCOMPARE(now.iteration, ++seen);
            QCOMPARE(now.x.size(), std::size_t{20});
            last = now.x[7];
        });
        QVERIFY(map);
        QCOMPARE(seen, std::size_t{60});
        QCOMPARE(map->points.x[7], last);
    }

    void stops_when_the_gradient_is_small()
    {
        const HostTensor vectors = random_vectors(6, 4, 1);
        TsneOptions options;
        options.iterations = 20000;
        options.exaggerated = 100;
        options.least_gradient_norm = 1e-4;
        const auto map = tsne(vectors.matrix(), options, {});
        QVERIFY(map);
        QVERIFY2(map->iterations < 20000, qPrintable(QString::number(map->gradient_norm)));
        QVERIFY(map->gradient_norm < 1e-4);
    }

    void can_be_stopped()
    {
        const HostTensor vectors = random_vectors(40, 4, 1);
        std::stop_source source;
        std::size_t later = 0;
        RunContext ctx;
        ctx.stop = source.get_token();
        ctx.progress = [&](const Progress&) {
            if (source.stop_requested()) ++later;
            source.request_stop();
        };
        QCOMPARE(tests::refusal(tsne(vectors.matrix(), {}, ctx), ErrorCode::cancelled, {}), QString());
        QCOMPARE(later, std::size_t{0});
    }

    // The position tables of two trained models; numbers from scikit-learn's exact method.
    void as_good_as_scikit_learn_data()
    {
        QTest::addColumn<QString>("sample");
        QTest::addColumn<QString>("entry");
        QTest::addRow("MiniLM") << "minilm-l6-first-layer"
                                << "minilm";
        QTest::addRow("MPNet") << "mpnet-base-positions"
                               << "mpnet";
    }
    void as_good_as_scikit_learn()
    {
        QFETCH(QString, sample);
        QFETCH(QString, entry);
        QFile file(QStringLiteral(POSISCOPE_TEST_DATA "/reference/tsne.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonObject wanted = QJsonDocument::fromJson(file.readAll()).object()[entry].toObject();
        const auto checkpoint = open_checkpoint("sample:" + sample.toStdString(), {});
        QVERIFY(checkpoint);
        const auto table = (*checkpoint)->read(wanted["tensor"].toString().toStdString());
        QVERIFY(table);
        TsneOptions options;
        options.perplexity = wanted["perplexity"].toDouble();
        const auto map = tsne(table->matrix(), options, {});
        QVERIFY(map);
        const double most = 1.02 * wanted["exact_kl_sklearn_pca_init"].toDouble();
        QVERIFY2(map->divergence <= most,
                 qPrintable(QStringLiteral("%1, at most %2").arg(map->divergence).arg(most)));
        const double trust = trustworthiness(table->matrix(), map->points, 12);
        const double least = wanted["trustworthiness_12_sklearn_pca"].toDouble() - 0.005;
        QVERIFY2(trust >= least, qPrintable(QStringLiteral("%1, at least %2").arg(trust).arg(least)));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestTsne)
#include "tst_tsne.moc"
