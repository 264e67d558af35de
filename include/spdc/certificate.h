// The certificate: the gap of the original problem, from scratch.
#pragma once

#include "spdc/problem.h"

#include <memory>
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
    /// The bits do not depend on the number of threads.
    explicit Certifier(const Problem &problem, int threads = 1);
    /// On threads that are there already and that nobody else uses during a call.
    Certifier(const Problem &problem, Team &team);
    ~Certifier();

    /// Offers a pair (any x in R^dimension, y in R^rows inside the loss's dual domains). It takes the exact intercept, and scales
    /// or projects dual points until they are feasible. As long as the relative gap is above `good_enough` it also tries the primal
    /// point that y implies or the dual point that x implies, whichever ends the larger part of the gap, less and less often where
    /// that does not help. With infinity x is taken as it is, intercept and all.
    const Certificate &offer(std::span<const double> x, std::span<const double> y, double good_enough);
    /// The same for a pair that need not be kept, at best in memory that room() gave: nothing is copied.
    struct Pair {
        std::vector<double> x, y;
    };
    const Certificate &offer(Pair &&pair, double good_enough);
    /// Memory of an earlier pair, whatever is in it.
    Pair room();

    const Certificate &certificate() const noexcept;
    std::span<const double> x() const noexcept;
    std::span<const double> y() const noexcept;
    /// x() and y() by value, at the end: there are none left.
    Pair take();
    /// Predictions at x().
    std::span<const double> predictions() const noexcept;

    /// Its threads, for work between two offers.
    Team &team() noexcept;

    /// True when x() shows a direction along which the objective falls for ever: there is no minimiser.
    bool has_no_minimizer() const;

  private:
    class Points;
    std::unique_ptr<Points> points_;
};

/// The smallest l1 at which the model without features is optimal: max_j |u_j| / factor_j at the dual of the best constant
/// model (the zero model without a free intercept), bounds apart.
double l1_max(const Problem &problem);

} // namespace spdc
