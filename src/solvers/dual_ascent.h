// Proximal SDCA on (1/n) sum_i omega_i phi(a_i'x) + g(x) + (kappa/2)|x - c|^2, the kernel of sdca (kappa = 0) and of asdca's
// inner loop.
//
// Shalev-Shwartz and Zhang, "Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization"
// (2014), procedure Prox-SDCA with option I, the exact step of a bound on the dual. Only v = kappa c - u is kept, u = (1/n)
// sum_i omega_i y_i a_i: a row asks for the x_j = argmax_x v_j x - g_j(x) - (kappa/2) x^2 of its non-zeros, so nothing is
// ever behind.
//
//   s = <a_k, x>;   y_k <- argmax_b  b s - phi*(b) - (omega_k |a_k|^2 / (2 (lambda + kappa) n)) (b - y_k)^2,   delta its move
//   v <- v - (omega_k delta/n) a_k
#pragma once

#include "huge_pages.h"
#include "stochastic.h"

#include <vector>

namespace spdc {

/// x_j = argmax_x v x - g_j(x) - (kappa/2) x^2, the gradient of the conjugate: g is strongly convex.
template <class G> struct Maximizer {
    G g;
    double kappa;
    std::span<const double> factors;
    std::int64_t features;

    double operator()(std::int64_t j, double v) const noexcept {
        G own = factors.empty() || j == features ? g : g.scaled(factors[static_cast<std::size_t>(j)]);
        own.l2 += kappa;
        return own.maximizer(v);
    }
};

/// Calls visit(matrix, maximizer) with their concrete types.
template <class Visit> void with_maximizer(const Problem &problem, double kappa, Visit &&visit) {
    std::visit(
        [&](const auto &matrix, const auto &g) {
            visit(matrix,
                  Maximizer<std::remove_cvref_t<decltype(g)>>{g, kappa, problem.penalty_factors(), problem.features()});
        },
        problem.matrix(), problem.regularizer().variant());
}

class DualAscent {
  public:
    DualAscent(const Problem &problem, const Constants &constants, double kappa)
        : problem_(problem), constants_(constants), strength_(constants.lambda + kappa),
          v_(static_cast<std::size_t>(problem.dimension())), y_(constants.norm2.size(), 0.0) {
        for (std::size_t i = 0; i < y_.size(); ++i) { // rows without entries are done
            if (constants.norm2[i] == 0) y_[i] = problem.loss().derivative(0, problem.targets()[i]);
        }
    }

    /// A visit of row k; returns <a_k, x>.
    template <class Row, class X> double visit(const Row &row, const X &x, std::int64_t k) noexcept {
        double s = 0;
        for (std::int64_t p = 0; p < row.size(); ++p) {
            const std::int64_t j = row.column(p);
            s += row.value(p) * x(j, v_[static_cast<std::size_t>(j)]);
        }
        if (constants_.column != 0) s += constants_.column * x(constants_.d, v_.back());
        const auto i = static_cast<std::size_t>(k);
        if (constants_.norm2[i] == 0) return s;
        const double sigma = strength_ * constants_.rows / constants_.norm2[i];
        const double next = problem_.loss().dual_prox(s, y_[i], sigma, problem_.targets()[i]);
        const double move = problem_.importance(k) * (next - y_[i]) / constants_.rows;
        y_[i] = next;
        if (move == 0) return s;
        for (std::int64_t p = 0; p < row.size(); ++p) {
            v_[static_cast<std::size_t>(row.column(p))] -= move * row.value(p);
        }
        if (constants_.column != 0) v_.back() -= move * constants_.column;
        return s;
    }

    template <class X> void take_x(const X &map, std::vector<double> &x) const {
        x.resize(v_.size());
        for (std::size_t j = 0; j < x.size(); ++j) x[j] = map(static_cast<std::int64_t>(j), v_[j]);
    }
    const std::vector<double> &y() const noexcept { return y_; }
    /// v_j moves by this when c does.
    void shift(std::size_t j, double by) noexcept { v_[j] += by; }

  private:
    const Problem &problem_;
    const Constants &constants_;
    double strength_;
    std::vector<double, HugePageAllocator<double>> v_; // the features, then the intercept
    std::vector<double> y_;
};

} // namespace spdc
