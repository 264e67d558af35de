#include "live_batches.h"

#include <iterator>
#include <numeric>

namespace spdc {

namespace {

constexpr int m = batch_rows;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

LiveBatches::LiveBatches(const OwnerRows &rows, std::int64_t count, Team &team)
    : rows_(rows), scratch_(at(team.size())) {
    all_.places.resize(at(count));
    std::iota(all_.places.begin(), all_.places.end(), 0);
    all_.live.resize(at((count + m - 1) / m));
    make_numbers(team, all_.gram, all_.live.size() * m * gram_row);
    for (auto &scratch : scratch_) rows_.reserve(scratch);
}

void LiveBatches::fill_gram(int thread) noexcept {
    try {
        for (std::int64_t k; (k = next_gram_.fetch_add(1, std::memory_order_relaxed)) < now_->count();) {
            rows_.gram(now_->rows(k), scratch_[at(thread)], now_->gram.data() + k * m * gram_row);
        }
    } catch (...) {
        std::call_once(failed_, [&] { failure_ = std::current_exception(); });
    }
}

bool LiveBatches::leave_out(std::span<const std::uint8_t> dropped) {
    live_ = 0;
    for (std::int64_t batch = 0; batch < now_->count(); ++batch) {
        std::uint64_t &live = now_->live[at(batch)];
        const auto places = now_->rows(batch);
        for (std::uint64_t rest = live; rest != 0; rest &= rest - 1) {
            const int r = std::countr_zero(rest);
            if (dropped[at(places[at(r)])]) live &= ~(std::uint64_t{1} << r);
        }
        live_ += std::popcount(live);
    }
    if (live_ == 0 || 2 * live_ >= std::ssize(now_->places)) return false;
    regroup();
    return true;
}

/// Batches of live rows alone: half-empty ones cost as many waits as full ones. After a sweep over all rows nearly the same rows are
/// live as before it: then their batches stay, and rows that are new come behind them.
void LiveBatches::regroup() {
    std::vector<std::int32_t> live;
    live.reserve(at(live_));
    for (std::int64_t batch = 0; batch < now_->count(); ++batch) {
        for (std::uint64_t rest = now_->live[at(batch)]; rest != 0; rest &= rest - 1) {
            live.push_back(now_->rows(batch)[at(std::countr_zero(rest))]);
        }
    }
    enum : std::uint8_t { not_live, is_new, is_kept };
    std::vector<std::uint8_t> kinds(all_.places.size(), not_live); // by place
    for (const std::int32_t place : live) kinds[at(place)] = is_new;
    auto &places = fewer_.places;
    const auto still = std::ranges::count_if(places, [&](std::int32_t place) { return kinds[at(place)] == is_new; });
    if (4 * still < 3 * std::ssize(places)) places.clear();
    next_gram_ = std::ssize(places) / m; // the last one may not have been full
    for (const std::int32_t place : places) {
        if (kinds[at(place)] == is_new) kinds[at(place)] = is_kept;
    }
    std::ranges::copy_if(live, std::back_inserter(places), [&](std::int32_t p) { return kinds[at(p)] == is_new; });
    fewer_.live.assign((places.size() + m - 1) / m, 0);
    for (std::size_t k = 0; k < places.size(); ++k) {
        fewer_.live[k / m] |= static_cast<std::uint64_t>(kinds[at(places[k])] != not_live) << k % m;
    }
    fewer_.gram.resize(fewer_.live.size() * m * gram_row);
    now_ = &fewer_;
}

} // namespace spdc
