// Which rows an iteration updates: m distinct rows, each row k with probability q_k.
#pragma once

#include "random.h"
#include "spdc/solvers.h"

#include <span>
#include <vector>

namespace spdc {

class Sampler {
  public:
    /// `norms` are needed for weighted sampling only: row k weighs (1 - alpha)/size + alpha norm_k/sum in its group. Weighted
    /// batches take one row from each of m groups, dealt out by norm so that the groups are alike.
    Sampler(Sampling sampling, std::int64_t n, std::int64_t m, std::uint64_t seed, std::span<const double> norms,
            double alpha);

    void draw(std::span<std::int64_t> batch);

    /// q_k; m/n unless weighted.
    double probability(std::int64_t k) const noexcept {
        return q_.empty() ? uniform_probability_ : q_[static_cast<std::size_t>(k)];
    }
    bool is_weighted() const noexcept { return !q_.empty(); }

  private:
    void draw_uniform(std::span<std::int64_t> batch);
    void draw_permuted(std::span<std::int64_t> batch);
    void draw_weighted(std::span<std::int64_t> batch);

    Sampling sampling_;
    Random random_;
    double uniform_probability_;
    std::vector<std::int64_t> order_; // rows: a permutation; grouped by group when weighted
    std::size_t next_ = 0;            // of the permutation
    std::vector<AliasTable> groups_;
    std::vector<std::size_t> group_begin_;
    std::vector<double> q_;
};

} // namespace spdc
