// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/table_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/metrics/metric_list.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 6> description_ids{"model", "stack",    "layer",
                                                          "head",  "quantity", "positions"};
constexpr std::array<std::string_view, 6> description_heads{"Model", "Stack",    "Layer",
                                                            "Head",  "Quantity", "Positions"};
constexpr std::size_t longest_text = 300;

/// std::to_chars: the decimal point does not depend on the locale.
template <class... Format>
std::string number_text(double value, Format... format)
{
    std::array<char, 400> buffer{}; // holds the largest double with all its digits
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...);
    return std::string(buffer.data(), end.ptr);
}

std::string rounded(double value, int decimals)
{
    constexpr double largest_written_out = 1e6;
    constexpr int digits_beyond = 4;
    if (std::abs(value) >= largest_written_out)
        return number_text(value, std::chars_format::general, digits_beyond);
    std::string text = number_text(value, std::chars_format::fixed, decimals);
    const bool zero = text.find_first_of("123456789") == std::string::npos;
    return zero && text.starts_with('-') ? text.substr(1) : text;
}

std::string csv_field(std::string_view text)
{
    if (text.find_first_of(",\"\r\n") == std::string_view::npos && text == trimmed(text))
        return std::string(text);
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

std::string markdown_escaped(std::string_view text)
{
    std::string out;
    for (const char c : printable(text, longest_text)) {
        if (std::string_view("\\`*_{}[]<>|~$&#").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string latex_escaped(std::string_view text)
{
    std::string out;
    for (const char c : printable(text, longest_text)) {
        if (c == '\\')
            out += "\\textbackslash{}";
        else if (c == '~')
            out += "\\textasciitilde{}";
        else if (c == '^')
            out += "\\textasciicircum{}";
        else if (c == '<' || c == '>' || c == '|' || c == '"')
            out += c == '<'   ? "\\textless{}"
                   : c == '>' ? "\\textgreater{}"
                   : c == '|' ? "\\textbar{}"
                              : "\\textquotedbl{}";
        else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
            (out += '\\') += c;
        else
            out += c;
    }
    return out;
}

std::string_view quantity_text(Quantity quantity)
{
    switch (quantity) {
    case Quantity::logits: return "logits";
    case Quantity::constants_removed: return "logits, constants removed";
    case Quantity::probabilities: return "probabilities";
    }
    return "";
}

/// The columns that say what a row is about; for people, or with the ids of machines.
std::array<std::string, description_ids.size()> description(const MetricRow& row, bool ids)
{
    return {row.model,
            row.stack,
            std::to_string(row.layer),
            head_text(row.head),
            std::string(ids ? quantity_id(row.quantity) : quantity_text(row.quantity)),
            ids                                    ? std::string(position_choice_id(row.positions))
            : row.positions == PositionChoice::all ? "all"
                                                   : "without first"};
}

struct CellMarks {
    std::string_view before, plus_minus, after, undefined, infinity;
};

constexpr CellMarks markdown_marks{"", " \u00b1 ", "", "\u2014", "\u221e"};
constexpr CellMarks latex_marks{"$", " \\pm ", "$", "---", "\\infty"};

std::string cell(const MetricValue& value, const Metric& metric, int decimals, const CellMarks& marks)
{
    if (std::isnan(value.value)) return std::string(marks.undefined);
    std::string out(marks.before);
    if (std::isinf(value.value))
        out += (value.value < 0.0 ? "-" : "") + std::string(marks.infinity);
    else
        out += rounded(value.value, metric.whole_number ? 0 : decimals);
    if (std::isfinite(value.standard_error))
        out +=
            std::string(marks.plus_minus) + rounded(value.standard_error, metric.whole_number ? 1 : decimals);
    return out + std::string(marks.after);
}

MetricValue value_at(const MetricRow& row, std::size_t metric)
{
    constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
    return metric < row.values.size() ? row.values[metric] : MetricValue{undefined, undefined};
}

std::string csv_text(const MetricTable& table, const std::vector<std::size_t>& chosen)
{
    constexpr std::string_view line_end = "\r\n";
    std::string out;
    for (const std::string_view id : description_ids) (out += out.empty() ? "" : ",") += id;
    for (const std::size_t m : chosen) {
        const std::string id(metric_list()[m].id);
        out += "," + id + "," + id + ".standard_error";
    }
    out += line_end;
    const auto number = [](double value) { return std::isnan(value) ? std::string() : number_text(value); };
    for (const MetricRow& row : table.rows) {
        std::string line;
        bool first = true;
        for (const std::string& text : description(row, true)) {
            (line += first ? "" : ",") += csv_field(text);
            first = false;
        }
        for (const std::size_t m : chosen) {
            const MetricValue value = value_at(row, m);
            line += "," + number(value.value) + "," + number(value.standard_error);
        }
        out += line;
        out += line_end;
    }
    return out;
}

std::string markdown_text(const MetricTable& table, const std::vector<std::size_t>& chosen, int decimals)
{
    std::string out = "|";
    for (const std::string_view head : description_heads) ((out += ' ') += head) += " |";
    for (const std::size_t m : chosen) out += " " + markdown_escaped(metric_list()[m].short_label) + " |";
    out += "\n|";
    for (const std::string_view head : description_heads) out += head == "Layer" ? " ---: |" : " --- |";
    for (std::size_t n = 0; n < chosen.size(); ++n) out += " ---: |";
    out += "\n";
    for (const MetricRow& row : table.rows) {
        out += "|";
        for (const std::string& text : description(row, false)) out += " " + markdown_escaped(text) + " |";
        for (const std::size_t m : chosen)
            out += " " + cell(value_at(row, m), metric_list()[m], decimals, markdown_marks) + " |";
        out += "\n";
    }
    return out;
}

std::string latex_text(const MetricTable& table, const std::vector<std::size_t>& chosen, int decimals)
{
    std::string out = "% Needs \\usepackage{booktabs} in the preamble.\n\\begin{tabular}{llrlll" +
                      std::string(chosen.size(), 'r') + "}\n\\toprule\n";
    std::string heads;
    for (const std::string_view head : description_heads) (heads += heads.empty() ? "" : " & ") += head;
    for (const std::size_t m : chosen) heads += " & " + latex_escaped(metric_list()[m].short_label);
    out += heads + " \\\\\n\\midrule\n";
    for (const MetricRow& row : table.rows) {
        bool first = true;
        for (const std::string& text : description(row, false)) {
            // Braces keep a name that begins with a bracket from being taken for the argument of the \\ before it.
            out += first ? "{" + latex_escaped(text) + "}" : " & " + latex_escaped(text);
            first = false;
        }
        for (const std::size_t m : chosen)
            out += " & " + cell(value_at(row, m), metric_list()[m], decimals, latex_marks);
        out += " \\\\\n";
    }
    return out + "\\bottomrule\n\\end{tabular}\n";
}

nlohmann::ordered_json json_number(double value)
{
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

} // namespace

TableFormat table_format_of(std::string_view file_name)
{
    const std::size_t dot = file_name.rfind('.');
    std::string extension(dot == std::string_view::npos ? "" : file_name.substr(dot + 1));
    for (char& c : extension)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (extension == "md" || extension == "markdown") return TableFormat::markdown;
    return extension == "tex" ? TableFormat::latex : TableFormat::csv;
}

std::string table_text(const MetricTable& table, const TableTextOptions& options)
{
    std::vector<std::size_t> chosen;
    for (const std::size_t m : options.metrics)
        if (m < metric_list().size()) chosen.push_back(m);
    if (options.metrics.empty())
        for (std::size_t m = 0; m < metric_list().size(); ++m) chosen.push_back(m);
    switch (options.format) {
    case TableFormat::csv: return csv_text(table, chosen);
    case TableFormat::markdown: return markdown_text(table, chosen, options.decimals);
    case TableFormat::latex: return latex_text(table, chosen, options.decimals);
    }
    return {};
}

nlohmann::ordered_json table_json(const MetricTable& table)
{
    auto out = nlohmann::ordered_json::array();
    for (const MetricRow& row : table.rows) {
        nlohmann::ordered_json entry;
        entry["model"] = is_utf8(row.model) ? row.model : printable(row.model, longest_text);
        entry["stack"] = row.stack;
        entry["layer"] = row.layer;
        entry["head"] =
            row.head == mean_of_heads ? nlohmann::ordered_json("mean") : nlohmann::ordered_json(row.head);
        entry["quantity"] = std::string(quantity_id(row.quantity));
        entry["positions"] = std::string(position_choice_id(row.positions));
        entry["flat"] = row.flat;
        for (std::size_t m = 0; m < metric_list().size(); ++m) {
            const MetricValue value = value_at(row, m);
            entry["metrics"][std::string(metric_list()[m].id)] = {
                {"value", json_number(value.value)}, {"standard_error", json_number(value.standard_error)}};
        }
        out.push_back(std::move(entry));
    }
    return out;
}

std::string head_text(int head)
{
    return head == mean_of_heads ? "mean" : std::to_string(head);
}

std::string_view position_choice_id(PositionChoice positions)
{
    return positions == PositionChoice::all ? "all" : "without_first";
}

} // namespace posiscope::core
