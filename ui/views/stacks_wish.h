// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/session/session.h"

namespace posiscope::ui {

/// What the numbers of all stacks depend on: neither the stack that is looked at, nor what the probe keeps besides.
struct StacksWish {
    std::shared_ptr<const core::OpenModel> model; ///< null: nothing
    core::ProbeOptions probe;
    core::DisplayOptions display;

    bool operator==(const StacksWish&) const = default;
};

inline StacksWish stacks_wish(const core::Session& session)
{
    StacksWish wish{session.model, session.probe ? session.probe->options : core::ProbeOptions{},
                    session.display};
    wish.probe.stack.clear();
    wish.probe.terms = false;
    wish.probe.group_spread = false;
    return wish;
}

} // namespace posiscope::ui
