// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/metrics/offset_profile.h"
#include "core/metrics/white_band.h"

namespace posiscope::ui {

/// Offsets key - query that make the white band, first .. last.
struct WhiteBandOffsets {
    int first = 0;
    int last = 0;

    bool operator==(const WhiteBandOffsets&) const = default;
};

/// What an offset profile draws: one entry for each offset from `first_offset` on. NaN where there is no value.
struct ProfileCurve {
    int first_offset = 0;
    std::vector<double> mean;           ///< of the map's diagonal
    std::vector<double> spread;         ///< standard deviation along the diagonal; empty: not shown
    std::vector<double> standard_error; ///< of the mean, over words; empty: not shown
    std::optional<WhiteBandOffsets> white_band;

    [[nodiscard]] int last_offset() const { return first_offset + static_cast<int>(mean.size()) - 1; }
};

/// The curve of a profile that core computed. The standard error is left out where it is not defined anywhere, the
/// white band where there is none.
ProfileCurve make_profile_curve(const core::OffsetProfileOverWords& profile, const core::WhiteBand& band);

/// Least and largest value drawn (bands included) over first .. last; nothing where nothing is finite.
std::optional<std::pair<double, double>> curve_value_range(const ProfileCurve& curve, int first, int last);

} // namespace posiscope::ui
