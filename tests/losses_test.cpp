// What every loss promises, typed over AnyLoss: a new loss is tested by being in the variant.
#include "spdc/losses.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace spdc::tests {
namespace {

/// The default and, field by field, every value of a list that the field's range allows.
template <class L> std::vector<L> parameter_values() {
    std::vector<L> values{L{}};
    int fields = 0;
    L counted;
    L::fields(counted, [&](const Field &, double &) { ++fields; });
    for (int chosen = 0; chosen < fields; ++chosen) {
        for (const double candidate : {0.0, 0.05, 0.3, 0.9, 3.0}) {
            L loss;
            int current = 0;
            L::fields(loss, [&](const Field &, double &value) {
                if (current++ == chosen) value = candidate;
            });
            try {
                check_fields(loss);
                values.push_back(loss);
            } catch (const Error &) {
            }
        }
    }
    return values;
}

std::vector<double> targets_of(Task task) {
    switch (task) {
    case Task::classification: return {-1, 1};
    case Task::regression: return {0, 1.5, -2.25, 40};
    case Task::counts: return {0, 1, 2.5, 7};
    }
    return {};
}

/// A random dual variable inside the domain, sometimes at its ends and at 0, of size about `scale` where the domain allows.
double random_dual(const Interval &domain, Random &random, double scale = 3) {
    const double kind = random.uniform();
    if (kind < 0.1) return 0;
    if (kind < 0.2 && std::isfinite(domain.lower)) return domain.lower;
    if (kind < 0.3 && std::isfinite(domain.upper)) return domain.upper;
    return random.uniform(std::max(domain.lower, -scale), std::min(domain.upper, scale));
}

template <class L> class Losses : public ::testing::Test {
  protected:
    /// Calls check(loss, b) for every parameter value and target.
    template <class Check> void each(Check check) {
        for (const L &loss : parameter_values<L>()) {
            std::string fields;
            L::fields(loss, [&](const Field &field, double value) {
                fields += std::string(" ") + field.name + " = " + std::to_string(value);
            });
            for (const double b : targets_of(L::task)) {
                SCOPED_TRACE(std::string(L::name) + fields + ", b = " + std::to_string(b));
                check(loss, b);
            }
        }
    }
    Random random{7};
};

template <class Variant> struct TypesOf;
template <class... L> struct TypesOf<std::variant<L...>> { using type = ::testing::Types<L...>; };
TYPED_TEST_SUITE(Losses, TypesOf<AnyLoss::Variant>::type);

// Random points miss the kinks, which are a handful of numbers.
TYPED_TEST(Losses, DerivativeIsTheLimitOfDifferences) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 200; ++trial) {
            const double z = b + this->random.uniform(-5, 5), h = 1e-5;
            const double difference = (loss.value(z + h, b) - loss.value(z - h, b)) / (2 * h);
            EXPECT_NEAR(loss.derivative(z, b), difference, 1e-7 * (1 + std::fabs(loss.value(z, b)))) << "z = " << z;
        }
    });
}

TYPED_TEST(Losses, CurvatureIsTheLimitOfDifferencesOfTheDerivative) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 200; ++trial) {
            const double z = b + this->random.uniform(-5, 5), h = 1e-5;
            const double difference = (loss.derivative(z + h, b) - loss.derivative(z - h, b)) / (2 * h);
            EXPECT_NEAR(loss.curvature(z, b), difference, 1e-7 * (1 + std::fabs(loss.derivative(z, b)))) << "z = " << z;
        }
    });
}

// On a grid that hits the kinks: there the derivative must be a subgradient, whichever.
TYPED_TEST(Losses, ValueLiesAboveEveryTangent) {
    this->each([&](const TypeParam &loss, double b) {
        for (int i = -80; i <= 80; ++i) {
            const double z = b + 0.05 * i, slope = loss.derivative(z, b);
            for (int j = -80; j <= 80; j += 5) {
                const double other = b + 0.05 * j + 0.01;
                const double tangent = loss.value(z, b) + slope * (other - z);
                EXPECT_GE(loss.value(other, b), tangent - 1e-13 * (1 + std::fabs(tangent))) << z << " " << other;
            }
        }
    });
}

TYPED_TEST(Losses, ValueIsConvexOnChords) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 1000; ++trial) {
            const double p = b + this->random.uniform(-6, 6), q = b + this->random.uniform(-6, 6);
            const double t = this->random.uniform();
            const double chord = t * loss.value(p, b) + (1 - t) * loss.value(q, b);
            EXPECT_LE(loss.value(t * p + (1 - t) * q, b), chord + 1e-13 * (1 + std::fabs(chord)));
        }
    });
}

TYPED_TEST(Losses, FenchelYoungTermIsNeverNegativeAndZeroAtTheDerivative) {
    this->each([&](const TypeParam &loss, double b) {
        const auto term = [&](double z, double y) { return loss.value(z, b) + loss.conjugate(y, b) - y * z; };
        const auto size = [&](double z, double y) {
            return std::fabs(loss.value(z, b)) + std::fabs(loss.conjugate(y, b)) + std::fabs(y * z) + std::fabs(b * y);
        };
        for (int trial = 0; trial < 1000; ++trial) {
            const double z = trial < 100 ? b + 0.1 * (trial - 50) : b + this->random.uniform(-8, 8);
            const double y = random_dual(loss.domain(b), this->random);
            EXPECT_GE(term(z, y), -1e-13 * size(z, y)) << "z = " << z << ", y = " << y;
            const double best = loss.derivative(z, b);
            EXPECT_NEAR(term(z, best), 0, 1e-12 * size(z, best)) << "z = " << z;
        }
    });
}

TYPED_TEST(Losses, ConjugateIsTheSupremum) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 100; ++trial) {
            const Interval domain = loss.domain(b);
            const double y = 0.999 * random_dual(domain, this->random) + 0.001 * random_dual(domain, this->random);
            const auto f = [&](double z) { return y * z - loss.value(z, b); };
            const double supremum = f(scalar_search(f, {-1e4, 1e4}, b));
            EXPECT_NEAR(loss.conjugate(y, b), supremum, 1e-9 * (1 + std::fabs(y * b))) << "y = " << y;
        }
    });
}

TYPED_TEST(Losses, DomainIsWhereTheConjugateIsFiniteAndHoldsZero) {
    this->each([&](const TypeParam &loss, double b) {
        const Interval domain = loss.domain(b);
        EXPECT_TRUE(domain.contains(0));
        EXPECT_TRUE(std::isfinite(loss.conjugate(0, b)));
        for (int trial = 0; trial < 50; ++trial) {
            EXPECT_TRUE(std::isfinite(loss.conjugate(random_dual(domain, this->random, 1e6), b)));
        }
        const auto diverges = [&](double y, double far) { return y * far - loss.value(far, b) > 1e4; };
        if (std::isfinite(domain.upper)) {
            EXPECT_TRUE(std::isfinite(loss.conjugate(domain.upper, b)));
            EXPECT_EQ(loss.conjugate(domain.upper + 1e-9, b), infinity);
            EXPECT_TRUE(diverges(domain.upper + 0.1, 1e6));
        }
        if (std::isfinite(domain.lower)) {
            EXPECT_TRUE(std::isfinite(loss.conjugate(domain.lower, b)));
            EXPECT_EQ(loss.conjugate(domain.lower - 1e-9, b), infinity);
            EXPECT_TRUE(diverges(domain.lower - 0.1, -1e6));
        }
    });
}

struct ProxCase {
    double z, y, sigma;
};

template <class L> ProxCase random_prox_case(const L &loss, double b, Random &random) {
    return {b + random.sign() * random.log_uniform(1e-3, 1e2), random_dual(loss.domain(b), random),
            random.log_uniform(1e-8, 1e8)};
}

TYPED_TEST(Losses, DualProxMaximisesItsObjective) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 400; ++trial) {
            const auto [z, y, sigma] = random_prox_case(loss, b, this->random);
            const auto f = [&, z = z, y = y, sigma = sigma](double beta) {
                return beta * z - loss.conjugate(beta, b) - 0.5 * (beta - y) * (beta - y) / sigma;
            };
            const double prox = loss.dual_prox(z, y, sigma, b);
            ASSERT_TRUE(loss.domain(b).contains(prox)) << prox;
            const double searched = scalar_search(f, loss.domain(b), y);
            const double size = std::fabs(prox * z) + std::fabs(loss.conjugate(prox, b)) + std::fabs(prox * b) +
                                (prox * prox + y * y) / sigma;
            EXPECT_GE(f(prox), f(searched) - 1e-13 * size) << "z = " << z << ", y = " << y << ", sigma = " << sigma;
        }
    });
}

// Moreau: beta is the prox exactly when it is a subgradient of phi at w = z - (beta - y)/sigma. Unlike the value, which is flat
// at its top, this sees every digit of beta.
TYPED_TEST(Losses, DualProxIsASubgradientWhereMoreauSaysSo) {
    this->each([&](const TypeParam &loss, double b) {
        for (int trial = 0; trial < 2000; ++trial) {
            const auto [z, y, sigma] = random_prox_case(loss, b, this->random);
            const double beta = loss.dual_prox(z, y, sigma, b);
            const double w = z - (beta - y) / sigma;
            const double size = std::fabs(beta) + std::fabs(y) + std::fabs(b);
            const double blur = 2e-15 * (1 + std::fabs(z) + size / sigma);
            const double slack = 1e-12 * (std::fabs(beta) + 1e-3 * std::fabs(b));
            EXPECT_GE(beta, loss.derivative(w - blur, b) - slack) << "z " << z << " y " << y << " sigma " << sigma;
            EXPECT_LE(beta, loss.derivative(w + blur, b) + slack) << "z " << z << " y " << y << " sigma " << sigma;
        }
    });
}

TYPED_TEST(Losses, GammaBoundsTheSlopeOfTheDerivativeAndIsReached) {
    this->each([&](const TypeParam &loss, double b) {
        double steepest = 0;
        const double h = 1e-4;
        for (int i = -1000; i <= 1000; ++i) {
            const double z = b + 0.01 * i; // the kinks are among these
            steepest = std::max(steepest, (loss.derivative(z + 0.5 * h, b) - loss.derivative(z - 0.5 * h, b)) / h);
        }
        for (int trial = 0; trial < 200; ++trial) {
            const double p = b + this->random.uniform(-9, 9), q = b + this->random.uniform(-9, 9);
            const double change = std::fabs(loss.derivative(p, b) - loss.derivative(q, b));
            EXPECT_LE(change * loss.gamma(), std::fabs(p - q) * (1 + 1e-12));
        }
        if (loss.gamma() > 0) {
            EXPECT_LE(steepest, (1 + 1e-9) / loss.gamma());
            EXPECT_GE(steepest, 0.999 / loss.gamma());
        } else {
            EXPECT_GE(steepest, 400); // a jump, or an exponential
        }
    });
}

TYPED_TEST(Losses, LipschitzConstantBoundsTheDerivativeAndIsReached) {
    this->each([&](const TypeParam &loss, double b) {
        double largest = 0;
        for (const double z : {-1e9, -1e3, 1e3, 1e9}) largest = std::max(largest, std::fabs(loss.derivative(z, b)));
        for (int trial = 0; trial < 200; ++trial) {
            largest = std::max(largest, std::fabs(loss.derivative(b + this->random.uniform(-20, 20), b)));
        }
        if (std::isfinite(loss.lipschitz())) {
            EXPECT_NEAR(largest, loss.lipschitz(), 1e-12);
        } else {
            EXPECT_GT(largest, 1e8);
        }
    });
}

TYPED_TEST(Losses, ShiftStartsAtItsArgumentGrowsAndStaysInTheDomain) {
    this->each([&](const TypeParam &loss, double b) {
        const Interval domain = loss.domain(b);
        for (int trial = 0; trial < 100; ++trial) {
            const double y = random_dual(domain, this->random);
            EXPECT_NEAR(loss.shift(y, 0, b), y, 4e-16 * (std::fabs(y) + std::fabs(b)));
            double last = -infinity;
            for (const double t : {-1e300, -800., -30., -2., -1e-3, 0., 1e-9, 1e-3, 0.1, 1., 5., 40., 800., 1e300}) {
                const double moved = loss.shift(y, t, b);
                EXPECT_FALSE(std::isnan(moved)) << "y = " << y << ", t = " << t;
                EXPECT_TRUE(domain.contains(moved)) << "y = " << y << ", t = " << t << " gives " << moved;
                EXPECT_GE(moved, last - 4e-16 * (std::fabs(y) + std::fabs(b))) << "y = " << y << ", t = " << t;
                last = moved;
            }
        }
    });
}

TYPED_TEST(Losses, ShiftSlopeIsTheLimitOfDifferences) {
    this->each([&](const TypeParam &loss, double b) {
        const Interval domain = loss.domain(b);
        for (int trial = 0; trial < 100; ++trial) {
            const double h = 1e-6;
            const double y =
                this->random.uniform(std::max(domain.lower, -3.0) + 1e-5, std::min(domain.upper, 3.0) - 1e-5);
            const double difference = (loss.shift(y, h, b) - loss.shift(y, -h, b)) / (2 * h);
            EXPECT_NEAR(loss.shift_slope(y, b), difference, 1e-8 * (1 + std::fabs(y) + std::fabs(b))) << "y = " << y;
        }
    });
}

TYPED_TEST(Losses, RecessionTellsWhetherTheLossFallsForEver) {
    this->each([&](const TypeParam &concrete, double b) {
        const AnyLoss loss = concrete;
        for (const double v : {-2.0, -0.5, 0.5, 2.0}) {
            bool falls = true; // strictly, as far as doubles can tell: at 500 the logistic loss is 1e-217
            for (double t = 8; t < 250; t *= 2) falls = falls && loss.value(2 * t * v, b) < loss.value(t * v, b);
            // a loss with its minimum at b = 40 also falls for a while
            falls = falls && loss.value(1e6 * v, b) <= loss.value(250 * v, b);
            EXPECT_EQ(loss.recession(v, b), falls ? -1 : 1) << "v = " << v;
        }
        EXPECT_NE(loss.recession(0, b), -1);
    });
}

TYPED_TEST(Losses, HugeArgumentsGiveNoNan) {
    this->each([&](const TypeParam &loss, double b) {
        for (const double size : {1e-300, 1e3, 1e10, 1e100, 1e300}) {
            for (const double z : {-size, size}) {
                SCOPED_TRACE(z);
                EXPECT_FALSE(std::isnan(loss.value(z, b)));
                EXPECT_FALSE(std::isnan(loss.derivative(z, b)));
                EXPECT_FALSE(std::isnan(loss.curvature(z, b)));
                EXPECT_FALSE(std::isnan(loss.conjugate(z, b)));
                EXPECT_FALSE(std::isnan(loss.conjugate(loss.domain(b).clip(loss.derivative(z, b)), b)));
                for (const double sigma : {1e-8, 1.0, 1e6}) {
                    const double prox = loss.dual_prox(z, 0, sigma, b);
                    EXPECT_TRUE(loss.domain(b).contains(prox)) << sigma << " gives " << prox;
                }
            }
        }
    });
}

TYPED_TEST(Losses, AnyLossForwardsEveryCall) {
    this->each([&](const TypeParam &loss, double b) {
        const AnyLoss any = loss;
        EXPECT_EQ(any.name(), TypeParam::name);
        EXPECT_EQ(any.task(), TypeParam::task);
        EXPECT_EQ(any.gamma(), loss.gamma());
        EXPECT_EQ(any.lipschitz(), loss.lipschitz());
        EXPECT_EQ(any.domain(b).lower, loss.domain(b).lower);
        EXPECT_EQ(any.domain(b).upper, loss.domain(b).upper);
        const double z = 0.4, y = random_dual(loss.domain(b), this->random), sigma = 0.7;
        EXPECT_EQ(any.value(z, b), loss.value(z, b));
        EXPECT_EQ(any.derivative(z, b), loss.derivative(z, b));
        EXPECT_EQ(any.curvature(z, b), loss.curvature(z, b));
        EXPECT_EQ(any.conjugate(y, b), loss.conjugate(y, b));
        EXPECT_EQ(any.dual_prox(z, y, sigma, b), loss.dual_prox(z, y, sigma, b));
        EXPECT_EQ(any.shift(y, 0.1, b), loss.shift(y, 0.1, b));
        EXPECT_EQ(any.shift_slope(y, b), loss.shift_slope(y, b));
    });
}

TYPED_TEST(Losses, FieldsOutOfTheirRangeAreRejected) {
    TypeParam defaults;
    EXPECT_NO_THROW(check_fields(defaults));
    std::vector<std::tuple<std::string, double>> bad;
    TypeParam::fields(defaults, [&](const Field &field, double) {
        bad.push_back({field.name, std::nan("")});
        if (std::isfinite(field.minimum)) bad.push_back({field.name, field.minimum - 1});
        if (std::isfinite(field.maximum))
            bad.push_back({field.name, field.maximum == finite ? infinity : field.maximum + 1});
        if (field.bound == Bound::open && std::isfinite(field.minimum)) bad.push_back({field.name, field.minimum});
        if (field.bound == Bound::open && std::isfinite(field.maximum)) bad.push_back({field.name, field.maximum});
    });
    for (const auto &[name, wrong] : bad) {
        TypeParam loss;
        TypeParam::fields(loss, [&, name = name, wrong = wrong](const Field &field, double &value) {
            if (field.name == name) value = wrong;
        });
        try {
            check_fields(loss);
            ADD_FAILURE() << name << " = " << wrong << " was accepted";
        } catch (const Error &error) {
            EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        }
    }
}

TEST(LossNames, AreUniqueAndMakeTheirLoss) {
    const std::vector<std::string> names = loss_names();
    EXPECT_EQ(names.size(), std::variant_size_v<AnyLoss::Variant>);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    for (const std::string &name : names) EXPECT_EQ(make_loss(name).name(), name);
}

TEST(LossNames, UnknownOneIsAnErrorThatSuggestsTheNearMissAndListsAll) {
    try {
        make_loss("lgistic");
        FAIL();
    } catch (const Error &error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
        const std::string message = error.what();
        EXPECT_NE(message.find("did you mean 'logistic'"), std::string::npos) << message;
        for (const std::string &name : loss_names()) EXPECT_NE(message.find(name), std::string::npos) << message;
    }
    EXPECT_THROW(make_loss(""), Error);
    EXPECT_THROW(make_loss("Logistic"), Error);
}

struct ByHand {
    AnyLoss loss;
    double z, b, value, derivative;
    double y, conjugate;
    double prox_z, prox_y, sigma, prox;
};

std::vector<ByHand> worked_by_hand() {
    const double ln2 = std::log(2.0), ln3 = std::log(3.0);
    return {
        {Squared{}, 3, 1, 2, 2, 2, 4, 4, 0, 3, 2.25},
        {Absolute{}, -1, 1, 2, -1, 0.5, 0.5, 4, 0.5, 0.1, 0.8},
        {Absolute{}, 1, 1, 0, 0, -1, -1, 4, 0.5, 1, 1},
        {Huber{}, 4, 1, 2.5, 1, 0.5, 0.625, 2, 0, 1, 0.5},
        {Huber{4}, 4, 1, 4.5, 3, -2, 0, 2, 1, 3, 1},
        {EpsilonInsensitive{0.5}, 3, 1, 1.5, 1, -0.5, -0.25, 2, 0, 1, 0.5},
        {SquaredEpsilonInsensitive{0.5}, 3, 1, 2.25, 3, 2, 4, 3, 0, 2, 1.5},
        {Quantile{0.25}, 1, 3, 0.5, -0.25, 0.5, 1.5, 4, 0.25, 0.25, 0.5},
        {Quantile{0.25}, 5, 3, 1.5, 0.75, -0.25, -0.75, 9, 0, 1, 0.75},
        {Poisson{}, 0, 2, 1, -1, -1, -1, 1 + ln3, 0, 1, 1}, // log 3 + e^log 3 = 1 + log 3 + b
        {Logistic{}, ln3, 1, std::log(4.0 / 3), -0.25, -0.5, -ln2, -0.5, -0.25, 0.5, -0.5},
        {Logistic{}, ln3, -1, std::log(4.0), 0.75, 0.25, 0.75 * ln3 - 2 * ln2, 0.5, 0.25, 0.5, 0.5},
        {Hinge{}, -1, 1, 2, -1, -0.5, -0.5, 0, -0.25, 0.5, -0.75},
        {Hinge{}, -1, -1, 0, 0, 0.5, -0.5, 3, 0, 1, 1},
        {SmoothedHinge{}, 0.5, 1, 0.125, -0.5, -0.5, -0.375, 0, 0, 1, -0.5},
        {SmoothedHinge{0.5}, 0, 1, 0.75, -1, -1, -0.75, 0.5, 0, 2, -0.5},
        {SquaredHinge{}, -1, 1, 4, -4, -2, -1, 0, 0, 2, -1},
        {SquaredHinge{}, 2, 1, 0, 0, -4, 0, 5, -1, 1, 0},
    };
}

TEST(LossValues, AreThoseWorkedByHand) {
    for (const ByHand &row : worked_by_hand()) {
        SCOPED_TRACE(std::string(row.loss.name()) + " at z = " + std::to_string(row.z));
        EXPECT_NEAR(row.loss.value(row.z, row.b), row.value, 1e-15);
        EXPECT_NEAR(row.loss.derivative(row.z, row.b), row.derivative, 1e-15);
        EXPECT_NEAR(row.loss.conjugate(row.y, row.b), row.conjugate, 1e-15);
        EXPECT_NEAR(row.loss.dual_prox(row.prox_z, row.prox_y, row.sigma, row.b), row.prox, 1e-14);
    }
}

TEST(LossValues, GammaAndLipschitzConstantsAreThoseOfTheTable) {
    const auto expect = [](const AnyLoss &loss, double gamma, double lipschitz) {
        EXPECT_EQ(loss.gamma(), gamma) << loss.name();
        EXPECT_EQ(loss.lipschitz(), lipschitz) << loss.name();
    };
    expect(Squared{}, 1, infinity);
    expect(Absolute{}, 0, 1);
    expect(Huber{}, 1, 1);
    expect(EpsilonInsensitive{}, 0, 1);
    expect(SquaredEpsilonInsensitive{}, 0.5, infinity);
    expect(Quantile{}, 0, 0.5);
    expect(Poisson{}, 0, infinity);
    expect(Logistic{}, 4, 1);
    expect(Hinge{}, 0, 1);
    expect(SmoothedHinge{}, 1, 1);
    expect(SquaredHinge{}, 0.5, infinity);
}

} // namespace
} // namespace spdc::tests
