// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include <QString>

#include "ui/plot/color_scale.h"

namespace posiscope::ui {

/// A mark on an axis: where, and what it says. Both the window and the exported figures take theirs from here.
struct Tick {
    double at = 0.0;
    QString label;
};

/// Round values inside [lower, upper], at most `most` of them, all with the same number of decimals.
std::vector<Tick> value_ticks(double lower, double upper, int most);

/// Whole positions or offsets inside [first, last], at most `most`.
std::vector<Tick> integer_ticks(int first, int last, int most);

/// The same where `shift` is added to a position when it is written; `at` is without it.
std::vector<Tick> position_ticks(int first, int last, int shift, int most);

/// Marks of a colour bar; `at` is the place on the colour map, 0 .. 1. A logarithmic scale gets powers of ten, and
/// 2 and 5 times them where there are few.
std::vector<Tick> color_bar_ticks(const ColorScale& scale, int most);

/// A value for reading: about four significant digits, a true minus sign, "no value" for NaN.
QString value_text(double value);

/// "1.32 +- 0.04": the error with two significant digits, the value with as many decimals.
QString value_with_error_text(double value, double error);

/// The label, in two lines where it is wider than `width` as `measure` tells.
QString wrapped_label(const QString& label, double width,
                      const std::function<double(const QString&)>& measure);

/// Decimals that show `step` exactly enough: 2 for 0.05; 0 for 5.
int decimals_for_step(double step);

/// Fixed decimals with a true minus sign and never "-0".
QString fixed_text(double value, int decimals);

} // namespace posiscope::ui
