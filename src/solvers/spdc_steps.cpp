#include "spdc_steps.h"

#include <algorithm>
#include <cmath>

namespace spdc {

StepSizes theorem1_steps(double n, double m, double R, double gamma, double lambda, double scale) {
    return {scale / R * std::sqrt(m * gamma / (n * lambda)), scale / R * std::sqrt(n * lambda / (m * gamma)),
            1 - 1 / (n / m + R * std::sqrt(n / (m * lambda * gamma)))};
}

StepSizes theorem2_steps(double n, double alpha, double Rbar, double gamma, double lambda, double scale) {
    return {scale * alpha / Rbar * std::sqrt(gamma / (n * lambda)),
            scale * alpha / Rbar * std::sqrt(n * lambda / gamma),
            1 - 1 / (n / (1 - alpha) + Rbar / alpha * std::sqrt(n / (lambda * gamma)))};
}

StepSizes weighted_batch_steps(double n, double m, double Rq, double slowest, double gamma, double lambda,
                               double scale) {
    const StepSizes steps = theorem1_steps(n, m, Rq, gamma, lambda, scale);
    return {steps.tau, steps.sigma, theta_for(slowest, n, m, steps.tau, steps.sigma, gamma, lambda)};
}

double best_alpha(double n, double m, double Rbar, double gamma, double lambda) {
    const double kappa = Rbar * Rbar / (lambda * gamma);
    return 1 / (1 + std::pow(n / (m * kappa), 0.25));
}

double theta_for(double slowest, double n, double m, double tau, double sigma, double gamma, double lambda) {
    if (!(lambda > 0) || !(gamma > 0)) return 1;
    return 1 - 1 / std::max(1 + 1 / (2 * lambda * tau), slowest + n / (2 * m * sigma * gamma));
}

} // namespace spdc
