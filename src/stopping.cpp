#include "spdc/stopping.h"

namespace spdc {

std::string_view to_string(StopReason reason) {
    switch (reason) {
    case StopReason::not_run: return "not_run";
    case StopReason::gap_reached: return "gap_reached";
    case StopReason::stalled: return "stalled";
    case StopReason::pass_limit: return "pass_limit";
    case StopReason::time_limit: return "time_limit";
    case StopReason::interrupted: return "interrupted";
    case StopReason::no_minimizer: return "no_minimizer";
    case StopReason::numerical_failure: return "numerical_failure";
    }
    return "not_run";
}

} // namespace spdc
