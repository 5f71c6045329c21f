// SPDX-License-Identifier: GPL-3.0-or-later
// What families make of a config and a list of tensors: a config.json, a zero byte, and the header of a safetensors
// file (names and shapes; the bytes of tensors do not matter here).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/checkpoint/byte_source.h"
#include "core/model/family_table.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most_tensors = 400;

class EmptyStore final : public FileStore {
public:
    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view) const override
    {
        return Error{ErrorCode::not_found, "there is no file here", "fuzz"};
    }
    [[nodiscard]] std::vector<std::string> names() const override { return {}; }
    [[nodiscard]] std::string name() const override { return "fuzz"; }
};

std::vector<TensorInfo> tensors_of(const nlohmann::json& header)
{
    std::vector<TensorInfo> tensors;
    if (!header.is_object()) return tensors;
    for (const auto& [name, entry] : header.items()) {
        if (!entry.is_object() || !entry.contains("shape") || !entry["shape"].is_array()) continue;
        TensorInfo info;
        info.name = name;
        for (const auto& size : entry["shape"])
            if (size.is_number_integer()) info.shape.push_back(size.get<std::int64_t>());
        // As the formats' readers do: a shape whose elements cannot be counted never gets here.
        if (!element_count(info.shape)) continue;
        tensors.push_back(std::move(info));
        if (tensors.size() == most_tensors) break;
    }
    return tensors;
}

} // namespace
} // namespace posiscope::core

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace posiscope::core;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto cut = text.find('\0');
    auto config = parse_json(text.substr(0, cut), "config.json");
    if (!config) return 0;
    TensorFile file;
    file.format = "safetensors";
    file.sources.push_back(memory_source("fuzz", {}));
    if (cut != std::string_view::npos)
        if (const auto header = parse_json(text.substr(cut + 1), "header"))
            file.tensors = tensors_of(*header);
    const Checkpoint checkpoint("fuzz", "fuzz", std::make_shared<EmptyStore>(), std::move(file),
                                ConfigJson(*std::move(config), "config.json"));
    std::vector<std::string> notes;
    const auto family = find_family(checkpoint, notes);
    if (!family) return 0;
    const TensorNames names(checkpoint, {(*family)->name_prefixes.begin(), (*family)->name_prefixes.end()});
    const auto architecture = (*family)->read_architecture(names);
    return 0;
}
