// Accelerated proximal gradient on the whole data, the paper's AFG.
//
// Problem: P(x) = f(x) + g(x), f the mean of smooth losses, g with a proximal map, mu-strongly convex or not (mu = 0).
// Algorithm: Nesterov, "Gradient methods for minimizing composite functions" (2013), with his adaptive line search for the constant
// L of f, in the form of Beck and Teboulle's FISTA (2009), which needs one gradient a step:
//
//   theta   the root in (0, 1] of (L + mu) theta^2 + (C - mu) theta - C = 0;  1 at the start
//   w       <- v + rho (x - v), rho = mu (1 - theta)/(L theta);   y <- (1 - theta) x + theta w
//   x+      <- prox_{g/L}( y - f'(y)/L );   if f(x+) > f(y) + <f'(y), x+ - y> + (L/2)|x+ - y|^2: L <- 2 L and again
//   v       <- x + (x+ - x)/theta;   C <- (L + mu) theta^2;   x <- x+;   L <- L/1.1
//
// Why it converges: the test gives P(x+) + (L+mu)/2 |u - x+|^2 <= P(u) + L/2 |u - y|^2 for all u. At u = (1-theta) x + theta x*,
// with the strong convexity of P between x and x* and that of |.|^2 between v and x, the equation for theta makes
//   P(x+) - P* + (C+/2)|v+ - x*|^2  <=  (1 - theta) ( P(x) - P* + (C/2)|v - x*|^2 )
// whatever L does from step to step. With mu > 0 theta tends to sqrt(mu/(L+mu)); with mu = 0 it falls like 2/t.
//
// Cost per step: one pass (one product with A', one with A; A y comes by linearity), and one more for each failed test, about one
// step in seven.
// What differs: L may fall as well as rise; where mu = 0 the momentum starts anew when it points uphill (O'Donoghue and Candes,
// "Adaptive restart for accelerated gradient schemes", 2015).
#include "batch.h"
#include "method.h"
#include "methods.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

class AcceleratedGradientMethod final : public Method {
  public:
    AcceleratedGradientMethod(const Problem &problem, const SolveContext &context);

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
    void start();
    void step();
    double theta() const;
    bool try_step(double theta);
    void take_step(double theta);

    const Problem &problem_;
    BatchLoss loss_;
    const double mu_;
    double L_ = 0, C_ = infinity;
    bool is_exhausted_ = false;
    // z_ = A x_ and so on; slopes_ and gradient_ are those at y_
    std::vector<double> x_, v_, y_, next_x_, gradient_;
    std::vector<double> z_, zv_, zy_, next_z_, slopes_, move_z_;
};

AcceleratedGradientMethod::AcceleratedGradientMethod(const Problem &problem, const SolveContext &context)
    : problem_(problem), loss_(problem, context), mu_(problem.is_strongly_convex() ? problem.strong_convexity() : 0) {
    for (auto *array : {&x_, &v_, &y_, &next_x_, &gradient_}) {
        array->resize(static_cast<std::size_t>(problem.dimension()), 0.0);
    }
    for (auto *array : {&z_, &zv_, &zy_, &next_z_, &slopes_, &move_z_}) {
        array->resize(static_cast<std::size_t>(problem.rows()), 0.0);
    }
}

/// A first L: the curvature along the first gradient, which is near the largest. The line search mends it.
void AcceleratedGradientMethod::start() {
    loss_.slopes(z_, slopes_);
    loss_.combine(slopes_, gradient_);
    double curvature = problem_.loss().gamma() > 0 ? 1 / problem_.loss().gamma() : 0;
    for (std::size_t i = 0; curvature == 0 && i < z_.size(); ++i) {
        curvature = problem_.loss().curvature(0, problem_.targets()[i]);
    }
    const bool is_flat = dot(gradient_, gradient_) == 0;
    L_ = is_flat ? 1 : curvature * loss_.square_along(gradient_);
    if (!(L_ > 0)) L_ = 1;
}

void AcceleratedGradientMethod::step() {
    if (L_ == 0) return start();
    while (!try_step(theta())) {
        L_ *= 2;
        is_exhausted_ = !(L_ < 1e100);
        if (is_exhausted_) return;
    }
    take_step(theta());
}

/// The positive root of the equation for theta, by the formula that does not cancel.
double AcceleratedGradientMethod::theta() const {
    if (C_ == infinity) return 1;
    const double half = 0.5 * (C_ - mu_) / (L_ + mu_), product = C_ / (L_ + mu_);
    const double root = std::sqrt(half * half + product);
    return std::min(1.0, half > 0 ? product / (half + root) : root - half);
}

/// One gradient and one proximal step from y; false when L was too small.
bool AcceleratedGradientMethod::try_step(double theta) {
    const double to_x = 1 - theta + mu_ * (1 - theta) / L_; // y = to_x x + (1 - to_x) v
    for (std::size_t j = 0; j < x_.size(); ++j) y_[j] = v_[j] + to_x * (x_[j] - v_[j]);
    for (std::size_t i = 0; i < z_.size(); ++i) zy_[i] = zv_[i] + to_x * (z_[i] - zv_[i]);
    loss_.slopes(zy_, slopes_);
    loss_.combine(slopes_, gradient_);
    for (std::size_t j = 0; j < x_.size(); ++j) gradient_[j] = y_[j] - gradient_[j] / L_;
    prox_all(problem_, gradient_, 1 / L_, next_x_);
    loss_.predict(next_x_, next_z_);
    double distance = 0;
    for (std::size_t j = 0; j < x_.size(); ++j) distance += (next_x_[j] - y_[j]) * (next_x_[j] - y_[j]);
    for (std::size_t i = 0; i < z_.size(); ++i) move_z_[i] = next_z_[i] - zy_[i];
    return loss_.rise(zy_, slopes_, move_z_, 1) <= 0.5 * L_ * distance; // false for NaN
}

void AcceleratedGradientMethod::take_step(double theta) {
    double uphill = 0; // <y - x+, x+ - x>: the step goes back where the momentum came from
    for (std::size_t j = 0; j < x_.size(); ++j) uphill += (y_[j] - next_x_[j]) * (next_x_[j] - x_[j]);
    const bool anew = mu_ == 0 && uphill > 0;
    const double stretch = anew ? 1 : 1 / theta;
    for (std::size_t j = 0; j < x_.size(); ++j) v_[j] = x_[j] + (next_x_[j] - x_[j]) * stretch;
    for (std::size_t i = 0; i < z_.size(); ++i) zv_[i] = z_[i] + (next_z_[i] - z_[i]) * stretch;
    std::swap(x_, next_x_);
    std::swap(z_, next_z_);
    C_ = anew ? infinity : (L_ + mu_) * theta * theta;
    L_ /= 1.1;
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const AcceleratedGradient &options,
                                    const SolveContext &context) {
    check_smooth(problem, options.name);
    return std::make_unique<AcceleratedGradientMethod>(problem, context);
}

} // namespace spdc
