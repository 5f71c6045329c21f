// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/layer_metrics_view.h"

#include <QComboBox>
#include <QBoxLayout>
#include <QProgressBar>
#include <QToolButton>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/ticks.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {
namespace {

constexpr const char* distance_id = "distance";
constexpr const char* ratio_id = "distance_ratio";

} // namespace

ChartContent layer_metric_chart(const core::LayerMetrics& found, std::size_t metric)
{
    const core::Metric& row = core::metric_list()[metric];
    ChartContent chart;
    chart.x_label = LayerMetricsView::tr("layer");
    chart.y_label = to_qstring(row.label);
    chart.integer_x = true;
    chart.zero_line = row.better == core::BetterWhen::near_zero;
    for (std::size_t s = 0; s < found.stacks.size(); ++s) {
        const core::StackLayers& stack = found.stacks[s];
        ChartSeries series;
        if (found.stacks.size() > 1) series.name = to_qstring(stack.stack);
        series.x.assign(stack.layers.begin(), stack.layers.end());
        series.y = stack.values[metric];
        series.points = true;
        series.width = 1.4;
        color_stack(series, s);
        series.hollow = s > 0; // told apart without colour too
        chart.series.push_back(std::move(series));
    }
    return chart;
}

ChartContent layer_distance_chart(const core::StackLayers& stack, bool ratio)
{
    ChartContent chart;
    chart.x_label = LayerMetricsView::tr("query position");
    chart.y_label = ratio ? LayerMetricsView::tr("attention distance / that of a uniform row")
                          : LayerMetricsView::tr("attention distance in positions");
    chart.integer_x = true;
    const auto& curves = ratio ? stack.distance_ratio : stack.distance;
    const double last = std::max(1.0, static_cast<double>(curves.size()) - 1.0);
    for (std::size_t k = 0; k < curves.size(); ++k) {
        ChartSeries series;
        series.y = curves[k];
        series.x.resize(series.y.size());
        for (std::size_t i = 0; i < series.x.size(); ++i)
            series.x[i] = static_cast<double>(stack.first_position + i);
        series.width = 1.2;
        if (curves.size() > 1) series.color = SeriesColor::by_value;
        series.values.assign(series.y.size(), static_cast<double>(k) / last);
        chart.series.push_back(std::move(series));
    }
    if (curves.size() > 1)
        chart.bar =
            ChartBar{ColorMapId::viridis, LayerMetricsView::tr("layer"),
                     static_cast<double>(stack.layers.front()), static_cast<double>(stack.layers.back())};
    return chart;
}

LayerMetricsView::LayerMetricsView(QWidget* parent)
    : StacksView(parent), m_shown(new CompactBox(this)), m_progress(new QProgressBar(this)),
      m_stop(new QToolButton(this)), m_plot(new ChartPlot(this))
{
    for (const core::Metric& metric : core::metric_list()) {
        m_shown->addItem(to_qstring(metric.label), to_qstring(metric.id));
        m_shown->setItemData(m_shown->count() - 1, to_qstring(metric.explanation), Qt::ToolTipRole);
    }
    m_shown->insertSeparator(m_shown->count());
    m_shown->addItem(tr("Attention distance by query"), QString::fromLatin1(distance_id));
    m_shown->addItem(tr("Distance ratio by query"), QString::fromLatin1(ratio_id));
    m_shown->setAccessibleName(tr("What is drawn against the layer"));
    m_shown->setMaximumWidth(42 * grid);
    m_progress->setTextVisible(false);
    m_progress->setFixedSize(10 * grid, 6);
    m_progress->setAccessibleName(tr("Progress through the layers"));
    m_stop->setText(tr("Stop"));
    m_stop->setFocusPolicy(Qt::StrongFocus);
    m_tools->addWidget(m_shown);
    m_tools->startTrailing();
    m_tools->addWidget(m_progress);
    m_tools->addWidget(m_stop);
    m_plot->setAccessibleName(tr("Metric against the layer"));
    m_parts->addWidget(m_plot, 1);
    m_progress->hide();
    m_stop->hide();

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        show();
        Q_EMIT choiceMade(tr("what is drawn against the layer"));
    });
    connect(m_stop, &QToolButton::clicked, this, [this] {
        if (m_runner.isRunning()) {
            m_runner.cancel();
        } else {
            forgetWish();
            compute();
        }
    });
    connect(&m_runner, &TaskRunner::started, this, &LayerMetricsView::showWork);
    connect(&m_runner, &TaskRunner::finished, this, &LayerMetricsView::showWork);
    connect(&m_runner, &TaskRunner::progressed, this,
            [this](const QString&, qulonglong done, qulonglong total) {
                m_progress->setRange(0, total == 0 ? 0 : 1000);
                if (total != 0)
                    m_progress->setValue(
                        static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total)));
            });
    connect(m_plot, &ChartPlot::hovered, this, [this](const QPointF& place) {
        if (m_cursor == nullptr || !showsDistance()) return;
        const int query = static_cast<int>(std::lround(m_plot->chartAt(place).x()));
        if (query >= 0) m_cursor->hover(MarkedPlace::cell(query, query));
    });
    connect(m_plot, &ChartPlot::left, this, [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    });
    connect(m_plot, &ChartPlot::clicked, this, &LayerMetricsView::goToLayerAt);
}

bool LayerMetricsView::showsDistance() const
{
    const QString id = m_shown->currentData().toString();
    return id == QLatin1String(distance_id) || id == QLatin1String(ratio_id);
}

/// The stack that the settings choose, where it could be probed.
const core::StackLayers* LayerMetricsView::shownStack() const
{
    if (!m_found || m_found->stacks.empty()) return nullptr;
    const core::Stack* chosen = stack();
    for (const core::StackLayers& one : m_found->stacks)
        if (chosen != nullptr && one.stack == chosen->id) return &one;
    return &m_found->stacks.front();
}

void LayerMetricsView::compute()
{
    StacksWish wish = sessionWish();
    if (!wish.model) return;
    wish.probe.layer = 0; // all of them
    if (wish == m_wish) {
        if (m_found && !m_runner.isRunning()) show(); // another layer or stack to mark
        return;
    }
    m_wish = wish;
    startReading<core::LayerMetrics>(
        [wish](const core::RunContext& ctx) {
            return core::compute_layer_metrics(*wish.model, wish.probe, wish.display, ctx);
        },
        [this, wish](core::Result<core::LayerMetrics> result) {
            if (!result) {
                if (result.error().code != core::ErrorCode::cancelled || !m_found) showError(result.error());
                return;
            }
            m_found = std::make_shared<const core::LayerMetrics>(*std::move(result));
            m_found_for = wish;
            show();
            showPicture();
        });
}

void LayerMetricsView::showWork()
{
    const bool works = m_runner.isRunning();
    const bool stopped = !works && m_wish.model && m_wish != m_found_for && canExport();
    m_progress->setVisible(works);
    if (works) m_progress->setRange(0, 0);
    m_stop->setVisible(works || stopped);
    m_stop->setText(works ? tr("Stop") : tr("Go on"));
    m_stop->setToolTip(works ? tr("Stops the run through the layers; the old picture stays")
                             : tr("The picture belongs to older settings: compute it for the present ones"));
    m_plot->setEnabled(!works);
    Q_EMIT contextChanged();
}

void LayerMetricsView::show()
{
    if (!m_found) return;
    if (showsDistance()) {
        m_plot->setChart(layer_distance_chart(*shownStack(),
                                              m_shown->currentData().toString() == QLatin1String(ratio_id)));
    } else {
        m_plot->setChart(layer_metric_chart(*m_found, static_cast<std::size_t>(m_shown->currentIndex())));
    }
    showCursor();
    Q_EMIT contextChanged();
}

void LayerMetricsView::showCursor()
{
    if (!m_found) return;
    const core::StackLayers* shown = shownStack();
    if (!showsDistance()) {
        const auto metric = static_cast<std::size_t>(m_shown->currentIndex());
        const auto at = std::find(shown->layers.begin(), shown->layers.end(), layer());
        if (at == shown->layers.end()) {
            m_plot->setMarks({});
            return;
        }
        const double value = shown->values[metric][static_cast<std::size_t>(at - shown->layers.begin())];
        m_plot->setMarks(
            {QPointF(layer(), value)}, layer(),
            tr("%1, layer %2: %3").arg(to_qstring(shown->stack)).arg(layer()).arg(value_text(value)));
        return;
    }
    if (m_cursor == nullptr || !m_cursor->place() || !m_cursor->place()->isCell()) {
        m_plot->setMarks({});
        return;
    }
    m_plot->setMarks({}, *m_cursor->place()->query, tr("query %1").arg(*m_cursor->place()->query));
}

/// A click on a layer's place makes it the layer of the settings.
void LayerMetricsView::goToLayerAt(const QPointF& place)
{
    if (!m_found || showsDistance() || !m_plot->isInside(place)) return;
    const int wanted = static_cast<int>(std::lround(m_plot->chartAt(place).x()));
    // The stack whose point is nearest.
    std::optional<std::size_t> chosen;
    double nearest = 0.0;
    const ChartContent& chart = m_plot->chart();
    for (std::size_t s = 0; s < m_found->stacks.size(); ++s) {
        const auto& layers = m_found->stacks[s].layers;
        const auto at = std::find(layers.begin(), layers.end(), wanted);
        if (at == layers.end()) continue;
        const double value = chart.series[s].y[static_cast<std::size_t>(at - layers.begin())];
        const double apart = std::isnan(value) ? std::numeric_limits<double>::max()
                                               : std::abs(m_plot->placeOf(wanted, value).y() - place.y());
        if (!chosen || apart < nearest) {
            chosen = s;
            nearest = apart;
        }
    }
    if (chosen) Q_EMIT layerChosen(to_qstring(m_found->stacks[*chosen].stack), wanted);
}

QString LayerMetricsView::contextLine() const
{
    if (!m_found || !m_found_for.model || message().size() > 0) return PositionView::contextLine();
    QStringList parts{to_qstring(m_found_for.model->checkpoint->display_name())};
    if (showsDistance()) {
        parts += to_qstring(shownStack()->stack);
        parts += quantity_label(core::Quantity::probabilities);
    } else {
        QStringList stacks;
        for (const core::StackLayers& one : m_found->stacks) stacks += to_qstring(one.stack);
        parts += stacks.join(tr(" and "));
        parts += quantity_label(m_found->display.quantity);
    }
    parts += settingsParts(m_found->display, shownStack()->words, shownStack()->length);
    for (const std::string& note : m_found->notes) parts += to_qstring(note);
    return parts.join(QStringLiteral(" \u00B7 "));
}

FigureSpec LayerMetricsView::figure() const
{
    FigureSpec spec;
    spec.content = m_plot->chart();
    nlohmann::ordered_json settings{
        {"shows", m_shown->currentData().toString().toStdString()},
        {"quantity", core::quantity_id(m_found->display.quantity)},
        {"head", m_found->display.head},
        {"without_first", m_found->display.positions == core::PositionChoice::without_first},
        {"words", shownStack()->words},
        {"length", shownStack()->length},
        {"seed", m_found_for.probe.seed}};
    describe(spec, "layer_metrics", settings.dump());
    return spec;
}

QVariantMap LayerMetricsView::choices() const
{
    return {{QStringLiteral("layers_shown"), m_shown->currentData().toString()}};
}

void LayerMetricsView::setChoices(const QVariantMap& choices)
{
    const int index = m_shown->findData(choices.value(QStringLiteral("layers_shown")).toString());
    if (index >= 0) m_shown->setCurrentIndex(index);
}

} // namespace posiscope::ui
