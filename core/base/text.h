// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace posiscope::core {

/// A text from a file made safe to show on one line: control characters, bidirectional overrides and bytes that
/// are not UTF-8 are written as \xNN or \u{...}, and anything beyond `max_length` bytes is cut with "...".
std::string printable(std::string_view text, std::size_t max_length = 120);

/// The same in single quotes, for names of files, tensors and words in messages.
std::string in_quotes(std::string_view text, std::size_t max_length = 300);

/// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view text);

/// The parts of `text` between separators; "a,,b" has three.
std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without blanks, tabs and line ends at both ends.
std::string_view trimmed(std::string_view text);

/// "a, b and c" for messages; longer lists end in "and N more".
std::string join_for_message(const std::vector<std::string>& items, std::size_t most = 8);

/// "1 word", "3 words".
std::string counted(std::size_t count, std::string_view singular, std::string_view plural);

} // namespace posiscope::core
