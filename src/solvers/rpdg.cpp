// RPDG: the randomized primal-dual gradient method.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth, g lambda-strongly convex. Lan and Zhou, "An
// optimal randomized incremental gradient method" (2015), algorithm RPDG with uniform probabilities and, as distance between
// dual variables, the Bregman distance of phi*, which makes the dual step a gradient at an average of predictions. k uniform,
// xbar = x + theta (x - x_previous):
//
//   zbar_k <- (zbar_k + sigma gamma <a_k, xbar>) / (1 + sigma gamma);   y_k <- phi'(zbar_k);   delta = its move times omega_k
//   x <- prox_{tau g}( x - tau (u + delta a_k) ),   u <- u + (delta/n) a_k
//
// so SPDC's Algorithm 1 but for the dual step, and on the squared loss SPDC itself. Steps: with S = sqrt((n-1)^2 + 16 n
// kappa), kappa = R^2/(lambda gamma), the reference's constants read tau = 2/(lambda (S + n - 1)), sigma = 2n/(gamma (S - n +
// 1)), theta = 1 - 2/(S + n + 1); tau sigma = 1/(4 R^2), as in SPDC. Cost of a step: the non-zeros of its row (spdc.cpp).
//
// y starts at phi'(0), as in the reference, whose u costs a pass, which counts. What differs: rows may have different weights.
#include "methods.h"
#include "spdc.h"
#include "stochastic.h"

namespace spdc {

std::unique_ptr<Method> make_method(const Problem &problem, const Rpdg &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    need_strong_convexity(problem, options.name);
    const Constants c(problem);
    const double others = c.rows - 1;
    const double S = std::sqrt(others * others + 16 * c.rows * c.R2 / (c.lambda * c.gamma));
    Spdc spdc;
    spdc.tau = 2 / (c.lambda * (S + others));
    spdc.sigma = 2 * c.rows / (c.gamma * (S - others));
    spdc.theta = 1 - 2 / (S + others + 2);
    return std::make_unique<SpdcMethod>(problem, spdc, context, DualDistance::conjugate);
}

} // namespace spdc
