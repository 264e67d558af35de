// The rows as Newton's method reads them: shuffled, cut into blocks, inside a block column by column where columns are well
// filled (the panel) and as short sparse rows where they are not (the tail).
//
// Dense columns make most of the pairs of a Hessian, and as columns they need no index and fill vectors. On covtype.scale (54
// columns, 12 entries a row) a whole logistic run at l2 = 1e-6 takes 0.30 s with the panel and 0.42 s with sparse rows alone.
#pragma once

#include "huge_pages.h"
#include "newton_kernels.h"
#include "parallel.h"
#include "spdc/problem.h"

#include <Eigen/Core>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace spdc {

/// One number per row, for the threads to fill: who touches memory first has the kernel clear it.
using RowVector = std::vector<double, UnfilledHugePageAllocator<double>>;

/// Sums over a range of blocks; coordinates in the order of RowBlocks.
struct RowSums {
    double loss = 0, young = 0;                   // Fenchel-Young losses
    double products = 0, weight = 0, largest = 0; // for newton_barrier.cpp
    std::vector<double> gradient, excess;
    std::vector<double> columns, mixed, tail; // HessianParts
    void add(const RowSums &other);
    /// All zero, of the same sizes.
    void clear();
};

/// What a thread needs beside the rows.
struct RowScratch {
    std::vector<double> weighted, compact, scaled; // columns times curvature, active rows only; the former by rows
    std::vector<double> w, h, active_h, y, excess;
    std::vector<std::int32_t> active;
};

class RowBlocks {
  public:
    /// A shuffled copy of the problem's rows, the intercept as a column of ones.
    RowBlocks(const Problem &problem, std::uint64_t seed, int threads = 1);

    std::size_t rows() const { return rows_; }
    std::size_t blocks() const { return blocks_; }
    std::size_t block_rows() const { return block_rows_; }
    std::size_t padded_rows() const { return blocks_ * block_rows_; }
    std::size_t dimension() const { return panel_ + tail_; }
    std::size_t panel_columns() const { return panel_; }
    /// Row of the problem at this place.
    std::int64_t row_at(std::size_t place) const {
        return std::int64_t{runs_[place / run]} * run + static_cast<std::int64_t>(place % run);
    }
    /// Where coordinate j of the problem is here.
    std::size_t place_of(std::int64_t j) const { return static_cast<std::size_t>(place_[static_cast<std::size_t>(j)]); }

    /// value(i) of the rows i in this order, 0 where there is none.
    template <class Value> RowVector gather(Value &&value) const {
        RowVector numbers(padded_rows());
        each(blocks_, [&](std::size_t k) {
            for (std::size_t p = k * block_rows_; p < (k + 1) * block_rows_; ++p) {
                numbers[p] = p < rows_ ? value(row_at(p)) : 0.0;
            }
        });
        return numbers;
    }
    RowVector targets(const Problem &problem) const;
    RowVector importance(const Problem &problem) const;
    /// z <- A x on the rows of block k; z is the block's part of the array.
    void predict(std::size_t k, const double *x, double *z) const;
    /// g += A'w
    void combine(std::size_t k, const double *w, double *g) const;
    /// Adds A' diag(h) A to the parts of `sums`; rows without curvature are left out.
    void add_hessian(std::size_t k, const double *h, RowScratch &scratch, RowSums &sums) const;

    /// Adds up work(k, scratch, sums) over the first `blocks` blocks, in a fixed number of parts and the parts in their order, so
    /// that the bits do not depend on the number of threads.
    using BlockWork = std::function<void(std::size_t, RowScratch &, RowSums &)>;
    void sum(std::size_t blocks, bool with_hessian, RowSums &total, const BlockWork &work) const;
    /// work(k) for the first `blocks` blocks, in any order.
    void each(std::size_t blocks, const std::function<void(std::size_t)> &work) const;
    /// Most threads that ran so far.
    int threads() const { return threads_; }
    /// scale times the Hessian of `sums` into the upper half.
    void assemble(const RowSums &sums, double scale, Eigen::MatrixXd &hessian) const;

  private:
    RowScratch make_scratch() const;
    RowSums make_sums(bool with_hessian) const;
    void shuffle(std::uint64_t seed);
    void choose_panel(const Problem &problem);
    void copy(const Problem &problem);
    template <class Matrix> void copy_block(const Matrix &matrix, bool has_intercept, std::size_t k);
    ColumnBlock panel(std::size_t k) const {
        return {panel_values_.data() + k * block_rows_ * panel_, panel_, block_rows_, block_rows_};
    }
    TailBlock tail(std::size_t k) const {
        return {tails_[k].offsets.data(), tails_[k].columns.data(), tails_[k].values.data()};
    }

    struct Tail {
        std::vector<std::int32_t> offsets;
        std::vector<std::uint16_t> columns; // counted from the first tail column
        std::vector<double> values;
    };

    const NewtonKernels &kernels_;
    mutable Team team_;
    mutable int threads_ = 1;
    static constexpr std::int32_t run = 8; // rows beside each other that stay so
    std::size_t rows_, blocks_ = 0, block_rows_ = 256, panel_ = 0, tail_ = 0;
    double block_work_ = 0;           // entries in a block
    std::vector<std::int32_t> runs_;  // in random order, but a shorter last one
    std::vector<std::int32_t> place_; // coordinate of the problem -> here; the panel comes first
    std::vector<double, UnfilledHugePageAllocator<double>> panel_values_;
    std::vector<Tail> tails_; // of the blocks
};

} // namespace spdc
