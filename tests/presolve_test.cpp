// Presolve: the reduced problem has the same optimum, every reduction is made, and nothing merges that is not exactly alike.
#include "parallel.h"
#include "presolve.h"
#include "spdc/certificate.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace spdc::tests {
namespace {

/// 24 different rows of 6 columns; then rows 0 to 7 once more, one empty row of each target that rows 0 and 1 have and one of
/// each again, and four columns: -2 times the first, the second again, one without entries, half the third.
TinyData repetitive(const AnyLoss &loss, bool weighted) {
    TinyData data = tiny_data(
        {.task = loss.task(), .rows = 24, .columns = 6, .density = 0.8, .labels = 2, .weighted = weighted, .seed = 3});
    const auto repeat = [&](std::size_t i, bool empty) {
        data.rows.push_back(empty ? std::vector<double>(6, 0.0) : data.rows[i]);
        data.targets.push_back(data.targets[i]);
        if (weighted) data.weights.push_back(0.5 + static_cast<double>(i % 3));
    };
    for (std::size_t i = 0; i < 8; ++i) repeat(i, false);
    for (const std::size_t i : {0, 1, 0, 1}) repeat(i, true);
    for (auto &row : data.rows) row.insert(row.end(), {-2 * row[0], row[1], 0.0, 0.5 * row[2]});
    return data;
}

Problem repetitive_problem(const AnyLoss &loss, AnyRegularizer g, Intercept intercept, Storage storage, bool weighted) {
    ProblemOptions options;
    options.intercept = intercept;
    return {as_dataset(repetitive(loss, weighted), storage), loss, g, options};
}

Result solved(const Problem &problem, const AnySolver &solver, Presolve presolve, double tolerance = 1e-9) {
    Stopping stopping;
    stopping.tolerance = tolerance;
    SolveContext context;
    context.presolve = presolve;
    return solve(problem, solver, stopping, context);
}

Problem of_rows(Rows rows, AnyRegularizer g = L2{0.1}, ProblemOptions options = {}) {
    std::vector<double> targets;
    for (std::size_t i = 0; i < rows.size(); ++i)
        targets.push_back(static_cast<double>(i)); // so that no rows are equal
    return make_problem(std::move(rows), std::move(targets), Squared{}, g, std::move(options));
}

Presolved presolve(const Problem &problem, Presolve when) {
    Team team(2);
    return {problem, when, team};
}

std::int64_t features_left(const Problem &problem) { return presolve(problem, Presolve::on).problem().features(); }

TEST(Presolve, MakesEveryReduction) {
    for (const Storage storage : all_storages) {
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            const Problem problem = repetitive_problem(Logistic{}, L2{0.05}, intercept, storage, false);
            const Presolved presolved = presolve(problem, Presolve::on);
            // empty rows: one, or one for each target where the intercept tells them apart
            EXPECT_EQ(presolved.problem().rows(), 24 + (intercept == Intercept::none ? 1 : 2));
            EXPECT_EQ(presolved.problem().features(), 6);
            EXPECT_EQ(presolved.said(),
                      fmt::format("; presolve left {} of 36 rows and 6 of 10 features", presolved.problem().rows()));
        }
    }
}

TEST(Presolve, LiftedPointsHaveTheSameObjectivesUpToTheLossesOfEmptyRows) {
    for (const std::string &name : loss_names()) {
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            const AnyLoss loss = make_loss(name);
            const Problem problem = repetitive_problem(loss, L2{0.05}, intercept, Storage::csr_double, true);
            const Presolved presolved = presolve(problem, Presolve::on);
            Random random(7);
            const auto values = [&] {
                std::vector<double> x = random_point(presolved.problem().dimension(), random);
                std::vector<double> y = random_dual(presolved.problem(), random, 0.5);
                const double primal = presolved.problem().primal(x), dual = presolved.problem().dual(y);
                const std::vector<double> small_x = x, small_y = y;
                presolved.lift(problem, x, y);
                const auto back_x = presolved.restrict_columns(x), back_y = presolved.restrict_rows(y);
                for (std::size_t j = 0; j < back_x.size(); ++j) EXPECT_NEAR(back_x[j], small_x[j], 1e-12) << name;
                for (std::size_t i = 0; i + 2 < back_y.size(); ++i) EXPECT_EQ(back_y[i], small_y[i]) << name;
                const auto dense = dense_copy(problem);
                return std::pair(static_cast<double>(tests::primal(dense, x)) - primal,
                                 static_cast<double>(tests::dual(dense, y)) - dual);
            };
            const auto first = values(), second = values();
            EXPECT_NEAR(first.first, second.first, 1e-11) << name; // a constant, 0 with an intercept
            EXPECT_TRUE(intercept == Intercept::none || std::fabs(first.first) < 1e-11) << name;
            EXPECT_TRUE(intercept != Intercept::penalized || std::fabs(first.second) < 1e-11) << name;
        }
    }
}

TEST(Presolve, GivesTheSameCertifiedOptimumForEveryLoss) {
    for (const std::string &name : loss_names()) {
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            for (const Storage storage : {Storage::csr_float, Storage::dense_double}) {
                const Problem problem = repetitive_problem(make_loss(name), L2{0.05}, intercept, storage, true);
                // newton's interior point method ends at some 4e-9 where the loss has kinks and the intercept is free
                const double tolerance = problem.loss().gamma() > 0 ? 1e-9 : 1e-8;
                const Result without = solved(problem, Newton{}, Presolve::off, tolerance);
                const Result with = solved(problem, Newton{}, Presolve::on, tolerance);
                ASSERT_TRUE(without.converged() && with.converged()) << name << " " << to_string(intercept);
                EXPECT_NEAR(with.worst().primal, without.worst().primal,
                            2 * tolerance * std::fabs(without.worst().primal))
                    << name;
                for (std::size_t j = 0; j < with.weights.size(); ++j) {
                    EXPECT_NEAR(with.weights[j], without.weights[j], 2e-3) << name << ", feature " << j;
                }
                EXPECT_NE(with.solver_reason.find("presolve left"), std::string::npos);
                EXPECT_EQ(without.solver_reason.find("presolve"), std::string::npos);
            }
        }
    }
}

TEST(Presolve, WorksBeforeEverySolverAndPenalty) {
    for (const Intercept intercept : {Intercept::none, Intercept::free}) {
        for (const AnySolver &solver : {AnySolver(Spdc{}), AnySolver(SpdcFast{}), AnySolver(Sdca{})}) {
            const Problem problem = repetitive_problem(Hinge{}, L2{0.05}, intercept, Storage::csr_float, true);
            const Result with = solved(problem, solver, Presolve::on, 1e-7);
            EXPECT_TRUE(with.converged());
            EXPECT_NEAR(with.worst().primal, solved(problem, solver, Presolve::off, 1e-7).worst().primal, 2e-7);
        }
        for (const AnySolver &solver : {AnySolver(Spdc{}), AnySolver(WorkingSet{})}) {
            const Problem problem =
                repetitive_problem(Logistic{}, ElasticNet{0.01, 0.02}, intercept, Storage::dense_float, true);
            const Result with = solved(problem, solver, Presolve::on, 1e-7);
            EXPECT_TRUE(with.converged());
            EXPECT_NEAR(with.worst().primal, solved(problem, solver, Presolve::off, 1e-7).worst().primal, 2e-7);
            EXPECT_NE(with.solver_reason.find("9 of 10 features"), std::string::npos)
                << with.solver_reason; // the empty one
        }
    }
}

TEST(Presolve, SolvesOneAgainstTheRest) {
    TinyData data = tiny_data({.rows = 30, .columns = 4, .density = 1, .labels = 3});
    for (std::size_t i = 0; i < 30; ++i) {
        data.rows.push_back(data.rows[i]);
        data.targets.push_back(data.targets[i]);
    }
    const Problem problem(as_dataset(data), SmoothedHinge{}, L2{0.05});
    const Result with = solved(problem, Newton{}, Presolve::on), without = solved(problem, Newton{}, Presolve::off);
    ASSERT_EQ(with.certificates.size(), 3U);
    EXPECT_NE(with.solver_reason.find("30 of 60 rows"), std::string::npos) << with.solver_reason;
    for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(with.certificates[k].primal, without.certificates[k].primal, 2e-9);
        EXPECT_LE(with.certificates[k].relative_gap, 1e-9);
    }
}

TEST(Presolve, MergesNothingWhenTheLastBitDiffers) {
    const double v = 0.7, next = std::nextafter(v, 1.0);
    EXPECT_EQ(features_left(of_rows({{1, 1}, {v, v}})), 1);
    EXPECT_EQ(features_left(of_rows({{1, 1}, {v, next}})), 2);
    EXPECT_EQ(features_left(of_rows({{1, 4}, {v, 4 * v}})), 1);
    EXPECT_EQ(features_left(of_rows({{1, 1, 1}, {v, v, 0}, {0, 0, v}})), 2); // another pattern
    // 3 v is rounded, and rounding the quotient hides that: equal hashes, different columns
    double tricky = v;
    while (3 * tricky / 3 != tricky || std::fma(3.0, tricky, -(3 * tricky)) == 0) tricky = std::nextafter(tricky, 1.0);
    EXPECT_EQ(features_left(of_rows({{1, 3, 1}, {tricky, 3 * tricky, tricky}})), 2);

    const Problem rows = make_problem({{1, v}, {1, v}, {1, next}, {1, v}}, {1, 1, 1, 2}, Squared{}, L2{0.1});
    EXPECT_EQ(presolve(rows, Presolve::on).problem().rows(), 3); // the last differs in its target
}

TEST(Presolve, MergesColumnsOnlyWhereThePenaltiesAllowIt) {
    const Rows twins{{1, 1}, {2, 2}, {3, 3}};
    ProblemOptions different;
    different.penalty_factors = {1, 2};
    EXPECT_EQ(features_left(of_rows(twins)), 1);
    EXPECT_EQ(features_left(of_rows(twins, L2{0.1}, different)), 2);
    EXPECT_EQ(features_left(of_rows(twins, ElasticNet{0.1, 0.1})), 2);
    EXPECT_EQ(features_left(of_rows(twins, Box{0, 0.1, {0, 1}})), 2);
    EXPECT_EQ(features_left(of_rows({{0, 0}, {0, 0}})), 2); // a problem keeps a feature, so all of them
}

TEST(Presolve, IsAutomaticOnlyForAutoAndWhereItPays) {
    TinyData data;
    Random random(5);
    for (int i = 0; i < 4000; ++i) {
        data.rows.push_back({static_cast<double>(random.index(3)), static_cast<double>(random.index(3))});
        data.targets.push_back(random.sign());
    }
    const Problem repeated(as_dataset(data), Logistic{}, L2{0.01});
    EXPECT_NE(solved(repeated, Auto{}, Presolve::automatic).solver_reason.find("; presolve left 17 of 4000 rows"),
              std::string::npos);
    EXPECT_EQ(solved(repeated, Newton{}, Presolve::automatic).solver_reason, "asked for by name");
    for (auto &row : data.rows) row[0] = random.normal();
    const Problem problem(as_dataset(data), Logistic{}, L2{0.01});
    EXPECT_FALSE(presolve(problem, Presolve::automatic).is_reduced());
}

TEST(PresolveThreads, FindTheGroupsOfMoreRowsThanFitAtATime) {
    TinyData data;
    for (int i = 0; i < 70000; ++i) {
        data.rows.push_back({static_cast<double>(i % 1001 + 1), static_cast<double>(i % 3 + 1)});
        data.targets.push_back(i % 2 == 0 ? 1 : -1);
    }
    const Problem problem(as_dataset(data), Logistic{}, L2{0.01});
    for (const int threads : {1, 3}) {
        Team team(threads);
        const Presolved presolved(problem, Presolve::on, team);
        EXPECT_EQ(presolved.problem().rows(), 1001 * 3 * 2);
        std::vector<double> x(2, 0.0), y(6006);
        std::iota(y.begin(), y.end(), 0.0);
        presolved.lift(problem, x, y);
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], static_cast<double>(i % 6006));
    }
}

TEST(Presolve, NamesItsChoices) {
    for (const Presolve value : {Presolve::automatic, Presolve::on, Presolve::off}) {
        Presolve parsed = Presolve::automatic;
        parse(std::string(to_string(value)), parsed);
        EXPECT_EQ(parsed, value);
    }
    Presolve any = Presolve::on;
    EXPECT_THROW(parse("of", any), Error);
}

} // namespace
} // namespace spdc::tests
