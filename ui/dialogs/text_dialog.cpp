// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/dialogs/text_dialog.h"

#include <QDialogButtonBox>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "ui/theme.h"

namespace posiscope::ui {

TextDialog::TextDialog(const QString& title, const QString& html, QWidget* parent) : QDialog(parent)
{
    setWindowTitle(title);
    setAttribute(Qt::WA_DeleteOnClose);
    auto* text = new QTextBrowser(this);
    text->setHtml(html);
    text->setFrameShape(QFrame::NoFrame);
    text->setOpenExternalLinks(true);
    text->document()->setDocumentMargin(2 * grid);
    text->setAccessibleName(title);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
    auto* column = new QVBoxLayout(this);
    column->addWidget(text);
    column->addWidget(buttons);
    resize(70 * grid, 64 * grid);
}

} // namespace posiscope::ui
