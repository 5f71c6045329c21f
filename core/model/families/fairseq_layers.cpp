// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/fairseq_layers.h"

namespace posiscope::core {

LayerPattern fairseq_layers(const std::string& id, bool pre_norm)
{
    LayerPattern layers{id + ".layers.{}.",
                        {},
                        "self_attn.q_proj",
                        "self_attn.k_proj",
                        "self_attn.v_proj",
                        "self_attn.out_proj",
                        {},
                        {},
                        {},
                        {},
                        "fc1",
                        {},
                        "fc2",
                        {}};
    (pre_norm ? layers.input_norm : layers.output_norm) = "self_attn_layer_norm";
    (pre_norm ? layers.feed_forward_input_norm : layers.feed_forward_output_norm) = "final_layer_norm";
    if (id != "decoder") return layers;
    layers.cross_query = "encoder_attn.q_proj";
    layers.cross_key = "encoder_attn.k_proj";
    layers.cross_value = "encoder_attn.v_proj";
    layers.cross_output = "encoder_attn.out_proj";
    (pre_norm ? layers.cross_input_norm : layers.cross_output_norm) = "encoder_attn_layer_norm";
    return layers;
}

} // namespace posiscope::core
