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
    QString head;          ///< lines with \n between them
    bool is_label = false; ///< says what a row is about: aligned left, and repeated where the table is broken
    std::vector<TableCell> cells;
    QString group = {}; ///< written once above neighbours that share it; empty: none
};

/// A table as papers set it: rules above, below the heads and at the end, numbers aligned right. Where the page is too
/// narrow for all columns, rows and columns change places; and where that does not do, the columns go on in further parts
/// below, with the labels again.
struct TableContent {
    std::vector<TableColumn> columns; ///< labels first; all of the same length
    QString note;                     ///< one line below

    [[nodiscard]] std::size_t rows() const { return columns.empty() ? 0 : columns.front().cells.size(); }
};

} // namespace posiscope::ui
