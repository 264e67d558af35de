#include "free_coordinates.h"

#include "sum.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <cmath>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct ValueAndSlope {
    double value, slope;
    double size; // of the terms that were added: the value is only known to 1e-16 of it
};

/// Adds up term(i, b_i), a value and its slope, times the weight of the row.
template <class Term> ValueAndSlope sum_of_rows(const Problem &problem, Team &team, Term &&term) {
    struct Sums {
        Sum value, slope, size;
        void add(const Sums &other) {
            value.add(other.value);
            slope.add(other.slope);
            size.add(other.size);
        }
    };
    const auto b = problem.targets();
    const double work = 10 * static_cast<double>(b.size()); // exponentials
    const auto sums = sum_chunks<Sums>(team, b.size(), work, [&](std::size_t begin, std::size_t end, Sums &own) {
        for (std::size_t i = begin; i < end; ++i) {
            const double weight = problem.importance(static_cast<std::int64_t>(i));
            const auto [value, slope] = term(i, b[i]);
            own.value.add(weight * value);
            own.slope.add(weight * slope);
            own.size.add(weight * std::fabs(value));
        }
    });
    return {sums.value.value(), sums.slope.value(), sums.size.value()};
}

/// A root of a non-decreasing function, or where it changes sign. Newton where the slope helps, the Illinois method inside a
/// bracket, bisection when that is slow: the function may be a staircase.
template <class Function> double root_of_increasing(Function f, double step) {
    double lower = -infinity, upper = infinity, at_lower = 0, at_upper = 0, t = 0;
    for (int iteration = 0; iteration < 200; ++iteration) {
        const ValueAndSlope now = f(t);
        if (std::fabs(now.value) <= 1e-16 * now.size) return t;
        if (!std::isfinite(now.value)) return 0;
        if (now.value > 0) {
            at_lower *= 0.5; // Illinois: an end that stays counts half, or the other end would hardly move
            upper = t;
            at_upper = now.value;
        } else {
            at_upper *= 0.5;
            lower = t;
            at_lower = now.value;
        }
        double next = now.slope > 0 ? t - now.value / now.slope : infinity;
        if (lower == -infinity || upper == infinity) {
            // slopes can be tiny: Newton may not outrun the growing bracket by far
            if (!(std::fabs(next - t) <= 2 * step)) next = now.value > 0 ? t - step : t + step;
            step *= 2;
        } else {
            const double secant = upper - at_upper * (upper - lower) / (at_upper - at_lower);
            if (!(lower < next && next < upper)) next = secant;
            if (iteration % 4 == 3 || !(lower < next && next < upper)) next = lower + 0.5 * (upper - lower);
            if (upper - lower <= 1e-15 * (std::fabs(lower) + std::fabs(upper))) return t;
        }
        if (next == t || next == lower || next == upper) return t;
        t = next;
    }
    return t;
}

/// The root of sum_i w_i (start_i + t): minus the mean, and once more for what that rounded. Trusting no slope, as above, took half of
/// the time of a lasso with few features.
template <class Start> double root_of_squares(const Problem &problem, Team &team, Start &&start) {
    const std::size_t n = at(problem.rows());
    double t = 0;
    for (int step = 0; step < 2; ++step) {
        const auto sum =
            sum_chunks<Sum>(team, n, static_cast<double>(n), [&](std::size_t begin, std::size_t end, Sum &own) {
                for (std::size_t i = begin; i < end; ++i) {
                    own.add(problem.importance(static_cast<std::int64_t>(i)) * (start(i) + t));
                }
            });
        const double next = t - sum.value() / static_cast<double>(n); // the importances add up to n
        if (!std::isfinite(next)) return t;
        t = next;
    }
    return t;
}

/// The free columns of the matrix, row by row.
class FreeColumns {
  public:
    explicit FreeColumns(const Problem &problem) : problem_(problem), position_(at(problem.dimension()), -1) {
        std::int32_t next = 0;
        for (const std::int64_t j : problem.free_coordinates()) position_[at(j)] = next++;
    }

    std::int64_t count() const { return static_cast<std::int64_t>(problem_.free_coordinates().size()); }

    /// Calls visit(i, entries) with entries (position, value) of row i.
    template <class Visit> void each_row(Visit &&visit) const {
        std::vector<std::pair<std::int32_t, double>> entries;
        std::visit(
            [&](const auto &matrix) {
                for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                    entries.clear();
                    const auto row = matrix.row(i);
                    interruption_point(row.size());
                    for (std::int64_t p = 0; p < row.size(); ++p) {
                        const std::int32_t k = position_[at(row.column(p))];
                        if (k >= 0 && row.value(p) != 0) entries.emplace_back(k, row.value(p));
                    }
                    if (problem_.has_intercept() && position_.back() >= 0) entries.emplace_back(position_.back(), 1.0);
                    visit(i, entries);
                }
            },
            problem_.matrix());
    }

  private:
    const Problem &problem_;
    std::vector<std::int32_t> position_;
};

/// The t for which the y moved by it add up to 0.
double balancing_shift(const Problem &problem, std::span<const double> y, Team &team) {
    if (std::holds_alternative<Squared>(problem.loss().variant())) {
        return root_of_squares(problem, team, [&](std::size_t i) { return y[i]; });
    }
    return std::visit(
        [&](const auto &loss) {
            const auto balance = [&](double t) {
                return sum_of_rows(problem, team, [&](std::size_t i, double b) {
                    const double moved = loss.shift(y[i], t, b);
                    return std::pair(moved, loss.shift_slope(moved, b));
                });
            };
            return root_of_increasing(balance, 1e-6);
        },
        problem.loss().variant());
}

void balance_intercept(const Problem &problem, std::span<double> y, Team &team) {
    const double t = balancing_shift(problem, y, team);
    std::visit(
        [&](const auto &loss) {
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = loss.shift(y[i], t, problem.targets()[i]);
        },
        problem.loss().variant());
}

/// u_j and the Jacobian of u_j with respect to t for the free coordinates at shift(y, A_U t).
struct Balance {
    Eigen::VectorXd residual;
    Eigen::MatrixXd jacobian;
};

Balance evaluate_balance(const Problem &problem, const FreeColumns &columns, std::span<const double> y,
                         const Eigen::VectorXd &t, bool with_jacobian) {
    const auto p = static_cast<Eigen::Index>(columns.count());
    Balance balance{Eigen::VectorXd::Zero(p), with_jacobian ? Eigen::MatrixXd::Zero(p, p) : Eigen::MatrixXd()};
    const double scale = 1 / static_cast<double>(problem.rows());
    columns.each_row([&](std::int64_t i, const auto &entries) {
        double along = 0;
        for (const auto &[k, a] : entries) along += a * t[k];
        const double b = problem.targets()[at(i)];
        const double moved = problem.loss().shift(y[at(i)], along, b);
        const double weight = scale * problem.importance(i);
        const double slope = with_jacobian ? weight * problem.loss().shift_slope(moved, b) : 0;
        for (const auto &[k, a] : entries) {
            balance.residual[k] += weight * moved * a;
            if (slope == 0) continue;
            interruption_point(static_cast<std::int64_t>(entries.size()));
            for (const auto &[l, c] : entries) balance.jacobian(k, l) += slope * a * c;
        }
    });
    return balance;
}

/// Semismooth Newton on t from a fixed y: the residual is the gradient of a convex function of t, so halving steps that do not
/// shrink it is safe.
void balance_columns(const Problem &problem, std::span<double> y) {
    const FreeColumns columns(problem);
    const auto p = static_cast<Eigen::Index>(columns.count());
    Eigen::VectorXd t = Eigen::VectorXd::Zero(p);
    Balance now = evaluate_balance(problem, columns, y, t, true);
    for (int iteration = 0; iteration < 30 && now.residual.norm() > 0; ++iteration) {
        const double ridge = 1e-15 * now.jacobian.trace() / static_cast<double>(p) + 1e-300;
        now.jacobian.diagonal().array() += ridge; // rows at their bounds may leave a column without curvature
        const Eigen::VectorXd direction = -now.jacobian.ldlt().solve(now.residual);
        double step = 1;
        Balance next;
        for (; step > 1e-4; step *= 0.5) {
            next = evaluate_balance(problem, columns, y, t + step * direction, true);
            if (next.residual.norm() < now.residual.norm()) break;
        }
        if (step <= 1e-4 || !direction.allFinite()) break;
        t += step * direction;
        now = std::move(next);
    }
    columns.each_row([&](std::int64_t i, const auto &entries) {
        double along = 0;
        for (const auto &[k, a] : entries) along += a * t[k];
        y[at(i)] = problem.loss().shift(y[at(i)], along, problem.targets()[at(i)]);
    });
}

} // namespace

void balance_dual(const Problem &problem, std::span<double> y, Team &team) {
    constexpr std::size_t most_columns = 3000; // a dense factor; beyond it the plain residual is charged
    const auto free = problem.free_coordinates();
    if (free.empty()) return;
    if (free.size() == 1 && free.front() == problem.features()) {
        balance_intercept(problem, y, team);
    } else if (free.size() <= most_columns) {
        balance_columns(problem, y);
    }
}

double best_shift(const Problem &problem, std::span<const double> z, Team &team) {
    if (std::holds_alternative<Squared>(problem.loss().variant())) {
        return root_of_squares(problem, team, [&](std::size_t i) { return z[i] - problem.targets()[i]; });
    }
    return std::visit(
        [&](const auto &loss) {
            const auto slope_at = [&](double t) {
                return sum_of_rows(problem, team, [&](std::size_t i, double b) {
                    return std::pair(loss.derivative(z[i] + t, b), loss.curvature(z[i] + t, b));
                });
            };
            return root_of_increasing(slope_at, 1e-3);
        },
        problem.loss().variant());
}

double best_constant(const Problem &problem, const Crew &crew) {
    Team team(crew);
    return best_shift(problem, std::vector<double>(at(problem.rows()), 0.0), team);
}

} // namespace spdc
