// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/sharded_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/checkpoint/config_json.h"

namespace posiscope::core {
namespace {

constexpr std::uint64_t largest_index = 64'000'000;
constexpr std::size_t most_shards = 10'000;

/// Adds what a shard holds to the whole, with its sources renumbered.
void join(TensorFile shard, std::set<std::string, std::less<>>& names, TensorFile& whole)
{
    const std::size_t first = whole.sources.size();
    whole.files.insert(whole.files.end(), shard.files.begin(), shard.files.end());
    if (shard.files.empty())
        whole.files.insert(whole.files.end(), shard.sources.begin(), shard.sources.end());
    whole.sources.insert(whole.sources.end(), shard.sources.begin(), shard.sources.end());
    whole.warnings.insert(whole.warnings.end(), shard.warnings.begin(), shard.warnings.end());
    whole.absent.insert(shard.absent.begin(), shard.absent.end());
    for (TensorInfo& info : shard.tensors) {
        info.source += first;
        for (TensorRun& run : info.runs) run.source += first;
        if (names.insert(info.name).second)
            whole.tensors.push_back(std::move(info));
        else
            whole.warnings.push_back("tensor " + in_quotes(info.name) +
                                     " is in two shards; the first is taken");
    }
}

/// "layer.3.query" of "layer.3.query.bias"; empty where the name has one part only.
std::string_view part_of(std::string_view name)
{
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

} // namespace

bool is_sharded_index(const ByteSource& source)
{
    std::array<char, 64> start{};
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), start.size()));
    if (size < 2 || !source.read(0, std::as_writable_bytes(std::span(start)).first(size))) return false;
    std::string_view text(start.data(), size);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    // Lengths of 8 bytes, as safetensors begins with, hold bytes of zero.
    return trimmed(text).starts_with('{') && text.substr(0, 8).find('\0') == std::string_view::npos;
}

Result<TensorFile> open_sharded_index(const WeightFile& input, const RunContext& ctx)
{
    const std::string file_name = in_quotes(input.source->name());
    const auto fault = [&](const std::string& what) {
        return Error{ErrorCode::corrupt_file, file_name + ": " + what, "index of shards"};
    };
    const auto text = input.source->read_text(largest_index);
    if (!text) return text.error();
    std::vector<std::string> duplicates;
    const auto root = parse_json(*text, file_name, &duplicates);
    if (!root) return root.error();
    const auto map = root->is_object() ? root->find("weight_map") : root->end();
    if (map == root->end() || !map->is_object())
        return fault("there is no 'weight_map' that tells which shard holds which tensor; an index of shards "
                     "was expected");
    if (!duplicates.empty()) return fault("the index lists " + in_quotes(duplicates.front()) + " twice");
    if (map->empty()) return fault("the 'weight_map' is empty");

    std::map<std::string, std::vector<std::string>> shards;
    for (const auto& [tensor, shard] : map->items()) {
        if (!shard.is_string())
            return fault("the shard of tensor " + in_quotes(tensor) + " is not named by a text");
        const auto& name = shard.get_ref<const std::string&>();
        if (!is_plain_file_name(name))
            return fault("tensor " + in_quotes(tensor) + " is said to be in " + in_quotes(name, 120) +
                         ", outside the folder of the index; it was not opened");
        if (name == input.name)
            return fault("tensor " + in_quotes(tensor) + " is said to be in the index itself");
        shards[name].push_back(tensor);
        if (shards.size() > most_shards)
            return fault("the index names more than " + std::to_string(most_shards) + " shards");
    }
    TensorFile file;
    std::set<std::string, std::less<>> names;
    for (const auto& [shard, tensors] : shards) {
        if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
        const auto source = input.store->open(shard);
        if (!source && source.error().code == ErrorCode::not_found) {
            for (const std::string& tensor : tensors)
                file.absent.emplace(tensor, "is in the shard " + in_quotes(shard) + ", which is missing");
            file.warnings.push_back("the shard " + in_quotes(shard) + " that " + file_name +
                                    " names is missing; " + counted(tensors.size(), "tensor", "tensors") +
                                    " cannot be read");
            continue;
        }
        if (!source) return source.error();
        // An index of indexes could lead round in circles.
        if (is_sharded_index(**source)) return fault("the shard " + in_quotes(shard) + " is an index itself");
        auto opened = open_tensor_file({*source, input.store, shard}, ctx);
        if (!opened) return opened.error();
        if (file.format.empty()) file.format = opened->format;
        for (const auto& [name, content] : opened->enclosed_files) file.enclosed_files.emplace(name, content);
        std::set<std::string, std::less<>> held;
        for (const TensorInfo& info : opened->tensors) held.insert(info.name);
        for (const auto& [name, reason] : opened->absent) held.insert(name);
        join(*std::move(opened), names, file);
        for (const std::string& tensor : tensors)
            if (!held.contains(tensor))
                return fault("tensor " + in_quotes(tensor) + " is said to be in " + in_quotes(shard) +
                             ", which does not hold it");
    }
    if (file.tensors.empty() && !file.absent.empty())
        return Error{ErrorCode::not_found,
                     file_name + ": none of its shards is there; the first is " +
                         in_quotes(shards.begin()->first),
                     "index of shards"};
    // Parts of a network may be missing: those that are there can be looked at. A weight without its bias cannot.
    std::set<std::string_view> parts;
    for (const TensorInfo& info : file.tensors) parts.insert(part_of(info.name));
    for (const auto& [name, reason] : file.absent)
        if (const std::string_view part = part_of(name); !part.empty() && parts.contains(part))
            return Error{ErrorCode::not_found,
                         file_name + ": tensor " + in_quotes(name) + " " + reason +
                             ", while its other half is there; copy that shard beside the others",
                         "index of shards"};
    return file;
}

} // namespace posiscope::core
