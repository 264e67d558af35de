// Picks a solver from the shape of the problem. A wrong choice costs time, never correctness: the certified gap decides.
#include "methods.h"

namespace spdc {

Choice choose(const Problem &problem) {
    const bool same_l2_everywhere = std::holds_alternative<L2>(problem.regularizer().variant()) &&
                                    problem.strong_convexity() > 0 && problem.penalty_factors().empty();
    if (same_l2_everywhere) return {SpdcFast{}, "auto picked spdc_fast: an l2 penalty, the same for every feature"};
    return {Spdc{}, "auto picked spdc: it takes every penalty, weighting and intercept"};
}

} // namespace spdc
