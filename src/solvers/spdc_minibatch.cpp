// Mini-batch SPDC: Algorithm 2 of Zhang and Xiao (2015), and its weighted form, which the paper leaves out.
//
//   K      m distinct rows; row k is in K with probability q_k (m/n, or one row from each of m weighted groups)
//   y_k    <- argmax_b  b <a_k, xbar> - phi_k*(b) - (q_k n / 2 sigma m)(b - y_k)^2    for every k in K, from the same xbar
//   x      <- prox_{tau g}( x - tau (u + sum_K delta_k a_k / (q_k n)) );   u <- u + (1/n) sum_K delta_k a_k
//
// A team of threads runs an iteration in two phases. Rows: each thread takes a share of the batch, reads x and moves its y_k.
// Columns: each thread owns a range of columns and updates them. Every sum has one owner and one order, so the bits do not
// depend on the number of threads. With many features a thread walks the whole batch for its columns; cost: the non-zeros of
// the batch. With few, the rows' phase adds up its part of the batch in `parts` dense vectors, all coordinates are up to date
// all the time, and the columns' phase is a sum over the parts; cost: the non-zeros of the batch and parts times d.
#include "spdc.h"

#include "parallel.h"

#include <algorithm>

namespace spdc {

namespace {

constexpr std::int64_t parts =
    8; // of a batch, the same for any number of threads; more would cost more exchange between cores

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// <a, xbar> without writing: other threads read the same coordinates.
template <class Row, class Step>
double dot_extrapolated(const Row &row, const Step &step, const Coordinate *w, double tau, double theta,
                        std::int64_t t) noexcept {
    double z = 0;
    for (std::int64_t p = 0; p < row.size(); ++p) {
        const std::int64_t j = row.column(p);
        Coordinate c = w[j];
        catch_up(step, j, tau, t, c);
        z += row.value(p) * (c.x + theta * (c.x - c.x_previous));
    }
    return z;
}

} // namespace

/// Column ranges of about equal numbers of entries, one per thread.
template <class Matrix> std::vector<std::int64_t> SpdcMethod::column_shares(const Matrix &matrix) const {
    std::vector<std::int64_t> shares(at(threads_) + 1, d_);
    shares.front() = 0;
    if (threads_ == 1) return shares;
    std::vector<std::int64_t> counts(at(d_), 0);
    for (std::int64_t i = 0; i < n_; ++i) {
        const auto row = matrix.row(i);
        for (std::int64_t p = 0; p < row.size(); ++p) ++counts[at(row.column(p))];
    }
    const std::int64_t total = matrix.nonzeros();
    std::int64_t seen = 0;
    int share = 1;
    for (std::int64_t j = 0; j < d_ && share < threads_; ++j) {
        seen += counts[at(j)];
        while (share < threads_ && seen * threads_ >= total * share) shares[at(share++)] = j + 1;
    }
    return shares;
}

template <class Matrix, class Step>
void SpdcMethod::run_batches(const Matrix &matrix, const Step &step, std::int64_t iterations) {
    const double tau = steps_.tau, theta = steps_.theta, n = static_cast<double>(n_);
    if (column_shares_.empty()) column_shares_ = column_shares(matrix);
    std::vector<std::int64_t> batches(at(iterations * m_));
    for (std::int64_t s = 0; s < iterations; ++s) sampler_->draw(std::span(batches).subspan(at(s * m_), at(m_)));
    increments_.resize(at(d_));
    Increment *const increments = increments_.data();
    std::vector<double> moves(at(m_));
    SpinBarrier barrier(threads_);
    std::vector<std::int64_t> touched(at(threads_), 0);

    run_team(threads_, [&](int thread) {
        Coordinate *const w = w_.data();
        const std::int64_t begin = m_ * thread / threads_, end = m_ * (thread + 1) / threads_;
        const std::int64_t first = column_shares_[at(thread)], last = column_shares_[at(thread) + 1];
        std::vector<std::int64_t> pending; // my columns that this batch has reached
        std::int64_t t = t_, count = 0;
        for (std::int64_t s = 0; s < iterations; ++s, ++t) {
            const std::int64_t *const batch = batches.data() + s * m_;
            for (std::int64_t p = begin; p < end; ++p) {
                double z = dot_extrapolated(matrix.row(batch[p]), step, w, tau, theta, t);
                if (column_ != 0) {
                    const Coordinate &c = w[d_];
                    z += column_ * (c.x + theta * (c.x - c.x_previous));
                }
                moves[at(p)] = update_dual(batch[p], z);
            }
            barrier.wait();
            for (std::int64_t b = 0; b < m_; ++b) {
                const auto row = matrix.row(batch[b]);
                const double to_u = moves[at(b)] / n, to_x = to_u / sampler_->probability(batch[b]);
                const std::int64_t stop = last == d_ ? row.size() : row.lower_bound(last);
                for (std::int64_t p = row.lower_bound(first); p < stop; ++p, ++count) {
                    const std::int64_t j = row.column(p);
                    if (w[j].time != t + 1) {
                        catch_up(step, j, tau, t, w[j]);
                        w[j].time = t + 1; // reached: finished below
                        pending.push_back(j);
                    }
                    increments[j].to_x += to_x * row.value(p);
                    increments[j].to_u += to_u * row.value(p);
                }
            }
            for (const std::int64_t j : pending) {
                Coordinate &c = w[j];
                c.x_previous = c.x;
                c.x = step.prox(j, c.x - tau * (c.u + increments[j].to_x));
                c.u += increments[j].to_u;
                increments[j] = {};
            }
            pending.clear();
            if (thread == 0 && column_ != 0) {
                Increment sum;
                for (std::int64_t b = 0; b < m_; ++b) {
                    const double to_u = moves[at(b)] / n * column_;
                    sum.to_u += to_u;
                    sum.to_x += to_u / sampler_->probability(batch[b]);
                }
                Coordinate &c = w[d_];
                c.x_previous = c.x;
                c.x = intercept_prox(c.x - tau * (c.u + sum.to_x));
                c.u += sum.to_u;
                c.time = t + 1;
            }
            barrier.wait();
        }
        touched[at(thread)] = count;
    });
    t_ += iterations;
    for (const std::int64_t count : touched) touched_ += count;
}

/// Rows come from all over memory: ask for a few of them ahead.
template <class Matrix> void SpdcMethod::prefetch_row(const Matrix &matrix, std::int64_t k) const noexcept {
    const auto row = matrix.row(k);
    for (std::int64_t p = 0; p < std::min<std::int64_t>(row.size(), 64); p += 16) row.prefetch(p);
    __builtin_prefetch(&y_[at(k)], 1);
    __builtin_prefetch(&problem_.targets()[at(k)]);
}

/// The rows' phase of one part of a batch: duals move, and `sums` gets what they add to u in every coordinate, followed by what
/// they add to the step in x where that is not a multiple of it (weighted sampling). `after` are the rows this thread reads
/// next. Returns how many entries it read.
template <class Matrix>
std::int64_t SpdcMethod::run_part(const Matrix &matrix, std::span<const std::int64_t> part,
                                  std::span<const std::int64_t> after, const std::vector<double> &xbar,
                                  std::vector<double> &sums) noexcept {
    constexpr std::size_t ahead = 8;
    double *const to_u = sums.data(), *const to_x = sums.data() + w_.size();
    std::int64_t entries = 0;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t p = 0; p < part.size(); ++p) {
        if (p + ahead < part.size()) {
            prefetch_row(matrix, part[p + ahead]);
        } else if (p + ahead - part.size() < after.size()) {
            prefetch_row(matrix, after[p + ahead - part.size()]);
        }
        const auto row = matrix.row(part[p]);
        entries += row.size();
        double z = column_ != 0 ? column_ * xbar[at(d_)] : 0;
        for (std::int64_t q = 0; q < row.size(); ++q) z += row.value(q) * xbar[at(row.column(q))];
        const double move = update_dual(part[p], z) / static_cast<double>(n_);
        if (move == 0) continue;
        for (std::int64_t q = 0; q < row.size(); ++q) to_u[row.column(q)] += move * row.value(q);
        if (column_ != 0) to_u[d_] += move * column_;
        if (!sampler_->is_weighted()) continue;
        const double raised = move / sampler_->probability(part[p]);
        for (std::int64_t q = 0; q < row.size(); ++q) to_x[row.column(q)] += raised * row.value(q);
        if (column_ != 0) to_x[d_] += raised * column_;
    }
    return entries;
}

/// The columns' phase for one coordinate: the parts' sums in their order, then the primal step.
template <class Step>
double SpdcMethod::finish_column(const Step &step, std::int64_t j,
                                 const std::vector<std::vector<double>> &sums) noexcept {
    double to_u = 0, to_x = 0;
    for (const std::vector<double> &part : sums) to_u += part[at(j)];
    if (sampler_->is_weighted()) {
        for (const std::vector<double> &part : sums) to_x += part[w_.size() + at(j)];
    } else {
        to_x = to_u / sampler_->probability(0); // the same for all rows
    }
    Coordinate &c = w_[at(j)];
    c.x_previous = c.x;
    const double v = c.x - steps_.tau * (c.u + to_x);
    c.x = j == d_ ? intercept_prox(v) : step.prox(j, v);
    c.u += to_u;
    return c.x + steps_.theta * (c.x - c.x_previous);
}

template <class Matrix, class Step>
void SpdcMethod::run_dense_batches(const Matrix &matrix, const Step &step, std::int64_t iterations) {
    const auto dimension = static_cast<std::int64_t>(w_.size());
    flush();
    std::vector<double> xbar(w_.size());
    for (std::size_t j = 0; j < w_.size(); ++j) xbar[j] = w_[j].x + steps_.theta * (w_[j].x - w_[j].x_previous);
    const std::size_t length = (sampler_->is_weighted() ? 2 : 1) * w_.size();
    std::vector<std::vector<double>> sums(at(parts), std::vector<double>(length));
    std::vector<std::int64_t> batches(at(iterations * m_)), touched(at(threads_), 0);
    for (std::int64_t s = 0; s < iterations; ++s) sampler_->draw(std::span(batches).subspan(at(s * m_), at(m_)));
    SpinBarrier barrier(threads_);
    run_team(threads_, [&](int thread) {
        const std::int64_t first = dimension * thread / threads_, last = dimension * (thread + 1) / threads_;
        const std::int64_t first_part = parts * thread / threads_, last_part = parts * (thread + 1) / threads_;
        const auto rows_of = [&](std::int64_t s, std::int64_t part) { // empty beyond the last iteration
            if (s == iterations) return std::span<const std::int64_t>();
            const std::int64_t begin = m_ * part / parts, end = m_ * (part + 1) / parts;
            return std::span<const std::int64_t>(batches).subspan(at(s * m_ + begin), at(end - begin));
        };
        std::int64_t entries = 0;
        for (std::int64_t s = 0; s < iterations; ++s) {
            for (std::int64_t part = first_part; part < last_part; ++part) {
                const auto after = part + 1 < last_part ? rows_of(s, part + 1) : rows_of(s + 1, first_part);
                entries += run_part(matrix, rows_of(s, part), after, xbar, sums[at(part)]);
            }
            barrier.wait();
            for (std::int64_t j = first; j < last; ++j) xbar[at(j)] = finish_column(step, j, sums);
            barrier.wait();
        }
        touched[at(thread)] = entries;
    });
    t_ += iterations;
    for (Coordinate &c : w_) c.time = t_;
    for (const std::int64_t count : touched) touched_ += count;
}

void SpdcMethod::run_batches(std::int64_t iterations) {
    const bool few_features = problem_.dimension() * parts * n_ <= m_ * problem_.nonzeros();
    std::visit(
        [&](const auto &matrix, const auto &step) {
            if (few_features) {
                run_dense_batches(matrix, step, iterations);
            } else {
                run_batches(matrix, step, iterations);
            }
        },
        problem_.matrix(), step_);
}

} // namespace spdc
