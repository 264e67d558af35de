// Coordinates that nothing penalises or bounds: a free intercept, features of penalty factor 0, everything when there is no
// penalty. Their dual is an equation, u_j = 0, which iterates meet only in the limit and rounding never does.
#pragma once

#include "parallel.h"
#include "spdc/problem.h"

#include <span>

namespace spdc {

/// Moves y along the loss's shift paths until u_j = 0 for every free coordinate, as far as rounding and the dual domains allow.
void balance_dual(const Problem &problem, std::span<double> y, Team &team);

/// The constant t that minimises sum_i w_i phi(z_i + t, b_i).
double best_shift(const Problem &problem, std::span<const double> z, Team &team);
/// The same at z = 0: the best constant model, where methods start.
double best_constant(const Problem &problem, const Crew &crew = 1);

} // namespace spdc
