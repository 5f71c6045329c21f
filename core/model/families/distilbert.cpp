// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"distilbert"};
constexpr std::array<std::string_view, 1> name_prefixes{"distilbert."};
constexpr std::array<std::string_view, 2> signature{"embeddings.position_embeddings.weight",
                                                    "transformer.layer.0.attention.q_lin.weight"};

/// DistilBERT: BERT without token types, with names and config keys of its own.
/// Source: Sanh et al. 2019.
Result<Architecture> read_distilbert(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    BertBody body;
    body.token_types = {};
    body.embedding_size_key = "dim";
    body.heads_key = "n_heads";
    body.layers_key = "n_layers";
    body.inner_key = "hidden_dim";
    body.activation_key = "activation";
    body.epsilon_in_config = false;
    body.layers = {"transformer.layer.{}.",
                   {},
                   "attention.q_lin",
                   "attention.k_lin",
                   "attention.v_lin",
                   "attention.out_lin",
                   {},
                   {},
                   "sa_layer_norm",
                   {},
                   "ffn.lin1",
                   {},
                   "ffn.lin2",
                   "output_layer_norm"};
    Stack stack = read_bert_body(reader, body);
    reader.pad_token(0);
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily distilbert_family()
{
    return {"distilbert",
            "DistilBERT",
            model_types,
            name_prefixes,
            signature,
            read_distilbert,
            apply_word_piece_vocabulary};
}

} // namespace posiscope::core
