// Teams of threads that run the same function and meet at barriers, or share out pieces of work.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace spdc {

struct SolveContext;

/// Thrown between two pieces of work when the caller or the user wants the run to end.
struct Interrupted {};

/// How many threads work, and who may end their work before it is done.
struct Crew {
    Crew(int count) : threads(count) {} // NOLINT: a number of threads is one
    Crew(const SolveContext &context);  // NOLINT: and that one knows both
    Crew(const SolveContext &context, int count);
    /// Whether the run is to end. Cheap enough to be asked every few microseconds.
    bool is_interrupted() const {
        return (interrupt && interrupt->load(std::memory_order_relaxed)) || (stop && stop());
    }
    void check() const {
        if (is_interrupted()) throw Interrupted{};
    }
    /// Whether anybody may end the work.
    bool may_be_ended() const { return interrupt || stop; }

    int threads;
    const std::atomic<bool> *interrupt = nullptr;
    std::function<bool()> stop = {};
};

/// Makes this thread's interruption points listen to a run, until the end of the block or end(): then to nobody, or to the run around it.
class Listening {
  public:
    explicit Listening(Crew crew);
    ~Listening() { end(); }
    Listening(const Listening &) = delete;
    Listening &operator=(const Listening &) = delete;
    void end();

  private:
    friend void ask_this_thread();
    const Crew crew_;
    Listening *const before_;
    bool is_over_ = false;
};

/// For long work on one thread, anywhere in a run: throws Interrupted if the run is to end. `entries`: how much was done since the last
/// such point, about, in entries of a matrix; the run is asked when that adds up to a fraction of a millisecond. Threads that help
/// out in a team hear of nothing, nor do bodies that must not throw.
void ask_this_thread();
inline constinit thread_local std::int64_t entries_until_asking = 0;
inline void interruption_point(std::int64_t entries) {
    if ((entries_until_asking -= entries) < 0) ask_this_thread();
}

/// How often one of so many threads looks whether the others are done before it goes to sleep. Waking up takes tens of microseconds; but
/// where all cores are taken, the one that it waits for may need this one.
int patience(int threads) noexcept;

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

/// The same meeting with a line of memory for each thread instead of a common counter. Each thread says who it is. One that waits for
/// long goes to sleep: others want its core.
class FlagBarrier {
  public:
    explicit FlagBarrier(int count) : flags_(static_cast<std::size_t>(count)), patience_(patience(count)) {}
    void wait(int thread) noexcept;

  private:
    struct alignas(128) Flag {
        std::atomic<int> round{0}; // wraps around
    };
    std::vector<Flag> flags_;
    const int patience_;
};

/// Waits until ready(): spins, yields, and then sleeps, since others want the core. Says whether it took so long.
void wait_a_moment(int turn, int patience) noexcept;
template <class Ready> bool await(int patience, Ready &&ready) noexcept {
    int turn = 0;
    for (; !ready(); ++turn) wait_a_moment(turn, patience);
    return turn > patience;
}

/// Seven numbers for other threads and the date they are of: a line of the cache, so that one transfer brings all. One thread writes; the
/// next ones when all have read these. Nobody is woken: the writer would have to wait until no other core has the line any more.
class alignas(64) Letter {
  public:
    static constexpr int size = 7;
    void send(const double (&numbers)[size], unsigned date) noexcept {
        std::copy(numbers, numbers + size, numbers_);
        date_.store(date, std::memory_order_release);
    }
    unsigned date() const noexcept { return date_.load(std::memory_order_acquire); }
    /// Those of the date seen last.
    const double *numbers() const noexcept { return numbers_; }

  private:
    double numbers_[size] = {};
    std::atomic<unsigned> date_{0};
};
static_assert(sizeof(Letter) == 64);

/// Threads that are kept between runs: parked, not started anew, for methods that work in pieces of a few milliseconds. The first
/// run starts them. One caller at a time.
class Team {
  public:
    explicit Team(Crew crew) : crew_(std::move(crew)), size_(std::max(crew_.threads, 1)), patience_(patience(size_)) {}
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    int size() const noexcept { return size_; }
    /// Runs body(thread) for thread = 0 ... size()-1, thread 0 on the caller, and returns when all have returned. The body
    /// must not throw.
    void run(const std::function<void(int)> &body);
    /// Runs body(chunk) for chunk = 0 ... count-1, each once, on any thread. Throws Interrupted between two chunks.
    void for_each(std::int64_t count, const std::function<void(std::int64_t)> &body);
    /// The same, on the caller alone when `work`, in entries of a matrix, is not worth waking the others. Says how many threads
    /// there were.
    int for_each(std::int64_t count, double work, const std::function<void(std::int64_t)> &body);
    /// Throws Interrupted if the run is to end: for thread 0 of a body that catches it.
    void check() const {
        if (crew_.may_be_ended()) return crew_.check();
        ask_this_thread();
    }
    /// From here on this one may end the work.
    void listen_to(Crew crew) { crew_ = std::move(crew); }
    /// From here on all work is done to the end.
    void ignore_interrupts() { crew_ = size_; }

  private:
    void serve(int thread, unsigned seen);
    void hire(unsigned seen);
    void call(const std::function<void(int)> &body);
    void await_others() noexcept;

    Crew crew_;
    const int size_, patience_;
    const std::function<void(int)> *body_ = nullptr; // none: go home
    std::atomic<unsigned> round_{0};
    std::atomic<int> working_{0};
    std::vector<std::thread> others_;
};

/// A team of so many threads: one that is lent, where it has as many, or one of its own.
class LentTeam {
  public:
    LentTeam(Team *lent, const Crew &crew) {
        if (!lent || lent->size() != crew.threads) own_ = std::make_unique<Team>(crew);
        team_ = own_ ? own_.get() : lent;
    }
    operator Team &() const noexcept { return *team_; } // NOLINT: is one
    Team *operator->() const noexcept { return team_; }

  private:
    std::unique_ptr<Team> own_;
    Team *team_;
};

/// Has the system clear new memory now, if it can, each large page by one thread: threads that write to the same new page at a time would
/// each clear it. Without others the first write does.
void touch_pages(Team &team, std::span<const std::span<std::byte>> memory);

template <class Vector> std::span<std::byte> memory_of(Vector &numbers) {
    return std::as_writable_bytes(std::span(numbers.data(), numbers.size()));
}

/// So many new numbers, for the threads to fill.
template <class Vector> void make_numbers(Team &team, Vector &numbers, std::size_t count) {
    numbers.resize(count);
    touch_pages(team, std::array{memory_of(numbers)});
}

/// All zero. The parts are of one length, which parts with as many entries of a matrix are not.
template <class Number> void fill_zeros(Team &team, Number *numbers, std::size_t count) {
    constexpr std::size_t chunk = std::size_t{1} << 16;
    team.for_each(static_cast<std::int64_t>((count + chunk - 1) / chunk), static_cast<double>(count),
                  [&](std::int64_t k) {
                      const std::size_t begin = static_cast<std::size_t>(k) * chunk;
                      std::fill(numbers + begin, numbers + std::min(begin + chunk, count), Number{});
                  });
}

inline bool are_zero(std::span<const double> numbers, Team &team) {
    constexpr std::size_t chunk = 4096;
    std::atomic<bool> all = true;
    team.for_each(static_cast<std::int64_t>((numbers.size() + chunk - 1) / chunk), static_cast<double>(numbers.size()),
                  [&](std::int64_t k) {
                      if (!all.load(std::memory_order_relaxed)) return;
                      const auto rest = numbers.subspan(static_cast<std::size_t>(k) * chunk);
                      const auto own = rest.first(std::min(chunk, rest.size()));
                      if (std::any_of(own.begin(), own.end(), [](double v) { return v != 0; })) all = false;
                  });
    return all;
}

/// Where the k-th of so many parts of [0, count) begins. They get smaller, from seven quarters of the average to one: threads that take
/// one after the other are done at about the same time.
inline std::size_t part_begin(std::size_t k, std::size_t parts, std::size_t count) {
    return count * k * (7 * parts - 3 * k) / (4 * parts * parts);
}

/// Adds up body(begin, end, sums) over chunks of [0, count) in their order: the same bits for any number of threads.
template <class Sums, class Body> Sums sum_chunks(Team &team, std::size_t count, double work, Body &&body) {
    constexpr std::size_t chunk = 4096;
    std::vector<Sums> parts((count + chunk - 1) / chunk);
    team.for_each(static_cast<std::int64_t>(parts.size()), work, [&](std::int64_t k) {
        const std::size_t begin = static_cast<std::size_t>(k) * chunk;
        Sums own{};
        body(begin, std::min(begin + chunk, count), own);
        parts[static_cast<std::size_t>(k)] = own;
    });
    Sums total{};
    for (const Sums &part : parts) total.add(part);
    return total;
}

/// Runs body(thread) for thread = 0 ... count-1, thread 0 on the caller, and returns when all have returned.
void run_team(int count, const std::function<void(int)> &body);

} // namespace spdc
