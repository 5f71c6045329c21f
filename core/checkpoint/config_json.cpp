// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_json.h"

#include <cmath>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

using nlohmann::json;

constexpr int deepest_nesting = 64;

/// Thrown inside parse_json only: the parser's callback has no other way to stop it.
struct TooDeep {};

std::string shown_value(const json& value)
{
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    if (value.is_string()) return "the text " + in_quotes(value.get_ref<const std::string&>(), 60);
    return printable(value.dump(-1, ' ', false, json::error_handler_t::replace), 60);
}

std::string range_text(double least, double most)
{
    const auto number = [](double value) {
        const json as_json = value == std::floor(value) && std::abs(value) < 1e15
                                 ? json(static_cast<std::int64_t>(value))
                                 : json(value);
        return as_json.dump();
    };
    return "between " + number(least) + " and " + number(most);
}

} // namespace

Result<json> parse_json(std::string_view text, const std::string& what,
                        std::vector<std::string>* duplicate_keys)
{
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (trimmed(text).empty())
        return Error{ErrorCode::corrupt_file, what + " is empty; JSON was expected", "reading JSON"};

    std::vector<std::set<std::string>> keys;
    const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
        const bool opens =
            event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
        if (opens && depth >= deepest_nesting) throw TooDeep{};
        if (event == json::parse_event_t::object_start) keys.emplace_back();
        if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
        if (event == json::parse_event_t::key && !keys.empty() && duplicate_keys != nullptr) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!keys.back().insert(key).second) duplicate_keys->push_back(key);
        }
        return true;
    };
    try {
        return json::parse(text.begin(), text.end(), watch);
    } catch (const TooDeep&) {
        return Error{ErrorCode::corrupt_file,
                     what + " nests more than " + std::to_string(deepest_nesting) + " levels deep",
                     "reading JSON"};
    } catch (const json::parse_error& fault) {
        return Error{ErrorCode::corrupt_file,
                     what + " is not valid JSON: the fault is near byte " + std::to_string(fault.byte),
                     "reading JSON"};
    } catch (const json::exception&) {
        // out_of_range: a number that no double can hold, such as 1e400.
        return Error{ErrorCode::corrupt_file, what + " holds a number that is too large", "reading JSON"};
    }
}

ConfigJson::ConfigJson() : m_root(std::make_shared<const json>(json::object())) {}

ConfigJson::ConfigJson(json root, std::string file_name)
    : m_root(std::make_shared<const json>(std::move(root))), m_file_name(std::move(file_name))
{
}

const json* ConfigJson::value(std::string_view key) const
{
    const auto at = m_root->find(std::string(key));
    return at == m_root->end() || at->is_null() ? nullptr : &*at;
}

bool ConfigJson::has(std::string_view key) const
{
    return value(key) != nullptr;
}

Error ConfigJson::field_error(std::string_view key, const std::string& what) const
{
    return Error{ErrorCode::corrupt_file, in_quotes(m_file_name) + ": " + in_quotes(key) + " " + what,
                 "config"};
}

Result<std::optional<std::int64_t>> ConfigJson::optional_integer(std::string_view key, std::int64_t least,
                                                                 std::int64_t most) const
{
    const json* found = value(key);
    if (found == nullptr) return std::optional<std::int64_t>{};
    const std::string wanted = "a whole number " +
                               range_text(static_cast<double>(least), static_cast<double>(most)) +
                               " was expected";
    if (!found->is_number_integer()) return field_error(key, "is " + shown_value(*found) + "; " + wanted);
    const bool too_large =
        found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
    if (too_large || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most)
        return field_error(key, "is " + shown_value(*found) + "; " + wanted);
    return std::optional(found->get<std::int64_t>());
}

Result<std::int64_t> ConfigJson::integer(std::string_view key, std::int64_t least, std::int64_t most) const
{
    const auto found = optional_integer(key, least, most);
    if (!found) return found.error();
    if (!*found) return field_error(key, "is missing; a whole number was expected");
    return **found;
}

Result<std::optional<double>> ConfigJson::optional_number(std::string_view key, double least,
                                                          double most) const
{
    const json* found = value(key);
    if (found == nullptr) return std::optional<double>{};
    if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < least ||
        found->get<double>() > most)
        return field_error(key, "is " + shown_value(*found) + "; a number " + range_text(least, most) +
                                    " was expected");
    return std::optional(found->get<double>());
}

Result<std::optional<std::string>> ConfigJson::optional_text(std::string_view key) const
{
    const json* found = value(key);
    if (found == nullptr) return std::optional<std::string>{};
    if (!found->is_string()) return field_error(key, "is " + shown_value(*found) + "; a text was expected");
    return std::optional(found->get<std::string>());
}

Result<std::optional<bool>> ConfigJson::optional_flag(std::string_view key) const
{
    const json* found = value(key);
    if (found == nullptr) return std::optional<bool>{};
    if (!found->is_boolean())
        return field_error(key, "is " + shown_value(*found) + "; true or false was expected");
    return std::optional(found->get<bool>());
}

} // namespace posiscope::core
