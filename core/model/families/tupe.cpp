// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"tupe"};
constexpr std::array<std::string_view, 1> name_prefixes{"tupe."};

/// TUPE: BERT whose positions never meet words; a matrix of position against position, with [CLS] untied, and T5's buckets
/// are added to every layer's logits.
/// Source: Ke et al. 2021, eq. 8 to 10.
Result<Architecture> read_tupe(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.positions = {};
    Stack stack = read_bert_body(reader, body);
    stack.scheme_id = "untied_absolute_and_bucketed_bias";
    stack.scheme_label = "untied absolute and bucketed relative bias";
    const auto terms = static_cast<double>(reader.integer_or("attn_scale_factor", 2, 1, 1 << 10));
    stack.logit_scale = 1.0 / std::sqrt(terms * static_cast<double>(stack.head_dim));
    UntiedPositions untied;
    untied.scale = stack.logit_scale;
    untied.resets_first = reader.flag_or("untie_cls", true);
    untied.buckets = reader.integer_or("rel_pos_bins", 32, 2, 1 << 20);
    untied.max_distance = reader.integer_or("max_rel_pos", 128, 2, 1 << 30);
    const std::int64_t d = stack.hidden_size;
    const TensorInfo* table = names.find("encoder.pos.weight");
    untied.table = reader.tensor_if_there("encoder.pos.weight", {-1, d});
    if (untied.table.empty() && reader.ok()) reader.fail(names.missing("encoder.pos.weight"));
    if (reader.ok()) stack.length_limit = table->shape[0] - 1;
    untied.norm = reader.norm("encoder.pos_ln", NormKind::layer_norm, d, 1e-5);
    untied.query = reader.linear("encoder.pos_q_linear", d, d);
    untied.key = reader.linear("encoder.pos_k_linear", d, d);
    untied.bias_table =
        reader.tensor_if_there("encoder.relative_attention_bias.weight", {untied.buckets + 1, stack.heads});
    if (untied.bias_table.empty()) reader.note("there is no bias by bucket: TUPE-A");
    stack.position_table = untied.table;
    stack.untied = std::move(untied);
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily tupe_family()
{
    return {"tupe", "TUPE", model_types, name_prefixes, {}, read_tupe, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
