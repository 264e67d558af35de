// Newton's method with conjugate gradients, as a part: the solver `newton_cg`, and the last phase of `hybrid`.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>
#include <span>
#include <string_view>

namespace spdc {

/// Whether the loss has a derivative everywhere.
bool is_smooth(const AnyLoss &loss);

/// Refuses penalties other than l2 and losses with kinks, in the name of a solver.
void check_newton_cg(const Problem &problem, std::string_view solver);

/// From x, or from 0 when x is empty.
std::unique_ptr<Method> make_newton_cg(const Problem &problem, std::span<const double> x, const SolveContext &context);

/// Sets the smallest h to 0 that together carry no more than this share of the sum.
void skip_smallest(std::span<double> h, double share);

} // namespace spdc
