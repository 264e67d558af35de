// Newton's method: blocked rows and kernels against plain loops, each form against the others, and certified optima over losses,
// intercepts and weights.
#include "solvers/newton.h"
#include "solvers/newton_kernels.h"
#include "solvers/newton_rows.h"
#include "spdc/solvers.h"
#include "support/files.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>
#include <tuple>

namespace spdc::tests {
namespace {

Result solve_by(const Problem &problem, std::string_view solver, double tolerance, double max_passes = 20000,
                int threads = 1) {
    SolveContext context;
    context.threads = threads;
    return solve(problem, make_solver(solver), Stopping{tolerance, max_passes, 60}, context);
}

/// Runs a method made by hand as solve() would.
struct Certified {
    std::vector<double> x, y;
    Certificate certificate;
};
Certified run(const Problem &problem, Method &method, double tolerance, int iterations = 500) {
    Certified result;
    Certifier certifier(problem);
    method.aim(tolerance);
    for (int k = 0; k < iterations && !(certifier.certificate().relative_gap <= tolerance); ++k) {
        method.advance(1);
        if (!method.has_point()) continue;
        method.point(result.x, result.y);
        certifier.offer(result.x, result.y, tolerance);
        method.certified({certifier.certificate(), certifier.x(), certifier.predictions()});
    }
    result.certificate = certifier.certificate();
    result.x.assign(certifier.x().begin(), certifier.x().end());
    return result;
}

Problem random_problem(const AnyLoss &loss, double l2, Intercept intercept, bool weighted, std::int64_t rows = 40,
                       std::int64_t columns = 7, double density = 0.5, std::uint64_t seed = 1,
                       Storage storage = Storage::csr_double) {
    const Tiny tiny{loss.task(), rows, columns, density, 2, weighted, seed};
    return {as_dataset(tiny_data(tiny), storage), loss, L2{l2},
            ProblemOptions{.intercept = intercept, .penalty_factors = {}, .class_weights = {}}};
}

constexpr Intercept all_intercepts[] = {Intercept::none, Intercept::free, Intercept::penalized};

bool has_corners(const AnyLoss &loss) { return loss.gamma() == 0 && std::isfinite(loss.lipschitz()); }

// --- kernels and rows ---

TEST(NewtonKernels, LogisticIsTheLossOnEverySet) {
    const AnyLoss loss = Logistic{};
    Random random(5);
    std::vector<double> z, b, omega;
    for (int k = 0; k < 400; ++k) {
        z.push_back(random.normal() * std::pow(10, random.uniform(-8, 3)));
        b.push_back(random.sign());
        omega.push_back(random.uniform(0, 2));
    }
    z[0] = 0, z[1] = 700, z[2] = -700, z[3] = 1e-300;
    for (const NewtonKernels *kernels : {&newton_kernels(), &portable_newton_kernels()}) {
        std::vector<double> w(z.size()), h(z.size());
        const double sum = kernels->logistic(z.data(), b.data(), omega.data(), z.size(), w.data(), h.data());
        double expected = 0;
        for (std::size_t i = 0; i < z.size(); ++i) {
            expected += omega[i] * loss.value(z[i], b[i]);
            EXPECT_NEAR(w[i], omega[i] * loss.derivative(z[i], b[i]), 4e-15 * std::fabs(w[i]) + 1e-300) << z[i];
            // phi'' = p (1 - p) without the cancellation in 1 - p
            const double curvature = loss.derivative(z[i], b[i]) * loss.derivative(-z[i], b[i]);
            EXPECT_NEAR(h[i], omega[i] * curvature, 4e-15 * h[i] + 1e-300) << z[i];
        }
        EXPECT_NEAR(sum, expected, 1e-13 * expected);
    }
}

/// Fewer rows than features, all much alike: rounding in their products is more than the rows' own part, and a first solution misses the targets.
TEST(Newton, RefinesWhereRowsAreAlike) {
    TinyData data = tiny_data({.task = Task::regression, .rows = 40, .columns = 90});
    for (auto &row : data.rows) {
        for (double &v : row) v += 30;
    }
    for (const AnyLoss &loss : {AnyLoss(Squared{}), AnyLoss(Huber{}), AnyLoss(SquaredEpsilonInsensitive{0.01})}) {
        for (const double l2 : {1e-8, 1e-11}) {
            SCOPED_TRACE(std::string(loss.name()) + ", l2 " + std::to_string(l2));
            const Result result =
                solve({as_dataset(data), loss, L2{l2}}, Newton{}, {.tolerance = 1e-6, .max_passes = 200});
            EXPECT_TRUE(result.converged()) << result.worst().relative_gap << " after " << result.passes;
        }
    }
}

// Rare features, scaled to deviation 1: a sample has each in a row or two and fits these with weights that are far too large for all rows.
TEST(Newton, ShortensWhatASampleFitsTooWell) {
    Random random(3);
    TinyData data{Rows(9000, std::vector<double>(100)), {}, {}};
    for (auto &row : data.rows) {
        for (double &v : row) v = random.uniform() < 1e-3 ? 30 : -0.03;
        data.targets.push_back(random.uniform() < 0.05 ? 1 : -1);
    }
    const Result result = solve({as_dataset(std::move(data)), Logistic{}, L2{1e-5}}, Newton{}, {.tolerance = 1e-6});
    EXPECT_TRUE(result.converged());
    EXPECT_LT(result.passes, 12) << "without it 23";
}

// The matrix of rows x rows comes of dense blocks of features or of the transposed data.
TEST(Newton, CertifiesFewSparseAndFewDenseRows) {
    for (const double density : {0.1, 1.0}) {
        for (const Intercept intercept : all_intercepts) {
            for (const bool factors : {false, true}) {
                SCOPED_TRACE("density " + std::to_string(density) + ", intercept " + std::string(to_string(intercept)) +
                             (factors ? ", factors" : ""));
                const Tiny tiny{Task::classification, 150, 700, density, 2, true, 1};
                ProblemOptions options;
                options.intercept = intercept;
                for (int j = 0; factors && j < 700; ++j)
                    options.penalty_factors.push_back(j == 3 ? 0 : 0.1 + 0.2 * (j % 7));
                for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{}), AnyLoss(Hinge{})}) {
                    const Result result = solve({as_dataset(tiny_data(tiny)), loss, L2{1e-3}, options}, Newton{},
                                                {.tolerance = 1e-9, .max_passes = 300});
                    EXPECT_TRUE(result.converged()) << loss.name() << " " << result.worst().relative_gap;
                }
            }
        }
    }
}

TEST(NewtonKernels, AddMultipleIsAPlainLoopUpToOneRounding) {
    Random random(7);
    for (const std::size_t count : {0U, 1U, 3U, 4U, 7U, 50U}) {
        std::vector<double> x(count + 1), y(count + 1);
        for (std::size_t k = 0; k <= count; ++k) x[k] = random.normal(), y[k] = random.normal();
        for (const NewtonKernels *kernels : {&newton_kernels(), &portable_newton_kernels()}) {
            std::vector<double> sum = y;
            kernels->add_multiple(0.3, x.data(), count, sum.data());
            for (std::size_t k = 0; k < count; ++k)
                EXPECT_NEAR(sum[k], y[k] + 0.3 * x[k], 2e-16 * (std::fabs(x[k]) + std::fabs(y[k])));
            EXPECT_EQ(sum[count], y[count]);
        }
    }
}

TEST(NewtonRows, PredictCombineAndHessianAreThoseOfPlainLoops) {
    for (const Storage storage : all_storages) {
        for (const double density : {0.05, 0.3, 1.0}) {
            using enum RowBlocks::Source;
            const std::vector<std::int32_t> all, some{3, 4, 9, 255, 256, 257, 290};
            for (const auto &[rows, source, prepares, list] :
                 {std::tuple{1, copied, false, all}, std::tuple{5, copied, true, all},
                  std::tuple{300, copied, false, all}, std::tuple{300, copied, true, some},
                  std::tuple{300, in_place, false, some}, std::tuple{5, in_place, false, all},
                  std::tuple{600, in_place, false, all}, std::tuple{600, in_place, true, all}}) {
                const Problem problem =
                    random_problem(Squared{}, 1, Intercept::free, false, rows, 9, density, 3, storage);
                const DenseProblem dense = dense_copy(problem);
                const RowBlocks blocks(problem, 7, LentTeam(nullptr, 2), source, list);
                const std::size_t d = dense.d();
                Random random(11);
                std::vector<double> x(d), w(blocks.padded_rows()), h(blocks.padded_rows());
                for (double &v : x) v = random.normal();
                for (std::size_t p = 0; p < blocks.rows(); ++p) {
                    w[p] = random.normal();
                    h[p] = random.uniform() < 0.3 ? random.uniform() : 0; // some blocks are compacted
                    if (rows == 5) h[p] = 1;
                }
                std::vector<double> x_here(d), z(blocks.padded_rows());
                for (std::size_t j = 0; j < d; ++j) x_here[blocks.place_of(static_cast<std::int64_t>(j))] = x[j];
                RowSums sums;
                blocks.sum(blocks.blocks(), true, sums, [&](std::size_t k, RowScratch &scratch, RowSums &own) {
                    const std::size_t first = k * blocks.block_rows();
                    if (prepares) blocks.prepare(k, scratch);
                    blocks.predict(k, x_here.data(), z.data() + first, scratch);
                    blocks.combine(k, w.data() + first, own.gradient.data(), scratch);
                    blocks.add_hessian(k, h.data() + first, scratch, own);
                });
                Eigen::MatrixXd hessian;
                blocks.assemble(sums, 1, hessian);
                std::vector<double> gradient(d, 0.0);
                std::vector<std::vector<double>> expected(d, std::vector<double>(d, 0.0));
                for (std::size_t p = 0; p < blocks.rows(); ++p) {
                    const auto &row = dense.a[static_cast<std::size_t>(blocks.row_at(p))];
                    EXPECT_NEAR(z[p], static_cast<double>(dot(row, x)), 1e-13);
                    for (std::size_t j = 0; j < d; ++j) {
                        gradient[j] += w[p] * row[j];
                        for (std::size_t k = 0; k < d; ++k) expected[j][k] += h[p] * row[j] * row[k];
                    }
                }
                for (std::size_t j = 0; j < d; ++j) {
                    const auto pj = static_cast<Eigen::Index>(blocks.place_of(static_cast<std::int64_t>(j)));
                    EXPECT_NEAR(sums.gradient[static_cast<std::size_t>(pj)], gradient[j], 1e-11);
                    for (std::size_t k = 0; k < d; ++k) {
                        const auto pk = static_cast<Eigen::Index>(blocks.place_of(static_cast<std::int64_t>(k)));
                        EXPECT_NEAR(hessian(std::max(pj, pk), std::min(pj, pk)), expected[j][k], 1e-11);
                    }
                }
            }
        }
    }
}

TEST(NewtonRowsThreads, PassOnAnErrorAndGoOn) {
    const Problem problem = random_problem(Squared{}, 1, Intercept::none, false, 20000, 3);
    const RowBlocks blocks(problem, 1, 3);
    const auto pass = [&](std::size_t bad) {
        RowSums sums;
        blocks.sum(blocks.blocks(), false, sums, [&](std::size_t k, RowScratch &, RowSums &own) {
            if (k == bad) throw std::bad_alloc();
            own.loss += 1;
        });
        return sums.loss;
    };
    ASSERT_GT(blocks.blocks(), 16);
    for (const std::size_t bad : {std::size_t{0}, blocks.blocks() / 2, blocks.blocks() - 1}) {
        EXPECT_THROW(pass(bad), std::bad_alloc);
        EXPECT_EQ(pass(~std::size_t{0}), static_cast<double>(blocks.blocks()));
    }
}

TEST(NewtonRowsThreads, AddUpInOneOrderAndDoNotWaitForAPartThatTakesLong) {
    const Problem problem = random_problem(Squared{}, 1, Intercept::none, false, 20000, 3);
    std::vector<double> sums;
    for (const int threads : {1, 4}) {
        const RowBlocks blocks(problem, 1, threads);
        std::atomic<int> others{0};
        RowSums total;
        blocks.sum(blocks.blocks(), false, total, [&](std::size_t k, RowScratch &, RowSums &own) {
            own.loss += std::sqrt(static_cast<double>(k + 2));
            // the three others have more than one part of two blocks each to do meanwhile
            while (threads > 1 && k == 0 && others < 10) std::this_thread::yield();
            ++others;
        });
        sums.push_back(total.loss);
    }
    EXPECT_EQ(sums[0], sums[1]);
}

/// Which thread made the panel of a block last depends on how many there are.
TEST(NewtonRows, AnEarlierPassLeavesNoTraceInTheBits) {
    const Problem problem = random_problem(Squared{}, 1, Intercept::free, false, 600, 9, 0.3);
    const std::vector<double> x{0.1, 0.7, -0.3, 0.9, 0.4, -0.6, 0.2, 1.3, -0.8, 0.5};
    const auto predictions = [&](bool after_another_pass) {
        const RowBlocks blocks(problem, 1, LentTeam(nullptr, 1), RowBlocks::Source::in_place);
        std::vector<double> z(blocks.padded_rows());
        RowSums sums;
        if (after_another_pass) {
            blocks.sum(blocks.blocks(), true, sums,
                       [&](std::size_t k, RowScratch &scratch, RowSums &) { blocks.prepare(k, scratch); });
        }
        // backwards: the block that was made last comes first
        blocks.sum(blocks.blocks(), false, sums, [&](std::size_t k, RowScratch &scratch, RowSums &) {
            const std::size_t block = blocks.blocks() - 1 - k;
            blocks.predict(block, x.data(), z.data() + block * blocks.block_rows(), scratch);
        });
        return z;
    };
    EXPECT_EQ(predictions(true), predictions(false));
}

TEST(NewtonRows, HoldEveryRowOnceOrThoseOfTheList) {
    const Problem problem = random_problem(Squared{}, 1, Intercept::none, false, 1000, 3);
    std::vector<std::int32_t> list;
    std::vector<int> is_listed(1000, 0);
    for (std::int32_t i = 0; i < 1000; i += 1 + i % 3) {
        list.push_back(i);
        is_listed[static_cast<std::size_t>(i)] = 1;
    }
    const auto seen_in = [](const RowBlocks &blocks) {
        std::vector<int> seen(1000, 0);
        for (std::size_t p = 0; p < blocks.rows(); ++p) ++seen[static_cast<std::size_t>(blocks.row_at(p))];
        return seen;
    };
    EXPECT_EQ(seen_in(RowBlocks(problem, 1, 1)), std::vector<int>(1000, 1));
    EXPECT_EQ(seen_in(RowBlocks(problem, 1, 1, nullptr, list)), is_listed);
}

// --- optima ---

TEST(Newton, CertifiesEveryLossInterceptAndWeighting) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        for (const Intercept intercept : all_intercepts) {
            for (const bool weighted : {false, true}) {
                for (const auto &[rows, columns] : {std::pair{40, 7}, std::pair{12, 30}}) {
                    const Problem problem = random_problem(loss, 0.01, intercept, weighted, rows, columns);
                    const double tolerance = has_corners(loss) ? 1e-6 : 1e-10;
                    const Result result = solve_by(problem, "newton", tolerance);
                    EXPECT_EQ(result.stop_reason, StopReason::gap_reached)
                        << name << ", intercept " << to_string(intercept) << ", weighted " << weighted << ", " << rows
                        << " rows: " << result.worst().relative_gap << " after " << result.passes;
                }
            }
        }
    }
}

TEST(Newton, FindsTheOptimumOfSpdc) {
    for (const std::string name : {"logistic", "squared", "smoothed_hinge", "huber", "squared_hinge"}) {
        const Problem problem = random_problem(make_loss(name), 0.1, Intercept::none, true);
        const Result newton = solve_by(problem, "newton", 1e-11);
        const Result spdc = solve_by(problem, "spdc", 1e-11, 100000);
        ASSERT_TRUE(newton.converged() && spdc.converged()) << name;
        EXPECT_NEAR(newton.worst().primal, spdc.worst().primal, 1e-9 * std::fabs(spdc.worst().primal)) << name;
        for (std::size_t j = 0; j < newton.weights.size(); ++j) {
            EXPECT_NEAR(newton.weights[j], spdc.weights[j], 1e-4) << name;
        }
    }
}

TEST(Newton, FormsAgree) {
    for (const std::string &name : loss_names()) {
        const AnyLoss loss = make_loss(name);
        const bool corners = has_corners(loss);
        const double tolerance = corners ? 1e-7 : 1e-9;
        for (const Intercept intercept : all_intercepts) {
            const Problem problem = random_problem(loss, 0.02, intercept, true, 25, 25, 0.6, 4);
            const SolveContext context;
            std::vector<double> values;
            const auto add = [&](std::unique_ptr<Method> method) {
                const Certified result = run(problem, *method, tolerance);
                EXPECT_LE(result.certificate.relative_gap, tolerance) << name << " " << to_string(intercept);
                values.push_back(result.certificate.primal);
            };
            if (NewtonLoss(loss).has_pieces()) {
                add(make_barrier_newton(problem, make_primal_system(problem, context)));
                add(make_barrier_newton(problem, make_dual_system(problem, context)));
            }
            if (!corners) {
                add(make_fused_newton(problem, context));
                add(make_plain_newton(problem, make_primal_system(problem, context)));
                add(make_plain_newton(problem, make_dual_system(problem, context)));
            }
            for (const double value : values)
                EXPECT_NEAR(value, values.front(), 2 * tolerance * std::fabs(values.front()));
        }
    }
}

/// The twin is the barrier's certificate on a problem that has copies of these rows.
TEST(Newton, BarrierOnSomeRowsSolvesTheProblemOfTheseRows) {
    for (const Intercept intercept : all_intercepts) {
        const Problem problem = random_problem(EpsilonInsensitive{0.1}, 0.02, intercept, true, 500, 6);
        const auto n = static_cast<double>(problem.rows());
        std::vector<std::int32_t> rows;
        std::vector<double> importance;
        PrimalExtras extras;
        for (std::int32_t i = 1; i < problem.rows(); i += 3) {
            rows.push_back(i);
            importance.push_back(problem.importance(i));
            extras.divisor += importance.back();
        }
        extras.rows = rows;
        for (double &w : importance) w *= n / extras.divisor;
        const Problem copy = problem.on(
            select_rows(problem.matrix(), std::vector<std::int64_t>(rows.begin(), rows.end())), rows, importance, {});
        const auto method = make_barrier_newton(problem, make_primal_system(problem, SolveContext{}, extras));
        method->aim(1e-9);
        for (int k = 0; k < 100 && !method->has_point(); ++k) method->advance(1);
        std::vector<double> x, y(static_cast<std::size_t>(problem.rows()), 7.0), own;
        method->point(x, y);
        for (const std::int32_t i : rows) own.push_back(std::exchange(y[static_cast<std::size_t>(i)], 7.0));
        EXPECT_EQ(y, std::vector<double>(y.size(), 7.0)); // the others keep theirs
        Certifier certifier(copy);
        const double gap = certifier.offer(x, own, infinity).gap;
        EXPECT_LE(gap, 2e-9 * copy.primal(x)) << to_string(intercept);
        EXPECT_NEAR(gap, method->estimated_gap(), 1e-9 * copy.primal(x)) << to_string(intercept);
    }
}

// --- sifting ---

std::vector<AnyLoss> losses_with_kinks() { return {Hinge{}, Absolute{}, Quantile{0.3}, EpsilonInsensitive{0.1}}; }

/// The barrier on all rows is the twin. That passes are a fraction shows that bands were right: all rows would be taken otherwise.
void expect_a_fraction_of_the_passes(const Problem &problem, double tolerance, double fraction) {
    const SolveContext context;
    EXPECT_TRUE(suits_sifting(problem));
    const auto whole = make_barrier_newton(problem, make_primal_system(problem, context));
    const auto sifted = make_sifted_newton(problem, context);
    const Certified all = run(problem, *whole, tolerance), some = run(problem, *sifted, tolerance);
    EXPECT_LE(all.certificate.relative_gap, tolerance);
    EXPECT_LE(some.certificate.relative_gap, tolerance);
    EXPECT_NEAR(some.certificate.primal, all.certificate.primal, 2 * tolerance * all.certificate.primal);
    EXPECT_LT(sifted->passes(), fraction * whole->passes());
}

TEST(NewtonSifted, FindsTheOptimumInAFractionOfThePasses) {
    for (const AnyLoss &loss : losses_with_kinks()) {
        for (const Intercept intercept : all_intercepts) {
            for (const double l2 : {1e-1, 1e-4}) {
                const bool weighted = l2 < 1e-2;
                SCOPED_TRACE(fmt::format("{} {} {}", loss.name(), to_string(intercept), l2));
                const Storage storage = intercept == Intercept::none ? Storage::dense_float : Storage::csr_double;
                const Problem problem = random_problem(loss, l2, intercept, weighted, 8000, 5, 0.7, 3, storage);
                expect_a_fraction_of_the_passes(problem, 1e-8, 0.7);
            }
        }
    }
}

TEST(NewtonSifted, TakesPenaltyFactorsAndNoPenalty) {
    const TinyData data =
        tiny_data({.task = Task::regression, .rows = 8000, .columns = 4, .density = 1, .weighted = true});
    for (const double l2 : {0.01, 0.0}) {
        SCOPED_TRACE(l2);
        const ProblemOptions options{
            .intercept = Intercept::free, .penalty_factors = {1, 0, 3, 0.5}, .class_weights = {}};
        expect_a_fraction_of_the_passes(Problem(as_dataset(data), Absolute{}, L2{l2}, options), 1e-6, 0.7);
    }
}

/// A feature of three rows, one of a single row, and hardly a penalty that holds them: samples miss them, and a band without them runs
/// away.
TEST(NewtonSifted, FeaturesOfFewRows) {
    TinyData data = tiny_data({.task = Task::classification, .rows = 6000, .columns = 4, .density = 1, .seed = 5});
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        data.rows[i].push_back(i % 2000 == 7 ? 1 : 0);
        data.rows[i].push_back(i == 4000 ? 1e-3 : 0);
    }
    expect_a_fraction_of_the_passes(Problem(as_dataset(data, Storage::csr_float), Hinge{}, L2{1e-9}), 1e-8, 0.8);
}

/// As from a file: a band of few rows is copied, and what is small, a large one and all rows are read where they are.
TEST(NewtonSifted, RowsInRandomOrderAlready) {
    using enum RowBlocks::Source;
    const auto with_rows = [](std::int64_t rows) {
        Dataset data = tiny_dataset({.task = Task::regression, .rows = rows, .columns = 6, .density = 1});
        data.row_order.resize(static_cast<std::size_t>(rows));
        std::iota(data.row_order.begin(), data.row_order.end(), 0);
        return Problem(data, Absolute{}, L2{1e-4});
    };
    EXPECT_EQ(RowBlocks::source_for(with_rows(83333), {}), copied); // up to 500'000 entries
    const Problem problem = with_rows(90000);
    const std::vector<std::int32_t> few(18000), many(18001);
    EXPECT_EQ(RowBlocks::source_for(problem, few), copied);
    EXPECT_EQ(RowBlocks::source_for(problem, many), in_place);
    EXPECT_EQ(RowBlocks::source_for(problem, {}), in_place);
    expect_a_fraction_of_the_passes(problem, 1e-8, 0.7);
}

/// However early it ends, there is a point with a certificate, and once something was found it is better than none.
TEST(NewtonSifted, EndsAtAnyMomentWithAPoint) {
    const Problem problem = random_problem(Hinge{}, 1e-4, Intercept::free, true, 20000, 5, 0.7);
    const std::vector<double> zero(6, 0.0);
    int ended = 0;
    for (const int moment : {1, 3, 10, 30, 100, 300, 600, 1000, 1500}) {
        std::atomic<int> calls = 0;
        SolveContext context;
        context.stop = [&] { return ++calls >= moment; };
        const Result result = solve(problem, Newton{}, Stopping{1e-9, 20000, 60}, context);
        ended += result.stop_reason == StopReason::interrupted ? 1 : 0;
        EXPECT_TRUE(std::isfinite(result.worst().gap)) << moment;
        EXPECT_LE(result.worst().primal, problem.primal(zero) * (1 + 1e-12)) << moment;
    }
    EXPECT_GT(ended, 3);
    for (const double passes : {1.0, 3.0, 6.0, 9.0, 12.0}) {
        const Result result = solve(problem, Newton{}, Stopping{1e-9, passes, 60});
        EXPECT_LE(result.worst().primal, problem.primal(zero) * (1 + 1e-12)) << passes;
    }
}

/// Targets that are fitted exactly leave every row at its kink.
TEST(NewtonSifted, AllRowsAtTheirKinks) {
    TinyData data = tiny_data({.task = Task::regression, .rows = 6000, .columns = 4, .density = 1, .seed = 5});
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        data.targets[i] = 3 * data.rows[i][0] - data.rows[i][1] + 2 * data.rows[i][2] + data.rows[i][3];
    }
    const Problem problem(as_dataset(data), Absolute{}, L2{1e-3});
    EXPECT_TRUE(suits_sifting(problem));
    const Result result = solve_by(problem, "newton", 1e-7);
    EXPECT_TRUE(result.converged());
    EXPECT_NEAR(result.weights[0], 3, 0.01);
}

TEST(NewtonSiftedThreads, HaveTheSameBits) {
    const Problem problem = random_problem(Hinge{}, 1e-4, Intercept::free, true, 120000, 5, 0.7); // enough to be shared
    const Result one = solve_by(problem, "newton", 1e-6);
    const Result three = solve_by(problem, "newton", 1e-6, 20000, 3);
    EXPECT_TRUE(one.converged());
    EXPECT_EQ(three.threads, 3);
    EXPECT_EQ(one.weights, three.weights);
    EXPECT_EQ(one.dual, three.dual);
}

TEST(NewtonSifted, IsForManyRowsAndKinks) {
    EXPECT_TRUE(suits_sifting(random_problem(Hinge{}, 1, Intercept::none, false, 5000, 5)));
    EXPECT_FALSE(suits_sifting(random_problem(Hinge{}, 1, Intercept::none, false, 4000, 5)));
    EXPECT_FALSE(suits_sifting(random_problem(Hinge{}, 1, Intercept::none, false, 5000, 42)));
    EXPECT_FALSE(suits_sifting(random_problem(SmoothedHinge{}, 1, Intercept::none, false, 5000, 5)));
    EXPECT_FALSE(suits_sifting(random_problem(Logistic{}, 1, Intercept::none, false, 5000, 5)));
    EXPECT_FALSE(suits_sifting(random_problem(Poisson{}, 1, Intercept::none, false, 5000, 5)));
}

TEST(Newton, PenaltyFactorsZeroAndOther) {
    for (const auto &[rows, columns] : {std::pair{60, 6}, std::pair{12, 20}}) {
        const Tiny tiny{Task::regression, rows, columns, 0.7, 2, false, 2};
        std::vector<double> factors(static_cast<std::size_t>(columns), 1.0);
        factors[0] = 0;
        factors[1] = 3;
        factors[2] = 0.25;
        for (const std::string name : {"squared", "huber", "absolute", "squared_epsilon_insensitive"}) {
            const Problem problem(
                as_dataset(tiny_data(tiny)), make_loss(name), L2{0.1},
                ProblemOptions{.intercept = Intercept::free, .penalty_factors = factors, .class_weights = {}});
            const Result result = solve_by(problem, "newton", 1e-7);
            EXPECT_TRUE(result.converged()) << name << " " << rows << ": " << result.worst().relative_gap;
        }
    }
}

TEST(Newton, WithoutPenalty) {
    const Problem problem = random_problem(Squared{}, 0, Intercept::free, false, 60, 5, 1);
    EXPECT_TRUE(solve_by(problem, "newton", 1e-9).converged());
}

TEST(Newton, SeveralLabels) {
    const Tiny tiny{Task::classification, 60, 5, 0.6, 3, false, 2};
    const Problem problem(as_dataset(tiny_data(tiny)), Logistic{}, L2{0.01});
    const Result result = solve_by(problem, "newton", 1e-9);
    EXPECT_TRUE(result.converged());
    EXPECT_EQ(result.outputs, 3);
}

// --- hard data ---

TEST(Newton, ColumnsOfAllSizesDuplicateConstantAndEmpty) {
    for (const std::string name : {"logistic", "squared_hinge", "smoothed_hinge", "hinge"}) {
        for (const Intercept intercept : all_intercepts) {
            const Problem problem(as_dataset(columns_of_all_sizes()), make_loss(name), L2{1e-6},
                                  ProblemOptions{.intercept = intercept, .penalty_factors = {}, .class_weights = {}});
            const Result result = solve_by(problem, "newton", 1e-6);
            EXPECT_TRUE(result.converged())
                << name << " " << to_string(intercept) << " " << result.worst().relative_gap;
        }
    }
}

// Rows at a corner have curvatures beyond 1e8, which make much of rounding in their predictions, and columns of large numbers with a
// small penalty make much of that in the duals: without refinement these end above 1e-6.
TEST(Newton, CornersWithOneHugeColumn) {
    const std::pair<std::string, double> cases[] = {
        {"hinge", 1e-6}, {"hinge", 1e-9}, {"absolute", 1e-8}, {"epsilon_insensitive", 1e-8}, {"quantile", 1e-8}};
    for (const auto &[name, l2] : cases) {
        const AnyLoss loss = make_loss(name);
        for (const bool weighted : {false, true}) {
            for (const Intercept intercept : all_intercepts) {
                TinyData data = tiny_data({loss.task(), 400, 12, 1, 2, weighted, 5});
                for (auto &row : data.rows) row[3] *= 1e6;
                const Problem problem(
                    as_dataset(std::move(data)), loss, L2{l2},
                    ProblemOptions{.intercept = intercept, .penalty_factors = {}, .class_weights = {}});
                const Result result = solve_by(problem, "newton", 1e-6);
                EXPECT_TRUE(result.converged()) << name << " l2 " << l2 << (weighted ? " weighted " : " ")
                                                << to_string(intercept) << " " << result.worst().relative_gap;
            }
        }
    }
}

TEST(Newton, FewRowsWithOneHugeColumn) {
    for (const std::string name : {"hinge", "squared_hinge", "epsilon_insensitive"}) {
        const AnyLoss loss = make_loss(name);
        for (const Intercept intercept : all_intercepts) {
            TinyData data = tiny_data({loss.task(), 30, 60, 1, 2, true, 6});
            for (auto &row : data.rows) row[3] *= 1e6;
            const Problem problem(as_dataset(std::move(data)), loss, L2{1e-4},
                                  ProblemOptions{.intercept = intercept, .penalty_factors = {}, .class_weights = {}});
            const Result result = solve_by(problem, "newton", 1e-6);
            EXPECT_TRUE(result.converged())
                << name << " " << to_string(intercept) << " " << result.worst().relative_gap;
        }
    }
}

TEST(Newton, OneRowOneColumnAndEqualRows) {
    const auto answers = known_answers();
    int tried = 0;
    for (const KnownAnswer &answer : answers) {
        if (!std::holds_alternative<L2>(answer.problem.regularizer().variant())) continue;
        ++tried;
        const Result result = solve_by(answer.problem, "newton", 1e-7);
        EXPECT_TRUE(result.converged()) << answer.name << " " << result.worst().relative_gap;
        EXPECT_NEAR(result.worst().primal, answer.value, 1e-6) << answer.name;
    }
    EXPECT_GE(tried, 5);
    // few rows, equal and empty ones among them: the dual-sized form
    TinyData data{{{1, 2, 0, 1, 1, 1, 3}, {1, 2, 0, 1, 1, 1, 3}, {0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 2, 0, 1}},
                  {1, 1, -1, -1},
                  {}};
    for (const std::string name : {"logistic", "hinge", "squared_hinge"}) {
        for (const Intercept intercept : all_intercepts) {
            const Problem problem(as_dataset(data), make_loss(name), L2{0.01},
                                  ProblemOptions{.intercept = intercept, .penalty_factors = {}, .class_weights = {}});
            EXPECT_TRUE(solve_by(problem, "newton", 1e-7).converged()) << name << " " << to_string(intercept);
        }
    }
}

TEST(Newton, LargeCountsDoNotOverflow) {
    TinyData data;
    Random random(8);
    for (int i = 0; i < 200; ++i) {
        const double a = random.uniform(-1, 1);
        data.rows.push_back({a});
        data.targets.push_back(std::floor(std::exp(8 + 2 * a)));
    }
    const Problem problem(as_dataset(data), Poisson{}, L2{1e-3},
                          ProblemOptions{.intercept = Intercept::free, .penalty_factors = {}, .class_weights = {}});
    EXPECT_TRUE(solve_by(problem, "newton", 1e-9).converged());
}

TEST(Newton, SeparableDataWithoutPenaltyHaveNoMinimizer) {
    const Problem problem = make_problem({{1}, {2}, {-1}, {-3}}, {1, 1, -1, -1}, Logistic{}, L2{0});
    EXPECT_NE(solve_by(problem, "newton", 1e-12, 200).stop_reason, StopReason::gap_reached);
}

// --- threads, samples, refusals ---

TEST(Newton, SameBitsForAnyNumberOfThreads) {
    for (const std::string name : {"logistic", "hinge", "smoothed_hinge"}) {
        // enough rows for a sample and for several parts
        const Problem problem = random_problem(make_loss(name), 1e-4, Intercept::free, true, 30000, 4, 0.5, 9);
        const double tolerance = only_for_races ? 0.1 : 1e-6;
        const Result one = solve_by(problem, "newton", tolerance, 1000, 1);
        ASSERT_TRUE(one.converged()) << name;
        for (const int threads : {2, 3}) {
            const Result more = solve_by(problem, "newton", tolerance, 1000, threads);
            EXPECT_EQ(more.weights, one.weights) << name;
            EXPECT_EQ(more.dual, one.dual) << name;
            EXPECT_EQ(more.threads, threads);
        }
    }
}

TEST(Newton, SampleFirstGivesTheSameOptimum) {
    const Problem problem = random_problem(Logistic{}, 1e-5, Intercept::none, false, 20000, 5, 0.5, 9);
    const SolveContext context;
    const Certified fused = run(problem, *make_fused_newton(problem, context), 1e-10);
    const Certified plain = run(problem, *make_plain_newton(problem, make_primal_system(problem, context)), 1e-10);
    EXPECT_LE(fused.certificate.relative_gap, 1e-10);
    EXPECT_LE(plain.certificate.relative_gap, 1e-10);
    EXPECT_NEAR(fused.certificate.primal, plain.certificate.primal, 1e-10);
}

TEST(Newton, StopsAtRounding) {
    const Problem problem = random_problem(Logistic{}, 1e-3, Intercept::none, false);
    const Result result = solve_by(problem, "newton", 1e-300);
    EXPECT_EQ(result.stop_reason, StopReason::stalled);
    EXPECT_LE(result.worst().relative_gap, 1e-13);
    EXPECT_LE(result.passes, 200);
}

TEST(Newton, RefusesWhatItCannotDo) {
    const auto message = [](const Problem &problem) {
        return test::error_of(ErrorKind::unsupported, [&] { solve(problem, Newton{}); });
    };
    const Dataset data = as_dataset(tiny_data());
    EXPECT_NE(message({data, Logistic{}, ElasticNet{0.1, 0.1}}).find("spdc takes any penalty"), std::string::npos);
    EXPECT_NE(message({data, Logistic{}, Box{0, 0.1, {0, infinity}}}).find("l2 penalty"), std::string::npos);
    Dataset wide;
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i <= 6000; ++i) offsets.push_back(i);
    std::vector<std::int32_t> columns;
    for (std::int32_t j = 0; j < 6000; ++j) columns.push_back(j);
    wide.matrix = CsrMatrix<double>::own(6000, offsets, columns, std::vector<double>(6000, 1.0));
    for (int i = 0; i < 6000; ++i) wide.targets.push_back(i % 2);
    EXPECT_NE(message({wide, Logistic{}, L2{1}}).find("6000 rows and 6000 features"), std::string::npos);
}

} // namespace
} // namespace spdc::tests
