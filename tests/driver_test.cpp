// How a run passes from one method to the next, and what the trace says about it.
#include "driver.h"
#include "solvers/methods.h"
#include "support/solver_matrix.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

/// Claims passes and stays where it is.
class Idle : public Method {
  public:
    explicit Idle(const Problem &problem, double per_pass = 0) : problem_(problem), per_pass_(per_pass) {}
    void advance(double passes) override { passes_ += passes; }
    double passes() const override { return passes_; }
    void point(std::vector<double> &x, std::vector<double> &y) override {
        x.assign(static_cast<std::size_t>(problem_.dimension()), per_pass_ * passes_);
        y.assign(static_cast<std::size_t>(problem_.rows()), 0.0);
    }

  private:
    const Problem &problem_;
    double per_pass_, passes_ = 0;
};

class Drive : public testing::Test {
  protected:
    Outcome run(Method &method, Driver::Leave leave) { return driver_.run(method, "idle", leave); }

    const Problem problem_ = problem_of({.solver = {}, .loss = Logistic{}, .penalty = {"", L2{0.05}}});
    Certifier certifier_{problem_};
    Stopping stopping_ = [] {
        Stopping stopping;
        stopping.tolerance = 1e-9;
        stopping.max_passes = 20000;
        return stopping;
    }();
    SolveContext context_;
    Clock clock_;
    Trace trace_;
    Driver driver_{problem_, certifier_, stopping_, context_, clock_, 0, trace_};
};

TEST_F(Drive, LeavesASlowMethodAndGoesOnWithTheNext) {
    Idle idle(problem_);
    const Outcome first = run(idle, Driver::Leave::slow);
    EXPECT_EQ(first.reason, StopReason::not_run);
    EXPECT_GE(first.passes, 100);
    EXPECT_LE(first.passes, 150);
    const auto newton = make_method(problem_, Newton{}, context_);
    const Outcome second = driver_.run(*newton, "newton", Driver::Leave::never);
    EXPECT_EQ(second.reason, StopReason::gap_reached);
    EXPECT_GT(second.passes, first.passes); // counted on
    EXPECT_GE(second.seconds_certifying, first.seconds_certifying);
    EXPECT_EQ(trace_.front().solver, "idle");
    EXPECT_EQ(trace_.back().solver, "newton");
}

TEST_F(Drive, KeepsASlowMethodThatNobodyFollows) {
    for (const Driver::Leave leave : {Driver::Leave::never, Driver::Leave::broken}) {
        Idle idle(problem_);
        Driver driver(problem_, certifier_, stopping_, context_, clock_, 0, trace_);
        const Outcome outcome = driver.run(idle, "idle", leave);
        EXPECT_GT(outcome.passes, 5000);
        EXPECT_EQ(outcome.reason, leave == Driver::Leave::never ? StopReason::stalled : StopReason::not_run);
    }
}

TEST_F(Drive, LeavesAMethodThatDiverges) {
    Idle diverging(problem_, 1e15);
    EXPECT_EQ(run(diverging, Driver::Leave::broken).reason, StopReason::not_run);
    EXPECT_EQ(run(diverging, Driver::Leave::never).reason, StopReason::numerical_failure);
}

TEST_F(Drive, PutsEveryChangeOfOmegaIntoTheTrace) {
    // badly conditioned, so that omega starts at Omega/2 and has to move
    const Problem problem = problem_of({.solver = {}, .loss = Logistic{}, .penalty = {"", L2{1e-6}}});
    const auto method = make_method(problem, SpdcFast{}, context_);
    std::vector<double> values{method->omega()};
    while (values.size() < 4) {
        method->advance(1);
        for (const Method::OmegaChange &change : method->take_omega_changes()) {
            EXPECT_NE(change.omega, values.back());
            EXPECT_LE(change.passes, method->passes());
            values.push_back(change.omega);
        }
        EXPECT_EQ(method->omega(), values.back());
    }
    const auto same = make_method(problem, SpdcFast{}, context_);
    Certifier certifier(problem);
    Driver driver(problem, certifier, stopping_, context_, clock_, 0, trace_);
    driver.run(*same, "spdc_fast", Driver::Leave::never);
    std::vector<double> seen;
    for (const TracePoint &point : trace_) {
        if (seen.empty() || seen.back() != point.omega) seen.push_back(point.omega);
    }
    ASSERT_GE(seen.size(), values.size());
    seen.resize(values.size());
    EXPECT_EQ(seen, values);
}

} // namespace
} // namespace spdc::tests
