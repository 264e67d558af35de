// Newton's method with conjugate gradients, for l2 penalties, smooth losses and any number of features.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + sum_j (lambda_j/2) x_j^2; lambda_j = 0 is allowed, as for a free intercept.
//
//   H s = -g + r,   H = (1/n) A' diag(h) A + Lambda;   x <- x + t s,   t = 1 or the minimiser along s
//
// The system is solved by conjugate gradients as far as it is worth (Dembo, Eisenstat and Steihaug 1982), preconditioned by the
// diagonal of H, which makes the units of the columns irrelevant. Rows of text have many features that few others have: the diagonal
// gives each of them the weight of a frequent one, and together they outweigh all else. There a hundredth of (1/n) A' diag(h) A's
// diagonal serves better, as Hsia, Chiang and Lin (2018) found; elsewhere it does not (a9a: 81 passes with all of it, 198).
// A product with H reads the rows once (row_products.h); A s is added up on the way, and the search along s reads no data.
//
// h = omega phi''(z), with the smallest set to 0 that carry 1 % of the sum: most rows of a fitted logistic model are among them, and
// are not read. Any h >= 0 keeps the dual point valid: y = phi'(z) + (h/omega) (A s) gives A'y/n + Lambda (x + s) = r exactly, so the gap at
// x + s is the Fenchel-Young loss of the rows and r'Lambda^-1 r/2. The same bound ends the conjugate gradients when it is small.
#include "newton_cg.h"

#include "methods.h"
#include "newton_loss.h"
#include "newton_step.h"
#include "row_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

using Sums = std::array<double, 3>;

class NewtonCgMethod final : public Method {
  public:
    NewtonCgMethod(const Problem &problem, const SolveContext &context);

    void start(std::span<const double> x, std::span<const double> y) override;

    void advance(double passes) override;
    double passes() const override { return passes_; }
    void point(std::vector<double> &x, std::vector<double> &y) override;
    double estimated_gap() const override { return gap_; }
    void aim(double tolerance) override { tolerance_ = tolerance; }
    bool has_point() const override { return promising() || is_exhausted_ || passes_ >= 50; }
    bool exhausted() const override { return is_exhausted_; }
    void certified(const Found &) override;
    int threads() const override { return products_.threads(); }

  private:
    enum class Stage { derivatives, system, search };
    static constexpr std::size_t stretch_ = 8192; // of rows or coordinates for a thread, a multiple of 4
    static constexpr double near_ = 0.02;         // steps that gain less than this share of P are near the minimiser

    void start_system();
    void conjugate_step();
    void search_line();
    double best_length(const Sums &slopes) const;
    void set_dual();
    double measure_dual();
    void evaluate(const double *along);
    void remember_secants();
    bool promising() const { return gap_ <= tolerance_ * std::fabs(objective_); }
    /// What a residual of coordinate j costs the dual; of one that is not penalised, its size.
    double charge(std::size_t j, double r) const {
        return l2_[j] > 0 ? 0.5 * r * r / l2_[j] : std::fabs(r) * std::max(1.0, std::fabs(x_[j]));
    }
    /// Of rows in one stretch. The problem's own arrays, but for the last stretch: copies of those would be two numbers a row.
    LossRows rows_of(std::size_t begin, std::size_t end) const {
        const std::size_t count = end - begin;
        if (begin >= last_) return {last_b_.data() + (begin - last_), last_omega_.data() + (begin - last_), count};
        const std::span<const double> omega = problem_.importance();
        return {problem_.targets().data() + begin, omega.empty() ? ones_.data() : omega.data() + begin, count};
    }
    /// Adds up work(begin, end) over fixed stretches, in their order whatever thread has run them.
    template <class Work> Sums sum(std::size_t count, Work work) const;

    const Problem &problem_;
    const double n_;
    RowProducts products_;
    NewtonLoss loss_;
    // per coordinate
    std::vector<double> l2_, x_, s_, r_, inverse_; // inverse_: of the preconditioner
    std::vector<DirectionPair, HugePageAllocator<DirectionPair>> pq_;
    // per row, padded to a multiple of 4 by rows of importance 0; half of what a run takes, and others follow where a scale is searched
    using RowNumbers = std::vector<double, ReturningAllocator<double>>;
    RowNumbers z_, w_, h_, move_, t_, y_;
    std::vector<float, ReturningAllocator<float>> secant_; // empty until there is one
    // targets and importance of the last stretch of rows, padded so, and the importance of all others where rows weigh the same
    std::size_t last_;
    std::vector<double> last_b_, last_omega_, ones_;
    Stage stage_ = Stage::derivatives;
    bool has_predictions_ = true, has_newton_dual_ = false, has_corners_ = false, is_exhausted_ = false;
    double penalty_ = 0, objective_ = infinity, gap_ = infinity, best_gap_ = infinity, tolerance_ = 1e-4, passes_ = 0;
    double rz_ = 0, first_rz_ = 0, fall_ = 0; // r'M^-1 r now and at the start; -g's
    double forcing_ = 0.09;                   // rz_ as a share of first_rz_ at which the system is solved well enough
    double active_ = 1;                       // share of the entries in rows with curvature
    double skip_ = 0.01;                      // share of the curvature that is left out
    double share_ = 1;                        // of the losses' part of the diagonal in the preconditioner
    int iterations_ = 0, useless_ = 0;
};

NewtonCgMethod::NewtonCgMethod(const Problem &problem, const SolveContext &context)
    : problem_(problem), n_(static_cast<double>(problem.rows())), products_(problem, context), loss_(problem.loss()),
      pq_(at(problem.dimension())) {
    const std::size_t d = at(problem.dimension()), rows = at(problem.rows()), padded = (rows + 3) / 4 * 4;
    l2_.resize(d);
    for (std::size_t j = 0; j < d; ++j) l2_[j] = problem.regularizer(static_cast<std::int64_t>(j)).strong_convexity();
    const auto clear = [](auto &array, std::size_t size) { // new pages take long
        interruption_point(static_cast<std::int64_t>(size));
        array.resize(size, 0.0);
    };
    for (auto *array : {&x_, &s_, &r_, &inverse_}) clear(*array, d);
    for (auto *array : {&z_, &w_, &h_, &move_, &t_, &y_}) clear(*array, padded);
    last_ = rows / stretch_ * stretch_;
    for (auto *array : {&last_b_, &last_omega_}) array->resize(padded - last_);
    for (std::size_t i = last_; i < rows; ++i) {
        last_b_[i - last_] = problem.targets()[i];
        last_omega_[i - last_] = problem.importance(static_cast<std::int64_t>(i));
    }
    if (last_ > 0 && problem.importance().empty()) ones_.assign(stretch_, 1.0);
    if (loss_.is_quadratic()) skip_ = 0; // one system is all there is: solve the right one
    has_corners_ = std::visit(
        [](const auto &loss) {
            return requires { loss.conjugate_slope(0, 0); };
        },
        problem.loss().variant());
    if (!has_corners_ && likeness(problem, problem.rows() / 2) < likeness_of_text) share_ = 0.01;
    loss_.set_blunt(loss_.has_pieces());
}

void NewtonCgMethod::start(std::span<const double> x, std::span<const double>) {
    std::copy(x.begin(), x.end(), x_.begin());
    for (std::size_t j = 0; j < x_.size(); ++j) penalty_ += 0.5 * l2_[j] * x_[j] * x_[j];
    has_predictions_ = false;
    loss_.set_blunt(false);
}

template <class Work> Sums NewtonCgMethod::sum(std::size_t count, Work work) const {
    const std::size_t stretches = (count + stretch_ - 1) / stretch_;
    std::vector<Sums> parts(stretches);
    const auto run = [&](std::size_t k) { parts[k] = work(k * stretch_, std::min((k + 1) * stretch_, count)); };
    if (stretches < 16) {
        for (std::size_t k = 0; k < stretches; ++k) run(k);
    } else {
        products_.for_each(stretches, run);
    }
    Sums total{};
    for (const Sums &part : parts) {
        for (std::size_t c = 0; c < total.size(); ++c) total[c] += part[c];
    }
    return total;
}

void NewtonCgMethod::advance(double passes) {
    const double end = passes_ + passes;
    const bool was_promising = promising();
    do {
        switch (stage_) {
        case Stage::derivatives: start_system(); break;
        case Stage::system: conjugate_step(); break;
        case Stage::search: search_line(); break;
        }
    } while (passes_ < end && !is_exhausted_ && (was_promising || !promising()));
}

/// Loss and its derivatives at z, or z + along.
void NewtonCgMethod::evaluate(const double *along) {
    const Sums sums = sum(z_.size(), [&](std::size_t begin, std::size_t end) {
        std::vector<double> moved;
        const double *z = z_.data() + begin;
        if (along) {
            moved.resize(end - begin);
            for (std::size_t i = begin; i < end; ++i) moved[i - begin] = z_[i] + along[i];
            z = moved.data();
        }
        return Sums{loss_.evaluate(rows_of(begin, end), z, w_.data() + begin, h_.data() + begin)};
    });
    objective_ = sums[0] / n_ + penalty_;
}

/// The gradient and the diagonal of H at x, and the first direction.
void NewtonCgMethod::start_system() {
    if (!has_predictions_) {
        products_.predict(x_.data(), nullptr, z_.data());
        passes_ += 0.5;
    }
    if (!has_predictions_ || iterations_ == 0) evaluate(nullptr);
    has_predictions_ = true;
    for (std::size_t i = 0; i < secant_.size(); ++i) {
        h_[i] = std::max(h_[i], static_cast<double>(secant_[i]));
        secant_[i] *= 0.5F;
    }
    skip_smallest(h_, skip_);
    active_ = products_.active_share(h_.data());
    products_.gradient(w_.data(), h_.data(), r_.data(), inverse_.data());
    passes_ += 0.5;
    const Sums sums = sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        Sums part{};
        for (std::size_t j = begin; j < end; ++j) {
            const double g = r_[j] + l2_[j] * x_[j], diagonal = share_ * inverse_[j] + l2_[j];
            r_[j] = -g;
            s_[j] = 0;
            inverse_[j] = diagonal > 0 ? 1 / diagonal : 0; // nothing moves a column without entries and penalty
            pq_[j] = {-inverse_[j] * g, 0};
            part[0] += g * g * inverse_[j];
            part[1] += charge(j, g);
        }
        return part;
    });
    rz_ = first_rz_ = sums[0];
    fall_ = 0;
    std::fill(move_.begin(), move_.end(), 0.0);
    ++iterations_;
    if (sums[1] < 0.5 * best_gap_) { // P may be at its rounding long before the dual is
        best_gap_ = sums[1];
        useless_ = 0;
    }
    if (sums[1] < gap_ || !has_newton_dual_) {
        gap_ = sums[1];
        has_newton_dual_ = false;
    }
    stage_ = Stage::system;
    if (!(rz_ > 0) || !std::isfinite(rz_)) is_exhausted_ = true;
}

void NewtonCgMethod::conjugate_step() {
    products_.curvature(h_.data(), pq_.data(), t_.data());
    passes_ += active_;
    const double pHp = sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        Sums part{};
        for (std::size_t j = begin; j < end; ++j) {
            pq_[j].q += l2_[j] * pq_[j].p;
            part[0] += pq_[j].p * pq_[j].q;
        }
        return part;
    })[0];
    const double alpha = rz_ / pHp;
    if (!(pHp > 0) || !std::isfinite(alpha)) {
        stage_ = Stage::search;
        return;
    }
    for (std::size_t i = 0; i < move_.size(); ++i) {
        if (h_[i] != 0) move_[i] += alpha * t_[i];
    }
    const Sums sums = sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        Sums part{};
        for (std::size_t j = begin; j < end; ++j) {
            s_[j] += alpha * pq_[j].p;
            r_[j] -= alpha * pq_[j].q;
            part[0] += r_[j] * r_[j] * inverse_[j];
            part[1] += charge(j, r_[j]);
        }
        return part;
    });
    const double before = rz_;
    fall_ += alpha * rz_;
    rz_ = sums[0];
    const bool is_enough = rz_ <= forcing_ * first_rz_ && !loss_.is_quadratic();
    if (is_enough || sums[1] <= 0.3 * tolerance_ * std::fabs(objective_) || rz_ <= 1e-30 * first_rz_) {
        stage_ = Stage::search;
        return;
    }
    const double beta = rz_ / before;
    sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j) pq_[j] = {inverse_[j] * r_[j] + beta * pq_[j].p, 0};
        return Sums{};
    });
}

/// The minimiser of P(x + t s) in t <= 1, or 1 where P hardly rises there; slopes of the penalty are given.
double NewtonCgMethod::best_length(const Sums &slopes) const {
    const auto slope = [&](double t) {
        const Sums rows = sum(z_.size(), [&](std::size_t begin, std::size_t end) {
            const LineSlope part = loss_.slope(rows_of(begin, end), z_.data() + begin, move_.data() + begin, t);
            return Sums{part.first, part.second};
        });
        return LineSlope{rows[0] / n_ + slopes[0] + t * slopes[1], rows[1] / n_ + slopes[1]};
    };
    return slope(1).first <= 0.05 * fall_ ? 1 : line_minimum(slope, -fall_, 1);
}

/// The full step where it lowers the objective as it should, else the minimiser along it.
void NewtonCgMethod::search_line() {
    products_.predict(s_.data(), h_.data(), move_.data());
    passes_ += 0.5 * (1 - active_);
    const double before = objective_, decrement = 0.5 * fall_, rounding = 1e-14 * std::fabs(objective_);
    const Sums slopes = sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        Sums part{};
        for (std::size_t j = begin; j < end; ++j) {
            part[0] += l2_[j] * x_[j] * s_[j];
            part[1] += l2_[j] * s_[j] * s_[j];
        }
        return part;
    });
    set_dual();
    loss_.set_blunt(false);
    penalty_ += slopes[0] + 0.5 * slopes[1];
    evaluate(move_.data());
    const double t = objective_ <= before - 0.1 * decrement + rounding ? 1 : best_length(slopes);
    if (t != 1 && has_corners_) {
        remember_secants();
    } else if (t != 1 && decrement <= near_ * std::fabs(before)) {
        skip_ *= 0.1; // so near, a refused step means that some column had its curvature in rows that were left out
    }
    for (std::size_t i = 0; i < z_.size(); ++i) z_[i] += t * move_[i];
    for (std::size_t j = 0; j < x_.size(); ++j) x_[j] += t * s_[j];
    penalty_ = 0;
    for (std::size_t j = 0; j < x_.size(); ++j) penalty_ += 0.5 * l2_[j] * x_[j] * x_[j];
    if (t != 1) evaluate(nullptr);
    useless_ = t * decrement <= 0.1 * rounding ? useless_ + 1 : 0;
    is_exhausted_ = useless_ > 3;
    has_newton_dual_ = t == 1 && decrement <= near_ * std::fabs(before);
    gap_ = has_newton_dual_ ? measure_dual() : infinity;
    // systems are solved the better the smaller the steps have become, so that they become small faster than linearly
    forcing_ = t == 1 ? std::min(0.09, decrement / std::fabs(objective_)) : 0.09;
    stage_ = Stage::derivatives;
}

/// Along a refused step rows have left their parabola or reached another; they will count with what they were found to curve on
/// average, or the next step would run into the same corner. (Squared hinge on rcv1 at l2 = 1e-6: 131 passes instead of 238.)
void NewtonCgMethod::remember_secants() {
    secant_.resize(z_.size());
    sum(z_.size(), [&](std::size_t begin, std::size_t end) {
        const LossRows rows = rows_of(begin, end);
        loss_.dual(rows, z_.data() + begin, y_.data() + begin);
        for (std::size_t i = begin; i < end; ++i) {
            if (move_[i] == 0) continue;
            const double curve = (w_[i] - rows.omega[i - begin] * y_[i]) / move_[i];
            secant_[i] = std::max(secant_[i], static_cast<float>(std::min(curve, 1e30)));
        }
        return Sums{};
    });
}

/// y <- phi'(z) + (h/omega) move, cut to the dual domains; r takes what was cut off.
void NewtonCgMethod::set_dual() {
    const Sums cut = sum(z_.size(), [&](std::size_t begin, std::size_t end) {
        double any = 0;
        const LossRows rows = rows_of(begin, end);
        std::visit(
            [&](const auto &loss) {
                for (std::size_t i = begin; i < end; ++i) {
                    const double omega = rows.omega[i - begin];
                    if (omega == 0) continue;
                    const double wanted = (w_[i] + h_[i] * move_[i]) / omega;
                    y_[i] = loss.domain(rows.b[i - begin]).clip(wanted);
                    t_[i] = omega * (wanted - y_[i]);
                    any += t_[i] != 0 ? 1 : 0;
                }
            },
            problem_.loss().variant());
        return Sums{any};
    });
    if (cut[0] == 0) return;
    std::vector<double> excess(x_.size());
    products_.gradient(t_.data(), nullptr, excess.data(), nullptr);
    for (std::size_t j = 0; j < x_.size(); ++j) r_[j] += excess[j];
}

/// The gap between x and y.
double NewtonCgMethod::measure_dual() {
    const Sums rows = sum(z_.size(), [&](std::size_t begin, std::size_t end) {
        return Sums{loss_.young(rows_of(begin, end), z_.data() + begin, y_.data() + begin)};
    });
    const Sums coordinates = sum(x_.size(), [&](std::size_t begin, std::size_t end) {
        Sums part{};
        for (std::size_t j = begin; j < end; ++j) part[0] += charge(j, r_[j]);
        return part;
    });
    return rows[0] / n_ + coordinates[0];
}

/// The estimate was too kind, if it was not a look in between: ask for more, and let rounding not pile up in z.
void NewtonCgMethod::certified(const Found &) {
    if (!promising()) return;
    tolerance_ *= 0.5;
    has_predictions_ = false;
}

void NewtonCgMethod::point(std::vector<double> &x, std::vector<double> &y) {
    x = x_;
    y.resize(at(problem_.rows()));
    if (has_newton_dual_) {
        std::copy(y_.begin(), y_.begin() + problem_.rows(), y.begin());
        return;
    }
    if (!has_predictions_) products_.predict(x_.data(), nullptr, z_.data());
    sum(z_.size(), [&](std::size_t begin, std::size_t end) { // y_ is free as long as it is not the dual point
        loss_.dual(rows_of(begin, end), z_.data() + begin, y_.data() + begin);
        return Sums{};
    });
    std::copy(y_.begin(), y_.begin() + problem_.rows(), y.begin());
}

} // namespace

// Sums over bins of h by exponent and four bits of fraction; whole bins are skipped, so that equal curvatures are treated alike.
void skip_smallest(std::span<double> h, double share) {
    constexpr int dropped_bits = 48;
    const auto bin = [](double v) {
        return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(std::fabs(v)) >> dropped_bits);
    };
    std::vector<double> mass(std::size_t{1} << (63 - dropped_bits), 0.0);
    double total = 0;
    for (const double v : h) {
        mass[bin(v)] += v;
        total += v;
    }
    std::size_t first = 0;
    for (double below = 0; first < mass.size() && below + mass[first] <= share * total; ++first) below += mass[first];
    for (double &v : h) v = bin(v) < first ? 0 : v;
}

bool is_smooth(const AnyLoss &loss) { return loss.gamma() > 0 || std::isinf(loss.lipschitz()); }

void check_newton_cg(const Problem &problem, std::string_view solver) {
    if (!std::holds_alternative<L2>(problem.regularizer().variant())) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l2 penalty without l1 or bounds; the solver spdc takes any penalty",
                         solver));
    }
    if (!is_smooth(problem.loss())) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs a loss without kinks, and {} has one; the solvers spdc_fast and spdc take it",
                         solver, problem.loss().name()));
    }
}

std::unique_ptr<Method> make_newton_cg(const Problem &problem, std::span<const double> x, const SolveContext &context) {
    auto method = std::make_unique<NewtonCgMethod>(problem, context);
    if (!x.empty()) method->start(x, {});
    return method;
}

std::unique_ptr<Method> make_method(const Problem &problem, const NewtonCg &options, const SolveContext &context) {
    check_newton_cg(problem, options.name);
    return make_newton_cg(problem, {}, context);
}

} // namespace spdc
