// The batch primal-dual method: SPDC with all rows at once.
//
// Problem: the saddle point of (1/W) sum_i w_i ( y_i a_i'x - phi_i*(y_i) ) + g(x).
// Algorithm: Chambolle and Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging" (2011), with
// s = |A|_2 / sqrt(n), rows scaled by the square roots of their weights:
//
//   y     <- argmax_b  b a_i'xbar - phi_i*(b) - (b - y_i)^2/(2 sigma)     for all i
//   x     <- prox_{tau g}( x - tau u ),  u = (1/W) sum_i w_i y_i a_i
//   xbar  <- x + theta (x - x_previous)
//
//   both strongly convex   tau = sqrt(gamma/lambda)/s, sigma = sqrt(lambda/gamma)/s, theta = 1 - 1/(1 + s/(2 sqrt(lambda gamma)))
//                          (their algorithm 3; the paper's table 2)
//   g only                 their algorithm 2, O(1/T^2): tau = 1/lambda at first, theta = 1/sqrt(1 + 2 lambda tau), tau <- theta tau,
//                          sigma <- sigma/theta
//   phi* only              the same with x and y exchanged: the dual point is extrapolated
//   neither                their algorithm 1, O(1/T): theta = 1, and a restart from the average where that takes the gap down
//                          (Applegate, Hinder, Lu and Lubin, "Faster first-order primal-dual methods for linear programming using
//                          restarts and sharpness", 2023), which also balances tau and sigma
//
// Cost per step: one pass. |A|_2 is found first by power iteration, whose passes count.
// What differs: nothing where tau, sigma and theta are given; then it is SPDC with a batch of n rows, iterate for iterate. Their
// sigma is n times this one, which is SPDC's.
#include "batch.h"
#include "method.h"
#include "methods.h"
#include "random.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double squared_distance(const std::vector<double> &a, const std::vector<double> &b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

class ChambollePockMethod final : public Method {
  public:
    ChambollePockMethod(const Problem &problem, const ChambollePock &options, const SolveContext &context);

    void advance(double passes) override;
    double passes() const override { return loss_.passes(); }
    bool has_point() const override { return tau_ > 0; }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    void certified(const Found &found) override;
    int threads() const override { return loss_.threads(); }

  private:
    /// What the step sizes make of the strong convexity there is.
    enum class Variant { both, primal, dual, neither, given };

    void measure_norm();
    void set_steps();
    void step();
    void watch_norm();
    /// theta where both sides are strongly convex.
    double linear_theta() const { return 1 - 1 / (1 + s_ / (2 * std::sqrt(lambda_ * gamma_))); }
    void dual_step(double extrapolation);
    void primal_step(double extrapolation);
    void restart();

    const Problem &problem_;
    const ChambollePock options_;
    BatchLoss loss_;
    const double gamma_, lambda_; // 0: not strongly convex
    Variant variant_;
    double s_ = 0; // |A|_2 / sqrt(n), by power iteration on v_
    double tau_ = 0, sigma_ = 0, theta_ = 1;
    std::vector<double> x_, previous_x_, u_, previous_u_, v_;
    std::vector<double> y_, z_;
    struct Average { // of the iterates since the restart, where neither side is strongly convex
        std::vector<double> x, y, start_x, start_y;
        double count = 0, start_gap = infinity, last_gap = infinity, start_passes = 0;
        bool is_offered = false;
    } average_;
};

ChambollePockMethod::ChambollePockMethod(const Problem &problem, const ChambollePock &options,
                                         const SolveContext &context)
    : problem_(problem), options_(options), loss_(problem, context), gamma_(problem.loss().gamma()),
      lambda_(problem.is_strongly_convex() ? problem.strong_convexity() : 0),
      variant_(gamma_ > 0 ? (lambda_ > 0 ? Variant::both : Variant::dual)
                          : (lambda_ > 0 ? Variant::primal : Variant::neither)) {
    for (auto *array : {&x_, &previous_x_, &u_, &previous_u_, &v_}) array->resize(at(problem.dimension()), 0.0);
    for (auto *array : {&y_, &z_}) array->resize(at(problem.rows()), 0.0);
    if (options.tau || options.sigma || options.theta) variant_ = Variant::given;
    Random random(context.seed);
    for (double &component : v_) component = random.uniform() - 0.5;
    if (options.tau && options.sigma && options.theta) set_steps(); // the norm is not needed
}

void ChambollePockMethod::advance(double passes) {
    const double end = this->passes() + passes;
    do {
        if (has_point()) {
            step();
        } else {
            measure_norm();
            if (has_point()) return; // the start is certified before the first step
        }
    } while (this->passes() < end);
}

/// One step of the power iteration on (1/W) sum_i w_i a_i a_i'. From below, so that a margin is added.
void ChambollePockMethod::measure_norm() {
    constexpr double settled = 1e-3, margin = 1.02;
    constexpr double most_passes = 50;
    loss_.predict(v_, z_);
    loss_.combine(z_, u_);
    const double length = std::sqrt(dot(v_, v_)), next = std::sqrt(dot(u_, u_) / std::max(dot(v_, v_), 1e-300));
    const bool is_done = length == 0 || std::fabs(next - s_) <= settled * next || passes() >= most_passes;
    s_ = next;
    v_ = u_;
    const double size = std::sqrt(dot(v_, v_));
    for (double &component : v_) component /= std::max(size, 1e-300);
    if (!is_done) return;
    s_ = s_ > 0 ? margin * std::sqrt(s_) : 1; // no row has an entry: any step is right
    std::fill(u_.begin(), u_.end(), 0.0);
    set_steps();
}

void ChambollePockMethod::set_steps() {
    const double gamma = gamma_ > 0 ? gamma_ : 1, lambda = lambda_ > 0 ? lambda_ : 1;
    if (variant_ == Variant::primal) {
        tau_ = 1 / lambda;
    } else if (variant_ == Variant::dual) {
        tau_ = gamma / (s_ * s_);
    } else {
        tau_ = options_.tau.value_or(std::sqrt(gamma / lambda) / s_);
    }
    sigma_ = options_.sigma.value_or(1 / (tau_ * s_ * s_));
    theta_ = options_.theta.value_or(gamma_ > 0 && lambda_ > 0 ? linear_theta() : 1);
}

/// The power iteration may have settled too early. |A v|/|v| of any v is a lower bound of the norm, and iterates that diverge find one
/// above s: then the steps shrink.
void ChambollePockMethod::watch_norm() {
    const double length2 = dot(v_, v_);
    if (variant_ == Variant::given || length2 == 0) return;
    const double seen = std::sqrt(loss_.mean_square(z_) / length2);
    if (seen <= s_) return;
    const double shrink = s_ / (1.02 * seen);
    s_ /= shrink;
    tau_ *= shrink;
    sigma_ *= shrink;
    if (variant_ == Variant::both) theta_ = linear_theta();
}

/// y from A (x + extrapolation (x - previous x)), and u from y.
void ChambollePockMethod::dual_step(double extrapolation) {
    for (std::size_t j = 0; j < x_.size(); ++j) v_[j] = x_[j] + extrapolation * (x_[j] - previous_x_[j]);
    loss_.predict(v_, z_);
    watch_norm();
    loss_.dual_prox(z_, sigma_, y_);
    std::swap(u_, previous_u_);
    loss_.combine(y_, u_);
}

/// x from u + extrapolation (u - previous u).
void ChambollePockMethod::primal_step(double extrapolation) {
    previous_x_ = x_;
    for (std::size_t j = 0; j < x_.size(); ++j) {
        v_[j] = x_[j] - tau_ * (u_[j] + extrapolation * (u_[j] - previous_u_[j]));
    }
    prox_all(problem_, v_, tau_, x_);
}

void ChambollePockMethod::step() {
    if (variant_ == Variant::dual) {
        primal_step(theta_);
        dual_step(0);
        theta_ = 1 / std::sqrt(1 + 2 * gamma_ * sigma_);
        sigma_ *= theta_;
        tau_ /= theta_;
    } else {
        dual_step(theta_);
        primal_step(0);
    }
    if (variant_ == Variant::primal) {
        theta_ = 1 / std::sqrt(1 + 2 * lambda_ * tau_);
        tau_ *= theta_;
        sigma_ /= theta_;
    }
    if (average_.x.empty()) return;
    for (std::size_t j = 0; j < x_.size(); ++j) average_.x[j] += x_[j];
    for (std::size_t i = 0; i < y_.size(); ++i) average_.y[i] += y_[i];
    ++average_.count;
}

void ChambollePockMethod::point(std::vector<double> &x, std::vector<double> &y) {
    x = x_;
    y = y_;
    if (!average_.is_offered) return;
    for (std::size_t j = 0; j < x.size(); ++j) v_[j] = average_.x[j] / average_.count;
    prox_all(problem_, v_, 0, x); // the average of numbers inside bounds may round to one outside
    for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = problem_.loss().domain(problem_.targets()[i]).clip(average_.y[i] / average_.count);
    }
}

/// Iterate and average are offered to the certifier by turns, and one that takes the gap down far enough is the next start.
void ChambollePockMethod::certified(const Found &found) {
    if (variant_ != Variant::neither) return;
    const double gap = found.certificate.gap;
    const bool far = gap < average_.last_gap && gap < 0.6 * average_.start_gap;
    average_.last_gap = gap;
    if (far && average_.is_offered) {
        point(x_, y_);
        previous_x_ = x_;
        loss_.combine(y_, u_);
    }
    if (far || average_.x.empty() || passes() - average_.start_passes > 0.3 * passes() + 10) {
        restart();
        average_.start_gap = gap;
    }
    average_.is_offered = !average_.is_offered && average_.count > 3;
}

/// The average forgets; tau and sigma go half the way to where both sides have as far to go.
void ChambollePockMethod::restart() {
    if (!average_.x.empty()) {
        const double dx = squared_distance(x_, average_.start_x);
        const double dy = squared_distance(y_, average_.start_y) / static_cast<double>(y_.size());
        if (dx > 0 && dy > 0) tau_ = std::sqrt(tau_ * std::sqrt(dx / dy) / s_);
        sigma_ = 1 / (tau_ * s_ * s_);
    }
    average_.x.assign(x_.size(), 0.0);
    average_.y.assign(y_.size(), 0.0);
    average_.count = 0;
    average_.start_x = x_;
    average_.start_y = y_;
    average_.start_passes = passes();
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const ChambollePock &options, const SolveContext &context) {
    return std::make_unique<ChambollePockMethod>(problem, options, context);
}

} // namespace spdc
