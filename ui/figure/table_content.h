// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include <QString>

namespace posiscope::ui {

struct TableCell {
    QString text;
    QString error; ///< under the text, in smaller type; empty: none
};

struct TableColumn {
    QString head;
    bool is_label = false; ///< says what a row is about: aligned left, and repeated where the table is broken
    std::vector<TableCell> cells;
};

/// A table as papers set it: rules above, below the heads and at the end, numbers aligned right. Where the page is too
/// narrow for all columns they go on in further parts below, with the labels again.
struct TableContent {
    std::vector<TableColumn> columns; ///< labels first; all of the same length
    QString note;                     ///< one line below

    [[nodiscard]] std::size_t rows() const { return columns.empty() ? 0 : columns.front().cells.size(); }
};

} // namespace posiscope::ui
