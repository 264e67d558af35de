// SPDC with dual extrapolation, the fast engine for l2 penalties, and SDCA as one end of it.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + (lambda/2)|x|^2, with an intercept or without; that may have another lambda. Per
// visited row i:
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
#include "dense_row_kernels.h"
#include "huge_pages.h"
#include "methods.h"
#include "random_rows.h"
#include "spdc_owners.h"
#include "sum.h"

#include "free_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A feature that all rows have with the same value, first or last in each: an intercept that came with the data.
struct ConstantColumn {
    std::int64_t feature;
    double value;
    bool is_first;
    /// Also of rows with their zeros.
    bool is_at_border(std::int64_t features) const { return feature == (is_first ? 0 : features - 1); }
};

/// None where there is an intercept already, nor for SDCA, which knows no units.
std::optional<ConstantColumn> find_constant_column(const Problem &problem, bool is_sdca) {
    if (problem.has_intercept() || is_sdca) return {};
    const auto find = [](const auto &matrix, bool is_first) -> std::optional<ConstantColumn> {
        std::optional<ConstantColumn> found;
        for (std::int64_t i = 0; i < matrix.rows(); ++i) {
            const auto row = matrix.row(i);
            if (row.size() == 0) return {};
            const std::int64_t q = is_first ? 0 : row.size() - 1;
            if (!found) found = {row.column(q), row.value(q), is_first};
            if (row.column(q) != found->feature || row.value(q) != found->value || found->value == 0) return {};
        }
        return found;
    };
    return std::visit(
        [&](const auto &matrix) {
            const auto first = find(matrix, true);
            return first ? first : find(matrix, false);
        },
        problem.matrix());
}

template <class L, class Values, class Index> class FastMethod final : public Method {
  public:
    FastMethod(const Problem &problem, const L &loss, std::optional<double> omega, bool shrinking, bool is_sdca,
               const SolveContext &context);

    void start(std::span<const double> x, std::span<const double> y) override;
    void advance(double passes) override;
    double passes() const override { return static_cast<double>(visits_) / static_cast<double>(n_); }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    std::int64_t coordinates_touched() const override { return touched_; }
    double estimated_gap() const override { return estimated_gap_; }
    double dual_value() const override;
    double omega() const override { return rule_->omega(); }
    std::vector<OmegaChange> take_omega_changes() override { return std::exchange(omega_changes_, {}); }

  private:
    std::vector<double> norms() const;
    void set_steps();
    void start_sweep();
    void list_visits();
    void end_sweep();
    void activate_all();
    template <bool is_sdca, bool is_far> [[gnu::noinline]] void visit(std::size_t from, std::size_t to) noexcept;
    void visit(std::size_t from, std::size_t to) noexcept;
    void watch(std::size_t i, double s, double y, double b, double delta) noexcept;
    template <bool is_sdca> [[gnu::always_inline]] void prefetch_features(std::size_t i) const noexcept {
        const Index *const columns = rows_.columns_of(i);
        const std::int64_t count = std::min<std::int64_t>(rows_.size(i), 4096); // more would not stay till then
        for (std::int64_t q = 0; q < count; ++q) {
            is_sdca ? __builtin_prefetch(&x_[at(columns[q])], 1) : __builtin_prefetch(&zu_[at(columns[q])], 1);
        }
    }
    template <class X>
    [[gnu::always_inline]] X product(const Index *columns, Values values, std::int64_t count,
                                     const X *x) const noexcept {
        if constexpr (!is_same) {
            const X *const from = x + rows_.first_column();
            if constexpr (std::is_same_v<X, ZU>) {
                if (dense_) return dense_->dot(values, count, from);
            } else {
                if (dense_) return dense_->dot_x(values, count, from);
            }
        }
        return dot(columns, values, count, x);
    }
    template <class X>
    [[gnu::always_inline]] void move_along(X move, const Index *columns, Values values, std::int64_t count,
                                           X *x) const noexcept {
        if constexpr (!is_same) {
            X *const from = x + rows_.first_column();
            if constexpr (std::is_same_v<X, ZU>) {
                if (dense_) return dense_->add(move, values, count, from);
            } else {
                if (dense_) return dense_->add_x(move, values, count, from);
            }
        }
        add(move, columns, values, count, x);
    }
    void rebase() noexcept;
    std::size_t live() const noexcept { return shrinks_ ? active_.size() : rows_.count; }
    static double target(const RowState &row) noexcept { return keeps_logit<L> ? std::copysign(1, row.norm2) : row.b; }
    double omega_row(std::size_t i) const noexcept { return omega_row_.empty() ? 1.0 : omega_row_[i]; }
    double quadratic_gap() const noexcept;

    const Problem &problem_;
    const L loss_;
    const bool shrinks_;
    std::int64_t n_, d_;
    double lambda_, gamma_ = 0, R_ = 1;
    // The intercept, or the constant column that takes its place: its weight is x0 unit, of which s has x0 column
    std::size_t place0_ = 0; // among the weights
    double column_ = 0, unit_ = 0, lambda0_ = 0;
    Random random_;
    const std::optional<ConstantColumn> constant_;
    RandomRows<Values, Index> rows_;
    static constexpr bool is_same = std::is_same_v<Values, Same>;
    using Value = std::conditional_t<is_same, double, std::remove_cvref_t<decltype(std::declval<Values>()[0])>>;
    const DenseRowKernels<Value> *dense_ = nullptr; // where rows have all columns
    std::vector<double> omega_row_;                 // where the rows are weighted
    bool is_sdca_ = false;                          // for the whole run: then x = -u/lambda, and one vector is enough
    std::vector<ZU, HugePageAllocator<ZU>> zu_;     // otherwise
    std::vector<double, HugePageAllocator<double>> x_;
    double x0_ = 0, u0_ = 0;
    double alpha_ = 1, beta_ = 0;
    double tau_ = 0, rho_ = 1, extrapolate_ = 0, sigma_scale_ = 0;
    std::optional<OmegaRule> rule_;
    bool is_far_ =
        false; // features of the next row are fetched ahead: a fifth of the time where they are beyond the caches
    std::vector<OmegaChange> omega_changes_;
    Shrinking shrink_;
    VisitingOrder order_;
    struct Block {
        std::uint32_t number : 31, is_backward : 1;
    };
    std::vector<Block> blocks_; // in this sweep's order
    std::size_t next_block_ = 0, shift_ = 0;
    std::vector<std::int32_t> active_, visiting_; // active rows in order, where not all are, and the next ones to visit
    std::vector<std::uint8_t> dropped_;
    std::size_t next_ = 0;
    std::size_t sample_ = 8; // every so many visits one is looked at for the gap, a power of two
    double moved_ = 0, young_ = 0, estimated_gap_ = infinity, last_gap_ = 0;
    std::int64_t visits_ = 0, touched_ = 0;
};

template <class L, class Values, class Index>
FastMethod<L, Values, Index>::FastMethod(const Problem &problem, const L &loss, std::optional<double> omega,
                                         bool shrinking, bool is_sdca, const SolveContext &context)
    : problem_(problem), loss_(loss), shrinks_(shrinking && HasBoundedDual<L>), n_(problem.rows()),
      d_(problem.features()), lambda_(problem.regularizer(0).strong_convexity()), random_(context.seed),
      constant_(find_constant_column(problem, is_sdca)),
      rows_(problem, context, random_,
            !problem.is_one_of_several() && (!constant_ || constant_->is_at_border(problem.features()))),
      dropped_(shrinks_ ? at(n_) : 0) {
    const std::optional<ConstantColumn> &constant = constant_;
    if (constant) rows_.leave_out(constant->is_first);
    if (!problem.importance().empty()) omega_row_.resize(at(n_));
    std::vector<double> norm2;
    if (!constant) norm2 = problem.squared_row_norms(context.threads);
    for (std::size_t p = 0; p < rows_.count; ++p) {
        const std::size_t i = rows_.row_at(p);
        if (!omega_row_.empty()) omega_row_[p] = problem_.importance()[i];
        rows_.state[p].b = problem_.targets()[i];
        rows_.state[p].norm2 = omega_row(p) * (constant ? rows_.squared_norm(p) : norm2[i]);
    }
    norm2 = {}; // before the next vector of that size
    R_ = median_norm(norms());
    const double n = static_cast<double>(n_);
    gamma_ = working_gamma(loss_.gamma(), R_, lambda_, n);
    const double balance = std::sqrt(lambda_ * n * gamma_), largest = R_ / balance;
    if (problem.has_intercept() || constant) {
        const bool is_free = problem.intercept() == Intercept::free;
        place0_ = constant ? at(constant->feature) : at(problem.dimension()) - 1;
        column_ = is_sdca && !is_free ? 1 : intercept_column(R_, balance);
        unit_ = constant ? column_ / constant->value : column_;
        lambda0_ = problem.regularizer(static_cast<std::int64_t>(place0_)).strong_convexity() * unit_ * unit_;
        if (is_free) x0_ = best_constant(problem, context) / unit_;
        for (std::size_t p = 0; p < rows_.count; ++p) rows_.state[p].norm2 += omega_row(p) * column_ * column_;
    }
    // All duals start at 0, where u and the x that it implies are 0, too; rows without entries never move.
    for (RowState &row : rows_.state) row.y = row.norm2 == 0 ? loss_.derivative(0, row.b) : 0;
    if constexpr (keeps_logit<L>) {
        for (RowState &row : rows_.state) row.norm2 = std::copysign(row.norm2, row.b), row.b = first_logit;
    }
    is_sdca_ = is_sdca || (!omega && largest <= 1.5);
    // numbers keep most rows at their kinks, whatever their number
    const bool is_tall = n_ >= 4 * problem.features() && (loss_.gamma() > 0 || loss_.task == Task::classification);
    rule_.emplace(largest, is_sdca_ ? std::optional<double>(largest) : omega, loss_.gamma(), is_tall);
    is_sdca_ ? x_.resize(at(d_)) : zu_.resize(at(d_));
    constexpr std::size_t near = 16'000'000; // bytes that caches hold
    if (!is_same && rows_.has_all_columns()) dense_ = &dense_row_kernels<Value>();
    is_far_ = !is_same && !dense_ && x_.size() * sizeof(double) + zu_.size() * sizeof(ZU) > near;
    sample_ = std::clamp<std::size_t>(std::bit_floor(rows_.count / 1024), 8, 64);
    order_ = rows_.order(problem);
    activate_all();
    set_steps();
    start_sweep();
}

/// |sqrt(omega) a|^2 of the rows.
template <class L, class Values, class Index> std::vector<double> FastMethod<L, Values, Index>::norms() const {
    std::vector<double> norm2(rows_.count);
    for (std::size_t p = 0; p < rows_.count; ++p) norm2[p] = rows_.state[p].norm2;
    return norm2;
}

/// With x of its own unless the method is SDCA, whose x is -u/lambda. Also on the way: hybrid comes back with a better point.
template <class L, class Values, class Index>
void FastMethod<L, Values, Index>::start(std::span<const double> x, std::span<const double> y) {
    std::vector<double> u(x.size());
    problem_.combine(y, u);
    for (std::size_t p = 0; p < rows_.count; ++p) {
        RowState &row = rows_.state[p];
        if (row.norm2 == 0) continue;
        row.y = y[rows_.row_at(p)];
        if constexpr (keeps_logit<L>) {
            const double probability = std::clamp(-target(row) * row.y, 1e-300, 1 - 1e-16);
            row.b = std::log(probability) - std::log1p(-probability);
        }
    }
    alpha_ = 1, beta_ = 0;
    for (std::size_t j = 0; j < at(d_); ++j) is_sdca_ ? void(x_[j] = -u[j] / lambda_) : void(zu_[j] = ZU{x[j], u[j]});
    activate_all();
    set_steps();
    start_sweep();
    if (column_ == 0) return;
    x0_ = x[place0_] / unit_;
    u0_ = u[place0_] * unit_;
    if (place0_ < zu_.size()) zu_[place0_] = ZU{}; // x0 has it
    if (place0_ < x_.size()) x_[place0_] = 0;
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::set_steps() {
    const FastSteps steps = fast_steps(rule_->omega(), rule_->product(), gamma_, R_, lambda_, static_cast<double>(n_),
                                       std::max(1.0, static_cast<double>(live())));
    tau_ = steps.tau;
    rho_ = steps.rho;
    extrapolate_ = steps.extrapolate;
    sigma_scale_ = steps.sigma_scale;
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::start_sweep() {
    const std::size_t rows = order_.rows;
    shift_ = at(random_.below(static_cast<std::int64_t>(rows))); // where blocks begin changes from sweep to sweep
    blocks_.resize((live() + shift_ + rows - 1) / rows);
    for (std::uint32_t k = 0; k < blocks_.size(); ++k)
        blocks_[k] = {k, order_.has_directions() && random_.below(2) == 1};
    random_.shuffle(blocks_);
    next_block_ = 0;
    moved_ = young_ = 0;
    shrink_.start_sweep();
    list_visits();
}

/// The next rows of the sweep, some thousands.
template <class L, class Values, class Index> void FastMethod<L, Values, Index>::list_visits() {
    constexpr std::size_t most = 8192;
    const auto [rows, streams] = order_;
    visiting_.clear();
    next_ = 0;
    while (visiting_.size() < most && next_block_ < blocks_.size()) {
        const std::size_t last = std::min(next_block_ + streams, blocks_.size());
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = next_block_; k < last; ++k) {
                const auto [number, is_backward] = blocks_[k];
                const std::size_t inside = is_backward != 0 ? rows - 1 - row : row;
                const std::size_t place = number * rows + inside - shift_; // before the first row: a huge number
                if (place < live()) visiting_.push_back(shrinks_ ? active_[place] : static_cast<std::int32_t>(place));
            }
        }
        next_block_ = last;
    }
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::end_sweep() {
    const bool was_full = live() == rows_.count;
    const double gap = young_ / static_cast<double>(n_) + quadratic_gap();
    estimated_gap_ = gap * fallen_since(gap / last_gap_, shrinks_);
    last_gap_ = gap;
    bool change = rule_->next(moved_, static_cast<double>(live()) / static_cast<double>(n_));
    if (change) omega_changes_.push_back({passes(), rule_->omega()});
    if (shrinks_) {
        const double passes = static_cast<double>(active_.size()) / static_cast<double>(n_);
        std::erase_if(active_, [&](std::int32_t i) { return dropped_[at(i)] != 0; });
        if (shrink_.end_sweep(was_full, passes) || active_.empty()) activate_all();
        change = true;
    }
    if (change) set_steps();
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::activate_all() {
    if (!shrinks_) return;
    active_.resize(at(n_));
    std::iota(active_.begin(), active_.end(), 0);
    std::fill(dropped_.begin(), dropped_.end(), 0);
}

template <class L, class Values, class Index>
template <bool is_sdca, bool is_far>
void FastMethod<L, Values, Index>::visit(std::size_t from, std::size_t to) noexcept {
    ZU *const zu = zu_.data();
    double *const x = x_.data();
    const double inverse_n = 1 / static_cast<double>(n_), x_of_move = -inverse_n / lambda_;
    const double rho0 = 1 / (1 + lambda0_ * tau_);
    const double inverse_scale = 1 / sigma_scale_;
    double alpha = alpha_, beta = beta_, moved = 0, young = 0;
    for (std::size_t k = from; k < to; ++k) {
        if (k + 24 < visiting_.size()) { // the row's numbers, then its entries
            __builtin_prefetch(&rows_.state[at(visiting_[k + 24])], 1);
            rows_.prefetch(at(visiting_[k + 12]));
        }
        if (is_far && k + 1 < visiting_.size()) prefetch_features<is_sdca>(at(visiting_[k + 1]));
        const auto i = at(visiting_[k]);
        const Index *const columns = rows_.columns_of(i);
        const Values values = rows_.values(i);
        const std::int64_t count = rows_.size(i);
        RowState &row = rows_.state[i];
        double s = column_ * x0_;
        if constexpr (is_sdca) {
            s += product(columns, values, count, x);
        } else {
            const ZU zu_product = product(columns, values, count, zu);
            s += alpha * zu_product[0] + beta * zu_product[1];
        }
        const double b = target(row), y = row.y, norm2 = keeps_logit<L> ? std::fabs(row.norm2) : row.norm2;
        if (norm2 == 0) continue; // its dual is where it belongs from the start
        const double next = dual_step(loss_, s, y, norm2 * inverse_scale, b, row.b);
        const double delta = next - y;
        if ((k & (sample_ - 1)) == 0)
            young += static_cast<double>(sample_) * omega_row(i) * (loss_.value(s, b) + loss_.conjugate(y, b) - y * s);
        if constexpr (HasBoundedDual<L>) {
            if (shrinks_) watch(i, s, y, b, delta);
        }
        alpha *= rho_;
        beta = rho_ * (beta - tau_);
        // alpha z + beta u must grow by -rho tau (extrapolated delta) a, of which beta u already has its part; divided before
        // delta is known, because the next row waits for what follows
        const double z_of_move = is_sdca ? 0 : -(rho_ * tau_ * extrapolate_ + beta * inverse_n) / alpha;
        const double move = omega_row(i) * delta, to_u = move * inverse_n;
        if (column_ != 0) {
            u0_ += to_u * column_;
            x0_ = (x0_ - tau_ * (u0_ + (extrapolate_ - inverse_n) * move * column_)) * rho0;
        }
        if (delta == 0) continue;
        row.y = next;
        moved += delta * delta * norm2;
        if constexpr (is_sdca) {
            move_along(move * x_of_move, columns, values, count, x);
        } else {
            move_along(ZU{move * z_of_move, to_u}, columns, values, count, zu);
        }
    }
    if constexpr (!is_sdca) alpha_ = alpha, beta_ = beta;
    moved_ += moved;
    young_ += young;
}

template <class L, class Values, class Index>
void FastMethod<L, Values, Index>::watch(std::size_t i, double s, double y, double b, double delta) noexcept {
    if constexpr (HasBoundedDual<L>) {
        if (shrink_.watch(loss_, s, y, b, delta != 0, shrink_.most, shrink_.least)) dropped_[i] = 1;
    }
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::rebase() noexcept {
    for (ZU &zu : zu_) zu[0] = alpha_ * zu[0] + beta_ * zu[1];
    alpha_ = 1;
    beta_ = 0;
}

/// g(x) + g*(-u) + <u, x> = (lambda/2) |x + u/lambda|^2
template <class L, class Values, class Index> double FastMethod<L, Values, Index>::quadratic_gap() const noexcept {
    double sum = 0;
    for (const ZU &zu : zu_) {
        const double away = alpha_ * zu[0] + (beta_ + 1 / lambda_) * zu[1];
        sum += away * away;
    }
    return 0.5 * lambda_ * sum;
}

/// -(1/n) sum_i omega_i phi*(y_i) - g*(-u); a free intercept's u is taken to be 0.
template <class L, class Values, class Index> double FastMethod<L, Values, Index>::dual_value() const {
    double conjugates = 0, squares = 0;
    for (std::size_t p = 0; p < rows_.count; ++p) {
        interruption_point(1);
        conjugates += omega_row(p) * loss_.conjugate(rows_.state[p].y, target(rows_.state[p]));
    }
    for (const ZU &zu : zu_) squares += zu[1] * zu[1] / lambda_;
    for (const double x : x_) squares += lambda_ * x * x; // x = -u/lambda
    if (lambda0_ > 0) squares += u0_ * u0_ / lambda0_;
    return -conjugates / static_cast<double>(n_) - 0.5 * squares;
}

template <class L, class Values, class Index>
void FastMethod<L, Values, Index>::visit(std::size_t from, std::size_t to) noexcept {
    if constexpr (!is_same) {
        if (is_far_) return is_sdca_ ? visit<true, true>(from, to) : visit<false, true>(from, to);
    }
    is_sdca_ ? visit<true, false>(from, to) : visit<false, false>(from, to);
}

template <class L, class Values, class Index> void FastMethod<L, Values, Index>::advance(double passes) {
    auto left = static_cast<std::int64_t>(std::ceil(passes * static_cast<double>(n_)));
    while (left > 0) {
        const std::size_t count = std::min<std::size_t>(256, visiting_.size() - next_);
        visit(next_, next_ + count);
        next_ += count;
        visits_ += static_cast<std::int64_t>(count);
        left -= static_cast<std::int64_t>(count);
        if (alpha_ < 1e-9) rebase();
        if (next_ < visiting_.size()) continue;
        list_visits();
        if (!visiting_.empty()) continue;
        end_sweep();
        start_sweep();
    }
    if (rule_->asks_for_gap()) rule_->tell(estimated_gap_, dual_value());
}

template <class L, class Values, class Index>
void FastMethod<L, Values, Index>::point(std::vector<double> &x, std::vector<double> &y) {
    x.resize(at(problem_.dimension()));
    std::copy(x_.begin(), x_.end(), x.begin());
    for (std::size_t j = 0; j < zu_.size(); ++j) x[j] = alpha_ * zu_[j][0] + beta_ * zu_[j][1];
    if (column_ != 0) x[place0_] = x0_ * unit_;
    y.resize(rows_.count);
    for (std::size_t p = 0; p < rows_.count; ++p) y[rows_.row_at(p)] = rows_.state[p].y;
}

template <class L>
std::unique_ptr<Method> make_fast(const Problem &problem, const L &loss, std::optional<double> omega, bool shrinking,
                                  bool is_sdca, const SolveContext &context) {
    const auto make = [&]<class Values, class Index>(Values, Index) -> std::unique_ptr<Method> {
        return std::make_unique<FastMethod<L, Values, Index>>(problem, loss, omega, shrinking, is_sdca, context);
    };
    const auto make_with = [&](auto index) {
        if (!problem.row_values(context.threads).empty()) return make(Same{}, index);
        return has_floats(problem.matrix()) ? make(static_cast<const float *>(nullptr), index)
                                            : make(static_cast<const double *>(nullptr), index);
    };
    return is_wide(problem.matrix()) && !context.copy ? make_with(std::int64_t{}) : make_with(std::int32_t{});
}

/// Owners of features for threads to share, or 1 for the serial kernel: a function of the problem and of the machine, not of the number of
/// threads, so that this changes no bit. An owner needs some ten entries of a row; on small data and for a few passes letters and
/// set-up cost as much as they save. With 14 owners one of 8 threads leads and seven have two each, and one of 16 is left to the system.
/// Where rows are much alike, batches that stay the same take twice the passes. A constant column is left to the serial kernel, which
/// knows how to treat it.
int choose_owners(const Problem &problem, bool is_sdca, const SolveContext &context) {
    const bool pays = context.copy && suits_many_threads(problem, context) &&
                      problem.nonzeros() >= 160 * problem.rows() && passes_on_text(problem) >= 16 &&
                      likeness(problem, problem.rows() / 2) < likeness_of_text;
    return pays && !find_constant_column(problem, is_sdca) ? 14 : 1;
}

std::unique_ptr<Method> make_fast(const Problem &problem, std::string_view solver, std::optional<double> omega,
                                  bool shrinking, std::optional<std::int64_t> owners, bool is_sdca,
                                  const SolveContext &context) {
    if (!std::holds_alternative<L2>(problem.regularizer().variant()) || !problem.is_uniform() ||
        problem.regularizer(0).strong_convexity() == 0) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l2 penalty, the same for every feature and without l1 or "
                         "bounds; the solver spdc takes any penalty",
                         solver));
    }
    constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max(); // numbers of rows and blocks
    if (problem.rows() > most_rows) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} takes up to {} rows, not {}; the solver spdc takes any number", solver, most_rows,
                         problem.rows()));
    }
    const int count = owners ? static_cast<int>(*owners) : choose_owners(problem, is_sdca, context);
    if (count > 1 && !context.copy) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {}: owners = {} takes a copy of the data; without one owners must be 1", solver,
                         count));
    }
    if (count > 1) return make_owners(problem, {count, omega, shrinking, is_sdca}, context);
    return std::visit([&](const auto &loss) { return make_fast(problem, loss, omega, shrinking, is_sdca, context); },
                      problem.loss().variant());
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const SpdcFast &options, const SolveContext &context) {
    return make_fast(problem, options.name, options.omega, options.shrinking, options.owners, false, context);
}

std::unique_ptr<Method> make_fast_sdca(const Problem &problem, const Sdca &options, const SolveContext &context) {
    return make_fast(problem, options.name, {}, options.shrinking, options.owners, true, context);
}

} // namespace spdc
