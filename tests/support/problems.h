// Tiny problems: random data small enough for slow oracles, and problems whose answer is known by hand.
#pragma once

#include "spdc/problem.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace spdc::tests {

/// Under the thread sanitizer all is ten times slower, and only races are looked for: the first steps of a run, on as many threads, show
/// what the later ones would.
#ifdef __SANITIZE_THREAD__
inline constexpr bool only_for_races = true;
#else
inline constexpr bool only_for_races = false;
#endif

using Rows = std::vector<std::vector<double>>;

/// Gives the same numbers with every standard library, which std::normal_distribution does not.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    double uniform(double lower = 0, double upper = 1) {
        return lower + (upper - lower) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
    }
    double log_uniform(double lower, double upper) { return std::exp(uniform(std::log(lower), std::log(upper))); }
    double normal() {
        return std::sqrt(-2 * std::log1p(-uniform())) * std::cos(2 * std::numbers::pi * uniform()); // Box and Muller
    }
    double sign() { return uniform() < 0.5 ? -1.0 : 1.0; }
    std::int64_t index(std::int64_t count) { return static_cast<std::int64_t>(uniform(0, static_cast<double>(count))); }

  private:
    std::mt19937_64 engine_;
};

enum class Storage { csr_float, csr_double, dense_float, dense_double };
inline constexpr Storage all_storages[] = {Storage::csr_float, Storage::csr_double, Storage::dense_float,
                                           Storage::dense_double};

/// Dense rows in plain vectors; as_dataset() stores them as the library likes them.
struct TinyData {
    Rows rows;
    std::vector<double> targets;
    std::vector<double> weights;
};

struct Tiny {
    Task task = Task::classification;
    std::int64_t rows = 24;
    std::int64_t columns = 10;
    double density = 0.4;
    std::int64_t labels = 2; // -1 and +1 when two, 1, 2, ... when more
    bool weighted = false;
    std::uint64_t seed = 1;
};

namespace detail {

/// A multiple of 1/64, so that a float holds it exactly.
inline double coarse(double v) { return std::round(v * 64) / 64; }

inline double tiny_target(const Tiny &tiny, std::int64_t row, double score, Random &random) {
    switch (tiny.task) {
    case Task::classification:
        if (tiny.labels > 2) return static_cast<double>(1 + (row < tiny.labels ? row : random.index(tiny.labels)));
        if (row < 2) return row == 0 ? -1.0 : 1.0; // both labels, whatever the seed
        return (score > 0) == (random.uniform() < 0.85) ? 1.0 : -1.0;
    case Task::regression: return coarse(score + 0.5 * random.normal() + 0.75);
    case Task::counts: return std::floor(std::fabs(score + random.normal()));
    }
    return 0;
}

template <class Value> AnyMatrix csr(const Rows &rows) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<Value> values;
    for (const auto &row : rows) {
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (row[j] == 0) continue;
            columns.push_back(static_cast<std::int32_t>(j));
            values.push_back(static_cast<Value>(row[j]));
        }
        offsets.push_back(static_cast<std::int64_t>(columns.size()));
    }
    return CsrMatrix<Value>::own(static_cast<std::int64_t>(rows.front().size()), std::move(offsets), std::move(columns),
                                 std::move(values));
}

template <class Value> AnyMatrix dense(const Rows &rows) {
    std::vector<Value> values;
    for (const auto &row : rows) {
        for (const double value : row) values.push_back(static_cast<Value>(value));
    }
    return DenseMatrix<Value>::own(static_cast<std::int64_t>(rows.size()),
                                   static_cast<std::int64_t>(rows.front().size()), std::move(values));
}

} // namespace detail

inline AnyMatrix as_matrix(const Rows &rows, Storage storage) {
    switch (storage) {
    case Storage::csr_float: return detail::csr<float>(rows);
    case Storage::csr_double: return detail::csr<double>(rows);
    case Storage::dense_float: return detail::dense<float>(rows);
    case Storage::dense_double: return detail::dense<double>(rows);
    }
    return {};
}

/// Every entry of a row becomes the row's first.
inline TinyData with_one_value_a_row(TinyData data) {
    for (auto &row : data.rows) {
        const auto first = std::find_if(row.begin(), row.end(), [](double v) { return v != 0; });
        const double value = first == row.end() ? 0 : *first;
        for (double &v : row) v = v == 0 ? 0 : value;
    }
    return data;
}

inline Dataset as_dataset(TinyData data, Storage storage = Storage::csr_double) {
    Dataset dataset;
    dataset.matrix = as_matrix(data.rows, storage);
    dataset.targets = std::move(data.targets);
    dataset.weights = std::move(data.weights);
    return dataset;
}

/// Random sparse rows with targets from a hidden model and noise. All numbers are small multiples of 1/64.
inline TinyData tiny_data(const Tiny &tiny = {}) {
    Random random(tiny.seed);
    std::vector<double> hidden;
    for (std::int64_t j = 0; j < tiny.columns; ++j) hidden.push_back(random.normal());
    TinyData data;
    for (std::int64_t i = 0; i < tiny.rows; ++i) {
        std::vector<double> row(static_cast<std::size_t>(tiny.columns), 0.0);
        double score = 0;
        for (std::size_t j = 0; j < row.size(); ++j) {
            if (random.uniform() < tiny.density) row[j] = detail::coarse(random.normal());
            score += row[j] * hidden[j];
        }
        data.targets.push_back(detail::tiny_target(tiny, i, score, random));
        data.rows.push_back(std::move(row));
        if (tiny.weighted) data.weights.push_back(0.25 * static_cast<double>(1 + random.index(12)));
    }
    return data;
}

inline Dataset tiny_dataset(const Tiny &tiny = {}, Storage storage = Storage::csr_double) {
    return as_dataset(tiny_data(tiny), storage);
}

/// A point of R^d, or of the losses' dual domains where those are given.
inline std::vector<double> random_point(std::int64_t size, Random &random, double scale = 1) {
    std::vector<double> x;
    for (std::int64_t j = 0; j < size; ++j) x.push_back(scale * random.normal());
    return x;
}

inline std::vector<double> random_dual(const Problem &problem, Random &random, double scale = 1) {
    std::vector<double> y;
    for (const double b : problem.targets()) y.push_back(problem.loss().domain(b).clip(scale * random.normal()));
    return y;
}

/// A problem with its optimal pair and value, each small enough to check on paper.
struct KnownAnswer {
    std::string name;
    Problem problem;
    std::vector<double> x, y;
    double value;
};

/// The problem of these rows and targets; at least two rows where the loss needs two labels.
inline Problem make_problem(Rows rows, std::vector<double> targets, AnyLoss loss, AnyRegularizer g,
                            ProblemOptions options = {}) {
    return {as_dataset({std::move(rows), std::move(targets), {}}), loss, g, std::move(options)};
}

inline std::vector<KnownAnswer> known_answers() {
    const ProblemOptions free{.intercept = Intercept::free, .penalty_factors = {}, .class_weights = {}};
    const double ln2 = std::numbers::ln2, ln3 = std::log(3.0);
    std::vector<KnownAnswer> answers;
    // (2x-3)^2/2 + x^2/2
    answers.push_back({"ridge", make_problem({{2}}, {3}, Squared{}, L2{1}), {1.2}, {-0.6}, 0.9});
    // (2x-3)^2/4 + (2y-0.2)^2/4 + (|x|+|y|)/2: soft thresholds
    answers.push_back({"lasso",
                       make_problem({{2, 0}, {0, 2}}, {3, 0.2}, Squared{}, ElasticNet{0.5, 0}),
                       {1.25, 0},
                       {-0.5, -0.2},
                       0.6975});
    // (1-x)+ + x^2/4: the corner
    answers.push_back(
        {"svm at its corner", make_problem({{1}, {-1}}, {1, -1}, Hinge{}, L2{0.5}), {1}, {-0.5, 0.5}, 0.25});
    // (1-x)^2/2 + x^2/2
    answers.push_back(
        {"smoothed svm", make_problem({{1}, {-1}}, {1, -1}, SmoothedHinge{}, L2{1}), {0.5}, {-0.5, 0.5}, 0.25});
    // the median
    answers.push_back(
        {"median", make_problem({{0}, {0}, {0}}, {1, 2, 10}, Absolute{}, L2{1}, free), {0, 2}, {1, 0, -1}, 3});
    // the log odds of 3 to 1
    answers.push_back({"log odds",
                       make_problem({{0}, {0}, {0}, {0}}, {1, 1, 1, -1}, Logistic{}, L2{1}, free),
                       {0, ln3},
                       {-0.25, -0.25, -0.25, 0.75},
                       2 * ln2 - 0.75 * ln3});
    // the log of the mean count; four rows, because thirds would not add up to 0
    answers.push_back({"mean count",
                       make_problem({{0}, {0}, {0}, {0}}, {0, 1, 2, 5}, Poisson{}, L2{1}, free),
                       {0, ln2},
                       {2, 1, 0, -3},
                       2 - 2 * ln2});
    // (x+1)^2/2 on x >= 0
    answers.push_back({"non-negative", make_problem({{1}}, {-1}, Squared{}, Box{0, 0, {0, infinity}}), {0}, {1}, 0.5});
    return answers;
}

/// One column a million times the other, its copy, a constant, an empty one; some empty rows; one class is rare.
inline TinyData columns_of_all_sizes() {
    Random random(3);
    TinyData data;
    for (int i = 0; i < 400; ++i) {
        const double a = random.normal(), c = random.normal();
        data.rows.push_back({1e3 * a, 1e-3 * c, 1e3 * a, 1, 0});
        if (i % 50 == 0) data.rows.back() = {0, 0, 0, 0, 0};
        data.targets.push_back(a + c + 0.5 * random.normal() > 1.5 ? 1 : -1);
    }
    return data;
}

} // namespace spdc::tests
