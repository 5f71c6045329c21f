// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_similarity_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSettings>
#include <QStackedWidget>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {
namespace {

enum Shown { similarity, norms, singular_values, spectrum, numbers };

QString percent(double share)
{
    return std::isnan(share) ? QStringLiteral("\u2014") : fixed_text(100.0 * share, 1) + QStringLiteral(" %");
}

} // namespace

PositionSimilarityView::PositionSimilarityView(QWidget* parent)
    : PositionView(parent), m_shown(new QComboBox(this)), m_kind(new QComboBox(this)),
      m_parts(new QStackedWidget(this)), m_map(new HeatmapPlot(this)), m_chart(new ChartPlot(this)),
      m_numbers(new QLabel(this))
{
    m_shown->addItems({tr("Similarity"), tr("Norms"), tr("Singular values"), tr("Spectrum"), tr("Numbers")});
    m_shown->setAccessibleName(tr("What is shown of the position vectors"));
    m_kind->addItems({tr("cosine"), tr("dot product")});
    m_kind->setAccessibleName(tr("Measure of similarity"));
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_kind);
    m_tools->addStretch(1);
    m_numbers->setTextFormat(Qt::RichText);
    m_numbers->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_numbers->setMargin(2 * grid);
    m_numbers->setWordWrap(true);
    m_numbers->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_parts->addWidget(m_map);
    m_parts->addWidget(m_chart);
    m_parts->addWidget(m_numbers);
    m_body->addWidget(m_parts, 1);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        show();
        Q_EMIT contextChanged();
    });
    connect(m_kind, &QComboBox::currentIndexChanged, this, [this] { compute(); });
    connect(m_map, &HeatmapPlot::cellHovered, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->hover(MarkedPlace::cell(query, key));
    });
    connect(m_map, &HeatmapPlot::cellClicked, this, [this](int query, int key) {
        if (m_cursor != nullptr) m_cursor->togglePin(MarkedPlace::cell(query, key));
    });
    const auto leave = [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    };
    connect(m_map, &HeatmapPlot::cellLeft, this, leave);
    connect(m_chart, &ChartPlot::left, this, leave);
    connect(m_chart, &ChartPlot::hovered, this, [this](const QPointF& place) {
        if (m_cursor == nullptr || !m_found || m_shown->currentIndex() != norms) return;
        const int position = static_cast<int>(std::lround(m_chart->chartAt(place).x()));
        m_cursor->hover(MarkedPlace::cell(position, position));
    });
}

void PositionSimilarityView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    core::SimilarityOptions options;
    options.kind = m_kind->currentIndex() == 1 ? core::SimilarityKind::dot : core::SimilarityKind::cosine;
    m_runner.start<Found>(
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
            show();
            showPicture();
            showCursor();
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
    row(tr("Position from its vector, mean error in positions"), plain(found.decodability.position_error, 2));
    row(tr("Position from its vector, R\u00B2"), plain(found.decodability.position_r2, 3));
    row(tr("Order of two positions told right (chance 50 %)"), percent(found.decodability.order_accuracy));
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
    if (!m_found) return;
    const core::PositionSimilarity& found = m_found->similarity;
    const std::vector<std::int64_t> positions = m_found->vectors.used_positions();
    const bool offsets = m_found->vectors.kind == core::PositionVectorKind::offset_vectors;
    ChartContent chart;
    ChartSeries series;
    const int shown = m_shown->currentIndex();
    m_parts->setCurrentIndex(shown == similarity ? 0 : shown == numbers ? 2 : 1);
    if (shown == similarity) {
        const ColorDefaults colors = default_colors(MapMeaning::signed_difference);
        m_map->setMap(found.map, make_color_scale(found.map, colors.map, colors.kind),
                      found.options.kind == core::SimilarityKind::dot ? tr("dot product")
                                                                      : tr("cosine similarity"));
        return;
    }
    if (shown == numbers) {
        m_numbers->setText(numbersHtml());
        return;
    }
    if (shown == norms) {
        series.x.assign(positions.begin(), positions.end());
        series.y = found.norms;
        chart.x_label = offsets ? tr("offset (key \u2212 query)") : tr("position");
        chart.y_label = tr("length of the vector");
        chart.integer_x = true;
        chart.zero_line = true;
    } else if (shown == singular_values) {
        for (std::size_t k = 0; k < found.singular_values.size(); ++k)
            series.x.push_back(static_cast<double>(k + 1));
        series.y = found.singular_values;
        chart.x_label = tr("number of the singular value");
        chart.y_label = tr("singular value");
        chart.integer_x = true;
        for (const std::size_t dimension : found.dimensions) {
            chart.edges.push_back(static_cast<double>(dimension));
            const auto at = std::min(found.singular_values.size(), std::max<std::size_t>(dimension, 1)) - 1;
            const std::size_t which = chart.edges.size() - 1;
            chart.labels.push_back(
                {static_cast<double>(dimension), found.singular_values[at],
                 tr("%1 %: %2").arg(100.0 * core::dimension_shares[which]).arg(dimension)});
        }
    } else {
        series.x = found.frequencies;
        series.y = found.power;
        chart.x_label = tr("cycles per position");
        chart.y_label = tr("share of the variance");
    }
    series.width = 1.2;
    chart.series.push_back(std::move(series));
    m_chart->setChart(std::move(chart));
}

QString PositionSimilarityView::pictureLine() const
{
    if (!m_found) return {};
    return to_qstring(m_found->vectors.source) +
           tr(" \u00B7 order told right %1").arg(percent(m_found->similarity.decodability.order_accuracy));
}

void PositionSimilarityView::showCursor()
{
    if (m_cursor == nullptr || !m_found) return;
    const auto& place = m_cursor->place();
    const auto size = static_cast<int>(m_found->similarity.map.length);
    const bool is_cell = place && place->isCell() && *place->query < size && *place->key < size;
    m_map->setMarkedCell(is_cell ? std::optional(QPoint(*place->key, *place->query)) : std::nullopt);
    if (m_shown->currentIndex() == norms && is_cell)
        m_chart->setMarks(
            {}, *place->key,
            tr("position %1: %2")
                .arg(*place->key)
                .arg(value_text(m_found->similarity.norms[static_cast<std::size_t>(*place->key)])));
    else
        m_chart->setMarks({});
}

FigureSpec PositionSimilarityView::figure() const
{
    FigureSpec spec;
    const int shown = m_shown->currentIndex();
    if (shown == similarity || shown == numbers) {
        HeatmapContent content;
        const ColorDefaults colors = default_colors(MapMeaning::signed_difference);
        content.map = m_found->similarity.map;
        content.scale = make_color_scale(content.map, colors.map, colors.kind);
        content.quantity_label = m_found->similarity.options.kind == core::SimilarityKind::dot
                                     ? tr("dot product")
                                     : tr("cosine similarity");
        spec.content = std::move(content);
    } else {
        spec.content = m_chart->chart();
    }
    nlohmann::ordered_json settings{{"shows", m_shown->currentText().toStdString()},
                                    {"source", m_found->vectors.source}};
    describe(spec, "position_similarity", settings.dump());
    return spec;
}

void PositionSimilarityView::saveChoices(QSettings& settings) const
{
    settings.setValue(QStringLiteral("similarity_shown"), m_shown->currentIndex());
    settings.setValue(QStringLiteral("similarity_kind"), m_kind->currentIndex());
}

void PositionSimilarityView::restoreChoices(QSettings& settings)
{
    m_shown->setCurrentIndex(std::clamp(settings.value(QStringLiteral("similarity_shown"), 0).toInt(), 0, 4));
    m_kind->setCurrentIndex(std::clamp(settings.value(QStringLiteral("similarity_kind"), 0).toInt(), 0, 1));
}

} // namespace posiscope::ui
