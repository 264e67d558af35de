#include "face_descent.h"

#include "parallel.h"

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

template <class Value>
void FaceDescent<Value>::descend(std::span<const std::int32_t> active, const std::vector<double> &curvature,
                                 const Curvatures &h, const SweepResult &target, std::int64_t budget,
                                 std::vector<double> &x, std::vector<double> &r) {
    constexpr int most_steps = 50, least_steps = 15; // fewer hardly pay for the first
    const std::int64_t end = touched_ + budget;
    if (waiting_ > 0 && --waiting_ > 0) return;
    choose(active, curvature, x, r);
    start_r_ = r;
    norm_ = 0;
    double change = 0; // of the model
    for (int count = 0; count < most_steps && (count < least_steps || touched_ < end); ++count) {
        if (is_within(target) || !step(h, r, change)) break;
    }
    waiting_ = 0;
    turn_back(h, change, r);
    if (waiting_ == 0) failures_ = 0;
    for (const Mover &m : movers_) x[at(m.j)] = std::clamp(m.at(), m.low, m.high);
}

template <class Value>
void FaceDescent<Value>::choose(std::span<const std::int32_t> active, const std::vector<double> &curvature,
                                const std::vector<double> &x, const std::vector<double> &r) {
    movers_.clear();
    for (const std::int32_t j : active) {
        const Box g = penalties_[j];
        const double value = x[at(j)], metric = curvature[at(j)] + g.l2;
        if (value == 0 || value <= g.bounds.lower || value >= g.bounds.upper || !(metric > 0)) continue;
        Mover m{j, g.l1, g.l2, g.bounds.lower, g.bounds.upper, value, metric, penalties_.unit(g)};
        if (g.l1 > 0) (value > 0 ? m.low : m.high) = 0;
        const auto column = columns_.column(j);
        interruption_point(column.size());
        touched_ += column.size();
        m.gradient = dot(column, r.data()) + g.l2 * value + std::copysign(g.l1, value);
        movers_.push_back(m);
    }
}

template <class Value> bool FaceDescent<Value>::is_within(const SweepResult &target) const noexcept {
    double violation = 0, norm = 0;
    for (const Mover &m : movers_) {
        if (m.unit > 0) violation = std::max(violation, std::fabs(m.gradient) / m.unit);
        norm += m.gradient * m.gradient / m.metric;
    }
    return violation <= 0.3 * target.violation && norm <= 0.3 * target.decrease; // a sweep is to see it, too
}

/// dz = A moves
template <class Value> template <class Move> void FaceDescent<Value>::spread(const Move &move) {
    std::fill(dz_.begin(), dz_.end(), 0.0);
    for (const Mover &m : movers_) {
        const double length = move(m);
        if (length == 0) continue;
        const auto column = columns_.column(m.j);
        interruption_point(column.size());
        touched_ += column.size();
        axpy(length, column, dz_.data());
    }
}

/// False where there is no further one.
template <class Value> bool FaceDescent<Value>::step(const Curvatures &h, std::vector<double> &r, double &change) {
    double norm = 0;
    for (const Mover &m : movers_) norm += m.gradient * m.gradient / m.metric;
    const double beta = norm_ > 0 ? norm / norm_ : 0;
    norm_ = norm;
    for (Mover &m : movers_) m.direction = beta * m.direction - m.gradient / m.metric;
    dz_.resize(r.size());
    const auto count = static_cast<std::int64_t>(r.size());
    interruption_point(count);
    touched_ += count / 2; // what the rows cost in all, in entries
    spread([](const Mover &m) { return m.direction; });
    double curvature = 0, own = 0; // along the direction; if the columns had nothing in common
    for (std::size_t i = 0; i < r.size(); ++i) dz_[i] *= h[i];
    for (Mover &m : movers_) {
        const auto column = columns_.column(m.j);
        interruption_point(column.size());
        touched_ += column.size();
        m.product = dot(column, dz_.data()) + m.l2 * m.direction;
        curvature += m.product * m.direction;
        own += m.metric * m.direction * m.direction;
    }
    // dependent columns: downhill without end, but for 0
    const bool is_flat = !(curvature > 1e-10 * own);
    double length = is_flat ? share_inside() : norm / curvature;
    if (!(length > 0)) return false;
    for (Mover &m : movers_) {
        m.move += length * m.direction;
        m.gradient += length * m.product;
    }
    for (std::size_t i = 0; i < r.size(); ++i) r[i] += length * dz_[i];
    change += length * (0.5 * length * curvature - norm);
    return !is_flat;
}

/// How far along the direction all stay inside; 0 where one is outside already or where none would ever leave.
template <class Value> double FaceDescent<Value>::share_inside() const noexcept {
    double share = infinity;
    for (const Mover &m : movers_) {
        if (m.at() < m.low || m.at() > m.high) return 0;
        const double room = m.direction > 0 ? m.high - m.at() : m.low - m.at();
        if (m.direction != 0) share = std::min(share, room / m.direction);
    }
    return share < infinity ? share : 0;
}

// What has left its side of 0 or its bounds is put back where the model has fallen nevertheless; if not, all stop where the first one left.
template <class Value> void FaceDescent<Value>::turn_back(const Curvatures &h, double change, std::vector<double> &r) {
    const auto back = [](const Mover &m) { return std::clamp(m.at(), m.low, m.high) - m.at(); };
    double share = 1;
    for (const Mover &m : movers_) {
        const double length = back(m);
        if (length == 0) continue;
        share = std::min(share, std::max(0.0, 1 + length / m.move));
        change += length * (std::copysign(m.l1, m.start) + m.l2 * (m.at() + 0.5 * length));
    }
    if (share == 1) return;
    spread(back);
    for (std::size_t i = 0; i < r.size(); ++i) change += dz_[i] * (r[i] + 0.5 * h[i] * dz_[i]);
    if (change < 0) {
        for (std::size_t i = 0; i < r.size(); ++i) r[i] += h[i] * dz_[i];
        return;
    }
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = start_r_[i] + share * (r[i] - start_r_[i]);
    for (Mover &m : movers_) m.move *= share;
    failures_ = std::min(failures_ + 1, 10);
    waiting_ = 1 << failures_;
}

template class FaceDescent<float>;
template class FaceDescent<double>;

} // namespace spdc
