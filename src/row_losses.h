// The loss of many rows at once, in the widest form the processor has: what a loss's own functions give, up to the last bits, and the same
// bits on every processor.
#pragma once

#include "spdc/losses.h"

#include <algorithm>
#include <cstddef>

namespace spdc {

/// Those of the logistic loss, for whole vectors of 4.
struct LogisticKernels {
    using Kernel = void (*)(const double *argument, const double *b, std::size_t count, double *to);
    Kernel values, slopes, conjugates;
};

/// For this processor.
const LogisticKernels &logistic_kernels();

/// Those that every processor runs: the twin that tests compare with.
const LogisticKernels &portable_logistic_kernels();

/// values_i = phi(z_i)
void loss_values(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *values);

/// slopes_i = phi'(z_i); z and slopes may be the same
void loss_slopes(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *slopes);

/// conjugates_i = phi*(y_i), infinity outside the domain
void loss_conjugates(const AnyLoss &loss, const double *y, const double *b, std::size_t count, double *conjugates);

/// Calls visit(i, value) for the rows [begin, end) with what one of these functions gives for argument(i).
template <class Losses, class Argument, class Visit>
void each_loss(Losses &&losses, const AnyLoss &loss, const double *b, std::size_t begin, std::size_t end,
               Argument &&argument, Visit &&visit) {
    constexpr std::size_t block = 64;
    double arguments[block] = {}, values[block];
    for (; begin < end; begin += block) {
        const std::size_t count = std::min(block, end - begin);
        for (std::size_t k = 0; k < count; ++k) arguments[k] = argument(begin + k);
        losses(loss, arguments, b + begin, count, values);
        for (std::size_t k = 0; k < count; ++k) visit(begin + k, values[k]);
    }
}

} // namespace spdc
