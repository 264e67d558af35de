// The batch methods, iterate by iterate: Chambolle and Pock's against SPDC with all rows in a batch, the accelerated gradient against
// a dense twin and its rate, L-BFGS against a dense inverse Hessian and the strong Wolfe conditions.
#include "solvers/methods.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace spdc::tests {
namespace {

struct Point {
    std::vector<double> x, y;
};

/// The points of a method after each of so many calls of one step.
std::vector<Point> points_of(const Problem &problem, const AnySolver &solver, int count, double passes = 1e-9) {
    const SolveContext context;
    const std::unique_ptr<Method> method = std::visit(
        [&](const auto &options) -> std::unique_ptr<Method> {
            if constexpr (std::is_same_v<decltype(options), const Auto &>) {
                return nullptr;
            } else {
                return make_method(problem, options, context);
            }
        },
        solver);
    std::vector<Point> points(static_cast<std::size_t>(count));
    for (Point &point : points) {
        method->advance(passes);
        method->point(point.x, point.y);
    }
    return points;
}

Problem tiny_problem(const AnyLoss &loss, const AnyRegularizer &g, bool weighted = false, std::int64_t columns = 6) {
    return {as_dataset(
                tiny_data({.task = loss.task(), .rows = 30, .columns = columns, .density = 0.7, .weighted = weighted})),
            loss, g};
}

std::vector<double> gradient(const DenseProblem &p, const std::vector<double> &x, double l2) {
    std::vector<double> slopes;
    for (std::size_t i = 0; i < p.n(); ++i) {
        slopes.push_back(p.loss.derivative(static_cast<double>(dot(p.a[i], x)), p.b[i]));
    }
    std::vector<double> u = combine(p, slopes);
    for (std::size_t j = 0; j < u.size(); ++j) u[j] += l2 * x[j];
    return u;
}

double inner(const std::vector<double> &a, const std::vector<double> &b) { return static_cast<double>(dot(a, b)); }

void expect_near(const std::vector<double> &a, const std::vector<double> &b, double allowed) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], allowed * (1 + std::fabs(b[j])));
}

TEST(ChambollePock, EqualsSpdcWithAllRowsInABatch) {
    const double tau = 0.7, sigma = 0.4, theta = 0.9;
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{}), AnyLoss(Squared{})}) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{0.1}), AnyRegularizer(ElasticNet{0.02, 0.03})}) {
            for (const bool weighted : {false, true}) {
                const Problem problem = tiny_problem(loss, g, weighted);
                Spdc spdc;
                spdc.batch_size = problem.rows();
                spdc.tau = tau;
                spdc.sigma = sigma;
                spdc.theta = theta;
                spdc.perturbation = 0;
                const auto paper = points_of(problem, spdc, 25, 1);
                const auto batch = points_of(problem, ChambollePock{tau, sigma, theta}, 25, 1);
                for (std::size_t t = 0; t < paper.size(); ++t) {
                    expect_near(batch[t].x, paper[t].x, 1e-12);
                    expect_near(batch[t].y, paper[t].y, 1e-12);
                }
            }
        }
    }
}

TEST(ChambollePock, ConvergesWhereThePowerIterationSettlesTooEarly) {
    // the identity, on which it settles at once, and one row more, which makes the norm larger
    TinyData data;
    for (std::size_t i = 0; i <= 1000; ++i) {
        data.rows.emplace_back(1000, 0.0);
        data.rows.back()[i % 1000] = i == 1000 ? 0.8 : 1.0;
        data.targets.push_back(i % 3 == 0 ? 2 : -1);
    }
    Stopping stopping;
    stopping.tolerance = 1e-8;
    stopping.max_passes = 20000;
    const Result result = solve({as_dataset(data), Squared{}, L2{1e-6}}, ChambollePock{}, stopping);
    EXPECT_EQ(result.stop_reason, StopReason::gap_reached);
    EXPECT_LE(result.trace.front().passes, 60); // the start is certified as soon as the steps are known
}

TEST(ChambollePock, KeepsTheRateOfTable2) {
    const double lambda = 0.01;
    const Problem problem = tiny_problem(Squared{}, L2{lambda});
    const DenseProblem dense = dense_copy(problem);
    double s2 = 0; // a bound of |A|^2/n that is at least the true one
    for (const auto &row : dense.a) s2 += inner(row, row) / static_cast<double>(dense.n());
    const double rate = 1 - 1 / (1 + 1.02 * std::sqrt(s2) / (2 * std::sqrt(lambda)));
    const Result best = solve(problem, Newton{}, {.tolerance = 1e-14});
    const auto points = points_of(problem, ChambollePock{}, 400, 1);
    const auto distance = [&](const Point &point) { // their theorem 3, in this scaling
        double x2 = 0, y2 = 0;
        for (std::size_t j = 0; j < point.x.size(); ++j) x2 += std::pow(point.x[j] - best.weights[j], 2);
        for (std::size_t i = 0; i < point.y.size(); ++i) y2 += std::pow(point.y[i] - best.dual[i], 2);
        return lambda * x2 + y2 / static_cast<double>(dense.n());
    };
    std::size_t start = 0; // while the norm is measured nothing moves
    while (start + 1 < points.size() && points[start + 1].x == points[start].x) ++start;
    const double first = distance(points[start]);
    for (std::size_t t = start; t < points.size(); ++t) {
        const double bound = 3 * first * std::pow(rate, static_cast<double>(t - start));
        EXPECT_LE(distance(points[t]), bound + 1e-20) << t;
    }
}

/// The method as the head of accelerated_gradient.cpp has it, on dense rows; `L` as it was there at first.
std::vector<std::vector<double>> accelerated_twin(const DenseProblem &p, double mu, double L, int count) {
    const std::size_t d = p.d();
    std::vector<double> x(d, 0.0), v(d, 0.0);
    double C = infinity;
    std::vector<std::vector<double>> iterates;
    const auto value = [&](const std::vector<double> &at) {
        long double sum = 0;
        for (std::size_t i = 0; i < p.n(); ++i) {
            sum += p.omega[i] * p.loss.value(static_cast<double>(dot(p.a[i], at)), p.b[i]);
        }
        return sum / static_cast<long double>(p.n());
    };
    while (static_cast<int>(iterates.size()) < count) {
        const double B = C - mu, root = std::sqrt(B * B + 4 * (L + mu) * C);
        const double theta = C == infinity ? 1 : (root - B) / (2 * (L + mu));
        const double rho = mu * (1 - theta) / (L * theta);
        std::vector<double> y(d), next(d);
        for (std::size_t j = 0; j < d; ++j) y[j] = (1 - theta) * x[j] + theta * (v[j] + rho * (x[j] - v[j]));
        const std::vector<double> slope = gradient(p, y, 0);
        long double model = value(y);
        for (std::size_t j = 0; j < d; ++j) {
            next[j] = p.g[j].prox(y[j] - slope[j] / L, 1 / L);
            model += slope[j] * (next[j] - y[j]) + 0.5 * L * (next[j] - y[j]) * (next[j] - y[j]);
        }
        if (value(next) > model) {
            L *= 2;
            continue;
        }
        for (std::size_t j = 0; j < d; ++j) v[j] = x[j] + (next[j] - x[j]) / theta;
        C = (L + mu) * theta * theta;
        x = next;
        L /= 1.1;
        iterates.push_back(x);
    }
    return iterates;
}

TEST(AcceleratedGradient, EqualsItsDenseTwin) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{}), AnyLoss(Squared{})}) {
        for (const bool weighted : {false, true}) {
            const double mu = 0.03;
            const Problem problem = tiny_problem(loss, ElasticNet{0.01, mu}, weighted);
            const DenseProblem dense = dense_copy(problem);
            const std::vector<double> first = gradient(dense, std::vector<double>(dense.d(), 0.0), 0);
            double along = 0;
            for (std::size_t i = 0; i < dense.n(); ++i) {
                along += dense.omega[i] * std::pow(inner(dense.a[i], first), 2) / static_cast<double>(dense.n());
            }
            const double L = along / inner(first, first) / loss.gamma();
            const auto twin = accelerated_twin(dense, mu, L, 14);
            const auto points = points_of(problem, AcceleratedGradient{}, 15);
            for (std::size_t t = 0; t < twin.size(); ++t) expect_near(points[t + 1].x, twin[t], 1e-10);
        }
    }
}

TEST(AcceleratedGradient, FallsAtItsRateWhateverTheLineSearchDoes) {
    const double mu = 1e-3;
    const Problem problem = tiny_problem(Squared{}, L2{mu});
    const DenseProblem dense = dense_copy(problem);
    double L = 0; // at most the trace
    for (const auto &row : dense.a) L += inner(row, row) / static_cast<double>(dense.n());
    const Result best = solve(problem, Newton{}, {.tolerance = 1e-14});
    const double optimum = problem.primal(best.weights);
    const double theta = std::sqrt(mu / (2 * L + mu)); // the line search stays below 2 L
    const auto points = points_of(problem, AcceleratedGradient{}, 300);
    const double start = (2 * L + mu) / 2 * inner(best.weights, best.weights);
    for (std::size_t t = 2; t < points.size(); ++t) {
        const double bound = start * std::pow(1 - theta, static_cast<double>(t) - 2);
        EXPECT_LE(problem.primal(points[t].x) - optimum, bound + 1e-14) << t;
    }
}

TEST(AcceleratedGradient, StartsItsMomentumAnewWithoutStrongConvexity) {
    // O(1/t^2) alone would need some 1e5 steps
    const Problem problem = tiny_problem(Squared{}, ElasticNet{0.01, 0}, false, 20);
    const Result result = solve(problem, AcceleratedGradient{}, {.tolerance = 1e-10, .max_passes = 5000});
    EXPECT_TRUE(result.converged());
}

/// -H g, H built densely from the pairs (Nocedal and Wright, eq. 7.16).
std::vector<double> quasi_newton(const std::vector<std::pair<std::vector<double>, std::vector<double>>> &pairs,
                                 const std::vector<double> &g) {
    const std::size_t d = g.size();
    detail::Square H = detail::zeros(d);
    const auto &[last_s, last_y] = pairs.back();
    for (std::size_t j = 0; j < d; ++j) H[j][j] = inner(last_s, last_y) / inner(last_y, last_y);
    for (const auto &[s, y] : pairs) {
        const double rho = 1 / inner(s, y);
        detail::Square left = detail::zeros(d), right = detail::zeros(d);
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j < d; ++j) {
                left[i][j] = (i == j ? 1.0 : 0.0) - rho * s[i] * y[j];
                right[i][j] = (i == j ? 1.0 : 0.0) - rho * y[i] * s[j];
            }
        }
        H = detail::product(detail::product(left, H), right);
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j < d; ++j) H[i][j] += rho * s[i] * s[j];
        }
    }
    std::vector<double> move(d);
    for (std::size_t i = 0; i < d; ++i) move[i] = -inner(H[i], g);
    return move;
}

TEST(Lbfgs, StepsAlongTheQuasiNewtonDirectionAndMeetsTheStrongWolfeConditions) {
    const double l2 = 1e-3;
    for (const std::size_t memory : {3U, 30U}) {
        const Problem problem = tiny_problem(Logistic{}, L2{l2}, true, 12);
        const DenseProblem dense = dense_copy(problem);
        const auto points = points_of(problem, Lbfgs{static_cast<std::int64_t>(memory)}, 12);
        std::vector<std::pair<std::vector<double>, std::vector<double>>> pairs;
        std::vector<double> x(dense.d(), 0.0), g = gradient(dense, x, l2);
        for (const Point &point : points) {
            const std::vector<double> next_g = gradient(dense, point.x, l2);
            std::vector<double> s(x.size()), y(x.size());
            for (std::size_t j = 0; j < x.size(); ++j) {
                s[j] = point.x[j] - x[j];
                y[j] = next_g[j] - g[j];
            }
            std::vector<double> move = pairs.empty() ? g : quasi_newton(pairs, g);
            if (pairs.empty()) std::transform(g.begin(), g.end(), move.begin(), std::negate<>());
            const double cosine = inner(s, move) / std::sqrt(inner(s, s) * inner(move, move));
            EXPECT_GT(cosine, 1 - 1e-8);
            const double slope = inner(s, g);
            EXPECT_LE(static_cast<double>(primal(dense, point.x) - primal(dense, x)), 1e-4 * slope + 1e-15);
            EXPECT_LE(std::fabs(inner(s, next_g)), 0.9 * std::fabs(slope) * (1 + 1e-9));
            pairs.emplace_back(s, y);
            if (pairs.size() > memory) pairs.erase(pairs.begin());
            x = point.x;
            g = next_g;
        }
    }
}

TEST(Lbfgs, OwlQnFindsTheZerosThatWorkingSetsFind) {
    const Problem problem = tiny_problem(Logistic{}, ElasticNet{0.02, 1e-3}, true, 20);
    const Result owl = solve(problem, Lbfgs{}, {.tolerance = 1e-12});
    const Result sets = solve(problem, WorkingSet{}, {.tolerance = 1e-12});
    ASSERT_TRUE(owl.converged() && sets.converged());
    int zeros = 0;
    for (std::size_t j = 0; j < owl.weights.size(); ++j) {
        EXPECT_NEAR(owl.weights[j], sets.weights[j], 1e-5);
        EXPECT_EQ(owl.weights[j] == 0, sets.weights[j] == 0);
        zeros += owl.weights[j] == 0;
    }
    EXPECT_GT(zeros, 3);
    EXPECT_LT(zeros, 17);
}

TEST(BatchMethods, GiveTheSameBitsForAnyNumberOfThreads) {
    TinyData data = tiny_data({.rows = 9000, .columns = 40, .density = 0.3});
    const Problem problem(as_dataset(std::move(data)), Logistic{}, L2{1e-3});
    for (const AnySolver &solver : {AnySolver(AcceleratedGradient{}), AnySolver(Lbfgs{}), AnySolver(ChambollePock{})}) {
        SolveContext several;
        several.threads = 3;
        const Stopping stopping{.tolerance = 1e-6};
        const Result one = solve(problem, solver, stopping), three = solve(problem, solver, stopping, several);
        EXPECT_EQ(one.weights, three.weights);
        EXPECT_EQ(one.dual, three.dual);
        EXPECT_TRUE(one.converged());
    }
}

} // namespace
} // namespace spdc::tests
