#include "spdc/model.h"

#include "huge_pages.h"
#include "output_file.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <unordered_map>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double sigmoid(double t) { return t >= 0 ? 1 / (1 + std::exp(-t)) : std::exp(t) / (1 + std::exp(t)); }

// The factor of each label: what the problem made of a row's own weight. Labels of factor 0 are not in the problem.
std::map<std::string, double> class_weights(const Dataset &data, const ProblemOptions &options,
                                            const Problem &problem) {
    std::map<std::string, double> weights = options.class_weights;
    if (!options.balanced && weights.empty()) return {};
    const double scale = problem.total_weight() / static_cast<double>(problem.rows());
    const auto labels = problem.labels();
    std::vector<bool> found(labels.size(), false);
    for (std::int64_t k = 0; k < problem.rows(); ++k) {
        const std::size_t row = at(problem.kept_rows().empty() ? k : problem.kept_rows()[at(k)]);
        const auto label = static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), data.targets[row]) -
                                                    labels.begin());
        if (found[label]) continue;
        found[label] = true;
        const double own = data.weights.empty() ? 1.0 : data.weights[row];
        const std::string &name = problem.label_names()[label];
        if (options.balanced) weights[name] = problem.importance(k) * scale / own;
        weights.try_emplace(name, 1.0);
    }
    return weights;
}

/// visit(j, weights) for the features that have a weight other than 0.
template <class Visit> void each_used_feature(const Result &result, Visit &&visit) {
    const auto outputs = at(result.outputs);
    for (std::int64_t j = 0; j < result.features; ++j) {
        const std::span<const double> weights(result.weights.data() + at(j) * outputs, outputs);
        if (std::any_of(weights.begin(), weights.end(), [](double v) { return v != 0; })) visit(j, weights);
    }
}

// Finds the weights of a feature: a table where one is small, else a search, since a file may state any number of features.
class WeightIndex {
  public:
    WeightIndex(const Model &model, std::int64_t columns) : index_(model.index) {
        constexpr std::int64_t largest_table = std::int64_t{1} << 24;
        const std::int64_t used = index_.empty() ? 0 : std::min(index_.back() + 1, columns);
        if (used > largest_table) return;
        table_.assign(at(used), -1);
        for (std::size_t k = 0; k < index_.size() && index_[k] < used; ++k) {
            table_[at(index_[k])] = static_cast<std::int32_t>(k);
        }
        has_table_ = true;
    }

    /// Position in the model's index, or -1.
    std::int64_t find(std::int64_t feature) const {
        if (has_table_) return feature < static_cast<std::int64_t>(table_.size()) ? table_[at(feature)] : -1;
        const auto found = std::lower_bound(index_.begin(), index_.end(), feature);
        return found != index_.end() && *found == feature ? found - index_.begin() : -1;
    }

  private:
    const std::vector<std::int64_t> &index_;
    std::vector<std::int32_t> table_;
    bool has_table_ = false;
};

/// A line for every `columns` of the values.
void write_rows(const std::vector<double> &values, std::int64_t columns, OutputFile &out, int threads = 1) {
    const std::size_t width = at(columns);
    const auto put = [&](std::size_t row, char *place, NumberText &numbers) {
        for (std::size_t k = row * width; k < (row + 1) * width; ++k) {
            place = numbers.put(place, values[k]);
            *place++ = k + 1 < (row + 1) * width ? ' ' : '\n';
        }
        return place;
    };
    write_lines(out, values.size() / width, width * (NumberText::longest + 1), threads, put);
}

} // namespace

Certificate Model::worst() const {
    Result whole;
    whole.certificates = certificates;
    return whole.worst();
}

std::int64_t used_features(const Result &result) {
    std::int64_t count = 0;
    each_used_feature(result, [&](std::int64_t, std::span<const double>) { ++count; });
    return count;
}

Model describe_model(const Dataset &data, const ProblemOptions &options, const Problem &problem, const Result &result,
                     double tolerance) {
    Model model;
    model.loss = problem.loss();
    model.labels.assign(problem.label_names().begin(), problem.label_names().end());
    model.features = result.features;
    model.index_base = data.index_base;
    model.outputs = result.outputs;
    model.intercept = problem.intercept();
    model.intercepts = result.intercepts;
    std::visit(
        [&](const auto &g) {
            if constexpr (requires { g.l1; }) model.l1 = g.l1;
            if constexpr (requires { g.l2; }) model.l2 = g.l2;
            if constexpr (requires { g.bounds; }) model.bounds = g.bounds;
        },
        problem.regularizer().variant());
    model.class_weights = class_weights(data, options, problem);
    model.row_weights = !data.weights.empty();
    model.penalty_factors = !options.penalty_factors.empty();
    model.certificates = result.certificates;
    model.solver = result.solver;
    model.stop_reason = to_string(result.stop_reason);
    model.tolerance = tolerance;
    return model;
}

Model make_model(const Dataset &data, const ProblemOptions &options, const Problem &problem, const Result &result,
                 double tolerance) {
    Model model = describe_model(data, options, problem, result, tolerance);
    const std::size_t count = at(used_features(result));
    reserve_huge_pages(model.index, count);
    reserve_huge_pages(model.values, count * at(result.outputs));
    each_used_feature(result, [&](std::int64_t j, std::span<const double> weights) {
        model.index.push_back(j);
        model.values.insert(model.values.end(), weights.begin(), weights.end());
    });
    return model;
}

std::vector<double> scores(const Model &model, const AnyMatrix &matrix) {
    check(matrix);
    const WeightIndex weights(model, cols(matrix));
    std::vector<double> result(at(rows(matrix)) * at(model.outputs), 0.0);
    std::visit(
        [&](const auto &rows_of) {
            for (std::int64_t i = 0; i < rows_of.rows(); ++i) {
                double *const out = result.data() + i * model.outputs;
                const auto row = rows_of.row(i);
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    const std::int64_t k = weights.find(row.column(p));
                    if (k < 0) continue;
                    const double *const values = model.values.data() + k * model.outputs;
                    for (std::int64_t output = 0; output < model.outputs; ++output) {
                        out[output] += row.value(p) * values[output];
                    }
                }
                if (model.intercepts.empty()) continue;
                for (std::int64_t output = 0; output < model.outputs; ++output) {
                    out[output] += model.intercepts[at(output)];
                }
            }
        },
        matrix);
    return result;
}

std::vector<std::int64_t> predicted_labels(const Model &model, const std::vector<double> &scores) {
    const std::size_t outputs = at(model.outputs);
    std::vector<std::int64_t> labels(scores.size() / outputs);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto begin = scores.begin() + static_cast<std::ptrdiff_t>(i * outputs);
        labels[i] = outputs == 1 ? (*begin > 0 ? 1 : 0)
                                 : std::max_element(begin, begin + static_cast<std::ptrdiff_t>(outputs)) - begin;
    }
    return labels;
}

std::vector<double> probabilities(const Model &model, const std::vector<double> &scores) {
    check_prediction(model, Prediction::probability);
    std::vector<double> result;
    if (model.outputs == 1) {
        result.reserve(2 * scores.size());
        for (const double score : scores) {
            result.push_back(sigmoid(-score));
            result.push_back(sigmoid(score));
        }
        return result;
    }
    result.resize(scores.size());
    for (std::size_t begin = 0; begin < scores.size(); begin += at(model.outputs)) {
        double total = 0;
        for (std::size_t k = begin; k < begin + at(model.outputs); ++k) total += result[k] = sigmoid(scores[k]);
        for (std::size_t k = begin; k < begin + at(model.outputs); ++k) {
            result[k] = total > 0 ? result[k] / total : 1 / static_cast<double>(model.outputs);
        }
    }
    return result;
}

std::vector<std::int64_t> label_indices(const Model &model, const Dataset &data) {
    std::unordered_map<double, std::int64_t> known; // by target: few labels, many rows
    std::vector<std::int64_t> indices;
    indices.reserve(data.targets.size());
    for (const double target : data.targets) {
        const auto [entry, is_new] = known.try_emplace(target, -1);
        if (is_new) {
            const std::string name = data.label_names.empty() ? fmt::format("{}", target)
                                                              : data.label_names[static_cast<std::size_t>(target)];
            const auto found = std::find(model.labels.begin(), model.labels.end(), name);
            if (found != model.labels.end()) entry->second = found - model.labels.begin();
        }
        indices.push_back(entry->second);
    }
    return indices;
}

void check_features(const Model &model, const AnyMatrix &matrix, const std::string &name) {
    if (is_sparse(matrix) || cols(matrix) == model.features) return;
    fail(ErrorKind::bad_file,
         fmt::format("{}: {} columns beside the label, but the model has {} features; every row needs "
                     "a label column (any value) and the columns the model was trained on",
                     name, cols(matrix), model.features));
}

void save_dual(const Result &result, const Dataset &data, const std::string &path, int threads) {
    OutputFile out(path);
    write_rows(in_user_order(data, result.dual, result.outputs), result.outputs, out, threads);
    out.commit();
}

Prediction parse_prediction(const std::string &name) {
    if (name == "label") return Prediction::label;
    if (name == "score") return Prediction::score;
    if (name == "probability") return Prediction::probability;
    fail_unknown("output", name, {"label", "score", "probability"});
}

void check_prediction(const Model &model, Prediction kind) {
    if (kind != Prediction::probability || std::holds_alternative<Logistic>(model.loss.variant())) return;
    fail(ErrorKind::unsupported,
         fmt::format("probabilities need a model of the loss logistic, but this one has {}; its "
                     "scores are no probabilities",
                     model.loss.name()));
}

void write_predictions(const Model &model, const Dataset &data, Prediction kind, const std::string &path) {
    check_prediction(model, kind);
    std::vector<double> values = in_user_order(data, scores(model, data.matrix), model.outputs);
    OutputFile out(path);
    if (kind == Prediction::label && model.is_classifier()) {
        for (const std::int64_t label : predicted_labels(model, values)) {
            out.write(model.labels[at(label)]);
            out.write("\n");
        }
        out.commit();
        return;
    }
    if (kind == Prediction::label && model.loss.task() == Task::counts) {
        for (double &value : values) value = std::exp(value);
    } else if (kind == Prediction::probability && model.outputs == 1) {
        for (double &value : values) value = sigmoid(value);
    } else if (kind == Prediction::probability) {
        values = probabilities(model, values);
    }
    write_rows(values, model.outputs, out);
    out.commit();
}

void check_writable(const std::string &path) {
    struct stat status {};
    const bool exists = path != "-" && ::stat(path.c_str(), &status) == 0;
    if (!exists || S_ISREG(status.st_mode)) {
        const OutputFile probe(path); // never committed, so it takes itself away
        return;
    }
    // Opening a pipe here would show its reader an end before the data come.
    const int problem = S_ISDIR(status.st_mode) ? EISDIR : (::access(path.c_str(), W_OK) == 0 ? 0 : errno);
    if (problem == 0) return;
    fail(ErrorKind::bad_file,
         fmt::format("{}: cannot open for writing: {}", path, std::generic_category().message(problem)));
}

void write_text(const std::string &text, const std::string &path) {
    OutputFile out(path);
    out.write(text);
    out.commit();
}

} // namespace spdc
