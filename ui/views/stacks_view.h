// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/session/session.h"
#include "ui/views/position_view.h"

namespace posiscope::ui {

/// What the numbers of all stacks depend on: neither the stack that is looked at, nor what the probe keeps besides.
struct StacksWish {
    std::shared_ptr<const core::OpenModel> model; ///< null: nothing
    core::ProbeOptions probe;
    core::DisplayOptions display;

    bool operator==(const StacksWish&) const = default;
};

/// Gives the curve of stack number `number` its own colour.
void color_stack(ChartSeries& series, std::size_t number);

/// What the views have in common that probe every stack of the model with the settings of the session.
class StacksView : public PositionView {
    Q_OBJECT

public:
    using PositionView::PositionView;

    void setSession(std::shared_ptr<const core::Session> session) override;

protected:
    void forgetWish() override { m_wish = {}; }
    [[nodiscard]] QString pictureLine() const override { return {}; } // contextLine() says it all

    /// What the session asks for; its model is null where there is none.
    [[nodiscard]] StacksWish sessionWish() const;
    /// Head, words, length and positions, for the context line.
    [[nodiscard]] static QStringList settingsParts(const core::DisplayOptions& display, std::size_t words,
                                                   std::int64_t length);

    StacksWish m_wish; ///< of the run that goes on or ended last

private:
    std::shared_ptr<const core::Session> m_session;
};

} // namespace posiscope::ui
