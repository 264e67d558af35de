// What the primal and the dual-sized Newton method share: the factor, and the search along a step.
#pragma once

#include "cholesky.h"
#include "newton_loss.h"

#include <Eigen/Core>

#include <cmath>

namespace spdc {

/// Cholesky of a symmetric matrix scaled to a unit diagonal, so that the units of the columns do not matter, with a ridge where
/// the matrix is not positive definite in floating point.
class ScaledCholesky {
  public:
    /// Takes the lower half of `matrix`, which must outlive the factor; false when no ridge helps.
    bool factor(const Eigen::MatrixXd &matrix, Team &team);
    /// matrix^-1 right, refined once against the matrix itself.
    Eigen::VectorXd solve(const Eigen::VectorXd &right) const;

  private:
    Eigen::VectorXd solve_once(const Eigen::VectorXd &right) const;

    const Eigen::MatrixXd *matrix_ = nullptr;
    Eigen::VectorXd scale_;
    Cholesky factor_;
};

/// Where the derivative of a convex function changes sign in (0, upper], to a hundredth of its size at 0: `slope(t)` gives first
/// and second derivative, at_zero is the first at 0 and negative, the one at `upper` is positive or not a number.
template <class Slope> double line_minimum(Slope slope, double at_zero, double upper) {
    double lower = 0, t = 0.5 * upper;
    for (int iteration = 0; iteration < 60; ++iteration) {
        const LineSlope now = slope(t);
        if (std::fabs(now.first) <= -0.01 * at_zero) return t;
        (now.first < 0 ? lower : upper) = t;            // a NaN is beyond the range of the loss: too far
        if (upper - lower < 1e-3 * upper) return lower; // at a kink of the penalty the slope has no zero
        double next = t - now.first / now.second;
        if (!(lower < next && next < upper) || iteration % 4 == 3) next = 0.5 * (lower + upper);
        t = next;
    }
    return lower;
}

} // namespace spdc
