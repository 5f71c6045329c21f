// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/relative_bias_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QSettings>
#include <QSignalBlocker>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {
namespace {

enum Shown { curves_and_map, curves_only, map_only };

} // namespace

ChartContent relative_bias_chart(const core::RelativeBias& bias, bool everyHead)
{
    ChartContent chart;
    chart.x_label = RelativeBiasView::tr("offset (key \u2212 query)");
    chart.integer_x = true;
    chart.zero_line = true;
    const auto curve = [](const core::OffsetProfile& profile) {
        ChartSeries series;
        series.x.assign(profile.offsets.begin(), profile.offsets.end());
        series.y = profile.mean;
        return series;
    };
    if (everyHead && bias.head_profiles.size() > 1)
        for (std::size_t h = 0; h < bias.head_profiles.size(); ++h) {
            ChartSeries head = curve(bias.head_profiles[h]);
            head.color = SeriesColor::distinct;
            head.hue = static_cast<double>(h) / static_cast<double>(bias.head_profiles.size());
            head.width = 0.6;
            chart.series.push_back(std::move(head));
        }
    ChartSeries mean = curve(bias.profile);
    mean.width = 1.8;
    mean.name = bias.head_profiles.size() > 1
                    ? RelativeBiasView::tr("mean of %1 heads").arg(bias.head_profiles.size())
                    : RelativeBiasView::tr("all heads");
    chart.series.push_back(std::move(mean));
    for (std::size_t k = 1; k < bias.buckets.size(); ++k)
        if (bias.buckets[k].last > bias.buckets[k].first ||
            bias.buckets[k - 1].last > bias.buckets[k - 1].first)
            chart.edges.push_back(static_cast<double>(bias.buckets[k].first) - 0.5);
    if (bias.white_band.width > 0.0)
        chart.white_band =
            WhiteBandOffsets{static_cast<int>(bias.white_band.first), static_cast<int>(bias.white_band.last)};
    return chart;
}

RelativeBiasView::RelativeBiasView(QWidget* parent)
    : PositionView(parent), m_shown(new QComboBox(this)), m_head(new QComboBox(this)),
      m_curves(new ChartPlot(this)), m_picture(new HeatmapPlot(this))
{
    m_shown->addItems({tr("Curves and map"), tr("Curves"), tr("Map")});
    m_shown->setAccessibleName(tr("What is shown"));
    m_head->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_head->setAccessibleName(tr("Head of the map"));
    m_head->setToolTip(tr("Which head the map shows; the curves show all of them"));
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_head);
    m_tools->addStretch(1);
    m_curves->setAccessibleName(tr("Bias against the offset"));
    m_parts->addWidget(m_curves, 3);
    m_parts->addWidget(m_picture, 2);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this](int shown) {
        m_curves->setVisible(shown != map_only);
        m_picture->setVisible(shown != curves_only);
    });
    connect(m_head, &QComboBox::currentIndexChanged, this, [this] { show(); });
    const auto offset_at = [this](const QPointF& place) {
        return static_cast<int>(std::lround(m_curves->chartAt(place).x()));
    };
    connect(m_curves, &ChartPlot::hovered, this, [this, offset_at](const QPointF& place) {
        if (m_cursor != nullptr) m_cursor->hover(MarkedPlace::diagonal(offset_at(place)));
    });
    connect(m_curves, &ChartPlot::clicked, this, [this, offset_at](const QPointF& place) {
        if (m_cursor != nullptr) m_cursor->togglePin(MarkedPlace::diagonal(offset_at(place)));
    });
    connect(m_curves, &ChartPlot::left, this, [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    });
    connect(m_picture, &HeatmapPlot::cellHovered, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->hover(MarkedPlace::cell(query, key));
    });
    connect(m_picture, &HeatmapPlot::cellClicked, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->togglePin(MarkedPlace::cell(query, key));
    });
    connect(m_picture, &HeatmapPlot::cellLeft, this, [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    });
}

void RelativeBiasView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    m_runner.start<core::RelativeBias>(
        [model = model(), its_stack, number = layer(), wanted = length()](const core::RunContext& ctx) {
            return core::read_relative_bias(*model, *its_stack, number, wanted, ctx);
        },
        [this](core::Result<core::RelativeBias> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            m_bias = std::make_shared<const core::RelativeBias>(*std::move(result));
            {
                const QSignalBlocker quiet(m_head);
                const int before = m_head->currentIndex();
                m_head->clear();
                m_head->addItem(tr("mean of heads"));
                for (std::size_t h = 0; h < m_bias->heads.size(); ++h) m_head->addItem(tr("head %1").arg(h));
                m_head->setCurrentIndex(before > 0 && before < m_head->count() ? before : 0);
            }
            show();
            showPicture();
            showCursor();
        });
}

QString RelativeBiasView::valueName() const
{
    switch (m_bias->kind) {
    case core::RelativeBiasKind::bias: return tr("bias");
    case core::RelativeBiasKind::constant_term: return tr("word-independent term");
    case core::RelativeBiasKind::rotation: return tr("mean cosine of the rotation");
    }
    return {};
}

void RelativeBiasView::show()
{
    if (!m_bias) return;
    ChartContent chart = relative_bias_chart(*m_bias, true);
    chart.y_label = valueName();
    m_curves->setChart(std::move(chart));
    const int head = m_head->currentIndex() - 1;
    const core::PositionMap& map = head < 0 ? m_bias->mean : m_bias->heads[static_cast<std::size_t>(head)];
    const ColorDefaults colors = default_colors(MapMeaning::signed_difference);
    m_picture->setMap(map, make_color_scale(map, colors.map, colors.kind), valueName());
}

QString RelativeBiasView::pictureLine() const
{
    QString line = to_qstring(m_bias->scheme);
    if (!m_bias->notes.empty())
        for (const std::string& note : m_bias->notes)
            if (note.find("is taken") != std::string::npos) line += QStringLiteral("; ") + to_qstring(note);
    if (m_bias->white_band.width > 0.0)
        line += tr(" \u00B7 white band %1 to %2, depth %3")
                    .arg(fixed_text(m_bias->white_band.first, 0), fixed_text(m_bias->white_band.last, 0),
                         fixed_text(m_bias->white_band.depth, 2));
    else
        line += tr(" \u00B7 no white band");
    return line;
}

void RelativeBiasView::showCursor()
{
    if (m_cursor == nullptr || !m_bias) return;
    const auto& place = m_cursor->place();
    const auto size = static_cast<int>(m_bias->length);
    if (!place || !place->offset || std::abs(*place->offset) >= size) {
        m_curves->setMarks({});
    } else {
        const double value =
            m_bias->profile.mean[m_bias->profile.centre() + static_cast<std::size_t>(*place->offset + size) -
                                 static_cast<std::size_t>(size)];
        m_curves->setMarks({}, *place->offset,
                           tr("offset %1: %2").arg(fixed_text(*place->offset, 0), value_text(value)));
    }
    if (place && place->isCell() && *place->query < size && *place->key < size)
        m_picture->setMarkedCell(QPoint(*place->key, *place->query));
    else
        m_picture->setMarkedCell(std::nullopt);
}

FigureSpec RelativeBiasView::figure() const
{
    FigureSpec spec;
    const bool is_map = m_shown->currentIndex() == map_only;
    if (is_map) {
        HeatmapContent content;
        content.map = m_picture->map();
        content.scale = m_picture->colorScale();
        content.quantity_label = valueName();
        spec.content = std::move(content);
    } else {
        spec.content = m_curves->chart();
    }
    nlohmann::ordered_json settings{{"shows", is_map ? "map" : "curves"},
                                    {"head", m_head->currentText().toStdString()},
                                    {"length", m_bias->length},
                                    {"scheme", m_bias->scheme}};
    describe(spec, "relative_bias", settings.dump());
    return spec;
}

void RelativeBiasView::saveChoices(QSettings& settings) const
{
    settings.setValue(QStringLiteral("bias_shown"), m_shown->currentIndex());
}

void RelativeBiasView::restoreChoices(QSettings& settings)
{
    m_shown->setCurrentIndex(std::clamp(settings.value(QStringLiteral("bias_shown"), 0).toInt(), 0, 2));
}

} // namespace posiscope::ui
