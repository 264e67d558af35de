// The forms of Newton's method; the solver `newton` picks one by the loss and by which of rows and features are fewer.
#pragma once

#include "method.h"
#include "newton_system.h"

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

namespace spdc {

/// What the driver asks of the forms that work on any system.
class SystemNewton : public Method {
  public:
    double passes() const final { return system_->passes() + looks_; }
    double estimated_gap() const final { return gap_; }
    void aim(double tolerance) final { tolerance_ = tolerance; }
    bool has_point() const final {
        return gap_ <= tolerance_ * std::fabs(objective_) || is_exhausted_ || iterations_ >= patience_;
    }
    bool exhausted() const final { return is_exhausted_; }
    int threads() const final { return system_->threads(); }

  protected:
    /// After `patience` iterations any point is worth a certificate.
    SystemNewton(const Problem &problem, std::unique_ptr<NewtonSystem> system, int patience)
        : problem_(problem), loss_(problem.loss()), system_(std::move(system)), count_(system_->rows().count),
          patience_(patience) {}

    const Problem &problem_;
    NewtonLoss loss_;
    std::unique_ptr<NewtonSystem> system_;
    const std::size_t count_;
    double objective_ = infinity, gap_ = infinity, tolerance_ = 1e-4;
    bool is_exhausted_ = false;
    int iterations_ = 0;
    double looks_ = 0; // passes beside the system's

  private:
    const int patience_;
};

/// Smooth losses, many rows: passes over blocks of rows, a growing sample first.
std::unique_ptr<Method> make_fused_newton(const Problem &problem, const SolveContext &context);

/// The same for any separable penalty, and losses that curve everywhere: quadratic models minimised by coordinate descent.
std::unique_ptr<Method> make_sparse_newton(const Problem &problem, const SolveContext &context);

/// Smooth losses, any system.
std::unique_ptr<Method> make_plain_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system);

/// Where the barrier begins instead of x = 0: the predictions of the system's x for all rows of the problem, and mu.
struct BarrierStart {
    std::span<const double> predictions;
    double mu;
};

/// Losses whose duals live in intervals, any system. Rows that are not the system's keep their duals when point() writes.
std::unique_ptr<Method> make_barrier_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system,
                                            const std::optional<BarrierStart> &start = {});

/// Whether the loss is linear but for kinks, and rows are so many that samples of them tell which ones are near a kink.
bool suits_sifting(const Problem &problem);

/// The same for many more rows than features, where the loss is linear but for kinks: on samples of the rows, then on those near a kink.
std::unique_ptr<Method> make_sifted_newton(const Problem &problem, const SolveContext &context);

} // namespace spdc
