// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/family_table.h"

namespace posiscope::core {

// One function a family, each in a file of its own beside this one; family_table.cpp lists them.
ModelFamily albert_family();
ModelFamily bart_family();
ModelFamily beit_family();
ModelFamily bert_family();
ModelFamily bert_generation_family();
ModelFamily blenderbot_small_family();
ModelFamily bloom_family();
ModelFamily clip_family();
ModelFamily deberta_family();
ModelFamily deberta_v2_family();
ModelFamily deit_family();
ModelFamily dinov2_family();
ModelFamily distilbert_family();
ModelFamily electra_family();
ModelFamily esm_family();
ModelFamily fairseq_family();
ModelFamily falcon_family();
ModelFamily fconv_family();
ModelFamily gpt2_family();
ModelFamily gpt_neox_family();
ModelFamily gptj_family();
ModelFamily llama_family();
ModelFamily longformer_family();
ModelFamily m2m100_family();
ModelFamily marian_family();
ModelFamily mbart_family();
ModelFamily mpnet_family();
ModelFamily mpt_family();
ModelFamily nezha_family();
ModelFamily openai_gpt_family();
ModelFamily opennmt_family();
ModelFamily opt_family();
ModelFamily pegasus_family();
ModelFamily roberta_family();
ModelFamily roformer_family();
ModelFamily siglip_family();
ModelFamily swin_family();
ModelFamily t5_family();
ModelFamily torch_transformer_family();
ModelFamily transfo_xl_family();
ModelFamily tupe_family();
ModelFamily vit_family();
ModelFamily vit_mnist_family();
ModelFamily vits_family();
ModelFamily whisper_family();
ModelFamily xlnet_family();

} // namespace posiscope::core
