// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/network_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/position/relative_position_bias.h"
#include "core/position/sinusoidal.h"

namespace posiscope::core {
namespace {

/// Reads weights into arrays; after the first fault nothing more is read.
class WeightReader {
public:
    explicit WeightReader(const Checkpoint& checkpoint) : m_checkpoint(checkpoint) {}

    std::optional<Error> fault;

    HostTensor whole(const std::string& name)
    {
        if (fault || name.empty()) return {};
        return checked(name, m_checkpoint.read(name));
    }

    HostTensor rows(const std::string& name, std::span<const std::int64_t> rows)
    {
        if (fault) return {};
        return checked(name, m_checkpoint.read_rows(name, rows));
    }

    Norm norm(const NormNames& names)
    {
        Norm out{names.kind, whole(names.gain), whole(names.bias), names.epsilon};
        for (float& gain : out.gain.values()) gain += static_cast<float>(names.gain_offset);
        return out;
    }

    Linear linear(const LinearNames& names)
    {
        Linear out;
        if (names.empty()) return out;
        if (!names.transposed && !names.outputs.empty()) {
            out.weight = rows(names.weight, names.outputs);
        } else {
            out.weight = whole(names.weight);
            if (fault) return {};
            if (names.transposed) out.weight = transposed(out.weight, names.outputs);
        }
        out.bias = whole(names.bias);
        if (!out.bias.empty() && !names.outputs.empty()) out.bias = picked(out.bias, names.outputs);
        return out;
    }

private:
    HostTensor checked(const std::string& name, Result<HostTensor> read)
    {
        if (!read) {
            fault = read.error();
            return {};
        }
        const auto values = std::as_const(*read).values();
        const auto faults =
            std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
        if (faults == 0) return *std::move(read);
        fault =
            Error{ErrorCode::numeric_failure,
                  "tensor " + in_quotes(name) + " in " + in_quotes(m_checkpoint.weights_name()) + " holds " +
                      counted(static_cast<std::size_t>(faults), "value that is", "values that are") +
                      " not finite (NaN or infinite)",
                  "reading weights"};
        return {};
    }

    static HostTensor transposed(const HostTensor& stored, const std::vector<std::int64_t>& outputs)
    {
        const std::int64_t in = stored.dim(0), columns = stored.dim(1);
        const std::int64_t out = outputs.empty() ? columns : static_cast<std::int64_t>(outputs.size());
        HostTensor weight({out, in});
        for (std::int64_t r = 0; r < out; ++r) {
            const std::int64_t column = outputs.empty() ? r : outputs[static_cast<std::size_t>(r)];
            for (std::int64_t f = 0; f < in; ++f)
                weight.data()[r * in + f] = stored.data()[f * columns + column];
        }
        return weight;
    }

    static HostTensor picked(const HostTensor& bias, const std::vector<std::int64_t>& outputs)
    {
        HostTensor out({static_cast<std::int64_t>(outputs.size())});
        for (std::size_t n = 0; n < outputs.size(); ++n) out.data()[n] = bias.data()[outputs[n]];
        return out;
    }

    const Checkpoint& m_checkpoint;
};

Error refused(const std::string& message)
{
    return Error{ErrorCode::invalid_argument, message, "identical-word probe"};
}

Result<std::vector<std::int64_t>> special_ids(const OpenModel& model, const Stack& stack,
                                              const ProbeOptions& options,
                                              std::vector<std::int64_t>& positions)
{
    std::vector<std::int64_t> ids;
    positions.clear();
    if (options.variant == InputVariant::plain) return ids;
    const auto leading = static_cast<std::int64_t>(stack.special_leading.size());
    const auto trailing = static_cast<std::int64_t>(stack.special_trailing.size());
    if (leading + trailing == 0)
        return refused("the special tokens of " + in_quotes(model.checkpoint->display_name()) +
                       " are in neither its vocabulary nor its config; only the plain input can be probed");
    if (options.length <= leading + trailing)
        return refused(
            "length " + std::to_string(options.length) + " leaves no room for a word beside " +
            counted(static_cast<std::size_t>(leading + trailing), "special token", "special tokens"));
    for (std::int64_t n = 0; n < leading; ++n) positions.push_back(n);
    for (std::int64_t n = 0; n < trailing; ++n) positions.push_back(options.length - trailing + n);
    ids = stack.special_leading;
    ids.insert(ids.end(), stack.special_trailing.begin(), stack.special_trailing.end());
    return ids;
}

/// rows * factor + the same row for all.
void finish_rows(HostTensor& rows, double factor, const HostTensor& added)
{
    const std::size_t d = added.empty() ? 1 : added.size();
    for (std::size_t at = 0; at < rows.size(); ++at) {
        if (factor != 1.0)
            rows.data()[at] = static_cast<float>(factor * static_cast<double>(rows.data()[at]));
        if (!added.empty()) rows.data()[at] += added.data()[at % d];
    }
}

Result<void> read_input(WeightReader& weights, const OpenModel& model, const Stack& stack,
                        const ProbeOptions& options, std::span<const Vocabulary::Entry* const> words,
                        std::vector<std::int64_t>& special_positions, Network& network)
{
    std::vector<std::int64_t> rows;
    for (const Vocabulary::Entry* word : words) rows.push_back(word->row);
    network.word_rows = weights.rows(stack.word_table, rows);
    HostTensor token_type;
    if (!stack.token_type_table.empty()) {
        const std::int64_t first = 0;
        token_type = weights.rows(stack.token_type_table, {&first, 1});
    }
    const auto ids = special_ids(model, stack, options, special_positions);
    if (!ids) return ids.error();
    rows.clear();
    for (const std::int64_t id : *ids) {
        const Vocabulary::Entry* entry = model.vocabulary.find_id(id);
        if (entry == nullptr)
            return refused("the special token with id " + std::to_string(id) +
                           " is not in the word table of " + in_quotes(model.checkpoint->display_name()) +
                           "; only the plain input can be probed");
        rows.push_back(entry->row);
    }
    HostTensor special;
    if (!rows.empty()) special = weights.rows(stack.word_table, rows);

    const std::int64_t d = stack.input_size();
    if (options.no_positions || stack.absolute == AbsolutePositions::none) {
        network.position_rows = HostTensor({options.length, d});
    } else if (stack.absolute == AbsolutePositions::sinusoidal) {
        network.position_rows =
            sinusoidal_table(stack.sinusoidal, stack.first_position_row, options.length, d);
    } else {
        rows.resize(static_cast<std::size_t>(options.length));
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = stack.first_position_row + static_cast<std::int64_t>(i);
        network.position_rows = weights.rows(stack.position_table, rows);
    }
    network.has_absolute_positions = stack.absolute != AbsolutePositions::none;
    if (weights.fault) return *weights.fault;

    finish_rows(network.word_rows, stack.word_factor, token_type);
    finish_rows(special, stack.word_factor, token_type);
    for (std::size_t s = 0; s < special_positions.size(); ++s) {
        const auto row = std::as_const(special).values().subspan(s * static_cast<std::size_t>(d),
                                                                 static_cast<std::size_t>(d));
        network.special_rows.push_back({special_positions[s], HostTensor({d}, {row.begin(), row.end()})});
    }
    network.embedding_norm = weights.norm(stack.embedding_norm);
    network.embedding_map = weights.linear(stack.embedding_map);
    return {};
}

/// The biases and rotations of one layer.
AttentionPositions read_positions(WeightReader& weights, const Stack& stack, const LayerNames& names,
                                  std::int64_t length)
{
    AttentionPositions positions;
    if (stack.bucketed_bias && !names.relative_bias_table.empty()) {
        const HostTensor table = weights.whole(names.relative_bias_table);
        if (!weights.fault) positions.bias = bucketed_position_bias(table, *stack.bucketed_bias, length);
    }
    if (stack.alibi)
        positions.bias =
            alibi_bias(alibi_slopes(stack.heads, stack.alibi->largest_bias, stack.alibi->cut_slopes),
                       stack.alibi->ends_at_zero, length);
    if (stack.rotary) {
        rotary_tables(*stack.rotary, length, positions.rotary_cosines, positions.rotary_sines);
        positions.rotary_interleaved = stack.rotary->interleaved;
    }
    return positions;
}

NetworkLayer read_layer(WeightReader& weights, const Stack& stack, const LayerNames& names,
                        const ProbeOptions& options, bool whole)
{
    NetworkLayer layer;
    layer.attention_input_norm = weights.norm(names.attention_input_norm);
    layer.query = weights.linear(names.query);
    layer.key = weights.linear(names.key);
    layer.query_norm = weights.norm(names.query_norm);
    layer.key_norm = weights.norm(names.key_norm);
    if (!options.no_positions) layer.positions = read_positions(weights, stack, names, options.length);
    if (!whole) return layer;
    layer.value = weights.linear(names.value);
    layer.attention_output = weights.linear(names.attention_output);
    layer.attention_output_norm = weights.norm(names.attention_output_norm);
    layer.feed_forward_input_norm = weights.norm(names.feed_forward_input_norm);
    layer.feed_forward_in = weights.linear(names.feed_forward_in);
    layer.feed_forward_gate = weights.linear(names.feed_forward_gate);
    layer.feed_forward_out = weights.linear(names.feed_forward_out);
    layer.feed_forward_output_norm = weights.norm(names.feed_forward_output_norm);
    layer.activation = stack.activation;
    layer.parallel = stack.parallel_feed_forward;
    return layer;
}

} // namespace

Result<Network> read_network(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                             std::span<const Vocabulary::Entry* const> words,
                             std::vector<std::int64_t>& special_positions, const RunContext& ctx)
{
    WeightReader weights(*model.checkpoint);
    Network network;
    network.heads = stack.heads;
    network.head_dim = stack.head_dim;
    network.logit_scale = stack.logit_scale;
    network.causal = stack.causal;
    network.window_before = stack.window_before;
    network.window_after = stack.window_after;
    network.window_is_absence = stack.window_is_absence;
    if (auto read = read_input(weights, model, stack, options, words, special_positions, network); !read)
        return read.error();
    for (int number = 0; number <= options.layer; ++number) {
        if (ctx.cancelled()) return cancelled_error("the probe");
        const LayerNames& names = stack.layer_names[static_cast<std::size_t>(number)];
        const bool whole = number < options.layer;
        if (whole && !names.lacks.empty())
            return Error{ErrorCode::not_found,
                         in_quotes(model.checkpoint->weights_name()) + " has no tensor " +
                             in_quotes(names.lacks) + ", which the layers behind layer " +
                             std::to_string(number) + " need",
                         "reading weights"};
        network.layers.push_back(read_layer(weights, stack, names, options, whole));
        if (weights.fault) return *weights.fault;
    }
    return network;
}

} // namespace posiscope::core
