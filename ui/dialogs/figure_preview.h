// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QWidget>

#include "ui/figure/figure_spec.h"

namespace posiscope::ui {

/// The page of a figure as it will be written, as large as the widget allows, in its true proportions.
class FigurePreview : public QWidget {
    Q_OBJECT

public:
    explicit FigurePreview(QWidget* parent = nullptr);
    void setFigure(const FigureSpec& spec, const FigureOptions& options);

    /// Where the page lies in this widget.
    [[nodiscard]] QRect pageRect() const;
    [[nodiscard]] QSize sizeHint() const override { return {480, 400}; }
    [[nodiscard]] QSize minimumSizeHint() const override { return {240, 200}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    FigureSpec m_spec;
    FigureOptions m_options;
    QImage m_picture; ///< drawn when first painted; empty: out of date
};

} // namespace posiscope::ui
