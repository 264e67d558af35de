// Slow and obvious twins of the fast paths: plain loops over a dense copy of the data, written from the paper.
#pragma once

#include "free_coordinates.h"
#include "spdc/problem.h"
#include "support/problems.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace spdc::tests {

/// The best of `count` golden-section steps for the largest value of a concave f on [lower, upper].
inline double golden_section(const std::function<double(double)> &f, double lower, double upper, int count = 160) {
    const double ratio = 0.6180339887498949;
    double left = upper - ratio * (upper - lower), right = lower + ratio * (upper - lower);
    double f_left = f(left), f_right = f(right);
    for (int k = 0; k < count; ++k) {
        if (f_left < f_right) {
            lower = left, left = right, f_left = f_right;
            f_right = f(right = lower + ratio * (upper - lower));
        } else {
            upper = right, right = left, f_right = f_left;
            f_left = f(left = upper - ratio * (upper - lower));
        }
    }
    double best = 0.5 * (lower + upper);
    for (const double x : {lower, upper, left, right}) best = f(x) > f(best) ? x : best;
    return best;
}

/// Maximises a concave f over `domain`: doubles a bracket around `start` until f falls on both sides, then golden section.
inline double scalar_search(const std::function<double(double)> &f, Interval domain, double start) {
    double lower = start, upper = start;
    for (double width = 1e-3; width < 1e25 && lower > domain.lower; width *= 2) {
        const double next = domain.clip(start - width);
        const bool falls = f(next) < f(lower);
        lower = next;
        if (falls) break;
    }
    for (double width = 1e-3; width < 1e25 && upper < domain.upper; width *= 2) {
        const double next = domain.clip(start + width);
        const bool falls = f(next) < f(upper);
        upper = next;
        if (falls) break;
    }
    const double inside = golden_section(f, lower, upper);
    double best = start;
    for (const double x : {lower, upper, inside}) best = f(x) > f(best) ? x : best;
    return best;
}

struct DenseProblem {
    Rows a;
    std::vector<double> b;
    std::vector<double> omega; // Problem::importance
    AnyLoss loss;
    std::vector<AnyRegularizer> g; // one per coordinate

    std::size_t n() const { return a.size(); }
    std::size_t d() const { return g.size(); }
};

inline Rows dense_rows(const AnyMatrix &matrix) {
    Rows dense(static_cast<std::size_t>(rows(matrix)),
               std::vector<double>(static_cast<std::size_t>(cols(matrix)), 0.0));
    std::visit(
        [&](const auto &m) {
            for (std::size_t i = 0; i < dense.size(); ++i) {
                const auto row = m.row(static_cast<std::int64_t>(i));
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    dense[i][static_cast<std::size_t>(row.column(p))] = row.value(p);
                }
            }
        },
        matrix);
    return dense;
}

/// `intercept_size`: the constant in the intercept's column. Other than 1 it changes the unit of a free intercept: the last
/// x is the intercept divided by it.
inline DenseProblem dense_copy(const Problem &problem, double intercept_size = 1) {
    DenseProblem dense{dense_rows(problem.matrix()), {}, {}, problem.loss(), {}};
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        dense.b.push_back(problem.targets()[static_cast<std::size_t>(i)]);
        dense.omega.push_back(problem.importance(i));
    }
    for (std::int64_t j = 0; j < problem.dimension(); ++j) dense.g.push_back(problem.regularizer(j));
    if (problem.has_intercept()) {
        for (auto &row : dense.a) row.push_back(intercept_size);
    }
    return dense;
}

inline long double dot(const std::vector<double> &a, const std::vector<double> &x) {
    long double sum = 0;
    for (std::size_t j = 0; j < a.size(); ++j) sum += static_cast<long double>(a[j]) * x[j];
    return sum;
}

/// u = (1/n) sum_i omega_i y_i a_i
inline std::vector<double> combine(const DenseProblem &p, const std::vector<double> &y) {
    std::vector<double> u;
    for (std::size_t j = 0; j < p.d(); ++j) {
        long double sum = 0;
        for (std::size_t i = 0; i < p.n(); ++i) sum += static_cast<long double>(p.omega[i]) * y[i] * p.a[i][j];
        u.push_back(static_cast<double>(sum / static_cast<long double>(p.n())));
    }
    return u;
}

inline long double primal(const DenseProblem &p, const std::vector<double> &x) {
    long double losses = 0, penalty = 0;
    for (std::size_t i = 0; i < p.n(); ++i) {
        losses += static_cast<long double>(p.omega[i]) * p.loss.value(static_cast<double>(dot(p.a[i], x)), p.b[i]);
    }
    for (std::size_t j = 0; j < p.d(); ++j) penalty += p.g[j].value(x[j]);
    return losses / static_cast<long double>(p.n()) + penalty;
}

inline long double dual(const DenseProblem &p, const std::vector<double> &y) {
    const std::vector<double> u = combine(p, y);
    long double losses = 0, penalty = 0;
    for (std::size_t i = 0; i < p.n(); ++i) {
        losses += static_cast<long double>(p.omega[i]) * p.loss.conjugate(y[i], p.b[i]);
    }
    for (std::size_t j = 0; j < p.d(); ++j) penalty += p.g[j].conjugate(-u[j]);
    return -losses / static_cast<long double>(p.n()) - penalty;
}

struct Steps {
    double tau, sigma, theta;
    double delta_x = 0; // section 3: g + (delta_x/2) x^2
    double delta_y = 0; // section 3: phi* + (delta_y/2) y^2
};

struct Iterates {
    std::vector<double> x, y, u;
};

using Batches = std::vector<std::vector<std::int64_t>>;

namespace detail {

/// argmax_beta  beta z - phi*(beta) - (delta/2) beta^2 - (beta - y)^2/(2 sigma): the two squares make one.
inline double dual_step(const DenseProblem &p, std::size_t i, double z, double y, double sigma, double delta) {
    const double shrink = 1 + sigma * delta;
    return p.loss.dual_prox(z, y / shrink, sigma / shrink, p.b[i]);
}

/// argmin_x  g_j(x) + (delta/2) x^2 + (x - v)^2/(2 tau)
inline double primal_step(const DenseProblem &p, std::size_t j, double v, double tau, double delta) {
    const double shrink = 1 + tau * delta;
    return p.g[j].prox(v / shrink, tau / shrink);
}

/// One iteration for all three algorithms: rows K, each with its dual step sigma_k, and the factor by which the change of u
/// made by row k enters the step in x (n, n/m or 1/p_k).
///
/// A row of importance omega stands for the row sqrt(omega) a with the dual variable sqrt(omega) y. In y itself that is the
/// same dual step, and omega times the increment.
struct Update {
    std::size_t k;
    double sigma;
    double factor;
};

inline void iterate(const DenseProblem &p, const std::vector<Update> &updates, const Steps &steps,
                    std::vector<double> &xbar, Iterates &at) {
    const auto n = static_cast<double>(p.n());
    std::vector<double> u_next = at.u, direction = at.u;
    std::vector<double> y_next = at.y;
    for (const auto &[k, sigma, factor] : updates) {
        const auto z = static_cast<double>(dot(p.a[k], xbar));
        y_next[k] = dual_step(p, k, z, at.y[k], sigma, steps.delta_y);
        const double increment = p.omega[k] * (y_next[k] - at.y[k]) / n;
        for (std::size_t j = 0; j < p.d(); ++j) {
            u_next[j] += increment * p.a[k][j];
            direction[j] += factor * increment * p.a[k][j];
        }
    }
    for (std::size_t j = 0; j < p.d(); ++j) {
        const double x_next = primal_step(p, j, at.x[j] - steps.tau * direction[j], steps.tau, steps.delta_x);
        xbar[j] = x_next + steps.theta * (x_next - at.x[j]);
        at.x[j] = x_next;
    }
    at.y = y_next;
    at.u = u_next;
}

inline Iterates start_at(const DenseProblem &p, Iterates start) {
    if (start.x.empty()) start.x.assign(p.d(), 0.0);
    if (start.y.empty()) start.y.assign(p.n(), 0.0);
    start.u = combine(p, start.y);
    return start;
}

} // namespace detail

/// Algorithm 1: one row k per iteration. From x = 0, y = 0 unless `start` says otherwise.
inline Iterates algorithm1(const DenseProblem &p, const std::vector<std::int64_t> &order, const Steps &steps,
                           Iterates start = {}) {
    Iterates at = detail::start_at(p, std::move(start));
    std::vector<double> xbar = at.x;
    for (const std::int64_t k : order) {
        detail::iterate(p, {{static_cast<std::size_t>(k), steps.sigma, static_cast<double>(p.n())}}, steps, xbar, at);
    }
    return at;
}

/// Algorithm 2: the rows of a batch all from the same xbar; x moves along u + (n/m)(u_next - u).
inline Iterates algorithm2(const DenseProblem &p, const Batches &batches, const Steps &steps, Iterates start = {}) {
    Iterates at = detail::start_at(p, std::move(start));
    std::vector<double> xbar = at.x;
    for (const auto &batch : batches) {
        std::vector<detail::Update> updates;
        for (const std::int64_t k : batch) {
            updates.push_back({static_cast<std::size_t>(k), steps.sigma,
                               static_cast<double>(p.n()) / static_cast<double>(batch.size())});
        }
        detail::iterate(p, updates, steps, xbar, at);
    }
    return at;
}

/// Algorithm 3: row k was drawn with probability p_k; dual step sigma/(p_k n), x moves along u + (u_next - u)/p_k.
inline Iterates algorithm3(const DenseProblem &p, const std::vector<std::int64_t> &order,
                           const std::vector<double> &probability, const Steps &steps, Iterates start = {}) {
    Iterates at = detail::start_at(p, std::move(start));
    std::vector<double> xbar = at.x;
    for (const std::int64_t row : order) {
        const auto k = static_cast<std::size_t>(row);
        const double sigma = steps.sigma / (probability[k] * static_cast<double>(p.n()));
        detail::iterate(p, {{k, sigma, 1 / probability[k]}}, steps, xbar, at);
    }
    return at;
}

/// Mini-batches with weighted sampling, which the paper leaves out: row k is in a batch with probability q_k, the q_k add
/// up to m; dual step sigma m/(q_k n), x moves along u + sum over the batch of its change of u divided by q_k.
inline Iterates algorithm2_weighted(const DenseProblem &p, const Batches &batches, const std::vector<double> &q,
                                    const Steps &steps, Iterates start = {}) {
    Iterates at = detail::start_at(p, std::move(start));
    std::vector<double> xbar = at.x;
    for (const auto &batch : batches) {
        std::vector<detail::Update> updates;
        for (const std::int64_t row : batch) {
            const auto k = static_cast<std::size_t>(row);
            const double share = static_cast<double>(batch.size()) / (q[k] * static_cast<double>(p.n()));
            updates.push_back({k, steps.sigma * share, 1 / q[k]});
        }
        detail::iterate(p, updates, steps, xbar, at);
    }
    return at;
}

/// A nearly optimal pair of a tiny problem: Algorithm 2 with m = n, which is Chambolle and Pock's method and stable for
/// tau sigma |A|^2/n <= 1; the Frobenius norm stands for |A|.
inline Iterates slow_optimum(const DenseProblem &p, int iterations = 20000) {
    long double norm = 0;
    for (std::size_t i = 0; i < p.n(); ++i) norm += p.omega[i] * dot(p.a[i], p.a[i]);
    const auto length = static_cast<double>(std::sqrt(norm / static_cast<long double>(p.n())));
    double lambda = infinity;
    for (const AnyRegularizer &g : p.g) lambda = std::min(lambda, g.strong_convexity());
    const double gamma = p.loss.gamma();
    const double balance = lambda > 0 && gamma > 0 ? std::sqrt(gamma / lambda) : 1;
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < p.n(); ++i) all.push_back(static_cast<std::int64_t>(i));
    return algorithm2(p, Batches(static_cast<std::size_t>(iterations), all),
                      {.tau = balance / length, .sigma = 1 / (balance * length), .theta = 1});
}

namespace detail {

using Square = std::vector<std::vector<double>>;

inline Square zeros(std::size_t size) { return Square(size, std::vector<double>(size, 0.0)); }

inline Square product(const Square &a, const Square &b) {
    Square c = zeros(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t k = 0; k < a.size(); ++k) {
            if (a[i][k] == 0) continue;
            for (std::size_t j = 0; j < a.size(); ++j) c[i][j] += a[i][k] * b[k][j];
        }
    }
    return c;
}

/// The matrix that takes (x, previous x, y) one iteration on when Algorithm 1 picks row k: phi = (gamma/2) of the squared
/// loss's conjugate, targets 0, g = (lambda/2) x^2.
inline Square iteration_matrix(const Rows &a, std::size_t k, double lambda, double gamma, const Steps &steps) {
    const std::size_t n = a.size(), d = a.front().size(), size = 2 * d + n;
    const double shrink = 1 + steps.sigma * gamma;
    std::vector<double> y_next(size, 0.0);
    y_next[2 * d + k] = 1 / shrink;
    for (std::size_t j = 0; j < d; ++j) {
        y_next[j] = steps.sigma * (1 + steps.theta) * a[k][j] / shrink;
        y_next[d + j] = -steps.sigma * steps.theta * a[k][j] / shrink;
    }
    std::vector<double> increment = y_next;
    increment[2 * d + k] -= 1;
    Square next = zeros(size);
    for (std::size_t j = 0; j < d; ++j) {
        next[j][j] = 1;
        for (std::size_t i = 0; i < n; ++i) next[j][2 * d + i] -= steps.tau * a[i][j] / static_cast<double>(n);
        for (std::size_t c = 0; c < size; ++c) next[j][c] -= steps.tau * a[k][j] * increment[c];
        for (std::size_t c = 0; c < size; ++c) next[j][c] /= 1 + lambda * steps.tau;
        next[d + j][j] = 1;
    }
    for (std::size_t i = 0; i < n; ++i) next[2 * d + i][2 * d + i] = 1;
    next[2 * d + k] = y_next;
    return next;
}

/// S -> E[M S M'] as a matrix on symmetric S, stored as their upper triangles. Its spectral radius is that of E[M (x) M],
/// because the map keeps the cone of positive semidefinite S.
inline Square second_moment_matrix(const std::vector<Square> &moves) {
    const std::size_t size = moves.front().size();
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t p = 0; p < size; ++p) {
        for (std::size_t q = p; q < size; ++q) pairs.push_back({p, q});
    }
    Square moment = zeros(pairs.size());
    for (const Square &m : moves) {
        for (std::size_t r = 0; r < pairs.size(); ++r) {
            const auto [i, j] = pairs[r];
            for (std::size_t c = 0; c < pairs.size(); ++c) {
                const auto [p, q] = pairs[c];
                const double twin = p == q ? 0 : m[i][q] * m[j][p];
                moment[r][c] += (m[i][p] * m[j][q] + twin) / static_cast<double>(moves.size());
            }
        }
    }
    return moment;
}

/// |T^(2^k)|^(1/2^k) for k = 40, scaled on the way: whatever constants stand before the norm have vanished by then.
inline double spectral_radius(Square t) {
    double log_scale = 0, power = 1;
    for (int k = 0; k < 40; ++k) {
        double largest = 0;
        for (const auto &row : t) {
            for (const double v : row) largest = std::max(largest, std::fabs(v));
        }
        if (largest == 0) return 0;
        for (auto &row : t) {
            for (double &v : row) v /= largest;
        }
        log_scale += std::log(largest) / power;
        t = product(t, t);
        power *= 2;
    }
    return std::exp(log_scale);
}

} // namespace detail

/// The factor by which the mean square of Algorithm 1's distance to the optimum changes in one iteration, in the long run:
/// the spectral radius of E[M (x) M]. Quadratic loss with phi* = (gamma/2) y^2, g = (lambda/2) x^2, uniform sampling.
inline double second_moment_rate(const Rows &a, double lambda, double gamma, double tau, double sigma, double theta) {
    std::vector<detail::Square> moves;
    for (std::size_t k = 0; k < a.size(); ++k) {
        moves.push_back(detail::iteration_matrix(a, k, lambda, gamma, {.tau = tau, .sigma = sigma, .theta = theta}));
    }
    return detail::spectral_radius(detail::second_moment_matrix(moves));
}

/// spdc_fast as its equations stand: dual-extrapolated SPDC with theta = 1, dense, every coordinate every time, from zero.
struct EagerFast {
    DenseProblem p;
    double tau;
    std::vector<double> lambda, x, y, u;

    EagerFast(DenseProblem problem, double l2, double step)
        : p(std::move(problem)), tau(step), lambda(p.d(), l2), x(p.d()), y(p.n()), u(p.d()) {}
    void visit(std::size_t i) {
        const double n = static_cast<double>(p.n()), s = static_cast<double>(dot(p.a[i], x));
        const double norm2 = p.omega[i] * static_cast<double>(dot(p.a[i], p.a[i]));
        const double next = p.loss.dual_prox(s, y[i], 1 / (tau * norm2), p.b[i]);
        const double move = p.omega[i] * (next - y[i]);
        y[i] = next;
        for (std::size_t j = 0; j < x.size(); ++j) {
            u[j] += move / n * p.a[i][j];
            x[j] = (x[j] - tau * (u[j] + move * p.a[i][j])) / (1 + lambda[j] * tau);
        }
    }
};

/// R of spdc_fast: the median norm of the rows sqrt(omega) a, none of them empty.
inline double median_norm(const Problem &problem) {
    const auto squared = problem.squared_row_norms();
    std::vector<double> norms(squared.begin(), squared.end());
    for (std::size_t i = 0; i < norms.size(); ++i) norms[i] *= problem.importance(static_cast<std::int64_t>(i));
    std::nth_element(norms.begin(), norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2), norms.end());
    return std::sqrt(norms[norms.size() / 2]);
}

/// The method on a dense copy whose intercept has the column that spdc_fast gives it, R/4; SDCA's is 1 where it is penalised.
inline EagerFast eager_fast(const Problem &problem, double lambda, double tau, bool is_sdca) {
    const bool is_free = problem.intercept() == Intercept::free;
    const double column = is_sdca && !is_free ? 1 : median_norm(problem) / 4;
    EagerFast twin(dense_copy(problem, column), lambda, tau);
    if (problem.has_intercept()) {
        twin.lambda.back() = problem.regularizer(problem.features()).strong_convexity() * column * column;
    }
    if (is_free) twin.x.back() = best_constant(problem) / column;
    return twin;
}

/// The weights of such a twin: the last is the intercept.
inline std::vector<double> weights(const EagerFast &twin, const Problem &problem) {
    std::vector<double> x = twin.x;
    if (problem.has_intercept()) x.back() *= twin.p.a[0].back();
    return x;
}

} // namespace spdc::tests
