#include "newton_models.h"

namespace spdc {

RidgeModel::RidgeModel(const Problem &problem, const RowBlocks &rows) {
    l2_.resize(static_cast<Eigen::Index>(rows.dimension()));
    for (std::int64_t j = 0; j < problem.dimension(); ++j) {
        l2_[static_cast<Eigen::Index>(rows.place_of(j))] = problem.regularizer(j).strong_convexity();
    }
}

void RidgeModel::set(const Eigen::VectorXd &x, Eigen::VectorXd gradient) {
    gradient_ = std::move(gradient);
    gradient_ += l2_.cwiseProduct(x);
}

bool RidgeModel::choose(const Eigen::VectorXd &, const NewtonGoal &, Team &team, NewtonStep &step) {
    if (!factor_.factor(hessian_, team)) return false;
    step.move = factor_.solve(-gradient_);
    const double slope = gradient_.dot(step.move);
    step.decrement = -0.5 * slope;
    return step.move.allFinite() && slope < 0;
}

/// sum_j residual_j^2/(2 lambda_j); what is not penalised is charged for its size.
double RidgeModel::squared_over_l2(const Eigen::VectorXd &residual, const Eigen::VectorXd &x) const {
    double sum = 0;
    for (Eigen::Index j = 0; j < residual.size(); ++j) {
        const double r = residual[j];
        sum += l2_[j] > 0 ? 0.5 * r * r / l2_[j] : std::fabs(r) * std::max(1.0, std::fabs(x[j]));
    }
    return sum;
}

double SparseModel::penalty(const Eigen::VectorXd &x) const {
    double sum = 0;
    for (Eigen::Index k = 0; k < x.size(); ++k) sum += g(k).value(x[k]);
    return sum;
}

void SparseModel::set_hessian() {
    const Eigen::Index d = hessian_.rows();
    std::vector<double> gram(static_cast<std::size_t>(d * d));
    for (Eigen::Index k = 0; k < d; ++k) {
        interruption_point(d);
        for (Eigen::Index m = k; m < d; ++m) {
            gram[static_cast<std::size_t>(k * d + m)] = gram[static_cast<std::size_t>(m * d + k)] = hessian_(m, k);
        }
    }
    sweeps_.take(coordinates_, std::move(gram));
}

/// An excess of a derivative over l1 shrinks the dual by as much, which costs about that share of the objective.
bool SparseModel::choose(const Eigen::VectorXd &x, const NewtonGoal &goal, Team &, NewtonStep &step) {
    const auto numbers = [](const Eigen::VectorXd &v) { return std::vector<double>(v.begin(), v.end()); };
    const double tolerance = goal.tolerance;
    SweepResult target{1e-3 * tolerance * std::min(1.0, tolerance) * std::fabs(goal.objective), 0.01 * tolerance};
    sweeps_.start(numbers(x), numbers(gradient_));
    sweeps_.minimize(target, goal.is_exact ? 0 : 1e-3);
    Eigen::VectorXd end = Eigen::Map<const Eigen::VectorXd>(sweeps_.x().data(), x.size());
    // what rounding alone takes away from 0: at l1 = lambda_max no weight is to be left
    const double nothing = 1e-14 * std::fabs(goal.objective) / static_cast<double>(x.size());
    for (Eigen::Index k = 0; k < end.size(); ++k) {
        const Box own = g(k);
        if (own.bounds.contains(0) && own.l1 * std::fabs(end[k]) < nothing && own.l1 > 0) end[k] = 0;
    }
    newton_gradient_ = Eigen::Map<const Eigen::VectorXd>(sweeps_.q().data(), x.size());
    step.move = end - x;
    // sweeps never go up, but differences round
    step.decrement = std::max(penalty(x) - penalty(end) - 0.5 * step.move.dot(gradient_ + newton_gradient_), 0.0);
    return end.allFinite();
}

/// At a kink, the slope beyond it where the move begins there, and before it where the move has come there.
LineSlope SparseModel::slope(const Eigen::VectorXd &x, const Eigen::VectorXd &move, double t) const {
    LineSlope sum;
    for (Eigen::Index k = 0; k < x.size(); ++k) {
        if (move[k] == 0) continue;
        const Box own = g(k);
        const double v = x[k] + t * move[k], side = v != 0 ? v : (t > 0 ? -move[k] : move[k]);
        sum.first += move[k] * (own.l2 * v + std::copysign(own.l1, side));
        sum.second += own.l2 * move[k] * move[k];
    }
    return sum;
}

/// sum_j g_j(x_j) + g_j*(-s u_j) + s u_j x_j with the s <= 1 that brings s u into the domain of g*, and what s costs the loss, about.
double SparseModel::cost(const Eigen::VectorXd &x, const Eigen::VectorXd &u, double objective) const {
    double scale = 1, sum = 0;
    for (Eigen::Index k = 0; k < u.size(); ++k) {
        const Interval domain = g(k).conjugate_domain();
        const double w = -scale * u[k];
        if (domain.upper > 0 && w > domain.upper) scale *= domain.upper / w;
        if (domain.lower < 0 && w < domain.lower) scale *= domain.lower / w;
    }
    for (Eigen::Index k = 0; k < u.size(); ++k) {
        const Box own = g(k);
        const Interval domain = own.conjugate_domain();
        double w = -scale * u[k]; // which may round to beyond an end that the scale is for
        if (domain.upper > 0) w = std::min(w, domain.upper);
        if (domain.lower < 0) w = std::max(w, domain.lower);
        const double conjugate = own.conjugate(w);
        sum += conjugate < infinity ? std::max(own.value(x[k]) + conjugate - w * x[k], 0.0)
                                    : std::fabs(w) * std::max(1.0, std::fabs(x[k]));
    }
    return sum + (1 - scale) * std::fabs(objective);
}

} // namespace spdc
