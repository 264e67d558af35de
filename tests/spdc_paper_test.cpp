// The paper's method, iterate for iterate: the lazy kernels against the dense eager twins of oracles.h, which get the same
// rows in the same order; and what follows from it: bits, cost, and the steps as printed.
#include "free_coordinates.h"
#include "solvers/spdc.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace spdc::tests {
namespace {

constexpr Sampling all_samplings[] = {Sampling::uniform, Sampling::weighted, Sampling::permutation};

Spdc spdc_of(std::int64_t batch_size, Sampling sampling = Sampling::uniform) {
    Spdc options;
    options.batch_size = batch_size;
    options.sampling = sampling;
    return options;
}

Spdc with_steps(Spdc options, double tau, double sigma, double theta) {
    options.tau = tau;
    options.sigma = sigma;
    options.theta = theta;
    return options;
}

SolveContext context_of(std::uint64_t seed, int threads = 1) {
    SolveContext context;
    context.seed = seed;
    context.threads = threads;
    return context;
}

ProblemOptions with_intercept(Intercept intercept) {
    ProblemOptions options;
    options.intercept = intercept;
    return options;
}

struct Point {
    std::vector<double> x, y;
};

Point point_of(Method &method) {
    Point point;
    method.point(point.x, point.y);
    return point;
}

void advance(SpdcMethod &method, const Problem &problem, const Spdc &options, int iterations) {
    method.advance(static_cast<double>(iterations * options.batch_size) / static_cast<double>(problem.rows()));
}

/// What SpdcMethod should do with these arguments, by the eager algorithms of oracles.h.
class Twin {
  public:
    Twin(const Problem &problem, const Spdc &options, std::uint64_t seed)
        : problem_(problem), options_(options), seed_(seed), n_(static_cast<double>(problem.rows())),
          m_(static_cast<double>(options.batch_size)), norms_(problem.squared_row_norms()) {
        set_intercept();
        for (std::int64_t i = 0; i < problem.rows(); ++i) {
            double &norm = norms_[static_cast<std::size_t>(i)];
            norm = std::sqrt(problem.importance(i) * (norm + column_ * column_));
            R_ = std::max(R_, norm);
            Rbar_ += norm / n_;
        }
        gamma_ = problem.loss().gamma() > 0 ? problem.loss().gamma() : options.perturbation.value_or(0);
        lambda_ = problem.strong_convexity() > 0 ? problem.strong_convexity() : options.perturbation.value_or(0);
        alpha_ = options.alpha.value_or(best_alpha(n_, m_, Rbar_, gamma_, lambda_));
    }

    Point run(int iterations) const {
        const DenseProblem p = dense_copy(problem_, column_ > 0 ? column_ : 1);
        Sampler sampler = make_sampler();
        Batches batches;
        std::vector<std::int64_t> order;
        for (int t = 0; t < iterations; ++t) {
            batches.emplace_back(static_cast<std::size_t>(options_.batch_size));
            sampler.draw(batches.back());
            order.push_back(batches.back().front());
        }
        std::vector<double> q;
        for (std::int64_t k = 0; k < problem_.rows(); ++k) q.push_back(sampler.probability(k));
        Iterates start;
        start.x.assign(p.d(), 0.0);
        if (problem_.intercept() == Intercept::free) start.x.back() = start_intercept_ / column_;
        Iterates end;
        if (options_.batch_size == 1) {
            end =
                sampler.is_weighted() ? algorithm3(p, order, q, steps(), start) : algorithm1(p, order, steps(), start);
        } else {
            end = sampler.is_weighted() ? algorithm2_weighted(p, batches, q, steps(), start)
                                        : algorithm2(p, batches, steps(), start);
        }
        if (problem_.has_intercept()) end.x.back() *= column_;
        return {end.x, end.y};
    }

  private:
    /// A free intercept's column has the size of the median row; it starts at the best constant model.
    void set_intercept() {
        if (problem_.intercept() == Intercept::penalized) column_ = 1;
        if (problem_.intercept() != Intercept::free) return;
        std::vector<double> sorted = norms_;
        std::sort(sorted.begin(), sorted.end());
        column_ = std::sqrt(sorted[sorted.size() / 2]);
        start_intercept_ = best_constant(problem_);
        const auto value = [&](double t) {
            double sum = 0;
            for (std::int64_t i = 0; i < problem_.rows(); ++i) {
                sum -=
                    problem_.importance(i) * problem_.loss().value(t, problem_.targets()[static_cast<std::size_t>(i)]);
            }
            return sum;
        };
        const double searched = scalar_search(value, {}, 0);
        EXPECT_NEAR(value(start_intercept_), value(searched), 1e-12 * (1 + std::fabs(value(searched))));
    }

    Sampler make_sampler() const {
        return {options_.sampling, problem_.rows(), options_.batch_size, seed_, norms_, alpha_};
    }

    Steps steps() const {
        const Sampler sampler = make_sampler();
        double slowest = 0, Rq = 0;
        for (std::int64_t k = 0; k < problem_.rows(); ++k) {
            slowest = std::max(slowest, 1 / sampler.probability(k));
            Rq = std::max(Rq, m_ * norms_[static_cast<std::size_t>(k)] / (n_ * sampler.probability(k)));
        }
        StepSizes sizes = theorem1_steps(n_, m_, R_, gamma_, lambda_, options_.step_scale);
        if (sampler.is_weighted()) {
            sizes = m_ == 1 ? theorem2_steps(n_, alpha_, Rbar_, gamma_, lambda_, options_.step_scale)
                            : weighted_batch_steps(n_, m_, Rq, slowest, gamma_, lambda_, options_.step_scale);
        }
        const double delta = options_.perturbation.value_or(0);
        const double delta_x = problem_.is_strongly_convex() ? 0 : delta;
        const double delta_y = problem_.loss().gamma() > 0 ? 0 : delta;
        if (problem_.loss().gamma() == 0 || !problem_.is_strongly_convex()) {
            sizes.theta = theta_for(slowest, n_, m_, sizes.tau, sizes.sigma, gamma_,
                                    problem_.is_strongly_convex() ? lambda_ : delta_x);
        }
        return {options_.tau.value_or(sizes.tau), options_.sigma.value_or(sizes.sigma),
                options_.theta.value_or(sizes.theta), delta_x, delta_y};
    }

    const Problem &problem_;
    const Spdc options_;
    const std::uint64_t seed_;
    double n_, m_;
    std::vector<double> norms_;
    double column_ = 0, start_intercept_ = 0;
    double R_ = 0, Rbar_ = 0, gamma_ = 0, lambda_ = 0, alpha_ = 0;
};

/// The largest difference, over the largest entry.
double relative_difference(const std::vector<double> &a, const std::vector<double> &b) {
    double difference = 0, size = 1e-6; // a zero vector is compared to that
    for (std::size_t j = 0; j < a.size(); ++j) {
        difference = std::max(difference, std::fabs(a[j] - b[j]));
        size = std::max(size, std::fabs(b[j]));
    }
    return a.size() == b.size() && std::isfinite(size) ? difference / size : infinity;
}

/// The method against its twin: looked at on the way, which makes it bring every coordinate up to date, and undisturbed.
void expect_equals_twin(const Problem &problem, const Spdc &options, int iterations = 300, double tolerance = 1e-10) {
    const std::uint64_t seed = 17;
    const Twin twin(problem, options, seed);
    SpdcMethod watched(problem, options, context_of(seed)), undisturbed(problem, options, context_of(seed));
    int done = 0;
    for (const int until : {1, 2, 3, 11, iterations}) {
        advance(watched, problem, options, until - done);
        done = until;
        const Point expected = twin.run(until), found = point_of(watched);
        EXPECT_LE(relative_difference(found.x, expected.x), tolerance) << "x after " << until << " iterations";
        EXPECT_LE(relative_difference(found.y, expected.y), tolerance) << "y after " << until << " iterations";
    }
    advance(undisturbed, problem, options, iterations);
    const Point expected = twin.run(iterations), found = point_of(undisturbed);
    EXPECT_LE(relative_difference(found.x, expected.x), tolerance) << "undisturbed";
    EXPECT_LE(relative_difference(found.y, expected.y), tolerance) << "undisturbed";
    EXPECT_NEAR(undisturbed.passes(),
                iterations * static_cast<double>(options.batch_size) / static_cast<double>(problem.rows()), 1e-9);
}

struct Penalty {
    std::string name;
    AnyRegularizer g;
    std::vector<double> factors = {};
    std::optional<double> perturbation = {};
};

std::vector<Penalty> penalties() {
    const std::vector<double> factors{1, 0.5, 2, 0, 1, 3, 0.25, 1, 1, 0};
    return {{"l2", L2{0.01}},
            {"small l2", L2{1e-8}},
            {"elastic net", ElasticNet{0.03, 0.01}},
            {"elastic net with small l2", ElasticNet{0.01, 1e-8}},
            {"l1", ElasticNet{0.03, 0}, {}, 0.02},
            {"box", Box{0, 0.01, {-0.05, 0.2}}},
            {"box with l1", Box{0.01, 0.02, {-0.3, 0.1}}},
            {"box alone", Box{0, 0, {-0.2, 0.2}}, {}, 0.05},
            {"non-negative", Box{0.01, 0.01, {0, infinity}}},
            {"none", L2{0}, {}, 0.1},
            {"l2 with factors", L2{0.01}, factors},
            {"elastic net with factors", ElasticNet{0.02, 0.01}, factors},
            {"l1 with factors", ElasticNet{0.02, 0}, factors, 0.05},
            {"box with factors", Box{0.01, 0.01, {-0.1, 0.3}}, factors, 0.03}};
}

template <std::size_t... I> std::vector<AnyLoss> all_losses(std::index_sequence<I...>) {
    return {AnyLoss(std::variant_alternative_t<I, AnyLoss::Variant>{})...};
}
std::vector<AnyLoss> all_losses() {
    return all_losses(std::make_index_sequence<std::variant_size_v<AnyLoss::Variant>>{});
}

void expect_twins_of_every_regularizer_and_loss(std::int64_t m, int iterations) {
    for (const AnyLoss &loss : all_losses()) {
        const Dataset data = tiny_dataset({.task = loss.task(), .density = 0.2});
        for (const Penalty &penalty : penalties()) {
            SCOPED_TRACE(std::string(loss.name()) + ", " + penalty.name);
            Spdc options = spdc_of(m);
            options.perturbation = penalty.perturbation;
            if (loss.gamma() == 0 && !penalty.perturbation) options.perturbation = 0.1;
            ProblemOptions factors;
            factors.penalty_factors = penalty.factors;
            expect_equals_twin(Problem(data, loss, penalty.g, factors), options, iterations);
        }
    }
}

TEST(SpdcIterates, OfOneRowEqualTheEagerOnesForEveryRegularizerAndLoss) {
    expect_twins_of_every_regularizer_and_loss(1, 300);
}

TEST(SpdcIterates, OfThreeRowsEqualTheEagerOnesForEveryRegularizerAndLoss) {
    expect_twins_of_every_regularizer_and_loss(3, 100);
}

TEST(SpdcIterates, EqualTheEagerOnesForEveryStorageSamplingBatchWeightAndIntercept) {
    for (const AnyRegularizer g : {AnyRegularizer(L2{1e-3}), AnyRegularizer(ElasticNet{0.02, 1e-3})}) {
        for (const Storage storage : all_storages) {
            for (const bool weighted : {false, true}) {
                const Dataset data = tiny_dataset({.density = 0.3, .weighted = weighted, .seed = 4}, storage);
                for (const Intercept intercept : {Intercept::none, Intercept::free, Intercept::penalized}) {
                    const Problem problem(data, SmoothedHinge{}, g, with_intercept(intercept));
                    for (const Sampling sampling : all_samplings) {
                        for (const std::int64_t m : {1, 2, 7, 24}) {
                            SCOPED_TRACE(std::string(g.name()) + ", storage " +
                                         std::to_string(static_cast<int>(storage)) +
                                         (weighted ? ", weighted, " : ", ") + std::string(to_string(intercept)) + ", " +
                                         std::string(to_string(sampling)) + ", m = " + std::to_string(m));
                            expect_equals_twin(problem, spdc_of(m, sampling), 60);
                        }
                    }
                }
            }
        }
    }
}

TEST(SpdcIterates, EqualTheEagerOnesWithTheCallersOwnParameters) {
    const Problem problem(tiny_dataset({.weighted = true}), Logistic{}, L2{0.01}, with_intercept(Intercept::free));
    for (const std::int64_t m : {1, 5}) {
        expect_equals_twin(problem, with_steps(spdc_of(m), 0.3, 0.2, 0.5));
        Spdc options = spdc_of(m);
        options.step_scale = 0.25;
        expect_equals_twin(problem, options);
        options = spdc_of(m, Sampling::weighted);
        options.alpha = 0.8;
        options.theta = 0;
        expect_equals_twin(problem, options);
    }
}

TEST(SpdcIterates, EqualTheEagerOnesOnFeaturesThatAreSeenOnceInThousandsOfIterations) {
    // two rare features wait longer than any table of powers is
    for (const AnyRegularizer g : {AnyRegularizer(L2{1e-8}), AnyRegularizer(ElasticNet{1e-6, 1e-8}),
                                   AnyRegularizer(ElasticNet{1e-3, 1e-3}), AnyRegularizer(Box{0, 1e-8, {-0.5, 0.5}})}) {
        Rows rows(6000, {1, 0, 0});
        rows[11] = {1, 2, 0};
        rows[4321] = {0, -1, 1};
        std::vector<double> targets;
        for (std::size_t i = 0; i < rows.size(); ++i) targets.push_back(i % 3 == 0 ? 1 : -0.5);
        const Problem problem = make_problem(rows, targets, Squared{}, g);
        expect_equals_twin(problem, spdc_of(1, Sampling::permutation), 15000, 1e-9);
    }
}

TEST(SpdcIterates, OfMiniBatchesOfOneAreThoseOfTheSerialMethod) {
    const Problem problem(tiny_dataset({.density = 0.3}), SmoothedHinge{}, ElasticNet{0.01, 0.01});
    const double R = std::sqrt([&] {
        const auto norms = problem.squared_row_norms();
        return *std::max_element(norms.begin(), norms.end());
    }());
    const StepSizes steps = theorem1_steps(24, 1, R, 1, 0.01, 0.5);
    Sampler sampler(Sampling::uniform, 24, 1, 1, {}, 0);
    Batches batches(200, {0});
    for (auto &batch : batches) sampler.draw(batch);
    const Iterates expected = algorithm2(dense_copy(problem), batches, {steps.tau, steps.sigma, steps.theta});
    SpdcMethod method(problem, {}, {});
    advance(method, problem, {}, 200);
    const Point found = point_of(method);
    EXPECT_LE(relative_difference(found.x, expected.x), 1e-12);
    EXPECT_LE(relative_difference(found.y, expected.y), 1e-12);
}

// Rows 1 and 2, targets 1 and -1, phi = (z-b)^2/2, g = x^2/2; tau = 1/2, sigma = 1, theta = 1/2, so that
// y <- (y + z - b)/2 and x <- (x - (direction)/2)/(3/2).
Problem two_rows() { return make_problem({{1}, {2}}, {1, -1}, Squared{}, L2{1}); }

TEST(SpdcIterates, AreThoseWorkedOutByHand) {
    // row 1 first: y1 = -1/2, x = (0 + 1/4)/(3/2) = 1/6, u = -1/4, xbar = 1/4
    //   then row 2: z = 1/2, y2 = 3/4, x = (1/6 - (-1/4 + 3/2)/2)/(3/2) = -11/36
    // row 2 first: y2 = 1/2, x = (0 - 1/2)/(3/2) = -1/3, u = 1/2, xbar = -1/2
    //   then row 1: z = -1/2, y1 = -3/4, x = (-1/3 - (1/2 - 3/4)/2)/(3/2) = -5/36
    const Problem problem = two_rows();
    const Spdc options = with_steps(spdc_of(1, Sampling::permutation), 0.5, 1, 0.5);
    std::set<std::int64_t> firsts;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        std::int64_t first = 0;
        Sampler(Sampling::permutation, 2, 1, seed, {}, 0).draw({&first, 1});
        firsts.insert(first);
        SpdcMethod method(problem, options, context_of(seed));
        method.advance(0.5);
        Point point = point_of(method);
        EXPECT_NEAR(point.x[0], first == 0 ? 1.0 / 6 : -1.0 / 3, 1e-15);
        EXPECT_NEAR(point.y[0], first == 0 ? -0.5 : 0, 1e-15);
        EXPECT_NEAR(point.y[1], first == 0 ? 0 : 0.5, 1e-15);
        method.advance(0.5);
        point = point_of(method);
        EXPECT_NEAR(point.x[0], first == 0 ? -11.0 / 36 : -5.0 / 36, 1e-15);
        EXPECT_NEAR(point.y[0], first == 0 ? -0.5 : -0.75, 1e-15);
        EXPECT_NEAR(point.y[1], first == 0 ? 0.75 : 0.5, 1e-15);
    }
    EXPECT_EQ(firsts.size(), 2U);
}

TEST(SpdcIterates, OfAMiniBatchAreThoseWorkedOutByHand) {
    // both rows: y = (-1/2, 1/2), u = 1/4, x = (0 - (0 + 1/4)/2)/(3/2) = -1/12, xbar = -1/8
    // again: y = (-13/16, 5/8), change of u -1/32, x = (-1/12 - (1/4 - 1/32)/2)/(3/2) = -37/288
    const Problem problem = two_rows();
    SpdcMethod method(problem, with_steps(spdc_of(2), 0.5, 1, 0.5), {});
    method.advance(1);
    EXPECT_NEAR(point_of(method).x[0], -1.0 / 12, 1e-15);
    method.advance(1);
    const Point point = point_of(method);
    EXPECT_NEAR(point.x[0], -37.0 / 288, 1e-15);
    EXPECT_NEAR(point.y[0], -13.0 / 16, 1e-15);
    EXPECT_NEAR(point.y[1], 5.0 / 8, 1e-15);
}

TEST(SpdcThreads, GiveTheSameBitsWhateverTheirNumber) {
    for (const Storage storage : {Storage::csr_float, Storage::dense_double}) {
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            for (const Sampling sampling : all_samplings) {
                const Dataset data =
                    tiny_dataset({.rows = 40, .columns = 23, .density = 0.25, .weighted = true}, storage);
                const Problem problem(data, Logistic{}, ElasticNet{0.003, 0.01}, with_intercept(intercept));
                for (const std::int64_t m : {9, 40}) {
                    const Spdc options = spdc_of(m, sampling);
                    Point one;
                    for (const int threads : {1, 2, 3, 5}) {
                        SpdcMethod method(problem, options, context_of(1, threads));
                        EXPECT_EQ(method.threads(), threads);
                        for (int block = 0; block < 2; ++block) advance(method, problem, options, 8);
                        const Point point = point_of(method);
                        if (threads == 1) one = point;
                        EXPECT_EQ(point.x, one.x) << threads << " threads";
                        EXPECT_EQ(point.y, one.y) << threads << " threads";
                    }
                }
            }
        }
    }
}

TEST(SpdcThreads, AreMoreThanThereAreColumnsOrRowsOfABatch) {
    const Problem problem(tiny_dataset({.rows = 12, .columns = 2, .density = 0.9}), Squared{}, L2{0.1});
    const Spdc options = spdc_of(3);
    Point one;
    for (const int threads : {1, 5}) {
        SpdcMethod method(problem, options, context_of(1, threads));
        advance(method, problem, options, 20);
        const Point point = point_of(method);
        if (threads == 1) one = point;
        EXPECT_EQ(point.x, one.x);
        EXPECT_EQ(point.y, one.y);
    }
}

TEST(SpdcCost, OfAPassIsTheNonZerosWhateverTheDimension) {
    const Dataset narrow = tiny_dataset({.rows = 60, .columns = 50, .density = 0.1});
    Dataset wide = narrow;
    wide.matrix = with_columns(narrow.matrix, 100000);
    for (const std::int64_t m : {1, 6}) {
        const Spdc options = spdc_of(m, Sampling::permutation);
        std::map<std::int64_t, std::vector<double>> starts; // of x, by number of features
        for (const Dataset &data : {narrow, wide}) {
            const Problem problem(data, SmoothedHinge{}, ElasticNet{1e-3, 1e-3}, with_intercept(Intercept::free));
            SpdcMethod method(problem, options, {});
            for (std::int64_t pass = 1; pass <= 5; ++pass) {
                method.advance(1);
                EXPECT_EQ(method.coordinates_touched(), pass * data.nonzeros());
            }
            Point point = point_of(method);
            EXPECT_EQ(method.coordinates_touched(), 5 * data.nonzeros());
            point.x.resize(50);
            starts[data.features()] = point.x;
        }
        EXPECT_EQ(starts[50], starts[100000]); // empty columns change nothing, not even a bit
    }
}

/// n = 2, d = 1, a = (1, 1), lambda = 1e-4
Problem counterexample() { return make_problem({{1}, {1}}, {1, -0.5}, Squared{}, L2{1e-4}); }

/// The average of |x - x*|^2 + |y - y*|^2 over seeds, after so many iterations.
double mean_square_distance(double step_scale, int iterations) {
    const Problem problem = counterexample();
    const double x = 0.25 / (1 + 1e-4); // (1/2)((x-1) + (x+1/2)) + lambda x = 0
    const double y[] = {x - 1, x + 0.5};
    double sum = 0;
    Spdc options;
    options.step_scale = step_scale;
    constexpr int seeds = 400;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        SpdcMethod method(problem, options, context_of(seed));
        method.advance(0.5 * iterations);
        const Point point = point_of(method);
        sum += std::pow(point.x[0] - x, 2) + std::pow(point.y[0] - y[0], 2) + std::pow(point.y[1] - y[1], 2);
    }
    return sum / seeds;
}

TEST(PrintedSteps, DivergeInMeanSquareOnTwoEqualRowsWhereHalfOfThemContract) {
    const double start = mean_square_distance(0.5, 1);
    EXPECT_GT(mean_square_distance(1, 20), 10 * mean_square_distance(1, 1));
    EXPECT_GT(mean_square_distance(1, 40), 100 * mean_square_distance(1, 20)); // 1.342^20 = 360
    EXPECT_LT(mean_square_distance(0.5, 400), 0.2 * start);
    EXPECT_LT(mean_square_distance(0.5, 2000), 1e-5 * start); // theta^2000 = 8e-7
}

TEST(PrintedSteps, EndAsAFailureWhereHalfOfThemConverge) {
    const Stopping stopping{.tolerance = 1e-6, .max_passes = 1500};
    Spdc printed;
    printed.step_scale = 1;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const Result bad = solve(counterexample(), printed, stopping, context_of(seed));
        EXPECT_FALSE(bad.converged());
        EXPECT_GT(bad.worst().relative_gap, 0.1); // the best point is an early one
        EXPECT_TRUE(bad.stop_reason == StopReason::numerical_failure || bad.stop_reason == StopReason::pass_limit)
            << to_string(bad.stop_reason);
        EXPECT_TRUE(solve(counterexample(), Spdc{}, stopping, context_of(seed)).converged());
    }
}

} // namespace
} // namespace spdc::tests
