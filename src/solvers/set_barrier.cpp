#include "set_barrier.h"

#include "vertex.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Epsilon-insensitive has a piece for either side of 0.
constexpr double side(std::size_t piece) { return piece == 0 ? 0.0 : -0.0; }

} // namespace

template <class Value>
SetBarrier<Value>::SetBarrier(const Problem &problem, const ColumnMatrix<Value> &columns, const Penalties &penalties)
    : problem_(problem), columns_(columns), penalties_(penalties), gram_(columns, penalties, problem.rows()),
      rows_(at(problem.rows())) {
    pieces_ = kink(problem.loss(), side(0), 1) == kink(problem.loss(), side(1), 1) ? 1 : 2;
    row_pieces_ = rows_ * pieces_;
}

template <class Value>
void SetBarrier<Value>::start(std::span<const std::int32_t> set, double gap, double target,
                              const std::vector<double> &x, const std::vector<double> &y) {
    set_.assign(set.begin(), set.end());
    best_ = infinity;
    set_up(x);
    center(gap / (2 * static_cast<double>(lower_.size())), y);
    go_on(target);
}

template <class Value> void SetBarrier<Value>::go_on(double target) {
    target_ = target;
    steps_ = best_step_ = short_steps_ = 0;
    is_running_ = true;
}

template <class Value> void SetBarrier<Value>::advance(std::vector<double> &x, std::vector<double> &y) {
    constexpr int most_steps = 80, patience = 10;
    ++steps_;
    is_running_ = step() && steps_ < most_steps && short_steps_ < 3 && steps_ < best_step_ + patience;
    if (is_running_ || best_ == infinity) return;
    for (std::size_t j = 0; j < set_.size(); ++j) x[at(set_[j])] = best_x_[j];
    y = best_y_;
}

/// False at the end: there is no step, or it reached the target.
template <class Value> bool SetBarrier<Value>::step() {
    find_curvatures();
    if (!factor()) return false;
    find_step(0, false);
    // how much of the gap the predictor alone would leave says how much of it to aim for
    const double now = gap_after(0), reach = std::min(1.0, longest_step());
    const double left = std::clamp(gap_after(reach) / now, 0.0, 1.0);
    find_step(left * left * left * now / (2 * static_cast<double>(lower_.size())), true);
    if (!dx_.allFinite()) return false;
    const double length = std::min(1.0, 0.99 * longest_step());
    take_step(length);
    short_steps_ = length < 1e-3 ? short_steps_ + 1 : 0;
    const double error = std::max(gap_after(0), price_of_balance());
    if (error < best_) {
        best_ = error;
        best_step_ = steps_;
        round();
    }
    return error > target_;
}

template <class Value> void SetBarrier<Value>::set_up(const std::vector<double> &x) {
    const auto count = static_cast<Eigen::Index>(set_.size());
    x_.resize(count), e_.resize(count), l2_.resize(count);
    lower_.clear(), upper_.clear(), slope_.clear(), weight_.clear();
    const auto add = [&](double lower, double upper, double slope, double weight) {
        lower_.push_back(lower), upper_.push_back(upper), slope_.push_back(slope), weight_.push_back(weight);
    };
    for (std::size_t k = 0; k < pieces_; ++k) {
        for (std::size_t i = 0; i < rows_; ++i) {
            const double b = problem_.targets()[i];
            const Interval domain = problem_.loss().domain(b);
            add(pieces_ == 2 && k == 0 ? 0 : domain.lower, pieces_ == 2 && k == 1 ? 0 : domain.upper,
                kink(problem_.loss(), side(k), b),
                problem_.importance(static_cast<std::int64_t>(i)) / static_cast<double>(rows_));
        }
    }
    for (Eigen::Index j = 0; j < count; ++j) {
        const Box g = penalties_[set_[at(j)]];
        x_[j] = x[at(set_[at(j)])];
        l2_[j] = g.l2;
        add(-g.l1, g.l1, 0, 1);
    }
    predict(x_, z_);
    // the rows' system needs a penalty on every feature
    by_rows_ = set_.size() > rows_ &&
               std::find(upper_.begin() + static_cast<std::ptrdiff_t>(row_pieces_), upper_.end(), 0.0) == upper_.end();
    for (auto *array : {&p_, &q_, &s_, &t_, &dy_, &ds_, &dt_, &curvature_}) array->assign(lower_.size(), 0.0);
}

/// Duals that belong to x at this mu, v = z - c = t - s = 2 (mu/w) off/(half^2 - off^2), off the distance of y from the middle; near a kink,
/// where x does not tell, those of y and, for the l1 terms, what balances it. So the equations are nearly met where x and y are
/// nearly right.
template <class Value> void SetBarrier<Value>::center(double mu, const std::vector<double> &y) {
    std::vector<double> w(rows_);
    for (std::size_t i = 0; i < rows_; ++i) w[i] = weight_[i] * y[i];
    Eigen::VectorXd u;
    combine(w, u);
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        const double width = upper_[k] - lower_[k];
        if (width == 0 || weight_[k] == 0) continue; // no penalty, or a row that does not count
        const auto j = static_cast<Eigen::Index>(k - row_pieces_);
        const double known = k < row_pieces_ ? y[k % rows_] : -u[j] - l2_[j] * x_[j];
        const double own = mu / weight_[k], v = argument(k) - slope_[k], half = 0.5 * width;
        const double root = own + std::hypot(own, v * half), off = v * half * half / root;
        const double far = half + std::fabs(off), near = 2 * own * half * half / root / far;
        const bool tells = std::fabs(v) * width > own;
        p_[k] = tells ? (off > 0 ? far : near) : std::clamp(known - lower_[k], 0.1 * width, 0.9 * width);
        q_[k] = tells ? (off > 0 ? near : far) : width - p_[k];
        s_[k] = own / p_[k];
        t_[k] = own / q_[k];
    }
}

template <class Value> void SetBarrier<Value>::find_curvatures() {
    h_.rows.assign(rows_, 0.0);
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        curvature_[k] = p_[k] > 0 ? 1 / (s_[k] / p_[k] + t_[k] / q_[k]) : 0;
        if (k < row_pieces_) h_.rows[k % rows_] += weight_[k] * curvature_[k];
    }
    for (Eigen::Index j = 0; j < e_.size(); ++j) e_[j] = l2_[j] + curvature_[row_pieces_ + at(j)];
}

template <class Value> bool SetBarrier<Value>::factor() {
    if (by_rows_) {
        factor_rows();
    } else {
        gram_.forget();
        const std::int64_t before = gram_.touched();
        if (!gram_.include(set_, h_, std::numeric_limits<std::int64_t>::max())) return false;
        touched_ += gram_.touched() - before;
        const auto count = static_cast<Eigen::Index>(set_.size());
        matrix_.resize(count, count);
        for (Eigen::Index j = 0; j < count; ++j) {
            std::copy_n(gram_.row(at(j)), count, matrix_.col(j).data());
            matrix_(j, j) += e_[j] + 1e-13 * (matrix_(j, j) + e_[j]); // dependent columns
        }
    }
    const std::int64_t size = matrix_.rows();
    touched_ += size * size * size / 30;
    return factor_.compute(matrix_);
}

/// H^-1 + A E^-1 A'
template <class Value> void SetBarrier<Value>::factor_rows() {
    const auto n = static_cast<Eigen::Index>(rows_);
    matrix_.setZero(n, n);
    for (std::size_t k = 0; k < set_.size(); ++k) {
        const auto column = columns_.column(set_[k]);
        for (std::int64_t a = 0; a < column.size(); ++a) {
            interruption_point(column.size() - a);
            const double scaled = column.value(a) / e_[static_cast<Eigen::Index>(k)];
            for (std::int64_t b = a; b < column.size(); ++b) {
                matrix_(column.column(b), column.column(a)) += scaled * column.value(b); // rows ascend: the lower half
            }
        }
        touched_ += column.size() * column.size() / 2;
    }
    for (Eigen::Index i = 0; i < n; ++i) matrix_(i, i) += 1 / std::max(h_.rows[at(i)], 1e-300);
}

template <class Value> void SetBarrier<Value>::combine(const std::vector<double> &r, Eigen::VectorXd &u) {
    u.resize(static_cast<Eigen::Index>(set_.size()));
    for (std::size_t k = 0; k < set_.size(); ++k) {
        const auto column = columns_.column(set_[k]);
        interruption_point(column.size());
        u[static_cast<Eigen::Index>(k)] = dot(column, r.data());
        touched_ += column.size();
    }
}

template <class Value> void SetBarrier<Value>::predict(const Eigen::VectorXd &d, std::vector<double> &z) {
    z.assign(rows_, 0.0);
    for (std::size_t k = 0; k < set_.size(); ++k) {
        const double move = d[static_cast<Eigen::Index>(k)];
        if (move == 0) continue;
        const auto column = columns_.column(set_[k]);
        interruption_point(column.size());
        axpy(move, column, z.data());
        touched_ += column.size();
    }
}

/// dx = (E + A'HA)^-1 right and dz = A dx, refined once, because rounding leaves much of an ill-conditioned system.
template <class Value> void SetBarrier<Value>::solve(const Eigen::VectorXd &right) {
    if (by_rows_) return solve_by_rows(right);
    std::vector<double> w(rows_);
    Eigen::VectorXd u;
    dx_ = factor_.solve(right);
    predict(dx_, dz_);
    for (std::size_t i = 0; i < rows_; ++i) w[i] = h_.rows[i] * dz_[i];
    combine(w, u);
    dx_ += factor_.solve(right - u - e_.cwiseProduct(dx_));
    predict(dx_, dz_);
}

/// The same as  E dx + A'w = right,  A dx - H^-1 w = 0.  dz = H^-1 w has none of the cancellation of A dx where H is large.
template <class Value> void SetBarrier<Value>::solve_by_rows(const Eigen::VectorXd &right) {
    using Vector = Eigen::Map<Eigen::VectorXd>;
    const auto n = static_cast<Eigen::Index>(rows_);
    std::vector<double> w(rows_, 0.0), z, change(rows_);
    Eigen::VectorXd rest = right, u;
    dx_.setZero(right.size());
    dz_.assign(rows_, 0.0);
    for (int k = 0; k < 2; ++k) {
        if (k > 0) {
            combine(w, u);
            rest = right - u - e_.cwiseProduct(dx_);
        }
        predict(dx_ + rest.cwiseQuotient(e_), z);
        Vector(change.data(), n) = factor_.solve(Vector(z.data(), n) - Vector(dz_.data(), n));
        combine(change, u);
        dx_ += (rest - u).cwiseQuotient(e_);
        for (std::size_t i = 0; i < rows_; ++i) {
            w[i] += change[i];
            dz_[i] = w[i] / std::max(h_.rows[i], 1e-300);
        }
    }
}

// dy = h (dz + r), ds = (mu/w - e)/p - s - (s/p) dy, dt = (mu/w - f)/q - t + (t/q) dy with r = z - c + (mu/w - e)/p - (mu/w - f)/q; e and
// f are the products ds dy and -dt dy of the predictor's moves.
template <class Value> void SetBarrier<Value>::find_step(double mu, bool corrects) {
    std::vector<double> to_p(lower_.size()), to_q(lower_.size()), w(rows_, 0.0);
    Eigen::VectorXd right = -(l2_.cwiseProduct(x_));
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        if (p_[k] == 0) continue;
        const double own = mu / weight_[k];
        to_p[k] = (own - (corrects ? ds_[k] * dy_[k] : 0)) / p_[k];
        to_q[k] = (own + (corrects ? dt_[k] * dy_[k] : 0)) / q_[k];
        const double next = dual(k) + curvature_[k] * (argument(k) - slope_[k] + to_p[k] - to_q[k]);
        if (k < row_pieces_) w[k % rows_] += weight_[k] * next;
        if (k >= row_pieces_) right[static_cast<Eigen::Index>(k - row_pieces_)] -= next;
    }
    Eigen::VectorXd u;
    combine(w, u);
    solve(right - u);
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        if (p_[k] == 0) continue;
        dy_[k] = curvature_[k] * (move_of_argument(k) + argument(k) - slope_[k] + to_p[k] - to_q[k]);
        ds_[k] = to_p[k] - s_[k] - s_[k] / p_[k] * dy_[k];
        dt_[k] = to_q[k] - t_[k] + t_[k] / q_[k] * dy_[k];
    }
}

/// To where the first slack or multiplier would be used up.
template <class Value> double SetBarrier<Value>::longest_step() const {
    double fastest = 0;
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        if (p_[k] == 0) continue;
        fastest = std::max({fastest, -dy_[k] / p_[k], dy_[k] / q_[k], -ds_[k] / s_[k], -dt_[k] / t_[k]});
    }
    return 1 / std::max(fastest, 1e-300);
}

/// The sum of w (s p + t q): the gap, when x and the duals balance.
template <class Value> double SetBarrier<Value>::gap_after(double length) const {
    double gap = 0;
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        gap += weight_[k] * ((s_[k] + length * ds_[k]) * (p_[k] + length * dy_[k]) +
                             (t_[k] + length * dt_[k]) * (q_[k] - length * dy_[k]));
    }
    return gap;
}

/// An excess of e times l1 in the last equation shrinks the dual point by 1 + e. Pieces are straight, so that costs e times the dual
/// objective, not e times the penalty only: where x = 0 is optimal there is none.
template <class Value> double SetBarrier<Value>::price_of_balance() {
    std::vector<double> w(rows_, 0.0);
    double dual_objective = 0;
    for (std::size_t k = 0; k < row_pieces_; ++k) {
        const double y = p_[k] == 0 ? 0 : weight_[k] * dual(k);
        w[k % rows_] += y;
        dual_objective -= slope_[k] * y;
    }
    Eigen::VectorXd u;
    combine(w, u);
    double excess = 0;
    for (std::size_t j = 0; j < set_.size(); ++j) {
        const auto e = static_cast<Eigen::Index>(j);
        const std::size_t k = row_pieces_ + j;
        const double off = u[e] + l2_[e] * x_[e] + (p_[k] == 0 ? 0 : dual(k));
        excess = std::max(excess, std::fabs(off) / penalties_.unit(penalties_[set_[j]]));
    }
    return excess * std::fabs(dual_objective);
}

template <class Value> void SetBarrier<Value>::take_step(double length) {
    for (std::size_t k = 0; k < lower_.size(); ++k) {
        p_[k] += length * dy_[k];
        q_[k] -= length * dy_[k];
        s_[k] += length * ds_[k];
        t_[k] += length * dt_[k];
    }
    x_ += length * dx_;
    for (std::size_t i = 0; i < rows_; ++i) z_[i] += length * dz_[i];
}

/// Keeps the point. Of a slack and its multiplier one tends to 0 with mu: it is 0 where it is much smaller than the other one, both
/// measured by what is usual for them, and weights that are only where all of them together cost less than the error, had or wanted.
template <class Value> void SetBarrier<Value>::round() {
    constexpr double much = 0.01;
    best_x_.assign(x_.data(), x_.data() + x_.size());
    const double usual_x = x_.size() > 0 ? x_.cwiseAbs().maxCoeff() : 0;
    const double cheap = 0.5 * std::max(best_, target_) / static_cast<double>(std::max<std::size_t>(set_.size(), 1));
    for (std::size_t j = 0; j < set_.size(); ++j) {
        const std::size_t k = row_pieces_ + j;
        const double room = std::min(p_[k], q_[k]);
        const double cost = std::fabs(best_x_[j]) * upper_[k];
        if (upper_[k] > 0 && cost < much * usual_x * room && cost < cheap) best_x_[j] = 0;
    }
    double usual_z = 0;
    for (std::size_t k = 0; k < row_pieces_; ++k) {
        usual_z += weight_[k] * (std::fabs(slope_[k]) + std::fabs(argument(k) - slope_[k]));
    }
    best_y_.assign(rows_, 0.0);
    settled_y_.assign(rows_, 0.0);
    for (std::size_t k = 0; k < row_pieces_; ++k) {
        const double width = upper_[k] - lower_[k];
        double value = weight_[k] == 0 ? lower_[k] + 0.5 * width : dual(k);
        best_y_[k % rows_] += value;
        if (p_[k] * usual_z < much * s_[k] * width) value = lower_[k];
        if (q_[k] * usual_z < much * t_[k] * width) value = upper_[k];
        settled_y_[k % rows_] += value;
    }
}

template class SetBarrier<float>;
template class SetBarrier<double>;

} // namespace spdc
