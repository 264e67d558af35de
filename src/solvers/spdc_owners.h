// spdc_fast on several threads.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace spdc {

/// The owners of each thread. To lead is as much work as an owner has, about; the leader, thread 0, has the fewer. Every other thread
/// has one at least: by its letters the leader knows that it has read those before.
class OwnerShares {
  public:
    OwnerShares(int owners, int threads) {
        int leaders = owners, busiest = owners + 1;
        for (int own = 0; own <= owners && threads > 1; ++own) {
            const int most = std::max(own + 1, (owners - own + threads - 2) / (threads - 1));
            if (most < busiest) busiest = most, leaders = own;
        }
        const int rest = owners - leaders, others = (rest + busiest - 1) / busiest;
        first_ = {0, leaders};
        for (int k = 1; k <= others; ++k) first_.push_back(leaders + rest * k / others);
    }
    int threads() const noexcept { return static_cast<int>(first_.size()) - 1; }
    int first(int thread) const noexcept { return first_[static_cast<std::size_t>(thread)]; }

  private:
    std::vector<int> first_; // of each thread, then their number
};

struct OwnersOptions {
    int owners;
    std::optional<double> omega;
    bool shrinking;
    bool is_sdca;
};

std::unique_ptr<Method> make_owners(const Problem &problem, const OwnersOptions &options, const SolveContext &context);

} // namespace spdc
