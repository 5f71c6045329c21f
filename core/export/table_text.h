// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/metrics/metric_table.h"

namespace posiscope::core {

enum class TableFormat { csv, markdown, latex };

/// The format that a file name's extension asks for: .csv, .md or .markdown, .tex; csv for any other.
TableFormat table_format_of(std::string_view file_name);

struct TableTextOptions {
    TableFormat format = TableFormat::csv;
    std::vector<std::size_t> metrics; ///< rows of metric_list() to write, in this order; empty: all
    int decimals = 3;                 ///< Markdown and LaTeX; CSV has every digit
};

/// The property table as text, rows in their order; columns: model, stack, layer, head, quantity, positions, then the
/// metrics with their standard errors.
///     CSV (RFC 4180, CR LF): two columns a metric, "<id>" and "<id>.standard_error"; undefined is empty
///     Markdown: "0.190 ± 0.012"; undefined is an em dash
///     LaTeX (needs the package booktabs): $0.190 \pm 0.012$; undefined is ---
/// Texts from files are escaped for the format.
std::string table_text(const MetricTable& table, const TableTextOptions& options);

/// The property table as an array of objects: "model", "stack", "layer", "head" ("mean" or a number), "quantity",
/// "positions", "flat", and "metrics" with "value" and "standard_error" by id; undefined is null.
nlohmann::ordered_json table_json(const MetricTable& table);

/// "mean" or the head's number.
std::string head_text(int head);

/// "all" or "without_first": stable, as in metrics.json.
std::string_view position_choice_id(PositionChoice positions);

} // namespace posiscope::core
