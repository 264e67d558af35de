// Which of the solvers that suit a problem works on it.
#pragma once

#include "solvers/methods.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace spdc {

/// Whose turn it is: the candidates one after the other, then in turns, the one that was nearest when it was left first, each with more
/// patience than before. One that broke down has no more turns.
class Turns {
  public:
    explicit Turns(std::span<const Choice> candidates) : candidates_(candidates), remaining_(candidates.size(), 0.0) {}
    std::size_t now() const { return now_; }
    /// What the next one is likely to cost, in passes; none if there is no other.
    std::optional<double> successor() const {
        const auto other = next();
        if (!other) return {};
        return is_new(*other) ? candidates_[*other].cost : remaining_[*other];
    }
    /// The dearer the next one, the longer this one may try: at worst it takes half as long again as going there at once.
    Patience patience() const {
        const auto other = next();
        const double dear = other && is_new(*other) ? 0.5 * candidates_[*other].cost : 0;
        const std::size_t rounds = (turns_ + candidates_.size() - 1) / candidates_.size();
        Patience patience = candidates_[now_].patience;
        patience.passes = std::pow(4, rounds) * std::max(patience.passes, dear);
        return patience;
    }
    /// `remaining`: the passes that the present one would need, or infinity if it broke down. Says whether the next one had its turn before.
    bool pass_on(double remaining) {
        remaining_[now_] = remaining;
        const std::size_t other = *next();
        const bool had_turns = !is_new(other);
        turns_ += had_turns ? 1 : 0;
        seen_ = std::max(seen_, other);
        now_ = other;
        return had_turns;
    }

  private:
    bool is_new(std::size_t k) const { return k > seen_; }
    std::optional<std::size_t> next() const {
        if (seen_ + 1 < candidates_.size()) return seen_ + 1;
        std::optional<std::size_t> nearest;
        for (std::size_t k = 0; k < candidates_.size(); ++k) {
            if (k == now_ || remaining_[k] == infinity) continue;
            if (!nearest || remaining_[k] < remaining_[*nearest]) nearest = k;
        }
        return nearest;
    }

    std::span<const Choice> candidates_;
    std::vector<double> remaining_;
    std::size_t now_ = 0, seen_ = 0, turns_ = 0; // turns: after the first of each
};

} // namespace spdc
