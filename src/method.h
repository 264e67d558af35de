// What the driver knows of a solver: called a few times a pass, so the only virtual functions of the library.
#pragma once

#include "spdc/certificate.h"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace spdc {

/// What the last certification found: the best x so far and its predictions.
struct Found {
    const Certificate &certificate;
    std::span<const double> x, predictions;
};

class Method {
  public:
    virtual ~Method() = default;
    Method() = default;
    Method(const Method &) = delete;
    Method &operator=(const Method &) = delete;

    /// Works for about this many passes over the data, at least one iteration.
    virtual void advance(double passes) = 0;
    /// Passes so far.
    virtual double passes() const = 0;
    /// The current primal and dual point.
    virtual void point(std::vector<double> &x, std::vector<double> &y) = 0;
    /// Told before the first advance: the relative gap that is wanted.
    virtual void aim(double) {}
    /// Told once, before the first advance: a primal and a dual point to go on from; what a method cannot use it ignores.
    virtual void start(std::span<const double>, std::span<const double>) {}
    /// False while the point is known not to be worth a certificate, as at the start of a method that warms up.
    virtual bool has_point() const { return true; }
    /// Whether rounding lets it get no further.
    virtual bool exhausted() const { return false; }
    /// Told after each certification: a method may adapt its parameters to the gap.
    virtual void certified(const Found &) {}
    /// A cheap guess of the gap at point(), or 0 when there is none: certification waits while it is far above the tolerance.
    virtual double estimated_gap() const { return 0; }
    /// D at point(), as if a free intercept's part of A'y were 0, or NaN where that takes a pass over the data: tells what the objective will be.
    virtual double dual_value() const { return std::numeric_limits<double>::quiet_NaN(); }
    /// spdc_fast's primal weight, NaN for methods that have none, and its changes since the last call.
    virtual double omega() const { return std::numeric_limits<double>::quiet_NaN(); }
    struct OmegaChange {
        double passes, omega;
    };
    virtual std::vector<OmegaChange> take_omega_changes() { return {}; }
    /// Primal coordinates read or written by row updates so far.
    virtual std::int64_t coordinates_touched() const { return 0; }
    virtual int threads() const { return 1; }
};

/// When a method may be judged too slow: after so many passes, where it would need more than so many times as many again by the decay of its gap over
/// the last half of them, or, for a gap that falls in steps, over the last two thirds where that is faster.
struct Patience {
    double passes = 100;
    double times = 3;
    bool in_steps = false;
};

} // namespace spdc
