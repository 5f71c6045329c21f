// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/checkpoint/reading_scope.h"

namespace posiscope::core {
namespace {

constexpr std::int64_t values_at_once = 4'000'000;

/// Mean and spread over pieces (Chan, Golub and LeVeque 1979), so that large means do not drown small spreads.
class Collector {
public:
    void add(std::span<const float> values)
    {
        m_result.count += values.size();
        double sum = 0.0;
        std::uint64_t finite = 0;
        for (const float value : values) {
            if (std::isnan(value)) {
                ++m_result.nan_count;
            } else if (std::isinf(value)) {
                ++m_result.infinite_count;
            } else {
                sum += value;
                ++finite;
                m_least = std::min(m_least, static_cast<double>(value));
                m_most = std::max(m_most, static_cast<double>(value));
            }
        }
        if (finite == 0) return;
        const double mean = sum / static_cast<double>(finite);
        double squares = 0.0;
        for (const float value : values)
            if (std::isfinite(value)) squares += (value - mean) * (value - mean);
        const auto before = static_cast<double>(m_finite), now = static_cast<double>(finite);
        const double difference = mean - m_mean;
        m_squares += squares + difference * difference * before * now / (before + now);
        m_mean += difference * now / (before + now);
        m_finite += finite;
    }

    [[nodiscard]] TensorStatistics result() const
    {
        TensorStatistics out = m_result;
        if (m_finite == 0) {
            out.least = out.most = out.mean = out.standard_deviation =
                std::numeric_limits<double>::quiet_NaN();
            return out;
        }
        out.least = m_least;
        out.most = m_most;
        out.mean = m_mean;
        out.standard_deviation = std::sqrt(m_squares / static_cast<double>(m_finite));
        return out;
    }

private:
    TensorStatistics m_result;
    std::uint64_t m_finite = 0;
    double m_least = std::numeric_limits<double>::infinity(),
           m_most = -std::numeric_limits<double>::infinity();
    double m_mean = 0.0, m_squares = 0.0;
};

} // namespace

Result<TensorStatistics> tensor_statistics(const Checkpoint& checkpoint, std::string_view name,
                                           const RunContext& ctx)
{
    const ReadingScope scope(ctx);
    Collector collector;
    const TensorInfo* info = checkpoint.find(name);
    std::int64_t rows = 1;
    const std::int64_t length = info == nullptr || info->shape.empty() ? 1 : info->shape.back();
    if (info != nullptr)
        for (std::size_t axis = 0; axis + 1 < info->shape.size(); ++axis) rows *= info->shape[axis];
    const bool in_parts = rows > 1 && length > 0 && rows > values_at_once / length;
    if (!in_parts) {
        if (ctx.cancelled()) return cancelled_error("counting a tensor's values");
        const auto tensor = checkpoint.read(name);
        if (!tensor) return tensor.error();
        collector.add(tensor->values());
        return collector.result();
    }
    const std::int64_t step = std::max<std::int64_t>(1, values_at_once / length);
    for (std::int64_t first = 0; first < rows; first += step) {
        if (ctx.cancelled()) return cancelled_error("counting a tensor's values");
        std::vector<std::int64_t> part(static_cast<std::size_t>(std::min(step, rows - first)));
        std::iota(part.begin(), part.end(), first);
        const auto tensor = checkpoint.read_rows(name, part);
        if (!tensor) return tensor.error();
        collector.add(tensor->values());
        ctx.report({"tensor", static_cast<std::size_t>(std::min(first + step, rows)),
                    static_cast<std::size_t>(rows)});
    }
    return collector.result();
}

} // namespace posiscope::core
