// Losses phi(z, b) of a prediction z and a target b, with what a primal-dual method needs of them.
//
// A loss never sees the matrix, the row weights or the solver. A new one is a struct below and its name in AnyLoss; tests,
// command line, Python and the list in the docs find it there. Targets of classification losses are -1 or +1.
#pragma once

#include "spdc/options.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spdc {

enum class Task { classification, regression, counts };

struct Interval {
    double lower = -infinity;
    double upper = infinity;
    double clip(double v) const noexcept { return std::min(std::max(v, lower), upper); }
    bool contains(double v) const noexcept { return lower <= v && v <= upper; }
};

/// v moved towards 0 by t, and to 0 when that would cross it.
inline double soft_threshold(double v, double t) noexcept { return v > t ? v - t : (v < -t ? v + t : 0.0); }

// clang-format off
/// What every loss offers. phi is convex in z, phi* its conjugate, y a dual variable; notes on each in docs/losses.md.
template <class L>
concept Loss = requires(const L loss, double v) {
    { L::name } -> std::convertible_to<std::string_view>;
    { L::task } -> std::convertible_to<Task>;
    { loss.value(v, v) } noexcept -> std::same_as<double>;           // phi(z, b)
    { loss.derivative(v, v) } noexcept -> std::same_as<double>;      // a subgradient phi'(z, b)
    { loss.curvature(v, v) } noexcept -> std::same_as<double>;       // phi''(z, b), 0 at kinks
    { loss.conjugate(v, v) } noexcept -> std::same_as<double>;       // phi*(y, b), +infinity outside its domain
    { loss.domain(v) } noexcept -> std::same_as<Interval>;           // where phi*( . , b) is finite; holds 0
    { loss.dual_prox(v, v, v, v) } noexcept -> std::same_as<double>; // (z, y, sigma, b): eq. (spdc-maximize)
    { loss.shift(v, v, v) } noexcept -> std::same_as<double>;        // (y, t, b): a path through y = shift(y, 0, b) that grows with t
    { loss.shift_slope(v, v) } noexcept -> std::same_as<double>;     // its slope at t = 0
    { loss.gamma() } noexcept -> std::same_as<double>;               // phi is 1/gamma-smooth; 0: not smooth
    { loss.lipschitz() } noexcept -> std::same_as<double>;           // of phi in z; infinity: not Lipschitz
};
// clang-format on

/// Losses whose dual variables have bounds to sit at also offer conjugate_slope(y, b), the derivative of phi* inside its domain
/// and at its ends, by which solvers tell the rows that will stay there.

/// Dual boxes: the shift that most losses share is a step clipped to the domain.
template <class L> struct ClippedShift {
    double shift(double y, double t, double b) const noexcept {
        return static_cast<const L &>(*this).domain(b).clip(y + t);
    }
    double shift_slope(double y, double b) const noexcept {
        const Interval domain = static_cast<const L &>(*this).domain(b);
        return domain.lower < y && y < domain.upper ? 1.0 : 0.0;
    }
};

/// phi = (1/2)(z - b)^2
struct Squared : ClippedShift<Squared> {
    static constexpr std::string_view name = "squared";
    static constexpr Task task = Task::regression;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept { return 0.5 * (z - b) * (z - b); }
    double derivative(double z, double b) const noexcept { return z - b; }
    double curvature(double, double) const noexcept { return 1; }
    double conjugate(double y, double b) const noexcept { return y * (0.5 * y + b); }
    Interval domain(double) const noexcept { return {}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return (y + sigma * (z - b)) / (1 + sigma);
    }
    double gamma() const noexcept { return 1; }
    double lipschitz() const noexcept { return infinity; }
};

/// phi = |r| with r = z - b
struct Absolute : ClippedShift<Absolute> {
    static constexpr std::string_view name = "absolute";
    static constexpr Task task = Task::regression;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept { return std::fabs(z - b); }
    double derivative(double z, double b) const noexcept { return z > b ? 1.0 : (z < b ? -1.0 : 0.0); }
    double curvature(double, double) const noexcept { return 0; }
    double conjugate(double y, double b) const noexcept { return domain(b).contains(y) ? b * y : infinity; }
    Interval domain(double) const noexcept { return {-1, 1}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip(y + sigma * (z - b));
    }
    double conjugate_slope(double, double b) const noexcept { return b; }
    double gamma() const noexcept { return 0; }
    double lipschitz() const noexcept { return 1; }
};

/// phi = r^2/2 where |r| <= delta, delta |r| - delta^2/2 beyond
struct Huber : ClippedShift<Huber> {
    static constexpr std::string_view name = "huber";
    static constexpr Task task = Task::regression;
    double delta;
    explicit Huber(double at_ = 1) : delta(at_) {}
    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"delta", "residual at which huber turns from a parabola into a line", 0, finite, Bound::open},
              self.delta);
    }

    double value(double z, double b) const noexcept {
        const double r = std::fabs(z - b);
        return r <= delta ? 0.5 * r * r : delta * (r - 0.5 * delta);
    }
    double derivative(double z, double b) const noexcept { return domain(b).clip(z - b); }
    double curvature(double z, double b) const noexcept { return std::fabs(z - b) <= delta ? 1 : 0; }
    double conjugate(double y, double b) const noexcept { return domain(b).contains(y) ? y * (0.5 * y + b) : infinity; }
    Interval domain(double) const noexcept { return {-delta, delta}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip((y + sigma * (z - b)) / (1 + sigma));
    }
    double conjugate_slope(double y, double b) const noexcept { return y + b; }
    double gamma() const noexcept { return 1; }
    double lipschitz() const noexcept { return delta; }
};

/// phi = max(|r| - epsilon, 0)
struct EpsilonInsensitive : ClippedShift<EpsilonInsensitive> {
    static constexpr std::string_view name = "epsilon_insensitive";
    static constexpr Task task = Task::regression;
    double epsilon;
    explicit EpsilonInsensitive(double width_ = 0.1) : epsilon(width_) {}
    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"epsilon", "residuals up to epsilon cost nothing", 0, finite}, self.epsilon);
    }

    double value(double z, double b) const noexcept { return std::max(std::fabs(z - b) - epsilon, 0.0); }
    double derivative(double z, double b) const noexcept {
        const double r = z - b;
        return r > epsilon ? 1.0 : (r < -epsilon ? -1.0 : 0.0);
    }
    double curvature(double, double) const noexcept { return 0; }
    double conjugate(double y, double b) const noexcept {
        return domain(b).contains(y) ? b * y + epsilon * std::fabs(y) : infinity;
    }
    Interval domain(double) const noexcept { return {-1, 1}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip(soft_threshold(y + sigma * (z - b), sigma * epsilon));
    }
    double conjugate_slope(double y, double b) const noexcept { return b + std::copysign(epsilon, y); }
    double gamma() const noexcept { return 0; }
    double lipschitz() const noexcept { return 1; }
};

/// phi = max(|r| - epsilon, 0)^2, as LIBLINEAR's L2-loss support vector regression
struct SquaredEpsilonInsensitive : ClippedShift<SquaredEpsilonInsensitive> {
    static constexpr std::string_view name = "squared_epsilon_insensitive";
    static constexpr Task task = Task::regression;
    double epsilon;
    explicit SquaredEpsilonInsensitive(double width_ = 0.1) : epsilon(width_) {}
    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"epsilon", "residuals up to epsilon cost nothing", 0, finite}, self.epsilon);
    }

    double value(double z, double b) const noexcept {
        const double r = std::max(std::fabs(z - b) - epsilon, 0.0);
        return r * r;
    }
    double derivative(double z, double b) const noexcept { return 2 * soft_threshold(z - b, epsilon); }
    double curvature(double z, double b) const noexcept { return std::fabs(z - b) > epsilon ? 2 : 0; }
    double conjugate(double y, double b) const noexcept { return b * y + epsilon * std::fabs(y) + 0.25 * y * y; }
    Interval domain(double) const noexcept { return {}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return soft_threshold(y + sigma * (z - b), sigma * epsilon) / (1 + 0.5 * sigma);
    }
    double gamma() const noexcept { return 0.5; }
    double lipschitz() const noexcept { return infinity; }
};

/// phi = max(q (b - z), (q - 1)(b - z)): its minimiser over constants is the q-quantile
struct Quantile : ClippedShift<Quantile> {
    static constexpr std::string_view name = "quantile";
    static constexpr Task task = Task::regression;
    double quantile;
    explicit Quantile(double which_ = 0.5) : quantile(which_) {}
    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"quantile", "which quantile to fit, strictly between 0 and 1", 0, 1, Bound::open}, self.quantile);
    }

    double value(double z, double b) const noexcept { return std::max(quantile * (b - z), (quantile - 1) * (b - z)); }
    double derivative(double z, double b) const noexcept { return z > b ? 1 - quantile : (z < b ? -quantile : 0.0); }
    double curvature(double, double) const noexcept { return 0; }
    double conjugate(double y, double b) const noexcept { return domain(b).contains(y) ? b * y : infinity; }
    Interval domain(double) const noexcept { return {-quantile, 1 - quantile}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip(y + sigma * (z - b));
    }
    double conjugate_slope(double, double b) const noexcept { return b; }
    double gamma() const noexcept { return 0; }
    double lipschitz() const noexcept { return std::max(quantile, 1 - quantile); }
};

/// phi = e^z - b z for counts b >= 0: the Poisson likelihood up to a constant. Neither smooth nor Lipschitz.
struct Poisson {
    static constexpr std::string_view name = "poisson";
    static constexpr Task task = Task::counts;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept { return std::exp(z) - b * z; }
    double derivative(double z, double b) const noexcept { return std::exp(z) - b; }
    double curvature(double z, double) const noexcept { return std::exp(z); }
    double conjugate(double y, double b) const noexcept {
        const double rate = y + b;
        return rate > 0 ? rate * (std::log(rate) - 1) : (rate == 0 ? 0.0 : infinity);
    }
    Interval domain(double b) const noexcept { return {-b, infinity}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept;
    double shift(double y, double t, double b) const noexcept { return y + b > 0 ? (y + b) * std::exp(t) - b : -b; }
    double shift_slope(double y, double b) const noexcept { return y + b; }
    double gamma() const noexcept { return 0; }
    double lipschitz() const noexcept { return infinity; }
    int recession(double v, double b) const noexcept { return v == 0 ? 0 : (v < 0 && b == 0 ? -1 : 1); }
};

/// phi = log(1 + e^-s) with margin s = b z
struct Logistic {
    static constexpr std::string_view name = "logistic";
    static constexpr Task task = Task::classification;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept {
        const double s = b * z; // log1p of the smaller exponential: no overflow, no cancellation
        return s > 0 ? std::log1p(std::exp(-s)) : std::log1p(std::exp(s)) - s;
    }
    double derivative(double z, double b) const noexcept { return -b / (1 + std::exp(b * z)); }
    double curvature(double z, double b) const noexcept {
        const double p = 1 / (1 + std::exp(-std::fabs(b * z)));
        return p * (1 - p);
    }
    double conjugate(double y, double b) const noexcept;
    Interval domain(double b) const noexcept { return b > 0 ? Interval{-1, 0} : Interval{0, 1}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept;
    double shift(double y, double t, double b) const noexcept; // the logit moves, so y stays inside (-1, 1)
    double shift_slope(double y, double b) const noexcept { return -b * y * (1 + b * y); }
    double gamma() const noexcept { return 4; }
    double lipschitz() const noexcept { return 1; }
    int recession(double v, double b) const noexcept { return b * v > 0 ? -1 : (v == 0 ? 0 : 1); }
};

/// phi = max(1 - s, 0)
struct Hinge : ClippedShift<Hinge> {
    static constexpr std::string_view name = "hinge";
    static constexpr Task task = Task::classification;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept { return std::max(1 - b * z, 0.0); }
    double derivative(double z, double b) const noexcept { return b * z < 1 ? -b : 0.0; }
    double curvature(double, double) const noexcept { return 0; }
    double conjugate(double y, double b) const noexcept { return domain(b).contains(y) ? b * y : infinity; }
    Interval domain(double b) const noexcept { return b > 0 ? Interval{-1, 0} : Interval{0, 1}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip(y + sigma * (z - b));
    }
    double conjugate_slope(double, double b) const noexcept { return b; }
    double gamma() const noexcept { return 0; }
    double lipschitz() const noexcept { return 1; }
};

/// The hinge with its corner rounded: 0 (s >= 1), (1-s)^2/(2 gamma) (1-gamma < s < 1), 1 - s - gamma/2 (s <= 1-gamma)
struct SmoothedHinge : ClippedShift<SmoothedHinge> {
    static constexpr std::string_view name = "smoothed_hinge";
    static constexpr Task task = Task::classification;
    double smoothing;
    explicit SmoothedHinge(double width_ = 1) : smoothing(width_) {}
    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"gamma", "width of the rounded corner of smoothed_hinge", 0, finite, Bound::open}, self.smoothing);
    }

    double value(double z, double b) const noexcept {
        const double r = std::max(1 - b * z, 0.0);
        return r < smoothing ? 0.5 * r * r / smoothing : r - 0.5 * smoothing;
    }
    double derivative(double z, double b) const noexcept { return domain(b).clip((z - b) / smoothing); }
    double curvature(double z, double b) const noexcept {
        const double r = 1 - b * z;
        return 0 < r && r < smoothing ? 1 / smoothing : 0;
    }
    double conjugate(double y, double b) const noexcept {
        return domain(b).contains(y) ? y * (b + 0.5 * smoothing * y) : infinity;
    }
    Interval domain(double b) const noexcept { return b > 0 ? Interval{-1, 0} : Interval{0, 1}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip((y + sigma * (z - b)) / (1 + sigma * smoothing));
    }
    double conjugate_slope(double y, double b) const noexcept { return b + smoothing * y; }
    double gamma() const noexcept { return smoothing; }
    double lipschitz() const noexcept { return 1; }
};

/// phi = max(1 - s, 0)^2, as LIBLINEAR's L2-loss support vector classification
struct SquaredHinge : ClippedShift<SquaredHinge> {
    static constexpr std::string_view name = "squared_hinge";
    static constexpr Task task = Task::classification;
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}

    double value(double z, double b) const noexcept {
        const double r = std::max(1 - b * z, 0.0);
        return r * r;
    }
    double derivative(double z, double b) const noexcept { return -2 * b * std::max(1 - b * z, 0.0); }
    double curvature(double z, double b) const noexcept { return b * z < 1 ? 2 : 0; }
    double conjugate(double y, double b) const noexcept {
        return domain(b).contains(y) ? y * (b + 0.25 * y) : infinity;
    }
    Interval domain(double b) const noexcept { return b > 0 ? Interval{-infinity, 0} : Interval{0, infinity}; }
    double dual_prox(double z, double y, double sigma, double b) const noexcept {
        return domain(b).clip((y + sigma * (z - b)) / (1 + 0.5 * sigma));
    }
    double conjugate_slope(double y, double b) const noexcept { return b + 0.5 * y; }
    double gamma() const noexcept { return 0.5; }
    double lipschitz() const noexcept { return infinity; }
};

/// Any of the losses above. The variant is visited once per row, which costs nothing that shows beside the row itself.
class AnyLoss {
  public:
    using Variant = std::variant<Logistic, SmoothedHinge, Hinge, SquaredHinge, Squared, Absolute, Huber,
                                 EpsilonInsensitive, SquaredEpsilonInsensitive, Quantile, Poisson>;

    AnyLoss() = default;
    template <Loss L> AnyLoss(L loss) : loss_(loss) {} // NOLINT: a loss is an AnyLoss

    std::string_view name() const noexcept;
    Task task() const noexcept;
    double value(double z, double b) const noexcept;
    double derivative(double z, double b) const noexcept;
    double curvature(double z, double b) const noexcept;
    double conjugate(double y, double b) const noexcept;
    Interval domain(double b) const noexcept;
    double dual_prox(double z, double y, double sigma, double b) const noexcept;
    double shift(double y, double t, double b) const noexcept;
    double shift_slope(double y, double b) const noexcept;
    double gamma() const noexcept;
    double lipschitz() const noexcept;
    /// What happens to phi as z moves along v for ever: -1 it falls without reaching its infimum, 0 nothing, 1 neither.
    /// A problem that only moves along -1 and 0 without paying a penalty has no minimiser.
    int recession(double v, double b) const noexcept;

    const Variant &variant() const noexcept { return loss_; }
    Variant &variant() noexcept { return loss_; }

  private:
    Variant loss_;
};

/// The names of all losses, in the order of AnyLoss.
std::vector<std::string> loss_names();

/// The loss of that name with its default parameters; an unknown name is an Error that lists the known ones.
AnyLoss make_loss(std::string_view name);

} // namespace spdc
