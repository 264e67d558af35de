// The certificate: the gap of the original problem, from scratch.
#pragma once

#include "spdc/problem.h"

#include <span>
#include <vector>

namespace spdc {

struct Certificate {
    double primal = infinity;
    double dual = -infinity;
    /// primal - dual, but summed as the non-negative Fenchel-Young terms of every row and coordinate, so that small gaps
    /// do not cancel.
    double gap = infinity;
    /// gap / max(|primal|, |dual|), and 0 when the gap is 0.
    double relative_gap = infinity;
    /// Coordinates that are not penalised: the dual bound holds for all x with |x_j| up to this radius; infinity when
    /// there are none, and then it holds everywhere.
    double radius = infinity;
};

/// Keeps the best primal and the best dual point it was offered, and the gap between the two.
class Certifier {
  public:
    explicit Certifier(const Problem &problem);
    /// What another certifier found, told in the variables of this problem: x and its predictions z, y and its u.
    Certifier(const Problem &problem, const Certificate &found, std::vector<double> x, std::vector<double> z,
              std::vector<double> y, std::vector<double> u);

    /// Offers a pair (any x in R^dimension, y in R^rows inside the loss's dual domains). Besides x and y themselves it tries
    /// the primal point that y implies, the dual point that x implies, the exact intercept, and scales or projects dual
    /// points until they are feasible. `good_enough` is the relative gap at which it stops trying.
    const Certificate &offer(std::span<const double> x, std::span<const double> y, double good_enough);

    const Certificate &certificate() const noexcept { return certificate_; }
    std::span<const double> x() const noexcept { return x_; }
    std::span<const double> y() const noexcept { return y_; }
    /// (1/W) sum_i w_i y_i a_i at y().
    std::span<const double> u() const noexcept { return u_; }
    /// Predictions at x().
    std::span<const double> predictions() const noexcept { return z_; }

    /// True when x() shows a direction along which the objective falls for ever: there is no minimiser.
    bool has_no_minimizer() const;

  private:
    struct PrimalPoint {
        std::vector<double> x, z;
        double value = infinity;
    };
    struct DualPoint {
        std::vector<double> y, u;
        double value = -infinity;
    };
    void offer_primal(PrimalPoint &candidate);
    void offer_dual(DualPoint &candidate);
    void make_feasible(DualPoint &candidate) const;
    double best_scale(const DualPoint &point, double limit) const;
    void improve_intercept(PrimalPoint &point) const;
    double primal_value(const PrimalPoint &point) const;
    double dual_value(const DualPoint &point, double scale) const;
    void measure();

    const Problem &problem_;
    std::vector<double> x_, z_, y_, u_;
    double primal_ = infinity;
    double dual_ = -infinity;
    Certificate certificate_;
};

/// The smallest l1 at which the model without features is optimal: max_j |u_j| / factor_j at the dual of the best constant
/// model (the zero model without a free intercept), bounds apart.
double l1_max(const Problem &problem);

} // namespace spdc
