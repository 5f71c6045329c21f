// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string_view>

#include "core/base/result.h"

namespace posiscope::core {

/// How far a long function is. `stage` is a stable word ("probe", "bootstrap"), never localised text.
struct Progress {
    std::string_view stage;
    std::size_t done = 0;
    std::size_t total = 0;
};

/// What a long function needs from its caller: a way to be stopped, and somewhere to report progress.
/// Passed last, by const reference. A default-constructed one never stops and reports nowhere.
struct RunContext {
    std::stop_token stop;
    std::function<void(const Progress&)> progress;

    [[nodiscard]] bool cancelled() const { return stop.stop_requested(); }
    void report(const Progress& now) const
    {
        if (progress) progress(now);
    }
};

/// The outcome of a run that was asked to stop. `where` names the function for people.
inline Error cancelled_error(std::string_view where)
{
    return Error{ErrorCode::cancelled, std::string(where) + " was stopped", std::string(where)};
}

} // namespace posiscope::core
