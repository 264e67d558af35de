// Working sets for l1 penalties.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + sum_j g_j(x_j), g_j = f_j (l1 |x| + (l2/2) x^2) on bounds, where most x_j will
// be 0. A round of the method:
//
//   1. y = phi'(Ax), u = (1/n) A'Wy over all features; s y with s <= 1 is dual feasible, which gives the gap.
//   2. The set: everything that is not 0 or not penalised, and the features nearest to leaving 0, by the distance
//      (l1_j - |u_j|)/|a_j| of their dual constraint; twice as many as are not 0, or more where nearly all of the last set left 0.
//   3. Minimise over the set: for the squared loss by coordinate descent, else by prox-Newton steps, each a quadratic model
//      minimised by coordinate descent and followed by a line search; until what is left is small beside the gap.
//
// Sets and their scores are those of Massias, Gramfort and Salmon (2018), the accelerated coordinate descent on Gram matrices is that of
// Bertrand and Massias (2021), Newton steps follow Yuan, Ho and Lin (2012). The columns are a copy of the data, made once. A round costs
// one pass over the features that screening left, and its sweeps and conjugate gradients (face_descent.h) twice the entries of the columns
// that move, or, through the Gram matrix of those columns where that pays (quadratic_model.cpp), the square of their number.
//
// With few features and many rows the squared loss needs no sets: few_features.cpp. Nor does the logistic loss: newton.cpp.
//
// Different here: any convex loss, bounds, unpenalised columns and weights run through the same model. Gram matrices outlive
// Newton steps while the curvatures stay about the same. Curvatures get a floor that follows the line search, because the losses
// of the hinge and Huber kind have none in places. Losses with kinks are rounded until the gap is below a third; from there on an
// interior point method solves the sets (set_barrier.h), or where that cannot, the rounding shrinks with the gap, which gets slow; without
// an l2 penalty a corner may end it (vertex.h). Everything is measured by the curvature of its column, so units of features do
// not matter.
#include "column_matrix.h"
#include "few_features.h"
#include "free_coordinates.h"
#include "methods.h"
#include "newton.h"
#include "quadratic_model.h"
#include "rounded_loss.h"
#include "row_losses.h"
#include "set_barrier.h"
#include "vertex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t round_entries = 20'000'000; // advance() ends a round that touches more than this: some 50 ms, or
constexpr std::int64_t most_rounds = 5;            // an eighth of all so far, up to so many times as much
constexpr std::int64_t row_entries = 8;            // what the functions of a row cost, in matrix entries

/// Neither penalised by l1 nor held at 0 by a bound: never to be left out.
bool is_free(const Box &g) { return g.l1 == 0 && g.bounds.lower < 0 && g.bounds.upper > 0; }

bool has_kinks(const AnyLoss &loss) { return loss.gamma() == 0 && loss.lipschitz() < infinity; }

template <class Value> class WorkingSetMethod final : public Method {
  public:
    WorkingSetMethod(const Problem &problem, const Crew &crew);

    void aim(double tolerance) override { tolerance_ = tolerance; }
    void start(std::span<const double> x, std::span<const double> y) override;
    void advance(double passes) override;
    double passes() const override {
        return static_cast<double>(touched()) / static_cast<double>(std::max<std::int64_t>(1, problem_.nonzeros()));
    }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    void certified(const Found &found) override;
    bool has_point() const override { return vertex_ || gap_ <= tolerance_ * size_ || passes() >= 50; }
    /// A corner is right, or it is not.
    double estimated_gap() const override { return std::max(vertex_ ? 0.0 : gap_, 1e-300); }
    std::int64_t coordinates_touched() const override { return touched(); }

  private:
    std::int64_t touched() const { return touched_ + model_.touched() + (barrier_ ? barrier_->touched() : 0); }
    void look_at_all();
    double feasible_scale() const;
    void measure_gap(double scale);
    void screen(double scale);
    void choose_set();
    void look_for_vertex();
    void predict();
    void slopes_at(const std::vector<double> &z, std::vector<double> &y) const;
    void differentiate();
    void differentiate_set();
    bool step(std::int64_t budget);
    bool step_by_barrier();
    void leave_barrier();
    void set_up_model();
    double find_curvatures();
    bool search_line();
    double slope_of_penalty() const;
    double change_of_penalty(double t) const;
    double loss_at(double t) const;
    template <class Visit> void with_loss(Visit &&visit) const {
        std::visit(
            [&](const auto &loss) {
                visit(RoundedLoss<std::remove_cvref_t<decltype(loss)>>{loss, rounding_});
            },
            problem_.loss().variant());
    }
    /// Of losses, or their conjugates, at argument(i) for all rows i.
    template <class Losses, class Argument> double sum_of_losses(Losses &&losses, Argument &&argument) const {
        double sum = 0;
        each_loss(losses, problem_.loss(), problem_.targets().data(), 0, z_.size(), argument,
                  [&](std::size_t i, double value) { sum += weight(i) * value; });
        return sum;
    }
    double weight(std::size_t i) const { return problem_.importance(static_cast<std::int64_t>(i)) * inverse_n_; }

    const Problem &problem_;
    const Penalties penalties_;
    const std::vector<std::uint8_t> movable_;
    const ColumnMatrix<Value> columns_;
    QuadraticModel<Value> model_;
    const bool is_quadratic_;
    const bool is_curved_; // the curvature changes smoothly; else it jumps between 0 and its largest
    const double inverse_n_;
    std::int64_t d_;
    std::vector<double> x_, z_, y_, dz_, u_, norm_, curvatures_, trial_, before_;
    std::vector<std::int32_t> alive_; // features that may be other than 0 at the optimum
    std::vector<std::int32_t> set_;
    std::vector<std::uint8_t> in_set_;
    std::vector<std::pair<float, std::int32_t>> scores_;
    bool has_looked_ = false, has_set_ = false;
    bool has_news_ = false; // features outside the last set want to leave 0
    bool forgets_ = false;  // sets of the barrier lost what the ones before them had
    bool y_is_current_ = false;
    bool u_is_lost_ = true;
    double penalty_ = 0, gap_ = infinity, size_ = 1; // at the last look; size: of the objective
    double rounding_ = 0;                            // gamma of a loss with kinks
    double gap_of_set_ = infinity;                   // gap_, but of the rounded loss
    double last_gap_ = infinity, strictness_ = 1;    // gap_of_set_ before; tightens what a set is solved to
    double floor_ = 1e-3;                            // of the curvatures, in units of the largest
    double unrest_ = infinity;                       // change of the curvatures between the last steps
    double tolerance_ = 1e-4;
    std::optional<SetBarrier<Value>> barrier_; // from where the rounding is small
    bool may_use_barrier_ = false, is_in_barrier_ = false, is_cold_start_ = false, y_is_of_barrier_ = false;
    double size_at_zero_ = 0;
    int steps_in_set_ = 0;
    std::int64_t touched_ = 0;
    std::optional<Vertex> vertex_;    // to be certified next
    std::vector<double> last_vertex_; // its x, or that of the one before
    bool is_vertex_ = false;          // what was certified last
};

template <class Value>
WorkingSetMethod<Value>::WorkingSetMethod(const Problem &problem, const Crew &crew)
    : problem_(problem), penalties_(problem), movable_(movable_features(problem, penalties_)),
      columns_(problem, movable_), model_(columns_, penalties_, problem.rows()),
      is_quadratic_(std::holds_alternative<Squared>(problem.loss().variant())),
      is_curved_(problem.loss().name() == Logistic::name || problem.loss().name() == Poisson::name),
      inverse_n_(1 / static_cast<double>(problem.rows())), d_(problem.dimension()), x_(at(d_), 0.0),
      z_(at(problem.rows()), 0.0), y_(z_.size()), dz_(z_.size()), u_(at(d_)) {
    if (problem.intercept() == Intercept::free) x_.back() = best_constant(problem, crew);
    predict();
    if (has_kinks(problem.loss())) {
        for (std::size_t i = 0; i < z_.size(); ++i) rounding_ += weight(i) * std::fabs(z_[i] - problem.targets()[i]);
        if (rounding_ == 0) rounding_ = 1e-3;
        const auto is_open = [](const Box &g) { return g.bounds.lower == -infinity && g.bounds.upper == infinity; };
        may_use_barrier_ = is_open(penalties_[0]) && is_open(penalties_[d_ - 1]);
    }
    differentiate();
}

template <class Value> void WorkingSetMethod<Value>::start(std::span<const double> x, std::span<const double>) {
    for (std::size_t j = 0; j < x_.size(); ++j) x_[j] = movable_[j] ? x[j] : 0;
    predict();
    differentiate();
}

template <class Value> void WorkingSetMethod<Value>::advance(double passes) {
    const std::int64_t start = touched();
    const auto asked = static_cast<std::int64_t>(passes * static_cast<double>(problem_.nonzeros()));
    const std::int64_t end = start + std::max(asked, std::clamp(start / 8, round_entries, most_rounds * round_entries));
    const bool is_first = gap_ == infinity;
    if (!has_looked_) look_at_all();
    if (is_first && gap_ <= tolerance_ * size_) return; // the start is good enough
    if (!has_set_) choose_set();
    while (true) {
        const std::int64_t left = end - touched();
        if (step(left)) break;
        if (touched() >= end) return;
    }
    look_at_all();
}

template <class Value> void WorkingSetMethod<Value>::point(std::vector<double> &x, std::vector<double> &y) {
    is_vertex_ = vertex_.has_value();
    if (is_vertex_) {
        x = std::move(vertex_->x);
        y = std::move(vertex_->y);
        vertex_.reset();
        return;
    }
    if (!y_is_current_) differentiate();
    x = x_;
    y = y_;
}

template <class Value> void WorkingSetMethod<Value>::certified(const Found &found) {
    const Certificate &now = found.certificate;
    if (is_vertex_ || is_in_barrier_) return; // says nothing of x_, or nothing new
    predict();
    if (now.relative_gap > 2 * gap_ / size_) { // screening may have trusted a guess too much
        alive_.clear();
        has_looked_ = false;
    }
}

/// z from scratch: what the steps added up has drifted.
template <class Value> void WorkingSetMethod<Value>::predict() {
    std::fill(z_.begin(), z_.end(), 0.0);
    for (std::int64_t j = 0; j < d_; ++j) {
        if (x_[at(j)] == 0) continue;
        const auto column = columns_.column(j);
        interruption_point(column.size());
        axpy(x_[at(j)], column, z_.data());
        touched_ += column.size();
    }
    y_is_current_ = y_is_of_barrier_; // which is no function of z
}

template <class Value> void WorkingSetMethod<Value>::differentiate() {
    slopes_at(z_, y_);
    y_is_current_ = true;
}

template <class Value>
void WorkingSetMethod<Value>::slopes_at(const std::vector<double> &z, std::vector<double> &y) const {
    const auto b = problem_.targets();
    if (rounding_ == 0) return loss_slopes(problem_.loss(), z.data(), b.data(), z.size(), y.data());
    with_loss([&](const auto &loss) {
        for (std::size_t i = 0; i < z.size(); ++i) y[i] = loss.derivative(z[i], b[i]);
    });
}

template <class Value> void WorkingSetMethod<Value>::look_at_all() {
    if (!y_is_current_) differentiate();
    std::vector<double> &weighted = dz_;
    for (std::size_t i = 0; i < y_.size(); ++i) weighted[i] = y_[i] * weight(i);
    if (alive_.empty()) {
        for (std::int32_t j = 0; j < d_; ++j) {
            if (movable_[at(j)]) alive_.push_back(j);
        }
    }
    const bool is_first = norm_.empty();
    norm_.resize(at(d_));
    for (const std::int32_t j : alive_) {
        const auto column = columns_.column(j);
        interruption_point(column.size());
        u_[at(j)] = dot(column, weighted.data());
        if (is_first) norm_[at(j)] = std::sqrt(squared_norm(column) * inverse_n_);
        touched_ += column.size();
    }
    touched_ += row_entries * problem_.rows();
    look_for_vertex();
    const double scale = feasible_scale();
    measure_gap(scale);
    if (is_first) size_at_zero_ = size_;
    // rounding is slow where it is not there soon; with more features than rows the barrier is no sooner from afar
    const auto moving = at(std::count_if(x_.begin(), x_.end(), [](double v) { return v != 0; }));
    const bool is_slow =
        passes() > 200 && problem_.features() < problem_.rows() && SetBarrier<Value>::takes(z_.size(), moving + 100);
    if (may_use_barrier_ && !barrier_ && (gap_ < 0.3 * size_ || is_slow)) {
        barrier_.emplace(problem_, columns_, penalties_);
        gap_of_set_ = gap_;
    }
    screen(scale);
    has_looked_ = true;
    has_set_ = false;
}

/// Rounding a loss with kinks leads near the optimum, and ever slower nearer; the corner there is exact. Each is tried once.
template <class Value> void WorkingSetMethod<Value>::look_for_vertex() {
    vertex_.reset();
    if (rounding_ == 0 || gap_ > 0.5 * size_) return;
    const std::span<const double> y = y_is_of_barrier_ ? barrier_->settled_y() : y_;
    vertex_ = nearby_vertex(problem_, columns_, penalties_, x_, y);
    if (!vertex_) return;
    if (vertex_->x == last_vertex_) return vertex_.reset();
    last_vertex_ = vertex_->x;
}

/// The largest s <= 1 that brings s u into the domain of g*, where scaling can.
template <class Value> double WorkingSetMethod<Value>::feasible_scale() const {
    double scale = 1;
    for (const std::int32_t j : alive_) {
        const Box g = penalties_[j];
        const double w = -scale * u_[at(j)];
        if (g.l1 == 0 || g.l2 > 0 || std::fabs(w) <= g.l1) continue;
        if ((w > 0 ? g.bounds.upper : -g.bounds.lower) == infinity) scale *= g.l1 / std::fabs(w);
    }
    return scale;
}

template <class Value> void WorkingSetMethod<Value>::measure_gap(double scale) {
    double support = 0, unbalanced = 0;
    const double losses = sum_of_losses(loss_values, [&](std::size_t i) { return z_[i]; });
    const double conjugates = sum_of_losses(loss_conjugates, [&](std::size_t i) { return scale * y_[i]; });
    penalty_ = 0;
    for (const std::int32_t j : alive_) {
        const Box g = penalties_[j];
        const double x = x_[at(j)], w = -scale * u_[at(j)];
        if (x != 0) penalty_ += g.value(x);
        if (std::fabs(w) <= g.l1 * (1 + 1e-12)) continue;
        if (g.conjugate_domain().contains(w)) {
            support += g.conjugate(w);
        } else if (!is_free(g)) { // what the certificate charges for a side without penalty
            support += 10 * std::max(1.0, std::fabs(x)) * std::fabs(w);
        } else if (penalties_.unit(g) > 0) { // the certificate balances it, which moves the others about as much
            unbalanced = std::max(unbalanced, std::fabs(w) / penalties_.unit(g));
        }
    }
    support += unbalanced * penalty_;
    const double primal = losses + penalty_, dual = -conjugates - support;
    gap_ = std::max(primal - dual, 0.0);
    size_ = std::max({std::fabs(primal), std::fabs(dual), 1e-300});
    gap_of_set_ = gap_;
    if (rounding_ == 0 || barrier_) return;
    double squares = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) squares += weight(i) * scale * scale * y_[i] * y_[i];
    gap_of_set_ = std::max(loss_at(0) + penalty_ - dual + 0.5 * rounding_ * squares, 0.0);
    if (gap_of_set_ > 0.2 * gap_) return;
    rounding_ = std::max(0.2 * rounding_, 1e-100); // it is most of the gap
    y_is_current_ = false;
}

// Gap-safe screening (Ndiaye, Fercoq, Gramfort and Salmon 2017): D is gamma/n-strongly concave, so the optimal y lies in a ball
// around s y, and a feature whose constraint holds in all of it has x_j = 0.
template <class Value> void WorkingSetMethod<Value>::screen(double scale) {
    const double gamma = problem_.loss().gamma();
    if (gamma == 0) return;
    double heaviest = 1;
    for (const double w : problem_.importance()) heaviest = std::max(heaviest, w);
    const double radius = std::sqrt(2 * gap_ * heaviest / gamma) * (1 + 1e-9);
    std::erase_if(alive_, [&](std::int32_t j) {
        const double w = -scale * u_[at(j)];
        return x_[at(j)] == 0 && slack(zero_range(penalties_[j]), w) > radius * norm_[at(j)];
    });
}

template <class Value> void WorkingSetMethod<Value>::choose_set() {
    in_set_.assign(at(d_), 0);
    for (const std::int32_t j : set_) in_set_[at(j)] = 1;
    std::vector<std::int32_t> before = std::exchange(set_, {});
    const std::size_t last = before.size();
    scores_.clear();
    has_news_ = false;
    std::size_t wanting = 0; // how many want to
    // where many duals fit x, as they do where x = 0 is optimal, constraints that are left out again are broken again
    forgets_ = forgets_ || (y_is_of_barrier_ && gap_of_set_ > last_gap_);
    const bool keeps_all = forgets_ && barrier_ && barrier_->takes(z_.size(), last + 100);
    for (const std::int32_t j : alive_) {
        const Box g = penalties_[j];
        if (x_[at(j)] != 0 || is_free(g) || (keeps_all && in_set_[at(j)])) {
            set_.push_back(j);
        } else if (norm_[at(j)] > 0) {
            const double room = slack(zero_range(g), -u_[at(j)]);
            scores_.emplace_back(static_cast<float>(room / norm_[at(j)]), j);
            has_news_ = has_news_ || (room < 0 && !in_set_[at(j)]);
            wanting += room < 0 ? 1 : 0;
        }
    }
    // the gap of a set that has all it needs must fall
    strictness_ = has_news_ || gap_of_set_ < 0.3 * last_gap_ ? 1.0 : std::max(0.1 * strictness_, 1e-8);
    if (y_is_of_barrier_ && strictness_ < 1e-3) leave_barrier();
    last_gap_ = gap_of_set_;
    // A tenth of those that want to at x = 0 will, about. Where nearly all of the last set did, all that want to, up to three times as many
    // as are there.
    const std::size_t nonzero = set_.size(), grown = 10 * nonzero > 9 * last ? std::min(3 * nonzero, wanting) : 0;
    const std::size_t few = barrier_ ? barrier_->room(nonzero, wanting) : std::max({nonzero, wanting / 10, grown});
    const std::size_t more = std::min(scores_.size(), std::max<std::size_t>(100, few));
    const auto end_of_best = scores_.begin() + static_cast<std::ptrdiff_t>(more);
    std::nth_element(scores_.begin(), end_of_best, scores_.end());
    if (more > few) std::sort(scores_.begin(), end_of_best);
    std::int64_t entries = 0;
    for (std::size_t k = 0; k < more && (k < few || entries == 0 || entries < problem_.nonzeros() / 16); ++k) {
        set_.push_back(scores_[k].second);
        entries += columns_.column(scores_[k].second).size();
    }
    std::sort(set_.begin(), set_.end());
    if (barrier_ && y_is_of_barrier_ && !has_news_) set_ = std::move(before); // with which it goes on
    has_set_ = true;
    is_in_barrier_ = false;
    u_is_lost_ = !y_is_current_;
    steps_in_set_ = 0;
}

template <class Value> void WorkingSetMethod<Value>::set_up_model() {
    if (!y_is_current_) differentiate();
    std::vector<double> &r = model_.r();
    for (std::size_t i = 0; i < y_.size(); ++i) r[i] = y_[i] * weight(i);
    if (is_quadratic_ && model_.h().same > 0) return; // set up for good
    if (!is_quadratic_ || !problem_.importance().empty()) {
        const double drift = find_curvatures();
        if (model_.used_gram() && drift < (is_curved_ ? 0.1 : 1e-6)) return;
        model_.h().rows = curvatures_;
    }
    model_.h().same = inverse_n_;
    model_.reset(is_quadratic_ || unrest_ < 0.1 ? 40 : 3);
}

/// The rows' curvatures now; returns by what share they differ from the model's. Between the last two calls: unrest_.
template <class Value> double WorkingSetMethod<Value>::find_curvatures() {
    const auto b = problem_.targets();
    const std::vector<double> &old = model_.h().rows;
    const bool is_first = curvatures_.empty();
    curvatures_.resize(y_.size());
    double drift = 0, unrest = 0, sum = 0;
    with_loss([&](const auto &loss) {
        double largest = loss.largest_curvature();
        for (std::size_t i = 0; loss.largest_curvature() == 0 && i < y_.size(); ++i) {
            largest = std::max(largest, loss.curvature(z_[i], y_[i], b[i]));
        }
        const double floor = is_quadratic_ ? 0 : floor_ * largest;
        for (std::size_t i = 0; i < y_.size(); ++i) {
            const double h = (loss.curvature(z_[i], y_[i], b[i]) + floor) * weight(i);
            unrest += std::fabs(h - curvatures_[i]);
            drift += old.empty() ? 0.0 : std::fabs(h - old[i]);
            sum += h;
            curvatures_[i] = h;
        }
    });
    unrest_ = is_first ? infinity : unrest / sum;
    return is_first ? infinity : drift / sum;
}

/// u on the set, from the model's rows.
template <class Value> void WorkingSetMethod<Value>::differentiate_set() {
    for (const std::int32_t j : set_) {
        const auto column = columns_.column(j);
        interruption_point(column.size());
        u_[at(j)] = dot(column, model_.r().data());
        touched_ += column.size();
    }
}

/// Rounding is all that is left, or the set too large.
template <class Value> void WorkingSetMethod<Value>::leave_barrier() {
    touched_ += barrier_->touched();
    barrier_.reset();
    may_use_barrier_ = is_in_barrier_ = y_is_of_barrier_ = y_is_current_ = false;
}

/// A step towards the minimiser over the set of the loss as it is; true when it was the last.
template <class Value> bool WorkingSetMethod<Value>::step_by_barrier() {
    if (!is_in_barrier_) {
        const double target = strictness_ * std::max(0.02 * gap_, 0.1 * tolerance_ * size_);
        is_cold_start_ = false;
        if (y_is_of_barrier_ && !has_news_) {
            barrier_->go_on(target);
        } else {
            barrier_->start(set_, std::max(gap_, 0.1 * size_), target, x_, y_);
        }
    } else if (!barrier_->is_running()) { // from afar, where nothing is out of balance
        const std::vector<double> x(x_.size(), 0.0), y(y_.size(), 0.0);
        is_cold_start_ = true;
        barrier_->start(set_, 5 * size_at_zero_, strictness_ * 0.02 * gap_, x, y);
    }
    barrier_->advance(x_, y_);
    is_in_barrier_ = barrier_->is_running() || (!is_cold_start_ && barrier_->error() > gap_);
    if (is_in_barrier_) return false;
    y_is_of_barrier_ = true;
    predict();
    return true;
}

/// One model and its minimiser; true when the set is solved as well as the gap asks.
template <class Value> bool WorkingSetMethod<Value>::step(std::int64_t budget) {
    if (barrier_ && !barrier_->takes(z_.size(), set_.size())) leave_barrier();
    if (barrier_) return step_by_barrier();
    // Of the gap that may be left in the set, and of the model that may be left in a step: sets and models are far from right at
    // first; later a look at all features costs more than solving a model that may be exact.
    const bool is_early = gap_of_set_ > 0.1 * size_;
    const double exact = is_early ? 0.1 : 0.01;
    const double share = !is_curved_ || (!is_early && !has_news_) ? exact : (is_early ? 0.3 : 0.1);
    const double reduction = is_curved_ ? share : (gap_of_set_ > 0.01 * size_ ? 0.1 : 1e-3);
    const double left = strictness_ * std::max(share * gap_of_set_, 0.2 * tolerance_ * size_);
    // an excess e shrinks the dual point by 1 + e, which costs about e times the penalty and e^2 times the objective
    const SweepResult target{0.1 * left, std::min(left / std::max(penalty_, 1e-3 * size_), std::sqrt(left / size_))};
    set_up_model();
    touched_ += row_entries * problem_.rows();
    if (u_is_lost_) differentiate_set();
    u_is_lost_ = true;
    if (is_quadratic_) {
        model_.minimize(set_, x_, u_, target, 0, budget);
        for (std::size_t i = 0; i < z_.size(); ++i) z_[i] = model_.r()[i] / weight(i) + problem_.targets()[i];
        y_is_current_ = false;
        return model_.reached();
    }
    before_.resize(set_.size());
    for (std::size_t k = 0; k < set_.size(); ++k) before_[k] = x_[at(set_[k])];
    const SweepResult first = model_.minimize(set_, x_, u_, target, reduction, budget);
    const bool is_whole = search_line();
    // near the end the curvatures of an older Gram matrix are wrong by more than the model's rest
    const double achieved = is_curved_ && !has_news_ && !is_early ? std::max(reduction, 0.1) : reduction;
    return (is_whole && model_.reached() && achieved * first.violation <= target.violation &&
            achieved * achieved * first.decrease <= target.decrease) ||
           ++steps_in_set_ >= 20;
}

template <class Value> double WorkingSetMethod<Value>::change_of_penalty(double t) const {
    double change = 0;
    for (std::size_t k = 0; k < set_.size(); ++k) {
        const double start = before_[k], end = x_[at(set_[k])];
        if (start == end) continue;
        const Box g = penalties_[set_[k]];
        const double between = t == 1 ? end : start + t * (end - start);
        change += g.l1 * (std::fabs(between) - std::fabs(start)) + 0.5 * g.l2 * (between - start) * (between + start);
    }
    return change;
}

/// The losses at z + t dz.
template <class Value> double WorkingSetMethod<Value>::loss_at(double t) const {
    if (rounding_ == 0) return sum_of_losses(loss_values, [&](std::size_t i) { return z_[i] + t * dz_[i]; });
    double sum = 0;
    const auto b = problem_.targets();
    with_loss([&](const auto &loss) {
        for (std::size_t i = 0; i < b.size(); ++i) sum += weight(i) * loss.value(z_[i] + t * dz_[i], b[i]);
    });
    return sum;
}

/// The slope of the penalty at x, on the way from before_.
template <class Value> double WorkingSetMethod<Value>::slope_of_penalty() const {
    double slope = 0;
    for (std::size_t k = 0; k < set_.size(); ++k) {
        const double end = x_[at(set_[k])], move = end - before_[k];
        if (move == 0) continue;
        const Box g = penalties_[set_[k]];
        slope += end == 0 ? -g.l1 * std::fabs(move) : move * (std::copysign(g.l1, end) + g.l2 * end);
    }
    return slope;
}

// From before_ to x_; true when the whole step was taken. Where the objective still falls at its end, convexity says that it fell
// all the way, which saves the logarithms of the values; else halving until the decrease is a share of the model's.
template <class Value> bool WorkingSetMethod<Value>::search_line() {
    if (model_.used_gram()) {
        dz_ = model_.dz();
    } else {
        std::fill(dz_.begin(), dz_.end(), 0.0);
        for (std::size_t k = 0; k < set_.size(); ++k) {
            const double move = x_[at(set_[k])] - before_[k];
            if (move == 0) continue;
            const auto column = columns_.column(set_[k]);
            interruption_point(column.size());
            axpy(move, column, dz_.data());
            touched_ += column.size();
        }
    }
    trial_.resize(z_.size());
    for (std::size_t i = 0; i < dz_.size(); ++i) trial_[i] = z_[i] + dz_[i];
    slopes_at(trial_, trial_);
    double slope = change_of_penalty(1), end_slope = slope_of_penalty();
    for (std::size_t i = 0; i < dz_.size(); ++i) {
        slope += weight(i) * y_[i] * dz_[i];
        end_slope += weight(i) * trial_[i] * dz_[i];
    }
    double t = 1;
    if (!(end_slope <= 0)) {
        const double start = loss_at(0), noise = 1e-13 * std::fabs(start);
        for (; t > 1e-12; t *= 0.5) {
            const double change = loss_at(t) - start + change_of_penalty(t);
            if (change <= 0.01 * t * slope + noise) break;
        }
    }
    floor_ = t == 1 ? std::max(1e-9, floor_ * 0.1) : std::min(1.0, floor_ * 10);
    for (std::size_t k = 0; t < 1 && k < set_.size(); ++k) {
        double &x = x_[at(set_[k])];
        x = before_[k] + t * (x - before_[k]);
    }
    for (std::size_t i = 0; i < dz_.size(); ++i) z_[i] += t * dz_[i];
    if (t == 1) y_.swap(trial_);
    y_is_current_ = t == 1;
    return t == 1;
}

} // namespace

std::unique_ptr<Method> make_column_sets(const Problem &problem, const Crew &crew) {
    const bool is_float = has_floats(problem.matrix());
    if (is_float) return std::make_unique<WorkingSetMethod<float>>(problem, crew);
    return std::make_unique<WorkingSetMethod<double>>(problem, crew);
}

std::unique_ptr<Method> make_method(const Problem &problem, const WorkingSet &options, const SolveContext &context) {
    if (std::holds_alternative<L2>(problem.regularizer().variant())) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l1 penalty or bounds, which leave most weights at 0; "
                         "for an l2 penalty alone take the solver spdc_fast",
                         options.name));
    }
    const double l1 = std::visit([](const auto &g) { return g.parts().l1; }, problem.regularizer().variant());
    if (l1 == 0 && has_kinks(problem.loss())) { // the rounding did not close the gap of some problems with bounds alone
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l1 penalty where the loss has kinks, as {} has; the solver "
                         "spdc takes it with bounds alone",
                         options.name, problem.loss().name()));
    }
    constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();
    if (problem.rows() > most_rows) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} takes up to {} rows, not {}; the solver spdc takes any number", options.name,
                         most_rows, problem.rows()));
    }
    if (has_few_features(problem)) return make_few_features(problem);
    return has_few_entries(problem) ? make_sparse_newton(problem, context) : make_column_sets(problem, context);
}

} // namespace spdc
