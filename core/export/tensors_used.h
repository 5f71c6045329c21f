// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>

#include "core/base/result.h"
#include "core/checkpoint/read_recorder.h"
#include "core/model/open_model.h"
#include "core/probe/probe_result.h"

namespace posiscope::core {

/// Digests of the tensors that a probe reads, of the tables only the rows of its words and positions. They are read once
/// more: the probe itself does not pay for them.
/// @error as read_network; cancelled
Result<std::map<std::string, TensorDigest>> tensors_used(const OpenModel& model, const ProbeResult& probe,
                                                         const RunContext& ctx = {});

/// One SHA-256 over all of them: of the lines "name shape sha256", sorted by name.
std::string digest_of_all(const std::map<std::string, TensorDigest>& digests);

} // namespace posiscope::core
