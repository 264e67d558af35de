#include "driver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace spdc {

namespace {

constexpr double block_entries = 2e6; // matrix entries between two looks at the clock: some 20 ms
constexpr double row_entries = 30;    // what the functions of a row and its random place cost, in such entries

/// When to certify next. Often at first, then every 4 % of the passes so far, closer when the gap's own decay says that the
/// end is near: a certificate costs one to two passes.
class Schedule {
  public:
    double next(double passes, double relative_gap, double tolerance) {
        double step = std::max(1.0, 0.04 * passes);
        if (std::isfinite(last_gap_) && relative_gap < last_gap_ && passes > last_passes_ && relative_gap > 0) {
            const double rate = std::log(last_gap_ / relative_gap) / (passes - last_passes_);
            const double remaining = std::log(std::max(relative_gap / tolerance, 1.0)) / rate;
            step = std::max(1.0, std::min(step, 0.5 * remaining));
        }
        last_gap_ = relative_gap;
        last_passes_ = passes;
        return passes + step;
    }

  private:
    double last_gap_ = infinity;
    double last_passes_ = 0;
};

/// Tells when a method that guesses its gap is worth a certificate: as soon as the guess is near the tolerance, and otherwise seldom.
class Prospect {
  public:
    /// `share` of the objective, by the guess, is near enough.
    Prospect(const Method &method, const Certificate &last, double share)
        : method_(method), share_(share), size_(std::max(std::fabs(last.primal), std::fabs(last.dual))),
          begin_(method.passes()) {}

    bool looks_done() {
        const double guess = method_.estimated_gap();
        if (!(0 < guess && guess <= share_ * size_)) return false;
        // the objective may have fallen far since the last certificate: D tells how large it will be
        const double dual = method_.dual_value();
        if (guess < 0.1 * dual) size_ = std::min(size_, 1.1 * dual);
        return guess <= share_ * size_;
    }

    /// For 25 passes, or half as many as there were; twice that if by the decay of the guess there is less left than was done since the
    /// last certificate. A guess that is not a number is none.
    bool is_worth_waiting() {
        const double guess = method_.estimated_gap(), now = method_.passes(), patience = std::max(25.0, 0.5 * begin_);
        if (first_guess_ == infinity) first_guess_ = guess, first_ = now;
        if (!(guess > share_ * size_)) return false;
        if (now < begin_ + patience) return true;
        return now < begin_ + 2 * patience &&
               (now - first_) * std::log(guess / (share_ * size_)) < (now - begin_) * std::log(first_guess_ / guess);
    }

  private:
    const Method &method_;
    const double share_;
    double size_;
    const double begin_;
    double first_ = 0, first_guess_ = infinity; // where it was first waited for
};

/// Notices that a method will need so long, by the decay of its gap, that another one is worth a try: beyond its patience, and twice what the
/// other one costs. Passes and not seconds decide, so that the same call does the same thing everywhere.
class Pace {
  public:
    explicit Pace(const Patience &patience) : patience_(patience) {}
    bool is_hopeless(double passes, double relative_gap, double tolerance, double successor) {
        points_.push_back({passes, std::log(relative_gap)});
        if (passes - points_.front().first < patience_.passes) return false;
        const auto rate_since = [&](double share) { // infinity: the first look since then
            const double begin = points_.front().first + share * (passes - points_.front().first);
            const auto since =
                std::find_if(points_.begin(), points_.end(), [&](const auto &p) { return p.first >= begin; });
            return since->first == passes ? infinity
                                          : (since->second - points_.back().second) / (passes - since->first);
        };
        const double rate = patience_.in_steps ? std::max(rate_since(0.5), rate_since(1.0 / 3)) : rate_since(0.5);
        if (rate == infinity) return false;
        remaining_ = rate > 0 ? (points_.back().second - std::log(tolerance)) / rate : infinity;
        return !(remaining_ <= std::max(patience_.times * passes, 2 * successor));
    }
    double remaining() const { return remaining_; }

  private:
    std::vector<std::pair<double, double>> points_; // passes, log of the gap
    Patience patience_;
    double remaining_ = infinity;
};

/// Notices that the gap has not fallen for a long time.
class StallWatch {
  public:
    bool stalled(double passes, double relative_gap) {
        if (relative_gap < 0.999 * best_) {
            best_ = relative_gap;
            best_passes_ = passes;
            points_ = 0;
        }
        return ++points_ > 20 && passes > 6 * best_passes_ + 5000;
    }

  private:
    double best_ = infinity;
    double best_passes_ = 0;
    int points_ = 0;
};

std::int64_t count_nonzeros(std::span<const double> x, Team &team) {
    struct Zeros {
        std::int64_t count = 0;
        void add(const Zeros &other) { count += other.count; }
    };
    const Zeros zeros = sum_chunks<Zeros>(team, x.size(), static_cast<double>(x.size()),
                                          [&](std::size_t begin, std::size_t end, Zeros &own) {
                                              const auto part = x.subspan(begin, end - begin);
                                              own.count = std::count(part.begin(), part.end(), 0.0);
                                          });
    return static_cast<std::int64_t>(x.size()) - zeros.count;
}

/// The largest magnitude; infinity where a number is not finite. Eight at a time, so that they do not wait for one another.
double largest_magnitude(std::span<const double> values) {
    constexpr std::size_t lanes = 8;
    std::array<double, lanes> most{}, nothing{}; // v - v is 0, or NaN where v is not finite
    const auto look = [&](double v, std::size_t lane) {
        most[lane] = std::fabs(v) > most[lane] ? std::fabs(v) : most[lane];
        nothing[lane] += v - v;
    };
    std::size_t k = 0;
    for (; k + lanes <= values.size(); k += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) look(values[k + lane], lane);
    }
    for (; k < values.size(); ++k) look(values[k], 0);
    const bool are_finite = std::all_of(nothing.begin(), nothing.end(), [](double v) { return v == 0; });
    return are_finite ? *std::max_element(most.begin(), most.end()) : infinity;
}

double largest_magnitude(std::span<const double> values, Team &team) {
    struct Largest {
        double size = 0;
        void add(const Largest &other) { size = std::max(size, other.size); }
    };
    return sum_chunks<Largest>(team, values.size(), static_cast<double>(values.size()),
                               [&](std::size_t begin, std::size_t end, Largest &own) {
                                   own.size = largest_magnitude(values.subspan(begin, end - begin));
                               })
        .size;
}

/// Finite, and not far beyond the best point so far: step sizes that diverge get there long before they overflow.
bool is_usable(const Certifier::Pair &pair, const Certifier &best, Team &team) {
    const double size = largest_magnitude(pair.x, team);
    if (size == infinity || largest_magnitude(pair.y, team) == infinity) return false;
    return size <= 1e12 || best.y().empty() || size <= 1e12 * (1 + largest_magnitude(best.x(), team));
}

bool is_breakdown(StopReason reason) {
    return reason == StopReason::stalled || reason == StopReason::numerical_failure;
}

} // namespace

Driver::Driver(const Problem &problem, Certifier &certifier, const Stopping &stopping, Interrupt &interrupt,
               const Clock &clock, std::int64_t output, Trace &trace)
    : problem_(problem), certifier_(certifier), stopping_(stopping), interrupt_(interrupt),
      context_(interrupt.context()), crew_(context_), clock_(clock), output_(output), trace_(trace),
      team_(certifier.team()), block_(std::max(block_entries / (static_cast<double>(problem.nonzeros()) +
                                                                row_entries * static_cast<double>(problem.rows())),
                                               1.0 / static_cast<double>(problem.rows()))) {}

/// Whether both observers want to go on from the last point of the trace.
bool Driver::ask_observers() const {
    const Listening nobody(1); // the caller's work there is its own
    const bool go_on = !context_.observer || context_.observer(trace_.back());
    return (!context_.point_observer || context_.point_observer(trace_.back(), certifier_.x())) && go_on;
}

bool Driver::may_go_on(const Method &method) const {
    crew_.check();
    return passes_before_ + method.passes() < stopping_.max_passes && !method.exhausted() &&
           clock_.seconds() < stopping_.max_seconds;
}

void Driver::record(double passes, double omega) {
    const Certificate &now = certifier_.certificate();
    const double seconds = clock_.seconds(); // read once: the thread may be put off between two readings
    trace_.push_back({output_, passes, seconds, seconds - outcome_.seconds_certifying, now.primal, now.dual, now.gap,
                      now.relative_gap,
                      count_nonzeros(certifier_.x().first(static_cast<std::size_t>(problem_.features())), team_), omega,
                      solver_});
}

void Driver::certify(Method &method) {
    const double start = clock_.seconds();
    Certifier::Pair pair = certifier_.room();
    method.point(pair.x, pair.y);
    usable_ = is_usable(pair, certifier_, team_);
    if (usable_) certifier_.offer(std::move(pair), stopping_.tolerance);
    const double guess = method.estimated_gap();
    if (0 < guess && guess < infinity) guess_error_ = std::max(certifier_.certificate().gap / guess, 0.02);
    outcome_.passes = passes_before_ + method.passes();
    outcome_.seconds_certifying += clock_.seconds() - start;
    record(outcome_.passes, method.omega());
}

/// What ends the run at the point just certified, or not_run.
StopReason Driver::judge(Method &method, bool go_on) {
    if (certifier_.certificate().relative_gap <= stopping_.tolerance) return StopReason::gap_reached;
    if (!usable_) return StopReason::numerical_failure;
    if (!go_on) return StopReason::interrupted;
    if (outcome_.passes >= stopping_.max_passes) return StopReason::pass_limit;
    if (clock_.seconds() >= stopping_.max_seconds) return StopReason::time_limit;
    if (certifier_.has_no_minimizer()) return StopReason::no_minimizer;
    if (method.exhausted()) return StopReason::stalled;
    return StopReason::not_run;
}

/// Runs the method to `next` passes of its own, or until a certificate is worth its time, unless its last guess was far off.
void Driver::advance(Method &method, double next) {
    const bool guesses = guess_error_ < 10 && !context_.full_trace;
    Prospect prospect(method, certifier_.certificate(), stopping_.tolerance / guess_error_);
    const bool looked_done = guesses && prospect.looks_done();
    while (method.passes() < next && may_go_on(method)) {
        const double left = stopping_.max_passes - passes_before_ - method.passes();
        method.advance(std::min({block_, next - method.passes(), left}));
        for (const Method::OmegaChange &change : method.take_omega_changes()) {
            record(passes_before_ + change.passes, change.omega);
        }
        if (guesses && !looked_done && prospect.looks_done()) break;
        if (guesses && method.passes() >= next && prospect.is_worth_waiting()) next = method.passes() + 1;
    }
}

const Outcome &Driver::start(std::vector<double> x, DualOf dual) {
    start_x_ = std::move(x); // first of all: an interrupted run is to end there
    start_dual_ = std::move(dual);
    Certifier::Pair pair{start_x_, start_dual_(start_x_)};
    const double begin = clock_.seconds();
    solver_ = "start";
    certifier_.offer(std::move(pair), stopping_.tolerance);
    outcome_.seconds_certifying += clock_.seconds() - begin;
    record(0, std::numeric_limits<double>::quiet_NaN());
    const bool go_on = ask_observers();
    if (certifier_.certificate().relative_gap <= stopping_.tolerance) {
        outcome_.reason = StopReason::gap_reached;
    } else if (!go_on) {
        outcome_.reason = StopReason::interrupted;
    }
    return outcome_;
}

void Driver::go_on_from_best() {
    start_x_.assign(certifier_.x().begin(), certifier_.x().end());
    start_dual_ = [this](auto) { return std::vector<double>(certifier_.y().begin(), certifier_.y().end()); };
}

const Outcome &Driver::run(Method &method, const std::string &solver, std::optional<double> successor,
                           const Patience &patience) {
    solver_ = solver;
    passes_before_ = outcome_.passes - method.passes();
    outcome_.remaining = infinity;
    method.aim(stopping_.tolerance);
    if (method.passes() == 0 && !start_x_.empty()) method.start(start_x_, start_dual_(start_x_));
    try {
        drive(method, successor, patience);
    } catch (const Interrupted &) {
        interrupt_.give_grace();
        if (certifier_.y().empty()) certify(method); // whatever it was at: any point has a gap
        throw;
    }
    return outcome_;
}

void Driver::drive(Method &method, std::optional<double> successor, const Patience &patience) {
    Schedule schedule;
    StallWatch watch;
    Pace pace(patience);
    while (!method.has_point() && may_go_on(method)) {
        method.advance(std::min(block_, stopping_.max_passes - passes_before_ - method.passes()));
    }
    for (;;) {
        certify(method);
        const bool go_on = ask_observers();
        outcome_.reason = judge(method, go_on);
        const double gap = certifier_.certificate().relative_gap;
        if (outcome_.reason == StopReason::not_run && watch.stalled(method.passes(), gap)) {
            outcome_.reason = StopReason::stalled;
        }
        if (successor && is_breakdown(outcome_.reason)) {
            outcome_.reason = StopReason::not_run;
            break;
        }
        const bool may_leave = outcome_.reason == StopReason::not_run && successor && *successor < infinity;
        if (may_leave && pace.is_hopeless(method.passes(), gap, stopping_.tolerance, *successor)) {
            outcome_.remaining = std::min(pace.remaining(), 100 * method.passes()); // slow, not broken
            break;
        }
        if (outcome_.reason != StopReason::not_run) break;
        method.certified({certifier_.certificate(), certifier_.x(), certifier_.predictions()});
        advance(method, schedule.next(method.passes(), gap, stopping_.tolerance));
    }
}

/// Where there is no point yet, x to start from is certified, or zero, with y = 0, which takes next to no time. The trace ends with
/// what there is, also where a certification was broken off.
const Outcome &Driver::break_off() {
    outcome_.reason = StopReason::interrupted;
    team_.ignore_interrupts(); // of a grace that was too short
    if (certifier_.y().empty()) {
        solver_ = "start";
        start_x_.resize(static_cast<std::size_t>(problem_.dimension()));
        certifier_.offer(start_x_, std::vector<double>(static_cast<std::size_t>(problem_.rows())), infinity);
    }
    const Certificate &now = certifier_.certificate();
    const bool is_told = !trace_.empty() && trace_.back().primal == now.primal && trace_.back().dual == now.dual;
    if (!is_told) record(outcome_.passes, std::numeric_limits<double>::quiet_NaN());
    return outcome_;
}

} // namespace spdc
