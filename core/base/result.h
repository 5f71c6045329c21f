// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace posiscope::core {

/// What kind of failure an Error is; callers branch on this, people read the message.
enum class ErrorCode {
    not_found,
    unreadable,
    unsupported_format,
    corrupt_file,
    unsupported_model,
    shape_mismatch,
    invalid_argument,
    out_of_memory,
    numeric_failure,
    cancelled,
    internal,
};

/// Stable name of a code, as written to logs and JSON.
std::string_view error_code_name(ErrorCode code);

/// One failure: `message` is one sentence that names the thing, the value found and the value wanted;
/// `context` says where (a file, "safetensors header", a tensor).
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;
    std::string context;
};

/// "message (context)" on one line, control characters escaped.
std::string describe(const Error& error);

/// A value or an Error. Exceptions do not cross out of core; this does.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : m_content(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : m_content(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return m_content.index() == 0; }
    [[nodiscard]] bool has_value() const { return m_content.index() == 0; }

    T& operator*() &
    {
        assert(has_value());
        return *std::get_if<0>(&m_content);
    }
    const T& operator*() const&
    {
        assert(has_value());
        return *std::get_if<0>(&m_content);
    }
    T&& operator*() &&
    {
        assert(has_value());
        return std::move(*std::get_if<0>(&m_content));
    }
    T* operator->() { return &**this; }
    const T* operator->() const { return &**this; }

    [[nodiscard]] const Error& error() const
    {
        assert(!has_value());
        return *std::get_if<1>(&m_content);
    }

private:
    std::variant<T, Error> m_content;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : m_error(std::move(error)) {}

    explicit operator bool() const { return !m_error; }
    [[nodiscard]] bool has_value() const { return !m_error; }
    [[nodiscard]] const Error& error() const
    {
        assert(m_error);
        return *m_error;
    }

private:
    std::optional<Error> m_error;
};

} // namespace posiscope::core
