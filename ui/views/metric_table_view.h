// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/export/table_text.h"
#include "ui/figure/figure_spec.h"
#include "ui/views/analysis_view.h"

class QComboBox;
class QLabel;
class QTableView;

namespace posiscope::ui {

class MetricTableFilter;
class MetricTableModel;

/// The property table: values with their standard errors, sorted and filtered as asked, copied and written as CSV,
/// Markdown or LaTeX.
class MetricTableView : public AnalysisView {
    Q_OBJECT

public:
    explicit MetricTableView(QWidget* parent = nullptr);

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] QString contextLine() const override;
    void setSharedCursor(SharedCursor* cursor) override;
    void exportShown() override;
    [[nodiscard]] bool canExport() const override;
    [[nodiscard]] QVariantMap choices() const override;
    void setChoices(const QVariantMap& choices) override;

    /// What "Export" would write: the rows shown as a table that is typeset; canExport() must hold.
    [[nodiscard]] FigureSpec figure() const;

    /// Writes the rows shown to a file in the format of its extension.
    void writeTo(const QString& path);

    [[nodiscard]] MetricTableModel* model() const { return m_model; }
    [[nodiscard]] MetricTableFilter* filter() const { return m_filter; }
    [[nodiscard]] QTableView* table() const { return m_table; }
    [[nodiscard]] QComboBox* quantityBox() const { return m_quantity; }

private:
    [[nodiscard]] QString textOfShownRows(core::TableFormat format) const;
    void chooseFile();
    void takeModelNames();
    void applyFilter();
    void hideConstantColumns();

    std::shared_ptr<const core::Session> m_session;
    MetricTableModel* m_model;
    MetricTableFilter* m_filter;
    QComboBox* m_quantity;
    QComboBox* m_model_name;
    QTableView* m_table;
};

} // namespace posiscope::ui
