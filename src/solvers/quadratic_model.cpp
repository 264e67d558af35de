#include "quadratic_model.h"

#include "parallel.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr double unknown = -1;  // a curvature not yet computed
constexpr int most_sweeps = 12; // then look whether others want to move, and whether a Gram matrix pays by now

/// Whether a sweep costs less through a Gram matrix than in the columns. Its rows are read in one stream, not scattered and twice:
/// measured on text and dense data, eight times as fast while it stays in the cache. A larger one breaks even where it has as
/// many entries as the columns.
bool is_cheaper_by_gram(std::size_t features, std::int64_t entries) {
    constexpr std::size_t in_cache = 400; // 1.3 MB
    return features * features <= (features <= in_cache ? 16 : 1) * at(entries);
}

} // namespace

template <class Value>
QuadraticModel<Value>::QuadraticModel(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows)
    : columns_(columns), penalties_(penalties), gram_(columns, penalties, rows), face_(columns, penalties),
      r_(at(rows)), curvature_(at(columns.columns()), unknown) {}

template <class Value> void QuadraticModel<Value>::reset(std::int64_t sweeps_for_gram) {
    sweeps_for_gram_ = sweeps_for_gram;
    start_ = touched();
    std::fill(curvature_.begin(), curvature_.end(), unknown);
    gram_.forget();
}

template <class Value>
SweepResult QuadraticModel<Value>::minimize(std::span<const std::int32_t> set, std::vector<double> &x,
                                            std::vector<double> &u, SweepResult target, double reduction,
                                            std::int64_t budget) {
    const std::int64_t end = touched() + budget;
    // what will move: not 0, or not to stay there
    collect(set, [&](std::int32_t j) { return x[at(j)] != 0 || slack(zero_range(penalties_[j]), -u[at(j)]) < 0; });
    gram_.tidy(active_);
    if (is_cheaper_by_gram(active_.size(), active_entries_) &&
        gram_.include(active_, h_, 2 * sweeps_for_gram_ * active_entries_)) {
        const SweepResult first = minimize_with_gram(set, x, u, target, reduction);
        used_gram_ = reached_;
        if (reached_) return first;
    }
    used_gram_ = false;
    const SweepResult first = sweep(set, x);
    target.widen(first, reduction);
    reached_ = first.within(target);
    while (!reached_ && touched() < end) {
        collect(set, [&](std::int32_t j) { return x[at(j)] != 0; });
        if (face_.is_stopped() && (in_order_ = !in_order_)) {
            sweep_in_order(x, target, end);
        } else if (sweep_active(x, target, end))
            face_.descend(active_, curvature_, h_, target, end - touched(), x, r_);
        reached_ = sweep(set, x).within(target);
        collect(set, [&](std::int32_t j) { return x[at(j)] != 0; }); // the sweep may have moved others
        // what sweeps have cost since the curvatures changed is what a Gram matrix may cost
        if (reached_ || !is_cheaper_by_gram(active_.size(), active_entries_)) continue;
        if (!gram_.include(active_, h_, touched() - start_)) continue;
        for (const std::int32_t j : set) {
            interruption_point(columns_.column(j).size());
            u[at(j)] = dot(columns_.column(j), r_.data());
        }
        minimize_with_gram(set, x, u, target, 0);
    }
    return first;
}

template <class Value>
template <class Moves>
void QuadraticModel<Value>::collect(std::span<const std::int32_t> set, const Moves &moves) {
    active_.clear();
    active_entries_ = 0;
    for (const std::int32_t j : set) {
        if (!moves(j)) continue;
        active_.push_back(j);
        active_entries_ += columns_.column(j).size();
    }
}

template <class Value>
SweepResult QuadraticModel<Value>::minimize_with_gram(std::span<const std::int32_t> set, std::vector<double> &x,
                                                      std::vector<double> &u, SweepResult &target, double reduction) {
    start_r_ = r_;
    dz_.assign(r_.size(), 0.0);
    gram_.start(set, x, u);
    const SweepResult first = gram_.minimize(target, reduction);
    while (true) {
        gram_.finish(x, dz_);
        for (std::size_t i = 0; i < r_.size(); ++i) r_[i] = start_r_[i] + h_[i] * dz_[i];
        newcomers_.clear();
        std::int64_t entries = 0;
        for (const std::int32_t j : set) {
            if (gram_.has(j)) continue;
            const auto column = columns_.column(j);
            interruption_point(column.size());
            u[at(j)] = dot(column, r_.data());
            touched_ += column.size();
            const Box g = penalties_[j];
            if (slack(zero_range(g), -u[at(j)]) >= -target.violation * g.l1) continue;
            newcomers_.push_back(j);
            entries += column.size();
        }
        reached_ = newcomers_.empty();
        active_entries_ += entries;
        if (reached_ || !gram_.include(newcomers_, h_, 2 * sweeps_for_gram_ * active_entries_)) return first;
        gram_.join(newcomers_, x, u);
        gram_.minimize(target, 0);
    }
}

/// Sweeps over the active coordinates; true when they have settled which of them are 0, and on which side of it the others are, but creep
/// towards where. The order is new each time: where columns are alike (none of their entries negative, for one) one and the same order takes ten times as
/// many sweeps (Lee and Wright, 2019).
template <class Value>
bool QuadraticModel<Value>::sweep_active(std::vector<double> &x, const SweepResult &target, std::int64_t end) {
    double before = 0;
    for (int count = 0; count < most_sweeps && touched() < end; ++count) {
        random_.shuffle(active_);
        const SweepResult found = sweep(active_, x);
        if (found.within(target)) return false;
        if (found.crossings == 0 && count > 0 && found.decrease > 0.5 * before) return true;
        before = found.decrease;
    }
    return false;
}

/// Where the face changes all the time: sweeps in one and the same order, which extrapolation speeds up.
template <class Value>
void QuadraticModel<Value>::sweep_in_order(std::vector<double> &x, const SweepResult &target, std::int64_t end) {
    remembered_ = 0;
    remember(x);
    for (int count = 0; count < most_sweeps && touched() < end && !sweep(active_, x).within(target); ++count) {
        remember(x);
        if (remembered_ > memory) extrapolate(x);
    }
}

template <class Value>
SweepResult QuadraticModel<Value>::sweep(std::span<const std::int32_t> list, std::vector<double> &x) {
    return h_.are_same() ? sweep_rows<true>(list, x) : sweep_rows<false>(list, x);
}

template <class Value> double QuadraticModel<Value>::curvature(const CsrRow<Value> &column) const noexcept {
    if (h_.are_same()) return h_.same * squared_norm(column);
    double sum = 0;
    for (std::int64_t p = 0; p < column.size(); ++p) {
        sum += column.value(p) * column.value(p) * h_.rows[at(column.column(p))];
    }
    return sum;
}

template <class Value>
template <bool same>
SweepResult QuadraticModel<Value>::sweep_rows(std::span<const std::int32_t> list, std::vector<double> &x) {
    SweepResult result;
    double *const r = r_.data();
    const double *const h = h_.rows.data();
    for (const std::int32_t j : list) {
        const auto column = columns_.column(j);
        interruption_point(2 * column.size());
        double &c = curvature_[at(j)];
        if (c == unknown) c = curvature(column);
        if (c == 0) continue; // an empty column
        touched_ += column.size();
        const double before = x[at(j)];
        const Box g = penalties_[j];
        const double after = coordinate_step(g, penalties_.unit(g), before, dot(column, r), c, result);
        if (after == before) continue;
        x[at(j)] = after;
        touched_ += column.size();
        const double move = after - before;
        if constexpr (same) {
            axpy(move * h_.same, column, r);
        } else {
            for (std::int64_t p = 0; p < column.size(); ++p) {
                const std::int32_t i = column.column(p);
                r[i] += move * column.value(p) * h[i];
            }
        }
    }
    return result;
}

template <class Value> void QuadraticModel<Value>::remember(const std::vector<double> &x) {
    std::vector<double> &values = past_[remembered_++];
    values.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) values[k] = x[at(active_[k])];
}

template <class Value> void QuadraticModel<Value>::extrapolate(std::vector<double> &x) {
    scale_.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) scale_[k] = curvature_[at(active_[k])];
    const auto weights = anderson_weights(past_, scale_);
    remembered_ = 0;
    if (!weights) return remember(x);
    // the model's change along the move: linear part, quadratic part, penalties
    dz_.assign(r_.size(), 0.0);
    double change = 0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        const std::int32_t j = active_[k];
        const Box g = penalties_[j];
        double sum = 0;
        for (std::size_t m = 0; m < memory; ++m) sum += (*weights)[m] * past_[m + 1][k];
        sum = g.bounds.clip(sum);
        past_[0][k] = sum;
        const double before = x[at(j)];
        change += g.value(sum) - g.value(before);
        interruption_point(columns_.column(j).size());
        if (sum != before) axpy(sum - before, columns_.column(j), dz_.data());
        touched_ += columns_.column(j).size();
    }
    for (std::size_t i = 0; i < r_.size(); ++i) change += dz_[i] * (r_[i] + 0.5 * h_[i] * dz_[i]);
    if (change < 0) {
        for (std::size_t k = 0; k < active_.size(); ++k) x[at(active_[k])] = past_[0][k];
        for (std::size_t i = 0; i < r_.size(); ++i) r_[i] += h_[i] * dz_[i];
    }
    remember(x);
}

template class QuadraticModel<float>;
template class QuadraticModel<double>;

} // namespace spdc
