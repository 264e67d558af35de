// Products with the problem's matrix for methods that read it as it is, however many columns it has.
//
// The curvature product A' diag(h) A p reads every row once: the dot with p, and at once, while the row is in the cache, its share
// of the result. p and q sit side by side, so that a column of wide data costs one cache miss and not two.
//
// With threads, rows are shared out for the dots and columns for the sums: whoever adds up a column does so in the order of the
// rows, so that the bits are those of one thread, without copies of the result.
#pragma once

#include "huge_pages.h"
#include "parallel.h"
#include "spdc/problem.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace spdc {

/// A direction p and the product q with it, coordinate by coordinate.
struct DirectionPair {
    double p = 0, q = 0;
};

class RowProducts {
  public:
    /// At most so many threads, fewer when there is little to do.
    RowProducts(const Problem &problem, Crew crew);

    int threads() const { return static_cast<int>(first_column_.size()) - 1; }
    /// Runs body(k) for k = 0 ... count-1 on these threads, in any order.
    void for_each(std::size_t count, const std::function<void(std::size_t)> &body) const;

    /// z_i <- a_i'x for the rows with h_i = 0; all rows without h.
    void predict(const double *x, const double *h, double *z) const;
    /// g <- (1/n) A'w,  m_j <- (1/n) sum_i h_i a_ij^2; g alone without h and m
    void gradient(const double *w, const double *h, double *g, double *m) const;
    /// t_i <- a_i'p where h_i is not 0,  q += (1/n) A' diag(h) t
    void curvature(const double *h, DirectionPair *pq, double *t) const;
    /// Share of the entries in rows with h_i not 0.
    double active_share(const double *h) const;

  private:
    template <class Visit> void each_column_range(Visit visit) const;

    const Problem &problem_;
    const double scale_;                     // 1/n
    std::unique_ptr<Team> team_;             // none: one thread
    std::vector<std::int64_t> first_column_; // of the columns that each thread adds up, and one past the last
};

} // namespace spdc
