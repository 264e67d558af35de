#include "cholesky.h"

#include "newton_kernels.h"

#include <Eigen/Cholesky>

#include <algorithm>

namespace spdc {

namespace {

constexpr Eigen::Index stripe = 256; // columns of a piece: with a block's rows they fit the second-level cache

Eigen::Index stripes_in(Eigen::Index count) { return (count + stripe - 1) / stripe; }

/// Columns [begin, begin + count) of a panel that lies row by row.
ColumnBlock columns_of(const Eigen::MatrixXd &panel, Eigen::Index begin) {
    const auto rows = static_cast<std::size_t>(panel.rows());
    const Eigen::Index count = std::min(stripe, panel.cols() - begin);
    return {panel.col(begin).data(), static_cast<std::size_t>(count), rows, rows};
}

} // namespace

bool Cholesky::compute(Eigen::MatrixXd lower, Team &team) {
    factor_ = std::move(lower);
    const Eigen::Index d = factor_.rows();
    for (Eigen::Index begin = 0; begin < d; begin += block) {
        team.check();
        const Eigen::Index size = std::min(block, d - begin);
        if (!factor_block(begin, size)) return false;
        if (begin + size == d) break;
        solve_panel(begin, team);
        subtract_products(begin + size, team);
    }
    return true;
}

bool Cholesky::factor_block(Eigen::Index begin, Eigen::Index size) {
    Eigen::Ref<Eigen::MatrixXd> own = factor_.block(begin, begin, size, size);
    const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factor(own);
    return factor.info() == Eigen::Success && own.diagonal().allFinite(); // NaN passes Eigen's test of a pivot
}

/// What is below a block: times L^-T from the right. The rows are kept as columns.
void Cholesky::solve_panel(Eigen::Index begin, Team &team) {
    const Eigen::Index end = begin + block, rest = factor_.rows() - end;
    const auto own = factor_.block(begin, begin, block, block).triangularView<Eigen::Lower>();
    panel_.resize(block, rest);
    minus_panel_.resize(block, rest);
    const double work = 0.25 * static_cast<double>(rest * block * block); // of products that take as long as an entry
    team.for_each(stripes_in(rest), work, [&](std::int64_t k) {
        const Eigen::Index first = k * stripe, count = std::min(stripe, rest - first);
        auto rows = factor_.block(end + first, begin, count, block);
        own.transpose().template solveInPlace<Eigen::OnTheRight>(rows);
        panel_.middleCols(first, count) = rows.transpose();
        minus_panel_.middleCols(first, count) = -panel_.middleCols(first, count);
    });
}

/// The products of the last panel's rows, taken from the lower half of what is left, which is the upper half row by row.
void Cholesky::subtract_products(Eigen::Index end, Team &team) {
    const Eigen::Index rest = factor_.rows() - end, stripes = stripes_in(rest);
    const auto gram = newton_kernels().gram;
    const double work = 0.05 * static_cast<double>(rest * rest * block);
    team.for_each(stripes * (stripes + 1) / 2, work, [&](std::int64_t piece) {
        Eigen::Index a = 0; // the pieces (a, b) with a <= b, one a after the other
        while (piece >= stripes - a) piece -= stripes - a++;
        const Eigen::Index left = a * stripe, right = (a + piece) * stripe;
        gram(columns_of(minus_panel_, left), columns_of(panel_, right), static_cast<std::size_t>(right - left),
             &factor_(end + right, end + left), static_cast<std::size_t>(factor_.rows()));
    });
}

Eigen::VectorXd Cholesky::solve(Eigen::VectorXd right) const {
    const auto factor = factor_.triangularView<Eigen::Lower>();
    factor.solveInPlace(right);
    ask_this_thread();
    factor.transpose().solveInPlace(right);
    return right;
}

} // namespace spdc
