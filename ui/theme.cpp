// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme.h"

#include <QApplication>
#include <QStyle>
#include <QStyleFactory>

namespace posiscope::ui {
namespace {

struct ThemeColors {
    QRgb window, base, alternate, button, text, quiet, mid, highlight, highlighted_text, link;
};

constexpr ThemeColors light_colors{0xfff3f4f6, 0xffffffff, 0xfff7f8fa, 0xfffafbfc, 0xff1c2126,
                                   0xff6a737d, 0xffc4cad1, 0xff2f6fb5, 0xffffffff, 0xff1f5fa8};
constexpr ThemeColors dark_colors{0xff22262b, 0xff1a1d21, 0xff20242a, 0xff2e343b, 0xffe3e6ea,
                                  0xff98a2ad, 0xff4a525b, 0xff3d7fc4, 0xffffffff, 0xff7db4ea};

QPalette palette_of(const ThemeColors& colors)
{
    const auto color = [](QRgb rgb) { return QColor::fromRgb(rgb); };
    QPalette palette(color(colors.button), color(colors.window));
    palette.setColor(QPalette::Window, color(colors.window));
    palette.setColor(QPalette::Base, color(colors.base));
    palette.setColor(QPalette::AlternateBase, color(colors.alternate));
    palette.setColor(QPalette::Button, color(colors.button));
    palette.setColor(QPalette::Mid, color(colors.mid));
    palette.setColor(QPalette::ToolTipBase, color(colors.base));
    palette.setColor(QPalette::Link, color(colors.link));
    palette.setColor(QPalette::Highlight, color(colors.highlight));
    palette.setColor(QPalette::HighlightedText, color(colors.highlighted_text));
    palette.setColor(QPalette::PlaceholderText, color(colors.quiet));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText,
                            QPalette::BrightText}) {
        palette.setColor(role, color(colors.text));
        palette.setColor(QPalette::Disabled, role, color(colors.quiet));
    }
    palette.setColor(QPalette::Disabled, QPalette::Highlight, color(colors.mid));
    return palette;
}

/// Where two colours meet: `share` of the first.
QColor blend(const QColor& first, const QColor& second, double share)
{
    const auto mix = [&](int a, int b) { return qRound(share * a + (1.0 - share) * b); };
    return {mix(first.red(), second.red()), mix(first.green(), second.green()),
            mix(first.blue(), second.blue())};
}

/// Fusion draws the edges of fields and check boxes in a darker shade of the window's colour, which on a dark panel
/// nobody sees: theirs is taken from a lighter one.
QPalette field_palette(QPalette palette)
{
    if (is_dark(palette))
        palette.setColor(QPalette::Window,
                         blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.35));
    return palette;
}

void set_field_palette(const QPalette& palette)
{
    for (const char* name : {"QLineEdit", "QAbstractSpinBox", "QCheckBox"})
        QApplication::setPalette(palette, name);
}

} // namespace

QString theme_id(ThemeChoice theme)
{
    switch (theme) {
    case ThemeChoice::light: return QStringLiteral("light");
    case ThemeChoice::dark: return QStringLiteral("dark");
    case ThemeChoice::desktop: break;
    }
    return QStringLiteral("desktop");
}

ThemeChoice theme_from_id(const QString& id)
{
    if (id == QLatin1String("light")) return ThemeChoice::light;
    if (id == QLatin1String("dark")) return ThemeChoice::dark;
    return ThemeChoice::desktop;
}

void apply_theme(ThemeChoice theme)
{
    static const QString desktop_style = QApplication::style()->objectName();
    if (theme == ThemeChoice::desktop) {
        if (QApplication::style()->objectName() != desktop_style)
            QApplication::setStyle(QStyleFactory::create(desktop_style));
        QApplication::setPalette(QPalette());
        set_field_palette(QApplication::palette());
        return;
    }
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    const QPalette palette = palette_of(theme == ThemeChoice::dark ? dark_colors : light_colors);
    QApplication::setPalette(palette);
    set_field_palette(field_palette(palette));
}

bool is_dark(const QPalette& palette)
{
    return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

QColor quiet_text_color(const QPalette& palette)
{
    return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.64);
}

QColor divider_color(const QPalette& palette)
{
    return blend(palette.color(QPalette::WindowText), palette.color(QPalette::Window), 0.18);
}

QFont with_tabular_figures(QFont font)
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 7, 0)
    font.setFeature(QFont::Tag("tnum"), 1);
#endif
    return font;
}

} // namespace posiscope::ui
