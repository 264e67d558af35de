// Losses for the Newton steps of working_set.cpp.
#pragma once

#include "spdc/losses.h"

#include <cmath>
#include <type_traits>

namespace spdc {

/// A loss as Newton steps want it. One with kinks is rounded: max_y y z - phi*(y) - (gamma/2) y^2 touches it from below.
template <class L> struct RoundedLoss {
    const L &loss;
    double gamma; // 0: as it is

    double derivative(double z, double b) const {
        return gamma > 0 ? loss.dual_prox(z, 0, 1 / gamma, b) : loss.derivative(z, b);
    }
    double value(double z, double b) const {
        if (gamma == 0) return loss.value(z, b);
        const double y = derivative(z, b);
        return y * (z - 0.5 * gamma * y) - loss.conjugate(y, b);
    }
    /// From the derivative y, which is known: no second exponential.
    double curvature(double z, double y, double b) const {
        if constexpr (std::is_same_v<L, Logistic>) return std::fabs(y) * (1 - std::fabs(y));
        if constexpr (std::is_same_v<L, Poisson>) return y + b;
        if (gamma == 0) return loss.curvature(z, b);
        const Interval domain = loss.domain(b);
        return y != 0 && domain.lower < y && y < domain.upper ? 1 / gamma : 0;
    }
    /// The largest there is; 0 when there is no bound.
    double largest_curvature() const { return gamma > 0 ? 1 / gamma : (loss.gamma() > 0 ? 1 / loss.gamma() : 0); }
};

} // namespace spdc
