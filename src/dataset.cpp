#include "spdc/dataset.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace spdc {

namespace {

void check_size(const std::string &name, const char *what, std::size_t given, std::int64_t expected,
                const char *counted) {
    if (given != static_cast<std::size_t>(expected)) {
        fail(ErrorKind::invalid_argument,
             fmt::format("{}: {} {}, expected one for each of the {} {}", name, given, what, expected, counted));
    }
}

void check_targets(const Dataset &data, const std::string &name) {
    const auto labels = static_cast<double>(data.label_names.size());
    for (std::size_t i = 0; i < data.targets.size(); ++i) {
        const double target = data.targets[i];
        if (!std::isfinite(target)) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("{}: target {} of row {}, expected a finite number", name, target, i));
        }
        const bool is_label = target >= 0 && target < labels && target == std::floor(target);
        if (!data.label_names.empty() && !is_label) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("{}: target {} of row {}, expected a whole number from 0 to {} (there are {} label names)",
                             name, target, i, labels - 1, labels));
        }
    }
}

void check_weights(const Dataset &data, const std::string &name) {
    for (std::size_t i = 0; i < data.weights.size(); ++i) {
        const double weight = data.weights[i];
        if (!std::isfinite(weight) || weight < 0) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("{}: weight {} of row {}, expected a finite number, 0 or more", name, weight, i));
        }
    }
    const bool all_zero = std::all_of(data.weights.begin(), data.weights.end(), [](double w) { return w == 0; });
    if (!data.weights.empty() && all_zero) {
        fail(ErrorKind::invalid_argument, fmt::format("{}: all row weights are 0, expected one above 0", name));
    }
}

} // namespace

void check(const Dataset &data, const std::string &name) {
    if (data.rows() == 0) {
        fail(ErrorKind::invalid_argument, fmt::format("{}: no rows, expected at least one", name));
    }
    check_size(name, "targets", data.targets.size(), data.rows(), "rows");
    if (!data.weights.empty()) {
        check_size(name, "weights", data.weights.size(), data.rows(), "rows");
    }
    if (!data.feature_names.empty()) {
        check_size(name, "feature names", data.feature_names.size(), data.features(), "features");
    }
    if (data.index_base != 0 && data.index_base != 1) {
        fail(ErrorKind::invalid_argument, fmt::format("{}: index_base {}, expected 0 or 1", name, data.index_base));
    }
    check_targets(data, name);
    check_weights(data, name);
}

} // namespace spdc
