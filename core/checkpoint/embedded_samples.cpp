// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/file_store.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/base/text.h"
#include "core/checkpoint/embedded_files.h" // made by cmake/EmbedSamples.cmake

namespace posiscope::core {
namespace {

/// The files of one sample, compiled into the program by cmake/EmbedSamples.cmake.
class EmbeddedStore final : public FileStore {
public:
    explicit EmbeddedStore(std::string_view sample) : m_sample(sample) {}

    [[nodiscard]] Result<std::shared_ptr<const ByteSource>> open(std::string_view file) const override
    {
        for (const EmbeddedFile& embedded : embedded_files())
            if (embedded.sample == m_sample && embedded.name == file)
                return memory_source(
                    name() + "/" + std::string(file),
                    {embedded.begin, static_cast<std::size_t>(embedded.end - embedded.begin)});
        return Error{ErrorCode::not_found,
                     "the sample " + in_quotes(m_sample) + " has no file " + in_quotes(file),
                     "embedded samples"};
    }

    [[nodiscard]] std::vector<std::string> names() const override
    {
        std::vector<std::string> found;
        for (const EmbeddedFile& embedded : embedded_files())
            if (embedded.sample == m_sample) found.emplace_back(embedded.name);
        std::sort(found.begin(), found.end());
        return found;
    }

    [[nodiscard]] std::string name() const override
    {
        return std::string(sample_prefix) + std::string(m_sample);
    }

private:
    std::string m_sample;
};

} // namespace

std::vector<std::string> embedded_sample_names()
{
    std::vector<std::string> found;
    for (const EmbeddedFile& embedded : embedded_files())
        if (found.empty() || found.back() != embedded.sample) found.emplace_back(embedded.sample);
    return found;
}

Result<std::shared_ptr<const FileStore>> embedded_sample(std::string_view name)
{
    const auto samples = embedded_sample_names();
    if (std::find(samples.begin(), samples.end(), name) == samples.end())
        return Error{ErrorCode::not_found,
                     "there is no embedded sample " + in_quotes(name) + "; there is " +
                         join_for_message(samples),
                     "embedded samples"};
    return std::shared_ptr<const FileStore>(std::make_shared<EmbeddedStore>(name));
}

} // namespace posiscope::core
