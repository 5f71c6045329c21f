// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/progress_strip.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidgetAction>

#include "ui/theme.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/symbol_icon.h"

namespace posiscope::ui {
namespace {

/// Work shorter than this shows no bar: it would only flicker.
constexpr int bar_delay_ms = 250;

QFrame* divider(QWidget* parent)
{
    auto* line = new QFrame(parent);
    line->setFrameShape(QFrame::VLine);
    line->setFrameShadow(QFrame::Plain);
    line->setForegroundRole(QPalette::Mid);
    line->setFixedHeight(2 * grid);
    return line;
}

} // namespace

ProgressStrip::ProgressStrip(QWidget* parent)
    : QWidget(parent), m_device(new QLabel(this)), m_probe(new QLabel(this)), m_probe_end(divider(this)),
      m_place(new ElidedLabel(this)), m_warnings_button(new QToolButton(this)), m_stage(new QLabel(this)),
      m_bar(new QProgressBar(this)), m_cancel(new QPushButton(tr("Stop"), this)),
      m_again(new QPushButton(tr("Run again"), this)), m_delay(new QTimer(this))
{
    m_device->setAccessibleName(tr("Device"));
    m_probe->setAccessibleName(tr("Last probe"));
    m_place->setAccessibleName(tr("Place under the cursor"));
    m_place->setFont(with_tabular_figures(m_place->font()));
    m_warnings_button->setAutoRaise(true);
    m_warnings_button->setIcon(symbol_icon(Symbol::warning));
    m_warnings_button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_warnings_button->setFocusPolicy(Qt::StrongFocus);
    m_bar->setTextVisible(false);
    m_bar->setFixedSize(120, grid);
    m_bar->setAccessibleName(tr("Progress"));
    m_cancel->setAccessibleName(tr("Stop the computation"));
    m_cancel->setToolTip(tr("Stop; what is on screen stays"));
    m_again->setToolTip(tr("Compute what was stopped"));

    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(grid, 2, grid, 2);
    row->setSpacing(grid);
    row->addWidget(m_device);
    row->addWidget(divider(this));
    row->addWidget(m_probe);
    row->addWidget(m_probe_end);
    row->addWidget(m_place, 1);
    row->addWidget(m_warnings_button);
    row->addWidget(m_stage);
    row->addWidget(m_bar);
    row->addWidget(m_cancel);
    row->addWidget(m_again);
    setFixedHeight(m_cancel->sizeHint().height() +
                   2 * 2); // the line keeps its height when work comes and goes

    m_delay->setSingleShot(true);
    m_delay->setInterval(bar_delay_ms);
    connect(m_delay, &QTimer::timeout, this, [this] {
        m_stage->show();
        m_bar->show();
        m_cancel->show();
    });
    connect(m_cancel, &QPushButton::clicked, this, &ProgressStrip::cancelRequested);
    connect(m_again, &QPushButton::clicked, this, &ProgressStrip::againRequested);
    connect(m_warnings_button, &QToolButton::clicked, this, &ProgressStrip::showWarnings);
    setProbe({});
    setWarnings({});
    setWorking(false);
    setStopped(false);
}

void ProgressStrip::setDevice(const QString& text)
{
    m_device->setText(text);
}

void ProgressStrip::setProbe(const QString& text)
{
    m_probe->setText(text);
    m_probe_end->setVisible(!text.isEmpty());
}

void ProgressStrip::setPlace(const QString& text)
{
    m_place->setText(text);
}

void ProgressStrip::setWarnings(const QStringList& warnings)
{
    m_warnings = warnings;
    m_warnings_button->setVisible(!warnings.isEmpty());
    m_warnings_button->setText(warnings.size() == 1 ? tr("1 note") : tr("%1 notes").arg(warnings.size()));
    m_warnings_button->setAccessibleName(m_warnings_button->text());
    m_warnings_button->setToolTip(warnings.join(u'\n'));
}

void ProgressStrip::setWorking(bool working)
{
    if (working) {
        if (m_bar->isHidden() && !m_delay->isActive()) {
            m_stage->clear();
            m_bar->setRange(0, 0);
            m_delay->start();
        }
        return;
    }
    m_delay->stop();
    m_stage->hide();
    m_bar->hide();
    m_cancel->hide();
}

void ProgressStrip::setProgress(const QString& label, qulonglong done, qulonglong total)
{
    m_stage->setText(label);
    m_bar->setRange(0, total == 0 ? 0 : 1000);
    if (total != 0)
        m_bar->setValue(static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total)));
}

void ProgressStrip::setStopped(bool stopped)
{
    m_again->setVisible(stopped);
}

QString ProgressStrip::placeText() const
{
    return m_place->text();
}

QString ProgressStrip::probeText() const
{
    return m_probe->text();
}

void ProgressStrip::showWarnings()
{
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    auto* list = new QLabel(m_warnings.join(QStringLiteral("\n\n")), menu);
    list->setTextFormat(Qt::PlainText);
    list->setWordWrap(true);
    list->setMinimumWidth(55 * grid);
    list->setContentsMargins(2 * grid, grid, 2 * grid, grid);
    list->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* action = new QWidgetAction(menu);
    action->setDefaultWidget(list);
    menu->addAction(action);
    const QPoint corner = m_warnings_button->mapToGlobal(QPoint(0, 0));
    menu->popup(corner - QPoint(0, menu->sizeHint().height()));
}

} // namespace posiscope::ui
