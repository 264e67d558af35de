#include "spdc/dataset.h"

#include "parallel.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spdc {

namespace {

void check_size(const std::string &name, const char *what, std::size_t given, std::int64_t expected,
                const char *counted) {
    if (given != static_cast<std::size_t>(expected)) {
        fail(ErrorKind::invalid_argument,
             fmt::format("{}: {} {}, expected one for each of the {} {}", name, given, what, expected, counted));
    }
}

bool are_finite(const std::vector<double> &values, Team &team) {
    struct
        Nothing { // sums of v - v, which is 0, or NaN where v is not finite: eight, so that they do not wait for one another
        std::array<double, 8> sums{};
        void add(const Nothing &other) {
            for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += other.sums[lane];
        }
    };
    const Nothing nothing = sum_chunks<Nothing>(
        team, values.size(), static_cast<double>(values.size()), [&](std::size_t begin, std::size_t end, Nothing &own) {
            for (; begin % own.sums.size() == 0 && begin + own.sums.size() <= end; begin += own.sums.size()) {
                for (std::size_t lane = 0; lane < own.sums.size(); ++lane) {
                    own.sums[lane] += values[begin + lane] - values[begin + lane];
                }
            }
            for (; begin < end; ++begin) own.sums[0] += values[begin] - values[begin];
        });
    return std::all_of(nothing.sums.begin(), nothing.sums.end(), [](double v) { return v == 0; });
}

void check_targets(const Dataset &data, const std::string &name, Team &team) {
    if (data.label_names.empty() && are_finite(data.targets, team)) return;
    const auto labels = static_cast<double>(data.label_names.size());
    for (std::size_t i = 0; i < data.targets.size(); ++i) {
        const double target = data.targets[i];
        if (!std::isfinite(target)) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("{}: target {} of row {}, expected a finite number", name, target, i));
        }
        if (data.label_names.empty()) continue;
        if (!(target >= 0 && target < labels && target == std::floor(target))) {
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

/// Whether each row is there once: then none is missing. The threads may say of a row at the same time that they saw it.
bool is_permutation(std::span<const std::int64_t> order, Team &team) {
    constexpr std::size_t chunk = 8192;
    const std::size_t rows = order.size();
    const auto chunks = static_cast<std::int64_t>((rows + chunk - 1) / chunk);
    std::vector<std::atomic<std::uint8_t>> seen(rows);
    std::atomic<bool> is_good = true;
    const auto visit_chunks = [&](auto &&visit) {
        team.for_each(chunks, static_cast<double>(rows), [&](std::int64_t k) {
            const std::size_t begin = static_cast<std::size_t>(k) * chunk;
            for (std::size_t i = begin; i < std::min(begin + chunk, rows); ++i) {
                if (!visit(i)) is_good.store(false, std::memory_order_relaxed);
            }
        });
    };
    visit_chunks([&](std::size_t i) {
        const auto row = static_cast<std::size_t>(order[i]); // a negative one becomes large
        if (row < rows) seen[row].store(1, std::memory_order_relaxed);
        return row < rows;
    });
    visit_chunks([&](std::size_t i) { return seen[i].load(std::memory_order_relaxed) != 0; });
    return is_good;
}

void check_order(const Dataset &data, const std::string &name, Team &team) {
    if (is_permutation(data.row_order, team)) return;
    std::vector<bool> seen(data.row_order.size());
    for (const std::int64_t row : data.row_order) {
        const bool known = row >= 0 && row < data.rows();
        if (!known || seen[static_cast<std::size_t>(row)]) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("{}: row {} in the row order, expected each of 0 to {} once", name, row, data.rows() - 1));
        }
        seen[static_cast<std::size_t>(row)] = true;
    }
}

} // namespace

void check(const Dataset &data, const std::string &name) {
    Team alone(1);
    check(data, name, alone);
}

void check(const Dataset &data, const std::string &name, Team &team) {
    check(data.matrix);
    check_sides(data, name, team);
}

std::vector<double> in_user_order(const Dataset &data, std::vector<double> values, std::int64_t columns) {
    if (data.row_order.empty()) return values;
    std::vector<double> sorted(values.size());
    for (std::size_t i = 0; i < data.row_order.size(); ++i) {
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i) * columns, columns,
                    sorted.begin() + data.row_order[i] * columns);
    }
    return sorted;
}

std::vector<double> from_user_order(const Dataset &data, std::vector<double> values, std::int64_t columns) {
    if (data.row_order.empty()) return values;
    std::vector<double> shuffled(values.size());
    for (std::size_t i = 0; i < data.row_order.size(); ++i) {
        std::copy_n(values.begin() + data.row_order[i] * columns, columns,
                    shuffled.begin() + static_cast<std::ptrdiff_t>(i) * columns);
    }
    return shuffled;
}

Dataset in_user_order(const Dataset &data) {
    if (data.row_order.empty()) return data;
    std::vector<std::int64_t> places(data.row_order.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[static_cast<std::size_t>(data.row_order[i])] = static_cast<std::int64_t>(i);
    }
    Dataset sorted;
    sorted.matrix = select_rows(data.matrix, places);
    sorted.targets = in_user_order(data, data.targets);
    sorted.weights = data.weights.empty() ? data.weights : in_user_order(data, data.weights);
    sorted.label_names = data.label_names;
    sorted.feature_names = data.feature_names;
    sorted.index_base = data.index_base;
    return sorted;
}

void check_sides(const Dataset &data, const std::string &name) {
    Team alone(1);
    check_sides(data, name, alone);
}

void check_sides(const Dataset &data, const std::string &name, Team &team) {
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
    if (!data.row_order.empty()) {
        check_size(name, "places in the row order", data.row_order.size(), data.rows(), "rows");
        check_order(data, name, team);
    }
    check_targets(data, name, team);
    check_weights(data, name);
}

} // namespace spdc
