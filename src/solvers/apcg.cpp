// APCG: the accelerated proximal coordinate gradient method on the dual.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth, g lambda-strongly convex. Lin, Lu and Xiao, "An
// accelerated proximal coordinate gradient method and its application to regularized empirical risk minimization" (2014),
// algorithm 2 on -D(y) = (1/n) sum_i omega_i phi*(y_i) + g*(-A'y/n), in the form for sparse data of their section 5. The
// strong convexity gamma moves from phi* to the smooth part, whose coordinates then have the Lipschitz constant
// gamma/(n mu), mu = lambda gamma n/(R^2 + lambda gamma n). With alpha = sqrt(mu)/n and rho = (1 - alpha)/(1 + alpha) the
// dual points are rho^t U + V (the iterate), y = rho^{t+1} U + V (where the gradient is taken) and V - rho^{t+1} U (the
// centre of the proximal step):
//
//   k uniform;   s = <a_k, x>, x the primal point of y;   h = the proximal step of phi* - (gamma/2) b^2 in coordinate k
//   U_k <- U_k - (1 - n alpha) h / (2 rho^{t+1}),   V_k <- V_k + (1 + n alpha) h / 2,   p = A'U/n and q = A'V/n follow
//
// Cost of a step: the non-zeros of its row, read twice. rho^t is folded into U and p before it gets small.
//
// What differs: all coordinates have the Lipschitz constant of the longest row, with which the step of phi* - (gamma/2) b^2
// is one of phi* (a short row's own constant may not allow that). The primal proximal gradient step at the end is left to
// the certificate, which tries the points that x and y imply.
#include "dual_ascent.h"
#include "methods.h"

namespace spdc {

namespace {

class ApcgMethod final : public StochasticMethod {
  public:
    ApcgMethod(const Problem &problem, const SolveContext &context)
        : StochasticMethod(problem), rows_(Sampling::uniform, constants_.n, context.seed),
          w_(static_cast<std::size_t>(problem.dimension())), y_(constants_.norm2.size()) {
        const double strength = constants_.lambda * constants_.gamma * constants_.rows;
        root_mu_ = std::sqrt(strength / (constants_.R2 + strength));
        const double alpha = root_mu_ / constants_.rows;
        rho_ = (1 - alpha) / (1 + alpha);
    }

    void advance(double passes) override {
        const std::int64_t count = rows_in(passes);
        with_maximizer(problem_, 0, [&](const auto &matrix, const auto &x) {
            for (std::int64_t s = 0; s < count; ++s) {
                visit(matrix, x);
                if (power_ < 1e-9) rebase();
            }
        });
        visits_ += count;
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        x.resize(w_.size());
        y.resize(y_.size());
        with_maximizer(problem_, 0, [&](const auto &, const auto &map) {
            for (std::size_t j = 0; j < x.size(); ++j) {
                x[j] = map(static_cast<std::int64_t>(j), -(power_ * w_[j].fading + w_[j].lasting));
            }
        });
        for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = problem_.loss().domain(problem_.targets()[i]).clip(power_ * y_[i].fading + y_[i].lasting);
        }
    }

  private:
    /// rho^t fading + lasting: U and V of a row, p and q of a feature.
    struct Pair {
        double fading = 0, lasting = 0;
    };

    template <class Matrix, class X> void visit(const Matrix &matrix, const X &x) {
        const std::int64_t k = rows_.next(matrix);
        const auto row = matrix.row(k);
        power_ *= rho_;
        const auto primal = [&](std::int64_t j) {
            const Pair &w = w_[static_cast<std::size_t>(j)];
            return x(j, -(power_ * w.fading + w.lasting));
        };
        double s = constants_.column != 0 ? constants_.column * primal(constants_.d) : 0;
        for (std::int64_t p = 0; p < row.size(); ++p) s += row.value(p) * primal(row.column(p));
        Pair &own = y_[static_cast<std::size_t>(k)];
        const double h = prox_move(k, s, power_ * own.fading + own.lasting, own.lasting - power_ * own.fading);
        touched_ += row.size();
        if (h == 0) return;
        const Pair move{-0.5 * (1 - root_mu_) * h / power_, 0.5 * (1 + root_mu_) * h};
        own.fading += move.fading;
        own.lasting += move.lasting;
        const double scale = problem_.importance(k) / constants_.rows;
        const auto add = [&](Pair &w, double a) {
            w.fading += scale * a * move.fading;
            w.lasting += scale * a * move.lasting;
        };
        for (std::int64_t p = 0; p < row.size(); ++p) add(w_[static_cast<std::size_t>(row.column(p))], row.value(p));
        if (constants_.column != 0) add(w_.back(), constants_.column);
    }

    /// h that minimises phi*(z) - (gamma/2) z^2 + (gamma y - s) z + (M/2)(z - centre)^2 at z = centre + h, M = n alpha times the
    /// Lipschitz constant gamma/mu: the squares make one of weight M - gamma.
    double prox_move(std::int64_t k, double s, double y, double centre) const noexcept {
        const double gamma = constants_.gamma, M = gamma / root_mu_;
        const double from = (M * centre - gamma * y) / (M - gamma);
        return problem_.loss().dual_prox(s, from, 1 / (M - gamma), target(k)) - centre;
    }

    void rebase() noexcept {
        for (Pair &w : w_) w.fading *= power_;
        for (Pair &y : y_) y.fading *= power_;
        power_ = 1;
    }

    RowStream rows_;
    std::vector<Pair, HugePageAllocator<Pair>> w_; // p and q, the intercept last
    std::vector<Pair> y_;                          // U and V
    double root_mu_ = 1, rho_ = 1, power_ = 1;     // n alpha; rho; rho^t
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Apcg &options, const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    need_strong_convexity(problem, options.name);
    return std::make_unique<ApcgMethod>(problem, context);
}

} // namespace spdc
