// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/panel.h"

#include <QAction>
#include <QActionGroup>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QResizeEvent>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

#include "ui/convert.h"
#include "ui/theme.h"
#include "ui/views/view_table.h"
#include "ui/widgets/menu_button.h"
#include "ui/widgets/symbol_icon.h"

namespace posiscope::ui {
namespace {

/// Work shorter than this shows no veil: it would only flicker.
constexpr int veil_delay_ms = 180;

} // namespace

/// Lies over a view whose picture belongs to older settings.
class PanelVeil : public QWidget {
public:
    explicit PanelVeil(QWidget* parent)
        : QWidget(parent), m_bar(new QProgressBar(this)), m_label(new QLabel(this))
    {
        setAttribute(Qt::WA_TransparentForMouseEvents);
        m_bar->setTextVisible(false);
        m_bar->setFixedSize(200, 6);
        m_bar->setRange(0, 0);
        m_label->setAlignment(Qt::AlignCenter);
        auto* column = new QVBoxLayout(this);
        column->addStretch(1);
        column->addWidget(m_label, 0, Qt::AlignCenter);
        column->addWidget(m_bar, 0, Qt::AlignCenter);
        column->addStretch(1);
        hide();
    }

    void setProgress(const QString& label, qulonglong done, qulonglong total)
    {
        m_label->setText(label);
        m_bar->setRange(0, total == 0 ? 0 : 1000);
        if (total != 0)
            m_bar->setValue(static_cast<int>(1000 * static_cast<double>(done) / static_cast<double>(total)));
    }

protected:
    void paintEvent(QPaintEvent*) override
    {
        QColor color = palette().color(QPalette::Base);
        color.setAlphaF(0.62F);
        QPainter(this).fillRect(rect(), color);
    }

private:
    QProgressBar* m_bar;
    QLabel* m_label;
};

Panel::Panel(SharedCursor* cursor, std::string_view view_id, QWidget* parent)
    : QFrame(parent), m_cursor(cursor), m_session(std::make_shared<const core::Session>()),
      m_title(new MenuButton(this)), m_context(new QLabel(this)), m_export_button(new QToolButton(this)),
      m_fill_button(new QToolButton(this)), m_pages(new QStackedWidget(this)), m_view_page(new QWidget(this)),
      m_message(new QLabel(this)), m_open_button(nullptr), m_veil(nullptr)
{
    setObjectName(QStringLiteral("panel"));
    buildHead();

    auto* view_layout = new QVBoxLayout(m_view_page);
    view_layout->setContentsMargins(0, 0, 0, 0);
    m_view_page->installEventFilter(this);
    m_veil = new PanelVeil(m_view_page);

    auto* message_page = new QWidget(this);
    auto* button = new QPushButton(tr("Open a model\u2026"), message_page);
    m_open_button = button;
    m_message->setWordWrap(true);
    m_message->setAlignment(Qt::AlignCenter);
    m_message->setTextFormat(Qt::PlainText);
    auto* message_layout = new QVBoxLayout(message_page);
    message_layout->setContentsMargins(3 * grid, grid, 3 * grid, grid);
    message_layout->addStretch(1);
    message_layout->addWidget(m_message);
    message_layout->addSpacing(grid);
    message_layout->addWidget(button, 0, Qt::AlignCenter);
    message_layout->addStretch(1);
    connect(button, &QPushButton::clicked, this, &Panel::openRequested);

    m_pages->addWidget(m_view_page);
    m_pages->addWidget(message_page);
    layout()->addWidget(m_pages);

    m_veil_delay.setSingleShot(true);
    m_veil_delay.setInterval(veil_delay_ms);
    connect(&m_veil_delay, &QTimer::timeout, this, [this] {
        m_veil->raise();
        m_veil->show();
    });
    setView(view_id);
}

void Panel::buildHead()
{
    QFont bold = m_title->font();
    bold.setBold(true);
    m_title->setFont(bold);
    auto* menu = new QMenu(m_title);
    auto* group = new QActionGroup(menu);
    int number = 0;
    for (const ViewRow& row : view_table()) {
        auto* action = menu->addAction(view_title(row), this, [this, id = row.id] { setView(id); });
        action->setCheckable(true);
        action->setData(to_qstring(row.id));
        action->setActionGroup(group);
        // The figure alone, as ui.md wants it; valid only where the focus is inside this panel.
        if (++number <= 9) {
            auto* key = new QAction(this);
            key->setShortcut(QKeySequence(Qt::Key_0 + number));
            key->setShortcutContext(Qt::WidgetWithChildrenShortcut);
            connect(key, &QAction::triggered, this, [this, id = row.id] { setView(id); });
            addAction(key);
        }
    }
    m_title->setMenu(menu);
    m_title->setToolTip(tr("Choose what this panel shows"));

    const auto head_button = [](QToolButton* button, Symbol symbol) {
        button->setIcon(symbol_icon(symbol));
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::StrongFocus);
    };
    head_button(m_export_button, Symbol::export_figure);
    head_button(m_fill_button, Symbol::fill);
    m_export_button->setToolTip(tr("Export what is shown (Ctrl+E)"));
    m_export_button->setAccessibleName(tr("Export what is shown"));
    connect(m_export_button, &QToolButton::clicked, this, &Panel::exportShown);
    connect(m_fill_button, &QToolButton::clicked, this, &Panel::fillRequested);

    QFont small = m_context->font();
    small.setPointSizeF(small.pointSizeF() * 0.88);
    m_context->setFont(small);
    m_context->setTextFormat(Qt::PlainText);
    m_context->setWordWrap(
        true); // a narrow panel takes two lines: a picture without its settings says little
    m_context->setForegroundRole(QPalette::PlaceholderText);

    auto* row = new QHBoxLayout;
    row->setContentsMargins(grid / 2, grid / 2, grid / 2, 0);
    row->setSpacing(grid / 2);
    row->addWidget(m_title);
    row->addStretch(1);
    row->addWidget(m_fill_button);
    row->addWidget(m_export_button);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 1, 1, 1);
    column->setSpacing(0);
    column->addLayout(row);
    m_context->setContentsMargins(grid + 2, 0, grid, grid / 2);
    column->addWidget(m_context);
    setFilled(false);
}

void Panel::setView(std::string_view view_id)
{
    const ViewRow* row = find_view(view_id);
    if (row == nullptr || row == m_row) return;
    const bool had_focus =
        isAncestorOf(focusWidget()) && m_view != nullptr && m_view->isAncestorOf(focusWidget());
    // Deleted later: the request may come from inside the old view.
    if (m_view != nullptr) {
        m_view->disconnect(this);
        m_view->hide();
        m_view_page->layout()->removeWidget(m_view);
        m_view->deleteLater();
    }
    m_row = row;
    m_view = row->create(m_view_page);
    m_view->setSharedCursor(m_cursor);
    m_view_page->layout()->addWidget(m_view);
    connect(m_view, &AnalysisView::needsChanged, this, &Panel::needsChanged);
    connect(m_view, &AnalysisView::contextChanged, this, &Panel::showContext);
    connect(m_view, &AnalysisView::headChosen, this, &Panel::headChosen);
    connect(m_view, &AnalysisView::layerChosen, this, &Panel::layerChosen);
    connect(m_view, &AnalysisView::failed, this, &Panel::failed);
    connect(m_view, &AnalysisView::workChanged, this, &Panel::showState);
    connect(m_view, &AnalysisView::workChanged, this, &Panel::workChanged);
    connect(m_view, &AnalysisView::progressed, this,
            [this](const QString& stage, qulonglong done, qulonglong total) {
                const QString label = stage_label(stage, done, total);
                if (!m_is_picture_busy) setProgress(label, done, total);
                Q_EMIT workProgressed(label, done, total);
            });
    connect(m_view, &AnalysisView::viewWanted, this, [this](const QString& id) { setView(to_std(id)); });
    m_choices = m_view->choices();
    connect(m_view, &AnalysisView::choiceMade, this, [this](const QString& what) {
        if (m_is_setting_choices) return;
        const QVariantMap before = std::exchange(m_choices, m_view->choices());
        if (before != m_choices) Q_EMIT choiceMade(before, m_choices, what);
    });
    m_title->setText(view_title(*row));
    m_title->setAccessibleName(tr("View: %1").arg(view_title(*row)));
    setAccessibleName(tr("Panel: %1").arg(view_title(*row)));
    for (QAction* action : m_title->menu()->actions())
        action->setChecked(action->data().toString() == to_qstring(row->id));
    if (m_row->applies(*m_session)) m_view->setSession(m_session);
    m_view->show();
    if (had_focus) m_title->setFocus();
    showState();
    Q_EMIT viewChanged();
    Q_EMIT workChanged();
    Q_EMIT needsChanged();
}

std::string_view Panel::viewId() const
{
    return m_row->id;
}

void Panel::setSession(std::shared_ptr<const core::Session> session)
{
    m_session = std::move(session);
    if (m_row->applies(*m_session)) m_view->setSession(m_session);
    showState();
}

void Panel::setBusy(bool picture, bool metrics)
{
    if (picture == m_is_picture_busy && metrics == m_are_metrics_busy) return;
    m_is_picture_busy = picture;
    m_are_metrics_busy = metrics;
    showState();
}

void Panel::setProgress(const QString& label, qulonglong done, qulonglong total)
{
    m_veil->setProgress(label, done, total);
}

void Panel::setObstacle(const QString& sentence)
{
    if (sentence == m_obstacle) return;
    m_obstacle = sentence;
    showState();
}

void Panel::exportShown()
{
    if (m_export_button->isEnabled()) m_view->exportShown();
}

void Panel::setFilled(bool filled)
{
    m_fill_button->setIcon(symbol_icon(filled ? Symbol::restore : Symbol::fill));
    m_fill_button->setToolTip(filled ? tr("Back to all panels (Esc)") : tr("Fill the workspace (Enter)"));
    m_fill_button->setAccessibleName(filled ? tr("Back to all panels") : tr("Fill the workspace"));
}

void Panel::setFillable(bool fillable)
{
    m_fill_button->setVisible(fillable);
}

bool Panel::hasWork() const
{
    return m_view->hasWork();
}

bool Panel::isStopped() const
{
    return m_view->isStopped();
}

void Panel::stopWork()
{
    m_view->stopWork();
}

void Panel::runAgain()
{
    m_view->runAgain();
}

QString Panel::title() const
{
    return view_title(*m_row);
}

Panel::State Panel::state() const
{
    const bool works = m_view->isWorking();
    if (m_row->shows_model && m_row->applies(*m_session) && !works) return State::done; // needs no probe
    const bool busy =
        m_row->shows_metrics ? (m_is_picture_busy || m_are_metrics_busy) : m_is_picture_busy || works;
    if (busy) return State::working;
    if (m_row->applies(*m_session)) return State::done;
    return m_obstacle.isEmpty() ? State::empty : State::cannot;
}

QString Panel::contextLine() const
{
    return m_context->text();
}

void Panel::showContext()
{
    const bool has_picture = m_row->applies(*m_session);
    m_context->setText(has_picture ? m_view->contextLine() : QString());
    m_export_button->setEnabled(has_picture && m_view->canExport());
}

void Panel::showState()
{
    const State now = state();
    const bool has_picture = m_row->applies(*m_session);
    const bool shows_view = has_picture || now == State::working;
    m_pages->setCurrentIndex(shows_view ? 0 : 1);
    if (now == State::working) {
        if (m_veil->isHidden() && !m_veil_delay.isActive()) {
            m_veil->setProgress(tr("Working\u2026"), 0, 0);
            m_veil_delay.start();
        }
    } else {
        m_veil_delay.stop();
        m_veil->hide();
    }
    if (now == State::empty) {
        m_message->setText(m_session->model
                               ? tr("Nothing has been computed yet.")
                               : tr("Open a model to see what its positions do: a folder with config.json "
                                    "and model.safetensors, or a .safetensors file."));
    } else if (now == State::cannot) {
        m_message->setText(m_obstacle);
    }
    m_view->setVisible(has_picture);
    showContext();
}

void Panel::saveChoices(QSettings& settings) const
{
    m_view->saveChoices(settings);
}

void Panel::restoreChoices(QSettings& settings)
{
    m_is_setting_choices = true;
    m_view->restoreChoices(settings);
    m_is_setting_choices = false;
    m_choices = m_view->choices();
}

QVariantMap Panel::choices() const
{
    return m_view->choices();
}

void Panel::setChoices(std::string_view view_id, const QVariantMap& choices)
{
    m_is_setting_choices = true;
    setView(view_id);
    m_view->setChoices(choices);
    m_is_setting_choices = false;
    m_choices = m_view->choices();
}

void Panel::keyPressEvent(QKeyEvent* event)
{
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) &&
        event->modifiers() == Qt::NoModifier) {
        Q_EMIT fillRequested();
        return;
    }
    QFrame::keyPressEvent(event);
}

bool Panel::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_view_page && event->type() == QEvent::Resize)
        m_veil->setGeometry(QRect(QPoint(), static_cast<QResizeEvent*>(event)->size()));
    return QFrame::eventFilter(watched, event);
}

// Painted rather than styled by a sheet: a sheet would take the palette away from all that lies inside.
void Panel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(divider_color(palette()));
    painter.setBrush(palette().color(QPalette::Base));
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4.0, 4.0);
}

} // namespace posiscope::ui
