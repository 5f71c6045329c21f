// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plot/profile_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QResizeEvent>
#include <QWheelEvent>

#include "ui/plot/plot_parts.h"

namespace posiscope::ui {
namespace {

constexpr int swatch_width = 18;
constexpr int legend_margin = 50; ///< beside the legend: the value axis
constexpr std::size_t most_joined_points = 300;
constexpr int fewest_offsets = 5; ///< zoomed in as far as possible

QString tr_text(const char* text)
{
    return QCoreApplication::translate("posiscope::ui::ProfilePlot", text);
}

} // namespace

struct ProfilePlot::Parts {
    explicit Parts(ProfilePlot* owner);

    ProfilePlot* widget;
    QCustomPlot* plot;
    PlotStage* stage;
    QCPAxisRect* rect;
    QCPGraph* spread_low;
    QCPGraph* spread_high;
    QCPGraph* error_low;
    QCPGraph* error_high;
    QCPGraph* mean;
    QSharedPointer<FixedTicker> offset_ticker{new FixedTicker};
    QSharedPointer<FixedTicker> value_ticker{new FixedTicker};

    ProfileCurve curve;
    QString label;
    int first = 0; ///< shown offsets
    int last = -1;
    std::optional<int> marked;
    bool dimmed = false;
    bool hovering = false;
    std::optional<int> press;                ///< pixel column where the left button went down
    std::optional<std::pair<int, int>> band; ///< offsets being dragged over
    PlotColors colors;

    /// One entry of the legend above the plot.
    struct LegendEntry {
        QString text;
        QColor color;
        bool line = false;
    };

    [[nodiscard]] bool empty() const { return curve.mean.empty(); }
    [[nodiscard]] int shown() const { return last - first + 1; }
    [[nodiscard]] QCPAxis* offset_axis() const { return rect->axis(QCPAxis::atBottom); }
    [[nodiscard]] QCPAxis* value_axis() const { return rect->axis(QCPAxis::atLeft); }
    [[nodiscard]] std::vector<LegendEntry> legend() const;
    [[nodiscard]] std::vector<QPoint> legend_places(int width, int& height) const;
    [[nodiscard]] double value(int offset) const;
    [[nodiscard]] std::optional<int> offset_at(const QPointF& pixel) const;

    void arrange();
    void restyle();
    void fill_graphs();
    void set_range(int new_first, int new_last);
    void zoom(double factor, int about);
    void draw_behind(QPainter& painter);
    void draw_legend(QPainter& painter);
    void draw_marks(QPainter& painter);
    void replot_marks() { plot->layer(QStringLiteral("marks"))->replot(); }
    void replot() { plot->replot(QCustomPlot::rpQueuedReplot); }
};

ProfilePlot::Parts::Parts(ProfilePlot* owner)
    : widget(owner), plot(new QCustomPlot(owner)), stage(new PlotStage)
{
    plot->plotLayout()->clear();
    plot->plotLayout()->addElement(0, 0, stage);
    plot->addLayer(QStringLiteral("marks"));
    plot->layer(QStringLiteral("marks"))->setMode(QCPLayer::lmBuffered);
    rect = make_axis_rect(plot);
    stage->addElement(rect, QRectF(0, 0, 1, 1));
    offset_axis()->setTicker(offset_ticker);
    value_axis()->setTicker(value_ticker);

    auto* behind = new DrawnItem(plot, rect, [this](QPainter& painter) { draw_behind(painter); });
    behind->setLayer(QStringLiteral("grid"));
    spread_low = plot->addGraph(offset_axis(), value_axis());
    spread_high = plot->addGraph(offset_axis(), value_axis());
    error_low = plot->addGraph(offset_axis(), value_axis());
    error_high = plot->addGraph(offset_axis(), value_axis());
    mean = plot->addGraph(offset_axis(), value_axis());
    for (QCPGraph* graph : {spread_low, spread_high, error_low, error_high}) {
        graph->setPen(Qt::NoPen);
        // Bands of neighbouring offsets must meet the line at the same points.
        graph->setAdaptiveSampling(false);
    }
    spread_high->setChannelFillGraph(spread_low);
    error_high->setChannelFillGraph(error_low);

    auto* names = new DrawnItem(plot, nullptr, [this](QPainter& painter) { draw_legend(painter); });
    names->setLayer(QStringLiteral("axes"));
    auto* marks = new DrawnItem(plot, nullptr, [this](QPainter& painter) { draw_marks(painter); });
    marks->setLayer(QStringLiteral("marks"));

    stage->arrange = [this] { arrange(); };
    plot->setFocusPolicy(Qt::NoFocus);
    plot->setMouseTracking(true);
    plot->installEventFilter(owner);
    rect->setVisible(false);
}

void ProfilePlot::Parts::restyle()
{
    colors = plot_colors(widget->palette());
    plot->setBackground(QBrush(colors.background));
    for (QCPAxis* axis : rect->axes()) style_axis(axis, colors, widget->font());
    QPen pen(colors.curve, 1.5);
    pen.setJoinStyle(Qt::RoundJoin);
    mean->setPen(pen);
    spread_high->setBrush(colors.spread);
    error_high->setBrush(colors.standard_error);
    offset_axis()->setLabel(tr_text("offset (key \u2212 query)"));
    replot();
}

std::vector<ProfilePlot::Parts::LegendEntry> ProfilePlot::Parts::legend() const
{
    std::vector<LegendEntry> entries;
    entries.push_back({tr_text("mean"), colors.curve, true});
    if (!curve.spread.empty()) entries.push_back({tr_text("\u00B1 sd along the diagonal"), colors.spread});
    if (!curve.standard_error.empty())
        entries.push_back({tr_text("\u00B1 s.e. over words"), colors.standard_error});
    if (curve.white_band) {
        const QString text =
            tr_text("white band %1 to %2")
                .arg(fixed_text(curve.white_band->first, 0), fixed_text(curve.white_band->last, 0));
        entries.push_back({text, colors.white_band});
    }
    return entries;
}

/// Places of the legend's entries, in as many lines as `width` asks for; `height` is what they take.
std::vector<QPoint> ProfilePlot::Parts::legend_places(int width, int& height) const
{
    const QFontMetrics metrics(widget->font());
    std::vector<QPoint> places;
    int x = 0;
    int y = 0;
    for (const LegendEntry& entry : legend()) {
        const int extent = swatch_width + 5 + metrics.horizontalAdvance(entry.text);
        if (x > 0 && x + extent > width) {
            x = 0;
            y += metrics.height() + 2;
        }
        places.emplace_back(x, y);
        x += extent + 14;
    }
    height = y + metrics.height();
    return places;
}

double ProfilePlot::Parts::value(int offset) const
{
    if (empty() || offset < curve.first_offset || offset > curve.last_offset())
        return std::numeric_limits<double>::quiet_NaN();
    return curve.mean[static_cast<std::size_t>(offset - curve.first_offset)];
}

void ProfilePlot::Parts::arrange()
{
    const QRect view = plot->viewport();
    if (empty() || view.isEmpty()) return;
    const QFontMetrics metrics(widget->font());
    const int text = metrics.height();
    const int bottom = tick_length + tick_padding + text + name_padding + text + 6;

    double low = 0.0;
    double high = 1.0;
    if (const auto range = curve_value_range(curve, first, last)) std::tie(low, high) = *range;
    const double pad = high > low ? 0.05 * (high - low) : std::max(1e-12, 0.1 * std::abs(low));
    value_axis()->setRange(low - pad, high + pad);
    rect->axis(QCPAxis::atRight)->setRange(low - pad, high + pad);
    offset_axis()->setRange(first - 0.5, last + 0.5);
    rect->axis(QCPAxis::atTop)->setRange(first - 0.5, last + 0.5);

    int legend_height = 0;
    std::ignore = legend_places(view.width() - legend_margin, legend_height);
    const int top = 6 + legend_height + 6;
    const int height = std::max(16, view.height() - top - bottom);
    value_ticker->setMarks(value_ticks(low - pad, high + pad, std::max(2, std::min(9, height / (2 * text)))));
    int widest = 0;
    for (const Tick& tick : value_ticker->marks())
        widest = std::max(widest, metrics.horizontalAdvance(tick.label));
    const int name_lines = metrics.horizontalAdvance(label) > height ? 2 : 1;
    const int left = 6 + name_lines * text + name_padding + widest + tick_padding + tick_length;
    const int width = std::max(16, view.width() - left - 10);
    const int offset_width = std::max(metrics.horizontalAdvance(fixed_text(first, 0)),
                                      metrics.horizontalAdvance(fixed_text(last, 0)));
    offset_ticker->setMarks(
        integer_ticks(first, last, std::max(2, std::min(15, width / (3 * offset_width / 2 + 8)))));
    stage->place(rect, QRect(view.left() + left, view.top() + top, width, height));
    value_axis()->setLabel(
        wrapped_label(label, height, [&](const QString& line) { return metrics.horizontalAdvance(line); }));
}

void ProfilePlot::Parts::fill_graphs()
{
    // One polygon for the whole line has the finer joints, but a long noisy one takes Qt tens of milliseconds.
    plot->setPlottingHint(QCP::phFastPolylines, curve.mean.size() > most_joined_points);
    QVector<double> offsets;
    QVector<double> means;
    for (std::size_t n = 0; n < curve.mean.size(); ++n) {
        offsets.append(curve.first_offset + static_cast<int>(n));
        means.append(std::isfinite(curve.mean[n]) ? curve.mean[n] : std::numeric_limits<double>::quiet_NaN());
    }
    mean->setData(offsets, means, true);
    const auto fill_band = [&](QCPGraph* low, QCPGraph* high, const std::vector<double>& width) {
        QVector<double> lower;
        QVector<double> upper;
        for (qsizetype n = 0; n < means.size() && n < static_cast<qsizetype>(width.size()); ++n) {
            lower.append(means[n] - width[static_cast<std::size_t>(n)]);
            upper.append(means[n] + width[static_cast<std::size_t>(n)]);
        }
        const QVector<double> at = offsets.mid(0, lower.size());
        low->setData(at, lower, true);
        high->setData(at, upper, true);
    };
    fill_band(spread_low, spread_high, curve.spread);
    fill_band(error_low, error_high, curve.standard_error);
}

void ProfilePlot::Parts::set_range(int new_first, int new_last)
{
    new_first = std::clamp(new_first, curve.first_offset, curve.last_offset());
    new_last = std::clamp(new_last, new_first, curve.last_offset());
    if (new_first == first && new_last == last) return;
    first = new_first;
    last = new_last;
    replot();
}

void ProfilePlot::Parts::zoom(double factor, int about)
{
    const int whole = static_cast<int>(curve.mean.size());
    int count = static_cast<int>(std::lround(shown() * factor));
    if (count == shown()) count += factor < 1.0 ? -1 : 1;
    count = std::clamp(count, std::min(fewest_offsets, whole), whole);
    const double share = (about - first + 0.5) / shown();
    int start = static_cast<int>(std::lround(about + 0.5 - share * count));
    start = std::clamp(start, curve.first_offset, curve.last_offset() - count + 1);
    const int old_first = first;
    const int old_last = last;
    set_range(start, start + count - 1);
    if (first != old_first || last != old_last) Q_EMIT widget->offsetRangeChanged(first, last);
}

std::optional<int> ProfilePlot::Parts::offset_at(const QPointF& pixel) const
{
    if (empty() || !QRectF(rect->rect()).contains(pixel)) return std::nullopt;
    const double place = offset_axis()->pixelToCoord(pixel.x());
    return std::clamp(static_cast<int>(std::lround(place)), first, last);
}

void ProfilePlot::Parts::draw_behind(QPainter& painter)
{
    if (empty()) return;
    const QRect place = rect->rect();
    painter.save();
    if (curve.white_band) {
        const double low = offset_axis()->coordToPixel(curve.white_band->first - 0.5);
        const double high = offset_axis()->coordToPixel(curve.white_band->last + 0.5);
        painter.fillRect(QRectF(low, place.top(), high - low, place.height()), colors.white_band);
    }
    painter.setPen(QPen(colors.faint, 1.0));
    const double zero_offset = std::floor(offset_axis()->coordToPixel(0.0)) + 0.5;
    painter.drawLine(QLineF(zero_offset, place.top(), zero_offset, place.bottom()));
    painter.restore();
}

void ProfilePlot::Parts::draw_legend(QPainter& painter)
{
    if (empty()) return;
    painter.save();
    const QRect place = rect->rect();
    const QFontMetrics metrics(widget->font());
    // The zero line goes over the bands, which would hide it.
    if (value_axis()->range().contains(0.0)) {
        painter.setPen(QPen(colors.frame, 1.0, Qt::DashLine));
        const double zero = std::floor(value_axis()->coordToPixel(0.0)) + 0.5;
        painter.drawLine(QLineF(place.left(), zero, place.right(), zero));
    }
    painter.setFont(widget->font());
    int height = 0;
    const std::vector<QPoint> places = legend_places(plot->viewport().width() - legend_margin, height);
    const std::vector<LegendEntry> entries = legend();
    for (std::size_t n = 0; n < entries.size(); ++n) {
        const QPoint at = places[n] + QPoint(place.left(), plot->viewport().top() + 6);
        const int middle = at.y() + metrics.height() / 2;
        if (entries[n].line) {
            painter.setPen(QPen(entries[n].color, 1.5));
            painter.drawLine(QLineF(at.x(), middle + 0.5, at.x() + swatch_width, middle + 0.5));
        } else {
            painter.fillRect(QRect(at.x(), middle - 5, swatch_width, 10), entries[n].color);
        }
        painter.setPen(colors.text);
        painter.drawText(at.x() + swatch_width + 5, at.y() + metrics.ascent(), entries[n].text);
    }
    if (dimmed) {
        QColor veil = colors.background;
        veil.setAlphaF(0.6F);
        painter.fillRect(place.adjusted(1, 1, 0, 0), veil);
    }
    painter.restore();
}

void ProfilePlot::Parts::draw_marks(QPainter& painter)
{
    if (empty()) return;
    const QRect place = rect->rect();
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    if (band) {
        const double low = offset_axis()->coordToPixel(band->first - 0.5);
        const double high = offset_axis()->coordToPixel(band->second + 0.5);
        QColor fill = colors.curve;
        fill.setAlphaF(0.15F);
        painter.fillRect(QRectF(low, place.top(), high - low, place.height()), fill);
    }
    if (marked && *marked >= first && *marked <= last) {
        const double x = std::floor(offset_axis()->coordToPixel(*marked)) + 0.5;
        painter.setPen(QPen(colors.mark, 1.0));
        painter.drawLine(QLineF(x, place.top(), x, place.bottom()));
        const double height = value(*marked);
        const auto n = static_cast<std::size_t>(*marked - curve.first_offset);
        const double error = n < curve.standard_error.size() ? curve.standard_error[n] : 0.0;
        const QString text =
            tr_text("offset %1: %2").arg(fixed_text(*marked, 0), value_with_error_text(height, error));
        if (std::isfinite(height)) {
            painter.setPen(QPen(colors.background, 1.0));
            painter.setBrush(colors.mark);
            painter.drawEllipse(QPointF(x, value_axis()->coordToPixel(height)), 4.0, 4.0);
        }
        const QFontMetrics metrics(widget->font());
        const int width = metrics.horizontalAdvance(text) + 8;
        // On the side that has room.
        const double left = x + 6 + width <= place.right() ? x + 6 : x - 6 - width;
        const QRectF box(std::max<double>(left, place.left() + 2), place.top() + 4, width,
                         metrics.height() + 4);
        QColor paper = colors.background;
        paper.setAlphaF(0.88F);
        painter.setPen(Qt::NoPen);
        painter.setBrush(paper);
        painter.drawRoundedRect(box, 3, 3);
        painter.setPen(colors.text);
        painter.setFont(widget->font());
        painter.drawText(box, Qt::AlignCenter, text);
    }
    painter.restore();
}

ProfilePlot::ProfilePlot(QWidget* parent) : QWidget(parent), m_parts(std::make_unique<Parts>(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Offset profile"));
    setMinimumSize(minimumSizeHint());
    m_parts->restyle();
}

ProfilePlot::~ProfilePlot()
{
    // The plot's items call back into the parts while they are taken down.
    m_parts->plot->removeEventFilter(this);
    delete m_parts->plot;
}

void ProfilePlot::setProfile(const ProfileCurve& curve, const QString& quantityLabel)
{
    Parts& parts = *m_parts;
    const bool same_offsets = parts.curve.first_offset == curve.first_offset &&
                              parts.curve.mean.size() == curve.mean.size() && !curve.mean.empty();
    parts.curve = curve;
    parts.label = quantityLabel;
    if (!same_offsets) {
        parts.first = curve.first_offset;
        parts.last = curve.last_offset();
        parts.band.reset();
        parts.press.reset();
    }
    parts.rect->setVisible(!parts.empty());
    parts.fill_graphs();
    parts.replot();
}

void ProfilePlot::clear()
{
    setProfile({}, {});
}

const ProfileCurve& ProfilePlot::profile() const
{
    return m_parts->curve;
}

void ProfilePlot::setMarkedOffset(std::optional<int> offset)
{
    if (m_parts->marked == offset) return;
    m_parts->marked = offset;
    m_parts->replot_marks();
}

std::optional<int> ProfilePlot::markedOffset() const
{
    return m_parts->marked;
}

void ProfilePlot::setOffsetRange(int first, int last)
{
    if (!m_parts->empty()) m_parts->set_range(first, last);
}

void ProfilePlot::resetRange()
{
    if (!m_parts->empty()) m_parts->set_range(m_parts->curve.first_offset, m_parts->curve.last_offset());
}

int ProfilePlot::firstShown() const
{
    return m_parts->first;
}

int ProfilePlot::lastShown() const
{
    return m_parts->last;
}

void ProfilePlot::setDimmed(bool dimmed)
{
    if (m_parts->dimmed == dimmed) return;
    m_parts->dimmed = dimmed;
    m_parts->replot();
}

QRect ProfilePlot::plotRect() const
{
    return m_parts->rect->rect();
}

QPointF ProfilePlot::pointAt(int offset) const
{
    return {m_parts->offset_axis()->coordToPixel(offset),
            m_parts->value_axis()->coordToPixel(m_parts->value(offset))};
}

QSize ProfilePlot::sizeHint() const
{
    return {420, 280};
}

QSize ProfilePlot::minimumSizeHint() const
{
    return {200, 140};
}

void ProfilePlot::resizeEvent(QResizeEvent* event)
{
    m_parts->plot->setGeometry(QRect(QPoint(0, 0), event->size()));
}

void ProfilePlot::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    const auto type = event->type();
    if (type == QEvent::PaletteChange || type == QEvent::FontChange || type == QEvent::StyleChange ||
        type == QEvent::LanguageChange)
        m_parts->restyle();
}

void ProfilePlot::keyPressEvent(QKeyEvent* event)
{
    Parts& parts = *m_parts;
    if (parts.empty()) return QWidget::keyPressEvent(event);
    int offset = parts.marked.value_or(std::clamp(0, parts.first, parts.last));
    switch (event->key()) {
    case Qt::Key_Left: offset -= 1; break;
    case Qt::Key_Right: offset += 1; break;
    case Qt::Key_Space: Q_EMIT offsetClicked(offset); return;
    case Qt::Key_Plus: parts.zoom(0.8, offset); return;
    case Qt::Key_Minus: parts.zoom(1.25, offset); return;
    case Qt::Key_0:
        resetRange();
        Q_EMIT offsetRangeChanged(parts.first, parts.last);
        return;
    default: QWidget::keyPressEvent(event); return;
    }
    Q_EMIT offsetHovered(std::clamp(offset, parts.first, parts.last));
}

bool ProfilePlot::eventFilter(QObject* watched, QEvent* event)
{
    Parts& parts = *m_parts;
    if (watched != parts.plot || parts.empty()) return QWidget::eventFilter(watched, event);
    const auto leave = [&] {
        if (parts.hovering) Q_EMIT offsetLeft();
        parts.hovering = false;
    };
    switch (event->type()) {
    case QEvent::MouseButtonPress: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        if (mouse->button() == Qt::LeftButton && parts.offset_at(mouse->position()))
            parts.press = static_cast<int>(mouse->position().x());
        return true;
    }
    case QEvent::MouseMove: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const int x = static_cast<int>(mouse->position().x());
        if (parts.press && (parts.band || std::abs(x - *parts.press) >= QApplication::startDragDistance())) {
            const auto offset = [&](int pixel) {
                const double place = parts.offset_axis()->pixelToCoord(pixel);
                return std::clamp(static_cast<int>(std::lround(place)), parts.first, parts.last);
            };
            parts.band = std::minmax(offset(*parts.press), offset(x));
            parts.replot_marks();
        }
        if (const std::optional<int> offset = parts.offset_at(mouse->position())) {
            parts.hovering = true;
            Q_EMIT offsetHovered(*offset);
        } else {
            leave();
        }
        return true;
    }
    case QEvent::MouseButtonRelease: {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        if (mouse->button() != Qt::LeftButton || !parts.press) return true;
        parts.press.reset();
        if (parts.band) {
            const auto [low, high] = *parts.band;
            parts.band.reset();
            parts.replot_marks();
            if (high > low) {
                parts.set_range(low, high);
                Q_EMIT offsetRangeChanged(parts.first, parts.last);
            }
        } else if (const std::optional<int> offset = parts.offset_at(mouse->position())) {
            Q_EMIT offsetClicked(*offset);
        }
        return true;
    }
    case QEvent::MouseButtonDblClick:
        parts.press.reset();
        if (parts.first != parts.curve.first_offset || parts.last != parts.curve.last_offset()) {
            resetRange();
            Q_EMIT offsetRangeChanged(parts.first, parts.last);
        }
        return true;
    case QEvent::Wheel: {
        const auto* wheel = static_cast<QWheelEvent*>(event);
        const std::optional<int> about = parts.offset_at(wheel->position());
        if (wheel->angleDelta().y() != 0)
            parts.zoom(std::pow(0.8, wheel->angleDelta().y() / 120.0),
                       about.value_or((parts.first + parts.last) / 2));
        event->accept();
        return true;
    }
    case QEvent::Leave: leave(); return false;
    default: return QWidget::eventFilter(watched, event);
    }
}

} // namespace posiscope::ui
