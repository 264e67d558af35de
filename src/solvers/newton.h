// The two forms of Newton's method; `newton` takes the one with the smaller matrix.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>

namespace spdc {

/// A matrix of dimension x dimension; any number of rows.
std::unique_ptr<Method> make_primal_newton(const Problem &problem, const SolveContext &context);

} // namespace spdc
