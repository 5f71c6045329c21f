// SPDX-License-Identifier: GPL-3.0-or-later
// The commands about files themselves: models (what the Hugging Face cache holds) and tensor (what one tensor is like).
#include "app/checkpoint_commands.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/cli_output.h"
#include "core/checkpoint/hub_cache.h"
#include "core/checkpoint/tensor_statistics.h"
#include "core/export/npy.h"

namespace posiscope::app {

using json = nlohmann::ordered_json;

int run_models(const ModelsArguments& arguments, const core::RunContext& ctx)
{
    const std::filesystem::path folder =
        arguments.folder.empty() ? core::hub_cache_folder() : std::filesystem::path(arguments.folder);
    const auto models = core::list_hub_cache(folder, ctx);
    if (!models) return fail(models.error());
    if (arguments.json) {
        json object{{"cache", folder.string()}, {"models", json::array()}};
        for (const core::CachedModel& model : *models)
            object["models"].push_back({{"name", model.name},
                                        {"family", model.family.empty() ? json() : json(model.family)},
                                        {"revision", model.revision},
                                        {"bytes", model.bytes},
                                        {"location", model.location}});
        print(object);
        return exit_done;
    }
    if (models->empty()) print_line("no models in " + core::printable(folder.string(), 400));
    std::size_t width = 0;
    const auto label = [](const core::CachedModel& model) {
        return core::printable(model.revision == "main" ? model.name : model.name + "@" + model.revision);
    };
    for (const core::CachedModel& model : *models) width = std::max(width, label(model).size());
    for (const core::CachedModel& model : *models) {
        char size[32];
        std::snprintf(size, sizeof(size), "%10.1f MB", static_cast<double>(model.bytes) / 1e6);
        print_line(label(model) + std::string(width - label(model).size(), ' ') + size + "  " +
                   core::printable(model.family.empty() ? "?" : model.family, 40));
    }
    return exit_done;
}

int run_tensor(const TensorArguments& arguments, const core::RunContext& ctx)
{
    const auto checkpoint = core::open_checkpoint(arguments.checkpoint, ctx);
    if (!checkpoint) return fail(checkpoint.error());
    warn((*checkpoint)->warnings());
    const auto found = core::tensor_statistics(**checkpoint, arguments.name, ctx);
    if (!found) return fail(found.error());
    const core::TensorInfo& info = *(*checkpoint)->find(arguments.name);
    if (!arguments.out.empty()) {
        if (auto written = core::write_tensor_npy(arguments.out, **checkpoint, arguments.name, ctx); !written)
            return fail(written.error());
    }
    const auto number = [](double value) { return std::isfinite(value) ? json(value) : json(); };
    json object{
        {"name", core::printable(info.name, 400)},
        {"stored_name", core::printable(info.stored_name.empty() ? info.name : info.stored_name, 400)},
        {"dtype", core::dtype_name(info.dtype)},
        {"shape", info.shape},
        {"min", number(found->least)},
        {"max", number(found->most)},
        {"mean", number(found->mean)},
        {"sd", number(found->standard_deviation)},
        {"nan", found->nan_count},
        {"infinite", found->infinite_count}};
    if (arguments.json) {
        print(object);
        return exit_done;
    }
    for (const auto& [key, value] : object.items())
        print_line("  " + key + std::string(key.size() < 14 ? 14 - key.size() : 1, ' ') +
                   (value.is_string() ? value.get<std::string>() : value.dump()));
    return exit_done;
}

} // namespace posiscope::app
