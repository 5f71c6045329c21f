// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_spec.h"

#include <array>

#include <QCoreApplication>
#include <QFileInfo>
#include <QFontDatabase>
#include <QRegularExpression>

namespace posiscope::ui {
namespace {

constexpr double mm_per_inch = 25.4;
constexpr double points_per_inch = 72.0;

/// Millimetres of "NUMBER UNIT"; a bare number has `default_unit`.
std::optional<double> parse_length(const QString& text, const QString& default_unit)
{
    static const QRegularExpression pattern(
        QStringLiteral("^\\s*([0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)\\s*(mm|cm|in|pt)?\\s*$"));
    const QRegularExpressionMatch match = pattern.match(text);
    if (!match.hasMatch()) return std::nullopt;
    const double number = match.captured(1).toDouble();
    const QString unit = match.captured(2).isEmpty() ? default_unit : match.captured(2);
    if (unit == QLatin1String("cm")) return number * 10.0;
    if (unit == QLatin1String("in")) return number * mm_per_inch;
    if (unit == QLatin1String("pt")) return number * mm_per_inch / points_per_inch;
    return number;
}

} // namespace

std::span<const FigureFormatRow> figure_formats()
{
    static constexpr std::array rows{
        FigureFormatRow{FigureFormat::pdf, "pdf", QT_TRANSLATE_NOOP("posiscope::ui", "PDF (vector)")},
        FigureFormatRow{FigureFormat::svg, "svg", QT_TRANSLATE_NOOP("posiscope::ui", "SVG (vector)")},
        FigureFormatRow{FigureFormat::png, "png", QT_TRANSLATE_NOOP("posiscope::ui", "PNG (pixels)")},
    };
    return rows;
}

std::optional<FigureFormat> figure_format_of(const QString& path)
{
    const std::string extension = QFileInfo(path).suffix().toLower().toStdString();
    for (const FigureFormatRow& row : figure_formats())
        if (row.id == extension) return row.format;
    return std::nullopt;
}

std::span<const FigurePreset> figure_presets()
{
    static constexpr std::array rows{
        FigurePreset{"one-column", QT_TRANSLATE_NOOP("posiscope::ui", "One column (84 mm)"), 84.0, 0.0, 8.0},
        FigurePreset{"two-columns", QT_TRANSLATE_NOOP("posiscope::ui", "Two columns (174 mm)"), 174.0, 0.0,
                     8.0},
        FigurePreset{"slide", QT_TRANSLATE_NOOP("posiscope::ui", "Slide (16:9)"), 254.0, 142.875, 14.0},
    };
    return rows;
}

const FigurePreset* find_figure_preset(std::string_view id)
{
    for (const FigurePreset& preset : figure_presets())
        if (preset.id == id) return &preset;
    return nullptr;
}

std::optional<double> parse_millimetres(const QString& text)
{
    return parse_length(text, QStringLiteral("mm"));
}

std::optional<double> parse_points(const QString& text)
{
    const std::optional<double> length = parse_length(text, QStringLiteral("pt"));
    if (!length) return std::nullopt;
    return *length * points_per_inch / mm_per_inch;
}

QString default_figure_font()
{
    // What journals ask for, then what free systems have.
    for (const char* family : {"Arial", "Helvetica", "Liberation Sans", "Nimbus Sans", "DejaVu Sans"}) {
        const QString name = QString::fromLatin1(family);
        if (QFontDatabase::hasFamily(name)) return name;
    }
    return QFontDatabase::systemFont(QFontDatabase::GeneralFont).family();
}

} // namespace posiscope::ui
