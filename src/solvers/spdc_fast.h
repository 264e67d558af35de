// What the serial kernel of spdc_fast and its threaded one (spdc_owners.cpp) share: the rule for omega, shrinking, dual steps.
#pragma once

#include "spdc/losses.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace spdc {

/// {z, u} of a feature, x = alpha z + beta u: side by side, so that one instruction moves both.
using ZU = double __attribute__((vector_size(16)));

/// In place of a row's values where they are all the same.
struct Same {
    double value;
    double operator[](std::int64_t) const noexcept { return value; }
};

/// The sum of term(q) for q < count, in a few sums that do not wait for one another.
template <int sums, class Term> [[gnu::always_inline]] inline auto sum_of(std::int64_t count, Term term) noexcept {
    static_assert(sums == 2 || sums == 4);
    decltype(term(0)) sum[sums] = {};
    std::int64_t q = 0;
    for (; q + sums <= count; q += sums) {
        for (int k = 0; k < sums; ++k) sum[k] += term(q + k);
    }
    for (; q < count; ++q) sum[0] += term(q);
    if constexpr (sums == 2) return sum[0] + sum[1];
    if constexpr (sums == 4) return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// The row's entries times x, a vector of numbers or of {z, u}.
template <class Index, class Values, class X>
[[gnu::always_inline]] inline X dot(const Index *columns, Values values, std::int64_t count, const X *x) noexcept {
    constexpr int sums = std::is_same_v<X, double> ? 4 : 2;
    if constexpr (std::is_same_v<Values, Same>) {
        return values.value * sum_of<sums>(count, [=](std::int64_t q) { return x[columns[q]]; });
    } else {
        return sum_of<sums>(count, [=](std::int64_t q) { return static_cast<double>(values[q]) * x[columns[q]]; });
    }
}

/// x, or {z, u}, += move a
template <class Index, class Values, class X>
void add(X move, const Index *columns, Values values, std::int64_t count, X *x) noexcept {
    for (std::int64_t q = 0; q < count; ++q) x[columns[q]] += static_cast<double>(values[q]) * move;
}

/// Moves omega between 1 (SPDC) and Omega (SDCA). Left of the best omega the moves decay as fast as omega promises, right of it
/// slower the larger omega is; so the measured decay, compared with the promise, tells the side and, by its root, how far. On its way
/// down it seldom ends between 1 and 2: there it goes to 1 at once, which saves news20 a tenth of the passes (not so with kinks).
///
/// omega = 1 balances the primal's l2 with the dual's gamma. On tall data the losses themselves curve the primal, by far more than a small l2,
/// and the best omega is lower. So it is tried twice to divide omega by 3, once it has come down to 1: for as many sweeps as it takes to
/// judge a decay. The lower one stays where the moves decay faster there, and still do when those that the change made have gone. (Squared hinge on 40000
/// rows of 4000 features, l2 = 1e-6: 232 passes for 635; where labels can be fitted it does harm.)
///
/// A loss with kinks has no gamma, and Omega comes of a guess (working_gamma). Its last digits may come with an omega below 1 alone: hinge
/// on rcv1 at l2 = 4e-6 took 264 passes with omega = 1 and 119 this way. Sooner it does harm (l2 = 1e-9: 353 passes, or no end), so the gap has
/// to be small and the moves have to hardly decay for a while; then omega is halved, and starts over where that did not help either. On tall data
/// that while is a quarter of all passes so far: more changes do more harm than a wrong omega (hinge on the data above took 6400 passes, and
/// takes 350).
class OmegaRule {
  public:
    OmegaRule(double largest, std::optional<double> fixed, double loss_gamma, bool is_tall)
        : largest_(std::max(1.0, largest)), has_kinks_(loss_gamma == 0), is_tall_(is_tall) {
        adapts_ = !fixed && largest >= 4;
        tries_lower_ = adapts_ && is_tall;
        omega_ = fixed ? *fixed : (adapts_ ? largest / 2 : std::min(1.0, largest));
        is_sdca_ = omega_ >= largest;
    }
    double omega() const { return omega_; }
    /// tau sigma_i |a_i|^2. One is proved for independent draws; with a kinked loss and rows in permuted order, the duals of a few
    /// rows may circle for hundreds of sweeps. Where omega adapts, a move of it ends that. At Omega the step is SDCA's, of product 1.
    double product() const { return !has_kinks_ || adapts_ || is_sdca_ ? 1 : 0.9; }
    /// After a sweep over that share of the rows with sum of squared moves `moved`; true when omega changed.
    bool next(double moved, double share) {
        if (!adapts_) return false;
        log_moved_.push_back(std::log(moved + 1e-300));
        passes_ += share;
        all_passes_ += share;
        const std::size_t count = log_moved_.size();
        if (rate_before_) return count >= trial_sweeps_ && end_trial();
        if (count < sweeps_to_judge()) return false;
        if (count >= 64 && count % (count / 32) != 0) return false; // a fit reads them all
        if (tries_lower_ && omega_ == lowest_) return try_lower();
        const double rate = -slope(std::max<std::size_t>(3, 2 * count / 3));
        const bool is_long = count >= 60 && (!is_tall_ || passes_ >= 0.25 * all_passes_);
        if (has_kinks_ && omega_ <= 1 && is_long && rate < 0.15 * promise(1)) is_slow_ = true;
        double next = omega_ < 1 ? omega_ : std::clamp(omega_ * factor(rate), 1.0, largest_);
        if (!has_kinks_ && next < std::min(omega_, 2.0)) next = 1;
        if (is_slow_ && is_near_) next = omega_ > least ? 0.5 * omega_ : lowest_;
        return next != omega_ && move_to(next);
    }
    /// Whether it has to know if the gap is small.
    bool asks_for_gap() const { return is_slow_ && !is_near_; }
    void tell(double gap, double dual) { is_near_ = gap <= 3e-4 * dual, is_slow_ = false; }

  private:
    static constexpr double least = 1. / 32, least_tried = 0.1;

    /// Begins to judge anew; true when omega changed.
    bool move_to(double omega) {
        is_slow_ = false;
        log_moved_.clear();
        passes_ = 0;
        return std::exchange(omega_, omega) != omega;
    }
    /// Lower omegas take longer to show how they do.
    std::size_t sweeps_to_judge() const {
        const double slowness = tries_lower_ && omega_ < 1 ? std::sqrt(omega_) : omega_;
        return static_cast<std::size_t>(std::ceil(std::max(4.0, 0.5 * largest_ / slowness)));
    }
    /// Per pass, because sweeps are over ever fewer rows.
    double rate_of_trial() const {
        const std::size_t last = std::min(2 * trial_sweeps_ / 3, log_moved_.size());
        return -slope(std::max<std::size_t>(3, last)) * static_cast<double>(log_moved_.size()) /
               std::max(passes_, 1e-9);
    }
    bool try_lower() {
        trial_sweeps_ = std::max<std::size_t>(8, sweeps_to_judge());
        const double rate = rate_of_trial();
        if (rate_above_ && rate < 0.8 * *rate_above_) return end_descent(3 * lowest_); // it was the change that decayed
        if (lowest_ / 3 < least_tried) return end_descent(lowest_);
        rate_before_ = rate;
        return move_to(lowest_ / 3);
    }
    bool end_trial() {
        const double before = std::max(*rate_before_, 0.0); // more than noise
        if (rate_of_trial() <= std::max(1.25 * before, before + 0.05 * promise(1))) return end_descent(lowest_);
        rate_above_ = std::exchange(rate_before_, {});
        lowest_ = omega_;
        return move_to(lowest_);
    }
    bool end_descent(double lowest) {
        rate_before_.reset();
        tries_lower_ = false;
        lowest_ = lowest;
        return move_to(lowest);
    }
    /// Nats per sweep.
    double promise(double omega) const { return 1 / (1 / 1.5 + largest_ / (2.5 * omega)); }
    double factor(double rate) const {
        const double ratio = rate / promise(omega_);
        if (ratio < 1 / 1.5) return std::max(0.25, std::sqrt(std::max(rate, 1e-6) / promise(omega_)));
        return ratio > 2.25 ? std::min(2.0, std::sqrt(ratio)) : 1;
    }
    /// Least-squares slope of the last `count` entries.
    double slope(std::size_t count) const {
        const double middle = 0.5 * static_cast<double>(count - 1);
        double sxy = 0, sxx = 0;
        for (std::size_t k = 0; k < count; ++k) {
            const double dx = static_cast<double>(k) - middle;
            sxy += dx * log_moved_[log_moved_.size() - count + k];
            sxx += dx * dx;
        }
        return sxy / sxx;
    }

    double largest_, omega_, lowest_ = 1; // lowest_: where it comes down to
    bool adapts_, is_sdca_, has_kinks_, is_tall_, tries_lower_;
    bool is_slow_ = false, is_near_ = false;
    std::vector<double> log_moved_;      // since omega changed
    double passes_ = 0, all_passes_ = 0; // since then, and so far
    std::size_t trial_sweeps_ = 0;
    std::optional<double> rate_before_,
        rate_above_; // in a trial, of the omega before; later, of the one three times as large
};

/// Bounds on the dual's projected gradients of the last sweep, and which rows they allow to leave out (LIBLINEAR's rule, after
/// Hsieh et al. 2008, with twice the bounds because x jitters).
struct Shrinking {
    double upper = infinity, lower = -infinity; // drop rows beyond these
    double most = -infinity, least = infinity;  // seen in this sweep
    double width_at_full = infinity;            // most - least at the last sweep over all rows
    double since_full = 0;                      // passes since then

    void start_sweep() { most = -infinity, least = infinity; }
    /// Whether rows left out are to be looked at again: after a sweep of `passes` passes, over all rows or not. The sweep over all
    /// that follows keeps these bounds, so that most of them are left out again at once.
    bool end_sweep(bool was_full, double passes) {
        upper = most > 0 ? 2 * most : infinity;
        lower = least < 0 ? 2 * least : -infinity;
        if (was_full) width_at_full = most - least;
        since_full = was_full ? 0 : since_full + passes;
        return !was_full && (since_full >= 10 || most - least < 0.15 * width_at_full);
    }

    /// Whether a row may be left out; if not, its projected gradient counts.
    template <class L>
    bool watch(const L &loss, double s, double y, double b, bool moves, double &largest,
               double &smallest) const noexcept {
        const Interval domain = loss.domain(b);
        const double gradient = s - loss.conjugate_slope(y, b);
        const bool at_upper = y >= domain.upper, at_lower = y <= domain.lower;
        if (!moves && ((at_upper && gradient > upper) || (at_lower && gradient < lower))) return true;
        const double projected = at_upper ? std::min(gradient, 0.0) : (at_lower ? std::max(gradient, 0.0) : gradient);
        largest = std::max(largest, projected);
        smallest = std::min(smallest, projected);
        return false;
    }
};

template <class L>
concept HasBoundedDual = requires(const L loss, double v) {
    { loss.conjugate_slope(v, v) } -> std::same_as<double>;
};

/// Of which losses a row keeps the logit of p = -b y.
template <class L> constexpr bool keeps_logit = std::is_same_v<L, Logistic>;
constexpr double first_logit = -4.6; // of p = 0.01, though y starts at 0

/// Losses whose conjugate is b y + (gamma/2) y^2 on an interval.
template <class L>
constexpr bool is_clipped_parabola =
    std::is_same_v<L, Squared> || std::is_same_v<L, Absolute> || std::is_same_v<L, Huber> ||
    std::is_same_v<L, Quantile> || std::is_same_v<L, Hinge> || std::is_same_v<L, SmoothedHinge> ||
    std::is_same_v<L, SquaredHinge>;

/// The dual step of a loss that has it in closed form, and keeps no logit. `inverse`: 1/sigma.
template <class L> double dual_step(const L &loss, double s, double y, double inverse, double b, double &) noexcept {
    if constexpr (is_clipped_parabola<L>) {
        // no division waits for s, because the next row waits for this one; a y that is optimal stays what it is to the last bit
        const double from = b + loss.gamma() * y, slope = 1 / (inverse + loss.gamma());
        return loss.domain(b).clip(y + slope * (s - from));
    } else {
        return loss.dual_prox(s, y, 1 / inverse, b);
    }
}

/// The root of F(t) = t + m + (p(t) - p0)/sigma, p = 1/(1 + exp(-t)), by Newton's method.
inline double far_dual_step(const Logistic &, double s, double y, double inverse, double b, double &logit) noexcept {
    const double margin = b * s, p0 = -b * y;
    double root = logit, p = p0 > 0 ? p0 : 1 / (1 + std::exp(-root)); // 0 only at the first visit
    const double first = root + margin + (p - p0) * inverse;
    double lower = -margin - (1 - p0) * inverse, upper = -margin + p0 * inverse, f = first;
    bool is_slow = false; // the steps may go to and fro
    for (int iteration = 0; iteration < 60; ++iteration) {
        const double before = root, f_before = f;
        root -= f / (1 + p * (1 - p) * inverse);
        if (is_slow || !(lower < root && root < upper)) root = 0.5 * (lower + upper);
        p = 1 / (1 + std::exp(-root));
        f = root + margin + (p - p0) * inverse;
        if (std::fabs(f) <= 0.05 * std::fabs(first)) break;
        (f_before > 0 ? upper : lower) = f_before > 0 ? std::min(upper, before) : std::max(lower, before);
        (f > 0 ? upper : lower) = root;
        is_slow = std::fabs(f) > 0.5 * std::fabs(f_before);
    }
    logit = root;
    return -b * p;
}

/// That root to some 5 % of the start's residual: the next visit continues from there, and tighter roots did not save passes. A near
/// one needs no exponential: between the row's product and its move, for which the next row waits, are six operations.
inline double dual_step(const Logistic &loss, double s, double y, double inverse, double b, double &logit) noexcept {
    const double p = -b * y, w = p * (1 - p), slope = 1 / (1 + w * inverse); // w = dp/dt, slope = 1/F'
    const double dt = -(logit + b * s) * slope;
    if (!(std::fabs(dt) <= 0.4 && w > 1e-14)) return far_dual_step(loss, s, y, inverse, b, logit);
    // the second order of the root and that of p(t + dt) together; what is left out is dt^2/6 of it
    const double dp = w * dt * (1 + 0.5 * (1 - 2 * p) * slope * dt);
    // the logit of p + dp is 2 artanh h away; four terms of its series leave 1e-7 of a step of 0.4, 1e-12 of one of 0.1. In pairs: a
    // processor that waits for the end of a long chain cannot look far enough ahead into the next row.
    const double h = dp / (2 * w + (1 - 2 * p) * dp), h2 = h * h, h4 = h2 * h2;
    logit += 2 * h * (1 + h2 * ((1. / 3 + h2 * (1. / 5)) + h4 * (1. / 7 + h2 * (1. / 9))));
    return y - b * dp;
}

/// R: the median norm of the rows that have entries.
inline double median_norm(std::vector<double> norms) {
    std::erase(norms, 0.0);
    if (norms.empty()) return 1;
    const auto middle = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
    std::nth_element(norms.begin(), middle, norms.end());
    return std::sqrt(*middle);
}

/// The intercept's column in the units that the method takes for it. Every row has it, so a large one makes all rows alike: with R squared
/// hinge on rcv1 and news20 took 3 and 4 times the passes, and hinge did not end. With R/4 an intercept costs hardly a pass; with R/10 its
/// own steps become too small for the logistic loss. Where the penalty is so strong that `balance`, sqrt(lambda n gamma), is far above R,
/// steps suit a lambda that an intercept does not have, and its column is to be the larger (covtype, a9a and rcv1 with intercept_scaling=10
/// and C=1e-5: 4, 3 and 4 passes instead of 34, 40 and 35). With balance/4 text takes 6 passes where 2 to 4 do.
inline double intercept_column(double R, double balance) { return std::max(0.25 * R, 0.15 * balance); }

/// The smoothness that the step sizes assume: the loss's, or a guess where it has none.
inline double working_gamma(double gamma, double R, double lambda, double n) {
    return gamma > 0 ? gamma : 0.05 * R / std::sqrt(lambda * n);
}

struct FastSteps {
    double tau = 0, rho = 1, extrapolate = 0, sigma_scale = 0; // sigma_i = sigma_scale / |a_i|^2
};

inline FastSteps fast_steps(double omega, double product, double gamma, double R, double lambda, double n,
                            double live) {
    const double tau = omega * std::sqrt(gamma / (lambda * n)) / R;
    FastSteps steps;
    steps.sigma_scale = product / tau; // all of n/N goes to tau: 1/(lambda tau) and N/(gamma sigma) stay in balance
    steps.tau = tau * n / live;
    steps.rho = 1 / (1 + lambda * steps.tau);
    steps.extrapolate = (live + 1) / n; // theta = 1
    return steps;
}

/// The gap at the end of a sweep over its mean, when it falls to `decay` of what it was from one sweep to the next: a row is looked at before it
/// moves, and its gap goes on falling. Where it falls slowly, rows that were dropped come to have one again: measured on text.
inline double fallen_since(double decay, bool shrinks) noexcept {
    const double r = std::clamp(decay, 0.01, 0.999);
    return shrinks ? std::min(1.0, 5 * r * r) : 0.5 * (1 + r) * r * std::log(1 / r) / (1 - r);
}

} // namespace spdc
