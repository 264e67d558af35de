// Losses with kinks and l1 penalties on a few features: an interior point method.
#pragma once

#include "cholesky.h"
#include "gram_descent.h"

#include <Eigen/Core>

#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

/// min over x of  sum_i w_i phi(a_i'x) + sum_j [l1_j |x_j| + (l2_j/2) x_j^2]  for the features of a set, without bounds on them.
///
/// phi(z) = max y (z - c) over y in [l, u], or a sum of two such pieces; l1 |x| is one, too, with c = 0 and y in [-l1, l1]. Each
/// piece carries its dual y and the multipliers s, t of its ends,
///
///   z - c + s - t = 0,    s (y - l) = mu/w,    t (u - y) = mu/w,    l2 x + v + A'(w y) = 0,    v: the duals of the l1 terms,
///
/// and mu goes to 0, by the predictor and corrector of Mehrotra (1992). What is left after elimination is one system a step, with
/// a matrix of the features, A'HA + E, or of the rows, H^-1 + A E^-1 A', whichever is smaller.
template <class Value> class SetBarrier {
  public:
    SetBarrier(const Problem &problem, const ColumnMatrix<Value> &columns, const Penalties &penalties);

    /// Whether the smaller of rows and features is small enough for a factor at every step.
    static bool takes(std::size_t rows, std::size_t features) noexcept { return std::min(rows, features) <= largest; }
    /// How many features to add to so many, of which some want to move: all of them where their number hardly counts.
    std::size_t room(std::size_t features, std::size_t wanting) const noexcept {
        return rows_ <= largest ? 2 * wanting
                                : std::min({2 * wanting, features, largest - std::min(features, largest)});
    }
    /// Sets out from x, which is 0 outside the set, and y for a gap over the set of at most `target`; `gap`: about what it is at x.
    void start(std::span<const std::int32_t> set, double gap, double target, const std::vector<double> &x,
               const std::vector<double> &y);
    /// Goes on from where it is.
    void go_on(double target);
    /// Makes a step. After the last one, at the target or as near as rounding allows, x and y are the best seen; what tends to 0 in x
    /// is 0.
    void advance(std::vector<double> &x, std::vector<double> &y);
    bool is_running() const noexcept { return is_running_; }
    /// The gap over the set and what is out of balance at the best point seen.
    double error() const noexcept { return best_; }
    /// y with the duals that tend to an end of their interval there: as in a corner, but no longer in balance.
    std::span<const double> settled_y() const noexcept { return settled_y_; }
    /// Matrix entries read so far, and what the factors cost in such.
    std::int64_t touched() const noexcept { return touched_; }

  private:
    static constexpr std::size_t largest = 2000;
    void set_up(const std::vector<double> &x);
    void center(double mu, const std::vector<double> &y);
    bool step();
    void find_curvatures();
    bool factor();
    void factor_rows();
    /// A'r on the set, and A d of the set.
    void combine(const std::vector<double> &r, Eigen::VectorXd &u);
    void predict(const Eigen::VectorXd &d, std::vector<double> &z);
    void solve(const Eigen::VectorXd &right);
    void solve_by_rows(const Eigen::VectorXd &right);
    /// Moves of x, z and then of the pieces, towards mu; with the products of the last moves where it corrects them.
    void find_step(double mu, bool corrects);
    double longest_step() const;
    double gap_after(double length) const;
    double price_of_balance();
    void take_step(double length);
    double argument(std::size_t k) const {
        return k < row_pieces_ ? z_[k % rows_] : x_[static_cast<Eigen::Index>(k - row_pieces_)];
    }
    double move_of_argument(std::size_t k) const {
        return k < row_pieces_ ? dz_[k % rows_] : dx_[static_cast<Eigen::Index>(k - row_pieces_)];
    }
    double dual(std::size_t k) const { return p_[k] < q_[k] ? lower_[k] + p_[k] : upper_[k] - q_[k]; }
    void round();

    const Problem &problem_;
    const ColumnMatrix<Value> &columns_;
    const Penalties &penalties_;
    GramDescent<Value> gram_;
    const std::size_t rows_;
    std::size_t pieces_ = 1;     // of a row
    std::size_t row_pieces_ = 0; // of all rows; those of the l1 terms follow
    std::vector<std::int32_t> set_;
    bool by_rows_ = false, is_running_ = false;
    int steps_ = 0, best_step_ = 0, short_steps_ = 0;
    double target_ = 0, best_ = infinity; // gap and what is unbalanced: wanted, and at best
    std::vector<double> best_x_, best_y_, settled_y_;
    std::vector<double> lower_, upper_, slope_, weight_;           // of the pieces
    std::vector<double> p_, q_, s_, t_, dy_, ds_, dt_, curvature_; // y - lower, upper - y, multipliers, moves
    std::vector<double> z_, dz_;
    Curvatures h_; // w h of the rows
    Eigen::VectorXd x_, dx_, e_, l2_;
    Eigen::MatrixXd matrix_;
    Cholesky factor_;
    std::int64_t touched_ = 0;
};

extern template class SetBarrier<float>;
extern template class SetBarrier<double>;

} // namespace spdc
