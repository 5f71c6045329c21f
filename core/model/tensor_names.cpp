// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/tensor_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

/// What training wrappers put in front of every name, whatever the family.
constexpr std::array<std::string_view, 4> wrapper_prefixes{"module.", "_orig_mod.", "model.", "state_dict."};

std::string_view without_prefixes(std::string_view name, const std::vector<std::string_view>& family_prefixes)
{
    for (bool found = true; found;) {
        found = false;
        const auto strip = [&](std::string_view prefix) {
            if (!name.starts_with(prefix)) return;
            name.remove_prefix(prefix.size());
            found = true;
        };
        for (const std::string_view prefix : wrapper_prefixes) strip(prefix);
        for (const std::string_view prefix : family_prefixes) strip(prefix);
    }
    return name;
}

/// "LayerNorm.gamma" -> "LayerNorm.weight" where its "beta" is there too, and the other way round.
std::string modern_norm_name(std::string name, const Checkpoint& checkpoint, std::string_view full_name)
{
    constexpr std::string_view gamma = "LayerNorm.gamma";
    constexpr std::string_view beta = "LayerNorm.beta";
    const auto has_partner = [&](std::string_view ending, std::string_view partner) {
        return checkpoint.find(std::string(full_name.substr(0, full_name.size() - ending.size())) +
                               std::string(partner)) != nullptr;
    };
    if (full_name.ends_with(gamma) && has_partner(gamma, beta))
        name.replace(name.size() - 5, 5, "weight");
    else if (full_name.ends_with(beta) && has_partner(beta, gamma))
        name.replace(name.size() - 4, 4, "bias");
    return name;
}

/// Levenshtein's distance, for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t n = 0; n < row.size(); ++n) row[n] = n;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row.back();
}

bool fits(const Shape& actual, const Shape& wanted)
{
    return actual.size() == wanted.size() &&
           std::equal(actual.begin(), actual.end(), wanted.begin(),
                      [](std::int64_t size, std::int64_t want) { return want < 0 || size == want; });
}

std::string wanted_text(const Shape& wanted)
{
    std::string text = shape_text(wanted);
    for (std::size_t at = text.find("-1"); at != std::string::npos; at = text.find("-1"))
        text.replace(at, 2, "any");
    return text;
}

} // namespace

TensorNames::TensorNames(const Checkpoint& checkpoint, std::vector<std::string_view> family_prefixes)
    : m_checkpoint(checkpoint)
{
    for (const auto& [name, reason] : checkpoint.absent())
        m_absent.emplace(without_prefixes(name, family_prefixes), reason);
    for (const TensorInfo& info : checkpoint.tensors()) {
        std::string canonical(without_prefixes(info.name, family_prefixes));
        if (canonical.size() < info.name.size())
            m_prefixes.insert(info.name.substr(0, info.name.size() - canonical.size()));
        canonical = modern_norm_name(std::move(canonical), checkpoint, info.name);
        const auto [at, added] = m_by_canonical.emplace(std::move(canonical), &info);
        if (!added)
            m_warnings.push_back("tensors " + in_quotes(at->second->name) + " and " + in_quotes(info.name) +
                                 " go by the same name; the first is taken");
    }
}

const TensorInfo* TensorNames::find(std::string_view canonical) const
{
    const auto at = m_by_canonical.find(canonical);
    if (at == m_by_canonical.end()) return nullptr;
    m_matched.insert(at->second);
    return at->second;
}

std::vector<std::string> TensorNames::unmatched() const
{
    std::vector<std::string> names;
    for (const TensorInfo& info : m_checkpoint.tensors())
        if (!m_matched.contains(&info)) names.push_back(info.name);
    return names;
}

std::vector<std::string> TensorNames::prefixes() const
{
    return {m_prefixes.begin(), m_prefixes.end()};
}

Error TensorNames::missing(std::string_view canonical) const
{
    return missing(std::vector{std::string(canonical)});
}

Error TensorNames::missing(const std::vector<std::string>& canonical) const
{
    for (const std::string& name : canonical)
        if (const auto at = m_absent.find(name); at != m_absent.end())
            return Error{ErrorCode::not_found,
                         "tensor " + in_quotes(name) + " of " + in_quotes(m_checkpoint.weights_name()) + " " +
                             at->second,
                         "recognising the network"};
    std::string looked_for;
    std::vector<std::string> nearest;
    for (const std::string& wanted : canonical) {
        looked_for += (looked_for.empty() ? " has no tensor " : " and no tensor ") + in_quotes(wanted);
        std::vector<std::pair<std::size_t, std::string>> near;
        constexpr std::size_t most_compared = 20'000; // names in a file; more would take long
        for (const auto& [name, info] : m_by_canonical) {
            if (near.size() >= most_compared || name.size() > 300) continue;
            near.emplace_back(edit_distance(wanted, name), in_quotes(info->name));
        }
        std::sort(near.begin(), near.end());
        std::size_t taken = 0;
        for (const auto& [distance, name] : near) {
            if (taken == 3 || distance > wanted.size() / 2) break;
            ++taken;
            if (std::find(nearest.begin(), nearest.end(), name) == nearest.end()) nearest.push_back(name);
        }
    }
    return Error{ErrorCode::not_found,
                 in_quotes(m_checkpoint.weights_name()) + looked_for +
                     (nearest.empty()
                          ? std::string{}
                          : (nearest.size() == 1 ? "; the nearest name is " : "; the nearest names are ") +
                                join_for_message(nearest)),
                 "recognising the network"};
}

Result<const TensorInfo*> TensorNames::optional(std::string_view canonical, const Shape& shape) const
{
    const TensorInfo* info = find(canonical);
    if (info == nullptr) return info;
    const std::string where =
        "tensor " + in_quotes(info->name) + " in " + in_quotes(m_checkpoint.weights_name());
    if (!fits(info->shape, shape))
        return Error{ErrorCode::shape_mismatch,
                     where + " has shape " + shape_text(info->shape) + "; " + wanted_text(shape) +
                         " was expected from the config",
                     "recognising the network"};
    if (!is_floating(info->dtype))
        return Error{ErrorCode::shape_mismatch,
                     where + " holds " + std::string(dtype_name(info->dtype)) +
                         " numbers; floating-point weights were expected",
                     "recognising the network"};
    return info;
}

Result<const TensorInfo*> TensorNames::require(std::string_view canonical, const Shape& shape) const
{
    auto found = optional(canonical, shape);
    if (found && *found == nullptr) return missing(canonical);
    return found;
}

} // namespace posiscope::core
