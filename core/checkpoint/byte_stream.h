// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/checkpoint/byte_source.h"

namespace posiscope::core {

/// Reads a source from front to back in blocks.
class ByteStream {
public:
    ByteStream(const ByteSource& source, std::uint64_t at) : m_source(source), m_at(at) {}

    [[nodiscard]] std::uint64_t position() const { return m_at; }
    [[nodiscard]] std::uint64_t left() const { return m_source.size() - m_at; }

    /// The next byte, or nothing at the end (or where reading fails).
    std::optional<std::uint8_t> next()
    {
        if (m_at < m_block_begin || m_at >= m_block_begin + m_block.size()) {
            if (!load()) return std::nullopt;
        }
        return std::to_integer<std::uint8_t>(m_block[static_cast<std::size_t>(m_at++ - m_block_begin)]);
    }

    /// The next bytes, at most 8 of them, as a little-endian number.
    std::optional<std::uint64_t> number(int bytes)
    {
        std::uint64_t value = 0;
        for (int n = 0; n < bytes; ++n) {
            const auto byte = next();
            if (!byte) return std::nullopt;
            value |= static_cast<std::uint64_t>(*byte) << (8 * n);
        }
        return value;
    }

    /// Appends the next bytes to `to`; false where there are not so many.
    bool append(std::uint64_t count, std::string& to)
    {
        if (count > left()) return false;
        for (; count > 0; --count) {
            const auto byte = next();
            if (!byte) return false;
            to.push_back(static_cast<char>(*byte));
        }
        return true;
    }

    /// Passes over bytes; false where there are not so many.
    bool skip(std::uint64_t count)
    {
        if (count > left()) return false;
        m_at += count;
        return true;
    }

    /// Text up to the end of the line, without it.
    std::optional<std::string> line(std::size_t longest)
    {
        std::string text;
        for (;;) {
            const auto byte = next();
            if (!byte || text.size() > longest) return std::nullopt;
            if (*byte == '\n') return text;
            text.push_back(static_cast<char>(*byte));
        }
    }

    /// What went wrong below, where reading failed for another reason than the end.
    [[nodiscard]] const std::optional<Error>& fault() const { return m_fault; }

private:
    bool load()
    {
        if (m_fault || m_at >= m_source.size()) return false;
        // Blocks grow while the reading goes on without a jump: what is passed over is not read.
        constexpr std::uint64_t least = 512, most = 65'536;
        const bool goes_on = !m_block.empty() && m_at == m_block_begin + m_block.size();
        m_block_size = goes_on ? std::min(2 * m_block_size, most) : least;
        m_block.resize(static_cast<std::size_t>(std::min(m_block_size, m_source.size() - m_at)));
        m_block_begin = m_at;
        if (auto read = m_source.read(m_at, m_block); !read) {
            m_fault = read.error();
            m_block.clear();
            return false;
        }
        return true;
    }

    const ByteSource& m_source;
    std::uint64_t m_at;
    std::vector<std::byte> m_block;
    std::uint64_t m_block_begin = 0, m_block_size = 0;
    std::optional<Error> m_fault;
};

} // namespace posiscope::core
