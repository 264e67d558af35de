// Coordinate descent on a few features through their Gram matrix, where sweeps cost no pass over the data.
#pragma once

#include "column_matrix.h"
#include "sweeps.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace spdc {

/// The features that move, their Gram matrix G = A'HA and their derivatives q = A'r. A coordinate step changes q by a multiple of
/// one row of G, so a sweep costs at most the square of the features. G grows with the features and lives as long as H.
template <class Value> class GramDescent {
  public:
    GramDescent(const ColumnMatrix<Value> &columns, const Penalties &penalties)
        : columns_(columns), penalties_(penalties), place_(static_cast<std::size_t>(columns.columns()), absent) {}

    /// H changed.
    void forget();
    /// Takes `features` in. False where G would cost more than `worth` entries; then nothing is done.
    bool include(std::span<const std::int32_t> features, const Curvatures &h, std::size_t rows, std::int64_t worth);
    /// Sweeps until one is within the target or until sweeps no longer pay; x and r = r + H A (change of x) follow.
    void minimize(std::vector<double> &x, std::vector<double> &r, const Curvatures &h, const SweepResult &target);
    /// Matrix entries, or as many entries of G as would take that time.
    std::int64_t touched() const noexcept { return touched_; }

  private:
    static constexpr std::int32_t absent = -1;
    static constexpr std::size_t most_features = 2000; // G in 32 MB
    struct RowEntry {
        std::int32_t place;
        double value;
    };

    void collect_rows(std::size_t rows);
    std::int64_t cost_of_growth(std::size_t first, std::size_t rows) const;
    void grow(std::size_t first, const Curvatures &h);
    SweepResult sweep() noexcept;
    void remember();
    void extrapolate();

    const ColumnMatrix<Value> &columns_;
    const Penalties &penalties_;
    std::vector<std::int32_t> list_;  // features in G
    std::vector<std::int32_t> place_; // of a feature in list_
    std::size_t stride_ = 0;
    std::vector<double> gram_;
    std::vector<std::int64_t> offsets_; // of the rows in entries_
    std::vector<RowEntry> entries_;     // the listed columns, row by row
    std::vector<double> x_, q_, diagonal_;
    Past past_x_, past_q_;
    std::size_t remembered_ = 0;
    std::int64_t touched_ = 0;
};

extern template class GramDescent<float>;
extern template class GramDescent<double>;

} // namespace spdc
