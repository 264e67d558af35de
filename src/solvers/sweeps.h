// What the two kinds of coordinate descent of working_set share: penalties, curvatures, a step, acceleration.
#pragma once

#include "spdc/problem.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spdc {

/// g_j of every coordinate as one type: l1, l2 and bounds, each of which may be absent.
class Penalties {
  public:
    explicit Penalties(const Problem &problem);
    Box operator[](std::int64_t j) const noexcept {
        if (j == features_) return intercept_;
        return factors_.empty() ? feature_ : feature_.scaled(factors_[static_cast<std::size_t>(j)]);
    }
    /// What a derivative's excess is measured in: l1_j, or the features' l1 where the coordinate has none; 0 without l1.
    double unit(const Box &g) const noexcept { return g.l1 > 0 ? g.l1 : feature_.l1; }

  private:
    std::int64_t features_;
    Box feature_, intercept_;
    std::span<const double> factors_;
};

/// The h_i > 0 of the rows: each its own, or all the same where `rows` is empty.
struct Curvatures {
    std::vector<double> rows;
    double same = 0;
    bool are_same() const noexcept { return rows.empty(); }
    double operator[](std::size_t i) const noexcept { return rows.empty() ? same : rows[i]; }
};

/// Where -u may lie for x_j = 0 to be optimal: [-l1, l1], without end on a side that the bounds close.
inline Interval zero_range(const Box &g) noexcept {
    return {g.bounds.lower < 0 ? -g.l1 : -infinity, g.bounds.upper > 0 ? g.l1 : infinity};
}

/// Distance of w from the ends of the range; negative outside.
inline double slack(const Interval &range, double w) noexcept { return std::min(range.upper - w, w - range.lower); }

/// Which features may leave 0 at all, as bytes of 1 or 0. Where the duals are bounded, so is u_j = (1/n) sum_i w_i y_i a_ij: a feature for
/// which no y of the domain of phi* gets |u_j| to l1 stays at 0. On text that is most of them, the rare ones.
std::vector<std::uint8_t> movable_features(const Problem &problem, const Penalties &penalties);

/// What a sweep over coordinates found. A sweep at the optimum finds zeros.
struct SweepResult {
    double decrease = 0;  // of the model, a lower bound
    double violation = 0; // largest excess of a derivative over l1, in its unit
    int crossings = 0;    // coordinates that came to 0, left it or went through it

    bool within(const SweepResult &target) const noexcept {
        return decrease <= target.decrease && violation <= target.violation;
    }
    /// A target that what `first` found, reduced so many times, would meet.
    void widen(const SweepResult &first, double reduction) noexcept {
        decrease = std::max(decrease, reduction * reduction * first.decrease);
        violation = std::max(violation, reduction * first.violation);
    }
};

/// The minimiser of derivative (x - before) + (c/2)(x - before)^2 + g(x); what it gains goes to `result`, excess in `unit`.
inline double coordinate_step(const Box &g, double unit, double before, double derivative, double c,
                              SweepResult &result) noexcept {
    const double after = g.bounds.clip(soft_threshold(c * before - derivative, g.l1) / (c + g.l2));
    const double move = after - before;
    if (move == 0) return before;
    result.decrease += 0.5 * (c + g.l2) * move * move;
    result.crossings += before * after > 0 ? 0 : 1;
    if (unit > 0) result.violation = std::max(result.violation, c * std::fabs(move) / unit);
    return after;
}

/// Weights for all points but the first such that their moves, coordinates measured by `scale`, cancel best; nothing where they
/// are not finite. Anderson acceleration of coordinate descent as in Bertrand and Massias (2021).
using Past = std::vector<std::vector<double>>;
std::optional<std::vector<double>> anderson_weights(const Past &past, std::span<const double> scale);

} // namespace spdc
