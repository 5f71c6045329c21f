// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/offset_profile.h"

#include <cmath>
#include <limits>

namespace posiscope::core {

OffsetProfile offset_profile(const PositionMap& map)
{
    OffsetProfile profile;
    const std::size_t length = map.length;
    if (length == 0) return profile;
    const std::size_t size = 2 * length - 1;
    profile.offsets.resize(size);
    profile.count.assign(size, 0);
    profile.mean.assign(size, 0.0);
    profile.standard_deviation.assign(size, 0.0);
    for (std::size_t a = 0; a < size; ++a)
        profile.offsets[a] = static_cast<int>(a) - static_cast<int>(length - 1);

    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j) {
            const double value = map(i, j);
            if (!std::isfinite(value)) continue;
            const std::size_t a = j + length - 1 - i;
            profile.mean[a] += value;
            ++profile.count[a];
        }
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t a = 0; a < size; ++a)
        profile.mean[a] =
            profile.count[a] > 0 ? profile.mean[a] / static_cast<double>(profile.count[a]) : undefined;
    for (std::size_t i = 0; i < length; ++i)
        for (std::size_t j = 0; j < length; ++j) {
            const double value = map(i, j);
            if (!std::isfinite(value)) continue;
            const std::size_t a = j + length - 1 - i;
            profile.standard_deviation[a] += (value - profile.mean[a]) * (value - profile.mean[a]);
        }
    for (std::size_t a = 0; a < size; ++a)
        profile.standard_deviation[a] =
            profile.count[a] > 0
                ? std::sqrt(profile.standard_deviation[a] / static_cast<double>(profile.count[a]))
                : undefined;
    return profile;
}

OffsetProfileOverWords offset_profile_over_words(const ProbeResult& probe, Quantity quantity, int head,
                                                 PositionChoice positions)
{
    OffsetProfileOverWords out{offset_profile(quantity_map(probe, quantity, head, positions)), {}};
    const std::size_t size = out.profile.offsets.size();
    out.standard_error.assign(size, std::numeric_limits<double>::quiet_NaN());
    const std::size_t groups = probe.groups.word_counts.size();
    if (groups < 2) return out;

    double words = 0.0;
    for (const std::size_t count : probe.groups.word_counts) words += static_cast<double>(count);
    std::vector<OffsetProfile> group_profiles;
    for (std::size_t g = 0; g < groups; ++g) {
        group_profiles.push_back(offset_profile(group_quantity_map(probe, g, quantity, head, positions)));
        if (group_profiles.back().offsets.size() != size) return out; // the groups lack this quantity
    }
    for (std::size_t a = 0; a < size; ++a) {
        double mean = 0.0;
        for (std::size_t g = 0; g < groups; ++g)
            mean += static_cast<double>(probe.groups.word_counts[g]) / words * group_profiles[g].mean[a];
        double squares = 0.0;
        for (std::size_t g = 0; g < groups; ++g) {
            const double weight = static_cast<double>(probe.groups.word_counts[g]) / words;
            const double difference = weight * (group_profiles[g].mean[a] - mean);
            squares += difference * difference;
        }
        out.standard_error[a] =
            std::sqrt(squares * static_cast<double>(groups) / static_cast<double>(groups - 1));
    }
    return out;
}

} // namespace posiscope::core
