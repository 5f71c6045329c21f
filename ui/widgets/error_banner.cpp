// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/error_banner.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/convert.h"
#include "ui/theme.h"
#include "ui/widgets/symbol_icon.h"

namespace posiscope::ui {

ErrorBanner::ErrorBanner(QWidget* parent)
    : QFrame(parent), m_sentence(new QLabel(this)), m_details_label(new QLabel(this)),
      m_details_button(new QToolButton(this)), m_copy_button(new QPushButton(tr("Copy"), this)),
      m_close_button(new QToolButton(this))
{
    setAccessibleName(tr("Message"));
    m_sentence->setWordWrap(true);
    m_sentence->setTextFormat(Qt::PlainText); // file names are no markup
    m_sentence->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_details_label->setWordWrap(true);
    m_details_label->setTextFormat(Qt::PlainText);
    m_details_label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_details_label->hide();
    m_details_button->setText(tr("Details"));
    m_details_button->setAccessibleName(tr("Details of the failure"));
    m_details_button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_details_button->setArrowType(Qt::RightArrow);
    m_details_button->setAutoRaise(true);
    m_details_button->setCheckable(true);
    m_details_button->setFocusPolicy(Qt::StrongFocus);
    m_copy_button->setAccessibleName(tr("Copy the message with its details"));
    m_close_button->setIcon(symbol_icon(Symbol::close));
    m_close_button->setAutoRaise(true);
    m_close_button->setFocusPolicy(Qt::StrongFocus);
    m_close_button->setToolTip(tr("Hide this message"));
    m_close_button->setAccessibleName(tr("Hide this message"));

    auto* row = new QHBoxLayout;
    row->setSpacing(grid);
    row->addWidget(m_sentence, 1);
    row->addWidget(m_details_button, 0, Qt::AlignTop);
    row->addWidget(m_copy_button, 0, Qt::AlignTop);
    row->addWidget(m_close_button, 0, Qt::AlignTop);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(grid + 4, grid, grid, grid);
    column->setSpacing(4);
    column->addLayout(row);
    column->addWidget(m_details_label);

    connect(m_details_button, &QToolButton::toggled, this, [this](bool open) {
        m_details_button->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
        m_details_label->setVisible(open);
    });
    connect(m_copy_button, &QPushButton::clicked, this,
            [this] { QGuiApplication::clipboard()->setText(fullText()); });
    connect(m_close_button, &QToolButton::clicked, this, &ErrorBanner::clear);
    hide();
}

void ErrorBanner::showError(const core::Error& error, const QString& subject, const QString& location)
{
    m_is_error = true;
    m_subject = subject;
    m_details = tr("Code: %1").arg(to_qstring(core::error_code_name(error.code)));
    if (!subject.isEmpty()) m_details.prepend(subject + u'\n');
    if (!error.context.empty()) m_details += u'\n' + tr("Where: %1").arg(to_qstring(error.context));
    showSentence(sentence_for(error), advice_for(error.code, location));
}

void ErrorBanner::showNotice(const QString& sentence)
{
    if (m_is_error && !isHidden()) return; // a failure weighs more
    m_is_error = false;
    m_subject.clear();
    m_details.clear();
    showSentence(sentence, {});
}

void ErrorBanner::showSentence(const QString& sentence, const QString& advice)
{
    m_sentence->setText(advice.isEmpty() ? sentence : sentence + u' ' + advice);
    m_details_label->setText(m_details);
    m_details_button->setChecked(false);
    m_details_button->setVisible(m_is_error);
    m_copy_button->setVisible(m_is_error);
    setAccessibleDescription(m_sentence->text());
    update();
    show();
}

void ErrorBanner::clear()
{
    m_is_error = false;
    hide();
}

QString ErrorBanner::sentence() const
{
    return isHidden() ? QString() : m_sentence->text();
}

QString ErrorBanner::fullText() const
{
    return m_details.isEmpty() ? m_sentence->text() : m_sentence->text() + u'\n' + m_details;
}

// Painted rather than styled by a sheet: a sheet would take the palette away from all that lies inside.
void ErrorBanner::paintEvent(QPaintEvent*)
{
    const bool dark = is_dark(palette());
    const QRgb background = m_is_error ? (dark ? 0xff4a2526 : 0xfffdeceb) : (dark ? 0xff22364a : 0xffe8f1fb);
    const QRgb edge = m_is_error ? (dark ? 0xffd9685f : 0xffc4372c) : (dark ? 0xff5b9bd8 : 0xff2f6fb5);
    constexpr int edge_width = 4;
    QPainter painter(this);
    painter.fillRect(rect(), QColor::fromRgb(background));
    painter.fillRect(QRect(0, 0, edge_width, height()), QColor::fromRgb(edge));
}

} // namespace posiscope::ui
