// The loss as Newton's method sees it: values, slopes and curvatures of many rows at once, of the loss itself or of a smoothed
// one.
//
// Losses with corners have no curvature to speak of. Their Moreau-smoothed versions do:
//
//     phi_width(z) = max_y  y z - phi*(y) - (width/2) y^2,    phi_width'(z) = the maximiser = dual_prox(z, 0, 1/width),
//     phi_width''(z) = 1/(gamma + width) where the maximiser is inside a piece of phi*, 0 where it sits at an end of one.
//
// The maximiser lies in the domain of phi*, so it is a dual point of the true problem, whatever the width.
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

    double width() const { return width_; }
    void set_width(double width) { width_ = width; }

    /// Whether phi* lives on a bounded interval and is made of parabolas or lines: then smoothing is exact and useful.
    bool can_smooth() const;
    /// Whether the loss has no curvature of its own and has to be smoothed.
    bool must_smooth() const { return can_smooth() && loss_.gamma() == 0; }
    double gamma() const { return loss_.gamma(); }
    /// Whether phi and phi* cost logarithms: then gaps are estimated by their second-order terms.
    bool is_logistic() const { return std::holds_alternative<Logistic>(loss_.variant()); }
    /// Whether one Newton step ends it.
    bool is_quadratic() const { return std::holds_alternative<Squared>(loss_.variant()); }

    /// w <- omega phi'(z), h <- omega phi''(z); returns the sum of omega phi(z).
    double evaluate(const LossRows &rows, const double *z, double *w, double *h) const;
    /// The sum of omega phi(z + t v), differentiated by t.
    LineSlope slope(const LossRows &rows, const double *z, const double *v, double t) const;
    /// y <- phi'(z)
    void dual(const LossRows &rows, const double *z, double *y) const;
    /// y <- phi'(z) + phi''(z) (next - z), moved into the dual domain; excess <- what was cut off. Returns whether anything was.
    bool newton_dual(const LossRows &rows, const double *z, const double *next, double *y, double *excess) const;
    /// The sum of omega (phi(z) + phi*(y) - y z) of the loss without smoothing.
    double young(const LossRows &rows, const double *z, const double *y) const;
    /// The share of rows with curvature at z.
    double curved_share(const LossRows &rows, const double *z) const;

  private:
    bool logistic_newton_dual(const LossRows &rows, const double *z, const double *next, double *y,
                              double *excess) const;

    AnyLoss loss_;
    const NewtonKernels *kernels_;
    double width_ = 0;
};

} // namespace spdc
