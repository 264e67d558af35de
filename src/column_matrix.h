// The matrix once more, column after column, for methods that move one feature at a time.
#pragma once

#include "huge_pages.h"
#include "kernels.h"
#include "spdc/problem.h"

#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

/// A copy of the data by columns, without the zeros of dense data; the intercept's column of ones comes last where there is one. Rows
/// ascend inside a column. Made in two passes over the rows: count, then fill. Columns that are not wanted stay empty: most of
/// text's are rare, and they take most of the time, because each of their entries is a line of memory of its own.
template <class Value> class ColumnMatrix {
  public:
    using Column = CsrRow<Value>; // "columns" of such a row are rows here

    /// `wanted`: one for every column to be copied, 0 for the others; empty: all.
    explicit ColumnMatrix(const Problem &problem, std::span<const std::uint8_t> wanted = {});

    std::int64_t columns() const noexcept { return static_cast<std::int64_t>(offsets_.size()) - 1; }
    std::int64_t entries() const noexcept { return offsets_.back(); }
    Column column(std::int64_t j) const noexcept {
        const auto k = static_cast<std::size_t>(j);
        return {rows_.data() + offsets_[k], values_.data() + offsets_[k], offsets_[k + 1] - offsets_[k]};
    }

  private:
    std::vector<std::int64_t> offsets_;
    std::vector<std::int32_t, UnfilledHugePageAllocator<std::int32_t>> rows_;
    std::vector<Value, UnfilledHugePageAllocator<Value>> values_;
};

extern template class ColumnMatrix<float>;
extern template class ColumnMatrix<double>;

} // namespace spdc
