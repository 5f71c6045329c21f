// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/offset_profile_view.h"

#include <QVBoxLayout>

#include <cmath>

#include "ui/dialogs/export_dialog.h"
#include "ui/figure/view_figures.h"
#include "ui/plot/profile_plot.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"

namespace posiscope::ui {
OffsetProfileView::OffsetProfileView(QWidget* parent) : AnalysisView(parent), m_plot(new ProfilePlot(this))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_plot);
}

void OffsetProfileView::setSession(std::shared_ptr<const core::Session> session)
{
    const bool same_maps = m_session && session && m_session->maps == session->maps;
    m_session = std::move(session);
    if (same_maps || !m_session || !m_session->maps) return;
    m_plot->setProfile(make_profile_curve(m_session->maps->profile, m_session->maps->white_band),
                       quantity_axis_label(m_session->display.quantity));
    showCursor();
}

QString OffsetProfileView::contextLine() const
{
    return m_session ? describe_picture(*m_session) : QString();
}

void OffsetProfileView::setSharedCursor(SharedCursor* cursor)
{
    m_cursor = cursor;
    connect(cursor, &SharedCursor::changed, this, &OffsetProfileView::showCursor);
    connect(cursor, &SharedCursor::zoomed, this,
            [this](int first, int last) { m_plot->setOffsetRange(first - last, last - first); });
    connect(m_plot, &ProfilePlot::offsetHovered, cursor,
            [cursor](int offset) { cursor->hover(MarkedPlace::diagonal(offset)); });
    connect(m_plot, &ProfilePlot::offsetLeft, cursor, &SharedCursor::leave);
    connect(m_plot, &ProfilePlot::offsetClicked, cursor,
            [cursor](int offset) { cursor->togglePin(MarkedPlace::diagonal(offset)); });
}

void OffsetProfileView::showCursor()
{
    if (m_cursor == nullptr) return;
    const auto& place = m_cursor->place();
    const core::DisplayMaps* maps = m_session ? m_session->maps.get() : nullptr;
    const bool is_here = place && place->offset && maps != nullptr &&
                         !maps->profile.profile.offsets.empty() &&
                         std::abs(*place->offset) <= maps->profile.profile.offsets.back();
    m_plot->setMarkedOffset(is_here ? place->offset : std::nullopt);
}

FigureSpec OffsetProfileView::figure() const
{
    ProfileContent content;
    content.curve = m_plot->profile();
    content.quantity_label = quantity_axis_label(m_session->display.quantity);
    content.first = m_plot->firstShown();
    content.last = m_plot->lastShown();
    return offset_profile_figure(*m_session, std::move(content));
}

void OffsetProfileView::exportShown()
{
    if (!m_session || !m_session->maps) return;
    auto* dialog = new ExportDialog(figure(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

} // namespace posiscope::ui
