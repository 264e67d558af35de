#include "spdc/problem.h"

#include "huge_pages.h"
#include "kernels.h"
#include "parallel.h"
#include "products.h"
#include "sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

namespace spdc {

namespace {

constexpr std::int64_t most_labels = 1000; // beyond this the targets are measurements, not labels

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::size_t block = 256, lanes = 4; // a block is whole lanes

/// Whether all of a block are one of two numbers. Counts in double, so that GCC 12 keeps to vectors.
bool are_among(const double *values, double a, double b) {
    std::array<double, lanes> others{};
    for (std::size_t i = 0; i < block; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const double value = values[i + lane];
            others[lane] += (value != a) & (value != b) ? 1.0 : 0.0;
        }
    }
    return std::all_of(others.begin(), others.end(), [](double count) { return count == 0; });
}

/// Different values in ascending order, most_labels + 1 at most.
struct Labels {
    std::vector<double> found;
    void add(double value) {
        const auto place = std::lower_bound(found.begin(), found.end(), value);
        if ((place == found.end() || *place != value) && !are_too_many()) found.insert(place, value);
    }
    void add(const Labels &other) {
        for (const double value : other.found) add(value);
    }
    bool are_too_many() const { return static_cast<std::int64_t>(found.size()) > most_labels; }
};

/// The different values in ascending order. As a rule they are few, and most often two: a hundredth of the time of sorting all.
std::vector<double> distinct(std::span<const double> values, Team &team) {
    Labels labels = sum_chunks<Labels>(team, values.size(), static_cast<double>(values.size()),
                                       [&](std::size_t begin, std::size_t end, Labels &own) {
                                           while (begin < end) {
                                               const auto &found = own.found;
                                               if (!found.empty() && begin % block == 0 && begin + block <= end &&
                                                   are_among(&values[begin], found.front(), found.back())) {
                                                   begin += block;
                                               } else {
                                                   own.add(values[begin++]);
                                               }
                                           }
                                       });
    if (!labels.are_too_many()) return std::move(labels.found);
    std::vector<double> all(values.begin(), values.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

} // namespace

Intercept parse_intercept(const std::string &name) {
    for (const Intercept kind : {Intercept::none, Intercept::free, Intercept::penalized}) {
        if (name == to_string(kind)) return kind;
    }
    fail_unknown("intercept", name, {"none", "free", "penalized"});
}

std::string_view to_string(Intercept intercept) {
    switch (intercept) {
    case Intercept::none: return "none";
    case Intercept::free: return "free";
    case Intercept::penalized: return "penalized";
    }
    return "none";
}

Problem::Problem(const Dataset &data, AnyLoss loss, AnyRegularizer regularizer, ProblemOptions options)
    : loss_(loss), regularizer_(regularizer), intercept_(options.intercept), data_rows_(data.rows()),
      is_shuffled_(!data.row_order.empty()) {
    Team team(options.threads);
    if (!pending_values(data.matrix)) check(data.matrix);
    check_sides(data, "data", team);
    std::visit([](const auto &l) { check_fields(l); }, loss_.variant());
    if (loss_.task() == Task::classification) {
        find_labels(data, data.targets, team);
    } else if (options.balanced || !options.class_weights.empty()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("class weights need a classification loss, not {}", loss_.name()));
    }
    keep_weighted_rows(data, row_weights(data, options), options.copy);
    const std::vector<double> kept_targets = weighted_targets(data);
    const std::span<const double> targets = kept_targets.empty() ? data.targets : kept_targets;
    if (loss_.task() == Task::classification && !kept_targets.empty()) find_labels(data, targets, team);
    if (loss_.task() != Task::classification && !data.label_names.empty()) {
        fail(ErrorKind::bad_file, fmt::format("the targets are text ('{}', ...), but {} needs numbers",
                                              data.label_names.front(), loss_.name()));
    }
    if (loss_.task() == Task::counts) check_counts(data, targets);
    targets_ = encoded(targets, 0, team);
    if (outputs_ > 1) raw_targets_ = SharedNumbers(std::vector<double>(targets.begin(), targets.end()));
    set_regularizer(std::move(options.penalty_factors));
}

void Problem::find_labels(const Dataset &data, std::span<const double> targets, Team &team) {
    labels_ = distinct(targets, team);
    label_names_.clear();
    for (const double label : labels_) {
        label_names_.push_back(data.label_names.empty() ? fmt::format("{}", label)
                                                        : data.label_names[static_cast<std::size_t>(label)]);
    }
    const auto count = static_cast<std::int64_t>(labels_.size());
    if (count < 2) {
        fail(ErrorKind::bad_file,
             fmt::format("all rows have the label {}, but {} needs at least two labels; a regression loss takes any "
                         "targets",
                         label_names_.empty() ? "?" : label_names_.front(), loss_.name()));
    }
    if (count > most_labels) {
        fail(ErrorKind::bad_file,
             fmt::format("{} different labels for {}: these look like regression targets; choose a regression loss "
                         "such as squared, or at most {} labels",
                         count, loss_.name(), most_labels));
    }
    outputs_ = count == 2 ? 1 : count;
}

SharedNumbers Problem::encoded(std::span<const double> targets, std::int64_t output, Team &team) const {
    std::vector<double, UnfilledHugePageAllocator<double>> codes;
    make_numbers(team, codes, targets.size());
    const bool is_classification = loss_.task() == Task::classification;
    const double positive = is_classification ? labels_[outputs_ == 1 ? labels_.size() - 1 : at(output)] : 0;
    constexpr std::size_t chunk = 4096;
    team.for_each(static_cast<std::int64_t>((codes.size() + chunk - 1) / chunk), static_cast<double>(codes.size()),
                  [&](std::int64_t k) {
                      const auto from =
                          targets.subspan(at(k) * chunk).first(std::min(chunk, codes.size() - at(k) * chunk));
                      double *const to = codes.data() + at(k) * chunk;
                      if (is_classification) {
                          for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] == positive ? 1.0 : -1.0;
                      } else {
                          std::copy(from.begin(), from.end(), to);
                      }
                  });
    return SharedNumbers(std::move(codes));
}

void Problem::check_counts(const Dataset &data, std::span<const double> targets) const {
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (targets[i] >= 0) continue;
        const std::size_t row = kept_rows_.empty() ? i : at(kept_rows_[i]);
        fail(ErrorKind::bad_file,
             fmt::format("row {}: target {} is negative, but {} needs counts: targets of at least 0",
                         data.row_order.empty() ? row + 1 : at(data.row_order[row]) + 1, targets[i], loss_.name()));
    }
}

std::vector<double> Problem::row_weights(const Dataset &data, const ProblemOptions &options) const {
    std::vector<double> weights = data.weights;
    if (!options.balanced && options.class_weights.empty()) return weights;
    if (options.balanced && !options.class_weights.empty()) {
        fail(ErrorKind::invalid_argument, "class weights: either balanced or label=weight, not both");
    }
    if (weights.empty()) weights.assign(data.targets.size(), 1.0);
    const auto label_of = [&](double target) {
        return static_cast<std::size_t>(std::lower_bound(labels_.begin(), labels_.end(), target) - labels_.begin());
    };
    std::vector<double> factor(labels_.size(), 1.0);
    for (const auto &[label, weight] : options.class_weights) {
        const auto found = std::find(label_names_.begin(), label_names_.end(), label);
        if (found == label_names_.end()) fail_unknown("label in class weights", label, label_names_);
        if (!(weight >= 0) || !std::isfinite(weight)) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("class weight {}={}: weights must be finite and at least 0", label, weight));
        }
        factor[static_cast<std::size_t>(found - label_names_.begin())] = weight;
    }
    if (options.balanced) {
        std::vector<double> mass(labels_.size(), 0.0);
        for (std::size_t i = 0; i < weights.size(); ++i) mass[label_of(data.targets[i])] += weights[i];
        const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
        for (std::size_t c = 0; c < mass.size(); ++c) {
            if (mass[c] > 0) factor[c] = total / (static_cast<double>(mass.size()) * mass[c]);
        }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= factor[label_of(data.targets[i])];
    return weights;
}

void Problem::keep_weighted_rows(const Dataset &data, std::vector<double> weights, bool copy) {
    if (!weights.empty() && std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; })) {
        fail(ErrorKind::bad_file, "all row weights are zero: nothing to fit");
    }
    if (copy && std::find(weights.begin(), weights.end(), 0.0) != weights.end()) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
            if (weights[i] > 0) kept_rows_.push_back(static_cast<std::int64_t>(i));
        }
        matrix_ = std::make_shared<AnyMatrix>(select_rows(data.matrix, kept_rows_));
        for (std::size_t k = 0; k < kept_rows_.size(); ++k) weights[k] = weights[at(kept_rows_[k])];
        weights.resize(kept_rows_.size());
    } else {
        matrix_ = std::make_shared<AnyMatrix>(data.matrix);
    }
    total_weight_ = static_cast<double>(rows());
    if (weights.empty()) return;
    Sum total;
    for (const double weight : weights) total.add(weight);
    total_weight_ = total.value();
    if (!std::isfinite(total_weight_)) fail(ErrorKind::bad_file, "the row weights add up to infinity");
    const double scale = static_cast<double>(rows()) / total_weight_;
    const bool equal = std::all_of(weights.begin(), weights.end(), [&](double w) { return w == weights.front(); });
    if (equal) return;
    for (double &weight : weights) weight *= scale;
    importance_ = SharedNumbers(std::move(weights));
}

/// Rows of weight zero are as if absent: their targets are gone, or where the rows are here, one that a row with weight has. Empty
/// when there are no such rows.
std::vector<double> Problem::weighted_targets(const Dataset &data) const {
    std::vector<double> targets;
    for (const std::int64_t i : kept_rows_) targets.push_back(data.targets[at(i)]);
    const std::span<const double> weights = importance_;
    if (std::find(weights.begin(), weights.end(), 0.0) == weights.end()) return targets;
    const auto first = std::find_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
    targets.assign(weights.size(), data.targets[at(first - weights.begin())]);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] > 0) targets[i] = data.targets[i];
    }
    return targets;
}

void Problem::set_regularizer(std::vector<double> penalty_factors) {
    if (!penalty_factors.empty() && static_cast<std::int64_t>(penalty_factors.size()) != features()) {
        fail(ErrorKind::bad_file, fmt::format("{} penalty factors for {} features: need one per feature",
                                              penalty_factors.size(), features()));
    }
    for (std::size_t j = 0; j < penalty_factors.size(); ++j) {
        if (!(penalty_factors[j] >= 0) || !std::isfinite(penalty_factors[j])) {
            fail(ErrorKind::bad_file,
                 fmt::format("penalty factor {} of feature {}: factors must be finite and at least 0",
                             penalty_factors[j], j + 1));
        }
    }
    if (std::any_of(penalty_factors.begin(), penalty_factors.end(), [](double f) { return f != 1; })) {
        factors_ = std::move(penalty_factors);
    }
    is_uniform_ = std::all_of(factors_.begin(), factors_.end(), [&](double f) { return f == factors_.front(); });
    free_.clear();
    needs_radius_ = false;
    strong_convexity_ = infinity;
    all_strongly_convex_ = true;
    // without factors all features are alike: look at one
    const std::int64_t distinct = factors_.empty() ? std::min<std::int64_t>(features(), 1) : features();
    for (std::int64_t c = 0; c < distinct + (has_intercept() ? 1 : 0); ++c) {
        const std::int64_t j = c < distinct ? c : features();
        const AnyRegularizer g = regularizer(j);
        const Interval domain = g.conjugate_domain();
        const bool is_equation = domain.lower == 0 && domain.upper == 0;
        if (g.strong_convexity() > 0) {
            strong_convexity_ = std::min(strong_convexity_, g.strong_convexity());
        } else {
            all_strongly_convex_ = false;
        }
        needs_radius_ = needs_radius_ || domain.lower == 0 || domain.upper == 0;
        if (!is_equation) continue;
        const std::int64_t end = factors_.empty() && c < distinct ? features() : j + 1;
        for (std::int64_t k = j; k < end; ++k) free_.push_back(k);
    }
    if (strong_convexity_ == infinity) strong_convexity_ = 0;
}

Problem Problem::output(std::int64_t k) const {
    if (outputs_ == 1) return *this;
    Problem single = *this;
    Team alone(1);
    single.targets_ = encoded(raw_targets_, k, alone);
    single.raw_targets_ = {};
    single.outputs_ = 1;
    single.is_one_of_several_ = true;
    return single;
}

Problem Problem::with(const AnyRegularizer &regularizer) const {
    Problem other = *this;
    other.regularizer_ = regularizer;
    other.set_regularizer(factors_);
    return other;
}

Problem Problem::on(AnyMatrix matrix, std::span<const std::int32_t> like, std::vector<double> importance,
                    std::vector<double> penalty_factors) const {
    Problem other = *this;
    other.matrix_ = std::make_shared<AnyMatrix>(std::move(matrix));
    other.row_facts_ = std::make_shared<RowFacts>();
    other.data_rows_ = other.rows();
    other.kept_rows_.clear();
    const auto chosen = [&](std::span<const double> numbers) {
        std::vector<double> some(like.size());
        for (std::size_t k = 0; k < like.size(); ++k) some[k] = numbers[at(like[k])];
        return SharedNumbers(std::move(some));
    };
    if (!raw_targets_.empty()) other.raw_targets_ = chosen(raw_targets_);
    other.targets_ = chosen(targets_);
    const bool equal = std::all_of(importance.begin(), importance.end(), [&](double w) { return w == importance[0]; });
    for (double &w : importance) w *= static_cast<double>(like.size()) / static_cast<double>(rows());
    other.importance_ = equal ? SharedNumbers() : SharedNumbers(std::move(importance));
    other.factors_.clear();
    other.set_regularizer(std::move(penalty_factors));
    return other;
}

AnyRegularizer Problem::regularizer(std::int64_t j) const noexcept {
    if (j == features()) return intercept_ == Intercept::free ? AnyRegularizer(L2{0}) : regularizer_;
    return factors_.empty() ? regularizer_ : regularizer_.scaled(factors_[at(j)]);
}

void Problem::predict(std::span<const double> x, std::span<double> z) const {
    check(*matrix_); // also where x = 0 reads nothing
    Team alone(1);
    spdc::predict(*this, x, z, alone);
}

void Problem::combine(std::span<const double> y, std::span<double> u) const {
    Team alone(1);
    spdc::combine(*this, y, u, alone);
}

namespace {

/// The row's one value, 0 for a row without entries; nothing where two differ or it is not finite.
template <class Value, class Index> std::optional<double> only_value(const CsrRow<Value, Index> &row) noexcept {
    if (row.count == 0) return 0.0;
    const Value first = row.values[0];
    int others = 0; // counted to the end, so that the loop needs no branches
    for (std::int64_t p = 1; p < row.count; ++p) others |= row.values[p] != first ? 1 : 0;
    return others || !std::isfinite(first) ? std::nullopt : std::optional<double>(first);
}

/// visit(i) for the rows, on a team if there is enough `work`, in entries; a part of the rows ends early where it says false.
template <class Visit> void each_row(std::int64_t rows, std::int64_t work, int threads, Visit &&visit) {
    constexpr std::int64_t chunk = 512;
    Team team(threads);
    team.for_each((rows + chunk - 1) / chunk, static_cast<double>(work), [&](std::int64_t k) {
        for (std::int64_t i = k * chunk; i < std::min((k + 1) * chunk, rows); ++i) {
            if (!visit(i)) return;
        }
    });
}

} // namespace

std::span<const double> Problem::row_values(int threads) const {
    check(*matrix_);
    return find_row_values(threads);
}

std::span<const double> Problem::find_row_values(int threads) const {
    std::vector<double> &values = row_facts_->values;
    std::call_once(row_facts_->has_values, [&] {
        std::visit(
            [&]<class Matrix>(const Matrix &matrix) {
                if constexpr (requires { matrix.offsets(); }) {
                    if (matrix.rows() == 0 || !only_value(matrix.row(0))) return; // tells in most data
                    values.resize(at(rows()));
                    std::atomic<bool> all = true;
                    each_row(rows(), matrix.nonzeros(), threads, [&](std::int64_t i) {
                        const auto value = only_value(matrix.row(i));
                        values[at(i)] = value.value_or(0);
                        if (!value) all = false;
                        return value.has_value();
                    });
                    if (!all) values = {};
                }
            },
            *matrix_);
    });
    return values;
}

void Problem::check_values(bool keeps_norms, int threads) const {
    if (!pending_values(*matrix_)) return;
    if (!keeps_norms) return check(*matrix_);
    std::vector<double> norms = squared_row_norms(threads);
    const std::lock_guard lock(row_facts_->norms_mutex);
    row_facts_->norms = std::move(norms);
}

void Problem::forget_norms() const {
    const std::lock_guard lock(row_facts_->norms_mutex);
    row_facts_->norms = {};
}

std::vector<double> Problem::squared_row_norms(int threads) const {
    {
        const std::lock_guard lock(row_facts_->norms_mutex);
        if (!row_facts_->norms.empty()) return std::exchange(row_facts_->norms, {});
    }
    std::vector<double> norms(at(rows()));
    const auto values = find_row_values(threads);
    std::visit(
        [&](const auto &matrix) {
            each_row(rows(), values.empty() ? matrix.nonzeros() : rows(), threads, [&](std::int64_t i) {
                const auto row = matrix.row(i);
                norms[at(i)] = values.empty() ? squared_norm(row)
                                              : static_cast<double>(row.size()) * values[at(i)] * values[at(i)];
                return true;
            });
        },
        *matrix_);
    if (DeferredCheck *const pending = pending_values(*matrix_)) {
        // The square of a value beyond 1e154 is infinite, too: then the check tells.
        const bool are_finite = std::all_of(norms.begin(), norms.end(), [](double v) { return std::isfinite(v); });
        if (are_finite) {
            pending->pass();
        } else {
            pending->run();
        }
    }
    return norms;
}

double Problem::primal(std::span<const double> x) const {
    std::vector<double> z(at(rows()));
    predict(x, z);
    Sum losses, penalty;
    for (std::int64_t i = 0; i < rows(); ++i) losses.add(importance(i) * loss_.value(z[at(i)], targets_[at(i)]));
    for (std::int64_t j = 0; j < dimension(); ++j) penalty.add(regularizer(j).value(x[at(j)]));
    return losses.value() / static_cast<double>(rows()) + penalty.value();
}

double Problem::dual(std::span<const double> y) const {
    std::vector<double> u(at(dimension()));
    combine(y, u);
    Sum losses, penalty;
    for (std::int64_t i = 0; i < rows(); ++i) losses.add(importance(i) * loss_.conjugate(y[at(i)], targets_[at(i)]));
    for (std::int64_t j = 0; j < dimension(); ++j) penalty.add(regularizer(j).conjugate(-u[at(j)]));
    return -losses.value() / static_cast<double>(rows()) - penalty.value();
}

} // namespace spdc
