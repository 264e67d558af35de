// Read-only matrices: spans over somebody's memory and a shared owner that keeps it alive, so that a file, a memory map
// and an array of another language enter without a copy. Values stay float or double as they came; sums are in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace spdc {

/// The stored entries of one row of a CsrMatrix, columns strictly ascending.
template <class Value, class Index = std::int32_t> struct CsrRow {
    const Index *columns;
    const Value *values;
    std::int64_t count;

    std::int64_t size() const noexcept { return count; }
    std::int32_t column(std::int64_t p) const noexcept { return static_cast<std::int32_t>(columns[p]); }
    double value(std::int64_t p) const noexcept { return static_cast<double>(values[p]); }
    void prefetch(std::int64_t p) const noexcept {
        __builtin_prefetch(columns + p);
        __builtin_prefetch(values + p);
        if constexpr (sizeof(Value) > sizeof(*columns)) __builtin_prefetch(values + p + 8);
    }
    /// First entry whose column is not below `column`: where a thread that owns columns [column, ...) starts.
    std::int64_t lower_bound(std::int64_t column) const noexcept;
};

/// One row of a DenseMatrix: every column is an entry.
template <class Value> struct DenseRow {
    const Value *values;
    std::int64_t count;

    std::int64_t size() const noexcept { return count; }
    std::int32_t column(std::int64_t p) const noexcept { return static_cast<std::int32_t>(p); }
    double value(std::int64_t p) const noexcept { return static_cast<double>(values[p]); }
    void prefetch(std::int64_t p) const noexcept { __builtin_prefetch(values + p); }
    std::int64_t lower_bound(std::int64_t column) const noexcept { return column < count ? column : count; }
};

/// A check that waits until data are first used: those of a memory-mapped file, which opening does not read, or values, which a solver
/// reads anyway.
class DeferredCheck {
  public:
    explicit DeferredCheck(std::function<void()> check, bool is_of_values = false)
        : check_(std::move(check)), is_of_values_(is_of_values) {}
    /// Runs the check unless it has passed before; throws what it throws.
    void run() {
        const std::lock_guard lock(mutex_);
        if (check_) check_();
        check_ = nullptr;
    }
    /// For who has seen on another way that it would pass.
    void pass() {
        const std::lock_guard lock(mutex_);
        check_ = nullptr;
    }
    /// Whether it waits, and is of values alone: all else is known to be good.
    bool awaits_values() {
        const std::lock_guard lock(mutex_);
        return is_of_values_ && check_;
    }

  private:
    std::mutex mutex_;
    std::function<void()> check_;
    const bool is_of_values_;
};

/// Compressed sparse rows: 64-bit offsets, columns below 2^31, strictly ascending inside a row, values finite. Readers make 32-bit
/// columns; 64-bit ones are those of others, SciPy's say, which are read where they are.
template <class Value, class Index = std::int32_t> class CsrMatrix {
  public:
    using value_type = Value;
    using Row = CsrRow<Value, Index>;

    CsrMatrix() = default;
    /// Views; `owner` keeps the memory alive. Throws Error when the invariants above do not hold.
    CsrMatrix(std::int64_t cols, std::span<const std::int64_t> offsets, std::span<const Index> columns,
              std::span<const Value> values, std::shared_ptr<const void> owner);
    /// The same without checks: for a reader that has made them, or leaves them to the first call of check().
    static CsrMatrix trusted(std::int64_t cols, std::span<const std::int64_t> offsets, std::span<const Index> columns,
                             std::span<const Value> values, std::shared_ptr<const void> owner,
                             std::shared_ptr<DeferredCheck> pending = nullptr);
    /// Views as of the constructor, but that the values are finite is left to the first call of check(), or to solve().
    static CsrMatrix with_unseen_values(std::int64_t cols, std::span<const std::int64_t> offsets,
                                        std::span<const Index> columns, std::span<const Value> values,
                                        std::shared_ptr<const void> owner);
    /// Takes over the vectors.
    static CsrMatrix own(std::int64_t cols, std::vector<std::int64_t> offsets, std::vector<Index> columns,
                         std::vector<Value> values);

    /// Throws Error unless the invariants hold, of offsets and of the rows that they tell, the first of that number.
    static void check_offsets(std::span<const std::int64_t> offsets, std::uint64_t entries);
    static void check_rows(std::span<const std::int64_t> offsets, std::span<const Index> columns,
                           std::span<const Value> values, std::int64_t first, std::int64_t cols);
    /// Makes the check that trusted() was given, once. Before it, nothing but rows() and cols() may be used.
    void check() const {
        if (pending_) pending_->run();
    }
    DeferredCheck *pending() const noexcept { return pending_.get(); }

    std::int64_t rows() const noexcept { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t cols() const noexcept { return cols_; }
    std::int64_t nonzeros() const noexcept { return offsets_.back() - offsets_.front(); }
    std::span<const std::int64_t> offsets() const noexcept { return offsets_; }
    std::span<const Index> columns() const noexcept { return columns_; }
    std::span<const Value> values() const noexcept { return values_; }
    Row row(std::int64_t i) const noexcept {
        const std::int64_t begin = offsets_[static_cast<std::size_t>(i)];
        return {columns_.data() + begin, values_.data() + begin, offsets_[static_cast<std::size_t>(i) + 1] - begin};
    }
    /// The same entries, not copied, in a matrix of `cols` columns, at least the present number.
    CsrMatrix with_columns(std::int64_t cols) const;

  private:
    void check_places() const;
    void check_values() const;
    static void check_row(const Row &row, std::int64_t number, std::int64_t cols);

    static constexpr std::int64_t no_rows_ = 0;
    std::int64_t cols_ = 0;
    std::span<const std::int64_t> offsets_{&no_rows_, 1};
    std::span<const Index> columns_;
    std::span<const Value> values_;
    std::shared_ptr<const void> owner_;
    std::shared_ptr<DeferredCheck> pending_;
};

/// Rows one after another, `stride` values apart, values finite.
template <class Value> class DenseMatrix {
  public:
    using value_type = Value;
    using Row = DenseRow<Value>;

    DenseMatrix() = default;
    /// A view; `owner` keeps the memory alive. Throws Error unless stride >= cols and all values are finite.
    DenseMatrix(std::int64_t rows, std::int64_t cols, const Value *data, std::int64_t stride,
                std::shared_ptr<const void> owner);
    /// Takes over rows times cols values, row after row.
    static DenseMatrix own(std::int64_t rows, std::int64_t cols, std::vector<Value> values);
    /// As in CsrMatrix; the sizes must be right.
    static DenseMatrix trusted(std::int64_t rows, std::int64_t cols, const Value *data, std::int64_t stride,
                               std::shared_ptr<const void> owner, std::shared_ptr<DeferredCheck> pending);
    /// Rows of so many columns one after the other, the first of that number.
    static void check_rows(std::span<const Value> values, std::int64_t first, std::int64_t cols);
    void check() const {
        if (pending_) pending_->run();
    }
    DeferredCheck *pending() const noexcept { return pending_.get(); }

    std::int64_t rows() const noexcept { return rows_; }
    std::int64_t cols() const noexcept { return cols_; }
    std::int64_t nonzeros() const noexcept { return rows_ * cols_; }
    Row row(std::int64_t i) const noexcept { return {data_ + i * stride_, cols_}; }
    bool is_contiguous() const noexcept { return stride_ == cols_; }

  private:
    std::int64_t rows_ = 0;
    std::int64_t cols_ = 0;
    std::int64_t stride_ = 0;
    const Value *data_ = nullptr;
    std::shared_ptr<const void> owner_;
    std::shared_ptr<DeferredCheck> pending_;
};

using AnyMatrix = std::variant<CsrMatrix<float>, CsrMatrix<double>, DenseMatrix<float>, DenseMatrix<double>,
                               CsrMatrix<float, std::int64_t>, CsrMatrix<double, std::int64_t>>;

std::int64_t rows(const AnyMatrix &matrix) noexcept;
std::int64_t cols(const AnyMatrix &matrix) noexcept;
/// Stored entries: for a dense matrix rows times columns.
std::int64_t nonzeros(const AnyMatrix &matrix) noexcept;

bool has_floats(const AnyMatrix &matrix) noexcept;
bool is_sparse(const AnyMatrix &matrix) noexcept;
/// Whether its columns are 64-bit.
bool is_wide(const AnyMatrix &matrix) noexcept;

/// Makes a check that is still pending; throws Error when it fails.
void check(const AnyMatrix &matrix);
/// The check that is still pending when it is of values alone, else null.
DeferredCheck *pending_values(const AnyMatrix &matrix);

/// The rows listed in `keep`, in that order, in memory of their own.
AnyMatrix select_rows(const AnyMatrix &matrix, std::span<const std::int64_t> keep);

/// The same matrix with `cols` columns (empty ones on the right); `cols` must not be below the present number.
AnyMatrix with_columns(const AnyMatrix &matrix, std::int64_t cols);

} // namespace spdc
