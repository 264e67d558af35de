// What a step of Newton's method on the features minimises beside the loss: an l2 penalty, by a Cholesky factor, or one with l1 and bounds, by
// coordinate descent (prox-Newton: Lee, Sun and Saunders 2014). newton.cpp does the rest. Coordinates are in the order of RowBlocks.
#pragma once

#include "gram_sweeps.h"
#include "newton_rows.h"
#include "newton_step.h"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spdc {

/// A step, and by how much the model of the objective falls on it.
struct NewtonStep {
    Eigen::VectorXd move;
    double decrement = 0;
};

/// What a step is chosen for: the objective at x and the relative gap that is wanted; and whether the model of the objective is exact.
struct NewtonGoal {
    double objective, tolerance;
    bool is_exact;
};

/// Whether coordinates of the problem are listed by their place among the blocks.
inline std::vector<std::int32_t> coordinates_by_place(const Problem &problem, const RowBlocks &rows) {
    std::vector<std::int32_t> coordinates(rows.dimension());
    for (std::int64_t j = 0; j < problem.dimension(); ++j) coordinates[rows.place_of(j)] = static_cast<std::int32_t>(j);
    return coordinates;
}

/// sum_j (lambda_j/2) x_j^2, lambda_j = 0 allowed.
class RidgeModel {
  public:
    RidgeModel(const Problem &problem, const RowBlocks &rows);

    double penalty(const Eigen::VectorXd &x) const { return 0.5 * l2_.dot(x.cwiseProduct(x)); }
    /// Takes the derivatives of the loss at x; the Hessian, of which the lower half is there, only where `with_hessian`.
    void set(const Eigen::VectorXd &x, Eigen::VectorXd gradient);
    void set_hessian() { hessian_.diagonal() += l2_; }
    /// Of the loss, to be filled in.
    Eigen::MatrixXd &hessian() { return hessian_; }
    /// False where there is none.
    bool choose(const Eigen::VectorXd &x, const NewtonGoal &goal, Team &team, NewtonStep &step);
    /// The objective's slope at x along x.
    double outward_slope(const Eigen::VectorXd &x) const { return gradient_.dot(x); }
    /// The penalty along x + t move.
    auto along(const Eigen::VectorXd &x, const Eigen::VectorXd &move) const {
        const double pull = l2_.cwiseProduct(x).dot(move), stiffness = l2_.cwiseProduct(move).dot(move);
        return [=](double t) { return LineSlope{pull + t * stiffness, stiffness}; };
    }
    /// What the coordinates add to the gap where the dual is phi'(Ax).
    double plain_cost(const Eigen::VectorXd &x, double) const { return squared_over_l2(gradient_, x); }
    /// The same for the dual of the last step, of which `excess` was cut off.
    double newton_cost(const Eigen::VectorXd &x, const Eigen::VectorXd &excess, double) const {
        return squared_over_l2(excess, x);
    }
    /// For how many numbers the rows of a sample are to tell the values.
    double parameters(const Eigen::VectorXd &x) const { return static_cast<double>(x.size()); }

  private:
    double squared_over_l2(const Eigen::VectorXd &residual, const Eigen::VectorXd &x) const;

    Eigen::VectorXd l2_, gradient_; // lambda_j; of the objective
    Eigen::MatrixXd hessian_;
    ScaledCholesky factor_;
};

/// sum_j g_j(x_j) with l1, l2 and bounds.
class SparseModel {
  public:
    SparseModel(const Problem &problem, const RowBlocks &rows)
        : penalties_(problem), coordinates_(coordinates_by_place(problem, rows)), sweeps_(penalties_) {}

    double penalty(const Eigen::VectorXd &x) const;
    void set(const Eigen::VectorXd &, Eigen::VectorXd gradient) { gradient_ = std::move(gradient); }
    void set_hessian();
    Eigen::MatrixXd &hessian() { return hessian_; }
    bool choose(const Eigen::VectorXd &x, const NewtonGoal &goal, Team &team, NewtonStep &step);
    double outward_slope(const Eigen::VectorXd &x) const { return gradient_.dot(x) + slope(x, x, 0).first; }
    auto along(const Eigen::VectorXd &x, const Eigen::VectorXd &move) const {
        return [this, &x, &move](double t) { return slope(x, move, t); };
    }
    double plain_cost(const Eigen::VectorXd &x, double objective) const { return cost(x, gradient_, objective); }
    double newton_cost(const Eigen::VectorXd &x, const Eigen::VectorXd &excess, double objective) const {
        return cost(x, newton_gradient_ - excess, objective);
    }
    double parameters(const Eigen::VectorXd &x) const {
        return 1 + static_cast<double>(std::count_if(x.begin(), x.end(), [](double v) { return v != 0; }));
    }

  private:
    Box g(Eigen::Index place) const { return penalties_[coordinates_[static_cast<std::size_t>(place)]]; }
    LineSlope slope(const Eigen::VectorXd &x, const Eigen::VectorXd &move, double t) const;
    double cost(const Eigen::VectorXd &x, const Eigen::VectorXd &u, double objective) const;

    const Penalties penalties_;
    const std::vector<std::int32_t> coordinates_;
    GramSweeps sweeps_;
    Eigen::VectorXd gradient_, newton_gradient_; // of the loss; and of its model after the step
    Eigen::MatrixXd hessian_;
};

} // namespace spdc
