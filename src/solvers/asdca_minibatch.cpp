// Accelerated mini-batch SDCA.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + g(x), phi 1/gamma-smooth, g lambda-strongly convex. Shalev-Shwartz and
// Zhang, "Accelerated mini-batch stochastic dual coordinate ascent" (2013), procedure of figure 1. With u = (1/n) sum_i
// omega_i y_i a_i and w = argmax_x -u'x - g(x):
//
//   z <- (1 - theta) x + theta w;   K: m rows drawn uniformly
//   y_k <- (1 - theta) y_k + theta phi'(a_k'z) for k in K, u and w follow;   x <- (1 - theta) x + theta w
//
//   theta = (1/4) min{ 1, sqrt(s/m), s, s^(2/3) m^(-1/3) },   s = lambda gamma n/R^2
//
// which takes O(1/theta) passes. Batches up to max(s, 1/s) cost no passes; the largest such is the default m. Cost of an
// iteration: the non-zeros of its rows, read three times; x moves towards w in closed form where no row of the batch has an
// entry.
//
// What differs: R need not be 1, and a feature that several rows share is moved once, after all of them.
#include "dual_ascent.h"
#include "methods.h"

#include <fmt/format.h>

#include <algorithm>

namespace spdc {

namespace {

class AsdcaMinibatchMethod final : public StochasticMethod {
  public:
    AsdcaMinibatchMethod(const Problem &problem, std::optional<std::int64_t> batch_size, const SolveContext &context)
        : StochasticMethod(problem), s_(constants_.lambda * constants_.gamma * constants_.rows / constants_.R2),
          m_(batch_size.value_or(free_batch())), theta_(theta_of(s_, static_cast<double>(m_))),
          towards_(1, theta_ / (1 - theta_)), sampler_(Sampling::uniform, constants_.n, m_, context.seed, {}, 0.5),
          batch_(static_cast<std::size_t>(m_)), moves_(batch_.size()),
          x_(static_cast<std::size_t>(problem.dimension())), y_(constants_.norm2.size(), 0.0) {}

    void advance(double passes) override {
        const std::int64_t count = (rows_in(passes) + m_ - 1) / m_;
        with_maximizer(problem_, 0, [&](const auto &matrix, const auto &w) {
            for (std::int64_t s = 0; s < count; ++s) iterate(matrix, w);
        });
        visits_ += count * m_;
    }

    void point(std::vector<double> &x, std::vector<double> &y) override {
        x.resize(x_.size());
        for (std::size_t j = 0; j < x.size(); ++j) {
            catch_up(static_cast<std::int64_t>(j));
            x[j] = x_[j].x;
        }
        y = y_;
    }

  private:
    struct Coordinate {
        double x = 0, w = 0, u = 0;
        std::int64_t time = 0; // x is that of this iteration
    };

    std::int64_t free_batch() const {
        const double most = std::min(std::max(s_, 1 / s_), constants_.rows);
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(most));
    }
    static double theta_of(double s, double m) {
        return 0.25 * std::min({1.0, std::sqrt(s / m), s, std::cbrt(s * s / m)});
    }

    void catch_up(std::int64_t j) noexcept {
        Coordinate &c = x_[static_cast<std::size_t>(j)];
        if (c.time == t_) return;
        c.x = towards_.advance(c.x, -c.w, t_ - c.time); // k times x <- (1 - theta) x + theta w
        c.time = t_;
    }

    template <class Matrix, class W> void iterate(const Matrix &matrix, const W &w) {
        sampler_.draw(batch_);
        for (std::size_t q = 0; q < batch_.size(); ++q) moves_[q] = update_dual(matrix.row(batch_[q]), batch_[q]);
        for (std::size_t q = 0; q < batch_.size(); ++q) {
            if (moves_[q] == 0) continue;
            each_entry(matrix.row(batch_[q]), [&](Coordinate &c, std::int64_t, double a) { c.u += moves_[q] * a; });
        }
        ++t_;
        for (std::size_t q = 0; q < batch_.size(); ++q) {
            if (moves_[q] == 0) continue;
            each_entry(matrix.row(batch_[q]), [&](Coordinate &c, std::int64_t j, double) {
                if (c.time == t_) return; // another row has moved it
                c.w = w(j, -c.u);
                c.x += theta_ * (c.w - c.x);
                c.time = t_;
            });
        }
    }

    /// Moves y_k towards phi'(a_k'z); returns what u gets of a_k.
    template <class Row> double update_dual(const Row &row, std::int64_t k) noexcept {
        double z = 0;
        each_entry(row, [&](Coordinate &c, std::int64_t j, double a) {
            catch_up(j);
            z += a * (c.x + theta_ * (c.w - c.x));
        });
        double &y = y_[static_cast<std::size_t>(k)];
        const double move = theta_ * (problem_.loss().derivative(z, target(k)) - y);
        y += move;
        touched_ += row.size();
        return problem_.importance(k) * move / constants_.rows;
    }

    template <class Row, class Visit> void each_entry(const Row &row, Visit &&visit) noexcept {
        for (std::int64_t p = 0; p < row.size(); ++p) {
            visit(x_[static_cast<std::size_t>(row.column(p))], row.column(p), row.value(p));
        }
        if (constants_.column != 0) visit(x_.back(), constants_.d, constants_.column);
    }

    double s_; // lambda gamma n / R^2
    std::int64_t m_;
    double theta_;
    AffineOrbit towards_;
    Sampler sampler_;
    std::vector<std::int64_t> batch_;
    std::vector<double> moves_;
    std::vector<Coordinate, HugePageAllocator<Coordinate>> x_; // the features, then the intercept
    std::vector<double> y_;
    std::int64_t t_ = 0;
};

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const AsdcaMinibatch &options,
                                    const SolveContext &context) {
    need_smooth_loss(problem, options.name);
    need_strong_convexity(problem, options.name);
    if (options.batch_size.value_or(1) > problem.rows()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("batch-size = {}: the data have only {} rows", *options.batch_size, problem.rows()));
    }
    return std::make_unique<AsdcaMinibatchMethod>(problem, options.batch_size, context);
}

} // namespace spdc
