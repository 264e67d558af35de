#include "stochastic.h"

#include "free_coordinates.h"

#include <fmt/format.h>

#include <algorithm>

namespace spdc {

Constants::Constants(const Problem &problem)
    : n(problem.rows()), d(problem.features()), rows(static_cast<double>(n)), gamma(problem.loss().gamma()),
      lambda(problem.strong_convexity()) {
    norm2 = problem.squared_row_norms();
    if (problem.intercept() == Intercept::penalized) column = 1;
    if (problem.intercept() == Intercept::free) {
        std::vector<double> sorted = norm2;
        std::nth_element(sorted.begin(), sorted.begin() + n / 2, sorted.end());
        const double median = sorted[static_cast<std::size_t>(n / 2)];
        column = median > 0 ? std::sqrt(median) : 1;
        start = best_constant(problem) / column;
    }
    for (std::int64_t i = 0; i < n; ++i) {
        double &norm = norm2[static_cast<std::size_t>(i)];
        norm = problem.importance(i) * (norm + column * column);
        R2 = std::max(R2, norm);
    }
    if (R2 == 0) R2 = 1; // any step is right
}

void need_smooth_loss(const Problem &problem, std::string_view solver) {
    if (problem.loss().gamma() > 0) return;
    fail(ErrorKind::unsupported,
         fmt::format("solver {} needs a smooth loss, and {} is not; the solver spdc takes any loss", solver,
                     problem.loss().name()));
}

void need_strong_convexity(const Problem &problem, std::string_view solver) {
    if (problem.is_strongly_convex()) return;
    fail(
        ErrorKind::unsupported,
        fmt::format("solver {} needs an l2 penalty on every weight and on the intercept, if there is one: no factor 0, "
                    "no free intercept; the solver spdc takes any penalty",
                    solver));
}

void implied_dual(const Problem &problem, std::span<const double> x, std::vector<double> &y) {
    y.resize(static_cast<std::size_t>(problem.rows()));
    problem.predict(x, y);
    std::visit(
        [&](const auto &loss) {
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = loss.derivative(y[i], problem.targets()[i]);
        },
        problem.loss().variant());
}

} // namespace spdc
