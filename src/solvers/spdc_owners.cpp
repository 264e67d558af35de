// spdc_fast on several threads: feature owners with Gram-corrected super-steps. The recursion is that of spdc_fast.cpp.
//
// The features are dealt to V owners, and each thread keeps {z, u} of its owners' features to itself for the whole run. A super-step
// visits up to 64 rows, a batch:
//
//   1. every owner: its part of A_j <a, z> + B_j <a, u> for each row, z and u as they were before the batch     (parallel)
//   2. exchange the parts: the only meeting of the threads
//   3. s_j = the sum of the parts + what the rows before j have changed; dual step; delta_j                     (repeated by all)
//   4. every owner: z += mz_j a, u += mu_j a over its features, for each row that moved                         (parallel)
//
// where row j, the j-th of the batch, would see x = A_j z + B_j u: A_j = alpha rho^j, B_j = rho^j beta - tau g_j and
// g_j = 1 + ... = (1 - rho^j)/(lambda tau). A row i that moved before it adds G_ij (A_j mz_i + B_j mu_i), G the Gram matrix
// of the batch, which is rho^j c + g_j e with two numbers a row, c += G_ij (alpha mz_i + beta mu_i), e -= G_ij tau mu_i. So the rows
// are visited one after another as by the serial kernel, with as many passes; only the rounding of G (8 bits) and of c
// and e (float) differs, in proportion to the moves, which vanish at the solution.
//
// Lone features, those of one row, have no owner: {z, u} of all of a row's are a_j times one pair, which every thread can read.
//
// Each number has one owner or is computed alike by all threads, and sums are taken in the order of the owners: the bits depend on V
// and not on the number of threads.
#include "spdc_owners.h"
#include "methods.h"
#include "owner_rows.h"
#include "random.h"
#include "spdc_fast.h"

#include "free_coordinates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr int m = batch_rows;
constexpr std::size_t permutations = 64; // of a batch, drawn once: a sweep picks one for each batch
constexpr double most_entries = 3e7;     // visited between two looks at the clock

/// Step sizes of a sweep and what they make of the j-th row of a batch.
struct Steps : FastSteps {
    double power[m + 1], g[m + 1]; // rho^j, g_j
    /// alpha mz_j + beta mu_j of a move by 1: what it adds to x, extrapolated, and carried back to the start of the batch.
    double ahead[m];

    void tabulate(double n) {
        power[0] = 1, g[0] = 0;
        for (int j = 0; j < m; ++j) {
            power[j + 1] = rho * power[j];
            g[j + 1] = rho * (g[j] + 1);
            ahead[j] = -tau * (rho * extrapolate - g[j + 1] / n) / power[j + 1];
        }
    }
};

/// What every thread knows of the run, in a copy of its own; all copies are equal.
struct Walk {
    double alpha = 1, beta = 0;
    double x0 = 0, u0 = 0; // the intercept, in units of its column
    double moved = 0;
    std::int64_t visits = 0, step = 0; // of the run; of the sweep
};

/// A super-step as every thread sees it.
struct Batch {
    std::int64_t id = 0;
    int count = 0;                         // rows visited
    bool is_pending = false;               // its duals are not written yet
    std::int32_t place[m];                 // of the j-th row visited
    std::uint8_t row[m];                   // of the batch: the j-th visited
    std::int32_t stored[m], visited_as[m]; // places in the order of memory, and the j of each
    double s[m], next[m], logit[m];
    int changed = 0;
    std::int32_t changed_place[m];
    ZU moves[m];
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
    int threads() const override { return team_.size(); }
    bool exhausted() const override { return full_ == 0; }

  private:
    /// What an owner adds up over a sweep, apart from the others'.
    struct alignas(128) Share {
        double young = 0, quadratic = 0;
        double most = -infinity, least = infinity;
    };
    struct alignas(128) Parts {
        double of[m];
    };

    void gather_rows();
    void start_duals();
    void set_steps();
    void activate_all();
    void start_sweep();
    void end_sweep();
    void shrink();
    void regroup();
    void fill_gram(Batches &batches, int thread);

    void work(int thread, std::int64_t rows);
    void close_sweep(int thread, Walk &walk, Batch &last);
    void super_step(int thread, Walk &walk, Batch &now, Batch &before, Batch &next) noexcept;
    void choose_rows(std::int64_t step, Batch &batch) const noexcept;
    void add_up(int thread, const Walk &walk, const Parts *parts, Batch &batch) const noexcept;
    double distance(int owner, const Walk &walk) noexcept;
    void recursion(Walk &walk, Batch &batch) noexcept;
    void look_at(int owner, const Walk &walk, const Batch &batch) noexcept;
    void commit(int thread, Batch &batch) noexcept;
    void rebase(int thread, Walk &walk, Batch &last) noexcept;
    int first_owner(int thread) const { return V_ * thread / team_.size(); }
    template <class Visit> void each_owner(int thread, Visit &&visit) {
        for (int b = first_owner(thread); b < first_owner(thread + 1); ++b) visit(b);
    }
    /// What an owner does for all: its share of the rows.
    std::span<ZU> lone(int owner) {
        const std::int64_t begin = n_ * owner / V_;
        return std::span(lone_).subspan(at(begin), at(n_ * (owner + 1) / V_ - begin));
    }
    std::span<ZU> zu(int owner) { return std::span(zu_).subspan(at(owner * rows_->width()), at(rows_->width())); }

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
    const bool joins_; // threads have pairs of owners, whose parts they add up before the exchange
    FlagBarrier barrier_;
    std::vector<std::int32_t> order_; // place -> row of the problem
    std::optional<OwnerRows> rows_;
    std::vector<double> b_, importance_, norm2_, lone_norm2_, y_;
    std::vector<double> logits_;                          // where the loss keeps them
    std::vector<ZU, UnfilledHugePageAllocator<ZU>> zu_;   // owner by owner
    std::vector<ZU, UnfilledHugePageAllocator<ZU>> lone_; // of the rows by place
    Steps steps_;
    Walk walk_;
    std::optional<OmegaRule> rule_;
    std::vector<OmegaChange> omega_changes_;
    Shrinking shrinking_;
    Batches all_, fewer_;
    Batches *batches_ = &all_;
    std::int64_t live_ = 0, full_ = 0; // rows visited in a sweep, now and when none is left out
    std::vector<std::uint8_t> dropped_;
    std::vector<std::array<std::uint8_t, m>> permutations_;
    std::vector<std::int64_t> batch_order_;
    std::vector<std::uint8_t> picks_;
    std::vector<Parts> parts_; // two super-steps' worth
    std::vector<Share> shares_;
    std::vector<OwnerRows::Scratch> scratch_;
    std::atomic<std::int64_t> next_gram_ = 0;
    bool regroups_ = false, measures_gap_ = false;
    std::int64_t visits_at_start_ = 0, visits_at_gap_ = 0; // of the sweep, of the last estimate
    double estimated_gap_ = infinity, last_gap_ = 0;
};

/// Threads among which V owners can be shared evenly.
int team_size(int owners, int threads) {
    const int each = (owners + threads - 1) / threads;
    return (owners + each - 1) / each;
}

template <class L>
OwnersMethod<L>::OwnersMethod(const Problem &problem, const L &loss, const OwnersOptions &options,
                              const SolveContext &context)
    : problem_(problem), loss_(loss), shrinks_(options.shrinking && HasBoundedDual<L>), V_(options.owners),
      n_(problem.rows()), lambda_(problem.regularizer(0).strong_convexity()), random_(context.seed),
      crew_(context.team, Crew(context, team_size(options.owners, context.threads))), team_(crew_),
      joins_(V_ % (2 * team_.size()) == 0), barrier_(team_.size()),
      logits_(keeps_logit<L> ? at(problem.rows()) : 0, first_logit), parts_(at(2 * V_)), shares_(at(V_)),
      scratch_(at(team_.size())) {
    gather_rows();
    R_ = median_norm(norm2_);
    gamma_ = working_gamma(loss_.gamma(), R_, lambda_, static_cast<double>(n_));
    const double balance = std::sqrt(lambda_ * static_cast<double>(n_) * gamma_), largest = R_ / balance;
    if (problem.has_intercept()) {
        const bool is_free = problem.intercept() == Intercept::free;
        column_ = options.is_sdca && !is_free ? 1 : intercept_column(R_, balance); // SDCA knows no units
        lambda0_ = problem.regularizer(problem.features()).strong_convexity() * column_ * column_;
        if (is_free) walk_.x0 = best_constant(problem, context) / column_;
        for (std::size_t p = 0; p < norm2_.size(); ++p) norm2_[p] += importance_[p] * column_ * column_;
    }
    const bool is_sdca = options.is_sdca || (!options.omega && largest <= 1.5);
    rule_.emplace(largest, is_sdca ? std::optional<double>(largest) : options.omega, loss_.gamma());
    start_duals();
    permutations_.resize(permutations);
    for (auto &permutation : permutations_) {
        std::iota(permutation.begin(), permutation.end(), std::uint8_t{0});
        for (std::size_t k = m; k > 1; --k) {
            std::swap(permutation[k - 1], permutation[at(random_.below(static_cast<std::int64_t>(k)))]);
        }
    }
    dropped_.resize(at(n_));
    activate_all();
    set_steps();
    start_sweep();
}

template <class L> void OwnersMethod<L>::gather_rows() {
    order_.resize(at(n_));
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[at(random_.below(static_cast<std::int64_t>(i)))]);
    }
    rows_.emplace(problem_.matrix(), problem_.row_values(team_.size()), order_, V_, team_);
    make_numbers(team_, zu_, at(V_ * rows_->width()));
    make_numbers(team_, lone_, at(n_));
    all_.places.resize(at(n_));
    std::iota(all_.places.begin(), all_.places.end(), 0);
    all_.live.resize(at((n_ + m - 1) / m));
    make_numbers(team_, all_.gram, all_.live.size() * m * m);
    for (auto &scratch : scratch_) rows_->reserve(scratch);
    team_.run([&](int thread) {
        rows_->clear(scratch_[at(thread)]);
        each_owner(thread, [&](int owner) {
            std::fill(zu(owner).begin(), zu(owner).end(), ZU{});
            std::fill(lone(owner).begin(), lone(owner).end(), ZU{});
        });
        fill_gram(all_, thread);
    });
    next_gram_ = 0;
    b_.resize(at(n_));
    importance_.resize(at(n_));
    norm2_ = rows_->take_squared_norms();
    lone_norm2_ = rows_->take_lone_norms();
    y_.assign(at(n_), 0.0);
    for (std::size_t p = 0; p < order_.size(); ++p) {
        b_[p] = problem_.targets()[at(order_[p])];
        importance_[p] = problem_.importance(order_[p]);
        norm2_[p] *= importance_[p]; // of sqrt(omega) a, see spdc.cpp; lone_norm2_ is of a
    }
}

/// The batches that no other thread has taken yet.
template <class L> void OwnersMethod<L>::fill_gram(Batches &batches, int thread) {
    for (std::int64_t k; (k = next_gram_.fetch_add(1, std::memory_order_relaxed)) < batches.count();) {
        rows_->gram(batches.rows(k), scratch_[at(thread)], batches.gram.data() + k * m * m);
    }
}

/// All start at 0, where u and the x that it implies are 0, too. Rows without entries never move.
template <class L> void OwnersMethod<L>::start_duals() {
    for (std::size_t p = 0; p < y_.size(); ++p) {
        if (norm2_[p] == 0) y_[p] = loss_.derivative(0, b_[p]);
    }
}

template <class L> void OwnersMethod<L>::set_steps() {
    static_cast<FastSteps &>(steps_) = fast_steps(rule_->omega(), rule_->product(), gamma_, R_, lambda_,
                                                  static_cast<double>(n_), std::max(1.0, static_cast<double>(live_)));
    steps_.tabulate(static_cast<double>(n_));
}

/// Rows without entries have their dual where it belongs and are never visited.
template <class L> void OwnersMethod<L>::activate_all() {
    batches_ = &all_;
    live_ = 0;
    for (std::int64_t batch = 0; batch < all_.count(); ++batch) {
        std::uint64_t live = 0;
        for (std::size_t r = 0; r < all_.rows(batch).size(); ++r) {
            live |= static_cast<std::uint64_t>(norm2_[at(batch * m) + r] != 0) << r;
        }
        all_.live[at(batch)] = live;
        live_ += std::popcount(live);
    }
    std::fill(dropped_.begin(), dropped_.end(), 0);
    full_ = live_;
}

template <class L> void OwnersMethod<L>::start_sweep() {
    batch_order_.clear();
    for (std::int64_t batch = 0; batch < batches_->count(); ++batch) {
        if (batches_->live[at(batch)] != 0) batch_order_.push_back(batch);
    }
    random_.shuffle(batch_order_);
    picks_.resize(batch_order_.size());
    for (std::uint8_t &pick : picks_) pick = static_cast<std::uint8_t>(random_.below(permutations));
    visits_at_start_ = walk_.visits;
    for (Share &share : shares_) share = Share{};
    walk_.moved = 0, walk_.step = 0;
}

template <class L> void OwnersMethod<L>::end_sweep() {
    double young = 0, quadratic = 0;
    shrinking_.start_sweep();
    for (const Share &share : shares_) {
        young += share.young;
        quadratic += share.quadratic;
        shrinking_.most = std::max(shrinking_.most, share.most);
        shrinking_.least = std::min(shrinking_.least, share.least);
    }
    if (measures_gap_) {
        const double gap = young / static_cast<double>(n_) + 0.5 * lambda_ * quadratic;
        estimated_gap_ = gap * fallen_since(gap / last_gap_, shrinks_);
        last_gap_ = gap;
        visits_at_gap_ = walk_.visits;
    }
    bool change = rule_->next(walk_.moved);
    if (change) omega_changes_.push_back({passes(), rule_->omega()});
    if (shrinks_) {
        shrink();
        change = true;
    }
    if (change) set_steps();
}

template <class L> void OwnersMethod<L>::shrink() {
    const bool was_full = live_ == full_;
    const double passes = static_cast<double>(walk_.visits - visits_at_start_) / static_cast<double>(n_);
    if (shrinking_.end_sweep(was_full, passes)) return activate_all();
    live_ = 0;
    for (std::int64_t batch = 0; batch < batches_->count(); ++batch) {
        std::uint64_t &live = batches_->live[at(batch)];
        const auto rows = batches_->rows(batch);
        for (std::uint64_t rest = live; rest != 0; rest &= rest - 1) {
            const int r = std::countr_zero(rest);
            if (dropped_[at(rows[at(r)])]) live &= ~(std::uint64_t{1} << r);
        }
        live_ += std::popcount(live);
    }
    if (live_ == 0) {
        activate_all();
    } else if (2 * live_ < static_cast<std::int64_t>(batches_->places.size())) {
        regroup();
    }
}

/// Batches of live rows alone: half-empty ones cost as many meetings as full ones. The threads then compute their Gram matrices.
template <class L> void OwnersMethod<L>::regroup() {
    std::vector<std::int32_t> places;
    places.reserve(at(live_));
    for (std::int64_t batch = 0; batch < batches_->count(); ++batch) {
        for (std::uint64_t rest = batches_->live[at(batch)]; rest != 0; rest &= rest - 1) {
            places.push_back(batches_->rows(batch)[at(std::countr_zero(rest))]);
        }
    }
    fewer_.places = std::move(places);
    fewer_.live.assign(at((live_ + m - 1) / m), ~std::uint64_t{0});
    if (live_ % m != 0) fewer_.live.back() = (std::uint64_t{1} << (live_ % m)) - 1;
    fewer_.gram.resize(fewer_.live.size() * m * m);
    batches_ = &fewer_;
    regroups_ = true;
    next_gram_ = 0;
}

template <class L> void OwnersMethod<L>::advance(double passes) {
    if (batch_order_.empty()) return; // every row is empty and where it belongs
    const double n = static_cast<double>(n_);
    const double a_while = most_entries * n / std::max(1.0, static_cast<double>(problem_.nonzeros()));
    const double to_end = std::min(static_cast<double>(live_ - (walk_.visits - visits_at_start_)), a_while);
    const auto rows = static_cast<std::int64_t>(std::ceil(std::max(passes * n, to_end)));
    team_.run([&](int thread) { work(thread, rows); });
    if (rule_->asks_for_gap()) rule_->tell(estimated_gap_, dual_value());
}

template <class L> void OwnersMethod<L>::work(int thread, std::int64_t rows) {
    Walk walk = walk_;
    Batch batches[3];
    Batch *now = &batches[0], *before = &batches[1], *next = &batches[2];
    choose_rows(walk.step, *now);
    while (rows > 0) {
        super_step(thread, walk, *now, *before, *next);
        rows -= now->count;
        std::tie(before, now, next) = std::tuple(now, next, before);
        if (walk.step == static_cast<std::int64_t>(batch_order_.size())) {
            close_sweep(thread, walk, *before);
            if (!batch_order_.empty()) choose_rows(walk.step, *now);
        }
    }
    barrier_.wait(thread);
    commit(thread, *before);
    if (thread == 0) walk_ = walk;
}

/// |x + u/lambda|^2 over the owner's features and the lone ones of its share of the rows: g(x) + g*(-u) + <u, x> is lambda/2 of it.
template <class L> double OwnersMethod<L>::distance(int owner, const Walk &walk) noexcept {
    const auto square = [&](const ZU &pair) {
        const double away = walk.alpha * pair[0] + (walk.beta + 1 / lambda_) * pair[1];
        return away * away;
    };
    double sum = 0;
    for (const ZU &pair : zu(owner)) sum += square(pair);
    const double *norm2 = lone_norm2_.data() + n_ * owner / V_;
    for (const ZU &pair : lone(owner)) sum += *norm2++ * square(pair);
    return sum;
}

/// Every thread adds up over its owners, one draws the conclusions for all.
template <class L> void OwnersMethod<L>::close_sweep(int thread, Walk &walk, Batch &last) {
    const bool measures_gap = walk.visits - visits_at_gap_ >= n_ / 2;
    barrier_.wait(thread);
    commit(thread, last);
    barrier_.wait(thread);
    if (measures_gap) each_owner(thread, [&](int owner) { shares_[at(owner)].quadratic = distance(owner, walk); });
    barrier_.wait(thread);
    if (thread == 0) {
        walk_ = walk;
        measures_gap_ = measures_gap;
        regroups_ = false;
        end_sweep();
        start_sweep();
    }
    barrier_.wait(thread);
    if (regroups_) {
        fill_gram(*batches_, thread);
        barrier_.wait(thread);
    }
    walk = walk_;
}

/// After the meeting nobody reads the batch before any more, so what it changed can be written: all have the same. What does not need the
/// others is done while they come.
template <class L>
void OwnersMethod<L>::super_step(int thread, Walk &walk, Batch &now, Batch &before, Batch &next) noexcept {
    Parts *const parts = parts_.data() + walk.step % 2 * V_;
    each_owner(thread, [&](int owner) {
        ZU sums[m];
        const std::span<const std::int32_t> places(now.stored, at(now.count));
        rows_->dots(owner, places, zu(owner).data(), sums);
        double *const part = parts[joins_ ? owner / 2 : owner].of;
        for (int k = 0; k < now.count; ++k) {
            const int j = now.visited_as[k];
            const double A = walk.alpha * steps_.power[j], B = steps_.power[j] * walk.beta - steps_.tau * steps_.g[j];
            part[j] = (joins_ && owner % 2 == 1 ? part[j] : 0.0) + (A * sums[k][0] + B * sums[k][1]);
        }
    });
    barrier_.arrive(thread);
    if (walk.step + 1 < static_cast<std::int64_t>(batch_order_.size())) choose_rows(walk.step + 1, next);
    add_up(thread, walk, parts, now);
    commit(thread, before);
    recursion(walk, now);
    each_owner(thread, [&](int owner) {
        rows_->add(owner, {now.changed_place, at(now.changed)}, now.moves, zu(owner).data());
        look_at(owner, walk, now);
    });
    walk.alpha *= steps_.power[now.count];
    walk.beta = steps_.power[now.count] * walk.beta - steps_.tau * steps_.g[now.count];
    if (walk.alpha < 1e-9) rebase(thread, walk, now);
    walk.visits += now.count;
    ++walk.step;
}

/// The live rows of a step's batch, in the order of one of the permutations.
template <class L> void OwnersMethod<L>::choose_rows(std::int64_t step, Batch &batch) const noexcept {
    batch.id = batch_order_[at(step)];
    const std::uint64_t live = batches_->live[at(batch.id)];
    const std::int32_t *const places = batches_->rows(batch.id).data();
    std::uint8_t visited_as[m];
    int j = 0;
    for (const std::uint8_t r : permutations_[picks_[at(step)]]) {
        if ((live >> r & 1) == 0) continue;
        batch.row[j] = r;
        batch.place[j] = places[r];
        __builtin_prefetch(batches_->products(batch.id, r)); // for the recursion, while the products are computed
        __builtin_prefetch(batches_->products(batch.id, r) + m / 2);
        visited_as[r] = static_cast<std::uint8_t>(j++);
    }
    int k = 0;
    for (std::uint64_t rest = live; rest != 0; rest &= rest - 1, ++k) {
        const int r = std::countr_zero(rest);
        batch.stored[k] = places[r];
        batch.visited_as[k] = visited_as[r];
    }
    batch.count = j;
    batch.is_pending = true;
}

/// s_j without what the batch itself changes: of the lone features, then of the owners', two by two, as soon as their threads are there.
template <class L>
void OwnersMethod<L>::add_up(int thread, const Walk &walk, const Parts *parts, Batch &batch) const noexcept {
    for (int j = 0; j < batch.count; ++j) {
        const std::size_t i = at(batch.place[j]);
        const double x = walk.alpha * lone_[i][0] + walk.beta * lone_[i][1];
        batch.s[j] = lone_norm2_[i] * (steps_.power[j] * x - steps_.tau * steps_.g[j] * lone_[i][1]);
    }
    for (int owner = 0, there = 0; owner < V_; owner += 2) {
        while (there < team_.size() && first_owner(there) <= owner + 1) barrier_.await(thread, there++);
        const double *const one = parts[joins_ ? owner / 2 : owner].of, *const other =
                                                                            parts[std::min(owner + 1, V_ - 1)].of;
        const bool is_sum = joins_ || owner + 1 == V_;
        for (int j = 0; j < batch.count; ++j) batch.s[j] += is_sum ? one[j] : one[j] + other[j];
    }
}

template <class L> void OwnersMethod<L>::recursion(Walk &walk, Batch &batch) noexcept {
    alignas(64) float c[m] = {}, e[m] = {};
    const double inverse_n = 1 / static_cast<double>(n_), inverse_alpha = 1 / walk.alpha;
    const double rho0 = 1 / (1 + lambda0_ * steps_.tau), inverse_scale = 1 / steps_.sigma_scale;
    batch.changed = 0;
    for (int j = 0; j < batch.count; ++j) {
        const std::size_t i = at(batch.place[j]);
        const int r = batch.row[j];
        const double s = batch.s[j] + steps_.power[j] * static_cast<double>(c[r]) +
                         steps_.g[j] * static_cast<double>(e[r]) + column_ * walk.x0;
        const double y = y_[i], norm2 = norm2_[i];
        if constexpr (keeps_logit<L>) batch.logit[j] = logits_[i];
        const double next = dual_step(loss_, s, y, norm2 * inverse_scale, b_[i], batch.logit[j]);
        const double delta = next - y, move = importance_[i] * delta, mu = move * inverse_n;
        batch.s[j] = s;
        batch.next[j] = next;
        if (column_ != 0) {
            walk.u0 += mu * column_;
            walk.x0 = (walk.x0 - steps_.tau * (walk.u0 + (steps_.extrapolate - inverse_n) * move * column_)) * rho0;
        }
        if (delta == 0) continue;
        walk.moved += delta * delta * norm2;
        const double first = move * steps_.ahead[j];
        batch.changed_place[batch.changed] = batch.place[j];
        batch.moves[batch.changed++] = ZU{(first - walk.beta * mu) * inverse_alpha, mu};
        add_products(batches_->products(batch.id, r), static_cast<float>(first), static_cast<float>(-steps_.tau * mu),
                     c, e);
    }
}

/// The owner's share of the rows of a batch: every V-th. One row in eight gives the estimate of the gap.
template <class L> void OwnersMethod<L>::look_at(int owner, const Walk &walk, const Batch &batch) noexcept {
    Share &share = shares_[at(owner)];
    for (int j = owner; j < batch.count; j += V_) {
        const std::size_t i = at(batch.place[j]);
        const double s = batch.s[j], y = y_[i], b = b_[i];
        if ((j + j / 8 + walk.step) % 8 == 0) {
            share.young += 8 * importance_[i] * (loss_.value(s, b) + loss_.conjugate(y, b) - y * s);
        }
        if constexpr (HasBoundedDual<L>) {
            if (shrinks_) dropped_[i] = shrinking_.watch(loss_, s, y, b, batch.next[j] != y, share.most, share.least);
        }
    }
}

/// Each thread writes rows that stand side by side: the memory of a batch is in the caches of all, which takes time to end.
template <class L> void OwnersMethod<L>::commit(int thread, Batch &batch) noexcept {
    if (!batch.is_pending) return;
    const auto is_mine = [&](std::int32_t place) { return place % m * team_.size() / m == thread; };
    for (int j = 0; j < batch.count; ++j) {
        if (!is_mine(batch.place[j])) continue;
        y_[at(batch.place[j])] = batch.next[j];
        if constexpr (keeps_logit<L>) logits_[at(batch.place[j])] = batch.logit[j];
    }
    for (int k = 0; k < batch.changed; ++k) {
        if (is_mine(batch.changed_place[k])) lone_[at(batch.changed_place[k])] += batch.moves[k];
    }
    batch.is_pending = false;
}

/// Rarely. The others may still read pairs of the last batch, whose moves are in the old units.
template <class L> void OwnersMethod<L>::rebase(int thread, Walk &walk, Batch &last) noexcept {
    barrier_.wait(thread);
    commit(thread, last);
    barrier_.wait(thread);
    each_owner(thread, [&](int owner) {
        for (const std::span<ZU> pairs : {zu(owner), lone(owner)}) {
            for (ZU &pair : pairs) pair[0] = walk.alpha * pair[0] + walk.beta * pair[1];
        }
    });
    walk.alpha = 1, walk.beta = 0;
    barrier_.wait(thread); // the next step reads lone pairs before it meets the others
}

/// -(1/n) sum_i omega_i phi*(y_i) - g*(-u); a free intercept's u is taken to be 0.
template <class L> double OwnersMethod<L>::dual_value() const {
    struct Terms {
        double sum = 0;
        void add(const Terms &other) { sum += other.sum; }
    };
    const double n = static_cast<double>(n_), slots = static_cast<double>(zu_.size());
    const Terms rows = sum_chunks<Terms>(team_, y_.size(), 4 * n, [&](std::size_t begin, std::size_t end, Terms &own) {
        for (std::size_t p = begin; p < end; ++p) {
            const double u2 = lone_norm2_[p] * lone_[p][1] * lone_[p][1]; // of its lone features
            own.sum += importance_[p] * loss_.conjugate(y_[p], b_[p]) / n + 0.5 * u2 / lambda_;
        }
    });
    const Terms features =
        sum_chunks<Terms>(team_, zu_.size(), slots, [&](std::size_t begin, std::size_t end, Terms &own) {
            for (std::size_t k = begin; k < end; ++k) own.sum += 0.5 * zu_[k][1] * zu_[k][1] / lambda_;
        });
    return -rows.sum - features.sum - (lambda0_ > 0 ? 0.5 * walk_.u0 * walk_.u0 / lambda0_ : 0.0);
}

template <class L> void OwnersMethod<L>::point(std::vector<double> &x, std::vector<double> &y) {
    x.resize(at(problem_.dimension()));
    y.resize(y_.size());
    constexpr std::int64_t chunks = 64;
    const std::int64_t d = problem_.features();
    team_.for_each(chunks, [&](std::int64_t chunk) {
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            const ZU pair = rows_->has_owner(j) ? zu(rows_->owner_of(j))[at(rows_->slot_of(j))] : ZU{};
            x[at(j)] = walk_.alpha * pair[0] + walk_.beta * pair[1];
        }
        for (std::int64_t p = n_ * chunk / chunks; p < n_ * (chunk + 1) / chunks; ++p) y[at(order_[at(p)])] = y_[at(p)];
    });
    team_.for_each(all_.count(), [&](std::int64_t batch) {
        double factors[m];
        for (std::int64_t p = batch * m; p < std::min((batch + 1) * m, n_); ++p) {
            factors[p - batch * m] = walk_.alpha * lone_[at(p)][0] + walk_.beta * lone_[at(p)][1];
        }
        rows_->spread(batch, factors, x.data());
    });
    if (column_ != 0) x.back() = walk_.x0 * column_;
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
