// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QString>

#include "core/base/result.h"

class QLabel;
class QPushButton;
class QToolButton;

namespace posiscope::ui {

/// Tells of a failure (or of something worth knowing) inside the window, without a box to click away: a sentence,
/// what can be done, a fold with code and context, and a button that copies all of it. Hidden until it has something
/// to say.
class ErrorBanner : public QFrame {
    Q_OBJECT

public:
    explicit ErrorBanner(QWidget* parent = nullptr);

    /// @param subject  what was being done ("Opening /models/bert"); may be empty
    /// @param location  of the file or folder that was worked with: whether it is there decides on the advice
    void showError(const core::Error& error, const QString& subject, const QString& location = {});
    /// Something people should know that is no failure.
    void showNotice(const QString& sentence);
    void clear();

    [[nodiscard]] bool isError() const { return m_is_error; }
    [[nodiscard]] QString sentence() const;
    /// What "Copy" puts on the clipboard.
    [[nodiscard]] QString fullText() const;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void showSentence(const QString& sentence, const QString& advice);

    bool m_is_error = false;
    QString m_subject;
    QString m_details;
    QLabel* m_sentence;
    QLabel* m_details_label;
    QToolButton* m_details_button;
    QPushButton* m_copy_button;
    QToolButton* m_close_button;
};

} // namespace posiscope::ui
