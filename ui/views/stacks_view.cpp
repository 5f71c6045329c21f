// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/stacks_view.h"

#include "ui/session_text.h"

namespace posiscope::ui {

void StacksView::setSession(std::shared_ptr<const core::Session> session)
{
    m_session = std::move(session);
    PositionView::setSession(m_session); // starts what is missing where the model, stack or layer changed
    compute();                           // or the words, or what is looked at
}

StacksWish StacksView::sessionWish() const
{
    if (!m_session) return {};
    StacksWish wish{m_session->model, m_session->probe ? m_session->probe->options : core::ProbeOptions{},
                    m_session->display};
    wish.probe.stack.clear();
    wish.probe.terms = false;
    wish.probe.group_spread = false;
    return wish;
}

QStringList StacksView::settingsParts(const core::DisplayOptions& display, std::size_t words,
                                      std::int64_t length)
{
    QStringList parts{display.head == core::mean_of_heads ? tr("mean of heads")
                                                          : tr("head %1").arg(display.head),
                      tr("%1 words").arg(words), QStringLiteral("L %1").arg(length)};
    if (display.positions == core::PositionChoice::without_first) parts += positions_label(display.positions);
    return parts;
}

void color_stack(ChartSeries& series, std::size_t number)
{
    constexpr double hue_of_second_stack = 0.08;
    if (number == 0) return;
    series.color = SeriesColor::distinct;
    series.hue = hue_of_second_stack;
}

} // namespace posiscope::ui
