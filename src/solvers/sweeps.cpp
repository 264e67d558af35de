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
