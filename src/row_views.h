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
    void prefetch(std::int64_t p) const noexcept { __builtin_prefetch(columns + p); }
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

/// The first entry of a row whose column is not below `column`. It is looked for near a guess, in steps that double.
template <class Row> std::int64_t lower_bound(const Row &row, std::int64_t column, std::int64_t guess) noexcept {
    std::int64_t low = 0, high = row.size(), step = 4; // it is among [low, high]
    if (guess < high && row.column(guess) < column) {
        for (low = guess + 1; low + step < high && row.column(low + step) < column; step *= 2) low += step + 1;
        high = std::min(high, low + step);
    } else {
        for (high = guess; high - step > low && row.column(high - step) >= column; step *= 2) high -= step;
        low = std::max(low, high - step);
    }
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (row.column(middle) < column) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// visit(i, row, p) for all rows i, where the columns from `begin` on start at entry p, which is about `share` of the way through the row.
template <class Matrix, class Visit>
void each_row_from(const Matrix &matrix, std::int64_t begin, double share, Visit &&visit) {
    constexpr std::int64_t ahead = 12; // rows: their entries are far apart in memory
    const auto guess = [&](const auto &row) {
        return static_cast<std::int64_t>(share * static_cast<double>(row.size()));
    };
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        if (i + ahead < matrix.rows()) {
            const auto later = matrix.row(i + ahead);
            const std::int64_t middle = guess(later);
            for (const std::int64_t p : {middle - 16, middle, middle + 16}) {
                if (0 <= p && p < later.size()) later.prefetch(p);
            }
        }
        const auto row = matrix.row(i);
        visit(i, row, begin == 0 ? 0 : lower_bound(row, begin, guess(row)));
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
