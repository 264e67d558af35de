// Coordinate descent on a few features through their Gram matrix, where sweeps cost no pass over the data.
#pragma once

#include "column_matrix.h"
#include "gram_sweeps.h"

#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

/// The features that move, their Gram matrix G = A'HA and their derivatives q = A'r. G grows with the features and lives as long as H.
template <class Value> class GramDescent : private GramSweeps {
  public:
    GramDescent(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows);

    /// H changed.
    void forget();
    /// Drops all but `features` when the others are many.
    void tidy(std::span<const std::int32_t> features);
    /// Takes in those of `features` that G lacks. False where that would cost more than `worth` entries; then nothing is done.
    bool include(std::span<const std::int32_t> features, const Curvatures &h, std::int64_t worth);
    /// G between the k-th feature that came in and all, in the order of their coming.
    const double *row(std::size_t k) const noexcept { return gram_.data() + k * stride_; }
    bool has(std::int32_t feature) const noexcept { return place_[static_cast<std::size_t>(feature)] != absent; }
    /// From x with derivatives u: takes up those of `set` that G has. The others of G are left alone.
    void start(std::span<const std::int32_t> set, const std::vector<double> &x, const std::vector<double> &u);
    using GramSweeps::minimize;
    /// Brings x and dz = dz + A (change of x) up to date.
    void finish(std::vector<double> &x, std::vector<double> &dz);
    /// Takes up features that came in after start(): at 0, with derivatives u.
    void join(std::span<const std::int32_t> features, const std::vector<double> &x, const std::vector<double> &u);
    /// Matrix entries, or as many entries of G as would take that time.
    std::int64_t touched() const noexcept { return touched_; }

  private:
    static constexpr std::int32_t absent = -1;
    static constexpr std::size_t most_features = 2000; // G in 32 MB; below 65536

    std::int64_t count_rows(std::size_t first);
    void collect_rows(std::size_t first);
    void reserve(std::size_t count);
    std::int64_t work_of_blocks(std::size_t first) const;
    void grow(std::size_t first, const Curvatures &h, bool is_dense);
    void add_blocks(std::size_t first, const Curvatures &h);
    void add_products(std::size_t first, std::int64_t end_row, const Curvatures &h);

    const ColumnMatrix<Value> &columns_;
    std::vector<std::int32_t> place_;          // of a feature in list_
    std::vector<std::int32_t> count_;          // entries of each row in listed columns
    std::vector<std::int64_t> next_;           // entry of a listed column that comes next
    std::vector<std::int64_t> offsets_, ends_; // of the rows in places_ and values_
    std::vector<std::uint16_t> places_;        // the columns that come in, row by row: which of them, and the entry
    std::vector<Value> values_;
    std::vector<double> start_; // x at the last start() or finish()
};

extern template class GramDescent<float>;
extern template class GramDescent<double>;

} // namespace spdc
