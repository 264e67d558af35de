// solve(): what a run hands back, where it may start, and which calls are wrong. How it ends: solve_stops_test.cpp.
#include "support/solving.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace spdc::tests {
namespace {

TEST(Result, IsNotRunAndNotConvergedByDefault) {
    const Result result;
    EXPECT_EQ(result.stop_reason, StopReason::not_run);
    EXPECT_FALSE(result.converged());
}

TEST(Solve, KeepsTheBestPointOfARunThatGetsWorse) {
    const Problem problem = tiny_problem(Squared{});
    Spdc slow_to_diverge; // a bit beyond what is stable: good points first, then none
    slow_to_diverge.step_scale = 3;
    Stopping stopping = tolerance_of(1e-14);
    stopping.max_passes = 500;
    const Result result = solve(problem, slow_to_diverge, stopping);
    EXPECT_FALSE(result.converged());
    EXPECT_LT(result.worst().primal, problem.primal(std::vector<double>(5, 0.0)));
    expect_own_valid_gap(problem, result);
}

TEST(Solve, GivesTheSameBitsForTheSameSeedAndOthersForAnother) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{})}) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{0.05}), AnyRegularizer(ElasticNet{0.02, 0})}) {
            const Problem problem = tiny_problem(loss, g, Intercept::free);
            SolveContext context;
            context.seed = 7;
            const Result first = solve(problem, Spdc{}, pass_limit_of(60), context);
            const Result again = solve(problem, Spdc{}, pass_limit_of(60), context);
            context.seed = 8;
            const Result other = solve(problem, Spdc{}, pass_limit_of(60), context);
            EXPECT_EQ(first.seed, 7U);
            EXPECT_EQ(first.weights, again.weights);
            EXPECT_EQ(first.intercepts, again.intercepts);
            EXPECT_EQ(first.dual, again.dual);
            EXPECT_EQ(first.worst().gap, again.worst().gap);
            EXPECT_NE(first.weights, other.weights);
        }
    }
}

TEST(Solve, TraceIsMonotone) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{})}) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{0.05}), AnyRegularizer(ElasticNet{0.02, 0})}) {
            const Trace trace = solve(tiny_problem(loss, g), Spdc{}, tolerance_of(1e-6)).trace;
            ASSERT_GE(trace.size(), 3U);
            EXPECT_EQ(trace.front().passes, 0);
            for (std::size_t k = 1; k < trace.size(); ++k) {
                const TracePoint &before = trace[k - 1], &now = trace[k];
                EXPECT_GT(now.passes, before.passes);
                EXPECT_GE(now.seconds, before.seconds);
                EXPECT_GE(now.seconds_solver, before.seconds_solver);
                EXPECT_LE(now.primal, before.primal);
                EXPECT_GE(now.dual, before.dual);
                EXPECT_LE(now.dual, now.primal);
                EXPECT_LE(now.seconds_solver, now.seconds);
            }
        }
    }
}

TEST(Solve, PassesCountRowUpdatesAndNotCertificates) {
    const Problem problem =
        problem_of({.solver = {}, .loss = Logistic{}, .penalty = {"", L2{1e-3}}, .storage = Storage::dense_double});
    int certificates = 0;
    SolveContext context;
    context.observer = [&](const TracePoint &) { return ++certificates > 0; };
    const Result result = solve(problem, Spdc{}, pass_limit_of(10), context);
    EXPECT_EQ(result.passes, 10);
    EXPECT_EQ(result.coordinates_touched, 10 * problem.nonzeros());
    EXPECT_GE(certificates, 10);
    EXPECT_EQ(static_cast<std::size_t>(certificates), result.trace.size());
    EXPECT_LE(result.seconds_solver, result.seconds);
    EXPECT_GE(result.seconds_solver, 0);
}

class OneVersusRest : public testing::Test {
  protected:
    static Problem make() {
        return {tiny_dataset({.task = Task::classification, .rows = 30, .columns = 5, .density = 0.8, .labels = 3}),
                Logistic{}, L2{0.05}, with_intercept(Intercept::free)};
    }
    const Problem problem_ = make();
};

TEST_F(OneVersusRest, GivesOneCertificatePerLabelAndReportsTheWorst) {
    const Result result = solve(problem_, Spdc{}, tolerance_of(1e-8));
    ASSERT_EQ(result.outputs, 3);
    ASSERT_EQ(result.certificates.size(), 3U);
    ASSERT_EQ(result.weights.size(), 15U);
    ASSERT_EQ(result.intercepts.size(), 3U);
    ASSERT_EQ(result.dual.size(), 90U);
    EXPECT_TRUE(result.converged());
    double worst = 0;
    for (std::size_t k = 0; k < 3; ++k) {
        Result single; // the k-th column of everything
        for (std::size_t j = 0; j < 5; ++j) single.weights.push_back(result.weights[3 * j + k]);
        for (std::size_t i = 0; i < 30; ++i) single.dual.push_back(result.dual[3 * i + k]);
        single.intercepts = {result.intercepts[k]};
        single.certificates = {result.certificates[k]};
        EXPECT_EQ(certificate_error(problem_.output(static_cast<std::int64_t>(k)), single), "") << "output " << k;
        EXPECT_LE(result.certificates[k].relative_gap, 1e-8);
        worst = std::max(worst, result.certificates[k].relative_gap);
    }
    EXPECT_EQ(result.worst().relative_gap, worst);
}

TEST_F(OneVersusRest, StopsAllOutputsWhenTheObserverAsksInOne) {
    SolveContext context;
    context.observer = [](const TracePoint &point) { return point.output != 1; };
    const Result result = solve(problem_, Spdc{}, tolerance_of(1e-8), context);
    EXPECT_EQ(result.stop_reason, StopReason::interrupted);
    EXPECT_LE(result.certificates[0].relative_gap, 1e-8);
    for (const std::int64_t output : {1, 2}) {
        const auto is_output = [&](const TracePoint &point) { return point.output == output; };
        EXPECT_EQ(std::count_if(result.trace.begin(), result.trace.end(), is_output), 1) << "output " << output;
        EXPECT_TRUE(std::isfinite(result.certificates[static_cast<std::size_t>(output)].primal));
    }
    EXPECT_GT(result.worst().relative_gap, 1e-8);
}

TEST_F(OneVersusRest, IsTheSameSideBySideOnThreads) {
    const Result alone = solve(problem_, Spdc{}, tolerance_of(1e-8));
    for (const int threads : {2, 3, 7}) {
        SolveContext context;
        context.threads = threads;
        std::vector<std::int64_t> seen(3, 0);
        context.observer = [&](const TracePoint &point) { return ++seen[static_cast<std::size_t>(point.output)] > 0; };
        const Result together = solve(problem_, Spdc{}, tolerance_of(1e-8), context);
        EXPECT_EQ(together.weights, alone.weights);
        EXPECT_EQ(together.intercepts, alone.intercepts);
        EXPECT_EQ(together.dual, alone.dual);
        EXPECT_EQ(together.passes, alone.passes);
        ASSERT_EQ(together.trace.size(), alone.trace.size());
        for (std::size_t k = 0; k < alone.trace.size(); ++k) { // output after output, as if alone
            EXPECT_EQ(together.trace[k].output, alone.trace[k].output);
            EXPECT_EQ(together.trace[k].gap, alone.trace[k].gap);
            --seen[static_cast<std::size_t>(alone.trace[k].output)];
        }
        EXPECT_EQ(seen, std::vector<std::int64_t>(3, 0));
        EXPECT_GE(together.seconds_solver, 0);
    }
}

TEST(Solve, RowWeightsEqualRepeatedRows) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Squared{}), AnyLoss(SmoothedHinge{})}) {
        TinyData weighted = tiny_data({.task = loss.task(), .rows = 24, .columns = 5, .density = 0.8}), repeated;
        for (std::size_t i = 0; i < weighted.rows.size(); ++i) {
            const std::size_t times = i % 4; // 0: as if absent
            weighted.weights.push_back(static_cast<double>(times));
            repeated.rows.insert(repeated.rows.end(), times, weighted.rows[i]);
            repeated.targets.insert(repeated.targets.end(), times, weighted.targets[i]);
        }
        const ProblemOptions options = with_intercept(Intercept::free);
        const Result a = solve({as_dataset(weighted), loss, L2{0.05}, options}, Spdc{}, tolerance_of(1e-12));
        const Result b = solve({as_dataset(repeated), loss, L2{0.05}, options}, Spdc{}, tolerance_of(1e-12));
        ASSERT_TRUE(a.converged() && b.converged()) << loss.name();
        EXPECT_NEAR(a.worst().primal, b.worst().primal, 2e-12) << loss.name();
        for (std::size_t j = 0; j < 5; ++j) EXPECT_NEAR(a.weights[j], b.weights[j], 2e-5) << loss.name();
        ASSERT_EQ(a.dual.size(), 24U);
        for (std::size_t i = 0; i < 24; i += 4) EXPECT_EQ(a.dual[i], 0) << "row " << i << " has weight zero";
        EXPECT_NE(a.dual[1], 0);
    }
}

TEST(Solve, PenalizedInterceptEqualsAColumnOfOnes) {
    for (const AnyRegularizer &g : {AnyRegularizer(L2{0.05}), AnyRegularizer(Box{0.02, 0.05, {-0.3, 0.4}})}) {
        TinyData data = tiny_data({.task = Task::classification, .rows = 24, .columns = 5, .density = 0.8});
        const Result intercept =
            solve({as_dataset(data), Logistic{}, g, with_intercept(Intercept::penalized)}, Spdc{}, tolerance_of(1e-12));
        for (auto &row : data.rows) row.push_back(1);
        const Result column = solve({as_dataset(data), Logistic{}, g}, Spdc{}, tolerance_of(1e-12));
        ASSERT_TRUE(intercept.converged() && column.converged());
        EXPECT_NEAR(intercept.worst().primal, column.worst().primal, 2e-12);
        ASSERT_EQ(intercept.intercepts.size(), 1U);
        EXPECT_NEAR(intercept.intercepts[0], column.weights[5], 1e-5);
        for (std::size_t j = 0; j < 5; ++j) EXPECT_NEAR(intercept.weights[j], column.weights[j], 1e-5);
        EXPECT_TRUE(column.intercepts.empty());
    }
}

/// 1 % positives among rows whose features lie around `centre`.
Problem imbalanced_problem(AnyLoss loss, double centre) {
    Random random(1);
    Rows rows;
    std::vector<double> targets;
    for (int i = 0; i < 400; ++i) {
        std::vector<double> row;
        for (int j = 0; j < 6; ++j) row.push_back(centre + random.normal());
        targets.push_back(i < 4 ? 1 : -1);
        if (targets.back() > 0) row[0] += 1;
        rows.push_back(std::move(row));
    }
    return make_problem(std::move(rows), std::move(targets), loss, L2{0.01}, with_intercept(Intercept::free));
}

TEST(Solve, CertifiesAFreeInterceptOnImbalancedAndUncentredData) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{})}) {
        for (const double centre : {0.0, 3.0, 30.0}) {
            const Problem problem = imbalanced_problem(loss, centre);
            const Result result = solve(problem, Spdc{}, tolerance_of(1e-8));
            ASSERT_TRUE(result.converged())
                << loss.name() << " centre " << centre << " " << result.worst().relative_gap;
            EXPECT_EQ(certificate_error(problem, result), "");
            const auto objective = [&](double intercept) {
                std::vector<double> x = result.weights;
                x.push_back(intercept);
                return -static_cast<double>(primal(dense_copy(problem), x));
            };
            const double best = golden_section(objective, -100, 100, 80);
            EXPECT_NEAR(result.intercepts[0], best, 1e-5) << loss.name() << " centre " << centre;
        }
    }
}

TEST(Solve, CertifiesUnscaledColumns) {
    Random random(1);
    Rows rows;
    std::vector<double> targets;
    for (int i = 0; i < 100; ++i) {
        std::vector<double> row;
        for (int j = 0; j < 6; ++j) row.push_back(random.normal());
        targets.push_back(row[1] + random.normal() > 0 ? 1 : -1);
        row[0] *= 1000;
        rows.push_back(std::move(row));
    }
    const Problem problem = make_problem(rows, targets, Logistic{}, L2{0.1});
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-6));
    EXPECT_TRUE(result.converged()) << result.passes << " passes, relative gap " << result.worst().relative_gap;
    EXPECT_EQ(certificate_error(problem, result), "");
}

TEST(Solve, CertifiesCountsInTheThousands) {
    Random random(1);
    Rows rows;
    std::vector<double> targets;
    for (int i = 0; i < 100; ++i) {
        std::vector<double> row;
        double score = 7;
        for (int j = 0; j < 5; ++j) row.push_back(random.normal());
        for (const double v : row) score += 0.4 * v;
        targets.push_back(std::floor(std::exp(score + 0.1 * random.normal())));
        rows.push_back(std::move(row));
    }
    for (const Intercept intercept : {Intercept::none, Intercept::free}) {
        const Problem problem = make_problem(rows, targets, Poisson{}, L2{1e-3}, with_intercept(intercept));
        const Result result = solve(problem, Spdc{}, tolerance_of(1e-6));
        EXPECT_TRUE(result.converged()) << result.passes << " passes, relative gap " << result.worst().relative_gap;
        EXPECT_EQ(certificate_error(problem, result), "");
    }
}

/// The message of the Error that solve() must throw.
std::string error_of(const Spdc &options, const Stopping &stopping = {}, int threads = 1) {
    SolveContext context;
    context.threads = threads;
    try {
        solve(tiny_problem(), options, stopping, context);
    } catch (const Error &error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
        return error.what();
    }
    return "no error";
}

template <class Options> Options with(const std::function<void(Options &)> &change) {
    Options options;
    change(options);
    return options;
}

TEST(SolveRefuses, OptionsOutOfRangeByName) {
    const double nan = std::nan("");
    const auto message = [](const std::function<void(Spdc &)> &change) { return error_of(with<Spdc>(change)); };
    const auto expect_names = [](const std::string &text, const std::string &field) {
        EXPECT_NE(text.find(field), std::string::npos) << text << " does not name " << field;
    };
    expect_names(message([](Spdc &o) { o.batch_size = 25; }), "batch-size = 25");
    expect_names(message([](Spdc &o) { o.batch_size = 0; }), "batch-size");
    for (const double alpha : {0.0, 1.0, 2.0, -1.0, nan}) {
        expect_names(message([&](Spdc &o) { o.alpha = alpha; }), "alpha");
    }
    for (const double value : {0.0, -1.0, nan}) {
        expect_names(message([&](Spdc &o) { o.step_scale = value; }), "step-scale");
        expect_names(message([&](Spdc &o) { o.tau = value; }), "tau");
        expect_names(message([&](Spdc &o) { o.sigma = value; }), "sigma");
    }
    expect_names(message([](Spdc &o) { o.theta = 1.5; }), "theta");
    expect_names(message([](Spdc &o) { o.perturbation = -1; }), "perturbation");
}

TEST(SolveRefuses, StoppingOutOfRangeByName) {
    for (const double value : {0.0, -1.0, std::nan("")}) {
        Stopping tolerance, passes, seconds;
        tolerance.tolerance = passes.max_passes = seconds.max_seconds = value;
        EXPECT_NE(error_of({}, tolerance).find("tolerance"), std::string::npos);
        EXPECT_NE(error_of({}, passes).find("max-passes"), std::string::npos);
        EXPECT_NE(error_of({}, seconds).find("max-seconds"), std::string::npos);
    }
}

TEST(SolveRefuses, FewerThanOneThread) {
    EXPECT_NE(error_of({}, {}, 0).find("threads = 0"), std::string::npos);
    EXPECT_NE(error_of({}, {}, -3).find("threads = -3"), std::string::npos);
}

TEST(SolveRefuses, AnUnknownSolverAndSuggestsTheNearest) {
    try {
        make_solver("spcd");
        FAIL() << "no error";
    } catch (const Error &error) {
        EXPECT_NE(std::string(error.what()).find("did you mean 'spdc'"), std::string::npos) << error.what();
    }
}

Start start_of(const Result &result) { return {result.weights, result.intercepts, result.dual}; }

/// Every solver on a problem that it takes, with each kind of intercept.
std::vector<Cell> cells_of_all_solvers() {
    std::vector<Cell> cells;
    for (const NamedSolver &solver : all_solvers()) {
        const bool wants_l1 = solver.name == "working_set";
        for (const Intercept intercept : all_intercepts) {
            const Penalty penalty = wants_l1 ? Penalty{"l1", ElasticNet{0.02, 0.01}} : Penalty{"l2", L2{0.05}};
            cells.push_back({solver, Logistic{}, penalty, intercept, Storage::csr_double, true});
        }
    }
    std::erase_if(cells, [](const Cell &cell) { // a free intercept is not for all
        try {
            solve(problem_of(cell), cell.solver.solver, pass_limit_of(1));
            return false;
        } catch (const Error &error) {
            EXPECT_TRUE(is_allowed(cell, error)) << error.what();
            return true;
        }
    });
    return cells;
}

TEST(SolveStarts, AtAPointThatIsGoodEnoughAndDoesNoMore) {
    for (const Cell &cell : cells_of_all_solvers()) {
        const Problem problem = problem_of(cell);
        const Result first = solve(problem, cell.solver.solver, tolerance_of(1e-7));
        const Start start = start_of(first);
        SolveContext context;
        context.start = &start;
        const Result again = solve(problem, cell.solver.solver, tolerance_of(1e-6), context);
        EXPECT_EQ(again.stop_reason, StopReason::gap_reached) << describe(cell);
        EXPECT_EQ(again.passes, 0) << describe(cell);
        expect_own_valid_gap(problem, again);
    }
}

TEST(SolveStarts, NearTheOptimumAndNeedsFewerPasses) {
    for (const Cell &cell : cells_of_all_solvers()) {
        const Problem problem = problem_of(cell);
        const Result cold = solve(problem, cell.solver.solver, tolerance_of(1e-9));
        Result near = cold;
        for (double &w : near.weights) w *= 1 + 1e-6;
        for (double &y : near.dual) y *= 1 + 1e-6;
        const Start start = start_of(near);
        SolveContext context;
        context.start = &start;
        const Result warm = solve(problem, cell.solver.solver, tolerance_of(1e-9), context);
        EXPECT_TRUE(warm.converged()) << describe(cell);
        EXPECT_LE(warm.passes, cold.passes) << describe(cell);
        if (cell.solver.name.starts_with("spdc") || cell.solver.name == "sdca") {
            EXPECT_LT(warm.passes, 0.8 * cold.passes) << describe(cell);
        }
        expect_own_valid_gap(problem, warm);
    }
}

/// The same problem with 64-bit columns.
template <class Value> Problem widened(const Problem &problem) {
    const auto &narrow = std::get<CsrMatrix<Value>>(problem.matrix());
    Dataset data;
    data.matrix = CsrMatrix<Value, std::int64_t>::own(narrow.cols(), {narrow.offsets().begin(), narrow.offsets().end()},
                                                      {narrow.columns().begin(), narrow.columns().end()},
                                                      {narrow.values().begin(), narrow.values().end()});
    data.targets.assign(problem.targets().begin(), problem.targets().end());
    return Problem(data, problem.loss(), problem.regularizer(), with_intercept(problem.intercept()));
}

TEST(Solve, GivesTheSameBitsWithColumnsOfAnyWidth) {
    for (const bool one_value : {false, true}) {
        for (const bool floats : {false, true}) {
            TinyData rows = tiny_data({});
            if (one_value) rows = with_one_value_a_row(std::move(rows));
            const Dataset data = as_dataset(std::move(rows), floats ? Storage::csr_float : Storage::csr_double);
            const Problem narrow(data, Logistic{}, L2{0.05});
            const Problem wide = floats ? widened<float>(narrow) : widened<double>(narrow);
            ASSERT_TRUE(is_wide(wide.matrix()));
            for (const std::string &solver : solver_names()) {
                if (solver == WorkingSet::name) continue; // needs an l1 penalty
                for (const bool copy : {true, false}) {
                    if (!copy && (solver == Newton::name || solver == Hybrid::name)) continue;
                    SCOPED_TRACE(solver + (copy ? "" : " without a copy"));
                    SolveContext context;
                    context.copy = copy;
                    const Result one = solve(narrow, make_solver(solver), pass_limit_of(20), context);
                    const Result two = solve(wide, make_solver(solver), pass_limit_of(20), context);
                    EXPECT_EQ(one.weights, two.weights);
                    EXPECT_EQ(one.dual, two.dual);
                    EXPECT_EQ(one.solver, two.solver);
                }
            }
            const Problem sparse = wide.with(ElasticNet{0.01, 0});
            EXPECT_EQ(solve(sparse, WorkingSet{}).weights,
                      solve(narrow.with(ElasticNet{0.01, 0}), WorkingSet{}).weights);
        }
    }
}

TEST(SolveStarts, FromWeightsAlone) {
    const Problem problem = tiny_problem(Hinge{}, L2{0.05}, Intercept::free);
    const Result first = solve(problem, Auto{}, tolerance_of(1e-8));
    const Start start{first.weights, first.intercepts, {}};
    SolveContext context;
    context.start = &start;
    const Result again = solve(problem, SpdcFast{}, tolerance_of(1e-6), context);
    EXPECT_TRUE(again.converged());
    EXPECT_NEAR(again.trace.front().primal, first.worst().primal, 1e-8);
    expect_own_valid_gap(problem, again);
}

TEST(SolveRefuses, AStartThatDoesNotFit) {
    const Problem problem = tiny_problem();
    const std::vector<double> one{1}, two{1, 2}, no_numbers(5, std::nan(""));
    for (const Start &start : {Start{two, {}, {}}, Start{{}, one, {}}, Start{{}, {}, two}, Start{no_numbers, {}, {}}}) {
        SolveContext context;
        context.start = &start;
        EXPECT_THROW(solve(problem, Auto{}, {}, context), Error);
    }
}

TEST(SolveWithoutACopy, ReachesTheSameOptimumOnEveryStorage) {
    SolveContext context;
    context.copy = false;
    for (const Storage storage :
         {Storage::csr_float, Storage::csr_double, Storage::dense_float, Storage::dense_double}) {
        for (const char *solver : {"auto", "spdc_fast", "sdca", "newton_cg", "hybrid", "spdc"}) {
            const Cell cell{
                {solver, make_solver(solver)}, Logistic{}, {"l2", L2{0.05}}, Intercept::free, storage, true};
            const Problem problem = problem_of(cell);
            const Result result = solve(problem, cell.solver.solver, tolerance_of(1e-8), context);
            EXPECT_TRUE(result.converged()) << describe(cell);
            EXPECT_NE(result.solver, "newton") << describe(cell);
            expect_own_valid_gap(problem, result);
            const Result twin = solve(problem, Newton{}, tolerance_of(1e-10));
            EXPECT_NEAR(result.worst().primal, twin.worst().primal, 1e-8) << describe(cell);
        }
    }
}

// Rows of weight zero, which a copy leaves out, stay where they are and change nothing, whatever their targets: every solver that needs
// no copy finds the optimum of the other rows.
TEST(SolveWithoutACopy, RowsOfWeightZeroStayAndCountForNothing) {
    int solved = 0;
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{}), AnyLoss(Squared{}), AnyLoss(Poisson{})}) {
        TinyData data = tiny_data({.task = loss.task(), .weighted = true}), kept;
        for (std::size_t i = 0; i < data.rows.size(); ++i) {
            if (i % 3 == 0) {
                data.weights[i] = 0;
                data.targets[i] = -7;
                continue;
            }
            kept.rows.push_back(data.rows[i]);
            kept.targets.push_back(data.targets[i]);
            kept.weights.push_back(data.weights[i]);
        }
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            ProblemOptions options;
            options.intercept = intercept;
            const Problem without(as_dataset(kept), loss, L2{0.05}, options);
            const Result expected = solve(without, Newton{}, {.tolerance = 1e-9});
            options.copy = false;
            SolveContext context;
            context.copy = false;
            for (const std::string &name : solver_names()) {
                SCOPED_TRACE(name + ", " + std::string(loss.name()) + ", " + std::string(to_string(intercept)));
                const Problem with(as_dataset(data), loss, L2{0.05}, options);
                ASSERT_EQ(with.rows(), static_cast<std::int64_t>(data.rows.size()));
                try {
                    const Result result = solve(with, make_solver(name), {.tolerance = 1e-6}, context);
                    EXPECT_TRUE(result.converged()) << to_string(result.stop_reason);
                    EXPECT_NEAR(result.worst().primal, expected.worst().primal,
                                2e-6 * std::fabs(expected.worst().primal));
                    ++solved;
                } catch (const Error &error) {
                    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
                }
            }
        }
    }
    EXPECT_GT(solved, 80);
}

/// Sparse rows whose columns differ in size, so that first-order methods are slow.
Dataset unlike_columns(double span) {
    Random random(3);
    TinyData data;
    for (int i = 0; i < 600; ++i) {
        std::vector<double> row(100);
        double z = random.normal();
        for (int k = 0; k < 10; ++k) {
            const std::int64_t j = random.index(100);
            row[static_cast<std::size_t>(j)] = std::pow(10, span * (static_cast<double>(j) / 50 - 1)) * random.normal();
            z += row[static_cast<std::size_t>(j)] * (j % 2 == 0 ? 1 : -1);
        }
        data.rows.push_back(row);
        data.targets.push_back(z > 0 ? 1 : -1);
    }
    return as_dataset(data);
}

// The methods follow one another, each from the best point so far.
TEST(SolveWithoutACopy, AutoLeavesAMethodAndGoesBackToIt) {
    SolveContext context;
    context.copy = false;
    int left = 0, went_back = 0;
    for (const double span : {3.0, 4.0}) {
        const Dataset data = unlike_columns(span);
        for (const AnyLoss &loss : {AnyLoss(SquaredHinge{}), AnyLoss(SmoothedHinge{})}) {
            const Problem problem(data, loss, L2{1e-8});
            const Result result = solve(problem, Auto{}, tolerance_of(1e-5), context);
            EXPECT_TRUE(result.converged()) << loss.name() << ", " << result.solver_reason;
            expect_own_valid_gap(problem, result);
            const double optimum = solve(problem, Newton{}, tolerance_of(1e-9)).worst().primal;
            EXPECT_NEAR(result.worst().primal, optimum, 1e-5 * std::fabs(optimum)) << loss.name();
            const auto earlier = [](const TracePoint &a, const TracePoint &b) { return a.passes < b.passes; };
            EXPECT_TRUE(std::is_sorted(result.trace.begin(), result.trace.end(), earlier));
            left += result.solver_reason.find("too little progress") != std::string::npos ? 1 : 0;
            went_back += result.solver_reason.find("went back") != std::string::npos ? 1 : 0;
        }
    }
    EXPECT_GE(left, 2);
    EXPECT_GE(went_back, 1);
}

TEST(SolveWithoutACopy, RefusesSolversThatNeedOne) {
    SolveContext context;
    context.copy = false;
    EXPECT_THROW(solve(tiny_problem(), Newton{}, {}, context), Error);
    EXPECT_THROW(solve(tiny_problem(Squared{}, ElasticNet{0.02, 0}), WorkingSet{}, {}, context), Error);
    SpdcFast fast;
    fast.owners = 2;
    EXPECT_THROW(solve(tiny_problem(), fast, {}, context), Error);
    EXPECT_EQ(solve(tiny_problem(Squared{}, ElasticNet{0.02, 0}), Auto{}, {}, context).solver, "spdc");
}

} // namespace
} // namespace spdc::tests
