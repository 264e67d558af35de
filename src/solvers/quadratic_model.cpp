#include "quadratic_model.h"

#include <Eigen/Core>
#include <Eigen/LU>

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Box as_box(const AnyRegularizer &g) {
    return std::visit(
        [](const auto &concrete) {
            const auto [l1, l2, bounds] = concrete.parts();
            return Box{l1, l2, bounds};
        },
        g.variant());
}

constexpr double unknown = -1; // a curvature not yet computed

} // namespace

Penalties::Penalties(const Problem &problem)
    : features_(problem.features()), feature_(as_box(problem.regularizer())),
      intercept_(problem.has_intercept() ? as_box(problem.regularizer(problem.features())) : Box{}),
      factors_(problem.penalty_factors()) {}

template <class Value>
QuadraticModel<Value>::QuadraticModel(const ColumnMatrix<Value> &columns, const Penalties &penalties, std::int64_t rows)
    : columns_(columns), penalties_(penalties), r_(at(rows)), curvature_(at(columns.columns()), unknown) {}

template <class Value> void QuadraticModel<Value>::start(double h) {
    if (same_h_ != h) std::fill(curvature_.begin(), curvature_.end(), unknown);
    same_h_ = h;
}

template <class Value> std::vector<double> &QuadraticModel<Value>::start_rows() {
    std::fill(curvature_.begin(), curvature_.end(), unknown);
    h_.resize(r_.size());
    same_h_ = 0;
    return h_;
}

template <class Value>
SweepResult QuadraticModel<Value>::minimize(std::span<const std::int32_t> set, std::vector<double> &x, SweepResult target,
                                            double reduction, std::int64_t budget) {
    const std::int64_t end = touched_ + budget;
    const SweepResult first = sweep(set, x);
    target.decrease = std::max(target.decrease, reduction * reduction * first.decrease);
    target.violation = std::max(target.violation, reduction * first.violation);
    reached_ = first.within(target);
    while (!reached_ && touched_ < end) {
        active_.clear();
        std::copy_if(set.begin(), set.end(), std::back_inserter(active_),
                     [&](std::int32_t j) { return x[at(j)] != 0; });
        remembered_ = 0;
        remember(x);
        while (touched_ < end && !active_.empty()) {
            const SweepResult now = sweep(active_, x);
            if (now.within(target)) break;
            remember(x);
            if (remembered_ > memory) extrapolate(x);
        }
        reached_ = sweep(set, x).within(target);
    }
    return first;
}

template <class Value>
SweepResult QuadraticModel<Value>::sweep(std::span<const std::int32_t> list, std::vector<double> &x) {
    ++sweeps_;
    return same_h_ > 0 ? sweep_rows<true>(list, x) : sweep_rows<false>(list, x);
}

template <class Value>
template <bool same>
double QuadraticModel<Value>::curvature(const CsrRow<Value> &column) const noexcept {
    double sum = 0;
    for (std::int64_t p = 0; p < column.size(); ++p) {
        const double a = column.value(p);
        sum += same ? a * a : a * a * h_[at(column.column(p))];
    }
    return same ? same_h_ * sum : sum;
}

template <class Value>
template <bool same>
SweepResult QuadraticModel<Value>::sweep_rows(std::span<const std::int32_t> list, std::vector<double> &x) {
    SweepResult result;
    for (const std::int32_t j : list) {
        const auto column = columns_.column(j);
        double &c = curvature_[at(j)];
        if (c == unknown) c = curvature<same>(column);
        if (c == 0) continue; // an empty column
        const Box g = penalties_[j];
        const double before = x[at(j)], derivative = dot(column, r_.data());
        touched_ += column.size();
        const double after = g.bounds.clip(soft_threshold(c * before - derivative, g.l1) / (c + g.l2));
        const double move = after - before;
        if (move == 0) continue;
        x[at(j)] = after;
        touched_ += column.size();
        if constexpr (same) {
            axpy(move * same_h_, column, r_.data());
        } else {
            const double *const h = h_.data();
            double *const r = r_.data();
            for (std::int64_t p = 0; p < column.size(); ++p) {
                const std::int32_t i = column.column(p);
                r[i] += move * column.value(p) * h[i];
            }
        }
        result.decrease += 0.5 * (c + g.l2) * move * move;
        if (g.l1 > 0) result.violation = std::max(result.violation, c * std::fabs(move) / g.l1);
    }
    return result;
}

template <class Value> void QuadraticModel<Value>::remember(const std::vector<double> &x) {
    std::vector<double> &values = past_[remembered_++];
    values.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) values[k] = x[at(active_[k])];
}

// The combination of the last five points whose moves, in the norm of the model's diagonal, cancel best.
template <class Value> void QuadraticModel<Value>::extrapolate(std::vector<double> &x) {
    using Matrix = Eigen::Matrix<double, memory, memory>;
    using Vector = Eigen::Matrix<double, memory, 1>;
    Matrix products = Matrix::Zero();
    for (std::size_t k = 0; k < active_.size(); ++k) {
        Vector moves;
        for (std::size_t m = 0; m < memory; ++m) moves[static_cast<Eigen::Index>(m)] = past_[m + 1][k] - past_[m][k];
        products.noalias() += curvature_[at(active_[k])] * moves * moves.transpose();
    }
    remembered_ = 0;
    products.diagonal().array() += 1e-12 * products.trace();
    Vector weights = products.partialPivLu().solve(Vector::Ones());
    weights /= weights.sum();
    if (!weights.allFinite()) return remember(x);
    // the model's change along the move: linear part, quadratic part, penalties
    move_.assign(r_.size(), 0.0);
    double change = 0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        const std::int32_t j = active_[k];
        const Box g = penalties_[j];
        double sum = 0;
        for (std::size_t m = 0; m < memory; ++m) sum += weights[static_cast<Eigen::Index>(m)] * past_[m + 1][k];
        sum = g.bounds.clip(sum);
        past_[0][k] = sum;
        const double before = x[at(j)];
        change += g.value(sum) - g.value(before);
        if (sum != before) axpy(sum - before, columns_.column(j), move_.data());
        touched_ += columns_.column(j).size();
    }
    for (std::size_t i = 0; i < r_.size(); ++i) {
        change += move_[i] * (r_[i] + 0.5 * (same_h_ > 0 ? same_h_ : h_[i]) * move_[i]);
    }
    if (change < 0) {
        for (std::size_t k = 0; k < active_.size(); ++k) x[at(active_[k])] = past_[0][k];
        for (std::size_t i = 0; i < r_.size(); ++i) r_[i] += (same_h_ > 0 ? same_h_ : h_[i]) * move_[i];
    }
    remember(x);
}

template class QuadraticModel<float>;
template class QuadraticModel<double>;

} // namespace spdc
