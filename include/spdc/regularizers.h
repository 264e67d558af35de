// Regularizers: a scalar convex function g of one coordinate, summed over the coordinates, and its Step: the proximal map at
// a fixed tau with a closed form for k of them in a row, which is what makes an update cost the non-zeros of its row only
// (section 6 and appendix D of the paper).
//
// A new regularizer is a struct and its Step below and its name in AnyRegularizer.
#pragma once

#include "spdc/losses.h" // Interval, soft_threshold
#include "spdc/options.h"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace spdc {

/// k steps x <- (x - tau c)/(1 + l2 tau) at constant c: x - E x - S c with E = 1 - (1+l2 tau)^-k and S = E/l2 (k tau without
/// l2). Never written as (x + c/l2) r^k - c/l2, the paper's form (l2-norm-x-efficient-update): that cancels at small l2.
struct PlainOrbit {
    double l2, tau, log_growth;
    PlainOrbit(double l2_, double tau_) : l2(l2_), tau(tau_), log_growth(std::log1p(l2_ * tau_)) {}
    double advance(double x, double c, std::int64_t k) const noexcept {
        const double steps = static_cast<double>(k);
        const double decay = -std::expm1(-steps * log_growth);
        return x - decay * x - (l2 > 0 ? decay / l2 : steps * tau) * c;
    }
    /// How many steps keep x > 0 positive when c > 0 pulls it down (eq. l1l2-case2-2), as a real number.
    double steps_to_zero(double x, double c) const noexcept {
        return l2 > 0 ? std::log1p(l2 * x / c) / log_growth : x / (c * tau);
    }
};

/// The same with tables: E_k for k < 4096 and for multiples of 4096, from which E_{a+b} = E_a + E_b (1 - E_a) follows without
/// cancellation. Rare features of wide data are hundreds of thousands of steps behind, and expm1 would be most of the time.
class AffineOrbit {
  public:
    static constexpr std::int64_t near = 4096;
    AffineOrbit(double l2, double tau);
    double advance(double x, double c, std::int64_t k) const noexcept {
        if (k < near) {
            const double e = decay_[static_cast<std::size_t>(k)];
            return x - e * x - sum_[static_cast<std::size_t>(k)] * c;
        }
        if (k >= near * near) return plain_.advance(x, c, k);
        const double e = decay_[static_cast<std::size_t>(k % near)];
        const double both = e + far_decay_[static_cast<std::size_t>(k / near)] * (1 - e);
        return x - both * x - (plain_.l2 > 0 ? both / plain_.l2 : static_cast<double>(k) * plain_.tau) * c;
    }
    double steps_to_zero(double x, double c) const noexcept { return plain_.steps_to_zero(x, c); }

  private:
    PlainOrbit plain_;
    std::vector<double> decay_, sum_, far_decay_; // E_k, S_k, E_{4096 k}
};

/// Step of (l2/2) x^2.
class L2Step {
  public:
    L2Step(double l2, double tau) : shrink_(1 / (1 + l2 * tau)), orbit_(l2, tau) {}
    double prox(std::int64_t, double v) const noexcept { return v * shrink_; }
    double advance(std::int64_t, double x, double u, std::int64_t k) const noexcept { return orbit_.advance(x, u, k); }

  private:
    double shrink_;
    AffineOrbit orbit_;
};

/// Step of l1 |x| + (l2/2) x^2.
class ElasticNetStep {
  public:
    ElasticNetStep(double l1, double l2, double tau)
        : tau_(tau), threshold_(tau * l1), l1_(l1), shrink_(1 / (1 + l2 * tau)), orbit_(l2, tau) {}
    double prox(std::int64_t, double v) const noexcept { return soft_threshold(v, threshold_) * shrink_; }
    double advance(std::int64_t j, double x, double u, std::int64_t k) const noexcept;

  private:
    double tau_, threshold_, l1_, shrink_;
    AffineOrbit orbit_;
};

/// Step of l1 |x| + (l2/2) x^2 on [lower, upper]: the orbit is monotone, so clipping its end clips every step.
class BoxStep {
  public:
    BoxStep(double l1, double l2, Interval bounds, double tau) : bounds_(bounds), free_(l1, l2, tau) {}
    double prox(std::int64_t j, double v) const noexcept { return bounds_.clip(free_.prox(j, v)); }
    double advance(std::int64_t j, double x, double u, std::int64_t k) const noexcept {
        return bounds_.clip(free_.advance(j, x, u, k));
    }

  private:
    Interval bounds_;
    ElasticNetStep free_;
};

/// l1 |x| + (l2/2) x^2 on bounds.
struct PenaltyParts {
    double l1, l2;
    Interval bounds;
};

/// Step of penalties that differ from feature to feature: f_j (l1 |x| + (l2/2) x^2) + (delta/2) x^2 on [lower, upper].
class FactorStep {
  public:
    FactorStep(double l1, double l2, Interval bounds, std::span<const double> factors, double tau, double delta);
    double prox(std::int64_t j, double v) const noexcept;
    double advance(std::int64_t j, double x, double u, std::int64_t k) const noexcept;

  private:
    double l1_, l2_, tau_, delta_;
    Interval bounds_;
    std::vector<double> factors_;
};

// clang-format off
template <class S>
concept RegularizerStep = requires(const S step, std::int64_t j, double v) {
    { step.prox(j, v) } noexcept -> std::same_as<double>;          // prox_{tau g}(v) at coordinate j
    { step.advance(j, v, v, j) } noexcept -> std::same_as<double>; // (j, x, u, k): k times x <- prox(j, x - tau u)
};

template <class G>
concept Regularizer = requires(const G g, double v) {
    { G::name } -> std::convertible_to<std::string_view>;
    { g.value(v) } noexcept -> std::same_as<double>;             // +infinity outside its domain
    { g.conjugate(v) } noexcept -> std::same_as<double>;         // g*(w), +infinity outside conjugate_domain()
    { g.conjugate_domain() } noexcept -> std::same_as<Interval>;
    { g.maximizer(v) } noexcept -> std::same_as<double>;         // a point of argmax_x w x - g(x), w in the domain of g*
    { g.fenchel_young(v, v) } noexcept -> std::same_as<double>;  // (x, w): g(x) + g*(w) - w x >= 0, without cancellation
    { g.prox(v, v) } noexcept -> std::same_as<double>;           // (v, tau)
    { g.strong_convexity() } noexcept -> std::same_as<double>;
    { g.scaled(v) } noexcept -> std::same_as<G>;                 // penalty times a factor; bounds stay
    { g.step(v, v) } -> RegularizerStep;                         // (tau, delta): the step of g + (delta/2) x^2
    { g.parts() } noexcept -> std::same_as<PenaltyParts>;        // what a step with penalty factors is made of
};
// clang-format on

/// (l2/2) x^2; l2 = 0 is no regularizer at all.
struct L2 {
    static constexpr std::string_view name = "l2";
    double l2 = 0;

    double value(double x) const noexcept { return 0.5 * l2 * x * x; }
    double conjugate(double w) const noexcept { return l2 > 0 ? 0.5 * w * (w / l2) : (w == 0 ? 0.0 : infinity); }
    Interval conjugate_domain() const noexcept { return l2 > 0 ? Interval{} : Interval{0, 0}; }
    double maximizer(double w) const noexcept { return l2 > 0 ? w / l2 : 0.0; }
    double fenchel_young(double x, double w) const noexcept {
        if (l2 == 0) return w == 0 ? 0.0 : infinity;
        const double away = x - w / l2;
        return 0.5 * l2 * away * away;
    }
    double prox(double v, double tau) const noexcept { return v / (1 + l2 * tau); }
    double strong_convexity() const noexcept { return l2; }
    L2 scaled(double factor) const noexcept { return {factor * l2}; }
    L2Step step(double tau, double delta) const { return {l2 + delta, tau}; }
    PenaltyParts parts() const noexcept { return {0, l2, {}}; }
};

/// l1 |x| + (l2/2) x^2; with l2 = 0 the lasso's penalty.
struct ElasticNet {
    static constexpr std::string_view name = "elastic_net";
    double l1 = 0;
    double l2 = 0;

    double value(double x) const noexcept { return l1 * std::fabs(x) + 0.5 * l2 * x * x; }
    double conjugate(double w) const noexcept {
        const double excess = soft_threshold(w, l1);
        return excess == 0 ? 0.0 : (l2 > 0 ? 0.5 * excess * (excess / l2) : infinity);
    }
    Interval conjugate_domain() const noexcept { return l2 > 0 ? Interval{} : Interval{-l1, l1}; }
    double maximizer(double w) const noexcept { return l2 > 0 ? soft_threshold(w, l1) / l2 : 0.0; }
    double fenchel_young(double x, double w) const noexcept {
        if (!conjugate_domain().contains(w)) return infinity;
        const double away = x - maximizer(w);
        return 0.5 * l2 * away * away + std::max(l1 * std::fabs(x) - Interval{-l1, l1}.clip(w) * x, 0.0);
    }
    double prox(double v, double tau) const noexcept { return soft_threshold(v, tau * l1) / (1 + l2 * tau); }
    double strong_convexity() const noexcept { return l2; }
    ElasticNet scaled(double factor) const noexcept { return {factor * l1, factor * l2}; }
    ElasticNetStep step(double tau, double delta) const { return {l1, l2 + delta, tau}; }
    PenaltyParts parts() const noexcept { return {l1, l2, {}}; }
};

/// l1 |x| + (l2/2) x^2 on lower <= x <= upper; lower = 0 is the non-negative variant of the two above.
struct Box {
    static constexpr std::string_view name = "box";
    double l1 = 0;
    double l2 = 0;
    Interval bounds;

    double value(double x) const noexcept {
        return bounds.contains(x) ? l1 * std::fabs(x) + 0.5 * l2 * x * x : infinity;
    }
    double conjugate(double w) const noexcept {
        if (!conjugate_domain().contains(w)) return infinity;
        const double x = maximizer(w);
        return x * (soft_threshold(w, l1) - 0.5 * l2 * x); // not w x - g(x), which cancels at small l2
    }
    Interval conjugate_domain() const noexcept;
    double maximizer(double w) const noexcept;
    double fenchel_young(double x, double w) const noexcept;
    double prox(double v, double tau) const noexcept {
        return bounds.clip(soft_threshold(v, tau * l1) / (1 + l2 * tau));
    }
    double strong_convexity() const noexcept { return l2; }
    Box scaled(double factor) const noexcept { return {factor * l1, factor * l2, bounds}; }
    BoxStep step(double tau, double delta) const { return {l1, l2 + delta, bounds, tau}; }
    PenaltyParts parts() const noexcept { return {l1, l2, bounds}; }
};

/// Any of the regularizers above. Kernels never call through it: they take a Step.
class AnyRegularizer {
  public:
    using Variant = std::variant<L2, ElasticNet, Box>;

    AnyRegularizer() = default;
    template <Regularizer G> AnyRegularizer(G g) : g_(g) {} // NOLINT: a regularizer is an AnyRegularizer

    std::string_view name() const noexcept;
    double value(double x) const noexcept;
    double conjugate(double w) const noexcept;
    Interval conjugate_domain() const noexcept;
    double maximizer(double w) const noexcept;
    double fenchel_young(double x, double w) const noexcept;
    double prox(double v, double tau) const noexcept;
    double strong_convexity() const noexcept;
    AnyRegularizer scaled(double factor) const noexcept;

    const Variant &variant() const noexcept { return g_; }

  private:
    Variant g_;
};

/// Any of the steps above; the kernels visit it once per block of rows.
using AnyStep = std::variant<L2Step, ElasticNetStep, BoxStep, FactorStep>;

/// The step of sum_j f_j g(x_j) + (delta/2) x_j^2; no factors: all 1.
AnyStep make_step(const AnyRegularizer &g, std::span<const double> factors, double tau, double delta);

/// l1, l2 and bounds as a user gives them, in the cheapest type that holds them. Throws Error on negative or non-finite
/// penalties and on bounds that do not hold 0 <= upper, lower <= 0.
AnyRegularizer make_regularizer(double l1, double l2, Interval bounds = {});

} // namespace spdc
