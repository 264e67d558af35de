#include "parallel.h"

#include "huge_pages.h"
#include "spdc/solvers.h"

#include <chrono>
#include <exception>
#include <mutex>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace spdc {

namespace {

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#endif
}

/// Spins until ready(), and yields after a while, because there may be fewer cores than threads.
template <class Ready> void spin_until(Ready &&ready) noexcept {
    for (int spins = 0; !ready(); ++spins) {
        if (spins < 4000) {
            relax();
        } else {
            std::this_thread::yield();
        }
    }
}

/// Spins until ready(number), then sleeps: whoever changes the number notifies.
template <class Number, class Ready>
void sleep_until(const std::atomic<Number> &number, int patience, Ready &&ready) noexcept {
    Number value = number.load(std::memory_order_acquire);
    for (int spins = 0; !ready(value) && spins < patience + 20; ++spins) {
        if (spins < patience) {
            relax();
        } else {
            std::this_thread::yield();
        }
        value = number.load(std::memory_order_acquire);
    }
    while (!ready(value)) {
        number.wait(value, std::memory_order_acquire);
        value = number.load(std::memory_order_acquire);
    }
}

} // namespace

Crew::Crew(const SolveContext &context) : Crew(context, context.threads) {}
Crew::Crew(const SolveContext &context, int count) : threads(count), interrupt(context.interrupt), stop(context.stop) {}

namespace {

thread_local Listening *listening = nullptr; // of this thread; the innermost

} // namespace

Listening::Listening(Crew crew) : crew_(std::move(crew)), before_(std::exchange(listening, this)) {
    entries_until_asking = 0;
}

void Listening::end() {
    if (!std::exchange(is_over_, true)) listening = before_;
}

void ask_this_thread() {
    constexpr std::int64_t often = 1 << 15; // entries: up to 10 ms where each is an exponential and far away
    entries_until_asking = often;
    if (listening) listening->crew_.check();
}

int patience(int threads) noexcept {
    static const int cores = available_cores(); // asks the system: not for every team
    return threads <= cores ? 5000 : 500;       // some 200 or 20 microseconds
}

void SpinBarrier::wait() noexcept {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
        arrived_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return;
    }
    spin_until([&] { return round_.load(std::memory_order_acquire) != round; });
}

void FlagBarrier::wait(int thread) noexcept {
    std::atomic<int> &mine = flags_[static_cast<std::size_t>(thread)].round;
    const auto round = static_cast<unsigned>(mine.load(std::memory_order_relaxed)) + 1;
    mine.store(static_cast<int>(round)); // sequentially consistent: notifying looks for sleepers after the store
    if (flags_.size() > 1) mine.notify_all();
    for (const Flag &flag : flags_) {
        sleep_until(flag.round, patience_,
                    [&](int value) { return static_cast<int>(static_cast<unsigned>(value) - round) >= 0; });
    }
}

void wait_a_moment(int turn, int patience) noexcept {
    if (turn < patience) {
        relax();
    } else if (turn < patience + 200) {
        std::this_thread::yield();
    } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

Team::~Team() {
    body_ = nullptr;
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread &other : others_) other.join();
}

void Team::serve(int thread, unsigned seen) {
    for (;;) {
        // the next piece of work is often there at once
        sleep_until(round_, patience_, [&](unsigned round) { return round != seen; });
        seen = round_.load(std::memory_order_acquire);
        if (!body_) return;
        (*body_)(thread);
        if (working_.fetch_sub(1) == 1) working_.notify_all();
    }
}

/// Starts the threads, if they are not there yet, as if they had seen so many rounds.
void Team::hire(unsigned seen) {
    while (static_cast<int>(others_.size()) + 1 < size_) {
        others_.emplace_back([this, thread = static_cast<int>(others_.size()) + 1, seen] { serve(thread, seen); });
    }
}

void Team::call(const std::function<void(int)> &body) {
    body_ = &body;
    working_.store(size_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1);
    round_.notify_all();
}

void Team::await_others() noexcept {
    sleep_until(working_, patience_, [](int working) { return working == 0; });
}

void Team::run(const std::function<void(int)> &body) {
    const Listening nobody(1);
    hire(round_.load()); // all of them before any starts: they may meet at barriers
    if (size_ > 1) call(body);
    body(0);
    if (size_ > 1) await_others();
}

void Team::for_each(std::int64_t count, const std::function<void(std::int64_t)> &body) {
    std::atomic<std::int64_t> next = 0;
    std::exception_ptr error;
    std::once_flag failed;
    const std::function<void(int)> work = [&](int thread) {
        try {
            for (std::int64_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
                if (thread == 0) check();
                body(chunk);
            }
        } catch (...) { // out of memory, say: nobody starts another chunk, and the caller hears of it
            next.store(count);
            std::call_once(failed, [&] { error = std::current_exception(); });
        }
    };
    const unsigned before = round_.load();
    if (size_ > 1) call(work);
    try {
        hire(before); // each starts at once: that they are not all there yet takes nothing from those that are
    } catch (...) {
        next.store(count);
        std::call_once(failed, [&] { error = std::current_exception(); });
        working_.fetch_sub(size_ - 1 - static_cast<int>(others_.size()));
    }
    work(0);
    if (size_ > 1) await_others();
    if (error) std::rethrow_exception(error);
}

int Team::for_each(std::int64_t count, double work, const std::function<void(std::int64_t)> &body) {
    constexpr double least_work = 2e5; // less than a millisecond
    if (size_ > 1 && count > 1 && work >= least_work) {
        for_each(count, body);
        return size_;
    }
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
        check();
        body(chunk);
    }
    return 1;
}

void touch_pages(Team &team, std::span<const std::span<std::byte>> memory) {
    if (team.size() == 1) return;
    std::vector<std::span<std::byte>> pages;
    double bytes = 0;
    for (std::span<std::byte> rest : memory) {
        bytes += static_cast<double>(rest.size());
        while (!rest.empty()) {
            const std::size_t to_end = huge_page - reinterpret_cast<std::uintptr_t>(rest.data()) % huge_page;
            pages.push_back(rest.first(std::min(to_end, rest.size())));
            rest = rest.subspan(pages.back().size());
        }
    }
    team.for_each(static_cast<std::int64_t>(pages.size()), bytes / sizeof(double), [&](std::int64_t k) {
        const std::span<std::byte> page = pages[static_cast<std::size_t>(k)];
        touch_pages(page.data(), page.size());
    });
}

void run_team(int count, const std::function<void(int)> &body) {
    std::atomic<int> gate =
        0; // 1: go; -1: go home, because not all could be started and the others would wait at a barrier
    std::vector<std::jthread> others;
    others.reserve(static_cast<std::size_t>(count));
    const auto open = [&](int way) {
        gate = way;
        gate.notify_all();
    };
    try {
        for (int thread = 1; thread < count; ++thread) {
            others.emplace_back([&, thread] {
                gate.wait(0);
                if (gate > 0) body(thread);
            });
        }
    } catch (...) {
        open(-1);
        throw;
    }
    open(1);
    const Listening nobody(1);
    body(0);
}

} // namespace spdc
