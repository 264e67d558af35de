// The corner of a piecewise linear problem nearest to a point that is about right.
#pragma once

#include "column_matrix.h"
#include "sweeps.h"

#include <optional>
#include <span>
#include <vector>

namespace spdc {

/// Where the loss has the kink at which y may lie between its slopes; the sign of y, or of a zero, tells between two.
double kink(const AnyLoss &loss, double y, double b);

struct Vertex {
    std::vector<double> x, y;
};

/// A loss with kinks and an l1 penalty make a linear program, and its optimum is a corner: as many rows at a kink as there are
/// coordinates that are neither 0 nor at a bound. Given x and y near the optimum, y at the ends of its domain for all other rows, the
/// corner is two systems of equations with one matrix: the rows at their kinks say x, the derivatives of the coordinates say y. Nothing
/// when the counts differ, or when the solution contradicts the choice of rows and coordinates.
template <class Value>
std::optional<Vertex> nearby_vertex(const Problem &problem, const ColumnMatrix<Value> &columns,
                                    const Penalties &penalties, std::span<const double> x, std::span<const double> y);

extern template std::optional<Vertex> nearby_vertex(const Problem &, const ColumnMatrix<float> &, const Penalties &,
                                                    std::span<const double>, std::span<const double>);
extern template std::optional<Vertex> nearby_vertex(const Problem &, const ColumnMatrix<double> &, const Penalties &,
                                                    std::span<const double>, std::span<const double>);

} // namespace spdc
