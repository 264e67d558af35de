// Step sizes of the theorems against numbers worked out by hand, and the sampler against its probabilities.
#include "solvers/spdc_sampler.h"
#include "solvers/spdc_steps.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace spdc::tests {
namespace {

void expect_steps(const StepSizes &steps, double tau, double sigma, double theta) {
    EXPECT_DOUBLE_EQ(steps.tau, tau);
    EXPECT_DOUBLE_EQ(steps.sigma, sigma);
    EXPECT_DOUBLE_EQ(steps.theta, theta);
}

TEST(SpdcSteps, OfTheorem1ByHand) {
    // n lambda = 1, m gamma = 4, n/(m lambda gamma) = 2500
    expect_steps(theorem1_steps(100, 4, 2, 1, 0.01, 0.5), 0.5, 0.125, 1 - 1.0 / (25 + 2 * 50));
    expect_steps(theorem1_steps(100, 4, 2, 1, 0.01, 1), 1, 0.25, 1 - 1.0 / 125); // as printed; theta has no scale
    expect_steps(theorem1_steps(9, 1, 0.5, 4, 1, 0.5), 2.0 / 3, 1.5, 1 - 1 / 9.75);
}

TEST(SpdcSteps, OfTheorem2ByHand) {
    // n lambda = 1, n/(lambda gamma) = 10^4
    expect_steps(theorem2_steps(100, 0.5, 2, 1, 0.01, 0.5), 0.125, 0.125, 1 - 1.0 / (200 + 400));
    expect_steps(theorem2_steps(4, 0.75, 3, 4, 1, 0.5), 0.125, 0.125, 1 - 1.0 / (16 + 4));
}

TEST(SpdcSteps, OfWeightedMiniBatchesByHand) {
    // 1 + 1/(2 lambda tau) = 13, slowest + n/(2 m sigma gamma) = 6 + 12
    expect_steps(weighted_batch_steps(8, 2, 3, 6, 1, 0.25, 0.5), 1.0 / 6, 1.0 / 6, 1 - 1.0 / 18);
}

TEST(SpdcSteps, TauTimesSigmaIsAQuarterOfOneOverRSquaredAndTheirRatioIsTheProblems) {
    Random random(3);
    for (int trial = 0; trial < 50; ++trial) {
        const double n = 2 + static_cast<double>(random.index(1000)), m = 1 + std::floor(random.uniform(0, n));
        const double R = random.log_uniform(1e-3, 1e3);
        const double gamma = random.log_uniform(1e-3, 1e3), lambda = random.log_uniform(1e-9, 1);
        const StepSizes one = theorem1_steps(n, m, R, gamma, lambda, 0.5);
        EXPECT_NEAR(one.tau * one.sigma * R * R, 0.25, 1e-14);
        EXPECT_NEAR(one.tau / one.sigma / (m * gamma / (n * lambda)), 1, 1e-13);
        // the ratios of the proof: x contracts at most as fast as y, y exactly at theta
        EXPECT_NEAR(one.theta, 1 - 1 / (n / m + n / (2 * m * one.sigma * gamma)), 1e-14);
        EXPECT_NEAR(theta_for(n / m, n, m, one.tau, one.sigma, gamma, lambda), one.theta, 1e-14);
        // with equal probabilities m/n the weighted batch is theorem 1
        const StepSizes weighted = weighted_batch_steps(n, m, R, n / m, gamma, lambda, 0.5);
        EXPECT_EQ(weighted.tau, one.tau);
        EXPECT_EQ(weighted.sigma, one.sigma);
        EXPECT_NEAR(weighted.theta, one.theta, 1e-14);
        const double alpha = random.uniform(0.01, 0.99);
        const StepSizes two = theorem2_steps(n, alpha, R, gamma, lambda, 0.5);
        EXPECT_NEAR(two.tau * two.sigma * R * R / (alpha * alpha), 0.25, 1e-14);
        EXPECT_NEAR(two.theta, 1 - 1 / (n / (1 - alpha) + n / (2 * two.sigma * gamma)), 1e-14);
    }
}

TEST(SpdcSteps, ThetaIsOneWithoutSmoothnessOrStrongConvexity) {
    EXPECT_EQ(theta_for(4, 8, 2, 0.5, 0.5, 0, 1), 1);
    EXPECT_EQ(theta_for(4, 8, 2, 0.5, 0.5, 1, 0), 1);
    EXPECT_EQ(theta_for(4, 8, 2, 0.5, 0.5, 1, 1), 1 - 1.0 / 8);
}

TEST(SpdcSteps, BestAlphaMinimisesThetaOfTheorem2) {
    EXPECT_DOUBLE_EQ(best_alpha(16, 1, 1, 1, 1), 1.0 / 3); // (n/kappa)^(1/4) = 2
    EXPECT_DOUBLE_EQ(best_alpha(400, 1, 2, 1, 0.01), 0.5); // kappa = n
    EXPECT_DOUBLE_EQ(best_alpha(32, 2, 1, 1, 1), 1.0 / 3);
    for (const double n : {3.0, 100.0, 1e5}) {
        for (const double lambda : {1e-7, 1e-2, 1.0}) {
            const double best = best_alpha(n, 1, 1.5, 2, lambda);
            const double theta = theorem2_steps(n, best, 1.5, 2, lambda, 0.5).theta;
            for (const double factor : {0.8, 0.99, 1.01, 1.2}) {
                const double other = std::min(best * factor, 0.999999);
                EXPECT_LE(theta, theorem2_steps(n, other, 1.5, 2, lambda, 0.5).theta + 1e-15);
            }
        }
    }
}

std::vector<double> growing_norms(std::int64_t n) {
    std::vector<double> norms;
    for (std::int64_t i = 0; i < n; ++i) norms.push_back(i % 4 == 3 ? 0 : 1 + static_cast<double>(i * i % 7));
    return norms;
}

constexpr Sampling all_samplings[] = {Sampling::uniform, Sampling::weighted, Sampling::permutation};

TEST(SpdcSampler, DrawsEachRowAsOftenAsItsProbabilitySays) {
    constexpr int draws = 60000;
    for (const Sampling sampling : all_samplings) {
        for (const std::int64_t m : {1, 2, 3, 7, 11}) {
            constexpr std::int64_t n = 11;
            Sampler sampler(sampling, n, m, 5, growing_norms(n), 0.6);
            std::vector<double> counts(n, 0);
            std::vector<std::int64_t> batch(static_cast<std::size_t>(m));
            double total = 0;
            for (int t = 0; t < draws; ++t) {
                sampler.draw(batch);
                for (const std::int64_t k : batch) ++counts[static_cast<std::size_t>(k)];
            }
            for (std::int64_t k = 0; k < n; ++k) {
                const double q = sampler.probability(k);
                total += q;
                // five standard deviations of a binomial; permutations spread less
                EXPECT_NEAR(counts[static_cast<std::size_t>(k)] / draws, q, 5 * std::sqrt(q * (1 - q) / draws) + 1e-12)
                    << to_string(sampling) << ", m = " << m << ", row " << k;
            }
            EXPECT_NEAR(total, static_cast<double>(m), 1e-12);
        }
    }
}

TEST(SpdcSampler, FillsEveryBatchWithDistinctRows) {
    for (const Sampling sampling : all_samplings) {
        for (const std::int64_t m : {1, 2, 4, 7, 9, 10}) { // 10 rows: most do not divide
            Sampler sampler(sampling, 10, m, 9, growing_norms(10), 0.5);
            std::vector<std::int64_t> batch(static_cast<std::size_t>(m));
            for (int t = 0; t < 500; ++t) {
                sampler.draw(batch);
                EXPECT_EQ(std::set<std::int64_t>(batch.begin(), batch.end()).size(), batch.size());
                for (const std::int64_t k : batch) {
                    EXPECT_GE(k, 0);
                    EXPECT_LT(k, 10);
                }
            }
        }
    }
}

TEST(SpdcSampler, PermutationTakesEveryRowOncePerPassInANewOrder) {
    Sampler sampler(Sampling::permutation, 12, 1, 2, {}, 0);
    std::set<std::vector<std::int64_t>> orders;
    for (int pass = 0; pass < 20; ++pass) {
        std::vector<std::int64_t> order(12);
        for (std::int64_t &k : order) sampler.draw({&k, 1});
        EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 12U);
        orders.insert(order);
    }
    EXPECT_EQ(orders.size(), 20U);
}

TEST(SpdcSampler, PermutedBatchesLoseNoRowWhereTheyStraddleTwoPasses) {
    // The j-th permutation's rows are all used before any row is used j + 1 times: visits never differ by more than one
    // at the end of a pass, nor by more than two inside.
    for (const std::int64_t m : {2, 3, 4, 7, 9}) {
        Sampler sampler(Sampling::permutation, 10, m, 4, {}, 0);
        std::vector<int> visits(10, 0);
        std::vector<std::int64_t> batch(static_cast<std::size_t>(m));
        for (int t = 1; t <= 300; ++t) {
            sampler.draw(batch);
            for (const std::int64_t k : batch) ++visits[static_cast<std::size_t>(k)];
            const auto [least, most] = std::minmax_element(visits.begin(), visits.end());
            EXPECT_LE(*most - *least, t * m % 10 == 0 ? 0 : 2) << "m = " << m << ", batch " << t;
        }
    }
}

TEST(SpdcSampler, WeightsRowsAsEquationNonuniformProbSays) {
    const std::vector<double> norms{1, 2, 5};
    const Sampler one(Sampling::weighted, 3, 1, 1, norms, 0.25);
    for (std::int64_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(one.probability(k), 0.75 / 3 + 0.25 * norms[static_cast<std::size_t>(k)] / 8, 1e-15);
    }
    EXPECT_FALSE(Sampler(Sampling::uniform, 3, 1, 1, norms, 0.25).is_weighted());
    EXPECT_NEAR(Sampler(Sampling::uniform, 3, 2, 1, norms, 0.25).probability(0), 2.0 / 3, 1e-15);
}

} // namespace
} // namespace spdc::tests
