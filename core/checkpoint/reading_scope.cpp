// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/reading_scope.h"

#include <utility>

namespace posiscope::core {
namespace {

thread_local const RunContext* innermost = nullptr;

} // namespace

ReadingScope::ReadingScope(const RunContext& ctx) : m_before(std::exchange(innermost, &ctx)) {}

ReadingScope::~ReadingScope()
{
    innermost = m_before;
}

const RunContext& ReadingScope::current()
{
    static const RunContext none;
    return innermost == nullptr ? none : *innermost;
}

} // namespace posiscope::core
