// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/menu_button.h"

#include <QPainterPath>
#include <QStyleOptionToolButton>
#include <QStylePainter>

#include "ui/theme.h"

namespace posiscope::ui {
namespace {

constexpr int arrow_width = 8;
constexpr int arrow_space = 5; ///< between text and arrow

} // namespace

MenuButton::MenuButton(QWidget* parent) : QToolButton(parent)
{
    setAutoRaise(true);
    setPopupMode(QToolButton::InstantPopup);
    setFocusPolicy(Qt::StrongFocus);
}

QSize MenuButton::sizeHint() const
{
    if (!hasArrow()) return QToolButton::sizeHint();
    const QFontMetrics metrics(font());
    return {metrics.horizontalAdvance(text()) + arrow_space + arrow_width + grid,
            metrics.height() + grid - 2};
}

void MenuButton::paintEvent(QPaintEvent*)
{
    QStyleOptionToolButton option;
    initStyleOption(&option);
    // The style's own arrow is tiny and lies in the corner.
    option.features &= ~QStyleOptionToolButton::HasMenu;
    if (hasArrow()) option.text.clear();
    QStylePainter painter(this);
    painter.drawComplexControl(QStyle::CC_ToolButton, option);
    if (!hasArrow()) return;

    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(
        palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::ButtonText));
    const QRect place = rect().adjusted(grid / 2, 0, -grid / 2, 0);
    painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter, text());
    const double right = place.right();
    const double middle = rect().center().y() + 1.0;
    QPainterPath arrow(QPointF(right - arrow_width, middle - 2.0));
    arrow.lineTo(right - arrow_width / 2.0, middle + 2.0);
    arrow.lineTo(right, middle - 2.0);
    painter.setPen(QPen(painter.pen().color(), 1.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPath(arrow);
}

} // namespace posiscope::ui
