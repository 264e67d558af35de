#include "newton_loss.h"

#include "row_losses.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace spdc {

namespace {

template <class L>
concept HasBoundedPieces = requires(const L loss, double v) {
    { loss.conjugate_slope(v, v) } -> std::same_as<double>;
};

} // namespace

bool NewtonLoss::has_pieces() const {
    return std::visit(
        [](const auto &loss) {
            return HasBoundedPieces<std::remove_cvref_t<decltype(loss)>> && std::isfinite(loss.lipschitz());
        },
        loss_.variant());
}

double NewtonLoss::evaluate(const LossRows &rows, const double *z, double *w, double *h) const {
    if (std::holds_alternative<Logistic>(loss_.variant())) {
        return kernels_->logistic(z, rows.b, rows.omega, rows.count, w, h);
    }
    return std::visit(
        [&](const auto &loss) {
            double sum = 0;
            for (std::size_t i = 0; i < rows.count; ++i) {
                const double b = rows.b[i], omega = rows.omega[i];
                w[i] = omega * loss.derivative(z[i], b);
                h[i] = omega * (blunt_ ? 1 / loss.gamma() : loss.curvature(z[i], b));
                sum += omega * loss.value(z[i], b);
            }
            return sum;
        },
        loss_.variant());
}

LineSlope NewtonLoss::slope(const LossRows &rows, const double *z, const double *v, double t) const {
    constexpr std::size_t block = 64;
    double at[block], w[block], h[block];
    LineSlope slope;
    for (std::size_t begin = 0; begin < rows.count; begin += block) {
        const std::size_t count = std::min(block, rows.count - begin);
        for (std::size_t i = 0; i < count; ++i) at[i] = z[begin + i] + t * v[begin + i];
        evaluate({rows.b + begin, rows.omega + begin, count}, at, w, h);
        for (std::size_t i = 0; i < count; ++i) {
            slope.first += w[i] * v[begin + i];
            slope.second += h[i] * v[begin + i] * v[begin + i];
        }
    }
    return slope;
}

void NewtonLoss::dual(const LossRows &rows, const double *z, double *y) const {
    loss_slopes(loss_, z, rows.b, rows.count, y);
}

bool NewtonLoss::newton_dual(const LossRows &rows, const double *z, const double *next, double *y,
                             double *excess) const {
    if (std::holds_alternative<Logistic>(loss_.variant())) return logistic_newton_dual(rows, z, next, y, excess);
    return std::visit(
        [&](const auto &loss) {
            bool any = false;
            for (std::size_t i = 0; i < rows.count; ++i) {
                const double b = rows.b[i];
                const double wanted =
                    loss.derivative(z[i], b) + (blunt_ ? 1 / loss.gamma() : loss.curvature(z[i], b)) * (next[i] - z[i]);
                y[i] = loss.domain(b).clip(wanted);
                excess[i] = wanted - y[i];
                any = any || excess[i] != 0;
            }
            return any;
        },
        loss_.variant());
}

bool NewtonLoss::logistic_newton_dual(const LossRows &rows, const double *z, const double *next, double *y,
                                      double *excess) const {
    constexpr std::size_t block = 64;
    double ones[block], h[block];
    std::fill(ones, ones + block, 1.0);
    bool any = false;
    for (std::size_t begin = 0; begin < rows.count; begin += block) {
        const std::size_t count = std::min(block, rows.count - begin);
        kernels_->logistic(z + begin, rows.b + begin, ones, count, y + begin, h);
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = begin + k;
            const double wanted = y[i] + h[k] * (next[i] - z[i]);
            const double b = rows.b[i];
            y[i] = b > 0 ? std::min(std::max(wanted, -1.0), 0.0) : std::min(std::max(wanted, 0.0), 1.0);
            excess[i] = wanted - y[i];
            any = any || excess[i] != 0;
        }
    }
    return any;
}

double NewtonLoss::young(const LossRows &rows, const double *z, const double *y) const {
    constexpr std::size_t block = 64;
    double values[block], conjugates[block], sum = 0;
    for (std::size_t begin = 0; begin < rows.count; begin += block) {
        const std::size_t count = std::min(block, rows.count - begin);
        loss_values(loss_, z + begin, rows.b + begin, count, values);
        loss_conjugates(loss_, y + begin, rows.b + begin, count, conjugates);
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = begin + k;
            sum += rows.omega[i] * std::max(values[k] + conjugates[k] - y[i] * z[i], 0.0);
        }
    }
    return sum;
}

} // namespace spdc
