// The lasso and its relatives with few features and many rows: working_set where one set holds everything.
//
// Problem: P(x) = (1/n) sum_i omega_i (a_i'x - b_i)^2/2 + sum_j g_j(x_j), g_j as in working_set.cpp.
//
// G = (1/n) A'WA is added up in one pass over the rows, where they lie. Every advance() then computes the derivatives
// q = (1/n) A'W(Ax - b) from the data and minimises by coordinate descent on G (gram_sweeps.cpp), which reads no data. The next
// advance(), with fresh q, takes away what rounding and G's condition left: iterative refinement. The dual point is Ax - b.
//
// Cost: d^2/2 products a row for G once, then two passes over the data an iteration; most problems take one.
#include "few_features.h"

#include "free_coordinates.h"
#include "gram_sweeps.h"
#include "newton_kernels.h"
#include "parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class FewFeatures final : public Method {
  public:
    explicit FewFeatures(const Problem &problem)
        : problem_(problem), penalties_(problem), sweeps_(penalties_), x_(at(problem.dimension()), 0.0),
          z_(at(problem.rows())) {
        if (problem.intercept() == Intercept::free) x_.back() = best_constant(problem);
        std::fill(z_.begin(), z_.end(), problem.has_intercept() ? x_.back() : 0.0);
    }

    void start(std::span<const double> x, std::span<const double>) override {
        x_.assign(x.begin(), x.end());
        problem_.predict(x_, z_);
    }
    void aim(double tolerance) override { tolerance_ = tolerance; }
    void advance(double passes) override;
    double passes() const override { return passes_; }
    bool has_point() const override { return has_moved_; }
    void point(std::vector<double> &x, std::vector<double> &y) override {
        x = x_;
        y = residuals();
    }
    void certified(const Found &) override { tolerance_ *= 0.01; } // not enough: more exactly
    bool exhausted() const override { return is_exhausted_; }

  private:
    bool add_to_gram(double passes);
    std::vector<double> residuals() const {
        std::vector<double> r = z_;
        for (std::size_t i = 0; i < r.size(); ++i) r[i] -= problem_.targets()[i];
        return r;
    }

    const Problem &problem_;
    const Penalties penalties_;
    GramSweeps sweeps_;
    std::vector<double> x_, z_;
    double tolerance_ = 1e-4, passes_ = 0;
    std::vector<double> gram_; // until sweeps_ has it
    std::int64_t rows_in_gram_ = 0;
    bool has_gram_ = false, has_moved_ = false;
    int idle_ = 0;
    bool is_exhausted_ = false;
};

/// Adds rows worth so many passes; true when all are in. Blocks of rows as dense columns, whose products are sums without gaps.
bool FewFeatures::add_to_gram(double passes) {
    constexpr std::size_t block = 256,
                          stride = block + 8; // powers of 2 apart, entries of a row would share a place in the cache
    const std::size_t d = x_.size();
    const double n = static_cast<double>(problem_.rows());
    // d/2 products an entry, some 80 of which take as long as an entry in a pass
    const double cost = std::max(1.0, static_cast<double>(d) / 160), end = passes_ + passes;
    const NewtonKernels &kernels = newton_kernels();
    gram_.resize(d * d);
    std::vector<double> columns(d * stride);
    std::visit(
        [&](const auto &matrix) {
            while (rows_in_gram_ < matrix.rows() && passes_ < end) {
                std::fill(columns.begin(), columns.end(), 0.0);
                const std::size_t count = std::min(block, at(matrix.rows() - rows_in_gram_));
                for (std::size_t i = 0; i < count; ++i) {
                    const std::int64_t k = rows_in_gram_ + static_cast<std::int64_t>(i);
                    const auto row = matrix.row(k);
                    const double scale = std::sqrt(problem_.importance(k) / n);
                    for (std::int64_t p = 0; p < row.size(); ++p) {
                        columns[at(row.column(p)) * stride + i] = scale * row.value(p);
                    }
                    if (problem_.has_intercept()) columns[(d - 1) * stride + i] = scale;
                }
                interruption_point(static_cast<std::int64_t>(block * d * d / 8));
                const ColumnBlock rows{columns.data(), d, stride, block};
                kernels.gram(rows, rows, 0, gram_.data(), d);
                rows_in_gram_ += static_cast<std::int64_t>(count);
                passes_ += cost * static_cast<double>(count) / n;
            }
        },
        problem_.matrix());
    if (rows_in_gram_ < problem_.rows()) return false;
    for (std::size_t k = 0; k < d; ++k) {
        for (std::size_t m = k + 1; m < d; ++m) gram_[m * d + k] = gram_[k * d + m];
    }
    std::vector<std::int32_t> all(d);
    std::iota(all.begin(), all.end(), 0);
    sweeps_.take(std::move(all), std::move(gram_));
    has_gram_ = true;
    return true;
}

void FewFeatures::advance(double passes) {
    if (!has_gram_ && !add_to_gram(passes)) return;
    const std::vector<double> r = residuals();
    double size = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
        size += problem_.importance(static_cast<std::int64_t>(i)) * r[i] * r[i] / (2 * static_cast<double>(r.size()));
    }
    std::vector<double> q(x_.size());
    problem_.combine(r, q);
    sweeps_.start(x_, std::move(q));
    // An excess e of a derivative shrinks the dual point by 1 + e, which costs at most e and e^2 times the objective. What the sweeps
    // are to gain at the end is measured by the objective here, which is too large at first; they cost next to nothing.
    SweepResult target{1e-3 * tolerance_ * std::min(1.0, tolerance_) * size, 0.01 * tolerance_};
    sweeps_.minimize(target, 0);
    idle_ = sweeps_.x() == x_ ? idle_ + 1 : 0;
    is_exhausted_ = idle_ > 3 || tolerance_ < 1e-40;
    x_ = sweeps_.x();
    problem_.predict(x_, z_);
    passes_ += 2;
    has_moved_ = true;
}

} // namespace

namespace {

double entries_of_a_row(const Problem &problem) {
    return static_cast<double>(problem.nonzeros()) / std::max(1.0, static_cast<double>(problem.rows()));
}

} // namespace

bool has_few_features(const Problem &problem) {
    // more products a row than would pay where few of the features matter; sweeps over dense columns are dear
    const std::int64_t d = problem.dimension(), n = problem.rows();
    const double filled = entries_of_a_row(problem) / static_cast<double>(d);
    return std::holds_alternative<Squared>(problem.loss().variant()) && !has_few_entries(problem) &&
           ((d <= 128 && n >= 2 * d) || (filled > 0.3 && d <= 512 && n >= 8 * d));
}

bool has_few_entries(const Problem &problem) {
    const std::int64_t d = problem.dimension();
    const bool is_logistic = std::holds_alternative<Logistic>(problem.loss().variant());
    if (d > (is_logistic ? 512 : 256) || problem.rows() < 8 * d) return false;
    // a row's products take as long as in dense columns where it has a quarter of the features
    const double row = entries_of_a_row(problem);
    const bool is_sparse = 4 * row <= static_cast<double>(d);
    if (std::holds_alternative<Squared>(problem.loss().variant())) return is_sparse;
    return is_logistic && (is_sparse ? row <= 16 : d <= 50);
}

std::unique_ptr<Method> make_few_features(const Problem &problem) { return std::make_unique<FewFeatures>(problem); }

} // namespace spdc
