// SPDX-License-Identifier: GPL-3.0-or-later
// Position vectors of every scheme, and what their similarity says, by hand and by property.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include <QTest>

#include "core/base/random.h"
#include "core/kernels/thread_pool.h"
#include "core/metrics/metric_list.h"
#include "core/metrics/position_similarity.h"
#include "core/projection/position_vectors.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

std::shared_ptr<const OpenModel> opened(const std::string& name)
{
    auto model = open_model(name.starts_with("sample:") ? name : POSISCOPE_TEST_DATA "/families/" + name, {});
    return model ? *std::move(model) : nullptr;
}

bool close(double found, double wanted, double within = 1e-9)
{
    return std::abs(found - wanted) <= within;
}

} // namespace

class TestPositionVectors : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void principal_components_are_those_of_the_used_rows()
    {
        // Five rows along (3, 4), and one far off that no position uses.
        PositionVectors vectors;
        vectors.vectors = HostTensor({6, 2}, {0, 0, 3, 4, 6, 8, 9, 12, 12, 16, 1000, -750});
        for (std::int64_t row = 0; row < 6; ++row) {
            vectors.positions.push_back(row < 5 ? row : -1);
            vectors.roles.push_back(row < 5 ? RowRole::used : RowRole::unused);
        }
        const auto map = position_pca(vectors, {});
        QVERIFY(map);
        QCOMPARE(map->points.size(), std::size_t{6});
        QVERIFY(
            close(map->variance_share[0], 1.0, 1e-6)); // with the last row it would be that row's direction
        QVERIFY(close(map->directions[0][0], 0.6, 1e-5) && close(map->directions[0][1], 0.8, 1e-5));
        for (std::size_t row = 0; row < 5; ++row)
            QVERIFY(close(map->points.x[row], 5.0 * (static_cast<double>(row) - 2.0), 1e-4));
        // (1000, -750) is at right angles to the line: 0 along it, but for the line's middle (6, 8).
        QVERIFY(close(map->points.x[5], -10.0, 1e-2));
        QVERIFY(close(std::abs(map->points.y[5]), 1250.0, 1e-2));
        // Without rows that are apart it is the plain map.
        vectors.roles[5] = RowRole::used;
        const auto plain = pca(std::as_const(vectors.vectors).matrix(), {});
        QVERIFY(plain);
        QCOMPARE(position_pca(vectors, {})->points.x, plain->points.x);
    }

    void every_scheme_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("kind");
        for (const char* name : {"bert", "roberta", "gpt2", "opt", "vit", "tupe"})
            QTest::addRow("%s", name) << name << "table";
        for (const char* name : {"marian"}) QTest::addRow("%s", name) << name << "sinusoids";
        for (const char* name : {"nezha", "xlnet", "deberta", "vits-shaw"})
            QTest::addRow("%s", name) << name << "offset_vectors";
        for (const char* name : {"llama", "gptj"}) QTest::addRow("%s", name) << name << "rotary_phases";
        for (const char* name : {"t5", "bloom", "swin"}) QTest::addRow("%s", name) << name << "";
    }
    void every_scheme()
    {
        QFETCH(QString, family);
        QFETCH(QString, kind);
        const auto model = opened(family.toStdString());
        QVERIFY(model);
        const Stack& stack = model->architecture.stacks.front();
        const auto found = read_position_vectors(*model, stack, 40, {});
        QCOMPARE(lack_of_position_vectors(stack).empty(), !kind.isEmpty());
        if (kind.isEmpty()) {
            QCOMPARE(tests::refusal(found, ErrorCode::unsupported_model,
                                    {stack.scheme_label, "no position vectors"}),
                     QString());
            return;
        }
        QVERIFY2(found, tests::failure(found).c_str());
        QCOMPARE(QString::fromStdString(std::string(position_vector_kind_name(found->kind))), kind);
        QCOMPARE(static_cast<std::int64_t>(found->count()), found->vectors.dim(0));
        QCOMPARE(found->roles.size(), found->count());
        QCOMPARE(static_cast<std::size_t>(found->used_vectors().dim(0)), found->used_positions().size());
        if (found->kind == PositionVectorKind::offset_vectors) {
            QCOMPARE(found->positions.front(), -shown_offsets);
            QCOMPARE(found->positions.back(), shown_offsets);
        }
    }

    // fairseq 1187: rows up to the padding token's are no positions.
    void unused_rows_are_set_apart()
    {
        const auto model = opened("sample:mpnet-base-positions");
        QVERIFY(model);
        const auto found = read_position_vectors(*model, model->architecture.stacks.front(), 0, {});
        QVERIFY(found);
        QCOMPARE(found->count(), std::size_t{514});
        QCOMPARE(found->positions[0], std::int64_t{-2});
        QCOMPARE(found->roles[0], RowRole::unused);
        QCOMPARE(found->roles[1], RowRole::unused);
        QCOMPARE(found->positions[2], std::int64_t{0});
        QCOMPARE(found->roles[2], RowRole::used);
        QCOMPARE(found->used_vectors().dim(0), std::int64_t{512});
    }

    void class_token_is_special()
    {
        const auto model = opened("vit");
        QVERIFY(model);
        const auto found = read_position_vectors(*model, model->architecture.stacks.front(), 0, {});
        QVERIFY(found);
        QCOMPARE(found->roles[0], RowRole::special);
        QCOMPARE(found->roles[1], RowRole::used);
        QCOMPARE(found->used_vectors().dim(0), found->grid_rows * found->grid_columns);
    }

    void similarity_by_hand()
    {
        const HostTensor vectors({3, 2}, {3, 4, -4, 3, 0, 0});
        SimilarityOptions options;
        auto found = position_similarity(vectors.matrix(), options, {});
        QVERIFY(found);
        QVERIFY(close(found->map(0, 0), 1.0) && close(found->map(0, 1), 0.0));
        QCOMPARE(found->map(0, 2), 0.0); // a zero row gives no NaN
        QCOMPARE(found->norms, (std::vector<double>{5, 5, 0}));
        QVERIFY(close(found->singular_values[0], 5.0) && close(found->singular_values[1], 5.0));
        QCOMPARE(found->dimensions, (std::array<std::size_t, 3>{2, 2, 2}));
        QVERIFY(std::isnan(found->decodability.order_accuracy)); // too few to learn from
        options.kind = SimilarityKind::dot;
        found = position_similarity(vectors.matrix(), options, {});
        QVERIFY(found);
        QVERIFY(close(found->map(0, 0), 25.0) && close(found->map(1, 1), 25.0));
        QCOMPARE(found->metrics.size(), metric_list().size());
    }

    void spectrum_of_one_wave()
    {
        HostTensor vectors({32, 2});
        for (std::int64_t p = 0; p < 32; ++p) {
            vectors.data()[2 * p] =
                static_cast<float>(std::cos(2.0 * std::numbers::pi * 5.0 * static_cast<double>(p) / 32.0));
            vectors.data()[2 * p + 1] =
                static_cast<float>(std::sin(2.0 * std::numbers::pi * 5.0 * static_cast<double>(p) / 32.0));
        }
        const auto found = position_similarity(vectors.matrix(), {}, {});
        QVERIFY(found);
        QCOMPARE(found->power.size(), std::size_t{16});
        QVERIFY(close(found->power[4], 1.0, 1e-5));
        QVERIFY(close(found->frequencies[4], 5.0 / 32.0));
    }

    void a_line_is_decoded_and_noise_is_not()
    {
        Random random(3);
        HostTensor line({60, 8}), noise({60, 8});
        for (std::int64_t p = 0; p < 60; ++p)
            for (std::int64_t f = 0; f < 8; ++f) {
                noise.data()[p * 8 + f] = static_cast<float>(random.normal());
                line.data()[p * 8 + f] =
                    static_cast<float>(0.1 * random.normal() + (f == 2 ? 0.3 * static_cast<double>(p) : 0.0));
            }
        const auto told = position_similarity(line.matrix(), {}, {});
        const auto blind = position_similarity(noise.matrix(), {}, {});
        QVERIFY(told && blind);
        QVERIFY(told->decodability.position_error < 1.0);
        QVERIFY(told->decodability.position_r2 > 0.99);
        QVERIFY(told->decodability.order_accuracy > 0.97);
        QVERIFY(blind->decodability.position_error > 8.0);
        QVERIFY(std::abs(blind->decodability.order_accuracy - 0.5) < 0.2);
    }

    void same_bits_on_any_number_of_threads()
    {
        Random random(5);
        HostTensor vectors({90, 12});
        for (float& value : vectors.values()) value = static_cast<float>(random.normal());
        set_thread_count(1);
        const auto one = position_similarity(vectors.matrix(), {}, {});
        set_thread_count(4);
        const auto four = position_similarity(vectors.matrix(), {}, {});
        set_thread_count(default_thread_count());
        QVERIFY(one && four);
        QVERIFY(one->map.values == four->map.values && one->power == four->power);
        QCOMPARE(one->decodability.order_accuracy, four->decodability.order_accuracy);
        QCOMPARE(one->decodability.position_error, four->decodability.position_error);
    }

    void far_offsets_by_hand()
    {
        // Beyond 1 on the left two equal vectors, on the right two at right angles.
        const HostTensor vectors({6, 2}, {1, 0, 2, 0, 5, 5, 7, 1, 0, 1, 1, 0});
        const std::vector<std::int64_t> offsets{-3, -2, -1, 1, 2, 3};
        const auto far = far_offset_cosine(vectors.matrix(), offsets, 1);
        QVERIFY(close(far[0], 1.0) && close(far[1], 0.0));
        QVERIFY(std::isnan(far_offset_cosine(vectors.matrix(), offsets, 2)[0]));
    }

    void refusals()
    {
        QCOMPARE(tests::refusal(position_similarity(HostTensor({1, 3}).matrix(), {}, {}),
                                ErrorCode::invalid_argument, {"at least 2"}),
                 QString());
        HostTensor broken({3, 2});
        broken.data()[3] = std::numeric_limits<float>::infinity();
        QCOMPARE(tests::refusal(position_similarity(broken.matrix(), {}, {}), ErrorCode::numeric_failure,
                                {"row 1"}),
                 QString());
        std::stop_source source;
        RunContext ctx{source.get_token(), [&](const Progress&) { source.request_stop(); }};
        HostTensor vectors({30, 2});
        for (std::int64_t n = 0; n < 60; ++n) vectors.data()[n] = static_cast<float>(n);
        QCOMPARE(tests::refusal(position_similarity(vectors.matrix(), {}, ctx), ErrorCode::cancelled, {}),
                 QString());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestPositionVectors)
#include "tst_position_vectors.moc"
