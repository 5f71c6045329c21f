// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/hub_cache.h"
#include "core/checkpoint/name_dialects.h"
#include "core/checkpoint/read_recorder.h"
#include "core/checkpoint/reading_scope.h"
#include "core/checkpoint/remote_store.h"
#include "core/checkpoint/tensor_reader.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_config = 16'000'000;
constexpr std::string_view weights_file = "model.safetensors";
/// The config by the names it travels by; the first is the usual one.
/// The last are the settings that a training checkpoint holds itself (fairseq).
constexpr std::array<std::string_view, 5> config_files{"config.json", "bert_config.json",
                                                       "albert_config.json", "bert_config_nezha.json",
                                                       "training_settings.json"};

/// Where a location leads: the files, the name of the weights among them, and how the model is called.
struct Place {
    std::shared_ptr<const FileStore> store;
    std::string weights;
    std::string display_name;
};

std::string folder_name(const std::filesystem::path& folder)
{
    std::error_code fault;
    const auto absolute = std::filesystem::absolute(folder, fault).lexically_normal();
    const auto& path = fault ? folder : absolute;
    return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

/// The weights in a folder without a "model.safetensors". Names only say where to look; what a file is, its content says.
std::vector<std::string> weight_candidates(const FileStore& store)
{
    constexpr std::array<std::string_view, 4> usual{"pytorch_model.bin", "pytorch_model.bin.index.json",
                                                    "flax_model.msgpack", "model.onnx"};
    // Arrays come last: results lie beside weights more often than weights are kept as arrays.
    constexpr std::array<std::string_view, 9> other{".bin",     ".pt",   ".pth",   ".ckpt", ".gguf",
                                                    ".msgpack", ".onnx", ".index", ".npz"};
    constexpr std::array<std::string_view, 6> beside{"training_args.bin", "optimizer.", "scheduler.",
                                                     "rng_state",         "scaler.",    "optimizer_"};
    constexpr std::string_view usual_index = "model.safetensors.index.json";
    const auto names = store.names();
    std::vector<std::string> found;
    if (std::binary_search(names.begin(), names.end(), usual_index)) return {std::string(usual_index)};
    // One safetensors file of another name is as good; several would be a guess.
    for (const std::string& name : names)
        if (name.ends_with(".safetensors")) found.push_back(name);
    if (found.size() == 1) return found;
    for (const std::string_view name : usual)
        if (std::binary_search(names.begin(), names.end(), name)) return {std::string(name)};
    if (!found.empty()) return found;
    for (const std::string& name : names)
        if (name.ends_with(".index.json")) found.push_back(name);
    if (!found.empty()) return found;
    for (const std::string_view ending : other) {
        for (const std::string& name : names) {
            const bool is_beside = std::any_of(beside.begin(), beside.end(), [&](std::string_view start) {
                return name.starts_with(start);
            });
            if (name.ends_with(ending) && !is_beside) found.push_back(name);
        }
        if (!found.empty()) return found;
    }
    return found;
}

/// "org/name" for a folder in the Hugging Face cache; the folder's own name elsewhere.
std::string model_name(const std::filesystem::path& folder)
{
    std::string name = hub_model_name(folder);
    return name.empty() ? folder_name(folder) : name;
}

/// The index of a TensorFlow checkpoint that is named by its prefix or by one of its data files; empty for other paths.
std::filesystem::path tensorflow_index(const std::filesystem::path& path)
{
    std::string text = path.string();
    if (const std::size_t data = text.rfind(".data-");
        data != std::string::npos && text.find('/', data) == std::string::npos) {
        const std::string_view rest = std::string_view(text).substr(data + 6);
        if (rest.size() == 14 && rest.substr(5, 4) == "-of-") return text.substr(0, data) + ".index";
    }
    std::error_code fault;
    if (std::filesystem::exists(path, fault)) return {};
    auto parent = path.parent_path();
    if (parent.empty()) parent = ".";
    const std::string stem = path.filename().string();
    if (stem.empty()) return {};
    for (const std::string& name : folder_store(parent)->names())
        if (name == stem + ".index" || name.starts_with(stem + ".data-")) return text + ".index";
    return {};
}

/// Weights by the names they have on the Hub, which is asked for each in turn.
Result<std::string> weights_on_hub(const FileStore& store)
{
    constexpr std::array<std::string_view, 5> usual{"model.safetensors", "model.safetensors.index.json",
                                                    "pytorch_model.bin", "pytorch_model.bin.index.json",
                                                    "flax_model.msgpack"};
    for (const std::string_view name : usual) {
        const auto opened = store.open(name);
        if (opened) return std::string(name);
        if (opened.error().code != ErrorCode::not_found) return opened.error();
    }
    std::vector<std::string> names(usual.begin(), usual.end());
    return Error{ErrorCode::not_found,
                 in_quotes(store.name()) + " does not exist or has no weights that are read; looked for " +
                     join_for_message(names),
                 "opening a checkpoint"};
}

Result<Place> find_on_hub(const std::string& location, std::vector<std::string>& warnings)
{
    const auto hub = parse_hub_location(location);
    if (!hub) return hub.error();
    const auto settings = RemoteSettings::from_environment();
    const std::string shown =
        std::string(hub_prefix) + hub->model + (hub->revision == "main" ? "" : "@" + hub->revision);
    // What Hugging Face's own programs downloaded serves as well where the network does not.
    const auto downloaded = [&]() -> std::optional<Place> {
        std::string folder = "models--" + hub->model;
        if (const std::size_t slash = folder.find('/'); slash != std::string::npos)
            folder.replace(slash, 1, "--");
        const auto cache = hub_cache_folder() / folder;
        const auto snapshot = snapshot_folder(cache, hub->revision);
        if (!snapshot || *snapshot == cache) return std::nullopt;
        Place place{folder_store(*snapshot), hub->file.empty() ? std::string(weights_file) : hub->file,
                    hub->model};
        if (hub->file.empty() && !place.store->contains(weights_file)) {
            const auto candidates = weight_candidates(*place.store);
            if (candidates.size() != 1) return std::nullopt;
            place.weights = candidates.front();
        }
        return place;
    };
    if (settings.offline)
        if (auto place = downloaded()) return *std::move(place);
    const auto store = remote_store(settings.endpoint + "/" + hub->model + "/resolve/" + hub->revision + "/",
                                    shown, settings);
    if (!store) return store.error();
    auto weights = hub->file.empty() ? weights_on_hub(**store) : Result<std::string>(hub->file);
    if (!weights && weights.error().code == ErrorCode::unreadable) {
        if (auto place = downloaded()) {
            warnings.push_back(weights.error().message +
                               "; the copy in the cache of downloads is opened instead");
            return *std::move(place);
        }
    }
    if (!weights) return weights.error();
    return Place{*store, *std::move(weights), hub->model};
}

Result<Place> find_at_url(const std::string& location)
{
    auto settings = RemoteSettings::from_environment();
    const std::string url = location.substr(0, location.find_first_of("?#"));
    const std::size_t slash = url.rfind('/');
    if (slash < url.find("://") + 3 || slash + 1 == url.size())
        return Error{ErrorCode::invalid_argument, in_quotes(url) + " names no file", "opening a checkpoint"};
    if (url_origin(url) != url_origin(settings.endpoint)) settings.token.clear();
    const std::string folder = url.substr(0, slash);
    const auto store = remote_store(folder + "/", folder, settings);
    if (!store) return store.error();
    const std::size_t before = folder.rfind('/');
    return Place{*store, url.substr(slash + 1), folder.substr(before + 1)};
}

Result<Place> find_place(const std::string& location, std::vector<std::string>& warnings)
{
    if (location.starts_with(hub_prefix)) return find_on_hub(location, warnings);
    if (is_remote_location(location)) return find_at_url(location);
    if (location.starts_with(sample_prefix)) {
        const std::string name = location.substr(sample_prefix.size());
        auto store = embedded_sample(name);
        if (!store) return store.error();
        return Place{*store, std::string(weights_file), name};
    }
    std::filesystem::path path(location);
    if (auto index = tensorflow_index(path); !index.empty()) path = std::move(index);
    std::error_code fault;
    const auto status = std::filesystem::status(path, fault);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::not_found, in_quotes(path.string()) + " does not exist",
                     "opening a checkpoint"};
    if (!std::filesystem::is_directory(status)) {
        auto parent = path.parent_path();
        if (parent.empty()) parent = ".";
        return Place{folder_store(parent), path.filename().string(), model_name(parent)};
    }
    auto folder = snapshot_folder(path);
    if (folder && *folder == path) {
        // The cache as a whole, with a single model in it.
        std::vector<std::string> models;
        for (const std::string& name : folder_store(path)->names())
            if (name.starts_with("models--") &&
                std::filesystem::is_directory(path / name / "snapshots", fault))
                models.push_back(name);
        if (models.size() == 1) folder = snapshot_folder(path / models.front());
    }
    if (!folder) return folder.error();
    Place place{folder_store(*folder), std::string(weights_file), model_name(*folder)};
    if (!place.store->contains(weights_file)) {
        const auto candidates = weight_candidates(*place.store);
        if (candidates.size() != 1)
            return Error{
                ErrorCode::not_found,
                "the folder " + in_quotes(location) + " has no file '" + std::string(weights_file) + "'" +
                    (candidates.empty()
                         ? " nor other weights"
                         : "; open one of its weight files instead: " + join_for_message(candidates)),
                "opening a checkpoint"};
        place.weights = candidates.front();
    }
    return place;
}

Result<ConfigJson> read_config(const FileStore& store, std::vector<std::string>& warnings)
{
    for (const std::string_view name : config_files) {
        const auto source = store.open(name);
        if (!source && source.error().code == ErrorCode::not_found) continue;
        if (!source) return source.error();
        const auto text = (*source)->read_text(largest_config);
        if (!text) return text.error();
        std::vector<std::string> duplicates;
        const std::string file_name = (*source)->name();
        const auto root = parse_json(*text, in_quotes(file_name), &duplicates);
        if (!root) return root.error();
        if (!root->is_object())
            return Error{ErrorCode::corrupt_file, in_quotes(file_name) + " is not a JSON object", "config"};
        for (const std::string& key : duplicates)
            warnings.push_back(in_quotes(file_name) + " gives " + in_quotes(key) +
                               " twice; the last value is taken");
        return ConfigJson(*root, file_name);
    }
    return Error{ErrorCode::not_found,
                 "there is no '" + std::string(config_files.front()) + "' in " + in_quotes(store.name()) +
                     "; it must lie beside the weights",
                 "opening a checkpoint"};
}

} // namespace

Checkpoint::Checkpoint(std::string location, std::string display_name, std::shared_ptr<const FileStore> store,
                       TensorFile tensor_file, ConfigJson config)
    : m_location(std::move(location)), m_display_name(std::move(display_name)), m_store(std::move(store)),
      m_tensor_file(std::move(tensor_file)), m_config(std::move(config)), m_warnings(m_tensor_file.warnings)
{
    for (std::size_t n = 0; n < m_tensor_file.tensors.size(); ++n)
        m_by_name.emplace(m_tensor_file.tensors[n].name, n);
}

std::string Checkpoint::weights_name() const
{
    return files().empty() ? m_location : files().front()->name();
}

const TensorInfo* Checkpoint::find(std::string_view name) const
{
    const auto at = m_by_name.find(name);
    return at == m_by_name.end() ? nullptr : &m_tensor_file.tensors[at->second];
}

Result<const TensorInfo*> Checkpoint::require(std::string_view name) const
{
    if (const TensorInfo* info = find(name)) return info;
    return Error{ErrorCode::not_found, in_quotes(weights_name()) + " has no tensor " + in_quotes(name),
                 "reading a tensor"};
}

Result<HostTensor> Checkpoint::read(std::string_view name) const
{
    const auto info = require(name);
    if (!info) return info.error();
    auto tensor = read_tensor(**info, m_tensor_file.sources);
    if (tensor) ReadRecorder::note(name, tensor->shape(), std::as_const(*tensor).values());
    return tensor;
}

Result<HostTensor> Checkpoint::read_rows(std::string_view name, std::span<const std::int64_t> rows) const
{
    const auto found = require(name);
    if (!found) return found.error();
    TensorInfo info = **found;
    if (info.shape.size() != 2) {
        const std::int64_t length = info.shape.empty() ? 1 : info.shape.back();
        std::int64_t count = 1;
        for (std::size_t axis = 0; axis + 1 < info.shape.size(); ++axis) count *= info.shape[axis];
        reshape(info, {count, length});
    }
    for (const std::int64_t row : rows)
        if (row < 0 || row >= info.shape[0])
            return Error{ErrorCode::invalid_argument,
                         "tensor " + in_quotes(name) + " has " + std::to_string(info.shape[0]) +
                             " rows; row " + std::to_string(row) + " was asked for",
                         "reading rows of a tensor"};
    auto tensor = read_tensor_rows(info, m_tensor_file.sources, rows);
    if (tensor) ReadRecorder::note(name, tensor->shape(), std::as_const(*tensor).values());
    return tensor;
}

const std::vector<std::shared_ptr<const ByteSource>>& Checkpoint::files() const
{
    return m_tensor_file.files.empty() ? m_tensor_file.sources : m_tensor_file.files;
}

std::uint64_t Checkpoint::bytes_read() const
{
    std::uint64_t total = 0;
    for (const auto& source : files()) total += source->bytes_read();
    return total;
}

std::uint64_t Checkpoint::file_size() const
{
    std::uint64_t total = 0;
    for (const auto& source : files()) total += source->size();
    return total;
}

Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& location, const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    std::vector<std::string> warnings;
    const auto place = find_place(location, warnings);
    if (!place) return place.error();
    const auto source = place->store->open(place->weights);
    if (!source) return source.error();
    auto tensors = open_tensor_file({*source, place->store, place->weights}, ctx);
    if (!tensors) return tensors.error();
    tensors->warnings.insert(tensors->warnings.begin(), warnings.begin(), warnings.end());
    translate_names(*tensors);
    const auto store =
        tensors->enclosed_files.empty() ? place->store : layered_store(tensors->enclosed_files, place->store);
    auto config = read_config(*store, tensors->warnings);
    if (!config) return config.error();
    return std::shared_ptr<const Checkpoint>(std::make_shared<Checkpoint>(
        location, place->display_name, store, *std::move(tensors), *std::move(config)));
}

} // namespace posiscope::core
