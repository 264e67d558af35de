// Mini-batch SPDC: Algorithm 2 of Zhang and Xiao (2015), and its weighted form, which the paper leaves out.
//
//   K      m distinct rows; row k is in K with probability q_k (m/n, or one row from each of m weighted groups)
//   y_k    <- argmax_b  b <a_k, xbar> - phi_k*(b) - (q_k n / 2 sigma m)(b - y_k)^2    for every k in K, from the same xbar
//   x      <- prox_{tau g}( x - tau (u + sum_K delta_k a_k / (q_k n)) );   u <- u + (1/n) sum_K delta_k a_k
//
// A team of threads runs an iteration in two phases. Rows: each thread takes a share of the batch, reads x and moves its y_k.
// Columns: each thread owns a range of columns and walks the whole batch for them in the batch's order. Every sum has one
// owner and one order, so the bits do not depend on the number of threads. Cost: the non-zeros of the batch.
#include "spdc.h"

#include "parallel.h"

#include <algorithm>

namespace spdc {

namespace {

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

void SpdcMethod::run_batches(std::int64_t iterations) {
    std::visit([&](const auto &matrix, const auto &step) { run_batches(matrix, step, iterations); }, problem_.matrix(),
               step_);
}

} // namespace spdc
