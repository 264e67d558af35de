#include "batch.h"

#include "newton_cg.h"
#include "products.h"
#include "sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

void check_smooth(const Problem &problem, std::string_view solver) {
    if (is_smooth(problem.loss())) return;
    fail(
        ErrorKind::unsupported,
        fmt::format("solver {} needs a loss without kinks, and {} has one; the solvers chambolle_pock and spdc take it",
                    solver, problem.loss().name()));
}

/// (1/W) sum_i w_i term(i)
template <class Term> double BatchLoss::mean(Term term) {
    const auto n = at(problem_.rows());
    const Sum sum = sum_chunks<Sum>(team_, n, 4.0 * static_cast<double>(n), [&](auto begin, auto end, Sum &part) {
        for (std::size_t i = begin; i < end; ++i) part.add(problem_.importance(static_cast<std::int64_t>(i)) * term(i));
    });
    return sum.value() / static_cast<double>(n);
}

void BatchLoss::predict(std::span<const double> x, std::span<double> z) {
    spdc::predict(problem_, x, z, team_);
    passes_ += 0.5;
}

void BatchLoss::combine(std::span<const double> y, std::span<double> u) {
    spdc::combine(problem_, y, u, team_);
    passes_ += 0.5;
}

template <class Body> void BatchLoss::for_rows(Body body) {
    constexpr std::int64_t chunk = 4096;
    const std::int64_t n = problem_.rows();
    team_.for_each((n + chunk - 1) / chunk, 4.0 * static_cast<double>(n), [&](std::int64_t k) {
        for (std::int64_t i = k * chunk; i < std::min(n, (k + 1) * chunk); ++i) body(at(i));
    });
}

void BatchLoss::slopes(std::span<const double> z, std::span<double> y) {
    for_rows([&](std::size_t i) { y[i] = problem_.loss().derivative(z[i], problem_.targets()[i]); });
}

void BatchLoss::dual_prox(std::span<const double> z, double sigma, std::span<double> y) {
    for_rows([&](std::size_t i) { y[i] = problem_.loss().dual_prox(z[i], y[i], sigma, problem_.targets()[i]); });
}

double BatchLoss::rise(std::span<const double> z, std::span<const double> y, std::span<const double> move,
                       double step) {
    const AnyLoss &loss = problem_.loss();
    return mean([&](std::size_t i) {
        const double b = problem_.targets()[i], by = step * move[i];
        const double next = z[i] + by;
        const double turn = (loss.derivative(next, b) - y[i]) * by; // the rise is between 0 and this
        const double value = loss.value(z[i], b);
        const double direct = loss.value(next, b) - value - y[i] * by;
        // where rounding would be most of the difference, the slope's change over a short way is even
        return turn <= 1e-8 * (std::fabs(value) + std::fabs(y[i] * by)) ? 0.5 * turn : std::clamp(direct, 0.0, turn);
    });
}

double BatchLoss::slope(std::span<const double> z, std::span<const double> move, double step) {
    return mean([&](std::size_t i) {
        return problem_.loss().derivative(z[i] + step * move[i], problem_.targets()[i]) * move[i];
    });
}

double BatchLoss::mean_square(std::span<const double> z) {
    return mean([&](std::size_t i) { return z[i] * z[i]; });
}

double BatchLoss::square_along(std::span<const double> v) {
    std::vector<double> z(at(problem_.rows()));
    predict(v, z);
    return mean_square(z) / dot(v, v);
}

void prox_all(const Problem &problem, std::span<const double> v, double tau, std::span<double> x) {
    const std::span<const double> factors = problem.penalty_factors();
    std::visit(
        [&](const auto &g) {
            for (std::size_t j = 0; j < at(problem.features()); ++j) {
                x[j] = factors.empty() ? g.prox(v[j], tau) : g.scaled(factors[j]).prox(v[j], tau);
            }
        },
        problem.regularizer().variant());
    if (problem.has_intercept()) x.back() = problem.regularizer(problem.features()).prox(v.back(), tau);
}

double dot(std::span<const double> a, std::span<const double> b) {
    double even = 0, odd = 0;
    std::size_t j = 0;
    for (; j + 1 < a.size(); j += 2) {
        even += a[j] * b[j];
        odd += a[j + 1] * b[j + 1];
    }
    if (j < a.size()) even += a[j] * b[j];
    return even + odd;
}

} // namespace spdc
