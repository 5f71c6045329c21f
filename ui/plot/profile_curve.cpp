// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/profile_curve.h"

#include <algorithm>
#include <cmath>

namespace posiscope::ui {

ProfileCurve make_profile_curve(const core::OffsetProfileOverWords& profile, const core::WhiteBand& band)
{
    ProfileCurve curve;
    if (profile.profile.offsets.empty()) return curve;
    curve.first_offset = profile.profile.offsets.front();
    curve.mean = profile.profile.mean;
    curve.spread = profile.profile.standard_deviation;
    const std::vector<double>& error = profile.standard_error;
    if (std::any_of(error.begin(), error.end(), [](double value) { return std::isfinite(value); }))
        curve.standard_error = error;
    if (std::isfinite(band.width) && band.width > 0.0)
        curve.white_band = WhiteBandOffsets{static_cast<int>(std::lround(band.first)),
                                            static_cast<int>(std::lround(band.last))};
    return curve;
}

std::optional<std::pair<double, double>> curve_value_range(const ProfileCurve& curve, int first, int last)
{
    std::optional<std::pair<double, double>> range;
    const auto include = [&](double value) {
        if (!std::isfinite(value)) return;
        if (!range) range = {value, value};
        range->first = std::min(range->first, value);
        range->second = std::max(range->second, value);
    };
    for (int offset = std::max(first, curve.first_offset); offset <= std::min(last, curve.last_offset());
         ++offset) {
        const auto n = static_cast<std::size_t>(offset - curve.first_offset);
        include(curve.mean[n]);
        for (const std::vector<double>* width : {&curve.spread, &curve.standard_error}) {
            if (n >= width->size()) continue;
            include(curve.mean[n] - (*width)[n]);
            include(curve.mean[n] + (*width)[n]);
        }
    }
    return range;
}

} // namespace posiscope::ui
