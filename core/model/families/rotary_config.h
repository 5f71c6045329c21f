// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/checkpoint/config_json.h"
#include "core/position/rotary.h"

namespace posiscope::core {

/// What a family takes where its config says nothing of rotary positions.
struct RotaryDefaults {
    double base = 10000.0;
    double share = 1.0; ///< of the features of a head that are turned
};

struct RotarySettings {
    RotaryScheme scheme;
    std::string scaling; ///< "llama3", "yarn", ...; empty: none
};

/// Rotary positions from `rope_parameters`, or `rope_theta`, `rotary_pct` and `rope_scaling` of older configs. Scalings:
/// linear, dynamic, llama3, yarn, longrope (once called su).
/// @error unsupported_model: another scaling, or one for each kind of layer; corrupt_file: a field that makes no sense
Result<RotarySettings> read_rotary_settings(const ConfigJson& config, std::int64_t head_dim,
                                            const RotaryDefaults& defaults);

} // namespace posiscope::core
