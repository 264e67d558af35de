// spdc_fast until the gap is small, Newton-CG for the rest.
//
// At small l2 a stochastic method gets to a gap of a tenth in few passes and then takes many for every further digit; a Newton step from
// there is nearly exact. Which of the two is faster for the rest depends on the data, so the rest is left to Newton-CG for
// three times the passes that spdc_fast would need by the decay of its gap, and on while its own gap promises to be there sooner than
// spdc_fast would be. Then spdc_fast goes on, from Newton-CG's point if that is better than where it was. Where no copy of the data is
// wanted memory is scarce: then spdc_fast leaves when Newton-CG comes, all but its point, and a new one goes on from there.
#include "methods.h"
#include "newton_cg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace spdc {

namespace {

class HybridMethod final : public Method {
  public:
    HybridMethod(const Problem &problem, const SolveContext &context)
        : problem_(problem), context_(context), fast_(make_method(problem, SpdcFast{}, context)) {}

    void advance(double passes) override;
    double passes() const override {
        return (fast_ ? fast_->passes() : 0) + spent_ + (newton_ ? newton_->passes() : 0);
    }
    void point(std::vector<double> &x, std::vector<double> &y) override { current().point(x, y); }
    void aim(double tolerance) override { tolerance_ = tolerance; }
    void start(std::span<const double> x, std::span<const double> y) override { fast_->start(x, y); }
    void certified(const Found &found) override;
    double estimated_gap() const override { return current().estimated_gap(); }
    double dual_value() const override { return current().dual_value(); }
    double omega() const override { return current().omega(); }
    std::vector<OmegaChange> take_omega_changes() override;
    std::int64_t coordinates_touched() const override { return touched_ + (fast_ ? fast_->coordinates_touched() : 0); }
    int threads() const override { return threads_; }

  private:
    Method &current() const { return newton_ ? *newton_ : *fast_; }
    bool is_time_for_newton();
    bool may_go_on();
    void start_newton();
    void let_fast_go();
    void give_up_newton();

    const Problem &problem_;
    const SolveContext context_;
    std::unique_ptr<Method> fast_, newton_;
    std::vector<OmegaChange> omega_changes_;
    std::int64_t touched_ = 0;
    struct Sweep {
        double passes, gap;
    };
    std::vector<Sweep> history_; // of spdc_fast's own estimates
    double primal_ = infinity, tolerance_ = 1e-4;
    // passes: of methods that are gone and of looks at P; what Newton-CG may take; what spdc_fast would have taken
    double spent_ = 0, budget_ = 0, left_ = 0;
    double newton_gap_ = infinity; // the best that Newton-CG has seen
    bool has_looked_ = false, gave_up_ = false;
    int threads_ = 1;
};

void HybridMethod::advance(double passes) {
    current().advance(passes);
    threads_ = std::max(threads_, current().threads());
    if (newton_) {
        newton_gap_ = std::min(newton_gap_, newton_->estimated_gap());
        if (newton_->exhausted() || (newton_->passes() > budget_ && !may_go_on())) give_up_newton();
    } else if (!gave_up_ && is_time_for_newton()) {
        start_newton();
    }
}

/// At the end of a sweep that has brought the gap to about a tenth (the guess is a kind one), if the rest is long enough for Newton-CG to
/// win: it needs some 20 passes.
bool HybridMethod::is_time_for_newton() {
    constexpr double near_enough = 0.012, long_enough = 20, patience = 3;
    const Sweep now{fast_->passes(), fast_->estimated_gap()};
    if (!std::isfinite(now.gap) || (!history_.empty() && history_.back().gap == now.gap)) return false;
    history_.push_back(now);
    if (!(now.gap <= near_enough * primal_)) return false; // P only falls: no need to look
    // far on SDCA's side the gap stays for a while and falls late, all at once (dorothea at l2 = 1e-8: 21 passes, or 127 with Newton-CG)
    if (fast_->omega() > 8 && now.passes < 40) return false;
    if (!has_looked_) {
        std::vector<double> x, y;
        fast_->point(x, y);
        primal_ = std::fabs(problem_.primal(x));
        spent_ += 0.5;
        has_looked_ = now.gap <= near_enough * primal_; // from here on P is known well enough
    }
    if (!has_looked_) return false;
    const auto half = std::find_if(history_.begin(), history_.end(),
                                   [&](const Sweep &sweep) { return sweep.passes >= 0.5 * now.passes; });
    const double rate = std::log(half->gap / now.gap) / (now.passes - half->passes);
    const double left = std::log(now.gap / (tolerance_ * primal_)) / std::max(rate, 1e-6);
    left_ = left;
    budget_ = patience * left;
    return left > long_enough;
}

/// Whether Newton-CG, by the decay of its gap, will be done before spdc_fast would.
bool HybridMethod::may_go_on() {
    const double aim = tolerance_ * primal_;
    if (newton_gap_ <= aim) return true;
    const double rate = std::log(history_.back().gap / newton_gap_) / newton_->passes();
    const double rest = std::log(newton_gap_ / aim) / std::max(rate, 1e-6);
    if (rest > left_) return false;
    budget_ = newton_->passes() + rest; // then it will be asked again
    return true;
}

void HybridMethod::start_newton() {
    std::vector<double> x, y;
    fast_->point(x, y);
    std::vector<double>().swap(y); // where memory is short, a number a row counts
    if (!context_.copy) let_fast_go();
    newton_ = make_newton_cg(problem_, x, context_);
    newton_->aim(tolerance_);
    newton_gap_ = infinity;
}

void HybridMethod::let_fast_go() {
    omega_changes_ = take_omega_changes();
    touched_ += fast_->coordinates_touched();
    spent_ += fast_->passes();
    fast_.reset();
}

void HybridMethod::give_up_newton() {
    std::vector<double> x, y; // spdc_fast goes on from its own point if it is there and that is better
    if (!fast_ || newton_gap_ < history_.back().gap) newton_->point(x, y);
    spent_ += newton_->passes();
    newton_.reset();
    gave_up_ = true;
    if (!fast_) fast_ = make_method(problem_, SpdcFast{}, context_);
    if (!x.empty()) fast_->start(x, y);
}

std::vector<Method::OmegaChange> HybridMethod::take_omega_changes() {
    std::vector<OmegaChange> changes = std::exchange(omega_changes_, {});
    if (!fast_) return changes;
    for (OmegaChange change : fast_->take_omega_changes()) {
        change.passes += spent_;
        changes.push_back(change);
    }
    return changes;
}

void HybridMethod::certified(const Found &found) {
    primal_ = std::min(primal_, std::fabs(found.certificate.primal));
    if (newton_) newton_gap_ = std::min(newton_gap_, found.certificate.gap);
    current().certified(found);
}

} // namespace

std::unique_ptr<Method> make_method(const Problem &problem, const Hybrid &options, const SolveContext &context) {
    check_newton_cg(problem, options.name);
    if (!problem.is_uniform() || problem.regularizer(0).strong_convexity() == 0) {
        fail(ErrorKind::unsupported,
             fmt::format("solver {} needs an l2 penalty, the same for every feature; the solver newton_cg takes "
                         "different ones",
                         options.name));
    }
    return std::make_unique<HybridMethod>(problem, context);
}

} // namespace spdc
