// The paper's method: what its one-row and its mini-batch kernels share.
#pragma once

#include "huge_pages.h"
#include "method.h"
#include "spdc/solvers.h"
#include "spdc_sampler.h"
#include "spdc_steps.h"

#include <array>
#include <vector>

namespace spdc {

/// One primal coordinate, brought up to date only when a row needs it (section 6): x is x^(time), x_previous x^(time-1).
struct Coordinate {
    double x = 0;
    double x_previous = 0;
    double u = 0;
    std::int64_t time = 0;
};

/// Brings a coordinate to time t: all but the last of its missed updates in closed form, the last one explicitly, because
/// xbar needs x^(t-1) too.
template <class Step>
void catch_up(const Step &step, std::int64_t j, double tau, std::int64_t t, Coordinate &c) noexcept {
    const std::int64_t missed = t - c.time;
    if (missed == 0) return;
    c.x_previous = missed > 1 ? step.advance(j, c.x, c.u, missed - 1) : c.x;
    c.x = step.prox(j, c.x_previous - tau * c.u);
    c.time = t;
}

/// What a mini-batch adds to one coordinate.
struct Increment {
    double to_x = 0;
    double to_u = 0;
};

/// Searches the ratio gamma/lambda of the step sizes where the problem does not give it: every ratio converges, few converge
/// fast. Starts at an estimate, then compares the decay of the gap at the ratio with that at four times more and less. When no
/// neighbour helps and the gap hardly falls, it goes half the way to `balanced`.
class RatioSearch {
  public:
    /// Takes the gap after so many passes; returns the ratio to use next. `balanced` is what the moves of x and y ask for;
    /// 0 when unknown.
    double next(double passes, double gap, double ratio, double balanced);

  private:
    double centre_ = 0, centre_rate_ = 0; // the best ratio so far and its decay per pass
    double factor_ = 4;
    double window_ = 8; // passes
    double start_passes_ = 0, start_gap_ = infinity;
    int direction_ = 1, failures_ = 0;
    bool trying_ = false;
};

/// The sum of the iterates since the last restart, each times the passes it stands for.
struct IterateAverage {
    std::vector<double> x, y; // empty: no averages are kept
    double passes = 0;
    std::vector<double> start_x, start_y; // the iterate at the restart
    double start_gap = infinity, start_passes = 0;
    double last_gap = infinity;
    bool is_offered = false; // point() gives the average, not the iterate
};

/// How the dual step measures its length.
enum class DualDistance {
    squares,   // (b - y)^2/2: SPDC
    conjugate, // the Bregman distance of phi*: RPDG, which starts at y = phi'(0); for smooth losses
};

class SpdcMethod final : public Method {
  public:
    SpdcMethod(const Problem &problem, const Spdc &options, const SolveContext &context,
               DualDistance distance = DualDistance::squares);

    void start(std::span<const double> x, std::span<const double> y) override;
    void advance(double passes) override;
    double passes() const override;
    void point(std::vector<double> &x, std::vector<double> &y) override;
    void certified(const Found &found) override;
    std::int64_t coordinates_touched() const override { return touched_; }
    int threads() const override { return threads_; }

  private:
    double estimated_ratio(double x2, double y2) const;
    void set_steps();
    void start_at_gradients();
    void run(double passes);
    void flush();
    void restart(double gap);
    void move_to_average();
    void add_to_average(double passes);
    double balanced_ratio() const;

    template <class Matrix, class Step> void run_rows(const Matrix &matrix, const Step &step, std::int64_t iterations);
    void run_batches(std::int64_t iterations);
    template <class Matrix, class Step>
    void run_batches(const Matrix &matrix, const Step &step, std::int64_t iterations);
    template <class Matrix, class Step>
    void run_dense_batches(const Matrix &matrix, const Step &step, std::int64_t iterations);
    template <class Matrix>
    std::int64_t run_part(const Matrix &matrix, std::span<const std::int64_t> part, std::span<const std::int64_t> after,
                          const std::vector<double> &xbar, std::vector<double> &sums) noexcept;
    template <class Step>
    double finish_column(const Step &step, std::int64_t j, const std::vector<std::vector<double>> &sums) noexcept;
    template <class Matrix> void prefetch_row(const Matrix &matrix, std::int64_t k) const noexcept;
    template <class Matrix> std::vector<std::int64_t> column_shares(const Matrix &matrix) const;

    /// The dual update at prediction z: y_k moves, and the return value is importance times the move.
    double update_dual(std::int64_t k, double z) noexcept;
    double intercept_prox(double v) const noexcept;

    const Problem &problem_;
    const Spdc options_;
    std::int64_t n_, d_, m_;
    int threads_ = 1;
    double column_ = 0; // value of the intercept's column; 0 without intercept
    double R_ = 1, Rbar_ = 1;
    double alpha_ = 0.5;               // of weighted sampling: its probabilities and its steps must agree on it
    double gamma_ = 0, lambda_ = 0;    // as the step sizes see them
    double delta_x_ = 0, delta_y_ = 0; // perturbation, section 3
    double ratio_ = 1;                 // gamma_ / lambda_ where one of them is ours to choose
    RatioSearch search_;
    IterateAverage average_;
    StepSizes steps_{};
    AnyStep step_;
    AnyRegularizer intercept_regularizer_;
    std::optional<Sampler> sampler_;
    std::array<std::int64_t, 2> upcoming_{};                   // rows drawn ahead, so that memory can be fetched ahead
    std::vector<double> norms_;                                // sqrt(importance) |a_i|, intercept's column included
    std::vector<Coordinate, HugePageAllocator<Coordinate>> w_; // the features, then the intercept
    std::vector<double> y_;
    std::vector<double> zbar_;                // of RPDG: y_i = phi'(zbar_i); empty for SPDC
    std::vector<Increment> increments_;       // of a mini-batch
    std::vector<std::int64_t> column_shares_; // of the team: thread p owns columns [shares[p], shares[p+1])
    std::int64_t t_ = 0;
    std::int64_t visits_ = 0, owed_ = 0; // owed: made before the first advance
    std::int64_t touched_ = 0;
};

} // namespace spdc
