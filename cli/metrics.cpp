#include "metrics.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spdc::cli {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// -log of the probability of the true label, from the scores so that nothing underflows to infinity.
double log_loss(const double *scores, std::int64_t outputs, std::int64_t label) {
    const auto softplus = [](double t) { return std::max(t, 0.0) + std::log1p(std::exp(-std::fabs(t))); };
    if (outputs == 1) return softplus(label == 1 ? -scores[0] : scores[0]);
    // log(sigmoid(s_label) / sum_k sigmoid(s_k)), shifted by the largest term
    double largest = -infinity;
    for (std::int64_t k = 0; k < outputs; ++k) largest = std::max(largest, -softplus(-scores[k]));
    double sum = 0;
    for (std::int64_t k = 0; k < outputs; ++k) sum += std::exp(-softplus(-scores[k]) - largest);
    return softplus(-scores[label]) + largest + std::log(sum);
}

std::vector<Metric> classification(const Model &model, const Dataset &data) {
    const std::vector<double> predictions = scores(model, data.matrix);
    const std::vector<std::int64_t> predicted = predicted_labels(model, predictions);
    const std::vector<std::int64_t> labels = label_indices(model, data);
    std::vector<double> ranked;
    std::vector<bool> is_positive;
    double right = 0, logs = 0, losses = 0, known = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) continue;
        ++known;
        right += predicted[i] == labels[i] ? 1 : 0;
        const double *const row = predictions.data() + i * at(model.outputs);
        logs += log_loss(row, model.outputs, labels[i]);
        for (std::int64_t k = 0; k < model.outputs; ++k) {
            losses += model.loss.value(row[k], labels[i] == (model.outputs == 1 ? 1 : k) ? 1 : -1);
        }
        ranked.push_back(row[0]);
        is_positive.push_back(labels[i] == 1);
    }
    const auto n = static_cast<double>(labels.size());
    const auto mean = [known](double sum) { return known > 0 ? std::optional(sum / known) : std::nullopt; };
    std::vector<Metric> metrics{{"accuracy", right / n, fmt::format("{:.0f} of {:.0f} rows", right, n)}};
    if (known < n) metrics.push_back({"unknown_labels", n - known, "rows whose label the model does not know: wrong"});
    if (model.outputs == 1) metrics.push_back({"auc", auc(ranked, is_positive), ""});
    if (std::holds_alternative<Logistic>(model.loss.variant())) metrics.push_back({"log_loss", mean(logs), ""});
    metrics.push_back({"mean_loss", mean(losses), fmt::format("{}, the loss trained with", model.loss.name())});
    return metrics;
}

// 2 (b log(b/m) - (b - m)) for the count b and the rate m = e^z
double poisson_deviance(double count, double score) {
    return 2 * ((count > 0 ? count * (std::log(count) - score) : 0.0) - (count - std::exp(score)));
}

std::vector<Metric> regression(const Model &model, const Dataset &data) {
    if (!data.label_names.empty()) {
        fail(ErrorKind::bad_file,
             fmt::format("the targets are text ('{}', ...), but the model predicts numbers", data.label_names.front()));
    }
    const bool counts = model.loss.task() == Task::counts;
    const std::vector<double> predictions = scores(model, data.matrix);
    const auto n = static_cast<double>(data.targets.size());
    const double mean = std::accumulate(data.targets.begin(), data.targets.end(), 0.0) / n;
    double squares = 0, absolutes = 0, spread = 0, losses = 0, deviance = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
        const double b = data.targets[i];
        const double r = (counts ? std::exp(predictions[i]) : predictions[i]) - b;
        squares += r * r;
        absolutes += std::fabs(r);
        spread += (b - mean) * (b - mean);
        losses += model.loss.value(predictions[i], b);
        deviance += counts ? poisson_deviance(b, predictions[i]) : 0;
    }
    std::vector<Metric> metrics{{"rmse", std::sqrt(squares / n), ""},
                                {"mae", absolutes / n, ""},
                                {"r2", spread > 0 ? std::optional(1 - squares / spread) : std::nullopt, ""}};
    const bool negative =
        counts && std::any_of(data.targets.begin(), data.targets.end(), [](double b) { return b < 0; });
    if (counts) metrics.push_back({"deviance", negative ? std::nullopt : std::optional(deviance / n), "mean of a row"});
    metrics.push_back({"mean_loss", losses / n, fmt::format("{}, the loss trained with", model.loss.name())});
    return metrics;
}

} // namespace

std::optional<double> auc(const std::vector<double> &scores, const std::vector<bool> &is_positive) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    double ordered = 0, positives = 0, negatives = 0; // pairs; negatives and positives below the present score
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        double tied_positives = 0, tied_negatives = 0;
        for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) {
            (is_positive[order[end]] ? tied_positives : tied_negatives) += 1;
        }
        ordered += tied_positives * (negatives + 0.5 * tied_negatives);
        positives += tied_positives;
        negatives += tied_negatives;
        begin = end;
    }
    if (positives == 0 || negatives == 0) return std::nullopt;
    return ordered / (positives * negatives);
}

std::vector<Metric> evaluate(const Model &model, const Dataset &data) {
    return model.is_classifier() ? classification(model, data) : regression(model, data);
}

} // namespace spdc::cli
