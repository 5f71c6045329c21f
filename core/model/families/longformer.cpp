// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "core/model/families/bert_body.h"
#include "core/model/families/families.h"

namespace posiscope::core {
namespace {

constexpr std::array<std::string_view, 1> model_types{"longformer"};
constexpr std::array<std::string_view, 1> name_prefixes{"longformer."};

/// Longformer: RoBERTa whose queries see keys within half the attention window on each side; others do not exist.
/// No position has global attention in the probe.
/// Source: Beltagy et al. 2020.
Result<Architecture> read_longformer(const TensorNames& names)
{
    Architecture architecture;
    StackReader reader(names, architecture);
    reader.pad_token(1);
    BertBody body;
    body.published_epsilon = 1e-12;
    body.first_position_row = architecture.pad_token_id.value_or(1) + 1;
    Stack stack = read_bert_body(reader, body);
    // One window for all layers, or a list with one a layer.
    const nlohmann::json& root = reader.config().root();
    const auto window = root.find("attention_window");
    std::int64_t width = 512;
    if (window != root.end() && window->is_array() && !window->empty()) {
        const bool same = std::all_of(window->begin(), window->end(),
                                      [&](const auto& one) { return one == window->front(); });
        if (!same || !window->front().is_number_integer())
            reader.fail(
                Error{ErrorCode::unsupported_model,
                      reader.config().field_error("attention_window", "differs between layers").message,
                      "recognising the network"});
        else
            width = window->front().get<std::int64_t>();
    } else {
        width = reader.integer_or("attention_window", 512, 2, 1 << 24);
    }
    if (width < 2 || width % 2 != 0)
        reader.fail(reader.config().field_error(
            "attention_window", "is " + std::to_string(width) + "; an even number from 2 on was expected"));
    stack.window_before = stack.window_after = width / 2;
    stack.window_is_absence = true;
    reader.special_by_config(stack, "bos_token_id", "eos_token_id");
    if (!reader.ok()) return *reader.fault();
    architecture.stacks.push_back(std::move(stack));
    return architecture;
}

} // namespace

ModelFamily longformer_family()
{
    return {"longformer",
            "Longformer",
            model_types,
            name_prefixes,
            {},
            read_longformer,
            apply_roberta_vocabulary};
}

} // namespace posiscope::core
