#include "sweeps.h"
#include "parallel.h"

#include <Eigen/Core>
#include <Eigen/LU>

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

} // namespace

Penalties::Penalties(const Problem &problem)
    : features_(problem.features()), feature_(as_box(problem.regularizer())),
      intercept_(problem.has_intercept() ? as_box(problem.regularizer(problem.features())) : Box{}),
      factors_(problem.penalty_factors()) {}

std::vector<std::uint8_t> movable_features(const Problem &problem, const Penalties &penalties) {
    const auto d = at(problem.dimension());
    std::vector<std::uint8_t> movable(d, 1);
    if (problem.loss().lipschitz() == infinity) return movable;
    std::vector<Interval> reach(at(problem.features()), Interval{0, 0}); // of n u_j
    std::visit(
        [&](const auto &loss, const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                const auto row = matrix.row(i);
                interruption_point(row.size());
                const Interval y = loss.domain(problem.targets()[at(i)]);
                const double weight = problem.importance(i), lower = weight * y.lower, upper = weight * y.upper;
                for (std::int64_t p = 0; p < row.size(); ++p) {
                    const double one = lower * row.value(p), other = upper * row.value(p);
                    Interval &u = reach[at(row.column(p))];
                    u.lower += std::min(one, other);
                    u.upper += std::max(one, other);
                }
            }
        },
        problem.loss().variant(), problem.matrix());
    const double inverse_n = (1 + 1e-9) / static_cast<double>(problem.rows()); // rounding must not leave one out
    for (std::size_t j = 0; j < reach.size(); ++j) {
        const Interval zero = zero_range(penalties[static_cast<std::int64_t>(j)]);
        movable[j] = slack(zero, -reach[j].lower * inverse_n) <= 0 || slack(zero, -reach[j].upper * inverse_n) <= 0;
    }
    return movable;
}

std::optional<std::vector<double>> anderson_weights(const Past &past, std::span<const double> scale) {
    const auto size = static_cast<Eigen::Index>(past.size()) - 1;
    Eigen::MatrixXd products = Eigen::MatrixXd::Zero(size, size);
    Eigen::VectorXd moves(size);
    for (std::size_t k = 0; k < scale.size(); ++k) {
        for (Eigen::Index m = 0; m < size; ++m) {
            const auto point = static_cast<std::size_t>(m);
            moves[m] = past[point + 1][k] - past[point][k];
        }
        products.noalias() += scale[k] * moves * moves.transpose();
    }
    products.diagonal().array() += 1e-12 * products.trace();
    Eigen::VectorXd weights = products.partialPivLu().solve(Eigen::VectorXd::Ones(size));
    weights /= weights.sum();
    if (!weights.allFinite()) return {};
    return std::vector<double>(weights.begin(), weights.end());
}

} // namespace spdc
