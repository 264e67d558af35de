// What `spdc info` says about a data set or a model.
#pragma once

#include "arguments.h"
#include "report.h"

namespace spdc::cli {

/// The smallest l1 at which all weights of all outputs are 0.
double lambda_max(const Problem &problem);

Json data_info(const InfoArguments &arguments, const Dataset &data);
Json model_info(const Model &model);

/// The same for people: a line per entry, nested ones indented.
std::string info_text(const Json &json);

} // namespace spdc::cli
