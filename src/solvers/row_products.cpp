#include "row_products.h"

#include "kernels.h"

#include <algorithm>

namespace spdc {

namespace {

constexpr std::int64_t rows_at_once = 256;        // that a thread takes
constexpr std::int64_t entries_a_thread = 200000; // below this a product is over before a thread has started

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct ColumnRange {
    std::int64_t begin, end;
    bool is_all;
};

/// Calls visit(column, value) for the entries of the row in the range.
template <class Row, class Visit> void each_entry(const Row &row, const ColumnRange &range, Visit visit) {
    std::int64_t p = range.is_all ? 0 : row.lower_bound(range.begin);
    const std::int64_t end = range.is_all ? row.size() : row.lower_bound(range.end);
    for (; p < end; ++p) visit(row.column(p), row.value(p));
}

/// <a, p>, four chains of sums.
template <class Row> double dot_with(const Row &a, const DirectionPair *pq) noexcept {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    const std::int64_t size = a.size();
    std::int64_t k = 0;
    for (; k + 3 < size; k += 4) {
        s0 += a.value(k) * pq[a.column(k)].p;
        s1 += a.value(k + 1) * pq[a.column(k + 1)].p;
        s2 += a.value(k + 2) * pq[a.column(k + 2)].p;
        s3 += a.value(k + 3) * pq[a.column(k + 3)].p;
    }
    for (; k < size; ++k) s0 += a.value(k) * pq[a.column(k)].p;
    return (s0 + s1) + (s2 + s3);
}

} // namespace

RowProducts::RowProducts(const Problem &problem, Crew crew)
    : problem_(problem), scale_(1 / static_cast<double>(problem.rows())) {
    const std::int64_t useful = std::max<std::int64_t>(1, problem.nonzeros() / entries_a_thread);
    const auto team = static_cast<std::int64_t>(std::min<std::int64_t>(crew.threads, useful));
    first_column_.assign(1, 0);
    if (team > 1) { // ranges of columns with about the same number of entries
        std::vector<std::int64_t> filled(at(problem.features()), 0);
        std::visit(
            [&](const auto &matrix) {
                for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                    const auto row = matrix.row(i);
                    interruption_point(row.size());
                    for (std::int64_t p = 0; p < row.size(); ++p) ++filled[at(row.column(p))];
                }
            },
            problem.matrix());
        std::int64_t seen = 0;
        for (std::int64_t j = 0; j < problem.features(); ++j) {
            const auto next = static_cast<std::int64_t>(first_column_.size());
            if (next < team && seen * team >= problem.nonzeros() * next) first_column_.push_back(j);
            seen += filled[at(j)];
        }
    }
    first_column_.push_back(problem.features());
    crew.threads = threads();
    team_ = std::make_unique<Team>(std::move(crew));
}

void RowProducts::for_each(std::size_t count, const std::function<void(std::size_t)> &body) const {
    team_->for_each(static_cast<std::int64_t>(count), [&](std::int64_t k) { body(at(k)); });
}

/// Calls visit(range, owns_intercept) for the columns of each thread.
template <class Visit> void RowProducts::each_column_range(Visit visit) const {
    for_each(at(threads()), [&](std::size_t k) {
        const ColumnRange range{first_column_[k], first_column_[k + 1], threads() == 1};
        visit(range, problem_.has_intercept() && range.end == problem_.features());
    });
}

void RowProducts::predict(const double *x, const double *h, double *z) const {
    const double constant = problem_.has_intercept() ? x[problem_.features()] : 0.0;
    std::visit(
        [&](const auto &matrix) {
            const std::int64_t n = matrix.rows();
            for_each(at((n + rows_at_once - 1) / rows_at_once), [&](std::size_t k) {
                const std::int64_t begin = static_cast<std::int64_t>(k) * rows_at_once;
                for (std::int64_t i = begin; i < std::min(begin + rows_at_once, n); ++i) {
                    if (!h || h[i] == 0) z[i] = dot(matrix.row(i), x) + constant;
                }
            });
        },
        problem_.matrix());
}

void RowProducts::gradient(const double *w, const double *h, double *g, double *m) const {
    std::visit(
        [&](const auto &matrix) {
            each_column_range([&](const ColumnRange &range, bool owns_intercept) {
                std::fill(g + range.begin, g + range.end, 0.0);
                if (m) std::fill(m + range.begin, m + range.end, 0.0);
                double g0 = 0, m0 = 0;
                for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                    const double wi = w[i] * scale_, hi = h ? h[i] * scale_ : 0;
                    g0 += wi;
                    m0 += hi;
                    interruption_point(matrix.row(i).size());
                    if (hi == 0 && wi == 0) continue;
                    if (hi == 0) {
                        each_entry(matrix.row(i), range, [&](std::int32_t j, double a) { g[j] += wi * a; });
                        continue;
                    }
                    each_entry(matrix.row(i), range, [&](std::int32_t j, double a) {
                        g[j] += wi * a;
                        m[j] += hi * a * a;
                    });
                }
                if (!owns_intercept) return;
                g[problem_.features()] = g0;
                if (m) m[problem_.features()] = m0;
            });
        },
        problem_.matrix());
}

void RowProducts::curvature(const double *h, DirectionPair *pq, double *t) const {
    const double constant = problem_.has_intercept() ? pq[problem_.features()].p : 0.0;
    const auto add = [&](const auto &matrix, std::int64_t i, const ColumnRange &range, double &to_constant) {
        const double c = h[i] * t[i] * scale_;
        to_constant += c;
        each_entry(matrix.row(i), range, [&](std::int32_t j, double a) { pq[j].q += c * a; });
    };
    std::visit(
        [&](const auto &matrix) {
            const std::int64_t n = matrix.rows();
            const auto predict_rows = [&](std::size_t k) {
                const std::int64_t begin = static_cast<std::int64_t>(k) * rows_at_once;
                for (std::int64_t i = begin; i < std::min(begin + rows_at_once, n); ++i) {
                    if (h[i] != 0) t[i] = dot_with(matrix.row(i), pq) + constant;
                }
            };
            const bool is_fused = threads() == 1;
            if (!is_fused) for_each(at((n + rows_at_once - 1) / rows_at_once), predict_rows);
            each_column_range([&](const ColumnRange &range, bool owns_intercept) {
                double to_constant = 0;
                for (std::int64_t i = 0; i < n; ++i) {
                    interruption_point(matrix.row(i).size());
                    if (h[i] == 0) continue;
                    if (is_fused) t[i] = dot_with(matrix.row(i), pq) + constant;
                    add(matrix, i, range, to_constant);
                }
                if (owns_intercept) pq[problem_.features()].q += to_constant;
            });
        },
        problem_.matrix());
}

double RowProducts::active_share(const double *h) const {
    std::int64_t active = 0;
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) active += h[i] != 0 ? matrix.row(i).size() : 0;
        },
        problem_.matrix());
    return static_cast<double>(active) / std::max(1.0, static_cast<double>(problem_.nonzeros()));
}

} // namespace spdc
