// solve(): when and how a run ends, and what it hands back then.
#include "support/solving.h"

#include <atomic>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

namespace spdc::tests {
namespace {

/// A context whose observer stops the run at its n-th point.
SolveContext stop_at_point(int n) {
    SolveContext context;
    context.observer = [seen = 0, n](const TracePoint &) mutable { return ++seen < n; };
    return context;
}

/// Separable by its only feature, which nothing penalises.
Problem separable_problem() { return make_problem({{1}, {2}, {-1}, {-3}}, {1, 1, -1, -1}, Logistic{}, L2{0}); }

TEST(SolveStops, WhenTheGapIsReached) {
    const Problem problem = tiny_problem();
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-6));
    EXPECT_EQ(result.stop_reason, StopReason::gap_reached);
    EXPECT_TRUE(result.converged());
    EXPECT_LE(result.worst().relative_gap, 1e-6);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, AtThePassLimit) {
    const Problem problem = tiny_problem();
    const Result result = solve(problem, Spdc{}, pass_limit_of(2));
    EXPECT_EQ(result.stop_reason, StopReason::pass_limit);
    EXPECT_FALSE(result.converged());
    EXPECT_EQ(result.passes, 2);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, LessThanOneBatchAfterThePassLimit) {
    for (const AnyRegularizer &g : {AnyRegularizer(L2{0.05}), AnyRegularizer(ElasticNet{0.02, 0})}) {
        Spdc options;
        options.batch_size = 22; // of 24 rows
        const Result result = solve(tiny_problem(Hinge{}, g), options, pass_limit_of(50));
        EXPECT_EQ(result.stop_reason, StopReason::pass_limit);
        EXPECT_GE(result.passes, 50);
        EXPECT_LT(result.passes, 51);
    }
}

TEST(SolveStops, AtTheTimeLimit) {
    const Problem problem = tiny_problem();
    Stopping stopping = tolerance_of(1e-14);
    stopping.max_seconds = 1e-9;
    const Result result = solve(problem, Spdc{}, stopping);
    EXPECT_EQ(result.stop_reason, StopReason::time_limit);
    EXPECT_FALSE(result.converged());
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, WhenTheFlagIsSet) {
    const Problem problem = tiny_problem();
    std::atomic<bool> flag{false};
    SolveContext context;
    context.interrupt = &flag;
    context.observer = [&](const TracePoint &point) {
        if (point.passes >= 3) flag = true;
        return true;
    };
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-14), context);
    EXPECT_EQ(result.stop_reason, StopReason::interrupted);
    EXPECT_GE(result.passes, 3);
    EXPECT_LE(result.passes, 4);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, AtOnceWhenTheFlagWasSetBefore) {
    const Problem problem = tiny_problem();
    const std::atomic<bool> flag{true};
    SolveContext context;
    context.interrupt = &flag;
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-14), context);
    EXPECT_EQ(result.stop_reason, StopReason::interrupted);
    EXPECT_EQ(result.passes, 0);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, WhenTheObserverAsks) {
    const Problem problem = tiny_problem();
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-14), stop_at_point(5));
    EXPECT_EQ(result.stop_reason, StopReason::interrupted);
    EXPECT_EQ(result.trace.size(), 5U);
    EXPECT_GT(result.worst().gap, 0);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, WithGapReachedWhenTheObserverAsksAtThatVeryPoint) {
    SolveContext context;
    context.observer = [](const TracePoint &point) { return point.relative_gap > 1e-3; };
    EXPECT_EQ(solve(tiny_problem(), Spdc{}, tolerance_of(1e-3), context).stop_reason, StopReason::gap_reached);
}

TEST(SolveStops, OnSeparableDataWithoutPenaltyBecauseThereIsNoMinimizer) {
    const Result result = solve(separable_problem());
    EXPECT_EQ(result.stop_reason, StopReason::no_minimizer);
    EXPECT_FALSE(result.converged());
    EXPECT_NE(result.message.find("add a penalty"), std::string::npos) << result.message;
    expect_own_valid_gap(separable_problem(), result);
}

TEST(SolveStops, OnSeparableDataWithAFreeInterceptBecauseThereIsNoMinimizer) {
    const Problem problem =
        make_problem({{1, 2}, {-1, 1}, {2, 3}}, {1, -1, 1}, Logistic{}, L2{0}, with_intercept(Intercept::free));
    EXPECT_EQ(solve(problem).stop_reason, StopReason::no_minimizer);
}

TEST(SolveStops, OnCountsThatAreAllZeroBecauseThereIsNoMinimizer) {
    const Problem problem =
        make_problem({{1}, {2}, {0.5}}, {0, 0, 0}, Poisson{}, L2{0.1}, with_intercept(Intercept::free));
    EXPECT_EQ(solve(problem).stop_reason, StopReason::no_minimizer);
}

TEST(SolveStops, WithAMinimizerOnSeparableDataWithPenalty) {
    const Problem problem = make_problem({{1}, {2}, {-1}, {-3}}, {1, 1, -1, -1}, Logistic{}, L2{1e-3});
    EXPECT_EQ(solve(problem).stop_reason, StopReason::gap_reached);
}

TEST(SolveStops, WithNumericalFailureWhenStepsDiverge) {
    const Problem problem = tiny_problem(Squared{});
    Spdc scaled, overridden;
    scaled.step_scale = 1e8;
    overridden.tau = 1e300;
    overridden.sigma = 1e300;
    for (const Spdc &options : {scaled, overridden}) {
        const Result result = solve(problem, options, tolerance_of(1e-8));
        EXPECT_EQ(result.stop_reason, StopReason::numerical_failure);
        EXPECT_LE(result.worst().primal, problem.primal(std::vector<double>(5, 0.0)))
            << "a point before the best was kept";
        expect_own_valid_gap(problem, result);
    }
}

TEST(SolveStops, AsStalledWhenRoundingAllowsNoSmallerGap) {
    const Problem problem = tiny_problem();
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-300));
    EXPECT_EQ(result.stop_reason, StopReason::stalled);
    EXPECT_LE(result.worst().relative_gap, 1e-14);
    expect_own_valid_gap(problem, result);
}

TEST(SolveStops, WhenThePointObserverAsksAndShowsItTheBestPoint) {
    const Problem problem = tiny_problem(Logistic{}, L2{0.05}, Intercept::free);
    std::vector<double> last;
    SolveContext context;
    context.point_observer = [&](const TracePoint &, std::span<const double> x) {
        last.assign(x.begin(), x.end());
        return false;
    };
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-10), context);
    EXPECT_EQ(result.stop_reason, StopReason::interrupted);
    EXPECT_EQ(result.trace.size(), 1);
    EXPECT_EQ(std::vector<double>(last.begin(), last.end() - 1), result.weights);
    EXPECT_EQ(last.back(), result.intercepts.front());
}

TEST(SolveStops, WhenItsFunctionSaysSo) {
    SolveContext context;
    context.stop = [asked = 0]() mutable { return ++asked > 3; };
    EXPECT_EQ(solve(tiny_problem(), Spdc{}, tolerance_of(1e-15), context).stop_reason, StopReason::interrupted);
}

/// Certified from scratch, whatever was half done when the run was broken off.
TEST(SolveStops, AtAnyMomentWithAPointAndItsOwnGap) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{})}) {
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            const Problem problem = tiny_problem(loss, L2{1e-3}, intercept);
            for (const char *solver : {"newton", "newton_cg", "lbfgs", "spdc_fast", "auto"}) {
                if (loss.name() == Hinge::name &&
                    (solver == std::string("newton_cg") || solver == std::string("lbfgs")))
                    continue;
                StopReason reason = StopReason::interrupted;
                for (int moment = 1; reason == StopReason::interrupted; moment += 1 + moment / 8) {
                    int asked = 0;
                    SolveContext context;
                    context.presolve = Presolve::on;
                    context.stop = [&] { return ++asked >= moment; };
                    const Result result = solve(problem, make_solver(solver), tolerance_of(1e-9), context);
                    reason = result.stop_reason;
                    SCOPED_TRACE(solver + std::string(", asked ") + std::to_string(asked) + " times");
                    ASSERT_TRUE(reason == StopReason::interrupted || reason == StopReason::gap_reached);
                    EXPECT_TRUE(std::isfinite(result.worst().relative_gap));
                    expect_own_valid_gap(problem, result);
                }
            }
        }
    }
}

/// Seconds of this thread: others that want its core do not count.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// No stretch of a run is long beside the others: all of it can be interrupted, whatever the solver is at.
TEST(SolveStops, WhateverTheSolverIsAt) {
    const Dataset data =
        as_dataset(tiny_data({Task::classification, 3000, 300, 0.9, 2, false, 1}), Storage::dense_float);
    ProblemOptions options;
    options.intercept = Intercept::penalized;
    constexpr double allowed = 0.4; // a few hundredths on a quiet machine
    for (const std::string &solver : solver_names()) {
        const AnyRegularizer g =
            solver == "working_set" ? AnyRegularizer(ElasticNet{1e-3, 1e-4}) : AnyRegularizer(L2{1e-6});
        const Problem problem(data, Logistic{}, g, options);
        double best = 1; // of up to three runs: a stretch that cannot be interrupted is long in all of them
        for (int run = 0; run < 3 && best > allowed; ++run) {
            SolveContext context;
            const double start = thread_seconds();
            double last = start, longest = 0;
            context.stop = [&] {
                const double now = thread_seconds();
                longest = std::max(longest, now - last);
                last = now;
                return false;
            };
            solve(problem, make_solver(solver), pass_limit_of(8), context);
            best = std::min(best, longest / (thread_seconds() - start));
        }
        EXPECT_LE(best, allowed) << solver;
    }
}

TEST(SolveStops, WithTheWeightsItStartedFromIfInterruptedAtOnce) {
    const Problem problem = tiny_problem();
    const std::vector<double> weights(static_cast<std::size_t>(problem.features()), 0.25);
    const Start start{weights, {}, {}};
    const std::atomic<bool> flag{true};
    SolveContext context;
    context.interrupt = &flag;
    context.start = &start;
    const Result result = solve(problem, Spdc{}, tolerance_of(1e-14), context);
    EXPECT_EQ(result.weights, weights);
    expect_own_valid_gap(problem, result);
}

} // namespace
} // namespace spdc::tests
