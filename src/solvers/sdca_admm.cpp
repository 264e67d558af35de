// SDCA-ADMM: dual coordinate ascent by blocks inside the alternating direction method of multipliers.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth, g lambda-strongly convex. Suzuki, "Stochastic
// dual coordinate ascent with alternating direction method of multipliers" (2014), algorithm 1, with B = I and gamma = 1/n in
// his letters. The dual, min (1/n) sum_i omega_i phi*(y_i) + g*(v) with u + v = 0 for u = (1/n) sum_i omega_i y_i a_i, has x
// as its multiplier. Rows are dealt once into K blocks; one block I is drawn per iteration:
//
//   v   <- argmin_v  g*(v) - x'v + (rho/2)|u + v|^2
//   y_I <- argmin    (1/n) sum_I omega_i phi*(y_i) - x'u + (rho/2)|u + v|^2 + (1/2)|y_I - old|^2_G,   u follows
//   x   <- x - rho (r - (1 - 1/K) r_old),   r = u + v
//
// By Moreau's identity rho (u_old + v) = x - xhat with xhat = prox_{rho g}(x - rho u_old), so v is never formed; with G =
// diag - rho Z_I'Z_I the y_i are proximal steps at <a_i, xhat> with sigma_i = n/(rho D_i), D_i = sum_j |a_ij| sum_{l in I}
// omega_l |a_lj| >= the block's row sums. Cost of an iteration: the non-zeros of the block and all features; the default
// block is large enough to be half of it.
//
// What differs: general B is left out (docs/paper_notes.md). The reference leaves rho open; rho = sqrt(gamma n/(lambda max
// D)) makes the primal and the dual contraction equal, lambda rho = gamma sigma, and is SPDC's balance for blocks of one row.
#include "kernels.h"
#include "methods.h"
#include "stochastic.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace spdc {

namespace {

class SdcaAdmmMethod final : public StochasticMethod {
  public:
    SdcaAdmmMethod(const Problem &problem, const SdcaAdmm &options, const SolveContext &context)
        : StochasticMethod(problem), random_(context.seed), order_(constants_.norm2.size()),
          blocks_(block_count(options)), D_(order_.size()), y_(order_.size(), 0.0) {
        std::iota(order_.begin(), order_.end(), 0);
        random_.shuffle(order_);
        const auto dimension = static_cast<std::size_t>(problem.dimension());
        x_.assign(dimension, 0.0);
        e_ = u_ = to_u_ = x_;
        xhat_ = x_;
        std::visit([&](const auto &matrix) { bound_blocks(matrix); }, problem.matrix());
        const double most = *std::max_element(D_.begin(), D_.end());
        rho_ = options.rho.value_or(
            std::sqrt(constants_.gamma * constants_.rows / (constants_.lambda * (most > 0 ? most : 1))));
        step_ = make_step(problem.regularizer(), problem.penalty_factors(), rho_, 0);
    }

    void advance(double passes) override {
        for (std::int64_t left = rows_in(passes); left > 0;) {
            const std::span<const std::int64_t> block = rows_of(random_.below(blocks_));
            std::visit([&](const auto &matrix, const auto &step) { iterate(matrix, step, block); }, problem_.matrix(),
                       step_);
            left -= static_cast<std::int64_t>(block.size());
            visits_ += static_cast<std::int64_t>(block.size());
        }
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        // xhat lies in the bounds of g, x only in the limit
        std::visit([&](const auto &step) { set_xhat(step); }, step_);
        x = xhat_;
        y = y_;
    }

  private:
    std::int64_t block_count(const SdcaAdmm &options) const {
        const double entries = std::max(1.0, static_cast<double>(problem_.nonzeros()));
        const double even = std::ceil(static_cast<double>(problem_.dimension()) * constants_.rows / entries);
        const auto m = options.batch_size.value_or(static_cast<std::int64_t>(std::min(even, constants_.rows)));
        return (constants_.n + m - 1) / m;
    }
    std::span<const std::int64_t> rows_of(std::int64_t block) const {
        const std::int64_t begin = constants_.n * block / blocks_, end = constants_.n * (block + 1) / blocks_;
        return std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    }

    template <class Matrix> void bound_blocks(const Matrix &matrix) {
        std::vector<double> sums(x_.size());
        const double column = constants_.column;
        for (std::int64_t block = 0; block < blocks_; ++block) {
            std::fill(sums.begin(), sums.end(), 0.0);
            for (const std::int64_t k : rows_of(block)) {
                const auto row = matrix.row(k);
                interruption_point(2 * row.size() + 16);
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    sums[static_cast<std::size_t>(row.column(p))] += problem_.importance(k) * std::fabs(row.value(p));
                }
                if (column != 0) sums.back() += problem_.importance(k) * column;
            }
            for (const std::int64_t k : rows_of(block)) {
                const auto row = matrix.row(k);
                double D = column != 0 ? column * sums.back() : 0;
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    D += std::fabs(row.value(p)) * sums[static_cast<std::size_t>(row.column(p))];
                }
                D_[static_cast<std::size_t>(k)] = D;
                if (D == 0) y_[static_cast<std::size_t>(k)] = problem_.loss().derivative(0, target(k)); // no entries
            }
        }
    }

    template <class Step> void set_xhat(const Step &step) {
        const std::int64_t d = constants_.d;
        for (std::int64_t j = 0; j < d; ++j) {
            const auto q = static_cast<std::size_t>(j);
            xhat_[q] = step.prox(j, x_[q] - rho_ * u_[q]);
        }
        if (constants_.column != 0) xhat_.back() = problem_.regularizer(d).prox(x_.back() - rho_ * u_.back(), rho_);
    }

    template <class Matrix, class Step>
    void iterate(const Matrix &matrix, const Step &step, std::span<const std::int64_t> block) {
        set_xhat(step);
        for (const std::int64_t k : block) {
            const auto row = matrix.row(k);
            const double move = update_dual(k, dot(row, xhat_.data()) + (constants_.column != 0 ? xhat_.back() : 0));
            if (move != 0) axpy(move, row, to_u_.data());
            if (constants_.column != 0) to_u_.back() += move;
            touched_ += row.size();
        }
        const double kept = 1 - 1 / static_cast<double>(blocks_);
        for (std::size_t j = 0; j < x_.size(); ++j) {
            const double r = x_[j] - xhat_[j] + rho_ * to_u_[j]; // rho (u + v)
            x_[j] += kept * e_[j] - r;
            e_[j] = r;
            u_[j] += to_u_[j];
            to_u_[j] = 0;
        }
    }

    /// The step of y_k at prediction z; returns what u gets of a_k.
    double update_dual(std::int64_t k, double z) noexcept {
        const auto i = static_cast<std::size_t>(k);
        if (D_[i] == 0) return 0;
        const double next = problem_.loss().dual_prox(z, y_[i], constants_.rows / (rho_ * D_[i]), target(k));
        const double move = problem_.importance(k) * (next - y_[i]) / constants_.rows;
        y_[i] = next;
        return move;
    }

    Random random_;
    std::vector<std::int64_t> order_; // of the rows, block after block
    std::int64_t blocks_;
    std::vector<double> D_, y_;
    std::vector<double> x_, xhat_, e_, u_, to_u_; // e = rho (u + v) of the last iteration
    double rho_ = 1;
    AnyStep step_ = make_step(L2{1}, {}, 1, 0);
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const SdcaAdmm &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    need_strong_convexity(problem, options.name);
    if (options.batch_size.value_or(1) > problem.rows()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("batch-size = {}: the data have only {} rows", *options.batch_size, problem.rows()));
    }
    return std::make_unique<SdcaAdmmMethod>(problem, options, context);
}

} // namespace spdc
