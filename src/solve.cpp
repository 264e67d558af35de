// Validate, make the method, drive it: the only place where solvers are listed.
#include "driver.h"
#include "huge_pages.h"
#include "parallel.h"
#include "presolve.h"
#include "solvers/methods.h"
#include "spdc/solvers.h"
#include "turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>

namespace spdc {

namespace {

template <std::size_t I> AnySolver make_nth(std::string_view name) {
    if constexpr (I == std::variant_size_v<AnySolver>) {
        fail_unknown("solver", name, solver_names());
    } else {
        using S = std::variant_alternative_t<I, AnySolver>;
        if (name == S::name) return S{};
        return make_nth<I + 1>(name);
    }
}

template <std::size_t... I> std::vector<std::string> names(std::index_sequence<I...>) {
    return {std::string(std::variant_alternative_t<I, AnySolver>::name)...};
}

std::unique_ptr<Method> make_any_method(const Problem &problem, const AnySolver &solver, const SolveContext &context) {
    return std::visit(
        [&](const auto &options) -> std::unique_ptr<Method> {
            if constexpr (std::is_same_v<decltype(options), const Auto &>) {
                fail(ErrorKind::internal, "auto did not choose a solver");
            } else {
                return make_method(problem, options, context);
            }
        },
        solver);
}

/// The caller's observers for outputs that run side by side: one call at a time, and a request to stop is for all of them.
class SharedObservers {
  public:
    explicit SharedObservers(SolveContext &context) {
        if (context.observer) context.observer = shared(context.observer);
        if (context.point_observer) context.point_observer = shared(context.point_observer);
        if (!context.observer) context.observer = [this](const TracePoint &) { return !is_stopped(); };
    }
    void stop() {
        const std::lock_guard guard(mutex_);
        stop_ = true;
    }

  private:
    template <class... Arguments> std::function<bool(Arguments...)> shared(std::function<bool(Arguments...)> observer) {
        return [this, observer = std::move(observer)](Arguments... arguments) {
            const std::lock_guard guard(mutex_);
            if (stop_) return false;
            stop_ = true; // and stays so if it throws
            stop_ = !observer(arguments...);
            return !stop_;
        };
    }
    bool is_stopped() {
        const std::lock_guard guard(mutex_);
        return stop_;
    }

    std::mutex mutex_;
    bool stop_ = false;
};

void store(const Problem &problem, Certifier &certifier, std::int64_t k, Result &result) {
    const auto outputs = static_cast<std::size_t>(result.outputs);
    const auto column = static_cast<std::size_t>(k);
    const auto kept = problem.kept_rows();
    result.certificates[column] = certifier.certificate();
    auto [x, y] = certifier.take();
    if (problem.has_intercept()) {
        result.intercepts[column] = x.back();
        x.pop_back();
    }
    if (outputs == 1) result.weights = std::move(x);
    if (outputs == 1 && kept.empty()) result.dual = std::move(y);
    // of several outputs these have their size
    result.weights.resize(static_cast<std::size_t>(problem.features()) * outputs);
    result.dual.resize(static_cast<std::size_t>(problem.data_rows()) * outputs);
    if (outputs > 1) {
        for (std::size_t j = 0; j < x.size(); ++j) result.weights[j * outputs + column] = x[j];
    }
    if (outputs == 1 && kept.empty()) return;
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t row = kept.empty() ? i : static_cast<std::size_t>(kept[i]);
        result.dual[row * outputs + column] = y[i];
    }
}

std::string advice(StopReason reason, const Problem &problem) {
    switch (reason) {
    case StopReason::no_minimizer:
        return fmt::format(
            "the {} loss falls for ever along a direction that nothing penalises and that suits every row: there is no "
            "minimiser; add a penalty (l2 or l1)",
            problem.loss().name());
    case StopReason::numerical_failure:
        return "the iterates diverged; the best point before that is returned; use the default step sizes or scale the "
               "features";
    case StopReason::stalled:
        return "the gap has stopped falling, by rounding or by step sizes that do not suit; ask for a larger "
               "tolerance, use the "
               "default step sizes, or scale the features";
    case StopReason::pass_limit: return "the pass limit came first; raise max-passes or the tolerance";
    case StopReason::time_limit: return "the time limit came first; raise max-seconds or the tolerance";
    default: return {};
    }
}

std::string name_of(const AnySolver &solver) {
    return std::visit([](const auto &options) { return std::string(options.name); }, solver);
}

/// What one output of a one-vs-rest problem, or the only one, leaves behind.
struct OutputRun {
    Outcome outcome;
    Trace trace;
    std::size_t last = 0; // which of the candidates it ended with
    std::string changes;  // what is to be said when it is not the first
    std::int64_t coordinates_touched = 0;
    int threads = 1;
};

/// Starts must fit, and every number must be finite.
void check_start(const Start &start, const Problem &problem) {
    const auto outputs = problem.outputs();
    const auto check = [](const char *part, std::span<const double> numbers, std::int64_t expected) {
        if (!numbers.empty() && static_cast<std::int64_t>(numbers.size()) != expected) {
            fail(ErrorKind::invalid_argument, fmt::format("start: {} {}, expected {}", numbers.size(), part, expected));
        }
        if (!std::all_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); })) {
            fail(ErrorKind::invalid_argument, fmt::format("start: not all of the {} are finite", part));
        }
    };
    check("weights", start.weights, problem.features() * outputs);
    check("intercepts", start.intercepts, problem.has_intercept() ? outputs : 0);
    check("dual variables", start.dual, problem.data_rows() * outputs);
}

/// y_i = phi'(a_i'x)
std::vector<double> implied_dual(const Problem &single, std::span<const double> x) {
    std::vector<double> y(static_cast<std::size_t>(single.rows()));
    single.predict(x, y);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = single.loss().derivative(y[i], single.targets()[i]);
    return y;
}

/// The start of output k: weights inside their bounds, and dual variables inside their domains, those that x implies if none are given.
Outcome start_output(const Start &start, const Problem &single, std::int64_t k, std::int64_t outputs, Driver &driver) {
    const auto column = static_cast<std::size_t>(k), step = static_cast<std::size_t>(outputs);
    const auto features = static_cast<std::size_t>(single.features());
    const Interval bounds = std::visit([](const auto &g) { return g.parts().bounds; }, single.regularizer().variant());
    std::vector<double> x(static_cast<std::size_t>(single.dimension()));
    for (std::size_t j = 0; j < features && !start.weights.empty(); ++j) {
        x[j] = bounds.clip(start.weights[j * step + column]);
    }
    if (!start.intercepts.empty()) x.back() = start.intercepts[column];
    if (start.dual.empty()) {
        return driver.start(std::move(x), [&single, implied = std::vector<double>()](auto from) mutable {
            if (implied.empty()) implied = implied_dual(single, from); // half a pass: once
            return implied;
        });
    }
    return driver.start(std::move(x), [&start, &single, column, step](auto) {
        std::vector<double> y(static_cast<std::size_t>(single.rows()));
        const auto kept = single.kept_rows();
        for (std::size_t i = 0; i < y.size(); ++i) {
            const std::size_t row = kept.empty() ? i : static_cast<std::size_t>(kept[i]);
            y[i] = single.loss().domain(single.targets()[i]).clip(start.dual[row * step + column]);
        }
        return y;
    });
}

bool copies_data(const AnySolver &solver) {
    return std::visit(
        [](const auto &options) {
            return requires { options.copies_data; };
        },
        solver);
}

/// Whether row norms are likely to be asked for: of auto, where spdc_fast may be its choice.
bool wants_norms(const AnySolver &solver, const Problem &problem) {
    if (std::holds_alternative<Auto>(solver)) return std::holds_alternative<L2>(problem.regularizer().variant());
    return std::holds_alternative<SpdcFast>(solver) || std::holds_alternative<Spdc>(solver);
}

/// Without an interrupt's answer: then there is nothing to merge, and the run hears of the interrupt before it does anything.
Presolved presolve(const Problem &problem, Presolve when, Team &team, const SolveContext &context) {
    try {
        const Listening listening(context);
        return {problem, when, team};
    } catch (const Interrupted &) {
        return {problem, Presolve::off, team};
    }
}

/// Until one of the candidates gets there or something else ends the run.
void run_candidates(const Presolved &presolved, const Problem &single, std::int64_t k,
                    std::span<const Choice> candidates, const SolveContext &context, Driver &driver,
                    const Certifier &certifier, OutputRun &run) {
    std::vector<std::unique_ptr<Method>> methods(candidates.size());
    for (Turns turns(candidates); run.outcome.reason == StopReason::not_run;) {
        run.last = turns.now();
        std::unique_ptr<Method> &method = methods[run.last];
        if (!method) {
            Crew(context).check();
            method = presolved.method(single, k, [&](const Problem &reduced) {
                return make_any_method(reduced, candidates[run.last].solver, context);
            });
        }
        run.outcome = driver.run(*method, name_of(candidates[run.last].solver), turns.successor(), turns.patience());
        run.threads = std::max(run.threads, method->threads());
        if (run.outcome.reason != StopReason::not_run) break;
        run.changes +=
            fmt::format("; it made too little progress, so after {:.4g} passes, at a relative gap of {:.1e}, ",
                        run.outcome.passes, certifier.certificate().relative_gap);
        const Choice &last = candidates[run.last];
        const bool went_back = turns.pass_on(run.outcome.remaining);
        const Choice &next = candidates[turns.now()];
        // one at a time: what two of them keep of the rows might be more than the data, as it is where hybrid begins another spdc_fast. (It
        // begins anew: near where that got stuck it would, too.)
        const bool are_alike =
            std::holds_alternative<SpdcFast>(last.solver) && std::holds_alternative<Hybrid>(next.solver);
        if (!context.copy || are_alike) {
            run.coordinates_touched += method->coordinates_touched();
            method.reset();
        }
        if (!context.copy) driver.go_on_from_best();
        run.changes += went_back ? "auto went back to " + name_of(next.solver) : next.reason;
    }
    for (const auto &method : methods) run.coordinates_touched += method ? method->coordinates_touched() : 0;
}

OutputRun run_output(const Presolved &presolved, std::span<const Choice> candidates, const Stopping &stopping,
                     const SolveContext &asked, const Clock &clock, std::int64_t k, Result &result) {
    OutputRun run;
    Interrupt interrupt(asked);
    const SolveContext &context = interrupt.context();
    const Problem single = presolved.original().output(k);
    Team &team = *context.team;
    team.listen_to(context);
    Certifier certifier(single, team);
    Driver driver(single, certifier, stopping, interrupt, clock, k, run.trace);
    Listening listening(context);
    try {
        if (context.start) run.outcome = start_output(*context.start, single, k, result.outputs, driver);
        run_candidates(presolved, single, k, candidates, context, driver, certifier, run);
    } catch (const Interrupted &) {
        listening.end();
        run.outcome = driver.break_off();
    }
    listening.end();
    team.ignore_interrupts(); // the run is over, and `interrupt` soon gone
    store(single, certifier, k, result);
    return run;
}

/// All outputs, side by side when there are threads for it. Each is the same run whatever the others do.
std::vector<OutputRun> run_outputs(const Presolved &presolved, std::span<const Choice> candidates,
                                   const Stopping &stopping, const SolveContext &context, const Clock &clock,
                                   Team &threads, Result &result) {
    const std::int64_t outputs = presolved.original().outputs();
    std::vector<OutputRun> runs(static_cast<std::size_t>(outputs));
    const int team = static_cast<int>(std::min<std::int64_t>(context.threads, outputs));
    SolveContext own = context;
    SharedObservers observers(own);
    own.threads = context.threads / team;
    if (outputs > 1) own.cores = std::max(1, static_cast<int>(cores_of(context) / outputs));
    std::atomic<std::int64_t> next = 0;
    std::exception_ptr error;
    std::once_flag failed;
    run_team(team, [&](int) {
        try {
            const LentTeam crew(team == 1 ? &threads : nullptr, own.threads);
            SolveContext mine = own;
            mine.team = crew.operator->();
            for (std::int64_t k; (k = next++) < outputs;) {
                runs[static_cast<std::size_t>(k)] = run_output(presolved, candidates, stopping, mine, clock, k, result);
            }
        } catch (...) {
            next = outputs;
            observers.stop();
            std::call_once(failed, [&] { error = std::current_exception(); });
        }
    });
    if (error) std::rethrow_exception(error);
    result.threads = team;
    return runs;
}

} // namespace

std::vector<std::string> solver_names() { return names(std::make_index_sequence<std::variant_size_v<AnySolver>>{}); }

AnySolver make_solver(std::string_view name) { return make_nth<0>(name); }

Result solve(const Problem &problem, const AnySolver &solver, const Stopping &stopping, const SolveContext &context) {
    const Clock clock;
    if (!context.copy) return_free_memory(); // the holes that earlier solves left are not to add to what this one needs
    const bool is_auto = std::holds_alternative<Auto>(solver);
    const bool may_presolve = context.copy && !context.start && (context.presolve != Presolve::automatic || is_auto);
    problem.check_values(context.copy && wants_norms(solver, problem), context.threads);
    Team team(context);
    const Presolved presolved = presolve(problem, may_presolve ? context.presolve : Presolve::off, team, context);
    const std::vector<Choice> candidates =
        is_auto ? choose(presolved.problem(), context) : std::vector<Choice>{{solver, "asked for by name"}};
    if (!context.copy && copies_data(candidates.front().solver)) {
        fail(ErrorKind::unsupported, fmt::format("solver {} works on a copy of the data; without one take spdc_fast, "
                                                 "newton_cg or spdc, or leave the choice to auto",
                                                 name_of(candidates.front().solver)));
    }
    if (context.start) check_start(*context.start, problem);
    std::visit([](const auto &options) { check_fields(options); }, candidates.front().solver);
    check_fields(stopping);
    if (context.threads < 1) {
        fail(ErrorKind::invalid_argument, fmt::format("threads = {}: need at least 1", context.threads));
    }

    Result result;
    result.seed = context.seed;
    result.features = problem.features();
    result.outputs = problem.outputs();
    const auto outputs = static_cast<std::size_t>(problem.outputs());
    result.intercepts.resize(problem.has_intercept() ? outputs : 0);
    if (outputs > 1) {
        result.weights.resize(static_cast<std::size_t>(problem.features()) * outputs);
        result.dual.resize(static_cast<std::size_t>(problem.data_rows()) * outputs);
    }
    result.certificates.resize(outputs);

    const std::vector<OutputRun> runs = run_outputs(presolved, candidates, stopping, context, clock, team, result);
    const int side_by_side = result.threads;
    double certifying = 0;
    const OutputRun *furthest = &runs.front();
    result.stop_reason = StopReason::gap_reached;
    for (const OutputRun &run : runs) {
        certifying += run.outcome.seconds_certifying;
        result.passes = std::max(result.passes, run.outcome.passes);
        result.coordinates_touched += run.coordinates_touched;
        result.threads = std::max(result.threads, run.threads * side_by_side);
        result.trace.insert(result.trace.end(), run.trace.begin(), run.trace.end());
        if (result.converged()) result.stop_reason = run.outcome.reason; // the first output that fails speaks for all
        if (run.changes.size() > furthest->changes.size()) furthest = &run;
    }
    result.solver = name_of(candidates[furthest->last].solver);
    result.solver_reason = candidates.front().reason + presolved.said() + furthest->changes;
    result.message = advice(result.stop_reason, problem);
    result.seconds = clock.seconds();
    result.seconds_solver = std::max(0.0, result.seconds - certifying / side_by_side);
    problem.forget_norms(); // that nobody took
    return result;
}

} // namespace spdc
