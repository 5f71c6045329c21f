// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/stack_comparison_view.h"

#include <QComboBox>
#include <QCoreApplication>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/ticks.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {
namespace {

enum Shown { maps_and_numbers, distance, distance_ratio };

/// What the paper compares encoders and decoders by, as far as it is a metric of the table.
constexpr std::array compared_metrics{"first_position_extra", "direction_balance",
                                      "translation_invariance_violation", "monotonicity_violation_local",
                                      "symmetry_violation"};

QString stack_name(const core::StackMap& stack)
{
    return StackComparisonView::tr("%1, layer %2").arg(to_qstring(stack.stack)).arg(stack.layer);
}

} // namespace

ChartContent stack_distance_chart(const core::StackMaps& found, bool ratio)
{
    ChartContent chart;
    chart.x_label = StackComparisonView::tr("query position");
    chart.y_label = ratio ? StackComparisonView::tr("attention distance / that of a uniform row")
                          : StackComparisonView::tr("attention distance in positions");
    chart.integer_x = true;
    for (std::size_t s = 0; s < found.stacks.size(); ++s) {
        ChartSeries series;
        series.name = stack_name(found.stacks[s]);
        series.y = ratio ? found.stacks[s].distance.ratio : found.stacks[s].distance.distance;
        series.x.resize(series.y.size());
        for (std::size_t i = 0; i < series.x.size(); ++i)
            series.x[i] = static_cast<double>(found.stacks[s].map.first_position + i);
        series.width = 1.4;
        color_stack(series, s);
        chart.series.push_back(std::move(series));
    }
    return chart;
}

StackComparisonView::StackComparisonView(QWidget* parent)
    : StacksView(parent), m_shown(new CompactBox(this)), m_scale(new CompactBox(this)),
      m_pair(new QWidget(this)), m_names{new QLabel(m_pair), new QLabel(m_pair)},
      m_maps{new HeatmapPlot(m_pair), new HeatmapPlot(m_pair)}, m_distance(new ChartPlot(this)),
      m_numbers(new QLabel(m_pair))
{
    m_shown->addItems({tr("Maps"), tr("Attention distance"), tr("Distance ratio")});
    m_shown->setAccessibleName(tr("What is shown of the stacks"));
    for (const ScaleKindRow& row : scale_kinds())
        m_scale->addItem(QCoreApplication::translate("plots", row.label), to_qstring(row.id));
    m_scale->setAccessibleName(tr("Colour scale of both maps"));
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_scale);

    auto* cells = new QGridLayout(m_pair);
    cells->setContentsMargins(0, 0, 0, 0);
    cells->setSpacing(grid / 2);
    for (int s = 0; s < 2; ++s) {
        QLabel* name = m_names[static_cast<std::size_t>(s)];
        name->setAlignment(Qt::AlignCenter);
        name->setTextFormat(Qt::PlainText);
        cells->addWidget(name, 0, s);
        cells->addWidget(m_maps[static_cast<std::size_t>(s)], 1, s);
        cells->setColumnStretch(s, 1);
    }
    m_numbers->setTextFormat(Qt::RichText);
    m_numbers->setAlignment(Qt::AlignCenter);
    m_numbers->setTextInteractionFlags(Qt::TextSelectableByMouse);
    cells->addWidget(m_numbers, 2, 0, 1, 2);
    cells->setRowStretch(1, 1);
    m_distance->setAccessibleName(tr("Attention distance against the query position"));
    m_parts->addWidget(m_pair, 1);
    m_parts->addWidget(m_distance, 1);
    m_distance->hide();

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        show();
        Q_EMIT choiceMade(tr("what is shown of the stacks"));
    });
    connect(m_scale, &QComboBox::currentIndexChanged, this, [this](int row) {
        m_scales[static_cast<std::size_t>(meaning())] = scale_kinds()[static_cast<std::size_t>(row)].kind;
        show();
        Q_EMIT choiceMade(tr("colour scale of both maps"));
    });
    for (HeatmapPlot* plot : m_maps) {
        connect(plot, &HeatmapPlot::cellHovered, this, [this](int query, int key) {
            if (m_cursor != nullptr) m_cursor->hover(MarkedPlace::cell(query, key));
        });
        connect(plot, &HeatmapPlot::cellClicked, this, [this](int query, int key) {
            if (m_cursor != nullptr) m_cursor->togglePin(MarkedPlace::cell(query, key));
        });
        connect(plot, &HeatmapPlot::cellLeft, this, [this] {
            if (m_cursor != nullptr) m_cursor->leave();
        });
        connect(plot, &HeatmapPlot::positionRangeChanged, this, [this](int first, int last) {
            for (HeatmapPlot* each : m_maps) each->setPositionRange(first, last);
            if (m_cursor != nullptr) m_cursor->zoom(first, last);
        });
    }
    connect(m_distance, &ChartPlot::hovered, this, [this](const QPointF& place) {
        const int query = static_cast<int>(std::lround(m_distance->chartAt(place).x()));
        if (m_cursor != nullptr && query >= 0) m_cursor->hover(MarkedPlace::cell(query, query));
    });
    connect(m_distance, &ChartPlot::left, this, [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    });
}

void StackComparisonView::compute()
{
    const StacksWish wish = sessionWish();
    if (!wish.model) return;
    if (wish == m_wish) return;
    m_wish = wish;
    const auto& stacks = wish.model->architecture.stacks;
    if (stacks.size() < 2) {
        m_runner.abandon();
        showMessage(
            tr("%1 has one stack, the %2. Side by side needs an encoder and a decoder, or a text and a "
               "vision stack.")
                .arg(to_qstring(wish.model->checkpoint->display_name()),
                     stacks.empty() ? tr("encoder") : to_qstring(stacks.front().id)));
        return;
    }
    startReading<core::StackMaps>(
        [wish](const core::RunContext& ctx) {
            return core::compute_stack_maps(*wish.model, wish.probe, wish.display, ctx);
        },
        [this](core::Result<core::StackMaps> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            if (result->stacks.size() < 2) {
                showMessage(tr("Only the %1 can be shown: %2.")
                                .arg(to_qstring(result->stacks.front().stack),
                                     result->notes.empty() ? QString() : to_qstring(result->notes.front())));
                return;
            }
            m_found = std::make_shared<const core::StackMaps>(*std::move(result));
            show();
            showPicture();
            showCursor();
        });
}

MapMeaning StackComparisonView::meaning() const
{
    return m_found ? meaning_of(m_found->display.quantity) : MapMeaning::magnitude;
}

void StackComparisonView::takeScale()
{
    const QSignalBlocker quiet(m_scale);
    const ScaleKind kind = m_scales[static_cast<std::size_t>(meaning())];
    m_scale->setCurrentIndex(m_scale->findData(to_qstring(scale_kind_id(kind))));
}

void StackComparisonView::show()
{
    if (!m_found) return;
    takeScale();
    const int shown = m_shown->currentIndex();
    m_pair->setVisible(shown == maps_and_numbers);
    m_distance->setVisible(shown != maps_and_numbers);
    m_scale->setVisible(shown == maps_and_numbers);
    const std::array maps{m_found->stacks[0].map, m_found->stacks[1].map};
    const ColorScale scale = make_color_scale(maps, default_colors(meaning()).map,
                                              m_scales[static_cast<std::size_t>(meaning())]); // one for both
    for (std::size_t s = 0; s < m_maps.size(); ++s) {
        m_names[s]->setText(stack_name(m_found->stacks[s]));
        m_maps[s]->setAccessibleName(stack_name(m_found->stacks[s]));
        // Two maps share the panel: the short name fits beside their bars.
        m_maps[s]->setMap(maps[s], scale, quantity_label(m_found->display.quantity));
    }
    m_numbers->setText(numbersHtml());
    m_distance->setChart(stack_distance_chart(*m_found, shown == distance_ratio));
    showCursor();
    Q_EMIT contextChanged();
}

QString StackComparisonView::numbersHtml() const
{
    const auto metrics = core::metric_list();
    QString html = QStringLiteral("<table cellspacing='0' cellpadding='1'><tr><td></td>");
    for (const core::StackMap& stack : m_found->stacks)
        html +=
            QStringLiteral("<td align='right'>&nbsp;&nbsp;%1</td>").arg(stack_name(stack).toHtmlEscaped());
    html += QStringLiteral("</tr>");
    const auto row = [&](const QString& name, const std::array<double, 2>& values) {
        html += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td>").arg(name.toHtmlEscaped());
        for (const double value : values)
            html += QStringLiteral("<td align='right'><b>%1</b></td>").arg(shown_number(value, 3));
        html += QStringLiteral("</tr>");
    };
    for (const char* id : compared_metrics)
        for (std::size_t m = 0; m < metrics.size(); ++m)
            if (metrics[m].id == id)
                row(to_qstring(metrics[m].label),
                    {m_found->stacks[0].values[m], m_found->stacks[1].values[m]});
    row(tr("Mean attention distance / that of a uniform row"),
        {core::mean_of_defined(m_found->stacks[0].distance.ratio),
         core::mean_of_defined(m_found->stacks[1].distance.ratio)});
    return html + QStringLiteral("</table>");
}

void StackComparisonView::showCursor()
{
    if (m_cursor == nullptr || !m_found) return;
    const auto& place = m_cursor->place();
    const bool is_cell = place && place->isCell();
    for (HeatmapPlot* plot : m_maps)
        if (is_cell && plot->valueAt(*place->query, *place->key))
            plot->setMarkedCell(QPoint(*place->key, *place->query));
        else
            plot->setMarkedCell(std::nullopt);
    if (!is_cell) {
        m_distance->setMarks({});
        return;
    }
    QStringList readings;
    for (const ChartSeries& series : m_distance->chart().series) {
        const auto at = std::find(series.x.begin(), series.x.end(), static_cast<double>(*place->query));
        if (at != series.x.end())
            readings += tr("%1: %2").arg(
                series.name, value_text(series.y[static_cast<std::size_t>(at - series.x.begin())]));
    }
    m_distance->setMarks({}, *place->query,
                         tr("query %1").arg(*place->query) + QStringLiteral("   ") +
                             readings.join(QStringLiteral("   ")));
}

QString StackComparisonView::contextLine() const
{
    if (!m_found || !message().isEmpty()) return PositionView::contextLine();
    QStringList parts{to_qstring(m_wish.model->checkpoint->display_name())};
    for (const core::StackMap& stack : m_found->stacks) parts += stack_name(stack);
    parts += m_shown->currentIndex() == maps_and_numbers ? quantity_label(m_found->display.quantity)
                                                         : quantity_label(core::Quantity::probabilities);
    const core::StackMap& first = m_found->stacks.front();
    parts += settingsParts(m_found->display, first.words, first.length);
    return parts.join(QStringLiteral(" \u00B7 "));
}

FigureSpec StackComparisonView::figure() const
{
    FigureSpec spec;
    const int shown = m_shown->currentIndex();
    std::string shows = shown == distance_ratio ? "distance_ratio" : "distance";
    if (shown == maps_and_numbers) {
        // Papers set maps beside each other as sub-figures (a) and (b): one figure each, on the common colour scale.
        const core::Stack* chosen = stack();
        const std::size_t s = chosen != nullptr && m_found->stacks[1].stack == chosen->id ? 1 : 0;
        HeatmapContent content;
        content.map = m_maps[s]->map();
        content.scale = m_maps[s]->colorScale();
        content.quantity_label = quantity_axis_label(m_found->display.quantity);
        content.first = m_maps[s]->firstShown();
        content.last = m_maps[s]->lastShown();
        spec.content = std::move(content);
        shows = m_found->stacks[s].stack;
    } else {
        spec.content = stack_distance_chart(*m_found, shown == distance_ratio);
    }
    nlohmann::ordered_json settings{{"shows", shows},
                                    {"quantity", core::quantity_id(m_found->display.quantity)},
                                    {"head", m_found->display.head},
                                    {"words", m_found->stacks.front().words},
                                    {"length", m_found->stacks.front().length},
                                    {"seed", m_wish.probe.seed}};
    describe(spec, "stack_comparison", settings.dump());
    return spec;
}

QVariantMap StackComparisonView::choices() const
{
    QVariantMap choices{{QStringLiteral("stacks_shown"), m_shown->currentIndex()}};
    for (std::size_t k = 0; k < m_scales.size(); ++k)
        choices.insert(QStringLiteral("stacks_scale%1").arg(k), to_qstring(scale_kind_id(m_scales[k])));
    return choices;
}

void StackComparisonView::setChoices(const QVariantMap& choices)
{
    m_shown->setCurrentIndex(
        std::clamp(choices.value(QStringLiteral("stacks_shown"), m_shown->currentIndex()).toInt(), 0, 2));
    for (std::size_t k = 0; k < m_scales.size(); ++k)
        if (const auto kind =
                find_scale_kind(to_std(choices.value(QStringLiteral("stacks_scale%1").arg(k)).toString())))
            m_scales[k] = *kind;
    takeScale();
    show();
}

} // namespace posiscope::ui
