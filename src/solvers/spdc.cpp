// SPDC: Algorithm 1 (uniform or permuted rows) and Algorithm 3 (weighted rows) of Zhang and Xiao, "Stochastic Primal-Dual
// Coordinate Method for Regularized Empirical Risk Minimization" (2015); Algorithm 2 is in spdc_minibatch.cpp.
//
//   k      the row of this iteration, drawn with probability p_k (1/n, or eq. nonuniform-prob)
//   y_k    <- argmax_b  b <a_k, xbar> - phi_k*(b) - (p_k n / 2 sigma)(b - y_k)^2           (spdc-maximize, spdc-robust-maximize)
//   x      <- prox_{tau g}( x - tau (u + delta a_k / (p_k n)) ),  delta = the move of y_k   (spdc-minimize, spdc-robust-minimize)
//   u      <- u + (delta/n) a_k;   xbar <- x + theta (x - x_previous)                      (spdc-update-b, spdc-update-xbar)
//
// Cost per iteration: the non-zeros of row k (section 6); coordinates outside the row are brought up to date when next seen.
//
// What differs from the paper. Step sizes carry 1/2 (erratum 1). Row weights: with omega_k = w_k n/W the method runs on rows
// sqrt(omega_k) a_k and dual variables sqrt(omega_k) y_k, which keeps gamma; in the letters above, delta becomes omega_k delta and
// R the largest sqrt(omega_k)|a_k|. A free intercept is one more coordinate without penalty whose column has the size of the
// median row. Where phi is not smooth or g not strongly convex, section 3's perturbation shrinks with the certified gap and the
// ratio of the step sizes is searched, see certified(); where g is not strongly convex the method restarts from averages of its
// iterates, see restart(). docs/paper_notes.md has the reasons.
#include "spdc.h"

#include "free_coordinates.h"
#include "methods.h"
#include "sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Largest phi'' over the rows: 1/gamma around z for a loss that is smooth only locally (poisson), 0 for a piecewise linear one.
double largest_curvature(const Problem &problem, std::span<const double> z) {
    double largest = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
        largest = std::max(largest, problem.loss().curvature(z[i], problem.targets()[i]));
    }
    return std::isfinite(largest) ? largest : 0;
}

} // namespace

std::string_view to_string(Sampling sampling) {
    switch (sampling) {
    case Sampling::uniform: return "uniform";
    case Sampling::weighted: return "weighted";
    case Sampling::permutation: return "permutation";
    }
    return "uniform";
}

void parse(const std::string &name, Sampling &sampling) {
    for (const Sampling known : {Sampling::uniform, Sampling::weighted, Sampling::permutation}) {
        if (name != to_string(known)) continue;
        sampling = known;
        return;
    }
    fail_unknown("sampling", name, {"uniform", "weighted", "permutation"});
}

SpdcMethod::SpdcMethod(const Problem &problem, const Spdc &options, const SolveContext &context, DualDistance distance)
    : problem_(problem), options_(options), n_(problem.rows()), d_(problem.features()), m_(options.batch_size),
      threads_(m_ > 1 ? context.threads : 1), step_(make_step(problem.regularizer(), problem.penalty_factors(), 1, 0)),
      w_(at(problem.dimension())), y_(at(problem.rows()), 0.0) {
    if (m_ > n_) {
        fail(ErrorKind::invalid_argument, fmt::format("batch-size = {}: the data have only {} rows", m_, n_));
    }
    norms_ = problem.squared_row_norms();
    if (problem.intercept() == Intercept::penalized) column_ = 1;
    if (problem.intercept() == Intercept::free) {
        std::vector<double> sorted = norms_;
        std::nth_element(sorted.begin(), sorted.begin() + n_ / 2, sorted.end());
        column_ = sorted[at(n_ / 2)] > 0 ? std::sqrt(sorted[at(n_ / 2)]) : 1;
        w_.back().x = best_constant(problem, context) / column_;
        w_.back().x_previous = w_.back().x;
    }
    if (problem.has_intercept()) intercept_regularizer_ = problem.regularizer(d_);
    Sum total;
    R_ = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
        double &norm = norms_[at(i)];
        norm = std::sqrt(problem.importance(i) * (norm + column_ * column_));
        R_ = std::max(R_, norm);
        total.add(norm);
    }
    if (R_ == 0) R_ = 1; // no row has an entry: any step is right
    Rbar_ = total.value() > 0 ? total.value() / static_cast<double>(n_) : 1;
    ratio_ = estimated_ratio(0, 0);
    if (options_.perturbation) {
        delta_y_ = problem.loss().gamma() > 0 ? 0 : *options_.perturbation;
        delta_x_ = problem.is_strongly_convex() ? 0 : *options_.perturbation;
    }
    set_steps();
    // without any lambda there is no kappa to take alpha from: theorem 2's two terms share evenly
    const bool has_kappa = problem.strong_convexity() > 0;
    alpha_ = options_.alpha.value_or(
        has_kappa ? best_alpha(static_cast<double>(n_), static_cast<double>(m_), Rbar_, gamma_, lambda_) : 0.5);
    sampler_.emplace(options_.sampling, n_, m_, context.seed, norms_, alpha_);
    if (m_ == 1) {
        for (std::int64_t &k : upcoming_) sampler_->draw({&k, 1});
    }
    set_steps(); // weighted sampling's steps need its probabilities
    if (distance == DualDistance::conjugate) start_at_gradients();
}

void SpdcMethod::start_at_gradients() {
    zbar_.assign(y_.size(), 0.0);
    for (std::size_t i = 0; i < y_.size(); ++i) y_[i] = problem_.loss().derivative(0, problem_.targets()[i]);
    std::vector<double> u(w_.size());
    problem_.combine(y_, u);
    for (std::size_t j = 0; j < u.size(); ++j) w_[j].u = u[j]; // a penalised intercept's column is 1
    owed_ = n_;
}

void SpdcMethod::start(std::span<const double> x, std::span<const double> y) {
    if (!zbar_.empty()) return; // its duals are slopes at averages that a point does not tell
    std::vector<double> u(x.size());
    problem_.combine(y, u);
    y_.assign(y.begin(), y.end());
    for (std::size_t j = 0; j < x.size(); ++j) {
        const double unit = j == at(d_) ? column_ : 1; // of the intercept's column
        w_[j].x = w_[j].x_previous = x[j] / unit;
        w_[j].u = u[j] * unit;
    }
}

// Where Assumption 1 fails, the theorems leave the ratio gamma/lambda of the steps open. With lambda known, gamma = 0.05 R
// sqrt(s / (lambda n)), s the ratio of the loss's scales of z and y, was within a factor of 5 of the best on text. With lambda
// unknown the ratio of the squared sizes of x and y is what balances theorem 1's Lyapunov function; sparse solutions, for which
// lambda is 0, want some 20 times that. Both are seeds for RatioSearch.
double SpdcMethod::estimated_ratio(double x2, double y2) const {
    const double n = static_cast<double>(n_);
    const double start = problem_.has_intercept() ? w_.back().x * column_ : 0.0;
    double loss = 0, slopes = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
        const double b = problem_.targets()[at(i)];
        const double slope = problem_.loss().derivative(start, b);
        loss += problem_.importance(i) * std::fabs(problem_.loss().value(start, b)) / n;
        slopes += problem_.importance(i) * slope * slope / n;
    }
    slopes = std::max(slopes, 1e-12);
    const double scale = std::max(loss / slopes, 1e-12); // of z over that of y
    const double lambda = problem_.strong_convexity();
    if (lambda > 0) return 0.05 * R_ * std::sqrt(scale / (lambda * n)) / lambda;
    return 20 * (x2 > 0 && y2 > 0 ? x2 / y2 : scale * scale / (R_ * R_));
}

void SpdcMethod::set_steps() {
    const double gamma = problem_.loss().gamma(), lambda = problem_.strong_convexity();
    const double n = static_cast<double>(n_), m = static_cast<double>(m_);
    gamma_ = gamma > 0 ? gamma : (lambda > 0 ? ratio_ * lambda : ratio_);
    lambda_ = lambda > 0 ? lambda : gamma_ / ratio_;
    if (options_.perturbation &&
        *options_.perturbation > 0) { // corollary 3: gamma = lambda = delta where they are missing
        if (gamma == 0) gamma_ = *options_.perturbation;
        if (lambda == 0) lambda_ = *options_.perturbation;
    }
    double slowest = n / m, Rq = 0;
    if (sampler_ && sampler_->is_weighted()) {
        slowest = 0;
        for (std::int64_t k = 0; k < n_; ++k) {
            slowest = std::max(slowest, 1 / sampler_->probability(k));
            Rq = std::max(Rq, m * norms_[at(k)] / (n * sampler_->probability(k)));
        }
    }
    if (Rq > 0 && m_ == 1) {
        steps_ = theorem2_steps(n, alpha_, Rbar_, gamma_, lambda_, options_.step_scale);
    } else if (Rq > 0) {
        steps_ = weighted_batch_steps(n, m, Rq, slowest, gamma_, lambda_, options_.step_scale);
    } else {
        steps_ = theorem1_steps(n, m, R_, gamma_, lambda_, options_.step_scale);
    }
    if (gamma == 0 || !problem_.is_strongly_convex()) {
        steps_.theta = theta_for(slowest, n, m, steps_.tau, steps_.sigma, gamma > 0 ? gamma : delta_y_,
                                 problem_.is_strongly_convex() ? lambda : delta_x_);
    }
    steps_.tau = options_.tau.value_or(steps_.tau);
    steps_.sigma = options_.sigma.value_or(steps_.sigma);
    steps_.theta = options_.theta.value_or(steps_.theta);
    step_ = make_step(problem_.regularizer(), problem_.penalty_factors(), steps_.tau, delta_x_);
}

double RatioSearch::next(double passes, double gap, double ratio, double balanced) {
    const bool first = start_gap_ == infinity;
    if (!first && passes - start_passes_ < window_) return ratio;
    const double rate = first ? 0 : std::log(start_gap_ / gap) / (passes - start_passes_);
    start_passes_ = passes;
    start_gap_ = gap;
    if (first) return ratio;
    if (!trying_ || rate > 1.1 * centre_rate_) { // a centre measured, or a better one found: try the next beyond it
        centre_ = ratio;
        centre_rate_ = rate;
        trying_ = true;
        failures_ = 0;
        return centre_ * std::pow(factor_, direction_);
    }
    direction_ = -direction_;
    if (++failures_ < 2) return centre_ * std::pow(factor_, direction_);
    trying_ = false; // neither side is better: look again after a longer while
    const bool is_lost = centre_rate_ * window_ < 0.5 && balanced > 0;
    window_ *= is_lost ? 2 : 3;
    factor_ = is_lost ? 4 : 2;
    return is_lost ? std::sqrt(centre_ * balanced) : centre_;
}

// Section 3 without its constants. The perturbation starts at gap/(4 C_1), C_1 = |x|^2 + G^2 taken at the current point, stays
// below that, and at least halves at every certification, so that it cannot hold the gap up.
void SpdcMethod::certified(const Found &found) {
    const bool smooth = problem_.loss().gamma() > 0, strongly_convex = problem_.is_strongly_convex();
    if ((smooth && strongly_convex) || options_.perturbation) return;
    const Certificate &now = found.certificate;
    const double balanced = balanced_ratio();
    if (!strongly_convex) restart(now.gap);
    double x2 = 0, y2 = 0, best_x2 = 0;
    for (std::int64_t j = 0; j < d_; ++j) {
        x2 += w_[at(j)].x * w_[at(j)].x;
        best_x2 += found.x[at(j)] * found.x[at(j)];
    }
    if (best_x2 > 0) x2 = std::min(x2, 30 * best_x2); // an overshooting x must not ask for still longer steps
    for (std::int64_t i = 0; i < n_; ++i)
        y2 += problem_.importance(i) * y_[at(i)] * y_[at(i)] / static_cast<double>(n_);
    const double lipschitz = problem_.loss().lipschitz();
    const auto shrink = [](double delta, double limit) { return 0.5 * (delta > 0 ? std::min(delta, limit) : limit); };
    if (!smooth && lipschitz < infinity) delta_y_ = shrink(delta_y_, now.gap / (4 * lipschitz * lipschitz));
    if (!strongly_convex && x2 > 0) delta_x_ = shrink(delta_x_, now.gap / (4 * x2));
    if (!smooth || problem_.strong_convexity() == 0) {
        // while the gap is of the size of the objective its decay says nothing about the steps: trust the estimate
        const bool blind = now.relative_gap > 0.2 && passes() < 200;
        ratio_ =
            blind ? std::sqrt(ratio_ * estimated_ratio(x2, y2)) : search_.next(passes(), now.gap, ratio_, balanced);
        // a loss that is smooth near the best point has a gamma there, which theorem 1 would not exceed
        const double curvature = largest_curvature(problem_, found.predictions);
        if (!smooth && curvature > 0 && problem_.strong_convexity() > 0) {
            ratio_ = std::min(ratio_, 1 / (curvature * problem_.strong_convexity()));
        }
    }
    set_steps();
}

// Where g is not strongly convex the iterates circle round the optimum, and their average cuts across the circle. Iterate and
// average are offered to the certifier by turns, and one that takes the gap down far enough is the next start; an average that
// has grown long without that forgets its past (Applegate, Hinder, Lu and Lubin, "Faster first-order primal-dual methods for
// linear programming using restarts and sharpness", 2023). Without this, l1 hinge on rcv1 took twice the passes, and tiny linear
// programs stood still at gaps of 1e-2 to 1e-5. With a strongly convex g (hinge and l2) it cost 15 to 80 % more passes.
void SpdcMethod::restart(double gap) {
    const bool fell = gap < average_.last_gap;
    average_.last_gap = gap;
    const bool far = fell && gap < 0.6 * average_.start_gap;
    if (far && average_.is_offered) move_to_average();
    if (far || average_.x.empty() || passes() - average_.start_passes > 0.3 * passes() + 10) {
        average_.x.assign(w_.size(), 0.0);
        average_.y.assign(y_.size(), 0.0);
        average_.passes = 0;
        average_.start_x.resize(w_.size());
        for (std::size_t j = 0; j < w_.size(); ++j) average_.start_x[j] = w_[j].x;
        average_.start_y = y_;
        average_.start_gap = gap;
        average_.start_passes = passes();
    }
    average_.is_offered = !average_.is_offered && average_.passes > 3;
}

void SpdcMethod::move_to_average() {
    std::vector<double> x, u(w_.size());
    point(x, y_);
    problem_.combine(y_, u);
    if (column_ != 0) {
        x.back() /= column_;
        u.back() *= column_;
    }
    for (std::size_t j = 0; j < w_.size(); ++j) w_[j] = {x[j], x[j], u[j], t_};
}

void SpdcMethod::add_to_average(double passes) {
    flush();
    for (std::size_t j = 0; j < w_.size(); ++j) average_.x[j] += passes * w_[j].x;
    for (std::size_t i = 0; i < y_.size(); ++i) average_.y[i] += passes * y_[i];
    average_.passes += passes;
}

/// |x - x_start|^2 / mean (y - y_start)^2, starts at the last restart: with gamma/lambda equal to it, both parts of theorem 1's
/// Lyapunov function have as far to go. 0 where there was no restart.
double SpdcMethod::balanced_ratio() const {
    if (average_.x.empty()) return 0;
    double x2 = 0, y2 = 0;
    for (std::int64_t j = 0; j < d_; ++j) x2 += std::pow(w_[at(j)].x - average_.start_x[at(j)], 2);
    for (std::int64_t i = 0; i < n_; ++i) {
        y2 += problem_.importance(i) * std::pow(y_[at(i)] - average_.start_y[at(i)], 2) / static_cast<double>(n_);
    }
    return x2 > 0 && y2 > 0 ? x2 / y2 : 0;
}

double SpdcMethod::passes() const { return static_cast<double>(visits_) / static_cast<double>(n_); }

void SpdcMethod::advance(double passes) {
    if (average_.x.empty()) return run(passes);
    // one term of the average per pass; fewer where features outnumber entries, since a term costs all of the features
    const double entries = std::max(static_cast<double>(problem_.nonzeros()), 1.0);
    const double interval = std::max(1.0, 4 * static_cast<double>(d_) / entries);
    const double end = this->passes() + passes;
    do {
        const double start = this->passes();
        run(std::min(interval, end - start));
        add_to_average(this->passes() - start);
    } while (end - this->passes() > 1e-9);
}

void SpdcMethod::run(double passes) {
    const double iterations = std::ceil(passes * static_cast<double>(n_) / static_cast<double>(m_) - 1e-9);
    const std::int64_t count = std::max<std::int64_t>(1, static_cast<std::int64_t>(iterations));
    if (m_ == 1) {
        std::visit([&](const auto &matrix, const auto &step) { run_rows(matrix, step, count); }, problem_.matrix(),
                   step_);
    } else {
        run_batches(count);
    }
    visits_ += count * m_ + std::exchange(owed_, 0);
}

double SpdcMethod::update_dual(std::int64_t k, double z) noexcept {
    double &y = y_[at(k)];
    // weighted sampling slows down the rows that are drawn often: sigma_k = sigma m / (q_k n)
    double sigma = sampler_->is_weighted()
                       ? steps_.sigma * static_cast<double>(m_) / (sampler_->probability(k) * static_cast<double>(n_))
                       : steps_.sigma;
    double centre = y;
    if (delta_y_ > 0) { // phi* + (delta/2) b^2 is phi* with another step and centre
        centre /= 1 + sigma * delta_y_;
        sigma /= 1 + sigma * delta_y_;
    }
    const double b = problem_.targets()[at(k)];
    if (!zbar_.empty()) zbar_[at(k)] = (zbar_[at(k)] + sigma * gamma_ * z) / (1 + sigma * gamma_);
    const double next =
        zbar_.empty() ? problem_.loss().dual_prox(z, centre, sigma, b) : problem_.loss().derivative(zbar_[at(k)], b);
    const double move = problem_.importance(k) * (next - y);
    y = next;
    return move;
}

double SpdcMethod::intercept_prox(double v) const noexcept {
    // prox of g + (delta/2) x^2 from that of g; the column's size scales a penalised intercept by 1 only
    const double shrink = 1 + delta_x_ * steps_.tau;
    return intercept_regularizer_.prox(v / shrink, steps_.tau / shrink);
}

namespace {

/// The next row's coordinates and the entries of the row after it start on their way from memory: at 10^7 features nearly every
/// coordinate misses the cache (8 times the time per pass of 10^4 features without this, see bench/micro/dimension.cpp).
template <class Row> void prefetch(const Row &next, const Row &after, const Coordinate *w) noexcept {
    for (std::int64_t p = 0; p < next.size(); ++p) __builtin_prefetch(w + next.column(p), 1);
    constexpr std::int64_t entries = 16; // of 4 bytes in a cache line
    for (std::int64_t p = 0; p < after.size(); p += entries) after.prefetch(p);
}

} // namespace

template <class Matrix, class Step>
void SpdcMethod::run_rows(const Matrix &matrix, const Step &step, std::int64_t iterations) {
    const double tau = steps_.tau, theta = steps_.theta;
    Coordinate *const w = w_.data();
    for (std::int64_t s = 0; s < iterations; ++s) {
        const std::int64_t k = upcoming_[0];
        upcoming_[0] = upcoming_[1];
        sampler_->draw({&upcoming_[1], 1});
        prefetch(matrix.row(upcoming_[0]), matrix.row(upcoming_[1]), w);
        const auto row = matrix.row(k);
        const std::int64_t size = row.size();
        interruption_point(size + 16);
        double z = 0; // <a_k, xbar>
        for (std::int64_t p = 0; p < size; ++p) {
            const std::int64_t j = row.column(p);
            Coordinate &c = w[j];
            catch_up(step, j, tau, t_, c);
            z += row.value(p) * (c.x + theta * (c.x - c.x_previous));
        }
        if (column_ != 0) {
            Coordinate &c = w[d_];
            if (c.time != t_) {
                c.x_previous = c.x;
                c.x = intercept_prox(c.x - tau * c.u);
                c.time = t_;
            }
            z += column_ * (c.x + theta * (c.x - c.x_previous));
        }
        const double move = update_dual(k, z);
        touched_ += size;
        ++t_;
        if (move == 0) continue; // the update of the row's coordinates is then the one that catch_up makes
        const double to_u = move / static_cast<double>(n_);
        const double to_x = to_u / sampler_->probability(k);
        for (std::int64_t p = 0; p < size; ++p) {
            const std::int64_t j = row.column(p);
            Coordinate &c = w[j];
            const double a = row.value(p);
            c.x_previous = c.x;
            c.x = step.prox(j, c.x - tau * (c.u + to_x * a));
            c.u += to_u * a;
            c.time = t_;
        }
        if (column_ != 0) {
            Coordinate &c = w[d_];
            c.x_previous = c.x;
            c.x = intercept_prox(c.x - tau * (c.u + to_x * column_));
            c.u += to_u * column_;
            c.time = t_;
        }
    }
}

void SpdcMethod::flush() {
    std::visit(
        [&](const auto &step) {
            for (std::int64_t j = 0; j < d_; ++j) catch_up(step, j, steps_.tau, t_, w_[at(j)]);
        },
        step_);
    if (column_ == 0 || w_.back().time == t_) return;
    Coordinate &c = w_.back(); // it is in every row, so it is at most one update behind
    c.x_previous = c.x;
    c.x = intercept_prox(c.x - steps_.tau * c.u);
    c.time = t_;
}

void SpdcMethod::point(std::vector<double> &x, std::vector<double> &y) {
    flush();
    x.resize(w_.size());
    y.resize(y_.size());
    const bool average = average_.is_offered;
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = average ? average_.x[j] / average_.passes : w_[j].x;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = average ? average_.y[i] / average_.passes : y_[i];
    if (column_ != 0) x.back() *= column_;
    if (!average) return;
    // the average of numbers inside bounds may round to one outside
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = problem_.regularizer(static_cast<std::int64_t>(j)).prox(x[j], 0);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = problem_.loss().domain(problem_.targets()[i]).clip(y[i]);
}

std::unique_ptr<Method> make_method(const Problem &problem, const Spdc &options, const SolveContext &context) {
    return std::make_unique<SpdcMethod>(problem, options, context);
}

} // namespace spdc
