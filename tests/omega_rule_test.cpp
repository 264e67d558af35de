// How omega moves: by the decay of the moves, below 1 near the end of a loss with kinks, and on tall data.
#include "solvers/spdc_fast.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spdc::tests {
namespace {

/// Sweeps whose moves do not decay, until omega changes or is to be told the gap.
int flat_sweeps(OmegaRule &rule) {
    for (int sweep = 1; sweep <= 1000; ++sweep) {
        if (rule.next(1.0, 1) || rule.asks_for_gap()) return sweep;
    }
    return 1000;
}

TEST(OmegaRule, GoesBelowOneWithKinksNearTheEndAndStartsOver) {
    OmegaRule rule(6, {}, 0, false);
    while (rule.omega() > 1) flat_sweeps(rule);
    EXPECT_EQ(flat_sweeps(rule), 60);
    rule.tell(0.5, 1); // far from the optimum: it is too early
    EXPECT_FALSE(rule.asks_for_gap());
    flat_sweeps(rule);
    EXPECT_TRUE(rule.asks_for_gap());
    EXPECT_EQ(rule.omega(), 1);
    rule.tell(1e-4, 1);
    for (const double omega : {1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1., 1. / 2}) {
        flat_sweeps(rule);
        EXPECT_EQ(rule.omega(), omega);
    }
}

TEST(OmegaRule, StaysAtOneWithoutKinksAndWhereMovesDecay) {
    OmegaRule smooth(6, {}, 1, false), decaying(6, {}, 0, false);
    while (smooth.omega() > 1) flat_sweeps(smooth);
    while (decaying.omega() > 1) flat_sweeps(decaying);
    EXPECT_EQ(flat_sweeps(smooth), 1000);
    for (int sweep = 0; sweep < 500; ++sweep) decaying.next(std::exp(-0.1 * sweep), 1);
    EXPECT_FALSE(decaying.asks_for_gap());
    EXPECT_EQ(smooth.omega(), 1);
    EXPECT_EQ(decaying.omega(), 1);
}

TEST(OmegaRule, OnItsWayDownGoesFromBelowTwoToOneUnlessThereAreKinks) {
    for (const double gamma : {0., 1.}) {
        OmegaRule rule(6, {}, gamma, false); // at 3, where it promises 0.68 nats a sweep
        for (int sweep = 0; rule.omega() == 3 && sweep < 10; ++sweep) rule.next(std::exp(-0.2 * sweep), 1);
        EXPECT_NEAR(rule.omega(), gamma == 0 ? 3 * std::sqrt(0.2 / 0.682) : 1, 0.01);
    }
}

/// Where it ends on tall data whose moves decay at a rate that depends on omega and on the sweeps since it changed, and hardly above 1.
template <class Rate> double end_of_descent(double gamma, Rate &&rate) {
    OmegaRule rule(12, {}, gamma, true);
    double log_moved = 0;
    for (int sweep = 0, since = 0; sweep < 300; ++sweep, ++since) {
        log_moved -= rule.omega() > 1 ? 0.01 : rate(rule.omega(), since);
        if (rule.next(std::exp(log_moved), 1)) since = 0;
    }
    return rule.omega();
}

TEST(OmegaRule, DescendsOnTallDataWhereMovesDecayFasterThere) {
    for (const double gamma : {0., 1.}) {
        EXPECT_EQ(end_of_descent(gamma, [](double omega, int) { return 0.1 * omega; }), 1);
        EXPECT_EQ(end_of_descent(gamma, [](double omega, int) { return omega > 0.2 ? 0.1 / omega : 0.1; }), 1. / 3);
        EXPECT_EQ(end_of_descent(gamma, [](double omega, int) { return 0.1 / omega; }), 1. / 9);
        // what a change makes decays fast, the rest slower than before
        const auto settling = [](double omega, int since) { return omega == 1 ? 0.05 : (since < 12 ? 0.5 : 0.02); };
        EXPECT_EQ(end_of_descent(gamma, settling), 1);
    }
}

// Moves that hardly decay, or grow: what is measured then is noise, and no reason for a lower omega.
TEST(OmegaRule, DoesNotDescendOnNoise) {
    for (const double gamma : {0., 1.}) {
        for (const double rate : {0.0, -0.002}) {
            EXPECT_EQ(end_of_descent(gamma, [=](double omega, int) { return omega < 1 ? rate + 0.003 : rate; }), 1);
        }
    }
}

// On tall data omega changes near the end only after a quarter of all passes so far; passes count, not sweeps over the few rows that are left.
TEST(OmegaRule, ChangesSeldomOnTallDataWithKinks) {
    const auto passes_between = [](bool is_tall) {
        OmegaRule rule(6, {}, 0, is_tall);
        for (int sweep = 0; sweep < 400; ++sweep) rule.next(1.0, 1); // far from the end: nobody tells a gap
        while (!rule.asks_for_gap()) rule.next(1.0, 0.1);
        rule.tell(1e-4, 1);
        double passes = 0;
        while (!rule.next(1.0, 0.1)) {
        }
        for (passes = 0.1; !rule.next(1.0, 0.1);) passes += 0.1;
        return passes;
    };
    EXPECT_LT(passes_between(false), 20);
    EXPECT_GT(passes_between(true), 90);
}

} // namespace
} // namespace spdc::tests
