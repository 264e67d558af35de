// How good predictions are.
#pragma once

#include "spdc/dataset.h"
#include "spdc/model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spdc::cli {

/// Share of positive-negative pairs that the scores order rightly, ties counting one half; none when a class is missing.
std::optional<double> auc(const std::vector<double> &scores, const std::vector<bool> &is_positive);

struct Metric {
    std::string name;
    std::optional<double> value; // none: not defined on these data
    std::string note;            // about the value, for people
};

/// Classification: accuracy, auc (two labels), log_loss (loss logistic). Regression: rmse, mae, r2. Counts: the same of the
/// predicted rates, and the mean Poisson deviance. Always mean_loss, that of the model's own loss, summed over the outputs.
/// Rows whose label the model does not know count as wrong in the accuracy and are left out of the others.
std::vector<Metric> evaluate(const Model &model, const Dataset &data);

} // namespace spdc::cli
