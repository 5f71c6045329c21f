// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/export/tensors_used.h"

#include <vector>

#include "core/base/sha256.h"
#include "core/probe/network_reader.h"

namespace posiscope::core {

Result<std::map<std::string, TensorDigest>> tensors_used(const OpenModel& model, const ProbeResult& probe,
                                                         const RunContext& ctx)
{
    const Stack* stack = model.architecture.find_stack(probe.options.stack);
    if (stack == nullptr)
        return Error{ErrorCode::invalid_argument, "the model has no stack '" + probe.options.stack + "'",
                     "tensors used"};
    ProbeInput input;
    input.count = probe.word_ids.size();
    if (stack->content == InputContent::words)
        for (const std::int64_t id : probe.word_ids)
            if (const Vocabulary::Entry* word = model.vocabulary_of(stack->id).find_id(id))
                input.words.push_back(word);
    const ReadRecorder recorder;
    std::vector<std::int64_t> special_positions;
    const auto network =
        read_network(model, *stack, probe.options, {probe.options.layer}, input, special_positions, ctx);
    if (!network) return network.error();
    return recorder.digests();
}

std::string digest_of_all(const std::map<std::string, TensorDigest>& digests)
{
    Sha256 sum;
    for (const auto& [name, digest] : digests) {
        sum.add(name);
        sum.add(" " + shape_text(digest.shape) + " " + digest.sha256 + "\n");
    }
    return sum.finish();
}

} // namespace posiscope::core
