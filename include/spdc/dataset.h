// A matrix and what stands beside it: targets, names, row weights. Immutable in use and cheap to copy.
#pragma once

#include "spdc/matrix.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spdc {

struct Dataset {
    AnyMatrix matrix;

    /// One per row. Numeric labels and regression targets as read; text labels as indices into label_names.
    std::vector<double> targets;

    /// Names of text labels in ascending order; empty when the targets are numbers.
    std::vector<std::string> label_names;

    /// Names of the columns, or empty.
    std::vector<std::string> feature_names;

    /// One non-negative weight per row, or empty for all 1.
    std::vector<double> weights;

    /// Number of the first feature in the file the data came from: 0 or 1.
    int index_base = 1;

    std::int64_t rows() const noexcept { return spdc::rows(matrix); }
    std::int64_t features() const noexcept { return spdc::cols(matrix); }
    std::int64_t nonzeros() const noexcept { return spdc::nonzeros(matrix); }
};

/// Throws Error(invalid_argument) unless there are rows; targets, weights and names have the matrix's sizes; targets are
/// finite, and indices into label_names where there are any; weights are finite, non-negative and not all zero.
/// `name` stands in front of the message.
void check(const Dataset &data, const std::string &name);

} // namespace spdc
