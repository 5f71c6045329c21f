// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// Where a result comes from: program version, checkpoint, every setting of the probe, seed, words, kernels. Written
/// beside results and into figures, so that they can be made again.
nlohmann::ordered_json provenance(const OpenModel& model, const ProbeResult& probe);

} // namespace posiscope::core
