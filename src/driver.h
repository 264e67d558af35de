// The one outer loop: clock, certification, trace, observer, stopping, interrupt.
#pragma once

#include "method.h"
#include "spdc/problem.h"
#include "spdc/solvers.h"

#include <chrono>

namespace spdc {

class Clock {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// How the run of one output ended.
struct Outcome {
    StopReason reason = StopReason::not_run;
    double passes = 0;
    double seconds_certifying = 0;
};

/// Runs the method until something stops it; the certifier then holds the best point.
Outcome drive(const Problem &problem, Method &method, Certifier &certifier, const Stopping &stopping,
              const SolveContext &context, const Clock &clock, std::int64_t output, Trace &trace);

} // namespace spdc
