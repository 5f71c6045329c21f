// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/probe/network_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/random.h"
#include "core/base/text.h"
#include "core/checkpoint/reading_scope.h"
#include "core/position/relative_position_bias.h"
#include "core/position/sinusoidal.h"
#include "core/probe/row_network.h"

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

    /// Rows of a matrix; of a tensor with more dimensions, whose leading ones hold one entry, those of its last two.
    HostTensor rows(const std::string& name, std::span<const std::int64_t> rows)
    {
        if (fault) return {};
        const TensorInfo* info = m_checkpoint.find(name);
        if (info == nullptr || info->shape.size() == 2)
            return checked(name, m_checkpoint.read_rows(name, rows));
        const HostTensor all = whole(name);
        if (fault) return {};
        const std::int64_t columns = all.shape().back();
        HostTensor out({static_cast<std::int64_t>(rows.size()), columns});
        for (std::size_t r = 0; r < rows.size(); ++r)
            std::copy_n(all.data() + rows[r] * columns, columns,
                        out.data() + static_cast<std::int64_t>(r) * columns);
        return out;
    }

    /// The whole tensor as a matrix of `columns` columns.
    HostTensor matrix(const std::string& name, std::int64_t columns)
    {
        return reshaped(whole(name), columns);
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
            const auto columns = static_cast<std::int64_t>(out.weight.size()) / out.weight.dim(0);
            out.weight = reshaped(std::move(out.weight), columns);
            if (names.transposed) out.weight = transposed(out.weight, names.outputs);
        }
        out.bias = whole(names.bias);
        if (!out.bias.empty() && !names.outputs.empty() && names.bias_is_packed)
            out.bias = picked(out.bias, names.outputs);
        return out;
    }

    /// The bias of a projection alone.
    HostTensor bias(const LinearNames& names)
    {
        HostTensor out = whole(names.bias);
        if (!out.empty() && !names.outputs.empty() && names.bias_is_packed) out = picked(out, names.outputs);
        return out;
    }

private:
    static HostTensor reshaped(HostTensor tensor, std::int64_t columns)
    {
        if (tensor.empty() || (tensor.shape().size() == 2 && tensor.dim(1) == columns)) return tensor;
        const auto values = std::as_const(tensor).values();
        return HostTensor({static_cast<std::int64_t>(values.size()) / columns, columns},
                          {values.begin(), values.end()});
    }

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

/// Rows of words by their row numbers. With adaptive input each cluster's rows pass its own map.
HostTensor read_words(WeightReader& weights, const Stack& stack, std::span<const std::int64_t> rows)
{
    if (stack.word_clusters.empty()) return weights.rows(stack.word_table, rows);
    HostTensor out({static_cast<std::int64_t>(rows.size()), stack.input_size()});
    for (const WordCluster& cluster : stack.word_clusters) {
        std::vector<std::int64_t> here, places;
        for (std::size_t n = 0; n < rows.size(); ++n)
            if (rows[n] >= cluster.first && rows[n] < cluster.first + cluster.rows) {
                here.push_back(rows[n] - cluster.first);
                places.push_back(static_cast<std::int64_t>(n));
            }
        if (here.empty()) continue;
        const HostTensor own = weights.rows(cluster.table, here);
        const Linear map = weights.linear(cluster.map);
        if (weights.fault) return {};
        const HostTensor mapped = map.empty() ? own : apply_linear(map, own);
        for (std::size_t n = 0; n < places.size(); ++n)
            std::copy_n(mapped.data() + static_cast<std::int64_t>(n) * stack.input_size(), stack.input_size(),
                        out.data() + places[n] * stack.input_size());
    }
    return out;
}

/// What stands in the place of words in an image or at an audio encoder: given patches, given vectors, or draws.
/// @return [contents, embedding size]
Result<HostTensor> read_content(WeightReader& weights, const Stack& stack, const ProbeOptions& options,
                                std::size_t count)
{
    const auto rows = static_cast<std::int64_t>(count);
    const bool patches = stack.content == InputContent::patches;
    const std::int64_t columns =
        patches ? stack.patch_channels * stack.patch_side * stack.patch_side : stack.input_size();
    HostTensor content;
    if (options.content == nullptr) {
        content = HostTensor({rows, columns});
        Random random(options.seed);
        for (float& value : content.values()) value = static_cast<float>(random.normal());
    } else {
        const Shape& shape = options.content->shape();
        const bool vectors = shape.size() == 2 && shape[1] == stack.input_size();
        const bool tiles = patches && shape == Shape{shape.empty() ? 0 : shape[0], stack.patch_channels,
                                                     stack.patch_side, stack.patch_side};
        if (shape.empty() || (!vectors && !tiles))
            return refused(
                "the content has the shape " + shape_text(shape) + "; " +
                (patches ? shape_text(Shape{-1, stack.patch_channels, stack.patch_side, stack.patch_side}) +
                               " (patches) or "
                         : std::string{}) +
                shape_text(Shape{-1, stack.input_size()}) + " (vectors) was expected");
        if (shape[0] != rows)
            return refused("the content has " + std::to_string(shape[0]) + " rows for " +
                           counted(count, "word", "words") + "; row n goes with word n");
        const auto values = std::as_const(*options.content).values();
        content = HostTensor({rows, static_cast<std::int64_t>(values.size()) / rows},
                             {values.begin(), values.end()});
        if (vectors) return content;
    }
    if (patches) {
        const Linear map = weights.linear(stack.patch_map);
        if (weights.fault) return *weights.fault;
        content = apply_linear(map, content);
    }
    const Norm norm = weights.norm(stack.content_norm);
    if (weights.fault) return *weights.fault;
    apply_norm(norm, content);
    return content;
}

/// Vectors before the patches of an image, [tokens, embedding size].
HostTensor read_prefix(WeightReader& weights, const Stack& stack)
{
    HostTensor rows({static_cast<std::int64_t>(stack.prefix_rows.size()), stack.input_size()});
    for (std::size_t n = 0; n < stack.prefix_rows.size(); ++n) {
        const HostTensor row = weights.whole(stack.prefix_rows[n]);
        if (weights.fault) return {};
        std::copy_n(row.data(), stack.input_size(),
                    rows.data() + static_cast<std::int64_t>(n) * stack.input_size());
    }
    return rows;
}

Result<void> read_input(WeightReader& weights, const OpenModel& model, const Stack& stack,
                        const ProbeOptions& options, const ProbeInput& input,
                        std::vector<std::int64_t>& special_positions, Network& network)
{
    HostTensor special;
    std::int64_t first_row = stack.first_position_row;
    const std::int64_t d = stack.input_size();
    if (stack.content == InputContent::words) {
        std::vector<std::int64_t> rows;
        for (const Vocabulary::Entry* word : input.words) rows.push_back(word->row);
        network.word_rows = read_words(weights, stack, rows);
        HostTensor token_type;
        if (!stack.token_type_table.empty()) {
            const std::int64_t first = 0;
            token_type = weights.rows(stack.token_type_table, {&first, 1});
        }
        const auto ids = special_ids(model, stack, options, special_positions);
        if (!ids) return ids.error();
        rows.clear();
        for (const std::int64_t id : *ids) {
            const Vocabulary::Entry* entry = model.vocabulary_of(stack.id).find_id(id);
            if (entry == nullptr)
                return refused("the special token with id " + std::to_string(id) +
                               " is not in the word table of " + in_quotes(model.checkpoint->display_name()) +
                               "; only the plain input can be probed");
            rows.push_back(entry->row);
        }
        if (!rows.empty()) special = read_words(weights, stack, rows);
        if (weights.fault) return *weights.fault;
        finish_rows(network.word_rows, stack.word_factor, token_type);
        finish_rows(special, stack.word_factor, token_type);
        const Norm norm = weights.norm(stack.content_norm);
        if (weights.fault) return *weights.fault;
        apply_norm(norm, network.word_rows);
        if (!special.empty()) apply_norm(norm, special);
    } else {
        auto content = read_content(weights, stack, options, input.count);
        if (!content) return content.error();
        network.word_rows = *std::move(content);
        special_positions.clear();
        const auto prefix = static_cast<std::int64_t>(stack.prefix_rows.size());
        if (options.variant == InputVariant::special) {
            special = read_prefix(weights, stack);
            for (std::int64_t n = 0; n < prefix; ++n) special_positions.push_back(n);
        } else {
            // A patch keeps its row of the table.
            first_row += prefix;
        }
    }

    if (options.no_positions || stack.absolute == AbsolutePositions::none) {
        network.position_rows = HostTensor({options.length, d});
    } else if (stack.absolute == AbsolutePositions::sinusoidal) {
        network.position_rows = sinusoidal_table(stack.sinusoidal, first_row, options.length, d);
    } else {
        std::vector<std::int64_t> rows(static_cast<std::size_t>(options.length));
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = first_row + static_cast<std::int64_t>(i);
        network.position_rows = weights.rows(stack.position_table, rows);
    }
    network.has_absolute_positions = stack.absolute != AbsolutePositions::none;
    if (weights.fault) return *weights.fault;

    for (std::size_t s = 0; s < special_positions.size(); ++s) {
        const auto row = std::as_const(special).values().subspan(s * static_cast<std::size_t>(d),
                                                                 static_cast<std::size_t>(d));
        network.special_rows.push_back({special_positions[s], HostTensor({d}, {row.begin(), row.end()})});
    }
    network.embedding_norm = weights.norm(stack.embedding_norm);
    network.embedding_map = weights.linear(stack.embedding_map);
    return {};
}

/// [offsets, heads * head_dim] as [heads, offsets, head_dim].
HostTensor by_head(const HostTensor& rows, std::int64_t heads)
{
    const std::int64_t offsets = rows.dim(0), head_dim = rows.dim(1) / heads;
    HostTensor out({heads, offsets, head_dim});
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t o = 0; o < offsets; ++o)
            std::copy_n(rows.data() + (o * heads + h) * head_dim, head_dim,
                        out.data() + (h * offsets + o) * head_dim);
    return out;
}

/// Vectors of offsets as the queries, keys or values of one layer meet them: [heads or 1, 2 length - 1, head_dim].
HostTensor read_relative_vectors(WeightReader& weights, const Stack& stack, const std::string& table,
                                 const LinearNames& map, std::int64_t length)
{
    const RelativeVectors& scheme = *stack.relative_vectors;
    HostTensor rows;
    if (!scheme.computed) {
        rows = weights.matrix(table, scheme.features);
        const Norm norm = weights.norm(stack.relative_norm);
        if (weights.fault) return {};
        apply_norm(norm, rows);
    }
    const HostTensor vectors = vectors_of_offsets(rows, scheme, length);
    if (map.empty())
        return HostTensor({1, vectors.dim(0), vectors.dim(1)},
                          {vectors.values().begin(), vectors.values().end()});
    const Linear projection = weights.linear(map);
    if (weights.fault) return {};
    return by_head(apply_linear(projection, vectors), stack.heads);
}

/// bias[h,i,j] += scale * (extra_h . key_offsets[h, j - i]); an extra query that meets the positions only.
void add_query_of_positions(const HostTensor& extra, const HostTensor& key_offsets, double scale,
                            std::int64_t heads, std::int64_t length, HostTensor& bias)
{
    const std::int64_t offsets = 2 * length - 1, head_dim = key_offsets.dim(2);
    if (bias.empty()) bias = HostTensor({heads, length, length});
    for (std::int64_t h = 0; h < heads; ++h) {
        const float* rows = key_offsets.data() + (key_offsets.dim(0) == 1 ? 0 : h) * offsets * head_dim;
        for (std::int64_t o = 0; o < offsets; ++o) {
            double sum = 0.0;
            for (std::int64_t f = 0; f < head_dim; ++f)
                sum += static_cast<double>(extra.data()[h * head_dim + f]) *
                       static_cast<double>(rows[o * head_dim + f]);
            const std::int64_t shift = o - (length - 1); // j - i
            for (std::int64_t i = std::max<std::int64_t>(0, -shift); i < std::min(length, length - shift);
                 ++i)
                bias.data()[(h * length + i) * length + i + shift] += static_cast<float>(scale * sum);
        }
    }
}

/// TUPE's bias: position against position, the first row and column reset, and a bias by bucket.
/// Source: Ke et al. 2021, eq. 8 to 10, and the released code.
HostTensor read_untied_bias(WeightReader& weights, const UntiedPositions& untied, std::int64_t heads,
                            std::int64_t length)
{
    std::vector<std::int64_t> rows(static_cast<std::size_t>(length) + 1);
    for (std::size_t n = 0; n < rows.size(); ++n) rows[n] = static_cast<std::int64_t>(n);
    HostTensor positions = weights.rows(untied.table, rows);
    const Norm norm = weights.norm(untied.norm);
    const Linear query = weights.linear(untied.query), key = weights.linear(untied.key);
    const HostTensor table = weights.whole(untied.bias_table);
    if (weights.fault) return {};
    apply_norm(norm, positions);
    const HostTensor queries = apply_linear(query, positions), keys = apply_linear(key, positions);
    const std::int64_t width = queries.dim(1), head_dim = width / heads;
    const BucketedBias buckets{untied.buckets, untied.max_distance, true};
    HostTensor bias({heads, length, length});
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto product = [&](std::int64_t i, std::int64_t j) {
            double sum = 0.0;
            for (std::int64_t f = h * head_dim; f < (h + 1) * head_dim; ++f)
                sum += static_cast<double>(queries.data()[i * width + f]) *
                       static_cast<double>(keys.data()[j * width + f]);
            return untied.scale * sum;
        };
        for (std::int64_t i = 0; i < length; ++i)
            for (std::int64_t j = 0; j < length; ++j) {
                double value = 0.0;
                std::int64_t bucket = relative_position_bucket(j - i, buckets);
                if (untied.resets_first && i == 0) {
                    value = product(0, 0);
                    bucket = untied.buckets / 2;
                } else if (untied.resets_first && j == 0) {
                    value = product(1, 1);
                    bucket = untied.buckets;
                } else {
                    value = product(i + 1, j + 1);
                }
                if (!table.empty()) value += static_cast<double>(table.data()[bucket * heads + h]);
                bias.data()[(h * length + i) * length + j] = static_cast<float>(value);
            }
    }
    return bias;
}

/// A vector for each head less the extra query of words.
HostTensor less_words(WeightReader& weights, const LayerNames& names, const std::string& name)
{
    const HostTensor for_words = weights.whole(names.word_query_bias);
    HostTensor difference = weights.whole(name);
    if (weights.fault) return {};
    for (std::size_t n = 0; n < difference.size(); ++n) difference.data()[n] -= for_words.data()[n];
    return difference;
}

/// The biases, vectors and rotations of one layer. A mask of windows says what a query may see, like the future's: it stays
/// where positions are taken out.
AttentionPositions read_positions(WeightReader& weights, const Stack& stack, const LayerNames& names,
                                  const ProbeOptions& options)
{
    const std::int64_t length = options.length;
    const bool prefix_left_out =
        stack.grid_bias && stack.grid_bias->has_prefix && options.variant == InputVariant::plain;
    AttentionPositions positions;
    if (stack.grid_bias && names.window_shift > 0)
        positions.mask = shifted_window_mask(*stack.grid_bias, names.grid_rows, names.grid_columns,
                                             names.window_shift, options.window);
    if (options.no_positions) return positions;
    if (!names.relative_bias_table.empty()) {
        const HostTensor table = weights.whole(names.relative_bias_table);
        if (weights.fault) return {};
        if (stack.bucketed_bias) positions.bias = bucketed_position_bias(table, *stack.bucketed_bias, length);
        if (stack.grid_bias && !prefix_left_out) positions.bias = grid_position_bias(table, *stack.grid_bias);
    }
    if (stack.alibi)
        positions.bias =
            alibi_bias(alibi_slopes(stack.heads, stack.alibi->largest_bias, stack.alibi->cut_slopes),
                       stack.alibi->ends_at_zero, length);
    if (stack.untied) positions.bias = read_untied_bias(weights, *stack.untied, stack.heads, length);
    if (stack.rotary) {
        rotary_tables(*stack.rotary, length, positions.rotary_cosines, positions.rotary_sines);
        positions.rotary_interleaved = stack.rotary->interleaved;
    }
    if (stack.relative_vectors) {
        const RelativeVectors& scheme = *stack.relative_vectors;
        if (scheme.for_keys)
            positions.key_offsets =
                read_relative_vectors(weights, stack, names.key_table, names.key_map, length);
        if (scheme.for_queries)
            positions.query_offsets =
                read_relative_vectors(weights, stack, names.query_table, names.query_map, length);
        if (scheme.for_values)
            positions.value_offsets = read_relative_vectors(weights, stack, names.value_table, {}, length);
    }
    if (!names.word_query_bias.empty() && !positions.key_offsets.empty()) {
        const HostTensor extra = less_words(weights, names, names.position_query_bias);
        if (weights.fault) return {};
        add_query_of_positions(extra, positions.key_offsets, stack.logit_scale, stack.heads, length,
                               positions.bias);
    }
    return positions;
}

/// The positions of layers that were read, each once: biases that all layers share (T5, ALiBi, rotations) are as large as
/// L x L for every head.
class SharedPositions {
public:
    std::shared_ptr<const AttentionPositions> read(WeightReader& weights, const Stack& stack,
                                                   const LayerNames& names, const ProbeOptions& options)
    {
        auto& place = m_read[{names.relative_bias_table, names.key_table, names.key_map.weight,
                              names.query_table, names.query_map.weight, names.value_table,
                              names.word_query_bias, names.position_query_bias,
                              std::to_string(names.window_shift) + " " + std::to_string(names.grid_rows) +
                                  " " + std::to_string(names.grid_columns)}];
        if (place == nullptr)
            place =
                std::make_shared<const AttentionPositions>(read_positions(weights, stack, names, options));
        return place;
    }

private:
    std::map<std::array<std::string, 9>, std::shared_ptr<const AttentionPositions>> m_read;
};

/// Adds `row` to a bias that may not be there.
void add_to_bias(Linear& linear, const HostTensor& row)
{
    if (linear.bias.empty()) linear.bias = HostTensor({static_cast<std::int64_t>(row.size())});
    for (std::size_t n = 0; n < row.size(); ++n) linear.bias.data()[n] += row.data()[n];
}

/// The extra queries of Transformer-XL and XLNet, folded into arrays that every layer has: with u, v, s those for words,
/// positions and segments, R the vectors of offsets and g the segment's,
///     (q + u).k + (q + v).R + (q + s).g = q'.(k + g) + q'.R + (v - u).R + (s - u).g,   q' = q + u.
/// (v - u).R is in the layer's positions already.
/// Source: Dai et al. 2019, eq. 5 and sec. 3.3; Yang et al. 2019, sec. 2.5.
void fold_extra_queries(WeightReader& weights, const Stack& stack, const LayerNames& names,
                        const ProbeOptions& options, NetworkLayer& layer)
{
    if (names.word_query_bias.empty()) return;
    const HostTensor for_words = weights.whole(names.word_query_bias);
    if (weights.fault) return;
    add_to_bias(layer.query, for_words);
    if (names.segment_table.empty() || !options.segments) return;
    const HostTensor for_segments = less_words(weights, names, names.segment_query_bias);
    const HostTensor segments = weights.whole(names.segment_table);
    if (weights.fault) return;
    const std::int64_t width = stack.heads * stack.head_dim;
    const HostTensor segment({width}, {segments.values().begin(), segments.values().begin() + width});
    add_to_bias(layer.key, segment);
    layer.logit_constants = HostTensor({stack.heads});
    for (std::int64_t h = 0; h < stack.heads; ++h) {
        double sum = 0.0;
        for (std::int64_t f = h * stack.head_dim; f < (h + 1) * stack.head_dim; ++f)
            sum += static_cast<double>(for_segments.data()[f]) * static_cast<double>(segment.data()[f]);
        layer.logit_constants.data()[h] = static_cast<float>(stack.logit_scale * sum);
    }
}

/// What of a layer is read.
struct LayerParts {
    bool whole = true;     ///< else as far as its queries and keys
    bool positions = true; ///< else the layer is passed by rows that are the same at every position
};

NetworkLayer read_layer(WeightReader& weights, const Stack& stack, const LayerNames& names,
                        const ProbeOptions& options, const LayerParts& parts, SharedPositions& shared)
{
    NetworkLayer layer;
    layer.heads = names.heads;
    layer.head_dim = names.head_dim;
    layer.merge_norm = weights.norm(names.merge_norm);
    layer.merge = weights.linear(names.merge);
    layer.attention_input_norm = weights.norm(names.attention_input_norm);
    layer.query = weights.linear(names.query);
    layer.key = weights.linear(names.key);
    layer.query_norm = weights.norm(names.query_norm);
    layer.key_norm = weights.norm(names.key_norm);
    if (parts.positions) layer.positions = shared.read(weights, stack, names, options);
    if (!weights.fault) fold_extra_queries(weights, stack, names, options, layer);
    if (!parts.whole) return layer;
    layer.value = weights.linear(names.value);
    layer.attention_output = weights.linear(names.attention_output);
    layer.attention_output_norm = weights.norm(names.attention_output_norm);
    layer.cross_input_norm = weights.norm(names.cross_input_norm);
    layer.cross_query = weights.linear(names.cross_query);
    layer.cross_key = weights.linear(names.cross_key);
    layer.cross_value = weights.linear(names.cross_value);
    layer.cross_output = weights.linear(names.cross_output);
    layer.cross_output_norm = weights.norm(names.cross_output_norm);
    layer.feed_forward_input_norm = weights.norm(names.feed_forward_input_norm);
    layer.feed_forward_in = weights.linear(names.feed_forward_in);
    layer.feed_forward_gate = weights.linear(names.feed_forward_gate);
    layer.feed_forward_out = weights.linear(names.feed_forward_out);
    layer.feed_forward_width = stack.feed_forward_width;
    layer.feed_forward_output_norm = weights.norm(names.feed_forward_output_norm);
    layer.attention_branch_scale = weights.whole(names.attention_branch_scale);
    layer.feed_forward_branch_scale = weights.whole(names.feed_forward_branch_scale);
    layer.activation = stack.activation;
    layer.parallel = stack.parallel_feed_forward;
    return layer;
}

/// Layers 0 .. `last`, each as far as `parts_of` says.
template <class PartsOf>
Result<void> read_layers(WeightReader& weights, const OpenModel& model, const Stack& stack,
                         const ProbeOptions& options, std::int64_t last, const PartsOf& parts_of,
                         Network& network, const RunContext& ctx)
{
    SharedPositions shared;
    for (std::int64_t number = 0; number <= last; ++number) {
        if (ctx.cancelled()) return cancelled_error("the probe");
        const LayerNames& names = stack.layer_names[static_cast<std::size_t>(number)];
        const LayerParts parts = parts_of(number);
        if (parts.whole && !names.lacks.empty())
            return Error{ErrorCode::not_found,
                         in_quotes(model.checkpoint->weights_name()) + " has no tensor " +
                             in_quotes(names.lacks) + ", which the layers behind layer " +
                             std::to_string(number) + " need",
                         "reading weights"};
        network.layers.push_back(read_layer(weights, stack, names, options, parts, shared));
        if (weights.fault) return *weights.fault;
    }
    return {};
}

Network outline(const Stack& stack)
{
    Network network;
    network.heads = stack.heads;
    network.head_dim = stack.head_dim;
    network.logit_scale = stack.logit_scale;
    network.causal = stack.causal;
    network.window_before = stack.window_before;
    network.window_after = stack.window_after;
    network.window_is_absence = stack.window_is_absence;
    return network;
}

/// The encoder's words for those of the decoder: the same, or where each side has a vocabulary of its own, the word of
/// the same text, and where there is none a word of the encoder's own, drawn with the seed.
ProbeInput encoder_input(const OpenModel& model, const Stack& encoder, const Stack& decoder,
                         const ProbeInput& input, std::uint64_t seed)
{
    const Vocabulary& words = model.vocabulary_of(encoder.id);
    const Vocabulary& known = model.vocabulary_of(decoder.id);
    if (&words == &known || encoder.content != InputContent::words) return input;
    std::vector<std::int64_t> drawable;
    for (const Vocabulary::Entry& entry : words.entries())
        if (entry.drawable) drawable.push_back(entry.id);
    const std::size_t count = drawable.size();
    drawable = sample_without_replacement(std::move(drawable), count, seed);
    ProbeInput own = input;
    for (std::size_t n = 0; n < own.words.size(); ++n) {
        const Vocabulary::Entry* same = words.has_texts() && known.has_texts()
                                            ? words.find_text(input.words[n]->text)
                                            : words.find_id(input.words[n]->id);
        if (same == nullptr && count > 0) same = words.find_id(drawable[n % count]);
        if (same != nullptr) own.words[n] = same;
    }
    return own;
}

/// The encoder that a decoder's cross-attention reads: all of its layers, over the same words.
Result<std::shared_ptr<const Network>> read_encoder(WeightReader& weights, const OpenModel& model,
                                                    const Stack& decoder, ProbeOptions options,
                                                    const ProbeInput& input, bool with_positions,
                                                    const RunContext& ctx)
{
    const Stack* stack = model.architecture.find_stack("encoder");
    if (stack == nullptr || stack->layers_present < stack->layers)
        return Error{
            ErrorCode::not_found,
            "the layers of the decoder behind the first attend to the encoder, which " +
                in_quotes(model.checkpoint->weights_name()) +
                (stack == nullptr ? " does not hold" : " does not hold whole: " + stack->missing_tensor),
            "reading weights"};
    if (!stack->final_norm_lacks.empty())
        return Error{ErrorCode::not_found,
                     in_quotes(model.checkpoint->weights_name()) + " has no tensor " +
                         in_quotes(stack->final_norm_lacks) +
                         ", which the decoder's layers behind the first need",
                     "reading weights"};
    if (decoder.cross_length > 0) options.length = decoder.cross_length;
    auto network = std::make_shared<Network>(outline(*stack));
    std::vector<std::int64_t> special_positions;
    const ProbeInput own = encoder_input(model, *stack, decoder, input, options.seed);
    if (auto read = read_input(weights, model, *stack, options, own, special_positions, *network); !read)
        return read.error();
    const auto parts_of = [&](std::int64_t) { return LayerParts{true, with_positions}; };
    if (auto read = read_layers(weights, model, *stack, options, stack->layers - 1, parts_of, *network, ctx);
        !read)
        return read.error();
    network->final_norm = weights.norm(stack->final_norm);
    if (weights.fault) return *weights.fault;
    return std::shared_ptr<const Network>(std::move(network));
}

/// The bias table that all layers share, in a file that lacks the layers; empty: none.
std::string shared_bias_table(const Checkpoint& checkpoint, const Stack& stack)
{
    if (!stack.bucketed_bias) return {};
    const Shape wanted{stack.bucketed_bias->buckets, stack.heads};
    std::vector<std::string> found;
    for (const TensorInfo& tensor : checkpoint.tensors())
        if (tensor.name.ends_with("relative_attention_bias.weight") && tensor.shape == wanted)
            found.push_back(tensor.name);
    for (const std::string& name : found)
        if (name.find(stack.id + ".") != std::string::npos) return name;
    return found.size() == 1 ? found.front() : std::string{};
}

/// Nothing positional reaches the hidden states behind these layers, whatever the words.
bool keeps_positions_out(const Stack& stack, const ProbeOptions& options)
{
    const bool in_values =
        stack.relative_vectors && stack.relative_vectors->for_values && !options.no_positions;
    return stack.absolute == AbsolutePositions::none && options.variant == InputVariant::plain &&
           !in_values && stack.feed_forward_width == 1;
}

/// Words that are the same at every position stay the same at every position up to layer `last`.
bool keeps_rows_identical(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                          std::int64_t last)
{
    if (!keeps_positions_out(stack, options)) return false;
    if (!stack.has_cross_attention || last == 0) return true;
    const Stack* encoder = model.architecture.find_stack("encoder");
    return encoder != nullptr && keeps_positions_out(*encoder, options);
}

} // namespace

bool merges_rows(const Stack& stack, std::int64_t last)
{
    const auto count = std::min(stack.layer_names.size(), static_cast<std::size_t>(last) + 1);
    return std::any_of(stack.layer_names.begin(),
                       stack.layer_names.begin() + static_cast<std::ptrdiff_t>(count),
                       [](const LayerNames& layer) { return !layer.merge.empty(); });
}

bool goes_by_one_row(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                     std::int64_t last)
{
    const bool forced = options.force_forward || options.device == DeviceChoice::cuda;
    return (!forced || merges_rows(stack, last)) && keeps_rows_identical(model, stack, options, last);
}

Result<Network> read_network(const OpenModel& model, const Stack& stack, const ProbeOptions& options,
                             const std::vector<int>& layers, const ProbeInput& input,
                             std::vector<std::int64_t>& special_positions, const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    WeightReader weights(*model.checkpoint);
    Network network = outline(stack);
    if (auto read = read_input(weights, model, stack, options, input, special_positions, network); !read)
        return read.error();
    const std::int64_t last = layers.back();
    const bool one_row = goes_by_one_row(model, stack, options, last);
    const auto parts_of = [&](std::int64_t number) {
        const bool wanted = std::find(layers.begin(), layers.end(), number) != layers.end();
        return LayerParts{number < last, wanted || !one_row};
    };
    if (auto read = read_layers(weights, model, stack, options, last, parts_of, network, ctx); !read)
        return read.error();
    if (stack.has_cross_attention && last > 0) {
        auto encoder = read_encoder(weights, model, stack, options, input, !one_row, ctx);
        if (!encoder) return encoder.error();
        network.encoder = *std::move(encoder);
    }
    return network;
}

Result<LayerPositions> read_layer_positions(const OpenModel& model, const Stack& stack, int layer,
                                            std::int64_t length)
{
    WeightReader weights(*model.checkpoint);
    const auto number = static_cast<std::size_t>(layer);
    LayerNames shared;
    shared.relative_bias_table = shared_bias_table(*model.checkpoint, stack);
    const LayerNames& names = number < stack.layer_names.size() ? stack.layer_names[number] : shared;
    ProbeOptions options;
    options.length = length;
    options.segments = false;
    if (stack.needs_prefix) options.variant = InputVariant::special;
    LayerPositions out;
    NetworkLayer read; // its constants only
    read.query.bias = weights.bias(names.query);
    read.key.bias = weights.bias(names.key);
    out.positions = read_positions(weights, stack, names, options);
    if (!weights.fault) fold_extra_queries(weights, stack, names, options, read);
    if (weights.fault) return *weights.fault;
    out.query_constant = std::move(read.query.bias);
    out.key_constant = std::move(read.key.bias);
    out.heads = names.heads > 0 ? names.heads : stack.heads;
    out.head_dim = names.head_dim > 0 ? names.head_dim : stack.head_dim;
    return out;
}

} // namespace posiscope::core
