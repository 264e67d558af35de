// What every regularizer promises, typed over AnyRegularizer: a new one is tested by being in the variant.
#include "spdc/regularizers.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <string>

namespace spdc::tests {
namespace {

constexpr std::int64_t coordinate = 3; // steps take one, and only those with penalty factors look at it

/// Every combination of the members that the regularizer has, zeros and tiny values included.
template <class G> std::vector<G> parameter_values() {
    std::vector<G> values{G{}};
    const auto vary = [&](auto assign, const auto &list) {
        std::vector<G> varied;
        for (const G &g : values) {
            for (const auto &value : list) {
                varied.push_back(g);
                assign(varied.back(), value);
            }
        }
        values = varied;
    };
    if constexpr (requires(G g) { g.l1; }) vary([](G &g, double v) { g.l1 = v; }, std::vector<double>{0, 0.3, 2});
    if constexpr (requires(G g) { g.l2; }) {
        vary([](G &g, double v) { g.l2 = v; }, std::vector<double>{0, 1e-11, 1e-3, 0.5});
    }
    if constexpr (requires(G g) { g.bounds; }) {
        vary([](G &g, Interval v) { g.bounds = v; },
             std::vector<Interval>{{-1, 2}, {0, infinity}, {-infinity, 0.25}, {-0.5, 0}, {}});
    }
    return values;
}

template <class G> std::string describe(const G &g) {
    std::string text(G::name);
    if constexpr (requires { g.l1; }) text += " l1 = " + ::testing::PrintToString(g.l1);
    if constexpr (requires { g.l2; }) text += " l2 = " + ::testing::PrintToString(g.l2);
    if constexpr (requires { g.bounds; }) {
        text += " on " + ::testing::PrintToString(g.bounds.lower) + ".." + ::testing::PrintToString(g.bounds.upper);
    }
    return text;
}

/// The points where g is finite, found by bisection from 0.
template <class G> Interval domain_of(const G &g) {
    const auto edge = [&](double far) {
        if (std::isfinite(g.value(far))) return far;
        double inside = 0, outside = far;
        for (int k = 0; k < 200; ++k) {
            const double middle = 0.5 * (inside + outside);
            (std::isfinite(g.value(middle)) ? inside : outside) = middle;
        }
        return inside;
    };
    return {edge(-1e14), edge(1e14)};
}

/// k times x <- prox(x - tau u) of g + (delta/2) x^2, one after another; `largest` gets the largest |x| and
/// |tau u| on the way: each step rounds by a part of these.
template <class G>
double explicit_steps(const G &g, double tau, double delta, double x, double u, std::int64_t k, double &largest) {
    const double shrink = 1 + tau * delta;
    largest = std::max(std::fabs(x), std::fabs(tau * u));
    for (std::int64_t step = 0; step < k; ++step) {
        x = g.prox((x - tau * u) / shrink, tau / shrink);
        largest = std::max(largest, std::fabs(x));
    }
    return x;
}

template <class G> class Regularizers : public ::testing::Test {
  protected:
    template <class Check> void each(Check check) {
        for (const G &g : parameter_values<G>()) {
            SCOPED_TRACE(describe(g));
            check(g);
        }
    }
    /// A w inside the domain of g*, often at its ends or at 0.
    double random_conjugate_point(const G &g) {
        const Interval domain = g.conjugate_domain();
        const double kind = random.uniform();
        if (kind < 0.1 && std::isfinite(domain.lower)) return domain.lower;
        if (kind < 0.2 && std::isfinite(domain.upper)) return domain.upper;
        return domain.clip(kind < 0.3 ? 0.0 : 3 * random.normal());
    }
    Random random{11};
};

template <class Variant> struct TypesOf;
template <class... G> struct TypesOf<std::variant<G...>> { using type = ::testing::Types<G...>; };
TYPED_TEST_SUITE(Regularizers, TypesOf<AnyRegularizer::Variant>::type);

TYPED_TEST(Regularizers, ValueIsConvexZeroAtZeroAndNeverNegative) {
    this->each([&](const TypeParam &g) {
        EXPECT_EQ(g.value(0), 0);
        for (int trial = 0; trial < 200; ++trial) {
            const double p = 2 * this->random.normal(), q = 2 * this->random.normal(), t = this->random.uniform();
            const double chord = t * g.value(p) + (1 - t) * g.value(q);
            EXPECT_LE(g.value(t * p + (1 - t) * q), chord * (1 + 1e-14));
            EXPECT_GE(g.value(p), 0);
        }
    });
}

TYPED_TEST(Regularizers, ProxMinimisesItsObjective) {
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        for (int trial = 0; trial < 100; ++trial) {
            const double v = 3 * this->random.normal(), tau = this->random.log_uniform(1e-4, 1e4);
            const auto f = [&](double x) { return -tau * g.value(x) - 0.5 * (x - v) * (x - v); };
            const double prox = g.prox(v, tau);
            ASSERT_TRUE(std::isfinite(g.value(prox)));
            EXPECT_GE(f(prox), f(scalar_search(f, domain, 0)) - 1e-14 * v * v) << "v = " << v << ", tau = " << tau;
        }
    });
}

// (v - p)/tau must be a subgradient of g at p = prox(v): Fenchel-Young with equality. Sees every digit of p.
TYPED_TEST(Regularizers, ProxLeavesASubgradient) {
    this->each([&](const TypeParam &g) {
        for (int trial = 0; trial < 100; ++trial) {
            const double v = 3 * this->random.normal(), tau = this->random.log_uniform(1e-4, 1e4);
            const double p = g.prox(v, tau), w = (v - p) / tau;
            const double blur = 1e-14 * (std::fabs(v) + std::fabs(p)) / tau;
            const double inside = g.conjugate_domain().clip(w);
            EXPECT_NEAR(inside, w, blur);
            EXPECT_NEAR(g.value(p) + g.conjugate(inside), inside * p,
                        1e-13 * (std::fabs(w * p) + g.value(p)) +
                            blur * (std::fabs(p) + std::fabs(g.maximizer(inside))))
                << "v = " << v << ", tau = " << tau;
        }
    });
}

TYPED_TEST(Regularizers, ConjugateIsTheSupremumAndMaximizerAttainsIt) {
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        for (int trial = 0; trial < 60; ++trial) {
            const double w = this->random_conjugate_point(g);
            const auto f = [&](double x) { return w * x - g.value(x); };
            const double conjugate = g.conjugate(w), attained = f(g.maximizer(w));
            EXPECT_NEAR(f(scalar_search(f, domain, 0)), conjugate, 1e-9 * (1 + std::fabs(conjugate))) << "w = " << w;
            EXPECT_NEAR(attained, conjugate, 1e-13 * std::fabs(w * g.maximizer(w))) << "w = " << w;
        }
    });
}

TYPED_TEST(Regularizers, ConjugateIsInfiniteExactlyOutsideItsDomain) {
    this->each([&](const TypeParam &g) {
        const Interval domain = g.conjugate_domain();
        EXPECT_TRUE(domain.contains(0));
        for (const double w : {-1e3, -2.5, -1e-3, 0.0, 1e-3, 2.5, 1e3, domain.lower, domain.upper}) {
            if (!std::isfinite(w)) continue;
            EXPECT_EQ(std::isfinite(g.conjugate(w)), domain.contains(w)) << "w = " << w;
        }
        // outside, w x - g(x) grows for ever
        if (std::isfinite(domain.upper)) {
            EXPECT_EQ(g.conjugate(domain.upper + 1e-9), infinity);
            EXPECT_GT((domain.upper + 1e-3) * 1e9 - g.value(1e9), 1e5);
        }
        if (std::isfinite(domain.lower)) {
            EXPECT_EQ(g.conjugate(domain.lower - 1e-9), infinity);
            EXPECT_GT((domain.lower - 1e-3) * -1e9 - g.value(-1e9), 1e5);
        }
    });
}

TYPED_TEST(Regularizers, FenchelYoungIsTheSumOfItsPartsAndNeverNegative) {
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        for (int trial = 0; trial < 200; ++trial) {
            const double x = domain.clip(2 * this->random.normal()), w = this->random_conjugate_point(g);
            const double best = g.maximizer(w), term = g.fenchel_young(x, w);
            const double size = g.value(x) + std::fabs(w * x) + std::fabs(w * best);
            EXPECT_GE(term, 0);
            EXPECT_NEAR(term, g.value(x) + g.conjugate(w) - w * x, 1e-14 * size) << "x = " << x << ", w = " << w;
            EXPECT_LE(g.fenchel_young(best, w), 1e-15 * std::fabs(w * best)) << "w = " << w;
        }
        const double outside = g.conjugate_domain().upper + 1;
        if (std::isfinite(outside)) {
            EXPECT_EQ(g.fenchel_young(0, outside), infinity);
        }
    });
}

// The parts may be 1e8 times their sum. Inside the bounds and on one side of 0 the sum is (l2/2)(x - argmax)^2.
TYPED_TEST(Regularizers, FenchelYoungDoesNotCancel) {
    this->each([&](const TypeParam &g) {
        if (g.strong_convexity() == 0) return;
        const Interval domain = domain_of(g);
        for (int trial = 0; trial < 50; ++trial) {
            const double w = 3 * this->random.normal(), best = g.maximizer(w);
            if (best == 0 || best == domain.lower || best == domain.upper) continue;
            for (const double part : {0.001, 0.5, 0.999}) {
                const double away = best - part * best;
                EXPECT_NEAR(g.fenchel_young(part * best, w) / (0.5 * g.strong_convexity() * away * away), 1, 1e-9)
                    << "w = " << w << ", part = " << part;
            }
        }
    });
}

TYPED_TEST(Regularizers, StrongConvexityHoldsAndIsTheLargest) {
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        double slack = infinity;
        for (int trial = 0; trial < 200; ++trial) {
            const double p = domain.clip(2 * this->random.normal()), q = domain.clip(2 * this->random.normal());
            const double t = this->random.uniform(0.1, 0.9);
            const double square = 0.5 * t * (1 - t) * (p - q) * (p - q);
            const double drop = t * g.value(p) + (1 - t) * g.value(q) - g.value(t * p + (1 - t) * q);
            EXPECT_GE(drop, g.strong_convexity() * square - 1e-13 * (g.value(p) + g.value(q)));
            if (std::fabs(p - q) > 0.1) slack = std::min(slack, drop / square - g.strong_convexity());
        }
        EXPECT_NEAR(slack, 0, 1e-10);
    });
}

TYPED_TEST(Regularizers, ScaledMultipliesThePenaltyAndKeepsTheBounds) {
    this->each([&](const TypeParam &g) {
        for (const double factor : {0.0, 0.25, 1.0, 3.0}) {
            const TypeParam scaled = g.scaled(factor);
            EXPECT_DOUBLE_EQ(scaled.strong_convexity(), factor * g.strong_convexity());
            for (const double x : {-5.0, -0.7, -0.3, 0.0, 0.1, 1.5, 9.0}) {
                const double expected = std::isfinite(g.value(x)) ? factor * g.value(x) : infinity;
                EXPECT_DOUBLE_EQ(scaled.value(x), expected) << "x = " << x << ", factor = " << factor;
            }
        }
    });
}

TYPED_TEST(Regularizers, ProxOfTheStepIsThatOfThePerturbedRegularizer) {
    this->each([&](const TypeParam &g) {
        for (const double delta : {0.0, 1e-6, 0.7}) {
            const double tau = this->random.log_uniform(1e-3, 1e3), shrink = 1 + tau * delta;
            const auto step = g.step(tau, delta);
            for (int trial = 0; trial < 50; ++trial) {
                const double v = 3 * this->random.normal(), expected = g.prox(v / shrink, tau / shrink);
                EXPECT_NEAR(step.prox(coordinate, v), expected, 1e-14 * std::fabs(v));
            }
        }
    });
}

/// Steps at which closed forms change: none, one, a few, many, and past the table of 4096.
constexpr std::int64_t step_counts[] = {0, 1, 2, 3, 10, 100, 5000};

template <class G, class Step>
void expect_advance_equals_proxes(const G &g, const Step &step, double tau, double delta, double x, double u) {
    for (const std::int64_t k : step_counts) {
        double largest = 0;
        const double expected = explicit_steps(g, tau, delta, x, u, k, largest);
        EXPECT_NEAR(step.advance(coordinate, x, u, k), expected, 1e-11 * largest)
            << "x = " << x << ", u = " << u << ", k = " << k << ", tau = " << tau << ", delta = " << delta;
    }
}

TYPED_TEST(Regularizers, AdvanceByKStepsEqualsKProxes) {
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        double l1 = 0.3;
        if constexpr (requires { g.l1; }) l1 = g.l1;
        for (const double delta : {0.0, 1e-4}) {
            const double tau = this->random.log_uniform(1e-3, 10);
            const auto step = g.step(tau, delta);
            for (int trial = 0; trial < 12; ++trial) {
                const double x = trial % 4 == 0 ? 0 : domain.clip(this->random.normal());
                // towards 0 and past it, away from 0, caught at 0, and exactly on the edges between those
                for (const double u :
                     {0.0, l1, -l1, 0.5 * l1, -1.01 * l1, 1e-3 * x, x, -x, 3 * this->random.normal()}) {
                    expect_advance_equals_proxes(g, step, tau, delta, x, u);
                }
            }
        }
    });
}

TYPED_TEST(Regularizers, AdvanceReachesZeroExactlyWhereProxesDo) {
    this->each([&](const TypeParam &g) {
        const auto step = g.step(0.125, 0);
        for (int trial = 0; trial < 200; ++trial) {
            const double x = domain_of(g).clip(this->random.uniform(-2, 2)), u = this->random.uniform(-0.3, 0.3);
            double largest = 0;
            if (explicit_steps(g, 0.125, 0, x, u, 1000, largest) == 0) {
                EXPECT_EQ(step.advance(coordinate, x, u, 1000), 0) << "x = " << x << ", u = " << u;
            }
        }
    });
}

TYPED_TEST(Regularizers, StepWithPenaltyFactorsIsTheStepOfEachScaledRegularizer) {
    const std::vector<double> factors{1, 0, 0.25, 3};
    this->each([&](const TypeParam &g) {
        const Interval domain = domain_of(g);
        for (const double delta : {0.0, 1e-3}) {
            const double tau = 0.7, shrink = 1 + tau * delta;
            const auto [l1, l2, bounds] = g.parts();
            const FactorStep step(l1, l2, bounds, factors, tau, delta);
            for (std::int64_t j = 0; j < 4; ++j) {
                const TypeParam scaled = g.scaled(factors[static_cast<std::size_t>(j)]);
                for (int trial = 0; trial < 6; ++trial) {
                    const double x = domain.clip(this->random.normal()), u = this->random.normal();
                    EXPECT_NEAR(step.prox(j, x), scaled.prox(x / shrink, tau / shrink), 1e-14 * std::fabs(x));
                    for (const std::int64_t k : step_counts) {
                        double largest = 0;
                        const double expected = explicit_steps(scaled, tau, delta, x, u, k, largest);
                        EXPECT_NEAR(step.advance(j, x, u, k), expected, 1e-11 * largest) << j << " " << k;
                    }
                }
            }
        }
    });
}

TYPED_TEST(Regularizers, AnyRegularizerForwardsEveryCall) {
    this->each([&](const TypeParam &g) {
        const AnyRegularizer any = g;
        EXPECT_EQ(any.name(), TypeParam::name);
        EXPECT_EQ(any.strong_convexity(), g.strong_convexity());
        EXPECT_EQ(any.conjugate_domain().lower, g.conjugate_domain().lower);
        EXPECT_EQ(any.conjugate_domain().upper, g.conjugate_domain().upper);
        for (const double v : {-3.0, -0.2, 0.0, 0.15, 2.0}) {
            EXPECT_EQ(any.value(v), g.value(v));
            EXPECT_EQ(any.conjugate(v), g.conjugate(v));
            EXPECT_EQ(any.maximizer(v), g.maximizer(v));
            EXPECT_EQ(any.fenchel_young(0, v), g.fenchel_young(0, v));
            EXPECT_EQ(any.prox(v, 0.4), g.prox(v, 0.4));
            EXPECT_EQ(any.scaled(2).value(v), g.scaled(2).value(v));
        }
    });
}

TEST(MakeRegularizer, PicksTheCheapestTypeThatHoldsTheParameters) {
    EXPECT_EQ(make_regularizer(0, 0).name(), "l2");
    EXPECT_EQ(make_regularizer(0, 0.5).name(), "l2");
    EXPECT_EQ(make_regularizer(0.5, 0).name(), "elastic_net");
    EXPECT_EQ(make_regularizer(0.5, 0.5).name(), "elastic_net");
    EXPECT_EQ(make_regularizer(0, 0.5, {0, infinity}).name(), "box");
    EXPECT_EQ(make_regularizer(0.5, 0, {-1, 1}).name(), "box");
    const AnyRegularizer g = make_regularizer(0.25, 0.5, {-1, 4});
    EXPECT_EQ(g.value(2), 1.5);
    EXPECT_EQ(g.value(-1), 0.5);
    EXPECT_EQ(g.value(-1.5), infinity);
}

TEST(MakeRegularizer, RejectsWhatIsNoPenalty) {
    const double nan = std::nan("");
    const auto rejects = [](double l1, double l2, Interval bounds, const std::string &word) {
        try {
            make_regularizer(l1, l2, bounds);
            ADD_FAILURE() << "accepted l1 = " << l1 << ", l2 = " << l2;
        } catch (const Error &error) {
            EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
            EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
        }
    };
    rejects(-1e-9, 0, {}, "l1");
    rejects(0, -1, {}, "l2");
    rejects(nan, 0, {}, "l1");
    rejects(0, nan, {}, "l2");
    rejects(infinity, 0, {}, "l1");
    rejects(0, infinity, {}, "l2");
    rejects(0, 1, {0.5, 1}, "lower");
    rejects(0, 1, {-1, -0.5}, "upper");
    rejects(0, 1, {0, 0}, "lower");
    rejects(0, 1, {nan, 1}, "lower");
    rejects(0, 1, {-1, nan}, "upper");
}

TEST(RegularizerValues, AreThoseWorkedByHand) {
    const L2 ridge{0.5};
    EXPECT_EQ(ridge.value(3), 2.25);
    EXPECT_EQ(ridge.conjugate(3), 9);
    EXPECT_EQ(ridge.prox(3, 1), 2);
    const ElasticNet net{1, 0.5};
    EXPECT_EQ(net.value(-2), 3);
    EXPECT_EQ(net.conjugate(3), 4);
    EXPECT_EQ(net.conjugate(-1), 0);
    EXPECT_EQ(net.prox(-4, 2), -1);
    const ElasticNet lasso{1, 0};
    EXPECT_EQ(lasso.conjugate(1), 0);
    EXPECT_EQ(lasso.conjugate(1.5), infinity);
    EXPECT_EQ(lasso.prox(-0.5, 1), 0);
    const Box box{0, 1, {-1, 2}};
    EXPECT_EQ(box.conjugate(1), 0.5);
    EXPECT_EQ(box.conjugate(5), 8);
    EXPECT_EQ(box.conjugate(-5), 4.5);
    EXPECT_EQ(box.prox(9, 1), 2);
    const Box nonnegative{0.5, 0, {0, infinity}};
    EXPECT_EQ(nonnegative.conjugate(-7), 0);
    EXPECT_EQ(nonnegative.conjugate(0.5), 0);
    EXPECT_EQ(nonnegative.conjugate(0.75), infinity);
    EXPECT_EQ(nonnegative.prox(2, 2), 1);
}

} // namespace
} // namespace spdc::tests
