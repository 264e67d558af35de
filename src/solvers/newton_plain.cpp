// Newton's method on any NewtonSystem: the form for few rows, and the plain twin of newton.cpp.
//
// One step at a time from x = 0: derivatives at z, the step, the full step or the minimiser along it. The dual point is the Newton
// dual of newton.cpp.
#include "newton.h"
#include "newton_step.h"
#include "newton_system.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

class PlainNewton final : public SystemNewton {
  public:
    PlainNewton(const Problem &problem, std::unique_ptr<NewtonSystem> system)
        : SystemNewton(problem, std::move(system), 20) {
        for (auto *array : {&z_, &next_, &w_, &h_, &y_, &excess_}) array->resize(count_, 0.0);
        loss_.set_blunt(loss_.has_pieces());
        objective_ = evaluate();
    }

    void advance(double passes) override;
    void point(std::vector<double> &x, std::vector<double> &y) override;
    void certified(const Found &found) override;

  private:
    double evaluate() {
        const double n = system_->divisor();
        return loss_.evaluate(system_->rows(), z_.data(), w_.data(), h_.data()) / n + system_->penalty();
    }
    double measure(bool full_step);

    std::vector<double> z_, next_, w_, h_, y_, excess_;
    int useless_ = 0;
};

void PlainNewton::advance(double) {
    if (is_exhausted_) return;
    ++iterations_;
    const LossRows rows = system_->rows();
    RowSums sums;
    std::vector<double> move(count_, 0.0);
    const bool solved = system_->solve(
        z_.data(),
        [&](std::size_t begin, std::size_t end, double *w, double *h) {
            std::copy(w_.data() + begin, w_.data() + end, w);
            std::copy(h_.data() + begin, h_.data() + end, h);
        },
        true, move.data(), [](std::size_t, std::size_t, RowSums &, double *) {}, sums);
    for (std::size_t i = 0; i < count_; ++i) next_[i] = z_[i] + move[i];
    loss_.newton_dual(rows, z_.data(), next_.data(), y_.data(), excess_.data());
    loss_.set_blunt(false);
    const double n = system_->divisor();
    const LineSlope penalty = system_->penalty_slope();
    const auto slope = [&](double t) {
        const LineSlope now = loss_.slope(rows, z_.data(), move.data(), t);
        return LineSlope{now.first / n + penalty.first + t * penalty.second, now.second / n + penalty.second};
    };
    const double at_zero = slope(0).first;
    if (!solved || !(at_zero < 0)) { // at the minimiser, as far as rounding lets one see
        is_exhausted_ = ++useless_ > 2;
        return;
    }
    const bool full = slope(1).first <= -0.05 * at_zero;
    const double t = full ? 1 : line_minimum(slope, at_zero, 1);
    for (std::size_t i = 0; i < count_; ++i) z_[i] += t * move[i];
    system_->take(t);
    objective_ = evaluate();
    useless_ = -t * at_zero <= 1e-15 * std::fabs(objective_) ? useless_ + 1 : 0;
    is_exhausted_ = useless_ > 3;
    gap_ = measure(full);
}

/// The better of the Newton dual (in y_, with what was cut off in excess_) and phi'(z).
double PlainNewton::measure(bool full_step) {
    const LossRows rows = system_->rows();
    const double n = system_->divisor();
    const auto mismatch_of = [&](const std::vector<double> &y) {
        return system_->mismatch([&](std::size_t begin, std::size_t end, double *w, double *) {
            for (std::size_t i = begin; i < end; ++i) w[i - begin] = rows.omega[i] * y[i];
        });
    };
    const double newton = full_step ? loss_.young(rows, z_.data(), y_.data()) / n + mismatch_of(y_) : infinity;
    std::vector<double> &plain = excess_;
    loss_.dual(rows, z_.data(), plain.data());
    const double gap = mismatch_of(plain);
    if (newton <= gap) return newton;
    std::swap(y_, plain);
    return gap;
}

/// The gap is larger than was thought: z has drifted from Ax. Where rows are much alike rounding keeps a fit from being exact; steps from the true z
/// take most of the rest away, each.
void PlainNewton::certified(const Found &found) {
    if (found.certificate.gap <= 2 * gap_) return;
    std::vector<double> x, predictions(static_cast<std::size_t>(problem_.rows()));
    system_->point(x);
    problem_.predict(x, predictions);
    looks_ += 0.5;
    for (std::size_t p = 0; p < system_->row_count(); ++p) z_[p] = predictions[system_->row_at(p)];
    objective_ = evaluate();
}

void PlainNewton::point(std::vector<double> &x, std::vector<double> &y) {
    if (iterations_ == 0) loss_.dual(system_->rows(), z_.data(), y_.data());
    system_->point(x);
    y.resize(static_cast<std::size_t>(problem_.rows()));
    for (std::size_t p = 0; p < system_->row_count(); ++p) y[system_->row_at(p)] = y_[p];
}

} // namespace

std::unique_ptr<Method> make_plain_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system) {
    return std::make_unique<PlainNewton>(problem, std::move(system));
}

} // namespace spdc
