// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/checkpoint/read_recorder.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// Where a result comes from: program version, checkpoint, every setting of the probe, seed, words, kernels. Written
/// beside results and into figures, so that they can be made again.
nlohmann::ordered_json provenance(const OpenModel& model, const ProbeResult& probe);

/// The same without the digests of the tensors, for which all of them are read once more.
nlohmann::ordered_json provenance_of_settings(const OpenModel& model, const ProbeResult& probe);

/// Writes digests into a record: one over all of them as "tensors_sha256", each with its shape under "tensors".
void add_tensors(nlohmann::ordered_json& record, const std::map<std::string, TensorDigest>& digests);

} // namespace posiscope::core
