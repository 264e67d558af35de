// What the batch methods share: products with the whole matrix that count their passes, and sums over all rows.
#pragma once

#include "parallel.h"
#include "spdc/problem.h"

#include <span>
#include <string_view>
#include <vector>

namespace spdc {

/// Refuses losses with kinks, in the name of a solver that needs phi'.
void check_smooth(const Problem &problem, std::string_view solver);

/// f(x) = (1/W) sum_i w_i phi(a_i'x, b_i) and its derivatives, on a team of threads; the bits do not depend on their number.
class BatchLoss {
  public:
    BatchLoss(const Problem &problem, const Crew &crew) : problem_(problem), team_(crew) {}

    /// z = A x. Half a pass.
    void predict(std::span<const double> x, std::span<double> z);
    /// u = (1/W) sum_i w_i y_i a_i. Half a pass.
    void combine(std::span<const double> y, std::span<double> u);
    /// y_i = phi'(z_i, b_i)
    void slopes(std::span<const double> z, std::span<double> y);
    /// y_i = argmax_b b z_i - phi_i*(b) - (b - y_i)^2/(2 sigma)
    void dual_prox(std::span<const double> z, double sigma, std::span<double> y);
    /// f at z + step move minus its linear model at z, where its slopes are y: never negative, and without cancellation.
    double rise(std::span<const double> z, std::span<const double> y, std::span<const double> move, double step);
    /// The derivative of f at z + step move along the move.
    double slope(std::span<const double> z, std::span<const double> move, double step);
    /// (1/W) sum_i w_i z_i^2
    double mean_square(std::span<const double> z);
    /// The largest eigenvalue of (1/W) sum_i w_i a_i a_i' over all directions is at least this along v, which must not be 0.
    double square_along(std::span<const double> v);

    double passes() const noexcept { return passes_; }
    int threads() const noexcept { return team_.size(); }

  private:
    template <class Term> double mean(Term term);
    template <class Body> void for_rows(Body body);

    const Problem &problem_;
    Team team_;
    double passes_ = 0;
};

/// x_j = prox of g_j at v_j with step tau.
void prox_all(const Problem &problem, std::span<const double> v, double tau, std::span<double> x);

double dot(std::span<const double> a, std::span<const double> b);

} // namespace spdc
