// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/image_grid_view.h"

#include <QHBoxLayout>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/color_scale.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {
namespace {

ColorScale grid_scale(const core::PositionMap& map)
{
    return make_color_scale(map, ColorMapId::viridis, ScaleKind::linear);
}

ChartContent framed(QImage image, const ColorScale& scale)
{
    ChartContent chart;
    chart.image = std::move(image);
    chart.bar = ChartBar{scale.map, ImageGridView::tr("cosine similarity"), scale.lower, scale.upper};
    return chart;
}

} // namespace

ChartContent image_grid_chart(const core::PositionMap& map, std::int64_t rows, std::int64_t columns)
{
    const ColorScale scale = grid_scale(map);
    // A cell's gap between the maps, transparent: the page shows through.
    QImage image(static_cast<int>(columns * (columns + 1) - 1), static_cast<int>(rows * (rows + 1) - 1),
                 QImage::Format_ARGB32);
    image.fill(Qt::transparent);
    for (std::int64_t patch = 0; patch < rows * columns; ++patch)
        for (std::int64_t other = 0; other < rows * columns; ++other)
            image.setPixel(
                static_cast<int>(patch % columns * (columns + 1) + other % columns),
                static_cast<int>(patch / columns * (rows + 1) + other / columns),
                scale.color(map(static_cast<std::size_t>(patch), static_cast<std::size_t>(other))));
    return framed(std::move(image), scale);
}

ChartContent image_patch_chart(const core::PositionMap& map, std::int64_t rows, std::int64_t columns,
                               std::int64_t patch)
{
    const ColorScale scale = grid_scale(map);
    QImage image(static_cast<int>(columns), static_cast<int>(rows), QImage::Format_ARGB32);
    for (std::int64_t other = 0; other < rows * columns; ++other)
        image.setPixel(static_cast<int>(other % columns), static_cast<int>(other / columns),
                       scale.color(map(static_cast<std::size_t>(patch), static_cast<std::size_t>(other))));
    return framed(std::move(image), scale);
}

ImageGridView::ImageGridView(QWidget* parent)
    : PositionView(parent), m_grid_plot(new ChartPlot(this)), m_patch_plot(new ChartPlot(this))
{
    m_grid_plot->setAccessibleName(tr("Similarity maps of all patches"));
    m_patch_plot->setAccessibleName(tr("Similarity map of one patch"));
    m_parts->addWidget(m_grid_plot, 3);
    m_parts->addWidget(m_patch_plot, 2);
    connect(m_grid_plot, &ChartPlot::clicked, this, [this](const QPointF& place) {
        if (const auto patch = patchAt(place)) choosePatch(*patch);
    });
    connect(m_grid_plot, &ChartPlot::hovered, this, [this](const QPointF& place) {
        const auto patch = patchAt(place);
        if (m_cursor == nullptr || !patch) return;
        const int position = *patch + m_found->special;
        m_cursor->hover(MarkedPlace::cell(position, position));
    });
    connect(m_patch_plot, &ChartPlot::hovered, this, [this](const QPointF& place) {
        if (m_cursor == nullptr || !m_found) return;
        const QPointF at = m_patch_plot->chartAt(place);
        const auto column = static_cast<int>(at.x()), row = static_cast<int>(-at.y());
        const int other = row * static_cast<int>(m_found->columns) + column;
        m_cursor->hover(MarkedPlace::cell(m_patch + m_found->special, other + m_found->special));
    });
    for (ChartPlot* plot : {m_grid_plot, m_patch_plot})
        connect(plot, &ChartPlot::left, this, [this] {
            if (m_cursor != nullptr) m_cursor->leave();
        });
}

std::optional<int> ImageGridView::patchAt(const QPointF& place) const
{
    if (!m_found) return std::nullopt;
    const QPointF at = m_grid_plot->chartAt(place);
    const auto column = static_cast<std::int64_t>(at.x()) / (m_found->columns + 1);
    const auto row = static_cast<std::int64_t>(-at.y()) / (m_found->rows + 1);
    if (column < 0 || row < 0 || column >= m_found->columns || row >= m_found->rows) return std::nullopt;
    return static_cast<int>(row * m_found->columns + column);
}

void ImageGridView::choosePatch(int patch)
{
    if (!m_found || patch < 0 || patch >= m_found->rows * m_found->columns) return;
    m_patch = patch;
    m_patch_plot->setChart(image_patch_chart(m_found->map, m_found->rows, m_found->columns, patch));
    showCursor();
    Q_EMIT contextChanged();
}

void ImageGridView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    if (its_stack->grid_rows < 1) {
        showMessage(tr("The %1 of this model reads no image: there is no grid of patches.")
                        .arg(to_qstring(its_stack->id)));
        return;
    }
    m_runner.start<Found>(
        [model = model(), its_stack](const core::RunContext& ctx) -> core::Result<Found> {
            auto vectors = core::read_position_vectors(*model, *its_stack, 0, ctx);
            if (!vectors) return vectors.error();
            core::SimilarityOptions options;
            options.decodability = false;
            const core::HostTensor used = vectors->used_vectors();
            if (used.dim(0) != its_stack->grid_rows * its_stack->grid_columns)
                return core::Error{core::ErrorCode::shape_mismatch,
                                   "there are " + std::to_string(used.dim(0)) + " position vectors for " +
                                       std::to_string(its_stack->grid_rows) + " x " +
                                       std::to_string(its_stack->grid_columns) + " patches",
                                   "image grid"};
            auto similar = core::position_similarity(used.matrix(), options, ctx);
            if (!similar) return similar.error();
            Found found{std::move(similar->map), its_stack->grid_rows, its_stack->grid_columns,
                        vectors->source, 0};
            found.special = static_cast<int>(vectors->used_positions().front());
            return found;
        },
        [this](core::Result<Found> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            m_found = std::make_shared<const Found>(*std::move(result));
            m_grid_plot->setChart(image_grid_chart(m_found->map, m_found->rows, m_found->columns));
            const auto middle = static_cast<int>(m_found->rows / 2 * m_found->columns + m_found->columns / 2);
            showPicture();
            choosePatch(middle);
        });
}

QString ImageGridView::pictureLine() const
{
    if (!m_found) return {};
    return to_qstring(m_found->source) + tr(" \u00B7 %1 x %2 patches, enlarged: row %3, column %4")
                                             .arg(m_found->rows)
                                             .arg(m_found->columns)
                                             .arg(m_patch / m_found->columns)
                                             .arg(m_patch % m_found->columns);
}

void ImageGridView::showCursor()
{
    if (!m_found) return;
    const auto columns = static_cast<int>(m_found->columns), rows = static_cast<int>(m_found->rows);
    const auto middle_of = [&](int patch) {
        return QPointF(patch % columns * (columns + 1) + 0.5 * columns,
                       -(patch / columns * (rows + 1) + 0.5 * rows));
    };
    std::vector<QPointF> on_grid{middle_of(m_patch)},
        on_patch{QPointF(m_patch % columns + 0.5, -(m_patch / columns + 0.5))};
    if (m_cursor != nullptr && m_cursor->place() && m_cursor->place()->isCell())
        for (const int position : {*m_cursor->place()->query, *m_cursor->place()->key}) {
            const int patch = position - m_found->special;
            if (patch < 0 || patch >= rows * columns) continue;
            on_grid.push_back(middle_of(patch));
            on_patch.emplace_back(patch % columns + 0.5, -(patch / columns + 0.5));
        }
    m_grid_plot->setMarks(std::move(on_grid));
    m_patch_plot->setMarks(std::move(on_patch));
}

FigureSpec ImageGridView::figure() const
{
    FigureSpec spec;
    spec.content = m_grid_plot->chart();
    nlohmann::ordered_json settings{
        {"rows", m_found->rows}, {"columns", m_found->columns}, {"source", m_found->source}};
    describe(spec, "image_grid", settings.dump());
    return spec;
}

void ImageGridView::saveChoices(QSettings&) const {}

void ImageGridView::restoreChoices(QSettings&) {}

} // namespace posiscope::ui
