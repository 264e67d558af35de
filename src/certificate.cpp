#include "spdc/certificate.h"

#include "free_coordinates.h"
#include "huge_pages.h"
#include "products.h"
#include "row_losses.h"
#include "sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <new>
#include <numbers>

namespace spdc {

namespace {

using Vector = std::vector<double, UnfilledHugePageAllocator<double>>; // filled by the threads

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Numbers that are all zero: the system's own, which cost neither time nor memory as long as they are only read.
class Zeros {
  public:
    explicit Zeros(std::size_t count)
        : count_(count), zeros_(static_cast<double *>(std::calloc(std::max<std::size_t>(count, 1), sizeof(double)))) {
        if (!zeros_) throw std::bad_alloc();
        advise_huge_pages(zeros_.get(), count * sizeof(double));
    }
    operator std::span<const double>() const noexcept { return {zeros_.get(), count_}; } // NOLINT: is one

  private:
    struct Free {
        void operator()(double *memory) const noexcept { std::free(memory); }
    };
    std::size_t count_;
    std::unique_ptr<double, Free> zeros_;
};

/// Calls visit(j, g_j) with the concrete type of g_j for the coordinates [begin, end).
template <class Visit>
void each_regularizer(const Problem &problem, std::size_t begin, std::size_t end, Visit &&visit) {
    const auto factors = problem.penalty_factors();
    const std::size_t features = at(problem.features());
    std::visit(
        [&](const auto &g) {
            const std::size_t last = std::min(end, features);
            if (factors.empty()) {
                for (std::size_t j = begin; j < last; ++j) visit(j, g);
            } else {
                for (std::size_t j = begin; j < last; ++j) visit(j, g.scaled(factors[j]));
            }
            if (end > features && problem.intercept() == Intercept::penalized) visit(features, g);
        },
        problem.regularizer().variant());
    if (end > features && problem.intercept() == Intercept::free) visit(features, L2{0});
}

template <class Visit> void each_regularizer(const Problem &problem, Visit &&visit) {
    each_regularizer(problem, 0, at(problem.dimension()), visit);
}

/// Calls visit(i, loss, b_i, importance_i) with the concrete loss for the rows [begin, end): one dispatch, not one per row.
template <class Visit> void each_row(const Problem &problem, std::size_t begin, std::size_t end, Visit &&visit) {
    const auto targets = problem.targets();
    std::visit(
        [&](const auto &loss) {
            for (std::size_t i = begin; i < end; ++i) {
                visit(i, loss, targets[i], problem.importance(static_cast<std::int64_t>(i)));
            }
        },
        problem.loss().variant());
}

/// Calls visit(begin, end) for pieces of [0, count), on the team.
template <class Visit> void each_piece(Team &team, std::size_t count, Visit &&visit) {
    constexpr std::size_t piece = 4096;
    team.for_each(static_cast<std::int64_t>((count + piece - 1) / piece), static_cast<double>(count),
                  [&](std::int64_t k) { visit(at(k) * piece, std::min((at(k) + 1) * piece, count)); });
}

/// each_row() for all rows, on the team.
template <class Visit> void each_row(const Problem &problem, Team &team, Visit &&visit) {
    each_piece(team, at(problem.rows()),
               [&](std::size_t begin, std::size_t end) { each_row(problem, begin, end, visit); });
}

/// each_regularizer() on the team.
template <class Visit> void each_coordinate(const Problem &problem, Team &team, Visit &&visit) {
    each_piece(team, at(problem.dimension()),
               [&](std::size_t begin, std::size_t end) { each_regularizer(problem, begin, end, visit); });
}

/// N sums at a time. Terms are added 64 at a time before rounding is carried: 1e-14 of their size at most.
template <std::size_t N> struct Sums {
    std::array<Sum, N> sums;
    void add(const std::array<double, N> &terms) {
        for (std::size_t k = 0; k < N; ++k) sums[k].add(terms[k]);
    }
    void add(const Sums &other) {
        for (std::size_t k = 0; k < N; ++k) sums[k].add(other.sums[k]);
    }
    double operator[](std::size_t k) const { return sums[k].value(); }
};

constexpr std::size_t block = 64;
using Block = std::array<double, block>;

/// Adds up what each(begin, end, terms) adds to its N terms over [0, count).
template <std::size_t N, class Each> Sums<N> sum_of(Team &team, std::size_t count, double work, Each &&each) {
    return sum_chunks<Sums<N>>(team, count, work, [&](std::size_t begin, std::size_t end, Sums<N> &sums) {
        for (; begin < end; begin += block) {
            std::array<double, N> terms{};
            each(begin, std::min(begin + block, end), terms);
            sums.add(terms);
        }
    });
}

/// each(begin, count, terms) for blocks of rows.
template <std::size_t N, class Each> Sums<N> sum_of_blocks(const Problem &problem, Team &team, Each &&each) {
    const std::size_t n = at(problem.rows());
    return sum_of<N>(team, n, 10 * static_cast<double>(n),
                     [&](std::size_t begin, std::size_t end, auto &terms) { each(begin, end - begin, terms); });
}

/// The sum of the losses, or of their conjugates, at factor times these numbers.
template <class Losses>
Sums<1> sum_of_losses(const Problem &problem, Team &team, Losses &&losses, double factor, std::span<const double> at) {
    return sum_of_blocks<1>(problem, team, [&](std::size_t begin, std::size_t count, auto &terms) {
        each_loss(
            losses, problem.loss(), problem.targets().data(), begin, begin + count,
            [&](std::size_t i) { return factor * at[i]; },
            [&](std::size_t i, double v) { terms[0] += problem.importance(static_cast<std::int64_t>(i)) * v; });
    });
}

/// term(j, g_j, terms) for all coordinates.
template <std::size_t N, class Term> Sums<N> sum_of_coordinates(const Problem &problem, Team &team, Term &&term) {
    const std::size_t d = at(problem.dimension());
    return sum_of<N>(team, d, 2 * static_cast<double>(d), [&](std::size_t begin, std::size_t end, auto &terms) {
        each_regularizer(problem, begin, end, [&](std::size_t j, const auto &g) { term(j, g, terms); });
    });
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

/// Room for so many numbers. Whoever writes to new memory first waits until the system has cleared it: all threads do, each a part.
void make_room(std::vector<double> &numbers, std::size_t count, Team &team) {
    if (numbers.size() >= count) return;
    reserve_huge_pages(numbers, count);
    const auto room = std::as_writable_bytes(std::span(numbers.data(), count));
    touch_pages(team, std::array{room});
}

void resize(Vector &numbers, std::size_t count, Team &team) {
    if (numbers.size() != count) make_numbers(team, numbers, count);
}

bool has_bounds(const Problem &problem) {
    const Interval bounds = std::visit([](const auto &g) { return g.parts().bounds; }, problem.regularizer().variant());
    return bounds.lower > -infinity || bounds.upper < infinity;
}

/// Whether to try something that may help: after k failures in a row only at every 2^k-th chance.
class Luck {
  public:
    bool is_due() noexcept { return waiting_ == 0 || --waiting_ == 0; }
    void tell(bool helped) noexcept {
        failures_ = helped ? 0 : std::min(failures_ + 1, 20);
        waiting_ = helped ? 0 : 1 << failures_;
    }

  private:
    int failures_ = 0, waiting_ = 0;
};

} // namespace

class Certifier::Points {
  public:
    Points(const Problem &problem, LentTeam threads)
        : problem_(problem), threads_(std::move(threads)), team_(threads_), zeros_(at(problem.dimension())),
          may_scale_(problem.loss().gamma() == 0 && problem.loss().lipschitz() < infinity && !has_bounds(problem)) {}

    void offer(Pair &&pair, double good_enough);
    Pair room();
    Pair take();
    bool has_no_minimizer();

    Team &team() { return team_; }
    const Certificate &certificate() const { return certificate_; }
    std::span<const double> x() const { return whole(x_); }
    std::span<const double> y() const { return y_; }
    std::span<const double> z() const { return z_; }

  private:
    using Reals = std::span<const double>;
    /// P, D and the two parts of the gap.
    struct Values {
        double primal, dual, rows, coordinates;
    };
    Values evaluate(Reals x, Reals z, Reals y, Reals u);
    /// A point of R^dimension, of which zero, where every run starts, is kept as nothing at all.
    template <class V> Reals whole(const V &v) const { return v.empty() ? Reals(zeros_) : Reals(v); }
    bool settle(bool new_primal, bool new_dual);
    void set_certificate();

    void take_intercept();
    bool take_scale();
    bool try_implied_primal();
    bool try_implied_dual();

    void make_feasible();
    double best_scale(double limit);
    double primal_value(Reals x, Reals z, double factor = 1); // of both
    double dual_value(double scale);

    const Problem &problem_;
    LentTeam threads_;
    Team &team_;
    const Zeros zeros_;
    std::vector<double> x_, y_; // the best
    Vector z_, u_;
    std::vector<double> new_x_, new_y_; // what is tried
    Vector new_z_, new_u_;
    Values best_{infinity, -infinity, infinity, infinity};
    Luck primal_luck_, dual_luck_, scale_luck_;
    const bool may_scale_; // x by a factor: where the loss has kinks, P(x) is off by as much as x is, not by its square
    double last_scale_ = 1e-3; // how far from 1 the last factor was
    Certificate certificate_;
};

void Certifier::Points::offer(Pair &&pair, double good_enough) {
    new_x_ = std::move(pair.x);
    new_y_ = std::move(pair.y);
    resize(new_z_, at(problem_.rows()), team_);
    predict(problem_, new_x_, new_z_, team_);
    if (problem_.intercept() == Intercept::free && good_enough < infinity) take_intercept();
    if (may_scale_ && good_enough < infinity && scale_luck_.is_due()) scale_luck_.tell(take_scale());
    make_feasible();
    const bool is_first = y_.empty();
    const bool one_by_one = problem_.needs_radius() && !is_first; // the radius follows x, and D the radius
    bool is_better = settle(true, !one_by_one);
    if (one_by_one) is_better = settle(false, true) || is_better;
    if (!is_better || certificate_.relative_gap <= good_enough) return;
    // where a run starts nothing is implied that would last
    if (is_first && problem_.strong_convexity() > 0 && x_.empty() && certificate_.relative_gap > 0.5) return;
    // an implied point ends one part of the gap and may make the other larger
    const bool primal = best_.coordinates > best_.rows;
    if (primal && problem_.strong_convexity() == 0) return;
    Luck &luck = primal ? primal_luck_ : dual_luck_;
    if (!luck.is_due()) return;
    luck.tell(primal ? try_implied_primal() : try_implied_dual());
}

/// Keeps what is better than the best so far, of new_x_ with new_z_ and of new_y_ with new_u_. The first points are kept whatever
/// they are; NaN never wins.
bool Certifier::Points::settle(bool new_primal, bool new_dual) {
    const bool first = y_.empty();
    const bool is_zero = first && are_zero(new_x_, team_);
    const Reals x = is_zero ? zeros_ : (new_primal ? Reals(new_x_) : whole(x_)), z = new_primal ? new_z_ : z_;
    const Values values = evaluate(x, z, new_dual ? new_y_ : y_, whole(new_dual ? new_u_ : u_));
    const bool primal_wins = new_primal && (first || values.primal < best_.primal);
    const bool dual_wins = new_dual && (first || values.dual > best_.dual);
    if (!primal_wins && !dual_wins) return false;
    const bool all_win = primal_wins == new_primal && dual_wins == new_dual;
    // all that may be interrupted before anything changes: point and certificate belong together
    best_ = all_win       ? values
            : primal_wins ? evaluate(new_x_, new_z_, y_, whole(u_))
                          : evaluate(whole(x_), z_, new_y_, whole(new_u_));
    if (primal_wins) {
        if (!is_zero) std::swap(x_, new_x_);
        std::swap(z_, new_z_);
    }
    if (dual_wins) {
        std::swap(y_, new_y_);
        std::swap(u_, new_u_);
    }
    if (std::isnan(best_.primal)) best_.primal = infinity;
    if (std::isnan(best_.dual)) best_.dual = -infinity;
    set_certificate();
    return true;
}

// gap = (1/n) sum_i [phi(z_i) + phi*(y_i) - y_i z_i] + sum_j [g(x_j) + g*(-u_j) + u_j x_j]; both kinds of term are >= 0.
Certifier::Points::Values Certifier::Points::evaluate(Reals x, Reals z, Reals y, Reals u) {
    const auto rows = sum_of_blocks<3>(problem_, team_, [&](std::size_t begin, std::size_t count, auto &terms) {
        Block values, conjugates;
        const double *const b = problem_.targets().data() + begin;
        loss_values(problem_.loss(), &z[begin], b, count, values.data());
        loss_conjugates(problem_.loss(), &y[begin], b, count, conjugates.data());
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = begin + k;
            const double weight = problem_.importance(static_cast<std::int64_t>(i));
            terms[0] += weight * values[k];
            terms[1] += weight * conjugates[k];
            terms[2] += weight * std::max(values[k] + conjugates[k] - y[i] * z[i], 0.0);
        }
    });
    const bool are_zeros = x.data() == Reals(zeros_).data() && u.data() == x.data();
    const auto coordinates =
        are_zeros ? Sums<3>() : sum_of_coordinates<3>(problem_, team_, [&](std::size_t j, const auto &g, auto &terms) {
            const double w = -u[j], conjugate = conjugate_within(g, w, x[j]);
            terms[0] += g.value(x[j]);
            terms[1] += conjugate;
            terms[2] += is_unpenalised_side(g.conjugate_domain(), w)
                            ? std::max(g.value(x[j]) + conjugate - w * x[j], 0.0)
                            : g.fenchel_young(x[j], w);
        });
    const double n = static_cast<double>(problem_.rows());
    return {rows[0] / n + coordinates[0], 0.0 - rows[1] / n - coordinates[1], // never -0
            rows[2] / n, coordinates[2]};
}

void Certifier::Points::set_certificate() {
    certificate_.primal = best_.primal;
    certificate_.dual = best_.dual;
    certificate_.gap = best_.rows + best_.coordinates;
    const double size = std::max(std::fabs(certificate_.primal), std::fabs(certificate_.dual));
    certificate_.relative_gap = certificate_.gap == 0 ? 0 : certificate_.gap / size;
    if (std::isnan(certificate_.relative_gap)) certificate_.relative_gap = infinity;
    if (!problem_.needs_radius()) return;
    certificate_.radius = infinity;
    each_regularizer(problem_, [&](std::size_t j, const auto &g) {
        const Interval domain = g.conjugate_domain();
        if (domain.lower == 0 || domain.upper == 0) {
            certificate_.radius = std::min(certificate_.radius, radius_of(x()[j]));
        }
    });
}

/// Gives new_x_ the best intercept and moves new_z_ along.
void Certifier::Points::take_intercept() {
    const double shift = best_shift(problem_, new_z_, team_), before = primal_value(new_x_, new_z_);
    const double intercept = new_x_.back();
    new_x_.back() += shift;
    each_row(problem_, team_, [&](std::size_t i, const auto &, double, double) { new_z_[i] += shift; });
    if (primal_value(new_x_, new_z_) <= before) return;
    new_x_.back() = intercept;
    predict(problem_, new_x_, new_z_, team_); // rare; taking the shift away again would not be exact
}

/// Gives new_x_ its best length and new_z_ with it. Where all rows can be fitted most of the gap is of rows a little short of the margin, near the
/// end: a tenth of it is left of hinge's on rcv1 at l2 = 1e-8, and nothing where l2 is so small that rounding alone is a gap. True where it was
/// worth the time.
bool Certifier::Points::take_scale() {
    const auto squares = sum_of_coordinates<2>(problem_, team_, [&](std::size_t j, const auto &g, auto &terms) {
        const double once = g.value(new_x_[j]), twice = g.value(2 * new_x_[j]); // a + b and 2a + 4b
        terms[0] += 2 * once - 0.5 * twice;
        terms[1] += 0.5 * twice - once;
    });
    const double n = static_cast<double>(problem_.rows());
    const auto slope = [&](double scale) { // of P(scale x)
        const auto sum = sum_of_blocks<1>(problem_, team_, [&](std::size_t begin, std::size_t count, auto &terms) {
            each_loss(
                loss_slopes, problem_.loss(), problem_.targets().data(), begin, begin + count,
                [&](std::size_t i) { return scale * new_z_[i]; },
                [&](std::size_t i, double slope_of_row) {
                    terms[0] += problem_.importance(static_cast<std::int64_t>(i)) * new_z_[i] * slope_of_row;
                });
        });
        return sum[0] / n + squares[0] + 2 * scale * squares[1];
    };
    const double at_one = slope(1), sign = at_one < 0 ? 1 : -1;
    if (at_one == 0) return false; // x = 0, for one
    constexpr double ratio = 8, least = 1e-15, most = 0.5;
    double near = 0, far = std::clamp(last_scale_ / ratio, least, most); // where it still falls, and no longer
    while (sign * slope(1 + sign * far) < 0) {
        if (far >= most) return false;
        near = far;
        far = std::min(ratio * far, most);
    }
    for (int count = 0; count < 60 && far - near > 0.02 * far && far > least; ++count) {
        const double middle = near > 0 ? std::sqrt(near * far) : far / ratio;
        (sign * slope(1 + sign * middle) < 0 ? near : far) = middle;
    }
    last_scale_ = far;
    const double factor = 1 + sign * far, before = primal_value(new_x_, new_z_);
    const double after = primal_value(new_x_, new_z_, factor);
    if (!(after < before)) return false; // the slope at a kink is any of many
    each_coordinate(problem_, team_, [&](std::size_t j, const auto &) { new_x_[j] *= factor; });
    each_row(problem_, team_, [&](std::size_t i, const auto &, double, double) { new_z_[i] *= factor; });
    return before - after > 0.2 * (before - best_.dual);
}

/// x_j = argmax -u_j x - g_j(x)
bool Certifier::Points::try_implied_primal() {
    make_room(new_x_, at(problem_.dimension()), team_);
    new_x_.resize(at(problem_.dimension()));
    const Reals x = whole(x_), u = whole(u_);
    each_coordinate(problem_, team_, [&](std::size_t j, const auto &g) {
        new_x_[j] = g.strong_convexity() > 0 ? g.maximizer(-u[j]) : x[j];
    });
    // A poor dual point implies predictions so large that the search for the best intercept takes a hundred passes; where the penalty
    // alone is more than the best objective, it is in vain. Of all losses only that of counts can be negative.
    const auto penalty = sum_of_coordinates<1>(
        problem_, team_, [&](std::size_t j, const auto &g, auto &terms) { terms[0] += g.value(new_x_[j]); });
    if (problem_.loss().task() != Task::counts && penalty[0] >= best_.primal) return false;
    resize(new_z_, z_.size(), team_);
    predict(problem_, new_x_, new_z_, team_);
    if (problem_.intercept() == Intercept::free) take_intercept();
    return settle(true, false);
}

/// y_i = phi'(z_i)
bool Certifier::Points::try_implied_dual() {
    new_y_.resize(y_.size());
    each_piece(team_, y_.size(), [&](std::size_t begin, std::size_t end) {
        loss_slopes(problem_.loss(), &z_[begin], problem_.targets().data() + begin, end - begin, &new_y_[begin]);
    });
    if (new_y_ == y_) return false;
    make_feasible();
    return settle(false, true);
}

// Clip, balance the free coordinates, then scale towards 0, which every loss allows, until u lies in the domain of g*. Where
// scaling matters (l1 without l2) the best factor is searched: D is concave along the ray.
void Certifier::Points::make_feasible() {
    each_row(problem_, team_,
             [&](std::size_t i, const auto &loss, double b, double) { new_y_[i] = loss.domain(b).clip(new_y_[i]); });
    balance_dual(problem_, new_y_, team_);
    if (!(new_u_.empty() && are_zero(new_y_, team_))) {
        resize(new_u_, at(problem_.dimension()), team_);
        combine(problem_, new_y_, new_u_, team_);
    }
    if (problem_.is_strongly_convex()) return; // u may be anything
    double limit = 2;
    bool has_interval = false;
    const Reals u = whole(new_u_);
    each_regularizer(problem_, [&](std::size_t j, const auto &g) {
        const Interval domain = g.conjugate_domain();
        if (domain.lower == -infinity && domain.upper == infinity) return;
        has_interval = has_interval || domain.upper > 0 || domain.lower < 0;
        limit = feasible_scale(domain, -u[j], limit);
    });
    if (!has_interval) return;
    const double best = best_scale(limit * (1 - 4e-16)); // the product s u_j may round up
    for (double &v : new_y_) v *= best;
    for (double &v : new_u_) v *= best;
}

// The best s in [0, limit] to 1e-3 of limit. Iterates tend to s = 1 or to the limit: where D falls from there to both sides, one
// of the two is the answer, and three values of D instead of sixteen tell.
double Certifier::Points::best_scale(double limit) {
    const double likely = std::min(1.0, limit), step = 1e-3 * limit;
    const double at_likely = dual_value(likely);
    const bool falls_below = dual_value(likely - step) <= at_likely;
    if (falls_below && likely + step >= limit) return dual_value(limit) > at_likely ? limit : likely;
    const bool falls_above = falls_below && dual_value(likely + step) <= at_likely;
    if (falls_above && at_likely > -infinity) return likely;
    double low = falls_below ? likely : 0, high = falls_below ? limit : likely;
    const double ratio = std::numbers::phi - 1;
    double left = high - ratio * (high - low), right = low + ratio * (high - low);
    double at_left = dual_value(left), at_right = dual_value(right);
    while (high - low > step) {
        if (at_left > at_right || at_right == -infinity) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - ratio * (high - low);
            at_left = dual_value(left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + ratio * (high - low);
            at_right = dual_value(right);
        }
    }
    double best = 0.5 * (low + high), at_best = dual_value(best);
    for (const double end : {likely, limit}) {
        const double at_end = end == likely ? at_likely : dual_value(end);
        if (at_end > at_best) best = end, at_best = at_end;
    }
    return best;
}

double Certifier::Points::primal_value(Reals x, Reals z, double factor) {
    const auto losses = sum_of_losses(problem_, team_, loss_values, factor, z);
    const auto penalty = sum_of_coordinates<1>(
        problem_, team_, [&](std::size_t j, const auto &g, auto &terms) { terms[0] += g.value(factor * x[j]); });
    return losses[0] / static_cast<double>(problem_.rows()) + penalty[0];
}

/// D at scale times new_y_.
double Certifier::Points::dual_value(double scale) {
    const auto losses = sum_of_losses(problem_, team_, loss_conjugates, scale, new_y_);
    const Reals x = whole(x_), u = whole(new_u_);
    const auto support = sum_of_coordinates<1>(problem_, team_, [&](std::size_t j, const auto &g, auto &terms) {
        terms[0] += conjugate_within(g, -scale * u[j], x[j]);
    });
    return -losses[0] / static_cast<double>(problem_.rows()) - support[0];
}

bool Certifier::Points::has_no_minimizer() {
    if (!problem_.needs_radius() || x_.empty()) return false;
    Vector direction(x_.size(), 0.0);
    bool moves = false;
    each_regularizer(problem_, [&](std::size_t j, const auto &g) {
        if (x_[j] == 0 || g.value(1e9 * x_[j]) != 0) return; // a move in j is paid for, sooner or later
        direction[j] = x_[j];
        moves = true;
    });
    if (!moves) return false;
    resize(new_z_, at(problem_.rows()), team_); // free until the next point comes, which needs it
    predict(problem_, direction, new_z_, team_);
    bool falls = false;
    for (std::size_t i = 0; i < new_z_.size(); ++i) {
        const int sign = problem_.loss().recession(new_z_[i], problem_.targets()[i]);
        if (sign > 0) return false;
        falls = falls || sign < 0;
    }
    return falls;
}

Certifier::Pair Certifier::Points::room() {
    make_room(new_x_, at(problem_.dimension()), team_);
    make_room(new_y_, at(problem_.rows()), team_);
    return {std::move(new_x_), std::move(new_y_)};
}

Certifier::Pair Certifier::Points::take() {
    if (x_.empty()) x_.resize(at(problem_.dimension()));
    return {std::move(x_), std::move(y_)};
}

Certifier::Certifier(const Problem &problem, int threads)
    : points_(std::make_unique<Points>(problem, LentTeam(nullptr, threads))) {}
Certifier::Certifier(const Problem &problem, Team &team)
    : points_(std::make_unique<Points>(problem, LentTeam(&team, team.size()))) {}
Certifier::~Certifier() = default;

const Certificate &Certifier::offer(std::span<const double> x, std::span<const double> y, double good_enough) {
    return offer({{x.begin(), x.end()}, {y.begin(), y.end()}}, good_enough);
}

const Certificate &Certifier::offer(Pair &&pair, double good_enough) {
    points_->offer(std::move(pair), good_enough);
    return points_->certificate();
}

Certifier::Pair Certifier::room() { return points_->room(); }
Certifier::Pair Certifier::take() { return points_->take(); }

const Certificate &Certifier::certificate() const noexcept { return points_->certificate(); }
std::span<const double> Certifier::x() const noexcept { return points_->x(); }
std::span<const double> Certifier::y() const noexcept { return points_->y(); }
std::span<const double> Certifier::predictions() const noexcept { return points_->z(); }
Team &Certifier::team() noexcept { return points_->team(); }
bool Certifier::has_no_minimizer() const { return points_->has_no_minimizer(); }

double l1_max(const Problem &problem) {
    Team alone(1);
    std::vector<double> z(at(problem.rows()), 0.0), y(at(problem.rows())), u(at(problem.dimension()));
    const double constant = problem.intercept() == Intercept::free ? best_shift(problem, z, alone) : 0.0;
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        y[at(i)] = problem.loss().derivative(constant, problem.targets()[at(i)]);
    }
    // whatever the problem's own penalty is: features that l1 would hold are not free
    if (problem.intercept() == Intercept::free) balance_dual(problem.with(ElasticNet{1, 0}), y, alone);
    problem.combine(y, u);
    double largest = 0;
    for (std::int64_t j = 0; j < problem.features(); ++j) {
        const double factor = problem.penalty_factors().empty() ? 1.0 : problem.penalty_factors()[at(j)];
        if (factor > 0) largest = std::max(largest, std::fabs(u[at(j)]) / factor);
    }
    return largest;
}

} // namespace spdc
