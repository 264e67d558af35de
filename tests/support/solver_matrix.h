// One cell of the matrix solver x loss x regularizer x storage x row weights x intercept: a tiny problem, solved, and its
// certificate compared with the slow oracle.
#pragma once

#include "spdc/solvers.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spdc::tests {

struct Penalty {
    std::string name;
    AnyRegularizer g;
    std::vector<double> factors = {};
};

inline std::vector<Penalty> all_penalties() {
    const Interval box{-0.3, 0.4}, non_negative{0, infinity};
    return {{"l2", L2{0.05}},
            {"l1", ElasticNet{0.02, 0}},
            {"elastic_net", ElasticNet{0.02, 0.05}},
            {"box and l2", Box{0, 0.05, box}},
            {"non-negative elastic_net", Box{0.02, 0.05, non_negative}},
            {"non-negative l1", Box{0.02, 0, non_negative}},
            {"box alone", Box{0, 0, box}},
            {"non-negative alone", Box{0, 0, non_negative}},
            {"none", L2{0}},
            {"l2 with factors", L2{0.05}, {0, 1, 0.5, 2, 1}},
            {"l1 with factors", ElasticNet{0.02, 0}, {0, 1, 0.5, 2, 1}},
            {"elastic_net with factors", ElasticNet{0.02, 0.05}, {1, 0, 0.5, 2, 1}},
            {"box and elastic_net with factors", Box{0.02, 0.05, box}, {1, 0, 0.5, 2, 1}}};
}

inline constexpr Intercept all_intercepts[] = {Intercept::none, Intercept::free, Intercept::penalized};

struct NamedSolver {
    std::string name; // with the options that are not the default
    AnySolver solver;
    int threads = 1;
};

/// Every solver of AnySolver with its default options.
inline std::vector<NamedSolver> all_solvers() {
    std::vector<NamedSolver> solvers;
    for (const std::string &name : solver_names()) solvers.push_back({name, make_solver(name)});
    return solvers;
}

struct Cell {
    NamedSolver solver;
    AnyLoss loss;
    Penalty penalty;
    Intercept intercept = Intercept::none;
    Storage storage = Storage::csr_double;
    bool weighted = false;
    std::uint64_t seed = 1; // of the data
};

inline std::string describe(const Cell &cell) {
    constexpr const char *storages[] = {"csr float", "csr double", "dense float", "dense double"};
    return fmt::format("{}, {}, {}, intercept {}, {}, {}, data {}", cell.solver.name, cell.loss.name(),
                       cell.penalty.name, to_string(cell.intercept), storages[static_cast<int>(cell.storage)],
                       cell.weighted ? "row weights" : "no row weights", cell.seed);
}

/// 24 rows and 5 columns: enough rows that nothing is separable or fitted exactly. Row weights include zeros.
inline Problem problem_of(const Cell &cell) {
    const Tiny tiny{.task = cell.loss.task(),
                    .rows = 24,
                    .columns = 5,
                    .density = 0.8,
                    .labels = 2,
                    .weighted = cell.weighted,
                    .seed = cell.seed};
    TinyData data = tiny_data(tiny);
    if (cell.weighted) data.weights[5] = data.weights[11] = 0;
    ProblemOptions options;
    options.intercept = cell.intercept;
    options.penalty_factors = cell.penalty.factors;
    return {as_dataset(std::move(data), cell.storage), cell.loss, cell.penalty.g, options};
}

/// Combinations a solver may refuse, with the sentence it must say. The paper's method takes everything.
struct Refusal {
    std::string solver, loss, penalty, sentence; // "" stands for any
    std::string intercept = "";
};

inline std::vector<Refusal> allowed_refusals() {
    std::vector<Refusal> refusals;
    for (const char *solver : {"sag", "saga", "svrg", "asdca", "asdca_minibatch", "apcg", "rpdg", "sdca_admm"}) {
        for (const char *loss : {"hinge", "absolute", "epsilon_insensitive", "quantile", "poisson"}) {
            refusals.push_back({solver, loss, "", "needs a smooth loss"});
        }
    }
    for (const Penalty &penalty : all_penalties()) {
        const bool has_factor_0 = std::count(penalty.factors.begin(), penalty.factors.end(), 0.0) > 0;
        const bool has_l2 = penalty.g.strong_convexity() > 0 && !has_factor_0;
        for (const char *solver : {"sdca", "asdca", "asdca_minibatch", "apcg", "rpdg", "sdca_admm"}) {
            if (solver == std::string("sdca") && penalty.name == "l2") continue; // a kernel that takes free intercepts
            refusals.push_back({solver, "", penalty.name, "needs an l2 penalty on every weight", has_l2 ? "free" : ""});
        }
        const bool is_l2 = penalty.name == "l2" || penalty.name == "l2 with factors";
        if (penalty.name != "l2") {
            refusals.push_back({"spdc_fast", "", penalty.name, "needs an l2 penalty"});
            refusals.push_back({"hybrid", "", penalty.name, "needs an l2 penalty"});
        }
        if (std::holds_alternative<Box>(penalty.g.variant())) {
            refusals.push_back({"lbfgs", "", penalty.name, "takes weights without bounds only"});
        }
        if (is_l2 || penalty.name == "none") {
            refusals.push_back({"working_set", "", penalty.name, "needs an l1 penalty or bounds"});
        } else {
            refusals.push_back({"newton", "", penalty.name, "needs an l2 penalty"});
            refusals.push_back({"newton_cg", "", penalty.name, "needs an l2 penalty"});
        }
    }
    for (const char *loss : {"hinge", "absolute", "epsilon_insensitive", "quantile"}) {
        refusals.push_back({"newton_cg", loss, "", "needs a loss without kinks"});
        refusals.push_back({"hybrid", loss, "", "needs a loss without kinks"});
        refusals.push_back({"accelerated_gradient", loss, "", "needs a loss without kinks"});
        refusals.push_back({"lbfgs", loss, "", "needs a loss without kinks"});
        for (const char *penalty : {"box and l2", "box alone", "non-negative alone"}) {
            refusals.push_back({"working_set", loss, penalty, "needs an l1 penalty where the loss has kinks"});
        }
    }
    return refusals;
}

/// Those that speak of this cell. One at least must happen, and no other.
inline std::vector<Refusal> refusals_of(const Cell &cell) {
    const auto fits = [](const std::string &pattern, std::string_view name) {
        return pattern.empty() || pattern == name;
    };
    std::vector<Refusal> refusals = allowed_refusals();
    std::erase_if(refusals, [&](const Refusal &refusal) {
        return !(fits(refusal.solver, cell.solver.name) && fits(refusal.loss, cell.loss.name()) &&
                 fits(refusal.penalty, cell.penalty.name) && fits(refusal.intercept, to_string(cell.intercept)));
    });
    return refusals;
}

inline bool is_allowed(const Cell &cell, const Error &error) {
    const std::vector<Refusal> refusals = refusals_of(cell);
    return error.kind() == ErrorKind::unsupported &&
           std::any_of(refusals.begin(), refusals.end(), [&](const Refusal &refusal) {
               return std::string(error.what()).find(refusal.sentence) != std::string::npos;
           });
}

/// D(y) by the oracle, except where a coordinate that nothing penalises makes it -infinity: there the bound is claimed for
/// |x_j| up to ten times max(1, |x_j|), so sup w x over that range is charged. Bounds met but for rounding count as met.
inline long double dual_within_radius(const DenseProblem &p, const std::vector<double> &x,
                                      const std::vector<double> &y) {
    const std::vector<double> u = combine(p, y);
    long double losses = 0, penalty = 0;
    for (std::size_t i = 0; i < p.n(); ++i) {
        losses += static_cast<long double>(p.omega[i]) * p.loss.conjugate(y[i], p.b[i]);
    }
    for (std::size_t j = 0; j < p.d(); ++j) {
        const Interval domain = p.g[j].conjugate_domain();
        const double w = -u[j];
        if ((w > 0 && domain.upper == 0) || (w < 0 && domain.lower == 0)) {
            const double radius = 10 * std::max(1.0, std::fabs(x[j]));
            const double end = w > 0 ? radius : -radius;
            penalty += w * (p.g[j].value(end) < infinity ? end : p.g[j].prox(end, 1));
        } else {
            const double inside = domain.clip(w);
            penalty += p.g[j].conjugate(std::fabs(inside - w) <= 1e-13 * std::fabs(w) ? inside : w);
        }
    }
    return -losses / static_cast<long double>(p.n()) - penalty;
}

/// The best point of a result as the oracle wants it: intercept last, rows of weight zero gone.
inline std::pair<std::vector<double>, std::vector<double>> best_point(const Problem &problem, const Result &result) {
    std::vector<double> x = result.weights, y;
    x.insert(x.end(), result.intercepts.begin(), result.intercepts.end());
    for (std::int64_t i = 0; i < problem.rows(); ++i) {
        const auto kept = problem.kept_rows();
        y.push_back(result.dual[static_cast<std::size_t>(kept.empty() ? i : kept[static_cast<std::size_t>(i)])]);
    }
    return {std::move(x), std::move(y)};
}

/// What is wrong with a result's certificate by the oracle; empty when nothing is.
inline std::string certificate_error(const Problem &problem, const Result &result) {
    const DenseProblem dense = dense_copy(problem);
    const auto [x, y] = best_point(problem, result);
    const auto slow_primal = static_cast<double>(primal(dense, x));
    const auto slow_dual = static_cast<double>(dual_within_radius(dense, x, y));
    const Certificate &said = result.worst();
    const double allowed = 1e-12 * std::max({std::fabs(slow_primal), std::fabs(slow_dual), 1e-3});
    if (!(std::fabs(said.primal - slow_primal) <= allowed)) {
        return fmt::format("says primal {}, the oracle {}", said.primal, slow_primal);
    }
    if (!(std::fabs(said.dual - slow_dual) <= allowed)) {
        return fmt::format("says dual {}, the oracle {}", said.dual, slow_dual);
    }
    if (!(std::fabs(said.gap - (slow_primal - slow_dual)) <= 2 * allowed) || said.gap < 0) {
        return fmt::format("says gap {}, the oracle {}", said.gap, slow_primal - slow_dual);
    }
    return {};
}

/// Solves the cell; empty when its tolerance is certified and the oracle agrees, or when it is refused as documented.
inline std::string verdict(const Cell &cell) {
    const Problem problem = problem_of(cell);
    const bool assumption1 = cell.loss.gamma() > 0 && problem.is_strongly_convex();
    Stopping stopping;
    stopping.tolerance = assumption1 ? 1e-8 : 1e-6;
    SolveContext context;
    context.threads = cell.solver.threads;
    try {
        const Result result = solve(problem, cell.solver.solver, stopping, context);
        if (!refusals_of(cell).empty()) return describe(cell) + ": taken, although the list says that it is refused";
        const Certificate &reached = result.worst();
        if (!result.converged() || !(reached.relative_gap <= stopping.tolerance)) {
            return fmt::format("{}: {} after {} passes at relative gap {} (primal {}, dual {}), wanted {}",
                               describe(cell), to_string(result.stop_reason), result.passes, reached.relative_gap,
                               reached.primal, reached.dual, stopping.tolerance);
        }
        const std::string error = certificate_error(problem, result);
        return error.empty() ? "" : fmt::format("{}: {}", describe(cell), error);
    } catch (const Error &error) {
        return is_allowed(cell, error) ? "" : fmt::format("{}: refused: {}", describe(cell), error.what());
    }
}

/// The paper's method with the options that change its iterations.
inline std::vector<NamedSolver> spdc_variants() {
    const auto variant = [](Sampling sampling, std::int64_t batch_size, int threads) {
        Spdc options;
        options.sampling = sampling;
        options.batch_size = batch_size;
        return NamedSolver{fmt::format("spdc {} batch {} threads {}", to_string(sampling), batch_size, threads),
                           options, threads};
    };
    constexpr std::int64_t all = 22; // rows of the weighted problems
    return {variant(Sampling::weighted, 1, 1),    variant(Sampling::permutation, 1, 1),
            variant(Sampling::uniform, 4, 1),     variant(Sampling::weighted, 4, 1),
            variant(Sampling::permutation, 4, 1), variant(Sampling::uniform, all, 1)};
}

} // namespace spdc::tests
