// SPDC with dual extrapolation, the fast engine for l2 penalties, and SDCA as one end of it.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + (lambda/2)|x|^2, with an intercept or without. Per visited row i:
//
//   s = <a_i, x>;   y_i <- argmax_b  b s - phi*(b) - (b - y_i)^2/(2 sigma_i);   delta = its move
//   u <- u + (omega_i delta/n) a_i;   x <- prox_{tau g}( x - tau (u + theta N (omega_i delta/n) a_i) ),   N rows are active
//
// This is the order of the stochastic primal-dual hybrid gradient method (Chambolle, Ehrhardt, Richtarik and Schoenlieb 2018,
// algorithm 1): the dual step is extrapolated, not the primal one, so x^(t-1) is not needed and tau sigma_i |a_i|^2 = 1 is
// proved, four times the product of Algorithm 1. Rows are visited in a new random order every sweep.
//
// x is kept as alpha z + beta u with two global scalars: a coordinate outside the row moves by (x - tau u)/(1 + lambda tau), which
// is alpha <- rho alpha, beta <- rho (beta - tau), so nothing is touched but the row (z and u share a cache line). Cost per
// row: its non-zeros, read twice.
//
// One number joins SPDC and SDCA: tau = omega sqrt(gamma/(lambda n))/R. omega = 1 is SPDC's balance, Omega = R/sqrt(lambda n gamma)
// makes tau = 1/(lambda n), which is SDCA. The rule in OmegaRule moves between them by the measured decay of the dual moves.
// Losses with bounded duals shrink: rows that sit at a bound and push against it are left out until the rest has settled.
#include "spdc_fast.h"
#include "huge_pages.h"
#include "methods.h"
#include "random.h"
#include "spdc_owners.h"
#include "sum.h"

#include "free_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A copy of the rows in random order, so that a random block of rows is a sequential read.
template <class Value> struct ShuffledRows {
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> columns;
    std::vector<Value> values;
};

template <class L, class Value> class FastMethod final : public Method {
  public:
    FastMethod(const Problem &problem, const L &loss, std::optional<double> omega, bool shrinking, bool is_sdca,
               const SolveContext &context);

    void advance(double passes) override;
    double passes() const override { return static_cast<double>(visits_) / static_cast<double>(n_); }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    std::int64_t coordinates_touched() const override { return touched_; }
    double estimated_gap() const override { return estimated_gap_; }
    double omega() const override { return rule_->omega(); }
    std::vector<OmegaChange> take_omega_changes() override { return std::exchange(omega_changes_, {}); }

  private:
    void copy_rows();
    void start_duals();
    void set_steps();
    void start_sweep();
    void end_sweep();
    void activate_all();
    void run_block(std::span<const std::int32_t> block) noexcept;
    void watch(std::size_t i, double s, double y, double b, double delta) noexcept;
    void rebase() noexcept;
    double quadratic_gap() const noexcept;

    const Problem &problem_;
    const L loss_;
    const bool shrinks_;
    std::int64_t n_, d_;
    double lambda_, gamma_ = 0, R_ = 1, column_ = 0;
    bool free_intercept_ = false;
    Random random_;
    std::vector<std::int32_t> order_; // place in the shuffled copy -> row of the problem
    ShuffledRows<Value> rows_;
    std::vector<double> b_, omega_row_, norm2_, y_;
    DualState<L> dual_;
    std::vector<Pair, HugePageAllocator<Pair>> zu_;
    double x0_ = 0, u0_ = 0; // the intercept, in units of its column
    double alpha_ = 1, beta_ = 0;
    double tau_ = 0, rho_ = 1, extrapolate_ = 0, sigma_scale_ = 0;
    std::optional<OmegaRule> rule_;
    std::vector<OmegaChange> omega_changes_;
    Shrinking shrink_;
    std::vector<std::int32_t> active_, visiting_; // active rows in order; blocks of them in this sweep's order
    std::vector<std::uint8_t> dropped_;
    std::size_t next_ = 0;
    double visited_since_full_ = 0;
    double moved_ = 0, young_ = 0, estimated_gap_ = infinity;
    std::int64_t visits_ = 0, touched_ = 0;
};

constexpr std::size_t block_size = 256; // rows: they fit the first-level cache's reach and keep the order random enough

template <class L, class Value>
FastMethod<L, Value>::FastMethod(const Problem &problem, const L &loss, std::optional<double> omega, bool shrinking,
                                 bool is_sdca, const SolveContext &context)
    : problem_(problem), loss_(loss), shrinks_(shrinking && HasBoundedDual<L>), n_(problem.rows()),
      d_(problem.features()), lambda_(problem.strong_convexity()), random_(context.seed), dual_(at(problem.rows())),
      zu_(at(problem.features())) {
    free_intercept_ = problem.intercept() == Intercept::free;
    copy_rows();
    R_ = median_norm(norm2_);
    if (problem.has_intercept()) {
        column_ = free_intercept_ ? R_ : 1;
        if (free_intercept_) x0_ = best_shift(problem, std::vector<double>(at(n_), 0.0)) / column_;
        for (std::size_t p = 0; p < norm2_.size(); ++p) norm2_[p] += omega_row_[p] * column_ * column_;
    }
    const double n = static_cast<double>(n_);
    gamma_ = working_gamma(loss_.gamma(), R_, lambda_, n);
    const double largest = R_ / std::sqrt(lambda_ * n * gamma_);
    rule_.emplace(largest, is_sdca ? std::optional<double>(largest) : omega);
    start_duals();
    dropped_.resize(at(n_));
    activate_all();
    set_steps();
    start_sweep();
}

template <class L, class Value> void FastMethod<L, Value>::copy_rows() {
    order_.resize(at(n_));
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[at(random_.below(static_cast<std::int64_t>(i)))]);
    }
    rows_.offsets.assign(1, 0);
    rows_.offsets.reserve(order_.size() + 1);
    rows_.columns.reserve(at(problem_.nonzeros()));
    rows_.values.reserve(at(problem_.nonzeros()));
    b_.resize(order_.size());
    omega_row_.resize(order_.size());
    norm2_.resize(order_.size());
    y_.assign(order_.size(), 0.0);
    std::visit(
        [&](const auto &matrix) {
            for (std::size_t p = 0; p < order_.size(); ++p) {
                const auto row = matrix.row(order_[p]);
                double norm2 = 0;
                for (std::int64_t q = 0; q < row.size(); ++q) {
                    if (row.value(q) == 0) continue; // dense data have zeros
                    rows_.columns.push_back(row.column(q));
                    rows_.values.push_back(static_cast<Value>(row.value(q)));
                    norm2 += row.value(q) * row.value(q);
                }
                rows_.offsets.push_back(static_cast<std::int64_t>(rows_.columns.size()));
                b_[p] = problem_.targets()[at(order_[p])];
                omega_row_[p] = problem_.importance(order_[p]);
                norm2_[p] = omega_row_[p] * norm2; // of sqrt(omega) a, see spdc.cpp
            }
        },
        problem_.matrix());
}

/// Rows without entries never move.
template <class L, class Value> void FastMethod<L, Value>::start_duals() {
    const double n = static_cast<double>(n_);
    for (std::size_t p = 0; p < y_.size(); ++p) {
        if (norm2_[p] == 0) {
            y_[p] = loss_.derivative(0, b_[p]);
            continue;
        }
        if constexpr (std::is_same_v<L, Logistic>) {
            const double start = logistic_start(R_, lambda_, n);
            y_[p] = -b_[p] * start;
            dual_.t[p] = std::log(start) - std::log1p(-start);
            const double weight = omega_row_[p] * y_[p] / n;
            for (std::int64_t q = rows_.offsets[p]; q < rows_.offsets[p + 1]; ++q) {
                zu_[at(rows_.columns[at(q)])].u += weight * static_cast<double>(rows_.values[at(q)]);
            }
            u0_ += weight * column_;
        }
    }
    for (Pair &pair : zu_) pair.z = -pair.u / lambda_; // the x that y implies
    if (column_ != 0 && !free_intercept_) x0_ = -u0_ / lambda_;
}

template <class L, class Value> void FastMethod<L, Value>::set_steps() {
    const StepSizes steps = step_sizes(rule_->omega(), gamma_, R_, lambda_, static_cast<double>(n_),
                                       std::max(1.0, static_cast<double>(active_.size())));
    tau_ = steps.tau;
    rho_ = steps.rho;
    extrapolate_ = steps.extrapolate;
    sigma_scale_ = steps.sigma_scale;
}

template <class L, class Value> void FastMethod<L, Value>::start_sweep() {
    const std::size_t blocks = (active_.size() + block_size - 1) / block_size;
    std::vector<std::int64_t> block_order(blocks);
    std::iota(block_order.begin(), block_order.end(), 0);
    random_.shuffle(block_order);
    visiting_.clear();
    visiting_.reserve(active_.size());
    for (const std::int64_t block : block_order) {
        const std::size_t begin = at(block) * block_size, end = std::min(begin + block_size, active_.size());
        const std::size_t start = visiting_.size();
        visiting_.insert(visiting_.end(), active_.begin() + static_cast<std::ptrdiff_t>(begin),
                         active_.begin() + static_cast<std::ptrdiff_t>(end));
        for (std::size_t i = end - begin; i > 1; --i) {
            std::swap(visiting_[start + i - 1], visiting_[start + at(random_.below(static_cast<std::int64_t>(i)))]);
        }
    }
    next_ = 0;
    moved_ = young_ = 0;
    shrink_.start_sweep();
}

template <class L, class Value> void FastMethod<L, Value>::end_sweep() {
    const bool was_full = static_cast<std::int64_t>(active_.size()) == n_;
    estimated_gap_ = young_ / static_cast<double>(n_) + quadratic_gap();
    bool change = rule_->next(moved_);
    if (change) omega_changes_.push_back({passes(), rule_->omega()});
    if (shrinks_) {
        const double width = shrink_.most - shrink_.least;
        visited_since_full_ += static_cast<double>(visiting_.size()) / static_cast<double>(n_);
        if (was_full) shrink_.width_at_full = width;
        if (!was_full && (visited_since_full_ >= 10 || width < 0.3 * shrink_.width_at_full)) {
            activate_all();
        } else {
            std::erase_if(active_, [&](std::int32_t i) { return dropped_[at(i)] != 0; });
            shrink_.end_sweep();
        }
        if (active_.empty()) activate_all();
        change = true;
    }
    if (change) set_steps();
}

template <class L, class Value> void FastMethod<L, Value>::activate_all() {
    active_.resize(at(n_));
    std::iota(active_.begin(), active_.end(), 0);
    std::fill(dropped_.begin(), dropped_.end(), 0);
    shrink_.forget();
    visited_since_full_ = 0;
}

template <class L, class Value> void FastMethod<L, Value>::run_block(std::span<const std::int32_t> block) noexcept {
    const std::int64_t *const offsets = rows_.offsets.data();
    const std::int32_t *const columns = rows_.columns.data();
    const Value *const values = rows_.values.data();
    Pair *const zu = zu_.data();
    const double inverse_n = 1 / static_cast<double>(n_);
    double alpha = alpha_, beta = beta_, moved = 0, young = 0;
    for (std::size_t k = 0; k < block.size(); ++k) {
        if (k + 4 < block.size()) {
            const std::int64_t ahead = offsets[block[k + 4]];
            __builtin_prefetch(columns + ahead);
            __builtin_prefetch(values + ahead);
        }
        const auto i = at(block[k]);
        const std::int64_t begin = offsets[i], end = offsets[i + 1];
        double z0 = 0, z1 = 0, u0 = 0, u1 = 0;
        std::int64_t q = begin;
        for (; q + 1 < end; q += 2) {
            const Pair &p0 = zu[columns[q]], &p1 = zu[columns[q + 1]];
            const double a0 = static_cast<double>(values[q]), a1 = static_cast<double>(values[q + 1]);
            z0 += a0 * p0.z;
            u0 += a0 * p0.u;
            z1 += a1 * p1.z;
            u1 += a1 * p1.u;
        }
        if (q < end) {
            const Pair &p0 = zu[columns[q]];
            z0 += static_cast<double>(values[q]) * p0.z;
            u0 += static_cast<double>(values[q]) * p0.u;
        }
        const double s = alpha * (z0 + z1) + beta * (u0 + u1) + column_ * x0_;
        const double b = b_[i], y = y_[i], norm2 = norm2_[i];
        if (norm2 == 0) continue; // its dual is where it belongs from the start
        const double next = dual_.step(loss_, i, s, y, sigma_scale_ / norm2, b);
        const double delta = next - y;
        if ((k & 7) == 0) young += 8 * omega_row_[i] * (loss_.value(s, b) + loss_.conjugate(y, b) - y * s);
        if constexpr (HasBoundedDual<L>) {
            if (shrinks_) watch(i, s, y, b, delta);
        }
        alpha *= rho_;
        beta = rho_ * (beta - tau_);
        const double move = omega_row_[i] * delta, to_u = move * inverse_n;
        if (column_ != 0) {
            u0_ += to_u * column_;
            x0_ = (x0_ - tau_ * (u0_ + (extrapolate_ - inverse_n) * move * column_)) * (free_intercept_ ? 1.0 : rho_);
        }
        if (delta == 0) continue;
        y_[i] = next;
        moved += delta * delta * norm2;
        // alpha z + beta u must grow by -rho tau (extrapolated delta) a, of which beta u already has its part
        const double to_z = -move / alpha * (rho_ * tau_ * extrapolate_ + beta * inverse_n);
        for (q = begin; q < end; ++q) {
            Pair &pair = zu[columns[q]];
            const double a = static_cast<double>(values[q]);
            pair.z += to_z * a;
            pair.u += to_u * a;
        }
    }
    alpha_ = alpha;
    beta_ = beta;
    moved_ += moved;
    young_ += young;
}

template <class L, class Value>
void FastMethod<L, Value>::watch(std::size_t i, double s, double y, double b, double delta) noexcept {
    if constexpr (HasBoundedDual<L>) {
        if (shrink_.watch(loss_, s, y, b, delta != 0, shrink_.most, shrink_.least)) dropped_[i] = 1;
    }
}

template <class L, class Value> void FastMethod<L, Value>::rebase() noexcept {
    for (Pair &pair : zu_) pair.z = alpha_ * pair.z + beta_ * pair.u;
    alpha_ = 1;
    beta_ = 0;
}

/// g(x) + g*(-u) + <u, x> = (lambda/2) |x + u/lambda|^2
template <class L, class Value> double FastMethod<L, Value>::quadratic_gap() const noexcept {
    double sum = 0;
    for (const Pair &pair : zu_) {
        const double away = alpha_ * pair.z + (beta_ + 1 / lambda_) * pair.u;
        sum += away * away;
    }
    return 0.5 * lambda_ * sum;
}

template <class L, class Value> void FastMethod<L, Value>::advance(double passes) {
    auto left = static_cast<std::int64_t>(std::ceil(passes * static_cast<double>(n_)));
    while (left > 0) {
        const std::size_t count = std::min(block_size, visiting_.size() - next_);
        run_block(std::span<const std::int32_t>(visiting_).subspan(next_, count));
        next_ += count;
        visits_ += static_cast<std::int64_t>(count);
        left -= static_cast<std::int64_t>(count);
        if (alpha_ < 1e-9) rebase();
        if (next_ < visiting_.size()) continue;
        end_sweep();
        start_sweep();
    }
}

template <class L, class Value> void FastMethod<L, Value>::point(std::vector<double> &x, std::vector<double> &y) {
    x.resize(at(problem_.dimension()));
    for (std::size_t j = 0; j < zu_.size(); ++j) x[j] = alpha_ * zu_[j].z + beta_ * zu_[j].u;
    if (column_ != 0) x.back() = x0_ * column_;
    y.resize(y_.size());
    for (std::size_t p = 0; p < y_.size(); ++p) y[at(order_[p])] = y_[p];
}

template <class L>
std::unique_ptr<Method> make_fast(const Problem &problem, const L &loss, std::optional<double> omega, bool shrinking,
                                  bool is_sdca, const SolveContext &context) {
    const bool is_float = std::holds_alternative<CsrMatrix<float>>(problem.matrix()) ||
                          std::holds_alternative<DenseMatrix<float>>(problem.matrix());
    if (is_float) return std::make_unique<FastMethod<L, float>>(problem, loss, omega, shrinking, is_sdca, context);
    return std::make_unique<FastMethod<L, double>>(problem, loss, omega, shrinking, is_sdca, context);
}

/// Owners of features for threads to work with, or 1 for the serial kernel. A function of the problem, and of the number of threads
/// only in whether there are enough of them: 4.
int choose_owners(const Problem &problem, const SolveContext &context) {
    if (context.threads < 4) return 1;
    const double entries = static_cast<double>(problem.nonzeros()) / static_cast<double>(problem.rows());
    return entries >= 160 ? 16 : 1;
}

std::unique_ptr<Method> make_fast(const Problem &problem, std::string_view solver, std::optional<double> omega,
                                  bool shrinking, std::optional<std::int64_t> owners, bool is_sdca,
                                  const SolveContext &context) {
    if (!std::holds_alternative<L2>(problem.regularizer().variant()) || problem.strong_convexity() == 0 ||
        !problem.penalty_factors().empty()) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l2 penalty, the same for every feature and without l1 or "
                         "bounds; the solver spdc takes any penalty",
                         solver));
    }
    const int count = owners ? static_cast<int>(*owners) : choose_owners(problem, context);
    if (count > 1) return make_owners(problem, {count, omega, shrinking, is_sdca}, context);
    return std::visit([&](const auto &loss) { return make_fast(problem, loss, omega, shrinking, is_sdca, context); },
                      problem.loss().variant());
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const SpdcFast &options, const SolveContext &context) {
    return make_fast(problem, options.name, options.omega, options.shrinking, options.owners, false, context);
}

std::unique_ptr<Method> make_method(const Problem &problem, const Sdca &options, const SolveContext &context) {
    return make_fast(problem, options.name, {}, options.shrinking, options.owners, true, context);
}

} // namespace spdc
