// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <QTemporaryDir>

#include <nlohmann/json.hpp>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace posiscope::tests {

/// A folder of its own that goes away with the object.
class TemporaryFolder {
public:
    [[nodiscard]] std::string path() const { return m_folder.path().toStdString(); }
    [[nodiscard]] std::string file(std::string_view name) const { return path() + "/" + std::string(name); }
    /// Writes a file, subfolders included, and returns its path.
    std::string write(std::string_view name, std::string_view bytes) const;

private:
    QTemporaryDir m_folder;
};

/// The bytes of one number as it is stored in a file, little-endian. The number must be exact in the type, or a NaN or
/// an infinity that the type has.
std::string encoded(core::DType dtype, float value);

/// One tensor to be written.
struct BuiltTensor {
    std::string name;
    core::Shape shape;
    std::vector<float> values;
    core::DType dtype = core::DType::f32;
};

/// A safetensors file from its header and its data, whatever they say.
std::string safetensors_bytes(std::string_view header, std::string_view data);
std::string safetensors_bytes(const std::vector<BuiltTensor>& tensors);

/// How large a tiny BERT is, and how its weights are drawn.
struct TinyBert {
    std::int64_t vocabulary = 40;
    std::int64_t hidden_size = 16;
    std::int64_t heads = 2;
    std::int64_t layers = 1;
    std::int64_t positions = 40;
    std::int64_t intermediate_size = 24;
    std::uint64_t seed = 1;
    /// Multiples of 1/4 up to 7/4 instead of normal deviates: exact in every floating-point type.
    bool exact_values = false;
};

/// A Hugging Face folder with a tiny BERT: valid as it is made; tests change tensors, config and words to get one
/// with a fault. Words are [PAD] [UNK] [CLS] [SEP] [MASK] [unused0] ##ing ##ed w8 w9 ...: the first 8 are never drawn.
class CheckpointBuilder {
public:
    explicit CheckpointBuilder(const TinyBert& sizes = {});

    TinyBert sizes;
    std::vector<BuiltTensor> tensors; ///< in file order, canonical names
    nlohmann::json config;
    std::vector<std::string> words; ///< lines of vocab.txt; empty: no such file

    /// The tensor of this name; there must be one.
    BuiltTensor& tensor(std::string_view name);
    [[nodiscard]] const BuiltTensor& tensor(std::string_view name) const;
    void remove(std::string_view name);
    void rename(std::string_view from, const std::string& to);
    void add_prefix(const std::string& prefix);
    void set_dtype(core::DType dtype);

    /// Writes config.json, model.safetensors and vocab.txt.
    void write_to(const TemporaryFolder& folder) const;
};

/// Ids that CheckpointBuilder gives to special tokens, and the first word that may be drawn.
inline constexpr std::int64_t built_pad_id = 0;
inline constexpr std::int64_t built_cls_id = 2;
inline constexpr std::int64_t built_sep_id = 3;
inline constexpr std::int64_t built_first_word = 8;

/// Names of the first layer's tensors.
inline constexpr const char* word_table_name = "embeddings.word_embeddings.weight";
inline constexpr const char* position_table_name = "embeddings.position_embeddings.weight";
inline constexpr const char* query_weight_name = "encoder.layer.0.attention.self.query.weight";
inline constexpr const char* key_weight_name = "encoder.layer.0.attention.self.key.weight";

} // namespace posiscope::tests
