// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/position_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "ui/convert.h"
#include "ui/dialogs/export_dialog.h"
#include "ui/shared_cursor.h"
#include "ui/theme.h"

namespace posiscope::ui {

PositionView::PositionView(QWidget* parent)
    : AnalysisView(parent), m_tools(new QHBoxLayout), m_body(new QVBoxLayout),
      m_parts(new QBoxLayout(QBoxLayout::LeftToRight)), m_pages(new QStackedWidget(this)),
      m_message(new QLabel(this))
{
    auto* picture = new QWidget(this);
    m_tools->setContentsMargins(grid, 0, grid, grid / 2);
    m_tools->setSpacing(grid);
    auto* inside = new QVBoxLayout(picture);
    inside->setContentsMargins(0, 0, 0, 0);
    inside->setSpacing(0);
    inside->addLayout(m_tools);
    m_body->setContentsMargins(grid / 2, 0, grid / 2, grid / 2);
    m_parts->setSpacing(grid);
    m_body->addLayout(m_parts, 1);
    inside->addLayout(m_body, 1);
    m_message->setWordWrap(true);
    m_message->setAlignment(Qt::AlignCenter);
    m_message->setMargin(3 * grid);
    m_message->setTextFormat(Qt::PlainText);
    m_pages->addWidget(picture);
    m_pages->addWidget(m_message);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_pages);
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
    const core::Stack* its_stack = stack();
    if (its_stack == nullptr) return {};
    const QString start = to_qstring(m_model->checkpoint->display_name()) + QStringLiteral(" \u00B7 ") +
                          to_qstring(its_stack->id);
    const QString rest = m_has_picture ? pictureLine() : QString();
    return rest.isEmpty() ? start : start + QStringLiteral(" \u00B7 ") + rest;
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

QString PositionView::message() const
{
    return m_has_picture ? QString() : m_message->text();
}

void PositionView::showPicture()
{
    m_has_picture = true;
    m_pages->setCurrentIndex(0);
    Q_EMIT contextChanged();
}

void PositionView::showMessage(const QString& sentence)
{
    m_has_picture = false;
    m_message->setText(sentence);
    m_pages->setCurrentIndex(1);
    Q_EMIT contextChanged();
}

void PositionView::showError(const core::Error& error)
{
    if (error.code == core::ErrorCode::cancelled) return; // what is on screen stays
    QString sentence = to_qstring(error.message);
    if (!sentence.isEmpty()) sentence[0] = sentence[0].toUpper();
    showMessage(sentence + QLatin1Char('.'));
}

void PositionView::describe(FigureSpec& spec, const std::string& view_id,
                            const std::string& settings_json) const
{
    nlohmann::ordered_json record;
    record["program"] = std::string("Posiscope ") + core::version;
    record["model"] = m_model->checkpoint->display_name();
    record["location"] = m_model->checkpoint->location();
    record["family"] = m_model->architecture.family_id;
    record["stack"] = stack()->id;
    record["scheme"] = stack()->scheme_id;
    record["layer"] = m_layer;
    record["view"] = {{"id", view_id}};
    record["view"]["settings"] = nlohmann::ordered_json::parse(settings_json, nullptr, false);
    spec.provenance_json = QByteArray::fromStdString(
        record.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
    spec.title = contextLine();
    spec.suggested_name = to_qstring(view_id);
}

} // namespace posiscope::ui
