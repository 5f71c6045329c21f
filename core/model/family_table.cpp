// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/family_table.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/text.h"
#include "core/model/families/families.h"

namespace posiscope::core {

std::span<const ModelFamily> model_families()
{
    static const std::array families{
        bert_family(),
        albert_family(),
        bart_family(),
        beit_family(),
        bert_generation_family(),
        blenderbot_small_family(),
        bloom_family(),
        clip_family(),
        deberta_family(),
        deberta_v2_family(),
        deit_family(),
        dinov2_family(),
        distilbert_family(),
        electra_family(),
        esm_family(),
        fairseq_family(),
        falcon_family(),
        fconv_family(),
        gpt2_family(),
        gpt_neox_family(),
        gptj_family(),
        llama_family(),
        longformer_family(),
        m2m100_family(),
        marian_family(),
        mbart_family(),
        mpnet_family(),
        mpt_family(),
        nezha_family(),
        openai_gpt_family(),
        opennmt_family(),
        opt_family(),
        pegasus_family(),
        roberta_family(),
        roformer_family(),
        siglip_family(),
        swin_family(),
        t5_family(),
        torch_transformer_family(),
        transfo_xl_family(),
        tupe_family(),
        vit_family(),
        vit_mnist_family(),
        vits_family(),
        whisper_family(),
        xlnet_family(),
    };
    return families;
}

Result<const ModelFamily*> find_family(const Checkpoint& checkpoint, std::vector<std::string>& notes)
{
    std::vector<std::string> known;
    for (const ModelFamily& family : model_families())
        for (const std::string_view type : family.model_types) known.emplace_back(type);

    const auto type = checkpoint.config().optional_text("model_type");
    if (!type) return type.error();
    if (*type) {
        for (const ModelFamily& family : model_families())
            if (std::find(family.model_types.begin(), family.model_types.end(), **type) !=
                family.model_types.end())
                return &family;
        return Error{ErrorCode::unsupported_model,
                     in_quotes(checkpoint.config().file_name()) + ": the model_type " +
                         in_quotes(**type, 60) + " is not known; known are " + join_for_message(known, 100),
                     "recognising the network"};
    }
    for (const ModelFamily& family : model_families()) {
        const TensorNames names(checkpoint, {family.name_prefixes.begin(), family.name_prefixes.end()});
        // Families whose names others share are known by their model_type only.
        if (!family.signature.empty() &&
            std::all_of(family.signature.begin(), family.signature.end(),
                        [&](std::string_view name) { return names.find(name) != nullptr; })) {
            notes.push_back(in_quotes(checkpoint.config().file_name()) +
                            " has no 'model_type'; the tensor names are those of " +
                            std::string(family.label));
            return &family;
        }
    }
    // What comes nearest is worth naming: a file that was cut, or some of whose names are strange.
    const ModelFamily* nearest = nullptr;
    std::vector<std::string> lacks;
    std::size_t most = 0;
    for (const ModelFamily& family : model_families()) {
        const TensorNames names(checkpoint, {family.name_prefixes.begin(), family.name_prefixes.end()});
        std::vector<std::string> missing;
        for (const std::string_view name : family.signature)
            if (names.find(name) == nullptr) missing.push_back(in_quotes(name));
        if (family.signature.size() - missing.size() <= most) continue;
        most = family.signature.size() - missing.size();
        nearest = &family;
        lacks = std::move(missing);
    }
    if (nearest != nullptr)
        return Error{ErrorCode::unsupported_model,
                     in_quotes(checkpoint.config().file_name()) +
                         " has no 'model_type', and the tensor names are of no known family; " +
                         std::string(nearest->label) + " comes nearest, but " +
                         in_quotes(checkpoint.weights_name()) + " has no tensor " + join_for_message(lacks),
                     "recognising the network"};
    return Error{ErrorCode::unsupported_model,
                 in_quotes(checkpoint.config().file_name()) +
                     " has no 'model_type', and the tensor names are of no known family; known are " +
                     join_for_message(known, 100),
                 "recognising the network"};
}

} // namespace posiscope::core
