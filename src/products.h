// The two products of a matrix with a vector, on a team of threads; the bits do not depend on how many there are.
#pragma once

#include "parallel.h"
#include "spdc/problem.h"

#include <span>

namespace spdc {

/// z_i = a_i'x, intercept included.
void predict(const Problem &problem, std::span<const double> x, std::span<double> z, Team &team);

/// u = (1/W) sum_i w_i y_i a_i, intercept included.
void combine(const Problem &problem, std::span<const double> y, std::span<double> u, Team &team);

} // namespace spdc
