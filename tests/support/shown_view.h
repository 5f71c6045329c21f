// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <memory>

#include "ui/figure/figure_writer.h"
#include "ui/shared_cursor.h"
#include "ui/views/position_view.h"

namespace posiscope::test {

/// Waits until a view has computed what it was asked for.
template <class View>
void wait_for(const View& view)
{
    for (int k = 0; k < 1500 && view.isBusy(); ++k) QTest::qWait(20);
    QTest::qWait(20);
}

/// A view on screen that has computed what a session asks for.
template <class View>
std::unique_ptr<View> shown_view(const std::shared_ptr<const core::Session>& session,
                                 ui::SharedCursor& cursor)
{
    auto view = std::make_unique<View>();
    view->setSharedCursor(&cursor);
    view->resize(700, 420);
    static_cast<QWidget*>(view.get())->show();
    view->setSession(session);
    wait_for(*view);
    return view;
}

/// What went wrong when the view's figure was written to a file of this ending; empty: nothing.
inline QString written(const ui::PositionView& view, const char* extension)
{
    QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("figure.") + QLatin1String(extension));
    const auto done = ui::write_figure(view.figure(), {}, path);
    if (!done) return QString::fromStdString(done.error().message);
    return QFile(path).size() > 500 ? QString() : QStringLiteral("an empty file");
}

} // namespace posiscope::test
