// Newton's method with a Cholesky factor, for few features (this file) or few rows (newton_plain.cpp). With l1 or bounds, for which it is a
// form of working_set, coordinate descent takes the factor's place.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + sum_j (lambda_j/2) x_j^2; lambda_j = 0 is allowed, as for a free intercept.
//
//   H s = -g,   H = (1/n) A' diag(omega phi'') A + Lambda;   x <- x + t s,   t = 1 or the minimiser along s
//
// One iteration is one pass: predictions, loss, gradient and Hessian of a block of rows are computed while it is in the cache.
// The search along s moves predictions only and reads no data. The first iterations run on a growing sample of the rows, because
// a minimiser on m rows is only sqrt(d/m) close whatever the effort (Byrd, Chin, Nocedal and Wu 2012).
//
// Dual point: y = phi'(z) + phi''(z) (A s) satisfies A'y/n + Lambda (x + s) = 0 exactly, so the gap at x + s is the Fenchel-Young
// loss of the rows alone and shrinks with the square of the step; phi'(z + A s) would pay |gradient|^2/(2 lambda).
//
// Losses that are piecewise quadratic have generalised second derivatives (semismooth Newton: Qi and Sun 1993; for support vector
// machines Keerthi and DeCoste 2005). Losses with corners, and those that are flat for most rows, go to newton_barrier.cpp.
//
// Cost: an iteration reads the data once and takes sum_i nnz_i^2/2 products for H and d^3/3 for the factor.
#include "newton.h"

#include "methods.h"
#include "newton_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The model says what is added to the loss, and what step it makes best.
template <class Model> class FusedNewton final : public Method {
  public:
    FusedNewton(const Problem &problem, const SolveContext &context);

    void advance(double passes) override;
    double passes() const override { return passes_; }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    double estimated_gap() const override { return gap_; }
    void aim(double tolerance) override { tolerance_ = tolerance; }
    void start(std::span<const double> x, std::span<const double> y) override;
    bool has_point() const override { return promising_ || is_exhausted_ || full_passes_ >= 20; }
    bool exhausted() const override { return is_exhausted_; }
    void certified(const Found &) override { tolerance_ *= 0.5; } // the estimate was too kind
    int threads() const override { return rows_.threads(); }

  private:
    /// What a pass over the rows in use computes.
    struct Pass {
        bool predict = false;     // next_ = A trial, and everything else at next_ instead of z_
        bool derivatives = false; // loss and gradient
        bool hessian = false;
        bool dual = false; // how good the dual point of the step from z_ to next_ is
    };
    void run(const Pass &pass);
    void run_block(std::size_t k, const Pass &pass, RowScratch &scratch, RowSums &sums);
    void add_dual(const LossRows &rows, std::size_t k, const double *z, RowScratch &scratch, RowSums &sums) const;

    void start_stage(std::size_t blocks);
    void take_derivatives(bool fresh_predictions, bool hessian);
    void set_derivatives(bool hessian);
    bool leave_stage();
    void try_full_step();
    void shorten();
    void search_line();
    void measure_dual(bool is_newton);
    LossRows rows_of(std::size_t k) const {
        const std::size_t like = is_weighted_ ? k : (k + 1 < rows_.blocks() ? 0 : 1);
        return {b_.data() + k * rows_.block_rows(), omega_.data() + like * rows_.block_rows(), rows_.block_rows()};
    }
    double sample_size() const { return static_cast<double>(std::min(stage_ * rows_.block_rows(), rows_.rows())); }
    bool is_full() const { return stage_ == rows_.blocks(); }

    const Problem &problem_;
    RowBlocks rows_;
    NewtonLoss loss_, step_loss_; // the latter as it was for the step
    Model model_;
    bool is_weighted_;
    RowVector b_, omega_, z_, next_; // unweighted, omega_ has two blocks: all ones, and what is in the last one
    Eigen::VectorXd x_, trial_;
    NewtonStep step_;
    RowSums sums_;
    std::size_t stage_ = 0; // blocks in use
    double objective_ = infinity;
    double gap_ = infinity, ratio_ = 0.05; // estimated gap, and what it was for a unit of decrement
    double tolerance_ = 1e-4, passes_ = 0, full_passes_ = 0;
    bool has_predictions_ = false, has_derivatives_ = false, has_hessian_ = false, newton_dual_ = false;
    bool careful_ = false; // the last full step was refused: search before computing a Hessian
    bool promising_ = false, is_exhausted_ = false;
    int useless_ = 0;
};

template <class Model>
FusedNewton<Model>::FusedNewton(const Problem &problem, const SolveContext &context)
    : problem_(problem), rows_(problem, context.seed, context, context.team), loss_(problem.loss()),
      step_loss_(problem.loss()), model_(problem, rows_), is_weighted_(!problem.importance().empty()) {
    const std::size_t d = rows_.dimension();
    x_ = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(d));
    auto vectors = rows_.make_vectors<3>();
    b_ = std::move(vectors[0]);
    z_ = std::move(vectors[1]);
    next_ = std::move(vectors[2]); // every pass that reads it fills it first
    rows_.fill_targets(b_);
    rows_.fill(z_, [](std::int64_t) { return 0.0; });
    if (is_weighted_) {
        omega_ = std::move(rows_.make_vectors<1>()[0]);
        rows_.fill_importance(omega_);
    } else {
        omega_.assign(2 * rows_.block_rows(), 1.0);
        std::fill(omega_.end() - static_cast<std::ptrdiff_t>(rows_.padded_rows() - rows_.rows()), omega_.end(), 0.0);
    }
    const std::size_t first = std::max<std::size_t>(2048, 20 * d) / rows_.block_rows();
    start_stage(loss_.is_quadratic() || 4 * first > rows_.blocks() ? rows_.blocks() : first);
    has_predictions_ = true; // x = 0
    loss_.set_blunt(loss_.has_pieces());
}

template <class Model> void FusedNewton<Model>::start(std::span<const double> x, std::span<const double>) {
    for (std::size_t j = 0; j < x.size(); ++j) {
        x_[static_cast<Eigen::Index>(rows_.place_of(static_cast<std::int64_t>(j)))] = x[j];
    }
    start_stage(rows_.blocks()); // a sample's minimiser would be a step back
    loss_.set_blunt(false);
}

template <class Model> void FusedNewton<Model>::start_stage(std::size_t blocks) {
    stage_ = 2 * blocks > rows_.blocks() ? rows_.blocks() : blocks;
    useless_ = 0;
    has_predictions_ = has_derivatives_ = has_hessian_ = newton_dual_ = careful_ = false;
}

template <class Model> void FusedNewton<Model>::run(const Pass &pass) {
    rows_.sum(stage_, pass.hessian, sums_,
              [&](std::size_t k, RowScratch &scratch, RowSums &sums) { run_block(k, pass, scratch, sums); });
    passes_ += sample_size() / static_cast<double>(rows_.rows());
    if (is_full()) full_passes_ += 1;
}

template <class Model>
void FusedNewton<Model>::run_block(std::size_t k, const Pass &pass, RowScratch &scratch, RowSums &sums) {
    double *const z = (pass.predict ? next_ : z_).data() + k * rows_.block_rows(); // threads write to their own rows
    if (pass.hessian) rows_.prepare(k, scratch);
    if (pass.predict) rows_.predict(k, trial_.data(), z, scratch);
    if (!pass.derivatives) return;
    const LossRows rows = rows_of(k);
    sums.loss += loss_.evaluate(rows, z, scratch.w.data(), scratch.h.data());
    rows_.combine(k, scratch.w.data(), sums.gradient.data(), scratch);
    if (pass.hessian) rows_.add_hessian(k, scratch.h.data(), scratch, sums);
    if (pass.dual) add_dual(rows, k, z, scratch, sums);
}

template <class Model>
void FusedNewton<Model>::add_dual(const LossRows &rows, std::size_t k, const double *z, RowScratch &scratch,
                                  RowSums &sums) const {
    double *const y = scratch.y.data(), *const excess = scratch.excess.data();
    const bool any = step_loss_.newton_dual(rows, z_.data() + k * rows_.block_rows(), z, y, excess);
    if (loss_.is_logistic()) {
        for (std::size_t i = 0; i < rows.count; ++i) {
            const double off = rows.omega[i] * y[i] - scratch.w[i];
            if (scratch.h[i] > 0) sums.young += 0.5 * off * off / scratch.h[i];
        }
    } else {
        sums.young += loss_.young(rows, z, y);
    }
    if (!any) return;
    for (std::size_t i = 0; i < rows.count; ++i) excess[i] *= rows.omega[i];
    rows_.combine(k, excess, sums.excess.data(), scratch);
}

template <class Model> void FusedNewton<Model>::set_derivatives(bool hessian) {
    const double scale = 1 / sample_size();
    objective_ = scale * sums_.loss + model_.penalty(x_);
    model_.set(x_, scale * Eigen::Map<const Eigen::VectorXd>(sums_.gradient.data(), x_.size()));
    has_derivatives_ = true;
    has_hessian_ = hessian;
    if (!hessian) return;
    rows_.assemble(sums_, scale, model_.hessian());
    model_.set_hessian();
}

/// The derivatives at x.
template <class Model> void FusedNewton<Model>::take_derivatives(bool fresh_predictions, bool hessian) {
    trial_ = x_;
    run({fresh_predictions, true, hessian, false});
    if (fresh_predictions) std::swap(z_, next_);
    has_predictions_ = true;
    set_derivatives(hessian);
}

/// On a sample: takes the step and goes to more rows when the sample's own error is larger than what is left to gain. The objective may go to 0
/// there, where all rows have one label, but not the error.
template <class Model> bool FusedNewton<Model>::leave_stage() {
    if (is_full()) return false;
    const double share = model_.parameters(x_) / sample_size();
    const double worth = 0.5 * share * std::min(1.0, std::max(std::fabs(objective_), share));
    if (step_.decrement > worth && useless_ <= 3) return false;
    x_ += step_.move;
    start_stage(8 * stage_);
    return true;
}

template <class Model> void FusedNewton<Model>::advance(double) {
    if (is_exhausted_) return;
    if (!has_derivatives_ || !has_hessian_) {
        const bool is_new_stage = !has_predictions_;
        take_derivatives(is_new_stage, true);
        if (is_new_stage && model_.outward_slope(x_) > 0.1 * std::fabs(objective_)) shorten();
    }
    if (!model_.choose(x_, {objective_, tolerance_, loss_.is_quadratic()}, rows_.team(), step_)) {
        is_exhausted_ = is_full();
        if (!is_full()) start_stage(8 * stage_);
        return;
    }
    if (leave_stage()) return;
    step_loss_ = loss_;
    loss_.set_blunt(false);
    trial_ = x_ + step_.move;
    if (careful_) {
        run({true, false, false, false});
        search_line();
    } else {
        try_full_step();
    }
}

template <class Model> void FusedNewton<Model>::try_full_step() {
    const double goal = 0.5 * tolerance_ * std::fabs(objective_);
    const bool is_exact = loss_.is_quadratic(); // the model is the loss: one step, and its dual point is the best
    const bool last = is_full() && (is_exact || step_.decrement * ratio_ <= goal);
    const bool dual = is_full() && (is_exact || step_.decrement <= 0.02 * std::fabs(objective_));
    run({true, true, !last, dual});
    const double scale = 1 / sample_size();
    const double value = scale * sums_.loss + model_.penalty(trial_);
    const double rounding = 1e-14 * std::fabs(objective_);
    if (!(value <= objective_ - 0.1 * step_.decrement + rounding)) {
        search_line();
        return;
    }
    useless_ = step_.decrement <= 0.1 * rounding ? useless_ + 1 : 0;
    is_exhausted_ = useless_ > 3 && is_full();
    std::swap(z_, next_);
    x_ = trial_;
    set_derivatives(!last);
    careful_ = false;
    newton_dual_ = dual;
    if (dual) measure_dual(true);
}

/// x is too long for these rows by far, as where a sample could be fitted that had a few of the rows with rare features: the best of it on the way
/// to 0. Steps from where it was would take as many as if they began at 0, and searches beside.
template <class Model> void FusedNewton<Model>::shorten() {
    step_ = {-x_, 0.5 * model_.outward_slope(x_)};
    std::fill_n(next_.begin(), stage_ * rows_.block_rows(), 0.0);
    search_line();
    careful_ = false;
}

/// The minimiser between x and trial_, whose predictions are in next_.
template <class Model> void FusedNewton<Model>::search_line() {
    const std::size_t block = rows_.block_rows();
    double *const z = z_.data(), *const move = next_.data();
    rows_.each(stage_, [&](std::size_t k) {
        for (std::size_t i = k * block; i < (k + 1) * block; ++i) move[i] -= z[i];
    });
    const double scale = 1 / sample_size();
    const auto penalty = model_.along(x_, step_.move);
    const auto slope = [&](double t) {
        std::vector<LineSlope> parts(stage_);
        rows_.each(stage_,
                   [&](std::size_t k) { parts[k] = loss_.slope(rows_of(k), z + k * block, move + k * block, t); });
        LineSlope sum;
        for (const LineSlope &part : parts) sum.first += part.first, sum.second += part.second;
        const LineSlope own = penalty(t);
        return LineSlope{scale * sum.first + own.first, scale * sum.second + own.second};
    };
    const LineSlope end = slope(1);
    const bool full = end.first <= 0.1 * step_.decrement;
    const double t = full ? 1 : line_minimum(slope, -2 * step_.decrement, 1);
    rows_.each(stage_, [&](std::size_t k) {
        for (std::size_t i = k * block; i < (k + 1) * block; ++i) z[i] += t * move[i];
    });
    x_ += t * step_.move;
    careful_ = !full;
    useless_ = t * step_.decrement <= 1e-15 * std::fabs(objective_) ? useless_ + 1 : 0;
    is_exhausted_ = useless_ > 3 && is_full();
    newton_dual_ = false;
    take_derivatives(false, true);
    measure_dual(false);
}

template <class Model> void FusedNewton<Model>::measure_dual(bool is_newton) {
    const double plain = model_.plain_cost(x_, objective_);
    double newton = infinity;
    if (is_newton) {
        const double scale = 1 / sample_size();
        const Eigen::VectorXd excess = scale * Eigen::Map<const Eigen::VectorXd>(sums_.excess.data(), x_.size());
        newton = scale * sums_.young + model_.newton_cost(x_, excess, objective_);
        if (step_.decrement > 0) ratio_ = newton / step_.decrement;
    }
    newton_dual_ = newton < plain;
    gap_ = std::min(newton, plain);
    promising_ = promising_ || gap_ <= tolerance_ * std::fabs(objective_);
}

template <class Model> void FusedNewton<Model>::point(std::vector<double> &x, std::vector<double> &y) {
    x.resize(at(problem_.dimension()));
    for (std::size_t j = 0; j < x.size(); ++j) {
        x[j] = x_[static_cast<Eigen::Index>(rows_.place_of(static_cast<std::int64_t>(j)))];
    }
    const bool predicts = !is_full() || !has_predictions_; // the sample is all that was looked at
    if (predicts) newton_dual_ = false;
    y.resize(rows_.rows());
    rows_.each(rows_.blocks(), [&](std::size_t k) {
        const std::size_t begin = k * rows_.block_rows(), end = std::min(begin + rows_.block_rows(), rows_.rows());
        std::vector<double> dual(rows_.block_rows()), excess(rows_.block_rows());
        double *const z = z_.data() + begin;
        if (predicts) {
            RowScratch scratch;
            rows_.predict(k, x_.data(), z, scratch);
        }
        if (newton_dual_) {
            step_loss_.newton_dual(rows_of(k), next_.data() + begin, z, dual.data(), excess.data());
        } else {
            loss_.dual(rows_of(k), z, dual.data());
        }
        for (std::size_t p = begin; p < end; ++p) y[at(rows_.row_at(p))] = dual[p - begin];
    });
}

/// Whether Newton steps get somewhere from x = 0: the loss is smooth, and curved for most rows or nearly so. If not, it is one for the
/// barrier.
bool suits_newton_steps(const Problem &problem, Team &team) {
    if (!NewtonLoss(problem.loss()).has_pieces()) return true;
    if (problem.loss().gamma() == 0) return false;
    struct Rows {
        double curved = 0, all = 0;
        void add(const Rows &other) { curved += other.curved, all += other.all; }
    };
    const auto look = [&](const auto &loss, std::size_t i, Rows &rows) {
        const double b = problem.targets()[i], omega = problem.importance(static_cast<std::int64_t>(i));
        // with phi* + (gamma/2) y^2, which doubles the width of the parabola
        const double y = loss.dual_prox(0, 0, 1 / loss.gamma(), b);
        const Interval domain = loss.domain(b);
        rows.all += omega;
        if (domain.lower < y && y < domain.upper) rows.curved += omega;
    };
    const std::size_t n = at(problem.rows());
    const Rows rows =
        sum_chunks<Rows>(team, n, static_cast<double>(n), [&](std::size_t begin, std::size_t end, Rows &own) {
            std::visit(
                [&](const auto &loss) {
                    for (std::size_t i = begin; i < end; ++i) look(loss, i, own);
                },
                problem.loss().variant());
        });
    return rows.curved > 0.5 * rows.all;
}

/// Whether a column has entries 1e5 times those of another: in A A', which squares that, rounding drowns the small one.
bool has_drowning_columns(const Problem &problem) {
    std::vector<double> largest(at(problem.features()), 0.0);
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                const auto row = matrix.row(i);
                interruption_point(row.size());
                for (std::int64_t q = 0; q < row.size(); ++q) {
                    double &own = largest[at(row.column(q))];
                    own = std::max(own, std::fabs(row.value(q)));
                }
            }
        },
        problem.matrix());
    std::erase(largest, 0.0);
    const auto [low, high] = std::minmax_element(largest.begin(), largest.end());
    return low != high && *high >= 1e5 * *low;
}

} // namespace

std::unique_ptr<Method> make_fused_newton(const Problem &problem, const SolveContext &context) {
    return std::make_unique<FusedNewton<RidgeModel>>(problem, context);
}

std::unique_ptr<Method> make_sparse_newton(const Problem &problem, const SolveContext &context) {
    return std::make_unique<FusedNewton<SparseModel>>(problem, context);
}

std::unique_ptr<Method> make_method(const Problem &problem, const Newton &options, const SolveContext &context) {
    constexpr std::int64_t largest = 5000;        // a matrix of 200 MB and a factor of 4e10 products
    constexpr std::int64_t largest_wide = 2000;   // the same, where rows x rows would do but for its rounding
    constexpr std::size_t most_unpenalised = 500; // columns of the dual-sized form
    if (!std::holds_alternative<L2>(problem.regularizer().variant())) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l2 penalty without l1 or bounds; the solver spdc takes any penalty",
                         options.name));
    }
    const bool can_be_dual = problem.rows() <= largest && problem.strong_convexity() > 0 &&
                             problem.free_coordinates().size() <= most_unpenalised;
    const bool is_wide = problem.rows() < problem.dimension();
    const bool is_dual =
        can_be_dual && is_wide && (problem.dimension() > largest_wide || !has_drowning_columns(problem));
    if (!is_dual && problem.dimension() > largest) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} factors a matrix of the smaller of rows and features and takes at most {} (the "
                         "rows only with an l2 penalty on all but {} features), but there are {} rows and {} features; "
                         "the solvers spdc_fast and spdc have no such limit",
                         options.name, largest, most_unpenalised, problem.rows(), problem.features()));
    }
    const bool steps = suits_newton_steps(problem, LentTeam(context.team, context));
    if (steps && !is_dual) return make_fused_newton(problem, context);
    if (!is_dual && suits_sifting(problem)) return make_sifted_newton(problem, context);
    auto system = is_dual ? make_dual_system(problem, context) : make_primal_system(problem, context);
    return steps ? make_plain_newton(problem, std::move(system)) : make_barrier_newton(problem, std::move(system));
}

} // namespace spdc
