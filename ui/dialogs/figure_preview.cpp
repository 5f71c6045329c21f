// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/dialogs/figure_preview.h"

#include <algorithm>

#include <QPainter>

#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_writer.h"

namespace posiscope::ui {
namespace {

constexpr int surround = 16; ///< desk around the page

} // namespace

FigurePreview::FigurePreview(QWidget* parent) : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    setAccessibleName(tr("Preview of the figure"));
}

void FigurePreview::setFigure(const FigureSpec& spec, const FigureOptions& options)
{
    m_spec = spec;
    m_options = options;
    m_picture = QImage();
    update();
}

QRect FigurePreview::pageRect() const
{
    const QSizeF page = figure_size_mm(m_spec, m_options);
    const QSizeF room(std::max(1, width() - 2 * surround), std::max(1, height() - 2 * surround));
    const QSize size = page.scaled(room, Qt::KeepAspectRatio).toSize();
    return {QPoint((width() - size.width()) / 2, (height() - size.height()) / 2), size};
}

void FigurePreview::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.fillRect(rect(), palette().color(QPalette::Mid));
    const QRect page = pageRect();
    if (m_picture.isNull()) {
        const double ratio = devicePixelRatioF();
        m_picture = figure_picture(m_spec, m_options, page.width() * ratio / m_options.width_mm);
        m_picture.setDevicePixelRatio(ratio);
    }
    painter.fillRect(page.translated(2, 2), QColor(0, 0, 0, 60));
    painter.drawImage(page.topLeft(), m_picture);
}

void FigurePreview::resizeEvent(QResizeEvent*)
{
    m_picture = QImage();
}

} // namespace posiscope::ui
