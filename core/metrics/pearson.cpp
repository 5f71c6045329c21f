// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/pearson.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

/// The continued fraction of the incomplete beta function, which converges quickly for x < (a + 1) / (a + b + 2), by
/// Lentz's method: numerator and denominator are kept as ratios of successive ones.
double beta_fraction(double a, double b, double x)
{
    constexpr int most_terms = 10000;
    constexpr double tiny = 1e-300; // stands in for a zero, which the ratios cannot have
    constexpr double close_enough = 1e-16;
    const auto not_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
    double numerator = 1.0;
    double denominator = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    double value = denominator;
    for (int m = 1; m <= most_terms; ++m) {
        const double n = m;
        const double even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
        const double odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
        double change = 1.0;
        for (const double coefficient : {even, odd}) {
            denominator = 1.0 / not_zero(1.0 + coefficient * denominator);
            numerator = not_zero(1.0 + coefficient / numerator);
            change = denominator * numerator;
            value *= change;
        }
        if (std::abs(change - 1.0) <= close_enough) break;
    }
    return value;
}

} // namespace

double regularised_incomplete_beta(double a, double b, double x)
{
    if (!(a > 0.0) || !(b > 0.0) || !(x >= 0.0) || !(x <= 1.0)) return undefined;
    if (x == 0.0 || x == 1.0) return x;
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    // I_x(a, b) = 1 - I_{1-x}(b, a): the side on which the fraction converges quickly.
    if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

Result<Correlation> pearson(std::span<const double> x, std::span<const double> y)
{
    if (x.size() != y.size() || x.size() < 2)
        return Error{ErrorCode::invalid_argument,
                     "a correlation needs two equally long lists of at least two numbers, not " +
                         std::to_string(x.size()) + " and " + std::to_string(y.size()),
                     "correlation"};
    const double count = static_cast<double>(x.size());
    double mean_x = 0.0;
    double mean_y = 0.0;
    for (std::size_t n = 0; n < x.size(); ++n) {
        mean_x += x[n];
        mean_y += y[n];
    }
    mean_x /= count;
    mean_y /= count;
    double squares_x = 0.0;
    double squares_y = 0.0;
    double products = 0.0;
    for (std::size_t n = 0; n < x.size(); ++n) {
        squares_x += (x[n] - mean_x) * (x[n] - mean_x);
        squares_y += (y[n] - mean_y) * (y[n] - mean_y);
        products += (x[n] - mean_x) * (y[n] - mean_y);
    }
    Correlation out{undefined, undefined, undefined, undefined};
    const double scale = std::sqrt(squares_x) * std::sqrt(squares_y);
    if (!(scale > 0.0)) return out;
    out.r = std::clamp(products / scale, -1.0, 1.0);

    const double freedom = count - 2.0;
    if (freedom > 0.0) {
        constexpr double least = 1e-300; // r = 1: t stays a number
        const double t = out.r * std::sqrt(freedom / std::max(1.0 - out.r * out.r, least));
        out.p = regularised_incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    }
    constexpr double normal_quantile = 1.959963984540054; // 97.5 %
    const double z = std::atanh(out.r);
    const double half_width =
        count > 3.0 ? normal_quantile / std::sqrt(count - 3.0) : std::numeric_limits<double>::infinity();
    out.lowest = std::tanh(z - half_width);
    out.highest = std::tanh(z + half_width);
    return out;
}

} // namespace posiscope::core
