#include "support/oracles.h"
#include "support/problems.h"

#include "random.h"
#include "solvers/methods.h"
#include "solvers/spdc_fast.h"
#include "spdc/solvers.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <set>

namespace spdc::tests {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Blocks {
    std::int64_t rows = 1;
    std::size_t streams = 1;
};

/// The order in which spdc_fast visits rows: a shuffle to store short ones, long ones stay where they are; then in every sweep blocks
/// in random order, the first one shorter by a random number of rows; the rows of so many blocks take turns, each block forwards or backwards.
class VisitingOrder {
  public:
    VisitingOrder(std::int64_t n, Blocks blocks, bool rows_are_long, std::uint64_t seed)
        : random_(seed), block_(blocks.rows), streams_(blocks.streams), stored_(at(n)) {
        std::iota(stored_.begin(), stored_.end(), 0);
        if (!rows_are_long) random_.shuffle(stored_);
    }
    std::vector<std::int64_t> next_sweep() {
        const std::int64_t shift = random_.below(block_), n = static_cast<std::int64_t>(stored_.size());
        std::vector<std::vector<std::int64_t>> blocks;
        for (std::int64_t begin = -shift; begin < n; begin += block_) {
            std::vector<std::int64_t> &block = blocks.emplace_back(at(block_));
            std::iota(block.begin(), block.end(), begin);
            if (block_ > 1 && random_.below(2) == 1) std::reverse(block.begin(), block.end());
        }
        random_.shuffle(blocks);
        std::vector<std::int64_t> rows;
        for (std::size_t first = 0; first < blocks.size(); first += streams_) {
            for (std::size_t turn = 0; turn < at(block_); ++turn) {
                for (std::size_t k = first; k < std::min(first + streams_, blocks.size()); ++k) {
                    const std::int64_t i = blocks[k][turn];
                    if (0 <= i && i < n) rows.push_back(stored_[at(i)]);
                }
            }
        }
        return rows;
    }

  private:
    spdc::Random random_;
    std::int64_t block_;
    std::size_t streams_;
    std::vector<std::int64_t> stored_;
};

Tiny full_rows(Task task) {
    Tiny tiny;
    tiny.rows = 30;
    tiny.columns = 7;
    tiny.density = 0.7;
    tiny.task = task;
    return tiny;
}

/// Read with their zeros.
Tiny nearly_full_rows(Task task) {
    Tiny tiny = full_rows(task);
    tiny.columns = 83;
    tiny.density = 0.9;
    return tiny;
}

void expect_eager_twin(const TinyData &data, const AnyLoss &loss, double lambda, double omega, bool is_sdca,
                       Blocks blocks = {}, int sweeps = 25, Intercept intercept = Intercept::none) {
    ProblemOptions options;
    options.intercept = intercept;
    const Problem problem(as_dataset(data), loss, L2{lambda}, options);
    SolveContext context;
    context.seed = 5;
    const auto method = is_sdca
                            ? make_method(problem, Sdca{.shrinking = false, .owners = {}}, context)
                            : make_method(problem, SpdcFast{.omega = omega, .shrinking = false, .owners = {}}, context);
    const double n = static_cast<double>(problem.rows());
    const double tau =
        is_sdca ? 1 / (lambda * n) : omega * std::sqrt(loss.gamma() / (lambda * n)) / median_norm(problem);
    EagerFast twin = eager_fast(problem, lambda, tau, is_sdca);
    VisitingOrder order(problem.rows(), blocks, problem.nonzeros() >= 32 * problem.rows(), context.seed);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (const std::int64_t i : order.next_sweep()) twin.visit(at(i));
        method->advance(1);
    }
    std::vector<double> x, y;
    method->point(x, y);
    const std::vector<double> expected = weights(twin, problem);
    double size = 0;
    for (const double v : expected) size = std::max(size, std::fabs(v));
    for (std::size_t j = 0; j < x.size(); ++j) {
        EXPECT_NEAR(x[j], expected[j], 1e-9 * size) << loss.name() << " lambda " << lambda << " omega " << omega;
    }
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], twin.y[i], 1e-9) << loss.name();
}

TEST(SpdcFast, EqualsTheEagerTwinIterateForIterate) {
    for (const AnyLoss &loss :
         {AnyLoss(SmoothedHinge{}), AnyLoss(Squared{}), AnyLoss(SquaredHinge{}), AnyLoss(Huber{0.5})}) {
        for (const double lambda : {1e-1, 1e-3, 1e-6}) {
            Tiny long_rows = full_rows(loss.task());
            long_rows.columns = 40;
            long_rows.density = 1;
            const TinyData some = tiny_data(full_rows(loss.task())), many = tiny_data(long_rows),
                           nearly_all = tiny_data(nearly_full_rows(loss.task()));
            for (const TinyData &data :
                 {some, many, nearly_all, with_one_value_a_row(some), with_one_value_a_row(many)}) {
                for (const double omega : {0.5, 1.0, 3.0}) expect_eager_twin(data, loss, lambda, omega, false);
                expect_eager_twin(data, loss, lambda, 0, true);
            }
        }
    }
}

TEST(SpdcFast, EqualsTheEagerTwinWithAnIntercept) {
    for (const Intercept intercept : {Intercept::penalized, Intercept::free}) {
        for (const double lambda : {1e-1, 1e-4}) {
            const TinyData data = tiny_data(full_rows(Task::classification));
            for (const double omega : {1.0, 3.0}) {
                expect_eager_twin(data, SquaredHinge{}, lambda, omega, false, {}, 25, intercept);
            }
            expect_eager_twin(data, SquaredHinge{}, lambda, 0, true, {}, 25, intercept);
        }
    }
}

TinyData with_constant(TinyData data, double value, bool is_first) {
    for (auto &row : data.rows) row.insert(is_first ? row.begin() : row.end(), value);
    return data;
}

std::pair<std::vector<double>, std::vector<double>> point_after(Method &method, double passes) {
    method.advance(passes);
    std::vector<double> x, y;
    method.point(x, y);
    return {x, y};
}

void expect_penalised_intercept(const TinyData &data) {
    ProblemOptions options;
    options.intercept = Intercept::penalized;
    for (const Storage storage : all_storages) {
        for (const bool copy : {true, false}) {
            SolveContext context;
            context.copy = copy;
            const Problem with_intercept(as_dataset(data, storage), SquaredHinge{}, L2{1e-3}, options);
            const auto [x, y] = point_after(*make_method(with_intercept, SpdcFast{}, context), 12);
            for (const bool is_first : {true, false}) {
                const Problem problem(as_dataset(with_constant(data, 1, is_first), storage), SquaredHinge{}, L2{1e-3});
                const auto method = make_method(problem, SpdcFast{}, context);
                auto [found_x, found_y] = point_after(*method, 12);
                if (is_first) std::rotate(found_x.begin(), found_x.begin() + 1, found_x.end());
                for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(found_x[j], x[j], 1e-12) << j;
                for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(found_y[i], y[i], 1e-12) << i;
                std::vector<double> start_x(x.size(), 0.5), start_y;
                for (const double b : problem.targets()) start_y.push_back(-0.3 * b);
                method->start(start_x, start_y);
                EXPECT_EQ(point_after(*method, 0), std::pair(start_x, start_y));
            }
        }
    }
}

TEST(SpdcFast, AConstantColumnIsAPenalisedIntercept) {
    expect_penalised_intercept(tiny_data(full_rows(Task::classification)));
    expect_penalised_intercept(tiny_data(nearly_full_rows(Task::classification)));
}

TEST(SpdcFast, EqualsTheEagerTwinWithAConstantColumn) {
    const double lambda = 1e-3, value = -3;
    const TinyData data = tiny_data(full_rows(Task::classification));
    const double R = median_norm(Problem(as_dataset(data), SquaredHinge{}, L2{lambda})), column = R / 4;
    const Problem problem(as_dataset(with_constant(data, value, true)), SquaredHinge{}, L2{lambda});
    SolveContext context;
    context.seed = 5;
    const auto method = make_method(problem, SpdcFast{.omega = 2, .shrinking = false, .owners = {}}, context);
    DenseProblem dense = dense_copy(problem);
    for (auto &row : dense.a) row[0] = column;
    const double n = static_cast<double>(problem.rows());
    EagerFast twin(dense, lambda, 2 * std::sqrt(problem.loss().gamma() / (lambda * n)) / R);
    twin.lambda[0] = lambda * column * column / (value * value);
    VisitingOrder order(problem.rows(), {}, false, context.seed);
    for (int sweep = 0; sweep < 25; ++sweep) {
        for (const std::int64_t i : order.next_sweep()) twin.visit(at(i));
    }
    const auto [x, y] = point_after(*method, 25);
    EXPECT_NEAR(x[0], twin.x[0] * column / value, 1e-9);
    for (std::size_t j = 1; j < x.size(); ++j) EXPECT_NEAR(x[j], twin.x[j], 1e-9);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], twin.y[i], 1e-9);
}

ProblemOptions with_factor(double factor, std::size_t features, Intercept intercept) {
    ProblemOptions options;
    options.intercept = intercept;
    options.penalty_factors.assign(features, factor);
    return options;
}

TEST(SpdcFast, EqualsTheEagerTwinWithOneFactorForAllFeatures) {
    const double lambda = 1e-3, factor = 50; // 2e-5 for the intercept
    const TinyData data = tiny_data(full_rows(Task::classification));
    for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
        const Problem problem(as_dataset(data), SquaredHinge{}, L2{lambda / factor},
                              with_factor(factor, data.rows[0].size(), intercept));
        SolveContext context;
        context.seed = 5;
        const auto method = make_method(problem, SpdcFast{.omega = 2, .shrinking = false, .owners = {}}, context);
        const double n = static_cast<double>(problem.rows());
        EagerFast twin = eager_fast(problem, lambda,
                                    2 * std::sqrt(problem.loss().gamma() / (lambda * n)) / median_norm(problem), false);
        VisitingOrder order(problem.rows(), {}, false, context.seed);
        for (int sweep = 0; sweep < 25; ++sweep) {
            for (const std::int64_t i : order.next_sweep()) twin.visit(at(i));
        }
        const auto [x, y] = point_after(*method, 25);
        const std::vector<double> expected = weights(twin, problem);
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], expected[j], 1e-9) << j;
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], twin.y[i], 1e-9) << i;
    }
}

// (lambda/2) v^2 of a column of s is (lambda/2s^2) b^2 of the intercept b = s v.
TEST(SpdcFast, OneFactorForAllFeaturesIsAConstantColumnOfAnotherSize) {
    const double lambda = 1e-3, s = 7;
    const TinyData data = tiny_data(full_rows(Task::classification));
    for (const bool copy : {true, false}) {
        SolveContext context;
        context.copy = copy;
        const Problem column(as_dataset(with_constant(data, s, false)), SquaredHinge{}, L2{lambda});
        const Problem factors(as_dataset(data), SquaredHinge{}, L2{lambda / (s * s)},
                              with_factor(s * s, data.rows[0].size(), Intercept::penalized));
        auto [expected_x, expected_y] = point_after(*make_method(column, SpdcFast{}, context), 12);
        expected_x.back() *= s;
        const auto [x, y] = point_after(*make_method(factors, SpdcFast{}, context), 12);
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], expected_x[j], 1e-11) << j;
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected_y[i], 1e-11) << i;
    }
}

TEST(SpdcFast, RefusesFactorsThatDifferOrAreZero) {
    const TinyData data = tiny_data(full_rows(Task::classification));
    for (const double first : {2.0, 0.0}) {
        for (const double others : {first, 1.0}) {
            ProblemOptions options = with_factor(others, data.rows[0].size(), Intercept::penalized);
            options.penalty_factors[0] = first;
            const Problem problem(as_dataset(data), SquaredHinge{}, L2{1e-3}, options);
            const bool is_taken = first == others && first > 0;
            EXPECT_EQ(problem.is_uniform(), first == others);
            for (const char *solver : {"spdc_fast", "hybrid"}) {
                if (is_taken) {
                    EXPECT_TRUE(solve(problem, make_solver(solver), {}).converged()) << solver;
                } else {
                    EXPECT_THROW(solve(problem, make_solver(solver), {}), Error) << solver;
                }
            }
        }
    }
}

/// An intercept's column is in every row: in the units of the rows it would make them alike.
TEST(SpdcFast, AnInterceptCostsFewPassesWhereRowsHaveFeaturesOfTheirOwn) {
    TinyData data = tiny_data({.task = Task::classification, .rows = 2000, .columns = 1500, .density = 0.01});
    for (auto &row : data.rows) {
        double norm2 = 1e-12;
        for (const double v : row) norm2 += v * v;
        for (double &v : row) v /= std::sqrt(norm2);
    }
    const auto passes = [&](const AnyLoss &loss, Intercept intercept) {
        ProblemOptions options;
        options.intercept = intercept;
        const Result result = solve(Problem(as_dataset(data), loss, L2{1e-5}, options), SpdcFast{}, {}, {});
        EXPECT_TRUE(result.converged()) << loss.name();
        return result.passes;
    };
    for (const AnyLoss &loss : {AnyLoss(SquaredHinge{}), AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{})}) {
        const double none = passes(loss, Intercept::none);
        EXPECT_LE(passes(loss, Intercept::penalized), 1.2 * none + 1) << loss.name();
        EXPECT_LE(passes(loss, Intercept::free), 1.2 * none + 1) << loss.name();
    }
}

// Steps that suit a strong penalty of the features leave an intercept with little or none far behind: 20 to 35 passes.
TEST(SpdcFast, AnInterceptKeepsUpWithFeaturesThatAreHeldMuchMore) {
    Random random(1);
    TinyData data;
    for (int i = 0; i < 2000; ++i) {
        std::vector<double> row(50);
        for (double &value : row) value = random.uniform(); // all of one sign, so that an intercept matters
        data.targets.push_back(row[0] + row[1] + 0.3 * random.normal() > 1 ? 1 : -1);
        data.rows.push_back(std::move(row));
    }
    for (const AnyLoss &loss : {AnyLoss(SquaredHinge{}), AnyLoss(SmoothedHinge{}), AnyLoss(Logistic{})}) {
        for (const double factor : {1.0, 100.0}) { // 1: with a free one
            ProblemOptions options;
            options.intercept = factor == 1 ? Intercept::free : Intercept::penalized;
            options.penalty_factors.assign(50, factor);
            const Problem problem(as_dataset(data), loss, L2{0.5 / factor}, options);
            const Result result = solve(problem, SpdcFast{});
            EXPECT_TRUE(result.converged());
            EXPECT_LE(result.passes, 8) << loss.name() << ", " << factor;
        }
    }
}

TEST(SpdcFast, StartsFromAnotherPointOnTheWay) {
    const TinyData data = tiny_data(full_rows(Task::classification));
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{})}) {
        const Problem problem(as_dataset(data), loss, L2{1e-2});
        const auto method = make_method(problem, SpdcFast{}, SolveContext{});
        method->advance(3); // x = alpha z + beta u by now
        std::vector<double> x(data.rows[0].size(), 0.25), y, found_x, found_y;
        for (const double b : problem.targets()) y.push_back(-0.3 * b);
        method->start(x, y);
        method->point(found_x, found_y);
        EXPECT_EQ(found_x, x);
        EXPECT_EQ(found_y, y);
        method->advance(400);
        method->point(x, y);
        EXPECT_LT(problem.primal(x) - problem.dual(y), 1e-9 * problem.primal(x)) << loss.name();
    }
}

/// D(y) from the data; a free intercept, whose u should be 0, is left out.
double dual_from_data(const Problem &problem, const std::vector<double> &y) {
    double rows = 0, features = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
        rows += problem.importance(static_cast<std::int64_t>(i)) * problem.loss().conjugate(y[i], problem.targets()[i]);
    }
    std::vector<double> u(at(problem.dimension()));
    problem.combine(y, u);
    for (std::size_t j = 0; j < u.size(); ++j) {
        const AnyRegularizer g = problem.regularizer(static_cast<std::int64_t>(j));
        if (g.strong_convexity() > 0) features += g.conjugate(-u[j]);
    }
    return -rows / static_cast<double>(y.size()) - features;
}

void expect_dual_of_its_point(Method &method, const Problem &problem, const std::string &what) {
    const auto [x, y] = point_after(method, 0);
    const double expected = dual_from_data(problem, y);
    EXPECT_NEAR(method.dual_value(), expected, 1e-9 * std::fabs(expected)) << problem.loss().name() << what;
}

/// Rows of weights that differ, which share some features and have others to themselves.
TinyData text_like(Task task) {
    Tiny tiny;
    tiny.rows = 100;
    tiny.columns = 150;
    tiny.density = 0.03;
    tiny.task = task;
    tiny.weighted = true;
    return tiny_data(tiny);
}

void expect_dual_on_the_way(const Problem &problem, const AnySolver &solver) {
    const auto method = std::visit(
        [&](const auto &options) -> std::unique_ptr<Method> {
            if constexpr (requires { options.owners; }) return make_method(problem, options, SolveContext{});
            return nullptr;
        },
        solver);
    for (const double passes : {0.4, 3.3, 20.0}) {
        method->advance(passes);
        expect_dual_of_its_point(*method, problem, " after " + std::to_string(method->passes()) + " passes");
    }
}

// At the small lambda omega moves, at the large one the method is SDCA of its own accord.
TEST(SpdcFast, KnowsTheDualObjectiveOfItsPoint) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{}), AnyLoss(SquaredHinge{}), AnyLoss(Huber{0.5})}) {
        const Dataset data = as_dataset(text_like(loss.task()));
        for (const double lambda : {1e-4, 10.0}) {
            for (const Intercept intercept : {Intercept::none, Intercept::penalized, Intercept::free}) {
                SCOPED_TRACE(to_string(intercept));
                const Problem plain(data, loss, L2{lambda}, with_factor(1, 0, intercept));
                const Problem scaled(data, loss, L2{lambda / 3}, with_factor(3, at(data.features()), intercept));
                for (const std::int64_t owners : {1, 4}) {
                    const SpdcFast fast{.omega = {}, .owners = owners};
                    expect_dual_on_the_way(plain, fast);
                    expect_dual_on_the_way(scaled, fast);
                    if (intercept != Intercept::free) expect_dual_on_the_way(plain, Sdca{.owners = owners});
                }
            }
        }
    }
}

TEST(SpdcFast, KnowsTheDualObjectiveOfAPointToStartFrom) {
    const TinyData data = text_like(Task::classification);
    ProblemOptions options;
    options.intercept = Intercept::penalized;
    for (const double lambda : {1e-4, 10.0}) {
        const Problem with_intercept(as_dataset(data), SquaredHinge{}, L2{lambda}, options);
        const Problem with_column(as_dataset(with_constant(data, 2, true)), SquaredHinge{}, L2{lambda});
        for (const Problem &problem : {with_intercept, with_column}) {
            const auto method = make_method(problem, SpdcFast{}, SolveContext{});
            std::vector<double> y;
            for (const double b : problem.targets()) y.push_back(-0.3 * b);
            method->start(std::vector<double>(at(problem.dimension()), 0.25), y);
            expect_dual_of_its_point(*method, problem, " at the start");
            method->advance(5);
            expect_dual_of_its_point(*method, problem, " after the start");
        }
    }
}

TEST(SpdcFast, LogisticStepsLeaveATwentiethOfTheResidual) {
    spdc::Random random(3);
    for (int k = 0; k < 20000; ++k) {
        const double start = 30 * (2 * random.uniform() - 1), sigma = std::pow(10, 16 * random.uniform() - 8);
        const double s = 60 * (2 * random.uniform() - 1), b = k % 2 == 0 ? 1 : -1;
        const double y = -b / (1 + std::exp(-start)), p0 = -b * y;
        const auto residual = [&](double t) { return t + b * s + (1 / (1 + std::exp(-t)) - p0) / sigma; };
        double logit = start;
        const double next = dual_step(Logistic{}, s, y, 1 / sigma, b, logit);
        ASSERT_LE(std::fabs(residual(logit)), 0.06 * std::fabs(start + b * s)) << start << ' ' << s << ' ' << sigma;
        ASSERT_NEAR(next, -b / (1 + std::exp(-logit)), 1e-15 + 1e-7 * std::fabs(next - y));
    }
}

TEST(SpdcFast, DualStepsThatDivideFirstAreTheProximalSteps) {
    const auto check = [](const auto &loss) {
        static_assert(is_clipped_parabola<std::remove_cvref_t<decltype(loss)>>);
        spdc::Random random(6);
        for (int k = 0; k < 2000; ++k) {
            const double sigma = std::pow(10, 12 * random.uniform() - 6), s = 6 * random.uniform() - 3;
            const double b =
                loss.task == Task::regression ? 4 * random.uniform() - 2 : static_cast<double>(2 * random.below(2) - 1);
            const double y = loss.domain(b).clip(3 * random.uniform() - 1.5);
            double logit = 0;
            const double step = dual_step(loss, s, y, 1 / sigma, b, logit), expected = loss.dual_prox(s, y, sigma, b);
            ASSERT_NEAR(step, expected, 1e-14 * (1 + std::fabs(expected))) << loss.name << ' ' << sigma;
            const double optimal = b + loss.gamma() * y; // s at which y stays
            ASSERT_EQ(dual_step(loss, optimal, y, 1 / sigma, b, logit), y) << loss.name << ' ' << sigma;
        }
    };
    check(Squared{});
    check(Absolute{});
    check(Huber{0.7});
    check(Quantile{0.2});
    check(Hinge{});
    check(SmoothedHinge{0.3});
    check(SquaredHinge{});
}

TEST(SpdcFast, LogisticDualsAndTheirLogitsStayTogether) {
    spdc::Random random(5);
    for (int k = 0; k < 200; ++k) {
        const double s = 8 * (2 * random.uniform() - 1), sigma = std::pow(10, 4 * random.uniform() - 2);
        double y = 0, logit = -4.6;
        for (int visit = 0; visit < 1000; ++visit) { // s goes on changing, less and less
            const double jitter = (2 * random.uniform() - 1) * std::pow(0.98, visit);
            y = dual_step(Logistic{}, s + jitter, y, 1 / sigma, 1, logit);
        }
        ASSERT_NEAR(logit, std::log(-y / (1 + y)), 1e-7) << s << ' ' << sigma;
    }
}

TEST(SpdcFast, VisitsRowsOfLargeDataInBlocks) {
    struct Shape {
        std::int64_t rows, columns;
        double density;
        Blocks blocks;
    };
    // rows much alike, more than the near caches hold, or even more, short ones and longer ones; rows unlike one another, full ones and shorter ones
    for (const Shape &shape :
         {Shape{20000, 7, 1, {4, 4}}, Shape{70000, 7, 1, {32, 4}}, Shape{30000, 16, 1, {21, 4}},
          Shape{25000, 28, 1, {8, 4}}, Shape{3100, 420, 1, {3, 1}}, Shape{17000, 400, 0.05, {16, 1}}}) {
        Tiny tiny = full_rows(Task::regression);
        tiny.rows = shape.rows;
        tiny.columns = shape.columns;
        tiny.density = shape.density;
        SCOPED_TRACE(shape.rows);
        expect_eager_twin(tiny_data(tiny), Squared{}, 1e-3, 1, false, shape.blocks, 2);
    }
}

// Half the rows are the one before but for an entry, and blocks of them are visited together: in the same order each time they kept the gap
// at 0.01 for thousands of passes.
TEST(SpdcFast, NearCopiesBesideEachOtherCostFewPasses) {
    constexpr int rows = 8000, words = 40, features = 20000;
    Random random(3);
    const auto below = [&](double count) { return static_cast<std::int32_t>(count * random.uniform()); };
    std::vector<double> weights(features), values, targets;
    for (double &w : weights) w = random.uniform() - 0.5;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::set<std::int32_t> row;
    for (int i = 0; i < rows; ++i) {
        if (row.empty() || random.uniform() < 0.5) {
            row.clear();
        } else {
            row.erase(std::next(row.begin(), below(words)));
        }
        while (row.size() < words) row.insert(below(features * random.uniform())); // the first are frequent
        double score = 6 * (random.uniform() - 0.5);
        for (const std::int32_t j : row) {
            score += weights[at(j)];
            columns.push_back(j);
            values.push_back((1 + 0.03 * static_cast<double>(j % 11)) / std::sqrt(words));
        }
        targets.push_back(score > 0 ? 1 : -1);
        offsets.push_back(static_cast<std::int64_t>(columns.size()));
    }
    Dataset data;
    data.matrix = CsrMatrix<double>::own(features, offsets, columns, values);
    data.targets = targets;
    const Problem problem(data, SquaredHinge{}, L2{1e-8});
    Stopping stopping;
    stopping.max_passes = 1500;
    const Result result = solve(problem, SpdcFast{}, stopping);
    EXPECT_EQ(result.stop_reason, StopReason::gap_reached) << result.worst().relative_gap;
}

Result run(const Problem &problem, const AnySolver &solver, double tolerance) {
    Stopping stopping;
    stopping.tolerance = tolerance;
    stopping.max_passes = 20000;
    return solve(problem, solver, stopping);
}

TEST(SpdcFast, ReachesTheOptimumOfTheSlowMethod) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
            for (const bool weighted : {false, true}) {
                Tiny tiny = full_rows(loss.task());
                tiny.weighted = weighted;
                ProblemOptions options;
                options.intercept = intercept;
                const Problem problem(tiny_dataset(tiny), loss, L2{0.02}, options);
                const double tolerance = loss.gamma() > 0 ? 1e-9 : 1e-6;
                const Result slow = run(problem, Spdc{}, tolerance);
                for (const AnySolver &solver : {AnySolver(SpdcFast{}), AnySolver(Sdca{})}) {
                    const Result fast = run(problem, solver, tolerance);
                    EXPECT_TRUE(fast.converged()) << name << " intercept " << to_string(intercept) << " " << fast.solver
                                                  << " gap " << fast.worst().relative_gap;
                    EXPECT_NEAR(fast.worst().primal, slow.worst().primal,
                                2 * tolerance * std::max(1.0, std::fabs(slow.worst().primal)))
                        << name;
                }
            }
        }
    }
}

/// Features that are beyond the caches are fetched ahead; where they are is all that differs.
TEST(SpdcFast, FeaturesFarApartAreFeaturesSideBySide) {
    constexpr std::int64_t rows = 80, entries = 40, near = 3000, apart = 1000; // zu of 48 MB, and of 48 KB
    const auto problem_with = [&](std::int64_t features, std::int64_t step, const AnyLoss &loss) {
        Random random(4);
        std::vector<std::int64_t> offsets{0};
        std::vector<std::int32_t> columns;
        std::vector<double> values;
        Dataset data;
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t q = 0; q < entries; ++q) {
                const std::int64_t feature = q * (near / entries) + random.index(near / entries);
                columns.push_back(static_cast<std::int32_t>(feature * step));
                values.push_back(random.normal());
            }
            offsets.push_back(static_cast<std::int64_t>(columns.size()));
            data.targets.push_back(random.sign());
        }
        data.matrix = CsrMatrix<double>::own(features, std::move(offsets), std::move(columns), std::move(values));
        return Problem(std::move(data), loss, L2{1e-3});
    };
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{})}) {
        for (const std::optional<double> omega : {std::optional<double>(), std::optional<double>(1.0)}) {
            SpdcFast options;
            options.omega = omega;
            const Stopping stopping{.tolerance = 1e-9};
            const Result side = solve(problem_with(near, 1, loss), options, stopping);
            const Result far = solve(problem_with(near * apart, apart, loss), options, stopping);
            EXPECT_TRUE(far.converged());
            EXPECT_EQ(far.dual, side.dual);
            for (std::size_t j = 0; j < side.weights.size(); ++j) ASSERT_EQ(far.weights[j * apart], side.weights[j]);
        }
    }
}

TEST(SpdcFast, ShrinkingChangesTheWayAndNotTheAnswer) {
    for (const AnyLoss &loss : {AnyLoss(Hinge{}), AnyLoss(SmoothedHinge{}), AnyLoss(SquaredHinge{})}) {
        Tiny tiny;
        tiny.rows = 400;
        tiny.columns = 30;
        const Problem problem(tiny_dataset(tiny), loss, L2{1e-3});
        SpdcFast with, without;
        without.shrinking = false;
        const Result a = run(problem, with, 1e-7), b = run(problem, without, 1e-7);
        EXPECT_TRUE(a.converged()) << loss.name();
        EXPECT_TRUE(b.converged()) << loss.name();
        EXPECT_NEAR(a.worst().primal, b.worst().primal, 2e-7 * b.worst().primal) << loss.name();
    }
}

TEST(SpdcFast, AtTheLargestOmegaIsSdca) {
    const double lambda = 1e-4;
    const Problem problem(tiny_dataset(full_rows(Task::classification)), SmoothedHinge{}, L2{lambda});
    const double n = static_cast<double>(problem.rows());
    SpdcFast end;
    end.omega = median_norm(problem) / std::sqrt(lambda * n);
    end.shrinking = false;
    Sdca sdca;
    sdca.shrinking = false;
    const auto a = make_method(problem, end, {}), b = make_method(problem, sdca, {});
    std::vector<double> x, y, sdca_x, sdca_y;
    for (int sweep = 0; sweep < 30; ++sweep) {
        a->advance(1);
        b->advance(1);
        a->point(x, y);
        b->point(sdca_x, sdca_y);
        for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], sdca_y[i], 1e-10); // other sums, the same steps
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], sdca_x[j], 1e-8);
    }
}

TEST(SpdcFast, EndsSoonerWithOmegaBelowOneOnTallData) {
    const TinyData data = tiny_data({.task = Task::classification, .rows = 6000, .columns = 600, .density = 0.01});
    for (const AnyLoss &loss : {AnyLoss(SquaredHinge{}), AnyLoss(Logistic{}), AnyLoss(Hinge{})}) {
        const Problem problem(as_dataset(data), loss, L2{1e-6});
        SpdcFast at_one;
        at_one.omega = 1;
        const Result plain = run(problem, at_one, 1e-6), adapted = run(problem, SpdcFast{}, 1e-6);
        EXPECT_TRUE(adapted.converged()) << loss.name();
        EXPECT_LT(adapted.passes, 0.7 * plain.passes) << loss.name();
    }
}

TEST(SpdcFast, EndsSoonerWithOmegaBelowOneWhereALossHasKinks) {
    Tiny tiny = full_rows(Task::regression);
    tiny.rows = 2000;
    const Problem problem(tiny_dataset(tiny), EpsilonInsensitive{0.1}, L2{1e-5});
    SpdcFast at_one;
    at_one.omega = 1;
    const Result plain = run(problem, at_one, 1e-6), adapted = run(problem, SpdcFast{}, 1e-6);
    EXPECT_TRUE(adapted.converged());
    EXPECT_LT(adapted.passes, 0.6 * plain.passes);
}

TEST(SpdcFast, RowsWithoutEntriesDoNotHoldTheGapOpen) {
    TinyData data = tiny_data(full_rows(Task::classification));
    for (double &value : data.rows[3]) value = 0;
    for (const Intercept intercept : {Intercept::none, Intercept::free}) {
        ProblemOptions options;
        options.intercept = intercept;
        const Problem problem(as_dataset(data), Logistic{}, L2{0.01}, options);
        EXPECT_TRUE(run(problem, SpdcFast{}, 1e-8).converged());
    }
}

TEST(SpdcFast, RefusesOtherPenaltiesInASentence) {
    const std::vector<AnyRegularizer> refused{ElasticNet{0.1, 0.1}, Box{0, 0.1, {0, infinity}}, L2{0}};
    for (const AnyRegularizer &g : refused) {
        try {
            solve(Problem(tiny_dataset(), Logistic{}, g), SpdcFast{});
            ADD_FAILURE() << g.name() << " was taken";
        } catch (const Error &error) {
            EXPECT_EQ(error.kind(), ErrorKind::unsupported);
            EXPECT_NE(std::string(error.what()).find("l2 penalty"), std::string::npos);
        }
    }
}

} // namespace
} // namespace spdc::tests
