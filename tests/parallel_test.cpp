// Teams of threads, and what they compute: the definition, in the same bits whatever their number.
#include "parallel.h"
#include "products.h"
#include "row_views.h"
#include "spdc/certificate.h"
#include "spdc/solvers.h"
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

TEST(Team, TouchesPagesAndLeavesWhatIsThere) {
    for (const int threads : {1, 3}) {
        Team team(threads);
        std::vector<double> numbers;
        make_numbers(team, numbers, 700001);
        EXPECT_EQ(numbers.size(), 700001U);
        std::iota(numbers.begin(), numbers.end(), 0.0);
        const std::vector<double> before = numbers;
        touch_pages(team, std::array{memory_of(numbers).subspan(8), memory_of(numbers).first(8)});
        EXPECT_EQ(numbers, before);
    }
}

TEST(Team, SeesWhetherAllAreZero) {
    Team team(3);
    for (const std::size_t count : {0U, 1U, 300000U}) {
        std::vector<double> numbers(count, 0.0);
        EXPECT_TRUE(are_zero(numbers, team));
        if (count == 0) continue;
        numbers.back() = 1e-300;
        EXPECT_FALSE(are_zero(numbers, team));
    }
}

TEST(Team, IsLentWhereItHasTheSize) {
    Team team(3);
    EXPECT_EQ(LentTeam(&team, 3).operator->(), &team);
    EXPECT_NE(LentTeam(&team, 2).operator->(), &team);
    EXPECT_EQ(LentTeam(&team, 2)->size(), 2);
    EXPECT_EQ(LentTeam(nullptr, 4)->size(), 4);
}

TEST(Team, StopsBetweenTwoPiecesWhenInterrupted) {
    for (const int threads : {1, 3}) {
        std::atomic<bool> flag = false;
        SolveContext context;
        context.threads = threads;
        context.interrupt = &flag;
        Team team{context};
        const auto caller = std::this_thread::get_id();
        const auto interrupt = [&](std::int64_t) {
            if (std::this_thread::get_id() == caller) flag = true;
            while (!flag) std::this_thread::yield();
        };
        EXPECT_THROW(team.for_each(1000000000, much_work, interrupt), Interrupted); // all of them would take a minute
        int done = 0;
        EXPECT_THROW(team.for_each(10, 1, [&](std::int64_t) { ++done; }), Interrupted);
        EXPECT_EQ(done, 0);
        team.ignore_interrupts();
        team.for_each(10, 1, [&](std::int64_t) { ++done; });
        EXPECT_EQ(done, 10);
    }
}

TEST(InterruptionPoint, ListensToTheInnermostRunOfItsThread) {
    constexpr std::int64_t much = 1 << 20;
    interruption_point(much); // to nobody
    std::atomic<bool> flag = true;
    SolveContext context;
    context.interrupt = &flag;
    {
        Listening listening(context);
        EXPECT_THROW(interruption_point(much), Interrupted);
        EXPECT_THROW(Team(1).check(), Interrupted);
        {
            const Listening nobody(1);
            interruption_point(much);
        }
        EXPECT_THROW(interruption_point(much), Interrupted);
        std::thread([&] { interruption_point(much); }).join();
        Team team(2);
        team.run([&](int) { interruption_point(much); }); // a body that must not throw
        EXPECT_THROW(team.for_each(2, [&](std::int64_t) {}), Interrupted);
        run_team(2, [&](int) { interruption_point(much); });
        flag = false;
        interruption_point(much);
        flag = true;
        listening.end();
        interruption_point(much);
    }
    interruption_point(much);
}

/// Rows of text have few entries: being asked at each would take longer than the row.
TEST(InterruptionPoint, AsksOnceInMany) {
    int asked = 0;
    SolveContext context;
    context.stop = [&] {
        ++asked;
        return false;
    };
    const Listening listening(context);
    for (int row = 0; row < 1'000'000; ++row) interruption_point(10);
    EXPECT_GE(asked, 100);
    EXPECT_LE(asked, 1000);
}

TEST(Team, FillsWithZerosToTheLast) {
    Team team(3);
    for (const std::size_t count : {0U, 1U, 300000U, 1U << 19, (1U << 19) + 1}) {
        std::vector<int> numbers(count + 1, 7), expected(count, 0);
        expected.push_back(7);
        fill_zeros(team, numbers.data(), count);
        EXPECT_EQ(numbers, expected);
    }
}

struct Shape {
    std::int64_t rows, columns;
    double density;
};
// few columns, many columns, and hardly any entries; the first two are enough work for threads
constexpr Shape shapes[] = {{6000, 4, 0.9}, {6000, 40, 0.9}, {90, 3000, 0.8}, {50, 700, 0.01}};

TEST(RowViews, StartAtAColumnAsASearchOfEachRowSays) {
    for (const std::int64_t rows : {1, 16, 45}) {
        for (const Storage storage : {Storage::csr_float, Storage::dense_double}) {
            TinyData data = tiny_data({.rows = rows, .columns = 40, .density = 0.4});
            std::fill(data.rows.front().begin(), data.rows.front().end(), 0.0); // empty
            std::visit(
                [](const auto &matrix) {
                    for (std::int64_t column = 0; column <= 40; ++column) {
                        for (const double share : {0.0, 0.1, 0.5, 0.99}) {
                            std::int64_t next = 0;
                            each_row_from(matrix, column, share, [&](std::int64_t i, const auto &row, std::int64_t p) {
                                EXPECT_EQ(i, next++);
                                EXPECT_EQ(p, row.lower_bound(column)) << "row " << i << " column " << column;
                            });
                            EXPECT_EQ(next, matrix.rows());
                        }
                    }
                },
                as_matrix(data.rows, storage));
        }
    }
}

TEST(RowFacts, AreTheSameForAnyNumberOfThreads) {
    for (const bool one_value : {false, true}) {
        const TinyData any = tiny_data({.rows = 2000, .columns = 150, .density = 0.9});
        const Dataset data = as_dataset(one_value ? with_one_value_a_row(any) : any, Storage::csr_double);
        const Problem alone(data, Logistic{}, L2{1}), together(data, Logistic{}, L2{1});
        const auto values = alone.row_values();
        const auto norms = alone.squared_row_norms();
        const auto own_norms = together.squared_row_norms(4);
        const auto own_values = together.row_values(4);
        EXPECT_EQ(values.size(), one_value ? 2000 : 0);
        EXPECT_TRUE(std::equal(values.begin(), values.end(), own_values.begin(), own_values.end()));
        EXPECT_TRUE(std::equal(norms.begin(), norms.end(), own_norms.begin(), own_norms.end()));
    }
}

TEST(RowFacts, KnowOneRowOfManyThatHasTwoValues) {
    for (const std::size_t odd : {0U, 700U, 1999U}) {
        TinyData data = with_one_value_a_row(tiny_data({.rows = 2000, .columns = 150, .density = 0.9}));
        data.rows[odd][3] = 5;
        data.rows[odd][4] = 6;
        EXPECT_TRUE(Problem(as_dataset(data, Storage::csr_double), Logistic{}, L2{1}).row_values(4).empty()) << odd;
    }
}

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

/// So many features that the driver's own looks at a point are shared.
TEST(SolveThreads, GiveTheSameTraceOnManyFeatures) {
    constexpr std::int32_t columns = 400000, rows = 40, each = 500;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> entries;
    Dataset data;
    for (std::int32_t i = 0; i < rows; ++i) {
        for (std::int32_t k = 0; k < each; ++k) entries.push_back(k * (columns / each) + i % 7);
        offsets.push_back(static_cast<std::int64_t>(entries.size()));
        data.targets.push_back(i % 3 == 0 ? 1 : -1);
    }
    std::vector<float> values(entries.size(), 1);
    data.matrix = CsrMatrix<float>::own(columns, offsets, entries, values);
    const Problem problem(data, SmoothedHinge{}, L2{1e-3});
    Stopping stopping;
    if (only_for_races) stopping.tolerance = 0.1;
    std::vector<Result> results;
    for (const int threads : {1, 3}) {
        SolveContext context;
        context.threads = threads;
        results.push_back(solve(problem, SpdcFast{}, stopping, context));
    }
    ASSERT_EQ(results[0].trace.size(), results[1].trace.size());
    for (std::size_t k = 0; k < results[0].trace.size(); ++k) {
        EXPECT_EQ(results[0].trace[k].gap, results[1].trace[k].gap);
        EXPECT_EQ(results[0].trace[k].nonzeros, results[1].trace[k].nonzeros);
    }
    EXPECT_EQ(results[1].trace.back().nonzeros, 7 * each);
    EXPECT_EQ(results[0].weights, results[1].weights);
}

} // namespace
} // namespace spdc::tests
