// What train prints about its result: a block for people, or one JSON object.
#pragma once

#include "arguments.h"
#include "spdc/model.h"
#include "spdc/result.h"

#include <nlohmann/json.hpp>

#include <string>

namespace spdc::cli {

using Json = nlohmann::ordered_json;

/// As text; numbers that are not finite become null, bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json &json);

/// The loss's parameters as an object.
Json parameters_json(const AnyLoss &loss);
/// One object per output.
Json certificates_json(const std::vector<Certificate> &certificates);

struct TrainReport {
    const TrainArguments &arguments;
    const Dataset &data;
    const Model &model;
    const Result &result;
    double seconds = 0;
    double seconds_cpu = 0;
    double seconds_loading = 0;
};

std::string train_json(const TrainReport &report);
std::string train_text(const TrainReport &report);

} // namespace spdc::cli
