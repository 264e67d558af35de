#include "vertex.h"

#include <Eigen/Core>
#include <Eigen/LU>

#include <cmath>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::size_t largest = 1000; // of the systems: a factor of 7e8 products
constexpr Eigen::Index absent = -1;

/// Coordinates that are neither 0 nor at a bound; nothing when one has curvature of its own, which leaves no corners.
std::optional<std::vector<std::int32_t>> inner_coordinates(const Penalties &penalties, std::span<const double> x) {
    std::vector<std::int32_t> inner;
    for (std::size_t j = 0; j < x.size(); ++j) {
        const Box g = penalties[static_cast<std::int64_t>(j)];
        if (g.l2 > 0) return std::nullopt;
        const bool is_inside = g.bounds.lower < x[j] && x[j] < g.bounds.upper;
        if (is_inside && (x[j] != 0 || g.l1 == 0)) inner.push_back(static_cast<std::int32_t>(j));
    }
    return inner;
}

/// The rows whose y lies between two slopes of the loss, up to one more than `most`; 0 is a slope where residuals may cost nothing.
std::vector<std::int64_t> rows_at_kinks(const Problem &problem, std::span<const double> y, std::size_t most) {
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i < y.size() && rows.size() <= most; ++i) {
        const Interval domain = problem.loss().domain(problem.targets()[i]);
        if (y[i] != 0 && domain.lower < y[i] && y[i] < domain.upper) rows.push_back(static_cast<std::int64_t>(i));
    }
    return rows;
}

/// matrix x_inner = kinks and matrix' (importance y)_rows = slopes.
struct Corner {
    Eigen::MatrixXd matrix;
    Eigen::VectorXd kinks, slopes;
};

template <class Value>
Corner corner_of(const Problem &problem, const ColumnMatrix<Value> &columns, const Penalties &penalties,
                 std::span<const std::int32_t> inner, std::span<const std::int64_t> rows, std::span<const double> x,
                 std::span<const double> y) {
    const auto size = static_cast<Eigen::Index>(rows.size());
    Corner corner{Eigen::MatrixXd::Zero(size, size), Eigen::VectorXd(size), Eigen::VectorXd::Zero(size)};
    std::vector<Eigen::Index> row_place(y.size(), absent), place(x.size(), absent);
    for (Eigen::Index e = 0; e < size; ++e) {
        const std::size_t i = at(rows[at(e)]);
        row_place[i] = e;
        corner.kinks[e] = kink(problem.loss(), y[i], problem.targets()[i]);
        place[at(inner[at(e)])] = e;
    }
    for (std::size_t j = 0; j < x.size(); ++j) {
        const Eigen::Index s = place[j];
        if (s == absent && x[j] == 0) continue;
        const auto column = columns.column(static_cast<std::int64_t>(j));
        for (std::int64_t p = 0; p < column.size(); ++p) {
            const std::int32_t i = column.column(p);
            const Eigen::Index e = row_place[at(i)];
            if (s == absent) { // at a bound
                if (e != absent) corner.kinks[e] -= x[j] * column.value(p);
            } else if (e == absent) {
                corner.slopes[s] -= problem.importance(i) * y[at(i)] * column.value(p);
            } else {
                corner.matrix(e, s) = column.value(p);
            }
        }
        if (s == absent) continue;
        const double l1 = penalties[static_cast<std::int64_t>(j)].l1;
        corner.slopes[s] -= std::copysign(l1, x[j]) * static_cast<double>(problem.rows());
    }
    return corner;
}

} // namespace

double kink(const AnyLoss &loss, double y, double b) {
    return std::visit(
        [&](const auto &concrete) {
            if constexpr (requires { concrete.conjugate_slope(y, b); }) return concrete.conjugate_slope(y, b);
            return std::nan("");
        },
        loss.variant());
}

template <class Value>
std::optional<Vertex> nearby_vertex(const Problem &problem, const ColumnMatrix<Value> &columns,
                                    const Penalties &penalties, std::span<const double> x, std::span<const double> y) {
    const auto inner = inner_coordinates(penalties, x);
    if (!inner || inner->empty() || inner->size() > largest) return std::nullopt;
    const std::vector<std::int64_t> rows = rows_at_kinks(problem, y, inner->size());
    if (rows.size() != inner->size()) return std::nullopt;
    const Corner corner = corner_of<Value>(problem, columns, penalties, *inner, rows, x, y);
    const Eigen::PartialPivLU<Eigen::MatrixXd> factor(corner.matrix);
    const Eigen::VectorXd weights = factor.solve(corner.kinks), moments = factor.transpose().solve(corner.slopes);
    Vertex vertex{{x.begin(), x.end()}, {y.begin(), y.end()}};
    for (std::size_t k = 0; k < rows.size(); ++k) {
        const std::int32_t j = (*inner)[k];
        const Box g = penalties[j];
        const double weight = weights[static_cast<Eigen::Index>(k)];
        const bool keeps_sign = g.l1 == 0 || x[at(j)] * weight > 0;
        if (!std::isfinite(weight) || !g.bounds.contains(weight) || !keeps_sign) return std::nullopt;
        vertex.x[at(j)] = weight;
        const double slope = moments[static_cast<Eigen::Index>(k)] / problem.importance(rows[k]);
        if (!problem.loss().domain(problem.targets()[at(rows[k])]).contains(slope)) return std::nullopt; // NaN, too
        vertex.y[at(rows[k])] = slope;
    }
    return vertex;
}

template std::optional<Vertex> nearby_vertex(const Problem &, const ColumnMatrix<float> &, const Penalties &,
                                             std::span<const double>, std::span<const double>);
template std::optional<Vertex> nearby_vertex(const Problem &, const ColumnMatrix<double> &, const Penalties &,
                                             std::span<const double>, std::span<const double>);

} // namespace spdc
