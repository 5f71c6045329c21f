// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/model/engine.h"

namespace posiscope::core {

/// Forward passes on LibTorch. Torch's state is per thread: every function that computes sets its own inference
/// guard and its own number of threads.
class TorchEngine final : public Engine {
public:
    /// Looks at what runs here, and holds a few small products against plain sums.
    TorchEngine();

    [[nodiscard]] std::string version() const override;
    [[nodiscard]] std::string kernels() const override { return m_kernels; }
    [[nodiscard]] std::vector<std::string> devices() const override { return m_devices; }
    [[nodiscard]] bool has_cuda() const override { return m_devices.size() > 1; }
    [[nodiscard]] std::vector<std::string> warnings() const override { return m_warnings; }

    Result<ForwardResult> attention_maps(const Network& network, const ForwardOptions& options,
                                         const RunContext& ctx) override;

private:
    std::string m_kernels;
    std::vector<std::string> m_devices;
    std::vector<std::string> m_warnings;
};

/// Largest difference between LibTorch's product of two seeded matrices [rows, inner] x [inner, cols] and the plain
/// sum in double, in units of the rounding that float32 allows (about 1 where the product is right).
double product_error(std::int64_t rows, std::int64_t inner, std::int64_t cols);

} // namespace posiscope::core
