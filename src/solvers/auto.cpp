// Picks a solver from the shape of the problem. A wrong choice costs time, never correctness: the certified gap decides.
#include "methods.h"
#include "newton_cg.h"

#include <algorithm>
#include <cmath>

namespace spdc {

/// Passes over the data that spdc_fast is likely to need to a gap of 1e-6. 6 (1 + sqrt(kappa/n)/2) is what text needs; with many
/// more rows than features it is some 8 times that, with more features than rows omega moves to SDCA's end and 60 are enough.
double predicted_passes(const Problem &problem) {
    const std::vector<double> norms = problem.squared_row_norms();
    double mean = 0;
    for (const double norm : norms) mean += norm / static_cast<double>(norms.size());
    const double gamma = problem.loss().gamma() > 0 ? problem.loss().gamma() : 0.1;
    const double n = static_cast<double>(problem.rows());
    const double text = 6 * (1 + 0.5 * std::sqrt(mean / (problem.strong_convexity() * n * gamma)));
    return problem.rows() > problem.features() ? std::min(8 * text, 1e4) : std::min(text, 60.0);
}

namespace {

/// Whether Newton's method is likely to be faster: some 12 iterations, each a pass that adds up products of pairs of entries and a
/// Cholesky factor of the smaller side, against the passes of a stochastic method. In nanoseconds of one core.
bool prefers_newton(const Problem &problem) {
    const double n = static_cast<double>(problem.rows()), d = static_cast<double>(problem.dimension());
    const double entries = static_cast<double>(problem.nonzeros()), side = std::min(n, d);
    if (side > 2000) return false;
    if (d <= 100) return true;
    const double products = d <= n ? entries * entries / n / 2 : entries * side / 2;
    const double newton = 12 * (0.5 * products + 2 * entries + 0.3 * side * side * side / 3);
    const double stochastic = predicted_passes(problem) * 4 * entries;
    return newton < stochastic;
}

} // namespace

std::vector<Choice> choose(const Problem &problem) {
    const Choice newton{Newton{},
                        "auto picked newton: an l2 penalty, and a side of the data small enough to factor its matrix"};
    const Choice fast{SpdcFast{}, "auto picked spdc_fast: an l2 penalty, the same for every feature"};
    const Choice newton_cg{NewtonCg{}, "auto picked newton_cg: an l2 penalty, a smooth loss, columns of any unit"};
    const Choice working_set{WorkingSet{}, "auto picked working_set: an l1 penalty leaves most weights at 0", true};
    const Choice general{Spdc{}, "auto picked spdc: it takes every penalty, weighting and intercept"};
    const bool is_l2 = std::holds_alternative<L2>(problem.regularizer().variant()) && problem.strong_convexity() > 0;
    if (!is_l2) {
        const double l1 = std::visit([](const auto &g) { return g.parts().l1; }, problem.regularizer().variant());
        if (l1 > 0) return {working_set, general};
        return {general};
    }
    const bool is_uniform = problem.penalty_factors().empty();
    if (prefers_newton(problem)) return {newton, is_uniform ? fast : general};
    std::vector<Choice> choices;
    if (is_uniform) choices.push_back(fast);
    if (std::min(problem.rows(), problem.dimension()) <= 5000) choices.push_back(newton);
    if (is_smooth(problem.loss())) choices.push_back(newton_cg);
    if (!is_uniform) choices.push_back(general);
    return choices;
}

} // namespace spdc
