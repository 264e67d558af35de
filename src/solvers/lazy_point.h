// A primal point that moves in every coordinate at every step and is paid for in the non-zeros of one row:
//
//     x <- prox_{tau g}( x - tau (u + s a_k) ),     u <- u + r a_k
//
// Coordinates outside row k see x_j <- prox_{tau g_j}(x_j - tau u_j) with u_j at rest, and have a closed form for many of
// these (section 6 and appendix D of the paper); they are brought up to date when a row needs them. Every primal method is a
// choice of s and r.
#pragma once

#include "huge_pages.h"
#include "stochastic.h"

#include <cstdint>
#include <vector>

namespace spdc {

class LazyPoint {
  public:
    LazyPoint(const Problem &problem, const Constants &constants, double tau)
        : tau_(tau), column_(constants.column), d_(constants.d),
          step_(make_step(problem.regularizer(), problem.penalty_factors(), tau, 0)),
          w_(static_cast<std::size_t>(problem.dimension())) {
        if (column_ == 0) return;
        intercept_ = problem.regularizer(d_);
        w_.back().x = constants.start;
    }

    /// What the templates below want as `step`, once visited.
    const AnyStep &step() const noexcept { return step_; }

    /// <a_k, x>, the row's coordinates brought up to date.
    template <class Row, class Step> double product(const Row &row, const Step &step) noexcept {
        double z = 0;
        for (std::int64_t p = 0; p < row.size(); ++p) {
            Coordinate &c = w_[static_cast<std::size_t>(row.column(p))];
            catch_up(step, row.column(p), c);
            z += row.value(p) * c.x;
        }
        if (column_ == 0) return z;
        catch_up_intercept();
        return z + column_ * w_.back().x;
    }

    /// One step as above, after product() of the same row.
    template <class Row, class Step> void move(const Row &row, const Step &step, double s, double r) noexcept {
        ++t_;
        if (s == 0 && r == 0) return; // then the row's coordinates move as all others do
        for (std::int64_t p = 0; p < row.size(); ++p) {
            const std::int64_t j = row.column(p);
            const double a = row.value(p);
            Coordinate &c = w_[static_cast<std::size_t>(j)];
            c.x = step.prox(j, c.x - tau_ * (c.u + s * a));
            c.u += r * a;
            c.time = t_;
        }
        if (column_ == 0) return;
        Coordinate &c = w_.back();
        c.x = intercept_.prox(c.x - tau_ * (c.u + s * column_), tau_);
        c.u += r * column_;
        c.time = t_;
    }

    /// x as the problem has it: every coordinate up to date, the intercept in its own unit.
    void take(std::vector<double> &x) {
        std::visit(
            [&](const auto &step) {
                for (std::int64_t j = 0; j < d_; ++j) catch_up(step, j, w_[static_cast<std::size_t>(j)]);
            },
            step_);
        if (column_ != 0) catch_up_intercept();
        x.resize(w_.size());
        for (std::size_t j = 0; j < x.size(); ++j) x[j] = w_[j].x;
        if (column_ != 0) x.back() *= column_;
    }

    /// Replaces u, which is given as Problem::combine gives it; take() must have been called since the last step.
    void set_u(const std::vector<double> &u) noexcept {
        for (std::size_t j = 0; j < w_.size(); ++j) w_[j].u = u[j];
        if (column_ != 0) w_.back().u *= column_;
    }

  private:
    struct Coordinate {
        double x = 0, u = 0;
        std::int64_t time = 0; // x is that of this step
    };

    template <class Step> void catch_up(const Step &step, std::int64_t j, Coordinate &c) const noexcept {
        if (c.time == t_) return;
        c.x = step.advance(j, c.x, c.u, t_ - c.time);
        c.time = t_;
    }
    void catch_up_intercept() noexcept { // it is in every row, so it is at most one step behind
        Coordinate &c = w_.back();
        if (c.time == t_) return;
        c.x = intercept_.prox(c.x - tau_ * c.u, tau_);
        c.time = t_;
    }

    double tau_, column_;
    std::int64_t d_;
    AnyStep step_;
    AnyRegularizer intercept_;
    std::vector<Coordinate, HugePageAllocator<Coordinate>> w_; // the features, then the intercept
    std::int64_t t_ = 0;
};

} // namespace spdc
