#include "spdc/regularizers.h"

#include <fmt/format.h>

namespace spdc {

static_assert(Regularizer<L2> && Regularizer<ElasticNet> && Regularizer<Box>);

AffineOrbit::AffineOrbit(double l2, double tau) : plain_(l2, tau), decay_(near), sum_(near), far_decay_(near) {
    for (std::size_t k = 0; k < decay_.size(); ++k) {
        const double steps = static_cast<double>(k);
        decay_[k] = -std::expm1(-steps * plain_.log_growth);
        sum_[k] = l2 > 0 ? decay_[k] / l2 : steps * tau;
        far_decay_[k] = -std::expm1(-steps * static_cast<double>(near) * plain_.log_growth);
    }
}

namespace {

// Appendix D with its cases folded by sign: X = |x| moves with the pull c = sign(x) u + l1. The orbit is monotone, so after the
// one explicit step that may cross zero at most one more closed form remains. c <= 0 takes the first branch: with the paper's
// strict test, u = -l1 would divide by zero.
template <class Orbit, class Prox>
double advance_with_l1(const Orbit &orbit, Prox prox, double l1, double tau, double x, double u,
                       std::int64_t k) noexcept {
    while (k > 0) {
        if (x == 0) {
            if (std::fabs(u) <= l1) return 0;
            return (u > 0 ? -1.0 : 1.0) * orbit.advance(0, l1 - std::fabs(u), k);
        }
        const double sign = x > 0 ? 1.0 : -1.0;
        const double magnitude = std::fabs(x);
        const double pull = sign * u + l1;
        const double end = orbit.advance(magnitude, pull, k);
        if (pull <= 0 || end > 0) return sign * end; // monotone: it has not crossed zero on the way
        const double crossing = std::ceil(orbit.steps_to_zero(magnitude, pull)) - 1;
        const std::int64_t safe =
            crossing < static_cast<double>(k) ? std::max<std::int64_t>(0, static_cast<std::int64_t>(crossing)) : k;
        x = sign * orbit.advance(magnitude, pull, safe);
        k -= safe;
        if (k == 0) return x;
        x = prox(x - tau * u);
        --k;
    }
    return x;
}

} // namespace

double ElasticNetStep::advance(std::int64_t j, double x, double u, std::int64_t k) const noexcept {
    return advance_with_l1(
        orbit_, [&](double v) { return prox(j, v); }, l1_, tau_, x, u, k);
}

FactorStep::FactorStep(double l1, double l2, Interval bounds, std::span<const double> factors, double tau, double delta)
    : l1_(l1), l2_(l2), tau_(tau), delta_(delta), bounds_(bounds), factors_(factors.begin(), factors.end()) {}

double FactorStep::prox(std::int64_t j, double v) const noexcept {
    const double f = factors_[static_cast<std::size_t>(j)];
    return bounds_.clip(soft_threshold(v, tau_ * f * l1_) / (1 + (f * l2_ + delta_) * tau_));
}

double FactorStep::advance(std::int64_t j, double x, double u, std::int64_t k) const noexcept {
    const double f = factors_[static_cast<std::size_t>(j)];
    const PlainOrbit orbit(f * l2_ + delta_, tau_);
    const auto unbounded = [&](double v) { return soft_threshold(v, tau_ * f * l1_) / (1 + orbit.l2 * tau_); };
    return bounds_.clip(advance_with_l1(orbit, unbounded, f * l1_, tau_, x, u, k));
}

AnyStep make_step(const AnyRegularizer &g, std::span<const double> factors, double tau, double delta) {
    return std::visit(
        [&](const auto &concrete) -> AnyStep {
            if (factors.empty()) return concrete.step(tau, delta);
            const auto [l1, l2, bounds] = concrete.parts();
            return FactorStep(l1, l2, bounds, factors, tau, delta);
        },
        g.variant());
}

Interval Box::conjugate_domain() const noexcept {
    if (l2 > 0) return {};
    return {bounds.lower == -infinity ? -l1 : -infinity, bounds.upper == infinity ? l1 : infinity};
}

double Box::maximizer(double w) const noexcept {
    const double excess = soft_threshold(w, l1);
    if (l2 > 0) return bounds.clip(excess / l2);
    return excess == 0 ? 0.0 : (excess > 0 ? bounds.upper : bounds.lower);
}

// w splits into what l1 |x| answers and the excess, which the square and the bounds answer: two Fenchel-Young terms, and at
// r = argmax neither has large terms to cancel.
double Box::fenchel_young(double x, double w) const noexcept {
    if (!conjugate_domain().contains(w) || !bounds.contains(x)) return infinity;
    const double r = maximizer(w);
    const double of_l1 = l1 * std::fabs(x) - Interval{-l1, l1}.clip(w) * x;
    const double of_bounds = (l2 * r - soft_threshold(w, l1)) * (x - r);
    return 0.5 * l2 * (x - r) * (x - r) + std::max(of_l1, 0.0) + std::max(of_bounds, 0.0);
}

std::string_view AnyRegularizer::name() const noexcept {
    return std::visit([](const auto &g) { return g.name; }, g_);
}
double AnyRegularizer::value(double x) const noexcept {
    return std::visit([=](const auto &g) { return g.value(x); }, g_);
}
double AnyRegularizer::conjugate(double w) const noexcept {
    return std::visit([=](const auto &g) { return g.conjugate(w); }, g_);
}
Interval AnyRegularizer::conjugate_domain() const noexcept {
    return std::visit([](const auto &g) { return g.conjugate_domain(); }, g_);
}
double AnyRegularizer::maximizer(double w) const noexcept {
    return std::visit([=](const auto &g) { return g.maximizer(w); }, g_);
}
double AnyRegularizer::fenchel_young(double x, double w) const noexcept {
    return std::visit([=](const auto &g) { return g.fenchel_young(x, w); }, g_);
}
double AnyRegularizer::prox(double v, double tau) const noexcept {
    return std::visit([=](const auto &g) { return g.prox(v, tau); }, g_);
}
double AnyRegularizer::strong_convexity() const noexcept {
    return std::visit([](const auto &g) { return g.strong_convexity(); }, g_);
}
AnyRegularizer AnyRegularizer::scaled(double factor) const noexcept {
    return std::visit([=](const auto &g) { return AnyRegularizer(g.scaled(factor)); }, g_);
}

AnyRegularizer make_regularizer(double l1, double l2, Interval bounds) {
    check_range({"l1", "", 0}, l1);
    check_range({"l2", "", 0}, l2);
    if (!std::isfinite(l1) || !std::isfinite(l2)) {
        fail(ErrorKind::invalid_argument, fmt::format("l1 = {}, l2 = {}: penalties must be finite", l1, l2));
    }
    if (!(bounds.lower <= 0 && 0 <= bounds.upper && bounds.lower < bounds.upper)) {
        fail(ErrorKind::invalid_argument,
             fmt::format("bounds lower = {}, upper = {}: need lower <= 0 <= upper and lower < upper, "
                         "so that the zero model is allowed",
                         bounds.lower, bounds.upper));
    }
    if (bounds.lower != -infinity || bounds.upper != infinity) return Box{l1, l2, bounds};
    if (l1 > 0) return ElasticNet{l1, l2};
    return L2{l2};
}

} // namespace spdc
