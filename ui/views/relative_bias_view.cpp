// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/relative_bias_view.h"

#include <QComboBox>
#include <QBoxLayout>
#include <QSignalBlocker>

#include <algorithm>
#include <cmath>

#include "ui/convert.h"
#include "ui/figure/view_charts.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {
namespace {

enum Shown { curves_and_map, curves_only, map_only };
constexpr int least_width_for_both = 500;
constexpr int least_height_for_both = 440;

} // namespace

RelativeBiasView::RelativeBiasView(QWidget* parent)
    : PositionView(parent), m_shown(new CompactBox(this)), m_head(new CompactBox(this)),
      m_curves(new ChartPlot(this)), m_picture(new HeatmapPlot(this))
{
    m_shown->addItems({tr("Curves and map"), tr("Curves"), tr("Map")});
    m_head->addItem(tr("mean of heads"));
    m_shown->setAccessibleName(tr("What is shown"));
    m_shown->setToolTip(
        tr("In a small panel the curves stand alone: let the panel fill the workspace for both"));
    m_head->setAccessibleName(tr("Head of the map"));
    m_head->setToolTip(tr("Which head the map shows; the curves show all of them"));
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_head);
    m_curves->setAccessibleName(tr("Bias against the offset"));
    m_parts->addWidget(m_curves, 3);
    m_parts->addWidget(m_picture, 2);

    m_picture->setProfilesVisible(false);
    m_picture->setAccessibleName(tr("Bias of every query and key"));

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        takeShown();
        Q_EMIT choiceMade(tr("what is shown"));
    });
    connect(m_head, &QComboBox::currentIndexChanged, this, [this] {
        show();
        Q_EMIT choiceMade(tr("head of the bias"));
    });
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
    if (const std::string lack = core::lack_of_relative_bias(*its_stack); !lack.empty()) {
        m_runner.abandon();
        showLack(lack, {"position_map", "attention_heatmap"});
        return;
    }
    startReading<core::RelativeBias>(
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

int RelativeBiasView::head() const
{
    return m_head->currentIndex() - 1; // core::mean_of_heads first
}

void RelativeBiasView::takeShown()
{
    m_curves->setVisible(m_shown->currentIndex() != map_only);
    // Beside the curves the map needs room of its own: in a small panel it would be a stamp.
    const bool has_room = width() >= least_width_for_both || height() >= least_height_for_both;
    m_picture->setVisible(m_shown->currentIndex() == map_only ||
                          (m_shown->currentIndex() == curves_and_map && has_room));
    m_head->setEnabled(m_shown->currentIndex() != curves_only);
}

void RelativeBiasView::resizeEvent(QResizeEvent* event)
{
    PositionView::resizeEvent(event);
    takeShown();
}

void RelativeBiasView::show()
{
    if (!m_bias) return;
    m_curves->setChart(relative_bias_chart(*m_bias));
    const HeatmapContent content = relative_bias_content(*m_bias, head());
    m_picture->setMap(content.map, content.scale, content.quantity_label);
}

QString RelativeBiasView::pictureLine() const
{
    if (!m_bias) return {};
    QString line = to_qstring(m_bias->scheme);
    for (const std::string& note : m_bias->notes)
        if (note.find("is taken") != std::string::npos) line += QStringLiteral("; ") + to_qstring(note);
    return line + QStringLiteral(" \u00B7 ") + white_band_line(m_bias->white_band);
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
    const bool is_map = m_shown->currentIndex() == map_only;
    FigureSpec spec = relative_bias_figure(origin(), *m_bias, is_map ? "map" : "curves", head());
    if (auto* content = std::get_if<HeatmapContent>(&spec.content)) {
        content->first = m_picture->firstShown();
        content->last = m_picture->lastShown();
    } else {
        m_curves->giveView(std::get<ChartContent>(spec.content));
    }
    return spec;
}

QVariantMap RelativeBiasView::choices() const
{
    return {{QStringLiteral("bias_shown"), m_shown->currentIndex()},
            {QStringLiteral("bias_head"), m_head->currentIndex()}};
}

void RelativeBiasView::setChoices(const QVariantMap& choices)
{
    const auto take = [&](const char* name, const QComboBox* box) {
        return std::clamp(choices.value(QLatin1String(name), box->currentIndex()).toInt(), 0,
                          box->count() - 1);
    };
    m_shown->setCurrentIndex(take("bias_shown", m_shown));
    m_head->setCurrentIndex(take("bias_head", m_head));
}

} // namespace posiscope::ui
