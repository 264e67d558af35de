// Cholesky's factor of a large matrix, in pieces that threads share and between which a run can be interrupted.
#pragma once

#include "parallel.h"

#include <Eigen/Core>

#include <limits>
#include <utility>

namespace spdc {

/// L L' = M for a symmetric positive definite M. Up to `block` columns this is Eigen's factor; beyond that M is taken apart by such blocks,
/// and all but their own factors is products of columns, which run in the widest form the processor has (newton_kernels.h). Every number
/// is computed by one thread, so the bits do not depend on how many there are.
class Cholesky {
  public:
    static constexpr Eigen::Index block = 128;

    /// Takes the lower half of M. False where a pivot is not positive: then there is no factor.
    bool compute(Eigen::MatrixXd lower, Team &team);
    bool compute(Eigen::MatrixXd lower) {
        Team alone(1);
        return compute(std::move(lower), alone);
    }
    /// M^-1 right
    Eigen::VectorXd solve(Eigen::VectorXd right) const;
    double smallest_pivot() const { return factor_.rows() > 0 ? factor_.diagonal().minCoeff() : infinite; }

  private:
    static constexpr double infinite = std::numeric_limits<double>::infinity();
    bool factor_block(Eigen::Index begin, Eigen::Index size);
    void solve_panel(Eigen::Index begin, Team &team);
    void subtract_products(Eigen::Index end, Team &team);

    Eigen::MatrixXd factor_;
    Eigen::MatrixXd panel_, minus_panel_; // the rows of the last panel as columns, and times -1
};

} // namespace spdc
