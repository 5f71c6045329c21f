// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/model_list_panel.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QListView>
#include <QMenu>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include <algorithm>

#include "ui/analysis_controller.h"
#include "ui/models/open_models_model.h"
#include "ui/theme.h"
#include "ui/widgets/menu_button.h"
#include "ui/widgets/section_label.h"
#include "ui/widgets/symbol_icon.h"

namespace posiscope::ui {
namespace {

/// Name in bold, scheme and sizes below it in quiet text.
class ModelDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override
    {
        const int name = QFontMetrics(bold(option.font)).height();
        const int line = QFontMetrics(small(option.font)).height();
        return {120, name + 2 * line + grid + 2};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const QColor accent = option.palette.color(QPalette::Highlight);
        const QColor text = option.palette.color(QPalette::Text);
        const QColor quiet = quiet_text_color(option.palette);
        if (option.state.testFlag(QStyle::State_Selected)) {
            QColor tint = accent;
            tint.setAlphaF(option.state.testFlag(QStyle::State_HasFocus) ? 0.26F : 0.14F);
            painter->fillRect(option.rect, tint);
            painter->fillRect(QRect(option.rect.topLeft(), QSize(3, option.rect.height())), accent);
        }
        QRect rect = option.rect.adjusted(grid, grid / 2, -grid, 0);
        const auto draw = [&](const QFont& font, const QColor& color, const QString& line) {
            painter->setFont(font);
            painter->setPen(color);
            const QFontMetrics metrics(font);
            painter->drawText(QRect(rect.topLeft(), QSize(rect.width(), metrics.height())), Qt::AlignVCenter,
                              metrics.elidedText(line, Qt::ElideMiddle, rect.width()));
            rect.setTop(rect.top() + metrics.height());
        };
        painter->save();
        draw(bold(option.font), text, index.data(Qt::DisplayRole).toString());
        draw(small(option.font), quiet, index.data(OpenModelsModel::scheme_role).toString());
        draw(small(option.font), quiet, index.data(OpenModelsModel::sizes_role).toString());
        painter->restore();
    }

private:
    static QFont bold(QFont font)
    {
        font.setBold(true);
        return font;
    }
    static QFont small(QFont font)
    {
        font.setPointSizeF(font.pointSizeF() * 0.9);
        return font;
    }
};

} // namespace

ModelListPanel::ModelListPanel(AnalysisController* controller, QMenu* open_menu, QWidget* parent)
    : QWidget(parent), m_controller(controller), m_model(new OpenModelsModel(controller, this)),
      m_list(new QListView(this)), m_add_button(new MenuButton(this))
{
    auto* title = new SectionLabel(tr("Models"), this);
    m_add_button->setIcon(symbol_icon(Symbol::add));
    m_add_button->setMenu(open_menu);
    m_add_button->setToolTip(tr("Open a model, or drop a folder or file on the window"));
    m_add_button->setAccessibleName(tr("Open a model"));

    m_list->setModel(m_model);
    m_list->setItemDelegate(new ModelDelegate(m_list));
    m_list->setSelectionMode(QAbstractItemView::SingleSelection);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setAccessibleName(tr("Open models"));
    m_list->setContextMenuPolicy(Qt::CustomContextMenu);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->installEventFilter(this);

    auto* hint = new QLabel(tr("Drop a model here"), this);
    hint->setAlignment(Qt::AlignCenter);
    hint->setForegroundRole(QPalette::PlaceholderText);

    auto* head = new QHBoxLayout;
    head->addWidget(title, 1);
    head->addWidget(m_add_button);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(grid / 2);
    column->addLayout(head);
    column->addWidget(m_list);
    column->addWidget(hint);

    connect(m_model, &QAbstractItemModel::modelReset, this, &ModelListPanel::takeModels);
    connect(m_list->selectionModel(), &QItemSelectionModel::currentChanged, this,
            [this](const QModelIndex& index) {
                if (m_is_taking || !index.isValid()) return;
                // Later: the list is in the middle of its own change, and the controller will reset it.
                const int id = index.data(OpenModelsModel::id_role).toInt();
                QMetaObject::invokeMethod(
                    this, [this, id] { m_controller->makeCurrent(id); }, Qt::QueuedConnection);
            });
    connect(m_list, &QWidget::customContextMenuRequested, this, [this](const QPoint& where) {
        const QModelIndex index = m_list->indexAt(where);
        if (!index.isValid()) return;
        const int id = index.data(OpenModelsModel::id_role).toInt();
        auto* menu = new QMenu(this);
        menu->setAttribute(Qt::WA_DeleteOnClose);
        menu->addAction(tr("Close model"), this, [this, id] { m_controller->close(id); });
        menu->popup(m_list->viewport()->mapToGlobal(where));
    });
    takeModels();
}

bool ModelListPanel::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_list && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Delete) {
        closeChosen();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void ModelListPanel::closeChosen()
{
    const QModelIndex index = m_list->currentIndex();
    if (index.isValid()) m_controller->close(index.data(OpenModelsModel::id_role).toInt());
}

void ModelListPanel::takeModels()
{
    m_is_taking = true;
    const int row = m_model->currentRow();
    if (row >= 0) m_list->setCurrentIndex(m_model->index(row));
    m_is_taking = false;
    // As tall as its rows, within reason; the probe's settings below need the room.
    constexpr int most_rows = 4;
    const int rows = std::clamp(m_model->rowCount(), 1, most_rows);
    const int row_height = m_model->rowCount() > 0 ? m_list->sizeHintForRow(0) : 3 * fontMetrics().height();
    m_list->setFixedHeight(rows * row_height + 2 * m_list->frameWidth());
}

} // namespace posiscope::ui
