// The loss of many rows at once, in the widest form the processor has: what a loss's own functions give, up to the last bits, and the same
// bits on every processor.
#pragma once

#include "spdc/losses.h"

#include <cstddef>

namespace spdc {

/// values_i = phi(z_i)
void loss_values(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *values);

/// slopes_i = phi'(z_i); z and slopes may be the same
void loss_slopes(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *slopes);

/// conjugates_i = phi*(y_i), infinity outside the domain
void loss_conjugates(const AnyLoss &loss, const double *y, const double *b, std::size_t count, double *conjugates);

} // namespace spdc
