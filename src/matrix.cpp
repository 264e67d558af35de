#include "spdc/matrix.h"

#include "parallel.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
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

// The looks at every entry: without branches and in integers of the entries' size, so that they run at the speed of memory.

/// The exponent of NaN and of infinity is all ones: one more runs over into the sign.
template <class Value> bool are_finite(const Value *values, std::int64_t count) noexcept {
    using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits exponent = std::bit_cast<Bits>(std::numeric_limits<Value>::infinity());
    constexpr Bits lowest = exponent & (~exponent + 1), sign = ~(~Bits{0} >> 1);
    Bits seen = 0;
    for (std::int64_t p = 0; p < count; ++p) seen |= (std::bit_cast<Bits>(values[p]) & exponent) + lowest;
    return (seen & sign) == 0;
}

/// The places where a column does not come after the one before it; nothing when a column is negative.
template <class Index> std::optional<std::int64_t> count_descents(std::span<const Index> columns) noexcept {
    using Bits = std::make_unsigned_t<Index>;
    constexpr int sign = std::numeric_limits<Bits>::digits - 1;
    constexpr std::size_t chunk = std::size_t{1} << 30; // so that 32 bits can count
    std::int64_t total = 0;
    Bits seen = columns.empty() ? 0 : static_cast<Bits>(columns[0]);
    for (std::size_t begin = 1; begin < columns.size(); begin += chunk) {
        const std::size_t end = std::min(columns.size(), begin + chunk);
        Bits count = 0;
        for (std::size_t p = begin; p < end; ++p) {
            const auto before = static_cast<Bits>(columns[p - 1]), column = static_cast<Bits>(columns[p]);
            seen |= column;
            count += (column - before - 1) >> sign; // the sign of the difference, while neither is negative
        }
        total += static_cast<std::int64_t>(count);
    }
    return seen >> sign ? std::nullopt : std::optional(total);
}

/// Whether the columns ascend in every row and end below `cols`: as many descents as there are from row to row. One loop over all
/// entries takes half the time of one for each row, whose ends no branch predictor knows.
template <class Index>
bool ascend_together(std::span<const std::int64_t> offsets, std::span<const Index> columns, std::int64_t cols) {
    const auto first = static_cast<std::size_t>(offsets.front()), last = static_cast<std::size_t>(offsets.back());
    const auto descents = count_descents(columns.subspan(first, last - first));
    std::int64_t between = 0;
    bool good = true;
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        const auto begin = static_cast<std::size_t>(offsets[i - 1]), end = static_cast<std::size_t>(offsets[i]);
        if (begin == end) continue;
        if (begin > first) between += columns[begin] <= columns[begin - 1] ? 1 : 0;
        good &= columns[end - 1] < cols;
    }
    return good && descents == between;
}

/// The same some rows at a time, whose ends are then still in the cache: three quarters of the time.
template <class Index>
bool are_ascending(std::span<const std::int64_t> offsets, std::span<const Index> columns, std::int64_t cols) {
    constexpr std::size_t group = 64;
    for (std::size_t i = 0; i + 1 < offsets.size(); i += group) {
        const auto some = offsets.subspan(i, std::min(group + 1, offsets.size() - i));
        if (!ascend_together(some, columns, cols)) return false;
    }
    return true;
}

} // namespace

template <class Value, class Index>
void CsrMatrix<Value, Index>::check_offsets(std::span<const std::int64_t> offsets, std::uint64_t entries) {
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

template <class Value, class Index>
void CsrMatrix<Value, Index>::check_row(const Row &row, std::int64_t number, std::int64_t cols) {
    std::int64_t previous = -1;
    for (std::int64_t p = 0; p < row.size(); ++p) {
        const std::int64_t column = row.columns[p]; // all 64 bits of a wide one
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

/// All at once; row by row only to say what is wrong with the first entry that is.
template <class Value, class Index>
void CsrMatrix<Value, Index>::check_rows(std::span<const std::int64_t> offsets, std::span<const Index> columns,
                                         std::span<const Value> values, std::int64_t first, std::int64_t cols) {
    const std::int64_t begin = offsets.front();
    if (are_ascending(offsets, columns, cols) && are_finite(values.data() + begin, offsets.back() - begin)) return;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        const Row row{columns.data() + offsets[i], values.data() + offsets[i], offsets[i + 1] - offsets[i]};
        check_row(row, first + static_cast<std::int64_t>(i), cols);
    }
}

template <class Value>
void DenseMatrix<Value>::check_rows(std::span<const Value> values, std::int64_t first, std::int64_t cols) {
    if (are_finite(values.data(), std::ssize(values))) return;
    const auto bad = std::ranges::find_if(values, [](Value value) { return !std::isfinite(value); });
    const std::int64_t place = bad - values.begin();
    fail(ErrorKind::invalid_argument, fmt::format("matrix: row {}, column {}: value {}, expected a finite number",
                                                  first + place / cols, place % cols, static_cast<double>(*bad)));
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

template <class Value, class Index>
CsrMatrix<Value> selected(const CsrMatrix<Value, Index> &matrix, std::span<const std::int64_t> keep) {
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
        const auto row = matrix.row(i);
        interruption_point(row.count);
        for (std::int64_t p = 0; p < row.count; ++p) columns.push_back(row.column(p));
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
        interruption_point(row.count);
        values.insert(values.end(), row.values, row.values + row.count);
    }
    return DenseMatrix<Value>::own(static_cast<std::int64_t>(keep.size()), matrix.cols(), std::move(values));
}

template <class Value, class Index>
CsrMatrix<Value, Index> widened(const CsrMatrix<Value, Index> &matrix, std::int64_t cols) {
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

template <class Value, class Index> std::int64_t CsrRow<Value, Index>::lower_bound(std::int64_t column) const noexcept {
    return std::lower_bound(columns, columns + count, column) - columns;
}

template <class Value, class Index>
CsrMatrix<Value, Index>::CsrMatrix(std::int64_t cols, std::span<const std::int64_t> offsets,
                                   std::span<const Index> columns, std::span<const Value> values,
                                   std::shared_ptr<const void> owner)
    : cols_(cols), offsets_(offsets), columns_(columns), values_(values), owner_(std::move(owner)) {
    check_places();
    check_values();
}

template <class Value, class Index>
CsrMatrix<Value, Index>
CsrMatrix<Value, Index>::with_unseen_values(std::int64_t cols, std::span<const std::int64_t> offsets,
                                            std::span<const Index> columns, std::span<const Value> values,
                                            std::shared_ptr<const void> owner) {
    CsrMatrix matrix = trusted(cols, offsets, columns, values, nullptr);
    matrix.check_places();
    // without an owner: the matrix that has the check keeps the memory alive
    matrix.pending_ = std::make_shared<DeferredCheck>([matrix] { matrix.check_values(); }, true);
    matrix.owner_ = std::move(owner);
    return matrix;
}

template <class Value, class Index> void CsrMatrix<Value, Index>::check_places() const {
    check_columns(cols_);
    if (columns_.size() != values_.size()) {
        fail(ErrorKind::invalid_argument, fmt::format("matrix: {} columns entries and {} values, expected as many",
                                                      columns_.size(), values_.size()));
    }
    check_offsets(offsets_, values_.size());
    if (!are_ascending(offsets_, columns_, cols_)) check_rows(offsets_, columns_, values_, 0, cols_);
}

template <class Value, class Index> void CsrMatrix<Value, Index>::check_values() const {
    if (!are_finite(values_.data() + offsets_.front(), nonzeros())) check_rows(offsets_, columns_, values_, 0, cols_);
}

template <class Value, class Index>
CsrMatrix<Value, Index> CsrMatrix<Value, Index>::trusted(std::int64_t cols, std::span<const std::int64_t> offsets,
                                                         std::span<const Index> columns, std::span<const Value> values,
                                                         std::shared_ptr<const void> owner,
                                                         std::shared_ptr<DeferredCheck> pending) {
    CsrMatrix matrix;
    matrix.cols_ = cols;
    matrix.offsets_ = offsets;
    matrix.columns_ = columns;
    matrix.values_ = values;
    matrix.owner_ = std::move(owner);
    matrix.pending_ = std::move(pending);
    return matrix;
}

template <class Value, class Index>
CsrMatrix<Value, Index> CsrMatrix<Value, Index>::own(std::int64_t cols, std::vector<std::int64_t> offsets,
                                                     std::vector<Index> columns, std::vector<Value> values) {
    struct Owner {
        std::vector<std::int64_t> offsets;
        std::vector<Index> columns;
        std::vector<Value> values;
    };
    auto owner = std::make_shared<const Owner>(Owner{std::move(offsets), std::move(columns), std::move(values)});
    return CsrMatrix(cols, owner->offsets, owner->columns, owner->values, owner);
}

template <class Value, class Index>
CsrMatrix<Value, Index> CsrMatrix<Value, Index>::with_columns(std::int64_t cols) const {
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
    const bool good = stride == cols && are_finite(data, rows * cols);
    for (std::int64_t i = 0; !good && i < rows && cols > 0; ++i) {
        check_rows({data_ + i * stride_, static_cast<std::size_t>(cols)}, i, cols);
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
template struct CsrRow<float, std::int64_t>;
template struct CsrRow<double, std::int64_t>;
template class CsrMatrix<float>;
template class CsrMatrix<double>;
template class CsrMatrix<float, std::int64_t>;
template class CsrMatrix<double, std::int64_t>;
template class DenseMatrix<float>;
template class DenseMatrix<double>;

bool has_floats(const AnyMatrix &matrix) noexcept {
    return std::visit([]<class Matrix>(const Matrix &) { return std::is_same_v<typename Matrix::value_type, float>; },
                      matrix);
}

bool is_sparse(const AnyMatrix &matrix) noexcept {
    return std::visit(
        [](const auto &m) {
            return requires { m.offsets(); };
        },
        matrix);
}

bool is_wide(const AnyMatrix &matrix) noexcept {
    return std::holds_alternative<CsrMatrix<float, std::int64_t>>(matrix) ||
           std::holds_alternative<CsrMatrix<double, std::int64_t>>(matrix);
}

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

DeferredCheck *pending_values(const AnyMatrix &matrix) {
    DeferredCheck *const pending = std::visit([](const auto &m) { return m.pending(); }, matrix);
    return pending && pending->awaits_values() ? pending : nullptr;
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
