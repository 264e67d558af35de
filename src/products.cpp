#include "products.h"

#include "kernels.h"
#include "sum.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t row_chunk = 512;

/// A row whose entries all have one value, so that only its columns are read.
struct OneValueRow {
    const std::int32_t *columns;
    std::int64_t count;
    double one;

    std::int64_t size() const noexcept { return count; }
    std::int32_t column(std::int64_t p) const noexcept { return columns[p]; }
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
    OneValueRow row(std::int64_t i) const noexcept {
        const auto row = matrix.row(i);
        return {row.columns, row.count, values[at(i)]};
    }
};

/// visit(matrix) with the type that reads least.
template <class Visit> void visit_matrix(const Problem &problem, Visit &&visit) {
    const auto values = problem.row_values();
    std::visit(
        [&]<class Matrix>(const Matrix &matrix) {
            if constexpr (requires { matrix.offsets(); }) {
                if (!values.empty()) return visit(OneValueRows<Matrix>{matrix, values});
            }
            visit(matrix);
        },
        problem.matrix());
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
        const std::int64_t border = seen[at(k) * seen.size() / at(parts)];
        if (border > borders.back()) borders.push_back(border);
    }
    borders.push_back(matrix.cols());
    return borders;
}

/// u += alpha a on the columns [begin, end)
template <class Row>
void axpy_on(double alpha, const Row &a, std::int64_t begin, std::int64_t end, double *u) noexcept {
    for (std::int64_t p = a.lower_bound(begin); p < a.size() && a.column(p) < end; ++p) {
        u[a.column(p)] += alpha * a.value(p);
    }
}

/// Many columns: a thread owns a range of them and goes through all rows, so that every column is summed row after row.
template <class Matrix, class Weight>
void combine_by_columns(const Matrix &matrix, const Weight &weight, std::span<double> u, Team &team) {
    const auto entries = static_cast<double>(matrix.nonzeros());
    const std::vector<std::int64_t> borders = column_parts(matrix, team.size());
    team.for_each(static_cast<std::int64_t>(borders.size()) - 1, entries, [&](std::int64_t k) {
        const std::int64_t begin = borders[at(k)], end = borders[at(k) + 1];
        const bool is_all = begin == 0 && end == matrix.cols();
        std::fill(u.begin() + begin, u.begin() + end, 0.0);
        for (std::int64_t i = 0; i < matrix.rows(); ++i) {
            const double alpha = weight(i);
            if (alpha == 0) continue;
            if (is_all) {
                axpy(alpha, matrix.row(i), u.data());
            } else {
                axpy_on(alpha, matrix.row(i), begin, end, u.data());
            }
        }
    });
}

/// Few columns: fixed parts of the rows, each with sums of its own, added up in their order.
template <class Matrix, class Weight>
void combine_by_rows(const Matrix &matrix, const Weight &weight, std::int64_t parts, std::span<double> u, Team &team) {
    const std::size_t d = at(matrix.cols());
    std::vector<double> sums(d * at(parts), 0.0);
    team.for_each(parts, static_cast<double>(matrix.nonzeros()), [&](std::int64_t k) {
        for (std::int64_t i = k * matrix.rows() / parts; i < (k + 1) * matrix.rows() / parts; ++i) {
            const double alpha = weight(i);
            if (alpha != 0) axpy(alpha, matrix.row(i), sums.data() + at(k) * d);
        }
    });
    std::fill(u.begin(), u.begin() + matrix.cols(), 0.0);
    for (std::size_t k = 0; k < at(parts); ++k) {
        for (std::size_t j = 0; j < d; ++j) u[j] += sums[k * d + j];
    }
}

} // namespace

void predict(const Problem &problem, std::span<const double> x, std::span<double> z, Team &team) {
    const double constant = problem.has_intercept() ? x.back() : 0.0;
    const auto weights = x.first(at(problem.features()));
    if (std::all_of(weights.begin(), weights.end(), [](double v) { return v == 0; })) { // where every run starts
        std::fill(z.begin(), z.end(), constant);
        return;
    }
    visit_matrix(problem, [&](const auto &matrix) {
        const std::int64_t rows = matrix.rows(), chunks = (rows + row_chunk - 1) / row_chunk;
        team.for_each(chunks, static_cast<double>(matrix.nonzeros()), [&](std::int64_t k) {
            const std::int64_t begin = k * row_chunk;
            for (std::int64_t i = begin; i < std::min(begin + row_chunk, rows); ++i) {
                z[at(i)] = dot(matrix.row(i), x.data()) + constant;
            }
        });
    });
}

void combine(const Problem &problem, std::span<const double> y, std::span<double> u, Team &team) {
    constexpr std::int64_t row_parts = 64;
    const double scale = 1 / static_cast<double>(problem.rows());
    const auto weight = [&](std::int64_t i) { return problem.importance(i) * y[at(i)] * scale; };
    visit_matrix(problem, [&](const auto &matrix) {
        if (2 * row_parts * matrix.cols() <= matrix.nonzeros()) {
            combine_by_rows(matrix, weight, row_parts, u, team);
        } else {
            combine_by_columns(matrix, weight, u, team);
        }
    });
    if (!problem.has_intercept()) return;
    const auto n = static_cast<std::size_t>(problem.rows());
    u.back() = sum_chunks<Sum>(team, n, static_cast<double>(n), [&](std::size_t begin, std::size_t end, Sum &sum) {
                   for (; begin < end; ++begin) sum.add(weight(static_cast<std::int64_t>(begin)));
               }).value();
}

} // namespace spdc
