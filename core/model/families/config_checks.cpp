// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/config_checks.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace posiscope::core {

Result<std::int64_t> checked_hidden_size(const ConfigJson& config, std::string_view key,
                                         const TensorInfo& word_table, std::vector<std::string>& notes)
{
    const auto wanted = config.optional_integer(key, 1, largest_hidden_size);
    if (!wanted) return wanted.error();
    const std::int64_t columns = word_table.shape[1];
    if (!*wanted) {
        notes.push_back(in_quotes(config.file_name()) + " has no " + in_quotes(key) + "; " +
                        std::to_string(columns) + " was taken from tensor " + in_quotes(word_table.name));
        return columns;
    }
    if (**wanted != columns)
        return Error{ErrorCode::shape_mismatch,
                     in_quotes(config.file_name()) + ": " + in_quotes(key) + " is " +
                         std::to_string(**wanted) + ", but tensor " + in_quotes(word_table.name) +
                         " has shape " + shape_text(word_table.shape),
                     "recognising the network"};
    return columns;
}

Result<std::int64_t> checked_heads(const ConfigJson& config, std::string_view key, std::int64_t hidden_size)
{
    const auto heads = config.integer(key, 1, hidden_size);
    if (!heads) return heads.error();
    if (hidden_size % *heads != 0)
        return config.field_error(key, "is " + std::to_string(*heads) +
                                           ", which does not divide the hidden size " +
                                           std::to_string(hidden_size));
    return *heads;
}

Result<std::int64_t> checked_rows(const ConfigJson& config, std::string_view key, const TensorInfo& table,
                                  bool may_be_cut, std::vector<std::string>& notes,
                                  std::int64_t beside_config)
{
    const auto wanted = config.optional_integer(key, 1, INT64_MAX / 2);
    if (!wanted) return wanted.error();
    const std::int64_t rows = table.shape[0];
    const std::int64_t wanted_rows = wanted->value_or(0) + beside_config;
    if (!*wanted || wanted_rows == rows || (rows < wanted_rows && may_be_cut)) return rows;
    const std::string difference =
        in_quotes(config.file_name()) + ": " + in_quotes(key) + " is " + std::to_string(**wanted) +
        (beside_config > 0 ? ", which with the " + std::to_string(beside_config) +
                                 " rows before the first position makes " + std::to_string(wanted_rows)
                           : std::string{}) +
        ", but tensor " + in_quotes(table.name) + " has " + std::to_string(rows) + " rows";
    if (rows < wanted_rows) return Error{ErrorCode::shape_mismatch, difference, "recognising the network"};
    notes.push_back(difference + "; the table decides");
    return rows;
}

Result<double> checked_epsilon(const ConfigJson& config, std::string_view key, double published_default,
                               std::vector<std::string>& notes)
{
    const auto epsilon = config.optional_number(key, 0.0, 1.0);
    if (!epsilon) return epsilon.error();
    if (*epsilon) return **epsilon;
    notes.push_back(in_quotes(config.file_name()) + " has no " + in_quotes(key) +
                    "; the family's published value " + nlohmann::json(published_default).dump() +
                    " is taken");
    return published_default;
}

Result<std::string> checked_activation(const ConfigJson& config, std::string_view key,
                                       std::string_view published_default, std::vector<std::string>& notes)
{
    static constexpr std::array<std::string_view, 14> known{
        "gelu",          "gelu_new",   "gelu_fast", "gelu_python", "gelu_pytorch_tanh",
        "gelu_accurate", "quick_gelu", "relu",      "relu2",       "silu",
        "swish",         "tanh",       "sigmoid",   "mish",
    };
    const auto name = config.optional_text(key);
    if (!name) return name.error();
    if (!*name) {
        notes.push_back(in_quotes(config.file_name()) + " has no " + in_quotes(key) +
                        "; the family's published value " + in_quotes(published_default) + " is taken");
        return std::string(published_default);
    }
    if (std::find(known.begin(), known.end(), **name) == known.end())
        return config.field_error(key, "is " + in_quotes(**name, 60) + "; known are " +
                                           join_for_message({known.begin(), known.end()}, known.size()));
    return **name;
}

bool has_cut_vocabulary(const Checkpoint& checkpoint)
{
    return checkpoint.store().open("vocab.tsv").has_value(); // a server has no list of names to look into
}

} // namespace posiscope::core
