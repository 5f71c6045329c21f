// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <QTest>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"
#include "tests/support/compare.h"

namespace posiscope::core {
namespace {

std::vector<float> drawn(std::size_t count, std::uint64_t seed, double spread = 1.0)
{
    Random random(seed);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(spread * random.normal());
    return values;
}

/// A row for every kernel set, which the tests then find by its name.
void add_kernel_sets()
{
    QTest::addColumn<int>("number");
    const auto sets = available_kernels();
    for (std::size_t n = 0; n < sets.size(); ++n)
        QTest::newRow(std::string(sets[n]->name).c_str()) << static_cast<int>(n);
}

const KernelSet& fetched_set()
{
    QFETCH(const int, number);
    return *available_kernels()[static_cast<std::size_t>(number)];
}

struct ProductSizes {
    std::size_t m, n, k, spare; ///< `spare` elements between the rows
};

constexpr ProductSizes product_sizes[]{
    {1, 1, 1, 0},    {1, 5, 3, 2},    {3, 1, 130, 0},    {7, 11, 5, 3},
    {16, 16, 16, 0}, {33, 65, 48, 1}, {128, 130, 97, 7}, {5, 4, 0, 0},
};

/// How far behind and ahead of a query its keys reach.
struct Reach {
    std::size_t before, after;
};

constexpr std::size_t everywhere = static_cast<std::size_t>(-1);
constexpr Reach whole{everywhere, everywhere};
constexpr Reach reaches[]{whole, {everywhere, 0}, {0, everywhere}, {2, 3}, {0, 0}, {100, 1}};

/// Inputs of add_word_softmax, drawn.
struct SoftmaxCase {
    SoftmaxCase(std::size_t length, std::size_t classes, Reach reach, std::uint64_t seed)
        : alpha(drawn(length, seed)), beta(drawn(length, seed + 1)), word_key(drawn(length, seed + 2)),
          word_query(drawn(length, seed + 3)), position_position(drawn(length * length, seed + 4)),
          constant_position(drawn(classes * length, seed + 5)),
          position_constant(drawn(length * length, seed + 6)), additive(drawn(length * length, seed + 7)),
          class_of_row(length), scratch(length)
    {
        for (std::size_t i = 0; i < length; ++i) class_of_row[i] = i % classes;
        word.length = length;
        word.alpha = alpha.data();
        word.beta = beta.data();
        word.word_key = word_key.data();
        word.word_query = word_query.data();
        word.position_position = position_position.data();
        word.constant_position = constant_position.data();
        word.class_of_row = class_of_row.data();
        if (classes > 1) {
            word.position_constant = position_constant.data();
            word.additive = additive.data();
        }
        word.keys_before = reach.before;
        word.keys_after = reach.after;
        word.scratch = scratch.data();
    }

    /// Straight from the formula in kernel_set.h, in double.
    [[nodiscard]] std::vector<double> expected() const
    {
        const std::size_t L = word.length;
        const auto at = [](const std::vector<float>& values, std::size_t n) {
            return static_cast<double>(values[n]);
        };
        std::vector<double> out(L * L, 0.0);
        for (std::size_t i = 0; i < L; ++i) {
            double sum = 0.0;
            for (std::size_t j = 0; j < L; ++j) {
                if (i > j ? i - j > word.keys_before : j - i > word.keys_after) continue;
                double logit = at(alpha, i) * at(word_key, j) + at(word_query, i) * at(alpha, j) +
                               at(beta, j) * (at(beta, i) * at(position_position, i * L + j) +
                                              at(constant_position, class_of_row[i] * L + j));
                if (word.position_constant != nullptr)
                    logit += at(beta, i) * at(position_constant, i * L + j);
                if (word.additive != nullptr) logit += at(additive, i * L + j);
                out[i * L + j] = std::exp(logit);
                sum += out[i * L + j];
            }
            for (std::size_t j = 0; j < L; ++j) out[i * L + j] /= sum;
        }
        return out;
    }

    std::vector<float> alpha, beta, word_key, word_query, position_position, constant_position,
        position_constant, additive;
    std::vector<std::size_t> class_of_row;
    std::vector<float> scratch;
    WordSoftmax word;
};

} // namespace

class TestKernelSet : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sets_are_named_and_one_is_chosen()
    {
        const auto sets = available_kernels();
        QVERIFY(!sets.empty());
        QVERIFY(std::find(sets.begin(), sets.end(), &kernels()) != sets.end());
        for (const KernelSet* set : sets) {
            QVERIFY(!set->name.empty());
            QVERIFY(set->maps != nullptr);
        }
    }

    void products_are_those_of_a_plain_loop_data() { add_kernel_sets(); }
    void products_are_those_of_a_plain_loop()
    {
        const KernelSet& set = fetched_set();
        for (const auto& [m, n, k, spare] : product_sizes) {
            const std::size_t c_stride = n + spare;
            constexpr float untouched = -123.0f;
            // c = a b^T
            const std::vector<float> a = drawn(m * (k + spare) + 1, 1), b = drawn(n * (k + spare) + 1, 2);
            std::vector<float> c(m * c_stride, untouched);
            set.multiply_nt(m, n, k, a.data(), k + spare, b.data(), k + spare, c.data(), c_stride);
            // c += a b^T
            std::vector<float> sum(m * c_stride, untouched);
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j) sum[i * c_stride + j] = 0.5f;
            set.add_multiply_nt(m, n, k, a.data(), k + spare, b.data(), k + spare, sum.data(), c_stride);
            // c = a b
            const std::vector<float> bn = drawn(k * (n + spare) + 1, 5);
            std::vector<float> cn(m * c_stride, untouched);
            set.multiply_nn(m, n, k, a.data(), k + spare, bn.data(), n + spare, cn.data(), c_stride);
            // c = a^T b
            const std::vector<float> at = drawn(k * (m + spare) + 1, 3), bt = drawn(k * (n + spare) + 1, 4);
            std::vector<float> ct(m * c_stride, untouched);
            set.multiply_tn(m, n, k, at.data(), m + spare, bt.data(), n + spare, ct.data(), c_stride);
            const double tolerance = 1e-6 * std::sqrt(static_cast<double>(k + 1)) * 4.0;
            for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < c_stride; ++j) {
                    if (j >= n) {
                        QCOMPARE(c[i * c_stride + j], untouched);
                        QCOMPARE(ct[i * c_stride + j], untouched);
                        QCOMPARE(sum[i * c_stride + j], untouched);
                        QCOMPARE(cn[i * c_stride + j], untouched);
                        continue;
                    }
                    double nt = 0.0, tn = 0.0, nn = 0.0;
                    for (std::size_t f = 0; f < k; ++f) {
                        nt += static_cast<double>(a[i * (k + spare) + f]) *
                              static_cast<double>(b[j * (k + spare) + f]);
                        nn += static_cast<double>(a[i * (k + spare) + f]) *
                              static_cast<double>(bn[f * (n + spare) + j]);
                        tn += static_cast<double>(at[f * (m + spare) + i]) *
                              static_cast<double>(bt[f * (n + spare) + j]);
                    }
                    QVERIFY(std::abs(static_cast<double>(c[i * c_stride + j]) - nt) <= tolerance);
                    QVERIFY(std::abs(static_cast<double>(ct[i * c_stride + j]) - tn) <= tolerance);
                    QVERIFY(std::abs(static_cast<double>(sum[i * c_stride + j]) - 0.5 - nt) <= tolerance);
                    QVERIFY(std::abs(static_cast<double>(cn[i * c_stride + j]) - nn) <= tolerance);
                }
        }
    }

    void softmax_is_its_definition_data() { add_kernel_sets(); }
    void softmax_is_its_definition()
    {
        const KernelSet& set = fetched_set();
        for (const std::size_t length : {1, 2, 3, 8, 17, 33, 130})
            for (const std::size_t classes : {1, 3})
                for (const Reach& reach : reaches) {
                    const SoftmaxCase made(length, classes, reach, 10 * length + classes);
                    std::vector<float> sum(length * length, 0.0f);
                    set.add_word_softmax(made.word, sum.data());
                    QVERIFY(tests::largest_difference(sum, made.expected()) < 2e-6);
                    // It adds: a second call doubles.
                    const std::vector<float> once = sum;
                    set.add_word_softmax(made.word, sum.data());
                    for (std::size_t n = 0; n < sum.size(); ++n) QCOMPARE(sum[n], 2.0f * once[n]);
                }
    }

    void a_bias_alone_is_added_data() { add_kernel_sets(); }
    void a_bias_alone_is_added()
    {
        SoftmaxCase made(20, 1, whole, 6);
        made.word.additive = made.additive.data();
        std::vector<float> sum(400, 0.0f);
        fetched_set().add_word_softmax(made.word, sum.data());
        QVERIFY(tests::largest_difference(sum, made.expected()) < 2e-6);
    }

    void softmax_of_a_row_data() { add_kernel_sets(); }
    void softmax_of_a_row()
    {
        const KernelSet& set = fetched_set();
        for (const std::size_t keys : {1, 2, 7, 16, 33, 200}) {
            std::vector<float> logits = drawn(keys, keys, 5.0);
            std::vector<double> wanted(keys);
            double total = 0.0;
            for (std::size_t j = 0; j < keys; ++j)
                total += wanted[j] = std::exp(static_cast<double>(logits[j]));
            for (double& value : wanted) value = value / total + 3.0;
            std::vector<float> sum(keys, 3.0f);
            set.add_row_softmax(logits.data(), keys, sum.data());
            QVERIFY(tests::largest_difference(sum, wanted) < 2e-6);
        }
    }

    void softmax_of_large_logits_stays_finite_data() { add_kernel_sets(); }
    void softmax_of_large_logits_stays_finite()
    {
        const KernelSet& set = fetched_set();
        SoftmaxCase made(9, 1, whole, 5);
        for (float& value : made.position_position) value *= 1e6f;
        std::vector<float> sum(81, 0.0f);
        set.add_word_softmax(made.word, sum.data());
        for (std::size_t i = 0; i < 9; ++i) {
            double row = 0.0;
            for (std::size_t j = 0; j < 9; ++j) row += static_cast<double>(sum[i * 9 + j]);
            QVERIFY(std::abs(row - 1.0) < 1e-6);
        }
    }

    void sums_are_kept_in_double_data() { add_kernel_sets(); }
    void sums_are_kept_in_double()
    {
        const KernelSet& set = fetched_set();
        const std::vector<float> values = drawn(37, 8);
        std::vector<double> sum(37, 1e9);
        set.add_to_double(values.data(), sum.data(), values.size());
        for (std::size_t n = 0; n < values.size(); ++n)
            QCOMPARE(sum[n], 1e9 + static_cast<double>(values[n]));
        set.add_to_double(values.data(), sum.data(), 0);
        QCOMPARE(sum[0], 1e9 + static_cast<double>(values[0]));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestKernelSet)
#include "tst_kernel_set.moc"
