#include "gram_descent.h"

#include <algorithm>
#include <numeric>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

template <class Value> void GramDescent<Value>::forget() {
    for (const std::int32_t j : list_) place_[at(j)] = absent;
    list_.clear();
    diagonal_.clear();
}

template <class Value>
bool GramDescent<Value>::include(std::span<const std::int32_t> features, const Curvatures &h, std::size_t rows,
                                 std::int64_t worth) {
    const std::size_t first = list_.size();
    for (const std::int32_t j : features) {
        if (place_[at(j)] != absent) continue;
        place_[at(j)] = static_cast<std::int32_t>(list_.size());
        list_.push_back(j);
    }
    if (list_.size() == first) return true;
    bool pays = list_.size() <= most_features;
    if (pays) {
        collect_rows(rows);
        pays = cost_of_growth(first, rows) <= worth;
    }
    if (pays) {
        grow(first, h);
    } else {
        for (std::size_t k = first; k < list_.size(); ++k) place_[at(list_[k])] = absent;
        list_.resize(first);
    }
    return pays;
}

template <class Value> void GramDescent<Value>::collect_rows(std::size_t rows) {
    offsets_.assign(rows + 1, 0);
    for (const std::int32_t j : list_) {
        const auto column = columns_.column(j);
        for (std::int64_t p = 0; p < column.size(); ++p) ++offsets_[at(column.column(p)) + 1];
    }
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    entries_.resize(at(offsets_.back()));
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const auto column = columns_.column(list_[k]);
        for (std::int64_t p = 0; p < column.size(); ++p) {
            entries_[at(next[at(column.column(p))]++)] = {static_cast<std::int32_t>(k), column.value(p)};
        }
    }
    touched_ += 2 * offsets_.back();
}

/// Products that the columns from place `first` on need.
template <class Value> std::int64_t GramDescent<Value>::cost_of_growth(std::size_t first, std::size_t rows) const {
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        std::int64_t p = offsets_[i + 1];
        while (p > offsets_[i] && entries_[at(p - 1)].place >= static_cast<std::int32_t>(first)) --p;
        const std::int64_t added = offsets_[i + 1] - p, kept = p - offsets_[i];
        cost += added * kept + added * (added + 1) / 2;
    }
    return cost;
}

template <class Value> void GramDescent<Value>::grow(std::size_t first, const Curvatures &h) {
    const std::size_t count = list_.size();
    if (count > stride_) {
        const std::size_t stride = std::max(count, std::min(2 * stride_, most_features));
        std::vector<double> larger(stride * stride);
        for (std::size_t k = 0; k < first; ++k) {
            std::copy_n(gram_.data() + k * stride_, first, larger.data() + k * stride);
        }
        gram_.swap(larger);
        stride_ = stride;
    }
    diagonal_.resize(count);
    for (std::size_t k = first; k < count; ++k) {
        double *const row = gram_.data() + k * stride_;
        std::fill_n(row, count, 0.0);
        const auto column = columns_.column(list_[k]);
        const auto last = static_cast<std::int32_t>(k);
        for (std::int64_t p = 0; p < column.size(); ++p) {
            const std::size_t i = at(column.column(p));
            const double a = column.value(p) * h[i];
            for (const RowEntry *e = entries_.data() + offsets_[i]; e->place < last; ++e) row[e->place] += a * e->value;
            row[k] += a * column.value(p);
        }
        for (std::size_t m = 0; m < k; ++m) gram_[m * stride_ + k] = row[m];
        diagonal_[k] = row[k];
    }
    touched_ += cost_of_growth(first, offsets_.size() - 1) / 2;
}

template <class Value>
void GramDescent<Value>::minimize(std::vector<double> &x, std::vector<double> &r, const Curvatures &h,
                                  const SweepResult &target) {
    x_.resize(list_.size());
    q_.resize(list_.size());
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const auto column = columns_.column(list_[k]);
        x_[k] = x[at(list_[k])];
        q_[k] = dot(column, r.data());
        touched_ += column.size();
    }
    remembered_ = 0;
    remember();
    constexpr int most_sweeps = 500;
    for (int count = 0; count < most_sweeps && !sweep().within(target); ++count) {
        remember();
        if (remembered_ > anderson_memory) extrapolate();
    }
    std::vector<double> &dz = q_; // no longer needed
    dz.assign(r.size(), 0.0);
    for (std::size_t k = 0; k < list_.size(); ++k) {
        double &value = x[at(list_[k])];
        if (x_[k] == value) continue;
        const auto column = columns_.column(list_[k]);
        axpy(x_[k] - value, column, dz.data());
        touched_ += column.size();
        value = x_[k];
    }
    for (std::size_t i = 0; i < r.size(); ++i) r[i] += h[i] * dz[i];
}

template <class Value> SweepResult GramDescent<Value>::sweep() noexcept {
    SweepResult result;
    const std::size_t count = list_.size();
    double *const q = q_.data();
    for (std::size_t k = 0; k < count; ++k) {
        if (diagonal_[k] == 0) continue; // an empty column
        const double after = coordinate_step(penalties_[list_[k]], x_[k], q[k], diagonal_[k], result);
        const double move = after - x_[k];
        if (move == 0) continue;
        x_[k] = after;
        const double *const row = gram_.data() + k * stride_;
        for (std::size_t m = 0; m < count; ++m) q[m] += move * row[m];
        touched_ += static_cast<std::int64_t>(count) / 8;
    }
    return result;
}

template <class Value> void GramDescent<Value>::remember() {
    past_x_[remembered_] = x_;
    past_q_[remembered_++] = q_;
}

// q is affine in x, so the same weights give q at the new point, and the model's change is the move times the mean of q.
template <class Value> void GramDescent<Value>::extrapolate() {
    const auto weights = anderson_weights(past_x_, diagonal_);
    std::vector<double> &x = past_x_[0], &q = past_q_[0];
    double change = 0;
    bool is_inside = weights.has_value();
    for (std::size_t k = 0; is_inside && k < x.size(); ++k) {
        x[k] = q[k] = 0;
        for (std::size_t m = 0; m < anderson_memory; ++m) {
            x[k] += (*weights)[m] * past_x_[m + 1][k];
            q[k] += (*weights)[m] * past_q_[m + 1][k];
        }
        const Box g = penalties_[list_[k]];
        is_inside = g.bounds.contains(x[k]);
        change += g.value(x[k]) - g.value(x_[k]) + 0.5 * (x[k] - x_[k]) * (q[k] + q_[k]);
    }
    if (is_inside && change < 0) {
        x_ = x;
        q_ = q;
    }
    remembered_ = 0;
    remember();
}

template class GramDescent<float>;
template class GramDescent<double>;

} // namespace spdc
