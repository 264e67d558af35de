#include "newton_step.h"

namespace spdc {

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
    const Eigen::VectorXd residual = right - matrix_->selfadjointView<Eigen::Upper>() * solution;
    const Eigen::VectorXd refined = solution + solve_once(residual);
    const Eigen::VectorXd left = right - matrix_->selfadjointView<Eigen::Upper>() * refined;
    if (left.cwiseProduct(scale_).squaredNorm() < residual.cwiseProduct(scale_).squaredNorm()) solution = refined;
    return solution;
}

double first_width(const NewtonLoss &loss, const LossRows &rows, const double *z) {
    if (!loss.can_smooth()) return 0;
    NewtonLoss trial = loss;
    trial.set_width(0);
    if (!loss.must_smooth() && trial.curved_share(rows, z) > 0.5) return 0;
    double width = 2;
    const auto suffices = [&](double w) {
        trial.set_width(w);
        return trial.curved_share(rows, z) > 0.75;
    };
    while (width > 1e-150 && suffices(width / 4))
        width /= 4;
    while (width < 1e150 && !suffices(width))
        width *= 4;
    return width;
}

double next_width(const NewtonLoss &loss, double width) {
    if (!loss.must_smooth() && width <= 4 * loss.gamma()) return 0;
    return width / 4;
}

} // namespace spdc
