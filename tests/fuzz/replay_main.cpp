// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a fuzz target over files and folders, without a fuzzer: what was found once stays mended.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv)
{
    std::size_t files = 0;
    const auto run = [&](const std::filesystem::path& path) {
        std::ifstream in(path, std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(in), {});
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++files;
    };
    for (int n = 1; n < argc; ++n) {
        if (!std::filesystem::is_directory(argv[n])) {
            run(argv[n]);
            continue;
        }
        for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[n]))
            if (entry.is_regular_file()) run(entry.path());
    }
    std::printf("%zu files\n", files);
    return files == 0 ? 1 : 0;
}
