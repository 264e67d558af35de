#include "newton_step.h"

namespace spdc {

namespace {

/// M v for a symmetric M of which only the upper half is there.
Eigen::VectorXd product(const Eigen::MatrixXd &upper, const Eigen::VectorXd &v) {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(v.size());
    for (Eigen::Index c = 0; c < v.size(); ++c) {
        result.head(c) += v[c] * upper.col(c).head(c);
        result[c] += upper.col(c).head(c + 1).dot(v.head(c + 1));
    }
    return result;
}

} // namespace

bool ScaledCholesky::factor(const Eigen::MatrixXd &matrix) {
    matrix_ = &matrix;
    const Eigen::Index d = matrix.rows();
    if (!matrix.diagonal().allFinite()) return false;
    scale_ = matrix.diagonal().unaryExpr([](double v) { return v > 0 ? 1 / std::sqrt(v) : 1.0; });
    for (double ridge = 0; ridge < 1; ridge = std::max(1e-14, 100 * ridge)) {
        Eigen::MatrixXd scaled(d, d);
        for (Eigen::Index c = 0; c < d; ++c) {
            scaled.col(c).head(c) = scale_[c] * scale_.head(c).cwiseProduct(matrix.col(c).head(c));
            scaled(c, c) = 1 + ridge; // a column without entries and penalty has no diagonal: its step is 0
        }
        factor_.compute(scaled);
        if (factor_.info() == Eigen::Success && (d == 0 || factor_.matrixLLT().diagonal().minCoeff() > 1e-8))
            return true;
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
