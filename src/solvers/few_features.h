// Working sets in their two forms; the solver `working_set` picks one.
#pragma once

#include "method.h"
#include "parallel.h"
#include "spdc/problem.h"

#include <memory>

namespace spdc {

/// Whether all features fit in one Gram matrix that a pass or two over the data pay for: the squared loss, few features, more rows.
bool has_few_features(const Problem &problem);

/// Whether make_sparse_newton() (newton.h) is likely to be there first: a step is a pass over the rows that adds up the products of pairs of
/// their entries. The squared loss, or the logistic one where sets of columns would take tens of passes.
bool has_few_entries(const Problem &problem);

/// Squared loss: coordinate descent on the Gram matrix of all features.
std::unique_ptr<Method> make_few_features(const Problem &problem);

/// Any loss: sets of features, on a copy of the data by columns.
std::unique_ptr<Method> make_column_sets(const Problem &problem, const Crew &crew = 1);

} // namespace spdc
