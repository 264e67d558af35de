// The loss as Newton's method sees it: values, slopes and curvatures of many rows at once.
#pragma once

#include "newton_kernels.h"
#include "spdc/losses.h"

#include <cstddef>

namespace spdc {

/// Rows of targets b and importance omega; both and all arrays beside them hold `count` entries, a multiple of 4.
struct LossRows {
    const double *b, *omega;
    std::size_t count;
};

struct LineSlope {
    double first = 0, second = 0; // derivatives along a line
};

class NewtonLoss {
  public:
    explicit NewtonLoss(const AnyLoss &loss) : loss_(loss), kernels_(&newton_kernels()) {}

    /// Whether phi* lives on bounded intervals and is made of parabolas or lines there: newton_barrier.cpp takes these.
    bool has_pieces() const;
    double gamma() const { return loss_.gamma(); }
    bool is_logistic() const { return std::holds_alternative<Logistic>(loss_.variant()); }
    /// Whether one Newton step ends it.
    bool is_quadratic() const { return std::holds_alternative<Squared>(loss_.variant()); }
    /// For steps from where a piecewise loss is flat: every row counts with the largest curvature.
    void set_blunt(bool blunt) { blunt_ = blunt; }

    /// w <- omega phi'(z), h <- omega phi''(z); returns the sum of omega phi(z).
    double evaluate(const LossRows &rows, const double *z, double *w, double *h) const;
    /// The sum of omega phi(z + t v), differentiated by t.
    LineSlope slope(const LossRows &rows, const double *z, const double *v, double t) const;
    /// y <- phi'(z)
    void dual(const LossRows &rows, const double *z, double *y) const;
    /// y <- phi'(z) + phi''(z) (next - z), moved into the dual domain; excess <- what was cut off. Returns whether anything was.
    bool newton_dual(const LossRows &rows, const double *z, const double *next, double *y, double *excess) const;
    /// The sum of omega (phi(z) + phi*(y) - y z).
    double young(const LossRows &rows, const double *z, const double *y) const;

  private:
    bool logistic_newton_dual(const LossRows &rows, const double *z, const double *next, double *y,
                              double *excess) const;

    AnyLoss loss_;
    const NewtonKernels *kernels_;
    bool blunt_ = false;
};

} // namespace spdc
