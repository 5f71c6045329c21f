// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace posiscope::app {

/// `posiscope figure CHECKPOINT --view V --out FILE ...`: argv[0] is "figure". Needs no screen.
/// @return exit status: 0 done, 1 the input was refused, 2 wrong usage
int figure_main(int argc, char** argv);

} // namespace posiscope::app
