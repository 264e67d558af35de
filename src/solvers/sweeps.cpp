#include "sweeps.h"

#include <Eigen/Core>
#include <Eigen/LU>

namespace spdc {

namespace {

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

std::optional<AndersonWeights> anderson_weights(const Past &past, std::span<const double> scale) {
    constexpr auto size = static_cast<Eigen::Index>(anderson_memory);
    using Matrix = Eigen::Matrix<double, size, size>;
    using Vector = Eigen::Matrix<double, size, 1>;
    Matrix products = Matrix::Zero();
    for (std::size_t k = 0; k < scale.size(); ++k) {
        Vector moves;
        for (std::size_t m = 0; m < anderson_memory; ++m) {
            moves[static_cast<Eigen::Index>(m)] = past[m + 1][k] - past[m][k];
        }
        products.noalias() += scale[k] * moves * moves.transpose();
    }
    products.diagonal().array() += 1e-12 * products.trace();
    Vector weights = products.partialPivLu().solve(Vector::Ones());
    weights /= weights.sum();
    if (!weights.allFinite()) return {};
    AndersonWeights result;
    for (std::size_t m = 0; m < anderson_memory; ++m)
        result[m] = weights[static_cast<Eigen::Index>(m)];
    return result;
}

} // namespace spdc
