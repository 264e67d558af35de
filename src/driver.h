// The one outer loop: clock, certification, trace, observer, stopping, interrupt.
#pragma once

#include "method.h"
#include "parallel.h"
#include "spdc/problem.h"
#include "spdc/solvers.h"

#include <chrono>
#include <functional>
#include <optional>

namespace spdc {

class Clock {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The caller's wish to end a run, as its loops hear it; and then, where the run has nothing to show yet, a grace.
class Interrupt {
  public:
    explicit Interrupt(const SolveContext &context) : crew_(context), context_(context) {
        if (!context.interrupt && !context.stop) return;
        context_.interrupt = nullptr;
        context_.stop = [this] { return is_due(); };
    }
    /// For all that works in the run.
    const SolveContext &context() const noexcept { return context_; }
    void give_grace() { grace_.emplace(); }

  private:
    bool is_due() const {
        constexpr double grace = 0.06; // seconds: with what else there is to do, Ctrl-C is to take at most 0.2
        return grace_ ? grace_->seconds() > grace : crew_.is_interrupted();
    }

    const Crew crew_;
    SolveContext context_;
    std::optional<Clock> grace_;
};

/// How the run of one output ended; not_run while it has not.
struct Outcome {
    StopReason reason = StopReason::not_run;
    double passes = 0;
    double seconds_certifying = 0;
    double remaining = infinity; // passes that a method which was left would still need, by the decay of its gap
};

/// The run of one output, through one method or several: clock, schedule and trace go on where the last method left.
class Driver {
  public:
    Driver(const Problem &problem, Certifier &certifier, const Stopping &stopping, Interrupt &interrupt,
           const Clock &clock, std::int64_t output, Trace &trace);

    /// The dual point that belongs to x.
    using DualOf = std::function<std::vector<double>(std::span<const double> x)>;
    /// Offers a point to start from, with its dual point, and passes both on to all methods that follow: dual is asked again for each, so
    /// that between two of them nobody keeps it. Says how that ended: not_run, unless it was good enough or the observer wanted no more.
    const Outcome &start(std::vector<double> x, DualOf dual);
    /// The methods that follow start at the best point so far.
    void go_on_from_best();
    /// Runs the method until something stops it; the certifier then holds the best point. Where another one could follow that is
    /// likely to need `successor` passes, a method that breaks down, or runs out of patience and would need many more, is left
    /// with not_run; run() may take it up again later.
    const Outcome &run(Method &method, const std::string &solver, std::optional<double> successor = {},
                       const Patience &patience = {});
    /// After Interrupted, wherever it was thrown: the certifier holds the best point so far.
    const Outcome &break_off();

  private:
    void drive(Method &method, std::optional<double> successor, const Patience &patience);
    void certify(Method &method);
    void record(double passes, double omega);
    StopReason judge(Method &method, bool go_on);
    void advance(Method &method, double until);
    bool ask_observers() const;
    bool may_go_on(const Method &method) const;

    const Problem &problem_;
    Certifier &certifier_;
    const Stopping &stopping_;
    Interrupt &interrupt_;
    const SolveContext &context_;
    const Crew crew_;
    const Clock &clock_;
    const std::int64_t output_;
    Trace &trace_;
    Team &team_;
    const double block_; // passes between two looks at the clock
    Outcome outcome_;
    std::string solver_;
    double passes_before_ = 0; // by earlier methods
    bool usable_ = true;
    std::vector<double> start_x_; // empty: none
    DualOf start_dual_;
    double guess_error_ = 1; // gap over the method's own guess of it, at the last certificate
};

} // namespace spdc
