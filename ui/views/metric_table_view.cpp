// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/metric_table_view.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QSignalBlocker>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include <array>
#include <set>

#include "core/export/atomic_file.h"
#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/dialogs/export_dialog.h"
#include "ui/figure/view_figures.h"
#include "ui/models/metric_table_model.h"
#include "ui/session_text.h"
#include "ui/theme.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"
#include "ui/widgets/menu_button.h"

namespace posiscope::ui {
namespace {

/// Value above, standard error below it in quiet text: a column stays as narrow as its value.
class MetricDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const QFontMetrics value(option.font);
        const QFontMetrics error(small(option.font));
        const int width =
            std::max(value.horizontalAdvance(index.data(MetricTableModel::value_role).toString()),
                     error.horizontalAdvance(index.data(MetricTableModel::error_role).toString()));
        return {width + 2 * margin, value.height() + error.height() + 2};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        QStyleOptionViewItem plain = option;
        initStyleOption(&plain, index);
        plain.text.clear();
        const QStyle* style = option.widget != nullptr ? option.widget->style() : QApplication::style();
        style->drawControl(QStyle::CE_ItemViewItem, &plain, painter, option.widget);

        const bool selected = option.state.testFlag(QStyle::State_Selected);
        const QColor text = option.palette.color(selected ? QPalette::HighlightedText : QPalette::Text);
        const QString error = index.data(MetricTableModel::error_role).toString();
        const QRect rect = option.rect.adjusted(margin, 1, -margin, -1);
        const auto alignment =
            index.data(Qt::TextAlignmentRole).value<Qt::Alignment>() & Qt::AlignHorizontal_Mask;
        painter->save();
        painter->setPen(text);
        painter->setFont(option.font);
        const QString value = index.data(MetricTableModel::value_role).toString();
        if (error.isEmpty()) {
            painter->drawText(rect, static_cast<int>(alignment | Qt::AlignVCenter), value);
        } else {
            painter->drawText(rect, static_cast<int>(alignment | Qt::AlignTop), value);
            painter->setFont(small(option.font));
            painter->setPen(selected ? text : quiet_text_color(option.palette));
            painter->drawText(rect, static_cast<int>(alignment | Qt::AlignBottom), error);
        }
        painter->restore();
    }

private:
    static constexpr int margin = 6;
    static QFont small(QFont font)
    {
        font.setPointSizeF(font.pointSizeF() * 0.85);
        return font;
    }
};

struct CopyFormat {
    core::TableFormat format;
    const char* suffix;
    const char* label;
    const char* name_filter;
};
constexpr std::array copy_formats{
    CopyFormat{core::TableFormat::csv, "csv", QT_TRANSLATE_NOOP("tables", "CSV"),
               QT_TRANSLATE_NOOP("tables", "CSV (*.csv)")},
    CopyFormat{core::TableFormat::markdown, "md", QT_TRANSLATE_NOOP("tables", "Markdown"),
               QT_TRANSLATE_NOOP("tables", "Markdown (*.md)")},
    CopyFormat{core::TableFormat::latex, "tex", QT_TRANSLATE_NOOP("tables", "LaTeX"),
               QT_TRANSLATE_NOOP("tables", "LaTeX (*.tex)")},
};

} // namespace

MetricTableView::MetricTableView(QWidget* parent)
    : AnalysisView(parent), m_model(new MetricTableModel(this)), m_filter(new MetricTableFilter(this)),
      m_quantity(new CompactBox(this)), m_model_name(new CompactBox(this)), m_table(new QTableView(this))
{
    m_quantity->addItem(tr("All quantities"));
    for (const core::Quantity quantity :
         {core::Quantity::logits, core::Quantity::constants_removed, core::Quantity::probabilities})
        m_quantity->addItem(quantity_short_label(quantity), static_cast<int>(quantity));
    m_quantity->setAccessibleName(tr("Quantity in the table"));
    m_quantity->setToolTip(tr("Rows of one quantity only, or of all"));
    m_model_name->addItem(tr("All models"));
    m_model_name->setAccessibleName(tr("Model in the table"));
    m_model_name->setToolTip(tr("Rows of one model only, or of all"));

    auto* copy = new MenuButton(this);
    copy->setText(tr("Copy"));
    copy->setToolTip(tr("Copy the rows shown, or save them, as CSV, Markdown or LaTeX"));
    copy->setAccessibleName(tr("Copy the table"));
    auto* copy_menu = new QMenu(copy);
    for (const CopyFormat& row : copy_formats)
        copy_menu->addAction(
            QCoreApplication::translate("tables", row.label), this,
            [this, format = row.format] { QApplication::clipboard()->setText(textOfShownRows(format)); });
    copy_menu->addSeparator();
    copy_menu->addAction(tr("Save as a file\u2026"), this, &MetricTableView::chooseFile);
    copy->setMenu(copy_menu);

    m_filter->setSourceModel(m_model);
    m_filter->setDynamicSortFilter(true);
    m_table->setModel(m_filter);
    m_table->setItemDelegate(new MetricDelegate(m_table));
    m_table->setSortingEnabled(true);
    m_table->horizontalHeader()->setSortIndicator(-1,
                                                  Qt::AscendingOrder); // the order of the probe until asked
    m_table->horizontalHeader()->setSortIndicatorClearable(true);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setDefaultAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAlternatingRowColors(true);
    m_table->setShowGrid(false);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setTabKeyNavigation(false); // Tab goes on to the next control
    m_table->setAccessibleName(tr("Property table"));
    m_table->setFont(with_tabular_figures(m_table->font()));
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() +
                                                     QFontMetrics(m_table->font()).height() + 2);

    // A name may be as long as a folder's: it is cut at the right, and the tool tip of the panel's head has all of it.
    m_model_name->setMaximumWidth(22 * grid);
    auto* tools = new FlowLayout;
    tools->addWidget(m_quantity);
    tools->addWidget(m_model_name);
    tools->startTrailing();
    tools->addWidget(copy);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(tools);
    column->addWidget(m_table, 1);

    connect(m_quantity, &QComboBox::currentIndexChanged, this, [this] {
        applyFilter();
        Q_EMIT choiceMade(tr("quantity in the table"));
    });
    connect(m_model_name, &QComboBox::currentIndexChanged, this, [this] {
        applyFilter();
        Q_EMIT choiceMade(tr("model in the table"));
    });
}

void MetricTableView::setSession(std::shared_ptr<const core::Session> session)
{
    const bool same_table = m_session && session && m_session->metrics == session->metrics;
    m_session = std::move(session);
    if (same_table || !m_session) return;
    m_model->setTable(m_session->metrics);
    takeModelNames();
    hideConstantColumns();
    m_table->resizeColumnsToContents();
}

/// One entry for each model in the table, the choice kept where it is still there.
void MetricTableView::takeModelNames()
{
    QStringList names;
    for (const core::MetricRow& row : m_model->table().rows) names.append(to_qstring(row.model));
    names.removeDuplicates();
    const QString chosen = m_model_name->currentIndex() > 0 ? m_model_name->currentText() : QString();
    {
        const QSignalBlocker block(m_model_name);
        while (m_model_name->count() > 1) m_model_name->removeItem(1);
        m_model_name->addItems(names);
        m_model_name->setCurrentIndex(static_cast<int>(names.indexOf(chosen)) + 1);
    }
    m_model_name->setVisible(names.size() > 1);
    applyFilter();
}

void MetricTableView::applyFilter()
{
    const QVariant quantity = m_quantity->currentData();
    m_filter->setQuantity(quantity.isValid() ? std::optional(static_cast<core::Quantity>(quantity.toInt()))
                                             : std::nullopt);
    m_filter->setModelName(m_model_name->currentIndex() > 0 ? m_model_name->currentText() : QString());
    hideConstantColumns();
    Q_EMIT contextChanged();
}

/// What all rows share stands in the panel's head: the columns go to what differs.
void MetricTableView::hideConstantColumns()
{
    for (int column = 0; column < MetricTableModel::first_metric; ++column) {
        std::set<QString> values;
        for (int row = 0; row < m_filter->rowCount(); ++row)
            values.insert(m_filter->index(row, column).data().toString());
        m_table->setColumnHidden(column, values.size() == 1);
    }
}

QString MetricTableView::contextLine() const
{
    if (!m_session || m_filter->rowCount() == 0) return {};
    QStringList parts;
    static constexpr std::array shared{MetricTableModel::model_column,    MetricTableModel::stack_column,
                                       MetricTableModel::layer_column,    MetricTableModel::head_column,
                                       MetricTableModel::quantity_column, MetricTableModel::positions_column};
    for (const int column : shared) {
        if (!m_table->isColumnHidden(column)) continue;
        QString value = m_filter->index(0, column).data().toString();
        if (column == MetricTableModel::layer_column) value = tr("layer %1").arg(value);
        if (column == MetricTableModel::head_column) value = tr("head: %1").arg(value);
        if (column == MetricTableModel::positions_column) value = tr("positions: %1").arg(value);
        parts.append(value);
    }
    if (m_session->probe) {
        parts.append(words_label(*m_session->probe));
        parts.append(tr("L %1").arg(m_session->probe->length));
    }
    parts.append(tr("\u00b1 standard error over words"));
    return parts.join(QStringLiteral(" \u00b7 "));
}

void MetricTableView::setSharedCursor(SharedCursor*) {} // a table has no positions

QString MetricTableView::textOfShownRows(core::TableFormat format) const
{
    core::TableTextOptions options;
    options.format = format;
    return to_qstring(core::table_text(m_filter->shownRows(), options));
}

bool MetricTableView::canExport() const
{
    return m_session && m_session->model && m_session->probe && m_filter->rowCount() > 0;
}

FigureSpec MetricTableView::figure() const
{
    return metric_table_figure(*m_session, m_filter->shownRows());
}

void MetricTableView::exportShown()
{
    if (!canExport()) return;
    auto* dialog = new ExportDialog(figure(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

void MetricTableView::chooseFile()
{
    auto* dialog = new QFileDialog(this, tr("Export table"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setFileMode(QFileDialog::AnyFile);
    QStringList filters;
    for (const CopyFormat& row : copy_formats)
        filters.append(QCoreApplication::translate("tables", row.name_filter));
    dialog->setNameFilters(filters);
    const auto take_suffix = [dialog, filters](const QString& filter) {
        const auto row = static_cast<std::size_t>(std::max<qsizetype>(filters.indexOf(filter), 0));
        dialog->setDefaultSuffix(QLatin1String(copy_formats[row].suffix));
    };
    take_suffix(filters.first());
    dialog->selectFile(QStringLiteral("properties"));
    connect(dialog, &QFileDialog::filterSelected, dialog, take_suffix);
    connect(dialog, &QFileDialog::fileSelected, this, &MetricTableView::writeTo);
    dialog->open();
}

void MetricTableView::writeTo(const QString& path)
{
    const QString text = textOfShownRows(core::table_format_of(to_std(path)));
    const core::Result<void> written = core::write_atomically(to_std(path), to_std(text));
    if (!written) Q_EMIT failed(written.error(), tr("Writing %1").arg(path));
}

QVariantMap MetricTableView::choices() const
{
    return {{QStringLiteral("table_quantity"), m_quantity->currentIndex()},
            {QStringLiteral("table_model"),
             m_model_name->currentIndex() > 0 ? m_model_name->currentText() : QString()}};
}

void MetricTableView::setChoices(const QVariantMap& choices)
{
    const int quantity = choices.value(QStringLiteral("table_quantity"), m_quantity->currentIndex()).toInt();
    if (quantity >= 0 && quantity < m_quantity->count()) m_quantity->setCurrentIndex(quantity);
    const QString model = choices.value(QStringLiteral("table_model")).toString();
    m_model_name->setCurrentIndex(model.isEmpty() ? 0 : std::max(0, m_model_name->findText(model)));
}

} // namespace posiscope::ui
