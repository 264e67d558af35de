#include "driver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spdc {

namespace {

constexpr double block_entries = 2e6; // matrix entries between two looks at the clock: some 20 ms

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

std::int64_t count_nonzeros(std::span<const double> x) {
    return static_cast<std::int64_t>(x.size()) - std::count(x.begin(), x.end(), 0.0);
}

bool is_finite(const std::vector<double> &values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// Far beyond the best point so far: step sizes that diverge get there long before they overflow.
bool is_diverging(const std::vector<double> &x, std::span<const double> best) {
    const auto size = [](double most, double v) { return std::max(most, std::fabs(v)); };
    return std::accumulate(x.begin(), x.end(), 0.0, size) >
           1e12 * (1 + std::accumulate(best.begin(), best.end(), 0.0, size));
}

} // namespace

Outcome drive(const Problem &problem, Method &method, Certifier &certifier, const Stopping &stopping,
              const SolveContext &context, const Clock &clock, std::int64_t output, Trace &trace) {
    Outcome outcome;
    Schedule schedule;
    StallWatch watch;
    std::vector<double> x, y;
    const double block = std::max(block_entries / std::max(1.0, static_cast<double>(problem.nonzeros())),
                                  1.0 / static_cast<double>(problem.rows()));
    const auto interrupted = [&] { return context.interrupt && context.interrupt->load(std::memory_order_relaxed); };
    method.aim(stopping.tolerance);
    while (!method.has_point() && method.passes() < stopping.max_passes && !interrupted() &&
           clock.seconds() < stopping.max_seconds) {
        method.advance(block);
    }
    while (outcome.reason == StopReason::not_run) {
        const double certification_start = clock.seconds();
        method.point(x, y);
        outcome.passes = method.passes();
        const bool usable = is_finite(x) && is_finite(y) && (trace.empty() || !is_diverging(x, certifier.x()));
        if (usable) certifier.offer(x, y, stopping.tolerance);
        outcome.seconds_certifying += clock.seconds() - certification_start;

        const Certificate &now = certifier.certificate();
        trace.push_back({output, outcome.passes, clock.seconds(), clock.seconds() - outcome.seconds_certifying,
                         now.primal, now.dual, now.gap, now.relative_gap,
                         count_nonzeros(certifier.x().first(static_cast<std::size_t>(problem.features())))});
        const bool go_on = !context.observer || context.observer(trace.back());
        if (now.relative_gap <= stopping.tolerance) {
            outcome.reason = StopReason::gap_reached;
        } else if (!usable) {
            outcome.reason = StopReason::numerical_failure;
        } else if (!go_on || interrupted()) {
            outcome.reason = StopReason::interrupted;
        } else if (outcome.passes >= stopping.max_passes) {
            outcome.reason = StopReason::pass_limit;
        } else if (clock.seconds() >= stopping.max_seconds) {
            outcome.reason = StopReason::time_limit;
        } else if (certifier.has_no_minimizer()) {
            outcome.reason = StopReason::no_minimizer;
        } else if (watch.stalled(outcome.passes, now.relative_gap) || method.exhausted()) {
            outcome.reason = StopReason::stalled;
        } else {
            method.certified(certifier);
        }
        double next = schedule.next(outcome.passes, now.relative_gap, stopping.tolerance);
        const double latest = outcome.passes + std::max(25.0, 0.5 * outcome.passes);
        const double promising = 2 * stopping.tolerance * std::max(std::fabs(now.primal), std::fabs(now.dual));
        const auto looks_done = [&] { return 0 < method.estimated_gap() && method.estimated_gap() <= promising; };
        const bool looked_done = looks_done();
        while (outcome.reason == StopReason::not_run && method.passes() < std::min(next, stopping.max_passes) &&
               !method.exhausted() && !interrupted() && clock.seconds() < stopping.max_seconds) {
            method.advance(std::min({block, next - method.passes(), stopping.max_passes - method.passes()}));
            // a method that guesses its gap is certified as soon as the guess is near the tolerance, and now and then
            if (!looked_done && looks_done()) break;
            if (method.passes() >= next && method.passes() < latest && method.estimated_gap() > promising) {
                next = method.passes() + 1;
            }
        }
    }
    return outcome;
}

} // namespace spdc
