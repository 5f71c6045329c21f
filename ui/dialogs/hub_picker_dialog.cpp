// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/dialogs/hub_picker_dialog.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

#include <filesystem>
#include <system_error>

#include "core/base/text.h"
#include "core/checkpoint/http_client.h"
#include "core/checkpoint/remote_store.h"
#include "ui/convert.h"
#include "ui/models/cached_models_model.h"
#include "ui/theme.h"
#include "ui/widgets/roomy_delegate.h"
#include "ui/widgets/section_label.h"

namespace posiscope::ui {
namespace {

/// The variable that says where the cache is, as hub_cache_folder() asks for them; empty: none is set.
QString deciding_variable()
{
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"})
        if (!qEnvironmentVariableIsEmpty(name)) return QLatin1String(name);
    return {};
}

core::Result<std::vector<core::CachedModel>> read_models(const std::filesystem::path& folder,
                                                         const core::RunContext& ctx)
{
    std::error_code fault;
    const auto status = std::filesystem::status(folder, fault);
    if (folder.empty() || !std::filesystem::exists(status))
        return core::Error{core::ErrorCode::not_found,
                           folder.empty()
                               ? std::string("there is no home folder")
                               : "the folder " + core::in_quotes(folder.string()) + " does not exist",
                           "the cache of models"};
    const std::filesystem::directory_iterator readable(folder, fault);
    if (fault)
        return core::Error{core::ErrorCode::unreadable,
                           core::in_quotes(folder.string()) + " cannot be read: " + fault.message(),
                           "the cache of models"};
    return core::list_hub_cache(folder, ctx);
}

} // namespace

core::Result<std::string> remote_location_of(const QString& text)
{
    std::string location = to_std(text.trimmed());
    if (!core::is_remote_location(location)) {
        if (location.find("://") != std::string::npos)
            return core::Error{core::ErrorCode::invalid_argument,
                               core::in_quotes(location, 80) +
                                   " is no address that can be read; hf://org/name or https:// was expected",
                               "opening a checkpoint"};
        location = std::string(core::hub_prefix) + location;
    }
    if (location.starts_with(core::hub_prefix)) {
        if (const auto hub = core::parse_hub_location(location); !hub) return hub.error();
        return location;
    }
    location = location.substr(0, location.find_first_of("?#"));
    if (!core::is_allowed_url(location))
        return core::Error{core::ErrorCode::invalid_argument,
                           core::in_quotes(location, 80) +
                               " is not HTTPS; plain HTTP is for this machine only",
                           "opening a checkpoint"};
    return location;
}

HubPickerDialog::HubPickerDialog(QWidget* parent)
    : QDialog(parent), m_search(new QLineEdit(this)), m_table(new QTableView(this)),
      m_pages(new QStackedWidget(this)), m_message(new QLabel(this)), m_folder_line(new QLabel(this)),
      m_address(new QLineEdit(this)), m_fault(new QLabel(this)), m_hint(new QLabel(this)),
      m_open(new QPushButton(tr("&Open"), this)), m_open_address(new QPushButton(tr("Open &address"), this)),
      m_models(new CachedModelsModel(this)), m_filter(new QSortFilterProxyModel(this))
{
    setWindowTitle(tr("Open from the hub"));

    m_search->setPlaceholderText(tr("Search names and families"));
    m_search->setAccessibleName(tr("Search in the cache"));
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);

    m_filter->setSourceModel(m_models);
    m_filter->setFilterKeyColumn(-1);
    m_filter->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_filter->setSortRole(CachedModelsModel::sort_role);
    m_filter->setSortCaseSensitivity(Qt::CaseInsensitive);
    m_table->setModel(m_filter);
    m_table->setItemDelegate(new RoomyDelegate(m_table));
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(CachedModelsModel::name_column, Qt::AscendingOrder);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->setTabKeyNavigation(false);
    m_table->setWordWrap(false);
    m_table->setAccessibleName(tr("Models in the cache"));
    m_table->setFont(with_tabular_figures(m_table->font()));
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + grid);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setSectionResizeMode(CachedModelsModel::name_column, QHeaderView::Stretch);
    for (const int column : {CachedModelsModel::family_column, CachedModelsModel::size_column,
                             CachedModelsModel::revision_column})
        m_table->horizontalHeader()->setSectionResizeMode(column, QHeaderView::ResizeToContents);
    m_table->installEventFilter(this);

    m_message->setWordWrap(true);
    m_message->setAlignment(Qt::AlignCenter);
    m_message->setMargin(3 * grid);
    m_message->setTextFormat(Qt::PlainText);
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_pages->addWidget(m_table);
    m_pages->addWidget(m_message);

    m_folder_line->setForegroundRole(QPalette::PlaceholderText);
    m_folder_line->setTextFormat(Qt::PlainText);
    m_folder_line->setWordWrap(true);
    m_fault->setWordWrap(true);
    m_fault->setTextFormat(Qt::PlainText);
    m_fault->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_fault->hide();
    m_hint->setWordWrap(true);
    m_hint->setTextFormat(Qt::PlainText);
    m_hint->setForegroundRole(QPalette::PlaceholderText);

    m_address->setPlaceholderText(tr("org/name, hf://org/name@revision or https://host/model.safetensors"));
    m_address->setAccessibleName(tr("Model on the hub, or address of a file"));
    m_address->setClearButtonEnabled(true);

    auto* row = new QHBoxLayout;
    row->setSpacing(grid);
    row->addWidget(m_address, 1);
    row->addWidget(m_open_address);
    auto* buttons = new QDialogButtonBox(this);
    buttons->addButton(m_open, QDialogButtonBox::AcceptRole);
    buttons->addButton(QDialogButtonBox::Cancel);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(2 * grid, 2 * grid, 2 * grid, 2 * grid);
    column->setSpacing(grid);
    column->addWidget(new SectionLabel(tr("On this computer"), this));
    column->addWidget(m_search);
    column->addWidget(m_pages, 1);
    column->addWidget(m_folder_line);
    column->addSpacing(grid);
    column->addWidget(new SectionLabel(tr("Over the network"), this));
    column->addLayout(row);
    column->addWidget(m_fault);
    column->addWidget(m_hint);
    column->addSpacing(grid);
    column->addWidget(buttons);
    resize(88 * grid, 66 * grid);

    // Return means the button beside the field that has the focus.
    m_open->setAutoDefault(false);
    m_open->setDefault(true);
    m_open_address->setAutoDefault(false);
    connect(m_open, &QPushButton::clicked, this, &HubPickerDialog::openSelected);
    connect(m_open_address, &QPushButton::clicked, this, &HubPickerDialog::openAddress);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_table, &QTableView::doubleClicked, this, &HubPickerDialog::openSelected);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this,
            &HubPickerDialog::takeSelection);
    connect(m_search, &QLineEdit::textChanged, this, &HubPickerDialog::showMatches);
    connect(m_address, &QLineEdit::textChanged, this, [this](const QString& text) {
        m_open_address->setEnabled(!text.trimmed().isEmpty());
        m_fault->hide(); // half an address is no fault yet
    });
    m_address->installEventFilter(this);
    m_open_address->setEnabled(false);

    const core::RemoteSettings remote = core::RemoteSettings::from_environment();
    QString hint =
        tr("Only what is shown is fetched, and kept for the next time. From %1 (HF_ENDPOINT); %2.")
            .arg(to_qstring(core::printable(remote.endpoint)),
                 remote.token.empty() ? tr("no token is set (HF_TOKEN): gated models cannot be read")
                                      : tr("with the token of HF_TOKEN"));
    if (remote.offline)
        hint = tr("HF_HUB_OFFLINE is set: only what was read or downloaded before can be opened.");
    m_hint->setText(hint);
    readCache();
    takeSelection();
    m_search->setFocus();
}

void HubPickerDialog::readCache()
{
    const std::filesystem::path folder = core::hub_cache_folder();
    const QString variable = deciding_variable();
    m_folder_line->setText(
        variable.isEmpty() ? tr("%1 (HF_HUB_CACHE or HF_HOME would say otherwise)")
                                 .arg(QString::fromStdString(folder.string()))
                           : tr("%1 (as %2 says)").arg(QString::fromStdString(folder.string()), variable));
    showMessage(tr("Looking through the cache\u2026"));
    m_runner.start<std::vector<core::CachedModel>>(
        [folder](const core::RunContext& ctx) { return read_models(folder, ctx); },
        [this](core::Result<std::vector<core::CachedModel>> models) { showModels(std::move(models)); });
}

void HubPickerDialog::showModels(core::Result<std::vector<core::CachedModel>> models)
{
    if (!models) {
        if (models.error().code == core::ErrorCode::cancelled) return;
        QString text = sentence_for(models.error());
        if (models.error().code == core::ErrorCode::not_found)
            text += QLatin1Char(' ') + tr("Hugging Face's programs keep there what they download. "
                                          "HF_HUB_CACHE and HF_HOME say where "
                                          "it is; without them it is ~/.cache/huggingface/hub.");
        showMessage(text);
        return;
    }
    if (models->empty()) {
        showMessage(
            tr("There are no models in the cache yet. A model on the hub can be opened by its name below, "
               "without a download."));
        return;
    }
    m_models->setModels(*std::move(models));
    m_search->setEnabled(true);
    if (!m_address->hasFocus()) m_search->setFocus();
    showMatches();
}

void HubPickerDialog::showMatches()
{
    const QString wanted = m_search->text().trimmed();
    m_filter->setFilterFixedString(wanted);
    if (m_filter->rowCount() == 0) {
        m_message->setText(tr("No model in the cache has \u201c%1\u201d in its name or family.").arg(wanted));
        m_pages->setCurrentWidget(m_message);
    } else {
        m_pages->setCurrentWidget(m_table);
        // Return opens what is found.
        if (!m_table->selectionModel()->hasSelection()) m_table->selectRow(0);
    }
    takeSelection();
}

void HubPickerDialog::showMessage(const QString& sentence)
{
    m_message->setText(sentence);
    m_pages->setCurrentWidget(m_message);
    m_search->setEnabled(false);
}

QString HubPickerDialog::message() const
{
    return m_pages->currentWidget() == m_message ? m_message->text() : QString();
}

QString HubPickerDialog::addressFault() const
{
    return m_fault->isHidden() ? QString() : m_fault->text();
}

void HubPickerDialog::takeSelection()
{
    m_open->setEnabled(m_pages->currentWidget() == m_table && m_table->selectionModel()->hasSelection());
}

void HubPickerDialog::openSelected()
{
    const QModelIndexList rows = m_table->selectionModel()->selectedRows();
    if (rows.isEmpty() || m_pages->currentWidget() != m_table) return;
    const QString location = rows.first().data(CachedModelsModel::location_role).toString();
    accept();
    Q_EMIT chosen(location);
}

void HubPickerDialog::openAddress()
{
    const auto location = remote_location_of(m_address->text());
    if (!location) {
        m_fault->setText(sentence_for(location.error()));
        m_fault->show();
        return;
    }
    accept();
    Q_EMIT chosen(QString::fromStdString(*location));
}

bool HubPickerDialog::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool is_return = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (watched == m_address && is_return) {
        if (!m_address->text().trimmed().isEmpty()) openAddress();
        return true; // never the list's selection
    }
    if (watched == m_table && is_return) {
        openSelected();
        return true;
    }
    // From the field into the list without a Tab, as in completions.
    if (watched == m_search && (key->key() == Qt::Key_Down || key->key() == Qt::Key_Up) &&
        m_filter->rowCount() > 0) {
        const int row = m_table->currentIndex().isValid() ? m_table->currentIndex().row() : -1;
        const int next = row + (key->key() == Qt::Key_Down ? 1 : -1);
        if (next >= 0 && next < m_filter->rowCount()) m_table->selectRow(next);
        return true;
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace posiscope::ui
