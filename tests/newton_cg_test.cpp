// Newton's method with conjugate gradients, alone and in hybrid: its products against plain loops, its optima against those of newton, its dual points
// against the certificate, and data that other engines cannot take.
#include "solvers/newton_cg.h"
#include "solvers/row_products.h"
#include "spdc/solvers.h"
#include "support/files.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace spdc::tests {
namespace {

constexpr Intercept all_intercepts[] = {Intercept::none, Intercept::free, Intercept::penalized};

bool has_kinks(const AnyLoss &loss) { return loss.gamma() == 0 && std::isfinite(loss.lipschitz()); }

Result solve_by(const Problem &problem, std::string_view solver, double tolerance, double max_passes = 20000,
                int threads = 1, bool copy = true) {
    SolveContext context;
    context.threads = threads;
    context.copy = copy;
    return solve(problem, make_solver(solver), Stopping{tolerance, max_passes, 60}, context);
}

ProblemOptions with(Intercept intercept, std::vector<double> factors = {}) {
    return {.intercept = intercept, .penalty_factors = std::move(factors), .class_weights = {}};
}

Problem random_problem(const AnyLoss &loss, double l2, Intercept intercept, bool weighted, std::int64_t rows = 40,
                       std::int64_t columns = 7, double density = 0.5, std::uint64_t seed = 1,
                       Storage storage = Storage::csr_double) {
    const Tiny tiny{loss.task(), rows, columns, density, 2, weighted, seed};
    return {as_dataset(tiny_data(tiny), storage), loss, L2{l2}, with(intercept)};
}

/// Sparse rows of `entries` random columns each; column j times scale(j). Targets by a hidden model of the unscaled columns.
template <class Scale>
Dataset sparse_data(std::int64_t rows, std::int64_t columns, std::int64_t entries, Task task, std::uint64_t seed,
                    Scale scale) {
    Random random(seed);
    std::vector<double> hidden;
    for (std::int64_t j = 0; j < columns; ++j) hidden.push_back(random.normal());
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> all;
    std::vector<double> values;
    Dataset data;
    for (std::int64_t i = 0; i < rows; ++i) {
        std::vector<std::int32_t> picked;
        for (std::int64_t k = 0; k < entries; ++k) {
            // low columns are common, high ones rare, as words are
            picked.push_back(static_cast<std::int32_t>(static_cast<double>(columns) * std::pow(random.uniform(), 2)));
        }
        std::sort(picked.begin(), picked.end());
        picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
        double score = 0;
        for (const std::int32_t j : picked) {
            const double value = random.normal();
            score += value * hidden[static_cast<std::size_t>(j)];
            all.push_back(j);
            values.push_back(scale(j) * value);
        }
        offsets.push_back(static_cast<std::int64_t>(all.size()));
        score = score / std::sqrt(static_cast<double>(entries)) + 0.3 * random.normal();
        data.targets.push_back(task == Task::classification
                                   ? (score > 0 ? 1.0 : -1.0)
                                   : (task == Task::counts ? std::floor(std::exp(score)) : score));
    }
    data.matrix = CsrMatrix<double>::own(columns, std::move(offsets), std::move(all), std::move(values));
    return data;
}

double one(std::int32_t) { return 1; }
/// A few columns in other units. Were they many, they would fit all rows with tiny weights, and the objective would be 0.
double units(std::int32_t j) { return j % 40 == 0 ? 1e6 : (j % 40 == 1 ? 1e3 : (j % 40 == 2 ? 1e-3 : 1.0)); }

// --- products ---

TEST(RowProducts, AreThoseOfPlainLoopsForAnyNumberOfThreads) {
    for (const Storage storage : all_storages) {
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            // enough entries for two threads in the dense storages, one thread in the others
            const std::int64_t rows = 9000, columns = 50;
            const Problem problem = random_problem(Squared{}, 1, intercept, false, rows, columns, 0.9, 3, storage);
            const DenseProblem dense = dense_copy(problem);
            const std::size_t n = dense.n(), d = dense.d();
            Random random(11);
            std::vector<double> p(d), w(n), h(n);
            for (double &v : p) v = random.normal();
            for (double &v : w) v = random.normal();
            for (double &v : h) v = random.uniform() < 0.5 ? random.uniform() : 0;
            std::vector<double> along(n), expected_q(d, 0.0), expected_g(d, 0.0), expected_m(d, 0.0), first_q;
            for (std::size_t i = 0; i < n; ++i) {
                along[i] = static_cast<double>(dot(dense.a[i], p));
                for (std::size_t j = 0; j < d; ++j) {
                    expected_q[j] += h[i] * along[i] * dense.a[i][j] / static_cast<double>(n);
                    expected_g[j] += w[i] * dense.a[i][j] / static_cast<double>(n);
                    expected_m[j] += h[i] * dense.a[i][j] * dense.a[i][j] / static_cast<double>(n);
                }
            }
            for (const int threads : {1, 2, 3}) {
                const RowProducts products(problem, threads);
                EXPECT_EQ(products.threads(), std::min(threads, 2));
                std::vector<DirectionPair> pq(d);
                for (std::size_t j = 0; j < d; ++j) pq[j].p = p[j];
                std::vector<double> t(n, -1), z(n, -1), g(d), m(d), q(d, 0.0);
                products.curvature(h.data(), pq.data(), t.data());
                products.predict(p.data(), h.data(), z.data());
                products.gradient(w.data(), h.data(), g.data(), m.data());
                for (std::size_t i = 0; i < n; ++i) {
                    EXPECT_NEAR(h[i] == 0 ? z[i] : t[i], along[i], 1e-12);
                    EXPECT_EQ(h[i] == 0 ? t[i] : z[i], -1); // rows of the other kind are left alone
                }
                for (std::size_t j = 0; j < d; ++j) {
                    EXPECT_NEAR(pq[j].q, expected_q[j], 1e-12);
                    EXPECT_NEAR(g[j], expected_g[j], 1e-12);
                    EXPECT_NEAR(m[j], expected_m[j], 1e-12);
                    q[j] = pq[j].q;
                }
                if (threads == 1) first_q = q;
                EXPECT_EQ(q, first_q);
                std::vector<double> alone(d);
                products.gradient(w.data(), nullptr, alone.data(), nullptr);
                for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(alone[j], expected_g[j], 1e-12);
            }
        }
    }
}

TEST(SkipSmallest, DropsNoMoreThanTheShareAndOnlyTheSmallest) {
    Random random(4);
    std::vector<double> h;
    for (int i = 0; i < 3000; ++i) h.push_back(random.log_uniform(1e-12, 1));
    h[5] = 0;
    const double total = std::accumulate(h.begin(), h.end(), 0.0);
    std::vector<double> kept = h;
    skip_smallest(kept, 0.01);
    double dropped = 0, largest_dropped = 0, smallest_kept = 1;
    for (std::size_t i = 0; i < h.size(); ++i) {
        EXPECT_TRUE(kept[i] == h[i] || kept[i] == 0);
        if (kept[i] == 0) {
            dropped += h[i];
            largest_dropped = std::max(largest_dropped, h[i]);
        } else {
            smallest_kept = std::min(smallest_kept, h[i]);
        }
    }
    EXPECT_LE(dropped, 0.01 * total);
    EXPECT_GT(dropped, 0.008 * total); // bins are 6 % wide
    EXPECT_LE(largest_dropped, smallest_kept);
    std::vector<double> equal(100, 0.5);
    skip_smallest(equal, 0.01);
    EXPECT_EQ(equal, std::vector<double>(100, 0.5));
}

// --- optima ---

TEST(NewtonCg, CertifiesEveryLossInterceptAndWeighting) {
    int tried = 0;
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        if (has_kinks(loss)) continue;
        ++tried;
        for (const Intercept intercept : all_intercepts) {
            for (const bool weighted : {false, true}) {
                for (const auto &[rows, columns] : {std::pair{40, 7}, std::pair{12, 30}}) {
                    const Problem problem = random_problem(loss, 0.01, intercept, weighted, rows, columns);
                    const Result result = solve_by(problem, "newton_cg", 1e-10);
                    EXPECT_EQ(result.stop_reason, StopReason::gap_reached)
                        << name << ", intercept " << to_string(intercept) << ", weighted " << weighted << ", " << rows
                        << " rows: " << result.worst().relative_gap << " after " << result.passes;
                }
            }
        }
    }
    EXPECT_EQ(tried, 7);
}

TEST(NewtonCg, FindsTheOptimumOfNewton) {
    for (const std::string name : {"logistic", "squared", "smoothed_hinge", "huber", "squared_hinge", "poisson",
                                   "squared_epsilon_insensitive"}) {
        for (const Intercept intercept : all_intercepts) {
            const Problem problem = random_problem(make_loss(name), 0.02, intercept, true, 60, 8);
            const Result newton = solve_by(problem, "newton", 1e-12);
            const Result cg = solve_by(problem, "newton_cg", 1e-12);
            ASSERT_TRUE(newton.converged() && cg.converged()) << name << " " << to_string(intercept);
            EXPECT_NEAR(cg.worst().primal, newton.worst().primal, 1e-11 * std::fabs(newton.worst().primal)) << name;
            for (std::size_t j = 0; j < newton.weights.size(); ++j) {
                EXPECT_NEAR(cg.weights[j], newton.weights[j], 1e-5) << name;
            }
        }
    }
}

// Targets and weights are read where they are, except for the last 8192 rows or fewer.
TEST(NewtonCg, FindsTheOptimumOfNewtonForAnyNumberOfRows) {
    for (const std::int64_t rows : {8189, 8192, 8193, 16386}) {
        for (const bool weighted : {false, true}) {
            for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{})}) {
                const Problem problem = random_problem(loss, 1e-3, Intercept::free, weighted, rows, 6);
                const Result newton = solve_by(problem, "newton", 1e-11), cg = solve_by(problem, "newton_cg", 1e-11);
                ASSERT_TRUE(newton.converged() && cg.converged()) << loss.name() << " " << rows;
                EXPECT_LE(cg.passes, 100) << loss.name() << " " << rows; // with wrong targets it would wander
                for (std::size_t j = 0; j < newton.weights.size(); ++j) {
                    EXPECT_NEAR(cg.weights[j], newton.weights[j], 1e-5) << loss.name() << " " << rows;
                }
            }
        }
    }
}

TEST(NewtonCg, DualPointsOfTheTruncatedCurvatureAreValidAndAsGoodAsItSays) {
    // many fitted rows: some are without curvature in every system
    const Problem problem(sparse_data(2000, 300, 12, Task::classification, 5, one), Logistic{}, L2{1e-6});
    const std::unique_ptr<Method> method = make_newton_cg(problem, {}, {});
    method->aim(1e-9);
    std::vector<double> x, y;
    int looked = 0;
    for (int k = 0; k < 400; ++k) {
        method->advance(0.01);
        if (!(method->estimated_gap() < 1e-3)) continue;
        method->point(x, y);
        const double primal = problem.primal(x), gap = primal - problem.dual(y);
        EXPECT_GE(gap, -1e-15);
        EXPECT_NEAR(gap, method->estimated_gap(), 1e-6 * gap + 1e-14 * primal);
        if (gap <= 1e-9 * primal) break;
        ++looked;
    }
    EXPECT_GE(looked, 3);
}

TEST(NewtonCg, PenaltyFactorsZeroAndOther) {
    for (const auto &[rows, columns] : {std::pair{60, 6}, std::pair{12, 20}}) {
        const Tiny tiny{Task::regression, rows, columns, 0.7, 2, false, 2};
        std::vector<double> factors(static_cast<std::size_t>(columns), 1.0);
        factors[0] = 0;
        factors[1] = 3;
        factors[2] = 1e-4;
        for (const std::string name : {"squared", "huber", "squared_epsilon_insensitive"}) {
            const Problem problem(as_dataset(tiny_data(tiny)), make_loss(name), L2{0.1},
                                  with(Intercept::free, factors));
            const Result cg = solve_by(problem, "newton_cg", 1e-9), newton = solve_by(problem, "newton", 1e-9);
            EXPECT_TRUE(cg.converged()) << name << " " << rows << ": " << cg.worst().relative_gap;
            EXPECT_NEAR(cg.worst().primal, newton.worst().primal, 2e-9 * newton.worst().primal) << name;
        }
    }
}

TEST(NewtonCg, WithoutPenalty) {
    const Problem problem = random_problem(Squared{}, 0, Intercept::free, false, 60, 5, 1);
    EXPECT_TRUE(solve_by(problem, "newton_cg", 1e-9).converged());
}

TEST(NewtonCg, KnownAnswers) {
    int tried = 0;
    for (const KnownAnswer &answer : known_answers()) {
        if (!std::holds_alternative<L2>(answer.problem.regularizer().variant()) || has_kinks(answer.problem.loss()))
            continue;
        ++tried;
        const Result result = solve_by(answer.problem, "newton_cg", 1e-10);
        EXPECT_TRUE(result.converged()) << answer.name << " " << result.worst().relative_gap;
        EXPECT_NEAR(result.worst().primal, answer.value, 1e-9) << answer.name;
    }
    EXPECT_EQ(tried, 4);
}

// --- data and penalties that other engines cannot take ---

TEST(NewtonCg, UnscaledColumnsOfWideData) {
    for (const std::string name : {"logistic", "squared", "huber"}) {
        const AnyLoss loss = make_loss(name);
        const Problem problem(sparse_data(4000, 6000, 20, loss.task(), 1, units), loss, L2{1e-4},
                              with(Intercept::free));
        const Result cg = solve_by(problem, "newton_cg", 1e-6, 2000);
        EXPECT_TRUE(cg.converged()) << name << " " << cg.worst().relative_gap << " after " << cg.passes;
        const Result fast = solve_by(problem, "spdc_fast", 1e-6, std::max(100.0, 2 * cg.passes));
        EXPECT_FALSE(fast.converged()) << name << " " << cg.passes << " " << fast.passes;
    }
}

TEST(NewtonCg, ColumnsOfAllSizesDuplicateConstantAndEmpty) {
    for (const std::string name : {"logistic", "squared_hinge", "smoothed_hinge"}) {
        for (const Intercept intercept : all_intercepts) {
            const Problem problem(as_dataset(columns_of_all_sizes()), make_loss(name), L2{1e-6}, with(intercept));
            const Result result = solve_by(problem, "newton_cg", 1e-6);
            EXPECT_TRUE(result.converged())
                << name << " " << to_string(intercept) << " " << result.worst().relative_gap;
        }
    }
}

TEST(NewtonCg, FactorsOnMoreFeaturesThanOtherEnginesTake) {
    std::vector<double> factors(6000);
    for (std::size_t j = 0; j < factors.size(); ++j) factors[j] = j % 100 == 0 ? 0 : std::pow(10.0, j % 5 - 2.0);
    const Problem problem(sparse_data(7000, 6000, 10, Task::classification, 1, one), Logistic{}, L2{1e-3},
                          with(Intercept::free, factors));
    const Result result = solve_by(problem, "newton_cg", 1e-6);
    EXPECT_TRUE(result.converged()) << result.worst().relative_gap;
    EXPECT_THROW(solve_by(problem, "newton", 1e-6), Error);
    EXPECT_THROW(solve_by(problem, "spdc_fast", 1e-6), Error);
}

TEST(NewtonCg, TakesFewStepsWhereRowsHaveFeaturesOfTheirOwn) {
    // as text has: with all of the diagonal as preconditioner it takes twice as many passes
    const Problem problem(sparse_data(300, 20000, 60, Task::classification, 3, one), Logistic{}, L2{1e-7});
    const Result result = solve_by(problem, "newton_cg", 1e-6);
    EXPECT_TRUE(result.converged());
    EXPECT_LT(result.passes, 110);
}

// --- hybrid ---

// With as many features as rows SDCA's steps suit, and their gap falls late: Newton-CG is not to begin before.
TEST(Hybrid, LeavesSquareDataToSpdcFast) {
    const Dataset data = tiny_dataset({.task = Task::classification, .rows = 300, .columns = 300, .density = 0.9});
    for (const double l2 : {1e-6, 1e-8}) {
        const Problem problem(data, Logistic{}, L2{l2});
        const Result fast = solve_by(problem, "spdc_fast", 1e-6), hybrid = solve_by(problem, "hybrid", 1e-6);
        EXPECT_TRUE(hybrid.converged());
        EXPECT_LT(hybrid.passes, 1.3 * fast.passes) << l2; // 2.3 and 2.8 times as many
    }
}

TEST(Hybrid, LeavesTheLastDigitsToNewtonWhereItIsFaster) {
    const Problem problem(sparse_data(8000, 200, 15, Task::classification, 3, one), Logistic{}, L2{1e-7});
    const Result fast = solve_by(problem, "spdc_fast", 1e-8);
    for (const bool copy : {true, false}) {
        const Result hybrid = solve_by(problem, "hybrid", 1e-8, 20000, 1, copy);
        ASSERT_TRUE(fast.converged() && hybrid.converged());
        EXPECT_LT(hybrid.passes, 0.6 * fast.passes);
        EXPECT_NEAR(hybrid.worst().primal, fast.worst().primal, 2e-8 * fast.worst().primal);
    }
}

TEST(Hybrid, IsSpdcFastWhereThatIsNearlyDone) {
    const Problem problem(sparse_data(6000, 1500, 15, Task::classification, 3, one), Logistic{}, L2{1e-2});
    const Result fast = solve_by(problem, "spdc_fast", 1e-6), hybrid = solve_by(problem, "hybrid", 1e-6);
    ASSERT_TRUE(fast.converged() && hybrid.converged());
    EXPECT_EQ(hybrid.weights, fast.weights);
    EXPECT_LE(hybrid.passes, fast.passes + 1);
}

TEST(Hybrid, GoesBackToSpdcFastWhereNewtonIsSlow) {
    // more features than rows and a loss with corners: Newton's steps are cut short
    const Problem problem(sparse_data(1500, 4000, 60, Task::classification, 3, one), SmoothedHinge{}, L2{1e-5});
    const Result fast = solve_by(problem, "spdc_fast", 1e-8), newton = solve_by(problem, "newton_cg", 1e-8);
    EXPECT_GT(newton.passes, 2 * fast.passes);
    for (const bool copy : {true, false}) { // without one a new spdc_fast goes on
        const Result hybrid = solve_by(problem, "hybrid", 1e-8, 20000, 1, copy);
        ASSERT_TRUE(fast.converged() && hybrid.converged());
        EXPECT_LE(hybrid.passes, 2.5 * fast.passes + 10);
        const auto earlier = [](const TracePoint &a, const TracePoint &b) { return a.passes < b.passes; };
        EXPECT_TRUE(std::is_sorted(hybrid.trace.begin(), hybrid.trace.end(), earlier));
    }
}

TEST(Hybrid, RefusesWhatItsPartsRefuse) {
    const auto message = [](const Problem &problem) {
        return test::error_of(ErrorKind::unsupported, [&] { solve(problem, Hybrid{}); });
    };
    const Dataset data = as_dataset(tiny_data());
    EXPECT_NE(message({data, Logistic{}, ElasticNet{0.1, 0.1}}).find("solver hybrid needs an l2 penalty"),
              std::string::npos);
    EXPECT_NE(message({data, Hinge{}, L2{0.1}}).find("solver hybrid needs a loss without kinks"), std::string::npos);
    EXPECT_NE(message({data, Logistic{}, L2{0}}).find("solver newton_cg takes"), std::string::npos);
}

// --- threads, rounding, refusals ---

TEST(NewtonCg, SameBitsForAnyNumberOfThreads) {
    const Problem problem(sparse_data(140000, 150000, 5, Task::classification, 2, one), Logistic{}, L2{1e-3},
                          with(Intercept::free));
    const double tolerance = only_for_races ? 0.1 : 1e-4;
    const Result one_thread = solve_by(problem, "newton_cg", tolerance, 1000, 1);
    ASSERT_TRUE(one_thread.converged());
    for (const int threads : {2, 3}) {
        const Result more = solve_by(problem, "newton_cg", tolerance, 1000, threads);
        EXPECT_EQ(more.weights, one_thread.weights);
        EXPECT_EQ(more.dual, one_thread.dual);
        EXPECT_EQ(more.threads, threads);
    }
}

TEST(NewtonCg, StopsAtRounding) {
    for (const std::string name : {"logistic", "squared", "smoothed_hinge"}) {
        const Problem problem = random_problem(make_loss(name), 1e-3, Intercept::none, false);
        const Result result = solve_by(problem, "newton_cg", 1e-300);
        EXPECT_EQ(result.stop_reason, StopReason::stalled) << name;
        EXPECT_LE(result.worst().relative_gap, 1e-12) << name;
        EXPECT_LE(result.passes, 1000) << name;
    }
}

TEST(NewtonCg, RefusesWhatItCannotDo) {
    const auto message = [](const Problem &problem) {
        return test::error_of(ErrorKind::unsupported, [&] { solve(problem, NewtonCg{}); });
    };
    const Dataset data = as_dataset(tiny_data());
    EXPECT_NE(message({data, Logistic{}, ElasticNet{0.1, 0.1}}).find("spdc takes any penalty"), std::string::npos);
    EXPECT_NE(message({data, Logistic{}, Box{0, 0.1, {0, infinity}}}).find("l2 penalty"), std::string::npos);
    EXPECT_NE(message({data, Hinge{}, L2{0.1}}).find("a loss without kinks, and hinge has one"), std::string::npos);
}

} // namespace
} // namespace spdc::tests
