// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_view.h"

#include <QBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>

#include <algorithm>

#include "ui/convert.h"
#include "ui/dialogs/export_dialog.h"
#include "ui/figure/figure_command.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"
#include "ui/views/view_table.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {

PositionView::PositionView(QWidget* parent)
    : AnalysisView(parent), m_tools(new FlowLayout), m_body(new QVBoxLayout),
      m_parts(new QBoxLayout(QBoxLayout::LeftToRight)), m_pages(new QStackedWidget(this)),
      m_message(new QLabel(this)), m_go(new QPushButton(this))
{
    auto* picture = new QWidget(this);
    auto* inside = new QVBoxLayout(picture);
    inside->setContentsMargins(0, 0, 0, 0);
    inside->setSpacing(0);
    inside->addLayout(m_tools);
    m_body->setContentsMargins(grid / 2, 0, grid / 2, grid / 2);
    m_parts->setSpacing(grid);
    m_body->addLayout(m_parts, 1);
    inside->addLayout(m_body, 1);
    auto* message = new QWidget(this);
    auto* message_column = new QVBoxLayout(message);
    message_column->setContentsMargins(3 * grid, grid, 3 * grid, grid);
    message_column->setSpacing(2 * grid);
    message_column->addStretch(1);
    message_column->addWidget(m_message);
    message_column->addWidget(m_go, 0, Qt::AlignCenter);
    message_column->addStretch(1);
    m_message->setWordWrap(true);
    m_message->setAlignment(Qt::AlignCenter);
    m_message->setTextFormat(Qt::PlainText);
    m_pages->addWidget(picture);
    m_pages->addWidget(message);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_pages);
    for (const auto change : {&TaskRunner::started, &TaskRunner::finished})
        connect(&m_runner, change, this, &AnalysisView::workChanged);
    connect(&m_runner, &TaskRunner::progressed, this, &AnalysisView::progressed);
    connect(m_go, &QPushButton::clicked, this, [this] { Q_EMIT viewWanted(m_go_to); });
}

void PositionView::setSession(std::shared_ptr<const core::Session> session)
{
    if (!session || !session->model) return;
    std::string stack;
    int layer = 0;
    std::int64_t length = 128;
    if (session->probe) {
        stack = session->probe->options.stack;
        layer = session->probe->options.layer;
        length = session->probe->options.length;
    }
    if (session->model == m_model && stack == m_stack && layer == m_layer && length == m_length) return;
    m_model = session->model;
    m_stack = stack;
    m_layer = layer;
    m_length = length;
    m_is_stopped = false;
    compute();
}

void PositionView::runAgain()
{
    if (!isStopped()) return;
    m_is_stopped = false;
    forgetWish();
    compute();
}

const core::Stack* PositionView::stack() const
{
    return m_model ? m_model->architecture.find_stack(m_stack) : nullptr;
}

void PositionView::resizeEvent(QResizeEvent* event)
{
    m_parts->setDirection(4 * width() > 5 * height() ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    AnalysisView::resizeEvent(event);
}

QString PositionView::contextLine() const
{
    const auto& its_model = m_has_picture ? m_shown_model : m_model;
    if (!its_model) return {};
    const core::Stack* its_stack =
        its_model->architecture.find_stack(m_has_picture ? m_shown_stack : m_stack);
    if (its_stack == nullptr) return {};
    const QString start = to_qstring(its_model->checkpoint->display_name()) + QStringLiteral(" \u00B7 ") +
                          to_qstring(its_stack->id);
    const QString rest = m_has_picture ? pictureLine() : QString();
    return rest.isEmpty() ? start : start + QStringLiteral(" \u00B7 ") + rest;
}

FigureOrigin PositionView::origin() const
{
    return {*m_shown_model, *m_shown_model->architecture.find_stack(m_shown_stack), m_shown_layer,
            m_shown_read};
}

void PositionView::setSharedCursor(SharedCursor* cursor)
{
    m_cursor = cursor;
    connect(cursor, &SharedCursor::changed, this, [this] {
        if (m_has_picture) showCursor();
    });
}

void PositionView::exportShown()
{
    if (!m_has_picture) return;
    auto* dialog = new ExportDialog(figure(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

void PositionView::describe(FigureSpec& spec, std::string_view view_id,
                            const std::string& settings_json) const
{
    FigureSpec described = weights_figure(origin(), view_id, {}, settings_json);
    described.content = std::move(spec.content);
    described.title = contextLine();
    spec = std::move(described);
}

QString PositionView::message() const
{
    return m_has_picture ? QString() : m_message->text();
}

void PositionView::showPicture()
{
    m_has_picture = true;
    m_shown_model = m_model;
    m_shown_stack = m_stack;
    m_shown_layer = m_layer;
    m_shown_read = m_read;
    m_pages->setCurrentIndex(0);
    Q_EMIT contextChanged();
}

void PositionView::showMessage(const QString& sentence, std::string_view view_id)
{
    m_has_picture = false;
    m_message->setText(sentence);
    const ViewRow* row = find_view(view_id);
    m_go->setVisible(row != nullptr);
    if (row != nullptr) {
        m_go_to = to_qstring(row->id);
        m_go->setText(tr("Show %1").arg(view_title(*row).toLower()));
    }
    m_pages->setCurrentIndex(1);
    Q_EMIT contextChanged();
}

void PositionView::showError(const core::Error& error)
{
    if (error.code == core::ErrorCode::cancelled) {
        // What is on screen stays.
        if (!m_has_picture) showMessage(tr("Stopped before there was anything to show."));
        return;
    }
    showMessage(sentence_for(error));
}

void PositionView::showLack(const std::string& lack, std::initializer_list<std::string_view> instead)
{
    const std::vector<std::string> known = applicable_figure_views(*stack());
    std::string_view proposed;
    for (const std::string_view id : instead)
        if (proposed.empty() && std::find(known.begin(), known.end(), id) != known.end()) proposed = id;
    QString sentence = to_qstring(lack);
    if (!sentence.isEmpty()) sentence[0] = sentence[0].toUpper();
    showMessage(sentence + QLatin1Char('.'), proposed);
}

} // namespace posiscope::ui
