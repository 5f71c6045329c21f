// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/ticks.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

namespace posiscope::ui {
namespace {

constexpr QChar minus_sign(0x2212);

QString superscript(int number)
{
    static const QString digits =
        QStringLiteral("\u2070\u00B9\u00B2\u00B3\u2074\u2075\u2076\u2077\u2078\u2079");
    QString out;
    const QString plain = QString::number(std::abs(number));
    if (number < 0) out += QChar(0x207B);
    for (const QChar digit : plain) out += digits.at(digit.digitValue());
    return out;
}

QString power_text(int exponent)
{
    return QStringLiteral("10") + superscript(exponent);
}

/// "2 x 10^-5" as people write it.
QString scientific_text(double value, int decimals)
{
    if (value == 0.0) return QStringLiteral("0");
    int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
    double mantissa = value / std::pow(10.0, exponent);
    if (std::abs(mantissa) >= 10.0 - 0.5 * std::pow(10.0, -decimals)) {
        mantissa /= 10.0;
        ++exponent;
    }
    return fixed_text(mantissa, decimals) + QChar(0x00D7) + power_text(exponent);
}

/// The smallest of 1, 2 and 5 times a power of ten that has at most `most` multiples in [lower, upper].
double round_step(double lower, double upper, int most)
{
    const double power = std::pow(10.0, std::floor(std::log10((upper - lower) / most)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
        const double step = factor * power;
        const double count = std::floor(upper / step + 1e-9) - std::ceil(lower / step - 1e-9) + 1.0;
        if (count <= most) return step;
    }
    return 50.0 * power;
}

std::vector<Tick> logarithmic_ticks(const ColorScale& scale, int most)
{
    const int first = static_cast<int>(std::ceil(std::log10(scale.lower) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(scale.upper) + 1e-9));
    std::vector<Tick> ticks;
    if (last - first >= 1) {
        const int every = (last - first) / std::max(1, most - 1) + 1;
        for (int exponent = first; exponent <= last; exponent += every)
            ticks.push_back({scale.fraction(std::pow(10.0, exponent)), power_text(exponent)});
        if (ticks.size() >= 2) return ticks;
        ticks.clear();
    }
    const bool plain = scale.lower >= 1e-3 && scale.upper < 1e5;
    for (int exponent = first - 1; exponent <= last; ++exponent) {
        for (const int factor : {1, 2, 5}) {
            const double value = factor * std::pow(10.0, exponent);
            if (value < scale.lower * (1.0 - 1e-9) || value > scale.upper * (1.0 + 1e-9)) continue;
            const int decimals = std::max(0, -exponent);
            ticks.push_back(
                {scale.fraction(value), plain ? fixed_text(value, decimals) : scientific_text(value, 0)});
        }
    }
    if (ticks.size() >= 2) return ticks;
    ticks.clear();
    for (const Tick& tick : value_ticks(scale.lower, scale.upper, most))
        ticks.push_back({scale.fraction(tick.at), tick.label});
    return ticks;
}

} // namespace

int decimals_for_step(double step)
{
    return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 15);
}

QString fixed_text(double value, int decimals)
{
    QString text = QString::number(value, 'f', decimals);
    if (!text.startsWith(QLatin1Char('-'))) return text;
    const bool zero = std::all_of(text.cbegin() + 1, text.cend(),
                                  [](QChar c) { return c == QLatin1Char('0') || c == QLatin1Char('.'); });
    if (zero) return text.mid(1);
    text[0] = minus_sign;
    return text;
}

QString value_text(double value)
{
    if (std::isnan(value)) return QCoreApplication::translate("posiscope::ui", "no value");
    if (std::isinf(value)) return (value < 0 ? QString(minus_sign) : QString()) + QChar(0x221E);
    const double magnitude = std::abs(value);
    if (magnitude == 0.0) return QStringLiteral("0");
    if (magnitude < 1e-4 || magnitude >= 1e6) return scientific_text(value, 3);
    const int before_point = static_cast<int>(std::floor(std::log10(magnitude))) + 1;
    return fixed_text(value, std::clamp(4 - before_point, 0, 7));
}

QString value_with_error_text(double value, double error)
{
    if (!std::isfinite(value) || !std::isfinite(error) || !(error > 0.0)) return value_text(value);
    const double magnitude = std::max(std::abs(value), error);
    if (error < 1e-7 || magnitude >= 1e6)
        return value_text(value) + QStringLiteral(" \u00B1 ") + value_text(error);
    const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 9);
    return fixed_text(value, decimals) + QStringLiteral(" \u00B1 ") + fixed_text(error, decimals);
}

QString wrapped_label(const QString& label, double width,
                      const std::function<double(const QString&)>& measure)
{
    if (measure(label) <= width) return label;
    // The break whose longer line is the shortest; a comma counts as a good place.
    QString best = label;
    double best_width = measure(label);
    for (qsizetype at = label.indexOf(QLatin1Char(' ')); at > 0;
         at = label.indexOf(QLatin1Char(' '), at + 1)) {
        const double longer = std::max(measure(label.left(at)), measure(label.mid(at + 1)));
        const bool after_comma = label.at(at - 1) == QLatin1Char(',');
        const double penalty = after_comma && longer <= width ? 0.0 : longer;
        if (penalty >= best_width) continue;
        best_width = penalty;
        best = label.left(at) + QLatin1Char('\n') + label.mid(at + 1);
    }
    return best;
}

std::vector<Tick> value_ticks(double lower, double upper, int most)
{
    if (!std::isfinite(lower) || !std::isfinite(upper) || lower > upper) return {};
    const double span = upper - lower;
    const double magnitude = std::max(std::abs(lower), std::abs(upper));
    // Below this the marks would all read the same; the overflow of the span is caught too.
    if (!(span > 1e-12 * magnitude) || !std::isfinite(span)) return {{lower, value_text(lower)}};
    const double step = round_step(lower, upper, std::max(2, most));
    const double first = std::ceil(lower / step - 1e-9);
    const double last = std::floor(upper / step + 1e-9);
    const bool plain = magnitude < 1e5 && step >= 0.999e-4;
    const int mantissa_decimals = std::clamp(
        static_cast<int>(std::floor(std::log10(magnitude) + 1e-9) - std::floor(std::log10(step) + 1e-9)), 0,
        15);
    std::vector<Tick> ticks;
    for (double n = first; n <= last; n += 1.0) {
        const double at = n * step;
        ticks.push_back({std::clamp(at, lower, upper), plain ? fixed_text(at, decimals_for_step(step))
                                                             : scientific_text(at, mantissa_decimals)});
    }
    return ticks;
}

std::vector<Tick> integer_ticks(int first, int last, int most)
{
    if (first > last) return {};
    if (first == last) return {{static_cast<double>(first), fixed_text(first, 0)}};
    const double step = std::max(1.0, round_step(first, last, std::max(2, most)));
    std::vector<Tick> ticks;
    for (double at = std::ceil(first / step) * step; at <= last; at += step)
        ticks.push_back({at, fixed_text(at, 0)});
    return ticks;
}

std::vector<Tick> position_ticks(int first, int last, int shift, int most)
{
    std::vector<Tick> ticks = integer_ticks(first + shift, last + shift, most);
    for (Tick& tick : ticks) tick.at -= shift;
    return ticks;
}

std::vector<Tick> color_bar_ticks(const ColorScale& scale, int most)
{
    if (!(scale.lower < scale.upper)) return {{0.5, value_text(scale.lower)}};
    if (scale.kind == ScaleKind::logarithmic) return logarithmic_ticks(scale, most);
    std::vector<Tick> ticks = value_ticks(scale.lower, scale.upper, most);
    for (Tick& tick : ticks) tick.at = scale.fraction(tick.at);
    return ticks;
}

} // namespace posiscope::ui
