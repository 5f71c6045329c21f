// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_map_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QBoxLayout>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>

#include <algorithm>
#include <chrono>
#include <limits>

#include "ui/convert.h"
#include "ui/figure/view_charts.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/ticks.h"
#include "ui/shared_cursor.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"
#include "ui/widgets/settings_button.h"

namespace posiscope::ui {
namespace {

constexpr std::size_t used_series = 0; ///< of position_map_chart
constexpr std::size_t named_neighbours = 5;
enum Shown { both, tsne_only, pca_only };

} // namespace

PositionMapView::PositionMapView(QWidget* parent)
    : PositionView(parent), m_shown(new CompactBox(this)), m_stop(new QToolButton(this)),
      m_perplexity(new QDoubleSpinBox(this)), m_iterations(new QSpinBox(this)), m_seed(new QSpinBox(this)),
      m_start(new QComboBox(this)), m_joined(new QCheckBox(tr("Joined"), this)),
      m_tsne_plot(new ChartPlot(this)), m_pca_plot(new ChartPlot(this))
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
    m_iterations->setAccessibleName(tr("Iterations"));
    m_start->addItems({tr("principal components"), tr("at random")});
    m_start->setAccessibleName(tr("Where t-SNE starts"));
    m_seed->setRange(0, 999999);
    m_seed->setAccessibleName(tr("Seed of the random start"));
    m_seed->setEnabled(false);
    m_joined->setChecked(true);
    m_joined->setToolTip(tr("A line from each position to the next"));
    auto* settings = new SettingsButton(tr("Settings"), this);
    settings->setToolTip(tr("Iterations, start and seed of t-SNE"));
    settings->addRow(tr("Iterations"), m_iterations);
    settings->addRow(tr("Start"), m_start);
    settings->addRow(tr("Seed"), m_seed);
    m_stop->setText(tr("Stop"));
    m_stop->setAutoRaise(true);
    m_stop->setFocusPolicy(Qt::StrongFocus);
    m_stop->setToolTip(tr("End t-SNE here and keep the map as it is"));
    m_stop->hide();
    m_tools->addWidget(m_shown);
    m_tools->addWidget(m_perplexity);
    m_tools->addWidget(settings);
    m_tools->addWidget(m_joined);
    m_tools->startTrailing();
    m_tools->addWidget(m_stop);
    for (QAbstractSpinBox* box : std::initializer_list<QAbstractSpinBox*>{m_perplexity, m_iterations, m_seed})
        box->setKeyboardTracking(false);
    m_tsne_plot->setAccessibleName(tr("t-SNE of the position vectors"));
    m_pca_plot->setAccessibleName(tr("Principal components of the position vectors"));
    m_parts->addWidget(m_tsne_plot, 3);
    m_parts->addWidget(m_pca_plot, 2);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        takeShown();
        choose(tr("maps shown"), false);
    });
    connect(m_perplexity, &QDoubleSpinBox::valueChanged, this, [this] { choose(tr("perplexity"), true); });
    connect(m_iterations, &QSpinBox::valueChanged, this, [this] { choose(tr("iterations"), true); });
    connect(m_seed, &QSpinBox::valueChanged, this, [this] { choose(tr("seed of t-SNE"), true); });
    connect(m_start, &QComboBox::currentIndexChanged, this, [this](int start) {
        m_seed->setEnabled(start == 1);
        choose(tr("start of t-SNE"), true);
    });
    connect(m_joined, &QCheckBox::toggled, this, [this] {
        if (m_tsne) showMap(m_tsne_plot, m_tsne->points, true);
        if (m_vectors) showMap(m_pca_plot, m_pca.points, true);
        choose(tr("joined positions"), false);
    });
    connect(m_stop, &QToolButton::clicked, this, &PositionMapView::stop);
    connect(&m_runner, &TaskRunner::progressed, this, &PositionMapView::showWatched);
    // A map that is ready at once needs no button to stop it.
    m_stop_delay.setSingleShot(true);
    m_stop_delay.setInterval(300);
    connect(&m_stop_delay, &QTimer::timeout, m_stop, &QWidget::show);
    connect(&m_runner, &TaskRunner::started, this, [this] {
        if (m_stop->isHidden()) m_stop_delay.start();
    });
    connect(&m_runner, &TaskRunner::finished, this, [this] {
        m_stop_delay.stop();
        m_stop->hide();
    });
    connectPlot(m_tsne_plot);
    connectPlot(m_pca_plot);
}

void PositionMapView::choose(const QString& what, bool computes)
{
    if (computes) compute();
    Q_EMIT contextChanged();
    Q_EMIT choiceMade(what);
}

void PositionMapView::takeShown()
{
    m_tsne_plot->setVisible(m_shown->currentIndex() != pca_only);
    m_pca_plot->setVisible(m_shown->currentIndex() != tsne_only);
    if (m_vectors && m_tsne) showMap(m_tsne_plot, m_tsne->points, true);
}

core::TsneOptions PositionMapView::options() const
{
    core::TsneOptions options;
    options.perplexity = m_perplexity->value();
    options.iterations = static_cast<std::size_t>(m_iterations->value());
    options.seed = static_cast<std::uint64_t>(m_seed->value());
    options.start = m_start->currentIndex() == 1 ? core::TsneStart::random : core::TsneStart::pca;
    return options;
}

void PositionMapView::stop()
{
    m_runner.cancel();
}

void PositionMapView::compute()
{
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return;
    if (const std::string lack = core::lack_of_position_vectors(*its_stack); !lack.empty()) {
        m_runner.abandon();
        showLack(lack, {"relative_bias", "attention_heatmap"});
        return;
    }
    m_watched = std::make_shared<Watched>();
    m_runner.start<Maps>(
        [model = model(), its_stack, options = options(),
         watched = m_watched](const core::RunContext& ctx) -> core::Result<Maps> {
            const core::ReadRecorder recorder;
            auto vectors = core::read_position_vectors(*model, *its_stack, 0, ctx);
            if (!vectors) return vectors.error();
            watched->read.store(std::make_shared<const TensorDigests>(recorder.digests()));
            Maps maps;
            maps.vectors = std::make_shared<const core::PositionVectors>(*std::move(vectors));
            watched->vectors.store(maps.vectors);
            auto axes = core::position_pca(*maps.vectors, core::RunContext{ctx.stop, {}});
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
            m_is_stopped = false;
            if (!result) {
                if (result.error().code == core::ErrorCode::cancelled)
                    takeStopped();
                else
                    showError(result.error());
                return;
            }
            m_read = *m_watched->read.load();
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
    m_read = *m_watched->read.load();
    m_vectors = vectors;
    m_tsne.reset();
    m_nearest.clear();
    m_pca = *axes;
    m_iteration = m_watched->iteration.load();
    showMap(m_tsne_plot, *points, false);
    showMap(m_pca_plot, m_pca.points, true);
    showPicture();
}

/// Stopped by a person: the map as far as it came, which can be pointed at and exported like any other.
void PositionMapView::takeStopped()
{
    showWatched();
    const auto points = m_watched->points.load();
    const auto vectors = m_watched->vectors.load();
    if (!points || !vectors) {
        m_is_stopped = true; // while the vectors were read: there is no map to keep
        showError(core::cancelled_error("the map"));
        return;
    }
    core::TsneResult map;
    map.points = *points;
    map.options = options();
    map.perplexity = std::min(map.options.perplexity, static_cast<double>(vectors->count() - 1) / 3.0);
    map.iterations = m_iteration;
    map.divergence = std::numeric_limits<double>::quiet_NaN(); // only the finished map's is computed
    m_tsne = std::move(map);
    m_nearest = core::nearest_points(m_tsne->points, named_neighbours);
    showPicture();
    showCursor();
}

bool PositionMapView::canExport() const
{
    return hasPicture() && (m_tsne || m_shown->currentIndex() == pca_only);
}

void PositionMapView::showMap(ChartPlot* plot, const core::PointMap2D& points, bool keepView)
{
    ChartContent chart = position_map_chart(*m_vectors, points.x, points.y, m_joined->isChecked());
    // One bar for both maps: the room goes to the points.
    if (chart.bar) chart.bar->shown = plot == m_pca_plot || m_shown->currentIndex() == tsne_only;
    plot->setChart(std::move(chart), keepView);
}

QString PositionMapView::pictureLine() const
{
    if (!m_vectors) return {};
    const QString source = to_qstring(m_vectors->source) + QStringLiteral(" \u00B7 ");
    if (m_shown->currentIndex() == pca_only) return source + tr("principal components");
    QString line =
        m_tsne ? tsne_line(*m_tsne, m_vectors->count()) : tr("t-SNE, iteration %1").arg(m_iteration);
    // The panel's head breaks lines, but not inside the name.
    line.replace(QStringLiteral("t-SNE"), QStringLiteral("t\u2011SNE"));
    return source + line;
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
    const bool is_pca = m_shown->currentIndex() == pca_only;
    FigureSpec spec = is_pca ? position_map_figure(origin(), *m_vectors, m_pca, m_joined->isChecked())
                             : position_map_figure(origin(), *m_vectors, *m_tsne, m_joined->isChecked());
    (is_pca ? m_pca_plot : m_tsne_plot)->giveView(std::get<ChartContent>(spec.content));
    return spec;
}

QVariantMap PositionMapView::choices() const
{
    return {{QStringLiteral("map_shown"), m_shown->currentIndex()},
            {QStringLiteral("map_perplexity"), m_perplexity->value()},
            {QStringLiteral("map_iterations"), m_iterations->value()},
            {QStringLiteral("map_seed"), m_seed->value()},
            {QStringLiteral("map_start"), m_start->currentIndex()},
            {QStringLiteral("map_joined"), m_joined->isChecked()}};
}

void PositionMapView::setChoices(const QVariantMap& choices)
{
    const core::TsneOptions before = options();
    {
        const QSignalBlocker quiet[] = {QSignalBlocker(m_shown), QSignalBlocker(m_perplexity),
                                        QSignalBlocker(m_iterations), QSignalBlocker(m_seed),
                                        QSignalBlocker(m_start)};
        const auto take = [&](const char* name, const QVariant& now) {
            return choices.value(QLatin1String(name), now);
        };
        m_shown->setCurrentIndex(std::clamp(take("map_shown", m_shown->currentIndex()).toInt(), 0, 2));
        m_perplexity->setValue(take("map_perplexity", m_perplexity->value()).toDouble());
        m_iterations->setValue(take("map_iterations", m_iterations->value()).toInt());
        m_seed->setValue(take("map_seed", m_seed->value()).toInt());
        m_start->setCurrentIndex(std::clamp(take("map_start", m_start->currentIndex()).toInt(), 0, 1));
        m_joined->setChecked(take("map_joined", m_joined->isChecked()).toBool());
    }
    m_seed->setEnabled(m_start->currentIndex() == 1);
    takeShown();
    if (options() != before) compute();
    Q_EMIT contextChanged();
}

} // namespace posiscope::ui
