// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

#include <QImage>
#include <QString>
#include <QWidget>

#include "core/metrics/quantity.h"
#include "ui/plot/color_scale.h"

namespace posiscope::ui {

/// One small picture for each head, on one colour scale. Made once, on any thread.
struct HeadPictures {
    ColorScale scale;
    std::vector<QImage> images; ///< a pixel a cell
};
HeadPictures make_head_pictures(std::span<const core::PositionMap> heads, ColorMapId color_map,
                                ScaleKind kind);

/// All heads of a layer as small heatmaps on one colour scale; a click (or arrow keys and Space) picks one. Pictures
/// are scaled when the size changes; pointing rebuilds nothing.
class HeadGrid : public QWidget {
    Q_OBJECT

public:
    explicit HeadGrid(QWidget* parent = nullptr);

    void setPictures(const HeadPictures& pictures, const QString& quantityLabel);
    void clear();
    [[nodiscard]] int headCount() const { return static_cast<int>(m_pictures.images.size()); }

    /// Frames a head; core::mean_of_heads frames none.
    void setSelectedHead(int head);
    [[nodiscard]] int selectedHead() const { return m_selected; }

    /// Which pictures are drawn, at the size of the tiles: another number once they were made again.
    [[nodiscard]] qint64 pictureKey() const { return m_scaled.empty() ? 0 : m_scaled.front().cacheKey(); }
    /// Pixels of a head's picture in this widget.
    [[nodiscard]] QRect headRect(int head) const;

    [[nodiscard]] QSize sizeHint() const override { return {520, 400}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {200, 160}; }

Q_SIGNALS:
    void headHovered(int head);
    void headLeft();
    void headClicked(int head);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void arrange();
    [[nodiscard]] int headAt(const QPointF& place) const;
    void hover(int head);

    HeadPictures m_pictures;
    QString m_label;
    std::vector<QImage> m_scaled; ///< the pictures at the tiles' size; empty: to be made
    int m_columns = 1;
    int m_tile = 0;  ///< side of a picture
    QPoint m_origin; ///< of the first tile, its name included
    QRect m_bar;     ///< colour bar
    int m_selected = core::mean_of_heads;
    int m_hovered = core::mean_of_heads;
};

} // namespace posiscope::ui
