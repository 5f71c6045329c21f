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
#include "core/probe/identical_word_probe.h"

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
    void probabilities_of_a_row_sum_to_one()
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
            if (stack.layers_present == 0 || stack.needs_prefix)
                continue; // the class token differs from patches
            ProbeOptions options = simple_options(stack);
            options.no_positions = true;
            const auto probe = run_identical_word_probe(**model, options, {});
            QVERIFY2(probe, probe ? "" : describe(probe.error()).c_str());
            const auto L = static_cast<std::size_t>(options.length);
            for (std::size_t n = 0; n < probe->attention_logits.size(); ++n) {
                const std::size_t h = n / (L * L), i = n / L % L, j = n % L;
                const float logit = probe->attention_logits.values()[n];
                if (std::isnan(logit)) continue; // outside a window
                const float first = probe->attention_logits.values()[h * L * L];
                QVERIFY(std::abs(logit - first) < 1e-5f * std::max(1.0f, std::abs(first)));
                if (stack.window_before >= 0 || (stack.window_is_absence && j > i)) continue;
                const float expected = stack.causal ? (j > i ? 0.0f : 1.0f / static_cast<float>(i + 1))
                                                    : 1.0f / static_cast<float>(L);
                QVERIFY(std::abs(probe->attention_probabilities.values()[n] - expected) < 1e-6f);
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestFamilies)
#include "tst_families.moc"
