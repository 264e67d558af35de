// One panel of the paper's figure 1, quick enough for every build: ridge regression on rows with covariance diag(j^-2) at l2 = 1e-6. Fails when the order of the
// methods breaks: how many passes each needs until P(x) - P* is 1e-6 of where it started.
#include "spdc/solvers.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spdc::tests {
namespace {

constexpr int size = 500; // rows, and features
constexpr double l2 = 1e-6;

Problem figure1_problem() {
    Random random(1);
    TinyData data;
    for (int i = 0; i < size; ++i) {
        std::vector<double> row;
        double target = random.normal();
        for (int j = 1; j <= size; ++j) {
            row.push_back(random.normal() / j);
            target += row.back();
        }
        data.rows.push_back(std::move(row));
        data.targets.push_back(target);
    }
    return {as_dataset(std::move(data), Storage::dense_double), Squared{}, L2{l2}};
}

class Figure1 : public testing::Test {
  protected:
    /// Passes until P(x) - P* <= 1e-6 (P(0) - P*), or infinity if that took more than `limit`.
    double passes(const AnySolver &solver, double limit) const {
        const double start = problem_.primal(std::vector<double>(size, 0.0)), wanted = 1e-6 * (start - optimum_);
        double found = infinity;
        SolveContext context;
        context.full_trace = true;
        context.observer = [&](const TracePoint &point) {
            if (point.primal - optimum_ > wanted) return true;
            found = std::min(found, point.passes);
            return false;
        };
        solve(problem_, solver, {.tolerance = 1e-14, .max_passes = limit}, context);
        return found;
    }
    static Spdc spdc(Sampling sampling, double step_scale) {
        Spdc options;
        options.sampling = sampling;
        options.step_scale = step_scale;
        return options;
    }

    const Problem problem_ = figure1_problem();
    const double optimum_ = solve(problem_, Newton{}, {.tolerance = 1e-13}).worst().dual;
};

TEST_F(Figure1, SpdcWithSafeStepsComesBeforeTheAcceleratedGradientAndSdca) {
    const double safe = passes(spdc(Sampling::uniform, 0.5), 5000);
    ASSERT_LT(safe, infinity);
    EXPECT_EQ(passes(AcceleratedGradient{}, safe), infinity);
    EXPECT_EQ(passes(Sdca{}, safe), infinity);
}

TEST_F(Figure1, SpdcWithThePrintedStepsComesBeforeLbfgs) {
    const double printed = passes(spdc(Sampling::uniform, 1), 5000);
    ASSERT_LT(printed, infinity);
    EXPECT_EQ(passes(Lbfgs{}, printed), infinity);
}

TEST_F(Figure1, WeightedSamplingComesBeforeUniform) {
    for (const double step_scale : {0.5, 1.0}) {
        const double weighted = passes(spdc(Sampling::weighted, step_scale), 5000);
        ASSERT_LT(weighted, infinity);
        EXPECT_EQ(passes(spdc(Sampling::uniform, step_scale), weighted), infinity) << step_scale;
    }
}

} // namespace
} // namespace spdc::tests
