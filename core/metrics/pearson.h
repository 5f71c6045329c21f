// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

#include "core/base/result.h"

namespace posiscope::core {

/// Pearson's correlation of n pairs. NaN where a value is undefined (no variation; too few pairs).
struct Correlation {
    double r = 0.0;
    double p = 0.0;      ///< two-sided, by Student's t with n - 2 degrees of freedom
    double lowest = 0.0; ///< 95 % interval by Fisher's z
    double highest = 0.0;
};

/// @error invalid_argument (different numbers of values, fewer than two)
Result<Correlation> pearson(std::span<const double> x, std::span<const double> y);

/// Regularised incomplete beta function I_x(a, b) for a, b > 0 and 0 <= x <= 1.
double regularised_incomplete_beta(double a, double b, double x);

} // namespace posiscope::core
