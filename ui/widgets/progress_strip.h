// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;
class QTimer;
class QToolButton;

namespace posiscope::ui {

class ElidedLabel;

/// The line at the bottom of the window: device, last probe, what is pointed at, warnings, and the progress of
/// background work with a button that stops it.
class ProgressStrip : public QWidget {
    Q_OBJECT

public:
    explicit ProgressStrip(QWidget* parent = nullptr);

    void setDevice(const QString& text);
    void setProbe(const QString& text);
    void setPlace(const QString& text);
    void setWarnings(const QStringList& warnings);
    void setWorking(bool working);
    void setProgress(const QString& label, qulonglong done, qulonglong total);
    /// Offers to do stopped work once more.
    void setStopped(bool stopped);

    [[nodiscard]] QString placeText() const;
    [[nodiscard]] QString probeText() const;
    [[nodiscard]] QStringList warnings() const { return m_warnings; }
    [[nodiscard]] QPushButton* cancelButton() const { return m_cancel; }
    [[nodiscard]] QPushButton* againButton() const { return m_again; }

Q_SIGNALS:
    void cancelRequested();
    void againRequested();

private:
    void showWarnings();

    QLabel* m_device;
    QLabel* m_probe;
    QWidget* m_probe_end; ///< the line behind it
    ElidedLabel* m_place;
    QToolButton* m_warnings_button;
    QLabel* m_stage;
    QProgressBar* m_bar;
    QPushButton* m_cancel;
    QPushButton* m_again;
    QTimer* m_delay;
    QStringList m_warnings;
};

} // namespace posiscope::ui
