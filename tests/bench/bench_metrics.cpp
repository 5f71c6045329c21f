// SPDX-License-Identifier: GPL-3.0-or-later
// Time of the property table with its bootstrap: bench_metrics [length] [heads].
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "core/kernels/thread_pool.h"
#include "core/metrics/map_report.h"
#include "core/metrics/metric_table.h"
#include "tests/support/synthetic_probe.h"

namespace {

double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

int main(int argc, char** argv)
{
    using namespace posiscope::core;
    const long length = argc > 1 ? std::atol(argv[1]) : 128;
    const long heads = argc > 2 ? std::atol(argv[2]) : 12;
    const ProbeResult probe =
        posiscope::tests::synthetic_probe({.heads = heads, .length = length, .groups = most_groups});
    std::printf("length %ld, %ld heads, %zu groups, %zu threads\n", length, heads, most_groups,
                thread_count());
    constexpr int runs = 3;
    for (int run = 0; run < runs; ++run)
        for (const std::size_t resamples : {std::size_t{0}, std::size_t{1000}}) {
            MetricOptions options;
            options.resamples = resamples;
            const auto start = std::chrono::steady_clock::now();
            const auto table = evaluate_metrics(probe, options, {});
            std::printf("%zu rows of the head mean, %zu resamples: %.3f s\n", table ? table->rows.size() : 0,
                        resamples, seconds_since(start));
        }
    const auto start = std::chrono::steady_clock::now();
    const auto report = probe_report(probe, {});
    std::printf("report of every head, %zu bytes: %.3f s\n", report.dump().size(), seconds_since(start));
    return 0;
}
