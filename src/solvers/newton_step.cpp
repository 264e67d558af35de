#include "newton_step.h"

#include <algorithm>

namespace spdc {

namespace {

/// M v for a symmetric M of which only the lower half is there.
Eigen::VectorXd product(const Eigen::MatrixXd &lower, const Eigen::VectorXd &v) {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(v.size());
    for (Eigen::Index c = 0; c < v.size(); ++c) {
        const Eigen::Index below = v.size() - c - 1;
        interruption_point(below);
        result.tail(below) += v[c] * lower.col(c).tail(below);
        result[c] += lower.col(c).tail(below + 1).dot(v.tail(below + 1));
    }
    return result;
}

} // namespace

bool ScaledCholesky::factor(const Eigen::MatrixXd &matrix, Team &team) {
    matrix_ = &matrix;
    const Eigen::Index d = matrix.rows();
    if (!matrix.diagonal().allFinite()) return false;
    scale_ = matrix.diagonal().unaryExpr([](double v) { return v > 0 ? 1 / std::sqrt(v) : 1.0; });
    for (double ridge = 0; ridge < 1; ridge = std::max(1e-14, 100 * ridge)) {
        Eigen::MatrixXd scaled(d, d);
        constexpr Eigen::Index chunk = 64;
        team.for_each((d + chunk - 1) / chunk, 0.5 * static_cast<double>(d * d), [&](std::int64_t k) {
            for (Eigen::Index c = k * chunk; c < std::min((k + 1) * chunk, d); ++c) {
                const Eigen::Index below = d - c - 1;
                scaled.col(c).tail(below) = scale_[c] * scale_.tail(below).cwiseProduct(matrix.col(c).tail(below));
                scaled(c, c) = 1 + ridge; // a column without entries and penalty has no diagonal: its step is 0
            }
        });
        if (factor_.compute(std::move(scaled), team) && factor_.smallest_pivot() > 1e-8) return true;
    }
    return false;
}

Eigen::VectorXd ScaledCholesky::solve_once(const Eigen::VectorXd &right) const {
    return scale_.cwiseProduct(factor_.solve(scale_.cwiseProduct(right)));
}

Eigen::VectorXd ScaledCholesky::solve(const Eigen::VectorXd &right) const {
    Eigen::VectorXd solution = solve_once(right);
    const Eigen::VectorXd residual = right - product(*matrix_, solution);
    const Eigen::VectorXd refined = solution + solve_once(residual);
    const Eigen::VectorXd left = right - product(*matrix_, refined);
    if (left.cwiseProduct(scale_).squaredNorm() < residual.cwiseProduct(scale_).squaredNorm()) solution = refined;
    return solution;
}

} // namespace spdc
