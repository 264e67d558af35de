// The problem: the only definition of the objective in the code base.
//
//     P(x) = (1/W) sum_i w_i phi(a_i'x, b_i) + sum_j g_j(x_j),     W = sum_i w_i
//     D(y) = -(1/W) sum_i w_i phi*(y_i, b_i) - sum_j g_j*(-u_j),   u = (1/W) sum_i w_i y_i a_i
//
// P(x) >= D(y) always; the difference, the gap, bounds how far x is from optimal.
#pragma once

#include "spdc/dataset.h"
#include "spdc/losses.h"
#include "spdc/regularizers.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spdc {

enum class Intercept {
    none,      // predictions are a'x
    free,      // a'x + x_d with x_d not penalised
    penalized, // a'x + x_d with x_d penalised like a feature that is always 1 (LIBLINEAR's -B 1)
};

Intercept parse_intercept(const std::string &name);
std::string_view to_string(Intercept intercept);

struct ProblemOptions {
    Intercept intercept = Intercept::none;

    /// Multiplies the penalty of each feature; 0: not penalised. Empty: all 1. The intercept has none.
    std::vector<double> penalty_factors = {};

    /// Classification: multiplies the weight of every row with that label. Keys are labels as the data spell them.
    std::map<std::string, double> class_weights = {};

    /// Classification: weights n / (classes * rows of the class), in row weights; excludes class_weights.
    bool balanced = false;

    /// Rows of weight zero are left out, for which the others are copied. False: they stay where they are and count for nothing, at
    /// the cost of visiting them.
    bool copy = true;

    /// To look through the targets; what comes out is the same for any number.
    int threads = 1;
};

/// Numbers that the copies of a problem share.
class SharedNumbers {
  public:
    SharedNumbers() = default;
    template <class Allocator> explicit SharedNumbers(std::vector<double, Allocator> numbers) {
        const auto owner = std::make_shared<const std::vector<double, Allocator>>(std::move(numbers));
        numbers_ = *owner;
        owner_ = owner;
    }
    operator std::span<const double>() const noexcept { return numbers_; }
    bool empty() const noexcept { return numbers_.empty(); }
    double operator[](std::size_t i) const noexcept { return numbers_[i]; }

  private:
    std::shared_ptr<const void> owner_;
    std::span<const double> numbers_;
};

/// Cheap to copy.
class Problem {
  public:
    /// Throws Error when targets, weights, factors or labels do not fit each other or the loss. A check of the matrix that is pending is
    /// made, unless it is of the values alone, which waits until they are read.
    Problem(const Dataset &data, AnyLoss loss, AnyRegularizer regularizer, ProblemOptions options = {});

    // Shape. Rows of weight zero are not here, unless they may not be copied: kept_rows() maps to the rows of the data.
    std::int64_t rows() const noexcept { return spdc::rows(*matrix_); }
    std::int64_t features() const noexcept { return spdc::cols(*matrix_); }
    std::int64_t nonzeros() const noexcept { return spdc::nonzeros(*matrix_); }
    /// Length of x: the features, then the intercept if there is one.
    std::int64_t dimension() const noexcept { return features() + (has_intercept() ? 1 : 0); }
    bool has_intercept() const noexcept { return intercept_ != Intercept::none; }
    std::int64_t data_rows() const noexcept { return data_rows_; }
    std::span<const std::int64_t> kept_rows() const noexcept { return kept_rows_; }
    /// Whether the rows are in random order already, so that a method that wants them so needs no copy.
    bool is_shuffled() const noexcept { return is_shuffled_; }

    /// One-vs-rest on more than two labels has one output per label; everything below speaks of a problem of one output,
    /// which output(k) gives.
    std::int64_t outputs() const noexcept { return outputs_; }
    /// One of the outputs of another problem: they may be solved side by side, each with what it needs of memory.
    bool is_one_of_several() const noexcept { return is_one_of_several_; }
    Problem output(std::int64_t k) const;

    /// The same problem with another penalty; the penalty factors stay.
    Problem with(const AnyRegularizer &regularizer) const;

    /// The same problem on other data, for rows that stand for several rows of this one: row k of `matrix` has the target of row
    /// like[k] here and stands for importance[k] rows; the columns have these penalty factors (empty: all 1).
    Problem on(AnyMatrix matrix, std::span<const std::int32_t> like, std::vector<double> importance,
               std::vector<double> penalty_factors) const;

    const AnyMatrix &matrix() const noexcept { return *matrix_; }
    const AnyLoss &loss() const noexcept { return loss_; }
    const AnyRegularizer &regularizer() const noexcept { return regularizer_; }
    Intercept intercept() const noexcept { return intercept_; }
    /// b_i as the loss sees them: -1/+1 in classification, where the larger label is +1.
    std::span<const double> targets() const noexcept { return targets_; }
    /// Numbers that are equal where the targets in the data are, whatever the output: labels, or targets() when there is one output.
    std::span<const double> raw_targets() const noexcept { return raw_targets_.empty() ? targets_ : raw_targets_; }
    /// w_i n / W, or empty when all rows weigh the same.
    std::span<const double> importance() const noexcept { return importance_; }
    double importance(std::int64_t i) const noexcept {
        return importance_.empty() ? 1.0 : importance_[static_cast<std::size_t>(i)];
    }
    double total_weight() const noexcept { return total_weight_; }
    std::span<const double> penalty_factors() const noexcept { return factors_; }
    /// g_j, intercept included.
    AnyRegularizer regularizer(std::int64_t j) const noexcept;
    /// Coordinates whose dual is an equation, u_j = 0: neither penalised nor bounded.
    std::span<const std::int64_t> free_coordinates() const noexcept { return free_; }
    /// Whether some coordinate is neither penalised nor bounded on both sides: the dual bound then needs a radius.
    bool needs_radius() const noexcept { return needs_radius_; }
    /// Smallest strong convexity over the coordinates that are penalised at all; 0 when none is strongly convex.
    double strong_convexity() const noexcept { return strong_convexity_; }
    /// Whether all features have the same penalty, which regularizer(0) is; the intercept may have another.
    bool is_uniform() const noexcept { return is_uniform_; }
    /// Whether every g_j is strongly convex.
    bool is_strongly_convex() const noexcept { return all_strongly_convex_; }

    /// The labels in ascending order and how the data spell them; empty in regression.
    std::span<const double> labels() const noexcept { return labels_; }
    std::span<const std::string> label_names() const noexcept { return label_names_; }

    // The matrix's two products, intercept included.
    /// z_i = a_i'x
    void predict(std::span<const double> x, std::span<double> z) const;
    /// u = (1/W) sum_i w_i y_i a_i
    void combine(std::span<const double> y, std::span<double> u) const;

    // On so many threads.
    /// Squared row norms |a_i|^2 of the data, without intercept and weight. They show whether the values are finite: a check of these
    /// that is pending is made with them.
    std::vector<double> squared_row_norms(int threads = 1) const;
    /// Makes a check of the matrix's values that is pending, as solve() does before anything; throws Error when it fails.
    /// `keeps_norms`: by row norms, which are kept for who asks first, until they are forgotten.
    void check_values(bool keeps_norms, int threads = 1) const;
    void forget_norms() const;
    /// The value that all entries of row i have, as in text that is counted by 0 and 1 and then normalised. Empty unless the matrix is
    /// sparse and every row has one. Found when first asked.
    std::span<const double> row_values(int threads = 1) const;

    double primal(std::span<const double> x) const;
    /// -infinity where D is: a u_j outside the domain of g_j*. See Certifier for dual points that are always usable.
    double dual(std::span<const double> y) const;

  private:
    /// Shared by copies of the problem.
    struct RowFacts {
        std::once_flag has_values;
        std::vector<double> values;
        std::mutex norms_mutex;
        std::vector<double> norms; // of check_values()
    };

    Problem() = default;
    void find_labels(const Dataset &data, std::span<const double> targets, Team &team);
    SharedNumbers encoded(std::span<const double> targets, std::int64_t output, Team &team) const;
    void check_counts(const Dataset &data, std::span<const double> targets) const;
    std::vector<double> row_weights(const Dataset &data, const ProblemOptions &options) const;
    void keep_weighted_rows(const Dataset &data, std::vector<double> weights, bool copy);
    std::vector<double> weighted_targets(const Dataset &data) const;
    void set_regularizer(std::vector<double> penalty_factors);
    std::span<const double> find_row_values(int threads) const;

    std::shared_ptr<const AnyMatrix> matrix_;
    std::shared_ptr<RowFacts> row_facts_ = std::make_shared<RowFacts>();
    AnyLoss loss_;
    AnyRegularizer regularizer_;
    Intercept intercept_ = Intercept::none;
    std::int64_t data_rows_ = 0;
    std::int64_t outputs_ = 1;
    bool is_one_of_several_ = false;
    double total_weight_ = 0;
    double strong_convexity_ = 0;
    bool all_strongly_convex_ = false;
    bool needs_radius_ = false;
    bool is_uniform_ = true;
    bool is_shuffled_ = false;
    std::vector<std::int64_t> kept_rows_;
    SharedNumbers raw_targets_; // as in the data, rows of weight zero gone; empty when there is one output
    SharedNumbers targets_;
    SharedNumbers importance_;
    std::vector<double> factors_;
    std::vector<std::int64_t> free_;
    std::vector<double> labels_;
    std::vector<std::string> label_names_;
};

} // namespace spdc
