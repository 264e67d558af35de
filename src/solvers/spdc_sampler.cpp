#include "spdc_sampler.h"

#include <algorithm>
#include <numeric>

namespace spdc {

Sampler::Sampler(Sampling sampling, std::int64_t n, std::int64_t m, std::uint64_t seed, std::span<const double> norms,
                 double alpha)
    : sampling_(sampling), random_(seed), uniform_probability_(static_cast<double>(m) / static_cast<double>(n)),
      order_(static_cast<std::size_t>(n)) {
    std::iota(order_.begin(), order_.end(), 0);
    next_ = order_.size(); // a permutation that is used up
    if (sampling != Sampling::weighted) return;
    std::stable_sort(order_.begin(), order_.end(), [&](std::int64_t a, std::int64_t b) {
        return norms[static_cast<std::size_t>(a)] > norms[static_cast<std::size_t>(b)];
    });
    std::vector<std::int64_t> dealt;
    for (std::int64_t group = 0; group < m; ++group) {
        group_begin_.push_back(dealt.size());
        for (std::size_t k = static_cast<std::size_t>(group); k < order_.size(); k += static_cast<std::size_t>(m)) {
            dealt.push_back(order_[k]);
        }
    }
    order_ = std::move(dealt);
    group_begin_.push_back(order_.size());
    q_.resize(order_.size());
    for (std::int64_t group = 0; group < m; ++group) {
        const std::size_t begin = group_begin_[static_cast<std::size_t>(group)];
        const std::size_t end = group_begin_[static_cast<std::size_t>(group) + 1];
        double total = 0;
        for (std::size_t p = begin; p < end; ++p) total += norms[static_cast<std::size_t>(order_[p])];
        std::vector<double> weights;
        for (std::size_t p = begin; p < end; ++p) {
            const auto k = static_cast<std::size_t>(order_[p]);
            const double share = total > 0 ? norms[k] / total : 1 / static_cast<double>(end - begin);
            q_[k] = (1 - alpha) / static_cast<double>(end - begin) + alpha * share; // eq. (nonuniform-prob)
            weights.push_back(q_[k]);
        }
        groups_.emplace_back(weights);
    }
}

void Sampler::draw(std::span<std::int64_t> batch) {
    switch (sampling_) {
    case Sampling::uniform: return draw_uniform(batch);
    case Sampling::weighted: return draw_weighted(batch);
    case Sampling::permutation: return draw_permuted(batch);
    }
}

/// The first steps of a Fisher-Yates shuffle leave a uniform subset at the front, whatever the order before.
void Sampler::draw_uniform(std::span<std::int64_t> batch) {
    const auto n = static_cast<std::int64_t>(order_.size());
    if (batch.size() == 1) {
        batch[0] = random_.below(n);
        return;
    }
    for (std::size_t p = 0; p < batch.size(); ++p) { // first where to swap, so that memory is on its way
        batch[p] = static_cast<std::int64_t>(p) + random_.below(n - static_cast<std::int64_t>(p));
        __builtin_prefetch(&order_[static_cast<std::size_t>(batch[p])], 1);
    }
    for (std::size_t p = 0; p < batch.size(); ++p) {
        std::swap(order_[p], order_[static_cast<std::size_t>(batch[p])]);
        batch[p] = order_[p];
    }
}

/// A batch that straddles two permutations takes from the second the first rows that it does not hold yet; the rows passed
/// over move to just behind it and lead the next batch, so no row is lost.
void Sampler::draw_permuted(std::span<std::int64_t> batch) {
    std::size_t filled = 0;
    while (filled < batch.size() && next_ < order_.size()) batch[filled++] = order_[next_++];
    if (filled == batch.size()) return;
    random_.shuffle(order_);
    next_ = 0;
    std::vector<std::int64_t> held(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(filled));
    std::sort(held.begin(), held.end());
    for (std::size_t scan = 0; filled < batch.size(); ++scan) {
        if (std::binary_search(held.begin(), held.end(), order_[scan])) continue;
        batch[filled++] = order_[scan];
        std::swap(order_[scan], order_[next_++]);
    }
}

void Sampler::draw_weighted(std::span<std::int64_t> batch) {
    for (std::size_t group = 0; group < batch.size(); ++group) {
        batch[group] = order_[group_begin_[group] + static_cast<std::size_t>(groups_[group].draw(random_))];
    }
}

} // namespace spdc
