// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"

namespace posiscope::core {

/// JSON from a file that is not trusted: nesting is limited, what follows the document is refused, and keys given
/// twice are reported in `duplicate_keys`. A UTF-8 byte order mark is skipped.
/// @param what  how the text is called in messages ("config.json", "safetensors header")
/// @error corrupt_file
Result<nlohmann::json> parse_json(std::string_view text, const std::string& what,
                                  std::vector<std::string>* duplicate_keys = nullptr);

/// A model's config.json with checked access. Every error names the file, the field, the value found and what was
/// expected of it.
class ConfigJson {
public:
    ConfigJson();
    ConfigJson(nlohmann::json root, std::string file_name);

    [[nodiscard]] const std::string& file_name() const { return m_file_name; }
    [[nodiscard]] const nlohmann::json& root() const { return *m_root; }
    [[nodiscard]] bool has(std::string_view key) const;

    /// A whole number within [least, most].
    /// @error corrupt_file: missing (for `integer`), not a whole number, outside the range
    [[nodiscard]] Result<std::int64_t> integer(std::string_view key, std::int64_t least,
                                               std::int64_t most) const;
    /// The same, or nothing where the key is missing or null.
    [[nodiscard]] Result<std::optional<std::int64_t>>
    optional_integer(std::string_view key, std::int64_t least, std::int64_t most) const;
    /// A finite number within [least, most], or nothing where the key is missing or null.
    [[nodiscard]] Result<std::optional<double>> optional_number(std::string_view key, double least,
                                                                double most) const;
    [[nodiscard]] Result<std::optional<std::string>> optional_text(std::string_view key) const;
    [[nodiscard]] Result<std::optional<bool>> optional_flag(std::string_view key) const;

    /// An error about one field of this config.
    [[nodiscard]] Error field_error(std::string_view key, const std::string& what) const;

private:
    [[nodiscard]] const nlohmann::json* value(std::string_view key) const;

    std::shared_ptr<const nlohmann::json> m_root; ///< never null; behind a pointer, for headers see no JSON
    std::string m_file_name = "config.json";
};

} // namespace posiscope::core
