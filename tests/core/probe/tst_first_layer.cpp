// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <QTest>

#include "core/base/random.h"
#include "core/kernels/thread_pool.h"
#include "core/probe/first_layer.h"
#include "core/probe/word_choice.h"
#include "tests/support/brute_force_probe.h"
#include "tests/support/compare.h"
#include "tests/support/expected_error.h"

namespace posiscope::core {
namespace {

using tests::brute_force;
using tests::ReferenceLayer;
using tests::relative_error;

/// What a drawn first layer is like.
struct Drawn {
    std::size_t words = 5, length = 9, heads = 2, head_dim = 8, features = 16;
    NormKind norm = NormKind::layer_norm;
    bool gain = true, bias = true, projection_bias = true;
    bool special = false, causal = false, window = false;
    std::size_t bias_heads = 0; ///< of the bias on the logits: none, one for all, or one each
    std::uint64_t seed = 1;
};

std::vector<double> as_doubles(const HostTensor& tensor)
{
    return {tensor.values().begin(), tensor.values().end()};
}

/// A drawn first layer, and the same numbers as the brute force wants them.
class DrawnLayer {
public:
    explicit DrawnLayer(const Drawn& made) : m_random(made.seed)
    {
        const auto d = static_cast<std::int64_t>(made.features);
        const auto width = static_cast<std::int64_t>(made.heads * made.head_dim);
        layer.heads = made.heads;
        layer.head_dim = made.head_dim;
        layer.logit_scale = 1.0 / std::sqrt(static_cast<double>(made.head_dim));
        if (made.causal) layer.keys_after = 0;
        if (made.window) layer.keys_before = layer.keys_after = 3;
        layer.norm = made.norm;
        layer.norm_epsilon = 1e-5;
        layer.word_rows = tensor({static_cast<std::int64_t>(made.words), d}, 0.8, 0.1);
        layer.position_rows = tensor({static_cast<std::int64_t>(made.length), d}, 0.5, -0.1);
        if (made.gain) layer.norm_gain = tensor({d}, 0.2, 1.0);
        if (made.bias) layer.norm_bias = tensor({d}, 0.2);
        const double spread = 1.0 / std::sqrt(static_cast<double>(made.features));
        layer.query_weight = tensor({width, d}, spread);
        layer.key_weight = tensor({width, d}, spread);
        if (made.projection_bias) {
            layer.query_bias = tensor({width}, 0.3);
            layer.key_bias = tensor({width}, 0.3);
        }
        if (made.special) {
            layer.special_content.push_back({0, tensor({d}, 0.8)});
            if (made.length > 2) layer.special_content.push_back({made.length - 1, tensor({d}, 0.8)});
        }
        if (made.bias_heads > 0) {
            const auto side = static_cast<std::int64_t>(made.length);
            layer.bias = tensor({static_cast<std::int64_t>(made.bias_heads), side, side}, 1.0);
        }
        fill_reference(made);
    }

    FirstLayer layer;
    ReferenceLayer reference;

private:
    HostTensor tensor(const Shape& shape, double spread, double centre = 0.0)
    {
        HostTensor out(shape);
        for (float& value : out.values()) value = static_cast<float>(centre + spread * m_random.normal());
        return out;
    }

    void fill_reference(const Drawn& made)
    {
        reference.features = made.features;
        reference.heads = made.heads;
        reference.head_dim = made.head_dim;
        reference.length = made.length;
        reference.logit_scale = layer.logit_scale;
        reference.keys_before = layer.keys_before;
        reference.keys_after = layer.keys_after;
        reference.norm = made.norm;
        reference.epsilon = layer.norm_epsilon;
        reference.gain = as_doubles(layer.norm_gain);
        reference.bias = as_doubles(layer.norm_bias);
        reference.query_weight = as_doubles(layer.query_weight);
        reference.query_bias = as_doubles(layer.query_bias);
        reference.key_weight = as_doubles(layer.key_weight);
        reference.key_bias = as_doubles(layer.key_bias);
        reference.positions = as_doubles(layer.position_rows);
        for (std::size_t h = 0; h < made.heads && made.bias_heads > 0; ++h) {
            const std::size_t cells = made.length * made.length;
            const auto part =
                std::as_const(layer.bias).values().subspan(made.bias_heads == 1 ? 0 : h * cells, cells);
            reference.logit_bias.insert(reference.logit_bias.end(), part.begin(), part.end());
        }
        const std::vector<double> rows = as_doubles(layer.word_rows);
        for (std::size_t w = 0; w < made.words; ++w) {
            const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(w * made.features);
            reference.words.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(made.features));
        }
        for (const SpecialContent& special : layer.special_content)
            reference.special.emplace_back(special.position, as_doubles(special.row));
    }

    Random m_random;
};

MapOptions all_of(std::size_t words)
{
    MapOptions options;
    options.terms = true;
    options.group_sizes = group_sizes(words);
    return options;
}

bool same_bits(const HostTensor& a, const HostTensor& b)
{
    return a.shape() == b.shape() && std::equal(a.values().begin(), a.values().end(), b.values().begin());
}

constexpr double tolerance = 2e-6; // of the largest magnitude; 2e-7 is measured

} // namespace

class TestFirstLayer : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup() { set_thread_count(default_thread_count()); }

    void maps_are_those_of_the_definition_data()
    {
        QTest::addColumn<int>("words");
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("head_dim");
        QTest::addColumn<int>("features");
        QTest::addColumn<int>("norm");
        // 1 gain, 2 bias, 4 projection bias, 8 special, 16 causal, 32 window, 64 one bias on the logits, 128 one a head
        QTest::addColumn<int>("switches");
        const auto row = [](int words, int length, int heads, int head_dim, int features, NormKind norm,
                            int switches) {
            QTest::addRow("N %d, L %d, %d x %d of %d, norm %d, %d", words, length, heads, head_dim, features,
                          static_cast<int>(norm), switches)
                << words << length << heads << head_dim << features << static_cast<int>(norm) << switches;
        };
        constexpr int usual = 7, special = 15, causal = 23, both = 31;
        for (const int length : {1, 2, 5, 33}) {
            row(5, length, 2, 8, 16, NormKind::layer_norm, usual);
            row(5, length, 2, 8, 16, NormKind::layer_norm, causal);
            if (length > 1) row(5, length, 2, 8, 16, NormKind::layer_norm, length > 2 ? both : usual);
        }
        row(1, 9, 1, 64, 64, NormKind::layer_norm, special);
        row(65, 9, 3, 16, 48, NormKind::layer_norm, special);
        row(65, 130, 1, 8, 8, NormKind::layer_norm, usual);
        row(300, 17, 2, 32, 40, NormKind::layer_norm, special); // heads narrower than the stack
        row(2100, 5, 2, 8, 16, NormKind::layer_norm, usual);    // two passes over words
        row(2100, 4, 1, 8, 16, NormKind::layer_norm, both);
        for (const int extra : {32, 64, 128, 32 + 128, 16 + 64, 8 + 128})
            row(70, 11, 3, 8, 24, NormKind::layer_norm, usual + extra);
        for (const NormKind norm : {NormKind::none, NormKind::rms_norm, NormKind::layer_norm})
            for (const int switches : {0, 1, 2, 4, usual, special}) row(20, 7, 2, 8, 16, norm, switches);
    }
    void maps_are_those_of_the_definition()
    {
        QFETCH(const int, words);
        QFETCH(const int, length);
        QFETCH(const int, heads);
        QFETCH(const int, head_dim);
        QFETCH(const int, features);
        QFETCH(const int, norm);
        QFETCH(const int, switches);
        Drawn made;
        made.words = static_cast<std::size_t>(words);
        made.length = static_cast<std::size_t>(length);
        made.heads = static_cast<std::size_t>(heads);
        made.head_dim = static_cast<std::size_t>(head_dim);
        made.features = static_cast<std::size_t>(features);
        made.norm = static_cast<NormKind>(norm);
        made.window = (switches & 32) != 0;
        made.bias_heads = (switches & 64) != 0 ? 1 : (switches & 128) != 0 ? made.heads : 0;
        made.gain = (switches & 1) != 0;
        made.bias = (switches & 2) != 0;
        made.projection_bias = (switches & 4) != 0;
        made.special = (switches & 8) != 0;
        made.causal = (switches & 16) != 0;
        made.seed = static_cast<std::uint64_t>(words + 31 * length);
        const DrawnLayer drawn(made);
        const auto maps = first_layer_attention(drawn.layer, all_of(made.words), {});
        QVERIFY2(maps, tests::failure(maps).c_str());

        const auto wanted = brute_force(drawn.reference, 0, made.words, true);
        QVERIFY(relative_error(maps->attention_logits.values(), wanted.logits) < tolerance);
        QVERIFY(relative_error(maps->attention_probabilities.values(), wanted.probabilities) < tolerance);
        QCOMPARE(maps->terms.size(), wanted.terms.size());
        std::vector<double> sum(wanted.logits.size(), 0.0);
        const double scale = tests::largest_magnitude(wanted.logits);
        for (const ProbeTerm& term : maps->terms) {
            const double own = std::max(scale, tests::largest_magnitude(wanted.terms.at(term.id)));
            QVERIFY(tests::largest_difference(term.values.values(), wanted.terms.at(term.id)) <
                    tolerance * own);
            for (std::size_t n = 0; n < sum.size(); ++n)
                sum[n] += static_cast<double>(term.values.values()[n]);
        }
        QVERIFY(relative_error(sum, wanted.logits) < 2.0 * tolerance);

        // The first and the last group, each from its own words alone.
        const auto groups = group_sizes(made.words);
        const std::size_t cells = wanted.logits.size();
        std::size_t first = 0;
        for (std::size_t g = 0; g < groups.size(); first += groups[g++]) {
            if (g != 0 && g + 1 != groups.size()) continue;
            const auto group = brute_force(drawn.reference, first, groups[g]);
            const auto part = [&](const HostTensor& tensor) {
                return tensor.values().subspan(g * cells, cells);
            };
            QVERIFY(relative_error(part(maps->group_attention_logits), group.logits) < tolerance);
            QVERIFY(relative_error(part(maps->group_attention_probabilities), group.probabilities) <
                    tolerance);
        }
    }

    void the_mean_of_the_groups_is_the_mean()
    {
        for (const std::size_t words : {1, 31, 33, 65, 300}) {
            Drawn made;
            made.words = words;
            const DrawnLayer drawn(made);
            const auto maps = first_layer_attention(drawn.layer, all_of(words), {});
            const auto groups = group_sizes(words);
            for (const auto& [group_map, map] :
                 {std::pair(&maps->group_attention_logits, &maps->attention_logits),
                  std::pair(&maps->group_attention_probabilities, &maps->attention_probabilities)}) {
                std::vector<double> mean(map->size(), 0.0);
                for (std::size_t g = 0; g < groups.size(); ++g)
                    for (std::size_t n = 0; n < mean.size(); ++n)
                        mean[n] += static_cast<double>(groups[g]) *
                                   static_cast<double>(group_map->values()[g * mean.size() + n]) /
                                   static_cast<double>(words);
                QVERIFY(relative_error(map->values(), mean) < 3e-7);
            }
        }
    }

    void only_what_is_asked_for_is_returned()
    {
        const DrawnLayer drawn(Drawn{});
        MapOptions options;
        options.group_sizes = group_sizes(5);
        options.probabilities = false;
        options.group_spread = false;
        const auto few = first_layer_attention(drawn.layer, options, {});
        QVERIFY(few->attention_probabilities.empty() && few->group_attention_logits.empty());
        QVERIFY(few->group_attention_probabilities.empty() && few->terms.empty());
        options.group_spread = true;
        const auto groups = first_layer_attention(drawn.layer, options, {});
        QCOMPARE(groups->group_attention_logits.shape(), (Shape{5, 2, 9, 9}));
        QVERIFY(groups->group_attention_probabilities.empty());
        QVERIFY(relative_error(few->attention_logits.values(), groups->attention_logits.values()) < 3e-7);
    }

    void rows_of_probabilities_sum_to_one()
    {
        for (const bool causal : {false, true}) {
            Drawn made;
            made.words = 100;
            made.length = 40;
            made.causal = causal;
            const DrawnLayer drawn(made);
            const auto maps = first_layer_attention(drawn.layer, all_of(100), {});
            const auto values = std::as_const(maps->attention_probabilities).values();
            for (std::size_t row = 0; row < values.size() / 40; ++row) {
                double sum = 0.0;
                for (std::size_t j = 0; j < 40; ++j) sum += static_cast<double>(values[row * 40 + j]);
                QVERIFY(std::abs(sum - 1.0) < 1e-5);
                for (std::size_t j = row % 40 + 1; causal && j < 40; ++j)
                    QCOMPARE(values[row * 40 + j], 0.0f);
            }
        }
    }

    void positions_of_zero_give_a_flat_map()
    {
        DrawnLayer drawn(Drawn{});
        for (float& value : drawn.layer.position_rows.values()) value = 0.0f;
        const auto maps = first_layer_attention(drawn.layer, all_of(5), {});
        for (std::size_t h = 0; h < 2; ++h)
            for (std::size_t n = 0; n < 81; ++n) {
                QVERIFY(std::abs(maps->attention_logits.values()[h * 81 + n] -
                                 maps->attention_logits.values()[h * 81]) < 1e-6f);
                QVERIFY(std::abs(maps->attention_probabilities.values()[h * 81 + n] - 1.0f / 9.0f) < 1e-6f);
            }
    }

    void the_order_of_words_does_not_matter()
    {
        Drawn made;
        made.words = 150;
        const DrawnLayer drawn(made);
        DrawnLayer reversed(made);
        for (std::size_t w = 0; w < made.words; ++w)
            for (std::size_t f = 0; f < made.features; ++f)
                reversed.layer.word_rows.values()[w * made.features + f] =
                    std::as_const(drawn.layer.word_rows).values()[(made.words - 1 - w) * made.features + f];
        const auto a = first_layer_attention(drawn.layer, all_of(150), {});
        const auto b = first_layer_attention(reversed.layer, all_of(150), {});
        QVERIFY(relative_error(a->attention_logits.values(), b->attention_logits.values()) < 5e-7);
        QVERIFY(relative_error(a->attention_probabilities.values(), b->attention_probabilities.values()) <
                5e-7);
    }

    void the_same_bits_on_any_number_of_threads()
    {
        for (const bool special : {false, true}) {
            Drawn made;
            made.words = 300;
            made.length = 33;
            made.heads = 5;
            made.special = special;
            const DrawnLayer drawn(made);
            set_thread_count(1);
            const auto one = first_layer_attention(drawn.layer, all_of(300), {});
            for (const std::size_t threads : {2, 4}) {
                set_thread_count(threads);
                const auto several = first_layer_attention(drawn.layer, all_of(300), {});
                QVERIFY(same_bits(several->attention_logits, one->attention_logits));
                QVERIFY(same_bits(several->attention_probabilities, one->attention_probabilities));
                QVERIFY(same_bits(several->group_attention_logits, one->group_attention_logits));
                QVERIFY(
                    same_bits(several->group_attention_probabilities, one->group_attention_probabilities));
                for (std::size_t t = 0; t < one->terms.size(); ++t)
                    QVERIFY(same_bits(several->terms[t].values, one->terms[t].values));
            }
        }
    }

    void it_stops_at_the_first_progress()
    {
        for (const std::size_t threads : {1, 4}) {
            set_thread_count(threads);
            Drawn made;
            made.words = 500;
            made.heads = 4;
            const DrawnLayer drawn(made);
            std::stop_source stop;
            int calls = 0; // plain: progress comes one call at a time
            const RunContext ctx{stop.get_token(), [&](const Progress& now) {
                                     ++calls;
                                     QCOMPARE(now.stage, std::string_view("probe"));
                                     QVERIFY(now.done >= 1 && now.done <= now.total);
                                     stop.request_stop();
                                 }};
            QCOMPARE(tests::refusal(first_layer_attention(drawn.layer, all_of(500), ctx),
                                    ErrorCode::cancelled, {}),
                     QString());
            QCOMPARE(calls, 1);
            QCOMPARE(tests::refusal(first_layer_attention(drawn.layer, all_of(500), ctx),
                                    ErrorCode::cancelled, {}),
                     QString());
            QCOMPARE(calls, 1);
        }
    }

    void progress_reaches_its_end()
    {
        set_thread_count(4);
        Drawn made;
        made.words = 300;
        const DrawnLayer drawn(made);
        std::size_t last = 0, total = 0;
        bool ascending = true;
        const RunContext ctx{{}, [&](const Progress& now) {
                                 ascending = ascending && now.done == last + 1;
                                 last = now.done;
                                 total = now.total;
                             }};
        QVERIFY(first_layer_attention(drawn.layer, all_of(300), ctx));
        QVERIFY(ascending);
        QCOMPARE(last, total);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestFirstLayer)
#include "tst_first_layer.moc"
