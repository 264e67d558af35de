#include "column_matrix.h"

#include "parallel.h"

#include <algorithm>
#include <variant>

namespace spdc {

namespace {

/// Zeros of dense data stay out; explicit ones of sparse data are few and harmless.
template <class Value, class Index> bool is_entry(const CsrRow<Value, Index> &, std::int64_t) { return true; }
template <class Value> bool is_entry(const DenseRow<Value> &row, std::int64_t p) { return row.values[p] != 0; }

/// Calls visit(i, row, p) for all entries, panel after panel of the columns, so that the ends of the columns being filled stay in
/// the cache; a panel narrow enough for that, but with some entries of every row.
template <class Matrix, class Visit> void each_entry_by_panels(const Matrix &matrix, Visit &&visit) {
    constexpr std::int64_t narrow = 256, entries = 16;
    const std::int64_t rows = matrix.rows();
    const std::int64_t fewest = matrix.cols() / narrow,
                       most = matrix.nonzeros() / std::max<std::int64_t>(1, entries * rows);
    const std::int64_t panels = std::max<std::int64_t>(1, std::min(fewest, most));
    std::vector<std::int64_t> next(static_cast<std::size_t>(rows), 0);
    for (std::int64_t panel = 1; panel <= panels; ++panel) {
        const std::int64_t end = matrix.cols() * panel / panels;
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto row = matrix.row(i);
            std::int64_t p = next[static_cast<std::size_t>(i)];
            for (; p < row.size() && row.column(p) < end; ++p) visit(i, row, p);
            interruption_point(8 * (p - next[static_cast<std::size_t>(i)])); // new pages
            next[static_cast<std::size_t>(i)] = p;
        }
    }
}

} // namespace

template <class Value> ColumnMatrix<Value>::ColumnMatrix(const Problem &problem) {
    const auto features = static_cast<std::size_t>(problem.features());
    offsets_.assign(static_cast<std::size_t>(problem.dimension()) + 1, 0);
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                const auto row = matrix.row(i);
                interruption_point(row.size());
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    offsets_[static_cast<std::size_t>(row.column(p)) + 1] += is_entry(row, p);
                }
            }
        },
        problem.matrix());
    if (problem.has_intercept()) offsets_[features + 1] = problem.rows();
    for (std::size_t j = 1; j < offsets_.size(); ++j) offsets_[j] += offsets_[j - 1];
    rows_.resize(static_cast<std::size_t>(offsets_.back()));
    values_.resize(static_cast<std::size_t>(offsets_.back()));
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    std::visit(
        [&](const auto &matrix) {
            each_entry_by_panels(matrix, [&](std::int64_t i, const auto &row, std::int64_t p) {
                if (!is_entry(row, p)) return;
                const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(row.column(p))]++);
                rows_[place] = static_cast<std::int32_t>(i);
                values_[place] = static_cast<Value>(row.value(p));
            });
        },
        problem.matrix());
    if (!problem.has_intercept()) return;
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        const auto place = static_cast<std::size_t>(offsets_[features] + i);
        rows_[place] = static_cast<std::int32_t>(i);
        values_[place] = 1;
    }
}

template class ColumnMatrix<float>;
template class ColumnMatrix<double>;

} // namespace spdc
