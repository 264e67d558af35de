// When a run ends, and why. Deciding is a pure function of recorded numbers; how a run ended and what was wrong with a call are
// two things (see error.h).
#pragma once

#include "spdc/certificate.h"
#include "spdc/options.h"

#include <string_view>

namespace spdc {

struct Stopping {
    /// Stop when the certified relative gap is at most this.
    double tolerance = 1e-4;
    /// Stop after this many passes over the data.
    double max_passes = 100000;
    /// Stop after this many seconds, certification included.
    double max_seconds = infinity;

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"tolerance", "stop when the certified relative gap is at most this", 0, infinity, Bound::open},
              self.tolerance);
        visit(Field{"max-passes", "stop after this many passes over the data", 0, infinity, Bound::open},
              self.max_passes);
        visit(Field{"max-seconds", "stop after this many seconds", 0, infinity, Bound::open}, self.max_seconds);
    }
};

enum class StopReason {
    not_run,
    gap_reached,       // the certified relative gap is within the tolerance
    stalled,           // the gap stopped falling: rounding allows no better
    pass_limit,        // max_passes
    time_limit,        // max_seconds
    interrupted,       // the caller or the user asked
    no_minimizer,      // the objective falls for ever along some direction: nothing to converge to
    numerical_failure, // the iterates became infinite or NaN; the best point before that is returned
};

std::string_view to_string(StopReason reason);

/// Whether the tolerance was reached.
constexpr bool is_converged(StopReason reason) noexcept { return reason == StopReason::gap_reached; }

} // namespace spdc
