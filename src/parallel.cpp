#include "parallel.h"

#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace spdc {

void SpinBarrier::wait() noexcept {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
        arrived_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
        if (spins < 4000) {
#if defined(__x86_64__) || defined(__i386__)
            _mm_pause();
#endif
        } else {
            std::this_thread::yield();
        }
    }
}

void run_team(int count, const std::function<void(int)> &body) {
    std::vector<std::jthread> others;
    others.reserve(static_cast<std::size_t>(count));
    for (int thread = 1; thread < count; ++thread) others.emplace_back([&body, thread] { body(thread); });
    body(0);
}

} // namespace spdc
