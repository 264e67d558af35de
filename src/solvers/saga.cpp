// SAG and SAGA: stochastic gradients with a table of the last gradient of every row.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth. The gradient of a row is a multiple of the row,
// so the table is one number y_i per row, and u = (1/n) sum_i omega_i y_i a_i its mean. One step on a row k drawn uniformly:
//
//   delta = omega_k (phi'(a_k'x) - y_k);   y_k <- phi'(a_k'x)
//   x <- prox_{tau g}( x - tau (u + delta a_k) )         SAGA: Defazio, Bach and Lacoste-Julien (2014), equations (1) and (2)
//   x <- prox_{tau g}( x - tau (u + (delta/n) a_k) )     SAG: Schmidt, Le Roux and Bach (2017), algorithm 1
//   u <- u + (delta/n) a_k
//
// Step: tau = 1/(3L) for SAGA, 1/(16L) for SAG, as their theorems have it, L = max_i omega_i |a_i|^2/gamma. Cost of a step:
// the non-zeros of its row (lazy_point.h). y starts at 0, which is the table of gradients of a model that fits.
//
// What differs: SAG is stated for smooth objectives with l2 inside the gradient; here the penalty is in the proximal map, as
// in SAGA, which also takes l1 and bounds. Schmidt et al. also divide by the rows seen so far instead of n, and search for L;
// we do neither.
#include "lazy_point.h"
#include "methods.h"

namespace spdc {

namespace {

class GradientTable final : public StochasticMethod {
  public:
    /// `step` is tau in units of 1/L.
    GradientTable(const Problem &problem, double step, bool is_sag, const SolveContext &context)
        : StochasticMethod(problem), weight_(is_sag ? 1 / constants_.rows : 1.0),
          rows_(Sampling::uniform, constants_.n, context.seed),
          w_(problem, constants_, step * constants_.gamma / constants_.R2), y_(constants_.norm2.size(), 0.0) {}

    void advance(double passes) override {
        const std::int64_t count = rows_in(passes);
        std::visit(
            [&](const auto &matrix, const auto &step) {
                for (std::int64_t s = 0; s < count; ++s) visit(matrix, step);
            },
            problem_.matrix(), w_.step());
        visits_ += count;
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        w_.take(x);
        implied_dual(problem_, x, y);
    }

  private:
    template <class Matrix, class Step> void visit(const Matrix &matrix, const Step &step) {
        const std::int64_t k = rows_.next(matrix);
        const auto row = matrix.row(k);
        const double slope = problem_.loss().derivative(w_.product(row, step), target(k));
        double &y = y_[static_cast<std::size_t>(k)];
        const double delta = problem_.importance(k) * (slope - y);
        y = slope;
        w_.move(row, step, weight_ * delta, delta / constants_.rows);
        touched_ += row.size();
    }

    double weight_; // of a row's new gradient in the step
    RowStream rows_;
    LazyPoint w_;
    std::vector<double> y_;
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Sag &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    return std::make_unique<GradientTable>(problem, options.step.value_or(1.0 / 16), true, context);
}

std::unique_ptr<Method> make_method(const Problem &problem, const Saga &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    return std::make_unique<GradientTable>(problem, options.step.value_or(1.0 / 3), false, context);
}

} // namespace spdc
