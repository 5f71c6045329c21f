// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include <QPoint>
#include <QString>
#include <QWidget>

#include "core/metrics/quantity.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/heatmap_axes.h"

namespace posiscope::ui {

/// A map of query against key positions as square cells: query 0 at the top, key 0 at the left, a colour bar with
/// the quantity's name, and (on request) a profile of the rows at the right and of the columns below.
/// Every position that goes in or out is a position in the input: row or column of the map plus its first_position.
/// Mouse: wheel zooms about the cell, dragging takes a range of positions, Shift + dragging (or the middle button)
/// moves it, double click resets. Keys: arrows move the marked cell, Space is a click, + - 0 zoom and reset.
class HeatmapPlot : public QWidget {
    Q_OBJECT

public:
    explicit HeatmapPlot(QWidget* parent = nullptr);
    ~HeatmapPlot() override;

    /// Shows a map. The zoom is kept where the new map has the same positions.
    void setMap(const core::PositionMap& map, const ColorScale& scale, const QString& quantityLabel);
    /// The same with the picture already made by heatmap_image() on another thread.
    void setMap(const core::PositionMap& map, const ColorScale& scale, const QString& quantityLabel,
                const QImage& image);
    void clear();
    /// What the rows and columns are; queries and keys at first.
    void setAxes(const HeatmapAxes& axes);
    [[nodiscard]] const HeatmapAxes& axes() const;
    [[nodiscard]] const core::PositionMap& map() const;
    [[nodiscard]] const ColorScale& colorScale() const;

    /// Marks a cell by a row and a column line; x = key, y = query. The profiles then show that column and row,
    /// else the means.
    void setMarkedCell(std::optional<QPoint> cell);
    [[nodiscard]] std::optional<QPoint> markedCell() const;

    /// Shows positions first .. last only, on both axes; emits nothing.
    void setPositionRange(int first, int last);
    void resetRange();
    [[nodiscard]] int firstShown() const;
    [[nodiscard]] int lastShown() const;

    void setProfilesVisible(bool visible);
    [[nodiscard]] bool profilesVisible() const;

    /// Paler, while the picture no longer belongs to the settings shown.
    void setDimmed(bool dimmed);

    /// Value of a cell; nothing where the map has no such cell.
    [[nodiscard]] std::optional<double> valueAt(int query, int key) const;
    /// Pixels of a cell in this widget; null where it is not shown.
    [[nodiscard]] QRectF cellRect(int query, int key) const;
    /// Pixels of the whole heatmap and of the colour bar in this widget.
    [[nodiscard]] QRect heatmapRect() const;
    [[nodiscard]] QRect colorBarRect() const;

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void cellHovered(int query, int key);
    void cellLeft();
    void cellClicked(int query, int key);
    void positionRangeChanged(int first, int last);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Parts;
    std::unique_ptr<Parts> m_parts;
};

} // namespace posiscope::ui
