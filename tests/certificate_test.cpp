// The certificate against its definition, recomputed in long double from the points it kept.
#include "spdc/certificate.h"
#include "spdc/solvers.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace spdc::tests {
namespace {

std::vector<double> copy(std::span<const double> values) { return {values.begin(), values.end()}; }

ProblemOptions with_intercept(Intercept intercept) {
    ProblemOptions options;
    options.intercept = intercept;
    return options;
}

/// D(y) in long double. Where g_j* is infinite because nothing penalises x_j on that side, x_j is held to a radius of
/// 10 max(1, |x_j|) as the certificate says; an l1 that is missed by rounding alone counts as met.
long double bounded_dual(const DenseProblem &p, const std::vector<double> &y, const std::vector<double> &x) {
    const std::vector<double> u = combine(p, y);
    long double losses = 0, penalty = 0;
    for (std::size_t i = 0; i < p.n(); ++i) {
        losses += static_cast<long double>(p.omega[i]) * p.loss.conjugate(y[i], p.b[i]);
    }
    for (std::size_t j = 0; j < p.d(); ++j) {
        const Interval domain = p.g[j].conjugate_domain();
        const double w = -u[j], inside = domain.clip(w);
        if (inside == 0 && w != 0) {
            penalty += static_cast<long double>(std::fabs(w)) * 10 * std::max(1.0, std::fabs(x[j]));
        } else {
            EXPECT_NEAR(w, inside, 1e-14) << "infeasible dual in coordinate " << j;
            penalty += p.g[j].conjugate(inside);
        }
    }
    return -losses / static_cast<long double>(p.n()) - penalty;
}

/// Every number of the certificate, from scratch.
void expect_honest(const Problem &problem, const Certifier &certifier) {
    const DenseProblem slow = dense_copy(problem);
    const std::vector<double> x = copy(certifier.x()), y = copy(certifier.y());
    const Certificate &certificate = certifier.certificate();
    const long double p = primal(slow, x), d = bounded_dual(slow, y, x);
    const auto size = static_cast<double>(std::max(std::fabs(p), std::fabs(d)));
    ASSERT_TRUE(std::isfinite(certificate.gap));
    EXPECT_NEAR(certificate.primal, static_cast<double>(p), 1e-12 * size);
    EXPECT_NEAR(certificate.dual, static_cast<double>(d), 1e-12 * size);
    EXPECT_NEAR(certificate.gap, static_cast<double>(p - d), 1e-12 * size);
    EXPECT_GE(certificate.gap, 0);
    const double relative = certificate.gap == 0 ? 0 : certificate.gap / size;
    EXPECT_NEAR(certificate.relative_gap, relative, 1e-9 * relative + 1e-12);
    for (std::size_t i = 0; i < slow.n(); ++i) {
        EXPECT_NEAR(certifier.predictions()[i], static_cast<double>(dot(slow.a[i], x)), 1e-12 * (1 + size));
        EXPECT_TRUE(problem.loss().domain(slow.b[i]).contains(y[i]));
    }
}

const AnyRegularizer penalties[] = {L2{0.1},
                                    ElasticNet{0.05, 0.1},
                                    ElasticNet{0.1, 0},
                                    Box{0.02, 0.1, {-0.5, 1}},
                                    Box{0, 0, {-1, 1}},
                                    Box{0, 0, {0, infinity}},
                                    L2{0}};

void each_problem(const std::function<void(const Problem &)> &check) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        for (const AnyRegularizer &g : penalties) {
            for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
                for (const bool weighted : {false, true}) {
                    SCOPED_TRACE(name + ", " + std::string(g.name()) + " with strong convexity " +
                                 std::to_string(g.strong_convexity()) + ", intercept " +
                                 std::string(to_string(intercept)) + (weighted ? ", weighted" : ""));
                    check({tiny_dataset({.task = loss.task(), .rows = 30, .columns = 5, .weighted = weighted}), loss, g,
                           with_intercept(intercept)});
                }
            }
        }
    }
}

/// A random x inside the bounds of the regularizers.
std::vector<double> random_primal(const Problem &problem, Random &random, double scale) {
    auto x = random_point(problem.dimension(), random, scale);
    for (std::int64_t j = 0; j < problem.dimension(); ++j) {
        double &value = x[static_cast<std::size_t>(j)];
        value = problem.regularizer(j).prox(value, 1e-12);
    }
    return x;
}

TEST(Certificate, OfRandomPointsIsThatOfTheirDefinition) {
    Random random(21);
    each_problem([&](const Problem &problem) {
        Certifier certifier(problem);
        for (int trial = 0; trial < 3; ++trial) {
            const double scale = random.log_uniform(1e-2, 1);
            certifier.offer(random_primal(problem, random, scale), random_dual(problem, random, scale), 0);
            expect_honest(problem, certifier);
        }
    });
}

TEST(Certificate, KeepsTheBestOfEachSide) {
    Random random(22);
    each_problem([&](const Problem &problem) {
        Certifier certifier(problem);
        double primal = infinity, dual = -infinity;
        for (int trial = 0; trial < 5; ++trial) {
            const double scale = random.log_uniform(1e-2, 1);
            const auto x = random_primal(problem, random, scale);
            const Certificate &now = certifier.offer(x, random_dual(problem, random, scale), 0);
            EXPECT_LE(now.primal, primal);
            EXPECT_LE(now.primal, problem.primal(x) + 1e-14 * (1 + std::fabs(now.primal)));
            // the radius of an unpenalised coordinate moves with x, and with it the charge for the residual of u
            if (!problem.needs_radius()) {
                EXPECT_GE(now.dual, dual);
            }
            primal = now.primal, dual = now.dual;
        }
    });
}

TEST(Certificate, IsZeroAtKnownOptima) {
    for (const KnownAnswer &known : known_answers()) {
        SCOPED_TRACE(known.name);
        Certifier certifier(known.problem);
        const Certificate &certificate = certifier.offer(known.x, known.y, 0);
        EXPECT_NEAR(certificate.primal, known.value, 1e-14);
        EXPECT_NEAR(certificate.dual, known.value, 1e-14);
        EXPECT_LE(certificate.gap, 1e-14);
        EXPECT_GE(certificate.gap, 0);
    }
}

TEST(Certificate, BracketsKnownOptimaFromAnyPoint) {
    Random random(23);
    for (const KnownAnswer &known : known_answers()) {
        SCOPED_TRACE(known.name);
        for (int trial = 0; trial < 20; ++trial) {
            Certifier certifier(known.problem);
            const double scale = random.log_uniform(1e-3, 3);
            const Certificate &certificate = certifier.offer(random_primal(known.problem, random, scale),
                                                             random_dual(known.problem, random, scale), 0);
            EXPECT_GE(certificate.primal, known.value - 1e-14);
            EXPECT_LE(certificate.dual, known.value + 1e-14);
        }
    }
}

TEST(Certificate, BecomesSmallNearTheOptimum) {
    each_problem([&](const Problem &problem) {
        if (problem.loss().name() == "poisson") return; // no smoothness: the slow method needs too long
        if (!problem.is_strongly_convex() && problem.intercept() != Intercept::free) return;
        if (problem.strong_convexity() == 0) return;
        const Iterates best = slow_optimum(dense_copy(problem), 3000);
        Certifier certifier(problem);
        const Certificate &certificate = certifier.offer(best.x, best.y, 0);
        expect_honest(problem, certifier);
        EXPECT_LE(certificate.relative_gap, problem.loss().gamma() > 0 ? 1e-8 : 1e-4);
    });
}

TEST(Certificate, OfAGoodPairIsOfThatPairAlone) {
    Random random(24);
    const Problem problem(tiny_dataset(), SmoothedHinge{}, L2{0.1});
    Certifier certifier(problem);
    const auto x = random_point(problem.dimension(), random);
    const auto y = random_dual(problem, random);
    certifier.offer(x, y, infinity);
    EXPECT_EQ(copy(certifier.x()), x);
    EXPECT_EQ(copy(certifier.y()), y);
    EXPECT_EQ(certifier.certificate().radius, infinity);
}

TEST(Certificate, TriesThePointsThatEachSideImplies) {
    Random random(25);
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.1});
    const Iterates best = slow_optimum(dense_copy(problem));
    const auto far = random_point(problem.dimension(), random, 5);
    const std::vector<double> none(static_cast<std::size_t>(problem.rows()), 0.0);
    Certifier from_dual(problem), from_primal(problem);
    EXPECT_LE(from_dual.offer(far, best.y, 0).relative_gap, 1e-10);
    EXPECT_LE(from_primal.offer(best.x, none, 0).relative_gap, 1e-10);
}

/// min over c of P(c x), by looking everywhere.
double best_length(const DenseProblem &problem, const std::vector<double> &x) {
    double best = infinity;
    for (double c = 0.5; c < 1.5; c += 1e-4) {
        std::vector<double> scaled = x;
        for (double &v : scaled) v *= c;
        best = std::min(best, static_cast<double>(primal(problem, scaled)));
    }
    return best;
}

TEST(Certificate, GivesPointsTheirBestLengthWhereTheLossHasKinks) {
    for (const AnyLoss &loss :
         {AnyLoss(Hinge{}), AnyLoss(Absolute{}), AnyLoss(Quantile{0.3}), AnyLoss(EpsilonInsensitive{0.1})}) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{1e-3}), AnyRegularizer(ElasticNet{0.01, 1e-2})}) {
            for (const Intercept intercept : {Intercept::none, Intercept::penalized}) {
                SCOPED_TRACE(std::string(loss.name()) + ", " + std::string(to_string(intercept)));
                const Dataset data = tiny_dataset({.task = loss.task(), .rows = 60, .weighted = true});
                const Problem problem(data, loss, g, with_intercept(intercept));
                std::vector<double> optimal = copy(solve(problem, Auto{}, {.tolerance = 1e-3}).weights);
                optimal.resize(static_cast<std::size_t>(problem.dimension()), 0.1);
                for (const double length : {0.8, 0.99, 1.2}) {
                    std::vector<double> x = optimal;
                    for (double &v : x) v *= length;
                    Certifier certifier(problem, 1);
                    certifier.offer(x, std::vector<double>(60), 0);
                    const double best = best_length(dense_copy(problem), x); // with this intercept
                    EXPECT_LE(certifier.certificate().primal, best + 0.05 * (problem.primal(x) - best) + 1e-5);
                    expect_honest(problem, certifier);
                }
            }
        }
    }
}

/// All that a tiny l2 leaves of P is smaller than what rounding does to the margins.
TEST(Certificate, BecomesSmallWhereRoundingAloneIsAGap) {
    const Problem problem(tiny_dataset({.rows = 20, .columns = 60}), Hinge{}, L2{1e-12});
    const Result result = solve(problem, SpdcFast{}, {.tolerance = 1e-6, .max_passes = 1000});
    EXPECT_TRUE(result.converged()) << result.worst().relative_gap;
}

TEST(Certificate, SmallGapsDoNotCancel) {
    // (2x-3)^2/2 + x^2/2 a billionth away from its optimum: the gap is 5e-18
    const Problem problem = make_problem({{2}}, {3}, Squared{}, L2{1});
    Certifier certifier(problem);
    const Certificate &certificate =
        certifier.offer(std::vector<double>{1.2 + 1e-9}, std::vector<double>{-0.6 + 1e-9}, 1);
    EXPECT_GE(certificate.gap, 0);
    EXPECT_LE(certificate.gap, 1e-15);
}

TEST(Certificate, ScalesTheDualOfL1AloneUntilItIsFeasible) {
    Random random(26);
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Squared{}), AnyLoss(Hinge{})}) {
        const Problem problem(tiny_dataset({.task = loss.task(), .weighted = true}), loss, ElasticNet{0.01, 0});
        const auto x = random_point(problem.dimension(), random, 0.1);
        const auto y = random_dual(problem, random);
        EXPECT_EQ(problem.dual(y), -infinity); // as offered
        Certifier certifier(problem);
        EXPECT_TRUE(std::isfinite(certifier.offer(x, y, 0).dual));
        EXPECT_EQ(certifier.certificate().radius, infinity);
        expect_honest(problem, certifier);
        for (const double u : combine(dense_copy(problem), copy(certifier.y()))) {
            EXPECT_LE(std::fabs(u), 0.01 * (1 + 1e-14));
        }
    }
}

TEST(Certificate, OfTheLassoBecomesSmallAtItsOptimum) {
    const Problem problem(tiny_dataset({.task = Task::regression}), Squared{}, ElasticNet{0.1, 0});
    const Iterates best = slow_optimum(dense_copy(problem));
    Certifier certifier(problem);
    EXPECT_LE(certifier.offer(best.x, best.y, 0).relative_gap, 1e-9);
    expect_honest(problem, certifier);
}

TEST(Certificate, OfAPointOutsideTheBoxIsAboutPointsInsideIt) {
    const Problem problem(tiny_dataset(), Logistic{}, Box{0, 0.1, {-0.1, 0.1}});
    const std::vector<double> outside(static_cast<std::size_t>(problem.dimension()), 1.0);
    const std::vector<double> y(static_cast<std::size_t>(problem.rows()), 0.0);
    Certifier certifier(problem);
    certifier.offer(outside, y, 0);
    for (const double x : certifier.x()) EXPECT_LE(std::fabs(x), 0.1);
    expect_honest(problem, certifier);
}

TEST(Certificate, SurvivesPointsWhoseObjectiveOverflows) {
    const Problem problem(tiny_dataset({.task = Task::counts}), Poisson{}, L2{0.1});
    const std::vector<double> far(static_cast<std::size_t>(problem.dimension()), 1e4);
    const std::vector<double> zero(static_cast<std::size_t>(problem.dimension()), 0.0);
    const std::vector<double> y(static_cast<std::size_t>(problem.rows()), 0.0);
    Certifier certifier(problem);
    certifier.offer(far, y, 0);
    EXPECT_FALSE(std::isnan(certifier.certificate().relative_gap));
    certifier.offer(zero, y, 0);
    expect_honest(problem, certifier);
    const double before = certifier.certificate().primal;
    certifier.offer(far, y, 0);
    EXPECT_EQ(certifier.certificate().primal, before);
    expect_honest(problem, certifier);
}

TEST(Certificate, NotANumberNeverWins) {
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.1});
    const std::vector<double> x(static_cast<std::size_t>(problem.dimension()), 0.1);
    Random random(27);
    const std::vector<double> y = random_dual(problem, random, 0.1);
    const std::vector<double> bad_x(x.size(), std::nan("")), bad_y(y.size(), std::nan(""));
    Certifier certifier(problem);
    certifier.offer(bad_x, bad_y, 0);
    EXPECT_FALSE(std::isnan(certifier.certificate().relative_gap));
    certifier.offer(x, y, 0);
    expect_honest(problem, certifier);
    const double gap = certifier.certificate().gap;
    certifier.offer(bad_x, bad_y, 0);
    EXPECT_EQ(certifier.certificate().gap, gap);
}

TEST(Certificate, OfAFreeInterceptIsFiniteAndSaysItsRadius) {
    Random random(28);
    for (const std::string &name : loss_names()) {
        SCOPED_TRACE(name);
        const AnyLoss loss = make_loss(name);
        const Problem problem(tiny_dataset({.task = loss.task(), .weighted = true}), loss, L2{0.1},
                              with_intercept(Intercept::free));
        Certifier certifier(problem);
        const Certificate &certificate =
            certifier.offer(random_point(problem.dimension(), random, 0.3), random_dual(problem, random, 0.3), 0);
        EXPECT_TRUE(std::isfinite(certificate.dual));
        EXPECT_EQ(certificate.radius, 10 * std::max(1.0, std::fabs(certifier.x().back())));
        // projected: next to nothing is left of the condition that the weighted duals add up to 0
        EXPECT_LE(std::fabs(combine(dense_copy(problem), copy(certifier.y())).back()), 1e-14);
        expect_honest(problem, certifier);
    }
}

TEST(Certificate, MinimisesOverAFreeInterceptExactly) {
    Random random(29);
    for (const std::string &name : loss_names()) {
        SCOPED_TRACE(name);
        const AnyLoss loss = make_loss(name);
        const Problem problem(tiny_dataset({.task = loss.task(), .weighted = true}), loss, L2{0.1},
                              with_intercept(Intercept::free));
        const DenseProblem slow = dense_copy(problem);
        auto x = random_point(problem.dimension(), random, 0.3);
        Certifier certifier(problem);
        certifier.offer(x, random_dual(problem, random, 0.3), 0);
        const auto negative = [&](double constant) {
            x.back() = constant;
            return -static_cast<double>(primal(slow, x));
        };
        const double searched = -negative(scalar_search(negative, {-50, 50}, 0));
        EXPECT_LE(certifier.certificate().primal, searched * (1 + 1e-12));
    }
}

TEST(Certificate, OfAFarFreeInterceptBecomesSmall) {
    // targets around 1000: uncentred data, all of whose mean the intercept takes
    TinyData data = tiny_data({.task = Task::regression});
    for (double &target : data.targets) target += 1000;
    const Problem problem(as_dataset(data), Squared{}, L2{0.1}, with_intercept(Intercept::free));
    const Iterates best = slow_optimum(dense_copy(problem));
    Certifier certifier(problem);
    EXPECT_LE(certifier.offer(best.x, best.y, 0).relative_gap, 1e-8);
    EXPECT_GE(certifier.certificate().radius, 9000);
    expect_honest(problem, certifier);
}

TEST(Certificate, OfUnpenalisedColumnsBecomesSmallAtTheOptimum) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Squared{}), AnyLoss(SmoothedHinge{}), AnyLoss(Huber{})}) {
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            SCOPED_TRACE(std::string(loss.name()) + ", intercept " + std::string(to_string(intercept)));
            ProblemOptions options = with_intercept(intercept);
            options.penalty_factors = {1, 0, 1, 0, 0.5};
            const Problem problem(tiny_dataset({.task = loss.task(), .rows = 40, .columns = 5, .weighted = true}), loss,
                                  L2{0.1}, options);
            const Iterates best = slow_optimum(dense_copy(problem));
            Certifier certifier(problem);
            EXPECT_LE(certifier.offer(best.x, best.y, 0).relative_gap, 1e-8);
            EXPECT_TRUE(std::isfinite(certifier.certificate().radius));
            const std::vector<double> u = combine(dense_copy(problem), copy(certifier.y()));
            for (const std::int64_t j : problem.free_coordinates()) {
                EXPECT_LE(std::fabs(u[static_cast<std::size_t>(j)]), 1e-13);
            }
            expect_honest(problem, certifier);
        }
    }
}

TEST(Certificate, OfLeastSquaresWithoutPenaltyBecomesSmall) {
    const Problem problem(tiny_dataset({.task = Task::regression, .rows = 40, .columns = 4}), Squared{}, L2{0});
    const Iterates best = slow_optimum(dense_copy(problem));
    Certifier certifier(problem);
    EXPECT_LE(certifier.offer(best.x, best.y, 0).relative_gap, 1e-10);
    expect_honest(problem, certifier);
}

TEST(Certificate, ForgetsADualPointWhoseRadiusTheModelHasOutgrown) {
    // (x-1000)^2/2 on x >= 0: y = -1000 proves 490000 for all x up to 10, and nothing of use once x is at 1000
    const Problem problem = make_problem({{1}}, {1000}, Squared{}, Box{0, 0, {0, infinity}});
    Certifier certifier(problem);
    certifier.offer(std::vector<double>{0}, std::vector<double>{-1000}, 0);
    EXPECT_EQ(certifier.certificate().radius, 10);
    EXPECT_GE(certifier.certificate().dual, 490000);
    certifier.offer(std::vector<double>{1000}, std::vector<double>{0}, 0);
    EXPECT_EQ(certifier.certificate().radius, 10000);
    EXPECT_LE(certifier.certificate().gap, 1e-9);
}

// The two classes lie on the two sides of 0 along the first feature.
Problem separable(AnyLoss loss, AnyRegularizer g, Intercept intercept) {
    return make_problem({{1, 0.5}, {2, -1}, {-1, 0.25}, {-3, 1}}, {1, 1, -1, -1}, loss, g, with_intercept(intercept));
}

bool no_minimizer_at(const Problem &problem, std::vector<double> x) {
    Certifier certifier(problem);
    certifier.offer(x, std::vector<double>(static_cast<std::size_t>(problem.rows()), 0.0), 0);
    return certifier.has_no_minimizer();
}

TEST(Certificate, SeesThatSeparableLogisticWithoutPenaltyHasNoMinimizer) {
    EXPECT_TRUE(no_minimizer_at(separable(Logistic{}, L2{0}, Intercept::none), {5, 0}));
    EXPECT_TRUE(no_minimizer_at(separable(Logistic{}, L2{0}, Intercept::free), {5, 0, 0}));
    EXPECT_TRUE(no_minimizer_at(separable(Logistic{}, Box{0, 0, {0, infinity}}, Intercept::none), {5, 0}));
}

TEST(Certificate, SeesThatCountsOfZeroHaveNoMinimizer) {
    const Problem problem = make_problem({{1}, {2}}, {0, 0}, Poisson{}, L2{0});
    EXPECT_TRUE(no_minimizer_at(problem, {-3}));
    EXPECT_FALSE(no_minimizer_at(make_problem({{1}, {2}}, {0, 1}, Poisson{}, L2{0}), {-3}));
}

TEST(Certificate, DoesNotClaimThatAProblemWithAMinimizerHasNone) {
    EXPECT_FALSE(no_minimizer_at(separable(Logistic{}, L2{1e-9}, Intercept::none), {5, 0}));
    EXPECT_FALSE(no_minimizer_at(separable(Logistic{}, ElasticNet{1e-9, 0}, Intercept::none), {5, 0}));
    EXPECT_FALSE(no_minimizer_at(separable(Logistic{}, L2{1}, Intercept::free), {5, 0, 0}));
    EXPECT_FALSE(no_minimizer_at(separable(Logistic{}, Box{0, 0, {-9, 9}}, Intercept::none), {5, 0}));
    EXPECT_FALSE(no_minimizer_at(separable(Hinge{}, L2{0}, Intercept::none), {5, 0}));
    EXPECT_FALSE(no_minimizer_at(separable(Squared{}, L2{0}, Intercept::none), {5, 0}));
    const Problem mixed = make_problem({{1}, {2}, {-1}, {1}}, {1, 1, -1, -1}, Logistic{}, L2{0});
    for (const double x : {-5.0, 0.0, 0.3, 5.0}) EXPECT_FALSE(no_minimizer_at(mixed, {x}));
}

TEST(L1Max, IsTheSmallestL1WithAnEmptyModel) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (loss.gamma() == 0) continue; // with kinks the dual of the constant model is not unique
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            SCOPED_TRACE(name + ", intercept " + std::string(to_string(intercept)));
            const Dataset data = tiny_dataset({.task = loss.task(), .weighted = true});
            const double limit = l1_max(Problem(data, loss, ElasticNet{1, 0}, with_intercept(intercept)));
            EXPECT_EQ(l1_max(Problem(data, loss, L2{}, with_intercept(intercept))), limit) << "whatever the penalty";
            for (const double part : {0.95, 1.0}) {
                const Problem problem(data, loss, ElasticNet{part * limit, 0}, with_intercept(intercept));
                std::vector<double> x(static_cast<std::size_t>(problem.dimension()), 0.0);
                Certifier certifier(problem);
                certifier.offer(x, std::vector<double>(static_cast<std::size_t>(problem.rows()), 0.0), 0);
                // empty features are optimal at the limit and no longer below it
                EXPECT_EQ(certifier.certificate().relative_gap < 1e-9, part == 1.0)
                    << certifier.certificate().relative_gap;
                const Iterates best = slow_optimum(dense_copy(problem), 4000);
                double largest = 0;
                for (std::int64_t j = 0; j < problem.features(); ++j) {
                    largest = std::max(largest, std::fabs(best.x[static_cast<std::size_t>(j)]));
                }
                EXPECT_EQ(largest > 1e-6, part < 1.0) << largest;
            }
        }
    }
}

} // namespace
} // namespace spdc::tests
