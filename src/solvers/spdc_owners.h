// spdc_fast on several threads.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace spdc {

/// The owners of each thread. To lead is as much work as an owner has, about; the leader, thread 0, has the fewer, and the last. Every other
/// thread has one at least: by its letters the leader knows that it has read those before.
class OwnerShares {
  public:
    OwnerShares(int owners, int threads) : owners_(owners), rest_(0) {
        int busiest = owners + 1;
        for (int own = 0; own <= owners && threads > 1; ++own) {
            const int most = std::max(own + 1, (owners - own + threads - 2) / (threads - 1));
            if (most < busiest) busiest = most, rest_ = owners - own;
        }
        others_ = (rest_ + busiest - 1) / busiest;
        for (int k = 1; k <= this->threads(); ++k) {
            const int thread = k % this->threads(); // the leader last
            for (int owner = first(thread); owner < end(thread); owner += senders_.back().owners) {
                const bool is_pair = owner % 2 == 0 && owner + 1 < owners,
                           has_both = is_pair && owner + 1 < end(thread);
                senders_.push_back({owner, has_both ? 2 : 1, is_pair && !has_both});
            }
        }
    }
    int threads() const noexcept { return others_ + 1; }
    int first(int thread) const noexcept { return thread == 0 ? rest_ : rest_ * (thread - 1) / others_; }
    int end(int thread) const noexcept { return thread == 0 ? owners_ : rest_ * thread / others_; }

    /// Who sends letters to the leader: an owner, or a pair of owners, 2k and 2k + 1, whose parts are added up.
    struct Sender {
        int owner, owners;
        bool is_half; // of a pair: the next one is the other half
    };
    std::span<const Sender> senders() const noexcept { return senders_; }
    std::span<const Sender> senders(int thread) const noexcept {
        const auto begin = std::ranges::lower_bound(senders_, first(thread), {}, &Sender::owner);
        return {begin, std::ranges::lower_bound(senders_, end(thread), {}, &Sender::owner)};
    }

  private:
    int owners_, rest_, others_ = 0; // all; those that the leader does not have, and who has them
    std::vector<Sender> senders_;    // in the order of their owners
};

struct OwnersOptions {
    int owners;
    std::optional<double> omega;
    bool shrinking;
    bool is_sdca;
};

std::unique_ptr<Method> make_owners(const Problem &problem, const OwnersOptions &options, const SolveContext &context);

} // namespace spdc
