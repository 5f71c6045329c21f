// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/families/rotary_config.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

using nlohmann::json;

constexpr double largest_number = 1e12;

json object_or_empty(const json& root, const char* key)
{
    const auto at = root.find(key);
    return at != root.end() && at->is_object() ? *at : json::object();
}

/// The settings of rotary positions, wherever this version of the config keeps them. The first fault is kept.
class RotaryReader {
public:
    explicit RotaryReader(const ConfigJson& config)
        : m_config(config), m_new(object_or_empty(config.root(), "rope_parameters"), config.file_name()),
          m_old(object_or_empty(config.root(), "rope_scaling"), config.file_name())
    {
        for (const auto& [key, value] : m_new.root().items())
            if (value.is_object())
                fail(Error{ErrorCode::unsupported_model,
                           in_quotes(config.file_name()) +
                               ": 'rope_parameters' gives each kind of layer its own rotation (" +
                               in_quotes(key, 40) + "); one for all layers was expected",
                           "recognising the network"});
    }

    [[nodiscard]] const std::optional<Error>& fault() const { return m_fault; }
    void fail(Error error)
    {
        if (!m_fault) m_fault = std::move(error);
    }
    void fail_field(std::string_view key, const std::string& what) { fail(m_config.field_error(key, what)); }

    /// Of rope_parameters, rope_scaling or, where `in_root`, the config itself.
    std::optional<double> number(std::string_view key, bool in_root = false, double least = 0.0)
    {
        for (const ConfigJson* source :
             std::initializer_list<const ConfigJson*>{&m_new, &m_old, in_root ? &m_config : nullptr}) {
            if (source == nullptr) continue;
            const auto found = source->optional_number(key, least, largest_number);
            if (!found) {
                fail(found.error());
                return std::nullopt;
            }
            if (*found) return *found;
        }
        return std::nullopt;
    }
    double positive(std::string_view key, std::optional<double> otherwise = {})
    {
        const auto found = number(key);
        const double value = found ? *found : otherwise.value_or(0.0);
        if (!(value > 0.0))
            fail_field(key, found ? "is 0; a positive number was expected"
                                  : "is missing; the scaling of the rotary positions needs it");
        return value > 0.0 ? value : 1.0;
    }
    bool flag(std::string_view key, bool otherwise)
    {
        for (const ConfigJson* source : {&m_new, &m_old}) {
            const auto found = source->optional_flag(key);
            if (!found) fail(found.error());
            if (found && *found) return **found;
        }
        return otherwise;
    }
    std::string type()
    {
        for (const auto& [source, key] :
             {std::pair(&m_new, "rope_type"), {&m_new, "type"}, {&m_old, "rope_type"}, {&m_old, "type"}}) {
            const auto found = source->optional_text(key);
            if (!found) fail(found.error());
            if (found && *found) return **found;
        }
        return "default";
    }
    /// Length that the model was trained with before it was stretched.
    double trained_length()
    {
        const auto own = m_config.optional_number("original_max_position_embeddings", 1.0, largest_number);
        if (!own) fail(own.error());
        if (own && *own) return **own;
        if (const auto length = number("original_max_position_embeddings", false, 1.0)) return *length;
        return max_length();
    }
    double max_length()
    {
        const auto length = m_config.optional_number("max_position_embeddings", 1.0, largest_number);
        if (!length) fail(length.error());
        if (length && *length) return **length;
        fail_field("max_position_embeddings", "is missing; the scaling of the rotary positions needs it");
        return 1.0;
    }
    /// One positive number for each pair of features.
    std::vector<double> factors(const char* key, std::size_t pairs)
    {
        for (const ConfigJson* source : {&m_new, &m_old}) {
            const auto at = source->root().find(key);
            if (at == source->root().end()) continue;
            std::vector<double> out;
            if (at->is_array())
                for (const json& one : *at)
                    if (one.is_number() && one.get<double>() > 0.0 && std::isfinite(one.get<double>()))
                        out.push_back(one.get<double>());
            if (out.size() == pairs && at->size() == pairs) return out;
            break;
        }
        fail_field(key, "must list " + counted(pairs, "positive number", "positive numbers") +
                            ", one for each pair of turned features");
        return std::vector<double>(pairs, 1.0);
    }

private:
    const ConfigJson& m_config;
    ConfigJson m_new, m_old;
    std::optional<Error> m_fault;
};

void read_linear(RotaryReader& reader, RotaryScheme& scheme)
{
    scheme.divisors.assign(static_cast<std::size_t>(scheme.features / 2), reader.positive("factor"));
}

void read_dynamic(RotaryReader& reader, RotaryScheme& scheme)
{
    scheme.dynamic_factor = reader.positive("factor");
    scheme.trained_length = reader.max_length();
    if (scheme.features < 4) reader.fail_field("rope_scaling", "needs four turned features or more");
}

void read_llama3(RotaryReader& reader, RotaryScheme& scheme)
{
    const Llama3Scaling scaling{reader.positive("factor"), reader.positive("low_freq_factor"),
                                reader.positive("high_freq_factor"), reader.trained_length()};
    if (scaling.high_factor <= scaling.low_factor)
        reader.fail_field("high_freq_factor", "must be larger than 'low_freq_factor'");
    scheme.divisors = llama3_divisors(scheme, scaling);
}

void read_yarn(RotaryReader& reader, RotaryScheme& scheme)
{
    YarnScaling scaling;
    scaling.trained_length = reader.trained_length();
    const auto factor = reader.number("factor");
    scaling.factor = factor ? reader.positive("factor") : reader.max_length() / scaling.trained_length;
    scaling.fast_turns = reader.positive("beta_fast", 32.0);
    scaling.slow_turns = reader.positive("beta_slow", 1.0);
    scaling.rounded_bounds = reader.flag("truncate", true);
    scheme.divisors = yarn_divisors(scheme, scaling);
    const double weight = reader.number("mscale").value_or(0.0);
    const double weight_of_all = reader.number("mscale_all_dim").value_or(0.0);
    const double published = weight > 0.0 && weight_of_all > 0.0
                                 ? yarn_attention_factor(scaling.factor, weight) /
                                       yarn_attention_factor(scaling.factor, weight_of_all)
                                 : yarn_attention_factor(scaling.factor);
    scheme.attention_factor = reader.positive("attention_factor", published);
}

/// Source: Ding et al. 2024, "LongRoPE", and the released code of Phi-3.
void read_longrope(RotaryReader& reader, RotaryScheme& scheme)
{
    const auto pairs = static_cast<std::size_t>(scheme.features / 2);
    scheme.trained_length = reader.trained_length();
    scheme.divisors = reader.factors("short_factor", pairs);
    scheme.long_divisors = reader.factors("long_factor", pairs);
    const double factor =
        reader.number("factor") ? reader.positive("factor") : reader.max_length() / scheme.trained_length;
    const double published =
        factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(scheme.trained_length));
    scheme.attention_factor = reader.positive("attention_factor", published);
}

struct RotaryScaling {
    std::string_view name;
    void (*read)(RotaryReader& reader, RotaryScheme& scheme);
};

constexpr std::array scalings{
    RotaryScaling{"linear", read_linear},     RotaryScaling{"dynamic", read_dynamic},
    RotaryScaling{"llama3", read_llama3},     RotaryScaling{"yarn", read_yarn},
    RotaryScaling{"longrope", read_longrope}, RotaryScaling{"su", read_longrope},
};

} // namespace

Result<RotarySettings> read_rotary_settings(const ConfigJson& config, std::int64_t head_dim,
                                            const RotaryDefaults& defaults)
{
    RotaryReader reader(config);
    const auto first_of = [&](const char* key, const char* older, double otherwise) {
        if (const auto found = reader.number(key, true)) return *found;
        return reader.number(older, true).value_or(otherwise);
    };
    RotarySettings out;
    out.scheme.base = first_of("rope_theta", "rotary_emb_base", defaults.base);
    const double share = first_of("partial_rotary_factor", "rotary_pct", defaults.share);
    const std::string type = reader.type();
    if (reader.fault()) return *reader.fault();
    const double turned = share * static_cast<double>(head_dim);
    if (!(turned >= 2.0) || turned > static_cast<double>(head_dim) || !(out.scheme.base > 1.0))
        return config.field_error("rope_theta", "and the share of turned features make no rotation");
    out.scheme.features = static_cast<std::int64_t>(turned) / 2 * 2;
    if (type == "default") return out;
    for (const RotaryScaling& scaling : scalings) {
        if (type != scaling.name) continue;
        scaling.read(reader, out.scheme);
        out.scaling = type;
        if (reader.fault()) return *reader.fault();
        return out;
    }
    std::vector<std::string> known;
    for (const RotaryScaling& scaling : scalings) known.emplace_back(scaling.name);
    return Error{ErrorCode::unsupported_model,
                 in_quotes(config.file_name()) + ": rotary positions scaled by " + in_quotes(type, 40) +
                     " are not supported; supported are default, " + join_for_message(known),
                 "recognising the network"};
}

} // namespace posiscope::core
