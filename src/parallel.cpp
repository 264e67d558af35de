#include "parallel.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace spdc {

namespace {

constexpr int patience = 4000; // turns of a spinning loop, some 50 us

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#endif
}

/// Returns when the value is no longer `old`: spins, then sleeps.
template <class T> void wait_for_change(const std::atomic<T> &value, T old) noexcept {
    for (int spins = 0; spins < patience; ++spins) {
        if (value.load(std::memory_order_acquire) != old) return;
        pause();
    }
    value.wait(old, std::memory_order_acquire);
}

} // namespace

void SpinBarrier::wait() noexcept {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
        arrived_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
        if (spins < patience) {
            pause();
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

Team::~Team() {
    if (others_.empty()) return;
    body_ = nullptr;
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
}

void Team::run(const std::function<void(int)> &body) {
    if (size_ == 1) {
        body(0);
        return;
    }
    for (int thread = static_cast<int>(others_.size()) + 1; thread < size_; ++thread) {
        others_.emplace_back([this, thread] { serve(thread); });
    }
    body_ = &body;
    busy_.store(size_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    body(0);
    for (int left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire)) {
        wait_for_change(busy_, left);
    }
}

void Team::serve(int thread) {
    for (unsigned seen = 0;; ++seen) { // every thread takes part in every round, so none can be missed
        wait_for_change(round_, seen);
        if (!body_) return;
        (*body_)(thread);
        if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
    }
}

int Team::each(std::size_t count, double work, const std::function<void(std::size_t)> &body) {
    constexpr double least_work = 2e5;
    if (size_ == 1 || count < 2 || work < least_work) {
        for (std::size_t k = 0; k < count; ++k) body(k);
        return 1;
    }
    std::atomic<std::size_t> next{0};
    run([&](int) {
        for (std::size_t k = next++; k < count; k = next++) body(k);
    });
    return size_;
}

} // namespace spdc
