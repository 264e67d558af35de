// Accelerated proximal SDCA: an accelerated proximal point method whose subproblems SDCA solves.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth, g lambda-strongly convex. Shalev-Shwartz and
// Zhang, "Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization" (2014), procedure
// Accelerated Prox-SDCA:
//
//   kappa = R^2/(gamma n) - lambda,  mu = lambda/2,  rho = mu + kappa,  eta = sqrt(mu/rho),  beta = (1 - eta)/(1 + eta)
//   c = x_0 = 0,  xi = (1 + eta^-2)(P(0) - D(0));  outer iterations t = 1, 2, ...:
//     x_t, y <- SDCA on P(x) + (kappa/2)|x - c|^2 from y, until its gap is eta/(2 (1 + eta^-2)) xi
//     c <- x_t + beta (x_t - x_{t-1});   xi <- (1 - eta/2) xi
//
// Cost: a visit of a row costs its non-zeros (dual_ascent.h), an outer iteration all features once.
//
// What differs. The reference asks for 10 lambda gamma n <= R^2; above that kappa would be small or negative and plain SDCA
// is as fast by the same theory, so kappa = 0 and there is no outer loop. The inner gap is not computed but estimated over
// each pass from the rows as they are visited: with uniform sampling the mean of their Fenchel-Young terms is unbiased for
// the gap's average over the pass. It saves a pass over the data per test. Rows are permuted by default.
#include "dual_ascent.h"
#include "methods.h"

#include <algorithm>

namespace spdc {

namespace {

class AsdcaMethod final : public StochasticMethod {
  public:
    AsdcaMethod(const Problem &problem, Sampling sampling, const SolveContext &context)
        : StochasticMethod(problem), kappa_(kappa_of(constants_)), rows_(sampling, constants_.n, context.seed),
          ascent_(problem, constants_, kappa_), x_(static_cast<std::size_t>(problem.dimension()), 0.0), c_(x_) {
        if (kappa_ == 0) return;
        const double mu = 0.5 * constants_.lambda, rho = mu + kappa_;
        eta_ = std::sqrt(mu / rho);
        double start = 0; // P(0) - D(0) at y = 0
        for (std::int64_t i = 0; i < constants_.n; ++i) {
            const double gap = problem.loss().value(0, target(i)) + problem.loss().conjugate(0, target(i));
            start += problem.importance(i) * gap / constants_.rows;
        }
        inner_gap_ = 0.5 * eta_ * start;
    }

    void advance(double passes) override {
        for (std::int64_t left = rows_in(passes); left > 0;) {
            const std::int64_t count = std::min(left, constants_.n - in_pass_);
            with_maximizer(problem_, kappa_, [&](const auto &matrix, const auto &x) {
                for (std::int64_t s = 0; s < count; ++s) visit(matrix, x);
            });
            visits_ += count;
            left -= count;
            in_pass_ += count;
            if (in_pass_ < constants_.n) continue;
            if (kappa_ > 0 && gap_sum_ <= inner_gap_ * constants_.rows) next_outer();
            in_pass_ = 0;
            gap_sum_ = 0;
        }
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        with_maximizer(problem_, kappa_, [&](const auto &, const auto &map) { ascent_.take_x(map, x); });
        y = ascent_.y();
    }

  private:
    static double kappa_of(const Constants &c) {
        const bool pays = 10 * c.lambda * c.gamma * c.rows <= c.R2;
        return pays ? c.R2 / (c.gamma * c.rows) - c.lambda : 0;
    }

    template <class Matrix, class X> void visit(const Matrix &matrix, const X &x) {
        const std::int64_t k = rows_.next(matrix);
        const auto row = matrix.row(k);
        const double y = ascent_.y()[static_cast<std::size_t>(k)], b = target(k);
        const double s = ascent_.visit(row, x, k);
        if (kappa_ > 0) {
            gap_sum_ +=
                problem_.importance(k) * (problem_.loss().value(s, b) + problem_.loss().conjugate(y, b) - y * s);
        }
        touched_ += row.size();
    }

    void next_outer() {
        std::vector<double> x, y;
        point(x, y);
        const double beta = (1 - eta_) / (1 + eta_);
        for (std::size_t j = 0; j < x.size(); ++j) {
            const double c = x[j] + beta * (x[j] - x_[j]);
            ascent_.shift(j, kappa_ * (c - c_[j]));
            c_[j] = c;
        }
        x_ = std::move(x);
        inner_gap_ *= 1 - 0.5 * eta_;
    }

    double kappa_, eta_ = 1;
    RowStream rows_;
    DualAscent ascent_;
    std::vector<double> x_, c_; // of the last outer iteration
    double inner_gap_ = 0, gap_sum_ = 0;
    std::int64_t in_pass_ = 0;
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Asdca &options, const SolveContext &context) {
    if (options.sampling == Sampling::weighted) {
        fail(ErrorKind::invalid_argument,
             "solver asdca picks rows by uniform or permutation sampling; the solver spdc takes weighted");
    }
    need_smooth_loss(problem, options.name);
    need_strong_convexity(problem, options.name);
    return std::make_unique<AsdcaMethod>(problem, options.sampling, context);
}

} // namespace spdc
