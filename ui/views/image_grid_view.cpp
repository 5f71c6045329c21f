// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/image_grid_view.h"

#include <QBoxLayout>
#include <QLabel>

#include <algorithm>
#include <cmath>

#include "ui/convert.h"
#include "ui/figure/view_charts.h"
#include "ui/plot/chart_plot.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {

ImageGridView::ImageGridView(QWidget* parent)
    : PositionView(parent), m_grid_plot(new ChartPlot(this)), m_patch_plot(new ChartPlot(this)),
      m_metrics(new QLabel(this))
{
    m_grid_plot->setAccessibleName(tr("Similarity maps of all patches"));
    m_grid_plot->setToolTip(tr("A click enlarges the map of a patch"));
    m_patch_plot->setAccessibleName(tr("Similarity map of one patch"));
    m_parts->addWidget(m_grid_plot, 3);
    m_parts->addWidget(m_patch_plot, 2);
    m_metrics->setWordWrap(true);
    m_metrics->setTextFormat(Qt::PlainText);
    m_metrics->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_metrics->setContentsMargins(grid / 2, grid / 2, grid / 2, 0);
    m_metrics->setToolTip(
        tr("0: the property holds perfectly. Translation invariance: two patches count by their distance in "
           "rows "
           "and columns alone.\nMonotonicity: along rows and columns, nearer patches are more alike."));
    m_body->addWidget(m_metrics);
    connect(m_grid_plot, &ChartPlot::clicked, this, [this](const QPointF& place) {
        if (const auto patch = patchAt(place)) choosePatch(*patch);
    });
    connect(m_grid_plot, &ChartPlot::hovered, this, [this](const QPointF& place) {
        const auto patch = patchAt(place);
        if (m_cursor == nullptr || !patch) return;
        const int position =
            *patch < m_found->patches() ? *patch + m_found->special() : *patch - m_found->patches();
        m_cursor->hover(MarkedPlace::cell(position, position));
    });
    connect(m_patch_plot, &ChartPlot::hovered, this, [this](const QPointF& place) {
        if (m_cursor == nullptr || !m_found) return;
        const QPointF at = m_patch_plot->chartAt(place);
        const auto columns = static_cast<int>(m_found->grid.grid.cols);
        const auto column = static_cast<int>(at.x()), row = static_cast<int>(-at.y());
        const int other = row * columns + column;
        if (column >= columns || other < 0 || other >= m_found->patches()) return;
        const int from =
            m_patch < m_found->patches() ? m_patch + m_found->special() : m_patch - m_found->patches();
        m_cursor->hover(MarkedPlace::cell(from, other + m_found->special()));
    });
    for (ChartPlot* plot : {m_grid_plot, m_patch_plot})
        connect(plot, &ChartPlot::left, this, [this] {
            if (m_cursor != nullptr) m_cursor->leave();
        });
}

std::optional<int> ImageGridView::patchAt(const QPointF& place) const
{
    if (!m_found) return std::nullopt;
    const auto patch = image_patch_at(m_found->grid, m_grid_plot->chartAt(place));
    return patch ? std::optional(static_cast<int>(*patch)) : std::nullopt;
}

void ImageGridView::choosePatch(int patch)
{
    if (!m_found || patch < 0 ||
        patch >= m_found->patches() + static_cast<int>(m_found->grid.prefixes.size()))
        return;
    m_patch = patch;
    m_patch_plot->setChart(image_patch_chart(m_found->grid, static_cast<std::size_t>(patch)));
    showCursor();
    Q_EMIT contextChanged();
}

void ImageGridView::setSession(std::shared_ptr<const core::Session> session)
{
    const bool same_probe =
        m_session && session && m_session->probe == session->probe && m_session->display == session->display;
    m_session = session;
    PositionView::setSession(std::move(session));
    if (!same_probe) computeAttention();
}

void ImageGridView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    if (const std::string lack = core::lack_of_image_grid(*its_stack); !lack.empty()) {
        m_runner.abandon();
        showLack(lack, {"position_map", "relative_bias", "attention_heatmap"});
        return;
    }
    startReading<Found>(
        [model = model(), its_stack, number = layer()](const core::RunContext& ctx) -> core::Result<Found> {
            auto read = core::read_image_grid(*model, *its_stack, number, ctx);
            if (!read) return read.error();
            Found found{*std::move(read), {}};
            found.chart = image_grid_chart(found.grid);
            found.chart.bar->shown = false; // the enlarged map beside it has the same
            return found;
        },
        [this](core::Result<Found> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            m_found = std::make_shared<const Found>(*std::move(result));
            m_grid_plot->setChart(m_found->chart);
            const auto rows = static_cast<int>(m_found->grid.grid.rows),
                       columns = static_cast<int>(m_found->grid.grid.cols);
            showPicture();
            choosePatch(rows / 2 * columns + columns / 2);
            showMetrics();
        });
}

void ImageGridView::computeAttention()
{
    m_attention.reset();
    showMetrics();
    if (!m_session || !m_session->probe || m_session->probe->grid_rows < 1) {
        m_attention_runner.abandon();
        return;
    }
    using Metrics = std::optional<core::GridMetrics>;
    m_attention_runner.start<Metrics>(
        [probe = m_session->probe,
         display = m_session->display](const core::RunContext&) -> core::Result<Metrics> {
            return core::attention_grid_metrics(*probe, display.quantity, display.head);
        },
        [this, session = m_session](core::Result<Metrics> result) {
            if (!result) return;
            m_attention = *result;
            m_attention_name = tr("%1, layer %2, %3")
                                   .arg(quantity_label(session->display.quantity))
                                   .arg(session->probe->options.layer)
                                   .arg(head_label(session->display.head, session->probe->heads));
            showMetrics();
        });
}

void ImageGridView::showMetrics()
{
    QStringList lines;
    const auto line = [&](const QString& name, const core::GridMetrics& metrics) {
        lines << tr("%1: violation of translation invariance %2, of monotonicity %3")
                     .arg(name, shown_number(metrics.translation_invariance_violation, 3),
                          shown_number(metrics.monotonicity_violation, 3));
    };
    if (m_found)
        line(m_found->grid.kind == core::ImageGridKind::bias ? tr("Bias in two dimensions")
                                                             : tr("Position vectors in two dimensions"),
             m_found->grid.metrics);
    if (m_attention) line(tr("Attention (%1)").arg(m_attention_name), *m_attention);
    m_metrics->setText(lines.join(u'\n'));
    m_metrics->setVisible(!lines.isEmpty());
}

QString ImageGridView::metricsText() const
{
    return m_metrics->text();
}

QString ImageGridView::pictureLine() const
{
    if (!m_found) return {};
    const auto rows = static_cast<int>(m_found->grid.grid.rows),
               columns = static_cast<int>(m_found->grid.grid.cols);
    const QString enlarged =
        m_patch < m_found->patches()
            ? tr("row %1, column %2").arg(m_patch / columns).arg(m_patch % columns)
            : to_qstring(m_found->grid.prefixes[static_cast<std::size_t>(m_patch - m_found->patches())].name);
    return to_qstring(m_found->grid.source) +
           tr(" \u00B7 %1 x %2 patches, enlarged: %3").arg(rows).arg(columns).arg(enlarged);
}

void ImageGridView::showCursor()
{
    if (!m_found) return;
    const auto columns = static_cast<int>(m_found->grid.grid.cols);
    std::vector<QPointF> on_grid, on_patch;
    const auto mark = [&](int patch) {
        on_grid.push_back(image_patch_middle(m_found->grid, static_cast<std::size_t>(patch)));
        if (patch < m_found->patches())
            on_patch.emplace_back(patch % columns + 0.5, -(patch / columns + 0.5));
    };
    mark(m_patch);
    if (m_cursor != nullptr && m_cursor->place() && m_cursor->place()->isCell())
        for (const int position : {*m_cursor->place()->query, *m_cursor->place()->key})
            if (const int patch = position - m_found->special(); patch >= 0 && patch < m_found->patches())
                mark(patch);
    m_grid_plot->setMarks(std::move(on_grid));
    m_patch_plot->setMarks(std::move(on_patch));
}

FigureSpec ImageGridView::figure() const
{
    return image_grid_figure(origin(), m_found->grid);
}

} // namespace posiscope::ui
