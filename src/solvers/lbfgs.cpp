// Limited-memory BFGS, and OWL-QN where there is an l1 penalty.
//
// Problem: F(x) = f(x) + sum_j l1_j |x_j|, f the mean of smooth losses and the l2 terms.
// Algorithm: Nocedal and Wright, "Numerical Optimization" (2006), algorithms 7.4 (two-loop recursion) and 7.5, with the strong Wolfe
// conditions of section 3.1; with l1, Andrew and Gao, "Scalable training of L1-regularized log-linear models" (2007):
//
//   d    <- -H f'(x), H from the last `memory` pairs (s, y) of steps and gradient changes, H_0 = s'y/y'y of the last one
//   x    <- x + t d,  with  F(x + t d) <= F(x) + c1 t d'f'  and  |d'f'(x + t d)| <= c2 |d'f'(x)|,  c1 = 1e-4, c2 = 0.9
//   l1:  f' is the pseudo-gradient, the subgradient nearest to 0; components of d that disagree with its sign are 0; x + t d is cut
//        off at 0 where it would change sign; t is halved until F falls by c1 of what the pseudo-gradient promises
//
// Cost per step: one pass (A d and A' phi'); 4 memory d flops. A trial t costs O(n), since A(x + t d) = A x + t A d; with l1 a trial
// costs half a pass, since the path bends.
// What differs: f(x + t d) - f(x) - t d'f' is summed without cancellation, so that the conditions mean something down to rounding,
// and a pair enters only where s'y > 0 beyond rounding. A x is computed afresh every 50 steps.
#include "batch.h"
#include "method.h"
#include "methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

namespace spdc {

namespace {

class LbfgsMethod final : public Method {
  public:
    LbfgsMethod(const Problem &problem, const Lbfgs &options, const SolveContext &context);

    void advance(double passes) override {
        const double end = this->passes() + passes;
        do step();
        while (this->passes() < end && !exhausted());
    }
    double passes() const override { return loss_.passes(); }
    void point(std::vector<double> &x, std::vector<double> &y) override {
        x = x_;
        y.resize(z_.size());
        loss_.slopes(z_, y);
    }
    bool exhausted() const override { return is_exhausted_; }
    int threads() const override { return loss_.threads(); }

  private:
    void step();
    void find_gradient();
    void find_pseudo_gradient();
    void find_direction();
    bool search_line();
    bool search_orthant();
    void remember(const std::vector<double> &old_gradient);

    const Problem &problem_;
    const std::size_t memory_;
    BatchLoss loss_;
    std::vector<double> l1_, l2_; // of each coordinate; l1_ is empty when all are 0
    std::vector<double> x_, gradient_, pseudo_, direction_, step_;
    std::vector<double> z_, slopes_, move_z_;
    struct Pair {
        std::vector<double> s, y;
        double sy;
    };
    std::deque<Pair> pairs_; // the latest first
    std::int64_t steps_ = 0;
    bool is_exhausted_ = false;
};

LbfgsMethod::LbfgsMethod(const Problem &problem, const Lbfgs &options, const SolveContext &context)
    : problem_(problem), memory_(static_cast<std::size_t>(options.memory)), loss_(problem, context) {
    const auto d = static_cast<std::size_t>(problem.dimension()), n = static_cast<std::size_t>(problem.rows());
    for (auto *array : {&l1_, &l2_, &x_, &gradient_, &pseudo_, &direction_, &step_}) array->resize(d, 0.0);
    for (auto *array : {&z_, &slopes_, &move_z_}) array->resize(n, 0.0);
    for (std::size_t j = 0; j < d; ++j) {
        const AnyRegularizer g = problem.regularizer(static_cast<std::int64_t>(j));
        const PenaltyParts parts = std::visit([](const auto &one) { return one.parts(); }, g.variant());
        l1_[j] = parts.l1;
        l2_[j] = parts.l2;
    }
    if (std::all_of(l1_.begin(), l1_.end(), [](double l1) { return l1 == 0; })) l1_.clear();
}

/// f' at x, z = A x given.
void LbfgsMethod::find_gradient() {
    loss_.slopes(z_, slopes_);
    loss_.combine(slopes_, gradient_);
    for (std::size_t j = 0; j < x_.size(); ++j) gradient_[j] += l2_[j] * x_[j];
    find_pseudo_gradient();
}

void LbfgsMethod::find_pseudo_gradient() {
    pseudo_ = gradient_;
    for (std::size_t j = 0; j < l1_.size(); ++j) {
        pseudo_[j] = x_[j] == 0 ? soft_threshold(gradient_[j], l1_[j]) : gradient_[j] + std::copysign(l1_[j], x_[j]);
    }
}

/// -H pseudo_gradient by the two-loop recursion; the first direction, and one after a failure, has length 1.
void LbfgsMethod::find_direction() {
    direction_ = pseudo_;
    std::vector<double> alpha;
    for (const Pair &pair : pairs_) {
        alpha.push_back(dot(pair.s, direction_) / pair.sy);
        for (std::size_t j = 0; j < x_.size(); ++j) direction_[j] -= alpha.back() * pair.y[j];
    }
    const double scale = pairs_.empty() ? 1 / std::sqrt(dot(pseudo_, pseudo_))
                                        : pairs_.front().sy / dot(pairs_.front().y, pairs_.front().y);
    for (double &component : direction_) component *= scale;
    for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair) {
        const double beta = dot(pair->y, direction_) / pair->sy;
        for (std::size_t j = 0; j < x_.size(); ++j) direction_[j] += (alpha.back() - beta) * pair->s[j];
        alpha.pop_back();
    }
    for (double &component : direction_) component = -component;
    for (std::size_t j = 0; j < l1_.size(); ++j) {
        if (direction_[j] * pseudo_[j] >= 0) direction_[j] = 0;
    }
}

void LbfgsMethod::step() {
    if (steps_ == 0) find_gradient();
    if (steps_++ % 50 == 49) loss_.predict(x_, z_);
    const auto found = [&] {
        find_direction();
        return dot(direction_, pseudo_) < 0 && (l1_.empty() ? search_line() : search_orthant());
    };
    if (dot(pseudo_, pseudo_) == 0 || !found()) {
        is_exhausted_ = pairs_.empty(); // not even along the gradient: rounding allows no better
        return pairs_.clear();
    }
    std::vector<double> old_gradient = gradient_;
    for (std::size_t j = 0; j < x_.size(); ++j) x_[j] += step_[j];
    find_gradient();
    remember(old_gradient);
}

/// The strong Wolfe conditions on the line: brackets by the slope and the fall, secants inside. Sets step_ and moves z_.
bool LbfgsMethod::search_line() {
    constexpr double c1 = 1e-4, c2 = 0.9;
    loss_.predict(direction_, move_z_);
    double slope_penalty = 0, square = 0;
    for (std::size_t j = 0; j < x_.size(); ++j) {
        slope_penalty += l2_[j] * x_[j] * direction_[j];
        square += l2_[j] * direction_[j] * direction_[j];
    }
    const double start = loss_.slope(z_, move_z_, 0) + slope_penalty;
    if (!(start < 0)) return false;
    double low = 0, high = infinity, low_slope = start, high_slope = infinity, t = 1;
    for (int trial = 0; trial < 60; ++trial) {
        const double slope = loss_.slope(z_, move_z_, t) + slope_penalty + t * square;
        const double rise = loss_.rise(z_, slopes_, move_z_, t) + 0.5 * t * t * square;
        const bool falls = rise <= (1 - c1) * t * -start; // false for NaN
        if (falls && std::fabs(slope) <= -c2 * start) {
            for (std::size_t j = 0; j < x_.size(); ++j) step_[j] = t * direction_[j];
            for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += t * move_z_[i];
            return true;
        }
        if (falls && slope < 0) {
            low = t;
            low_slope = slope;
        } else {
            high = t;
            high_slope = slope;
        }
        const double secant = low - low_slope * (high - low) / (high_slope - low_slope);
        const double margin = 0.1 * (high - low);
        if (high == infinity) {
            t *= 4;
        } else if (low + margin <= secant && secant <= high - margin) {
            t = secant;
        } else {
            t = low + 0.5 * (high - low);
        }
    }
    return false;
}

/// OWL-QN's search: halves t along the path that stays in the orthant of x, or of -pseudo_gradient where x is 0.
bool LbfgsMethod::search_orthant() {
    constexpr double c1 = 1e-4;
    std::vector<double> x(x_.size()), z(z_.size());
    double t = 1;
    for (int trial = 0; trial < 60; ++trial, t *= 0.5) {
        double promised = 0, linear = 0; // of F: by the pseudo-gradient, and exactly but for f's curvature
        for (std::size_t j = 0; j < x_.size(); ++j) {
            const double sign = x_[j] != 0 ? x_[j] : -pseudo_[j];
            x[j] = x_[j] + t * direction_[j];
            if (l1_[j] > 0 && x[j] * sign <= 0) x[j] = 0;
            step_[j] = x[j] - x_[j];
            promised += pseudo_[j] * step_[j];
            linear += (gradient_[j] + std::copysign(l1_[j], sign)) * step_[j] + 0.5 * l2_[j] * step_[j] * step_[j];
        }
        loss_.predict(x, z);
        for (std::size_t i = 0; i < z.size(); ++i) move_z_[i] = z[i] - z_[i];
        if (promised < 0 && linear + loss_.rise(z_, slopes_, move_z_, 1) <= c1 * promised) {
            std::swap(z_, z);
            return true;
        }
    }
    return false;
}

void LbfgsMethod::remember(const std::vector<double> &old_gradient) {
    Pair pair;
    pair.s = step_;
    pair.y.resize(x_.size());
    for (std::size_t j = 0; j < x_.size(); ++j) pair.y[j] = gradient_[j] - old_gradient[j];
    pair.sy = dot(pair.s, pair.y);
    if (!(pair.sy > 1e-14 * std::sqrt(dot(pair.s, pair.s) * dot(pair.y, pair.y)))) return;
    if (pairs_.size() == memory_) pairs_.pop_back();
    pairs_.push_front(std::move(pair));
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Lbfgs &options, const SolveContext &context) {
    check_smooth(problem, options.name);
    if (std::holds_alternative<Box>(problem.regularizer().variant())) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} takes weights without bounds only; the solvers accelerated_gradient and spdc take "
                         "bounds",
                         options.name));
    }
    return std::make_unique<LbfgsMethod>(problem, options, context);
}

} // namespace spdc
