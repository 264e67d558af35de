// Validate, make the method, drive it: the only place where solvers are listed.
#include "driver.h"
#include "presolve.h"
#include "solvers/methods.h"
#include "spdc/solvers.h"

#include <fmt/format.h>

#include <algorithm>

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

/// The caller's context, remembering a request to stop for the outputs that come after.
SolveContext with_memory(const SolveContext &context, bool &asked_to_stop) {
    SolveContext own = context;
    own.observer = [&context, &asked_to_stop](const TracePoint &point) {
        if (context.observer && !context.observer(point)) asked_to_stop = true;
        return !asked_to_stop;
    };
    return own;
}

void store(const Problem &problem, const Certifier &certifier, std::int64_t k, Result &result) {
    const auto outputs = static_cast<std::size_t>(result.outputs);
    const auto column = static_cast<std::size_t>(k);
    const auto features = static_cast<std::size_t>(problem.features());
    for (std::size_t j = 0; j < features; ++j) result.weights[j * outputs + column] = certifier.x()[j];
    if (problem.has_intercept()) result.intercepts[column] = certifier.x()[features];
    const auto kept = problem.kept_rows();
    for (std::size_t i = 0; i < certifier.y().size(); ++i) {
        const std::size_t row = kept.empty() ? i : static_cast<std::size_t>(kept[i]);
        result.dual[row * outputs + column] = certifier.y()[i];
    }
    result.certificates[column] = certifier.certificate();
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

} // namespace

std::vector<std::string> solver_names() { return names(std::make_index_sequence<std::variant_size_v<AnySolver>>{}); }

AnySolver make_solver(std::string_view name) { return make_nth<0>(name); }

Result solve(const Problem &problem, const AnySolver &solver, const Stopping &stopping, const SolveContext &context) {
    const Clock clock;
    const bool is_auto = std::holds_alternative<Auto>(solver);
    const Presolved presolved(problem,
                              context.presolve == Presolve::automatic && !is_auto ? Presolve::off : context.presolve);
    const Choice choice = is_auto ? choose(presolved.problem()) : Choice{solver, "asked for by name"};
    std::visit([](const auto &options) { check_fields(options); }, choice.solver);
    check_fields(stopping);
    if (context.threads < 1) {
        fail(ErrorKind::invalid_argument, fmt::format("threads = {}: need at least 1", context.threads));
    }

    Result result;
    result.solver = std::visit([](const auto &options) { return std::string(options.name); }, choice.solver);
    result.solver_reason = choice.reason + presolved.said();
    result.seed = context.seed;
    result.features = problem.features();
    result.outputs = problem.outputs();
    const auto outputs = static_cast<std::size_t>(problem.outputs());
    result.weights.resize(static_cast<std::size_t>(problem.features()) * outputs);
    result.intercepts.resize(problem.has_intercept() ? outputs : 0);
    result.dual.resize(static_cast<std::size_t>(problem.data_rows()) * outputs);
    result.certificates.resize(outputs);

    bool asked_to_stop = false;
    const SolveContext own = with_memory(context, asked_to_stop);
    double certifying = 0;
    result.stop_reason = StopReason::gap_reached;
    for (std::int64_t k = 0; k < problem.outputs(); ++k) {
        const Problem single = problem.output(k);
        const std::unique_ptr<Method> method =
            presolved.method(single, k, [&](const Problem &p) { return make_any_method(p, choice.solver, own); });
        Certifier certifier(single);
        const Outcome outcome = drive(single, *method, certifier, stopping, own, clock, k, result.trace);
        store(single, certifier, k, result);
        certifying += outcome.seconds_certifying;
        result.passes = std::max(result.passes, outcome.passes);
        result.coordinates_touched += method->coordinates_touched();
        result.threads = std::max(result.threads, method->threads());
        if (result.converged()) result.stop_reason = outcome.reason; // the first output that fails speaks for all
    }
    result.message = advice(result.stop_reason, problem);
    result.seconds = clock.seconds();
    result.seconds_solver = result.seconds - certifying;
    return result;
}

} // namespace spdc
