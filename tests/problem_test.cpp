#include "random.h"
#include "spdc/problem.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace spdc::tests {
namespace {

void expect_close(double value, long double expected, double relative = 1e-13) {
    if (std::isinf(value)) {
        EXPECT_EQ(value, static_cast<double>(expected));
        return;
    }
    EXPECT_NEAR(value, static_cast<double>(expected), relative * (1 + std::fabs(static_cast<double>(expected))));
}

void expect_error(const std::function<void()> &call, ErrorKind kind, const std::string &words) {
    try {
        call();
        ADD_FAILURE() << "no error about '" << words << "'";
    } catch (const Error &error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
}

ProblemOptions with_intercept(Intercept intercept) {
    ProblemOptions options;
    options.intercept = intercept;
    return options;
}

constexpr Intercept all_intercepts[] = {Intercept::none, Intercept::free, Intercept::penalized};

const AnyRegularizer penalties[] = {L2{0.1}, ElasticNet{0.05, 0.1}, ElasticNet{0.5, 0}, Box{0.02, 0.1, {-0.5, 1}},
                                    L2{0}};

/// Every loss with every penalty and kind of intercept, with and without row weights.
void each_problem(const std::function<void(const Problem &)> &check) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        for (const AnyRegularizer &g : penalties) {
            for (const Intercept intercept : all_intercepts) {
                for (const bool weighted : {false, true}) {
                    SCOPED_TRACE(name + ", " + std::string(g.name()) + ", intercept " +
                                 std::string(to_string(intercept)) + (weighted ? ", weighted" : ""));
                    check({tiny_dataset({.task = loss.task(), .weighted = weighted}), loss, g,
                           with_intercept(intercept)});
                }
            }
        }
    }
}

TEST(Problem, PrimalAndDualAreThoseOfTheSlowOracle) {
    Random random(5);
    each_problem([&](const Problem &problem) {
        const DenseProblem slow = dense_copy(problem);
        for (int trial = 0; trial < 3; ++trial) {
            const auto x = random_point(problem.dimension(), random, 0.3);
            const auto y = random_dual(problem, random, 0.3);
            expect_close(problem.primal(x), primal(slow, x));
            expect_close(problem.dual(y), dual(slow, y));
        }
    });
}

TEST(Problem, PredictAndCombineAreTheTwoProductsOfTheMatrix) {
    Random random(6);
    each_problem([&](const Problem &problem) {
        const DenseProblem slow = dense_copy(problem);
        const auto x = random_point(problem.dimension(), random);
        const auto y = random_dual(problem, random);
        std::vector<double> z(slow.n()), u(slow.d());
        problem.predict(x, z);
        problem.combine(y, u);
        const std::vector<double> expected = combine(slow, y);
        for (std::size_t i = 0; i < slow.n(); ++i) expect_close(z[i], dot(slow.a[i], x));
        for (std::size_t j = 0; j < slow.d(); ++j) expect_close(u[j], expected[j]);
    });
}

TEST(Problem, PrimalIsNeverBelowDual) {
    Random random(7);
    each_problem([&](const Problem &problem) {
        for (int trial = 0; trial < 10; ++trial) {
            const double scale = random.log_uniform(1e-3, 10);
            const double p = problem.primal(random_point(problem.dimension(), random, scale));
            const double d = problem.dual(random_dual(problem, random, scale));
            EXPECT_GE(p, d - 1e-13 * (std::fabs(p) + std::fabs(d)));
        }
    });
}

TEST(Problem, KnownOptimaHaveNoGap) {
    for (const KnownAnswer &known : known_answers()) {
        SCOPED_TRACE(known.name);
        EXPECT_NEAR(known.problem.primal(known.x), known.value, 1e-14);
        EXPECT_NEAR(known.problem.dual(known.y), known.value, 1e-14);
    }
}

TEST(Problem, EveryStorageGivesTheSameNumbers) {
    Random random(8);
    for (const Task task : {Task::classification, Task::regression}) {
        const AnyLoss loss = task == Task::classification ? AnyLoss(Logistic{}) : AnyLoss(Huber{});
        const TinyData data = tiny_data({.task = task, .weighted = true});
        const Problem reference(as_dataset(data), loss, ElasticNet{0.1, 0.1}, with_intercept(Intercept::penalized));
        const auto x = random_point(reference.dimension(), random);
        const auto y = random_dual(reference, random);
        for (const Storage storage : all_storages) {
            const Problem problem(as_dataset(data, storage), loss, ElasticNet{0.1, 0.1},
                                  with_intercept(Intercept::penalized));
            EXPECT_NEAR(problem.primal(x), reference.primal(x), 1e-14);
            EXPECT_NEAR(problem.dual(y), reference.dual(y), 1e-14);
            EXPECT_EQ(problem.rows(), reference.rows());
            EXPECT_EQ(problem.features(), reference.features());
        }
    }
}

TEST(Problem, FloatValuesThatHoldTheDataGiveTheSameBitsAsDoubles) {
    Random random(9);
    const TinyData data = tiny_data();
    const Problem narrow(as_dataset(data, Storage::csr_float), Logistic{}, L2{0.1});
    const Problem wide(as_dataset(data, Storage::csr_double), Logistic{}, L2{0.1});
    const auto x = random_point(wide.dimension(), random);
    const auto y = random_dual(wide, random);
    EXPECT_EQ(narrow.primal(x), wide.primal(x));
    EXPECT_EQ(narrow.dual(y), wide.dual(y));
}

TEST(Problem, WholeWeightsEqualRepeatedRows) {
    Random random(10);
    TinyData weighted = tiny_data();
    TinyData repeated;
    std::vector<std::size_t> origin;
    for (std::size_t i = 0; i < weighted.rows.size(); ++i) {
        const auto copies = static_cast<std::size_t>(1 + random.index(3));
        weighted.weights.push_back(static_cast<double>(copies));
        for (std::size_t copy = 0; copy < copies; ++copy) {
            repeated.rows.push_back(weighted.rows[i]);
            repeated.targets.push_back(weighted.targets[i]);
            origin.push_back(i);
        }
    }
    for (const Intercept intercept : all_intercepts) {
        const Problem one(as_dataset(weighted), SmoothedHinge{}, L2{0.1}, with_intercept(intercept));
        const Problem many(as_dataset(repeated), SmoothedHinge{}, L2{0.1}, with_intercept(intercept));
        const auto x = random_point(one.dimension(), random);
        const auto y = random_dual(one, random);
        std::vector<double> y_repeated;
        for (const std::size_t i : origin) y_repeated.push_back(y[i]);
        EXPECT_NEAR(one.primal(x), many.primal(x), 1e-14);
        expect_close(one.dual(y), many.dual(y_repeated));
        EXPECT_EQ(one.total_weight(), static_cast<double>(many.rows()));
    }
}

TEST(Problem, RowsOfWeightZeroAreAbsent) {
    Random random(11);
    TinyData data = tiny_data({.weighted = true}), kept;
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        if (i % 3 == 2) {
            data.weights[i] = 0;
            continue;
        }
        kept.rows.push_back(data.rows[i]);
        kept.targets.push_back(data.targets[i]);
        kept.weights.push_back(data.weights[i]);
        expected.push_back(static_cast<std::int64_t>(i));
    }
    for (const Storage storage : all_storages) {
        const Problem with(as_dataset(data, storage), Logistic{}, L2{0.1});
        const Problem without(as_dataset(kept, storage), Logistic{}, L2{0.1});
        EXPECT_EQ(with.rows(), without.rows());
        EXPECT_EQ(with.data_rows(), static_cast<std::int64_t>(data.rows.size()));
        EXPECT_EQ(std::vector<std::int64_t>(with.kept_rows().begin(), with.kept_rows().end()), expected);
        const auto x = random_point(with.dimension(), random);
        const auto y = random_dual(with, random);
        EXPECT_EQ(with.primal(x), without.primal(x));
        EXPECT_EQ(with.dual(y), without.dual(y));

        ProblemOptions options;
        options.copy = false;
        const Problem where_it_lies(as_dataset(data, storage), Logistic{}, L2{0.1}, options);
        EXPECT_EQ(where_it_lies.rows(), where_it_lies.data_rows());
        EXPECT_EQ(where_it_lies.total_weight(), without.total_weight());
        EXPECT_NEAR(where_it_lies.primal(x), without.primal(x), 1e-14);
        std::vector<double> spread(data.rows.size(), 0.0);
        for (std::size_t k = 0; k < expected.size(); ++k) spread[static_cast<std::size_t>(expected[k])] = y[k];
        EXPECT_NEAR(where_it_lies.dual(spread), without.dual(y), 1e-14);
    }
}

TEST(Problem, EqualWeightsAreNoWeights) {
    TinyData data = tiny_data();
    const Problem plain(as_dataset(data), Logistic{}, L2{0.1});
    data.weights.assign(data.rows.size(), 0.3);
    const Problem weighted(as_dataset(data), Logistic{}, L2{0.1});
    EXPECT_TRUE(plain.importance().empty());
    EXPECT_TRUE(weighted.importance().empty());
    EXPECT_EQ(weighted.importance(4), 1);
    EXPECT_NEAR(weighted.total_weight(), 0.3 * static_cast<double>(data.rows.size()), 1e-13);
    const std::vector<double> x(static_cast<std::size_t>(plain.dimension()), 0.25);
    EXPECT_EQ(plain.primal(x), weighted.primal(x));
}

TEST(Problem, ImportanceAveragesToOne) {
    const Problem problem(tiny_dataset({.weighted = true}), Logistic{}, L2{0.1});
    double sum = 0;
    for (std::int64_t i = 0; i < problem.rows(); ++i) sum += problem.importance(i);
    EXPECT_NEAR(sum, static_cast<double>(problem.rows()), 1e-12);
}

TEST(Problem, ClassWeightsMultiplyRowWeights) {
    Random random(12);
    for (const bool weighted : {false, true}) {
        TinyData data = tiny_data({.weighted = weighted});
        ProblemOptions options;
        options.class_weights = {{"1", 2.5}};
        const Problem by_class(as_dataset(data), Logistic{}, L2{0.1}, options);
        if (!weighted) data.weights.assign(data.rows.size(), 1);
        for (std::size_t i = 0; i < data.rows.size(); ++i) data.weights[i] *= data.targets[i] > 0 ? 2.5 : 1;
        const Problem by_row(as_dataset(data), Logistic{}, L2{0.1});
        const auto x = random_point(by_row.dimension(), random);
        EXPECT_NEAR(by_class.primal(x), by_row.primal(x), 1e-15);
        EXPECT_NEAR(by_class.total_weight(), by_row.total_weight(), 1e-12);
    }
}

TEST(Problem, BalancedGivesEveryClassTheSameWeight) {
    TinyData data = tiny_data({.labels = 3});
    data.weights.assign(data.rows.size(), 1);
    data.weights[0] = 4;
    ProblemOptions options;
    options.balanced = true;
    const Problem problem(as_dataset(data), Logistic{}, L2{0.1}, options);
    std::vector<double> mass(3, 0.0);
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        mass[static_cast<std::size_t>(data.targets[static_cast<std::size_t>(i)]) - 1] += problem.importance(i);
    }
    for (const double m : mass) EXPECT_NEAR(m, static_cast<double>(problem.rows()) / 3, 1e-12);
    EXPECT_NEAR(problem.total_weight(), static_cast<double>(problem.rows()) + 3, 1e-12);
}

TEST(Problem, ClassWeightsThatFitNothingAreErrors) {
    const auto with = [](std::map<std::string, double> weights, bool balanced, AnyLoss loss) {
        return [=] {
            ProblemOptions options;
            options.class_weights = weights;
            options.balanced = balanced;
            const Problem problem(tiny_dataset(), loss, L2{1}, options);
        };
    };
    expect_error(with({{"2", 1}}, false, Logistic{}), ErrorKind::invalid_argument, "'2'");
    expect_error(with({{"1", -1}}, false, Logistic{}), ErrorKind::invalid_argument, "1=-1");
    expect_error(with({{"1", 2}}, true, Logistic{}), ErrorKind::invalid_argument, "not both");
    expect_error(with({}, true, Squared{}), ErrorKind::invalid_argument, "squared");
    expect_error(with({{"1", 0}, {"-1", 0}}, false, Logistic{}), ErrorKind::bad_file, "zero");
}

TEST(Problem, LargerLabelIsPlusOne) {
    const Problem problem = make_problem({{1}, {2}, {3}}, {7, 2, 7}, Hinge{}, L2{1});
    EXPECT_EQ(problem.outputs(), 1);
    EXPECT_EQ(std::vector<double>(problem.targets().begin(), problem.targets().end()), (std::vector<double>{1, -1, 1}));
    EXPECT_EQ(std::vector<double>(problem.labels().begin(), problem.labels().end()), (std::vector<double>{2, 7}));
    EXPECT_EQ(problem.label_names()[1], "7");
}

TEST(Problem, TextLabelsKeepTheirNames) {
    Dataset data = as_dataset({{{1}, {2}, {3}}, {1, 0, 1}, {}});
    data.label_names = {"ham", "spam"};
    const Problem problem(data, Hinge{}, L2{1});
    EXPECT_EQ(problem.label_names()[0], "ham");
    EXPECT_EQ(problem.label_names()[1], "spam");
    EXPECT_EQ(problem.targets()[0], 1);
    EXPECT_EQ(problem.targets()[1], -1);
    expect_error([&] { const Problem wrong(data, Squared{}, L2{1}); }, ErrorKind::bad_file, "ham");
}

TEST(Problem, ThreeLabelsHaveThreeOutputsOneAgainstTheRest) {
    Random random(13);
    const TinyData data = tiny_data({.labels = 3, .weighted = true});
    const Problem problem(as_dataset(data), Logistic{}, L2{0.1});
    ASSERT_EQ(problem.outputs(), 3);
    const auto x = random_point(problem.dimension(), random);
    for (std::int64_t k = 0; k < 3; ++k) {
        const Problem output = problem.output(k);
        EXPECT_EQ(output.outputs(), 1);
        TinyData binary = data;
        for (double &target : binary.targets) target = target == static_cast<double>(k + 1) ? 1 : -1;
        const Problem expected(as_dataset(binary), Logistic{}, L2{0.1});
        EXPECT_EQ(output.primal(x), expected.primal(x));
        EXPECT_EQ(std::vector<double>(output.targets().begin(), output.targets().end()), binary.targets);
    }
}

TEST(Problem, OutputOfAProblemOfOneOutputIsItself) {
    Random random(14);
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.1});
    const auto x = random_point(problem.dimension(), random);
    EXPECT_EQ(problem.output(0).primal(x), problem.primal(x));
}

TEST(Problem, OneClassOnlyIsAnErrorThatNamesIt) {
    expect_error([] { make_problem({{1}, {2}}, {3, 3}, Logistic{}, L2{1}); }, ErrorKind::bad_file, "label 3");
    TinyData data = tiny_data();
    for (std::size_t i = 0; i < data.rows.size(); ++i) data.weights.push_back(data.targets[i] > 0 ? 1 : 0);
    expect_error([&] { const Problem problem(as_dataset(data), Logistic{}, L2{1}); }, ErrorKind::bad_file, "label 1");
}

TEST(ProblemThreads, FindTheSameLabelsAndTheRowThatIsWrong) {
    constexpr std::size_t n = 300000;
    Dataset data;
    data.matrix = DenseMatrix<double>::own(n, 1, std::vector<double>(n, 1.0));
    Random random(3);
    for (std::size_t i = 0; i < n; ++i) data.targets.push_back(random.uniform() < 0.5 ? 2 : 7);
    ProblemOptions options;
    options.threads = 3;
    const Problem two(data, Logistic{}, L2{1}, options);
    EXPECT_THAT(two.labels(), testing::ElementsAre(2, 7));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(two.targets()[i], data.targets[i] == 7 ? 1 : -1);
    data.targets[n - 2] = 5; // a third one, late
    EXPECT_THAT(Problem(data, Logistic{}, L2{1}, options).labels(), testing::ElementsAre(2, 5, 7));
    data.targets[n - 1] = std::numeric_limits<double>::quiet_NaN();
    expect_error([&] { Problem(data, Logistic{}, L2{1}, options); }, ErrorKind::invalid_argument, "of row 299999");
    for (std::size_t i = 0; i < n; ++i) data.targets[i] = static_cast<double>(i % 1200);
    expect_error([&] { Problem(data, Logistic{}, L2{1}, options); }, ErrorKind::bad_file, "1200 different labels");
}

TEST(Problem, ManyLabelsAreTakenForRegressionTargets) {
    TinyData data;
    for (int i = 0; i < 1500; ++i) {
        data.rows.push_back({1});
        data.targets.push_back(0.5 * i);
    }
    expect_error([&] { const Problem problem(as_dataset(data), Hinge{}, L2{1}); }, ErrorKind::bad_file, "regression");
}

TEST(Problem, NegativeCountsAreAnErrorThatNamesTheRow) {
    expect_error([] { make_problem({{1}, {2}, {3}}, {0, 2, -1}, Poisson{}, L2{1}); }, ErrorKind::bad_file, "row 3");
    Dataset data = as_dataset({{{1}, {2}, {3}}, {0, 2, -1}, {0, 1, 1}});
    expect_error([&] { const Problem problem(data, Poisson{}, L2{1}); }, ErrorKind::bad_file, "row 3");
    data.weights = {1, 1, 0};
    EXPECT_NO_THROW(Problem(data, Poisson{}, L2{1}));
}

TEST(Problem, LossParametersOutOfRangeAreErrors) {
    expect_error([] { make_problem({{1}}, {0}, Huber{-1}, L2{1}); }, ErrorKind::invalid_argument, "delta");
    expect_error([] { make_problem({{1}}, {0}, Quantile{1}, L2{1}); }, ErrorKind::invalid_argument, "quantile");
}

TEST(Problem, PenaltyFactorsMultiplyThePenaltyOfTheirFeature) {
    Random random(15);
    ProblemOptions options = with_intercept(Intercept::penalized);
    options.penalty_factors = {1, 0, 2.5};
    const Problem problem = make_problem({{1, 2, 3}, {-1, 0, 2}}, {1, 2}, Squared{}, ElasticNet{0.5, 0.25}, options);
    const DenseProblem slow = dense_copy(problem);
    for (int trial = 0; trial < 10; ++trial) {
        const auto x = random_point(4, random);
        double penalty = 0;
        const std::vector<double> factors{1, 0, 2.5, 1};
        for (std::size_t j = 0; j < 4; ++j) {
            penalty += factors[j] * (0.5 * std::fabs(x[j]) + 0.125 * x[j] * x[j]);
        }
        const double first = x[0] + 2 * x[1] + 3 * x[2] + x[3] - 1, second = -x[0] + 2 * x[2] + x[3] - 2;
        EXPECT_NEAR(problem.primal(x), 0.25 * (first * first + second * second) + penalty, 1e-13);
        expect_close(problem.primal(x), primal(slow, x));
    }
    EXPECT_EQ(problem.strong_convexity(), 0.25);
    EXPECT_FALSE(problem.is_strongly_convex());
    EXPECT_TRUE(problem.needs_radius());
    ASSERT_EQ(problem.free_coordinates().size(), 1u);
    EXPECT_EQ(problem.free_coordinates()[0], 1);
}

TEST(Problem, PenaltyFactorsThatDoNotFitAreErrors) {
    const auto with = [](std::vector<double> factors) {
        return [=] {
            ProblemOptions options;
            options.penalty_factors = factors;
            make_problem({{1, 2}}, {1}, Squared{}, L2{1}, options);
        };
    };
    expect_error(with({1}), ErrorKind::bad_file, "1 penalty factors for 2 features");
    expect_error(with({1, -1}), ErrorKind::bad_file, "feature 2");
    expect_error(with({infinity, 1}), ErrorKind::bad_file, "feature 1");
    EXPECT_NO_THROW(with({1, 0})());
}

struct Shape {
    AnyRegularizer g;
    Intercept intercept;
    std::vector<std::int64_t> free;
    bool needs_radius;
    double strong_convexity;
    bool all_strong;
};

TEST(Problem, KnowsWhichCoordinatesAreFree) {
    const std::vector<Shape> shapes{
        {L2{0.5}, Intercept::none, {}, false, 0.5, true},
        {L2{0.5}, Intercept::penalized, {}, false, 0.5, true},
        {L2{0.5}, Intercept::free, {2}, true, 0.5, false},
        {L2{0}, Intercept::none, {0, 1}, true, 0, false},
        {L2{0}, Intercept::free, {0, 1, 2}, true, 0, false},
        {ElasticNet{0.5, 0}, Intercept::none, {}, false, 0, false},
        {ElasticNet{0.5, 0}, Intercept::free, {2}, true, 0, false},
        {Box{0, 0, {-1, 1}}, Intercept::none, {}, false, 0, false},
        {Box{0, 0, {0, infinity}}, Intercept::none, {}, true, 0, false},
        {Box{0.5, 0, {0, infinity}}, Intercept::penalized, {}, false, 0, false},
        {Box{0, 0.5, {0, infinity}}, Intercept::none, {}, false, 0.5, true},
    };
    for (std::size_t s = 0; s < shapes.size(); ++s) {
        SCOPED_TRACE(s);
        const Shape &shape = shapes[s];
        const Problem problem =
            make_problem({{1, 2}, {2, 1}}, {1, 2}, Squared{}, shape.g, with_intercept(shape.intercept));
        EXPECT_EQ(std::vector<std::int64_t>(problem.free_coordinates().begin(), problem.free_coordinates().end()),
                  shape.free);
        EXPECT_EQ(problem.needs_radius(), shape.needs_radius);
        EXPECT_EQ(problem.strong_convexity(), shape.strong_convexity);
        EXPECT_EQ(problem.is_strongly_convex(), shape.all_strong);
        EXPECT_EQ(problem.dimension(), shape.intercept == Intercept::none ? 2 : 3);
    }
}

TEST(Problem, PenalizedInterceptEqualsAColumnOfOnes) {
    Random random(16);
    const TinyData data = tiny_data({.weighted = true});
    TinyData widened = data;
    for (auto &row : widened.rows) row.push_back(1);
    const Problem constant(as_dataset(data), Logistic{}, ElasticNet{0.1, 0.2}, with_intercept(Intercept::penalized));
    const Problem column(as_dataset(widened), Logistic{}, ElasticNet{0.1, 0.2});
    const auto x = random_point(column.dimension(), random);
    const auto y = random_dual(column, random);
    EXPECT_NEAR(constant.primal(x), column.primal(x), 1e-14);
    EXPECT_NEAR(constant.dual(y), column.dual(y), 1e-14);
}

TEST(Problem, DualOfAFreeInterceptIsMinusInfinityUnlessTheDualsBalance) {
    const Problem problem = make_problem({{1}, {-1}}, {1, 3}, Absolute{}, L2{1}, with_intercept(Intercept::free));
    EXPECT_EQ(problem.dual(std::vector<double>{0.5, 0.25}), -infinity);
    EXPECT_NEAR(problem.dual(std::vector<double>{0.5, -0.5}), -(0.5 - 1.5) / 2 - 0.125, 1e-15);
}

TEST(Problem, InterceptNamesAreThoseTheyPrintAs) {
    for (const Intercept intercept : all_intercepts) {
        EXPECT_EQ(parse_intercept(std::string(to_string(intercept))), intercept);
    }
    expect_error([] { parse_intercept("fre"); }, ErrorKind::invalid_argument, "'free'");
}

TEST(Problem, FindsALabelWhereverItIs) {
    for (const std::size_t third : {0U, 1U, 255U, 256U, 511U, 600U, 767U, 768U, 999U}) {
        std::vector<std::vector<double>> rows(1000, {1.0});
        std::vector<double> targets(1000, 4);
        for (std::size_t i = 300; i < 1000; ++i) targets[i] = i % 2 == 0 ? 4 : -8;
        targets[third] = -2;
        const Problem problem = make_problem(rows, targets, Logistic{}, L2{1});
        EXPECT_THAT(problem.labels(), testing::ElementsAre(-8, -2, 4)) << third;
        for (std::int64_t k = 0; k < 3; ++k) {
            const Problem single = problem.output(k);
            for (std::size_t i = 0; i < 1000; ++i) {
                ASSERT_EQ(single.targets()[i], targets[i] == problem.labels()[static_cast<std::size_t>(k)] ? 1 : -1);
            }
        }
    }
}

TEST(Problem, RowNormsLeaveWeightAndInterceptOut) {
    Dataset data = as_dataset({{{3, 4}, {0, 0}, {-1, 1}}, {1, 2, 3}, {1, 2, 3}});
    const Problem problem(data, Squared{}, L2{1}, with_intercept(Intercept::free));
    EXPECT_THAT(problem.squared_row_norms(), testing::ElementsAre(25, 0, 2));
}

TEST(Problem, FindsTheOneValueOfEveryRow) {
    const auto values = [](std::vector<std::vector<double>> rows, Storage storage) {
        const Dataset data = as_dataset({std::move(rows), {1, 2, 3}, {}}, storage);
        const Problem problem(data, Squared{}, L2{1});
        const auto found = problem.row_values();
        return std::vector<double>(found.begin(), found.end());
    };
    for (const Storage sparse : {Storage::csr_float, Storage::csr_double}) {
        EXPECT_EQ(values({{3, 3, 0}, {0, 0, 0}, {0, -2, -2}}, sparse), (std::vector<double>{3, 0, -2}));
        EXPECT_TRUE(values({{3, 3, 0}, {0, 0, 0}, {0, -2, 2}}, sparse).empty());
    }
    EXPECT_TRUE(values({{3, 3, 3}, {1, 1, 1}, {2, 2, 2}}, Storage::dense_double).empty());
}

TEST(Problem, RowsOfOneValueGiveTheProductsOfAnyRows) {
    Random random(5);
    TinyData data;
    for (int i = 0; i < 300; ++i) {
        std::vector<double> row(200);
        const double value = random.normal();
        for (double &entry : row) entry = random.uniform() < 0.2 ? value : 0.0;
        data.rows.push_back(row);
        data.targets.push_back(random.normal());
    }
    const Problem sparse(as_dataset(data, Storage::csr_double), Squared{}, L2{1});
    const Problem dense(as_dataset(data, Storage::dense_double), Squared{}, L2{1});
    ASSERT_FALSE(sparse.row_values().empty());
    std::vector<double> x(200), y(300), z(300), z_dense(300), u(200), u_dense(200);
    for (double &v : x) v = random.normal();
    for (double &v : y) v = random.normal();
    sparse.predict(x, z);
    dense.predict(x, z_dense);
    sparse.combine(y, u);
    dense.combine(y, u_dense);
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_NEAR(z[i], z_dense[i], 1e-12 * (1 + std::fabs(z_dense[i])));
    for (std::size_t j = 0; j < u.size(); ++j) EXPECT_NEAR(u[j], u_dense[j], 1e-12 * (1 + std::fabs(u_dense[j])));
}

} // namespace
} // namespace spdc::tests
