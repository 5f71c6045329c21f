// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace posiscope::tests {

/// An array of a .npy file as doubles; empty where the file is missing or of another kind.
struct NpyArray {
    std::vector<std::int64_t> shape;
    std::vector<double> values;
};

/// Reads little-endian float32 or float64 in C order, format version 1: what reference arrays are stored in.
inline NpyArray read_npy(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    constexpr std::size_t fixed = 10;
    if (bytes.size() < fixed || bytes.compare(0, 6, "\x93NUMPY") != 0 || bytes[6] != 1) return {};
    const std::size_t header_size = static_cast<unsigned char>(bytes[8]) +
                                    256u * static_cast<std::size_t>(static_cast<unsigned char>(bytes[9]));
    const std::string header = bytes.substr(fixed, header_size);
    const bool doubles = header.find("'<f8'") != std::string::npos;
    if ((!doubles && header.find("'<f4'") == std::string::npos) ||
        header.find("'fortran_order': False") == std::string::npos)
        return {};

    NpyArray array;
    std::size_t count = 1;
    const std::size_t open = header.find('(');
    const std::size_t close = header.find(')', open);
    for (std::size_t at = open + 1; at < close;) {
        const std::size_t comma = std::min(header.find(',', at), close);
        const std::string number = header.substr(at, comma - at);
        if (number.find_first_of("0123456789") != std::string::npos) {
            array.shape.push_back(std::stoll(number));
            count *= static_cast<std::size_t>(array.shape.back());
        }
        at = comma + 1;
    }
    const std::size_t element = doubles ? sizeof(double) : sizeof(float);
    if (bytes.size() - fixed - header_size != count * element) return {};
    array.values.resize(count);
    for (std::size_t n = 0; n < count; ++n) {
        const char* from = bytes.data() + fixed + header_size + n * element;
        if (doubles) {
            std::memcpy(&array.values[n], from, sizeof(double));
        } else {
            float value = 0.0f;
            std::memcpy(&value, from, sizeof(float));
            array.values[n] = static_cast<double>(value);
        }
    }
    return array;
}

/// A reference array of a fixture family, e.g. ("bert", "plain.enc.layer0.logits").
inline NpyArray read_golden(const std::string& family, const std::string& name)
{
    return read_npy(std::string(POSISCOPE_TEST_DATA) + "/families/" + family + "/golden/" + name + ".npy");
}

} // namespace posiscope::tests
