#include "spdc/losses.h"

#include <utility>

namespace spdc {

namespace {

double sigmoid(double t) noexcept { return t >= 0 ? 1 / (1 + std::exp(-t)) : std::exp(t) / (1 + std::exp(t)); }

double xlogx(double p) noexcept { return p > 0 ? p * std::log(p) : 0.0; }

template <std::size_t... I> constexpr bool all_losses(std::index_sequence<I...>) {
    return (Loss<std::variant_alternative_t<I, AnyLoss::Variant>> && ...);
}
static_assert(all_losses(std::make_index_sequence<std::variant_size_v<AnyLoss::Variant>>{}));

} // namespace

double Logistic::conjugate(double y, double b) const noexcept {
    const double p = -b * y; // phi*(y) = p log p + (1-p) log(1-p)
    return 0 <= p && p <= 1 ? xlogx(p) + (p < 1 ? (1 - p) * std::log1p(-p) : 0.0) : infinity;
}

double Logistic::shift(double y, double t, double b) const noexcept {
    const double p = -b * y;
    if (p <= 0 || p >= 1) return y; // the end points are fixed points of the path
    // logit(p') = logit(p) - b t without forming the logit: p' = p / (p + (1-p) e^{b t})
    const double e = std::exp(b * t);
    return -b * (p / (p + (1 - p) * e));
}

// The maximiser is y = -b sigmoid(t) with t the root of F(t) = t + s + (sigmoid(t) - p0)/sigma, which grows and is bracketed by
// sigmoid = 0 and 1. F is convex left of 0 and concave right of it: Newton from between 0 and the root stays there and falls to
// the root. A step that would pass 0 stops at it, so that from any start no two points can throw it to and fro.
double Logistic::dual_prox(double z, double y, double sigma, double b) const noexcept {
    const double s = b * z;
    const double p0 = std::clamp(-b * y, 0.0, 1.0);
    const Interval bracket{-s - (1 - p0) / sigma, -s + p0 / sigma};
    double t = bracket.clip(p0 > 0 && p0 < 1 ? std::log(p0) - std::log1p(-p0) : 0.0);
    for (int iteration = 0; iteration < 200; ++iteration) {
        const double p = sigmoid(t);
        const double f = t + s + (p - p0) / sigma;
        const double rounding = 2e-16 * (std::fabs(t) + std::fabs(s) + (p + p0) / sigma);
        if (std::fabs(f) <= rounding) break;
        double next = t - f / (1 + p * (1 - p) / sigma);
        if ((t < 0 && next > 0) || (t > 0 && next < 0)) next = 0;
        next = bracket.clip(next);
        const double moved = std::fabs(next - t);
        t = next;
        if (moved <= 1e-13 * (1 + std::fabs(t))) break;
    }
    return -b * sigmoid(t);
}

// The maximiser is y = e^t - b with t the root of G(t) = t + e^t/sigma - c, c = z + (y+b)/sigma. G is convex and grows, so
// Newton from the right of the root falls to it; both starting bounds are to the right (t <= c; and e^t <= sigma c if t >= 0).
double Poisson::dual_prox(double z, double y, double sigma, double b) const noexcept {
    const double c = z + (y + b) / sigma;
    double t = c > 0 ? std::min(c, std::max(0.0, std::log(sigma * c))) : c;
    for (int iteration = 0; iteration < 200; ++iteration) {
        const double e = std::exp(t) / sigma;
        const double step = (t + e - c) / (1 + e);
        t -= step;
        if (std::fabs(step) <= 1e-15 * (1 + std::fabs(t))) break;
    }
    return std::max(std::exp(t) - b, -b);
}

std::string_view AnyLoss::name() const noexcept {
    return std::visit([](const auto &loss) { return loss.name; }, loss_);
}
Task AnyLoss::task() const noexcept {
    return std::visit([](const auto &loss) { return loss.task; }, loss_);
}
double AnyLoss::value(double z, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.value(z, b); }, loss_);
}
double AnyLoss::derivative(double z, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.derivative(z, b); }, loss_);
}
double AnyLoss::curvature(double z, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.curvature(z, b); }, loss_);
}
double AnyLoss::conjugate(double y, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.conjugate(y, b); }, loss_);
}
Interval AnyLoss::domain(double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.domain(b); }, loss_);
}
double AnyLoss::dual_prox(double z, double y, double sigma, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.dual_prox(z, y, sigma, b); }, loss_);
}
double AnyLoss::shift(double y, double t, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.shift(y, t, b); }, loss_);
}
double AnyLoss::shift_slope(double y, double b) const noexcept {
    return std::visit([=](const auto &loss) { return loss.shift_slope(y, b); }, loss_);
}
double AnyLoss::gamma() const noexcept {
    return std::visit([](const auto &loss) { return loss.gamma(); }, loss_);
}
double AnyLoss::lipschitz() const noexcept {
    return std::visit([](const auto &loss) { return loss.lipschitz(); }, loss_);
}
int AnyLoss::recession(double v, double b) const noexcept {
    return std::visit(
        [=](const auto &loss) {
            if constexpr (requires { loss.recession(v, b); }) {
                return loss.recession(v, b);
            } else {
                return 1;
            }
        },
        loss_);
}

namespace {

template <std::size_t I> AnyLoss make_nth(std::string_view name) {
    if constexpr (I == std::variant_size_v<AnyLoss::Variant>) {
        fail_unknown("loss", name, loss_names());
    } else {
        using L = std::variant_alternative_t<I, AnyLoss::Variant>;
        if (name == L::name) return L{};
        return make_nth<I + 1>(name);
    }
}

template <std::size_t... I> std::vector<std::string> names(std::index_sequence<I...>) {
    return {std::string(std::variant_alternative_t<I, AnyLoss::Variant>::name)...};
}

} // namespace

std::vector<std::string> loss_names() {
    return names(std::make_index_sequence<std::variant_size_v<AnyLoss::Variant>>{});
}

AnyLoss make_loss(std::string_view name) { return make_nth<0>(name); }

} // namespace spdc
