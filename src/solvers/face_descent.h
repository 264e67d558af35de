// Conjugate gradients on the coordinates of a quadratic model that are not 0: what coordinate descent creeps along.
#pragma once

#include "column_matrix.h"
#include "sweeps.h"

#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

/// Lowers  sum_i [r_i dz_i + (h_i/2) dz_i^2] + sum_j g_j(x_j),  dz = A (x - start), over the coordinates that are neither 0 nor at a bound, as
/// if each were to stay on its side of 0. Preconditioned by the curvatures; a step costs as much as a sweep, and their number is the
/// square root of the sweeps'.
template <class Value> class FaceDescent {
  public:
    FaceDescent(const ColumnMatrix<Value> &columns, const Penalties &penalties)
        : columns_(columns), penalties_(penalties) {}

    /// From x with row derivatives r, both of which follow. `curvature`: a_j'Ha_j of every coordinate. Until the derivatives are within
    /// the target or about `budget` entries were read.
    void descend(std::span<const std::int32_t> active, const std::vector<double> &curvature, const Curvatures &h,
                 const SweepResult &target, std::int64_t budget, std::vector<double> &x, std::vector<double> &r);
    /// Whether the last descent was stopped by a coordinate on its way to 0.
    bool is_stopped() const noexcept { return failures_ > 0; }
    /// Matrix entries read so far.
    std::int64_t touched() const noexcept { return touched_; }

  private:
    /// A coordinate on its way.
    struct Mover {
        std::int32_t j;
        double l1, l2, low, high; // of its side of 0
        double start, metric;     // metric: its own curvature
        double unit;              // of its violation
        double move = 0, gradient = 0, direction = 0, product = 0;

        double at() const noexcept { return start + move; }
    };

    void choose(std::span<const std::int32_t> active, const std::vector<double> &curvature,
                const std::vector<double> &x, const std::vector<double> &r);
    bool is_within(const SweepResult &target) const noexcept;
    bool step(const Curvatures &h, std::vector<double> &r, double &change);
    template <class Move> void spread(const Move &move);
    double share_inside() const noexcept;
    void turn_back(const Curvatures &h, double change, std::vector<double> &r);

    const ColumnMatrix<Value> &columns_;
    const Penalties &penalties_;
    std::vector<Mover> movers_;
    std::vector<double> dz_, start_r_;
    double norm_ = 0;                // of the gradient, squared, in the metric
    int failures_ = 0, waiting_ = 0; // calls that were stopped by one coordinate; for 2^failures calls none is tried
    std::int64_t touched_ = 0;
};

extern template class FaceDescent<float>;
extern template class FaceDescent<double>;

} // namespace spdc
