// A matrix and what stands beside it: targets, names, row weights. Immutable in use and cheap to copy.
#pragma once

#include "spdc/matrix.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spdc {

class Team; // of threads

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

    /// When the rows are in random order, as in a .spdc file: row i of the matrix is row row_order[i] of the user's data. Results
    /// per row are in the order of the matrix; in_user_order() and from_user_order() translate. Empty: the user's order.
    std::vector<std::int64_t> row_order;

    /// Number of the first feature in the file the data came from: 0 or 1.
    int index_base = 1;

    std::int64_t rows() const noexcept { return spdc::rows(matrix); }
    std::int64_t features() const noexcept { return spdc::cols(matrix); }
    std::int64_t nonzeros() const noexcept { return spdc::nonzeros(matrix); }
};

/// Throws Error(invalid_argument) unless there are rows; targets, weights and names have the matrix's sizes; targets are
/// finite, and indices into label_names where there are any; weights are finite, non-negative and not all zero; row_order
/// is a permutation. A check of the matrix that is pending is made.
/// `name` stands in front of the message.
void check(const Dataset &data, const std::string &name);
void check(const Dataset &data, const std::string &name, Team &team);

/// The same without the matrix, whose check may be pending.
void check_sides(const Dataset &data, const std::string &name);
void check_sides(const Dataset &data, const std::string &name, Team &team);

/// `values` has `columns` numbers for each row, in the order of the matrix; returns them in the user's order.
std::vector<double> in_user_order(const Dataset &data, std::vector<double> values, std::int64_t columns = 1);
/// The inverse.
std::vector<double> from_user_order(const Dataset &data, std::vector<double> values, std::int64_t columns = 1);
/// The data set with its rows in the user's order, in memory of its own unless they are so already.
Dataset in_user_order(const Dataset &data);

} // namespace spdc
