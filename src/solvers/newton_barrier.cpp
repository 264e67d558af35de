// Losses with corners: a primal-dual interior point method whose linear systems are those of Newton's method.
//
// Problem: P(x) = (1/n) sum_i omega_i phi(a_i'x) + sum_j (lambda_j/2) x_j^2 where phi* is made of pieces c y + (gamma/2) y^2 on
// intervals [l, u]: hinge, absolute, quantile, smoothed hinge and huber have one, epsilon-insensitive has two with y their sum.
// Every row carries its dual y inside the interval and the multipliers s, t of its ends,
//
//   z - c - gamma y + s - t = 0,    s (y - l) = mu,    t (u - y) = mu,    Lambda x + (1/n) A'(omega y) = 0,    z = A x,
//
// and mu goes to 0. Eliminating the rows leaves a Newton step with curvatures h = 1/(gamma + s/(y-l) + t/(u-y)), that is one d x d
// system (Ferris and Munson 2002; predictor and corrector of Mehrotra 1992, two solves for one factor). It took 10 to 40
// iterations to 1e-6 on all data tried; semismooth Newton steps on smoothed hinges zigzag between sets of active rows (a9a at
// l2 = 1e-6: not there after 450 iterations). y is strictly
// inside its interval throughout: a dual point as it stands.
//
// Cost: an iteration reads the data four times, once to assemble H.
#include "newton.h"
#include "newton_system.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace spdc {

namespace {

template <class L>
concept HasPieces = requires(const L loss, double v) {
    { loss.conjugate_slope(v, v) } -> std::same_as<double>;
};

using Stretch = std::array<double, NewtonSystem::longest_stretch>;

/// One piece of phi* for each row of a stretch: c y + (gamma/2) y^2 on [lower, upper].
struct Pieces {
    Stretch lower, upper, slope;
};

/// y - lower and upper - y, each exact where it is small, and their multipliers.
struct Slacks {
    RowVector p, q, s, t;
};

/// What a step makes of the rows of a stretch: moves of y and of the multipliers.
struct Moves {
    Stretch y, s, t;
};

class BarrierNewton final : public SystemNewton {
  public:
    BarrierNewton(const Problem &problem, std::unique_ptr<NewtonSystem> system,
                  const std::optional<BarrierStart> &start);

    void advance(double passes) override;
    void point(std::vector<double> &x, std::vector<double> &y) override;

  private:
    double first_mu();
    void center(double mu);
    void measure(const NewtonSystem::Look &before);
    /// For piece k of rows [begin, end): visit(first place in slacks_, pieces).
    template <class Visit> void each_piece(std::size_t begin, std::size_t end, Visit &&visit) const;
    void describe(std::size_t begin, std::size_t end, std::size_t k, Pieces &pieces) const;
    double dual_at(std::size_t at, double lower, double upper) const noexcept {
        return slacks_.p[at] < slacks_.q[at] ? lower + slacks_.p[at] : upper - slacks_.q[at];
    }
    void find_moves(std::size_t begin, std::size_t count, std::size_t at, const Pieces &pieces, double target,
                    bool corrects, Moves &moves) const noexcept;
    void fill(std::size_t begin, std::size_t end, double target, bool corrects, double *w, double *h) const;
    void look(std::size_t begin, std::size_t end, double target, bool corrects, RowSums &sums, double *w) const;
    void move(std::size_t begin, std::size_t end, double length, double target);
    bool is_stuck(bool solved, double length);

    const double gamma_;
    double weight_ = 0; // the sum of omega
    std::size_t pieces_ = 1;
    RowVector z_, first_, next_; // predictions, and their moves by the predictor and by the corrector
    Slacks slacks_;              // piece after piece
    double mu_ = 0, best_gap_ = infinity;
    int best_iteration_ = 0, short_steps_ = 0;
};

BarrierNewton::BarrierNewton(const Problem &problem, std::unique_ptr<NewtonSystem> system,
                             const std::optional<BarrierStart> &start)
    : SystemNewton(problem, std::move(system), 50), gamma_(problem.loss().gamma()) {
    std::visit(
        [&](const auto &loss) {
            if constexpr (HasPieces<std::remove_cvref_t<decltype(loss)>>) {
                pieces_ = loss.conjugate_slope(0.0, 1) == loss.conjugate_slope(-0.0, 1) ? 1 : 2;
            }
        },
        problem.loss().variant());
    for (auto *array : {&z_, &first_, &next_}) make_numbers(system_->team(), *array, count_);
    for (auto *array : {&slacks_.p, &slacks_.q, &slacks_.s, &slacks_.t}) {
        make_numbers(system_->team(), *array, count_ * pieces_);
    }
    const std::size_t known = start ? system_->row_count() : 0;
    const double *const omega = system_->rows().omega;
    const RowSums sums = system_->look([&](std::size_t begin, std::size_t end, RowSums &own) {
        for (std::size_t p = begin; p < end; ++p) {
            z_[p] = p < known ? start->predictions[system_->row_at(p)] : 0.0;
            first_[p] = next_[p] = 0;
            own.weight += omega[p];
        }
    });
    weight_ = sums.weight;
    center(start ? start->mu : first_mu());
}

void BarrierNewton::describe(std::size_t begin, std::size_t end, std::size_t k, Pieces &pieces) const {
    const double *const b = system_->rows().b;
    std::visit(
        [&](const auto &loss) {
            if constexpr (HasPieces<std::remove_cvref_t<decltype(loss)>>) {
                for (std::size_t i = begin; i < end; ++i) {
                    const Interval domain = loss.domain(b[i]);
                    pieces.lower[i - begin] = pieces_ == 2 && k == 0 ? 0 : domain.lower;
                    pieces.upper[i - begin] = pieces_ == 2 && k == 1 ? 0 : domain.upper;
                    pieces.slope[i - begin] = loss.conjugate_slope(k == 0 ? 0.0 : -0.0, b[i]);
                }
            }
        },
        problem_.loss().variant());
}

template <class Visit> void BarrierNewton::each_piece(std::size_t begin, std::size_t end, Visit &&visit) const {
    Pieces pieces;
    for (std::size_t k = 0; k < pieces_; ++k) {
        describe(begin, end, k, pieces);
        visit(k * count_ + begin, pieces);
    }
}

/// Well above the typical loss: x = 0 has far to go, and steps end where the first slack is used up.
double BarrierNewton::first_mu() {
    const double *const omega = system_->rows().omega;
    const RowSums size = system_->look([&](std::size_t begin, std::size_t end, RowSums &sums) {
        each_piece(begin, end, [&](std::size_t, const Pieces &piece) {
            for (std::size_t j = 0; j < end - begin; ++j) {
                sums.products += omega[begin + j] * std::fabs(piece.slope[j]) * (piece.upper[j] - piece.lower[j]);
            }
        });
    });
    return size.products > 0 ? 2.5 * size.products / (weight_ * static_cast<double>(pieces_)) : 1;
}

/// The slacks that belong to z at this mu.
void BarrierNewton::center(double mu) {
    const double *const omega = system_->rows().omega;
    system_->look([&](std::size_t begin, std::size_t end, RowSums &) {
        each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
            for (std::size_t j = 0; j < end - begin; ++j) {
                const double half = 0.5 * (piece.upper[j] - piece.lower[j]);
                double v = z_[begin + j] - piece.slope[j];
                if (gamma_ > 0) v -= gamma_ * std::clamp(v / gamma_, piece.lower[j], piece.upper[j]);
                // v = 2 mu off/(half^2 - off^2) for the distance from the middle
                const double root = mu + std::sqrt(mu * mu + v * v * half * half);
                const double off = v * half * half / root;
                const double far = half + std::fabs(off), near = 2 * mu * half * half / root / far;
                slacks_.p[at + j] = off > 0 ? far : near;
                slacks_.q[at + j] = off > 0 ? near : far;
                slacks_.s[at + j] = mu / slacks_.p[at + j];
                slacks_.t[at + j] = mu / slacks_.q[at + j];
            }
        });
    });
    system_->mismatch([&](std::size_t begin, std::size_t end, double *w, double *) {
        std::fill(w, w + (end - begin), 0.0);
        each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
            for (std::size_t j = 0; j < end - begin; ++j) {
                w[j] += omega[begin + j] * dual_at(at + j, piece.lower[j], piece.upper[j]);
            }
        });
    });
    measure([](std::size_t, std::size_t, RowSums &) {});
}

/// The gap of x and y, and mu, after `before` has moved the rows.
void BarrierNewton::measure(const NewtonSystem::Look &before) {
    const LossRows rows = system_->rows();
    const RowSums sums = system_->look([&](std::size_t begin, std::size_t end, RowSums &own) {
        before(begin, end, own);
        Stretch y{}, unused;
        each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
            double products = 0;
            for (std::size_t j = 0; j < end - begin; ++j) {
                y[j] += dual_at(at + j, piece.lower[j], piece.upper[j]);
                products += rows.omega[begin + j] *
                            (slacks_.s[at + j] * slacks_.p[at + j] + slacks_.t[at + j] * slacks_.q[at + j]);
            }
            own.products += products;
        });
        const LossRows stretch{rows.b + begin, rows.omega + begin, end - begin};
        own.young += loss_.young(stretch, z_.data() + begin, y.data());
        own.loss += loss_.evaluate(stretch, z_.data() + begin, y.data(), unused.data());
    });
    mu_ = sums.products / (2 * weight_ * static_cast<double>(pieces_));
    objective_ = sums.loss / system_->divisor() + system_->penalty();
    gap_ = sums.young / system_->divisor() + system_->mismatch();
}

/// dy = h (dz + r), ds = (target - e)/p - s - (s/p) dy, dt = (target - f)/q - t + (t/q) dy with e, f the products of the
/// predictor's moves; the predictor itself has target, e and f zero.
void BarrierNewton::find_moves(std::size_t begin, std::size_t count, std::size_t at, const Pieces &pieces,
                               double target, bool corrects, Moves &moves) const noexcept {
    const double *const z = z_.data() + begin, *const first = first_.data() + begin, *const next = next_.data() + begin;
    const double *const p = slacks_.p.data() + at, *const q = slacks_.q.data() + at;
    const double *const s = slacks_.s.data() + at, *const t = slacks_.t.data() + at;
    for (std::size_t j = 0; j < count; ++j) {
        const double to_p = 1 / p[j], to_q = 1 / q[j], s_p = s[j] * to_p, t_q = t[j] * to_q;
        const double h = 1 / (gamma_ + s_p + t_q);
        const double y = p[j] < q[j] ? pieces.lower[j] + p[j] : pieces.upper[j] - q[j];
        const double r = z[j] - pieces.slope[j] - gamma_ * y;
        const double dy = h * (first[j] + r);
        const double ds = -s[j] - s_p * dy, dt = -t[j] + t_q * dy;
        if (!corrects) {
            moves.y[j] = dy, moves.s[j] = ds, moves.t[j] = dt;
            continue;
        }
        const double e = (target - ds * dy) * to_p, f = (target + dt * dy) * to_q;
        const double better = h * (next[j] + r + e - f);
        moves.y[j] = better, moves.s[j] = e - s[j] - s_p * better, moves.t[j] = f - t[j] + t_q * better;
    }
}

/// w = omega (y + h r), with r as the equations of the row give it; h too unless it is known.
void BarrierNewton::fill(std::size_t begin, std::size_t end, double target, bool corrects, double *w, double *h) const {
    const double *const omega = system_->rows().omega + begin;
    const std::size_t count = end - begin;
    std::fill(w, w + count, 0.0);
    if (!corrects) std::fill(h, h + count, 0.0);
    each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
        const double *const z = z_.data() + begin, *const first = first_.data() + begin;
        const double *const p = slacks_.p.data() + at, *const q = slacks_.q.data() + at;
        const double *const s = slacks_.s.data() + at, *const t = slacks_.t.data() + at;
        for (std::size_t j = 0; j < count; ++j) {
            const double to_p = 1 / p[j], to_q = 1 / q[j], s_p = s[j] * to_p, t_q = t[j] * to_q;
            const double own = 1 / (gamma_ + s_p + t_q);
            const double y = p[j] < q[j] ? piece.lower[j] + p[j] : piece.upper[j] - q[j];
            double r = z[j] - piece.slope[j] - gamma_ * y;
            if (corrects) {
                const double dy = own * (first[j] + r);
                r += (target + (s[j] + s_p * dy) * dy) * to_p - (target - (t[j] - t_q * dy) * dy) * to_q;
            } else {
                h[j] += omega[j] * own;
            }
            w[j] += omega[j] * (y + own * r);
        }
    });
}

/// How fast the moves use up the slacks, and the sum of their products; w: omega times the duals after the whole step.
void BarrierNewton::look(std::size_t begin, std::size_t end, double target, bool corrects, RowSums &sums,
                         double *w) const {
    const double *const omega = system_->rows().omega + begin;
    const std::size_t count = end - begin;
    Moves moves;
    if (w) std::fill(w, w + count, 0.0);
    each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
        find_moves(begin, count, at, piece, target, corrects, moves);
        const double *const p = slacks_.p.data() + at, *const q = slacks_.q.data() + at;
        const double *const s = slacks_.s.data() + at, *const t = slacks_.t.data() + at;
        double largest = 0, products = 0; // not in `sums`, which might be where p is
        for (std::size_t j = 0; j < count; ++j) {
            const double up = std::max(-moves.y[j] / p[j], moves.y[j] / q[j]);
            const double down = std::max(-moves.s[j] / s[j], -moves.t[j] / t[j]);
            largest = std::max(largest, std::max(up, down));
            products += omega[j] * (moves.s[j] - moves.t[j]) * moves.y[j];
        }
        sums.largest = std::max(sums.largest, largest);
        sums.products += products;
        for (std::size_t j = 0; w && j < count; ++j) {
            w[j] += omega[j] * (dual_at(at + j, piece.lower[j], piece.upper[j]) + moves.y[j]);
        }
    });
}

void BarrierNewton::move(std::size_t begin, std::size_t end, double length, double target) {
    Moves moves;
    each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
        find_moves(begin, end - begin, at, piece, target, true, moves);
        for (std::size_t j = 0; j < end - begin; ++j) {
            slacks_.p[at + j] += length * moves.y[j];
            slacks_.q[at + j] -= length * moves.y[j];
            slacks_.s[at + j] += length * moves.s[j];
            slacks_.t[at + j] += length * moves.t[j];
        }
    });
    for (std::size_t i = begin; i < end; ++i) z_[i] += length * next_[i];
}

bool BarrierNewton::is_stuck(bool solved, double length) {
    short_steps_ = length < 1e-3 ? short_steps_ + 1 : 0;
    is_exhausted_ = !solved || short_steps_ > 5;
    return is_exhausted_;
}

void BarrierNewton::advance(double) {
    if (is_exhausted_) return;
    ++iterations_;
    double target = 0;
    RowSums sums;
    const auto solve = [&](bool corrects, RowVector &move, double goal) {
        return system_->solve(
            z_.data(),
            [&](std::size_t begin, std::size_t end, double *w, double *h) { fill(begin, end, target, corrects, w, h); },
            !corrects, move.data(),
            [&](std::size_t begin, std::size_t end, RowSums &own, double *w) {
                look(begin, end, target, corrects, own, w);
            },
            sums, goal);
    };
    if (!solve(false, first_, infinity)) {
        is_exhausted_ = true;
        return;
    }
    // how much of mu the predictor alone would leave says how much of it to aim for
    const double reach = std::min(1.0, 1 / sums.largest);
    const double terms = 2 * weight_ * static_cast<double>(pieces_);
    const double left = std::clamp((1 - reach) + reach * reach * sums.products / terms / mu_, 0.0, 1.0);
    target = left * left * left * left * mu_;
    // a step seldom takes more than 99% of the gap: duals that miss by a thousandth of it do not show, and at first none do
    const double size = std::fabs(objective_);
    const double goal = gap_ > 0.1 * size ? infinity : std::max(1e-3 * gap_, 0.01 * tolerance_ * size);
    const bool solved = solve(true, next_, goal);
    const double length = solved ? std::min(1.0, 0.99 / sums.largest) : 0;
    if (is_stuck(solved, length)) return;
    system_->take(length);
    measure([&](std::size_t begin, std::size_t end, RowSums &) { move(begin, end, length, target); });
    if (gap_ < 0.9 * best_gap_) {
        best_gap_ = gap_;
        best_iteration_ = iterations_;
    }
    is_exhausted_ = iterations_ > best_iteration_ + 30;
}

void BarrierNewton::point(std::vector<double> &x, std::vector<double> &y) {
    system_->point(x);
    y.resize(static_cast<std::size_t>(problem_.rows()));
    system_->look([&](std::size_t begin, std::size_t end, RowSums &) {
        Stretch dual{};
        each_piece(begin, end, [&](std::size_t at, const Pieces &piece) {
            for (std::size_t j = 0; j < end - begin; ++j) dual[j] += dual_at(at + j, piece.lower[j], piece.upper[j]);
        });
        for (std::size_t p = begin; p < std::min(end, system_->row_count()); ++p)
            y[system_->row_at(p)] = dual[p - begin];
    });
}

} // namespace

std::unique_ptr<Method> make_barrier_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system,
                                            const std::optional<BarrierStart> &start) {
    return std::make_unique<BarrierNewton>(problem, std::move(system), start);
}

} // namespace spdc
