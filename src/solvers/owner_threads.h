// Which threads of spdc_owners.cpp do what.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace spdc {

/// The owners of each thread. To lead is as much work as an owner has, about; the leader, thread 0, has the fewer, and the last. Every
/// other thread has one at least: by its letters the leader knows that it has read those before.
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

/// How many of the threads work: choice 0 is all, 1 half of them, 2 a quarter ... Where cores are taken away, by other programs or by the
/// host of a virtual machine, threads that wait for one another all wait for the one that has none, and fewer may be faster: then half as
/// many are tried for a few pieces of work, and later more again. It goes by the clock; what is computed does not depend on it.
class ThreadTrials {
  public:
    explicit ThreadTrials(int choices) : choices_(choices) {}
    int choice() const noexcept { return now_; }
    /// Of a piece of work: the time that a row took, and whether the leader waited long for another thread.
    void tell(double seconds_per_row, bool was_disturbed) noexcept {
        if (!std::exchange(is_warm_, true)) return; // the first piece finds cold caches
        history_ = static_cast<std::uint8_t>(history_ << 1 | (was_disturbed ? 1 : 0));
        if (left_ > 0) return end_trial(seconds_per_row);
        usual_ = usual_ == 0 ? seconds_per_row : 0.8 * usual_ + 0.2 * seconds_per_row;
        if (wait_ > 0 && --wait_ > 0) return;
        const bool is_disturbed = std::popcount(history_) >= 2;
        if (is_disturbed && now_ + 1 < choices_ && !(fewer_failed_ && now_ > 0)) {
            begin_trial(now_ + 1);
        } else if (now_ > 0) {
            begin_trial(now_ - 1);
        }
    }

  private:
    static constexpr int pieces = 3, shortest_wait = 8, longest_wait = 256;
    void begin_trial(int choice) noexcept {
        home_ = now_, now_ = choice;
        left_ = pieces, tried_ = 0;
    }
    void end_trial(double seconds_per_row) noexcept {
        if (left_ < pieces) tried_ += seconds_per_row / (pieces - 1); // caches again
        const bool is_hopeless = seconds_per_row > 3 * usual_;
        if (--left_ > 0 && !is_hopeless) return;
        left_ = 0;
        const bool is_better = tried_ < usual_ && !is_hopeless;
        fewer_failed_ = !is_better && now_ > home_;
        longer_wait_ = is_better ? shortest_wait : std::min(2 * longer_wait_, longest_wait);
        if (is_better) usual_ = tried_;
        if (!is_better) now_ = home_;
        wait_ = longer_wait_;
        history_ = 0;
    }

    int choices_, now_ = 0, home_ = 0;
    int left_ = 0, wait_ = 2, longer_wait_ = shortest_wait; // pieces of work: of the trial, until the next may begin
    double usual_ = 0, tried_ = 0;                          // seconds a row
    std::uint8_t history_ = 0;                              // a bit for each of the last eight pieces: disturbed
    bool is_warm_ = false, fewer_failed_ = false;           // the last trial, of fewer threads
};

} // namespace spdc
