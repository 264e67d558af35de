#include "column_matrix.h"

#include "parallel.h"

#include <algorithm>
#include <variant>

namespace spdc {

namespace {

/// Zeros of dense data stay out; explicit ones of sparse data are few and harmless.
template <class Value, class Index> bool is_entry(const CsrRow<Value, Index> &, std::int64_t) { return true; }
template <class Value> bool is_entry(const DenseRow<Value> &row, std::int64_t p) { return row.values[p] != 0; }

} // namespace

template <class Value> ColumnMatrix<Value>::ColumnMatrix(const Problem &problem, std::span<const std::uint8_t> wanted) {
    const auto features = static_cast<std::size_t>(problem.features());
    const std::vector<std::uint8_t> all(wanted.empty() ? static_cast<std::size_t>(problem.dimension()) : 0, 1);
    if (wanted.empty()) wanted = all;
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
    for (std::size_t j = 1; j < offsets_.size(); ++j) offsets_[j] = wanted[j - 1] * offsets_[j] + offsets_[j - 1];
    const auto end = static_cast<std::size_t>(offsets_.back());
    rows_.resize(end + 1); // where the entries of the others go
    values_.resize(end + 1);
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::size_t j = 0; j < next.size(); ++j) next[j] = wanted[j] ? next[j] : offsets_.back();
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                const auto row = matrix.row(i);
                interruption_point(8 * row.size()); // new pages
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    if (!is_entry(row, p)) continue;
                    const auto j = static_cast<std::size_t>(row.column(p));
                    const auto place = static_cast<std::size_t>(next[j]);
                    rows_[place] = static_cast<std::int32_t>(i);
                    values_[place] = static_cast<Value>(row.value(p));
                    next[j] += wanted[j];
                    __builtin_prefetch(&rows_[place] + 16,
                                       1); // the column's next lines: the hardware cannot guess so many
                    __builtin_prefetch(&values_[place] + 64 / sizeof(Value), 1);
                }
            }
        },
        problem.matrix());
    if (!problem.has_intercept() || !wanted[features]) return;
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        const auto place = static_cast<std::size_t>(offsets_[features] + i);
        rows_[place] = static_cast<std::int32_t>(i);
        values_[place] = 1;
    }
}

template class ColumnMatrix<float>;
template class ColumnMatrix<double>;

} // namespace spdc
