// The rows that spdc_owners.cpp visits, in batches with their Gram matrices: all of them, or those that shrinking leaves.
#pragma once

#include "huge_pages.h"
#include "owner_rows.h"
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

namespace spdc {

/// Rows in batches, with the Gram matrix of each.
struct Batches {
    std::vector<std::int32_t> places;
    std::vector<std::uint64_t> live; // a bit for each row of a batch that is visited
    std::vector<HalfFloat, UnfilledHugePageAllocator<HalfFloat>> gram;

    std::int64_t count() const { return static_cast<std::int64_t>(live.size()); }
    std::span<const std::int32_t> rows(std::int64_t batch) const {
        const std::span rest = std::span(places).subspan(static_cast<std::size_t>(batch * batch_rows));
        return rest.first(std::min<std::size_t>(batch_rows, rest.size()));
    }
    const HalfFloat *products(std::int64_t batch, int row) const {
        return gram.data() + (batch * batch_rows + row) * gram_row;
    }
};

class LiveBatches {
  public:
    /// All `count` rows in the order of their places. Nothing is live yet, and the Gram matrices are to be filled.
    LiveBatches(const OwnerRows &rows, std::int64_t count, Team &team);

    const Batches &now() const noexcept { return *now_; }
    /// How many rows are visited in a sweep.
    std::int64_t live() const noexcept { return live_; }

    /// All rows again for which is_visited(place).
    template <class IsVisited> void activate(IsVisited &&is_visited) {
        now_ = &all_;
        live_ = 0;
        for (std::int64_t batch = 0; batch < all_.count(); ++batch) {
            std::uint64_t live = 0;
            const auto places = all_.rows(batch);
            for (std::size_t r = 0; r < places.size(); ++r) {
                live |= static_cast<std::uint64_t>(is_visited(places[r])) << r;
            }
            all_.live[static_cast<std::size_t>(batch)] = live;
            live_ += std::popcount(live);
        }
    }
    /// Rows that are dropped, by place, are no longer live. Says whether there are new batches, whose Gram matrices are to be filled.
    bool leave_out(std::span<const std::uint8_t> dropped);

    // Of each thread, before it first fills matrices; and those that no other thread has taken yet.
    void prepare(int thread) { OwnerRows::clear(scratch_[static_cast<std::size_t>(thread)]); }
    void fill_gram(int thread) noexcept;
    /// Of a thread that found no memory to fill them, once all are done.
    const std::exception_ptr &failure() const noexcept { return failure_; }

  private:
    void regroup();

    const OwnerRows &rows_;
    Batches all_, fewer_, *now_ = &all_;
    std::int64_t live_ = 0;
    std::vector<OwnerRows::Scratch> scratch_; // of the threads
    std::atomic<std::int64_t> next_gram_ = 0;
    std::once_flag failed_;
    std::exception_ptr failure_;
};

} // namespace spdc
