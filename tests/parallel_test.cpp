// Teams of threads, and what they compute: the definition, in the same bits whatever their number.
#include "parallel.h"
#include "products.h"
#include "spdc/certificate.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <numeric>

namespace spdc::tests {
namespace {

constexpr double much_work = 1e9;

TEST(Team, DoesEveryPieceOnceRoundAfterRound) {
    for (const int threads : {1, 2, 5}) {
        Team team(threads);
        for (const std::int64_t count : {0, 1, 2, 7, 100}) {
            for (int round = 0; round < 50; ++round) {
                std::vector<int> done(static_cast<std::size_t>(count), 0);
                team.for_each(count, much_work, [&](std::int64_t k) { ++done[static_cast<std::size_t>(k)]; });
                EXPECT_EQ(done, std::vector<int>(done.size(), 1)) << threads << " threads";
            }
        }
    }
}

TEST(Team, RunsEachThreadOnceAndTheFirstOnTheCaller) {
    for (const int threads : {1, 2, 5}) {
        Team team(threads);
        for (int round = 0; round < 50; ++round) {
            std::vector<std::thread::id> ids(static_cast<std::size_t>(threads));
            team.run([&](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
            EXPECT_EQ(ids.front(), std::this_thread::get_id());
            std::sort(ids.begin(), ids.end());
            EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
        }
    }
}

TEST(Team, KeepsLittleWorkOnTheCaller) {
    Team team(4);
    EXPECT_EQ(team.for_each(100, 10, [](std::int64_t) {}), 1);
    EXPECT_EQ(team.for_each(100, much_work, [](std::int64_t) {}), 4);
}

struct Shape {
    std::int64_t rows, columns;
    double density;
};
// few columns, many columns, and hardly any entries; the first two are enough work for threads
constexpr Shape shapes[] = {{6000, 40, 0.9}, {90, 3000, 0.8}, {50, 700, 0.01}};

TEST(Products, AreTheirDefinitionInTheSameBitsForAnyNumberOfThreads) {
    Random random(51);
    for (const Shape &shape : shapes) {
        for (const Storage storage : all_storages) {
            for (const Intercept intercept : {Intercept::none, Intercept::free}) {
                ProblemOptions options;
                options.intercept = intercept;
                const Tiny tiny{
                    .rows = shape.rows, .columns = shape.columns, .density = shape.density, .weighted = true};
                const Problem problem(tiny_dataset(tiny, storage), Logistic{}, L2{0.1}, options);
                const DenseProblem slow = dense_copy(problem);
                const auto x = random_point(problem.dimension(), random);
                auto y = random_dual(problem, random);
                std::fill(y.begin(), y.begin() + 20, 0.0);
                std::vector<double> z(y.size()), u(x.size());
                problem.predict(x, z);
                problem.combine(y, u);
                const std::vector<double> slow_u = combine(slow, y);
                for (std::size_t i = 0; i < z.size(); i += 7) {
                    EXPECT_NEAR(z[i], static_cast<double>(dot(slow.a[i], x)), 1e-11);
                }
                for (std::size_t j = 0; j < u.size(); ++j) EXPECT_NEAR(u[j], slow_u[j], 1e-13);
                for (const int threads : {2, 3, 7}) {
                    Team team(threads);
                    std::vector<double> own_z(y.size(), 1.0), own_u(x.size(), 1.0);
                    predict(problem, x, own_z, team);
                    combine(problem, y, own_u, team);
                    EXPECT_EQ(own_z, z) << threads << " threads";
                    EXPECT_EQ(own_u, u) << threads << " threads";
                }
            }
        }
    }
}

TEST(Certificate, HasTheSameBitsForAnyNumberOfThreads) {
    for (const Shape &shape : shapes) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{0.01}), AnyRegularizer(ElasticNet{0.01, 0})}) {
            for (const Intercept intercept : {Intercept::none, Intercept::free}) {
                ProblemOptions options;
                options.intercept = intercept;
                const Tiny tiny{.rows = shape.rows, .columns = shape.columns, .density = shape.density};
                const Problem problem(tiny_dataset(tiny), Logistic{}, g, options);
                std::vector<double> expected;
                for (const int threads : {1, 2, 5}) {
                    Random random(52);
                    Certifier certifier(problem, threads);
                    for (int trial = 0; trial < 3; ++trial) {
                        certifier.offer(random_point(problem.dimension(), random, 0.01),
                                        random_dual(problem, random, 0.3), 0);
                    }
                    const Certificate &c = certifier.certificate();
                    std::vector<double> all{c.primal, c.dual, c.gap};
                    all.insert(all.end(), certifier.x().begin(), certifier.x().end());
                    all.insert(all.end(), certifier.y().begin(), certifier.y().end());
                    all.insert(all.end(), certifier.predictions().begin(), certifier.predictions().end());
                    if (threads == 1) expected = all;
                    EXPECT_EQ(all, expected) << threads << " threads";
                }
            }
        }
    }
}

} // namespace
} // namespace spdc::tests
