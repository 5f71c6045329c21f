// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/run_context.h"

namespace posiscope::core {

/// While it lives, what this thread reads over a network can be stopped through `ctx` and reports to it. Reading a tensor
/// takes no context of its own: a local file needs none.
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
