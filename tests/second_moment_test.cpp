// Theorem 1 in its exact form: on a quadratic the expected square of the distance obeys a linear recursion, whose rate can be
// computed instead of estimated. The printed steps 1/R break it; half of them keep it (docs/paper_notes.md).
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

double theta_of_theorem_1(std::size_t n, double lambda) {
    const auto count = static_cast<double>(n);
    return 1 - 1 / (count + std::sqrt(count / lambda)); // R = gamma = m = 1
}

/// Rows of norm 1; tau and sigma are `scale` times those of theorem 1.
double rate(const Rows &a, double lambda, double scale) {
    const auto n = static_cast<double>(a.size());
    return second_moment_rate(a, lambda, 1, scale * std::sqrt(1 / (n * lambda)), scale * std::sqrt(n * lambda),
                              theta_of_theorem_1(a.size(), lambda));
}

/// Random, identical, orthogonal and sign-flipped rows in turn.
Rows random_rows(int kind, Random &random) {
    const auto n = static_cast<std::size_t>(2 + random.index(3));
    auto d = static_cast<std::size_t>(1 + random.index(3));
    if (kind == 2) d = std::max(n, d);
    Rows a;
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> row(d, 0.0);
        for (double &v : row) v = random.normal();
        if (kind == 1 && i > 0) row = a.front();
        if (kind == 2) std::fill(row.begin(), row.end(), 0.0), row[i] = 1;
        if (kind == 3 && i > 0) {
            const double sign = random.sign();
            for (std::size_t j = 0; j < d; ++j) row[j] = sign * a.front()[j];
        }
        const auto length = static_cast<double>(std::sqrt(dot(row, row)));
        for (double &v : row) v /= length;
        a.push_back(row);
    }
    return a;
}

TEST(SecondMoment, TwoEqualRowsDivergeWithThePrintedSteps) {
    const Rows a{{1}, {1}};
    EXPECT_NEAR(rate(a, 1e-4, 1), 1.342, 5e-4);
    EXPECT_NEAR(rate({{1}, {1}, {1}}, 1e-2, 1), 1.118, 5e-4);
}

TEST(SecondMoment, TwoEqualRowsMeetTheClaimedRateWithHalfTheSteps) {
    const double theta = theta_of_theorem_1(2, 1e-4);
    EXPECT_NEAR(theta, 0.993, 5e-4);
    EXPECT_LE(rate({{1}, {1}}, 1e-4, 0.5), theta + 1e-12);
}

TEST(SecondMoment, HalfTheStepsMeetTheClaimedRateOnRandomRowsAndThePrintedOnesOftenDiverge) {
    Random random(1);
    int unstable = 0;
    double slack = infinity;
    for (int trial = 0; trial < 40; ++trial) {
        const Rows a = random_rows(trial % 4, random);
        const double lambda = random.log_uniform(1e-6, 1);
        const double theta = theta_of_theorem_1(a.size(), lambda);
        const double safe = rate(a, lambda, 0.5);
        EXPECT_LE(safe, theta + 1e-12) << "trial " << trial << ", lambda " << lambda;
        slack = std::min(slack, (1 - safe) / (1 - theta));
        unstable += rate(a, lambda, 1) > 1 ? 1 : 0;
    }
    EXPECT_GE(unstable, 15);
    EXPECT_LT(slack, 1.1); // the claim is tight: somewhere nothing is left of it
}

TEST(SecondMoment, MatricesOfTheRateAreTheIterationsOfAlgorithm1) {
    const double lambda = 0.1;
    const Steps steps{.tau = 0.5, .sigma = 0.7, .theta = 0.9};
    const Rows a{{1, 0.5}, {-0.25, 2}, {0.5, 1}};
    const DenseProblem p = dense_copy(make_problem(a, {0, 0, 0}, Squared{}, L2{lambda}));
    const std::vector<std::int64_t> order{0, 2, 2, 1, 0, 1, 1, 2};
    std::vector<double> state{1, -2, 1, -2, 0.5, 0.25, -1}; // x, previous x, y
    const Iterates eager = algorithm1(p, order, steps, {{1, -2}, {0.5, 0.25, -1}, {}});
    for (const std::int64_t k : order) {
        const detail::Square move = detail::iteration_matrix(a, static_cast<std::size_t>(k), lambda, 1, steps);
        std::vector<double> next;
        for (const auto &row : move) next.push_back(static_cast<double>(dot(row, state)));
        state = next;
    }
    for (std::size_t j = 0; j < 2; ++j) EXPECT_NEAR(state[j], eager.x[j], 1e-14);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(state[4 + i], eager.y[i], 1e-14);
}

} // namespace
} // namespace spdc::tests
