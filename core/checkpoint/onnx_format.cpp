// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/onnx_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/protobuf_wire.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most_dimensions = 32;
constexpr std::size_t most_parts = 500'000; // initialisers, and nodes

struct TypeCode {
    std::uint64_t code;
    DType dtype;
};
constexpr std::array type_codes{
    TypeCode{1, DType::f32},   TypeCode{2, DType::u8},       TypeCode{3, DType::i8},
    TypeCode{4, DType::u16},   TypeCode{5, DType::i16},      TypeCode{6, DType::i32},
    TypeCode{7, DType::i64},   TypeCode{9, DType::boolean},  TypeCode{10, DType::f16},
    TypeCode{11, DType::f64},  TypeCode{12, DType::u32},     TypeCode{13, DType::u64},
    TypeCode{16, DType::bf16}, TypeCode{17, DType::f8_e4m3}, TypeCode{19, DType::f8_e5m2},
};

using Kind = WireField::Kind;

struct Node {
    std::string name, operation;
    std::vector<std::string> inputs, outputs;
};

class OnnxReader {
public:
    OnnxReader(const WeightFile& input, TensorFile& file)
        : m_input(input), m_source(*input.source), m_file(file)
    {
    }

    Result<void> run(const RunContext& ctx)
    {
        WireReader model(m_source, 0, m_source.size());
        bool has_graph = false;
        while (const auto field = model.next()) {
            if (field->number != 7 || field->kind != Kind::bytes) continue;
            has_graph = true;
            if (auto done = read_graph(*field, ctx); !done) return done;
        }
        if (!model.fault().empty()) return fault("the model " + model.fault());
        if (!has_graph) return fault("the model has no graph");
        rename_matrices();
        return {};
    }

private:
    [[nodiscard]] Error fault(const std::string& what) const
    {
        return Error{ErrorCode::corrupt_file, in_quotes(m_source.name()) + ": " + what, "ONNX model"};
    }

    Result<void> read_graph(const WireField& graph, const RunContext& ctx)
    {
        WireReader fields(m_source, graph.begin, graph.begin + graph.size);
        while (const auto field = fields.next()) {
            if (field->kind != Kind::bytes) continue;
            if (ctx.cancelled()) return cancelled_error("opening a checkpoint");
            if (m_file.tensors.size() > most_parts || m_nodes.size() > most_parts)
                return fault("the graph has more than " + std::to_string(most_parts) + " parts");
            if (field->number == 1) {
                if (auto done = read_node(*field); !done) return done;
            } else if (field->number == 5) {
                if (auto done = read_initializer(*field); !done) return done;
            }
        }
        if (!fields.fault().empty()) return fault("the graph " + fields.fault());
        return {};
    }

    Result<void> read_node(const WireField& message)
    {
        Node node;
        WireReader fields(m_source, message.begin, message.begin + message.size);
        while (const auto field = fields.next()) {
            if (field->kind != Kind::bytes || field->number > 4) continue;
            std::string text = WireReader::text(m_source, *field);
            if (field->number == 1 && node.inputs.size() < 4)
                node.inputs.push_back(std::move(text));
            else if (field->number == 2 && node.outputs.size() < 4)
                node.outputs.push_back(std::move(text));
            else if (field->number == 3)
                node.name = std::move(text);
            else if (field->number == 4)
                node.operation = std::move(text);
        }
        if (!fields.fault().empty()) return fault("a node of the graph " + fields.fault());
        if (node.operation == "MatMul" || node.operation == "Add") m_nodes.push_back(std::move(node));
        return {};
    }

    /// What the fields of an initialiser say, before they are held against each other.
    struct Initializer {
        std::string name;
        std::vector<std::uint64_t> dims;
        std::uint64_t type = 0;
        std::optional<WireField> raw;
        std::vector<WireField> typed; ///< pieces of float_data, int32_data and so on
        std::map<std::string, std::string, std::less<>> external;
        bool is_external = false;
    };

    Result<void> read_initializer(const WireField& message)
    {
        Initializer found;
        WireReader fields(m_source, message.begin, message.begin + message.size);
        while (const auto field = fields.next()) {
            switch (field->number) {
            case 1:
                if (field->kind == Kind::varint) {
                    found.dims.push_back(field->value);
                } else if (field->kind == Kind::bytes) {
                    WireReader packed(m_source, field->begin, field->begin + field->size);
                    while (!packed.at_end() && packed.fault().empty() && found.dims.size() <= most_dimensions)
                        if (const auto size = packed.varint()) found.dims.push_back(*size);
                    if (!packed.fault().empty()) return fault("an initialiser's shape " + packed.fault());
                }
                if (found.dims.size() > most_dimensions)
                    return fault("an initialiser has more than " + std::to_string(most_dimensions) +
                                 " dimensions");
                break;
            case 2: found.type = field->value; break;
            case 4:
            case 5:
            case 7:
            case 10:
            case 11:
                // The list of numbers is one field where it is packed, and many where it is not.
                if (field->kind == Kind::bytes && found.typed.size() < 1'000)
                    found.typed.push_back(*field);
                else
                    return fault("an initialiser stores its numbers one by one, which is not read");
                break;
            case 8: found.name = WireReader::text(m_source, *field); break;
            case 9: found.raw = *field; break;
            case 13: {
                WireReader pair(m_source, field->begin, field->begin + field->size);
                std::string key, value;
                while (const auto part = pair.next()) {
                    if (part->kind != Kind::bytes) continue;
                    if (part->number == 1) key = WireReader::text(m_source, *part);
                    if (part->number == 2) value = WireReader::text(m_source, *part);
                }
                if (found.external.size() < 16) found.external[key] = value;
                break;
            }
            case 14: found.is_external = field->value == 1; break;
            default: break;
            }
        }
        if (!fields.fault().empty()) return fault("an initialiser " + fields.fault());
        return add(found);
    }

    Result<void> add(const Initializer& found)
    {
        const std::string tensor = "tensor " + in_quotes(found.name);
        const auto* row = std::find_if(type_codes.begin(), type_codes.end(),
                                       [&](const TypeCode& known) { return known.code == found.type; });
        if (found.type == 8) {
            m_file.absent.emplace(found.name, "holds text");
            m_file.warnings.push_back(tensor + " in " + in_quotes(m_source.name()) +
                                      " holds text; it is left out");
            return {};
        }
        if (row == type_codes.end())
            return fault(tensor + " has the data type " + std::to_string(found.type) +
                         ", which is not known");
        TensorInfo info;
        info.name = found.name;
        info.dtype = row->dtype;
        for (const std::uint64_t size : found.dims) {
            if (size > static_cast<std::uint64_t>(INT64_MAX)) return fault(tensor + " has a negative size");
            info.shape.push_back(static_cast<std::int64_t>(size));
        }
        const auto count = element_count(info.shape);
        const auto bytes = count ? stored_bytes(info.dtype, *count) : std::nullopt;
        if (!bytes) return fault(tensor + ": shape " + shape_text(info.shape) + " is too large for any file");
        const auto wrong_size = [&](std::uint64_t present) {
            return fault(tensor + " of shape " + shape_text(info.shape) + " takes " + std::to_string(*bytes) +
                         " bytes, but " + std::to_string(present) + " are stored");
        };
        if (found.is_external || (!found.raw && !found.external.empty())) {
            auto placed = place_external(found, *bytes, info);
            if (!placed) return placed;
        } else if (found.raw) {
            if (found.raw->size != *bytes) return wrong_size(found.raw->size);
            info.begin = found.raw->begin;
            info.end = info.begin + *bytes;
        } else if (auto placed = place_typed(found, *count, *bytes, info); !placed) {
            return placed;
        }
        if (!m_names.insert(info.name).second) return fault(tensor + " is there twice");
        m_file.tensors.push_back(std::move(info));
        return {};
    }

    /// Numbers in a typed list: floating-point ones lie in the file as they are, whole numbers as varints.
    Result<void> place_typed(const Initializer& found, std::uint64_t count, std::uint64_t bytes,
                             TensorInfo& info)
    {
        const std::string tensor = "tensor " + in_quotes(found.name);
        std::uint64_t stored = 0;
        for (const WireField& field : found.typed) stored += field.size;
        const bool is_plain = info.dtype == DType::f32 || info.dtype == DType::f64;
        if (is_plain && (found.typed.size() == 1 || count == 0)) {
            if (stored != bytes)
                return fault(tensor + " of shape " + shape_text(info.shape) + " takes " +
                             std::to_string(bytes) + " bytes, but " + std::to_string(stored) + " are stored");
            if (count == 0) return {};
            info.begin = found.typed.front().begin;
            info.end = info.begin + bytes;
            return {};
        }
        if (count > stored)
            return fault(tensor + " of shape " + shape_text(info.shape) + " has only " +
                         std::to_string(stored) + " bytes of numbers");
        std::vector<std::byte> values;
        const std::size_t size = dtype_size(info.dtype);
        values.reserve(static_cast<std::size_t>(bytes));
        for (const WireField& field : found.typed) {
            WireReader packed(m_source, field.begin, field.begin + field.size);
            while (!packed.at_end()) {
                const auto value = packed.varint();
                if (!value || values.size() + size > bytes)
                    return fault(tensor + " does not hold as many numbers as its shape " +
                                 shape_text(info.shape));
                for (std::size_t n = 0; n < size; ++n)
                    values.push_back(static_cast<std::byte>(*value >> (8 * n)));
            }
        }
        if (values.size() != bytes)
            return fault(tensor + " does not hold as many numbers as its shape " + shape_text(info.shape));
        info.source = m_file.sources.size();
        info.end = bytes;
        m_file.sources.push_back(owning_source(m_source.name(), std::move(values)));
        return {};
    }

    Result<void> place_external(const Initializer& found, std::uint64_t bytes, TensorInfo& info)
    {
        const std::string tensor = "tensor " + in_quotes(found.name);
        const auto location = found.external.find("location");
        if (location == found.external.end())
            return fault(tensor + " lies in another file that is not named");
        if (!is_plain_file_name(location->second))
            return fault(tensor + " points to " + in_quotes(location->second, 120) +
                         ", outside the model's folder; it was not opened");
        const auto number = [&](std::string_view key,
                                std::uint64_t fallback) -> std::optional<std::uint64_t> {
            const auto at = found.external.find(key);
            if (at == found.external.end()) return fallback;
            std::uint64_t value = 0;
            const char* const last = at->second.data() + at->second.size();
            const auto [end, wrong] = std::from_chars(at->second.data(), last, value);
            return wrong == std::errc{} && end == last ? std::optional(value) : std::nullopt;
        };
        const auto offset = number("offset", 0), length = number("length", bytes);
        if (!offset || !length)
            return fault(tensor + " has an external offset or length that is no whole number");
        const auto [at, added] = m_external.emplace(location->second, m_file.sources.size());
        if (added) {
            auto opened = m_input.store->open(location->second);
            if (!opened)
                return Error{opened.error().code,
                             in_quotes(m_source.name()) + ": " + tensor + ": " + opened.error().message,
                             "ONNX external data"};
            m_file.sources.push_back(*opened);
            m_file.files.push_back(*std::move(opened));
        }
        const std::uint64_t size = m_file.sources[at->second]->size();
        if (*length != bytes || *offset > size || bytes > size - *offset)
            return fault(tensor + " of shape " + shape_text(info.shape) + " claims " +
                         std::to_string(*length) + " bytes at byte " + std::to_string(*offset) + " of " +
                         in_quotes(location->second) + ", which has " + std::to_string(size));
        info.source = at->second;
        info.begin = *offset;
        info.end = *offset + bytes;
        return {};
    }

    /// Gives matrices back the names that the exporter took from them.
    void rename_matrices()
    {
        std::map<std::string, const Node*> by_weight, by_output;
        for (const Node& node : m_nodes)
            if (node.operation == "MatMul" && node.inputs.size() == 2 && !node.outputs.empty() &&
                m_names.contains(node.inputs[1])) {
                by_weight.emplace(node.inputs[1], &node);
                by_output.emplace(node.outputs[0], &node);
            }
        std::map<std::string, std::string> names; // stored -> own
        constexpr std::string_view bias = ".bias";
        for (const Node& node : m_nodes) {
            if (node.operation != "Add" || node.inputs.size() != 2) continue;
            for (std::size_t n = 0; n < 2; ++n) {
                const auto product = by_output.find(node.inputs[n]);
                const std::string& added = node.inputs[1 - n];
                if (product == by_output.end() || !added.ends_with(bias) || !m_names.contains(added))
                    continue;
                names.emplace(product->second->inputs[1],
                              added.substr(0, added.size() - bias.size()) + ".weight");
            }
        }
        for (const auto& [stored, node] : by_weight) {
            const std::size_t slash = node->name.rfind('/');
            if (names.contains(stored) || slash == std::string::npos || slash == 0) continue;
            std::string name = node->name.substr(node->name.front() == '/' ? 1 : 0,
                                                 slash - (node->name.front() == '/' ? 1 : 0));
            std::replace(name.begin(), name.end(), '/', '.');
            names.emplace(stored, name + ".weight");
        }
        for (TensorInfo& info : m_file.tensors) {
            const auto own = names.find(info.name);
            // Names with a meaning are left alone: only "onnx::MatMul_252" and the like are lost ones.
            if (own == names.end() || info.shape.size() != 2 || info.name.find("::") == std::string::npos ||
                m_names.contains(own->second))
                continue;
            m_names.insert(own->second);
            info.stored_name = std::exchange(info.name, own->second);
            transpose(info);
        }
    }

    const WeightFile& m_input;
    const ByteSource& m_source;
    TensorFile& m_file;
    std::vector<Node> m_nodes;
    std::set<std::string> m_names;
    std::map<std::string, std::size_t> m_external;
};

} // namespace

bool is_onnx(const ByteSource& source)
{
    std::array<std::byte, 3> start{};
    if (source.size() < start.size() || !source.read(0, start)) return false;
    const auto byte = [&](std::size_t n) { return std::to_integer<unsigned>(start[n]); };
    // ir_version; then producer, its version, the domain, the model's version, a note, the graph, operator sets.
    constexpr std::array<unsigned, 7> keys{0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42};
    return byte(0) == 0x08 && byte(1) >= 1 && byte(1) < 0x40 &&
           std::find(keys.begin(), keys.end(), byte(2)) != keys.end();
}

Result<TensorFile> open_onnx(const WeightFile& input, const RunContext& ctx)
{
    TensorFile file;
    file.format = "onnx";
    file.sources.push_back(input.source);
    file.files.push_back(input.source);
    if (auto done = OnnxReader(input, file).run(ctx); !done) return done.error();
    if (file.tensors.empty())
        return Error{ErrorCode::corrupt_file,
                     in_quotes(input.source->name()) + " is an ONNX model without initialisers",
                     "ONNX model"};
    return file;
}

} // namespace posiscope::core
