#include "newton_loss.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace spdc {

namespace {

template <class L>
concept HasBoundedPieces = requires(const L loss, double v) {
    { loss.conjugate_slope(v, v) } -> std::same_as<double>;
};

/// A loss with nothing added.
template <class L> struct Plain {
    const L &loss;
    double value(double z, double b) const noexcept { return loss.value(z, b); }
    double derivative(double z, double b) const noexcept { return loss.derivative(z, b); }
    double curvature(double z, double b) const noexcept { return loss.curvature(z, b); }
};

template <class L> struct Smoothed {
    const L &loss;
    double width, inverse, inside;
    Smoothed(const L &l, double w) : loss(l), width(w), inverse(1 / w), inside(1 / (l.gamma() + w)) {}

    double derivative(double z, double b) const noexcept { return loss.dual_prox(z, 0, inverse, b); }
    double value(double z, double b) const noexcept {
        const double y = derivative(z, b);
        return y * (z - 0.5 * width * y) - loss.conjugate(y, b);
    }
    double curvature(double z, double b) const noexcept {
        const double y = derivative(z, b);
        const Interval domain = loss.domain(b);
        if (!(domain.lower < y && y < domain.upper)) return 0;
        // phi* may have a corner at 0, at which the maximiser rests
        const bool rests = y == 0 && loss.conjugate_slope(0.0, b) != loss.conjugate_slope(-0.0, b);
        return rests ? 0 : inside;
    }
};

/// Calls visit(loss as seen, true loss).
template <class Visit> auto with_loss(const AnyLoss &any, double width, Visit &&visit) {
    return std::visit(
        [&](const auto &loss) {
            using L = std::remove_cvref_t<decltype(loss)>;
            if constexpr (HasBoundedPieces<L>) {
                if (width > 0) return visit(Smoothed<L>(loss, width), loss);
            }
            return visit(Plain<L>{loss}, loss);
        },
        any.variant());
}

} // namespace

bool NewtonLoss::can_smooth() const {
    return std::visit(
        [](const auto &loss) {
            if constexpr (HasBoundedPieces<std::remove_cvref_t<decltype(loss)>>) return std::isfinite(loss.lipschitz());
            return false;
        },
        loss_.variant());
}

double NewtonLoss::evaluate(const LossRows &rows, const double *z, double *w, double *h) const {
    if (std::holds_alternative<Logistic>(loss_.variant())) {
        return kernels_->logistic(z, rows.b, rows.omega, rows.count, w, h);
    }
    return with_loss(loss_, width_, [&](const auto &loss, const auto &) {
        double sum = 0;
        for (std::size_t i = 0; i < rows.count; ++i) {
            const double b = rows.b[i], omega = rows.omega[i];
            w[i] = omega * loss.derivative(z[i], b);
            h[i] = omega * loss.curvature(z[i], b);
            sum += omega * loss.value(z[i], b);
        }
        return sum;
    });
}

LineSlope NewtonLoss::slope(const LossRows &rows, const double *z, const double *v, double t) const {
    constexpr std::size_t block = 64;
    double at[block], w[block], h[block];
    LineSlope slope;
    for (std::size_t begin = 0; begin < rows.count; begin += block) {
        const std::size_t count = std::min(block, rows.count - begin);
        for (std::size_t i = 0; i < count; ++i)
            at[i] = z[begin + i] + t * v[begin + i];
        evaluate({rows.b + begin, rows.omega + begin, count}, at, w, h);
        for (std::size_t i = 0; i < count; ++i) {
            slope.first += w[i] * v[begin + i];
            slope.second += h[i] * v[begin + i] * v[begin + i];
        }
    }
    return slope;
}

void NewtonLoss::dual(const LossRows &rows, const double *z, double *y) const {
    with_loss(loss_, width_, [&](const auto &loss, const auto &) {
        for (std::size_t i = 0; i < rows.count; ++i)
            y[i] = loss.derivative(z[i], rows.b[i]);
    });
}

bool NewtonLoss::newton_dual(const LossRows &rows, const double *z, const double *next, double *y,
                             double *excess) const {
    if (std::holds_alternative<Logistic>(loss_.variant())) return logistic_newton_dual(rows, z, next, y, excess);
    return with_loss(loss_, width_, [&](const auto &loss, const auto &truth) {
        bool any = false;
        for (std::size_t i = 0; i < rows.count; ++i) {
            const double b = rows.b[i];
            const double wanted = loss.derivative(z[i], b) + loss.curvature(z[i], b) * (next[i] - z[i]);
            y[i] = truth.domain(b).clip(wanted);
            excess[i] = wanted - y[i];
            any = any || excess[i] != 0;
        }
        return any;
    });
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
    return with_loss(loss_, 0, [&](const auto &loss, const auto &truth) {
        double sum = 0;
        for (std::size_t i = 0; i < rows.count; ++i) {
            const double b = rows.b[i];
            sum += rows.omega[i] * std::max(loss.value(z[i], b) + truth.conjugate(y[i], b) - y[i] * z[i], 0.0);
        }
        return sum;
    });
}

double NewtonLoss::curved_share(const LossRows &rows, const double *z) const {
    return with_loss(loss_, width_, [&](const auto &loss, const auto &) {
        double curved = 0, all = 0;
        for (std::size_t i = 0; i < rows.count; ++i) {
            all += rows.omega[i];
            if (loss.curvature(z[i], rows.b[i]) > 0) curved += rows.omega[i];
        }
        return curved / all;
    });
}

} // namespace spdc
