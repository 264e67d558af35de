#include "methods.h"

namespace spdc {

Choice choose(const Problem &) {
    return {Spdc{}, "auto picked spdc: it takes every loss, regularizer, weighting and intercept"};
}

} // namespace spdc
