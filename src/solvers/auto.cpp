// Picks a solver from the shape of the problem. A wrong choice costs time, never correctness: the certified gap decides.
#include "kernels.h"
#include "methods.h"
#include "newton.h"
#include "newton_cg.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

/// |a_i|^2 on average, judged by some rows.
double mean_squared_norm(const Problem &problem) {
    constexpr std::int64_t entries = 50'000, rows = 64; // to look at, at most and at least
    constexpr std::int64_t ahead = 16;                  // of these rows: they are far apart in memory
    const std::int64_t step = std::max<std::int64_t>(1, std::min(problem.nonzeros() / entries, problem.rows() / rows));
    double sum = 0, count = 0;
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); i += step, ++count) {
                if (i + ahead * step < matrix.rows()) matrix.row(i + ahead * step).prefetch(0);
                sum += squared_norm(matrix.row(i));
            }
        },
        problem.matrix());
    return sum / std::max(1.0, count);
}

} // namespace

int cores_of(const SolveContext &context) { return context.cores > 0 ? context.cores : available_cores(); }

bool suits_many_threads(const Problem &problem, const SolveContext &context) {
    return problem.nonzeros() >= 1000000 && cores_of(context) >= 4 * problem.outputs();
}

/// 6 (1 + sqrt(kappa/n)/2)
double passes_on_text(const Problem &problem) {
    const double mean = mean_squared_norm(problem);
    const double gamma = problem.loss().gamma() > 0 ? problem.loss().gamma() : 0.1;
    const double n = static_cast<double>(problem.rows());
    const double own = problem.regularizer(0).strong_convexity(); // not that of an intercept, which may be smaller
    const double lambda = problem.is_uniform() && own > 0 ? own : problem.strong_convexity();
    return 6 * (1 + 0.5 * std::sqrt(mean / (lambda * n * gamma)));
}

double likeness(const Problem &problem, std::int64_t distance) {
    constexpr std::int64_t entries = 500'000; // to look at, about
    const std::int64_t pair = 2 * problem.nonzeros() / std::max<std::int64_t>(1, problem.rows()) + 1;
    const std::int64_t most = std::clamp<std::int64_t>(entries / pair, 16, 256);
    const std::int64_t pairs = problem.rows() - distance, step = std::max<std::int64_t>(1, pairs / most);
    double sum = 0, count = 0;
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < pairs; i += step, ++count) {
                const auto a = matrix.row(i), b = matrix.row(i + distance);
                double product = 0;
                for (std::int64_t p = 0, q = 0; p < a.size() && q < b.size();) {
                    const std::int64_t column = a.column(p), other = b.column(q);
                    if (column == other) product += a.value(p) * b.value(q);
                    p += column <= other ? 1 : 0;
                    q += other <= column ? 1 : 0;
                }
                if (product != 0) sum += product * product / (squared_norm(a) * squared_norm(b));
            }
        },
        problem.matrix());
    return sum / std::max(1.0, count);
}

namespace {

/// Entries that are not 0, judged by some rows: the copies that solvers make leave the zeros of dense data out.
double filled_entries(const Problem &problem) {
    constexpr std::int64_t most = 5000;
    const std::int64_t step = std::max<std::int64_t>(1, problem.nonzeros() / most), n = problem.rows();
    return std::visit(
        [&](const auto &matrix) {
            if constexpr (requires { matrix.offsets(); }) return static_cast<double>(matrix.nonzeros());
            std::int64_t seen = 0, filled = 0;
            for (std::int64_t i = 0; i < n; i += step) {
                const auto row = matrix.row(i);
                for (std::int64_t p = 0; p < row.size(); ++p) filled += row.value(p) != 0 ? 1 : 0;
                seen += row.size();
            }
            return static_cast<double>(problem.nonzeros()) * static_cast<double>(filled) /
                   static_cast<double>(std::max<std::int64_t>(1, seen));
        },
        problem.matrix());
}

bool is_wide(const Problem &problem) { return problem.rows() < problem.dimension(); }

/// How many iterations on all rows newton is likely to need. Sifting leaves the fewer rows the better samples tell which matter: its
/// time on covtype, a9a and generated data of 20 to 400 features is that of this many iterations to within a factor of 2.
double newton_iterations(const Problem &problem) {
    if (suits_sifting(problem)) {
        return 1 + 500 * std::sqrt(static_cast<double>(problem.dimension()) / static_cast<double>(problem.rows()));
    }
    if (std::holds_alternative<Squared>(problem.loss().variant())) return 2;
    return is_smooth(problem.loss()) ? 12 : (is_wide(problem) ? 25 : 50);
}

/// What newton is likely to cost, in passes of spdc_fast over the data: each iteration is a pass that adds up products of pairs of entries
/// and a Cholesky factor of the smaller side. By nanoseconds of one core: 0.05 for a product in a dense matrix, 0.2 in a sparse one, 0.1 for a step of
/// the factor, 4 for an entry in a pass; where rows are fewer 0.06 for a step, 1.6 for an entry of dense and 2 for one of sparse data. Passes over
/// rows that are nearly full take five eighths of that.
double newton_passes(const Problem &problem, double iterations) {
    const double n = static_cast<double>(problem.rows()), d = static_cast<double>(problem.dimension());
    const double entries = std::max(1.0, filled_entries(problem));
    const bool is_dense = entries > 0.3 * n * d, is_full = d >= 64 && entries > 0.7 * n * d;
    const double product = is_dense ? 0.05 : 0.2, entry = is_full ? 0.625 : 1.0;
    if (is_wide(problem)) { // AA' once
        const double all = product * entries * n / 2 + iterations * (0.06 * n * n * n / 3 + 2 * n * n);
        return all / (entry * (is_dense ? 1.6 : 2.0) * entries);
    }
    const double one = product * entries * entries / n / 2 + 2 * entries + 0.1 * d * d * d / 3;
    return iterations * one / (entry * 4 * entries);
}

/// As newton demands: a side of at most `largest`, the rows only where nearly all features are penalised.
bool newton_takes(const Problem &problem, std::int64_t largest) {
    return problem.dimension() <= largest || (problem.rows() <= largest && problem.free_coordinates().size() <= 500);
}

/// Passes over the data that spdc_fast is likely to need to a gap of 1e-6: some times what text needs where the features are few, unless that is
/// next to nothing. Where
/// they are many, targets can be fitted, which is easy: labels from a quarter as many features as rows on, numbers from four times as many. For labels
/// and more features than rows it is the easier the less alike the rows are (15 to 160 passes for the logistic loss where the mean of their
/// squared cosines is 0 to 0.7, and 700 where it is 0.998; up to twice that for parabolas with an end, up to four times for kinks).
double predicted_passes(const Problem &problem) {
    const double text = passes_on_text(problem);
    const auto n = static_cast<double>(problem.rows()), d = static_cast<double>(problem.features());
    const bool are_labels = problem.loss().task() == Task::classification;
    if (d < (are_labels ? 0.25 * n
                        : 4 * n)) { // rows of unequal weight, as presolve makes them of equal rows, are never easy
        const double times = problem.importance().empty() ? std::clamp((text - 6) / 2.7, 1.0, 3.0) : 3.0;
        return std::min(times * text, 1e4);
    }
    if (!are_labels) return std::min(text, 60.0);
    const bool is_logistic = std::holds_alternative<Logistic>(problem.loss().variant());
    const double alike = likeness(problem, problem.rows() / 2);
    const double easy = (is_logistic ? 15 : (is_smooth(problem.loss()) ? 25 : 45)) *
                        (1 + 12 * alike + 0.1 / (1.001 - std::min(alike, 1.0)));
    return std::min(text * (1 + 1.5 * alike), is_wide(problem) ? easy : std::max(60.0, easy));
}

/// Whether some features are next to all there is of every row, and there are a hundred rows for each: conjugate gradients soon deal with
/// these directions, and rows one by one, which are alike, do not. Judged by some rows. (Counts of words are not so, though a few of them hold most
/// of all squares: long texts do, and the others have much beside.)
bool has_few_directions(const Problem &problem) {
    constexpr std::int64_t entries = 50'000;
    const std::int64_t step = std::max<std::int64_t>(1, problem.nonzeros() / entries);
    std::vector<double> shares(static_cast<std::size_t>(problem.features()));
    const auto each_row = [&](auto &&visit) {
        std::visit(
            [&](const auto &matrix) {
                for (std::int64_t i = 0; i < matrix.rows(); i += step) visit(matrix.row(i));
            },
            problem.matrix());
    };
    each_row([&](const auto &row) {
        for (std::int64_t q = 0; q < row.size(); ++q) {
            shares[static_cast<std::size_t>(row.column(q))] += row.value(q) * row.value(q);
        }
    });
    double sum = 0, squares = 0;
    for (const double share : shares) sum += share, squares += share * share;
    if (squares == 0) return false;
    const double count = sum * sum / squares; // of features over which the squares are spread
    const double least = 0.1 * sum / count;
    const auto large = std::count_if(shares.begin(), shares.end(), [&](double share) { return share >= least; });
    if (static_cast<double>(large) > 0.01 * static_cast<double>(problem.rows())) return false;
    double beside = 0, rows = 0;
    each_row([&](const auto &row) {
        double in_large = 0, all = 0;
        for (std::int64_t q = 0; q < row.size(); ++q) {
            const double square = row.value(q) * row.value(q);
            all += square;
            if (shares[static_cast<std::size_t>(row.column(q))] >= least) in_large += square;
        }
        if (all == 0) return;
        beside += 1 - in_large / all;
        rows += 1;
    });
    return beside < 0.03 * rows;
}

double rows_per_feature(const Problem &problem) {
    return static_cast<double>(problem.rows()) / static_cast<double>(problem.features());
}

/// Too few to fit the targets: labels by a quarter as many features as rows, numbers by as many.
bool has_too_few_features(const Problem &problem) {
    return rows_per_feature(problem) > (problem.loss().task() == Task::classification ? 4 : 1);
}

/// Whether newton_cg is likely to be there before spdc_fast, which needs some `text` passes where targets can be fitted, and many more where they
/// cannot, the more the more rows there are for a feature. There newton_cg takes 15 to 50 passes whatever the penalty.
bool prefers_newton_cg(const Problem &problem, double text) {
    if (!is_smooth(problem.loss())) return false;
    if (!has_too_few_features(problem)) return text > 10 && has_few_directions(problem);
    const double most = problem.loss().task() == Task::classification ? 20 : 15;
    return text > std::clamp(most * std::sqrt(10 / rows_per_feature(problem)), 10.0, most);
}

/// Labels that can be fitted, with a loss whose curvature jumps or that has none: conjugate gradients take thousands of passes unless the gap is
/// small, so that hybrid is next after spdc_fast, and late.
bool are_fitted_with_jumps(const Problem &problem) {
    return problem.loss().task() == Task::classification && !has_too_few_features(problem) &&
           !std::holds_alternative<Logistic>(problem.loss().variant());
}

/// Near the borders of what prefers newton_cg either may be there first, by a factor of three: hybrid, which tries both, is by one and a half.
bool is_undecided(const Problem &problem, double text) {
    return problem.loss().task() == Task::classification && has_too_few_features(problem) &&
           rows_per_feature(problem) < 20 && text <= 80 && !has_few_directions(problem);
}

/// Whether newton takes some ten iterations, and as long as reckoned. Where there are about as many rows as features, losses whose curvature jumps
/// may take a hundred.
bool is_sure_of_newton(const Problem &problem) {
    const std::int64_t n = problem.rows(), d = problem.dimension();
    return is_smooth(problem.loss()) && (4 * d <= n || 2 * n <= d);
}

bool prefers_newton(const Problem &problem, const SolveContext &context) {
    if (!newton_takes(problem, 2000)) return false;
    const double cost = newton_passes(problem, newton_iterations(problem));
    if (suits_sifting(problem)) {
        // Rows of 9 to 20 entries take newton 1.3 to 3.5 times what is reckoned by entries, which threads make up for.
        const double labels = suits_many_threads(problem, context) ? 1 : 0.35;
        return cost < (problem.loss().task() == Task::classification ? labels : 2) * passes_on_text(problem);
    }
    // A loss with kinks takes some 50 iterations, which threads share. spdc_fast, where they hardly help, takes half to twice the passes
    // that text needs where the targets are labels, and a multiple of that where they are numbers.
    const double worth = suits_many_threads(problem, context) || problem.loss().task() == Task::regression ? 20 : 60;
    if (!is_smooth(problem.loss()) && passes_on_text(problem) < worth) return false;
    return problem.dimension() <= 100 || cost < predicted_passes(problem);
}

} // namespace

std::vector<Choice> choose(const Problem &problem, const SolveContext &context) {
    const bool may_copy = context.copy;
    const Choice newton{Newton{},
                        "auto picked newton: an l2 penalty, and a side of the data small enough to factor its matrix",
                        newton_passes(problem, std::min(newton_iterations(problem), 12.0))}; // not to be shy of it
    const Choice unpenalised{Newton{},
                             "auto picked newton: no penalty, and few enough features to factor their matrix"};
    Choice fast{SpdcFast{}, "auto picked spdc_fast: an l2 penalty, the same for every feature"};
    Choice hybrid{Hybrid{},
                  "auto picked hybrid: an l2 penalty, the same for every feature, and so small that the last digits of "
                  "a smooth loss are left to newton_cg"};
    Choice newton_cg{NewtonCg{}, "auto picked newton_cg: an l2 penalty, a smooth loss, columns of any unit"};
    const Choice working_set{WorkingSet{}, "auto picked working_set: an l1 penalty leaves most weights at 0"};
    const Choice general{Spdc{}, "auto picked spdc: it takes every penalty, weighting and intercept"};
    const bool is_plain = std::holds_alternative<L2>(problem.regularizer().variant()); // neither l1 nor bounds
    const bool is_l2 = is_plain && problem.strong_convexity() > 0;
    if (is_plain &&
        !is_l2) { // nothing is penalised: first-order methods crawl where columns differ in size or nearly depend
        if (may_copy && problem.dimension() <= 2000) return {unpenalised, general};
        if (is_smooth(problem.loss())) return {newton_cg, general};
    }
    if (!is_l2) {
        const double l1 = std::visit([](const auto &g) { return g.parts().l1; }, problem.regularizer().variant());
        if (l1 > 0 && may_copy) return {working_set, general.after_breakdown()};
        return {general};
    }
    const bool is_uniform = problem.is_uniform() && problem.regularizer(0).strong_convexity() > 0;
    if (may_copy && prefers_newton(problem, context)) return {newton, is_uniform ? fast : general};
    const double text = is_uniform ? passes_on_text(problem) : 0;
    const bool can_be_fitted = are_fitted_with_jumps(problem);
    // small l2 leaves spdc_fast's gap near 1 for the first half of the passes it needs
    if (is_uniform)
        fast.patience.passes = hybrid.patience.passes = std::clamp(2 * text, 100.0, can_be_fitted ? 2000.0 : 500.0);
    // newton is there in little more, whatever the rows are like
    if (may_copy && suits_sifting(problem)) fast.patience = {25, 1};
    const bool may_prefer_cg = is_uniform && prefers_newton_cg(problem, text);
    const bool prefers_cg = may_prefer_cg && !is_undecided(problem, text);
    const bool is_logistic = std::holds_alternative<Logistic>(problem.loss().variant());
    const bool takes_both = may_prefer_cg ? !prefers_cg : is_logistic && text > 60;
    std::vector<Choice> choices;
    if (is_uniform) choices.push_back(takes_both ? hybrid : fast);
    if (is_uniform && can_be_fitted && is_smooth(problem.loss())) choices.push_back(hybrid);
    const bool is_square =
        std::holds_alternative<Squared>(problem.loss().variant()); // one system, whose gap falls at its end
    if (prefers_cg &&
        (is_square || !has_too_few_features(problem) || text > 5000)) { // late, or nobody else has a chance
        newton_cg.patience.passes = std::clamp(2 * text, 100.0, 5000.0);
    } else if (prefers_cg) {
        // or never: categories that others imply and rare ones take it hundreds of passes, and spdc_fast few
        newton_cg.patience = {std::clamp(0.4 * text, 60.0, 300.0), 1, true};
        choices.front().cost = std::min(2 * text, 60 * rows_per_feature(problem));
    }
    if (is_smooth(problem.loss())) choices.insert(prefers_cg ? choices.begin() : choices.end(), newton_cg);
    if (may_copy && newton_takes(problem, 5000)) {
        // where it is sure to be there soon nobody is to try for long before it, whatever the rows are like
        const bool is_sure = !choices.empty() && is_sure_of_newton(problem) && newton.cost < 400;
        if (is_sure)
            choices.front().patience.passes = std::min(choices.front().patience.passes, std::max(100.0, newton.cost));
        choices.insert(is_sure ? choices.begin() + 1 : choices.end(), newton);
    }
    if (!is_uniform) choices.push_back(general);
    return choices;
}

} // namespace spdc
