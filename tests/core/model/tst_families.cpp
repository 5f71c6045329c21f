// SPDX-License-Identifier: GPL-3.0-or-later
// Every family of the table against the golden maps of a tiny checkpoint made with its reference implementation.
#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/export/npy.h"
#include "core/model/engine.h"
#include "core/model/family_table.h"
#include "core/position/grid_bias.h"
#include "core/probe/identical_word_probe.h"
#include "core/probe/network_reader.h"

using namespace posiscope::core;

namespace {

const std::filesystem::path families_folder = std::filesystem::path(POSISCOPE_TEST_DATA) / "families";

/// "plain.enc.layer1.logits", "plain.enc.layer1_window3.logits"
struct GoldenName {
    std::string variant, golden_stack, stack;
    int layer = 0;
    std::int64_t window = 0;
};

std::optional<GoldenName> parse_golden(const std::string& file)
{
    const auto parts = split(file, '.');
    if (parts.size() != 5 || parts[3] != "logits") return std::nullopt;
    GoldenName name{std::string(parts[0]), std::string(parts[1]), std::string(parts[1]), 0, 0};
    if (parts[1] == "enc") name.stack = "encoder";
    if (parts[1] == "dec") name.stack = "decoder";
    const auto layer = split(parts[2].substr(5), '_');
    name.layer = std::stoi(std::string(layer[0]));
    if (layer.size() > 1) name.window = std::stoi(std::string(layer[1].substr(6)));
    return name;
}

NpyArray read_array(const std::filesystem::path& path)
{
    const auto source = open_file(path);
    if (!source) return {};
    auto array = read_npy(**source);
    return array ? *std::move(array) : NpyArray{};
}

/// Largest difference where the golden map has an entry, over the golden map's largest magnitude; infinite where one
/// side has an entry that the other lacks.
double largest_difference(const HostTensor& map, const NpyArray& golden)
{
    if (map.size() != golden.values.size() || map.size() == 0) return std::numeric_limits<double>::infinity();
    double difference = 0.0, magnitude = 0.0;
    for (std::size_t n = 0; n < map.size(); ++n) {
        const auto value = static_cast<double>(map.values()[n]);
        if (std::isnan(value) != std::isnan(golden.values[n])) return std::numeric_limits<double>::infinity();
        if (std::isnan(value)) continue;
        difference = std::max(difference, std::abs(value - golden.values[n]));
        magnitude = std::max(magnitude, std::abs(golden.values[n]));
    }
    return difference / magnitude;
}

/// What the reference read in the place of words, if it did.
std::shared_ptr<const HostTensor> content_for(const std::filesystem::path& folder, const GoldenName& golden)
{
    for (const std::string& name :
         {"input." + golden.golden_stack + "_tiles.npy", std::string("input.enc_content.npy")}) {
        if (!std::filesystem::exists(folder / "golden" / name)) continue;
        const NpyArray array = read_array(folder / "golden" / name);
        auto tensor = std::make_shared<HostTensor>(array.shape);
        for (std::size_t n = 0; n < array.values.size(); ++n)
            tensor->data()[n] = static_cast<float>(array.values[n]);
        return tensor;
    }
    return nullptr;
}

ProbeOptions options_for(const std::filesystem::path& folder, const GoldenName& golden, std::int64_t length)
{
    std::ifstream file(folder / "golden.json");
    const nlohmann::json facts = nlohmann::json::parse(file);
    ProbeOptions options;
    options.stack = golden.stack;
    options.layer = golden.layer;
    options.length = length;
    options.variant = golden.variant == "special" ? InputVariant::special : InputVariant::plain;
    options.segments = golden.variant != "plain_no_types";
    options.window = golden.window;
    options.words.kind = WordSelection::Kind::listed;
    options.words.ids = facts["word_ids"].get<std::vector<std::int64_t>>();
    options.content = content_for(folder, golden);
    return options;
}

/// The variant that every stack can be probed with, and the length for it.
ProbeOptions simple_options(const Stack& stack)
{
    ProbeOptions options;
    options.stack = stack.id;
    options.words.count = 20;
    if (stack.needs_prefix) options.variant = InputVariant::special;
    options.length = default_length(stack, options.variant, 13);
    return options;
}

/// The share that each key has of a query's attention where all logits are the same: 1 / keys that it sees, or 0.
std::vector<float> seen_keys(const Stack& stack, int layer, std::size_t length)
{
    const auto L = static_cast<std::int64_t>(length);
    const LayerNames& names = stack.layer_names[static_cast<std::size_t>(layer)];
    HostTensor mask;
    if (stack.grid_bias && names.window_shift > 0)
        mask =
            shifted_window_mask(*stack.grid_bias, names.grid_rows, names.grid_columns, names.window_shift, 0);
    std::vector<float> seen(length * length, 0.0f);
    for (std::int64_t i = 0; i < L; ++i) {
        std::vector<std::size_t> keys;
        for (std::int64_t j = 0; j < L; ++j)
            if ((!stack.causal || j <= i) && (stack.window_before < 0 || i - j <= stack.window_before) &&
                (stack.window_after < 0 || j - i <= stack.window_after) &&
                (mask.empty() || mask.data()[i * L + j] == 0.0f))
                keys.push_back(static_cast<std::size_t>(i * L + j));
        for (const std::size_t key : keys) seen[key] = 1.0f / static_cast<float>(keys.size());
    }
    return seen;
}

void add_rows()
{
    QTest::addColumn<QString>("folder");
    QTest::addColumn<QString>("file");
    for (const auto& folder : std::filesystem::directory_iterator(families_folder))
        for (const auto& file : std::filesystem::directory_iterator(folder.path() / "golden")) {
            const std::string name = file.path().filename().string();
            if (!parse_golden(name)) continue;
            const std::string row = folder.path().filename().string() + "/" + name;
            QTest::newRow(row.c_str())
                << QString::fromStdString(folder.path().string()) << QString::fromStdString(name);
        }
}

} // namespace

class TestFamilies : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_model_type_has_a_fixture()
    {
        std::set<std::string> covered;
        for (const auto& folder : std::filesystem::directory_iterator(families_folder)) {
            std::ifstream file(folder.path() / "config.json");
            if (!file) continue; // known by its tensor names
            covered.insert(nlohmann::json::parse(file)["model_type"].get<std::string>());
        }
        std::vector<std::string> missing;
        for (const ModelFamily& family : model_families())
            for (const std::string_view type : family.model_types)
                if (!covered.contains(std::string(type))) missing.emplace_back(type);
        QVERIFY2(missing.empty(), ("no fixture for " + join_for_message(missing)).c_str());
    }

    void agrees_with_golden_maps_data() { add_rows(); }
    void agrees_with_golden_maps()
    {
        QFETCH(QString, folder);
        QFETCH(QString, file);
        const std::filesystem::path place = folder.toStdString();
        const GoldenName golden = *parse_golden(file.toStdString());
        const NpyArray logits = read_array(place / "golden" / file.toStdString());
        const auto model = open_model(place.string(), {});
        QVERIFY2(model, model ? "" : describe(model.error()).c_str());
        const Stack* stack = (*model)->architecture.find_stack(golden.stack);
        QVERIFY(stack != nullptr);
        ProbeOptions options = options_for(place, golden, logits.shape.back());
        const std::string terms = file.toStdString().substr(0, file.size() - 11) + ".terms.";
        for (const auto& other : std::filesystem::directory_iterator(place / "golden"))
            if (other.path().filename().string().starts_with(terms)) options.terms = true;
        const auto probe = run_identical_word_probe(**model, options, {});
        if (!probe && probe.error().code == ErrorCode::not_found && !load_engine())
            QSKIP("the engine is not built; forward passes are not compared");
        QVERIFY2(probe, probe ? "" : describe(probe.error()).c_str());
        // float32 against a float64 reference: measured below 5e-7.
        QVERIFY(largest_difference(probe->attention_logits, logits) < 2e-6);
        std::string probabilities = file.toStdString();
        probabilities.replace(probabilities.size() - 10, 6, "probs");
        QVERIFY(largest_difference(probe->attention_probabilities,
                                   read_array(place / "golden" / probabilities)) < 2e-6);
        for (const ProbeTerm& term : probe->terms)
            QVERIFY(largest_difference(term.values,
                                       read_array(place / "golden" / (terms + term.id + ".npy"))) < 5e-6);
    }

    void closed_form_and_forward_pass_agree_data() { add_rows(); }
    void closed_form_and_forward_pass_agree()
    {
        QFETCH(QString, folder);
        QFETCH(QString, file);
        const std::filesystem::path place = folder.toStdString();
        const GoldenName golden = *parse_golden(file.toStdString());
        if (!load_engine()) QSKIP("the engine is not built");
        const auto model = open_model(place.string(), {});
        QVERIFY(model);
        const NpyArray logits = read_array(place / "golden" / file.toStdString());
        ProbeOptions options = options_for(place, golden, logits.shape.back());
        options.force_forward = true;
        const auto forward = run_identical_word_probe(**model, options, {});
        QVERIFY2(forward, forward ? "" : describe(forward.error()).c_str());
        // Rows of merged stages never pass the engine.
        if (!(*model)->architecture.stacks.front().grid_bias || golden.layer == 0)
            QCOMPARE(forward->way, ProbeWay::forward);
        QVERIFY(largest_difference(forward->attention_logits, logits) < 2e-6);
    }

    void all_layers_in_one_pass_are_those_of_single_probes_data()
    {
        QTest::addColumn<QString>("folder");
        for (const auto& folder : std::filesystem::directory_iterator(families_folder))
            QTest::newRow(folder.path().filename().string().c_str())
                << QString::fromStdString(folder.path().string());
    }
    void all_layers_in_one_pass_are_those_of_single_probes()
    {
        QFETCH(QString, folder);
        if (!load_engine()) QSKIP("the engine is not built");
        const auto model = open_model(folder.toStdString(), {});
        QVERIFY(model);
        for (const Stack& stack : (*model)->architecture.stacks) {
            if (stack.layers_present < 2) continue;
            ProbeOptions options = simple_options(stack);
            std::vector<int> layers;
            for (int layer = 0; layer < stack.layers_present; ++layer) layers.push_back(layer);
            const auto all = run_identical_word_probe(**model, options, layers, {});
            QVERIFY2(all, all ? "" : describe(all.error()).c_str());
            QCOMPARE(all->size(), layers.size());
            for (const ProbeResult& result : *all) {
                options.layer = result.options.layer;
                const auto one = run_identical_word_probe(**model, options, {});
                QVERIFY2(one, one ? "" : describe(one.error()).c_str());
                QCOMPARE(one->way, result.way);
                QCOMPARE(one->attention_logits.size(), result.attention_logits.size());
                for (std::size_t n = 0; n < one->attention_logits.size(); ++n) {
                    const float a = one->attention_logits.values()[n],
                                b = result.attention_logits.values()[n];
                    QVERIFY((std::isnan(a) && std::isnan(b)) ||
                            std::abs(a - b) <= 2e-6f * std::max(1.0f, std::abs(a)));
                }
            }
        }
    }

    void probabilities_of_a_row_sum_to_one_data() { add_rows(); }
    void probabilities_of_a_row_sum_to_one() // transformers 1146: dropout is off
    {
        QFETCH(QString, folder);
        QFETCH(QString, file);
        const std::filesystem::path place = folder.toStdString();
        const GoldenName golden = *parse_golden(file.toStdString());
        if (golden.layer > 0 && !load_engine()) QSKIP("the engine is not built");
        const auto model = open_model(place.string(), {});
        QVERIFY(model);
        const NpyArray logits = read_array(place / "golden" / file.toStdString());
        const auto probe =
            run_identical_word_probe(**model, options_for(place, golden, logits.shape.back()), {});
        if (!probe && !load_engine()) QSKIP("the engine is not built");
        QVERIFY(probe);
        const auto L = static_cast<std::size_t>(probe->length);
        const auto values = std::as_const(probe->attention_probabilities).values();
        for (std::size_t row = 0; row < values.size() / L; ++row) {
            double sum = 0.0;
            for (std::size_t j = 0; j < L; ++j) sum += static_cast<double>(values[row * L + j]);
            QVERIFY(std::abs(sum - 1.0) < 1e-5);
        }
    }

    void a_model_without_positions_is_flat_data()
    {
        QTest::addColumn<QString>("folder");
        for (const auto& folder : std::filesystem::directory_iterator(families_folder))
            QTest::newRow(folder.path().filename().string().c_str())
                << QString::fromStdString(folder.path().string());
    }
    void a_model_without_positions_is_flat()
    {
        QFETCH(QString, folder);
        const auto model = open_model(folder.toStdString(), {});
        QVERIFY(model);
        for (const Stack& stack : (*model)->architecture.stacks) {
            if (stack.layers_present == 0) continue;
            ProbeOptions options = simple_options(stack);
            options.no_positions = true;
            // Convolutions see where a sentence ends, whatever the attention knows.
            const bool deeper = load_engine() && stack.feed_forward_width == 1;
            std::vector<int> layers;
            for (int layer = 0; layer < (deeper ? stack.layers_present : 1); ++layer) layers.push_back(layer);
            const auto probes = run_identical_word_probe(**model, options, layers, {});
            if (!probes && !load_engine()) QSKIP("the engine is not built");
            QVERIFY2(probes, probes ? "" : describe(probes.error()).c_str());
            const auto L = static_cast<std::size_t>(options.length);
            // A class token differs from patches: what is flat is theirs.
            const std::size_t first =
                options.variant == InputVariant::special ? stack.prefix_rows.size() : std::size_t{0};
            for (const ProbeResult& probe : *probes) {
                const std::vector<float> seen = seen_keys(stack, probe.options.layer, L);
                for (std::size_t n = 0; n < probe.attention_logits.size(); ++n) {
                    const std::size_t h = n / (L * L), i = n / L % L, j = n % L;
                    if (i < first || j < first) continue;
                    const float logit = probe.attention_logits.values()[n];
                    const bool exists = !std::isnan(logit);
                    QCOMPARE(exists, !stack.window_is_absence || seen[n % (L * L)] > 0.0f);
                    if (!exists) continue;
                    const float same = probe.attention_logits.values()[(h * L + first) * L + first];
                    QVERIFY(std::abs(logit - same) < 1e-5f * std::max(1.0f, std::abs(same)));
                    // A causal map is flat after multiplying row i by i + 1, and so on.
                    const float probability = probe.attention_probabilities.values()[n];
                    if (first == 0)
                        QVERIFY(std::abs(probability - seen[n % (L * L)]) < 1e-6f);
                    else
                        QVERIFY(std::abs(probability - probe.attention_probabilities
                                                           .values()[(h * L + first) * L + first]) < 1e-6f);
                }
            }
        }
    }

    void words_without_positions_may_be_permuted_data()
    {
        QTest::addColumn<QString>("folder");
        for (const auto& folder : std::filesystem::directory_iterator(families_folder))
            QTest::newRow(folder.path().filename().string().c_str())
                << QString::fromStdString(folder.path().string());
    }
    void words_without_positions_may_be_permuted()
    {
        QFETCH(QString, folder);
        const auto engine = load_engine();
        if (!engine) QSKIP("the engine is not built");
        const auto model = open_model(folder.toStdString(), {});
        QVERIFY(model);
        for (const Stack& stack : (*model)->architecture.stacks) {
            if (stack.causal || stack.layers_present == 0) continue;
            ProbeOptions options = simple_options(stack);
            options.no_positions = options.force_forward = true;
            // Windows, of Longformer and of shifted layers, and convolutions know the order by themselves.
            if (stack.window_before >= 0) options.length = std::min(options.length, stack.window_before + 1);
            std::int64_t last = stack.feed_forward_width == 1 ? stack.layers_present - 1 : 0;
            while (merges_rows(stack, last) ||
                   stack.layer_names[static_cast<std::size_t>(last)].window_shift > 0)
                --last;

            // A different word at every position: each a "special" row.
            const std::int64_t L = options.length;
            ProbeInput input;
            input.count = static_cast<std::size_t>(L);
            for (const Vocabulary::Entry& entry : (*model)->vocabulary_of(stack.id).entries())
                if (stack.content == InputContent::words && entry.drawable &&
                    input.words.size() < input.count)
                    input.words.push_back(&entry);
            std::vector<std::int64_t> special;
            auto network =
                read_network(**model, stack, options, {static_cast<int>(last)}, input, special, {});
            QVERIFY2(network, network ? "" : describe(network.error()).c_str());
            const std::int64_t d = network->word_rows.dim(1);
            const HostTensor words = network->word_rows;
            const std::vector<Network::SpecialRow> prefix = network->special_rows;
            network->word_rows = HostTensor({1, d});
            const auto first = static_cast<std::int64_t>(prefix.size());
            const auto map_of = [&](const std::vector<std::int64_t>& order) {
                network->special_rows = prefix;
                for (std::int64_t i = first; i < L; ++i) {
                    const float* row = words.data() + order[static_cast<std::size_t>(i)] * d;
                    network->special_rows.push_back({i, HostTensor({d}, {row, row + d})});
                }
                ForwardOptions forward;
                forward.group_of_word = {0};
                auto maps = (*engine)->attention_maps(*network, forward, {});
                return maps ? maps->layers.front() : ForwardMaps{};
            };
            std::vector<std::int64_t> order(static_cast<std::size_t>(L)), permuted;
            for (std::int64_t i = 0; i < L; ++i) order[static_cast<std::size_t>(i)] = i;
            permuted = order;
            for (std::int64_t i = first; i < L; ++i) // neighbours come far apart
                permuted[static_cast<std::size_t>(i)] = first + (i - first) * 5 % (L - first);
            if ((L - first) % 5 == 0)
                std::reverse_copy(order.begin() + first, order.end(), permuted.begin() + first);
            const ForwardMaps straight = map_of(order), mixed = map_of(permuted);
            for (const auto& [a, b] :
                 {std::pair(&straight.attention_logits, &mixed.attention_logits),
                  std::pair(&straight.attention_probabilities, &mixed.attention_probabilities)}) {
                QVERIFY(!a->empty());
                float largest = 0.0f, difference = 0.0f, unlike = 0.0f;
                for (std::size_t n = 0; n < a->size(); ++n) {
                    const auto length = static_cast<std::size_t>(L);
                    const std::size_t h = n / (length * length), i = n / length % length, j = n % length;
                    const float there =
                        a->values()[(h * length + static_cast<std::size_t>(permuted[i])) * length +
                                    static_cast<std::size_t>(permuted[j])];
                    largest = std::max(largest, std::abs(there));
                    difference = std::max(difference, std::abs(b->values()[n] - there));
                    unlike = std::max(unlike, std::abs(b->values()[n] - a->values()[n]));
                }
                QVERIFY(difference < 1e-5f * std::max(1.0f, largest));
                QVERIFY(unlike > 100.0f * difference); // else nothing was shown
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestFamilies)
#include "tst_families.moc"
