// Coordinate descent with Anderson acceleration on a quadratic model of the losses: the inner loop of working_set.
#pragma once

#include "column_matrix.h"
#include "spdc/regularizers.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

/// g_j of every coordinate as one type: l1, l2 and bounds, each of which may be absent.
class Penalties {
  public:
    explicit Penalties(const Problem &problem);
    Box operator[](std::int64_t j) const noexcept {
        if (j == features_) return intercept_;
        return factors_.empty() ? feature_ : feature_.scaled(factors_[static_cast<std::size_t>(j)]);
    }

  private:
    std::int64_t features_;
    Box feature_, intercept_;
    std::span<const double> factors_;
};

/// What a sweep over coordinates found. A sweep at the optimum finds zeros.
struct SweepResult {
    double decrease = 0;  // of the model, a lower bound
    double violation = 0; // largest excess of a derivative over l1, in units of l1

    bool within(const SweepResult &target) const noexcept {
        return decrease <= target.decrease && violation <= target.violation;
    }
};

/// min over x of  sum_i [r_i dz_i + (h_i/2) dz_i^2] + sum_j g_j(x_j),  dz = A (x - start), every h_i > 0.
///
/// A sweep visits coordinates in order and minimises over each exactly; r follows x, so that r_i is always the derivative
/// of row i. Every six sweeps the last five moves are extrapolated (Anderson acceleration as in Bertrand and Massias 2021), and
/// the result is kept when the model is smaller there.
template <class Value> class QuadraticModel {
  public:
    QuadraticModel(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows);

    std::vector<double> &r() noexcept { return r_; }
    const std::vector<double> &h() const noexcept { return h_; }
    /// New curvatures: all h_i the same number, or each its own. To be called after writing r().
    void start(double h);
    std::vector<double> &start_rows();

    /// Sweeps over `set`, most of the time over the part of it that moves, until a sweep over all of it is within the target
    /// or about `budget` entries were read. Returns the first sweep's findings.
    SweepResult minimize(std::span<const std::int32_t> set, std::vector<double> &x, SweepResult target, double reduction,
                         std::int64_t budget);
    bool reached() const noexcept { return reached_; }
    /// Matrix entries read so far.
    std::int64_t touched() const noexcept { return touched_; }
    std::int64_t sweeps() const noexcept { return sweeps_; }

  private:
    static constexpr std::size_t memory = 5;

    SweepResult sweep(std::span<const std::int32_t> list, std::vector<double> &x);
    template <bool same> SweepResult sweep_rows(std::span<const std::int32_t> list, std::vector<double> &x);
    template <bool same> double curvature(const CsrRow<Value> &column) const noexcept;
    void remember(const std::vector<double> &x);
    void extrapolate(std::vector<double> &x);

    const ColumnMatrix<Value> &columns_;
    const Penalties &penalties_;
    std::vector<double> r_, h_, curvature_, move_;
    double same_h_ = 0;
    std::vector<std::int32_t> active_;
    std::array<std::vector<double>, memory + 1> past_; // x on active_ after the last sweeps
    std::size_t remembered_ = 0;
    bool reached_ = false;
    std::int64_t touched_ = 0, sweeps_ = 0;
};

extern template class QuadraticModel<float>;
extern template class QuadraticModel<double>;

} // namespace spdc
