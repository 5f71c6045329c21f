// SPDX-License-Identifier: GPL-3.0-or-later
// Times the identical-word probe of the first layer, from opened checkpoint to maps (reading the weights included), on
// the embedded sample and on seeded weights of BERT-base's sizes. Prints one line of JSON. `--folder` keeps what the
// Python side needs: the weights, the words' rows and our logits, so that both compute the same and can be compared.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/heap.h"
#include "core/base/random.h"
#include "core/base/version.h"
#include "core/checkpoint/file_store.h"
#include "core/export/atomic_file.h"
#include "core/export/npy.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/model/open_model.h"
#include "core/probe/identical_word_probe.h"

using namespace posiscope::core;
using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t word_count = 300;
constexpr std::int64_t length = 128;
constexpr const char* sample = "minilm-l6-first-layer";

struct TensorSpec {
    std::string name;
    Shape shape;
    double mean = 0.0;
    double deviation = 0.02;
};

/// The tensors of BERT-base's embeddings and first layer's queries and keys.
std::vector<TensorSpec> bert_base_tensors()
{
    constexpr std::int64_t hidden = 768;
    const std::string attention = "encoder.layer.0.attention.self.";
    return {
        {"embeddings.word_embeddings.weight", {30522, hidden}},
        {"embeddings.position_embeddings.weight", {512, hidden}},
        {"embeddings.token_type_embeddings.weight", {2, hidden}},
        {"embeddings.LayerNorm.weight", {hidden}, 0.9, 0.05},
        {"embeddings.LayerNorm.bias", {hidden}, 0.0, 0.05},
        {attention + "query.weight", {hidden, hidden}, 0.0, 0.04},
        {attention + "query.bias", {hidden}, 0.0, 0.2},
        {attention + "key.weight", {hidden, hidden}, 0.0, 0.04},
        {attention + "key.bias", {hidden}, 0.0, 0.01},
    };
}

/// A checkpoint of BERT-base's sizes with seeded weights: config.json and model.safetensors.
bool write_bert_base(const fs::path& folder)
{
    const json config{
        {"model_type", "bert"},           {"vocab_size", 30522},       {"hidden_size", 768},
        {"num_hidden_layers", 1},         {"num_attention_heads", 12}, {"intermediate_size", 3072},
        {"max_position_embeddings", 512}, {"type_vocab_size", 2},      {"hidden_act", "gelu"},
        {"layer_norm_eps", 1e-12},        {"pad_token_id", 0}};
    if (!write_atomically(folder / "config.json", config.dump(1))) return false;

    json header = json::object();
    std::uint64_t at = 0;
    for (const TensorSpec& tensor : bert_base_tensors()) {
        const std::uint64_t bytes = *element_count(tensor.shape) * sizeof(float);
        header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
        at += bytes;
    }
    const std::string text = header.dump();
    std::ofstream file(folder / "model.safetensors", std::ios::binary);
    const std::uint64_t size = text.size();
    file.write(reinterpret_cast<const char*>(&size), sizeof(size));
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    Random random(20210504);
    std::vector<float> values;
    for (const TensorSpec& tensor : bert_base_tensors()) {
        values.resize(*element_count(tensor.shape));
        for (float& value : values)
            value = static_cast<float>(tensor.mean + tensor.deviation * random.normal());
        file.write(reinterpret_cast<const char*>(values.data()),
                   static_cast<std::streamsize>(values.size() * sizeof(float)));
    }
    return static_cast<bool>(file.flush());
}

/// The files of the embedded sample as a folder, for the Python side.
bool unpack_sample(const fs::path& folder)
{
    auto store = embedded_sample(sample);
    if (!store) return false;
    for (const char* name : {"config.json", "model.safetensors"}) {
        auto source = (*store)->open(name);
        if (!source) return false;
        constexpr std::uint64_t most = 1'000'000'000;
        auto bytes = (*source)->read_text(most);
        if (!bytes || !write_atomically(folder / name, *bytes)) return false;
    }
    return true;
}

/// Seconds of one run: by the clock, and of the processor (all threads), which other programs disturb less.
struct Timing {
    double median = 0.0;
    double best = 0.0;
    double processor = 0.0; ///< median
};

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

Timing timed(int repeats, const std::function<void()>& work)
{
    work(); // the first run brings pages and threads in
    std::vector<double> seconds;
    std::vector<double> processor_seconds;
    for (int n = 0; n < repeats; ++n) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t processor_start = std::clock();
        work();
        processor_seconds.push_back(static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return {median(seconds), *std::min_element(seconds.begin(), seconds.end()), median(processor_seconds)};
}

struct Variant {
    const char* name;
    bool groups;
    bool probabilities;
};
constexpr Variant variants[] = {
    {"logits", false, false},
    {"logits_and_groups", true, false},
    {"logits_and_probabilities", false, true},
    {"logits_probabilities_and_groups", true, true},
};

/// Times every variant on one checkpoint; nothing where it cannot be opened or probed (said on standard error).
std::optional<json> time_model(const std::string& location, int repeats, const fs::path& folder)
{
    auto model = open_model(location, {});
    if (!model) {
        std::fprintf(stderr, "%s\n", describe(model.error()).c_str());
        return std::nullopt;
    }
    json times = json::object();
    for (const Variant& variant : variants) {
        ProbeOptions options;
        options.length = length;
        options.words.count = word_count;
        options.group_spread = variant.groups;
        options.probabilities = variant.probabilities;
        std::optional<Error> fault;
        std::optional<ProbeResult> last;
        const Timing timing = timed(repeats, [&] {
            auto result = run_identical_word_probe(**model, options, {});
            if (result)
                last = *std::move(result);
            else
                fault = result.error();
        });
        if (fault) {
            std::fprintf(stderr, "%s\n", describe(*fault).c_str());
            return std::nullopt;
        }
        times[std::string(variant.name) + "_s"] = timing.median;
        times[std::string(variant.name) + "_best_s"] = timing.best;
        times[std::string(variant.name) + "_processor_s"] = timing.processor;
        if (folder.empty() || !variant.probabilities || variant.groups) continue;
        std::vector<std::int64_t> rows;
        for (const std::int64_t id : last->word_ids) rows.push_back((*model)->vocabulary.find_id(id)->row);
        const bool kept = write_npy(folder / "attention_logits.npy", last->attention_logits) &&
                          write_npy(folder / "attention_probabilities.npy", last->attention_probabilities) &&
                          write_atomically(folder / "rows.json", json(rows).dump());
        if (!kept) std::fprintf(stderr, "results could not be kept in %s\n", folder.c_str());
    }
    return times;
}

int number_after(int argc, char** argv, std::string_view option, int fallback)
{
    for (int n = 1; n + 1 < argc; ++n) {
        if (option != argv[n]) continue;
        int number = 0;
        const char* end = argv[n + 1] + std::strlen(argv[n + 1]);
        if (std::from_chars(argv[n + 1], end, number).ptr == end && number > 0) return number;
    }
    return fallback;
}

} // namespace

int main(int argc, char** argv)
{
    posiscope::core::keep_freed_memory();
    fs::path folder;
    for (int n = 1; n + 1 < argc; ++n)
        if (std::string_view("--folder") == argv[n]) folder = argv[n + 1];
    const bool keep = !folder.empty();
    if (!keep)
        folder = fs::temp_directory_path() / ("posiscope-bench-" + std::to_string(std::random_device{}()));
    const int repeats = number_after(argc, argv, "--repeats", 15);
    set_thread_count(static_cast<std::size_t>(
        number_after(argc, argv, "--threads", static_cast<int>(default_thread_count()))));

    std::error_code failed;
    fs::create_directories(folder / "sample", failed);
    fs::create_directories(folder / "bert_base", failed);
    if (!unpack_sample(folder / "sample") || !write_bert_base(folder / "bert_base")) {
        std::fprintf(stderr, "the weights could not be written to %s\n", folder.c_str());
        return 1;
    }

    json line;
    line["benchmark"] = "first_layer";
    line["version"] = version;
    line["length"] = length;
    line["words"] = word_count;
    line["repeats"] = repeats;
    line["threads"] = thread_count();
    line["kernels"] = kernels().name;
    const char* core_type = std::getenv("OPENBLAS_CORETYPE");
    line["openblas_coretype"] = core_type != nullptr ? json(core_type) : json();
    bool done = true;
    for (const auto& [name, location] :
         {std::pair{std::string("sample"), std::string(sample_prefix) + sample},
          std::pair{std::string("bert_base"), (folder / "bert_base").string()}}) {
        const auto times = time_model(location, repeats, keep ? folder / name : fs::path());
        done = done && times;
        if (times) line["models"][name] = *times;
    }
    if (!keep) fs::remove_all(folder, failed);
    std::printf("%s\n", line.dump().c_str());
    return done ? 0 : 1;
}
