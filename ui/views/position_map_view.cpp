// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_map_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QSettings>
#include <QSpinBox>

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "ui/convert.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {
namespace {

constexpr std::size_t used_series = 0; ///< of position_map_chart
constexpr std::size_t named_neighbours = 5;
enum Shown { both, tsne_only, pca_only };

} // namespace

ChartContent position_map_chart(const core::PositionVectors& vectors, const std::vector<double>& x,
                                const std::vector<double>& y, bool joined)
{
    ChartContent chart;
    chart.is_map = true;
    ChartSeries used, special;
    used.color = SeriesColor::by_value;
    used.line = joined;
    used.width = 0.8;
    used.points = true;
    special.color = SeriesColor::faint;
    special.line = false;
    special.points = true;
    special.hollow = true;
    const std::vector<std::int64_t> positions = vectors.used_positions();
    if (positions.empty()) return chart;
    const auto first = static_cast<double>(positions.front()), last = static_cast<double>(positions.back());
    const std::vector<Tick> ticks =
        integer_ticks(static_cast<int>(positions.front()), static_cast<int>(positions.back()), 12);
    for (std::size_t row = 0; row < std::min(x.size(), vectors.count()); ++row) {
        const auto position = static_cast<double>(vectors.positions[row]);
        if (vectors.roles[row] != core::RowRole::used) {
            special.x.push_back(x[row]);
            special.y.push_back(y[row]);
            continue;
        }
        used.x.push_back(x[row]);
        used.y.push_back(y[row]);
        used.values.push_back(last > first ? (position - first) / (last - first) : 0.5);
        const bool is_tick =
            std::any_of(ticks.begin(), ticks.end(), [&](const Tick& tick) { return tick.at == position; });
        if (is_tick) chart.labels.push_back({x[row], y[row], QString::number(vectors.positions[row])});
    }
    chart.series.push_back(std::move(used));
    if (!special.x.empty()) chart.series.push_back(std::move(special));
    chart.bar = ChartBar{ColorMapId::viridis,
                         vectors.kind == core::PositionVectorKind::offset_vectors
                             ? PositionMapView::tr("offset (key \u2212 query)")
                             : PositionMapView::tr("position"),
                         first, last};
    return chart;
}

PositionMapView::PositionMapView(QWidget* parent)
    : PositionView(parent), m_shown(new QComboBox(this)), m_perplexity(new QDoubleSpinBox(this)),
      m_iterations(new QSpinBox(this)), m_seed(new QSpinBox(this)), m_start(new QComboBox(this)),
      m_joined(new QCheckBox(tr("Joined"), this)), m_tsne_plot(new ChartPlot(this)),
      m_pca_plot(new ChartPlot(this))
{
    m_shown->addItems({tr("t-SNE and PCA"), tr("t-SNE"), tr("PCA")});
    m_shown->setAccessibleName(tr("Which map"));
    m_perplexity->setRange(1.0, 500.0);
    m_perplexity->setDecimals(0);
    m_perplexity->setValue(30.0);
    m_perplexity->setPrefix(tr("perplexity "));
    m_perplexity->setAccessibleName(tr("Perplexity"));
    m_perplexity->setToolTip(tr("How many neighbours of a position count in t-SNE"));
    m_iterations->setRange(50, 20000);
    m_iterations->setSingleStep(250);
    m_iterations->setValue(1000);
    m_iterations->setSuffix(tr(" iterations"));
    m_iterations->setAccessibleName(tr("Iterations"));
    m_start->addItems({tr("PCA start"), tr("random start")});
    m_start->setAccessibleName(tr("Where t-SNE starts"));
    m_seed->setRange(0, 999999);
    m_seed->setPrefix(tr("seed "));
    m_seed->setAccessibleName(tr("Seed of the random start"));
    m_seed->setEnabled(false);
    m_joined->setChecked(true);
    m_joined->setToolTip(tr("A line from each position to the next"));
    for (QWidget* choice :
         std::initializer_list<QWidget*>{m_shown, m_perplexity, m_iterations, m_start, m_seed, m_joined})
        m_tools->addWidget(choice);
    m_tools->addStretch(1);
    // A narrow panel squeezes the choices rather than widening the window.
    for (QWidget* choice :
         std::initializer_list<QWidget*>{m_shown, m_perplexity, m_iterations, m_start, m_seed}) {
        choice->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
        choice->setMinimumWidth(5 * grid);
    }
    for (QAbstractSpinBox* box : std::initializer_list<QAbstractSpinBox*>{m_perplexity, m_iterations, m_seed})
        box->setKeyboardTracking(false);
    m_tsne_plot->setAccessibleName(tr("t-SNE of the position vectors"));
    m_pca_plot->setAccessibleName(tr("Principal components of the position vectors"));
    m_parts->addWidget(m_tsne_plot, 3);
    m_parts->addWidget(m_pca_plot, 2);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this](int shown) {
        m_tsne_plot->setVisible(shown != pca_only);
        m_pca_plot->setVisible(shown != tsne_only);
    });
    connect(m_perplexity, &QDoubleSpinBox::valueChanged, this, &PositionMapView::compute);
    connect(m_iterations, &QSpinBox::valueChanged, this, &PositionMapView::compute);
    connect(m_seed, &QSpinBox::valueChanged, this, &PositionMapView::compute);
    connect(m_start, &QComboBox::currentIndexChanged, this, [this](int start) {
        m_seed->setEnabled(start == 1);
        compute();
    });
    connect(m_joined, &QCheckBox::toggled, this, [this] {
        if (!m_vectors) return;
        if (m_tsne) showMap(m_tsne_plot, m_tsne->points, true);
        showMap(m_pca_plot, m_pca.points, true);
    });
    connect(&m_runner, &TaskRunner::progressed, this, &PositionMapView::showWatched);
    connectPlot(m_tsne_plot);
    connectPlot(m_pca_plot);
}

void PositionMapView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    core::TsneOptions options;
    options.perplexity = m_perplexity->value();
    options.iterations = static_cast<std::size_t>(m_iterations->value());
    options.seed = static_cast<std::uint64_t>(m_seed->value());
    options.start = m_start->currentIndex() == 1 ? core::TsneStart::random : core::TsneStart::pca;
    m_watched = std::make_shared<Watched>();
    m_runner.start<Maps>(
        [model = model(), its_stack, options,
         watched = m_watched](const core::RunContext& ctx) -> core::Result<Maps> {
            auto vectors = core::read_position_vectors(*model, *its_stack, 0, ctx);
            if (!vectors) return vectors.error();
            Maps maps;
            maps.vectors = std::make_shared<const core::PositionVectors>(*std::move(vectors));
            watched->vectors.store(maps.vectors);
            auto axes = core::pca(maps.vectors->vectors.matrix(), core::RunContext{ctx.stop, {}});
            if (!axes) return axes.error();
            maps.pca = *std::move(axes);
            watched->pca.store(std::make_shared<const core::PcaMap>(maps.pca));
            auto next = std::chrono::steady_clock::now();
            auto map =
                core::tsne(maps.vectors->vectors.matrix(), options, ctx, [&](const core::TsneSnapshot& now) {
                    if (std::chrono::steady_clock::now() < next) return;
                    next = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
                    watched->points.store(std::make_shared<const core::PointMap2D>(
                        core::PointMap2D{{now.x.begin(), now.x.end()}, {now.y.begin(), now.y.end()}}));
                    watched->iteration.store(now.iteration);
                });
            if (!map) return map.error();
            maps.tsne = *std::move(map);
            return maps;
        },
        [this](core::Result<Maps> result) {
            if (!result) {
                showError(result.error());
                return;
            }
            m_vectors = result->vectors;
            m_pca = std::move(result->pca);
            m_tsne = std::move(result->tsne);
            m_iteration = m_tsne->iterations;
            m_nearest = core::nearest_points(m_tsne->points, named_neighbours);
            showMap(m_tsne_plot, m_tsne->points, false);
            showMap(m_pca_plot, m_pca.points, false);
            showPicture();
            showCursor();
        });
}

void PositionMapView::showWatched()
{
    const auto vectors = m_watched->vectors.load();
    const auto points = m_watched->points.load();
    const auto axes = m_watched->pca.load();
    if (!vectors || !axes || !points) return;
    m_vectors = vectors;
    m_tsne.reset();
    m_nearest.clear();
    m_pca = *axes;
    m_iteration = m_watched->iteration.load();
    showMap(m_tsne_plot, *points, false);
    showMap(m_pca_plot, m_pca.points, true);
    showPicture();
}

void PositionMapView::showMap(ChartPlot* plot, const core::PointMap2D& points, bool keepView)
{
    plot->setChart(position_map_chart(*m_vectors, points.x, points.y, m_joined->isChecked()), keepView);
}

QString PositionMapView::pictureLine() const
{
    if (!m_vectors) return {};
    QString line = to_qstring(m_vectors->source);
    if (!m_tsne) return line + tr(" \u00B7 t-SNE, iteration %1").arg(m_iteration);
    line += tr(" \u00B7 t-SNE, perplexity %1, %2 iterations, KL %3")
                .arg(m_tsne->perplexity, 0, 'g', 4)
                .arg(m_tsne->iterations)
                .arg(m_tsne->divergence, 0, 'f', 3);
    if (m_tsne->perplexity < m_tsne->options.perplexity)
        line += tr(" (perplexity %1 is too large for %2 vectors)")
                    .arg(m_tsne->options.perplexity)
                    .arg(m_vectors->count());
    return line;
}

void PositionMapView::connectPlot(ChartPlot* plot)
{
    connect(plot, &ChartPlot::hovered, this,
            [this, plot](const QPointF& place) { hover(plot, place, false); });
    connect(plot, &ChartPlot::clicked, this,
            [this, plot](const QPointF& place) { hover(plot, place, true); });
    connect(plot, &ChartPlot::left, this, [this] {
        if (m_cursor != nullptr) m_cursor->leave();
    });
}

void PositionMapView::hover(ChartPlot* plot, const QPointF& place, bool click)
{
    if (m_cursor == nullptr || !m_vectors) return;
    const auto near = plot->pointNear(used_series, place);
    if (!near) {
        m_cursor->leave();
        return;
    }
    const auto position = static_cast<int>(m_vectors->used_positions()[*near]);
    const MarkedPlace marked = m_vectors->kind == core::PositionVectorKind::offset_vectors
                                   ? MarkedPlace::diagonal(position)
                                   : MarkedPlace::cell(position, position);
    if (click)
        m_cursor->togglePin(marked);
    else
        m_cursor->hover(marked);
}

QString PositionMapView::nearestText(std::size_t row) const
{
    QStringList names;
    if (row < m_nearest.size())
        for (const std::size_t other : m_nearest[row])
            names << fixed_text(static_cast<double>(m_vectors->positions[other]), 0);
    const bool offsets = m_vectors->kind == core::PositionVectorKind::offset_vectors;
    const QString what = (offsets ? tr("offset %1") : tr("position %1"))
                             .arg(fixed_text(static_cast<double>(m_vectors->positions[row]), 0));
    return names.isEmpty() ? what : what + tr("\nnearest: %1").arg(names.join(QStringLiteral(", ")));
}

void PositionMapView::showCursor()
{
    if (!m_vectors) return;
    std::vector<std::size_t> rows;
    if (m_cursor != nullptr && m_cursor->place()) {
        const MarkedPlace& place = *m_cursor->place();
        std::vector<int> wanted;
        if (m_vectors->kind == core::PositionVectorKind::offset_vectors) {
            if (place.offset) wanted.push_back(*place.offset);
        } else if (place.isCell()) {
            wanted.push_back(*place.query);
            if (*place.key != *place.query) wanted.push_back(*place.key);
        }
        for (const int position : wanted)
            for (std::size_t row = 0; row < m_vectors->count(); ++row)
                if (m_vectors->positions[row] == position && m_vectors->roles[row] != core::RowRole::unused)
                    rows.push_back(row);
    }
    const auto mark = [&](ChartPlot* plot, const core::PointMap2D& points) {
        std::vector<QPointF> rings;
        for (const std::size_t row : rows)
            if (row < points.size()) rings.emplace_back(points.x[row], points.y[row]);
        plot->setMarks(std::move(rings), {}, rows.empty() ? QString() : nearestText(rows.front()));
    };
    if (m_tsne) mark(m_tsne_plot, m_tsne->points);
    mark(m_pca_plot, m_pca.points);
}

FigureSpec PositionMapView::figure() const
{
    FigureSpec spec;
    const bool is_pca = m_shown->currentIndex() == pca_only || !m_tsne;
    spec.content = is_pca ? m_pca_plot->chart() : m_tsne_plot->chart();
    nlohmann::ordered_json settings{{"method", is_pca ? "pca" : "tsne"}, {"source", m_vectors->source}};
    if (!is_pca) {
        settings["perplexity"] = m_tsne->perplexity;
        settings["iterations"] = m_tsne->iterations;
        settings["seed"] = m_tsne->options.seed;
        settings["init"] = std::string(core::tsne_start_name(m_tsne->options.start));
        settings["kl"] = m_tsne->divergence;
    }
    describe(spec, "position_map", settings.dump());
    return spec;
}

void PositionMapView::saveChoices(QSettings& settings) const
{
    settings.setValue(QStringLiteral("map_shown"), m_shown->currentIndex());
    settings.setValue(QStringLiteral("map_perplexity"), m_perplexity->value());
    settings.setValue(QStringLiteral("map_iterations"), m_iterations->value());
    settings.setValue(QStringLiteral("map_seed"), m_seed->value());
    settings.setValue(QStringLiteral("map_start"), m_start->currentIndex());
    settings.setValue(QStringLiteral("map_joined"), m_joined->isChecked());
}

void PositionMapView::restoreChoices(QSettings& settings)
{
    m_shown->setCurrentIndex(std::clamp(settings.value(QStringLiteral("map_shown"), 0).toInt(), 0, 2));
    m_perplexity->setValue(settings.value(QStringLiteral("map_perplexity"), 30.0).toDouble());
    m_iterations->setValue(settings.value(QStringLiteral("map_iterations"), 1000).toInt());
    m_seed->setValue(settings.value(QStringLiteral("map_seed"), 0).toInt());
    m_start->setCurrentIndex(std::clamp(settings.value(QStringLiteral("map_start"), 0).toInt(), 0, 1));
    m_joined->setChecked(settings.value(QStringLiteral("map_joined"), true).toBool());
}

} // namespace posiscope::ui
