// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/figure/figure_spec.h"
#include "ui/views/analysis_view.h"

namespace posiscope::ui {

class ProfilePlot;

/// The mean and the spread of each diagonal of the map against its offset, with the white band marked.
class OffsetProfileView : public AnalysisView {
    Q_OBJECT

public:
    explicit OffsetProfileView(QWidget* parent = nullptr);

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] QString contextLine() const override;
    void setSharedCursor(SharedCursor* cursor) override;
    void exportShown() override;

    /// What "Export" would write; the profile must be there.
    [[nodiscard]] FigureSpec figure() const;
    [[nodiscard]] ProfilePlot* plot() const { return m_plot; }

private:
    void showCursor();

    std::shared_ptr<const core::Session> m_session;
    SharedCursor* m_cursor = nullptr;
    ProfilePlot* m_plot;
};

} // namespace posiscope::ui
