// Coordinate descent on a quadratic model of the losses: the inner loop of working_set.
#pragma once

#include "face_descent.h"
#include "gram_descent.h"
#include "random.h"

namespace spdc {

/// min over x of  sum_i [r_i dz_i + (h_i/2) dz_i^2] + sum_j g_j(x_j),  dz = A (x - start), every h_i > 0.
///
/// A sweep visits coordinates and minimises over each exactly; r follows x, so that r_i is always the derivative of row i.
/// Coordinates that are not 0 are swept more often than the others: through their Gram matrix where that pays, else in the data, each
/// time in a new order, until it is settled which of them are 0; then conjugate gradients take over. Where these are stopped by one coordinate
/// after the other, sweeps in a new order take turns with sweeps in one and the same order, with Anderson acceleration.
template <class Value> class QuadraticModel {
  public:
    QuadraticModel(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows);

    std::vector<double> &r() noexcept { return r_; }
    /// To be filled for a new model; reset() tells that it was, and how many sweeps a Gram matrix may cost.
    Curvatures &h() noexcept { return h_; }
    void reset(std::int64_t sweeps_for_gram);

    /// Sweeps over `set` from x with derivatives u until one is within the target, or within `reduction` times what the first
    /// found, or about `budget` entries were read. Returns the first sweep's findings. u is lost.
    SweepResult minimize(std::span<const std::int32_t> set, std::vector<double> &x, std::vector<double> &u,
                         SweepResult target, double reduction, std::int64_t budget);
    bool reached() const noexcept { return reached_; }
    /// Whether the last minimize() worked through the Gram matrix alone; then dz() is A (x - start).
    bool used_gram() const noexcept { return used_gram_; }
    const std::vector<double> &dz() const noexcept { return dz_; }
    /// Matrix entries read so far.
    std::int64_t touched() const noexcept { return touched_ + gram_.touched() + face_.touched(); }

  private:
    SweepResult sweep(std::span<const std::int32_t> list, std::vector<double> &x);
    template <bool same> SweepResult sweep_rows(std::span<const std::int32_t> list, std::vector<double> &x);
    /// Makes those of the set that move the active ones.
    template <class Moves> void collect(std::span<const std::int32_t> set, const Moves &moves);
    SweepResult minimize_with_gram(std::span<const std::int32_t> set, std::vector<double> &x, std::vector<double> &u,
                                   SweepResult &target, double reduction);
    bool sweep_active(std::vector<double> &x, const SweepResult &target, std::int64_t end);
    void sweep_in_order(std::vector<double> &x, const SweepResult &target, std::int64_t end);
    void remember(const std::vector<double> &x);
    void extrapolate(std::vector<double> &x);
    double curvature(const CsrRow<Value> &column) const noexcept;

    const ColumnMatrix<Value> &columns_;
    const Penalties &penalties_;
    GramDescent<Value> gram_;
    FaceDescent<Value> face_;
    Curvatures h_;
    std::vector<double> r_, start_r_, dz_, curvature_, scale_;
    std::vector<std::int32_t> active_, newcomers_;
    std::int64_t active_entries_ = 0;
    Random random_{1};
    static constexpr std::size_t memory = 5; // sweeps between extrapolations
    Past past_ = Past(memory + 1);           // x on active_ after the last sweeps
    std::size_t remembered_ = 0;
    bool in_order_ = false;
    std::int64_t sweeps_for_gram_ = 0;
    std::int64_t start_ = 0; // touched() at the last reset
    bool reached_ = false;
    bool used_gram_ = false;
    std::int64_t touched_ = 0;
};

extern template class QuadraticModel<float>;
extern template class QuadraticModel<double>;

} // namespace spdc
