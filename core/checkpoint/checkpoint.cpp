// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/checkpoint.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/safetensors_format.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_config = 16'000'000;
constexpr std::string_view weights_file = "model.safetensors";
constexpr std::string_view config_file = "config.json";

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

Result<Place> find_place(const std::string& location)
{
    if (location.starts_with(sample_prefix)) {
        const std::string name = location.substr(sample_prefix.size());
        auto store = embedded_sample(name);
        if (!store) return store.error();
        return Place{*store, std::string(weights_file), name};
    }
    const std::filesystem::path path(location);
    std::error_code fault;
    const auto status = std::filesystem::status(path, fault);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::not_found, in_quotes(location) + " does not exist", "opening a checkpoint"};
    if (!std::filesystem::is_directory(status)) {
        auto parent = path.parent_path();
        if (parent.empty()) parent = ".";
        return Place{folder_store(parent), path.filename().string(), folder_name(parent)};
    }
    Place place{folder_store(path), std::string(weights_file), folder_name(path)};
    if (!place.store->contains(weights_file)) {
        // One safetensors file of another name is as good; several would be a guess.
        std::vector<std::string> candidates;
        for (const std::string& name : place.store->names())
            if (name.ends_with(".safetensors")) candidates.push_back(name);
        if (candidates.size() != 1)
            return Error{
                ErrorCode::not_found,
                "the folder " + in_quotes(location) + " has no file '" + std::string(weights_file) + "'" +
                    (candidates.empty()
                         ? ""
                         : "; open one of its weight files instead: " + join_for_message(candidates)),
                "opening a checkpoint"};
        place.weights = candidates.front();
    }
    return place;
}

Result<ConfigJson> read_config(const FileStore& store, std::vector<std::string>& warnings)
{
    const auto source = store.open(config_file);
    if (!source) {
        if (source.error().code != ErrorCode::not_found) return source.error();
        return Error{ErrorCode::not_found,
                     "there is no '" + std::string(config_file) + "' in " + in_quotes(store.name()) +
                         "; it must lie beside the weights",
                     "opening a checkpoint"};
    }
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

Result<TensorFile> read_tensor_file(const Place& place, const RunContext& ctx)
{
    const auto source = place.store->open(place.weights);
    if (!source) return source.error();
    for (const CheckpointFormat& format : checkpoint_formats())
        if (format.recognises(**source)) return format.open(*source, ctx);
    const std::string content = describe_unknown_content(**source);
    // Named like a safetensors file and not seen to be anything else: its own reader tells best what is wrong.
    if (content.empty() && place.weights.ends_with(".safetensors")) return open_safetensors(*source, ctx);
    std::vector<std::string> labels;
    for (const CheckpointFormat& format : checkpoint_formats()) labels.emplace_back(format.label);
    return Error{ErrorCode::unsupported_format,
                 in_quotes((*source)->name()) +
                     (content.empty() ? " is in no format that Posiscope reads" : " is " + content) +
                     "; weights in " + join_for_message(labels) + " format were expected",
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
    return m_tensor_file.sources.empty() ? m_location : m_tensor_file.sources.front()->name();
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

Result<void> Checkpoint::read_values(const TensorInfo& info, std::uint64_t begin, std::span<float> out) const
{
    const ByteSource& source = *m_tensor_file.sources[info.source];
    if (info.dtype == DType::f32 && std::endian::native == std::endian::little)
        return source.read(begin, std::as_writable_bytes(out));
    std::vector<std::byte> bytes(out.size() * dtype_size(info.dtype));
    if (auto read = source.read(begin, bytes); !read) return read.error();
    convert_to_float(info.dtype, bytes, out);
    return {};
}

Result<HostTensor> Checkpoint::read(std::string_view name) const
{
    const auto info = require(name);
    if (!info) return info.error();
    HostTensor tensor((*info)->shape);
    if (auto read = read_values(**info, (*info)->begin, tensor.values()); !read) return read.error();
    return tensor;
}

Result<HostTensor> Checkpoint::read_rows(std::string_view name, std::span<const std::int64_t> rows) const
{
    const auto found = require(name);
    if (!found) return found.error();
    const TensorInfo& info = **found;
    if (info.shape.size() != 2)
        return Error{ErrorCode::shape_mismatch,
                     "tensor " + in_quotes(name) + " has shape " + shape_text(info.shape) +
                         "; a matrix was expected",
                     "reading rows of a tensor"};
    const auto cols = static_cast<std::size_t>(info.shape[1]);
    const std::size_t row_bytes = cols * dtype_size(info.dtype);
    HostTensor out({static_cast<std::int64_t>(rows.size()), info.shape[1]});
    for (std::size_t n = 0; n < rows.size();) {
        if (rows[n] < 0 || rows[n] >= info.shape[0])
            return Error{ErrorCode::invalid_argument,
                         "tensor " + in_quotes(name) + " has " + std::to_string(info.shape[0]) +
                             " rows; row " + std::to_string(rows[n]) + " was asked for",
                         "reading rows of a tensor"};
        // Neighbouring rows in one read.
        std::size_t together = 1;
        while (n + together < rows.size() &&
               rows[n + together] == rows[n] + static_cast<std::int64_t>(together) &&
               rows[n + together] < info.shape[0] && together * row_bytes < 4'000'000)
            ++together;
        const std::uint64_t begin = info.begin + static_cast<std::uint64_t>(rows[n]) * row_bytes;
        if (auto read = read_values(info, begin, out.values().subspan(n * cols, together * cols)); !read)
            return read.error();
        n += together;
    }
    return out;
}

std::uint64_t Checkpoint::bytes_read() const
{
    std::uint64_t total = 0;
    for (const auto& source : m_tensor_file.sources) total += source->bytes_read();
    return total;
}

std::uint64_t Checkpoint::file_size() const
{
    std::uint64_t total = 0;
    for (const auto& source : m_tensor_file.sources) total += source->size();
    return total;
}

Result<std::shared_ptr<const Checkpoint>> open_checkpoint(const std::string& location, const RunContext& ctx)
{
    const auto place = find_place(location);
    if (!place) return place.error();
    auto tensors = read_tensor_file(*place, ctx);
    if (!tensors) return tensors.error();
    auto config = read_config(*place->store, tensors->warnings);
    if (!config) return config.error();
    return std::shared_ptr<const Checkpoint>(std::make_shared<Checkpoint>(
        location, place->display_name, place->store, *std::move(tensors), *std::move(config)));
}

} // namespace posiscope::core
