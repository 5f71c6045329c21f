// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/base/text.h"
#include "core/model/families/deberta_positions.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"deberta-v2"};
constexpr std::array<std::string_view, 1> name_prefixes{"deberta."};

/// DeBERTa-v2 and v3: offsets in logarithmic buckets, a norm on the table, and the layer's own query and key maps project
/// it where share_att_key.
/// Source: He et al. 2021 (DeBERTa, DeBERTaV3), and the released code.
Result<Architecture> read_deberta_v2(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.published_epsilon = 1e-7;
    if (!reader.flag_or("position_biased_input", true)) body.positions = {};
    body.layers.query = "attention.self.query_proj";
    body.layers.key = "attention.self.key_proj";
    body.layers.value = "attention.self.value_proj";
    Stack stack = read_bert_body(reader, body);
    if (reader.integer_or("conv_kernel_size", 0, 0, 1 << 10) > 0 && !stack.layer_names.empty())
        stack.layer_names.front().lacks =
            "encoder.conv (a convolution behind layer 0, which is not supported)";
    const bool shared = reader.flag_or("share_att_key", false);
    DebertaPositions positions;
    positions.key_map = shared ? "key_proj" : "pos_key_proj";
    positions.query_map = shared ? "query_proj" : "pos_query_proj";
    positions.buckets = std::max<std::int64_t>(0, reader.integer_or("position_buckets", -1, -1, 1 << 20));
    positions.norm_allowed = true;
    read_deberta_positions(reader, stack, positions);
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily deberta_v2_family()
{
    return {"deberta-v2",
            "DeBERTa-v2",
            model_types,
            name_prefixes,
            {},
            read_deberta_v2,
            apply_word_piece_vocabulary};
}

} // namespace posiscope::core
