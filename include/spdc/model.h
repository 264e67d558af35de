// What prediction needs and what vouches for it: a versioned text file (docs/formats.md).
#pragma once

#include "spdc/certificate.h"
#include "spdc/losses.h"
#include "spdc/matrix.h"
#include "spdc/problem.h"
#include "spdc/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace spdc {

struct Model {
    AnyLoss loss;
    std::vector<std::string> labels; // classification: ascending, as the data spell them; two labels make one output
    std::int64_t features = 0;
    int index_base = 1; // of the file it was trained on
    std::int64_t outputs = 1;
    Intercept intercept = Intercept::none;
    std::vector<double> intercepts; // one per output, or empty
    double l1 = 0;
    double l2 = 0;
    Interval bounds;
    std::map<std::string, double> class_weights; // the weight of each label where any was not 1
    bool row_weights = false;                    // whether rows had weights of their own
    bool penalty_factors = false;                // whether features had penalty factors
    std::vector<Certificate> certificates;       // one per output
    std::string solver;
    std::string stop_reason;
    double tolerance = 0;

    // Sparse weights: features (from 0) with any non-zero weight, ascending, and `outputs` values for each.
    std::vector<std::int64_t> index;
    std::vector<double> values;

    bool is_classifier() const noexcept { return loss.task() == Task::classification; }
    /// The certificate with the largest relative gap.
    Certificate worst() const;
};

/// How many features have a weight other than 0.
std::int64_t used_features(const Result &result);

/// The model of a solved problem. `data` and `options` are what the problem was built from.
Model make_model(const Dataset &data, const ProblemOptions &options, const Problem &problem, const Result &result,
                 double tolerance);
/// The same without the weights, which take memory.
Model describe_model(const Dataset &data, const ProblemOptions &options, const Problem &problem, const Result &result,
                     double tolerance);

/// rows x outputs predictions a'x + intercept. Features beyond the model's have no weight; features the data lack are zero.
std::vector<double> scores(const Model &model, const AnyMatrix &matrix);

/// Index into model.labels for every row of scores.
std::vector<std::int64_t> predicted_labels(const Model &model, const std::vector<double> &scores);

/// rows x labels probabilities; logistic only: the logistic function of the score, normalised over the labels when there are
/// more than two. Throws Error(unsupported) for other losses.
std::vector<double> probabilities(const Model &model, const std::vector<double> &scores);

/// Index into model.labels of every row's target, -1 where the model does not know the label.
std::vector<std::int64_t> label_indices(const Model &model, const Dataset &data);

/// Throws Error(bad_file) unless the data fit: a dense matrix (CSV) needs the model's number of columns; a sparse one
/// (LIBSVM) may have fewer, the rest being zero, and more, which have no weight. `name` stands in front of the message.
void check_features(const Model &model, const AnyMatrix &matrix, const std::string &name);

/// The same text for any number of threads, 1 or more.
void save_model(const Model &model, const std::string &path, int threads = 1);
/// Throws Error(bad_file) as "path:line:column: ..." for anything that is not a model this version reads.
Model load_model(const std::string &path);
/// Whether this is a regular file that begins as a model of any version does.
bool is_model_file(const std::string &path);

/// The dual variables, a line per row of the user's data and a number per output.
void save_dual(const Result &result, const Dataset &data, const std::string &path, int threads = 1);

enum class Prediction {
    label,       // the label; in regression the predicted value, for counts the rate e^score
    score,       // a'x + intercept, one per output
    probability, // of each label, logistic only; with two labels that of the larger
};

Prediction parse_prediction(const std::string &name);
/// Throws Error(unsupported) when the model has no such prediction.
void check_prediction(const Model &model, Prediction kind);
/// One line per row.
void write_predictions(const Model &model, const Dataset &data, Prediction kind, const std::string &path);

/// Throws Error(bad_file) unless a file of that name can be written; leaves nothing behind.
void check_writable(const std::string &path);
/// Writes the text as a file that appears whole or not at all; throws Error(bad_file).
void write_text(const std::string &text, const std::string &path);

} // namespace spdc
