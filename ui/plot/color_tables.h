// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>

namespace posiscope::ui {

/// Colour maps as 0xRRGGBB, low values first. Sources and licences: resources/colormaps/make_color_tables.py.
extern const std::array<std::uint32_t, 256> viridis_table;
extern const std::array<std::uint32_t, 256> cividis_table;
extern const std::array<std::uint32_t, 256> magma_table;
extern const std::array<std::uint32_t, 256> greys_table;
extern const std::array<std::uint32_t, 256> blue_white_red_table;
extern const std::array<std::uint32_t, 256> purple_green_table;

} // namespace posiscope::ui
