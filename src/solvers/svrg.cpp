// Proximal SVRG: stochastic gradients corrected by the full gradient at a snapshot.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth. A stage starts with a snapshot: y_i = phi'(a_i'x),
// u = (1/n) sum_i omega_i y_i a_i, one pass. Then 2n steps on rows k drawn uniformly:
//
//   x <- prox_{tau g}( x - tau (u + omega_k (phi'(a_k'x) - y_k) a_k) )
//
// Xiao and Zhang (2014), method Prox-SVRG. Step tau = 0.1/L, L = max_i omega_i |a_i|^2/gamma, and 2n steps
// a stage, as in their section 4. Cost of a step: the non-zeros of its row (lazy_point.h).
//
// What differs: the next snapshot is the last x of a stage, as is usual; the theorem is for the average of the stage
// and for stages of some 100 L/lambda steps.
#include "lazy_point.h"
#include "methods.h"

#include <algorithm>

namespace spdc {

namespace {

class SvrgMethod final : public StochasticMethod {
  public:
    SvrgMethod(const Problem &problem, double step, const SolveContext &context)
        : StochasticMethod(problem), rows_(Sampling::uniform, constants_.n, context.seed),
          w_(problem, constants_, step * constants_.gamma / constants_.R2),
          u_(static_cast<std::size_t>(problem.dimension())) {}

    void advance(double passes) override {
        for (std::int64_t left = rows_in(passes); left > 0;) {
            if (left_in_stage_ == 0) {
                take_snapshot();
                left -= constants_.n;
                continue;
            }
            const std::int64_t count = std::min(left, left_in_stage_);
            std::visit(
                [&](const auto &matrix, const auto &step) {
                    for (std::int64_t s = 0; s < count; ++s) visit(matrix, step);
                },
                problem_.matrix(), w_.step());
            visits_ += count;
            left -= count;
            left_in_stage_ -= count;
        }
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        w_.take(x);
        implied_dual(problem_, x, y);
    }

  private:
    void take_snapshot() {
        std::vector<double> x;
        point(x, y_);
        problem_.combine(y_, u_);
        w_.set_u(u_);
        visits_ += constants_.n;
        touched_ += problem_.nonzeros();
        left_in_stage_ = 2 * constants_.n;
    }

    template <class Matrix, class Step> void visit(const Matrix &matrix, const Step &step) {
        const std::int64_t k = rows_.next(matrix);
        const auto row = matrix.row(k);
        const double slope = problem_.loss().derivative(w_.product(row, step), target(k));
        w_.move(row, step, problem_.importance(k) * (slope - y_[static_cast<std::size_t>(k)]), 0);
        touched_ += row.size();
    }

    RowStream rows_;
    LazyPoint w_;
    std::vector<double> y_, u_; // of the snapshot
    std::int64_t left_in_stage_ = 0;
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Svrg &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    return std::make_unique<SvrgMethod>(problem, options.step.value_or(0.1), context);
}

} // namespace spdc
