// Exact presolve: a smaller problem with the same optimum, and the way back.
//
//   equal rows (entries and target)   one row whose weight is the sum of theirs; each has the dual variable of that row
//   empty rows                        the same whatever the target when there is no intercept: their losses are constants, y = phi'(0)
//   proportional columns a_j = r_j a  with l2 and the same penalty: one column |r| a, |r|^2 = sum_j r_j^2; x_j = r_j x/|r|
//   empty columns                     leave; x_j = 0 minimises g_j
//
// |r| x is any number that sum_j r_j x_j can be, and (l2/2) x^2 is the smallest penalty for it, so nothing is lost. Equality and
// proportionality are decided exactly, with no tolerance. The result is certified on the original data all the same.
#pragma once

#include "method.h"
#include "parallel.h"
#include "spdc/solvers.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spdc {

class Presolved {
  public:
    /// `problem` must outlive it. automatic: only what is likely to save more time than it takes. May throw Interrupted.
    Presolved(const Problem &problem, Presolve when, Team &team);

    /// The reduced problem, or the original one when there was nothing to gain.
    const Problem &problem() const noexcept { return reduced_ ? *reduced_ : original_; }
    const Problem &original() const noexcept { return original_; }
    bool is_reduced() const noexcept { return reduced_.has_value(); }
    /// What was done, as the end of a sentence about the solver; empty when nothing was.
    std::string said() const;

    using MakeMethod = std::function<std::unique_ptr<Method>(const Problem &)>;
    /// The method that `make` makes for an output of problem(), with points of the size of `single`, that output of the original.
    std::unique_ptr<Method> method(const Problem &single, std::int64_t output, const MakeMethod &make) const;

    /// A point of an output of problem() as one of the original problem.
    void lift(const Problem &single, std::vector<double> &x, std::vector<double> &y) const;
    /// The other way: the first of a group of rows, the sum over a group of columns. Undoes lift().
    std::vector<double> restrict_rows(std::span<const double> y) const;
    std::vector<double> restrict_columns(std::span<const double> x) const;

  private:
    template <class Matrix> void reduce(const Matrix &matrix, bool must_pay, Team &team);

    const Problem &original_;
    std::optional<Problem> reduced_;
    std::vector<std::int32_t> first_row_; // of each row of the reduced problem
    std::vector<std::int32_t> row_of_; // original row -> row of the reduced problem; empty: the rows are as they were
    std::vector<std::int32_t> empty_rows_; // merged whatever their target
    std::vector<std::int32_t>
        column_of_;             // original column -> column of the reduced problem, -1: none; empty: as they were
    std::vector<double> share_; // x_j = share_j x, r_j/|r| of the column's group
};

} // namespace spdc
