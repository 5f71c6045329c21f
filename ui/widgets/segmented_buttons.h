// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QWidget>

class QButtonGroup;
class QHBoxLayout;
class QToolButton;

namespace posiscope::ui {

/// A row of joined buttons of which one is down: a choice among few that are all in view.
class SegmentedButtons : public QWidget {
    Q_OBJECT

public:
    explicit SegmentedButtons(QWidget* parent = nullptr);

    /// Adds a choice at the end; its index is the number of those before it.
    void addChoice(const QString& text, const QString& tool_tip, const QString& accessible_name);
    /// Shows a choice without telling of it.
    void setCurrent(int index);
    [[nodiscard]] int current() const;
    [[nodiscard]] QToolButton* button(int index) const { return m_buttons.at(index); }

Q_SIGNALS:
    void chosen(int index);

protected:
    void changeEvent(QEvent* event) override;

private:
    void restyle();

    QButtonGroup* m_group;
    QHBoxLayout* m_layout;
    QList<QToolButton*> m_buttons;
};

} // namespace posiscope::ui
