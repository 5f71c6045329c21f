// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/tsne.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "core/projection/pca.h"
#include "core/projection/point_tree.h"
#include "core/projection/tsne_affinities.h"

namespace posiscope::core {
namespace {

constexpr std::size_t least_vectors = 4;
constexpr std::size_t slow_iterations = 250; ///< with the smaller momentum
constexpr std::size_t check_every = 50;      ///< iterations between looks at the norm of the gradient
constexpr double start_spread = 1e-4;        ///< standard deviation along the first axis at the start

Error refused(std::string message)
{
    return Error{ErrorCode::invalid_argument, std::move(message), "t-SNE"};
}

std::string short_number(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

double spread_of(const std::vector<double>& values)
{
    const double n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0.0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / n);
}

void centre(std::vector<double>& values)
{
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    for (double& value : values) value -= mean;
}

Result<PointMap2D> starting_points(MatrixView vectors, const TsneOptions& options, const RunContext& ctx)
{
    Random random(options.seed);
    PointMap2D map;
    if (options.start == TsneStart::random) {
        for (std::size_t i = 0; i < vectors.rows; ++i) {
            map.x.push_back(start_spread * random.normal());
            map.y.push_back(start_spread * random.normal());
        }
        return map;
    }
    auto axes = pca(vectors, RunContext{ctx.stop, {}});
    if (!axes) return axes.error();
    map = std::move(axes->points);
    const double scale = start_spread / spread_of(map.x);
    for (double& value : map.x) value *= scale;
    for (double& value : map.y) value *= scale;
    // Vectors on a line have no second axis, and no force would ever leave it.
    if (!(spread_of(map.y) > 1e-6 * start_spread))
        for (double& value : map.y) value = 0.01 * start_spread * random.normal();
    return map;
}

/// The gradient of the divergence, up to the factor 4.
class Gradient {
public:
    Gradient(const Affinities& affinities, double openness) : m_affinities(affinities), m_openness(openness)
    {
        const std::size_t n = affinities.count;
        m_xs.resize(n);
        m_ys.resize(n);
        m_forces.resize(n);
        x.resize(n);
        y.resize(n);
    }

    std::vector<double> x, y;

    void evaluate(const PointMap2D& map, double exaggeration)
    {
        const std::size_t n = m_affinities.count;
        for (std::size_t i = 0; i < n; ++i) {
            m_xs[i] = static_cast<float>(map.x[i]);
            m_ys[i] = static_cast<float>(map.y[i]);
        }
        if (n <= most_all_pairs)
            all_pairs();
        else
            by_tree(map);
        double total = -static_cast<double>(n); // every point is its own neighbour in the sums, with weight 1
        for (const PointForces& forces : m_forces) total += static_cast<double>(forces.weight);
        for (std::size_t i = 0; i < n; ++i) {
            const PointForces& forces = m_forces[i];
            x[i] = exaggeration * static_cast<double>(forces.attraction_x) -
                   static_cast<double>(forces.repulsion_x) / total;
            y[i] = exaggeration * static_cast<double>(forces.attraction_y) -
                   static_cast<double>(forces.repulsion_y) / total;
        }
    }

private:
    /// Blocks large enough to be worth waking a thread for.
    static constexpr std::size_t pairs_in_block = 64 * 1024;

    void all_pairs()
    {
        const std::size_t n = m_affinities.count;
        const PointKernels& loops = *kernels().points;
        const std::size_t rows = std::max<std::size_t>(1, pairs_in_block / n);
        parallel_blocks((n + rows - 1) / rows, [&](std::size_t block) {
            for (std::size_t i = block * rows; i < std::min(n, (block + 1) * rows); ++i)
                if (m_affinities.dense.empty())
                    m_forces[i] =
                        with_attraction(i, loops.repulsion(m_xs[i], m_ys[i], m_xs.data(), m_ys.data(), n));
                else
                    m_forces[i] = loops.dense_forces(m_xs[i], m_ys[i], m_affinities.dense.data() + i * n,
                                                     m_xs.data(), m_ys.data(), n);
        });
    }

    void by_tree(const PointMap2D& map)
    {
        constexpr std::size_t groups_in_block = 8;
        m_tree.build(map.x, map.y);
        const PointKernels& loops = *kernels().points;
        const std::size_t groups = m_tree.group_count();
        parallel_blocks((groups + groups_in_block - 1) / groups_in_block, [&](std::size_t block) {
            PointTree::Sources sources;
            for (std::size_t g = block * groups_in_block; g < std::min(groups, (block + 1) * groups_in_block);
                 ++g) {
                m_tree.collect(g, m_openness, sources);
                for (const std::uint32_t i : m_tree.group(g))
                    m_forces[i] = with_attraction(
                        i, loops.repulsion_of_masses(m_xs[i], m_ys[i], sources.xs.data(), sources.ys.data(),
                                                     sources.masses.data(), sources.xs.size()));
            }
        });
    }

    PointForces with_attraction(std::size_t i, PointForces forces) const
    {
        const std::size_t begin = m_affinities.first[i], count = m_affinities.first[i + 1] - begin;
        const PointForces pull = kernels().points->sparse_attraction(
            m_xs[i], m_ys[i], m_affinities.values.data() + begin, m_affinities.neighbours.data() + begin,
            count, m_xs.data(), m_ys.data());
        forces.attraction_x = pull.attraction_x;
        forces.attraction_y = pull.attraction_y;
        return forces;
    }

    const Affinities& m_affinities;
    double m_openness;
    std::vector<float> m_xs, m_ys;
    std::vector<PointForces> m_forces;
    PointTree m_tree;
};

/// Positions with their velocities and gains. Source: van der Maaten's tsne code; gains after Jacobs 1988.
class Descent {
public:
    explicit Descent(std::size_t n) : m_step(n, 0.0), m_gain(n, 1.0) {}

    /// @return the squared norm of the gradient
    double move(std::vector<double>& positions, const std::vector<double>& gradient, double momentum,
                double rate)
    {
        constexpr double factor = 4.0; // of the gradient of the divergence
        double squares = 0.0;
        for (std::size_t i = 0; i < positions.size(); ++i) {
            const double slope = factor * gradient[i];
            squares += slope * slope;
            m_gain[i] =
                std::max((slope > 0.0) != (m_step[i] > 0.0) ? m_gain[i] + 0.2 : 0.8 * m_gain[i], 0.01);
            m_step[i] = momentum * m_step[i] - rate * m_gain[i] * slope;
            positions[i] += m_step[i];
        }
        return squares;
    }

private:
    std::vector<double> m_step, m_gain;
};

Result<void> check_options(const TsneOptions& options)
{
    if (!std::isfinite(options.perplexity) || options.perplexity < 1.0)
        return refused("the perplexity is " + short_number(options.perplexity) +
                       "; it counts neighbours and must be at least 1");
    if (options.iterations < 1) return refused("the number of iterations is 0; it must be at least 1");
    if (!(options.early_exaggeration >= 1.0) || !(options.learning_rate >= 0.0) ||
        !(options.least_gradient_norm >= 0.0) || !(options.openness >= 0.0))
        return refused(
            "the exaggeration must be at least 1; learning rate, gradient norm and openness not negative");
    return {};
}

} // namespace

std::string_view tsne_start_name(TsneStart start)
{
    return start == TsneStart::pca ? "pca" : "random";
}

Result<TsneResult> tsne(MatrixView vectors, const TsneOptions& options, const RunContext& ctx,
                        const std::function<void(const TsneSnapshot&)>& watch)
{
    const auto start = std::chrono::steady_clock::now();
    if (auto fit = check_options(options); !fit) return fit.error();
    if (auto fit = check_vectors(vectors, least_vectors, "t-SNE"); !fit) return fit.error();
    const std::size_t n = vectors.rows;
    TsneResult out;
    out.options = options;
    out.perplexity = std::min(options.perplexity, static_cast<double>(n - 1) / 3.0);
    if (out.perplexity < options.perplexity)
        out.warnings.push_back("perplexity " + short_number(options.perplexity) + " is too large for " +
                               std::to_string(n) + " vectors; " + short_number(out.perplexity) +
                               " (a third of the others) was used");

    ctx.report({"tsne", 0, options.iterations});
    const auto affinities = find_affinities(vectors, out.perplexity, ctx);
    if (!affinities) return affinities.error();
    auto points = starting_points(vectors, options, ctx);
    if (!points) return points.error();
    out.points = *std::move(points);

    const double rate = options.learning_rate > 0.0
                            ? options.learning_rate
                            : std::max(static_cast<double>(n) / options.early_exaggeration / 4.0, 50.0);
    const std::size_t exaggerated = std::min(options.exaggerated, options.iterations / 2);
    Gradient gradient(*affinities, options.openness);
    Descent along_x(n), along_y(n);
    double norm_before = 0.0;
    for (std::size_t iteration = 1; iteration <= options.iterations; ++iteration) {
        if (ctx.cancelled()) return cancelled_error("t-SNE");
        const bool early = iteration <= exaggerated;
        const double left =
            early ? 1.0 - static_cast<double>(iteration) / static_cast<double>(exaggerated) : 0.0;
        gradient.evaluate(out.points, std::pow(options.early_exaggeration, left));
        const double momentum = iteration <= slow_iterations ? 0.5 : 0.8;
        const double squares = along_x.move(out.points.x, gradient.x, momentum, rate) +
                               along_y.move(out.points.y, gradient.y, momentum, rate);
        if (!std::isfinite(squares))
            return Error{ErrorCode::numeric_failure,
                         "the map left the range of numbers in iteration " + std::to_string(iteration) +
                             "; a smaller learning rate than " + short_number(rate) + " may help",
                         "t-SNE"};
        centre(out.points.x);
        centre(out.points.y);
        out.iterations = iteration;
        out.gradient_norm = std::sqrt(squares);
        ctx.report({"tsne", iteration, options.iterations});
        if (watch) watch({iteration, out.points.x, out.points.y});
        if (early || (iteration - exaggerated) % check_every != 0) continue;
        // A map that the exaggeration drew into a point has a small gradient, too, but one that grows.
        if (out.gradient_norm < options.least_gradient_norm && out.gradient_norm <= norm_before) break;
        norm_before = out.gradient_norm;
    }
    if (ctx.cancelled()) return cancelled_error("t-SNE");
    out.divergence = divergence(*affinities, out.points.x, out.points.y);
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return out;
}

} // namespace posiscope::core
