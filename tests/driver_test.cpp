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

/// Idle, with a guess of its gap that does not change.
class Guessing final : public Idle {
  public:
    Guessing(const Problem &problem, double guess) : Idle(problem), guess_(guess) {}
    double estimated_gap() const override { return guess_; }

  private:
    double guess_;
};

class Drive : public testing::Test {
  protected:
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
    Interrupt interrupt_{context_};
    Driver driver_{problem_, certifier_, stopping_, interrupt_, clock_, 0, trace_};
};

TEST_F(Drive, LeavesASlowMethodAndGoesOnWithTheNext) {
    Idle idle(problem_);
    const Outcome first = driver_.run(idle, "idle", 30);
    EXPECT_EQ(first.reason, StopReason::not_run);
    EXPECT_GE(first.passes, 100);
    EXPECT_LE(first.passes, 150);
    const auto newton = make_method(problem_, Newton{}, context_);
    const Outcome second = driver_.run(*newton, "newton");
    EXPECT_EQ(second.reason, StopReason::gap_reached);
    EXPECT_GT(second.passes, first.passes); // counted on
    EXPECT_GE(second.seconds_certifying, first.seconds_certifying);
    EXPECT_EQ(trace_.front().solver, "idle");
    EXPECT_EQ(trace_.back().solver, "newton");
}

TEST_F(Drive, KeepsASlowMethodThatNobodyOrSomethingSlowerFollows) {
    for (const std::optional<double> successor : {std::optional<double>(), std::optional<double>(infinity)}) {
        Idle idle(problem_);
        Driver driver(problem_, certifier_, stopping_, interrupt_, clock_, 0, trace_);
        const Outcome outcome = driver.run(idle, "idle", successor);
        EXPECT_GT(outcome.passes, 5000);
        EXPECT_EQ(outcome.reason,
                  successor ? StopReason::not_run : StopReason::stalled); // it stands still: a breakdown
    }
    const auto slow = make_method(problem_, Spdc{}, context_);
    EXPECT_EQ(driver_.run(*slow, "spdc", 1e9).reason, StopReason::gap_reached);
}

TEST_F(Drive, TakesUpAMethodWhereItWasLeft) {
    Spdc careful; // slow, but it gets there
    careful.step_scale = 0.01;
    const auto slow = make_method(problem_, careful, context_);
    const Outcome left = driver_.run(*slow, "spdc", 1.0, {.passes = 3});
    ASSERT_EQ(left.reason, StopReason::not_run);
    EXPECT_LT(left.remaining, infinity);
    EXPECT_DOUBLE_EQ(left.passes, slow->passes());
    Idle idle(problem_);
    const double waited = driver_.run(idle, "idle", left.remaining).passes;
    EXPECT_DOUBLE_EQ(waited, left.passes + idle.passes());
    const Outcome end = driver_.run(*slow, "spdc");
    EXPECT_EQ(end.reason, StopReason::gap_reached);
    EXPECT_DOUBLE_EQ(end.passes, slow->passes() + idle.passes());
}

TEST_F(Drive, LeavesAMethodThatDiverges) {
    Idle diverging(problem_, 1e15);
    EXPECT_EQ(driver_.run(diverging, "idle", infinity).reason, StopReason::not_run);
    EXPECT_EQ(driver_.run(diverging, "idle").reason, StopReason::numerical_failure);
}

TEST_F(Drive, WaitsForAGuessThatIsFarOffAndForNoOther) {
    stopping_.max_passes = 24;
    const auto certificates = [&](double guess) {
        trace_.clear();
        Driver driver(problem_, certifier_, stopping_, interrupt_, clock_, 0, trace_);
        Guessing method(problem_, guess);
        driver.run(method, "guessing");
        return trace_.size();
    };
    EXPECT_EQ(certificates(1), 2); // at the start and at the end
    EXPECT_EQ(certificates(infinity), 2);
    for (const double none : {0.0, -1e-20, std::nan("")}) EXPECT_EQ(certificates(none), 25) << none;
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
    Driver driver(problem, certifier, stopping_, interrupt_, clock_, 0, trace_);
    driver.run(*same, "spdc_fast");
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
