#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes ui/plot/color_tables.cpp: six colour maps of 256 sRGB colours.

viridis and magma are by Smith and van der Walt (CC0), cividis by Nunez, Anderton and Renslow (PLOS ONE 2018, CC0);
their tables are taken from Matplotlib (a permissive licence). The others are made here: straight lines in OKLab
(Ottosson 2020), so that equal steps of a value are equal steps for the eye; both arms of a diverging map have the
same lightness at the same distance from the centre.

Usage: make_color_tables.py > ui/plot/color_tables.cpp      (needs matplotlib and numpy)
"""
import numpy as np
from matplotlib import colormaps


def oklab_to_srgb(lab):
    l, a, b = np.moveaxis(np.asarray(lab, float), -1, 0)
    long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (l - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = np.stack([4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
                       -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
                       -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short], -1)
    assert linear.min() > -2e-3 and linear.max() < 1 + 2e-3, (linear.min(), linear.max())
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def lch(lightness, chroma, hue):
    return np.array([lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))])


def diverging(low, high, centre=(0.975, 0.0, 0.0)):
    """An odd number of steps between the two middle entries: the centre lies between entry 127 and 128."""
    t = (np.arange(256) - 127.5) / 127.5
    centre = np.array(centre)
    ends = np.where(t[:, None] < 0, low, high)
    return oklab_to_srgb(centre + np.abs(t)[:, None] * (ends - centre))


def listed(name):
    return np.array([colormaps[name](n)[:3] for n in range(256)])


maps = {
    "viridis": listed("viridis"),
    "cividis": listed("cividis"),
    "magma": listed("magma"),
    "greys": oklab_to_srgb(np.stack([np.linspace(0.12, 1.0, 256), np.zeros(256), np.zeros(256)], -1)),
    "blue_white_red": diverging(lch(0.42, 0.155, 258), lch(0.42, 0.155, 26)),
    "purple_green": diverging(lch(0.42, 0.175, 312), lch(0.42, 0.115, 148)),
}
print("""// SPDX-License-Identifier: GPL-3.0-or-later
// Written by resources/colormaps/make_color_tables.py, which names the sources; do not edit.
#include "ui/plot/color_tables.h"

namespace posiscope::ui {
// clang-format off""")
for name, table in maps.items():
    print(f"\nconst std::array<std::uint32_t, 256> {name}_table{{")
    words = [f"0x{r:02x}{g:02x}{b:02x}" for r, g, b in np.round(table * 255).astype(int)]
    for n in range(0, 256, 10):
        print("    " + ", ".join(words[n:n + 10]) + ",")
    print("};")
print("\n// clang-format on\n} // namespace posiscope::ui")
