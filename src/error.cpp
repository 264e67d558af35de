#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace spdc {

namespace {

// Edits (insert, delete, replace, swap of neighbours) that turn one name into the other. Names are a few dozen bytes,
// so the quadratic table is the plain choice.
std::size_t edit_distance(std::string_view from, std::string_view to) {
    const std::size_t width = to.size() + 1;
    std::vector<std::size_t> cost((from.size() + 1) * width);
    for (std::size_t i = 0; i <= from.size(); ++i) {
        for (std::size_t j = 0; j < width; ++j) {
            std::size_t &best = cost[i * width + j];
            if (i == 0 || j == 0) {
                best = i + j;
                continue;
            }
            const std::size_t replaced = cost[(i - 1) * width + j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
            best = std::min({replaced, cost[(i - 1) * width + j] + 1, cost[i * width + j - 1] + 1});
            const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if (swapped) {
                best = std::min(best, cost[(i - 2) * width + j - 2] + 1);
            }
        }
    }
    return cost.back();
}

// The nearest name, or nothing when even that one is too far to be what was meant.
std::string_view near_miss(std::string_view given, const std::vector<std::string> &known) {
    constexpr std::size_t longest_name = 64; // keeps the table small when somebody passes a whole file as a name
    if (given.size() > longest_name) {
        return {};
    }
    const std::size_t allowed = std::max<std::size_t>(1, given.size() / 3);
    std::string_view nearest;
    std::size_t least = allowed + 1;
    for (const std::string &name : known) {
        const std::size_t distance = name.size() > longest_name ? least : edit_distance(given, name);
        if (distance < least && distance < name.size()) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

} // namespace

void fail(ErrorKind kind, const std::string &message) { throw Error(kind, message); }

void fail_unknown(std::string_view what, std::string_view given, const std::vector<std::string> &known) {
    constexpr std::size_t most_listed = 40; // column names of a wide file would fill the screen
    std::string message = fmt::format("unknown {} '{}'", what, given);
    if (const std::string_view nearest = near_miss(given, known); !nearest.empty()) {
        message += fmt::format("; did you mean '{}'?", nearest);
    } else {
        message += ';';
    }
    for (std::size_t i = 0; i < std::min(known.size(), most_listed); ++i) {
        message += (i == 0 ? " known: " : ", ") + known[i];
    }
    if (known.size() > most_listed) {
        message += fmt::format(" and {} more", known.size() - most_listed);
    }
    fail(ErrorKind::invalid_argument, message);
}

} // namespace spdc
