#include "spdc/matrix.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace spdc {

namespace {

// Columns are 32-bit, so this many can be told apart.
constexpr std::int64_t most_columns = std::int64_t{1} << 31;

void check_columns(std::int64_t cols) {
    if (cols < 0 || cols > most_columns) {
        fail(ErrorKind::invalid_argument, fmt::format("matrix: {} columns, expected 0 to {}", cols, most_columns));
    }
}

} // namespace

template <class Value>
void CsrMatrix<Value>::check_offsets(std::span<const std::int64_t> offsets, std::uint64_t entries) {
    if (offsets.empty()) {
        fail(ErrorKind::invalid_argument, "matrix: no offsets, expected one more than there are rows");
    }
    if (offsets.front() < 0) {
        fail(ErrorKind::invalid_argument, fmt::format("matrix: first offset {}, expected 0 or more", offsets.front()));
    }
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] < offsets[i - 1]) {
            fail(ErrorKind::invalid_argument, fmt::format("matrix: offset {} of row {} follows {}, expected no descent",
                                                          offsets[i], i, offsets[i - 1]));
        }
    }
    if (static_cast<std::uint64_t>(offsets.back()) > entries) {
        fail(ErrorKind::invalid_argument,
             fmt::format("matrix: last offset {}, expected at most the {} entries given", offsets.back(), entries));
    }
}

// The first loop finds whether anything is wrong, with many entries at a time; the second, what.
template <class Value> void CsrMatrix<Value>::check_row(const Row &row, std::int64_t number, std::int64_t cols) {
    const std::int64_t count = row.size();
    bool good = count == 0 || (row.columns[0] >= 0 && row.columns[count - 1] < cols);
    for (std::int64_t p = 1; p < count; ++p) good &= row.columns[p - 1] < row.columns[p];
    for (std::int64_t p = 0; p < count; ++p) good &= std::fabs(row.values[p]) <= std::numeric_limits<Value>::max();
    if (good) return;
    std::int64_t previous = -1;
    for (std::int64_t p = 0; p < row.size(); ++p) {
        const std::int64_t column = row.column(p);
        if (column <= previous || column >= cols) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("matrix: row {}: column {} after column {}, expected ascending columns from 0 to {}",
                             number, column, previous, cols - 1));
        }
        if (!std::isfinite(row.value(p))) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("matrix: row {}, column {}: value {}, expected a finite number", number, column,
                             row.value(p)));
        }
        previous = column;
    }
}

template <class Value> void DenseMatrix<Value>::check_row(const Row &row, std::int64_t number) {
    bool good = true;
    for (std::int64_t p = 0; p < row.count; ++p) good &= std::fabs(row.values[p]) <= std::numeric_limits<Value>::max();
    for (std::int64_t j = 0; !good && j < row.count; ++j) {
        if (!std::isfinite(row.values[j])) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("matrix: row {}, column {}: value {}, expected a finite number", number, j, row.value(j)));
        }
    }
}

namespace {

void check_kept(std::span<const std::int64_t> keep, std::int64_t count) {
    for (const std::int64_t i : keep) {
        if (i < 0 || i >= count) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("select_rows: row {}, expected 0 to {} (the matrix has {} rows)", i, count - 1, count));
        }
    }
}

template <class Value> CsrMatrix<Value> selected(const CsrMatrix<Value> &matrix, std::span<const std::int64_t> keep) {
    std::vector<std::int64_t> offsets{0};
    offsets.reserve(keep.size() + 1);
    for (const std::int64_t i : keep) {
        offsets.push_back(offsets.back() + matrix.row(i).size());
    }
    std::vector<std::int32_t> columns;
    std::vector<Value> values;
    columns.reserve(static_cast<std::size_t>(offsets.back()));
    values.reserve(static_cast<std::size_t>(offsets.back()));
    for (const std::int64_t i : keep) {
        const CsrRow<Value> row = matrix.row(i);
        columns.insert(columns.end(), row.columns, row.columns + row.count);
        values.insert(values.end(), row.values, row.values + row.count);
    }
    return CsrMatrix<Value>::own(matrix.cols(), std::move(offsets), std::move(columns), std::move(values));
}

template <class Value>
DenseMatrix<Value> selected(const DenseMatrix<Value> &matrix, std::span<const std::int64_t> keep) {
    std::vector<Value> values;
    values.reserve(keep.size() * static_cast<std::size_t>(matrix.cols()));
    for (const std::int64_t i : keep) {
        const DenseRow<Value> row = matrix.row(i);
        values.insert(values.end(), row.values, row.values + row.count);
    }
    return DenseMatrix<Value>::own(static_cast<std::int64_t>(keep.size()), matrix.cols(), std::move(values));
}

template <class Value> CsrMatrix<Value> widened(const CsrMatrix<Value> &matrix, std::int64_t cols) {
    return matrix.with_columns(cols);
}

template <class Value> DenseMatrix<Value> widened(const DenseMatrix<Value> &matrix, std::int64_t cols) {
    if (cols == matrix.cols()) {
        return matrix;
    }
    matrix.check();
    std::vector<Value> values(static_cast<std::size_t>(matrix.rows()) * static_cast<std::size_t>(cols));
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        const DenseRow<Value> row = matrix.row(i);
        std::copy_n(row.values, row.count, values.data() + i * cols);
    }
    return DenseMatrix<Value>::own(matrix.rows(), cols, std::move(values));
}

} // namespace

template <class Value> std::int64_t CsrRow<Value>::lower_bound(std::int64_t column) const noexcept {
    return std::lower_bound(columns, columns + count, column) - columns;
}

template <class Value>
CsrMatrix<Value>::CsrMatrix(std::int64_t cols, std::span<const std::int64_t> offsets,
                            std::span<const std::int32_t> columns, std::span<const Value> values,
                            std::shared_ptr<const void> owner)
    : cols_(cols), offsets_(offsets), columns_(columns), values_(values), owner_(std::move(owner)) {
    check_columns(cols);
    if (columns.size() != values.size()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("matrix: {} columns entries and {} values, expected as many", columns.size(), values.size()));
    }
    check_offsets(offsets, values.size());
    for (std::int64_t i = 0; i < rows(); ++i) {
        check_row(row(i), i, cols);
    }
}

template <class Value>
CsrMatrix<Value> CsrMatrix<Value>::trusted(std::int64_t cols, std::span<const std::int64_t> offsets,
                                           std::span<const std::int32_t> columns, std::span<const Value> values,
                                           std::shared_ptr<const void> owner, std::shared_ptr<DeferredCheck> pending) {
    CsrMatrix matrix;
    matrix.cols_ = cols;
    matrix.offsets_ = offsets;
    matrix.columns_ = columns;
    matrix.values_ = values;
    matrix.owner_ = std::move(owner);
    matrix.pending_ = std::move(pending);
    return matrix;
}

template <class Value>
CsrMatrix<Value> CsrMatrix<Value>::own(std::int64_t cols, std::vector<std::int64_t> offsets,
                                       std::vector<std::int32_t> columns, std::vector<Value> values) {
    struct Owner {
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t> columns;
        std::vector<Value> values;
    };
    auto owner = std::make_shared<const Owner>(Owner{std::move(offsets), std::move(columns), std::move(values)});
    return CsrMatrix(cols, owner->offsets, owner->columns, owner->values, owner);
}

template <class Value> CsrMatrix<Value> CsrMatrix<Value>::with_columns(std::int64_t cols) const {
    check_columns(cols);
    if (cols < cols_) {
        fail(ErrorKind::invalid_argument,
             fmt::format("with_columns: {} columns asked, expected at least the {} present", cols, cols_));
    }
    CsrMatrix wider = *this;
    wider.cols_ = cols;
    return wider;
}

template <class Value>
DenseMatrix<Value>::DenseMatrix(std::int64_t rows, std::int64_t cols, const Value *data, std::int64_t stride,
                                std::shared_ptr<const void> owner)
    : rows_(rows), cols_(cols), stride_(stride), data_(data), owner_(std::move(owner)) {
    check_columns(cols);
    if (rows < 0 || stride < cols) {
        fail(ErrorKind::invalid_argument,
             fmt::format("matrix: {} rows of {} columns, {} values apart; expected rows >= 0 and stride >= columns",
                         rows, cols, stride));
    }
    if (stride > 0 && rows > std::numeric_limits<std::int64_t>::max() / stride) {
        fail(ErrorKind::invalid_argument, fmt::format("matrix: {} rows, {} values apart, is too large", rows, stride));
    }
    if (data == nullptr && rows > 0 && cols > 0) {
        fail(ErrorKind::invalid_argument, fmt::format("matrix: no data for {} rows of {} columns", rows, cols));
    }
    for (std::int64_t i = 0; i < rows && cols > 0; ++i) {
        check_row(row(i), i);
    }
}

template <class Value>
DenseMatrix<Value> DenseMatrix<Value>::own(std::int64_t rows, std::int64_t cols, std::vector<Value> values) {
    const bool fits = rows >= 0 && cols >= 0 && (cols == 0 || rows <= std::numeric_limits<std::int64_t>::max() / cols);
    if (!fits || values.size() != static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(cols)) {
        fail(ErrorKind::invalid_argument,
             fmt::format("matrix: {} values for {} rows of {} columns", values.size(), rows, cols));
    }
    auto owner = std::make_shared<const std::vector<Value>>(std::move(values));
    return DenseMatrix(rows, cols, owner->data(), cols, owner);
}

template <class Value>
DenseMatrix<Value> DenseMatrix<Value>::trusted(std::int64_t rows, std::int64_t cols, const Value *data,
                                               std::int64_t stride, std::shared_ptr<const void> owner,
                                               std::shared_ptr<DeferredCheck> pending) {
    DenseMatrix matrix;
    matrix.rows_ = rows;
    matrix.cols_ = cols;
    matrix.stride_ = stride;
    matrix.data_ = data;
    matrix.owner_ = std::move(owner);
    matrix.pending_ = std::move(pending);
    return matrix;
}

template struct CsrRow<float>;
template struct CsrRow<double>;
template class CsrMatrix<float>;
template class CsrMatrix<double>;
template class DenseMatrix<float>;
template class DenseMatrix<double>;

std::int64_t rows(const AnyMatrix &matrix) noexcept {
    return std::visit([](const auto &m) { return m.rows(); }, matrix);
}

std::int64_t cols(const AnyMatrix &matrix) noexcept {
    return std::visit([](const auto &m) { return m.cols(); }, matrix);
}

std::int64_t nonzeros(const AnyMatrix &matrix) noexcept {
    return std::visit([](const auto &m) { return m.nonzeros(); }, matrix);
}

void check(const AnyMatrix &matrix) {
    std::visit([](const auto &m) { m.check(); }, matrix);
}

AnyMatrix select_rows(const AnyMatrix &matrix, std::span<const std::int64_t> keep) {
    check(matrix);
    check_kept(keep, rows(matrix));
    return std::visit([&](const auto &m) { return AnyMatrix(selected(m, keep)); }, matrix);
}

AnyMatrix with_columns(const AnyMatrix &matrix, std::int64_t cols) {
    check_columns(cols);
    if (cols < spdc::cols(matrix)) {
        fail(ErrorKind::invalid_argument,
             fmt::format("with_columns: {} columns asked, expected at least the {} present", cols, spdc::cols(matrix)));
    }
    return std::visit([&](const auto &m) { return AnyMatrix(widened(m, cols)); }, matrix);
}

} // namespace spdc
