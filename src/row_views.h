// Rows of a matrix as a pass over all of them likes to read them: without values where a row has only one, and in parts by columns.
#pragma once

#include "spdc/matrix.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace spdc {

/// A row whose entries all have one value, so that only its columns are read.
template <class Index> struct OneValueRow {
    const Index *columns;
    std::int64_t count;
    double one;

    std::int64_t size() const noexcept { return count; }
    std::int32_t column(std::int64_t p) const noexcept { return static_cast<std::int32_t>(columns[p]); }
    double value(std::int64_t) const noexcept { return one; }
    std::int64_t lower_bound(std::int64_t column) const noexcept {
        return std::lower_bound(columns, columns + count, column) - columns;
    }
};

/// A sparse matrix of such rows.
template <class Matrix> struct OneValueRows {
    const Matrix &matrix;
    std::span<const double> values;

    std::int64_t rows() const noexcept { return matrix.rows(); }
    std::int64_t cols() const noexcept { return matrix.cols(); }
    std::int64_t nonzeros() const noexcept { return matrix.nonzeros(); }
    auto row(std::int64_t i) const noexcept {
        const auto row = matrix.row(i);
        return OneValueRow{row.columns, row.count, values[static_cast<std::size_t>(i)]};
    }
};

/// visit(rows) with the type that reads least; `row_values` as Problem::row_values() gives them.
template <class Visit> void visit_rows(const AnyMatrix &matrix, std::span<const double> row_values, Visit &&visit) {
    std::visit(
        [&]<class Matrix>(const Matrix &m) {
            if constexpr (requires { m.offsets(); }) {
                if (!row_values.empty()) return visit(OneValueRows<Matrix>{m, row_values});
            }
            visit(m);
        },
        matrix);
}

/// visit(i, row, p) for all rows i, where the columns from `begin` on start at entry p. Several rows are searched at a time: each step of
/// a search waits for memory.
template <class Matrix, class Visit> void each_row_from(const Matrix &matrix, std::int64_t begin, Visit &&visit) {
    constexpr std::int64_t group = 16;
    std::int64_t from[group], left[group]; // the entries among which it is
    for (std::int64_t first = 0; first < matrix.rows(); first += group) {
        const std::int64_t count = std::min(group, matrix.rows() - first);
        std::int64_t most = 0;
        for (std::int64_t r = 0; r < count; ++r) {
            from[r] = 0;
            left[r] = begin == 0 ? 0 : matrix.row(first + r).size();
            most = std::max(most, left[r]);
        }
        for (; most > 0; most /= 2) {
            for (std::int64_t r = 0; r < count; ++r) {
                if (left[r] == 0) continue;
                const std::int64_t half = (left[r] + 1) / 2;
                from[r] += matrix.row(first + r).column(from[r] + half - 1) < begin ? half : 0;
                left[r] -= half;
            }
        }
        for (std::int64_t r = 0; r < count; ++r) visit(first + r, matrix.row(first + r), from[r]);
    }
}

/// Columns 0 = c_0 < c_1 < ... = cols that cut the matrix into parts of about as many entries, judged by a few of them.
template <class Matrix> std::vector<std::int64_t> column_parts(const Matrix &matrix, std::int64_t parts) {
    constexpr std::int64_t most_rows = 128, most_entries = 16;
    std::vector<std::int64_t> seen;
    const std::int64_t row_step = std::max<std::int64_t>(1, matrix.rows() / most_rows);
    for (std::int64_t i = 0; i < matrix.rows(); i += row_step) {
        const auto row = matrix.row(i);
        const std::int64_t step = std::max<std::int64_t>(1, row.size() / most_entries);
        for (std::int64_t p = (i / row_step) % step; p < row.size(); p += step) seen.push_back(row.column(p));
    }
    std::sort(seen.begin(), seen.end());
    std::vector<std::int64_t> borders{0};
    for (std::int64_t k = 1; k < parts && !seen.empty(); ++k) {
        const std::int64_t border = seen[static_cast<std::size_t>(k) * seen.size() / static_cast<std::size_t>(parts)];
        if (border > borders.back()) borders.push_back(border);
    }
    borders.push_back(matrix.cols());
    return borders;
}

} // namespace spdc
