// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/checkpoint_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/base/random.h"

namespace posiscope::tests {
namespace {

template <class T>
std::string raw(T value)
{
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

/// The layout of a small floating-point type.
struct SmallFloat {
    int exponent_bits;
    int mantissa_bits;
    bool has_infinity; ///< all exponent bits set stand for infinities and NaN
};

/// Bits of a number in a small floating-point type, worked out from the type's definition.
unsigned small_float_bits(float value, const SmallFloat& type)
{
    const int bias = (1 << (type.exponent_bits - 1)) - 1;
    const int largest_exponent = (1 << type.exponent_bits) - 1;
    const unsigned sign = std::signbit(value) ? 1u << (type.exponent_bits + type.mantissa_bits) : 0u;
    if (std::isnan(value)) {
        const unsigned mantissa =
            type.has_infinity ? 1u << (type.mantissa_bits - 1) : (1u << type.mantissa_bits) - 1u;
        return sign | (static_cast<unsigned>(largest_exponent) << type.mantissa_bits) | mantissa;
    }
    if (std::isinf(value)) {
        if (!type.has_infinity) throw std::invalid_argument("this type has no infinity");
        return sign | (static_cast<unsigned>(largest_exponent) << type.mantissa_bits);
    }
    if (value == 0.0f) return sign;
    const int exponent = std::max(std::ilogb(value), 1 - bias);
    const double scaled = std::ldexp(std::abs(static_cast<double>(value)), type.mantissa_bits - exponent);
    if (scaled != std::floor(scaled) || exponent > largest_exponent - bias)
        throw std::invalid_argument("the number is not exact in this type");
    // A subnormal number has no leading one to take off, and exponent field 0.
    const unsigned whole = static_cast<unsigned>(scaled);
    const unsigned one = 1u << type.mantissa_bits;
    if (whole < one) return sign | whole;
    return sign | (static_cast<unsigned>(exponent + bias) << type.mantissa_bits) | (whole - one);
}

std::size_t element_count(const core::Shape& shape)
{
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    return count;
}

/// Adds tensors whose values are drawn.
class Drawer {
public:
    Drawer(CheckpointBuilder& builder, const TinyBert& sizes)
        : m_builder(builder), m_random(sizes.seed), m_exact(sizes.exact_values)
    {
    }

    /// centre + spread * a normal deviate.
    void add(const std::string& name, const core::Shape& shape, double spread, double centre = 0.0)
    {
        BuiltTensor made{name, shape, std::vector<float>(element_count(shape)), core::DType::f32};
        for (float& value : made.values) {
            constexpr double steps = 7.0;
            value = static_cast<float>(m_exact ? (static_cast<double>(m_random.below(15)) - steps) / 4.0
                                               : centre + spread * m_random.normal());
        }
        m_builder.tensors.push_back(std::move(made));
    }

    void add_linear(const std::string& name, std::int64_t out, std::int64_t in)
    {
        add(name + ".weight", {out, in}, 1.0 / std::sqrt(static_cast<double>(in)));
        add(name + ".bias", {out}, 0.3);
    }

    void add_norm(const std::string& name, std::int64_t size)
    {
        add(name + ".weight", {size}, 0.2, 1.0);
        add(name + ".bias", {size}, 0.2);
    }

private:
    CheckpointBuilder& m_builder;
    core::Random m_random;
    bool m_exact;
};

} // namespace

std::string TemporaryFolder::write(std::string_view name, std::string_view bytes) const
{
    const std::filesystem::path path = file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("a test file cannot be written: " + path.string());
    return path.string();
}

std::string encoded(core::DType dtype, float value)
{
    using core::DType;
    switch (dtype) {
    case DType::f64: return raw(static_cast<double>(value));
    case DType::f32: return raw(value);
    case DType::f16: return raw(static_cast<std::uint16_t>(small_float_bits(value, {5, 10, true})));
    case DType::bf16: return raw(static_cast<std::uint16_t>(small_float_bits(value, {8, 7, true})));
    case DType::f8_e4m3: return raw(static_cast<std::uint8_t>(small_float_bits(value, {4, 3, false})));
    case DType::f8_e5m2: return raw(static_cast<std::uint8_t>(small_float_bits(value, {5, 2, true})));
    case DType::i64: return raw(static_cast<std::int64_t>(value));
    case DType::i32: return raw(static_cast<std::int32_t>(value));
    case DType::i16: return raw(static_cast<std::int16_t>(value));
    case DType::i8: return raw(static_cast<std::int8_t>(value));
    case DType::u64: return raw(static_cast<std::uint64_t>(value));
    case DType::u32: return raw(static_cast<std::uint32_t>(value));
    case DType::u16: return raw(static_cast<std::uint16_t>(value));
    case DType::u8: return raw(static_cast<std::uint8_t>(value));
    case DType::boolean: return raw(static_cast<std::uint8_t>(value != 0.0f));
    default: break; // types kept in blocks have no bytes of one number
    }
    throw std::invalid_argument("unknown type");
}

std::string safetensors_bytes(std::string_view header, std::string_view data)
{
    return raw(static_cast<std::uint64_t>(header.size())) + std::string(header) + std::string(data);
}

std::string safetensors_bytes(const std::vector<BuiltTensor>& tensors)
{
    // Written piece by piece: an object of the JSON library would sort the names.
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
    std::string data;
    for (const BuiltTensor& tensor : tensors) {
        const std::size_t begin = data.size();
        for (const float value : tensor.values) data += encoded(tensor.dtype, value);
        header += "," + nlohmann::json(tensor.name).dump() + ":" +
                  nlohmann::json{{"dtype", core::dtype_name(tensor.dtype)},
                                 {"shape", tensor.shape},
                                 {"data_offsets", {begin, data.size()}}}
                      .dump();
    }
    return safetensors_bytes(header + "}", data);
}

CheckpointBuilder::CheckpointBuilder(const TinyBert& wanted) : sizes(wanted)
{
    const std::int64_t d = sizes.hidden_size;
    Drawer draw(*this, sizes);
    draw.add(word_table_name, {sizes.vocabulary, d}, 0.8);
    draw.add(position_table_name, {sizes.positions, d}, 0.5);
    draw.add("embeddings.token_type_embeddings.weight", {2, d}, 0.2);
    draw.add_norm("embeddings.LayerNorm", d);
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
        const std::string at = "encoder.layer." + std::to_string(layer) + ".";
        for (const char* name :
             {"attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"})
            draw.add_linear(at + name, d, d);
        draw.add_norm(at + "attention.output.LayerNorm", d);
        draw.add_linear(at + "intermediate.dense", sizes.intermediate_size, d);
        draw.add_linear(at + "output.dense", d, sizes.intermediate_size);
        draw.add_norm(at + "output.LayerNorm", d);
    }
    config = {{"model_type", "bert"},
              {"hidden_size", d},
              {"num_attention_heads", sizes.heads},
              {"num_hidden_layers", sizes.layers},
              {"intermediate_size", sizes.intermediate_size},
              {"max_position_embeddings", sizes.positions},
              {"vocab_size", sizes.vocabulary},
              {"type_vocab_size", 2},
              {"hidden_act", "gelu"},
              {"layer_norm_eps", 1e-12},
              {"pad_token_id", built_pad_id}};
    words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "##ing", "##ed"};
    for (std::int64_t id = built_first_word; id < sizes.vocabulary; ++id)
        words.push_back("w" + std::to_string(id));
}

BuiltTensor& CheckpointBuilder::tensor(std::string_view name)
{
    return const_cast<BuiltTensor&>(std::as_const(*this).tensor(name));
}

const BuiltTensor& CheckpointBuilder::tensor(std::string_view name) const
{
    const auto at =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
    if (at == tensors.end()) throw std::out_of_range("no tensor " + std::string(name));
    return *at;
}

void CheckpointBuilder::remove(std::string_view name)
{
    std::erase_if(tensors, [&](const BuiltTensor& one) { return one.name == name; });
}

void CheckpointBuilder::rename(std::string_view from, const std::string& to)
{
    tensor(from).name = to;
}

void CheckpointBuilder::add_prefix(const std::string& prefix)
{
    for (BuiltTensor& one : tensors) one.name = prefix + one.name;
}

void CheckpointBuilder::set_dtype(core::DType dtype)
{
    for (BuiltTensor& one : tensors) one.dtype = dtype;
}

void CheckpointBuilder::write_to(const TemporaryFolder& folder) const
{
    folder.write("model.safetensors", safetensors_bytes(tensors));
    folder.write("config.json", config.dump(1));
    if (words.empty()) return;
    std::string lines;
    for (const std::string& word : words) lines += word + "\n";
    folder.write("vocab.txt", lines);
}

} // namespace posiscope::tests
