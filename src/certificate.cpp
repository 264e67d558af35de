#include "spdc/certificate.h"

#include "free_coordinates.h"
#include "sum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Calls visit(j, g_j) with the concrete type of g_j for every coordinate.
template <class Visit> void each_regularizer(const Problem &problem, Visit &&visit) {
    const auto factors = problem.penalty_factors();
    std::visit(
        [&](const auto &g) {
            for (std::int64_t j = 0; j < problem.features(); ++j) {
                visit(j, factors.empty() ? g : g.scaled(factors[at(j)]));
            }
            if (problem.intercept() == Intercept::penalized) visit(problem.features(), g);
        },
        problem.regularizer().variant());
    if (problem.intercept() == Intercept::free) visit(problem.features(), L2{0});
}

/// Calls visit(i, loss, b_i, importance_i) with the concrete loss for every row: one dispatch, not one per row.
template <class Visit> void each_row(const Problem &problem, Visit &&visit) {
    const auto targets = problem.targets();
    std::visit(
        [&](const auto &loss) {
            for (std::size_t i = 0; i < targets.size(); ++i) {
                visit(i, loss, targets[i], problem.importance(static_cast<std::int64_t>(i)));
            }
        },
        problem.loss().variant());
}

/// Half-width of the range of a coordinate that nothing penalises, within which the dual bound is claimed.
double radius_of(double x) { return 10 * std::max(1.0, std::fabs(x)); }

/// Whether w lies outside the domain of g* on a side where that domain ends at 0: no scaling of y brings it back.
bool is_unpenalised_side(const Interval &domain, double w) {
    return (w > 0 && domain.upper == 0) || (w < 0 && domain.lower == 0);
}

/// sup of w x over |x| <= radius inside the bounds of g: what replaces an infinite g*(w) there. Such a g is 0 on its domain.
template <class G> double bounded_support(const G &g, double w, double radius) {
    const double end = w > 0 ? radius : -radius;
    if constexpr (requires { g.bounds; }) return w * g.bounds.clip(end);
    return w * end;
}

template <class G> [[gnu::noinline]] double infinite_conjugate(const G &g, double w, double x) {
    return is_unpenalised_side(g.conjugate_domain(), w) ? bounded_support(g, w, radius_of(x)) : infinity;
}

template <class G> double conjugate_within(const G &g, double w, double x) {
    const double conjugate = g.conjugate(w);
    return conjugate < infinity ? conjugate : infinite_conjugate(g, w, x); // nearly always the first
}

/// The largest s in [0, limit] that keeps s w inside the domain of g*, where scaling can.
double feasible_scale(const Interval &domain, double w, double limit) {
    if (domain.upper > 0 && w * limit > domain.upper) return domain.upper / w;
    if (domain.lower < 0 && w * limit < domain.lower) return domain.lower / w;
    return limit;
}

} // namespace

Certifier::Certifier(const Problem &problem) : problem_(problem), x_(at(problem.dimension()), 0.0) {}

Certifier::Certifier(const Problem &problem, const Certificate &found, std::vector<double> x, std::vector<double> z,
                     std::vector<double> y, std::vector<double> u)
    : problem_(problem), x_(std::move(x)), z_(std::move(z)), y_(std::move(y)), u_(std::move(u)), primal_(found.primal),
      dual_(found.dual), certificate_(found) {}

const Certificate &Certifier::offer(std::span<const double> x, std::span<const double> y, double good_enough) {
    PrimalPoint primal{{x.begin(), x.end()}, std::vector<double>(at(problem_.rows())), infinity};
    problem_.predict(primal.x, primal.z);
    offer_primal(primal);

    DualPoint dual{{y.begin(), y.end()}, std::vector<double>(at(problem_.dimension())), -infinity};
    offer_dual(dual);
    measure();
    if (certificate_.relative_gap <= good_enough) return certificate_;

    if (problem_.strong_convexity() > 0) { // the primal point that y implies: x_j = argmax -u_j x - g_j(x)
        primal.x.assign(x.begin(), x.end());
        each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
            if (g.strong_convexity() > 0) primal.x[at(j)] = g.maximizer(-dual.u[at(j)]);
        });
        problem_.predict(primal.x, primal.z);
        offer_primal(primal);
    }
    // the dual point that the best x implies, unless it is the one offered
    bool is_new = false;
    each_row(problem_, [&](std::size_t i, const auto &loss, double b, double) {
        dual.y[i] = loss.derivative(z_[i], b);
        is_new = is_new || dual.y[i] != y[i];
    });
    if (is_new) offer_dual(dual);
    measure();
    return certificate_;
}

void Certifier::offer_primal(PrimalPoint &candidate) {
    if (problem_.intercept() == Intercept::free) improve_intercept(candidate);
    candidate.value = primal_value(candidate);
    if (!z_.empty() && !(candidate.value < primal_)) return; // the first point is kept whatever it is; NaN never wins
    primal_ = std::isnan(candidate.value) ? infinity : candidate.value;
    x_ = candidate.x;
    z_ = candidate.z;
}

void Certifier::offer_dual(DualPoint &candidate) {
    make_feasible(candidate);
    candidate.value = dual_value(candidate, 1);
    // the radius follows x: an old bound that held for smaller x only must not keep a new one out
    if (!y_.empty() && problem_.needs_radius()) dual_ = dual_value({y_, u_, dual_}, 1);
    if (!y_.empty() && !(candidate.value > dual_)) return;
    dual_ = std::isnan(candidate.value) ? -infinity : candidate.value;
    y_ = candidate.y;
    u_ = candidate.u;
}

void Certifier::improve_intercept(PrimalPoint &point) const {
    const double shift = best_shift(problem_, point.z);
    const double before = primal_value(point);
    point.x.back() += shift;
    for (double &z : point.z) z += shift;
    if (primal_value(point) <= before) return;
    point.x.back() -= shift;
    for (double &z : point.z) z -= shift;
}

// Clip, balance the free coordinates, then scale towards 0, which every loss allows, until u lies in the domain of g*. Where
// scaling matters (l1 without l2) the best factor is searched: D is concave along the ray.
void Certifier::make_feasible(DualPoint &point) const {
    each_row(problem_,
             [&](std::size_t i, const auto &loss, double b, double) { point.y[i] = loss.domain(b).clip(point.y[i]); });
    balance_dual(problem_, point.y);
    problem_.combine(point.y, point.u);
    double limit = 2;
    bool has_interval = false;
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        const Interval domain = g.conjugate_domain();
        if (domain.lower == -infinity && domain.upper == infinity) return;
        has_interval = has_interval || domain.upper > 0 || domain.lower < 0;
        limit = feasible_scale(domain, -point.u[at(j)], limit);
    });
    if (!has_interval) return;
    const double best = best_scale(point, limit * (1 - 4e-16)); // the product s u_j may round up
    for (double &v : point.y) v *= best;
    for (double &v : point.u) v *= best;
}

// The best s in [0, limit] to 1e-3 of limit. Iterates tend to s = 1 or to the limit: where D falls from there to both sides, one
// of the two is the answer, and three values of D instead of sixteen tell.
double Certifier::best_scale(const DualPoint &point, double limit) const {
    const double likely = std::min(1.0, limit), step = 1e-3 * limit;
    const double at_likely = dual_value(point, likely);
    const bool falls_below = dual_value(point, likely - step) <= at_likely;
    if (falls_below && likely + step >= limit) return dual_value(point, limit) > at_likely ? limit : likely;
    const bool falls_above = falls_below && dual_value(point, likely + step) <= at_likely;
    if (falls_above && at_likely > -infinity) return likely;
    double low = falls_below ? likely : 0, high = falls_below ? limit : likely;
    const double ratio = std::numbers::phi - 1;
    double left = high - ratio * (high - low), right = low + ratio * (high - low);
    double at_left = dual_value(point, left), at_right = dual_value(point, right);
    while (high - low > step) {
        if (at_left > at_right || at_right == -infinity) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - ratio * (high - low);
            at_left = dual_value(point, left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + ratio * (high - low);
            at_right = dual_value(point, right);
        }
    }
    double best = 0.5 * (low + high), at_best = dual_value(point, best);
    for (const double end : {likely, limit}) {
        const double at_end = end == likely ? at_likely : dual_value(point, end);
        if (at_end > at_best) best = end, at_best = at_end;
    }
    return best;
}

double Certifier::primal_value(const PrimalPoint &point) const {
    Sum losses, penalty;
    each_row(problem_, [&](std::size_t i, const auto &loss, double b, double weight) {
        losses.add(weight * loss.value(point.z[i], b));
    });
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        if (point.x[at(j)] != 0) penalty.add(g.value(point.x[at(j)])); // g(0) = 0
    });
    return losses.value() / static_cast<double>(problem_.rows()) + penalty.value();
}

double Certifier::dual_value(const DualPoint &point, double scale) const {
    Sum losses, penalty;
    each_row(problem_, [&](std::size_t i, const auto &loss, double b, double weight) {
        losses.add(weight * loss.conjugate(scale * point.y[i], b));
    });
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        const double conjugate = conjugate_within(g, -scale * point.u[at(j)], x_[at(j)]);
        if (conjugate != 0) penalty.add(conjugate);
    });
    return -losses.value() / static_cast<double>(problem_.rows()) - penalty.value();
}

// gap = (1/n) sum_i [phi(z_i) + phi*(y_i) - y_i z_i] + sum_j [g(x_j) + g*(-u_j) + u_j x_j]; both kinds of term are >= 0.
void Certifier::measure() {
    Sum rows, coordinates, losses, conjugates, penalty, support;
    each_row(problem_, [&](std::size_t i, const auto &loss, double b, double weight) {
        const double value = loss.value(z_[i], b), conjugate = loss.conjugate(y_[i], b);
        losses.add(weight * value);
        conjugates.add(weight * conjugate);
        rows.add(weight * std::max(value + conjugate - y_[i] * z_[i], 0.0));
    });
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        const double x = x_[at(j)], w = -u_[at(j)];
        const double conjugate = conjugate_within(g, w, x);
        if (x == 0 && conjugate == 0) return; // all terms are 0
        penalty.add(g.value(x));
        support.add(conjugate);
        coordinates.add(is_unpenalised_side(g.conjugate_domain(), w) ? std::max(g.value(x) + conjugate - w * x, 0.0)
                                                                     : g.fenchel_young(x, w));
    });
    const double n = static_cast<double>(problem_.rows());
    certificate_.primal = losses.value() / n + penalty.value();
    certificate_.dual = 0.0 - conjugates.value() / n - support.value(); // never -0
    certificate_.gap = rows.value() / n + coordinates.value();
    const double size = std::max(std::fabs(certificate_.primal), std::fabs(certificate_.dual));
    certificate_.relative_gap = certificate_.gap == 0 ? 0 : certificate_.gap / size;
    if (std::isnan(certificate_.relative_gap)) certificate_.relative_gap = infinity;
    if (!problem_.needs_radius()) return;
    certificate_.radius = infinity;
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        const Interval domain = g.conjugate_domain();
        if (domain.lower == 0 || domain.upper == 0) {
            certificate_.radius = std::min(certificate_.radius, radius_of(x_[at(j)]));
        }
    });
}

bool Certifier::has_no_minimizer() const {
    if (!problem_.needs_radius()) return false;
    std::vector<double> direction(x_.size(), 0.0), moved(at(problem_.rows()));
    bool moves = false;
    each_regularizer(problem_, [&](std::int64_t j, const auto &g) {
        if (x_[at(j)] == 0 || g.value(1e9 * x_[at(j)]) != 0) return; // a move in j is paid for, sooner or later
        direction[at(j)] = x_[at(j)];
        moves = true;
    });
    if (!moves) return false;
    problem_.predict(direction, moved);
    bool falls = false;
    for (std::int64_t i = 0; i < problem_.rows(); ++i) {
        const int sign = problem_.loss().recession(moved[at(i)], problem_.targets()[at(i)]);
        if (sign > 0) return false;
        falls = falls || sign < 0;
    }
    return falls;
}

double l1_max(const Problem &problem) {
    std::vector<double> z(at(problem.rows()), 0.0), y(at(problem.rows())), u(at(problem.dimension()));
    const double constant = problem.intercept() == Intercept::free ? best_shift(problem, z) : 0.0;
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        y[at(i)] = problem.loss().derivative(constant, problem.targets()[at(i)]);
    }
    if (problem.intercept() == Intercept::free) balance_dual(problem, y);
    problem.combine(y, u);
    double largest = 0;
    for (std::int64_t j = 0; j < problem.features(); ++j) {
        const double factor = problem.penalty_factors().empty() ? 1.0 : problem.penalty_factors()[at(j)];
        if (factor > 0) largest = std::max(largest, std::fabs(u[at(j)]) / factor);
    }
    return largest;
}

} // namespace spdc
