// What the stochastic methods share: the constants of the problem, the rows in random order, what a method may refuse.
#pragma once

#include "method.h"
#include "parallel.h"
#include "spdc/problem.h"
#include "spdc_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

namespace spdc {

/// The problem as (1/n) sum_i omega_i phi(a_i'x) + g(x), where an intercept is one more coordinate whose column is a constant.
/// In the letters of the papers this is a sum over rows sqrt(omega_i) a_i with dual variables sqrt(omega_i) y_i.
struct Constants {
    explicit Constants(const Problem &problem);

    std::int64_t n, d;
    double rows;               // n as a number
    double column = 0;         // of the intercept: 1, the median row's norm where it is free, 0 without intercept
    double start = 0;          // of a free intercept, in units of its column: the best constant model
    std::vector<double> norm2; // omega_i (|a_i|^2 + column^2)
    double R2 = 0;             // the largest of them; 1 where no row has an entry
    double gamma, lambda;      // phi is 1/gamma-smooth, g is lambda-strongly convex where it is at all
};

/// Refuses losses and penalties that a method cannot take, and says what can.
void need_smooth_loss(const Problem &problem, std::string_view solver);
void need_strong_convexity(const Problem &problem, std::string_view solver);

/// y_i = phi'(a_i'x): the dual point of a method that has none.
void implied_dual(const Problem &problem, std::span<const double> x, std::vector<double> &y);

/// Rows one at a time, drawn a few ahead, so that memory is on its way.
class RowStream {
  public:
    RowStream(Sampling sampling, std::int64_t n, std::uint64_t seed) : sampler_(sampling, n, 1, seed, {}, 0.5) {
        for (std::int64_t &k : upcoming_) sampler_.draw({&k, 1});
    }
    template <class Matrix> std::int64_t next(const Matrix &matrix) {
        const std::int64_t k = upcoming_[at_];
        sampler_.draw({&upcoming_[at_], 1});
        const auto row = matrix.row(upcoming_[at_]);
        constexpr std::int64_t entries = 16; // of 4 bytes in a cache line
        for (std::int64_t p = 0; p < row.size(); p += entries) row.prefetch(p);
        interruption_point(row.size() + entries);
        at_ = (at_ + 1) % upcoming_.size();
        return k;
    }

  private:
    Sampler sampler_;
    std::array<std::int64_t, 4> upcoming_{};
    std::size_t at_ = 0;
};

/// A method that visits rows; the driver's units are passes over all of them.
class StochasticMethod : public Method {
  public:
    explicit StochasticMethod(const Problem &problem) : problem_(problem), constants_(problem) {}
    double passes() const final { return static_cast<double>(visits_) / constants_.rows; }
    std::int64_t coordinates_touched() const final { return touched_; }

  protected:
    /// Rows to visit in so many passes, at least one.
    std::int64_t rows_in(double passes) const {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(passes * constants_.rows - 1e-9)));
    }
    double target(std::int64_t k) const noexcept { return problem_.targets()[static_cast<std::size_t>(k)]; }

    const Problem &problem_;
    const Constants constants_;
    std::int64_t visits_ = 0, touched_ = 0;
};

} // namespace spdc
