// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/model/open_model.h"
#include "tests/support/checkpoint_builder.h"

namespace posiscope::tests {

inline std::filesystem::path family_folder(const std::string& family)
{
    return std::filesystem::path(POSISCOPE_TEST_DATA) / "families" / family;
}

/// Tensors and config of a family's tiny checkpoint, by the names in its file, to be changed and written again. Without
/// a vocabulary.
inline CheckpointBuilder fixture_checkpoint(const std::string& family)
{
    const auto checkpoint = core::open_checkpoint(family_folder(family).string(), {});
    if (!checkpoint) throw std::runtime_error(core::describe(checkpoint.error()));
    CheckpointBuilder builder;
    builder.tensors.clear();
    builder.words.clear();
    builder.config = (*checkpoint)->config().root();
    for (const core::TensorInfo& info : (*checkpoint)->tensors()) {
        const auto read = (*checkpoint)->read(info.name);
        if (!read) throw std::runtime_error(core::describe(read.error()));
        builder.tensors.push_back({info.name, info.shape, {read->values().begin(), read->values().end()}});
    }
    return builder;
}

/// A checkpoint on disk, opened, for as long as it is needed.
class OpenedCheckpoint {
public:
    explicit OpenedCheckpoint(const CheckpointBuilder& builder)
    {
        builder.write_to(folder);
        model = core::open_model(folder.path(), {});
    }
    /// The fixture of a family, changed.
    template <class Change>
    OpenedCheckpoint(const std::string& family, const Change& change)
        : OpenedCheckpoint(changed(fixture_checkpoint(family), change))
    {
    }

    [[nodiscard]] const core::OpenModel& operator*() const { return **model; }
    [[nodiscard]] const core::OpenModel* operator->() const { return model->get(); }
    [[nodiscard]] const core::Stack& stack(std::size_t number = 0) const
    {
        return (*model)->architecture.stacks[number];
    }

    TemporaryFolder folder;
    core::Result<std::shared_ptr<const core::OpenModel>> model{core::Error{}};

private:
    template <class Change>
    static CheckpointBuilder changed(CheckpointBuilder builder, const Change& change)
    {
        change(builder);
        return builder;
    }
};

} // namespace posiscope::tests
