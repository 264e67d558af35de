#include "newton_system.h"

#include "newton_step.h"

#include <Eigen/Cholesky>

#include <algorithm>
#include <cmath>

namespace spdc {

namespace {

using Eigen::VectorXd;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Eigen::Map<const VectorXd> view(const double *values, std::size_t count) {
    return {values, static_cast<Eigen::Index>(count)};
}

/// sum_j r_j^2/(2 lambda_j); a coordinate without penalty is charged for its size.
double squared_over_l2(const VectorXd &r, const VectorXd &l2, const VectorXd &x) {
    double sum = 0;
    for (Eigen::Index j = 0; j < r.size(); ++j) {
        sum += l2[j] > 0 ? 0.5 * r[j] * r[j] / l2[j] : std::fabs(r[j]) * std::max(1.0, std::fabs(x[j]));
    }
    return sum;
}

class PrimalSystem final : public NewtonSystem {
  public:
    PrimalSystem(const Problem &problem, const SolveContext &context, const PrimalExtras &extras)
        : n_(extras.divisor > 0 ? extras.divisor : static_cast<double>(problem.rows())),
          blocks_(problem, context.seed, context, context.team, extras.rows) {
        l2_.resize(static_cast<Eigen::Index>(blocks_.dimension()));
        for (std::int64_t j = 0; j < problem.dimension(); ++j) {
            place_.push_back(static_cast<Eigen::Index>(blocks_.place_of(j)));
            l2_[place_.back()] = problem.regularizer(j).strong_convexity();
        }
        x_ = slope_ = step_ = residual_ = next_residual_ = VectorXd::Zero(l2_.size());
        for (std::size_t j = 0; j < extras.slope.size(); ++j) slope_[place_[j]] = extras.slope[j];
        for (std::size_t j = 0; j < extras.x.size(); ++j) x_[place_[j]] = extras.x[j];
        constant_ = extras.constant;
        auto vectors = blocks_.make_vectors<2>();
        b_ = std::move(vectors[0]);
        omega_ = std::move(vectors[1]);
        blocks_.fill_targets(b_);
        blocks_.fill_importance(omega_);
    }

    LossRows rows() const override { return {b_.data(), omega_.data(), blocks_.padded_rows()}; }
    std::size_t row_count() const override { return blocks_.rows(); }
    std::size_t row_at(std::size_t place) const override { return at(blocks_.row_at(place)); }
    double divisor() const override { return n_; }
    Team &team() const override { return blocks_.team(); }

    RowSums look(const Look &look) override {
        run(false, [&](std::size_t k, RowScratch &, RowSums &sums) { look(begin(k), begin(k + 1), sums); });
        return std::move(sums_);
    }

    bool solve(const double *, const Fill &fill, bool factors, double *move, const Watch &watch, RowSums &sums,
               double goal) override {
        run(factors, [&](std::size_t k, RowScratch &scratch, RowSums &own) {
            if (factors) blocks_.prepare(k, scratch);
            fill(begin(k), begin(k + 1), scratch.w.data(), scratch.h.data());
            blocks_.combine(k, scratch.w.data(), own.gradient.data(), scratch);
            if (factors) blocks_.add_hessian(k, scratch.h.data(), scratch, own);
        });
        passes_ += 1;
        if (factors) {
            blocks_.assemble(sums_, 1 / n_, hessian_);
            hessian_.diagonal() += l2_;
            if (!factor_.factor(hessian_, blocks_.team())) return false;
        }
        step_ = factor_.solve(-residual_at(x_));
        if (!step_.allFinite()) return false;
        follow(step_, true, move, watch, goal);
        refine(move, watch, goal);
        sums = std::move(sums_);
        return true;
    }

    void take(double t) override {
        x_ += t * step_;
        residual_ += t * (next_residual_ - residual_);
    }

    double mismatch(const Fill &fill) override {
        run(false, [&](std::size_t k, RowScratch &scratch, RowSums &sums) {
            fill(begin(k), begin(k + 1), scratch.w.data(), scratch.h.data());
            blocks_.combine(k, scratch.w.data(), sums.gradient.data(), scratch);
        });
        passes_ += 1;
        residual_ = next_residual_ = residual_at(x_);
        return mismatch();
    }
    double mismatch() const override { return squared_over_l2(residual_, l2_, x_); }

    double penalty() const override { return 0.5 * l2_.dot(x_.cwiseProduct(x_)) + slope_.dot(x_) + constant_; }
    LineSlope penalty_slope() const override {
        return {(l2_.cwiseProduct(x_) + slope_).dot(step_), l2_.cwiseProduct(step_).dot(step_)};
    }
    void point(std::vector<double> &x) const override {
        x.clear();
        for (const Eigen::Index place : place_) x.push_back(x_[place]);
    }

  private:
    std::size_t begin(std::size_t k) const { return k * blocks_.block_rows(); }
    void run(bool hessian, const RowBlocks::BlockWork &work) {
        blocks_.sum(blocks_.blocks(), hessian, sums_, work);
        threads_ = blocks_.threads();
    }
    /// Lambda x + (1/n) A'w of the last pass, and the slope of the linear term.
    VectorXd residual_at(const VectorXd &x) const {
        return view(sums_.gradient.data(), sums_.gradient.size()) / n_ + l2_.cwiseProduct(x) + slope_;
    }
    /// Adds A part, the first part of the step or a later one, to `move`, and looks what the step as a whole means to the rows.
    void follow(const VectorXd &part, bool is_first, double *move, const Watch &watch, double goal) {
        run(false, [&](std::size_t k, RowScratch &scratch, RowSums &own) {
            blocks_.predict(k, part.data(), scratch.y.data(), scratch);
            for (std::size_t i = 0; i < blocks_.block_rows(); ++i) {
                move[begin(k) + i] = (is_first ? 0.0 : move[begin(k) + i]) + scratch.y[i];
            }
            watch(begin(k), begin(k + 1), own, goal < infinity ? scratch.w.data() : nullptr);
            if (goal < infinity) blocks_.combine(k, scratch.w.data(), own.gradient.data(), scratch);
        });
        passes_ += 1;
        next_residual_ = goal < infinity ? residual_at(x_ + step_) : VectorXd::Zero(l2_.size());
    }
    /// Rows at a corner have curvatures beyond 1e8: they turn the rounding of A s into errors of their duals, which columns of large
    /// numbers and small penalties magnify again. The step that mends what is left is as small as that, and so is its rounding.
    void refine(double *move, const Watch &watch, double goal) {
        constexpr int most = 5;
        double left = squared_over_l2(next_residual_, l2_, x_);
        for (int k = 0; k < most && left > goal; ++k) {
            const double before = left;
            const VectorXd part = factor_.solve(-next_residual_);
            if (!part.allFinite()) return;
            step_ += part;
            follow(part, false, move, watch, goal);
            left = squared_over_l2(next_residual_, l2_, x_);
            if (!(left <= 0.5 * before)) return;
        }
    }

    const double n_;
    RowBlocks blocks_;
    std::vector<Eigen::Index> place_;
    RowVector b_, omega_;
    VectorXd l2_, slope_, x_, step_;
    double constant_ = 0;
    VectorXd residual_, next_residual_; // of the duals: here, and after the whole step
    Eigen::MatrixXd hessian_;
    ScaledCholesky factor_;
    RowSums sums_;
};

/// F^-1/2 of the penalty factors F, 0 for coordinates without penalty.
std::vector<double> scales_of(const Problem &problem) {
    std::vector<double> scales;
    const double lambda = problem.strong_convexity();
    for (std::int64_t j = 0; j < problem.dimension(); ++j) {
        const double own = problem.regularizer(j).strong_convexity();
        scales.push_back(own > 0 ? std::sqrt(lambda / own) : 0.0);
    }
    return scales;
}

/// F^-1/2 A' as the rows of a problem, feature by feature. Coordinates without penalty are left out.
Problem transposed(const Problem &problem) {
    const std::int64_t n = problem.rows(), d = problem.features();
    const std::vector<double> scale = scales_of(problem);
    struct Owner {
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t, UnfilledHugePageAllocator<std::int32_t>> columns;
        std::vector<double, UnfilledHugePageAllocator<double>> values;
    };
    const auto owner = std::make_shared<Owner>();
    auto &offsets = owner->offsets;
    auto &columns = owner->columns;
    auto &values = owner->values;
    offsets.assign(at(d) + 2, 0);
    const auto each_entry = [&](auto &&visit) {
        std::visit(
            [&](const auto &matrix) {
                for (std::int64_t i = 0; i < n; ++i) {
                    const auto row = matrix.row(i);
                    interruption_point(8 * row.size()); // new pages
                    for (std::int64_t q = 0; q < row.size(); ++q) {
                        const double value = row.value(q) * scale[at(row.column(q))];
                        if (value != 0) visit(i, row.column(q), value);
                    }
                    if (problem.intercept() == Intercept::penalized) visit(i, d, scale.back());
                }
            },
            problem.matrix());
    };
    each_entry([&](std::int64_t, std::int64_t j, double) { ++offsets[at(j) + 1]; });
    for (std::size_t j = 1; j < offsets.size(); ++j) offsets[j] += offsets[j - 1];
    columns.resize(at(offsets.back()));
    values.resize(columns.size());
    std::vector<std::int64_t> next = offsets;
    each_entry([&](std::int64_t i, std::int64_t j, double value) {
        const std::size_t p = at(next[at(j)]++);
        columns[p] = static_cast<std::int32_t>(i);
        values[p] = value;
    });
    Dataset data;
    data.matrix = CsrMatrix<double>::trusted(n, offsets, columns, values, owner);
    data.targets.assign(at(d) + 1, 0.0);
    return {std::move(data), Squared{}, L2{1}};
}

/// products <- A F^-1 A' through the transposed matrix.
void multiply_sparse_rows(const Problem &problem, const SolveContext &context, Team &team,
                          Eigen::Ref<Eigen::MatrixXd> products) {
    const Problem features = transposed(problem);
    const RowBlocks blocks(features, context.seed, context, &team);
    RowSums sums;
    const std::vector<double> ones(blocks.block_rows(), 1.0);
    blocks.sum(blocks.blocks(), true, sums, [&](std::size_t k, RowScratch &scratch, RowSums &own) {
        blocks.add_hessian(k, ones.data(), scratch, own);
    });
    Eigen::MatrixXd gram;
    blocks.assemble(sums, 1, gram);
    const auto place = [&](Eigen::Index i) { return static_cast<Eigen::Index>(blocks.place_of(i)); };
    for (Eigen::Index i = 0; i < products.rows(); ++i) {
        interruption_point(products.rows());
        for (Eigen::Index k = 0; k < products.rows(); ++k) {
            products(i, k) = gram(std::max(place(i), place(k)), std::min(place(i), place(k)));
        }
    }
}

/// The same where few entries are 0: some features at a time as a dense matrix, a row of A in each of its columns.
void multiply_dense_rows(const Problem &problem, Team &team, Eigen::Ref<Eigen::MatrixXd> products) {
    constexpr Eigen::Index width = 256, tile = 128;
    constexpr std::size_t stride =
        width + 8; // powers of 2 apart, entries of a feature would share a place in the cache
    const auto n = products.rows(), tiles = (n + tile - 1) / tile;
    const std::vector<double> scale = scales_of(problem);
    std::vector<double> some(at(n) * stride);
    std::vector<std::int64_t> next(at(n), 0); // entries of the rows that come next
    const auto fill = [&](const auto &matrix, std::int64_t i, std::int64_t begin) {
        double *const to = some.data() + at(i) * stride;
        std::fill_n(to, width, 0.0);
        const auto row = matrix.row(i);
        std::int64_t &q = next[at(i)];
        for (; q < row.size() && row.column(q) < begin + width; ++q) {
            to[row.column(q) - begin] = row.value(q) * scale[at(row.column(q))];
        }
        const std::int64_t last = problem.features(); // the intercept's
        if (problem.intercept() == Intercept::penalized && begin <= last && last < begin + width) {
            to[last - begin] = scale.back();
        }
    };
    const auto columns = [&](Eigen::Index begin) {
        return ColumnBlock{some.data() + at(begin) * stride, at(std::min(tile, n - begin)), stride, width};
    };
    /// visit(left, right) of the tiles on the diagonal and below it: columns from left, rows from right on.
    const auto each_tile = [&](double work, auto &&visit) {
        team.for_each(tiles * (tiles + 1) / 2, work, [&](std::int64_t piece) {
            Eigen::Index a = 0; // the pieces (a, b) with a <= b, one a after the other
            while (piece >= tiles - a) piece -= tiles - a++;
            visit(a * tile, (a + piece) * tile);
        });
    };
    const auto tile_at = [&](Eigen::Index row, Eigen::Index column) {
        return products.block(row, column, std::min(tile, n - row), std::min(tile, n - column));
    };
    const auto gram = newton_kernels().gram;
    const auto cells = static_cast<double>(n * n);
    each_tile(0.1 * cells, [&](Eigen::Index left, Eigen::Index right) { tile_at(right, left).setZero(); });
    for (std::int64_t begin = 0; begin < problem.dimension(); begin += width) {
        team.check();
        std::visit(
            [&](const auto &matrix) {
                team.for_each(n, static_cast<double>(n * width), [&](std::int64_t i) { fill(matrix, i, begin); });
            },
            problem.matrix());
        each_tile(0.05 * cells * width, [&](Eigen::Index left, Eigen::Index right) {
            gram(columns(left), columns(right), at(right - left), &products(right, left), at(products.outerStride()));
        });
    }
    each_tile(cells, [&](Eigen::Index left, Eigen::Index right) { // what is above the diagonal
        if (left < right) {
            tile_at(left, right) = tile_at(right, left).transpose();
        } else {
            for (Eigen::Index k = 0; k < std::min(tile, n - left); ++k) {
                for (Eigen::Index i = 0; i < k; ++i) products(left + i, left + k) = products(left + k, left + i);
            }
        }
    });
}

// With K = A F^-1 A' over the penalised coordinates, U the columns without penalty, kappa = 1/(lambda n) and Q = w + h (A s):
//
//   x + s = -kappa F^-1 A'Q on the penalised coordinates, c on the others;  z + A s = -kappa K Q + U c;  U'Q = 0.
//
// With Q = w + E p, E = diag(sqrt h) this is  (I + kappa E K E) p = E (U c - kappa K w - z): positive definite however many rows are
// equal or empty, only as large as the number of rows with h > 0, and p goes to 0 with the steps, so that rounding hurts little.
class DualSystem final : public NewtonSystem {
  public:
    DualSystem(const Problem &problem, const SolveContext &context);

    LossRows rows() const override { return {b_.data(), omega_.data(), b_.size()}; }
    std::size_t row_count() const override { return at(problem_.rows()); }
    std::size_t row_at(std::size_t place) const override { return place; }
    double divisor() const override { return rows_; }
    Team &team() const override { return team_; }
    RowSums look(const Look &look) override {
        RowSums sums;
        each_stretch([&](std::size_t begin, std::size_t end) { look(begin, end, sums); });
        return sums;
    }
    bool solve(const double *z, const Fill &fill, bool factors, double *move, const Watch &watch, RowSums &sums,
               double goal) override;
    void take(double t) override {
        v_ += t * (next_v_ - v_);
        c_ += t * (next_c_ - c_);
        mismatch_ *= (1 - t) * (1 - t);
    }
    double mismatch(const Fill &fill) override;
    double mismatch() const override { return mismatch_; }
    double penalty() const override { return 0.5 * lambda_ * std::max(0.0, v_.dot(by_gram(v_))); }
    LineSlope penalty_slope() const override {
        const VectorXd move = next_v_ - v_, image = by_gram(move);
        return {lambda_ * v_.dot(image), lambda_ * move.dot(image)};
    }
    void point(std::vector<double> &x) const override;

  private:
    template <class Visit> void each_stretch(Visit &&visit) const {
        for (std::size_t begin = 0; begin < b_.size(); begin += longest_stretch) {
            visit(begin, std::min(begin + longest_stretch, b_.size()));
        }
    }
    bool factor();
    VectorXd by_gram(const VectorXd &v) const {
        ask_this_thread(); // some 20 ms
        return K_ * v;
    }
    VectorXd on_active(const VectorXd &all) const { return all(active_); }
    VectorXd free_column(Eigen::Index j) const { return e_.cwiseProduct(on_active(U_.col(j))); }

    const Problem &problem_;
    const LentTeam crew_;
    Team &team_;
    const double rows_, lambda_, kappa_;
    std::vector<double> b_, omega_; // padded to a multiple of 4
    Eigen::MatrixXd K_, U_;
    VectorXd v_, c_, next_v_, next_c_; // x = F^-1 A'v and c
    std::vector<Eigen::Index> active_;
    VectorXd w_, h_, e_; // e: sqrt of h on the active rows
    Eigen::MatrixXd matrix_, right_, schur_;
    double mismatch_ = infinity;
    ScaledCholesky factor_;
};

DualSystem::DualSystem(const Problem &problem, const SolveContext &context)
    : problem_(problem), crew_(context.team, context), team_(crew_), rows_(static_cast<double>(problem.rows())),
      lambda_(problem.strong_convexity()),
      kappa_(1 / (problem.strong_convexity() * static_cast<double>(problem.rows()))) {
    const std::size_t n = at(problem.rows()), padded = (n + 3) / 4 * 4;
    b_.assign(padded, 0.0);
    omega_.assign(padded, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        b_[i] = problem.targets()[i];
        omega_[i] = problem.importance(static_cast<std::int64_t>(i));
    }
    const auto size = static_cast<Eigen::Index>(padded);
    K_.resize(size, size);
    K_.bottomRows(size - problem.rows()).setZero(); // the padding
    K_.rightCols(size - problem.rows()).setZero();
    const auto own = K_.topLeftCorner(problem.rows(), problem.rows());
    const bool are_dense = 3 * problem.nonzeros() > problem.rows() * problem.features();
    are_dense ? multiply_dense_rows(problem, team_, own) : multiply_sparse_rows(problem, context, team_, own);
    const auto free = problem.free_coordinates();
    U_ = Eigen::MatrixXd::Zero(size, static_cast<Eigen::Index>(free.size()));
    std::vector<std::int64_t> column(at(problem.dimension()), -1);
    for (std::size_t k = 0; k < free.size(); ++k) column[at(free[k])] = static_cast<std::int64_t>(k);
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows() && !free.empty(); ++i) {
                const auto row = matrix.row(i);
                for (std::int64_t q = 0; q < row.size(); ++q) {
                    if (column[at(row.column(q))] >= 0) U_(i, column[at(row.column(q))]) = row.value(q);
                }
                if (problem.intercept() == Intercept::free) U_(i, column.back()) = 1;
            }
        },
        problem.matrix());
    v_ = next_v_ = w_ = h_ = VectorXd::Zero(size);
    c_ = next_c_ = VectorXd::Zero(U_.cols());
}

bool DualSystem::factor() {
    active_.clear();
    for (Eigen::Index i = 0; i < h_.size(); ++i) {
        if (h_[i] > 0) active_.push_back(i);
    }
    const auto m = static_cast<Eigen::Index>(active_.size());
    e_ = on_active(h_.cwiseSqrt());
    matrix_.resize(m, m);
    for (Eigen::Index c = 0; c < m; ++c) {
        interruption_point(m - c);
        for (Eigen::Index r = c; r < m; ++r) {
            matrix_(r, c) = kappa_ * e_[r] * e_[c] * K_(active_[at(r)], active_[at(c)]) + (r == c ? 1.0 : 0.0);
        }
    }
    if (!factor_.factor(matrix_, team_)) return false;
    right_.resize(m, U_.cols());
    schur_.resize(U_.cols(), U_.cols());
    for (Eigen::Index j = 0; j < U_.cols(); ++j) right_.col(j) = factor_.solve(free_column(j));
    for (Eigen::Index j = 0; j < U_.cols(); ++j) schur_.row(j) = free_column(j).transpose() * right_;
    if (U_.cols() > 0) schur_.diagonal().array() += 1e-15 * schur_.trace() / static_cast<double>(U_.cols()) + 1e-300;
    return true;
}

bool DualSystem::solve(const double *z, const Fill &fill, bool factors, double *move, const Watch &watch, RowSums &sums,
                       double) {
    passes_ += 1;
    VectorXd h = h_;
    each_stretch([&](std::size_t begin, std::size_t end) { fill(begin, end, w_.data() + begin, h.data() + begin); });
    if (factors) {
        h_ = h;
        if (!factor()) return false;
    }
    const VectorXd here = view(z, b_.size());
    const VectorXd off = -kappa_ * by_gram(w_) + U_ * c_ - here;
    VectorXd p = factor_.solve(e_.cwiseProduct(on_active(off)));
    next_c_ = c_;
    if (U_.cols() > 0) {
        VectorXd residual = U_.transpose() * w_;
        for (Eigen::Index j = 0; j < U_.cols(); ++j) residual[j] += free_column(j).dot(p);
        const VectorXd more = schur_.ldlt().solve(-residual);
        p += right_ * more;
        next_c_ += more;
    }
    VectorXd Q = w_;
    for (std::size_t k = 0; k < active_.size(); ++k) {
        Q[active_[k]] += e_[static_cast<Eigen::Index>(k)] * p[static_cast<Eigen::Index>(k)];
    }
    next_v_ = -kappa_ * Q;
    VectorXd moves = by_gram(next_v_) + U_ * next_c_ - here;
    // this way round w + h (A s) is Q, the dual that x is made from, to the last bits
    for (std::size_t k = 0; k < active_.size(); ++k) {
        moves[active_[k]] = p[static_cast<Eigen::Index>(k)] / e_[static_cast<Eigen::Index>(k)];
    }
    if (!moves.allFinite()) return false;
    std::copy(moves.data(), moves.data() + moves.size(), move);
    sums = look([&](std::size_t begin, std::size_t end, RowSums &own) { watch(begin, end, own, nullptr); });
    return true;
}

double DualSystem::mismatch(const Fill &fill) {
    VectorXd unused = h_;
    each_stretch(
        [&](std::size_t begin, std::size_t end) { fill(begin, end, w_.data() + begin, unused.data() + begin); });
    const VectorXd off = v_ + kappa_ * w_;
    mismatch_ = 0.5 * lambda_ * std::max(0.0, off.dot(by_gram(off)));
    for (Eigen::Index j = 0; j < c_.size(); ++j) {
        mismatch_ += std::fabs(U_.col(j).dot(w_)) / rows_ * std::max(1.0, std::fabs(c_[j]));
    }
    return mismatch_;
}

void DualSystem::point(std::vector<double> &x) const {
    std::vector<double> y(at(problem_.rows()));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = rows_ * v_[static_cast<Eigen::Index>(i)] / omega_[i];
    x.resize(at(problem_.dimension()));
    problem_.combine(y, x);
    for (std::int64_t j = 0; j < problem_.dimension(); ++j) {
        const double own = problem_.regularizer(j).strong_convexity();
        x[at(j)] *= own > 0 ? lambda_ / own : 0.0;
    }
    for (std::size_t k = 0; k < problem_.free_coordinates().size(); ++k) {
        x[at(problem_.free_coordinates()[k])] = c_[static_cast<Eigen::Index>(k)];
    }
}

} // namespace

std::unique_ptr<NewtonSystem> make_primal_system(const Problem &problem, const SolveContext &context,
                                                 const PrimalExtras &extras) {
    return std::make_unique<PrimalSystem>(problem, context, extras);
}

std::unique_ptr<NewtonSystem> make_dual_system(const Problem &problem, const SolveContext &context) {
    return std::make_unique<DualSystem>(problem, context);
}

} // namespace spdc
