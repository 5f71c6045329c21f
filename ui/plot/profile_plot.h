// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>

#include <QString>
#include <QWidget>

#include "ui/plot/profile_curve.h"

namespace posiscope::ui {

/// Mean of each diagonal against the offset (key - query) as a line, with the spread along the diagonal and the
/// standard error over words as bands, the zero line, and the white band shaded and named.
/// Wheel zooms about the offset, dragging takes a range of offsets, double click resets; arrow keys move the marked
/// offset and Space is a click.
class ProfilePlot : public QWidget {
    Q_OBJECT

public:
    explicit ProfilePlot(QWidget* parent = nullptr);
    ~ProfilePlot() override;

    /// Shows a profile. The zoom is kept where the new one has the same offsets.
    void setProfile(const ProfileCurve& curve, const QString& quantityLabel);
    void clear();
    [[nodiscard]] const ProfileCurve& profile() const;

    /// Marks an offset by a line and its value.
    void setMarkedOffset(std::optional<int> offset);
    [[nodiscard]] std::optional<int> markedOffset() const;

    /// Shows offsets first .. last only; emits nothing.
    void setOffsetRange(int first, int last);
    void resetRange();
    [[nodiscard]] int firstShown() const;
    [[nodiscard]] int lastShown() const;

    /// Paler, while the picture no longer belongs to the settings shown.
    void setDimmed(bool dimmed);

    /// Pixels of the plotting area and of a point of the mean line in this widget.
    [[nodiscard]] QRect plotRect() const;
    [[nodiscard]] QPointF pointAt(int offset) const;

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

Q_SIGNALS:
    void offsetHovered(int offset);
    void offsetLeft();
    void offsetClicked(int offset);
    void offsetRangeChanged(int first, int last);

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
