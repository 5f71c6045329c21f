// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/open_model.h"

#include <utility>

#include "core/checkpoint/reading_scope.h"
#include "core/model/family_table.h"
#include "core/model/tensor_names.h"

namespace posiscope::core {

Result<std::shared_ptr<const OpenModel>> open_model(const std::string& location, const RunContext& ctx)
{
    const ReadingScope scope(ctx); // families look for files, too, and vocabularies are files
    auto checkpoint = open_checkpoint(location, ctx);
    if (!checkpoint) return checkpoint.error();
    auto model = std::make_shared<OpenModel>();
    model->checkpoint = *checkpoint;
    model->warnings = (*checkpoint)->warnings();

    std::vector<std::string> notes;
    const auto family = find_family(**checkpoint, notes);
    if (!family) return family.error();
    const TensorNames names(**checkpoint, {(*family)->name_prefixes.begin(), (*family)->name_prefixes.end()});
    auto architecture = (*family)->read_architecture(names);
    if (!architecture) return architecture.error();
    model->architecture = *std::move(architecture);
    model->unmatched_tensors = names.unmatched();
    model->prefixes = names.prefixes();
    model->architecture.family_id = (*family)->id;
    model->architecture.family_label = (*family)->label;
    auto words = read_vocabularies(**checkpoint, model->architecture, **family, model->warnings);
    // A vocabulary that cannot be read is a warning; one that was stopped in the middle is a stop.
    if (ctx.cancelled()) return cancelled_error("opening " + (*checkpoint)->display_name());
    model->vocabulary = std::move(words.shared);
    model->stack_vocabularies = std::move(words.of_stacks);

    model->warnings.insert(model->warnings.end(), notes.begin(), notes.end());
    model->warnings.insert(model->warnings.end(), model->architecture.notes.begin(),
                           model->architecture.notes.end());
    return std::shared_ptr<const OpenModel>(std::move(model));
}

} // namespace posiscope::core
