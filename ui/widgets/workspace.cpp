// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/workspace.h"

#include <QApplication>
#include <QSettings>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>
#include <array>

#include "ui/convert.h"
#include "ui/theme.h"
#include "ui/views/analysis_view.h"
#include "ui/widgets/panel.h"

namespace posiscope::ui {

std::span<const WorkspaceLayout> workspace_layouts()
{
    static constexpr std::array layouts{
        WorkspaceLayout{"overview", QT_TRANSLATE_NOOP("layouts", "Overview"), false},
        WorkspaceLayout{"single", QT_TRANSLATE_NOOP("layouts", "Single"), true},
    };
    return layouts;
}

Workspace::Workspace(SharedCursor* cursor, QWidget* parent)
    : QWidget(parent), m_columns(new QSplitter(Qt::Horizontal, this)),
      m_left(new QSplitter(Qt::Vertical, this)), m_right(new QSplitter(Qt::Vertical, this)),
      m_layout(&workspace_layouts().front())
{
    for (const std::string_view id : {"attention_heatmap", "offset_profile", "metric_table", "position_map"})
        m_panels.push_back(new Panel(cursor, id, this));
    m_focused = m_panels.front();
    m_columns->addWidget(m_left);
    m_left->addWidget(m_panels[0]);
    m_left->addWidget(m_panels[3]);
    m_columns->addWidget(m_right);
    m_right->addWidget(m_panels[1]);
    m_right->addWidget(m_panels[2]);
    for (QSplitter* splitter : {m_columns, m_left, m_right}) {
        splitter->setHandleWidth(grid);
        splitter->setChildrenCollapsible(false);
    }
    m_columns->setStretchFactor(0, 3);
    m_columns->setStretchFactor(1, 2);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_columns);

    for (Panel* panel : m_panels) {
        connect(panel, &Panel::fillRequested, this,
                [this, panel] { fill(m_filled == panel ? nullptr : panel); });
        connect(panel, &Panel::needsChanged, this, &Workspace::needsChanged);
        connect(panel, &Panel::headChosen, this, &Workspace::headChosen);
        connect(panel, &Panel::layerChosen, this, &Workspace::layerChosen);
        connect(panel, &Panel::choiceMade, this,
                [this, panel](const QVariantMap& before, const QVariantMap& after, const QString& what) {
                    Q_EMIT choiceMade(panel, before, after, what);
                });
        connect(panel, &Panel::openRequested, this, &Workspace::openRequested);
        connect(panel, &Panel::failed, this, &Workspace::failed);
        connect(panel, &Panel::workChanged, this, &Workspace::workChanged);
        connect(panel, &Panel::workProgressed, this,
                [this, panel](const QString& label, qulonglong done, qulonglong total) {
                    // One bar: of several that work it is the first one's.
                    if (panel == workingPanel()) Q_EMIT workProgressed(label, done, total);
                });
    }
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { takeFocus(now); });
}

ViewNeeds Workspace::needs() const
{
    ViewNeeds needs;
    for (const Panel* panel : m_panels) {
        const ViewNeeds its = panel->view()->needs();
        needs.every_head = needs.every_head || its.every_head;
        needs.terms = needs.terms || its.terms;
    }
    return needs;
}

void Workspace::takeFocus(QWidget* now)
{
    if (now == nullptr) return;
    for (Panel* panel : m_panels)
        if (panel == now || panel->isAncestorOf(now)) m_focused = panel;
}

void Workspace::setLayoutId(std::string_view id)
{
    const auto layouts = workspace_layouts();
    const auto found =
        std::find_if(layouts.begin(), layouts.end(), [&](const auto& one) { return one.id == id; });
    if (found == layouts.end()) return;
    m_layout = &*found;
    m_filled = nullptr;
    arrange();
    Q_EMIT layoutChanged();
}

std::string_view Workspace::layoutId() const
{
    return m_layout->id;
}

void Workspace::fill(Panel* panel)
{
    if (m_layout->single || panel == m_filled) return;
    m_filled = panel;
    arrange();
    Q_EMIT layoutChanged();
}

void Workspace::arrange()
{
    for (Panel* panel : m_panels) {
        const bool shown =
            m_filled != nullptr ? panel == m_filled : !m_layout->single || panel == m_panels.front();
        panel->setVisible(shown);
        panel->setFilled(panel == m_filled);
        panel->setFillable(!m_layout->single);
    }
    m_left->setVisible(!m_panels[0]->isHidden() || !m_panels[3]->isHidden());
    m_right->setVisible(!m_panels[1]->isHidden() || !m_panels[2]->isHidden());
}

void Workspace::setSession(const std::shared_ptr<const core::Session>& session)
{
    for (Panel* panel : m_panels) panel->setSession(session);
}

void Workspace::setBusy(bool picture, bool metrics)
{
    for (Panel* panel : m_panels) panel->setBusy(picture, metrics);
}

void Workspace::setProgress(const QString& label, qulonglong done, qulonglong total)
{
    for (Panel* panel : m_panels) panel->setProgress(label, done, total);
}

void Workspace::setObstacle(const QString& sentence)
{
    for (Panel* panel : m_panels) panel->setObstacle(sentence);
}

Panel* Workspace::workingPanel() const
{
    const auto found =
        std::find_if(m_panels.begin(), m_panels.end(), [](const Panel* panel) { return panel->hasWork(); });
    return found == m_panels.end() ? nullptr : *found;
}

bool Workspace::isStopped() const
{
    return std::any_of(m_panels.begin(), m_panels.end(),
                       [](const Panel* panel) { return panel->isStopped(); });
}

void Workspace::stopWork()
{
    for (Panel* panel : m_panels) panel->stopWork();
}

void Workspace::runAgain()
{
    for (Panel* panel : m_panels) panel->runAgain();
}

void Workspace::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    if (m_has_sizes) return;
    m_has_sizes = true;
    m_columns->setSizes({width() * 57 / 100, width() * 43 / 100});
    m_left->setSizes({height() * 60 / 100, height() * 40 / 100});
    m_right->setSizes({height() * 48 / 100, height() * 52 / 100});
}

void Workspace::save(QSettings& settings) const
{
    settings.beginGroup(QStringLiteral("workspace"));
    settings.setValue(QStringLiteral("layout"), to_qstring(m_layout->id));
    if (m_has_sizes) {
        settings.setValue(QStringLiteral("columns"), m_columns->saveState());
        settings.setValue(QStringLiteral("left"), m_left->saveState());
        settings.setValue(QStringLiteral("right"), m_right->saveState());
    }
    for (std::size_t k = 0; k < m_panels.size(); ++k) {
        settings.beginGroup(QStringLiteral("panel%1").arg(k));
        settings.setValue(QStringLiteral("view"), to_qstring(m_panels[k]->viewId()));
        m_panels[k]->saveChoices(settings);
        settings.endGroup();
    }
    settings.endGroup();
}

void Workspace::restore(QSettings& settings)
{
    settings.beginGroup(QStringLiteral("workspace"));
    const bool restored = m_columns->restoreState(settings.value(QStringLiteral("columns")).toByteArray()) &&
                          m_right->restoreState(settings.value(QStringLiteral("right")).toByteArray());
    m_left->restoreState(settings.value(QStringLiteral("left")).toByteArray());
    m_has_sizes = m_has_sizes || restored;
    for (std::size_t k = 0; k < m_panels.size(); ++k) {
        settings.beginGroup(QStringLiteral("panel%1").arg(k));
        m_panels[k]->setView(to_std(settings.value(QStringLiteral("view")).toString()));
        m_panels[k]->restoreChoices(settings);
        settings.endGroup();
    }
    setLayoutId(to_std(settings.value(QStringLiteral("layout"), QStringLiteral("overview")).toString()));
    settings.endGroup();
}

} // namespace posiscope::ui
