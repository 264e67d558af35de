#include "random.h"

#include <numeric>

namespace spdc {

AliasTable::AliasTable(std::span<const double> weights) : keep_(weights.size(), 1.0), other_(weights.size(), 0) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> height(weights.size());
    std::vector<std::size_t> low, high;
    for (std::size_t k = 0; k < weights.size(); ++k) {
        height[k] = weights[k] / total * static_cast<double>(weights.size());
        (height[k] < 1 ? low : high).push_back(k);
    }
    while (!low.empty() && !high.empty()) { // fill each short column up to 1 from a tall one
        const std::size_t small = low.back(), large = high.back();
        low.pop_back();
        keep_[small] = height[small];
        other_[small] = static_cast<std::int64_t>(large);
        height[large] -= 1 - height[small];
        if (height[large] < 1) {
            high.pop_back();
            low.push_back(large);
        }
    }
}

} // namespace spdc
