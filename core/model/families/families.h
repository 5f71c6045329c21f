// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/family_table.h"

namespace posiscope::core {

// One function a family, each in a file of its own beside this one; family_table.cpp lists them.
ModelFamily bert_family();

} // namespace posiscope::core
