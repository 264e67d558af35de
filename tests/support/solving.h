// Problems and calls that the tests of solve() share.
#pragma once

#include "solver_matrix.h"
#include "spdc/solvers.h"

#include <gtest/gtest.h>

namespace spdc::tests {

inline Problem tiny_problem(AnyLoss loss = Logistic{}, AnyRegularizer g = L2{0.05},
                            Intercept intercept = Intercept::none) {
    return problem_of({.solver = {}, .loss = loss, .penalty = {"", g}, .intercept = intercept});
}

inline ProblemOptions with_intercept(Intercept intercept) {
    ProblemOptions options;
    options.intercept = intercept;
    return options;
}

inline Stopping tolerance_of(double tolerance) {
    Stopping stopping;
    stopping.tolerance = tolerance;
    return stopping;
}

inline Stopping pass_limit_of(double passes) {
    Stopping stopping = tolerance_of(1e-14);
    stopping.max_passes = passes;
    return stopping;
}

/// What every result must hold, however it ended: a certificate that the oracle confirms, of the best point of the trace.
inline void expect_own_valid_gap(const Problem &problem, const Result &result) {
    EXPECT_EQ(certificate_error(problem, result), "") << to_string(result.stop_reason);
    ASSERT_FALSE(result.trace.empty());
    for (const TracePoint &point : result.trace) EXPECT_GE(point.primal, result.worst().primal);
    EXPECT_EQ(result.trace.back().primal, result.worst().primal);
    EXPECT_EQ(result.trace.back().relative_gap, result.worst().relative_gap);
    EXPECT_EQ(result.message.empty(), result.converged() || result.stop_reason == StopReason::interrupted);
}

} // namespace spdc::tests
