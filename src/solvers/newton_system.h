// The linear systems of Newton's method, behind one door for methods that do not care which of rows and features are fewer.
//
// Given w and h of every row, the step s solves  Lambda (x + s) + (1/n) A'(w + h (A s)) + c = 0, where c is the slope of a linear
// term that a system of features may have.
#pragma once

#include "newton_loss.h"
#include "newton_rows.h"
#include "spdc/solvers.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace spdc {

class NewtonSystem {
  public:
    /// Rows come in stretches [begin, end) of at most so many, a multiple of 4, several at a time when there are threads.
    static constexpr std::size_t longest_stretch = 256;
    using Fill = std::function<void(std::size_t begin, std::size_t end, double *w, double *h)>;
    using Look = std::function<void(std::size_t begin, std::size_t end, RowSums &sums)>;
    using Watch =
        std::function<void(std::size_t begin, std::size_t end, RowSums &sums, double *w)>; // w: null when not asked

    virtual ~NewtonSystem() = default;
    NewtonSystem() = default;
    NewtonSystem(const NewtonSystem &) = delete;
    NewtonSystem &operator=(const NewtonSystem &) = delete;

    /// The rows in the system's own order, padded with rows of importance 0.
    virtual LossRows rows() const = 0;
    /// How many there are without the padding.
    virtual std::size_t row_count() const = 0;
    /// Row of the problem at this place.
    virtual std::size_t row_at(std::size_t place) const = 0;
    /// n of the equations: the sum over the rows is divided by it.
    virtual double divisor() const = 0;
    virtual Team &team() const = 0;

    /// Calls `look` on all rows and adds up.
    virtual RowSums look(const Look &look) = 0;
    /// Finds the step for what `fill` writes (without `factors` h is not asked for, the one before still holds), puts A s into
    /// `move`, and calls `watch` on all rows; false: no step. With a finite goal, `watch` writes omega times the duals after the
    /// step, and the step is refined until they pay at most `goal` for not matching x + s, or as little as rounding allows.
    virtual bool solve(const double *z, const Fill &fill, bool factors, double *move, const Watch &watch, RowSums &sums,
                       double goal = infinity) = 0;
    /// x <- x + t s
    virtual void take(double t) = 0;
    /// sum_j r_j^2/(2 lambda_j) of r = Lambda x + (1/n) A'w + c: what w as a dual point pays for not matching x.
    virtual double mismatch(const Fill &fill) = 0;
    /// The same for duals that began as the last w so measured and took all steps with x.
    virtual double mismatch() const = 0;
    /// With the linear term.
    virtual double penalty() const = 0;
    /// d/dt of the penalty of x + t s at 0, and the second derivative.
    virtual LineSlope penalty_slope() const = 0;
    virtual void point(std::vector<double> &x) const = 0;
    double passes() const { return passes_; }
    int threads() const { return threads_; }

  protected:
    double passes_ = 0;
    int threads_ = 1;
};

/// Where a system may differ from its problem: it has some of the rows, the caller's list, and another number in place of n (0: n);
/// a linear term <slope, x> + constant of the objective; and where to start.
struct PrimalExtras {
    std::span<const std::int32_t> rows;
    double divisor = 0;
    std::vector<double> slope;
    double constant = 0;
    std::vector<double> x;
};

/// A matrix of dimension x dimension.
std::unique_ptr<NewtonSystem> make_primal_system(const Problem &problem, const SolveContext &context,
                                                 const PrimalExtras &extras = {});

/// A matrix of rows x rows. Needs a positive penalty on all but a few coordinates.
std::unique_ptr<NewtonSystem> make_dual_system(const Problem &problem, const SolveContext &context);

} // namespace spdc
