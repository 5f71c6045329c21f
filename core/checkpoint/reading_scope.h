// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/run_context.h"

namespace posiscope::core {

/// While it lives, what this thread reads can be stopped through `ctx`, and what it fetches over a network is reported to
/// it (stage "download", in bytes). Reading a tensor takes no context of its own: few callers have one to hand.
class ReadingScope {
public:
    explicit ReadingScope(const RunContext& ctx);
    ~ReadingScope();
    ReadingScope(const ReadingScope&) = delete;
    ReadingScope& operator=(const ReadingScope&) = delete;

    /// The context of this thread's innermost scope; one that never stops where there is none.
    static const RunContext& current();

private:
    const RunContext* m_before;
};

} // namespace posiscope::core
