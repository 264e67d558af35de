// Proximal SDCA for every strongly convex penalty, rows uniform or permuted.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), g strongly convex: l2, elastic net, both on bounds. Shalev-Shwartz
// and Zhang, "Stochastic dual coordinate ascent methods for regularized loss minimization" (2013) and, for general g,
// "Accelerated proximal stochastic dual coordinate ascent" (2014), procedure Prox-SDCA, option I: dual_ascent.h has the step.
// No step size to choose. Cost of a step: the non-zeros of its row, read twice. Losses with kinks are taken, too; their rate
// is 1/t.
//
// What differs: a plain l2 penalty with permuted rows goes to spdc_fast.cpp, which runs the same steps with a kernel of its
// own, shrinking, threads and free intercepts.
#include "dual_ascent.h"
#include "methods.h"

#include <fmt/format.h>

namespace spdc {

namespace {

class SdcaMethod final : public StochasticMethod {
  public:
    SdcaMethod(const Problem &problem, Sampling sampling, const SolveContext &context)
        : StochasticMethod(problem), rows_(sampling, constants_.n, context.seed), ascent_(problem, constants_, 0) {}

    void advance(double passes) override {
        const std::int64_t count = rows_in(passes);
        with_maximizer(problem_, 0, [&](const auto &matrix, const auto &x) {
            for (std::int64_t s = 0; s < count; ++s) {
                const std::int64_t k = rows_.next(matrix);
                const auto row = matrix.row(k);
                ascent_.visit(row, x, k);
                touched_ += row.size();
            }
        });
        visits_ += count;
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        with_maximizer(problem_, 0, [&](const auto &, const auto &map) { ascent_.take_x(map, x); });
        y = ascent_.y();
    }

  private:
    RowStream rows_;
    DualAscent ascent_;
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Sdca &options, const SolveContext &context) {
    const bool is_plain_l2 = std::holds_alternative<L2>(problem.regularizer().variant()) &&
                             problem.strong_convexity() > 0 && problem.penalty_factors().empty();
    if (options.sampling == Sampling::weighted) {
        fail(ErrorKind::invalid_argument,
             "solver sdca picks rows by uniform or permutation sampling; the solver spdc takes weighted");
    }
    if (is_plain_l2 && options.sampling == Sampling::permutation) return make_fast_sdca(problem, options, context);
    if (options.owners.value_or(1) > 1) {
        fail(ErrorKind::unsupported, "solver sdca has owners only with a plain l2 penalty and permutation sampling");
    }
    need_strong_convexity(problem, options.name);
    return std::make_unique<SdcaMethod>(problem, options.sampling, context);
}

} // namespace spdc
