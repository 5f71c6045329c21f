// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/projection/pca.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <Eigen/Dense>

#include "core/base/random.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"

namespace posiscope::core {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Eigen::Index subspace = 8; ///< more than the two that are wanted: the rest makes them come quickly
constexpr std::size_t rows_in_block = 64;
constexpr int most_steps = 300;
constexpr double tolerance = 1e-5; ///< of the residual against the eigenvalue

std::size_t size_of(Eigen::Index n)
{
    return static_cast<std::size_t>(n);
}

/// Centred vectors in float32, the sums in double.
FloatMatrix centred(MatrixView vectors, Eigen::VectorXd& mean)
{
    const auto n = static_cast<Eigen::Index>(vectors.rows), d = static_cast<Eigen::Index>(vectors.cols);
    mean = Eigen::VectorXd::Zero(d);
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index f = 0; f < d; ++f) mean(f) += static_cast<double>(vectors(size_of(i), size_of(f)));
    mean /= static_cast<double>(n);
    FloatMatrix out(n, d);
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index f = 0; f < d; ++f)
            out(i, f) = static_cast<float>(static_cast<double>(vectors(size_of(i), size_of(f))) - mean(f));
    return out;
}

/// out [n, k] = rows [n, d] * directions [k, d] transposed
FloatMatrix project(const FloatMatrix& rows, const FloatMatrix& directions)
{
    FloatMatrix out(rows.rows(), directions.rows());
    const std::size_t n = size_of(rows.rows()), d = size_of(rows.cols()), k = size_of(directions.rows());
    parallel_blocks((n + rows_in_block - 1) / rows_in_block, [&](std::size_t block) {
        const std::size_t begin = block * rows_in_block, count = std::min(rows_in_block, n - begin);
        kernels().multiply_nt(count, k, d, rows.data() + begin * d, d, directions.data(), d,
                              out.data() + begin * k, k);
    });
    return out;
}

/// Orthonormal rows, in place; a row that depends on those before it becomes zero.
void orthonormalise(Matrix& rows)
{
    for (Eigen::Index r = 0; r < rows.rows(); ++r) {
        const double before = rows.row(r).norm();
        for (int pass = 0; pass < 2; ++pass)
            for (Eigen::Index s = 0; s < r; ++s) rows.row(r) -= rows.row(r).dot(rows.row(s)) * rows.row(s);
        const double norm = rows.row(r).norm();
        if (norm > 1e-6 * before && norm > 0.0)
            rows.row(r) /= norm;
        else
            rows.row(r).setZero();
    }
}

} // namespace

Result<PcaMap> pca(MatrixView vectors, const RunContext& ctx)
{
    const auto start = std::chrono::steady_clock::now();
    if (auto fit = check_vectors(vectors, 2, "PCA"); !fit) return fit.error();
    Eigen::VectorXd mean;
    FloatMatrix rows = centred(vectors, mean);
    // Scaled so that neither squares nor their sums leave float32's range.
    const double scale = static_cast<double>(rows.cwiseAbs().maxCoeff());
    rows *= static_cast<float>(1.0 / scale);
    const Eigen::Index n = rows.rows(), d = rows.cols(), k = std::min({subspace, n, d});

    Matrix directions(k, d);
    Random random(0);
    for (Eigen::Index r = 0; r < k; ++r)
        for (Eigen::Index f = 0; f < d; ++f) directions(r, f) = random.normal();
    orthonormalise(directions);
    FloatMatrix projected;
    double total = 0.0;
    for (Eigen::Index i = 0; i < n; ++i)
        for (Eigen::Index f = 0; f < d; ++f)
            total += static_cast<double>(rows(i, f)) * static_cast<double>(rows(i, f));
    Eigen::VectorXd variances = Eigen::VectorXd::Zero(k);
    for (int step = 0; step < most_steps; ++step) {
        if (ctx.cancelled()) return cancelled_error("PCA");
        ctx.report({"pca", static_cast<std::size_t>(step), static_cast<std::size_t>(most_steps)});
        projected = project(rows, directions.cast<float>());
        FloatMatrix back(k, d);
        kernels().multiply_tn(size_of(k), size_of(d), size_of(n), projected.data(), size_of(k), rows.data(),
                              size_of(d), back.data(), size_of(d));
        const Matrix image = back.cast<double>();
        // Rayleigh and Ritz: the best directions inside the subspace, largest first.
        Matrix small = image * directions.transpose();
        small = (0.5 * (small + small.transpose())).eval();
        const Eigen::SelfAdjointEigenSolver<Matrix> solver(small);
        const Matrix turn = solver.eigenvectors().rowwise().reverse().transpose();
        variances = solver.eigenvalues().reverse();
        const Matrix ritz = turn * directions, ritz_image = turn * image;
        double worst = 0.0;
        for (Eigen::Index r = 0; r < std::min<Eigen::Index>(2, k); ++r)
            worst = std::max(worst, (ritz_image.row(r) - variances(r) * ritz.row(r)).norm());
        directions = ritz;
        if (worst <= tolerance * variances(0)) break;
        directions = ritz_image;
        orthonormalise(directions);
    }

    PcaMap out;
    out.mean.assign(mean.begin(), mean.end());
    projected = project(rows, directions.cast<float>());
    for (Eigen::Index r = 0; r < 2; ++r) {
        std::vector<double>& axis = r == 0 ? out.points.x : out.points.y;
        axis.assign(size_of(n), 0.0);
        if (r >= k) continue;
        Eigen::Index largest = 0;
        directions.row(r).cwiseAbs().maxCoeff(&largest);
        const double sign = directions(r, largest) < 0.0 ? -scale : scale;
        std::vector<double>& direction = out.directions[size_of(r)];
        direction.resize(size_of(d));
        for (Eigen::Index f = 0; f < d; ++f)
            direction[size_of(f)] = directions(r, largest) < 0.0 ? -directions(r, f) : directions(r, f);
        for (Eigen::Index i = 0; i < n; ++i) axis[size_of(i)] = sign * static_cast<double>(projected(i, r));
        out.variance_share[size_of(r)] = std::clamp(variances(r) / total, 0.0, 1.0);
    }
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return out;
}

} // namespace posiscope::core
