// Working sets: the same optimum as the paper's method over losses, penalties, intercepts and weights; shapes that hurt; and the
// copy by columns against a naive one.
#include "column_matrix.h"
#include "solvers/face_descent.h"
#include "solvers/few_features.h"
#include "solvers/gram_descent.h"
#include "solvers/methods.h"
#include "solvers/newton.h"
#include "solvers/set_barrier.h"
#include "spdc/solvers.h"
#include "support/files.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace spdc::tests {
namespace {

using test::error_of;

Result solve_to(const Problem &problem, const AnySolver &solver, double tolerance, double passes = 10000) {
    Stopping stopping;
    stopping.tolerance = tolerance;
    stopping.max_passes = passes;
    return solve(problem, solver, stopping);
}

void expect_certified(const Problem &problem, double tolerance, double passes = 10000) {
    const Result result = solve_to(problem, WorkingSet{}, tolerance, passes);
    EXPECT_TRUE(result.converged()) << to_string(result.stop_reason) << " at " << result.worst().relative_gap
                                    << " after " << result.passes << " passes";
}

bool has_kinks(const AnyLoss &loss) { return loss.gamma() == 0 && loss.lipschitz() < infinity; }

struct Penalty {
    std::string name;
    AnyRegularizer regularizer;
    bool has_factors = false;
};

std::vector<Penalty> penalties() {
    return {{"l1", ElasticNet{0.03, 0}},
            {"elastic net", ElasticNet{0.02, 0.05}},
            {"non-negative l1", Box{0.02, 0, {0, infinity}}},
            {"bounded elastic net", Box{0.01, 0.02, {-0.3, 0.4}}},
            {"factors with a zero", ElasticNet{0.02, 0.01}, true}};
}

ProblemOptions options_for(const Penalty &penalty, Intercept intercept, std::int64_t features) {
    ProblemOptions options;
    options.intercept = intercept;
    for (std::int64_t j = 0; penalty.has_factors && j < features; ++j) {
        options.penalty_factors.push_back(j == 1 ? 0.0 : 0.5 + 0.25 * static_cast<double>(j % 5));
    }
    return options;
}

template <class Check> void each_problem(const AnyLoss &loss, Check &&check) {
    for (const Penalty &penalty : penalties()) {
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            for (const bool weighted : {false, true}) {
                SCOPED_TRACE(std::string(loss.name()) + ", " + penalty.name + ", intercept " +
                             std::string(to_string(intercept)) + (weighted ? ", weighted" : ""));
                const Dataset data = tiny_dataset({.task = loss.task(), .rows = 40, .weighted = weighted});
                check(Problem(data, loss, penalty.regularizer, options_for(penalty, intercept, data.features())));
            }
        }
    }
}

TEST(WorkingSet, CertifiesEveryLossPenaltyInterceptAndWeighting) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        each_problem(loss, [&](const Problem &problem) { expect_certified(problem, has_kinks(loss) ? 1e-6 : 1e-10); });
    }
}

TEST(WorkingSet, FindsTheOptimumOfThePapersMethod) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (has_kinks(loss) || loss.gamma() == 0) continue; // the paper's method takes very long there
        each_problem(loss, [&](const Problem &problem) {
            const Result slow = solve_to(problem, Spdc{}, 1e-8, 200000);
            const Result fast = solve_to(problem, WorkingSet{}, 1e-9);
            ASSERT_TRUE(slow.converged() && fast.converged()) << slow.worst().relative_gap;
            EXPECT_NEAR(fast.worst().primal, slow.worst().primal, 1.1e-8 * std::fabs(slow.worst().primal));
        });
    }
}

TEST(WorkingSet, TheZeroModelTakesNoWork) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (loss.gamma() == 0) continue; // with kinks the dual of the constant model is not unique
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            SCOPED_TRACE(name + ", intercept " + std::string(to_string(intercept)));
            ProblemOptions options;
            options.intercept = intercept;
            const Dataset data = tiny_dataset({.task = loss.task(), .weighted = true});
            const double limit = l1_max(Problem(data, loss, ElasticNet{1, 0}, options));
            const Problem problem(data, loss, ElasticNet{1.0001 * limit, 0}, options);
            const Result result = solve_to(problem, WorkingSet{}, 1e-8);
            EXPECT_TRUE(result.converged());
            EXPECT_EQ(result.trace.size(), 1U); // the first certificate is the last
            for (const double weight : result.weights) EXPECT_EQ(weight, 0);
        }
    }
}

// Fewer entries than the parts that features enter a set by: one enters all the same.
TEST(WorkingSet, CertifiesAFewEntries) {
    const Rows rows = {{1, 0.5, 0, 0}, {-0.3, 0, 1, 0}, {0, 1, 0, 1}, {0, 0, 0.2, 0}};
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (loss.name() == Poisson::name) continue; // counts
        const Problem one = make_problem(rows, {1, -1, 1, -1}, loss, ElasticNet{1, 0});
        SCOPED_TRACE(name);
        expect_certified(one.with(ElasticNet{0.1 * l1_max(one), 0}), 1e-6, 1000);
    }
}

TEST(WorkingSet, LeavesMostWeightsAtZeroOnWideData) {
    for (const AnyLoss &loss : {AnyLoss(Squared{}), AnyLoss(Logistic{}), AnyLoss(SquaredHinge{}), AnyLoss(Huber{})}) {
        SCOPED_TRACE(std::string(loss.name()));
        const Dataset data = tiny_dataset({.task = loss.task(), .rows = 60, .columns = 1500, .density = 0.1});
        const double limit = l1_max(Problem(data, loss, ElasticNet{1, 0}));
        for (const double part : {0.3, 0.03}) {
            const Problem problem(data, loss, ElasticNet{part * limit, 0});
            const Result result = solve_to(problem, WorkingSet{}, 1e-9);
            EXPECT_TRUE(result.converged()) << result.worst().relative_gap;
            EXPECT_LE(result.trace.back().nonzeros, 60);
            EXPECT_LT(result.passes, 500);
        }
    }
}

TEST(WorkingSet, LeavesOutFeaturesThatNoDualCouldMove) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{}), AnyLoss(Huber{}), AnyLoss(Quantile{0.3})}) {
        SCOPED_TRACE(std::string(loss.name()));
        TinyData data = tiny_data({.task = loss.task(), .rows = 80, .columns = 40, .weighted = true});
        for (auto &row : data.rows) {
            for (std::size_t j = 0; j < row.size(); ++j) row[j] *= std::pow(0.5, static_cast<double>(j % 20));
        }
        ProblemOptions options;
        options.intercept = Intercept::free;
        const double l1 = 0.01 * l1_max(Problem(as_dataset(data), loss, ElasticNet{1, 0}, options));
        const Problem problem(as_dataset(data), loss, ElasticNet{l1, 0}, options);
        std::int64_t still = 0;
        const auto method = make_method(problem, WorkingSet{}, SolveContext{});
        std::vector<double> x(static_cast<std::size_t>(problem.dimension()), 1.0), y(data.rows.size(), 0.0);
        method->start(x, y); // a start that uses all of them
        method->advance(1);
        method->point(x, y);
        for (std::size_t j = 0; j < data.rows[0].size(); ++j) {
            double most = 0; // of |u_j|, were all duals at their bounds
            for (std::size_t i = 0; i < data.rows.size(); ++i) {
                most += problem.importance(static_cast<std::int64_t>(i)) * std::fabs(data.rows[i][j]) / 80;
            }
            if (most * loss.lipschitz() >= l1) continue;
            ++still;
            EXPECT_EQ(x[j], 0);
        }
        EXPECT_GT(still, 5);
        expect_certified(problem, 1e-8);
    }
}

TEST(WorkingSet, LeavesOutAllFeaturesWhereNoneCouldMove) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (loss.task() == Task::counts) continue; // their duals have no bound
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            const Tiny tiny{loss.task(), 60, 4, 0.9, 2, false, 3};
            const Dataset data = as_dataset(tiny_data(tiny), Storage::csr_double);
            ProblemOptions options;
            options.intercept = intercept;
            for (const double l1 : {1.0, 3.0, 100.0}) {
                const Problem problem(data, loss, ElasticNet{l1, 0}, options);
                const Result result = solve_to(problem, WorkingSet{}, 1e-8);
                EXPECT_TRUE(result.converged()) << loss.name() << ", " << to_string(intercept);
                if (l1 < l1_max(problem)) continue;
                EXPECT_THAT(result.weights, ::testing::Each(0.0)) << loss.name();
            }
        }
    }
}

TEST(WorkingSet, CertifiesTallData) {
    for (const AnyLoss &loss :
         {AnyLoss(Squared{}), AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{}), AnyLoss(Poisson{})}) {
        for (const Storage storage : {Storage::csr_float, Storage::dense_double}) {
            SCOPED_TRACE(std::string(loss.name()));
            const Dataset data = tiny_dataset({.task = loss.task(), .rows = 3000, .columns = 12}, storage);
            ProblemOptions options;
            options.intercept = Intercept::free;
            for (const double part : {0.3, 1e-4}) {
                const double limit = l1_max(Problem(data, loss, ElasticNet{1, 0}, options));
                expect_certified(Problem(data, loss, ElasticNet{part * limit, 0}, options), 1e-9, 500);
            }
        }
    }
}

/// Columns that make trouble: one twice, one constant, one empty, one and its tiny and huge multiples.
TinyData troublesome_data(Task task) {
    TinyData data = tiny_data({.task = task, .rows = 50, .columns = 8});
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        auto &row = data.rows[i];
        const double first = row[0], second = row[1];
        row.insert(row.end(), {first, 1.0, 0.0, 1e6 * second, 1e-3 * second});
    }
    return data;
}

TEST(WorkingSet, TakesDuplicateConstantEmptyAndUnscaledColumns) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (has_kinks(loss) || loss.gamma() == 0) continue;
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            SCOPED_TRACE(name + ", intercept " + std::string(to_string(intercept)));
            ProblemOptions options;
            options.intercept = intercept;
            for (const AnyRegularizer &g :
                 {AnyRegularizer(ElasticNet{0.01, 0}), AnyRegularizer(ElasticNet{0.01, 1e-4})}) {
                expect_certified({as_dataset(troublesome_data(loss.task())), loss, g, options}, 1e-8);
            }
        }
    }
}

TEST(WorkingSet, SolvesNonNegativeLeastSquaresWithoutL1) {
    const Dataset data = tiny_dataset({.task = Task::regression, .rows = 40, .columns = 15});
    const Problem problem(data, Squared{}, Box{0, 0, {0, 2}});
    const Result result = solve_to(problem, WorkingSet{}, 1e-9);
    EXPECT_TRUE(result.converged());
    for (const double weight : result.weights) EXPECT_TRUE(0 <= weight && weight <= 2);
}

TEST(WorkingSet, GivesTheSameBitsForAnyNumberOfThreads) {
    const Dataset data = tiny_dataset({.rows = 80, .columns = 200});
    const Problem problem(data, Logistic{}, ElasticNet{0.01, 0});
    SolveContext context;
    const Result one = solve(problem, WorkingSet{}, {}, context);
    context.threads = 3;
    EXPECT_EQ(solve(problem, WorkingSet{}, {}, context).weights, one.weights);
}

TEST(WorkingSet, RefusesAPenaltyThatLeavesNoZeros) {
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.1});
    const std::string message = error_of(ErrorKind::unsupported, [&] { solve(problem, WorkingSet{}); });
    EXPECT_NE(message.find("needs an l1 penalty or bounds"), std::string::npos) << message;
    EXPECT_NE(message.find("spdc_fast"), std::string::npos) << message;
}

// The optimum of a loss with kinks and an l1 penalty is a corner, which is found exactly; the rounded losses would take 1e5 passes.
TEST(WorkingSet, EndsInACornerOfALinearProgram) {
    for (const AnyLoss &loss :
         {AnyLoss(Absolute{}), AnyLoss(Quantile{0.3}), AnyLoss(EpsilonInsensitive{0.05}), AnyLoss(Hinge{})}) {
        for (const auto &[rows, columns] : {std::pair{60, 12}, std::pair{40, 150}}) {
            for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
                for (const AnyRegularizer &g :
                     {AnyRegularizer(ElasticNet{0.02, 0}), AnyRegularizer(Box{0.01, 0, {-0.2, 0.3}})}) {
                    SCOPED_TRACE(std::string(loss.name()) + ", intercept " + std::string(to_string(intercept)) + ", " +
                                 std::to_string(columns) + " columns, " + std::string(g.name()));
                    ProblemOptions options;
                    options.intercept = intercept;
                    const Dataset data =
                        tiny_dataset({.task = loss.task(), .rows = rows, .columns = columns, .weighted = true});
                    expect_certified(Problem(data, loss, g, options), 1e-11, 20000);
                }
            }
        }
    }
}

TEST(WorkingSet, CertifiesKinksWhereAllRowsAreFitted) {
    for (const AnyLoss &loss : {AnyLoss(Absolute{}), AnyLoss(Quantile{0.3}), AnyLoss(EpsilonInsensitive{0.05})}) {
        SCOPED_TRACE(loss.name());
        const Dataset data = tiny_dataset({.task = loss.task(), .rows = 60, .columns = 400});
        const double l1 = 1e-3 * l1_max(Problem(data, loss, ElasticNet{1, 0}));
        expect_certified(Problem(data, loss, ElasticNet{l1, 0}), 1e-9, 3000);
    }
}

/// All features as one set; the certificate is the judge.
void expect_barrier_optimum(const Problem &problem) {
    const ColumnMatrix<double> columns(problem);
    const Penalties penalties(problem);
    SetBarrier<double> barrier(problem, columns, penalties);
    std::vector<std::int32_t> set(static_cast<std::size_t>(problem.dimension()));
    std::iota(set.begin(), set.end(), 0);
    std::vector<double> x(set.size(), 0.0), y(static_cast<std::size_t>(problem.rows()), 0.0);
    const double start = problem.primal(x);
    barrier.start(set, start, 1e-7 * start, x, y);
    int steps = 0;
    while (barrier.is_running()) {
        barrier.advance(x, y);
        ++steps;
    }
    EXPECT_LT(steps, 50);
    EXPECT_LE(barrier.error(), 1e-7 * start);
    Certifier certifier(problem);
    EXPECT_LE(certifier.offer(x, y, 0).relative_gap, 1e-5);
}

TEST(SetBarrier, ReachesTheOptimumByFeaturesAndByRows) {
    for (const AnyLoss &loss :
         {AnyLoss(Hinge{}), AnyLoss(Absolute{}), AnyLoss(EpsilonInsensitive{0.1}), AnyLoss(Quantile{0.3})}) {
        for (const auto &[rows, columns] : {std::pair(60, 12), std::pair(20, 50)}) {
            for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
                for (const bool weighted : {false, true}) {
                    for (const double l2 : {0.0, 0.02}) {
                        SCOPED_TRACE(std::string(loss.name()) + ", intercept " + std::string(to_string(intercept)) +
                                     ", rows " + std::to_string(rows) + (weighted ? ", weighted" : "") +
                                     (l2 > 0 ? ", l2" : ""));
                        ProblemOptions options;
                        options.intercept = intercept;
                        const Dataset data =
                            tiny_dataset({.task = loss.task(), .rows = rows, .columns = columns, .weighted = weighted});
                        expect_barrier_optimum(Problem(data, loss, ElasticNet{0.02, l2}, options));
                    }
                }
            }
        }
    }
}

// Rare positives that no feature tells: x = 0 is optimal, all negatives sit at the kink, and many duals fit; each set brings other ones, which
// features outside it do not allow. Sets that forgot what the ones before them had went round for ever with some of these seeds.
TEST(WorkingSet, EndsWhereManyDualsFitTheOptimum) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
        Random random(seed);
        TinyData data{Rows(3000, std::vector<double>(300, 0.0)), {}, {}};
        for (auto &row : data.rows) {
            for (double &value : row) value = random.uniform() < 0.2 ? 1 : 0;
            data.targets.push_back(random.uniform() < 0.05 ? 1 : -1);
        }
        ProblemOptions options;
        options.intercept = Intercept::free;
        const Problem problem(as_dataset(std::move(data)), Hinge{}, ElasticNet{1e-3, 0}, options);
        expect_certified(problem, 1e-6, 1500);
    }
}

/// The objective that a form of the solver is certified to reach.
double optimum_by(Method &method, const Problem &problem, double tolerance) {
    Certifier certifier(problem);
    std::vector<double> x, y;
    method.aim(tolerance);
    for (int k = 0; k < 300 && !(certifier.certificate().relative_gap <= tolerance); ++k) {
        method.advance(1);
        method.point(x, y);
        certifier.offer(x, y, tolerance);
        method.certified({certifier.certificate(), certifier.x(), certifier.predictions()});
    }
    EXPECT_LE(certifier.certificate().relative_gap, tolerance);
    return certifier.certificate().primal;
}

void expect_the_same_optimum(std::unique_ptr<Method> method, const Problem &problem, double tolerance) {
    const double one = optimum_by(*method, problem, tolerance);
    const double other = optimum_by(*make_column_sets(problem), problem, tolerance);
    EXPECT_NEAR(one, other, 2 * tolerance * std::fabs(one));
}

void expect_the_same_optimum(const Problem &problem, double tolerance) {
    expect_the_same_optimum(make_few_features(problem), problem, tolerance);
}

void expect_the_same_optimum_by_newton(const Problem &problem, double tolerance) {
    expect_the_same_optimum(make_sparse_newton(problem, {}), problem, tolerance);
}

TEST(SparseNewton, FindsTheOptimumOfTheColumnSets) {
    for (const AnyLoss &loss : {AnyLoss(Squared{}), AnyLoss(Logistic{})}) {
        each_problem(loss, [](const Problem &problem) { expect_the_same_optimum_by_newton(problem, 1e-10); });
        for (const Storage storage : all_storages) { // samples of the rows first
            for (const double l1 : {0.003, 0.03, 10.0}) {
                const Dataset tall = tiny_dataset({.task = loss.task(), .rows = 9000, .columns = 9}, storage);
                expect_the_same_optimum_by_newton({tall, loss, ElasticNet{l1, 0}}, 1e-9);
            }
        }
        ProblemOptions options;
        options.intercept = Intercept::free;
        const Dataset troublesome = as_dataset(troublesome_data(loss.task()));
        expect_the_same_optimum_by_newton({troublesome, loss, ElasticNet{0.01, 1e-4}, options}, 1e-8);
    }
}

// The first sample, as every one of most, has rows of one label alone: an intercept fits them better without end.
TEST(SparseNewton, LeavesASampleOfOneLabel) {
    TinyData data = tiny_data({.task = Task::classification, .rows = 20000, .columns = 4});
    std::fill(data.targets.begin(), data.targets.end(), -1.0);
    data.targets[7] = data.targets[13000] = 1;
    ProblemOptions options;
    options.intercept = Intercept::free;
    const Dataset rare = as_dataset(std::move(data));
    for (const AnyRegularizer &penalty : {AnyRegularizer(ElasticNet{1e-5, 0}), AnyRegularizer(L2{1e-4})}) {
        const Problem problem(rare, Logistic{}, penalty, options);
        for (const std::uint64_t seed : {1, 2, 3, 4}) {
            SolveContext context;
            context.seed = seed;
            const bool is_l2 = std::holds_alternative<L2>(penalty.variant());
            const AnySolver solver = is_l2 ? AnySolver(Newton{}) : AnySolver(WorkingSet{});
            const Result result = solve(problem, solver, {.tolerance = 1e-6, .max_passes = 100}, context);
            EXPECT_TRUE(result.converged()) << "seed " << seed << ", " << result.worst().relative_gap;
        }
    }
}

// A sum of what the bounds leave of a dual's excess: nothing on a side that they close.
TEST(SparseNewton, KnowsWhenItIsThereWithBounds) {
    const Dataset data = tiny_dataset({.task = Task::classification, .rows = 400, .columns = 9});
    for (const AnyRegularizer &penalty :
         {AnyRegularizer(Box{0.003, 0, {0, infinity}}), AnyRegularizer(Box{0, 0, {-0.1, 0.1}}),
          AnyRegularizer(Box{0.003, 0, {-0.05, 0.1}})}) {
        const Result result = solve_to({data, Logistic{}, penalty}, WorkingSet{}, 1e-4);
        EXPECT_TRUE(result.converged());
        EXPECT_LE(result.passes, 5) << result.worst().relative_gap;
    }
}

TEST(SparseNewton, HasTheSameBitsForAnyNumberOfThreads) {
    const Dataset data = tiny_dataset({.task = Task::classification, .rows = 20000, .columns = 9});
    const Problem problem(data, Logistic{}, ElasticNet{0.003, 0});
    std::vector<double> x, y, first;
    for (const int threads : {1, 2, 5}) {
        SolveContext context;
        context.threads = threads;
        const auto method = make_sparse_newton(problem, context);
        for (int k = 0; k < 8; ++k) method->advance(1);
        method->point(x, y);
        x.insert(x.end(), y.begin(), y.end());
        if (first.empty()) first = x;
        EXPECT_EQ(x, first) << threads;
    }
}

TEST(SparseNewton, IsTakenWhereItsPassesAreFew) {
    const auto takes = [](std::int64_t rows, std::int64_t columns, const AnyLoss &loss) {
        return has_few_entries(
            {tiny_dataset({.task = loss.task(), .rows = rows, .columns = columns}), loss, ElasticNet{0.1, 0}});
    };
    EXPECT_TRUE(takes(400, 50, Logistic{}));
    EXPECT_FALSE(takes(399, 50, Logistic{}));
    EXPECT_FALSE(takes(1000, 51, Logistic{}));
    EXPECT_FALSE(takes(400, 50, Squared{})); // dense: few_features.cpp
    EXPECT_FALSE(takes(400, 50, SquaredHinge{}));
    const auto takes_sparse = [](std::int64_t columns, const AnyLoss &loss) {
        const Tiny tiny{.task = loss.task(), .rows = 4200, .columns = columns, .density = 0.02};
        return has_few_entries({tiny_dataset(tiny), loss, ElasticNet{0.1, 0}});
    };
    EXPECT_TRUE(takes_sparse(512, Logistic{}));
    EXPECT_FALSE(takes_sparse(513, Logistic{}));
    EXPECT_TRUE(takes_sparse(256, Squared{}));
    EXPECT_FALSE(takes_sparse(257, Squared{}));
}

TEST(FewFeatures, FindsTheOptimumOfTheColumnSets) {
    each_problem(Squared{}, [](const Problem &problem) { expect_the_same_optimum(problem, 1e-10); });
    for (const Intercept intercept : {Intercept::none, Intercept::free}) {
        ProblemOptions options;
        options.intercept = intercept;
        const Dataset troublesome = as_dataset(troublesome_data(Task::regression));
        expect_the_same_optimum({troublesome, Squared{}, ElasticNet{0.01, 1e-4}, options}, 1e-8);
        expect_the_same_optimum({troublesome, Squared{}, ElasticNet{0.01, 0}, options}, 1e-8);
    }
    for (const Storage storage : all_storages) { // more than one block of rows, the last not full
        const Dataset tall = tiny_dataset({.task = Task::regression, .rows = 700, .columns = 9}, storage);
        expect_the_same_optimum({tall, Squared{}, ElasticNet{0.003, 0}}, 1e-10);
    }
}

TEST(FewFeatures, TakesNeitherManyFeaturesNorFewRowsNorOtherLosses) {
    const auto takes = [](std::int64_t rows, std::int64_t columns, const AnyLoss &loss) {
        return has_few_features(
            {tiny_dataset({.task = loss.task(), .rows = rows, .columns = columns}), loss, ElasticNet{0.1, 0}});
    };
    EXPECT_TRUE(takes(256, 128, Squared{}));
    EXPECT_FALSE(takes(258, 129, Squared{}));
    EXPECT_FALSE(takes(19, 10, Squared{}));
    EXPECT_FALSE(takes(256, 10, Logistic{}));
    EXPECT_TRUE(takes(1600, 200, Squared{})); // dense
    EXPECT_FALSE(takes(1592, 200, Squared{}));
}

/// min q'x + |diag(h)^(1/2) A x|^2 / 2 + l1 |x|_1 through a Gram matrix that grew twice, from where x is: the conditions of the optimum, by plain
/// sums.
void expect_gram_optimum(const TinyData &data) {
    constexpr double l1 = 0.05;
    const Problem problem(as_dataset(data), Squared{}, ElasticNet{l1, 0});
    const ColumnMatrix<double> columns(problem);
    const Penalties penalties(problem);
    const std::size_t n = data.rows.size(), d = data.rows[0].size();
    Curvatures h;
    for (std::size_t i = 0; i < n; ++i)
        h.rows.push_back((1 + 0.1 * static_cast<double>(i % 7)) / static_cast<double>(n));
    std::vector<double> q(d), x(d), dz(n, 0.0);
    std::vector<std::int32_t> set(d);
    for (std::size_t j = 0; j < d; ++j) {
        set[j] = static_cast<std::int32_t>(j);
        x[j] = 0.1 * static_cast<double>(j % 3); // those that join later have weights, too
        for (std::size_t i = 0; i < n; ++i) q[j] -= data.targets[i] * data.rows[i][j] / static_cast<double>(n);
    }
    const std::vector<double> start = x;
    GramDescent<double> gram(columns, penalties, problem.rows());
    ASSERT_FALSE(gram.include(set, h, 1));
    ASSERT_TRUE(gram.include(std::span(set).first(d / 3), h, 1'000'000));
    gram.start(set, x, q);
    ASSERT_TRUE(gram.include(set, h, 1'000'000));
    gram.join(std::span(set).subspan(d / 3), x, q);
    SweepResult target{1e-20, 1e-11};
    gram.minimize(target, 0);
    gram.finish(x, dz);
    for (std::size_t i = 0; i < n; ++i) {
        double z = 0;
        for (std::size_t j = 0; j < d; ++j) z += data.rows[i][j] * (x[j] - start[j]);
        EXPECT_NEAR(dz[i], z, 1e-12);
    }
    int moved = 0;
    for (std::size_t j = 0; j < d; ++j) {
        double u = q[j];
        for (std::size_t i = 0; i < n; ++i) u += data.rows[i][j] * h[i] * dz[i];
        if (x[j] == 0) {
            EXPECT_LE(std::fabs(u), l1 * (1 + 1e-8));
        } else {
            ++moved;
            EXPECT_NEAR(u, x[j] > 0 ? -l1 : l1, 1e-8 * l1);
        }
    }
    EXPECT_GT(moved, 2);
}

/// What FaceDescent lowers, by plain sums.
struct FaceModel {
    const TinyData &data;
    Curvatures h;
    double l1, l2;
    std::vector<double> start;  // x
    std::vector<double> slopes; // r there

    double value(const std::vector<double> &x) const {
        double sum = 0;
        for (std::size_t i = 0; i < slopes.size(); ++i) {
            double dz = 0;
            for (std::size_t j = 0; j < x.size(); ++j) dz += data.rows[i][j] * (x[j] - start[j]);
            sum += slopes[i] * dz + 0.5 * h[i] * dz * dz;
        }
        for (const double v : x) sum += l1 * std::fabs(v) + 0.5 * l2 * v * v;
        return sum;
    }
    std::vector<double> r(const std::vector<double> &x) const {
        std::vector<double> r = slopes;
        for (std::size_t i = 0; i < r.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) r[i] += h[i] * data.rows[i][j] * (x[j] - start[j]);
        }
        return r;
    }
    /// Of the losses and the l2 penalty.
    double slope(std::size_t j, const std::vector<double> &x) const {
        double sum = l2 * x[j];
        const std::vector<double> now = r(x);
        for (std::size_t i = 0; i < now.size(); ++i) sum += data.rows[i][j] * now[i];
        return sum;
    }
};

/// The model on `data`, from weights of size `size`, and where FaceDescent gets from there.
template <class Check> void each_face(const TinyData &data, double size, Check &&check) {
    const std::size_t n = data.rows.size(), d = data.rows[0].size();
    for (const double l2 : {0.0, 0.02}) {
        const Problem problem(as_dataset(data), Squared{}, ElasticNet{0.05, l2});
        const ColumnMatrix<double> columns(problem);
        const Penalties penalties(problem);
        FaceModel model{data, {}, 0.05, l2, std::vector<double>(d), std::vector<double>(n)};
        std::vector<double> curvature(d);
        std::vector<std::int32_t> active;
        for (std::size_t j = 0; j < d; ++j) {
            model.start[j] = j % 5 == 4 ? 0 : (j % 2 == 0 ? size : -size);
            active.push_back(static_cast<std::int32_t>(j));
        }
        for (std::size_t i = 0; i < n; ++i) {
            model.h.rows.push_back((1 + 0.1 * static_cast<double>(i % 7)) / static_cast<double>(n));
            for (std::size_t j = 0; j < d; ++j) curvature[j] += model.h.rows[i] * data.rows[i][j] * data.rows[i][j];
            model.slopes[i] = -0.1 * data.targets[i] / static_cast<double>(n);
        }
        std::vector<double> x = model.start, r = model.slopes;
        FaceDescent<double> face(columns, penalties);
        face.descend(active, curvature, model.h, {1e-24, 1e-10, 0}, 1'000'000, x, r);
        const std::vector<double> expected = model.r(x);
        for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(r[i], expected[i], 1e-12);
        for (std::size_t j = 0; j < d; ++j) {
            EXPECT_GE(x[j] * model.start[j], 0) << j; // nobody went through 0
            EXPECT_TRUE(model.start[j] != 0 || x[j] == 0) << j;
        }
        EXPECT_LT(model.value(x), model.value(model.start));
        check(model, x);
    }
}

TEST(FaceDescent, FindsTheMinimumOfItsFace) {
    const TinyData data = tiny_data({.task = Task::regression, .rows = 60, .columns = 12});
    each_face(data, 5, [](const FaceModel &model, const std::vector<double> &x) { // the way to 0 is far
        for (std::size_t j = 0; j < x.size(); ++j) {
            if (x[j] == 0) continue;
            EXPECT_NEAR(model.slope(j, x), x[j] > 0 ? -model.l1 : model.l1, 1e-9);
        }
    });
}

TEST(FaceDescent, StopsAtZeroAndDoesNotGetLostAmongDependentColumns) {
    TinyData data = tiny_data({.task = Task::regression, .rows = 60, .columns = 12});
    each_face(data, 1e-3, [](const FaceModel &, const std::vector<double> &) {});
    for (auto &row : data.rows)
        row[1] = row[0], row[3] = row[2]; // of opposite sign: both may shrink for ever, but for 0
    each_face(data, 1e-3, [](const FaceModel &, const std::vector<double> &) {});
    each_face(data, 5, [](const FaceModel &, const std::vector<double> &) {});
}

/// Without negative entries all columns are alike: sweeps in one and the same order took 10 to 30 times as many passes.
TEST(WorkingSet, NeedsFewPassesWhereColumnsAreAlike) {
    TinyData data = tiny_data({.rows = 300, .columns = 500});
    for (auto &row : data.rows) {
        for (double &v : row) v = std::fabs(v);
    }
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{})}) {
        SCOPED_TRACE(loss.name());
        const Problem problem(as_dataset(data), loss, ElasticNet{1, 0});
        expect_certified(problem.with(ElasticNet{0.05 * l1_max(problem), 0}), 1e-6, 300);
    }
}

TEST(GramDescent, FindsTheOptimumInSparseAndInDenseColumns) {
    for (const double density : {0.1, 0.4, 1.0}) { // the last by dense blocks, of which the last is not full
        SCOPED_TRACE(density);
        expect_gram_optimum(tiny_data({.task = Task::regression, .rows = 300, .columns = 24, .density = density}));
    }
}

TEST(ColumnMatrix, HoldsWhatTheRowsHold) {
    for (const Storage storage : all_storages) {
        for (const auto &[width, intercept] :
             {std::pair(17, Intercept::none), {17, Intercept::free}, {900, Intercept::free}}) {
            TinyData data = tiny_data({.rows = 23, .columns = width});
            for (auto &row : data.rows) row[3] = 0; // an empty column
            ProblemOptions options;
            options.intercept = intercept;
            const Problem problem(as_dataset(data, storage), Logistic{}, L2{1}, options);
            const ColumnMatrix<double> columns(problem);
            ASSERT_EQ(columns.columns(), problem.dimension());
            for (std::int64_t j = 0; j < columns.columns(); ++j) {
                std::vector<double> dense(data.rows.size(), 0.0);
                const auto column = columns.column(j);
                for (std::int64_t p = 0; p < column.size(); ++p) {
                    EXPECT_TRUE(p == 0 || column.column(p - 1) < column.column(p));
                    dense[static_cast<std::size_t>(column.column(p))] = column.value(p);
                }
                for (std::size_t i = 0; i < dense.size(); ++i) {
                    EXPECT_EQ(dense[i], j == width ? 1.0 : data.rows[i][static_cast<std::size_t>(j)]);
                }
            }
            std::vector<std::uint8_t> wanted(static_cast<std::size_t>(columns.columns()), 1);
            for (std::size_t j = 0; j < wanted.size(); j += 2) wanted[j] = 0;
            const ColumnMatrix<double> some(problem, wanted);
            for (std::int64_t j = 0; j < columns.columns(); ++j) {
                const auto all = columns.column(j), column = some.column(j);
                ASSERT_EQ(column.size(), j % 2 == 0 ? 0 : all.size());
                for (std::int64_t p = 0; p < column.size(); ++p) {
                    EXPECT_EQ(column.column(p), all.column(p));
                    EXPECT_EQ(column.value(p), all.value(p));
                }
            }
        }
    }
}

} // namespace
} // namespace spdc::tests
