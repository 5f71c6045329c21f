// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/symbol_icon.h"

#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPainterPath>
#include <QPalette>
#include <QPixmap>

namespace posiscope::ui {
namespace {

/// The drawing in a square of 16 x 16.
QPainterPath symbol_path(Symbol symbol)
{
    QPainterPath path;
    const auto line = [&path](double x1, double y1, double x2, double y2) {
        path.moveTo(x1, y1);
        path.lineTo(x2, y2);
    };
    switch (symbol) {
    case Symbol::fill: // four corners outwards
        path.moveTo(2.5, 6), path.lineTo(2.5, 2.5), path.lineTo(6, 2.5);
        path.moveTo(10, 2.5), path.lineTo(13.5, 2.5), path.lineTo(13.5, 6);
        path.moveTo(13.5, 10), path.lineTo(13.5, 13.5), path.lineTo(10, 13.5);
        path.moveTo(6, 13.5), path.lineTo(2.5, 13.5), path.lineTo(2.5, 10);
        break;
    case Symbol::restore: // four corners inwards
        path.moveTo(2.5, 6), path.lineTo(6, 6), path.lineTo(6, 2.5);
        path.moveTo(10, 2.5), path.lineTo(10, 6), path.lineTo(13.5, 6);
        path.moveTo(13.5, 10), path.lineTo(10, 10), path.lineTo(10, 13.5);
        path.moveTo(6, 13.5), path.lineTo(6, 10), path.lineTo(2.5, 10);
        break;
    case Symbol::export_figure: // an arrow out of a tray
        line(8, 10, 8, 2.5);
        path.moveTo(5, 5.5), path.lineTo(8, 2.5), path.lineTo(11, 5.5);
        path.moveTo(2.5, 9), path.lineTo(2.5, 13.5), path.lineTo(13.5, 13.5), path.lineTo(13.5, 9);
        break;
    case Symbol::add:
        line(8, 3, 8, 13);
        line(3, 8, 13, 8);
        break;
    case Symbol::close:
        line(4, 4, 12, 12);
        line(12, 4, 4, 12);
        break;
    case Symbol::warning:
        path.moveTo(8, 2.5), path.lineTo(14, 13.5), path.lineTo(2, 13.5), path.closeSubpath();
        line(8, 6.5, 8, 9.5);
        line(8, 11.4, 8, 11.8);
        break;
    case Symbol::pin:
        path.addEllipse(QPointF(8, 6), 3, 3);
        line(8, 9, 8, 14);
        break;
    }
    return path;
}

class SymbolEngine : public QIconEngine {
public:
    explicit SymbolEngine(Symbol symbol) : m_symbol(symbol) {}

    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override
    {
        const auto group = mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->translate(rect.topLeft());
        const double scale = std::min(rect.width(), rect.height()) / 16.0;
        painter->scale(scale, scale);
        painter->setPen(QPen(QGuiApplication::palette().color(group, QPalette::ButtonText), 1.4,
                             Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter->drawPath(symbol_path(m_symbol));
        painter->restore();
    }

    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override
    {
        QPixmap pixmap(size);
        pixmap.fill(Qt::transparent);
        QPainter painter(&pixmap);
        paint(&painter, QRect(QPoint(), size), mode, state);
        return pixmap;
    }

    [[nodiscard]] QIconEngine* clone() const override { return new SymbolEngine(m_symbol); }

private:
    Symbol m_symbol;
};

} // namespace

QIcon symbol_icon(Symbol symbol)
{
    return QIcon(new SymbolEngine(symbol));
}

} // namespace posiscope::ui
