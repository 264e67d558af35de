// Step sizes of the theorems, as pure functions. Letters as in the paper; `scale` is 1/2 in every proof that holds and 1 in
// eq. (tau-sigma-theta) as printed, which can diverge (docs/paper_notes.md, erratum 1).
#pragma once

namespace spdc {

struct StepSizes {
    double tau, sigma, theta;
};

/// Theorem 1: mini-batches of m of n rows, R the largest row norm.
StepSizes theorem1_steps(double n, double m, double R, double gamma, double lambda, double scale);

/// Theorem 2: weighted sampling of one row, Rbar the mean row norm.
StepSizes theorem2_steps(double n, double alpha, double Rbar, double gamma, double lambda, double scale);

/// Weighted mini-batches, which the paper leaves out: row k is in the batch with probability q_k; Rq = max_k m |a_k| / (n q_k),
/// and `slowest` = max_k 1/q_k. Derived in docs/paper_notes.md.
StepSizes weighted_batch_steps(double n, double m, double Rq, double slowest, double gamma, double lambda,
                               double scale);

/// The alpha that makes theorem 2's theta smallest, section 4: 1 / (1 + (n / (m kappa))^(1/4)), kappa = Rbar^2/(lambda gamma).
double best_alpha(double n, double m, double Rbar, double gamma, double lambda);

/// theta for any tau and sigma: both ratios of the proof of theorem 1 are at most this. 1 when either lambda or gamma is 0.
double theta_for(double slowest, double n, double m, double tau, double sigma, double gamma, double lambda);

} // namespace spdc
