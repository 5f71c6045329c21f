// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/provenance.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/export/tensors_used.h"
#include "core/probe/word_choice.h"

namespace posiscope::core {

nlohmann::ordered_json provenance_of_settings(const OpenModel& model, const ProbeResult& probe)
{
    using json = nlohmann::ordered_json;
    const ProbeOptions& options = probe.options;
    constexpr const char* word_kinds[]{"sampled", "listed", "all"};
    constexpr const char* devices[]{"auto", "cpu", "cuda"};
    json object;
    object["program"] = std::string("Posiscope ") + version;
    object["checkpoint"] = {{"name", model.checkpoint->display_name()},
                            {"location", model.checkpoint->location()},
                            {"format", model.checkpoint->format()},
                            {"file_size", model.checkpoint->file_size()},
                            {"family", probe.family},
                            {"scheme", probe.scheme}};
    object["settings"] = {{"stack", options.stack},
                          {"layer", options.layer},
                          {"length", probe.length},
                          {"input", options.variant == InputVariant::special ? "special" : "plain"},
                          {"words", word_kinds[static_cast<std::size_t>(options.words.kind)]},
                          {"seed", options.seed},
                          {"no_positions", options.no_positions},
                          {"device", devices[static_cast<std::size_t>(options.device)]}};
    object["word_ids"] = probe.word_ids;
    object["groups"] = group_sizes(probe.word_ids.size()).size();
    object["way"] = probe_way_name(probe.way);
    object["device"] = probe.device;
    object["kernels"] = probe.kernels;
    return object;
}

void add_tensors(nlohmann::ordered_json& record, const std::map<std::string, TensorDigest>& digests)
{
    record["tensors_sha256"] = digest_of_all(digests);
    auto& tensors = record["tensors"] = nlohmann::ordered_json::object();
    for (const auto& [name, digest] : digests)
        tensors[printable(name, 400)] = {{"shape", digest.shape}, {"sha256", digest.sha256}};
}

nlohmann::ordered_json provenance(const OpenModel& model, const ProbeResult& probe)
{
    nlohmann::ordered_json object = provenance_of_settings(model, probe);
    // A checkpoint that cannot be read any more leaves its digests out; what was computed stands.
    if (const auto digests = tensors_used(model, probe)) add_tensors(object, *digests);
    return object;
}

} // namespace posiscope::core
