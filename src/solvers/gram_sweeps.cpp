#include "gram_sweeps.h"

#include "cholesky.h"
#include "newton_kernels.h"

#include <Eigen/Core>

#include <algorithm>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

void GramSweeps::take(std::vector<std::int32_t> coordinates, std::vector<double> gram) {
    gram_ = std::move(gram);
    list_ = std::move(coordinates);
    const std::size_t count = stride_ = list_.size();
    diagonal_.resize(count);
    for (std::size_t k = 0; k < count; ++k) diagonal_[k] = gram_[k * stride_ + k];
}

void GramSweeps::start(std::vector<double> x, std::vector<double> q) {
    x_ = std::move(x);
    q_ = std::move(q);
    moves_.assign(list_.size(), 1);
}

SweepResult GramSweeps::minimize(SweepResult &target, double reduction) {
    constexpr int most_sweeps = 500;
    remembered_ = 0;
    remember();
    const SweepResult first = sweep();
    target.widen(first, reduction);
    bool reached = first.within(target);
    // a Cholesky factor costs about a tenth of a sweep per feature
    const int interval = std::max(20, static_cast<int>(list_.size() / 2));
    int next_solve = interval;
    for (int count = 1; !reached && count < most_sweeps; ++count) {
        interruption_point(static_cast<std::int64_t>(list_.size() * list_.size()));
        remember();
        if (count == next_solve) {
            solve_face();
            next_solve = count + interval;
        } else if (remembered_ > memory) {
            extrapolate();
        }
        reached = sweep().within(target);
    }
    return first;
}

SweepResult GramSweeps::sweep() noexcept {
    SweepResult result;
    const std::size_t count = list_.size();
    double *const q = q_.data();
    const auto add_multiple = newton_kernels().add_multiple;
    std::int64_t moved = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (!moves_[k] || diagonal_[k] == 0) continue;
        const Box g = penalties_[list_[k]];
        const double after = coordinate_step(g, penalties_.unit(g), x_[k], q[k], diagonal_[k], result);
        const double move = after - x_[k];
        if (move == 0) continue;
        x_[k] = after;
        add_multiple(move, gram_.data() + k * stride_, count, q);
        ++moved;
    }
    touched_ += moved * static_cast<std::int64_t>(count) / 8;
    return result;
}

void GramSweeps::remember() {
    past_x_[remembered_] = x_;
    past_q_[remembered_++] = q_;
}

// q is affine in x, so the same weights give q at the new point, and the model's change is the move times the mean of q.
void GramSweeps::extrapolate() {
    const auto weights = anderson_weights(past_x_, diagonal_);
    std::vector<double> &x = past_x_[0], &q = past_q_[0];
    double change = 0;
    bool is_inside = weights.has_value();
    for (std::size_t k = 0; is_inside && k < x.size(); ++k) {
        x[k] = q[k] = 0;
        for (std::size_t m = 0; m < memory; ++m) {
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

// Newton's steps among the coordinates that are neither 0 nor at a bound, each as far as none of them gets there, and on without those that do:
// what sweeps take long for when features are nearly dependent.
void GramSweeps::solve_face() {
    constexpr int most_steps = 8;
    for (int step = 0; step < most_steps && !step_on_face(); ++step) {
    }
    remembered_ = 0;
    remember();
}

/// True where nothing was in the way.
bool GramSweeps::step_on_face() {
    std::vector<std::size_t> face;
    for (std::size_t k = 0; k < list_.size(); ++k) {
        const Box g = penalties_[list_[k]];
        const bool is_inside = g.bounds.lower < x_[k] && x_[k] < g.bounds.upper && (x_[k] != 0 || g.l1 == 0);
        if (moves_[k] && diagonal_[k] > 0 && is_inside) face.push_back(k);
    }
    const auto size = static_cast<Eigen::Index>(face.size());
    interruption_point(size * size * size / 30);
    touched_ += size * size * size / 30;
    Eigen::MatrixXd matrix(size, size);
    Eigen::VectorXd move(size);
    for (Eigen::Index a = 0; a < size; ++a) {
        const std::size_t k = face[at(a)];
        const Box g = penalties_[list_[k]];
        for (Eigen::Index b = 0; b < size; ++b) matrix(b, a) = gram_[k * stride_ + face[at(b)]];
        matrix(a, a) += g.l2 + 1e-13 * diagonal_[k]; // dependent columns
        move[a] = -(q_[k] + g.l2 * x_[k] + (x_[k] > 0 ? g.l1 : -g.l1));
    }
    Cholesky factor;
    if (!factor.compute(std::move(matrix))) return true;
    move = factor.solve(move);
    if (!move.allFinite()) return true;
    double step = 1;
    Eigen::Index first = size;                // to get to an end
    const auto end_of = [&](Eigen::Index a) { // on its way
        const std::size_t k = face[at(a)];
        const Box g = penalties_[list_[k]];
        if (move[a] < 0) return x_[k] > 0 && g.l1 > 0 ? std::max(0.0, g.bounds.lower) : g.bounds.lower;
        return x_[k] < 0 && g.l1 > 0 ? std::min(0.0, g.bounds.upper) : g.bounds.upper;
    };
    for (Eigen::Index a = 0; a < size; ++a) {
        if (move[a] == 0) continue;
        const double room = (end_of(a) - x_[face[at(a)]]) / move[a];
        if (room < step) step = room, first = a;
    }
    for (Eigen::Index a = 0; a < size; ++a) {
        const std::size_t k = face[at(a)];
        const double before = x_[k];
        x_[k] = a == first ? end_of(a) : penalties_[list_[k]].bounds.clip(before + step * move[a]);
        const double *const row = gram_.data() + k * stride_;
        for (std::size_t m = 0; m < q_.size(); ++m) q_[m] += (x_[k] - before) * row[m];
    }
    return first == size;
}

} // namespace spdc
