// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"nezha"};
constexpr std::array<std::string_view, 1> name_prefixes{"nezha."};

/// NEZHA: BERT without position vectors; sinusoids of the clipped offset, interleaved over the features of a head, meet
/// the queries and are added to the values. No tensor holds them.
/// Source: Wei et al. 2019, sec. 2.2.
Result<Architecture> read_nezha(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.positions = {};
    Stack stack = read_bert_body(reader, body);
    stack.scheme_id = "relative_sinusoidal";
    stack.scheme_label = "relative sinusoidal keys and values";
    const std::int64_t furthest = reader.integer_or("max_relative_position", 64, 1, 1 << 28);
    RelativeVectors vectors;
    vectors.rows = 2 * furthest + 1;
    vectors.centre = furthest;
    vectors.features = stack.head_dim;
    vectors.for_keys = vectors.for_values = true;
    vectors.computed = true;
    vectors.sinusoidal.interleaved = true;
    stack.relative_vectors = vectors;
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily nezha_family()
{
    return {"nezha", "NEZHA", model_types, name_prefixes, {}, read_nezha, apply_word_piece_vocabulary};
}

} // namespace posiscope::core
