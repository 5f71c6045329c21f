// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/fuzz_format.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/format_table.h"
#include "core/checkpoint/name_dialects.h"
#include "core/checkpoint/tensor_reader.h"

namespace posiscope::tests {
namespace {

using namespace core;

class SameFileStore final : public FileStore {
public:
    explicit SameFileStore(std::shared_ptr<const ByteSource> source) : m_source(std::move(source)) {}
    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view) const override
    {
        return m_source;
    }
    [[nodiscard]] std::vector<std::string> names() const override { return {}; }
    [[nodiscard]] std::string name() const override { return "fuzz"; }

private:
    std::shared_ptr<const ByteSource> m_source;
};

} // namespace

void fuzz_format(std::string_view id, const std::uint8_t* data, std::size_t size)
{
    const auto source = memory_source("fuzz", std::as_bytes(std::span(data, size)));
    const WeightFile input{source, std::make_shared<SameFileStore>(source), "model.index"};
    describe_unknown_content(*source);
    for (const CheckpointFormat& format : checkpoint_formats()) {
        format.recognises(*source);
        if (format.id != id) continue;
        auto file = format.open(input, {});
        if (!file) continue;
        translate_names(*file);
        std::size_t left = 64;
        for (const TensorInfo& info : file->tensors) {
            const auto count = element_count(info.shape);
            if (!count || *count > 100'000 || left-- == 0) continue;
            const auto whole = read_tensor(info, file->sources);
            if (info.shape.size() == 2 && info.shape[0] > 0) {
                const std::vector<std::int64_t> rows{info.shape[0] - 1, 0, info.shape[0] / 2, 0};
                const auto some = read_tensor_rows(info, file->sources, rows);
            }
        }
    }
}

} // namespace posiscope::tests
