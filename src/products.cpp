#include "products.h"

#include "kernels.h"
#include "row_views.h"
#include "sum.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t row_chunk = 512;

template <class Visit> void visit_matrix(const Problem &problem, Visit &&visit) {
    visit_rows(problem.matrix(), problem.row_values(), visit);
}

/// Many columns: a thread owns a range of them and goes through all rows, so that every column is summed row after row.
template <class Matrix, class Weight>
void combine_by_columns(const Matrix &matrix, const Weight &weight, std::span<double> u, Team &team) {
    const auto entries = static_cast<double>(matrix.nonzeros());
    const std::vector<std::int64_t> borders = column_parts(matrix, team.size());
    fill_zeros(team, u.data(), at(matrix.cols()));
    team.for_each(static_cast<std::int64_t>(borders.size()) - 1, entries, [&](std::int64_t k) {
        const std::int64_t begin = borders[at(k)], end = borders[at(k) + 1];
        const bool is_all = begin == 0 && end == matrix.cols();
        const double share = static_cast<double>(k) / static_cast<double>(borders.size() - 1);
        each_row_from(matrix, begin, share, [&](std::int64_t i, const auto &row, std::int64_t p) {
            const double alpha = weight(i);
            interruption_point(row.size());
            if (alpha == 0) return;
            if (is_all) return axpy(alpha, row, u.data());
            for (; p < row.size() && row.column(p) < end; ++p) u[at(row.column(p))] += alpha * row.value(p);
        });
    });
}

/// Few columns: fixed parts of the rows, each with sums of its own, added up in their order.
template <class Matrix, class Weight>
void combine_by_rows(const Matrix &matrix, const Weight &weight, std::int64_t parts, std::span<double> u, Team &team) {
    const std::size_t d = at(matrix.cols());
    std::vector<std::vector<double>> sums(at(parts)); // each made by its thread: no two in one line of the cache
    team.for_each(parts, static_cast<double>(matrix.nonzeros()), [&](std::int64_t k) {
        std::vector<double> own(d, 0.0);
        const auto begin = [&](std::int64_t part) {
            return static_cast<std::int64_t>(part_begin(at(part), at(parts), at(matrix.rows())));
        };
        for (std::int64_t i = begin(k); i < begin(k + 1); ++i) {
            const double alpha = weight(i);
            if (alpha != 0) axpy(alpha, matrix.row(i), own.data());
        }
        sums[at(k)] = std::move(own);
    });
    std::fill(u.begin(), u.begin() + matrix.cols(), 0.0);
    for (const std::vector<double> &own : sums) {
        for (std::size_t j = 0; j < d; ++j) u[j] += own[j];
    }
}

} // namespace

void predict(const Problem &problem, std::span<const double> x, std::span<double> z, Team &team) {
    const double constant = problem.has_intercept() ? x.back() : 0.0;
    const auto weights = x.first(at(problem.features()));
    if (are_zero(weights, team)) { // where every run starts
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
        if (16 * row_parts * matrix.cols() <= matrix.nonzeros()) { // the sums take half a byte an entry at most
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
