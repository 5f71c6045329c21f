// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <utility>

#include <QTest>

#include "ui/figure/figure_spec.h"
#include "ui/plot/color_scale.h"

namespace posiscope::test {

/// A heatmap of `map` as a figure, without title and provenance.
inline ui::FigureSpec heatmap_spec(const core::PositionMap& map, ui::ScaleKind kind, const QString& label)
{
    ui::HeatmapContent content;
    content.map = map;
    content.scale = ui::make_color_scale(map, ui::ColorMapId::viridis, kind);
    content.quantity_label = label;
    ui::FigureSpec spec;
    spec.content = std::move(content);
    return spec;
}

/// Columns "width", "height" (0: as needed) and "font" of a test's data, and the sizes that papers and talks ask for.
inline void add_page_sizes()
{
    QTest::addColumn<double>("width");
    QTest::addColumn<double>("height");
    QTest::addColumn<double>("font");
    QTest::newRow("one column") << 84.0 << 0.0 << 8.0;
    QTest::newRow("two columns") << 174.0 << 0.0 << 8.0;
    QTest::newRow("slide") << 254.0 << 142.875 << 14.0;
    QTest::newRow("low") << 120.0 << 40.0 << 8.0;
}

} // namespace posiscope::test
