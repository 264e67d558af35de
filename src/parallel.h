// A team of threads that run the same function and meet at barriers.
#pragma once

#include <atomic>
#include <functional>

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

} // namespace spdc
