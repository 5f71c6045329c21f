// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/main_window.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFrame>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>
#include <QToolButton>
#include <QUndoStack>
#include <QUrl>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

#include "core/checkpoint/file_store.h"
#include "core/kernels/thread_pool.h"
#include "ui/analysis_controller.h"
#include "ui/byte_text.h"
#include "ui/choice_command.h"
#include "ui/convert.h"
#include "ui/dialogs/about_dialog.h"
#include "ui/dialogs/hub_picker_dialog.h"
#include "ui/dialogs/text_dialog.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"
#include "ui/views/view_table.h"
#include "ui/widgets/error_banner.h"
#include "ui/widgets/menu_button.h"
#include "ui/widgets/model_list_panel.h"
#include "ui/widgets/panel.h"
#include "ui/widgets/probe_panel.h"
#include "ui/widgets/progress_strip.h"
#include "ui/widgets/symbol_icon.h"
#include "ui/widgets/workspace.h"

namespace posiscope::ui {
namespace {

constexpr int most_recent = 10;
constexpr int sidebar_width = 34 * grid;
constexpr int quantities = 3;
const QString recent_key = QStringLiteral("recent");

QString sample_location(const std::string& name)
{
    return to_qstring(core::sample_prefix) + to_qstring(name);
}

/// A location that leaves room for the rest of the line: its end says more than its beginning.
QString short_location(const QString& location)
{
    constexpr qsizetype longest = 48;
    return location.size() <= longest ? location : QChar(0x2026) + location.right(longest - 1);
}

QString cpu_label()
{
    const std::size_t threads = core::thread_count();
    return threads == 1 ? MainWindow::tr("CPU, 1 thread") : MainWindow::tr("CPU, %1 threads").arg(threads);
}

} // namespace

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent), m_controller(new AnalysisController(this)), m_cursor(new SharedCursor(this))
{
    setObjectName(QStringLiteral("mainWindow"));
    setWindowTitle(QStringLiteral("Posiscope"));
    setAcceptDrops(true);
    m_open_menu = buildOpenMenu();
    buildCentre();
    buildMenus();
    connectAll();
    restoreSettings();
    m_controller->setNeeds(m_workspace->needs());
    takeModel();
    takeSession();
    takeWork();
}

MainWindow::~MainWindow()
{
    // A field that loses the focus while the window goes hands its text on: to nobody any more.
    disconnect(m_controller, nullptr, this, nullptr);
    hide();
}

QAction* MainWindow::addCommand(QMenu* menu, const QString& text, const QKeySequence& key,
                                const std::function<void()>& run)
{
    auto* action = menu->addAction(text);
    if (!key.isEmpty()) action->setShortcut(key);
    connect(action, &QAction::triggered, this, run);
    return action;
}

QMenu* MainWindow::buildOpenMenu()
{
    auto* menu = new QMenu(this);
    addCommand(menu, tr("Open &folder\u2026"), QKeySequence::Open, [this] { chooseFolder(); });
    addCommand(menu, tr("Open f&ile\u2026"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O),
               [this] { chooseFile(); });
    addCommand(menu, tr("Open from the &hub cache\u2026"), QKeySequence(Qt::CTRL | Qt::Key_H),
               [this] { chooseFromHub(); });
    m_recent_menu = menu->addMenu(tr("Open &recent"));
    connect(m_recent_menu, &QMenu::aboutToShow, this, &MainWindow::fillRecentMenu);
    auto* samples = menu->addMenu(tr("Open &sample"));
    for (const std::string& name : core::embedded_sample_names())
        addCommand(samples, to_qstring(name), {}, [this, name] { openLocation(sample_location(name)); });
    return menu;
}

void MainWindow::buildMenus()
{
    QMenu* file = menuBar()->addMenu(tr("&File"));
    file->addActions(m_open_menu->actions());
    file->addSeparator();
    m_model_actions +=
        addCommand(file, tr("&Export what the panel shows\u2026"), QKeySequence(Qt::CTRL | Qt::Key_E),
                   [this] { m_workspace->focusedPanel()->exportShown(); });
    file->addSeparator();
    addCommand(file, tr("&Quit"), QKeySequence::Quit, [this] { close(); });

    QMenu* edit = menuBar()->addMenu(tr("&Edit"));
    QAction* undo = m_controller->undoStack()->createUndoAction(this, tr("&Undo:"));
    undo->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Z));
    QAction* redo = m_controller->undoStack()->createRedoAction(this, tr("&Redo:"));
    redo->setShortcut(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z));
    edit->addActions({undo, redo});

    QMenu* view = menuBar()->addMenu(tr("&View"));
    m_layout_group = new QActionGroup(this);
    for (const WorkspaceLayout& layout : workspace_layouts()) {
        QAction* action = addCommand(view, QCoreApplication::translate("layouts", layout.label), {},
                                     [this, id = layout.id] { m_workspace->setLayoutId(id); });
        action->setCheckable(true);
        action->setData(to_qstring(layout.id));
        m_layout_group->addAction(action);
    }
    view->addSeparator();
    m_back_action = addCommand(view, tr("&Back to all panels"), QKeySequence(Qt::Key_Escape),
                               [this] { m_workspace->fill(nullptr); });
    view->addSeparator();
    QMenu* theme = view->addMenu(tr("&Theme"));
    m_theme_group = new QActionGroup(this);
    const std::pair<ThemeChoice, QString> themes[] = {{ThemeChoice::desktop, tr("Follow the &desktop")},
                                                      {ThemeChoice::light, tr("&Light")},
                                                      {ThemeChoice::dark, tr("D&ark")}};
    for (const auto& [choice, label] : themes) {
        QAction* action = addCommand(theme, label, {}, [this, one = choice] { chooseTheme(one); });
        action->setCheckable(true);
        action->setData(theme_id(choice));
        m_theme_group->addAction(action);
    }

    QMenu* model = menuBar()->addMenu(tr("&Model"));
    m_model_actions += addCommand(model, tr("&Previous layer"), QKeySequence(Qt::Key_BracketLeft),
                                  [this] { stepLayer(-1); });
    m_model_actions +=
        addCommand(model, tr("&Next layer"), QKeySequence(Qt::Key_BracketRight), [this] { stepLayer(1); });
    model->addSeparator();
    m_head_menu = model->addMenu(tr("&Head"));
    connect(m_head_menu, &QMenu::aboutToShow, this, [this] {
        m_head_menu->clear();
        const core::Stack* stack = m_controller->stack();
        const int heads =
            stack == nullptr ? 0 : static_cast<int>(stack->heads_of(m_controller->settings().probe.layer));
        for (int head = core::mean_of_heads; head < heads; ++head) {
            QAction* action =
                m_head_menu->addAction(head_label(head, heads), this, [this, head] { takeHead(head); });
            action->setCheckable(true);
            action->setChecked(head == m_controller->settings().display.head);
        }
    });
    m_model_actions += m_head_menu->menuAction();
    m_model_actions +=
        addCommand(model, tr("P&revious head"), QKeySequence(Qt::Key_Comma), [this] { stepHead(-1); });
    m_model_actions +=
        addCommand(model, tr("N&ext head"), QKeySequence(Qt::Key_Period), [this] { stepHead(1); });
    m_model_actions += addCommand(model, tr("&Mean of heads"), QKeySequence(Qt::Key_M),
                                  [this] { takeHead(core::mean_of_heads); });
    m_model_actions +=
        addCommand(model, tr("Next &quantity"), QKeySequence(Qt::Key_L), [this] { nextQuantity(); });
    model->addSeparator();
    m_model_actions += addCommand(model, tr("&Close model"), QKeySequence(Qt::CTRL | Qt::Key_W), [this] {
        if (const OpenEntry* open = m_controller->current()) m_controller->close(open->id);
    });

    QMenu* help = menuBar()->addMenu(tr("&Help"));
    addCommand(help, tr("&Explain the panel"), QKeySequence(Qt::Key_F1), [this] { explainFocusedPanel(); });
    addCommand(help, tr("&Keys"), QKeySequence(QStringLiteral("Ctrl+?")), [this] { showKeys(); });
    help->addSeparator();
    addCommand(help, tr("&About Posiscope"), {}, [this] {
        const auto& probe = m_controller->session()->probe;
        const QString engine = probe && probe->way == core::ProbeWay::forward
                                   ? to_qstring(probe->kernels)
                                   : tr("loaded when a forward pass is needed");
        (new TextDialog(tr("About Posiscope"), about_text(engine), this))->show();
    });

    auto* corner = new QWidget(menuBar());
    auto* row = new QHBoxLayout(corner);
    row->setContentsMargins(0, 0, grid, 0);
    row->setSpacing(grid);
    auto* explain = new QToolButton(corner);
    explain->setText(tr("? Explain"));
    explain->setToolTip(tr("What the focused panel shows and how to read it (F1)"));
    explain->setAutoRaise(true);
    explain->setFocusPolicy(Qt::StrongFocus);
    connect(explain, &QToolButton::clicked, this, &MainWindow::explainFocusedPanel);
    m_layout_button = new MenuButton(corner);
    m_layout_button->setToolTip(tr("Arrangement of panels"));
    auto* layouts = new QMenu(m_layout_button);
    layouts->addActions(m_layout_group->actions());
    m_layout_button->setMenu(layouts);
    row->addWidget(m_layout_button);
    row->addWidget(explain);
    menuBar()->setCornerWidget(corner);
}

void MainWindow::buildCentre()
{
    m_model_list = new ModelListPanel(m_controller, m_open_menu, this);
    m_probe_panel = new ProbePanel(m_controller, this);
    auto* side = new QWidget(this);
    auto* side_column = new QVBoxLayout(side);
    side_column->setContentsMargins(grid + 4, grid, grid, grid);
    side_column->setSpacing(2 * grid);
    side_column->addWidget(m_model_list);
    side_column->addWidget(m_probe_panel);
    side_column->addStretch(1);
    auto* scroll = new QScrollArea(this);
    scroll->setWidget(side);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFixedWidth(sidebar_width);
    scroll->setFocusPolicy(Qt::NoFocus);

    m_banner = new ErrorBanner(this);
    buildWelcome();
    m_workspace = new Workspace(m_cursor, this);
    auto* right = new QWidget(this);
    auto* right_column = new QVBoxLayout(right);
    right_column->setContentsMargins(0, grid, grid, 0);
    right_column->setSpacing(grid);
    right_column->addWidget(m_welcome);
    right_column->addWidget(m_banner);
    right_column->addWidget(m_workspace, 1);

    auto* centre = new QWidget(this);
    auto* row = new QHBoxLayout(centre);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(scroll);
    row->addWidget(right, 1);
    setCentralWidget(centre);

    m_strip = new ProgressStrip(this);
    m_strip->setDevice(cpu_label());
    statusBar()->addPermanentWidget(m_strip, 1);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->setContentsMargins(0, 0, 0, 0);
}

void MainWindow::buildWelcome()
{
    m_welcome = new QFrame(this);
    m_welcome->setObjectName(QStringLiteral("welcome"));
    auto* text =
        new QLabel(tr("This is the first attention layer of a sentence encoder (MiniLM). Point at a cell: "
                      "every panel shows it. Then try your own."),
                   m_welcome);
    text->setWordWrap(true);
    auto* open = new QPushButton(tr("Open a model\u2026"), m_welcome);
    auto* close = new QToolButton(m_welcome);
    close->setIcon(symbol_icon(Symbol::close));
    close->setAutoRaise(true);
    close->setFocusPolicy(Qt::StrongFocus);
    close->setToolTip(tr("Hide"));
    close->setAccessibleName(tr("Hide the welcome line"));
    auto* row = new QHBoxLayout(m_welcome);
    row->setContentsMargins(grid / 2, 0, 0, 0);
    row->addWidget(text, 1);
    row->addWidget(open);
    row->addWidget(close);
    const auto hide_for_good = [this] {
        m_welcome->hide();
        QSettings().setValue(QStringLiteral("welcomed"), true);
    };
    connect(open, &QPushButton::clicked, this, [this] { chooseFolder(); });
    connect(close, &QToolButton::clicked, this, hide_for_good);
    m_welcome->hide();
}

void MainWindow::connectAll()
{
    connect(m_controller, &AnalysisController::sessionChanged, this, &MainWindow::takeSession);
    connect(m_controller, &AnalysisController::modelsChanged, this, &MainWindow::takeModel);
    connect(m_controller, &AnalysisController::settingsChanged, this, &MainWindow::takeModel);
    connect(m_controller, &AnalysisController::workChanged, this, &MainWindow::takeWork);
    connect(m_controller, &AnalysisController::progressed, this,
            [this](const QString& stage, qulonglong done, qulonglong total) {
                const QString label = workLabel(stage, done, total);
                m_strip->setProgress(label, done, total);
                m_workspace->setProgress(label, done, total);
            });
    connect(m_controller, &AnalysisController::opened, this, [this](const QString& location) {
        m_banner->clear();
        rememberRecent(location);
    });
    connect(m_controller, &AnalysisController::openFailed, this,
            [this](const QString& location, const core::Error& error) {
                m_banner->showError(error, tr("Opening %1").arg(location), location);
                if (m_controller->current() == nullptr) m_workspace->setObstacle(m_banner->sentence());
                if (error.code == core::ErrorCode::not_found && is_gone(location)) forgetRecent(location);
            });
    connect(m_controller, &AnalysisController::failed, this, [this](const core::Error& error) {
        const OpenEntry* open = m_controller->current();
        m_banner->showError(error, {}, open != nullptr ? open->location : QString());
        m_workspace->setObstacle(m_banner->sentence());
    });
    connect(m_controller, &AnalysisController::failureCleared, this, [this] {
        m_banner->clear();
        m_workspace->setObstacle({});
    });
    connect(m_controller, &AnalysisController::noticed, m_banner, &ErrorBanner::showNotice);

    connect(m_workspace, &Workspace::needsChanged, this,
            [this] { m_controller->setNeeds(m_workspace->needs()); });
    connect(m_workspace, &Workspace::headChosen, this, &MainWindow::takeHead);
    connect(m_workspace, &Workspace::layerChosen, this, &MainWindow::takeLayer);
    connect(m_workspace, &Workspace::openRequested, this, &MainWindow::chooseFolder);
    connect(m_workspace, &Workspace::choiceMade, this,
            [this](Panel* panel, const QVariantMap& before, const QVariantMap& after, const QString& what) {
                m_controller->undoStack()->push(new ChoiceCommand(panel, before, after, what));
            });
    connect(m_workspace, &Workspace::failed, this, [this](const core::Error& error, const QString& subject) {
        m_banner->showError(error, subject);
    });
    connect(m_workspace, &Workspace::workChanged, this, &MainWindow::takeWork);
    connect(m_workspace, &Workspace::workProgressed, this,
            [this](const QString& label, qulonglong done, qulonglong total) {
                // The window's own work comes first.
                const Panel* panel = m_workspace->workingPanel();
                if (m_controller->isBusy() || panel == nullptr) return;
                const QString title = panel->title();
                m_strip->setProgress(label == stage_label({}) ? title : tr("%1: %2").arg(title, label), done,
                                     total);
            });
    const auto show_layout = [this] {
        const QString id = to_qstring(m_workspace->layoutId());
        for (QAction* action : m_layout_group->actions()) {
            action->setChecked(action->data().toString() == id);
            if (!action->isChecked()) continue;
            m_layout_button->setText(action->text());
            m_layout_button->setAccessibleName(tr("Arrangement of panels: %1").arg(action->text()));
        }
        m_back_action->setEnabled(m_workspace->filled() != nullptr);
    };
    connect(m_workspace, &Workspace::layoutChanged, this, show_layout);
    show_layout();

    connect(m_strip, &ProgressStrip::cancelRequested, this, [this] {
        m_controller->cancel();
        m_workspace->stopWork();
    });
    connect(m_strip, &ProgressStrip::againRequested, this, [this] {
        if (m_controller->isStopped()) m_controller->runAgain();
        m_workspace->runAgain();
    });
    connect(m_cursor, &SharedCursor::changed, this, &MainWindow::showPlace);
}

/// What is going on: what is opened, else the stage; and the bytes where they come over a network.
QString MainWindow::workLabel(const QString& stage, qulonglong done, qulonglong total) const
{
    const QString opening = m_controller->openingLocation();
    if (opening.isEmpty()) return stage_label(stage, done, total);
    QString label = tr("Opening %1").arg(short_location(opening));
    if (stage == QLatin1String("download")) label += tr(": %1").arg(shown_progress_bytes(done, total));
    return label;
}

void MainWindow::openLocation(const QString& location)
{
    m_controller->open(location);
}

void MainWindow::openFirstSample()
{
    if (!QSettings().value(QStringLiteral("welcomed"), false).toBool()) m_welcome->show();
    const auto samples = core::embedded_sample_names();
    if (!samples.empty()) openLocation(sample_location(samples.front()));
}

void MainWindow::chooseFolder()
{
    auto* dialog = new QFileDialog(this, tr("Open a model folder"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openLocation);
    dialog->open();
}

void MainWindow::chooseFile()
{
    auto* dialog = new QFileDialog(this, tr("Open a weight file"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    // A file is known by what it holds, so "all files" is a real choice.
    dialog->setNameFilters(
        {tr("Weights (%1)")
             .arg(QStringLiteral("*.safetensors *.bin *.pt *.pth *.ckpt *.gguf *.msgpack *.onnx "
                                 "*.npz *.index *.index.json")),
         tr("All files (*)")});
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::openLocation);
    dialog->open();
}

void MainWindow::chooseFromHub()
{
    auto* dialog = new HubPickerDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &HubPickerDialog::chosen, this, &MainWindow::openLocation);
    dialog->open();
}

void MainWindow::fillRecentMenu()
{
    m_recent_menu->clear();
    const QStringList recent = QSettings().value(recent_key).toStringList();
    for (const QString& location : recent)
        m_recent_menu->addAction(location, this, [this, location] { openLocation(location); });
    if (recent.isEmpty()) {
        m_recent_menu->addAction(tr("Nothing opened yet"))->setEnabled(false);
        return;
    }
    m_recent_menu->addSeparator();
    m_recent_menu->addAction(tr("&Clear the list"), this, [] { QSettings().remove(recent_key); });
}

void MainWindow::rememberRecent(const QString& location)
{
    if (location.startsWith(to_qstring(core::sample_prefix))) return; // has a menu of its own
    QSettings settings;
    QStringList recent = settings.value(recent_key).toStringList();
    recent.removeAll(location);
    recent.prepend(location);
    while (recent.size() > most_recent) recent.removeLast();
    settings.setValue(recent_key, recent);
}

void MainWindow::forgetRecent(const QString& location)
{
    QSettings settings;
    QStringList recent = settings.value(recent_key).toStringList();
    if (recent.removeAll(location) > 0) settings.setValue(recent_key, recent);
}

void MainWindow::takeSession()
{
    const auto& session = m_controller->session();
    m_workspace->setSession(session);
    QStringList notes = session_warnings(*session);
    for (const OpenEntry& open : m_controller->models())
        if (open.refusal && &open != m_controller->current())
            notes.append(
                tr("%1 is not in the property table: %2")
                    .arg(to_qstring(open.model->checkpoint->display_name()), sentence_for(*open.refusal)));
    m_strip->setWarnings(notes);
    if (session->probe) {
        const core::ProbeResult& probe = *session->probe;
        const double ms = 1000.0 * probe.seconds;
        m_strip->setProbe(tr("Probe %1 ms, %2, %3")
                              .arg(ms < 10.0 ? QString::number(ms, 'f', 1) : QString::number(std::lround(ms)),
                                   way_label(probe.way), words_label(probe)));
        m_strip->setDevice(probe.device == "cpu" || probe.device.empty() ? cpu_label()
                                                                         : to_qstring(probe.device));
    } else {
        m_strip->setProbe({});
    }
    showPlace();
}

void MainWindow::takeWork()
{
    m_workspace->setBusy(m_controller->isPictureBusy(), m_controller->areMetricsStale());
    const Panel* panel = m_controller->isBusy() ? nullptr : m_workspace->workingPanel();
    m_strip->setWorking(m_controller->isBusy() || panel != nullptr);
    const QString title = panel == nullptr ? QString() : panel->title();
    if (title != m_shown_panel) {
        m_shown_panel = title;
        if (!title.isEmpty()) m_strip->setProgress(title, 0, 0); // until it tells how far it is
    }
    // A server may take its time before the first byte.
    if (m_controller->openingLocation() != m_shown_opening) {
        m_shown_opening = m_controller->openingLocation();
        if (!m_shown_opening.isEmpty())
            m_strip->setProgress(tr("Opening %1").arg(short_location(m_shown_opening)), 0, 0);
    }
    m_strip->setStopped((m_controller->isStopped() || m_workspace->isStopped()) && !m_controller->isBusy());
}

void MainWindow::takeModel()
{
    const OpenEntry* open = m_controller->current();
    for (QAction* action : m_model_actions) action->setEnabled(open != nullptr);
    setWindowTitle(open == nullptr
                       ? QStringLiteral("Posiscope")
                       : tr("%1 \u2013 Posiscope").arg(to_qstring(open->model->checkpoint->display_name())));
}

void MainWindow::showPlace()
{
    const auto& place = m_cursor->place();
    const core::DisplayMaps* maps = m_controller->session()->maps.get();
    if (!place || maps == nullptr) {
        m_strip->setPlace({});
        return;
    }
    QString text;
    if (place->isCell()) {
        const auto first = static_cast<int>(maps->mean.first_position);
        const auto length = static_cast<int>(maps->mean.length);
        const int row = *place->query - first;
        const int col = *place->key - first;
        text = tr("i = %1, j = %2, offset %3")
                   .arg(*place->query)
                   .arg(*place->key)
                   .arg(shown_offset(*place->offset));
        if (row >= 0 && row < length && col >= 0 && col < length) {
            const auto at_row = static_cast<std::size_t>(row);
            const auto at_col = static_cast<std::size_t>(col);
            text += tr(", %1").arg(shown_value(maps->mean(at_row, at_col)));
            if (maps->spread.length == maps->mean.length && maps->groups >= 2)
                text += tr(" \u00b1 %1")
                            .arg(shown_error(maps->spread(at_row, at_col) /
                                             std::sqrt(static_cast<double>(maps->groups))));
        }
    } else if (place->offset) {
        const core::OffsetProfile& profile = maps->profile.profile;
        const auto index = static_cast<std::ptrdiff_t>(profile.centre()) + *place->offset;
        text = tr("offset %1").arg(shown_offset(*place->offset));
        if (index >= 0 && index < static_cast<std::ptrdiff_t>(profile.mean.size())) {
            const auto at = static_cast<std::size_t>(index);
            text += tr(", mean %1, spread along the diagonal %2")
                        .arg(shown_value(profile.mean[at]), shown_value(profile.standard_deviation[at]));
        }
    }
    if (m_cursor->isPinned()) text += tr(" (pinned)");
    m_strip->setPlace(text);
}

void MainWindow::stepLayer(int step)
{
    const core::Stack* stack = m_controller->stack();
    if (stack == nullptr) return;
    AnalysisSettings settings = m_controller->settings();
    const int layer = settings.probe.layer + step;
    if (layer < 0 || layer >= static_cast<int>(stack->layers_present)) return;
    settings.probe.layer = layer;
    m_controller->change(settings, SettingField::layer);
}

void MainWindow::takeHead(int head)
{
    AnalysisSettings settings = m_controller->settings();
    settings.display.head = head;
    m_controller->change(settings, SettingField::head);
}

void MainWindow::takeLayer(const QString& stack, int layer)
{
    AnalysisSettings settings = m_controller->settings();
    settings.probe.stack = to_std(stack);
    settings.probe.layer = layer;
    if (const OpenEntry* open = m_controller->current()) settings = fitted_settings(settings, *open->model);
    m_controller->change(settings, SettingField::layer);
}

/// Steps through mean, head 0, head 1 ... and round again.
void MainWindow::stepHead(int step)
{
    const core::Stack* stack = m_controller->stack();
    if (stack == nullptr) return;
    const int choices = static_cast<int>(stack->heads_of(m_controller->settings().probe.layer)) + 1;
    takeHead((m_controller->settings().display.head + 1 + step + choices) % choices - 1);
}

void MainWindow::nextQuantity()
{
    AnalysisSettings settings = m_controller->settings();
    settings.display.quantity =
        static_cast<core::Quantity>((static_cast<int>(settings.display.quantity) + 1) % quantities);
    m_controller->change(settings, SettingField::quantity);
}

void MainWindow::chooseTheme(ThemeChoice theme)
{
    QSettings().setValue(QStringLiteral("theme"), theme_id(theme));
    apply_theme(theme);
}

void MainWindow::explainFocusedPanel()
{
    const ViewRow* row = find_view(m_workspace->focusedPanel()->viewId());
    (new TextDialog(view_title(*row), view_explanation(*row), this))->show();
}

void MainWindow::showKeys()
{
    const std::pair<QString, QString> keys[] = {
        {tr("Ctrl+O"), tr("open a folder")},
        {tr("Ctrl+Shift+O"), tr("open a file")},
        {tr("Ctrl+H"), tr("open a model from the hub, or from its cache")},
        {tr("Ctrl+E"), tr("export what the focused panel shows")},
        {tr("Ctrl+Z, Ctrl+Shift+Z"), tr("step back and forth through settings")},
        {tr("[ and ]"), tr("previous and next layer")},
        {tr(", and ."), tr("previous and next head")},
        {tr("M"), tr("mean of heads")},
        {tr("L"), tr("next quantity")},
        {tr("1 to %1").arg(std::min<std::size_t>(view_table().size(), 9)), tr("view of the focused panel")},
        {tr("Enter"), tr("let the focused panel fill the workspace")},
        {tr("Esc"), tr("back to all panels; let go of a pinned cell")},
        {tr("arrow keys, Space"), tr("in a plot: move the marked place, pin it")},
        {tr("wheel, drag, double click"), tr("in a plot: zoom, zoom to a range, all again")},
        {tr("Ctrl+W"), tr("close the model")},
        {tr("F1"), tr("explain the focused panel")},
        {tr("Ctrl+?"), tr("this list")},
    };
    QString html = QStringLiteral("<h2>%1</h2><table cellpadding='4'>").arg(tr("Keys"));
    for (const auto& [key, what] : keys)
        html += QStringLiteral("<tr><td><b>%1</b></td><td>%2</td></tr>")
                    .arg(key.toHtmlEscaped(), what.toHtmlEscaped());
    html += QStringLiteral("</table>");
    (new TextDialog(tr("Keys"), html, this))->show();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (std::any_of(urls.begin(), urls.end(), [](const QUrl& url) { return url.isLocalFile(); }))
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile()) openLocation(url.toLocalFile());
    event->acceptProposedAction();
}

void MainWindow::keyPressEvent(QKeyEvent* event)
{
    // Reached where nothing fills the workspace: then Esc lets go of a pinned cell.
    if (event->key() == Qt::Key_Escape) m_cursor->unpin();
    QMainWindow::keyPressEvent(event);
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    saveSettings();
    QMainWindow::closeEvent(event);
}

void MainWindow::restoreSettings()
{
    QSettings settings;
    const ThemeChoice theme = theme_from_id(settings.value(QStringLiteral("theme")).toString());
    for (QAction* action : m_theme_group->actions())
        action->setChecked(action->data().toString() == theme_id(theme));
    apply_theme(theme);
    if (!restoreGeometry(settings.value(QStringLiteral("geometry")).toByteArray())) resize(1280, 800);
    m_workspace->restore(settings);
}

void MainWindow::saveSettings() const
{
    QSettings settings;
    settings.setValue(QStringLiteral("geometry"), saveGeometry());
    m_workspace->save(settings);
}

} // namespace posiscope::ui
