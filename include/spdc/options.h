// One record per option: its name, range and meaning. Command line, checks, help, JSON echo and documentation read the same
// records, so an option is written once: as a line in the fields() of the struct that holds it.
//
//     struct Huber {
//         double delta = 1;
//         template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
//             visit(Field{"delta", "half-width of the quadratic core", 0, infinity, Bound::open}, self.delta);
//         }
//     };
#pragma once

#include "spdc/error.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace spdc {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double finite = std::numeric_limits<double>::max(); // as a maximum: anything but infinity

enum class Bound { closed, open };

struct Field {
    const char *name;
    const char *help;
    double minimum = -infinity;
    double maximum = infinity;
    Bound bound = Bound::closed; // open: the minimum (and a finite maximum) itself is not allowed
};

/// Throws Error(invalid_argument) naming field, value and range unless the value lies in the range; NaN never does.
void check_range(const Field &field, double value);

/// Checks every field of an options struct that is a number or an optional number.
template <class Options> void check_fields(const Options &options) {
    Options::fields(options, [](const Field &field, const auto &value) {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::optional<double>> ||
                      std::is_same_v<Value, std::optional<std::int64_t>>) {
            if (value) check_range(field, static_cast<double>(*value));
        } else if constexpr (std::is_arithmetic_v<Value>) {
            check_range(field, static_cast<double>(value));
        }
    });
}

} // namespace spdc
