// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/stack_reader.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/model/families/rotary_config.h"

namespace posiscope::core {

StackReader::StackReader(const TensorNames& names, Architecture& architecture)
    : m_names(names), m_architecture(architecture), m_config(names.checkpoint().config())
{
    m_architecture.notes = names.warnings();
}

void StackReader::enter_config(std::string_view key)
{
    const ConfigJson& whole = m_names.checkpoint().config();
    const auto part = whole.root().find(key);
    if (part == whole.root().end() || !part->is_object()) {
        fail(whole.field_error(key, "is missing; an object with the settings of this stack was expected"));
        return;
    }
    m_config = ConfigJson(*part, whole.file_name() + ", " + std::string(key));
}

void StackReader::fail(Error error)
{
    if (!m_fault) m_fault = std::move(error);
}

void StackReader::note(std::string text)
{
    m_architecture.notes.push_back(std::move(text));
}

std::int64_t StackReader::integer(std::string_view key, std::int64_t least, std::int64_t most)
{
    return take(config().integer(key, least, most), least);
}

std::optional<std::int64_t> StackReader::optional_integer(std::string_view key, std::int64_t least,
                                                          std::int64_t most)
{
    return take(config().optional_integer(key, least, most), std::optional<std::int64_t>{});
}

std::int64_t StackReader::integer_or(std::string_view key, std::int64_t published_default, std::int64_t least,
                                     std::int64_t most)
{
    return optional_integer(key, least, most).value_or(published_default);
}

double StackReader::number_or(std::string_view key, double published_default, double least, double most)
{
    return take(config().optional_number(key, least, most), std::optional<double>{})
        .value_or(published_default);
}

bool StackReader::flag_or(std::string_view key, bool published_default)
{
    return take(config().optional_flag(key), std::optional<bool>{}).value_or(published_default);
}

std::string StackReader::text_or(std::string_view key, std::string_view published_default)
{
    return take(config().optional_text(key), std::optional<std::string>{})
        .value_or(std::string(published_default));
}

double StackReader::epsilon(std::string_view key, double published_default)
{
    return take(checked_epsilon(config(), key, published_default, m_architecture.notes), published_default);
}

std::string StackReader::activation(std::string_view key, std::string_view published_default)
{
    return take(checked_activation(config(), key, published_default, m_architecture.notes),
                std::string(published_default));
}

std::int64_t StackReader::heads(std::string_view key, std::int64_t hidden_size)
{
    return take(checked_heads(config(), key, hidden_size), std::int64_t{1});
}

std::int64_t StackReader::layers(std::string_view key,
                                 const std::function<std::string(std::int64_t)>& first_of_layer,
                                 std::int64_t published_default)
{
    const auto wanted = optional_integer(key, 1, most_layers);
    if (wanted || m_fault) return wanted.value_or(1);
    // Layers that share their weights cannot be counted.
    if (published_default > 0) {
        note(in_quotes(config().file_name()) + " has no " + in_quotes(key) + "; " +
             std::to_string(published_default) + " as published is taken");
        return published_default;
    }
    std::int64_t count = 0;
    while (count < most_layers && m_names.find(first_of_layer(count)) != nullptr) ++count;
    if (count == 0) {
        fail(config().field_error(key, "is missing; a whole number was expected"));
        return 1;
    }
    note(in_quotes(config().file_name()) + " has no " + in_quotes(key) + "; " + std::to_string(count) +
         " was counted from the tensor names");
    return count;
}

RotaryScheme StackReader::rotary(std::int64_t head_dim, double published_base, double published_share)
{
    RotarySettings settings =
        take(read_rotary_settings(config(), head_dim, {published_base, published_share}), RotarySettings{});
    if (!settings.scaling.empty())
        note("rotary positions are scaled by " + in_quotes(settings.scaling, 40) +
             " to inputs longer than those of training");
    return std::move(settings.scheme);
}

std::int64_t StackReader::word_table(Stack& stack, std::string_view canonical, std::string_view size_key,
                                     std::string_view vocabulary_key)
{
    const TensorInfo* table = take<const TensorInfo*>(m_names.require(canonical, {-1, -1}), nullptr);
    if (table == nullptr) return 1;
    stack.word_table = table->name;
    stack.word_rows = table->shape[0];
    const std::int64_t columns =
        take(checked_hidden_size(config(), size_key, *table, m_architecture.notes), std::int64_t{1});
    m_architecture.vocabulary_size =
        take(checked_rows(config(), vocabulary_key, *table, has_cut_vocabulary(m_names.checkpoint()),
                          m_architecture.notes),
             std::int64_t{1});
    return columns;
}

void StackReader::position_table(Stack& stack, std::string_view canonical, std::int64_t columns,
                                 std::string_view key, std::int64_t first_row,
                                 std::int64_t rows_beside_config)
{
    const TensorInfo* table = take<const TensorInfo*>(m_names.require(canonical, {-1, columns}), nullptr);
    if (table == nullptr) return;
    const auto rows =
        take(checked_rows(config(), key, *table, false, m_architecture.notes, rows_beside_config),
             std::int64_t{1});
    stack.absolute = AbsolutePositions::table;
    stack.position_table = table->name;
    stack.first_position_row = first_row;
    stack.length_limit = rows - first_row;
    if (*stack.length_limit < 1)
        fail(Error{ErrorCode::shape_mismatch,
                   "tensor " + in_quotes(table->name) + " has " + std::to_string(rows) +
                       " rows, but the first usable one is row " + std::to_string(first_row),
                   "recognising the network"});
}

void StackReader::token_types(Stack& stack, std::string_view canonical, std::int64_t columns)
{
    const TensorInfo* table = take<const TensorInfo*>(m_names.optional(canonical, {-1, columns}), nullptr);
    if (table != nullptr && table->shape[0] > 0) stack.token_type_table = table->name;
}

NormNames StackReader::norm(const std::string& canonical, NormKind kind, std::int64_t size, double epsilon,
                            bool bias_optional)
{
    const TensorInfo* gain = take<const TensorInfo*>(m_names.require(canonical + ".weight", {size}), nullptr);
    if (gain == nullptr) return {};
    NormNames out{kind, gain->name, {}, epsilon, 0.0};
    if (kind == NormKind::rms_norm) return out;
    const TensorInfo* bias =
        take<const TensorInfo*>(bias_optional ? m_names.optional(canonical + ".bias", {size})
                                              : m_names.require(canonical + ".bias", {size}),
                                nullptr);
    if (bias != nullptr) out.bias = bias->name;
    return out;
}

LinearNames StackReader::linear(const std::string& canonical, std::int64_t out, std::int64_t in,
                                bool transposed)
{
    LinearNames names = linear_if_there(canonical, out, in, transposed);
    if (names.empty() && !m_fault) fail(m_names.missing(canonical + ".weight"));
    return names;
}

void StackReader::final_norm(Stack& stack, const std::string& canonical, NormKind kind, double epsilon)
{
    stack.final_norm = layer_norm_if_there(canonical, kind, stack.hidden_size, epsilon);
    if (stack.final_norm.kind == NormKind::none) stack.final_norm_lacks = canonical + ".weight";
}

std::string StackReader::tensor_if_there(const std::string& canonical, const Shape& shape)
{
    const TensorInfo* found = take<const TensorInfo*>(m_names.optional(canonical, shape), nullptr);
    return found == nullptr ? std::string{} : found->name;
}

NormNames StackReader::layer_norm_if_there(const std::string& canonical, NormKind kind, std::int64_t size,
                                           double epsilon)
{
    NormNames out{kind, tensor_if_there(canonical + ".weight", {size}),
                  kind == NormKind::rms_norm ? std::string{} : tensor_if_there(canonical + ".bias", {size}),
                  epsilon, 0.0};
    if (out.gain.empty()) out.kind = NormKind::none;
    return out;
}

LinearNames StackReader::linear_if_there(const std::string& canonical, std::int64_t out, std::int64_t in,
                                         bool transposed)
{
    const Shape shape = transposed ? Shape{in, out} : Shape{out, in};
    return {tensor_if_there(canonical + ".weight", shape),
            tensor_if_there(canonical + ".bias", {out}),
            transposed,
            {}};
}

LinearNames StackReader::tensor_linear_if_there(const std::string& canonical, const Shape& shape,
                                                bool transposed)
{
    LinearNames names;
    names.weight = tensor_if_there(canonical, shape);
    names.transposed = transposed;
    return names;
}

void StackReader::read_layers(Stack& stack, const std::function<LayerNames(std::int64_t)>& read_layer,
                              const std::function<std::string(std::int64_t)>& query,
                              const std::function<std::string(std::int64_t)>& key)
{
    for (std::int64_t layer = 0; layer < stack.layers && ok(); ++layer) {
        LayerNames found = read_layer(layer);
        if (!ok()) return;
        if (found.query.empty() || found.key.empty()) {
            stack.missing_tensor = m_names.missing(found.query.empty() ? query(layer) : key(layer)).message;
            break;
        }
        stack.layer_names.push_back(std::move(found));
        ++stack.layers_present;
    }
    if (!ok()) return;
    if (stack.layers_present == 0)
        note(stack.missing_tensor + "; no layer can be probed");
    else if (stack.layers_present < stack.layers)
        note("this file holds " + counted(static_cast<std::size_t>(stack.layers_present), "layer", "layers") +
             " of " + std::to_string(stack.layers) +
             (m_architecture.stacks.empty() ? "" : " of the " + stack.id));
}

void StackReader::pad_token(std::optional<std::int64_t> published_default)
{
    const auto pad = optional_integer("pad_token_id", -1, INT64_MAX);
    if (pad && *pad >= 0)
        m_architecture.pad_token_id = *pad;
    else if (!config().root().contains("pad_token_id"))
        m_architecture.pad_token_id = published_default;
}

void StackReader::special_by_config(Stack& stack, std::optional<std::string_view> leading_key,
                                    std::optional<std::string_view> trailing_key)
{
    std::vector<std::int64_t> leading, trailing;
    const auto add = [&](std::optional<std::string_view> key, std::vector<std::int64_t>& to) {
        if (!key) return true;
        const auto id = optional_integer(*key, 0, INT64_MAX);
        if (!id) return false;
        to.push_back(*id);
        m_architecture.special_token_ids.push_back(*id);
        return true;
    };
    const bool has_leading = add(leading_key, leading), has_trailing = add(trailing_key, trailing);
    if (!has_leading || !has_trailing) return;
    stack.special_leading = std::move(leading);
    stack.special_trailing = std::move(trailing);
}

namespace {

std::string layer_prefix(const LayerPattern& pattern, std::int64_t layer)
{
    std::string prefix = pattern.layer;
    if (const std::size_t at = prefix.find("{}"); at != std::string::npos)
        prefix.replace(at, 2, std::to_string(layer));
    return prefix;
}

} // namespace

void read_layers_by_pattern(StackReader& reader, Stack& stack, const LayerPattern& pattern)
{
    const std::int64_t d = stack.hidden_size, width = stack.heads * stack.head_dim;
    const std::int64_t key_heads = pattern.key_heads > 0 ? pattern.key_heads : stack.heads;
    const std::vector<std::int64_t> shared = outputs_of_shared_heads(stack.heads, key_heads, stack.head_dim);
    const auto read = [&](std::int64_t number) {
        const std::string prefix = layer_prefix(pattern, number);
        const auto norm = [&](const std::string& name, std::int64_t size) {
            if (name.empty()) return NormNames{};
            NormNames found = reader.layer_norm_if_there(prefix + name, pattern.norm, size, pattern.epsilon);
            found.gain_offset = pattern.gain_offset;
            return found;
        };
        const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
            if (name.empty()) return LinearNames{};
            return reader.linear_if_there(prefix + name, out, in, pattern.transposed);
        };
        const auto fed = [&](const std::string& name, std::int64_t out, std::int64_t in) {
            if (name.empty() || stack.feed_forward_width == 1) return linear(name, out, in);
            LinearNames names =
                reader.tensor_linear_if_there(prefix + name + ".weight", {out, in, stack.feed_forward_width});
            names.bias = reader.tensor_if_there(prefix + name + ".bias", {out});
            return names;
        };
        const auto vector = [&](const std::string& name) {
            return name.empty() ? std::string{} : reader.tensor_if_there(prefix + name, {d});
        };
        LayerNames layer;
        layer.attention_input_norm = norm(pattern.input_norm, d);
        if (pattern.packed_rows > 0) {
            layer.query = layer.key = layer.value = linear(pattern.query, pattern.packed_rows, d);
            layer.query.outputs = pattern.query_outputs;
            layer.key.outputs = pattern.key_outputs;
            layer.value.outputs = pattern.value_outputs;
        } else {
            layer.query = linear(pattern.query, width, d);
            layer.key = linear(pattern.key, key_heads * stack.head_dim, d);
            layer.value = linear(pattern.value, key_heads * stack.head_dim, d);
            layer.key.outputs = layer.value.outputs = shared;
        }
        layer.query_norm = norm(pattern.query_norm, stack.head_dim);
        layer.key_norm = norm(pattern.key_norm, stack.head_dim);
        layer.attention_output = linear(pattern.output, d, width);
        layer.attention_output_norm = norm(pattern.output_norm, d);
        layer.feed_forward_input_norm = norm(pattern.feed_forward_input_norm, d);
        layer.cross_input_norm = norm(pattern.cross_input_norm, d);
        layer.cross_query = linear(pattern.cross_query, width, d);
        layer.cross_key = linear(pattern.cross_key, width, d);
        layer.cross_value = linear(pattern.cross_value, width, d);
        layer.cross_output = linear(pattern.cross_output, d, width);
        layer.cross_output_norm = norm(pattern.cross_output_norm, d);
        layer.feed_forward_in = fed(pattern.feed_forward_in, pattern.inner_size, d);
        layer.feed_forward_gate = linear(pattern.feed_forward_gate, pattern.inner_size, d);
        layer.feed_forward_out = fed(pattern.feed_forward_out, d, pattern.inner_size);
        layer.attention_branch_scale = vector(pattern.attention_branch_scale);
        layer.feed_forward_branch_scale = vector(pattern.feed_forward_branch_scale);
        layer.feed_forward_output_norm = norm(pattern.feed_forward_output_norm, d);
        std::vector<std::pair<std::string, const LinearNames*>> needed{
            {prefix + pattern.value, &layer.value},
            {prefix + pattern.output, &layer.attention_output},
            {prefix + pattern.feed_forward_in, &layer.feed_forward_in},
            {prefix + pattern.feed_forward_out, &layer.feed_forward_out}};
        if (!pattern.feed_forward_gate.empty())
            needed.emplace_back(prefix + pattern.feed_forward_gate, &layer.feed_forward_gate);
        if (!pattern.cross_query.empty())
            needed.insert(needed.end(), {{prefix + pattern.cross_query, &layer.cross_query},
                                         {prefix + pattern.cross_key, &layer.cross_key},
                                         {prefix + pattern.cross_value, &layer.cross_value},
                                         {prefix + pattern.cross_output, &layer.cross_output}});
        layer.lacks = first_missing(needed);
        const auto check_norm = [&](const std::string& name, const NormNames& found) {
            if (!name.empty() && found.kind == NormKind::none && layer.lacks.empty())
                layer.lacks = prefix + name + ".weight";
        };
        check_norm(pattern.output_norm, layer.attention_output_norm);
        check_norm(pattern.cross_input_norm, layer.cross_input_norm);
        check_norm(pattern.cross_output_norm, layer.cross_output_norm);
        check_norm(pattern.feed_forward_input_norm, layer.feed_forward_input_norm);
        check_norm(pattern.feed_forward_output_norm, layer.feed_forward_output_norm);
        // What stands before the queries cannot be left out without changing them.
        if (!pattern.input_norm.empty() && layer.attention_input_norm.kind == NormKind::none &&
            !layer.query.empty() && !layer.key.empty())
            reader.fail(reader.names().missing(prefix + pattern.input_norm + ".weight"));
        if (!pattern.query_norm.empty() && !layer.query.empty() &&
            (layer.query_norm.kind == NormKind::none || layer.key_norm.kind == NormKind::none))
            reader.fail(reader.names().missing(prefix + pattern.query_norm + ".weight"));
        return layer;
    };
    reader.read_layers(
        stack, read, [&](std::int64_t n) { return layer_prefix(pattern, n) + pattern.query + ".weight"; },
        [&](std::int64_t n) { return layer_prefix(pattern, n) + pattern.key + ".weight"; });
}

std::vector<std::int64_t> run_of_outputs(std::int64_t first, std::int64_t count)
{
    std::vector<std::int64_t> outputs(static_cast<std::size_t>(count));
    for (std::int64_t n = 0; n < count; ++n) outputs[static_cast<std::size_t>(n)] = first + n;
    return outputs;
}

std::vector<std::int64_t> outputs_by_head(std::int64_t heads, std::int64_t head_dim, std::int64_t parts,
                                          std::int64_t part)
{
    std::vector<std::int64_t> outputs;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t f = 0; f < head_dim; ++f) outputs.push_back((h * parts + part) * head_dim + f);
    return outputs;
}

std::vector<std::int64_t> outputs_of_shared_heads(std::int64_t heads, std::int64_t key_heads,
                                                  std::int64_t head_dim)
{
    if (heads == key_heads) return {};
    std::vector<std::int64_t> outputs;
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t f = 0; f < head_dim; ++f) outputs.push_back(h / (heads / key_heads) * head_dim + f);
    return outputs;
}

std::string first_missing(const std::vector<std::pair<std::string, const LinearNames*>>& parts)
{
    for (const auto& [name, linear] : parts)
        if (linear->empty()) return name + ".weight";
    return {};
}

namespace {

void apply_marked_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries, char open,
                             char close)
{
    std::unordered_set<std::int64_t> special(architecture.special_token_ids.begin(),
                                             architecture.special_token_ids.end());
    for (Vocabulary::Entry& entry : entries) {
        const bool marked = entry.text.size() > 2 && entry.text.front() == open && entry.text.back() == close;
        if (marked && special.insert(entry.id).second) architecture.special_token_ids.push_back(entry.id);
        if (special.contains(entry.id)) {
            entry.special = true;
            entry.drawable = false;
        }
    }
}

std::optional<std::int64_t> id_of(const std::vector<Vocabulary::Entry>& entries, std::string_view text)
{
    for (const Vocabulary::Entry& entry : entries)
        if (entry.text == text) return entry.id;
    return std::nullopt;
}

} // namespace

void special_by_text(Architecture& architecture, const std::vector<Vocabulary::Entry>& entries,
                     std::string_view leading, std::string_view trailing)
{
    const auto first = id_of(entries, leading), last = id_of(entries, trailing);
    if (!first || !last) return;
    for (Stack& stack : architecture.stacks) {
        stack.special_leading = {*first};
        stack.special_trailing = {*last};
    }
}

void apply_word_piece_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    apply_marked_vocabulary(architecture, entries, '[', ']');
    for (Vocabulary::Entry& entry : entries)
        if (entry.text.starts_with("##")) entry.drawable = false;
    special_by_text(architecture, entries, "[CLS]", "[SEP]");
}

void apply_angle_bracket_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    apply_marked_vocabulary(architecture, entries, '<', '>');
}

void apply_roberta_vocabulary(Architecture& architecture, std::vector<Vocabulary::Entry>& entries)
{
    apply_angle_bracket_vocabulary(architecture, entries);
    const bool known =
        std::all_of(architecture.stacks.begin(), architecture.stacks.end(), [](const Stack& stack) {
            return !stack.special_leading.empty() || !stack.special_trailing.empty();
        });
    if (!known) special_by_text(architecture, entries, "<s>", "</s>");
}

} // namespace posiscope::core
