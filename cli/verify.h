// A second opinion: primal, dual and gap from the data, the model and the dual variables alone. Shares no formula with the
// library: losses, conjugates and sums are written again here, in long double and without any cleverness.
#pragma once

#include "spdc/dataset.h"
#include "spdc/model.h"

#include <string>
#include <vector>

namespace spdc::cli {

struct VerifiedOutput {
    long double primal = 0;
    long double dual = 0;
    long double gap = 0;
    long double relative_gap = 0;
    long double rounding = 0; // what rounding the predictions to double can add to the primal
};

struct Verification {
    std::vector<VerifiedOutput> outputs;
    double worst_relative_gap = 0;
    double radius = infinity;            // as Certificate::radius
    std::vector<std::string> objections; // sentences; none when the model is certified
};

/// `dual` is rows x outputs; `factors` one per feature or empty; row weights are in the data.
Verification verify(const Model &model, const Dataset &data, const std::vector<double> &factors,
                    const std::vector<double> &dual, double tolerance);

} // namespace spdc::cli
