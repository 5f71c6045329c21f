// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_similarity_view.h"

#include <QComboBox>
#include <QCoreApplication>
#include <QLabel>
#include <QScrollArea>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/figure/view_charts.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {
namespace {

enum Shown { similarity, norms, singular_values, spectrum, numbers }; ///< similarity_parts() and one more

QString percent(double share)
{
    return std::isnan(share) ? QStringLiteral("\u2014") : fixed_text(100.0 * share, 1) + QStringLiteral(" %");
}

} // namespace

PositionSimilarityView::PositionSimilarityView(QWidget* parent)
    : PositionView(parent), m_shown(new CompactBox(this)), m_kind(new CompactBox(this)),
      m_stack(new QStackedWidget(this)), m_map(new HeatmapPlot(this)), m_chart(new ChartPlot(this)),
      m_numbers(new QLabel(this))
{
    for (const ShownPart& part : similarity_parts())
        m_shown->addItem(QCoreApplication::translate("posiscope", part.label), to_qstring(part.id));
    m_shown->addItem(tr("Numbers"), QStringLiteral("numbers"));
    m_shown->setAccessibleName(tr("What is shown of the position vectors"));
    m_kind->addItems({tr("cosine"), tr("dot product")});
    m_kind->setAccessibleName(tr("Measure of similarity"));
    m_map->setAccessibleName(tr("Similarity of position vectors"));
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_kind);
    m_numbers->setTextFormat(Qt::RichText);
    m_numbers->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_numbers->setMargin(2 * grid);
    m_numbers->setWordWrap(true);
    m_numbers->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* numbers_page = new QScrollArea(this);
    numbers_page->setWidget(m_numbers);
    numbers_page->setWidgetResizable(true);
    numbers_page->setFrameShape(QFrame::NoFrame);
    m_numbers->setBackgroundRole(QPalette::Base);
    m_stack->addWidget(m_map);
    m_stack->addWidget(m_chart);
    m_stack->addWidget(numbers_page);
    m_parts->addWidget(m_stack, 1);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        show();
        Q_EMIT contextChanged();
        Q_EMIT choiceMade(tr("what is shown"));
    });
    connect(m_kind, &QComboBox::currentIndexChanged, this, [this] {
        compute();
        Q_EMIT choiceMade(tr("measure of similarity"));
    });
    for (const auto change : {&TaskRunner::started, &TaskRunner::finished})
        connect(&m_regressions, change, this, &AnalysisView::workChanged);
    connect(&m_regressions, &TaskRunner::progressed, this, &AnalysisView::progressed);
    connect(m_map, &HeatmapPlot::cellHovered, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->hover(placeOf(query, key));
    });
    connect(m_map, &HeatmapPlot::cellClicked, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->togglePin(placeOf(query, key));
    });
    const auto leave = [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    };
    connect(m_map, &HeatmapPlot::cellLeft, this, leave);
    connect(m_chart, &ChartPlot::left, this, leave);
    connect(m_chart, &ChartPlot::hovered, this, [this](const QPointF& place) {
        if (m_cursor == nullptr || !m_found || m_shown->currentIndex() != norms) return;
        const std::vector<std::int64_t> positions = m_found->vectors.used_positions();
        const auto row = static_cast<int>(std::lround(m_chart->chartAt(place).x()) - positions.front());
        if (row >= 0 && row < static_cast<int>(positions.size())) m_cursor->hover(placeOf(row, row));
    });
}

MarkedPlace PositionSimilarityView::placeOf(int query, int key) const
{
    const std::vector<std::int64_t> positions = m_found->vectors.used_positions();
    const auto at = [&](int row) { return static_cast<int>(positions[static_cast<std::size_t>(row)]); };
    // Of two offsets one can be shown in other views: the one below the pointer's column.
    return m_found->vectors.kind == core::PositionVectorKind::offset_vectors
               ? MarkedPlace::diagonal(at(key))
               : MarkedPlace::cell(at(query), at(key));
}

std::optional<QPoint> PositionSimilarityView::cellOf(const MarkedPlace& place) const
{
    const std::vector<std::int64_t> positions = m_found->vectors.used_positions();
    const auto row_of = [&](const std::optional<int>& position) {
        const auto found =
            position ? std::find(positions.begin(), positions.end(), *position) : positions.end();
        return found == positions.end() ? -1 : static_cast<int>(found - positions.begin());
    };
    const bool offsets = m_found->vectors.kind == core::PositionVectorKind::offset_vectors;
    const int row = row_of(offsets ? place.offset : place.query);
    const int column = offsets ? row : row_of(place.key);
    return row < 0 || column < 0 ? std::nullopt : std::optional(QPoint(column, row));
}

void PositionSimilarityView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    if (const std::string lack = core::lack_of_position_vectors(*its_stack); !lack.empty()) {
        m_runner.abandon();
        showLack(lack, {"relative_bias", "attention_heatmap"});
        return;
    }
    core::SimilarityOptions options;
    options.kind = m_kind->currentIndex() == 1 ? core::SimilarityKind::dot : core::SimilarityKind::cosine;
    options.decodability = false;
    m_regressions.abandon();
    m_are_regressions_stopped = false;
    startReading<Found>(
        [model = model(), its_stack, options](const core::RunContext& ctx) -> core::Result<Found> {
            auto vectors = core::read_position_vectors(*model, *its_stack, 0, ctx);
            if (!vectors) return vectors.error();
            Found found;
            found.vectors = *std::move(vectors);
            const core::HostTensor used = found.vectors.used_vectors();
            auto similar = core::position_similarity(used.matrix(), options, ctx);
            if (!similar) return similar.error();
            found.similarity = *std::move(similar);
            if (found.vectors.kind == core::PositionVectorKind::offset_vectors)
                found.far_cosine = core::far_offset_cosine(used.matrix(), found.vectors.used_positions());
            return found;
        },
        [this](core::Result<Found> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            m_found = std::make_shared<const Found>(*std::move(result));
            m_decodability.reset();
            show();
            showPicture();
            showCursor();
            computeDecodability();
        });
}

void PositionSimilarityView::stopWork()
{
    PositionView::stopWork();
    m_regressions.cancel();
}

bool PositionSimilarityView::isStopped() const
{
    return !hasWork() && (PositionView::isStopped() || m_are_regressions_stopped);
}

void PositionSimilarityView::runAgain()
{
    if (PositionView::isStopped())
        PositionView::runAgain(); // regressions follow
    else if (m_are_regressions_stopped && m_found)
        computeDecodability();
}

/// Regressions over all pairs of positions take seconds: the picture does not wait for them.
void PositionSimilarityView::computeDecodability()
{
    m_are_regressions_stopped = false;
    m_regressions.start<core::Decodability>(
        [found = m_found](const core::RunContext& ctx) -> core::Result<core::Decodability> {
            const core::HostTensor used = found->vectors.used_vectors();
            auto similar = core::position_similarity(used.matrix(), {}, ctx);
            if (!similar) return similar.error();
            return similar->decodability;
        },
        [this](core::Result<core::Decodability> result) {
            m_are_regressions_stopped = !result && result.error().code == core::ErrorCode::cancelled;
            if (!result) return;
            m_decodability = *result;
            if (m_shown->currentIndex() == numbers) show();
            Q_EMIT contextChanged();
        });
}

QString PositionSimilarityView::numbersHtml() const
{
    const core::PositionSimilarity& found = m_found->similarity;
    QString html = QStringLiteral("<table cellspacing=\"6\">");
    const auto row = [&](const QString& name, const QString& value) {
        html += QStringLiteral("<tr><td>%1</td><td align=\"right\"><b>%2</b></td></tr>")
                    .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    const auto plain = [](double value, int decimals) {
        return std::isnan(value) ? QStringLiteral("\u2014") : fixed_text(value, decimals);
    };
    row(tr("Dimensions that hold 90, 95, 99 % of the squared length"),
        tr("%1, %2, %3 of %4")
            .arg(found.dimensions[0])
            .arg(found.dimensions[1])
            .arg(found.dimensions[2])
            .arg(found.singular_values.size()));
    const auto pending = [&](const QString& value) {
        return m_decodability ? value : QStringLiteral("\u2026");
    };
    const core::Decodability decodability = m_decodability.value_or(core::Decodability{});
    row(tr("Position from its vector, mean error in positions"),
        pending(plain(decodability.position_error, 2)));
    row(tr("Position from its vector, R\u00B2"), pending(plain(decodability.position_r2, 3)));
    row(tr("Order of two positions told right (chance 50 %)"), pending(percent(decodability.order_accuracy)));
    if (m_found->vectors.kind == core::PositionVectorKind::offset_vectors) {
        row(tr("Mean cosine of offsets beyond 20, key before"), plain(m_found->far_cosine[0], 3));
        row(tr("Mean cosine of offsets beyond 20, key after"), plain(m_found->far_cosine[1], 3));
    }
    const auto metrics = core::metric_list();
    for (std::size_t m = 0; m < found.metrics.size(); ++m)
        if (!std::isnan(found.metrics[m]))
            row(to_qstring(metrics[m].label) + tr(" of the similarity"),
                fixed_text(found.metrics[m], metrics[m].whole_number ? 0 : 3));
    return html + QStringLiteral("</table>");
}

QString PositionSimilarityView::numbersText() const
{
    return m_numbers->text();
}

void PositionSimilarityView::show()
{
    m_kind->setEnabled(m_shown->currentIndex() == similarity || m_shown->currentIndex() == numbers);
    if (!m_found) return;
    const int shown = m_shown->currentIndex();
    m_stack->setCurrentIndex(shown == similarity ? 0 : shown == numbers ? 2 : 1);
    if (shown == similarity) {
        const HeatmapContent content = similarity_content(m_found->vectors, m_found->similarity);
        m_map->setAxes(content.axes);
        m_map->setMap(content.map, content.scale, content.quantity_label);
    } else if (shown == numbers) {
        m_numbers->setText(numbersHtml());
    } else if (shown == norms) {
        m_chart->setChart(norms_chart(m_found->vectors, m_found->similarity));
    } else if (shown == singular_values) {
        m_chart->setChart(singular_values_chart(m_found->similarity));
    } else {
        m_chart->setChart(spectrum_chart(m_found->vectors, m_found->similarity));
    }
    showCursor();
}

QString PositionSimilarityView::pictureLine() const
{
    if (!m_found) return {};
    const QString source = to_qstring(m_found->vectors.source);
    return m_decodability
               ? source + tr(" \u00B7 order told right %1").arg(percent(m_decodability->order_accuracy))
               : source;
}

void PositionSimilarityView::showCursor()
{
    if (m_cursor == nullptr || !m_found) return;
    const auto& place = m_cursor->place();
    const std::optional<QPoint> cell = place ? cellOf(*place) : std::nullopt;
    m_map->setMarkedCell(cell);
    if (m_shown->currentIndex() != norms || !cell) {
        m_chart->setMarks({});
        return;
    }
    const auto row = static_cast<std::size_t>(cell->x());
    const auto position = static_cast<double>(m_found->vectors.used_positions()[row]);
    const bool offsets = m_found->vectors.kind == core::PositionVectorKind::offset_vectors;
    m_chart->setMarks({}, position,
                      (offsets ? tr("offset %1: %2") : tr("position %1: %2"))
                          .arg(fixed_text(position, 0), value_text(m_found->similarity.norms[row])));
}

FigureSpec PositionSimilarityView::figure() const
{
    FigureSpec spec = position_similarity_figure(origin(), m_found->vectors, m_found->similarity,
                                                 to_std(m_shown->currentData().toString()));
    if (auto* content = std::get_if<HeatmapContent>(&spec.content)) {
        content->first = m_map->firstShown();
        content->last = m_map->lastShown();
    } else {
        m_chart->giveView(std::get<ChartContent>(spec.content));
    }
    return spec;
}

bool PositionSimilarityView::canExport() const
{
    return hasPicture() && m_shown->currentIndex() != numbers;
}

QVariantMap PositionSimilarityView::choices() const
{
    return {{QStringLiteral("similarity_shown"), m_shown->currentIndex()},
            {QStringLiteral("similarity_kind"), m_kind->currentIndex()}};
}

void PositionSimilarityView::setChoices(const QVariantMap& choices)
{
    const auto take = [&](const char* name, int now, int last) {
        return std::clamp(choices.value(QLatin1String(name), now).toInt(), 0, last);
    };
    m_shown->setCurrentIndex(take("similarity_shown", m_shown->currentIndex(), numbers));
    m_kind->setCurrentIndex(take("similarity_kind", m_kind->currentIndex(), 1));
}

} // namespace posiscope::ui
