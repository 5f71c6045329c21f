// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_context.h"
#include "core/model/open_model.h"
#include "core/projection/pca.h"
#include "core/tensor/host_tensor.h"

namespace posiscope::core {

/// Where a model's position vectors come from.
enum class PositionVectorKind {
    table,          ///< a learned (or stored) table, one row a position
    sinusoids,      ///< computed by the family's formula
    offset_vectors, ///< one row an offset j - i, as the first layer's heads see it
    rotary_phases,  ///< cosines and sines of the angles by which queries and keys are turned
};
/// "table", "sinusoids", "offset_vectors", "rotary_phases": stable.
std::string_view position_vector_kind_name(PositionVectorKind kind);

enum class RowRole {
    used,
    special, ///< of a token before an image's patches
    unused,  ///< no position ever has it (RoBERTa's rows up to the padding token's)
};
/// "used", "special", "unused": stable.
std::string_view row_role_name(RowRole role);

/// The vectors that tell a model's positions (or offsets) apart.
struct PositionVectors {
    PositionVectorKind kind = PositionVectorKind::table;
    HostTensor vectors; ///< [n, features]
    std::vector<std::int64_t>
        positions; ///< of each row: its position or offset; negative for unused rows of a table
    std::vector<RowRole> roles;
    std::string source; ///< "table 'embeddings.position_embeddings.weight', 512 x 384"
    std::int64_t grid_rows = 0, grid_columns = 0; ///< of the used rows, where they are an image's patches

    [[nodiscard]] std::size_t count() const { return positions.size(); }
    /// The rows that positions have, without special and unused ones: [m, features], and their positions.
    [[nodiscard]] HostTensor used_vectors() const;
    [[nodiscard]] std::vector<std::int64_t> used_positions() const;
};

/// Rows that are computed where nothing limits their number.
inline constexpr std::int64_t computed_positions = 512;
/// Offsets to either side of offset vectors.
inline constexpr std::int64_t shown_offsets = 64;

/// Reads (or computes) the position vectors of a stack.
/// @param length  rows of computed vectors; 0: computed_positions. Tables come whole.
/// @error unsupported_model (a scheme without vectors: the sentence names it), not_found, numeric_failure, unreadable
Result<PositionVectors> read_position_vectors(const OpenModel& model, const Stack& stack, std::int64_t length,
                                              const RunContext& ctx);

/// The principal components of the rows that positions have, and every row seen along them: rows that are special or never
/// used are mostly far from all others, and would turn the axes to themselves. `points` has one for each row.
/// @error as pca
Result<PcaMap> position_pca(const PositionVectors& vectors, const RunContext& ctx);

/// Why a stack has no position vectors, as a sentence; empty where it has some. Reads nothing.
std::string lack_of_position_vectors(const Stack& stack);

} // namespace posiscope::core
