// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/hub_cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/checkpoint/byte_source.h"
#include "core/checkpoint/config_json.h"
#include "core/checkpoint/file_store.h"

namespace posiscope::core {
namespace {

constexpr std::string_view mark = "models--";

std::filesystem::path path_in(const char* variable)
{
    const char* value = std::getenv(variable);
    return value == nullptr ? std::filesystem::path{} : std::filesystem::path(value);
}

/// "models--org--name" -> "org/name"
std::string name_of_folder(std::string folder)
{
    folder.erase(0, mark.size());
    if (const std::size_t dashes = folder.find("--"); dashes != std::string::npos)
        folder.replace(dashes, 2, "/");
    return folder;
}

bool is_weights(std::string_view name)
{
    constexpr std::array<std::string_view, 9> endings{".safetensors", ".bin",  ".pt",  ".pth", ".msgpack",
                                                      ".gguf",        ".onnx", ".npz", ".ckpt"};
    return std::any_of(endings.begin(), endings.end(),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Commits to the names of the branches and tags that lead to them, "a, b" where there are several.
std::map<std::string, std::string> references_of(const std::filesystem::path& folder)
{
    std::map<std::string, std::string> out;
    const auto root = folder / "refs";
    std::error_code fault;
    std::vector<std::filesystem::path> files;
    std::filesystem::recursive_directory_iterator at(root, fault);
    for (; !fault && at != std::filesystem::recursive_directory_iterator(); at.increment(fault)) {
        constexpr std::size_t most = 1'000;
        std::error_code ignored;
        if (at->is_regular_file(ignored)) files.push_back(at->path());
        if (files.size() >= most) break;
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        const auto source = open_file(file);
        if (!source) continue;
        const auto text = (*source)->read_text(1'000);
        if (!text) continue;
        std::string& names = out[std::string(trimmed(*text))];
        names += (names.empty() ? "" : ", ") + file.lexically_relative(root).generic_string();
    }
    return out;
}

/// Size and family of what a snapshot holds.
CachedModel look_at(const std::filesystem::path& snapshot)
{
    CachedModel model;
    const auto store = folder_store(snapshot);
    for (const std::string& file : store->names())
        if (is_weights(file))
            if (const auto weights = store->open(file)) model.bytes += (*weights)->size();
    if (const auto config = store->open("config.json")) {
        if (const auto text = (*config)->read_text(16'000'000)) {
            const auto root = parse_json(*text, "config.json");
            if (root && root->is_object() && root->contains("model_type") &&
                (*root)["model_type"].is_string())
                model.family = (*root)["model_type"].get<std::string>();
        }
    }
    return model;
}

} // namespace

std::filesystem::path hub_cache_folder()
{
    if (const auto folder = path_in("HF_HUB_CACHE"); !folder.empty()) return folder;
    if (const auto home = path_in("HF_HOME"); !home.empty()) return home / "hub";
    if (const auto cache = path_in("XDG_CACHE_HOME"); !cache.empty()) return cache / "huggingface" / "hub";
    if (const auto home = path_in("HOME"); !home.empty()) return home / ".cache" / "huggingface" / "hub";
    return {};
}

Result<std::filesystem::path> snapshot_folder(const std::filesystem::path& folder,
                                              const std::string& revision)
{
    std::error_code fault;
    const auto snapshots = folder / "snapshots";
    if (!std::filesystem::is_directory(snapshots, fault)) return folder;
    if (!revision.empty() && is_plain_file_name(revision) &&
        std::filesystem::is_directory(snapshots / revision, fault))
        return snapshots / revision;
    const std::string branch = revision.empty() ? "main" : revision;
    if (is_plain_file_name(branch)) {
        if (const auto reference = open_file(folder / "refs" / branch)) {
            if (const auto text = (*reference)->read_text(1'000)) {
                const std::string commit(trimmed(*text));
                if (is_plain_file_name(commit) && std::filesystem::is_directory(snapshots / commit, fault))
                    return snapshots / commit;
            }
        }
    }
    const auto names = folder_store(snapshots)->names();
    if (names.size() == 1 && revision.empty()) return snapshots / names.front();
    return Error{ErrorCode::not_found,
                 "the cache folder " + in_quotes(folder.string()) +
                     (names.empty() ? " has no snapshot"
                      : revision.empty()
                          ? " has several snapshots and no valid 'refs/main'; open one of them: " +
                                join_for_message(names)
                          : " has no snapshot of the revision " + in_quotes(revision, 60)),
                 "opening a checkpoint"};
}

std::string hub_model_name(const std::filesystem::path& folder)
{
    std::error_code fault;
    const auto absolute = std::filesystem::absolute(folder, fault).lexically_normal();
    for (auto at = absolute; !at.empty() && at != at.parent_path(); at = at.parent_path()) {
        const std::string name = at.filename().string();
        if (name.starts_with(mark)) return name_of_folder(name);
    }
    return {};
}

Result<std::vector<CachedModel>> list_hub_cache(const std::filesystem::path& folder, const RunContext& ctx)
{
    std::vector<CachedModel> models;
    for (const std::string& name : folder_store(folder)->names()) {
        if (ctx.cancelled()) return cancelled_error("looking through the cache");
        if (!name.starts_with(mark)) continue;
        const auto opens = snapshot_folder(folder / name);
        const auto references = references_of(folder / name);
        std::vector<CachedModel> found;
        for (const std::string& commit : folder_store(folder / name / "snapshots")->names()) {
            const auto snapshot = folder / name / "snapshots" / commit;
            std::error_code fault;
            if (!std::filesystem::is_directory(snapshot, fault)) continue;
            CachedModel model = look_at(snapshot);
            const bool is_opened = opens && *opens == snapshot;
            if (!is_opened && model.bytes == 0) continue;
            model.name = name_of_folder(name);
            model.location = (is_opened ? folder / name : snapshot).string();
            const auto at = references.find(commit);
            model.revision = at == references.end() ? commit : at->second;
            found.insert(is_opened ? found.begin() : found.end(), std::move(model));
        }
        models.insert(models.end(), found.begin(), found.end());
    }
    std::stable_sort(models.begin(), models.end(),
                     [](const CachedModel& a, const CachedModel& b) { return a.name < b.name; });
    return models;
}

} // namespace posiscope::core
