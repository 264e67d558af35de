// Working sets in their two forms; the solver `working_set` picks one.
#pragma once

#include "method.h"
#include "parallel.h"
#include "spdc/problem.h"

#include <memory>

namespace spdc {

/// Whether all features fit in one Gram matrix that a pass or two over the data pay for: the squared loss, few features, more rows.
bool has_few_features(const Problem &problem);

/// Squared loss: coordinate descent on the Gram matrix of all features.
std::unique_ptr<Method> make_few_features(const Problem &problem);

/// Any loss: sets of features, on a copy of the data by columns.
std::unique_ptr<Method> make_column_sets(const Problem &problem, const Crew &crew = 1);

} // namespace spdc
