// Rows as spdc_fast visits them: shuffled once, in blocks.
#pragma once

#include "huge_pages.h"
#include "methods.h"
#include "parallel.h"
#include "random.h"
#include "spdc_fast.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace spdc {

/// What a visit needs of a row beside its entries, in half a cache line.
struct alignas(32) RowState {
    std::int64_t begin; // of its entries; they end where the next row's begin
    double y, norm2;    // norm2: of sqrt(omega) a, see spdc.cpp
    double b;           // where the loss keeps a logit: that, and b = 1 or -1 is the sign of norm2
};

/// Memory likes blocks of rows that follow one another, visited in random order: a third of the time of single rows on covtype, two
/// thirds on rcv1. But rows that are always visited together count as one where they are much alike: they do one another's work.
/// Squared loss on covtype needs 29 passes with single rows, 53 with blocks of 4, 86 with blocks of 8, and 32 where the rows of four
/// blocks of 8 take turns. Larger blocks need a random direction, too: 32 rows take 31 passes with it and 69 without, 64 rows 32
/// and 379. And a few pairs of rows that are nearly the same, always visited in the same order, may keep the gap from falling at all:
/// text of pieces of files, in their order, stayed at 4e-4 for thousands of passes with blocks of 8 that knew no directions.
/// So rows of text come in blocks, others take turns, and those that stay in a near cache go singly. So do rows of hundreds of entries: text of 750 words
/// a row, sorted by its source, takes 14 passes with blocks of 8 rows, four of them in turn, and 9 with single rows.
struct VisitingOrder {
    std::size_t rows = 1, streams = 1; // of a block, and blocks whose rows take turns
    bool has_directions() const noexcept { return rows > 1; }
};

/// Whether rows are long and few of their entries are 0, judged by some of them: reading all columns in a row takes half the time of looking
/// them up.
template <class Matrix> bool is_nearly_full(const Matrix &matrix) {
    constexpr std::int64_t long_row = 64, most_rows = 64;
    constexpr double least = 0.7; // so that a copy with the zeros is no larger than sparse rows are
    if (matrix.cols() < long_row) return false;
    if constexpr (requires { matrix.offsets(); }) {
        const double cells = static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols());
        if (static_cast<double>(matrix.nonzeros()) < least * cells) return false;
    }
    const std::int64_t step = std::max<std::int64_t>(1, matrix.rows() / most_rows);
    std::int64_t looked_at = 0, filled = 0;
    for (std::int64_t i = 0; i < matrix.rows(); i += step, ++looked_at) {
        const auto row = matrix.row(i);
        interruption_point(row.size());
        for (std::int64_t q = 0; q < row.size(); ++q) filled += row.value(q) != 0 ? 1 : 0;
    }
    return static_cast<double>(filled) >= least * static_cast<double>(looked_at * matrix.cols());
}

/// Rows to visit in random order: a copy in that order, so that a block of short rows is a sequential read, or the problem's own,
/// where they are in random order already, or long enough to be sequential reads themselves, or no copy is wanted; or all columns of all rows
/// where those are nearly full. Values: pointers, or Same. Index: of the columns that are read; those of another width are copied.
template <class Values, class Index> struct RandomRows {
    std::size_t count;                                         // of rows
    std::vector<RowState, ReturningAllocator<RowState>> state; // one more than rows
    const Index *columns = nullptr;
    /// How to visit them.
    VisitingOrder order(const Problem &problem) const;

    /// `may_fill`: nearly full rows may be copied with their zeros.
    RandomRows(const Problem &problem, const SolveContext &context, Random &random, bool may_fill);
    bool is_copy() const { return !order_.empty(); }
    /// Every row has all columns from first_column() on, but the last one where that is left out.
    bool has_all_columns() const noexcept { return column_mask_ == 0; }
    std::int64_t first_column() const noexcept { return first_column_; }
    /// Row of the problem at a place.
    std::size_t row_at(std::size_t place) const { return is_copy() ? at(order_[place]) : place; }
    std::int64_t size(std::size_t place) const noexcept {
        return state[place + 1].begin - state[place].begin - left_out_;
    }
    /// The first entry of every row, or the last.
    void leave_out(bool is_first) {
        left_out_ = 1;
        if (!is_first) return;
        first_column_ = 1;
        ++columns;
        if constexpr (!is_same) ++values_;
    }
    const Index *columns_of(std::size_t place) const noexcept { return columns + (state[place].begin & column_mask_); }
    Values values(std::size_t place) const noexcept {
        if constexpr (is_same) return {row_values_[row_at(place)]};
        if constexpr (!is_same) return values_ + state[place].begin;
    }
    double squared_norm(std::size_t place) const noexcept {
        double sum = 0;
        for (std::int64_t q = 0; q < size(place); ++q) sum += std::pow(static_cast<double>(values(place)[q]), 2);
        return sum;
    }
    /// Inlined at all costs: GCC drops the call of a function that does nothing else.
    [[gnu::always_inline]] void prefetch(std::size_t place) const noexcept {
        __builtin_prefetch(columns_of(place));
        if constexpr (is_same) return;
        __builtin_prefetch(values_ + state[place].begin);
        if constexpr (sizeof(Value) > sizeof *columns) __builtin_prefetch(values_ + state[place].begin + 8);
    }

  private:
    static std::size_t at(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
    static constexpr bool is_same = std::is_same_v<Values, Same>;
    static constexpr std::int64_t long_row = 32;
    template <class Matrix> void refer_to(const Matrix &matrix);
    template <class Matrix> void refer_to_dense(const Matrix &matrix);
    template <class Matrix> void fill_up(const Matrix &matrix);
    void lie_side_by_side(std::int64_t cols);
    template <class Matrix> void copy(const Matrix &matrix, Random &random);
    std::span<const double> row_values_;
    std::vector<Index> same_columns_; // of all rows, where they have all
    std::int64_t column_mask_ = -1;   // 0 there: a branch instead doubles the time of short rows
    std::int64_t left_out_ = 0;       // entries of a row
    std::int64_t first_column_ = 0;   // of rows that have all
    std::vector<std::int32_t> order_; // of the copy
    std::vector<Index, UnfilledHugePageAllocator<Index>> own_columns_;
    using Value = std::conditional_t<is_same, char, std::remove_cvref_t<decltype(std::declval<Values>()[0])>>;
    const Value *values_ = nullptr;
    std::vector<Value, UnfilledHugePageAllocator<Value>> own_values_;
};

template <class Values, class Index>
RandomRows<Values, Index>::RandomRows(const Problem &problem, const SolveContext &context, Random &random,
                                      [[maybe_unused]] bool may_fill)
    : count(at(problem.rows())), state(count + 1) {
    if constexpr (is_same) row_values_ = problem.row_values();
    std::visit(
        [&]<class Matrix>(const Matrix &matrix) {
            if constexpr (std::is_same_v<typename Matrix::Row, CsrRow<typename Matrix::value_type, Index>>) {
                const bool has_long_rows = matrix.nonzeros() >= long_row * matrix.rows();
                if constexpr (!is_same) {
                    const bool may_copy = may_fill && context.copy && !problem.is_shuffled();
                    if (may_copy && is_nearly_full(matrix)) return fill_up(matrix);
                }
                if (problem.is_shuffled() || has_long_rows || !context.copy) return refer_to(matrix);
            } else if constexpr (!requires { matrix.offsets(); }) {
                const bool is_read_in_place = !context.copy || (!is_same && is_nearly_full(matrix));
                if (is_read_in_place && matrix.is_contiguous()) return refer_to_dense(matrix);
            }
            copy(matrix, random);
        },
        problem.matrix());
}

template <class Values, class Index>
template <class Matrix>
void RandomRows<Values, Index>::refer_to(const Matrix &matrix) {
    const std::span<const std::int64_t> offsets = matrix.offsets();
    for (std::size_t p = 0; p <= count; ++p) state[p].begin = offsets[p];
    columns = matrix.row(0).columns - offsets[0];
    if constexpr (std::is_same_v<typename Matrix::value_type, Value>) values_ = matrix.row(0).values - offsets[0];
}

/// Every row has all columns.
template <class Values, class Index> void RandomRows<Values, Index>::lie_side_by_side(std::int64_t cols) {
    same_columns_.resize(at(cols));
    std::iota(same_columns_.begin(), same_columns_.end(), 0);
    for (std::size_t p = 0; p <= count; ++p) state[p].begin = static_cast<std::int64_t>(p) * cols;
    columns = same_columns_.data();
    column_mask_ = 0;
}

template <class Values, class Index>
template <class Matrix>
void RandomRows<Values, Index>::refer_to_dense(const Matrix &matrix) {
    lie_side_by_side(matrix.cols());
    if constexpr (std::is_same_v<typename Matrix::value_type, Value>) values_ = matrix.row(0).values;
}

/// A copy with the zeros, in the order of the problem's rows.
template <class Values, class Index>
template <class Matrix>
void RandomRows<Values, Index>::fill_up(const Matrix &matrix) {
    lie_side_by_side(matrix.cols());
    own_values_.resize(at(matrix.rows() * matrix.cols()));
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        const auto row = matrix.row(i);
        interruption_point(2 * matrix.cols()); // new pages
        Value *const to = own_values_.data() + i * matrix.cols();
        std::fill_n(to, matrix.cols(), Value{});
        for (std::int64_t q = 0; q < row.size(); ++q) to[row.column(q)] = static_cast<Value>(row.value(q));
    }
    values_ = own_values_.data();
}

template <class Values, class Index>
template <class Matrix>
void RandomRows<Values, Index>::copy(const Matrix &matrix, Random &random) {
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), 0);
    random.shuffle(order_);
    own_columns_.resize(at(matrix.nonzeros()));
    if constexpr (!is_same) own_values_.resize(at(matrix.nonzeros()));
    std::size_t end = 0;
    for (std::size_t p = 0; p < count; ++p) {
        const auto row = matrix.row(order_[p]);
        interruption_point(row.size());
        for (std::int64_t q = 0; q < row.size(); ++q) {
            own_columns_[end] = row.column(q);
            if constexpr (!is_same) own_values_[end] = static_cast<Value>(row.value(q));
            end += row.value(q) != 0 ? 1 : 0; // dense data have zeros
        }
        state[p + 1].begin = static_cast<std::int64_t>(end);
    }
    columns = own_columns_.data();
    values_ = own_values_.data();
}

template <class Values, class Index> VisitingOrder RandomRows<Values, Index>::order(const Problem &problem) const {
    const std::size_t entry = (has_all_columns() ? 0 : sizeof *columns) + (is_same ? 0 : sizeof(Value));
    const std::int64_t bytes = state.back().begin * static_cast<std::int64_t>(entry);
    const std::size_t most = std::max<std::size_t>(1, count / 1024); // or the order of the blocks is hardly random
    if (bytes < 1 << 20 || most == 1) return {1, 1};
    const std::int64_t row = bytes / static_cast<std::int64_t>(count) + 1;
    // a long row is a sequential read by itself
    const auto at_most = [&](std::int64_t rows) {
        return std::clamp(at(std::min(rows, 10240 / row)), std::size_t{1}, most);
    };
    const double alike = likeness(problem, is_copy() ? problem.rows() / 2 : 1);
    if (alike < likeness_of_text) return {at_most(16), 1};
    if (bytes < 1 << 22) return {at_most(4), 4};
    constexpr std::int64_t block = 4096; // bytes: more are not read faster, and longer rows not backwards
    return {at_most(block / row >= 16 ? std::min<std::int64_t>(block / row, 32) : 8), 4};
}

} // namespace spdc
