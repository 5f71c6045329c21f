// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/checkpoint_builder.h"

namespace posiscope::tests {

/// A GGUF file of version 3 in the making.
/// Source: ggml's docs/gguf.md.
class GgufFile {
public:
    std::vector<BuiltTensor> tensors; ///< all written as F32

    void text(std::string_view key, std::string_view value) { add(key, 8, of_text(value)); }
    void number(std::string_view key, std::uint64_t value) { add(key, 4, little(value, 4)); }
    void real(std::string_view key, float value) { add(key, 6, encoded(core::DType::f32, value)); }
    void texts(std::string_view key, const std::vector<std::string>& values)
    {
        std::string bytes = little(8, 4) + little(values.size(), 8);
        for (const std::string& value : values) bytes += of_text(value);
        add(key, 9, bytes);
    }
    void numbers(std::string_view key, const std::vector<int>& values)
    {
        std::string bytes = little(5, 4) + little(values.size(), 8);
        for (const int value : values) bytes += little(static_cast<std::uint64_t>(value), 4);
        add(key, 9, bytes);
    }

    [[nodiscard]] std::string bytes() const
    {
        constexpr std::size_t alignment = 32;
        std::string header =
            "GGUF" + little(3, 4) + little(tensors.size(), 8) + little(m_entries, 8) + m_metadata;
        std::string data;
        for (const BuiltTensor& tensor : tensors) {
            data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
            header += of_text(tensor.name) + little(tensor.shape.size(), 4);
            for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
                header += little(static_cast<std::uint64_t>(*size), 8);
            header += little(0, 4) + little(data.size(), 8);
            for (const float value : tensor.values) data += encoded(core::DType::f32, value);
        }
        header.resize((header.size() + alignment - 1) / alignment * alignment, '\0');
        return header + data;
    }

private:
    static std::string little(std::uint64_t value, int size)
    {
        std::string out;
        for (int n = 0; n < size; ++n) out += static_cast<char>(value >> (8 * n));
        return out;
    }
    static std::string of_text(std::string_view value)
    {
        return little(value.size(), 8) + std::string(value);
    }
    void add(std::string_view key, std::uint64_t type, const std::string& value)
    {
        ++m_entries;
        m_metadata += of_text(key) + little(type, 4) + value;
    }

    std::uint64_t m_entries = 0;
    std::string m_metadata;
};

/// A BERT (or RoBERTa) as the conversion to GGUF writes it: its names, and no rows of the position table before that of
/// position 0. Without a vocabulary.
/// @param bert  canonical names behind `prefix`
inline GgufFile converted_bert(const CheckpointBuilder& bert, const std::string& prefix,
                               std::int64_t first_row)
{
    struct Name {
        std::string_view from, to;
    };
    static constexpr std::array<Name, 4> outside{Name{"embeddings.word_embeddings", "token_embd"},
                                                 {"embeddings.position_embeddings", "position_embd"},
                                                 {"embeddings.token_type_embeddings", "token_types"},
                                                 {"embeddings.LayerNorm", "token_embd_norm"}};
    static constexpr std::array<Name, 8> inside{Name{"attention.self.query", "attn_q"},
                                                {"attention.self.key", "attn_k"},
                                                {"attention.self.value", "attn_v"},
                                                {"attention.output.dense", "attn_output"},
                                                {"attention.output.LayerNorm", "attn_output_norm"},
                                                {"intermediate.dense", "ffn_up"},
                                                {"output.dense", "ffn_down"},
                                                {"output.LayerNorm", "layer_output_norm"}};
    GgufFile file;
    const auto number = [&](const char* key) { return bert.config.at(key).get<std::uint64_t>(); };
    file.text("general.architecture", "bert");
    file.number("bert.block_count", number("num_hidden_layers"));
    file.number("bert.embedding_length", number("hidden_size"));
    file.number("bert.feed_forward_length", number("intermediate_size"));
    file.number("bert.attention.head_count", number("num_attention_heads"));
    file.number("bert.context_length",
                number("max_position_embeddings") - static_cast<std::uint64_t>(first_row));
    file.real("bert.attention.layer_norm_epsilon", bert.config.at("layer_norm_eps").get<float>());
    for (BuiltTensor tensor : bert.tensors) {
        if (!tensor.name.starts_with(prefix)) continue;
        std::string stem = tensor.name.substr(prefix.size());
        const std::string leaf = stem.substr(stem.rfind('.'));
        stem.resize(stem.size() - leaf.size());
        std::string name;
        for (const Name& row : outside)
            if (stem == row.from) name = row.to;
        if (constexpr std::string_view layers = "encoder.layer."; stem.starts_with(layers)) {
            const std::size_t dot = stem.find('.', layers.size());
            for (const Name& row : inside)
                if (stem.substr(dot + 1) == row.from)
                    name =
                        "blk." + stem.substr(layers.size(), dot - layers.size()) + "." + std::string(row.to);
        }
        if (name.empty()) continue; // heads and poolers
        if (name == "position_embd") {
            tensor.values.erase(tensor.values.begin(), tensor.values.begin() + first_row * tensor.shape[1]);
            tensor.shape[0] -= first_row;
        }
        tensor.name = name + leaf;
        file.tensors.push_back(std::move(tensor));
    }
    return file;
}

} // namespace posiscope::tests
