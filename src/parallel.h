// Teams of threads: those that meet at barriers, and those that share out pieces of work.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace spdc {

/// Meets `count` threads. They spin, because phases of a mini-batch are microseconds long, and yield after a while, because
/// there may be fewer cores than threads.
class SpinBarrier {
  public:
    explicit SpinBarrier(int count) : count_(count) {}
    void wait() noexcept;

  private:
    const int count_;
    std::atomic<int> arrived_{0};
    std::atomic<unsigned> round_{0};
};

/// Runs body(thread) for thread = 0 ... count-1, thread 0 on the caller, and returns when all have returned.
void run_team(int count, const std::function<void(int)> &body);

/// Threads that wait for work, asleep when it does not come at once: starting eight costs some 200 us, waking them a tenth of it.
/// The first work starts them. One caller at a time.
class Team {
  public:
    explicit Team(int threads) : size_(std::max(threads, 1)) {}
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    int size() const noexcept { return size_; }
    /// As run_team with all threads.
    void run(const std::function<void(int)> &body);
    /// body(k) for k = 0 ... count-1, each on some thread; all on the caller when `work`, in entries of a matrix, is not worth
    /// waking the others. Says how many threads there were.
    int each(std::size_t count, double work, const std::function<void(std::size_t)> &body);

  private:
    void serve(int thread);

    const int size_;
    const std::function<void(int)> *body_ = nullptr; // null: go home
    std::atomic<unsigned> round_{0};
    std::atomic<int> busy_{0};
    std::vector<std::jthread> others_;
};

/// Adds up body(begin, end, sums) over chunks of [0, count) in their order: the same bits for any number of threads.
template <class Sums, class Body> Sums sum_chunks(Team &team, std::size_t count, double work, Body &&body) {
    constexpr std::size_t chunk = 4096;
    std::vector<Sums> parts((count + chunk - 1) / chunk);
    team.each(parts.size(), work, [&](std::size_t k) {
        Sums own{};
        body(k * chunk, std::min((k + 1) * chunk, count), own);
        parts[k] = own;
    });
    Sums total{};
    for (const Sums &part : parts) total.add(part);
    return total;
}

} // namespace spdc
