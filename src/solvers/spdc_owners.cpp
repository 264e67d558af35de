// spdc_fast on several threads: feature owners with Gram-corrected super-steps. The recursion is that of spdc_fast.cpp.
//
// The features are dealt to V owners, and each thread keeps {z, u} of its owners' features to itself for the whole run. One thread leads.
// A super-step visits up to 63 rows, a batch:
//
//   1. every owner: its part of A_j <a, z> + B_j <a, u> for each row, z and u as they were before the batch     (parallel)
//   2. the leader:  s_j = the sum of the parts + what the rows before j have changed; dual step; the move
//   3. every owner: z += mz_j a, u += mu_j a over its features, for each row that moved                         (parallel)
//
// where row j, the j-th of the batch, would see x = A_j z + B_j u: A_j = alpha rho^j, B_j = rho^j beta - tau g_j and
// g_j = 1 + ... = (1 - rho^j)/(lambda tau). A row i that moved before it adds G_ij (A_j mz_i + B_j mu_i), G the Gram matrix
// of the batch, which is rho^j c + g_j e with two numbers a row, c += G_ij (alpha mz_i + beta mu_i), e -= G_ij tau mu_i. So the rows
// are visited one after another as by the serial kernel, with as many passes; only the rounding of G (8 bits) and of c
// and e (float) differs, in proportion to the moves, which vanish at the solution.
//
// Parts and moves travel in letters of seven rows, each a line of the cache: the leader begins when the first have come and the owners
// change their features while it goes on (a thread with many owners takes a batch at a time). All that the leader alone needs, a row's
// dual and the Gram matrices say, stays in its caches. A thread that has both owners of a pair sends the sum of their parts.
//
// Lone features, those of one row, have no owner: {z, u} of all of a row's are a_j times one pair, which the leader keeps.
//
// Each number has one owner, and sums are taken in the order of the owners: the bits depend on V and not on the number of threads.
#include "spdc_owners.h"
#include "live_batches.h"
#include "methods.h"
#include "owner_features.h"
#include "owner_rows.h"
#include "owner_threads.h"
#include "random.h"
#include "spdc_fast.h"

#include "free_coordinates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <deque>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr int m = batch_rows;
constexpr std::size_t permutations = 64; // of a batch, drawn once: a sweep picks one for each batch
constexpr double most_entries = 3e7;     // visited between two looks at the clock

/// What the leader keeps of a row: a line of the cache.
struct alignas(64) RowState {
    double y = 0, logit = first_logit;
    double b, importance;
    double norm2, lone_norm2; // of sqrt(omega) a, see spdc.cpp; of a's lone features
    ZU lone{};                // their {z, u}, in units of their entries
};

template <class L> class OwnersMethod final : public Method {
  public:
    OwnersMethod(const Problem &problem, const L &loss, const OwnersOptions &options, const SolveContext &context);

    void advance(double passes) override;
    double passes() const override { return static_cast<double>(walk_.visits) / static_cast<double>(n_); }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    double estimated_gap() const override { return estimated_gap_; }
    double dual_value() const override;
    double omega() const override { return rule_->omega(); }
    std::vector<OmegaChange> take_omega_changes() override { return std::exchange(omega_changes_, {}); }
    int threads() const override { return lineups_.front().shares.threads(); }
    bool exhausted() const override { return full_ == 0; }

  private:
    using Walk = OwnerFeatures::Walk;
    using Batch = OwnerFeatures::Batch;
    /// Some or all of the threads. Which does not matter to the results.
    struct Lineup {
        Lineup(int owners, int threads) : shares(owners, threads), barrier(shares.threads()) {}
        OwnerShares shares;
        FlagBarrier barrier;
    };
    static std::deque<Lineup> make_lineups(int owners, int threads) {
        std::deque<Lineup> lineups;
        for (; threads > 0; threads = lineups.back().shares.threads() / 2) lineups.emplace_back(owners, threads);
        return lineups;
    }
    /// Waiting as long as one thread would take for a batch is nothing unusual.
    int patience_for_rows() const {
        const double entries = static_cast<double>(problem_.nonzeros()) * m / std::max(1.0, static_cast<double>(n_));
        return static_cast<int>(patience(threads()) * std::clamp(entries / 5e4, 1.0, 1e4));
    }
    struct alignas(128) Sum {
        double value = 0;
    };
    /// What the leader remembers from row to row of a batch.
    struct Changes {
        alignas(64) float c[gram_row] = {}, e[gram_row] = {};
    };

    void gather_rows();
    std::vector<double> norms() const;
    void start_duals();
    void set_steps();
    void activate_all();
    void start_sweep();
    void end_sweep();
    void shrink();

    void work(int thread, std::int64_t rows);
    /// What a thread met between two sweeps, or before the first: no memory.
    const std::exception_ptr &failure() const { return failure_ ? failure_ : batches_->failure(); }
    void close_sweep(int thread, Walk &walk);
    void super_step(int thread, Walk &walk, const Batch &now, Batch &next) noexcept;
    void choose_rows(int thread, std::int64_t step, Batch &batch) const noexcept;
    void lead(const Walk &walk, const Batch &batch) noexcept;
    double visit(const Walk &walk, const Batch &batch, int j, double sum, Changes &changes) noexcept;
    void rebase(int thread, Walk &walk) noexcept;
    double lone_distance(const Walk &walk) const noexcept;

    const Problem &problem_;
    const L loss_;
    const bool shrinks_;
    const int V_;
    std::int64_t n_;
    double lambda_, gamma_ = 0, R_ = 1;
    double column_ = 0, lambda0_ = 0; // of the intercept, in units of its column
    Random random_;
    const LentTeam crew_;
    Team &team_;
    std::deque<Lineup> lineups_; // of all threads, of half of them ... of one
    Lineup *working_ = nullptr;
    ThreadTrials trials_;
    std::size_t pieces_ = 0; // of work
    const bool changes_threads_;
    std::vector<std::int32_t> order_; // place -> row of the problem
    std::optional<OwnerRows> rows_;
    std::vector<RowState, UnfilledHugePageAllocator<RowState>> state_; // of the rows by place
    std::optional<OwnerFeatures> features_;
    Walk walk_;
    std::optional<OmegaRule> rule_;
    std::vector<OmegaChange> omega_changes_;
    /// What the leader writes at every visit, apart from what all read.
    struct alignas(128) Leading {
        double x0 = 0, u0 = 0; // of the intercept, in units of its column
        double moved = 0, young = 0;
        double distance = 0;      // see lone_distance
        bool waited_long = false; // for a letter
        Shrinking shrinking;
    };
    Leading leading_;
    alignas(128) std::optional<LiveBatches> batches_;
    std::int64_t full_ = 0; // rows visited in a sweep when none is left out
    std::vector<std::uint8_t> dropped_;
    std::vector<std::array<std::uint8_t, m>> permutations_;
    std::vector<std::int64_t> batch_order_;
    std::vector<std::uint8_t> picks_;
    std::vector<Sum> distances_; // of the owners
    bool regroups_ = false, measures_gap_ = false;
    std::exception_ptr failure_;                           // of the leader between two sweeps
    std::int64_t visits_at_start_ = 0, visits_at_gap_ = 0; // of the sweep, of the last estimate
    int sample_ = 8; // one row in so many is looked at for the gap, a power of two
    double estimated_gap_ = infinity, last_gap_ = 0;
};

template <class L>
OwnersMethod<L>::OwnersMethod(const Problem &problem, const L &loss, const OwnersOptions &options,
                              const SolveContext &context)
    : problem_(problem), loss_(loss), shrinks_(options.shrinking && HasBoundedDual<L>), V_(options.owners),
      n_(problem.rows()), lambda_(problem.regularizer(0).strong_convexity()), random_(context.seed),
      crew_(context.team, Crew(context)), team_(crew_), lineups_(make_lineups(V_, team_.size())),
      working_(&lineups_.front()), trials_(static_cast<int>(lineups_.size())),
      changes_threads_(options.changes_threads), distances_(at(V_)) {
    gather_rows();
    R_ = median_norm(norms());
    gamma_ = working_gamma(loss_.gamma(), R_, lambda_, static_cast<double>(n_));
    const double balance = std::sqrt(lambda_ * static_cast<double>(n_) * gamma_), largest = R_ / balance;
    if (problem.has_intercept()) {
        const bool is_free = problem.intercept() == Intercept::free;
        column_ = options.is_sdca && !is_free ? 1 : intercept_column(R_, balance); // SDCA knows no units
        lambda0_ = problem.regularizer(problem.features()).strong_convexity() * column_ * column_;
        if (is_free) leading_.x0 = best_constant(problem, context) / column_;
        for (RowState &row : state_) row.norm2 += row.importance * column_ * column_;
    }
    const bool is_sdca = options.is_sdca || (!options.omega && largest <= 1.5);
    rule_.emplace(largest, is_sdca ? std::optional<double>(largest) : options.omega, loss_.gamma(), false);
    start_duals();
    permutations_.resize(permutations);
    for (auto &permutation : permutations_) {
        std::iota(permutation.begin(), permutation.end(), std::uint8_t{0});
        random_.shuffle(permutation);
    }
    dropped_.resize(at(n_));
    sample_ = n_ < 1024 ? 1 : static_cast<int>(std::clamp<std::size_t>(std::bit_floor(at(n_) / 1024), 8, 64));
    activate_all();
    set_steps();
    start_sweep();
}

template <class L> void OwnersMethod<L>::gather_rows() {
    order_.resize(at(n_));
    std::iota(order_.begin(), order_.end(), 0);
    random_.shuffle(order_);
    rows_.emplace(problem_.matrix(), problem_.row_values(team_.size()), order_, V_, team_);
    features_.emplace(*rows_, lambda_, patience_for_rows(), team_);
    make_numbers(team_, state_, at(n_));
    batches_.emplace(*rows_, n_, team_);
    const std::vector<double> norms2 = rows_->take_squared_norms(), lone_norms2 = rows_->take_lone_norms();
    team_.run([&](int thread) {
        batches_->prepare(thread);
        if (thread < threads()) features_->clear(working_->shares, thread);
        batches_->fill_gram(thread);
    });
    if (failure()) std::rethrow_exception(failure());
    for (std::size_t p = 0; p < order_.size(); ++p) {
        const double importance = problem_.importance(order_[p]);
        state_[p] = {.b = problem_.targets()[at(order_[p])],
                     .importance = importance,
                     .norm2 = importance * norms2[p],
                     .lone_norm2 = lone_norms2[p]};
    }
}

/// |sqrt(omega) a|^2 of the rows.
template <class L> std::vector<double> OwnersMethod<L>::norms() const {
    std::vector<double> norms2;
    for (const RowState &row : state_) norms2.push_back(row.norm2);
    return norms2;
}

/// All start at 0, where u and the x that it implies are 0, too. Rows without entries never move.
template <class L> void OwnersMethod<L>::start_duals() {
    for (RowState &row : state_) {
        if (row.norm2 == 0) row.y = loss_.derivative(0, row.b);
    }
}

template <class L> void OwnersMethod<L>::set_steps() {
    const auto n = static_cast<double>(n_), live = std::max(1.0, static_cast<double>(batches_->live()));
    features_->set_steps({fast_steps(rule_->omega(), rule_->product(), gamma_, R_, lambda_, n, live), n});
}

/// Rows without entries have their dual where it belongs and are never visited.
template <class L> void OwnersMethod<L>::activate_all() {
    batches_->activate([&](std::int32_t place) { return state_[at(place)].norm2 != 0; });
    std::fill(dropped_.begin(), dropped_.end(), 0);
    full_ = batches_->live();
}

template <class L> void OwnersMethod<L>::start_sweep() {
    batch_order_.clear();
    for (std::int64_t batch = 0; batch < batches_->now().count(); ++batch) {
        if (batches_->now().live[at(batch)] != 0) batch_order_.push_back(batch);
    }
    random_.shuffle(batch_order_);
    picks_.resize(batch_order_.size());
    for (std::uint8_t &pick : picks_) pick = static_cast<std::uint8_t>(random_.below(permutations));
    visits_at_start_ = walk_.visits;
    leading_.shrinking.start_sweep();
    leading_.moved = 0, leading_.young = 0, walk_.step = 0;
}

template <class L> void OwnersMethod<L>::end_sweep() {
    if (measures_gap_) {
        double quadratic = leading_.distance;
        for (const Sum &distance : distances_) quadratic += distance.value;
        const double gap = leading_.young / static_cast<double>(n_) + 0.5 * lambda_ * quadratic;
        estimated_gap_ = gap * fallen_since(gap / last_gap_, shrinks_);
        last_gap_ = gap;
        visits_at_gap_ = walk_.visits;
    }
    bool change = rule_->next(leading_.moved, 1);
    if (change) omega_changes_.push_back({passes(), rule_->omega()});
    if (shrinks_) {
        shrink();
        change = true;
    }
    if (change) set_steps();
}

template <class L> void OwnersMethod<L>::shrink() {
    const bool was_full = batches_->live() == full_;
    const double passes = static_cast<double>(walk_.visits - visits_at_start_) / static_cast<double>(n_);
    if (leading_.shrinking.end_sweep(was_full, passes)) return activate_all();
    regroups_ = batches_->leave_out(dropped_);
    if (batches_->live() == 0) activate_all();
}

template <class L> void OwnersMethod<L>::advance(double passes) {
    if (batch_order_.empty()) return; // every row is empty and where it belongs
    const double n = static_cast<double>(n_);
    const double a_while = most_entries * n / std::max(1.0, static_cast<double>(problem_.nonzeros()));
    const double to_end = std::min(static_cast<double>(batches_->live() - (walk_.visits - visits_at_start_)), a_while);
    const auto rows = static_cast<std::int64_t>(std::ceil(std::max(passes * n, to_end)));
    working_ = &lineups_[changes_threads_ ? ++pieces_ % lineups_.size() : at(trials_.choice())];
    const std::int64_t before = walk_.visits;
    const auto start = std::chrono::steady_clock::now();
    leading_.waited_long = false;
    team_.run([&](int thread) {
        if (thread < working_->shares.threads()) work(thread, rows);
    });
    if (failure()) std::rethrow_exception(failure());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    trials_.tell(time.count() / static_cast<double>(walk_.visits - before), leading_.waited_long);
    if (rule_->asks_for_gap()) rule_->tell(estimated_gap_, dual_value());
}

template <class L> void OwnersMethod<L>::work(int thread, std::int64_t rows) {
    Walk walk = walk_;
    Batch batches[2];
    Batch *now = &batches[0], *next = &batches[1];
    choose_rows(thread, walk.step, *now);
    while (rows > 0) {
        super_step(thread, walk, *now, *next);
        rows -= now->count;
        std::swap(now, next);
        if (walk.step == static_cast<std::int64_t>(batch_order_.size())) {
            close_sweep(thread, walk);
            if (failure()) break;
            choose_rows(thread, walk.step, *now);
        }
    }
    if (thread == 0) walk_ = walk;
}

template <class L> double OwnersMethod<L>::lone_distance(const Walk &walk) const noexcept {
    double sum = 0;
    for (const RowState &row : state_) sum += row.lone_norm2 * features_->squared_distance(walk, row.lone);
    return sum;
}

/// Every thread adds up over its owners, the leader over its rows; it draws the conclusions for all.
template <class L> void OwnersMethod<L>::close_sweep(int thread, Walk &walk) {
    const bool measures_gap = walk.visits - visits_at_gap_ >= n_ / 2;
    working_->barrier.wait(thread);
    const OwnerShares &shares = working_->shares;
    for (int owner = shares.first(thread); measures_gap && owner < shares.end(thread); ++owner) {
        distances_[at(owner)].value = features_->distance(owner, walk);
    }
    if (measures_gap && thread == 0) leading_.distance = lone_distance(walk);
    working_->barrier.wait(thread);
    if (thread == 0) {
        walk_ = walk;
        measures_gap_ = measures_gap;
        regroups_ = false;
        try {
            end_sweep();
            start_sweep();
        } catch (...) { // no memory: the others must not wait for ever
            failure_ = std::current_exception();
        }
    }
    working_->barrier.wait(thread);
    if (failure_) return;
    if (regroups_) {
        batches_->fill_gram(thread);
        working_->barrier.wait(thread);
        if (batches_->failure()) return;
    }
    walk.step = 0;
}

/// What does not need the others is done while their letters are on the way.
template <class L> void OwnersMethod<L>::super_step(int thread, Walk &walk, const Batch &now, Batch &next) noexcept {
    ++walk.date;
    const auto &steps = features_->steps();
    features_->send_parts(working_->shares, thread, walk, now);
    if (walk.step + 1 < static_cast<std::int64_t>(batch_order_.size())) choose_rows(thread, walk.step + 1, next);
    if (thread == 0) lead(walk, now);
    features_->follow(working_->shares, thread, walk, now);
    walk.alpha *= steps.power[now.count];
    walk.beta = steps.power[now.count] * walk.beta - steps.tau * steps.g[now.count];
    if (walk.alpha < 1e-9) rebase(thread, walk);
    walk.inverse_alpha = 1 / walk.alpha;
    walk.visits += now.count;
    ++walk.step;
}

/// The live rows of a step's batch, in the order of one of the permutations.
template <class L> void OwnersMethod<L>::choose_rows(int thread, std::int64_t step, Batch &batch) const noexcept {
    batch.id = batch_order_[at(step)];
    const Batches &batches = batches_->now();
    const std::uint64_t live = batches.live[at(batch.id)];
    const std::int32_t *const places = batches.rows(batch.id).data();
    std::uint8_t visited_as[gram_row];
    int j = 0;
    for (const std::uint8_t r : permutations_[picks_[at(step)]]) {
        if ((live >> r & 1) == 0) continue;
        batch.row[j] = r;
        batch.rows[j] = rows_->locate(places[r]);
        visited_as[r] = static_cast<std::uint8_t>(j++);
        if (thread != 0) continue;
        __builtin_prefetch(&state_[at(places[r])], 1);
        __builtin_prefetch(batches.products(batch.id, r));
        __builtin_prefetch(batches.products(batch.id, r) + gram_row / 2);
    }
    batch.count = j;
    std::uint8_t *by_place = batch.by_place;
    for (std::uint64_t rest = live; rest != 0; rest &= rest - 1) *by_place++ = visited_as[std::countr_zero(rest)];
}

template <class L> void OwnersMethod<L>::lead(const Walk &walk, const Batch &batch) noexcept {
    Changes changes;
    for (int first = 0; first < batch.count; first += Letter::size) {
        double s[Letter::size] = {}, moves[Letter::size] = {};
        leading_.waited_long |= features_->sum_parts(working_->shares, walk, first / Letter::size, s);
        const int count = std::min(Letter::size, batch.count - first);
        for (int k = 0; k < count; ++k) moves[k] = visit(walk, batch, first + k, s[k], changes);
        features_->send_moves(walk, first / Letter::size, moves);
    }
}

/// The dual step of the batch's j-th row, and omega_i times the move. `sum`: of its owners' parts.
template <class L>
double OwnersMethod<L>::visit(const Walk &walk, const Batch &batch, int j, double sum, Changes &changes) noexcept {
    const auto &steps = features_->steps();
    const int r = batch.row[j];
    RowState &row = state_[at(batch.rows[j].place)];
    const double lone = walk.alpha * row.lone[0] + walk.beta * row.lone[1];
    sum += row.lone_norm2 * (steps.power[j] * lone - steps.tau * steps.g[j] * row.lone[1]) + column_ * leading_.x0;
    const double s =
        sum + steps.power[j] * static_cast<double>(changes.c[r]) + steps.g[j] * static_cast<double>(changes.e[r]);
    const double y = row.y, norm2 = row.norm2;
    const double next = dual_step(loss_, s, y, norm2 * steps.inverse_scale, row.b, row.logit);
    const double delta = next - y, move = row.importance * delta;
    if (delta != 0) {
        add_products(batches_->now().products(batch.id, r), static_cast<float>(move * steps.ahead[j]),
                     static_cast<float>(-steps.tau * move * steps.inverse_n), changes.c, changes.e);
        row.lone += features_->pair_of(walk, j, move);
        leading_.moved += delta * delta * norm2;
    }
    if (column_ != 0) {
        const double move0 = move * column_;
        leading_.u0 += move0 * steps.inverse_n;
        leading_.x0 -= steps.tau * (leading_.u0 + (steps.extrapolate - steps.inverse_n) * move0);
        leading_.x0 /= 1 + lambda0_ * steps.tau;
    }
    if ((j + walk.step) % sample_ == 0) {
        leading_.young += sample_ * row.importance * (loss_.value(s, row.b) + loss_.conjugate(y, row.b) - y * s);
    }
    if constexpr (HasBoundedDual<L>) {
        if (shrinks_) {
            dropped_[at(batch.rows[j].place)] = leading_.shrinking.watch(
                loss_, s, y, row.b, delta != 0, leading_.shrinking.most, leading_.shrinking.least);
        }
    }
    row.y = next;
    return move;
}

/// Rarely: z becomes x.
template <class L> void OwnersMethod<L>::rebase(int thread, Walk &walk) noexcept {
    features_->rebase(working_->shares, thread, walk);
    if (thread == 0) {
        for (RowState &row : state_) walk.rebase(row.lone);
    }
    walk.alpha = 1, walk.beta = 0;
}

/// -(1/n) sum_i omega_i phi*(y_i) - g*(-u); a free intercept's u is taken to be 0.
template <class L> double OwnersMethod<L>::dual_value() const {
    struct Terms {
        double sum = 0;
        void add(const Terms &other) { sum += other.sum; }
    };
    const std::span<const ZU> zu = features_->all();
    const double n = static_cast<double>(n_), slots = static_cast<double>(zu.size());
    const Terms rows =
        sum_chunks<Terms>(team_, state_.size(), 4 * n, [&](std::size_t begin, std::size_t end, Terms &own) {
            for (std::size_t p = begin; p < end; ++p) {
                const RowState &row = state_[p];
                const double u2 = row.lone_norm2 * row.lone[1] * row.lone[1]; // of its lone features
                own.sum += row.importance * loss_.conjugate(row.y, row.b) / n + 0.5 * u2 / lambda_;
            }
        });
    const Terms features =
        sum_chunks<Terms>(team_, zu.size(), slots, [&](std::size_t begin, std::size_t end, Terms &own) {
            for (std::size_t k = begin; k < end; ++k) own.sum += 0.5 * zu[k][1] * zu[k][1] / lambda_;
        });
    return -rows.sum - features.sum - (lambda0_ > 0 ? 0.5 * leading_.u0 * leading_.u0 / lambda0_ : 0.0);
}

template <class L> void OwnersMethod<L>::point(std::vector<double> &x, std::vector<double> &y) {
    x.resize(at(problem_.dimension()));
    y.resize(state_.size());
    constexpr std::int64_t chunks = 64;
    const std::int64_t d = problem_.features();
    team_.for_each(chunks, [&](std::int64_t chunk) {
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            const ZU pair = rows_->has_owner(j) ? features_->zu(rows_->owner_of(j))[at(rows_->slot_of(j))] : ZU{};
            x[at(j)] = walk_.alpha * pair[0] + walk_.beta * pair[1];
        }
        for (std::int64_t p = n_ * chunk / chunks; p < n_ * (chunk + 1) / chunks; ++p)
            y[at(order_[at(p)])] = state_[at(p)].y;
    });
    team_.for_each((n_ + m - 1) / m, [&](std::int64_t batch) {
        double factors[m];
        for (std::int64_t p = batch * m; p < std::min((batch + 1) * m, n_); ++p) {
            factors[p - batch * m] = walk_.alpha * state_[at(p)].lone[0] + walk_.beta * state_[at(p)].lone[1];
        }
        rows_->spread(batch, factors, x.data());
    });
    if (column_ != 0) x.back() = leading_.x0 * column_;
}

} // namespace

std::unique_ptr<Method> make_owners(const Problem &problem, const OwnersOptions &options, const SolveContext &context) {
    return std::visit(
        [&]<class L>(const L &loss) -> std::unique_ptr<Method> {
            return std::make_unique<OwnersMethod<L>>(problem, loss, options, context);
        },
        problem.loss().variant());
}

} // namespace spdc
