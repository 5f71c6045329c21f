// SPDX-License-Identifier: GPL-3.0-or-later
// Principal components, neighbours in the plane, trustworthiness and the tree of points, by hand and by property.
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <QTest>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/projection/pca.h"
#include "core/projection/point_map.h"
#include "core/projection/point_tree.h"
#include "core/tensor/host_tensor.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

bool close(double found, double wanted, double within)
{
    return std::abs(found - wanted) <= within;
}

} // namespace

class TestPointMap : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void pca_by_hand()
    {
        // A cross: 3 along the first feature, 1 along the second, around (5, 7).
        const HostTensor vectors({4, 2}, {8, 7, 2, 7, 5, 8, 5, 6});
        const auto map = pca(vectors.matrix(), {});
        QVERIFY(map);
        const std::vector<double> x{3, -3, 0, 0}, y{0, 0, 1, -1};
        for (std::size_t i = 0; i < 4; ++i) {
            QVERIFY(close(map->points.x[i], x[i], 1e-4));
            QVERIFY(close(map->points.y[i], y[i], 1e-4));
        }
        QVERIFY(close(map->variance_share[0], 0.9, 1e-5));
        QVERIFY(close(map->variance_share[1], 0.1, 1e-5));
    }

    void pca_keeps_distances_in_a_plane()
    {
        Random random(4);
        std::vector<double> u(30), v(30);
        HostTensor vectors({30, 11});
        std::vector<double> a(11), b(11);
        for (double& value : a) value = random.normal();
        for (double& value : b) value = random.normal();
        for (std::size_t i = 0; i < 30; ++i) {
            u[i] = random.normal();
            v[i] = random.normal();
            for (std::size_t f = 0; f < 11; ++f)
                vectors.data()[i * 11 + f] = static_cast<float>(u[i] * a[f] + v[i] * b[f]);
        }
        const auto map = pca(vectors.matrix(), {});
        QVERIFY(map);
        QVERIFY(close(map->variance_share[0] + map->variance_share[1], 1.0, 1e-5));
        for (std::size_t i = 1; i < 30; ++i) {
            double squares = 0.0;
            for (std::size_t f = 0; f < 11; ++f) {
                const double step = (u[i] - u[0]) * a[f] + (v[i] - v[0]) * b[f];
                squares += step * step;
            }
            const double found =
                std::hypot(map->points.x[i] - map->points.x[0], map->points.y[i] - map->points.y[0]);
            QVERIFY(close(found, std::sqrt(squares), 1e-4));
        }
    }

    void pca_of_a_line_has_no_second_axis()
    {
        const HostTensor vectors({3, 2}, {0, 0, 1, 2, 2, 4});
        const auto map = pca(vectors.matrix(), {});
        QVERIFY(map);
        QVERIFY(close(std::abs(map->points.x[2] - map->points.x[0]), std::sqrt(20.0), 1e-5));
        for (const double y : map->points.y) QVERIFY(close(y, 0.0, 1e-5));
    }

    void pca_has_the_same_bits_on_any_number_of_threads()
    {
        Random random(9);
        HostTensor vectors({500, 40});
        for (float& value : vectors.values()) value = static_cast<float>(random.normal());
        set_thread_count(1);
        const auto one = pca(vectors.matrix(), {});
        set_thread_count(4);
        const auto four = pca(vectors.matrix(), {});
        set_thread_count(default_thread_count());
        QVERIFY(one && four);
        QVERIFY(one->points.x == four->points.x && one->points.y == four->points.y);
    }

    void pca_refuses()
    {
        QCOMPARE(tests::refusal(pca(HostTensor({1, 3}).matrix(), {}), ErrorCode::invalid_argument,
                                {"1 vector", "at least 2"}),
                 QString());
        QCOMPARE(tests::refusal(pca(HostTensor({3, 3}).matrix(), {}), ErrorCode::invalid_argument, {"equal"}),
                 QString());
        HostTensor broken({2, 2}, {0, 1, 2, std::nanf("")});
        QCOMPARE(tests::refusal(pca(broken.matrix(), {}), ErrorCode::numeric_failure, {"row 1"}), QString());
    }

    void pca_can_be_stopped()
    {
        std::stop_source source;
        RunContext ctx;
        ctx.stop = source.get_token();
        ctx.progress = [&](const Progress&) { source.request_stop(); };
        Random random(9);
        HostTensor vectors({200, 100});
        for (float& value : vectors.values()) value = static_cast<float>(random.normal());
        QCOMPARE(tests::refusal(pca(vectors.matrix(), ctx), ErrorCode::cancelled, {}), QString());
    }

    void neighbours_by_hand()
    {
        const PointMap2D map{{0, 1, 3, 3}, {0, 0, 0, 0}};
        const auto nearest = nearest_points(map, 2);
        QCOMPARE(nearest[0], (std::vector<std::size_t>{1, 2})); // 2 and 3 are equally near: the lower index
        QCOMPARE(nearest[1], (std::vector<std::size_t>{0, 2}));
        QCOMPARE(nearest[2], (std::vector<std::size_t>{3, 1}));
        QCOMPARE(nearest_points(map, 9)[0].size(), std::size_t{3});
    }

    void trustworthiness_by_hand()
    {
        // On a line 0, 1, 2, 4, 8; in the plane the last and the second have changed places. k = 1: the nearest in the
        // plane are, of 0: 4 (rank 4, excess 3), of 1: 3 (rank 3, excess 2), of 2: 4 (rank 4, excess 3), of 3: 2 (rank
        // 1), of 4: 0 (as near as 2, but the lower index; rank 4, excess 3).
        const HostTensor line({5, 1}, {0, 1, 2, 4, 8});
        const PointMap2D swapped{{0, 8, 2, 4, 1}, {0, 0, 0, 0, 0}};
        const double wanted = 1.0 - 2.0 / (5.0 * 1.0 * (10.0 - 3.0 - 1.0)) * (3 + 2 + 3 + 0 + 3);
        QVERIFY(close(trustworthiness(line.matrix(), swapped, 1), wanted, 1e-12));
        QCOMPARE(trustworthiness(line.matrix(), PointMap2D{{0, 1, 2, 4, 8}, {0, 0, 0, 0, 0}}, 2), 1.0);
    }

    void tree_holds_every_point_once()
    {
        for (const std::size_t n : {1U, 5U, 64U, 65U, 3000U}) {
            Random random(n);
            std::vector<double> xs(n), ys(n);
            for (std::size_t i = 0; i < n; ++i) {
                xs[i] = i % 7 == 0 ? 0.5 : random.normal(); // copies
                ys[i] = i % 7 == 0 ? 0.5 : random.normal();
            }
            PointTree tree;
            tree.build(xs, ys);
            std::multiset<std::uint32_t> seen;
            PointTree::Sources sources;
            for (std::size_t g = 0; g < tree.group_count(); ++g) {
                const auto group = tree.group(g);
                seen.insert(group.begin(), group.end());
                tree.collect(g, 0.5, sources);
                const float mass = std::accumulate(sources.masses.begin(), sources.masses.end(), 0.0F);
                QCOMPARE(mass, static_cast<float>(n));
                tree.collect(g, 0.0, sources);
                QCOMPARE(sources.xs.size(), n);
            }
            QCOMPARE(seen.size(), n);
            QCOMPARE(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), n);
        }
    }

    void tree_repels_as_all_pairs_do()
    {
        constexpr std::size_t n = 3000;
        Random random(2);
        std::vector<double> xs(n), ys(n);
        std::vector<float> fxs(n), fys(n);
        for (std::size_t i = 0; i < n; ++i) {
            fxs[i] = static_cast<float>(xs[i] = 30.0 * random.normal());
            fys[i] = static_cast<float>(ys[i] = 30.0 * random.normal());
        }
        PointTree tree;
        tree.build(xs, ys);
        PointTree::Sources sources;
        double squares = 0.0, faults = 0.0;
        std::size_t most = 0;
        for (std::size_t g = 0; g < tree.group_count(); ++g) {
            tree.collect(g, 0.5, sources);
            most = std::max(most, sources.xs.size());
            for (const std::uint32_t i : tree.group(g)) {
                const PointForces all =
                    kernels().points->repulsion(fxs[i], fys[i], fxs.data(), fys.data(), n);
                const PointForces few = kernels().points->repulsion_of_masses(
                    fxs[i], fys[i], sources.xs.data(), sources.ys.data(), sources.masses.data(),
                    sources.xs.size());
                squares += std::pow(static_cast<double>(all.repulsion_x), 2) +
                           std::pow(static_cast<double>(all.repulsion_y), 2);
                faults += std::pow(static_cast<double>(all.repulsion_x - few.repulsion_x), 2) +
                          std::pow(static_cast<double>(all.repulsion_y - few.repulsion_y), 2);
                QVERIFY(close(static_cast<double>(few.weight), static_cast<double>(all.weight),
                              0.02 * static_cast<double>(all.weight)));
            }
        }
        QVERIFY2(std::sqrt(faults / squares) < 0.01,
                 qPrintable(QString::number(std::sqrt(faults / squares))));
        QVERIFY(most < n / 2);
    }

    void every_kernel_set_agrees_with_plain_sums()
    {
        Random random(6);
        for (const KernelSet* set : available_kernels())
            for (const std::size_t n : {1U, 3U, 4U, 17U, 100U}) {
                std::vector<float> xs(n), ys(n), p(n), masses(n), rows(n * 13), distances(n), powers(n);
                std::vector<std::uint32_t> neighbours(n);
                for (std::size_t j = 0; j < n; ++j) {
                    xs[j] = static_cast<float>(random.normal());
                    ys[j] = static_cast<float>(random.normal());
                    p[j] = static_cast<float>(random.uniform());
                    masses[j] = static_cast<float>(1 + random.below(5));
                    neighbours[j] = static_cast<std::uint32_t>(n - 1 - j);
                }
                for (float& value : rows) value = static_cast<float>(random.normal());
                double ax = 0, rx = 0, w = 0, mrx = 0, mw = 0, sax = 0;
                for (std::size_t j = 0; j < n; ++j) {
                    const double dx = 0.3 - static_cast<double>(xs[j]),
                                 dy = -0.2 - static_cast<double>(ys[j]);
                    const double weight = 1.0 / (1.0 + dx * dx + dy * dy);
                    ax += static_cast<double>(p[j]) * weight * dx;
                    sax += static_cast<double>(p[n - 1 - j]) * weight * dx;
                    rx += weight * weight * dx;
                    w += weight;
                    mrx += static_cast<double>(masses[j]) * weight * weight * dx;
                    mw += static_cast<double>(masses[j]) * weight;
                }
                const PointKernels& loops = *set->points;
                const auto near = [&](float found, double wanted) {
                    return close(static_cast<double>(found), wanted, 2e-6 * static_cast<double>(n) + 1e-6);
                };
                const PointForces dense = loops.dense_forces(0.3F, -0.2F, p.data(), xs.data(), ys.data(), n);
                QVERIFY(near(dense.attraction_x, ax) && near(dense.repulsion_x, rx) && near(dense.weight, w));
                const PointForces push = loops.repulsion(0.3F, -0.2F, xs.data(), ys.data(), n);
                QVERIFY(near(push.repulsion_x, rx) && near(push.weight, w));
                const PointForces heavy =
                    loops.repulsion_of_masses(0.3F, -0.2F, xs.data(), ys.data(), masses.data(), n);
                QVERIFY(near(heavy.repulsion_x, mrx) && near(heavy.weight, mw));
                const PointForces pull = loops.sparse_attraction(0.3F, -0.2F, p.data(), neighbours.data(), n,
                                                                 xs.data(), ys.data());
                QVERIFY(near(pull.attraction_x, sax));
                loops.squared_distances(rows.data(), rows.data(), 13, n, 13, distances.data());
                QCOMPARE(distances[0], 0.0F);
                const GaussianSums sums = loops.gaussian(distances.data(), 0.1F, n, powers.data());
                double total = 0.0, moment = 0.0;
                for (std::size_t j = 0; j < n; ++j) {
                    double squares = 0.0;
                    for (std::size_t f = 0; f < 13; ++f)
                        squares +=
                            std::pow(static_cast<double>(rows[f]) - static_cast<double>(rows[j * 13 + f]), 2);
                    QVERIFY(close(static_cast<double>(distances[j]), squares, 1e-5 * squares));
                    total += std::exp(-0.1 * squares);
                    moment += squares * std::exp(-0.1 * squares);
                }
                QVERIFY(close(static_cast<double>(sums.weight), total, 1e-5 * total));
                QVERIFY(close(static_cast<double>(sums.moment), moment, 1e-4 * std::max(1.0, moment)));
            }
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestPointMap)
#include "tst_point_map.moc"
