// The features' side of spdc_owners.cpp: {z, u} of every owner, and the letters between owners and leader.
#pragma once

#include "huge_pages.h"
#include "owner_rows.h"
#include "owner_threads.h"
#include "parallel.h"
#include "spdc_fast.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spdc {

class OwnerFeatures {
  public:
    static constexpr int m = batch_rows;
    static constexpr int letters = m / Letter::size; // to or from an owner in a super-step
    static_assert(letters * Letter::size == m);

    /// Step sizes of a sweep and what they make of the j-th row of a batch.
    struct Steps : FastSteps {
        Steps() = default;
        Steps(const FastSteps &steps, double n);

        double power[m + 1], g[m + 1]; // rho^j, g_j
        /// alpha mz_j + beta mu_j of a move by 1: what it adds to x, extrapolated, and carried back to the start of the batch.
        double ahead[m];
        double inverse_n = 1, inverse_scale = 1; // of sigma_scale: a division takes as long as four products
    };

    /// What every thread knows of the run, in a copy of its own; all copies are equal.
    struct Walk {
        double alpha = 1, beta = 0, inverse_alpha = 1;
        std::int64_t visits = 0, step = 0; // of the run; of the sweep
        unsigned date = 0;                 // of the super-step's letters

        void rebase(ZU &pair) const noexcept { pair[0] = alpha * pair[0] + beta * pair[1]; }
    };

    /// The rows of a super-step in the order of their visits.
    struct Batch {
        std::int64_t id = 0;
        int count = 0;
        OwnerRows::Row rows[m];
        std::uint8_t row[m];      // of the batch
        std::uint8_t by_place[m]; // the visits in the order of memory

        std::span<const OwnerRows::Row> letter(int first) const {
            return {rows + first, static_cast<std::size_t>(std::clamp(count - first, 0, Letter::size))};
        }
    };

    /// All are to be cleared by clear(). `patience`: of threads that wait for letters.
    OwnerFeatures(const OwnerRows &rows, double lambda, int patience, Team &team);

    /// For all threads; set between two sweeps.
    const Steps &steps() const noexcept { return steps_; }
    void set_steps(const Steps &steps) noexcept { steps_ = steps; }

    std::span<ZU> zu(int owner) noexcept {
        const auto width = static_cast<std::size_t>(rows_.width());
        return std::span(zu_).subspan(static_cast<std::size_t>(owner) * width, width);
    }
    std::span<const ZU> all() const noexcept { return zu_; }
    /// {mz, mu} of row j of a batch, whose dual moved so far.
    ZU pair_of(const Walk &walk, int j, double move) const noexcept {
        const double mu = move * steps_.inverse_n;
        return ZU{(move * steps_.ahead[j] - walk.beta * mu) * walk.inverse_alpha, mu};
    }
    /// |x + u/lambda|^2 of a feature with {z, u}: g(x) + g*(-u) + <u, x> is lambda/2 of it.
    double squared_distance(const Walk &walk, const ZU &pair) const noexcept {
        const double away = walk.alpha * pair[0] + (walk.beta + 1 / lambda_) * pair[1];
        return away * away;
    }
    /// The same over the owner's features.
    double distance(int owner, const Walk &walk) noexcept;

    // What a thread does for the owners that it has.
    void clear(const OwnerShares &shares, int thread) noexcept;
    void send_parts(const OwnerShares &shares, int thread, const Walk &walk, const Batch &batch) noexcept;
    void follow(const OwnerShares &shares, int thread, const Walk &walk, const Batch &batch) noexcept;
    void rebase(const OwnerShares &shares, int thread, const Walk &walk) noexcept;

    // What the leader does for seven rows: adds up what all owners sent, and says whether it waited long; sends the moves.
    bool sum_parts(const OwnerShares &shares, const Walk &walk, int letter, double (&sums)[Letter::size]) noexcept;
    void send_moves(const Walk &walk, int letter, const double (&moves)[Letter::size]) noexcept {
        moves_[static_cast<std::size_t>(letter)].send(moves, walk.date);
    }

  private:
    void add_parts(int owner, const Walk &walk, const Batch &batch, int begin, int end,
                   double (&parts)[letters][Letter::size]) noexcept;
    /// Letter by letter, so that the leader can begin soon; where a thread has many owners, each has the batch in one go, so that its
    /// features stay in near caches.
    static int rows_at_a_time(const OwnerShares &shares, int thread) noexcept {
        return shares.end(thread) - shares.first(thread) <= 2 ? Letter::size : m;
    }

    const OwnerRows &rows_;
    const double lambda_;
    const int patience_;
    Steps steps_;
    std::vector<ZU, UnfilledHugePageAllocator<ZU>> zu_; // owner by owner
    std::vector<Letter> parts_, moves_;                 // from each owner to the leader; from the leader to all
};

} // namespace spdc
