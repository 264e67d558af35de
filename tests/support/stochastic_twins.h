// Slow and obvious twins of the stochastic methods: dense, every coordinate every time, sums from scratch, from the papers'
// own forms.
#pragma once

#include "solvers/stochastic.h"
#include "support/oracles.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace spdc::tests {

using Vector = std::vector<double>;
using Order = std::vector<std::int64_t>;

/// The letters of the papers for a problem whose intercept, if any, is a column of its own.
struct Letters {
    double n, R2 = 0, gamma, lambda = infinity;

    explicit Letters(const DenseProblem &p) : n(static_cast<double>(p.n())), gamma(p.loss.gamma()) {
        for (std::size_t i = 0; i < p.n(); ++i) {
            R2 = std::max(R2, p.omega[i] * static_cast<double>(dot(p.a[i], p.a[i])));
        }
        for (const AnyRegularizer &g : p.g) lambda = std::min(lambda, g.strong_convexity());
    }
};

inline double slope(const DenseProblem &p, std::size_t k, const Vector &x) {
    return p.loss.derivative(static_cast<double>(dot(p.a[k], x)), p.b[k]);
}

/// x <- prox_{tau g}( x - tau (u + s a_k) )
inline void proximal_step(const DenseProblem &p, std::size_t k, double tau, const Vector &u, double s, Vector &x) {
    for (std::size_t j = 0; j < p.d(); ++j) x[j] = p.g[j].prox(x[j] - tau * (u[j] + s * p.a[k][j]), tau);
}

/// SAGA for weight 1, SAG for weight 1/n.
inline Vector gradient_table(const DenseProblem &p, const Order &order, double tau, double weight, Vector x) {
    Vector y(p.n(), 0.0);
    for (const std::int64_t row : order) {
        const auto k = static_cast<std::size_t>(row);
        const Vector u = combine(p, y);
        const double next = slope(p, k, x);
        proximal_step(p, k, tau, u, weight * p.omega[k] * (next - y[k]), x);
        y[k] = next;
    }
    return x;
}

/// A snapshot before every 2n steps.
inline Vector svrg(const DenseProblem &p, const Order &order, double tau, Vector x) {
    Vector y(p.n()), u;
    for (std::size_t t = 0; t < order.size(); ++t) {
        if (t % (2 * p.n()) == 0) {
            for (std::size_t i = 0; i < p.n(); ++i) y[i] = slope(p, i, x);
            u = combine(p, y);
        }
        const auto k = static_cast<std::size_t>(order[t]);
        proximal_step(p, k, tau, u, p.omega[k] * (slope(p, k, x) - y[k]), x);
    }
    return x;
}

struct Pair {
    Vector x, y;
};

/// x_j = argmin g_j(x) + (kappa/2)(x - c_j)^2 + u_j x, by the proximal map where there is a kappa.
inline Vector primal_of(const DenseProblem &p, const Vector &y, double kappa, const Vector &c) {
    const Vector u = combine(p, y);
    Vector x;
    for (std::size_t j = 0; j < p.d(); ++j) {
        x.push_back(kappa > 0 ? p.g[j].prox(c[j] - u[j] / kappa, 1 / kappa) : p.g[j].maximizer(-u[j]));
    }
    return x;
}

/// A step of proximal SDCA; returns the row's Fenchel-Young term before it.
inline double sdca_step(const DenseProblem &p, std::size_t k, double kappa, const Vector &c, Vector &y) {
    const Letters l(p);
    const Vector x = primal_of(p, y, kappa, c);
    const auto z = static_cast<double>(dot(p.a[k], x));
    const double before = y[k], norm2 = p.omega[k] * static_cast<double>(dot(p.a[k], p.a[k]));
    y[k] = p.loss.dual_prox(z, before, (l.lambda + kappa) * l.n / norm2, p.b[k]);
    return p.omega[k] * (p.loss.value(z, p.b[k]) + p.loss.conjugate(before, p.b[k]) - before * z);
}

inline Pair sdca(const DenseProblem &p, const Order &order) {
    Vector y(p.n(), 0.0);
    for (const std::int64_t k : order) sdca_step(p, static_cast<std::size_t>(k), 0, {}, y);
    return {primal_of(p, y, 0, {}), y};
}

/// Accelerated proximal SDCA; the inner gap is the mean over a pass. `outer` counts the outer iterations.
inline Pair asdca(const DenseProblem &p, const Order &order, int &outer) {
    const Letters l(p);
    const double kappa = l.R2 / (l.gamma * l.n) - l.lambda, mu = l.lambda / 2, rho = mu + kappa;
    const double eta = std::sqrt(mu / rho), beta = (1 - eta) / (1 + eta);
    Vector y(p.n(), 0.0), x(p.d(), 0.0), c = x;
    double xi = (1 + 1 / (eta * eta)) * static_cast<double>(primal(p, x) - dual(p, y)), gaps = 0;
    outer = 0;
    for (std::size_t t = 0; t < order.size(); ++t) {
        gaps += sdca_step(p, static_cast<std::size_t>(order[t]), kappa, c, y) / l.n;
        if ((t + 1) % p.n() != 0) continue;
        if (gaps <= eta / (2 * (1 + 1 / (eta * eta))) * xi) {
            const Vector next = primal_of(p, y, kappa, c);
            for (std::size_t j = 0; j < p.d(); ++j) c[j] = next[j] + beta * (next[j] - x[j]);
            x = next;
            xi *= 1 - eta / 2;
            ++outer;
        }
        gaps = 0;
    }
    return {primal_of(p, y, kappa, c), y};
}

/// Algorithm 2 of Lin, Lu and Xiao on the dual, three sequences of full length; the scalar problem is solved by search.
inline Pair apcg(const DenseProblem &p, const Order &order) {
    const Letters l(p);
    const double mu = l.lambda * l.gamma * l.n / (l.R2 + l.lambda * l.gamma * l.n), alpha = std::sqrt(mu) / l.n;
    Vector x(p.n(), 0.0), z = x;
    for (const std::int64_t row : order) {
        const auto k = static_cast<std::size_t>(row);
        Vector y, z_next;
        for (std::size_t i = 0; i < p.n(); ++i) {
            y.push_back((x[i] + alpha * z[i]) / (1 + alpha));
            z_next.push_back((1 - alpha) * z[i] + alpha * y[i]);
        }
        const Vector w = primal_of(p, y, 0, {});
        const double weight = p.omega[k] / l.n; // of phi* in the dual
        const double gradient = weight * (l.gamma * y[k] - static_cast<double>(dot(p.a[k], w)));
        const double lipschitz = weight * (l.R2 / (l.lambda * l.n) + l.gamma), centre = z_next[k];
        const auto gain = [&](double b) {
            const double smooth = p.loss.conjugate(b, p.b[k]) - l.gamma / 2 * b * b;
            return -(weight * smooth + gradient * b + l.n * alpha * lipschitz / 2 * (b - centre) * (b - centre));
        };
        z_next[k] = scalar_search(gain, p.loss.domain(p.b[k]), centre);
        for (std::size_t i = 0; i < p.n(); ++i) {
            x[i] = y[i] + l.n * alpha * (z_next[i] - z[i]) + l.n * alpha * alpha * (z[i] - y[i]);
        }
        z = z_next;
    }
    return {primal_of(p, x, 0, {}), x};
}

/// Accelerated mini-batch SDCA.
inline Pair asdca_minibatch(const DenseProblem &p, const Batches &batches) {
    const Letters l(p);
    const double s = l.lambda * l.gamma * l.n / l.R2, m = static_cast<double>(batches.front().size());
    const double theta = std::min({1.0, std::sqrt(s / m), s, std::pow(s, 2.0 / 3) / std::pow(m, 1.0 / 3)}) / 4;
    Vector x(p.d(), 0.0), y(p.n(), 0.0);
    const auto towards = [&](const Vector &w) {
        Vector next;
        for (std::size_t j = 0; j < p.d(); ++j) next.push_back((1 - theta) * x[j] + theta * w[j]);
        return next;
    };
    for (const auto &batch : batches) {
        const Vector z = towards(primal_of(p, y, 0, {}));
        for (const std::int64_t row : batch) {
            const auto k = static_cast<std::size_t>(row);
            y[k] = (1 - theta) * y[k] + theta * slope(p, k, z);
        }
        x = towards(primal_of(p, y, 0, {}));
    }
    return {x, y};
}

/// RPDG: the gradient of row k is taken at a running average of the points that it has seen.
inline Pair rpdg(const DenseProblem &p, const Order &order, const Steps &steps) {
    const Letters l(p);
    const double memory = 1 / (steps.sigma * l.gamma);
    Vector x(p.d(), 0.0), previous = x, y(p.n());
    std::vector<Vector> seen(p.n(), x);
    for (std::size_t i = 0; i < p.n(); ++i) y[i] = slope(p, i, x);
    for (const std::int64_t row : order) {
        const auto k = static_cast<std::size_t>(row);
        for (std::size_t j = 0; j < p.d(); ++j) {
            const double ahead = x[j] + steps.theta * (x[j] - previous[j]);
            seen[k][j] = (ahead + memory * seen[k][j]) / (1 + memory);
        }
        const Vector u = combine(p, y);
        const double next = slope(p, k, seen[k]);
        previous = x;
        proximal_step(p, k, steps.tau, u, p.omega[k] * (next - y[k]), x);
        y[k] = next;
    }
    return {x, y};
}

/// Suzuki's algorithm 1 with B = I for an l2 penalty, v and the constraint's residual kept as vectors; point: argmin of the next v's step.
inline Pair sdca_admm(const DenseProblem &p, const Batches &blocks, std::size_t K, double rho, const Vector &D) {
    const Letters l(p);
    Vector x(p.d(), 0.0), y(p.n(), 0.0), v = x, r_old = x;
    const auto next_v = [&](const Vector &u) { // v/lambda - x + rho (u + v) = 0
        for (std::size_t j = 0; j < p.d(); ++j) v[j] = (x[j] - rho * u[j]) / (1 / l.lambda + rho);
    };
    for (const auto &block : blocks) {
        const Vector u = combine(p, y);
        next_v(u);
        Vector ahead;
        for (std::size_t j = 0; j < p.d(); ++j) ahead.push_back(x[j] - rho * (u[j] + v[j]));
        for (const std::int64_t row : block) {
            const auto k = static_cast<std::size_t>(row);
            y[k] = p.loss.dual_prox(static_cast<double>(dot(p.a[k], ahead)), y[k], l.n / (rho * D[k]), p.b[k]);
        }
        const Vector after = combine(p, y);
        for (std::size_t j = 0; j < p.d(); ++j) {
            const double r = after[j] + v[j];
            x[j] -= rho * (r - (1 - 1 / static_cast<double>(K)) * r_old[j]);
            r_old[j] = r;
        }
    }
    next_v(combine(p, y));
    for (double &value : v) value /= l.lambda; // x = grad g*(v)
    return {v, y};
}

} // namespace spdc::tests
