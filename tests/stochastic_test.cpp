// The stochastic methods: each equals its dense twin iterate for iterate, costs the non-zeros, reaches what spdc reaches, and
// keeps the rate that its theorem claims.
#include "support/problems.h"
#include "support/stochastic_twins.h"

#include "free_coordinates.h"
#include "solvers/methods.h"
#include "spdc/io.h"
#include "spdc/solvers.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace spdc::tests {
namespace {

SolveContext context_of(std::uint64_t seed) {
    SolveContext context;
    context.seed = seed;
    return context;
}

Pair run(Method &method, const Problem &problem, std::size_t visits) {
    Pair point;
    method.advance(static_cast<double>(visits) / static_cast<double>(problem.rows()));
    method.point(point.x, point.y);
    return point;
}

Order rows_drawn(Sampling sampling, std::int64_t n, std::size_t count, std::uint64_t seed) {
    Sampler sampler(sampling, n, 1, seed, {}, 0.5);
    Order order(count);
    for (std::int64_t &k : order) sampler.draw({&k, 1});
    return order;
}

Batches batches_drawn(std::int64_t n, std::int64_t m, std::size_t count, std::uint64_t seed) {
    Sampler sampler(Sampling::uniform, n, m, seed, {}, 0.5);
    Batches batches(count, std::vector<std::int64_t>(static_cast<std::size_t>(m)));
    for (auto &batch : batches) sampler.draw(batch);
    return batches;
}

void expect_near(const Vector &fast, const Vector &slow, double tolerance, const std::string &what) {
    ASSERT_EQ(fast.size(), slow.size());
    double size = 1e-3;
    for (const double v : slow) size = std::max(size, std::fabs(v));
    for (std::size_t j = 0; j < slow.size(); ++j) ASSERT_NEAR(fast[j], slow[j], tolerance * size) << what << ", " << j;
}

struct Case {
    Problem problem;
    std::string name;
};

/// Losses x penalties, with storages, row weights, intercepts and penalty factors taken by turns.
std::vector<Case> cases(const std::vector<Intercept> &intercepts) {
    std::vector<Case> all;
    for (const AnyLoss &loss : {AnyLoss(Squared{}), AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{0.5})}) {
        for (const AnyRegularizer &g : {AnyRegularizer(L2{0.02}), AnyRegularizer(ElasticNet{0.01, 0.02}),
                                        AnyRegularizer(Box{0.01, 0.02, {-0.2, infinity}})}) {
            for (const bool weighted : {false, true}) {
                const std::size_t turn = all.size();
                ProblemOptions options;
                options.intercept = intercepts[turn % intercepts.size()];
                if (turn % 4 == 3) options.penalty_factors = {0.5, 1, 2, 1, 1, 3, 1};
                const Tiny tiny{.task = loss.task(),
                                .rows = 20,
                                .columns = 7,
                                .density = 0.4,
                                .weighted = weighted,
                                .seed = 3 + turn};
                TinyData data = tiny_data(tiny);
                for (auto &row : data.rows) row[turn % 7] = 0.25; // none without entries: the twins would divide by 0
                const Problem problem(as_dataset(data, all_storages[turn % 4]), loss, g, options);
                all.push_back({problem, std::string(loss.name()) + ", " + std::string(g.name()) + ", intercept " +
                                            std::string(to_string(options.intercept))});
            }
        }
    }
    return all;
}

const std::vector<Intercept> any_intercept{Intercept::none, Intercept::free, Intercept::penalized};
const std::vector<Intercept> no_free_intercept{Intercept::none, Intercept::penalized};
constexpr std::size_t visits = 157; // of 20 rows

/// What the primal methods start from: 0, and the best constant where the intercept is free.
struct PrimalStart {
    DenseProblem p;
    double column = 1;
    Vector x;

    explicit PrimalStart(const Problem &problem) : p(dense_copy(problem, column_of(problem))), x(p.d(), 0.0) {
        column = column_of(problem);
        if (problem.intercept() == Intercept::free) x.back() = best_constant(problem) / column;
    }
    static double column_of(const Problem &problem) {
        if (problem.intercept() != Intercept::free) return 1;
        const auto data_norms = problem.squared_row_norms();
        Vector norms(data_norms.begin(), data_norms.end());
        std::sort(norms.begin(), norms.end());
        return std::sqrt(norms[norms.size() / 2]);
    }
    double L() const { return Letters(p).R2 / p.loss.gamma(); }
    Vector in_units_of(const Problem &problem, Vector point) const {
        if (problem.has_intercept()) point.back() *= column;
        return point;
    }
};

TEST(StochasticTwin, OfSagAndSaga) {
    for (const auto &[problem, name] : cases(any_intercept)) {
        const PrimalStart start(problem);
        const Order order = rows_drawn(Sampling::uniform, problem.rows(), visits, 5);
        const auto sag = make_method(problem, Sag{}, context_of(5)), saga = make_method(problem, Saga{}, context_of(5));
        const double n = static_cast<double>(problem.rows());
        const Vector slow_sag = gradient_table(start.p, order, 1 / (16 * start.L()), 1 / n, start.x);
        const Vector slow_saga = gradient_table(start.p, order, 1 / (3 * start.L()), 1, start.x);
        expect_near(run(*sag, problem, visits).x, start.in_units_of(problem, slow_sag), 1e-10, "sag, " + name);
        expect_near(run(*saga, problem, visits).x, start.in_units_of(problem, slow_saga), 1e-10, "saga, " + name);
    }
}

TEST(StochasticTwin, OfSvrg) {
    for (const auto &[problem, name] : cases(any_intercept)) {
        const PrimalStart start(problem);
        const auto snapshots = (visits + 39) / 40; // each counts 20 visits
        const Order order = rows_drawn(Sampling::uniform, problem.rows(), visits, 6);
        const auto method = make_method(problem, Svrg{}, context_of(6));
        const Vector slow = svrg(start.p, order, 0.1 / start.L(), start.x);
        expect_near(run(*method, problem, visits + 20 * snapshots).x, start.in_units_of(problem, slow), 1e-10, name);
    }
}

TEST(StochasticTwin, OfSdca) {
    for (const auto &[problem, name] : cases(no_free_intercept)) {
        for (const Sampling sampling : {Sampling::uniform, Sampling::permutation}) {
            const bool plain_l2 = name.find("l2") != std::string::npos && problem.penalty_factors().empty();
            if (sampling == Sampling::permutation && plain_l2) continue; // spdc_fast's kernel, which has its own twin
            Sdca options;
            options.sampling = sampling;
            const auto method = make_method(problem, options, context_of(7));
            const Pair fast = run(*method, problem, visits);
            const Pair slow = sdca(dense_copy(problem), rows_drawn(sampling, problem.rows(), visits, 7));
            expect_near(fast.x, slow.x, 1e-9, name);
            expect_near(fast.y, slow.y, 1e-9, name);
        }
    }
}

TEST(StochasticTwin, OfAsdca) {
    int outer = 0, most = 0;
    for (const auto &[given, name] : cases(no_free_intercept)) {
        const Problem problem = given.with(std::visit(
            [](auto g) -> AnyRegularizer {
                g.l2 = 1e-3; // small enough for an outer loop
                return g;
            },
            given.regularizer().variant()));
        constexpr std::size_t long_run = 25 * 20 + 3;
        const auto method = make_method(problem, Asdca{}, context_of(8));
        const Pair fast = run(*method, problem, long_run);
        const Order order = rows_drawn(Sampling::permutation, problem.rows(), long_run, 8);
        const Pair slow = asdca(dense_copy(problem), order, outer);
        expect_near(fast.x, slow.x, 1e-8, name);
        expect_near(fast.y, slow.y, 1e-8, name);
        most = std::max(most, outer);
    }
    EXPECT_GE(most, 5); // or nothing was tested
}

TEST(Asdca, IsSdcaWhereLambdaIsTooLargeForAnOuterLoop) {
    const Problem problem(tiny_dataset(), Logistic{}, ElasticNet{0.01, 5});
    const auto accelerated = make_method(problem, Asdca{}, context_of(3));
    const auto plain = make_method(problem, Sdca{}, context_of(3));
    const Pair a = run(*accelerated, problem, 100), b = run(*plain, problem, 100);
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.y, b.y);
}

TEST(StochasticTwin, OfApcg) {
    for (const auto &[problem, name] : cases(no_free_intercept)) {
        constexpr std::size_t long_run = 600; // rho^t gets small and is folded in
        const auto method = make_method(problem, Apcg{}, context_of(9));
        const Pair fast = run(*method, problem, long_run);
        const Pair slow = apcg(dense_copy(problem), rows_drawn(Sampling::uniform, problem.rows(), long_run, 9));
        expect_near(fast.y, slow.y, 1e-6, name); // the twin's searches are good to 1e-8
        expect_near(fast.x, slow.x, 1e-6, name);
    }
}

TEST(StochasticTwin, OfAcceleratedSdcaInBatches) {
    for (const auto &[problem, name] : cases(no_free_intercept)) {
        for (const std::int64_t m : {1, 3, 20}) {
            AsdcaMinibatch options;
            options.batch_size = m;
            const auto method = make_method(problem, options, context_of(10));
            const Pair fast = run(*method, problem, static_cast<std::size_t>(40 * m));
            const Pair slow = asdca_minibatch(dense_copy(problem), batches_drawn(problem.rows(), m, 40, 10));
            expect_near(fast.x, slow.x, 1e-10, name);
            expect_near(fast.y, slow.y, 1e-10, name);
        }
    }
}

Steps rpdg_steps(const DenseProblem &p) {
    const Letters l(p);
    const double kappa = l.R2 / (l.lambda * l.gamma), S = std::sqrt((l.n - 1) * (l.n - 1) + 16 * l.n * kappa);
    return {.tau = 2 / (l.lambda * (S + l.n - 1)),
            .sigma = 2 * l.n / (l.gamma * (S - l.n + 1)),
            .theta = 1 - 2 / (S + l.n + 1)};
}

TEST(StochasticTwin, OfRpdg) {
    for (const auto &[problem, name] : cases(no_free_intercept)) {
        const DenseProblem p = dense_copy(problem);
        const auto method = make_method(problem, Rpdg{}, context_of(11));
        const Pair fast = run(*method, problem, visits);
        const Pair slow = rpdg(p, rows_drawn(Sampling::uniform, problem.rows(), visits, 11), rpdg_steps(p));
        expect_near(fast.x, slow.x, 1e-9, name);
        expect_near(fast.y, slow.y, 1e-9, name);
    }
}

TEST(Rpdg, IsSpdcOnTheSquaredLoss) {
    const Problem problem(tiny_dataset({.task = Task::regression, .weighted = true}), Squared{},
                          ElasticNet{0.01, 0.02});
    const DenseProblem p = dense_copy(problem);
    Iterates start; // where RPDG starts: the gradients at 0
    start.x.assign(p.d(), 0.0);
    for (const double b : p.b) start.y.push_back(-b);
    const Order order = rows_drawn(Sampling::uniform, problem.rows(), visits, 12);
    const Iterates slow = algorithm1(p, order, rpdg_steps(p), start);
    const auto method = make_method(problem, Rpdg{}, context_of(12));
    const Pair fast = run(*method, problem, visits);
    expect_near(fast.x, slow.x, 1e-10, "x");
    expect_near(fast.y, slow.y, 1e-10, "y");
}

TEST(StochasticTwin, OfSdcaAdmm) {
    for (const auto &[problem, name] : cases(no_free_intercept)) {
        if (!std::holds_alternative<L2>(problem.regularizer().variant()) || !problem.penalty_factors().empty())
            continue;
        const DenseProblem p = dense_copy(problem);
        for (const std::int64_t m : {1, 4, 20}) {
            SdcaAdmm options;
            options.batch_size = m;
            const auto K = p.n() / static_cast<std::size_t>(m);
            spdc::Random random(13);
            Order order(p.n());
            std::iota(order.begin(), order.end(), 0);
            random.shuffle(order);
            Vector D(p.n(), 0.0);
            for (std::size_t q = 0; q < p.n(); ++q) {
                for (std::size_t r = 0; r < p.n(); ++r) {
                    if (q * K / p.n() != r * K / p.n()) continue; // another block
                    const auto i = static_cast<std::size_t>(order[q]), k = static_cast<std::size_t>(order[r]);
                    for (std::size_t j = 0; j < p.d(); ++j) D[i] += p.omega[k] * std::fabs(p.a[i][j] * p.a[k][j]);
                }
            }
            Batches blocks;
            for (int t = 0; t < 40; ++t) {
                const auto first = order.begin() + random.below(static_cast<std::int64_t>(K)) * m;
                blocks.emplace_back(first, first + m);
            }
            const Letters l(p);
            const double rho = std::sqrt(l.gamma * l.n / (l.lambda * *std::max_element(D.begin(), D.end())));
            const auto method = make_method(problem, options, context_of(13));
            const Pair fast = run(*method, problem, static_cast<std::size_t>(40 * m));
            const Pair slow = sdca_admm(p, blocks, K, rho, D);
            expect_near(fast.x, slow.x, 1e-9, name);
            expect_near(fast.y, slow.y, 1e-9, name);
        }
    }
}

std::vector<AnySolver> stochastic_solvers() {
    Sdca uniform;
    uniform.sampling = Sampling::uniform;
    return {Sag{}, Saga{}, Svrg{}, uniform, Asdca{}, AsdcaMinibatch{}, Apcg{}, Rpdg{}, SdcaAdmm{}};
}

std::string name_of(const AnySolver &solver) {
    return std::visit([](const auto &options) { return std::string(options.name); }, solver);
}

std::unique_ptr<Method> method_of(const Problem &problem, const AnySolver &solver, std::uint64_t seed) {
    return std::visit(
        [&](const auto &options) -> std::unique_ptr<Method> {
            if constexpr (std::is_same_v<decltype(options), const Auto &>) {
                return nullptr;
            } else {
                return make_method(problem, options, context_of(seed));
            }
        },
        solver);
}

TEST(StochasticCost, OfAPassIsTheNonZerosWhateverTheDimension) {
    const Dataset narrow = tiny_dataset({.rows = 60, .columns = 50, .density = 0.1});
    Dataset wide = narrow;
    wide.matrix = with_columns(narrow.matrix, 100000);
    const ElasticNet g{1e-3, 1e-2};
    for (const AnySolver &solver : stochastic_solvers()) {
        if (name_of(solver) == "sdca_admm") continue; // costs the features
        const Problem small(narrow, Logistic{}, g), large(wide, Logistic{}, g);
        const auto a = method_of(small, solver, 1), b = method_of(large, solver, 1);
        Pair at_small = run(*a, small, 300), at_large = run(*b, large, 300);
        EXPECT_EQ(a->coordinates_touched(), b->coordinates_touched()) << name_of(solver);
        EXPECT_LE(static_cast<double>(b->coordinates_touched()), 1.5 * 5 * static_cast<double>(narrow.nonzeros()));
        at_large.x.resize(50);
        EXPECT_EQ(at_small.x, at_large.x) << name_of(solver); // empty columns change nothing, not even a bit
        EXPECT_EQ(at_small.y, at_large.y) << name_of(solver);
    }
}

TEST(StochasticMethods, CertifyA9aTo1e6) {
    const Dataset data = read_dataset(SPDC_DATA "/a9a.xz");
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SmoothedHinge{})}) {
        const Problem problem(data, loss, L2{1e-3});
        for (const AnySolver &solver : stochastic_solvers()) {
            const Result result = solve(problem, solver, {.tolerance = 1e-6, .max_passes = 200});
            EXPECT_TRUE(result.converged())
                << name_of(solver) << ", " << loss.name() << ": " << result.worst().relative_gap;
        }
    }
}

TEST(StochasticMethods, GoOnAfterRowsAndColumnsWithoutEntries) {
    TinyData data = tiny_data({.rows = 30, .columns = 6, .density = 0.5});
    for (double &value : data.rows[3]) value = 0;
    for (auto &row : data.rows) row[2] = 0;
    const Problem problem(as_dataset(data), Logistic{}, ElasticNet{0.001, 0.05});
    const Problem nothing(as_dataset({Rows(4, Vector(2, 0.0)), {1, -1, 1, 1}, {}}), Logistic{}, L2{0.1});
    for (const AnySolver &solver : stochastic_solvers()) {
        EXPECT_TRUE(solve(problem, solver, {.tolerance = 1e-8}).converged()) << name_of(solver);
        EXPECT_TRUE(solve(nothing, solver, {.tolerance = 1e-8}).converged()) << name_of(solver);
    }
}

TEST(StochasticMethods, RefuseSamplingsAndBatchesInASentence) {
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.1});
    const auto message = [&](const AnySolver &solver) -> std::string {
        try {
            solve(problem, solver);
        } catch (const Error &error) {
            return error.what();
        }
        return "";
    };
    Sdca weighted;
    weighted.sampling = Sampling::weighted;
    Asdca accelerated;
    accelerated.sampling = Sampling::weighted;
    AsdcaMinibatch large;
    large.batch_size = 1000;
    SdcaAdmm block;
    block.batch_size = 1000;
    EXPECT_NE(message(weighted).find("uniform or permutation"), std::string::npos);
    EXPECT_NE(message(accelerated).find("uniform or permutation"), std::string::npos);
    EXPECT_NE(message(large).find("only 24 rows"), std::string::npos);
    EXPECT_NE(message(block).find("only 24 rows"), std::string::npos);
}

/// The largest ratio of an average over seeds of `measure` to start times rate^t, at every pass; at most 1 when the claim holds.
double worst_ratio(const Problem &problem, const AnySolver &solver, double start, double rate,
                   const std::function<double(const Pair &)> &measure) {
    constexpr int seeds = 100, passes = 12;
    Vector sums(passes, 0.0);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto method = method_of(problem, solver, seed);
        for (double &sum : sums) sum += measure(run(*method, problem, static_cast<std::size_t>(problem.rows())));
    }
    double worst = 0, bound = start;
    for (const double sum : sums) {
        bound *= std::pow(rate, static_cast<double>(problem.rows()));
        worst = std::max(worst, sum / seeds / bound);
    }
    return worst;
}

TEST(StochasticRates, AreThoseOfTheTheoremsOnAverage) {
    const Problem problem(tiny_dataset({.rows = 12, .columns = 6}), Logistic{}, L2{0.02});
    const DenseProblem p = dense_copy(problem);
    const Iterates best = slow_optimum(p, 40000);
    const Letters l(p);
    const double mu = l.lambda * l.gamma * l.n / (l.R2 + l.lambda * l.gamma * l.n);
    const auto dual_gap = [&](const Vector &y) { return static_cast<double>(dual(p, best.y) - dual(p, y)); };
    const auto measure = [&](const Pair &point) { return dual_gap(point.y); };
    const double start = dual_gap(Vector(p.n(), 0.0));
    // Shalev-Shwartz and Zhang 2013, theorem 5's proof: E[D* - D] falls by 1 - mu/n a step
    Sdca uniform;
    uniform.sampling = Sampling::uniform;
    EXPECT_LE(worst_ratio(problem, uniform, start, 1 - mu / l.n, measure), 1);
    EXPECT_GT(worst_ratio(problem, uniform, start, 1 - 6 * mu / l.n, measure), 1); // the check can fail
    // Lin, Lu and Xiao 2014, theorem 1: (1 - sqrt(mu)/n)^t (D* - D(0) + (mu/2)|y*|^2 in the norm of the Lipschitz constants)
    double norm2 = 0;
    for (const double y : best.y) norm2 += (l.R2 / (l.lambda * l.n) + l.gamma) / l.n * y * y;
    const double potential = start + 0.5 * mu * norm2, rate = 1 - std::sqrt(mu) / l.n;
    EXPECT_LE(worst_ratio(problem, Apcg{}, potential, rate, measure), 1);
    EXPECT_GT(worst_ratio(problem, Apcg{}, potential, 1 - 8 * std::sqrt(mu) / l.n, measure), 1);
}

TEST(StochasticRates, OfRpdgInMeanSquareIsItsTheta) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const TinyData data =
            tiny_data({.task = Task::regression, .rows = 3, .columns = 2, .density = 0.9, .seed = seed});
        const Problem problem(as_dataset(data), Squared{}, L2{seed % 2 == 0 ? 1e-3 : 0.1});
        const DenseProblem p = dense_copy(problem);
        if (Letters(p).R2 == 0) continue;
        const Steps steps = rpdg_steps(p);
        EXPECT_LE(second_moment_rate(p.a, Letters(p).lambda, 1, steps.tau, steps.sigma, steps.theta),
                  steps.theta + 1e-9)
            << seed;
    }
}

} // namespace
} // namespace spdc::tests
