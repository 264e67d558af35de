// Losses that are linear but for kinks, on many more rows than features: few of the rows decide.
//
// A row whose prediction is far from the kinks of its loss stays on the line it is on: its dual y is known and its loss is
// y z - phi*(y). What is left is the problem of the rows near a kink, the band, with a linear term for the others,
//
//   (1/n) sum_band omega_i phi(a_i'x) + <c, x> + constant + g(x),    c = (1/n) sum_others omega_i y_i a_i,
//
// which is below P everywhere and equal to it where every other row is on its line. newton_barrier.cpp solves it. Where the
// predictions will be is told first by two samples of the rows, then by the solutions on bands: the next band has the rows that
// left their lines and those within reach of the move just made. How far a row reaches goes by its entries: a feature of few rows
// is known the least. The gap of the whole problem is that of the band and what rows off their lines pay.
//
// On covtype.scale (581012 rows, 54 features) the hinge takes 6 to 51 passes, by l2, seed and order of the rows, in place of the
// barrier's 84 to 136. Where a band grows too large or too often, all rows are taken.
#include "newton.h"
#include "products.h"
#include "random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::size_t enough = 8192; // rows tell how far predictions move
constexpr int most_bands = 8;

template <class T> using Numbers = std::vector<T, UnfilledHugePageAllocator<T>>;

/// The memory, too, which `= {}` would keep.
template <class... Vectors> void give_back(Vectors &...vectors) { (Vectors().swap(vectors), ...); }

/// The line that a row is on, by its dual: the lower end of the domain, 0, or the upper end. A byte where a dual would take eight.
enum class Line : std::int8_t { none, lower, zero, upper }; // none: rows of the band

template <class L> Line line_of(const L &loss, double z, double b) noexcept {
    const double y = loss.derivative(z, b);
    return y == 0 ? Line::zero : (y == loss.domain(b).lower ? Line::lower : Line::upper);
}
template <class L> double dual_of(const L &loss, Line line, double b) noexcept {
    if (line == Line::none || line == Line::zero) return 0;
    return line == Line::lower ? loss.domain(b).lower : loss.domain(b).upper;
}

class SiftedNewton final : public Method {
  public:
    SiftedNewton(const Problem &problem, const SolveContext &context);

    void advance(double passes) override;
    double passes() const override { return passes_ + (inner_ ? share() * inner_->passes() : 0.0); }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    void aim(double tolerance) override { tolerance_ = tolerance; }
    bool has_point() const override { return is_worth_certifying_; }
    bool exhausted() const override { return stage_ == Stage::all && inner_->exhausted(); }
    double estimated_gap() const override { return is_worth_certifying_ ? gap_ : infinity; }
    int threads() const override { return threads_; }

  private:
    enum class Stage { first_sample, second_sample, band, all };
    /// Where a point leaves the rows.
    struct View {
        std::vector<double> x;
        Numbers<double> z;        // of the best point only while a band is chosen: memory
        std::vector<double> some; // every so many of them
        double objective = infinity;
    };
    struct Totals {
        double loss = 0, excess = 0; // excess: what rows outside the band pay for being off their lines
        void add(const Totals &other) { loss += other.loss, excess += other.excess; }
    };

    void measure_reach();
    void leave_inner();
    void solve_on(std::vector<std::int32_t> rows);
    PrimalExtras linear_term();
    void predict_best();
    void look();
    void judge_band();
    std::vector<std::int32_t> rows_without_line() const;
    void next_band(double reach);
    void take_all();
    template <class Visit> Totals each_row(Visit &&visit) const;
    double importance(std::size_t i) const { return problem_.importance(static_cast<std::int64_t>(i)); }
    double share() const {
        return stage_ == Stage::all ? 1 : static_cast<double>(band_.size()) / static_cast<double>(n_);
    }
    /// That share of the rows, but ten for each feature in the smaller sample.
    std::int64_t sample_size(std::int64_t share) const {
        return std::min(problem_.rows(), std::max(problem_.rows(), 640 * problem_.dimension()) / share);
    }
    std::vector<std::int32_t> sample(std::int64_t share);
    /// From one to the next of the rows that tell how far predictions move.
    std::size_t step() const { return n_ / enough + 1; }
    /// For a band to be worth choosing.
    bool is_too_large(std::size_t rows) const { return rows > n_ * 3 / 5; }

    const Problem &problem_;
    const std::span<const double> b_;
    const SolveContext context_;
    const LentTeam crew_;
    Team &team_;
    const std::size_t n_;
    Random random_;
    Stage stage_ = Stage::first_sample;
    Numbers<float> reach_;     // standard errors of the predictions, up to a factor, were features not correlated
    double typical_reach_ = 1; // the median
    View best_, now_;          // the point that bands are chosen at, and the last one looked at
    double move_ = 0, band_reach_ = 0; // between them, in units of reach_: few rows moved further; the band's
    std::vector<std::int32_t> band_;   // rows of the inner problem
    std::unique_ptr<Method> inner_;
    const NewtonSystem *system_ = nullptr; // of inner_
    Numbers<Line> lines_;
    Numbers<std::uint8_t> stays_;
    double goal_ = 1e-2, tolerance_ = 1e-4; // relative gaps: of this stage, and wanted
    double gap_ = infinity, excess_ = 0, passes_ = 0;
    bool is_worth_certifying_ = false, is_offered_ = false; // now; a point of this band
    int threads_ = 1, bands_ = 0;
};

SiftedNewton::SiftedNewton(const Problem &problem, const SolveContext &context)
    : problem_(problem), b_(problem.targets()), context_(context), crew_(context.team, context), team_(crew_),
      n_(at(problem.rows())), random_(context.seed) {
    make_numbers(team_, lines_, n_);
    make_numbers(team_, reach_, n_);
    make_numbers(team_, stays_, n_);
    best_.x.resize(at(problem.dimension()));
    best_.some.resize(n_ / step() + 1);
    measure_reach();
    const auto rows = static_cast<std::size_t>(std::count(stays_.begin(), stays_.end(), 1));
    is_too_large(rows) ? take_all() : solve_on(sample(64));
}

/// One row of each of so many equal stretches.
std::vector<std::int32_t> SiftedNewton::sample(std::int64_t share) {
    const std::int64_t n = problem_.rows(), count = sample_size(share);
    std::vector<std::int32_t> rows(at(count));
    for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t begin = n * k / count;
        rows[at(k)] = static_cast<std::int32_t>(begin + random_.below(n * (k + 1) / count - begin));
    }
    return rows;
}

/// The root of sum_j a_ij^2 / sum_k a_kj^2, the intercept's 1/n included: the standard error of a prediction, were the features
/// not correlated. Rows that have a feature with few others stay in the band: samples tell little of it.
void SiftedNewton::measure_reach() {
    const std::int64_t n = problem_.rows(), parts = std::clamp<std::int64_t>(problem_.nonzeros() / 2'000'000, 64, 512);
    const double few = 5.0 * static_cast<double>(n) / static_cast<double>(sample_size(64)); // five in the first sample
    std::vector<std::vector<double>> squares(at(parts));
    std::visit(
        [&](const auto &matrix) {
            team_.for_each(parts, [&](std::int64_t part) {
                std::vector<double> &own = squares[at(part)];
                own.assign(at(problem_.features()), 0.0);
                for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
                    const auto row = matrix.row(i);
                    const double omega = problem_.importance(i);
                    for (std::int64_t q = 0; q < row.size(); ++q) {
                        own[at(row.column(q))] += omega * row.value(q) * row.value(q);
                    }
                }
            });
            std::vector<double> &inverse = squares.front();
            for (std::size_t j = 0; j < inverse.size(); ++j) {
                for (std::size_t part = 1; part < squares.size(); ++part) inverse[j] += squares[part][j];
                inverse[j] = inverse[j] > 0 ? 1 / inverse[j] : 0;
            }
            team_.for_each(parts, [&](std::int64_t part) {
                for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
                    const auto row = matrix.row(i);
                    double sum = 1 / static_cast<double>(n), largest = 0;
                    for (std::int64_t q = 0; q < row.size(); ++q) {
                        const double share = row.value(q) * row.value(q) * inverse[at(row.column(q))];
                        sum += share;
                        largest = std::max(largest, share);
                    }
                    const double omega = problem_.importance(i);
                    stays_[at(i)] = omega > few || omega * largest * few > 1 ? 1 : 0;
                    reach_[at(i)] = static_cast<float>(std::sqrt(sum));
                }
            });
        },
        problem_.matrix());
    passes_ += 1;
    std::vector<double> some;
    for (std::size_t i = 0; i < n_; i += step()) some.push_back(static_cast<double>(reach_[i]));
    const auto middle = some.begin() + std::ssize(some) / 2;
    std::nth_element(some.begin(), middle, some.end());
    typical_reach_ = *middle;
}

/// Before the next one takes memory. Until that is there, an interrupted run has the best point.
void SiftedNewton::leave_inner() {
    passes_ = passes();
    inner_.reset();
}

/// The inner problem on these rows: of a sample, in place of the whole; of a band, the whole with the other rows on their lines. After the
/// first one it starts at the best point, at a mu that rounds the kinks off as widely as that point may be wrong.
void SiftedNewton::solve_on(std::vector<std::int32_t> rows) {
    leave_inner();
    band_ = std::move(rows);
    double weight = 0;
    for (const std::int32_t i : band_) weight += problem_.importance(i);
    if (!(weight > 0)) return take_all();
    PrimalExtras extras = stage_ == Stage::band ? linear_term() : PrimalExtras{};
    extras.rows = band_;
    extras.divisor = stage_ == Stage::band ? static_cast<double>(n_) : weight;
    std::optional<BarrierStart> start;
    if (stage_ != Stage::first_sample) {
        extras.x = best_.x;
        start = BarrierStart{best_.z, move_ * typical_reach_};
    }
    auto system = make_primal_system(problem_, context_, extras);
    system_ = system.get();
    inner_ = make_barrier_newton(problem_, std::move(system), start);
    inner_->aim(goal_);
    give_back(best_.z);
    is_offered_ = false;
}

/// Adds up visit(loss, i, totals) over the rows, on all threads.
template <class Visit> SiftedNewton::Totals SiftedNewton::each_row(Visit &&visit) const {
    return std::visit(
        [&](const auto &loss) {
            const double work = 2 * static_cast<double>(n_);
            return sum_chunks<Totals>(team_, n_, work, [&](std::size_t begin, std::size_t end, Totals &own) {
                if constexpr (requires { loss.conjugate_slope(0.0, 0.0); }) {
                    for (std::size_t i = begin; i < end; ++i) visit(loss, i, own);
                }
            });
        },
        problem_.loss().variant());
}

/// Of the rows outside the band.
PrimalExtras SiftedNewton::linear_term() {
    Numbers<double> y;
    make_numbers(team_, y, n_);
    const Totals totals = each_row([&](const auto &loss, std::size_t i, Totals &own) {
        y[i] = dual_of(loss, lines_[i], b_[i]);
        if (lines_[i] != Line::none) own.loss -= importance(i) * loss.conjugate(y[i], b_[i]);
    });
    PrimalExtras extras;
    extras.slope.resize(best_.x.size());
    combine(problem_, y, extras.slope, team_);
    passes_ += 0.5;
    extras.constant = totals.loss / static_cast<double>(n_);
    return extras;
}

/// Half a pass more where the last band had no better point.
void SiftedNewton::predict_best() {
    if (!best_.z.empty()) return;
    make_numbers(team_, best_.z, n_);
    predict(problem_, best_.x, best_.z, team_);
    passes_ += 0.5;
}

/// Where the inner point leaves all rows.
void SiftedNewton::look() {
    system_->point(now_.x);
    make_numbers(team_, now_.z, n_);
    predict(problem_, now_.x, now_.z, team_);
    passes_ += 0.5;
    const bool has_band = stage_ == Stage::band;
    const Totals totals = each_row([&](const auto &loss, std::size_t i, Totals &own) {
        const double value = loss.value(now_.z[i], b_[i]);
        own.loss += importance(i) * value;
        if (!has_band || lines_[i] == Line::none) return;
        const double y = dual_of(loss, lines_[i], b_[i]);
        own.excess += importance(i) * std::max(0.0, value + loss.conjugate(y, b_[i]) - y * now_.z[i]);
    });
    const double n = static_cast<double>(n_);
    now_.objective = totals.loss / n;
    for (std::int64_t j = 0; j < problem_.dimension(); ++j) {
        now_.objective += 0.5 * problem_.regularizer(j).strong_convexity() * now_.x[at(j)] * now_.x[at(j)];
    }
    excess_ = totals.excess / n;
    gap_ = inner_->estimated_gap() + excess_;
    std::vector<double> moves;
    now_.some.clear();
    for (std::size_t i = 0; i < n_; i += step()) {
        now_.some.push_back(now_.z[i]);
        moves.push_back(std::fabs(now_.z[i] - best_.some[i / step()]) / static_cast<double>(reach_[i]));
    }
    const auto most = moves.begin() + std::ssize(moves) * 19 / 20;
    std::nth_element(moves.begin(), most, moves.end());
    move_ = *most;
}

/// Each thread lists those of its chunks, where the counts of the chunks before say.
std::vector<std::int32_t> SiftedNewton::rows_without_line() const {
    constexpr std::size_t chunk = std::size_t{1} << 14;
    std::vector<std::ptrdiff_t> ends((n_ + chunk - 1) / chunk);
    const auto each_chunk = [&](auto &&visit) {
        team_.for_each(std::ssize(ends), static_cast<double>(n_), [&](std::int64_t k) {
            visit(at(k), std::span(lines_).subspan(at(k) * chunk, std::min(chunk, n_ - at(k) * chunk)));
        });
    };
    each_chunk([&](std::size_t k, auto lines) { ends[k] = std::count(lines.begin(), lines.end(), Line::none); });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::int32_t> rows(static_cast<std::size_t>(ends.back()));
    each_chunk([&](std::size_t k, auto lines) {
        auto to = rows.begin() + (k == 0 ? 0 : ends[k - 1]);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines[i] == Line::none) *to++ = static_cast<std::int32_t>(k * chunk + i);
        }
    });
    return rows;
}

/// A band of the rows that at the best point are within reach of a kink, in units of reach_, and of those that stay: rows of rare
/// features, and rows that left their lines when a band was too narrow.
void SiftedNewton::next_band(double reach) {
    is_worth_certifying_ = false;
    leave_inner();
    predict_best();
    each_row([&](const auto &loss, std::size_t i, Totals &) {
        const double z = best_.z[i], one = loss.conjugate_slope(0.0, b_[i]), other = loss.conjugate_slope(-0.0, b_[i]);
        const double distance = std::min(std::fabs(z - one), std::fabs(z - other));
        const bool is_near = stays_[i] || distance <= reach * static_cast<double>(reach_[i]);
        lines_[i] = is_near ? Line::none : line_of(loss, z, b_[i]);
    });
    std::vector<std::int32_t> rows = rows_without_line();
    if (++bands_ > most_bands || rows.empty() || is_too_large(rows.size())) return take_all();
    stage_ = Stage::band;
    move_ = band_reach_ = reach;
    solve_on(std::move(rows));
}

void SiftedNewton::take_all() {
    leave_inner();
    stage_ = Stage::all;
    give_back(band_, best_.z, now_.z, lines_, reach_, stays_);
    inner_ = make_barrier_newton(problem_, make_primal_system(problem_, context_));
    inner_->aim(tolerance_);
}

/// The band's point is good to the goal. What rows off their lines pay tells whether the band was wide enough. If not, the next one is
/// chosen at this point where it is better than the best; else it has run away from rows outside the band.
void SiftedNewton::judge_band() {
    const double size = std::fabs(now_.objective);
    const bool is_better = now_.objective < best_.objective,
               is_wide_enough = excess_ <= 0.3 * std::max(goal_, tolerance_) * size;
    if (!is_wide_enough) {
        each_row([&](const auto &loss, std::size_t i, Totals &) {
            if (lines_[i] != Line::none && line_of(loss, now_.z[i], b_[i]) != lines_[i]) stays_[i] = 1;
        });
    }
    if (is_better) std::swap(best_, now_);
    now_ = {}; // memory: bands and certificates need theirs
    // the move within the band does not know of the rows beyond
    if (!is_wide_enough && is_better) return next_band(std::max(0.5 * move_, band_reach_ / 8));
    if (!is_wide_enough) return next_band((bands_ == 1 ? 1 : 2) * band_reach_);
    is_worth_certifying_ = gap_ <= tolerance_ * size;
    if (inner_->exhausted() && (is_offered_ || !is_worth_certifying_)) return next_band(4 * band_reach_);
    give_back(best_.z);
    is_offered_ = is_worth_certifying_;
    goal_ = is_worth_certifying_ ? 0.3 * goal_ : std::max(0.5 * tolerance_, goal_ / 30);
    inner_->aim(goal_);
}

void SiftedNewton::advance(double) {
    is_worth_certifying_ = false;
    inner_->advance(1);
    threads_ = std::max(threads_, inner_->threads());
    if (stage_ == Stage::all) {
        gap_ = inner_->estimated_gap();
        is_worth_certifying_ = inner_->has_point();
        return;
    }
    if (!inner_->has_point()) return;
    look();
    if (stage_ == Stage::band) return judge_band();
    best_ = std::move(now_);
    if (!(move_ > 0 && move_ < infinity && best_.objective < infinity))
        return take_all(); // empty rows, or a sample without a point
    if (stage_ == Stage::second_sample) {
        goal_ = std::max(1e-3, 0.5 * tolerance_);
        return next_band(0.6 * move_);
    }
    stage_ = Stage::second_sample;
    move_ /= 8; // from x = 0
    solve_on(sample(16));
}

/// A run that ends before its time has the best x.
void SiftedNewton::point(std::vector<double> &x, std::vector<double> &y) {
    const bool has_band = inner_ && stage_ == Stage::band;
    y.resize(n_);
    if (stage_ != Stage::all) {
        if (!has_band) predict(problem_, best_.x, y, team_);
        each_row([&](const auto &loss, std::size_t i, Totals &) {
            y[i] = has_band ? dual_of(loss, lines_[i], b_[i]) : loss.derivative(y[i], b_[i]);
        });
    }
    if (inner_) inner_->point(x, y); // of its rows
    if (!is_worth_certifying_ && (!inner_ || best_.objective < infinity)) x = best_.x;
    if (stage_ == Stage::all && !inner_) y.assign(n_, 0.0);
}

} // namespace

bool suits_sifting(const Problem &problem) {
    return problem.rows() >= std::max<std::int64_t>(5000, 120 * problem.dimension()) &&
           problem.rows() <= std::numeric_limits<std::int32_t>::max() && problem.loss().gamma() == 0 &&
           NewtonLoss(problem.loss()).has_pieces();
}

std::unique_ptr<Method> make_sifted_newton(const Problem &problem, const SolveContext &context) {
    return std::make_unique<SiftedNewton>(problem, context);
}

} // namespace spdc
