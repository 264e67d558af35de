// Coordinate descent on a quadratic whose matrix is at hand: sweeps that cost no pass over the data.
#pragma once

#include "sweeps.h"

#include <cstdint>
#include <vector>

namespace spdc {

/// min over x of  q'(x - start) + (1/2) (x - start)'G(x - start) + sum_k g(x_k)  for listed coordinates, q the derivatives, which follow
/// x: a coordinate step changes them by a multiple of one row of G, so a sweep costs at most the square of the coordinates.
class GramSweeps {
  public:
    explicit GramSweeps(const Penalties &penalties) : penalties_(penalties) {}

    /// These coordinates, with G row by row.
    void take(std::vector<std::int32_t> coordinates, std::vector<double> gram);
    /// From x with derivatives q, all coordinates free to move.
    void start(std::vector<double> x, std::vector<double> q);
    /// Sweeps until one is within the target, or within `reduction` times what the first found, which widens the target.
    /// Returns what the first found.
    SweepResult minimize(SweepResult &target, double reduction);
    const std::vector<double> &x() const noexcept { return x_; }
    const std::vector<double> &q() const noexcept { return q_; }

  protected:
    const Penalties &penalties_;
    std::vector<std::int32_t> list_; // coordinates in G
    std::size_t stride_ = 0;
    std::vector<double> gram_, diagonal_;
    std::vector<double> x_, q_;
    std::vector<std::uint8_t> moves_; // whether a listed coordinate may
    std::int64_t touched_ = 0;

  private:
    static constexpr std::size_t memory = 8; // sweeps between extrapolations
    SweepResult sweep() noexcept;
    void remember();
    void extrapolate();
    void solve_face();
    bool step_on_face();

    Past past_x_ = Past(memory + 1), past_q_ = past_x_;
    std::size_t remembered_ = 0;
};

} // namespace spdc
