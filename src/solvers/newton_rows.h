// The rows as Newton's method reads them: shuffled, cut into blocks, inside a block column by column where columns are well
// filled (the panel) and as short sparse rows where they are not (the tail).
//
// Dense columns make most of the pairs of a Hessian, and as columns they need no index and fill vectors. On covtype.scale (54
// columns, 12 entries a row) a whole logistic run at l2 = 1e-6 takes 0.30 s with the panel and 0.42 s with sparse rows alone.
//
// The copy of a block is made when a pass first comes to it, by the thread that then works on it: it is in its cache.
//
// Rows that are in random order already, those of a memory-mapped file, are not copied unless they are few of them: a pass makes the
// block it is at, if it has a Hessian to add up or the rows are nearly full, and reads the rows themselves if not.
#pragma once

#include "huge_pages.h"
#include "newton_kernels.h"
#include "parallel.h"
#include "spdc/problem.h"

#include <Eigen/Core>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace spdc {

/// One number per row, for the threads to fill: who touches memory first has the kernel clear it.
using RowVector = std::vector<double, UnfilledHugePageAllocator<double>>;

/// Sums over a range of blocks; coordinates in the order of RowBlocks. No line of the cache is another thread's, too.
struct alignas(128) RowSums {
    double loss = 0, young = 0;                   // Fenchel-Young losses
    double products = 0, weight = 0, largest = 0; // for newton_barrier.cpp
    RowVector gradient, excess;
    RowVector columns, mixed, tail;            // HessianParts, of the squares only the upper halves
    std::size_t panel_size = 0, tail_size = 0; // of the squares
    void add(const RowSums &other);
    /// All zero, of the same sizes.
    void clear();
};

/// The sparse rows of a block.
struct TailRows {
    std::vector<std::int32_t> offsets;
    std::vector<std::uint16_t> columns; // counted from the first tail column
    std::vector<double> values;
};

/// Memory for many small arrays in few large pieces: threads that grow the heap make one another wait.
class Room {
  public:
    /// For numbers of any kind, given back with all the rest.
    std::byte *take(std::size_t bytes);

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<std::byte[]>> pieces_;
    std::byte *next_ = nullptr;
    std::size_t left_ = 0;
};

/// What a thread needs beside the rows.
struct RowScratch {
    static constexpr std::size_t no_block = ~std::size_t{0};
    std::size_t block = no_block;        // whose rows are here, where there is no copy of them all
    std::function<void()> pause = [] {}; // between two pieces of work: throws when the run is to end
    std::vector<double> panel, group;
    TailRows tail;
    std::vector<double> weighted, compact, scaled; // columns times curvature, active rows only; the former by rows
    std::vector<double> w, h, active_h, y, excess;
    std::vector<std::int32_t> active;
};

class RowBlocks {
  public:
    /// A shuffled copy of the problem's rows, the intercept as a column of ones; or the rows where they are, in their order.
    enum class Source { copied, in_place };
    /// `some`: these rows of the problem only, unless it is empty; the list stays the caller's.
    RowBlocks(const Problem &problem, std::uint64_t seed, LentTeam threads, Source source,
              std::span<const std::int32_t> some = {});
    RowBlocks(const Problem &problem, std::uint64_t seed, const Crew &crew = 1, Team *lent = nullptr,
              std::span<const std::int32_t> some = {})
        : RowBlocks(problem, seed, LentTeam(lent, crew), source_for(problem, some), some) {}
    /// Few rows are worth a copy wherever they are: covtype's hinge is 1.3 to 1.5 times as fast with bands that are copied. So are few
    /// entries, up to 8 MB of them.
    static Source source_for(const Problem &problem, std::span<const std::int32_t> some) {
        const bool are_few = (!some.empty() && std::ssize(some) <= problem.rows() / 5) || problem.nonzeros() <= 500'000;
        return problem.is_shuffled() && !are_few ? Source::in_place : Source::copied;
    }

    std::size_t rows() const { return rows_; }
    std::size_t blocks() const { return blocks_; }
    std::size_t block_rows() const { return block_rows_; }
    std::size_t padded_rows() const { return blocks_ * block_rows_; }
    std::size_t dimension() const { return panel_ + tail_; }
    std::size_t panel_columns() const { return panel_; }
    /// Row of the problem at this place.
    std::int64_t row_at(std::size_t place) const {
        const std::int64_t k = std::int64_t{runs_[place / run]} * run + static_cast<std::int64_t>(place % run);
        return some_.empty() ? k : some_[static_cast<std::size_t>(k)];
    }
    /// Where coordinate j of the problem is here.
    std::size_t place_of(std::int64_t j) const { return static_cast<std::size_t>(place_[static_cast<std::size_t>(j)]); }

    /// New vectors of one number per row, to be filled. Their memory and that of the copy are readied by all threads at one go.
    template <std::size_t N> std::array<RowVector, N> make_vectors() const {
        std::array<RowVector, N> vectors;
        std::vector<std::span<std::byte>> memory{memory_of(panel_values_)};
        for (RowVector &vector : vectors) {
            vector.resize(padded_rows());
            memory.push_back(memory_of(vector));
        }
        touch_pages(team_, memory);
        return vectors;
    }
    /// value(i) of the rows i in this order, 0 where there is none.
    template <class Value> void fill(RowVector &numbers, Value &&value) const {
        each(blocks_, [&](std::size_t k) {
            for (std::size_t p = k * block_rows_; p < (k + 1) * block_rows_; ++p) {
                numbers[p] = p < rows_ ? value(row_at(p)) : 0.0;
            }
        });
    }
    void fill_targets(RowVector &b) const;
    void fill_importance(RowVector &omega) const;
    /// Says that add_hessian() will follow for this block.
    void prepare(std::size_t k, RowScratch &scratch) const { block(k, scratch); }
    /// z <- A x on the rows of block k; z is the block's part of the array.
    void predict(std::size_t k, const double *x, double *z, RowScratch &scratch) const;
    /// g += A'w
    void combine(std::size_t k, const double *w, double *g, RowScratch &scratch) const;
    /// Adds A' diag(h) A to the parts of `sums`; rows without curvature are left out.
    void add_hessian(std::size_t k, const double *h, RowScratch &scratch, RowSums &sums) const;

    /// Adds up work(k, scratch, sums) over the first `blocks` blocks, in a fixed number of parts and the parts in a fixed order, so
    /// that the bits do not depend on the number of threads.
    using BlockWork = std::function<void(std::size_t, RowScratch &, RowSums &)>;
    void sum(std::size_t blocks, bool with_hessian, RowSums &total, const BlockWork &work) const;
    /// work(k) for the first `blocks` blocks, in any order.
    void each(std::size_t blocks, const std::function<void(std::size_t)> &work) const;
    Team &team() const { return team_; }
    /// Most threads that ran so far.
    int threads() const { return threads_; }
    /// scale times the Hessian of `sums` into the lower half.
    void assemble(const RowSums &sums, double scale, Eigen::MatrixXd &hessian) const;

    RowScratch make_scratch() const;

  private:
    /// Of the right sizes, but not zero.
    RowSums make_sums(bool with_hessian) const;
    TailBlock keep(const TailRows &tail) const;
    void shuffle(std::uint64_t seed);
    void choose_panel(const Problem &problem);
    template <class Matrix>
    void make_block(const Matrix &matrix, std::size_t k, std::vector<double> &columns, double *panel,
                    TailRows &tail) const;
    struct Block {
        ColumnBlock panel;
        TailBlock tail;
    };
    Block block(std::size_t k, RowScratch &scratch) const;
    bool reads_rows(std::size_t k, const RowScratch &scratch) const {
        return tails_.empty() && scratch.block != k && are_sparse_;
    }
    /// visit(i, place of the coordinate, value) for the entries of row i of block k.
    template <class Visit> void each_entry(std::size_t k, Visit &&visit) const;

    const Problem &problem_;
    const NewtonKernels &kernels_;
    LentTeam crew_;
    Team &team_;
    mutable int threads_ = 1;
    const std::span<const std::int32_t> some_; // rows of the problem that are here; empty: all
    static constexpr std::int32_t run = 8;     // rows beside each other that stay so
    std::size_t rows_, blocks_ = 0, block_rows_ = 256, panel_ = 0, tail_ = 0;
    double block_work_ = 0;           // entries in a block
    bool are_sparse_ = false;         // cheaper to read than a panel is to make
    std::vector<std::int32_t> runs_;  // in random order, but a shorter last one
    std::vector<std::int32_t> place_; // coordinate of the problem -> here; the panel comes first
    // The copy, empty when there is none. A block is read by one thread at a time, so the first one may fill it.
    mutable std::vector<double, UnfilledHugePageAllocator<double>> panel_values_;
    mutable std::vector<TailBlock> tails_; // of the blocks; without offsets as long as the block is not there
    mutable Room room_;                    // where they are
    // What passes use and leave to the next one: of the threads; without and with a Hessian.
    mutable std::vector<RowScratch> scratches_;
    mutable std::vector<RowSums> spare_sums_[2], more_totals_[2];
};

} // namespace spdc
