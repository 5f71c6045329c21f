// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/heatmap_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QResizeEvent>
#include <QWheelEvent>

#include "ui/plot/plot_parts.h"

namespace posiscope::ui {
namespace {

constexpr int bar_width = 14;
constexpr int gap = 12;            ///< between the heatmap and what stands beside it
constexpr int triangle_height = 9; ///< of the marks of clipped ends
constexpr int least_side_for_profiles = 140;
constexpr int fewest_cells = 4; ///< zoomed in as far as possible

/// Which lines of the map a profile averages.
enum class Along { rows, columns };

/// One value for each row (or column): of the marked column (row), or the mean of the values that exist.
std::vector<double> profile(const core::PositionMap& map, Along along, std::optional<std::size_t> marked)
{
    std::vector<double> out(map.length, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t n = 0; n < map.length; ++n) {
        const auto value = [&](std::size_t m) { return along == Along::rows ? map(n, m) : map(m, n); };
        if (marked) {
            out[n] = value(*marked);
            continue;
        }
        double sum = 0.0;
        std::size_t count = 0;
        for (std::size_t m = 0; m < map.length; ++m) {
            if (!std::isfinite(value(m))) continue;
            sum += value(m);
            ++count;
        }
        if (count > 0) out[n] = sum / static_cast<double>(count);
    }
    return out;
}

/// A range with a little air at both ends.
QCPRange padded(double low, double high)
{
    const double air = high > low ? 0.06 * (high - low) : std::max(1e-12, 0.1 * std::abs(low));
    return {low - air, high + air};
}

QString tr_text(const char* text)
{
    return QCoreApplication::translate("posiscope::ui::HeatmapPlot", text);
}

} // namespace

struct HeatmapPlot::Parts {
    explicit Parts(HeatmapPlot* owner);

    HeatmapPlot* widget;
    QCustomPlot* plot;
    PlotStage* stage;
    QCPAxisRect* heat;
    QCPAxisRect* bar;
    QCPAxisRect* right; ///< profile of the rows
    QCPAxisRect* below; ///< profile of the columns
    QCPGraph* right_graph;
    QCPGraph* below_graph;
    QSharedPointer<FixedTicker> key_ticker{new FixedTicker};
    QSharedPointer<FixedTicker> query_ticker{new FixedTicker};
    QSharedPointer<FixedTicker> bar_ticker{new FixedTicker};
    QSharedPointer<FixedTicker> right_ticker{new FixedTicker};
    QSharedPointer<FixedTicker> below_ticker{new FixedTicker};

    core::PositionMap map;
    HeatmapAxes axes;
    double least = 0.0; ///< finite values of the map
    double largest = 0.0;
    std::vector<double> row_means;    ///< over keys, one for each query
    std::vector<double> column_means; ///< over queries, one for each key
    ColorScale scale;
    QImage image;
    QImage bar_image;
    QString label;
    QImage
        reduced;   ///< the shown cells averaged down to device pixels, where there are more cells than pixels
    int first = 0; ///< shown positions
    int last = -1;
    std::optional<QPoint> marked;
    bool profiles_wanted = true;
    bool profiles_shown = false;
    bool dimmed = false;
    PlotColors colors;

    std::optional<QPoint> press; ///< where the left button went down
    std::optional<QPoint> pan;   ///< last place of a moving drag
    double pan_rest = 0.0;       ///< of a cell, not moved yet
    std::optional<QRect> band;   ///< cells of the range being dragged: x, y = first, size = count
    bool hovering = false;

    [[nodiscard]] QString row_name() const
    {
        return axes.rows.isEmpty() ? tr_text("query position") : axes.rows;
    }
    [[nodiscard]] QString column_name() const
    {
        return axes.columns.isEmpty() ? tr_text("key position") : axes.columns;
    }
    /// "query 17", "offset 5".
    [[nodiscard]] QString line_name(const QString& axis, const char* of_attention, int position) const
    {
        const QString number = fixed_text(position + axes.shift, 0);
        return axis.isEmpty() ? tr_text(of_attention).arg(number)
                              : axis.section(QStringLiteral(" ("), 0, 0) + u' ' + number;
    }
    [[nodiscard]] int map_first() const { return static_cast<int>(map.first_position); }
    [[nodiscard]] int map_last() const { return map_first() + static_cast<int>(map.length) - 1; }
    [[nodiscard]] int shown() const { return last - first + 1; }
    [[nodiscard]] bool empty() const { return map.length == 0; }

    void arrange();
    void place_bar(const QRect& place, int tick_width);
    void restyle();
    void set_range(int new_first, int new_last);
    void update_profiles();
    void update_visibility();
    [[nodiscard]] QCPRange mean_range(const std::vector<double>& means) const;
    [[nodiscard]] std::optional<QPoint> cell_at(const QPointF& pixel) const;
    [[nodiscard]] double pixel_of(double position, int origin, int extent) const;
    void zoom(double factor, QPointF about);
    void draw_heatmap(QPainter& painter);
    void draw_bar(QPainter& painter);
    void draw_profile_names(QPainter& painter);
    void draw_marks(QPainter& painter);
    static QString profiles_layer() { return QStringLiteral("profiles"); }
    static QString marks_layer() { return QStringLiteral("marks"); }
    void replot_marks() { plot->layer(marks_layer())->replot(); }
    void replot() { plot->replot(QCustomPlot::rpQueuedReplot); }
};

HeatmapPlot::Parts::Parts(HeatmapPlot* owner)
    : widget(owner), plot(new QCustomPlot(owner)), stage(new PlotStage)
{
    plot->plotLayout()->clear();
    plot->plotLayout()->addElement(0, 0, stage);
    // What changes with the pointer has buffers of its own: the heatmap and the axes are not drawn again.
    for (const QString& name : {profiles_layer(), marks_layer()}) {
        plot->addLayer(name);
        plot->layer(name)->setMode(QCPLayer::lmBuffered);
    }
    heat = make_axis_rect(plot);
    bar = make_axis_rect(plot);
    right = make_axis_rect(plot);
    below = make_axis_rect(plot);
    for (QCPAxisRect* rect : {heat, bar, right, below}) stage->addElement(rect, QRectF(0, 0, 1, 1));

    heat->axis(QCPAxis::atBottom)->setTicker(key_ticker);
    heat->axis(QCPAxis::atLeft)->setTicker(query_ticker);
    heat->axis(QCPAxis::atLeft)->setRangeReversed(true);
    heat->axis(QCPAxis::atRight)->setRangeReversed(true);
    for (const auto type : {QCPAxis::atLeft, QCPAxis::atBottom}) {
        bar->axis(type)->setTicks(false);
        bar->axis(type)->setTickLabels(false);
    }
    bar->axis(QCPAxis::atRight)->setTicks(true);
    bar->axis(QCPAxis::atRight)->setTickLabels(true);
    bar->axis(QCPAxis::atRight)->setTicker(bar_ticker);
    bar->axis(QCPAxis::atRight)->setRange(0.0, 1.0);

    right->axis(QCPAxis::atLeft)->setRangeReversed(true);
    right->axis(QCPAxis::atLeft)->setTicks(false);
    right->axis(QCPAxis::atLeft)->setTickLabels(false);
    right->axis(QCPAxis::atBottom)->setTicker(right_ticker);
    below->axis(QCPAxis::atBottom)->setTicker(key_ticker);
    below->axis(QCPAxis::atLeft)->setTicker(below_ticker);
    right_graph = plot->addGraph(right->axis(QCPAxis::atLeft), right->axis(QCPAxis::atBottom));
    below_graph = plot->addGraph(below->axis(QCPAxis::atBottom), below->axis(QCPAxis::atLeft));

    new DrawnItem(plot, heat, [this](QPainter& painter) { draw_heatmap(painter); });
    new DrawnItem(plot, nullptr, [this](QPainter& painter) { draw_bar(painter); });
    auto* names = new DrawnItem(plot, nullptr, [this](QPainter& painter) { draw_profile_names(painter); });
    names->setLayer(profiles_layer());
    for (QCPGraph* graph : {right_graph, below_graph}) graph->setLayer(profiles_layer());
    auto* marks = new DrawnItem(plot, nullptr, [this](QPainter& painter) { draw_marks(painter); });
    marks->setLayer(marks_layer());

    stage->arrange = [this] { arrange(); };
    // One polygon for a whole noisy curve takes Qt tens of milliseconds; single lines do not.
    plot->setPlottingHint(QCP::phFastPolylines);
    plot->setFocusPolicy(Qt::NoFocus);
    plot->setMouseTracking(true);
    plot->installEventFilter(owner);
    update_visibility();
}

void HeatmapPlot::Parts::restyle()
{
    colors = plot_colors(widget->palette());
    plot->setBackground(QBrush(colors.background));
    for (QCPAxisRect* rect : {heat, bar, right, below})
        for (QCPAxis* axis : rect->axes()) style_axis(axis, colors, widget->font());
    for (QCPGraph* graph : {right_graph, below_graph}) {
        QPen pen(colors.curve, 1.25);
        pen.setJoinStyle(Qt::RoundJoin);
        graph->setPen(pen);
    }
    heat->axis(QCPAxis::atLeft)->setLabel(row_name());
    replot();
}

void HeatmapPlot::Parts::update_visibility()
{
    for (QCPAxisRect* rect : {heat, bar}) rect->setVisible(!empty());
    for (QCPAxisRect* rect : {right, below}) rect->setVisible(profiles_shown && !empty());
    right_graph->setVisible(profiles_shown && !empty());
    below_graph->setVisible(profiles_shown && !empty());
}

/// Places everything for the plot's present size: the heatmap is as large as a square can be between its labels.
void HeatmapPlot::Parts::arrange()
{
    const QRect view = plot->viewport();
    if (empty() || view.isEmpty()) return;
    const QFontMetrics metrics(widget->font());
    const int text = metrics.height();
    const auto width_of = [&](const std::vector<Tick>& ticks) {
        int widest = 0;
        for (const Tick& tick : ticks) widest = std::max(widest, metrics.horizontalAdvance(tick.label));
        return widest;
    };
    const int axis_depth = tick_length + tick_padding;
    const int position_width = std::max(metrics.horizontalAdvance(fixed_text(first + axes.shift, 0)),
                                        metrics.horizontalAdvance(fixed_text(last + axes.shift, 0)));
    const int below_axis = axis_depth + text + name_padding + text;
    const int top = text / 2 + 2;
    const int margin = 6;

    // The colour bar's labels depend on its height and its width on the labels: the height of the view is near enough.
    const std::vector<Tick> bar_guess =
        color_bar_ticks(scale, std::max(2, std::min(9, view.height() / (3 * text))));
    int bar_extent = bar_width + axis_depth + width_of(bar_guess) + name_padding + text;
    if (scale.has_missing)
        bar_extent =
            std::max(bar_extent, bar_width + tick_padding + metrics.horizontalAdvance(tr_text("no value")));

    const auto side_for = [&](bool with_profiles, int left, int profile) {
        const int across =
            view.width() - 2 * margin - left - gap - bar_extent - (with_profiles ? profile + gap : 0);
        const int down = view.height() - top - margin - below_axis - (with_profiles ? profile + gap / 2 : 0);
        return std::min(across, down);
    };
    const int profile = std::clamp(std::min(view.width(), view.height()) / 6, 44, 96);
    int left = text + name_padding + position_width + axis_depth;
    // Room for the lower profile's labels of the means and of single rows: nothing moves when a cell is marked.
    const int most_values = std::max(2, profile / (2 * text));
    const auto label_width_of = [&](const QCPRange& range) {
        return width_of(value_ticks(range.lower, range.upper, most_values));
    };
    const int value_width =
        std::max(label_width_of(mean_range(column_means)), label_width_of(padded(least, largest)));
    const int left_with_profiles = text + name_padding + std::max(position_width, value_width) + axis_depth;
    profiles_shown =
        profiles_wanted && side_for(true, left_with_profiles, profile) >= least_side_for_profiles;
    update_visibility();
    if (profiles_shown) left = left_with_profiles;
    int side = std::max(16, side_for(profiles_shown, left, profile));
    if (metrics.horizontalAdvance(label) > side) {
        // A second line of the colour bar's name.
        bar_extent += text;
        side = std::max(16, side_for(profiles_shown, left, profile));
    }

    const int used_width = left + side + gap + bar_extent + (profiles_shown ? profile + gap : 0);
    const int used_height = top + side + below_axis + (profiles_shown ? profile + gap / 2 : 0);
    const int x = view.left() + std::max(margin, (view.width() - used_width) / 2) + left;
    const int y = view.top() + std::max(0, (view.height() - margin - used_height) / 2) + top;
    const QRect heat_place(x, y, side, side);
    stage->place(heat, heat_place);
    stage->place(right, QRect(x + side + gap, y, profile, side));
    stage->place(below, QRect(x, y + side + gap / 2, side, profile));
    place_bar(QRect(x + side + gap + (profiles_shown ? profile + gap : 0), y, bar_width, side),
              width_of(bar_guess));

    const double low = first - 0.5;
    const double high = last + 0.5;
    for (QCPAxisRect* rect : {heat, below}) rect->axis(QCPAxis::atBottom)->setRange(low, high);
    heat->axis(QCPAxis::atTop)->setRange(low, high);
    for (QCPAxisRect* rect : {heat, right}) {
        rect->axis(QCPAxis::atLeft)->setRange(low, high);
        rect->axis(QCPAxis::atRight)->setRange(low, high);
    }
    key_ticker->setMarks(
        position_ticks(first, last, axes.shift, std::min(11, side / (position_width + text))));
    query_ticker->setMarks(position_ticks(first, last, axes.shift, std::min(11, side / (2 * text))));
    QCPAxis* key_axis = heat->axis(QCPAxis::atBottom);
    key_axis->setTickLabels(!profiles_shown);
    key_axis->setTicks(!profiles_shown);
    key_axis->setLabel(profiles_shown ? QString() : column_name());
    below->axis(QCPAxis::atBottom)->setLabel(column_name());
    // The name stands where it would without the wider value labels of the lower profile.
    heat->axis(QCPAxis::atLeft)
        ->setLabelPadding(name_padding + (left - text - name_padding - position_width - axis_depth));

    const auto fit_values = [&](QCPAxis* axis, FixedTicker& ticker, int most) {
        std::vector<Tick> ticks = value_ticks(axis->range().lower, axis->range().upper, most);
        if (axis->orientation() == Qt::Horizontal) {
            // A label may stand out of its own frame, but not into the neighbour's.
            std::erase_if(ticks, [&](const Tick& tick) {
                const double at = (tick.at - axis->range().lower) / axis->range().size() * profile;
                const double half = 0.5 * metrics.horizontalAdvance(tick.label);
                return at - half < -0.5 * gap || at + half > profile + 0.5 * gap;
            });
        }
        while (axis->orientation() == Qt::Horizontal && ticks.size() > 1 &&
               (width_of(ticks) + text / 2) * static_cast<int>(ticks.size()) > profile)
            ticks.erase(ticks.begin() + static_cast<std::ptrdiff_t>(ticks.size() / 2));
        ticker.setMarks(std::move(ticks));
    };
    fit_values(right->axis(QCPAxis::atBottom), *right_ticker, 3);
    fit_values(below->axis(QCPAxis::atLeft), *below_ticker, most_values);
}

void HeatmapPlot::Parts::place_bar(const QRect& place, int tick_width)
{
    const int text = QFontMetrics(widget->font()).height();
    QRect bar_place = place;
    if (scale.has_missing) bar_place.setBottom(bar_place.bottom() - text - gap);
    if (scale.upper_clipped) bar_place.setTop(bar_place.top() + triangle_height);
    if (scale.lower_clipped) bar_place.setBottom(bar_place.bottom() - triangle_height);
    if (bar_place.height() < 8) bar_place.setHeight(8);
    stage->place(bar, bar_place);
    bar_ticker->setMarks(
        color_bar_ticks(scale, std::max(2, std::min(9, bar_place.height() / (3 * text) + 1))));
    QCPAxis* axis = bar->axis(QCPAxis::atRight);
    const QFontMetrics metrics(widget->font());
    axis->setLabel(wrapped_label(label, place.height(),
                                 [&](const QString& line) { return metrics.horizontalAdvance(line); }));
    int widest = 0;
    for (const Tick& tick : bar_ticker->marks())
        widest = std::max(widest, QFontMetrics(widget->font()).horizontalAdvance(tick.label));
    axis->setLabelPadding(name_padding + std::max(0, tick_width - widest));
}

double HeatmapPlot::Parts::pixel_of(double position, int origin, int extent) const
{
    return origin + (position - first + 0.5) * extent / shown();
}

std::optional<QPoint> HeatmapPlot::Parts::cell_at(const QPointF& pixel) const
{
    if (empty() || !QRectF(heat->rect()).contains(pixel)) return std::nullopt;
    const auto position = [&](double at, int origin, int extent) {
        return std::clamp(first + static_cast<int>(std::floor((at - origin) * shown() / extent)), first,
                          last);
    };
    return QPoint(position(pixel.x(), heat->left(), heat->width()),
                  position(pixel.y(), heat->top(), heat->height()));
}

void HeatmapPlot::Parts::set_range(int new_first, int new_last)
{
    new_first = std::clamp(new_first, map_first(), map_last());
    new_last = std::clamp(new_last, new_first, map_last());
    if (new_first == first && new_last == last) return;
    first = new_first;
    last = new_last;
    reduced = QImage();
    update_profiles();
    replot();
}

/// Zooms so that the middle of the pointed cell's two positions keeps its place, and the cell itself stays in view.
void HeatmapPlot::Parts::zoom(double factor, QPointF about)
{
    if (empty()) return;
    const std::optional<QPoint> cell = cell_at(about);
    const double low = cell ? std::min(cell->x(), cell->y()) : first;
    const double high = cell ? std::max(cell->x(), cell->y()) : last;
    const double middle = 0.5 * (low + high);
    int count = static_cast<int>(std::lround(shown() * factor));
    if (count == shown()) count += factor < 1.0 ? -1 : 1;
    const int whole = static_cast<int>(map.length);
    if (factor < 1.0 && cell) count = std::max(count, static_cast<int>(high - low) + 1);
    count = std::clamp(count, std::min(fewest_cells, whole), whole);
    const double share = (middle - first + 0.5) / shown();
    int start = static_cast<int>(std::lround(middle + 0.5 - share * count));
    if (cell && factor < 1.0)
        start = std::clamp(start, static_cast<int>(high) - count + 1, static_cast<int>(low));
    start = std::clamp(start, map_first(), map_last() - count + 1);
    const int old_first = first;
    const int old_last = last;
    set_range(start, start + count - 1);
    if (first != old_first || last != old_last) Q_EMIT widget->positionRangeChanged(first, last);
}

/// Range of the means that are shown.
QCPRange HeatmapPlot::Parts::mean_range(const std::vector<double>& means) const
{
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (int position = first; position <= last; ++position) {
        const double value = means[static_cast<std::size_t>(position - map_first())];
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    return low > high ? padded(0.0, 0.0) : padded(low, high);
}

void HeatmapPlot::Parts::update_profiles()
{
    if (empty()) return;
    const auto index = [&](int position) -> std::optional<std::size_t> {
        if (position < map_first() || position > map_last()) return std::nullopt;
        return static_cast<std::size_t>(position - map_first());
    };
    const auto fill = [&](QCPGraph* graph, Along along, std::optional<std::size_t> line) {
        const std::vector<double>& means = along == Along::rows ? row_means : column_means;
        const std::vector<double> values = line ? profile(map, along, line) : means;
        QVector<double> at;
        QVector<double> shown_values;
        for (int position = first; position <= last; ++position) {
            const double value = values[static_cast<std::size_t>(position - map_first())];
            at.append(position);
            shown_values.append(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
        }
        graph->setData(at, shown_values, true);
        graph->setLineStyle(shown() <= 40 ? QCPGraph::lsStepCenter : QCPGraph::lsLine);
        // One scale for all rows and columns, so that they compare; the means have their own, much smaller one.
        graph->valueAxis()->setRange(line ? padded(least, largest) : mean_range(means));
    };
    fill(right_graph, Along::rows, marked ? index(marked->x()) : std::nullopt);
    fill(below_graph, Along::columns, marked ? index(marked->y()) : std::nullopt);
}

void HeatmapPlot::Parts::draw_heatmap(QPainter& painter)
{
    if (empty()) return;
    const QRect target = heat->rect();
    const QRect source(first - map_first(), first - map_first(), shown(), shown());
    const double ratio = plot->bufferDevicePixelRatio();
    const int device_side = static_cast<int>(std::lround(target.width() * ratio));
    painter.save();
    painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
    if (shown() > device_side) {
        // Taking the nearest cell would leave whole rows out, and among them perhaps key 0: average instead.
        if (reduced.width() != device_side)
            reduced = image.copy(source).scaled(device_side, device_side, Qt::IgnoreAspectRatio,
                                                Qt::SmoothTransformation);
        painter.drawImage(QRectF(target), reduced, QRectF(reduced.rect()));
    } else {
        painter.drawImage(QRectF(target), image, QRectF(source));
    }
    if (dimmed) {
        QColor veil = colors.background;
        veil.setAlphaF(0.6F);
        painter.fillRect(target, veil);
    }
    painter.restore();
}

void HeatmapPlot::Parts::draw_bar(QPainter& painter)
{
    if (empty()) return;
    const QRect place = bar->rect();
    painter.save();
    painter.setRenderHint(QPainter::SmoothPixmapTransform, place.height() < bar_image.height());
    painter.drawImage(QRectF(place), bar_image, QRectF(bar_image.rect()));
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(colors.frame, 1.0));
    const double middle = place.left() + 0.5 * place.width();
    const QRectF edge = QRectF(place).adjusted(0.5, 0.0, 0.5, 0.0);
    if (scale.upper_clipped) {
        painter.setBrush(QColor(color_map_entry(scale.map, 255)));
        painter.drawPolygon(
            QPolygonF({QPointF(edge.left(), edge.top()), QPointF(middle, edge.top() - triangle_height),
                       QPointF(edge.right(), edge.top())}));
    }
    if (scale.lower_clipped) {
        painter.setBrush(QColor(color_map_entry(scale.map, 0)));
        painter.drawPolygon(
            QPolygonF({QPointF(edge.left(), edge.bottom()), QPointF(middle, edge.bottom() + triangle_height),
                       QPointF(edge.right(), edge.bottom())}));
    }
    if (scale.has_missing) {
        painter.setRenderHint(QPainter::Antialiasing, false);
        const QFontMetrics metrics(widget->font());
        const int size = std::min(bar_width, metrics.height());
        const QRect swatch(place.left(), heat->bottom() - size + 1, bar_width, size);
        painter.fillRect(swatch, scale.missing);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(swatch.adjusted(0, 0, 0, -1));
        painter.setPen(colors.text);
        painter.setFont(widget->font());
        painter.drawText(QRect(swatch.right() + 1 + tick_padding + 1,
                               swatch.center().y() - metrics.height() / 2, 1000, metrics.height()),
                         Qt::AlignLeft | Qt::AlignVCenter, tr_text("no value"));
    }
    painter.restore();
}

void HeatmapPlot::Parts::draw_profile_names(QPainter& painter)
{
    if (empty() || !profiles_shown) return;
    painter.save();
    painter.setFont(widget->font());
    painter.setPen(colors.text);
    const auto inside = [&](int position) { return position >= map_first() && position <= map_last(); };
    const QString row_name =
        marked && inside(marked->x()) ? line_name(axes.columns, "key %1", marked->x()) : tr_text("mean");
    const QString column_name =
        marked && inside(marked->y()) ? line_name(axes.rows, "query %1", marked->y()) : tr_text("mean");
    const auto write = [&](const QRect& place, const QString& name) {
        const QFontMetrics metrics(widget->font());
        const QRect box(place.right() - metrics.horizontalAdvance(name) - 4, place.top() + 2,
                        metrics.horizontalAdvance(name) + 2, metrics.height());
        QColor paper = colors.background;
        paper.setAlphaF(0.8F);
        painter.fillRect(box, paper);
        painter.drawText(box, Qt::AlignCenter, name);
    };
    write(right->rect(), row_name);
    write(below->rect(), column_name);
    painter.restore();
}

void HeatmapPlot::Parts::draw_marks(QPainter& painter)
{
    if (empty()) return;
    const QRect place = heat->rect();
    painter.save();
    const auto shown_position = [&](int position) { return position >= first && position <= last; };
    // Dark on light: visible on every colour of every map.
    const QPen halo(QColor(255, 255, 255, 170), 3.0, Qt::SolidLine, Qt::FlatCap);
    const QPen core(QColor(20, 20, 20), 1.0, Qt::SolidLine, Qt::FlatCap);
    if (marked) {
        const QRectF cell = widget->cellRect(marked->y(), marked->x());
        const double y = std::floor(pixel_of(marked->y(), place.top(), place.height())) + 0.5;
        const double x = std::floor(pixel_of(marked->x(), place.left(), place.width())) + 0.5;
        painter.setRenderHint(QPainter::Antialiasing, true);
        for (const QPen& pen : {halo, core}) {
            painter.setPen(pen);
            painter.setBrush(Qt::NoBrush);
            if (shown_position(marked->y())) {
                const double before = cell.isNull() ? place.right() + 1.0 : cell.left() - 2.0;
                const double after = cell.isNull() ? place.right() + 1.0 : cell.right() + 2.0;
                if (before > place.left()) painter.drawLine(QLineF(place.left(), y, before, y));
                if (after < place.right()) painter.drawLine(QLineF(after, y, place.right() + 1.0, y));
            }
            if (shown_position(marked->x())) {
                const double before = cell.isNull() ? place.bottom() + 1.0 : cell.top() - 2.0;
                const double after = cell.isNull() ? place.bottom() + 1.0 : cell.bottom() + 2.0;
                if (before > place.top()) painter.drawLine(QLineF(x, place.top(), x, before));
                if (after < place.bottom()) painter.drawLine(QLineF(x, after, x, place.bottom() + 1.0));
            }
            if (!cell.isNull()) painter.drawRect(cell.adjusted(-1.5, -1.5, 1.5, 1.5));
        }
        if (profiles_shown) {
            painter.setPen(QPen(colors.mark, 1.0));
            if (shown_position(marked->y()))
                painter.drawLine(QLineF(right->left(), y, right->right() + 1.0, y));
            if (shown_position(marked->x()))
                painter.drawLine(QLineF(x, below->top(), x, below->bottom() + 1.0));
        }
    }
    if (band) {
        const double low = pixel_of(band->left() - 0.5, place.left(), place.width());
        const double high = pixel_of(band->left() + band->width() - 0.5, place.left(), place.width());
        const QRectF box(low, place.top() + (low - place.left()), high - low, high - low);
        painter.setRenderHint(QPainter::Antialiasing, false);
        painter.setBrush(QColor(255, 255, 255, 60));
        painter.setPen(halo);
        painter.drawRect(box);
        painter.setPen(core);
        painter.drawRect(box);
    }
    painter.restore();
}

HeatmapPlot::HeatmapPlot(QWidget* parent) : QWidget(parent), m_parts(std::make_unique<Parts>(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Attention heatmap"));
    setMinimumSize(minimumSizeHint());
    m_parts->restyle();
}

HeatmapPlot::~HeatmapPlot()
{
    // The plot's items call back into the parts while they are taken down.
    m_parts->plot->removeEventFilter(this);
    delete m_parts->plot;
}

void HeatmapPlot::setMap(const core::PositionMap& map, const ColorScale& scale, const QString& quantityLabel)
{
    setMap(map, scale, quantityLabel, heatmap_image(map, scale));
}

void HeatmapPlot::setMap(const core::PositionMap& map, const ColorScale& scale, const QString& quantityLabel,
                         const QImage& image)
{
    Parts& parts = *m_parts;
    const bool same_positions =
        parts.map.length == map.length && parts.map.first_position == map.first_position && map.length > 0;
    parts.map = map;
    parts.scale = scale;
    parts.label = quantityLabel;
    parts.image = image;
    parts.bar_image = color_bar_image(scale.map);
    const ColorScale whole = make_color_scale(map, scale.map, ScaleKind::linear);
    parts.least = whole.lower;
    parts.largest = whole.upper;
    parts.row_means = profile(map, Along::rows, std::nullopt);
    parts.column_means = profile(map, Along::columns, std::nullopt);
    parts.reduced = QImage();
    if (!same_positions) {
        parts.first = parts.map_first();
        parts.last = parts.map_last();
        parts.band.reset();
        parts.press.reset();
    }
    parts.update_visibility();
    parts.update_profiles();
    parts.replot();
}

void HeatmapPlot::clear()
{
    setMap({}, {}, {});
}

void HeatmapPlot::setAxes(const HeatmapAxes& axes)
{
    if (m_parts->axes == axes) return;
    m_parts->axes = axes;
    m_parts->restyle();
}

const HeatmapAxes& HeatmapPlot::axes() const
{
    return m_parts->axes;
}

const core::PositionMap& HeatmapPlot::map() const
{
    return m_parts->map;
}

const ColorScale& HeatmapPlot::colorScale() const
{
    return m_parts->scale;
}

void HeatmapPlot::setMarkedCell(std::optional<QPoint> cell)
{
    Parts& parts = *m_parts;
    if (parts.marked == cell) return;
    const bool same_axes = parts.marked.has_value() == cell.has_value();
    parts.marked = cell;
    if (parts.empty()) return;
    // Also while no profiles are seen: a larger size may bring them in.
    parts.update_profiles();
    if (!parts.profiles_shown) return parts.replot_marks();
    if (!same_axes) return parts.replot();
    parts.plot->layer(Parts::profiles_layer())->replot();
    parts.replot_marks();
}

std::optional<QPoint> HeatmapPlot::markedCell() const
{
    return m_parts->marked;
}

void HeatmapPlot::setPositionRange(int first, int last)
{
    if (!m_parts->empty()) m_parts->set_range(first, last);
}

void HeatmapPlot::resetRange()
{
    if (!m_parts->empty()) m_parts->set_range(m_parts->map_first(), m_parts->map_last());
}

int HeatmapPlot::firstShown() const
{
    return m_parts->first;
}

int HeatmapPlot::lastShown() const
{
    return m_parts->last;
}

void HeatmapPlot::setProfilesVisible(bool visible)
{
    m_parts->profiles_wanted = visible;
    m_parts->replot();
}

bool HeatmapPlot::profilesVisible() const
{
    return m_parts->profiles_wanted;
}

void HeatmapPlot::setDimmed(bool dimmed)
{
    if (m_parts->dimmed == dimmed) return;
    m_parts->dimmed = dimmed;
    m_parts->replot();
}

std::optional<double> HeatmapPlot::valueAt(int query, int key) const
{
    const Parts& parts = *m_parts;
    if (query < parts.map_first() || query > parts.map_last() || key < parts.map_first() ||
        key > parts.map_last())
        return std::nullopt;
    return parts.map(static_cast<std::size_t>(query - parts.map_first()),
                     static_cast<std::size_t>(key - parts.map_first()));
}

QRectF HeatmapPlot::cellRect(int query, int key) const
{
    const Parts& parts = *m_parts;
    if (parts.empty() || query < parts.first || query > parts.last || key < parts.first || key > parts.last)
        return {};
    const QRect place = parts.heat->rect();
    const QPointF corner(parts.pixel_of(key - 0.5, place.left(), place.width()),
                         parts.pixel_of(query - 0.5, place.top(), place.height()));
    return {corner, QSizeF(1.0 * place.width() / parts.shown(), 1.0 * place.height() / parts.shown())};
}

QRect HeatmapPlot::heatmapRect() const
{
    return m_parts->heat->rect();
}

QRect HeatmapPlot::colorBarRect() const
{
    return m_parts->bar->rect();
}

QSize HeatmapPlot::sizeHint() const
{
    return {520, 460};
}

QSize HeatmapPlot::minimumSizeHint() const
{
    return {200, 120};
}

void HeatmapPlot::resizeEvent(QResizeEvent* event)
{
    m_parts->reduced = QImage();
    m_parts->plot->setGeometry(QRect(QPoint(0, 0), event->size()));
}

void HeatmapPlot::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    const auto type = event->type();
    if (type == QEvent::PaletteChange || type == QEvent::FontChange || type == QEvent::StyleChange ||
        type == QEvent::LanguageChange)
        m_parts->restyle();
}

void HeatmapPlot::keyPressEvent(QKeyEvent* event)
{
    Parts& parts = *m_parts;
    if (parts.empty()) return QWidget::keyPressEvent(event);
    const int middle = (parts.first + parts.last) / 2;
    QPoint cell = parts.marked.value_or(QPoint(middle, middle));
    switch (event->key()) {
    case Qt::Key_Left: cell.rx() -= 1; break;
    case Qt::Key_Right: cell.rx() += 1; break;
    case Qt::Key_Up: cell.ry() -= 1; break;
    case Qt::Key_Down: cell.ry() += 1; break;
    case Qt::Key_Space: Q_EMIT cellClicked(cell.y(), cell.x()); return;
    case Qt::Key_Plus: parts.zoom(0.8, QRectF(parts.heat->rect()).center()); return;
    case Qt::Key_Minus: parts.zoom(1.25, QRectF(parts.heat->rect()).center()); return;
    case Qt::Key_0:
        resetRange();
        Q_EMIT positionRangeChanged(parts.first, parts.last);
        return;
    default: QWidget::keyPressEvent(event); return;
    }
    cell.setX(std::clamp(cell.x(), parts.first, parts.last));
    cell.setY(std::clamp(cell.y(), parts.first, parts.last));
    Q_EMIT cellHovered(cell.y(), cell.x());
}

bool HeatmapPlot::eventFilter(QObject* watched, QEvent* event)
{
    Parts& parts = *m_parts;
    if (watched != parts.plot || parts.empty()) return QWidget::eventFilter(watched, event);
    const auto leave = [&] {
        if (parts.hovering) Q_EMIT cellLeft();
        parts.hovering = false;
    };
    switch (event->type()) {
    case QEvent::MouseButtonPress: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const bool moving =
            mouse->button() == Qt::MiddleButton ||
            (mouse->button() == Qt::LeftButton && mouse->modifiers().testFlag(Qt::ShiftModifier));
        if (!parts.cell_at(mouse->position())) return true;
        if (moving) {
            parts.pan = mouse->position().toPoint();
            parts.pan_rest = 0.0;
        } else if (mouse->button() == Qt::LeftButton) {
            parts.press = mouse->position().toPoint();
        }
        return true;
    }
    case QEvent::MouseMove: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const QPoint place = mouse->position().toPoint();
        const std::optional<QPoint> cell = parts.cell_at(mouse->position());
        if (parts.pan) {
            // Along the diagonal, since both axes show the same positions.
            const QPoint step = place - *parts.pan;
            const double cells =
                -0.5 * (step.x() + step.y()) * parts.shown() / parts.heat->width() + parts.pan_rest;
            const int whole = static_cast<int>(std::trunc(cells));
            const int start =
                std::clamp(parts.first + whole, parts.map_first(), parts.map_last() - parts.shown() + 1);
            parts.pan_rest = cells - whole;
            parts.pan = place;
            if (start != parts.first) {
                parts.set_range(start, start + parts.shown() - 1);
                Q_EMIT positionRangeChanged(parts.first, parts.last);
            }
            return true;
        }
        if (parts.press &&
            (parts.band || (place - *parts.press).manhattanLength() >= QApplication::startDragDistance())) {
            const QRect heat = parts.heat->rect();
            const QPoint inside(std::clamp(place.x(), heat.left(), heat.right()),
                                std::clamp(place.y(), heat.top(), heat.bottom()));
            const std::optional<QPoint> from = parts.cell_at(*parts.press);
            const std::optional<QPoint> to = parts.cell_at(inside);
            if (from && to) {
                const auto [low, high] = std::minmax({from->x(), from->y(), to->x(), to->y()});
                parts.band = QRect(low, low, high - low + 1, high - low + 1);
                parts.replot_marks();
            }
        }
        if (cell) {
            parts.hovering = true;
            Q_EMIT cellHovered(cell->y(), cell->x());
        } else {
            leave();
        }
        return true;
    }
    case QEvent::MouseButtonRelease: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        parts.pan.reset();
        if (mouse->button() != Qt::LeftButton || !parts.press) return true;
        parts.press.reset();
        if (parts.band) {
            const QRect range = *parts.band;
            parts.band.reset();
            parts.replot_marks();
            if (range.width() >= std::min(2, static_cast<int>(parts.map.length))) {
                parts.set_range(range.left(), range.left() + range.width() - 1);
                Q_EMIT positionRangeChanged(parts.first, parts.last);
            }
        } else if (const std::optional<QPoint> cell = parts.cell_at(mouse->position())) {
            Q_EMIT cellClicked(cell->y(), cell->x());
        }
        return true;
    }
    case QEvent::MouseButtonDblClick:
        parts.press.reset();
        if (parts.first != parts.map_first() || parts.last != parts.map_last()) {
            resetRange();
            Q_EMIT positionRangeChanged(parts.first, parts.last);
        }
        return true;
    case QEvent::Wheel: {
        const auto* wheel = static_cast<QWheelEvent*>(event);
        if (wheel->angleDelta().y() != 0)
            parts.zoom(std::pow(0.8, wheel->angleDelta().y() / 120.0), wheel->position());
        event->accept();
        return true;
    }
    case QEvent::Leave: leave(); return false;
    default: return QWidget::eventFilter(watched, event);
    }
}

} // namespace posiscope::ui
