#include "spdc/options.h"

#include <fmt/format.h>

#include <cmath>

namespace spdc {

namespace {

std::string range_of(const Field &field) {
    const bool open = field.bound == Bound::open;
    const bool below = std::isfinite(field.minimum);
    const bool above = std::isfinite(field.maximum) && field.maximum != finite;
    if (below && field.maximum == finite) {
        return fmt::format("finite and {} {}", open ? "greater than" : "at least", field.minimum);
    }
    if (below && above) {
        return fmt::format("between {} and {}{}", field.minimum, field.maximum, open ? ", both excluded" : "");
    }
    if (below) return fmt::format("{} {}", open ? "greater than" : "at least", field.minimum);
    if (above) return fmt::format("{} {}", open ? "less than" : "at most", field.maximum);
    return "a number";
}

} // namespace

void check_range(const Field &field, double value) {
    const bool open = field.bound == Bound::open;
    const bool above = open ? value > field.minimum || field.minimum == -infinity : value >= field.minimum;
    const bool below = open ? value < field.maximum || field.maximum == infinity : value <= field.maximum;
    if (above && below && !std::isnan(value)) return;
    fail(ErrorKind::invalid_argument, fmt::format("{} = {}: must be {}", field.name, value, range_of(field)));
}

} // namespace spdc
