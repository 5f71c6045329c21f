// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include <QImage>
#include <QPoint>
#include <QWidget>

#include "core/checkpoint/tensor_picture.h"
#include "ui/plot/color_scale.h"

namespace posiscope::ui {

/// A matrix of any shape as cells that fill the widget: row 0 at the top, column 0 at the left, a colour bar at the
/// right. Where a cell stands for several rows or columns of the matrix, the axes count those of the matrix. Arrow keys
/// and the pointer mark a cell.
class MatrixPlot : public QWidget {
    Q_OBJECT

public:
    explicit MatrixPlot(QWidget* parent = nullptr);

    /// @param image  of the picture in the colours of the scale, by matrix_image()
    void setPicture(core::TensorPicture picture, const ColorScale& scale, QImage image);
    void clear();
    [[nodiscard]] const core::TensorPicture& picture() const { return m_picture; }
    [[nodiscard]] const ColorScale& colorScale() const { return m_scale; }

    /// The marked cell of the picture; x = column, y = row.
    [[nodiscard]] std::optional<QPoint> markedCell() const { return m_marked; }
    /// "row 12, column 300: 0.0123"; ranges where a cell stands for several; empty without a marked cell.
    [[nodiscard]] QString readout() const;

    /// Pixels of the matrix, and of one cell of the picture. Valid once shown.
    [[nodiscard]] QRect matrixRect() const { return places().matrix; }
    [[nodiscard]] QRectF cellRect(int row, int column) const;

    [[nodiscard]] QSize sizeHint() const override { return {360, 280}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {180, 96}; }

Q_SIGNALS:
    /// Another cell is marked, or none.
    void markChanged();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    struct Layout {
        QRect matrix;
        QRect bar;
    };
    [[nodiscard]] Layout places() const;
    [[nodiscard]] bool isEmpty() const { return m_picture.values.empty(); }
    void mark(std::optional<QPoint> cell);

    core::TensorPicture m_picture;
    ColorScale m_scale;
    QImage m_image;
    QImage m_scaled; ///< m_image at the size of the matrix on screen; null: to be made
    std::optional<QPoint> m_marked;
};

/// How much of the values a scale of a matrix spans.
enum class MatrixRange { most_values, all_values };

/// A diverging scale centred at zero: up to the largest magnitude, or to the one that 99 % of the values stay below.
ColorScale matrix_color_scale(const core::TensorPicture& picture, MatrixRange range);

/// A pixel a cell. Safe on any thread.
QImage matrix_image(const core::TensorPicture& picture, const ColorScale& scale);

} // namespace posiscope::ui
