// The solvers: one options struct each. The struct is the choice of solver; solve() is the one entry point.
#pragma once

#include "spdc/problem.h"
#include "spdc/result.h"
#include "spdc/stopping.h"
#include "spdc/trace.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spdc {

/// How SPDC picks the dual coordinates of an iteration.
enum class Sampling {
    uniform,     // independently and uniformly: the paper's Algorithms 1 and 2
    weighted,    // in proportion to a mix of 1/n and the row norms: Algorithm 3
    permutation, // every row once per pass, in a new random order
};

std::string_view to_string(Sampling sampling);
void parse(const std::string &name, Sampling &sampling);

/// Chooses a solver from the shape of the problem and says why.
struct Auto {
    static constexpr std::string_view name = "auto";
    static constexpr std::string_view help = "chooses a solver for the problem and says why";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// The stochastic primal-dual coordinate method of Zhang and Xiao (2015): Algorithms 1, 2 and 3.
struct Spdc {
    static constexpr std::string_view name = "spdc";
    static constexpr std::string_view help = "the paper's stochastic primal-dual coordinate method";

    Sampling sampling = Sampling::uniform;
    std::int64_t batch_size = 1;
    std::optional<double> alpha = {};
    double step_scale = 0.5;
    std::optional<double> tau = {};
    std::optional<double> sigma = {};
    std::optional<double> theta = {};
    std::optional<double> perturbation = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"sampling", "how rows are picked: uniform, weighted by row norm, or permutation"}, self.sampling);
        visit(Field{"batch-size", "rows updated together (Algorithm 2)", 1}, self.batch_size);
        visit(Field{"alpha",
                    "weighted sampling: share of the row norms in the probabilities; the theory's best by default", 0,
                    1, Bound::open},
              self.alpha);
        visit(Field{"step-scale", "0.5 is proved to converge; 1 is what the paper prints and can diverge", 0, infinity,
                    Bound::open},
              self.step_scale);
        visit(Field{"tau", "primal step size instead of the theorem's", 0, infinity, Bound::open}, self.tau);
        visit(Field{"sigma", "dual step size instead of the theorem's", 0, infinity, Bound::open}, self.sigma);
        visit(Field{"theta", "extrapolation instead of the theorem's", 0, 1}, self.theta);
        visit(Field{"perturbation",
                    "fixed strength of the strongly convex terms added to what is not smooth or not strongly convex "
                    "(section 3); by default they shrink with the gap",
                    0},
              self.perturbation);
    }
};

/// Dual-extrapolated SPDC for l2 penalties: the fast engine.
struct SpdcFast {
    static constexpr std::string_view name = "spdc_fast";
    static constexpr std::string_view help = "dual-extrapolated SPDC with shrinking, for l2 penalties";

    std::optional<double> omega;
    bool shrinking = true;
    std::optional<std::int64_t> owners = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"omega",
                    "primal weight: 1 is SPDC, larger goes towards SDCA; by default it follows the decay of the moves",
                    0, finite, Bound::open},
              self.omega);
        visit(Field{"shrinking", "leave out rows whose dual sits at a bound"}, self.shrinking);
        visit(Field{"owners",
                    "parts of the features that threads share, 1 for the serial kernel; by default what suits rows and "
                    "threads",
                    1, 64},
              self.owners);
    }
};

/// Proximal stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013); with a plain l2 penalty spdc_fast at its other end.
struct Sdca {
    static constexpr std::string_view name = "sdca";
    static constexpr std::string_view help = "proximal stochastic dual coordinate ascent, for penalties with l2";

    bool shrinking = true;
    std::optional<std::int64_t> owners = {};
    Sampling sampling = Sampling::permutation;

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"shrinking", "leave out rows whose dual sits at a bound"}, self.shrinking);
        visit(Field{"owners",
                    "parts of the features that threads share, 1 for the serial kernel; by default what suits rows and "
                    "threads",
                    1, 64},
              self.owners);
        visit(Field{"sampling", "how rows are picked: uniform or permutation"}, self.sampling);
    }
};

/// Stochastic average gradient (Schmidt, Le Roux and Bach 2017).
struct Sag {
    static constexpr std::string_view name = "sag";
    static constexpr std::string_view help = "stochastic average gradient, for smooth losses";

    std::optional<double> step = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"step", "step size times the rows' largest smoothness; the theory's by default", 0, finite,
                    Bound::open},
              self.step);
    }
};

/// SAGA (Defazio, Bach and Lacoste-Julien 2014).
struct Saga {
    static constexpr std::string_view name = "saga";
    static constexpr std::string_view help = "stochastic gradients corrected by a table, for smooth losses";

    std::optional<double> step = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"step", "step size times the rows' largest smoothness; the theory's by default", 0, finite,
                    Bound::open},
              self.step);
    }
};

/// Proximal SVRG (Xiao and Zhang 2014).
struct Svrg {
    static constexpr std::string_view name = "svrg";
    static constexpr std::string_view help = "stochastic gradients corrected by a full one, for smooth losses";

    std::optional<double> step = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"step", "step size times the rows' largest smoothness; the theory's by default", 0, finite,
                    Bound::open},
              self.step);
    }
};

/// Accelerated proximal SDCA (Shalev-Shwartz and Zhang 2014).
struct Asdca {
    static constexpr std::string_view name = "asdca";
    static constexpr std::string_view help = "accelerated proximal SDCA: an outer loop round sdca";

    Sampling sampling = Sampling::permutation;

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"sampling", "how rows are picked: uniform or permutation"}, self.sampling);
    }
};

/// Accelerated mini-batch SDCA (Shalev-Shwartz and Zhang 2013).
struct AsdcaMinibatch {
    static constexpr std::string_view name = "asdca_minibatch";
    static constexpr std::string_view help = "accelerated mini-batch stochastic dual coordinate ascent";

    std::optional<std::int64_t> batch_size = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"batch-size", "rows updated together", 1}, self.batch_size);
    }
};

/// Accelerated proximal coordinate gradient on the dual (Lin, Lu and Xiao 2014).
struct Apcg {
    static constexpr std::string_view name = "apcg";
    static constexpr std::string_view help = "accelerated proximal coordinate gradient method on the dual";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// Randomized primal-dual gradient (Lan and Zhou 2015).
struct Rpdg {
    static constexpr std::string_view name = "rpdg";
    static constexpr std::string_view help = "randomized primal-dual gradient: spdc with the dual's own distance";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// SDCA with the alternating direction method of multipliers (Suzuki 2014).
struct SdcaAdmm {
    static constexpr std::string_view name = "sdca_admm";
    static constexpr std::string_view help = "dual coordinate ascent inside the alternating direction method";

    std::optional<std::int64_t> batch_size = {};
    std::optional<double> rho = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"batch-size", "rows updated together", 1}, self.batch_size);
        visit(Field{"rho", "weight of the constraint in the augmented Lagrangian", 0, finite, Bound::open}, self.rho);
    }
};

/// Newton's method with a factored Hessian, for l2 penalties and few features or few rows.
struct Newton {
    static constexpr std::string_view name = "newton";
    static constexpr std::string_view help =
        "Newton's method with a Cholesky factor, for l2 penalties and few features or rows";
    static constexpr bool copies_data = true; // into blocks of columns
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// Newton's method with conjugate gradients, for l2 penalties, smooth losses and any number of features.
struct NewtonCg {
    static constexpr std::string_view name = "newton_cg";
    static constexpr std::string_view help =
        "Newton's method with conjugate gradients, for l2 penalties and smooth losses; columns may differ in size";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// spdc_fast for the first digits, Newton-CG for the others where it is faster.
struct Hybrid {
    static constexpr std::string_view name = "hybrid";
    static constexpr std::string_view help = "spdc_fast first, newton_cg from a gap of 1e-2 on, for l2 penalties";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// Working sets with coordinate descent or prox-Newton steps inside: for weights that are mostly zero.
struct WorkingSet {
    static constexpr std::string_view name = "working_set";
    static constexpr std::string_view help = "working sets with accelerated coordinate descent, for l1 penalties";
    static constexpr bool copies_data = true; // by columns
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// Nesterov's accelerated proximal gradient method on the whole data, with adaptive line search.
struct AcceleratedGradient {
    static constexpr std::string_view name = "accelerated_gradient";
    static constexpr std::string_view help = "Nesterov's accelerated full gradient with line search, for smooth losses";
    template <class Self, class Visit> static void fields(Self &, Visit &&) {}
};

/// The limited-memory quasi-Newton method; OWL-QN where there is an l1 penalty.
struct Lbfgs {
    static constexpr std::string_view name = "lbfgs";
    static constexpr std::string_view help = "limited-memory BFGS, OWL-QN with l1, for smooth losses and no bounds";

    std::int64_t memory = 30;

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"memory", "pairs of steps and gradient changes that are kept", 1, 1000}, self.memory);
    }
};

/// The batch primal-dual method of Chambolle and Pock (2011).
struct ChambollePock {
    static constexpr std::string_view name = "chambolle_pock";
    static constexpr std::string_view help = "the batch primal-dual method that the paper's is the stochastic form of";

    std::optional<double> tau = {};
    std::optional<double> sigma = {};
    std::optional<double> theta = {};

    template <class Self, class Visit> static void fields(Self &self, Visit &&visit) {
        visit(Field{"tau", "primal step size instead of the theorem's", 0, infinity, Bound::open}, self.tau);
        visit(Field{"sigma", "dual step size instead of the theorem's", 0, infinity, Bound::open}, self.sigma);
        visit(Field{"theta", "extrapolation instead of the theorem's", 0, 1}, self.theta);
    }
};

// clang-format off
using AnySolver = std::variant<Auto,
                               Spdc,
                               SpdcFast,
                               Sdca,
                               Newton,
                               NewtonCg,
                               Hybrid,
                               WorkingSet,
                               Sag,
                               Saga,
                               Svrg,
                               Asdca,
                               AsdcaMinibatch,
                               Apcg,
                               Rpdg,
                               SdcaAdmm,
                               AcceleratedGradient,
                               Lbfgs,
                               ChambollePock>;
// clang-format on

/// The names of all solvers, in the order of AnySolver.
std::vector<std::string> solver_names();

/// The solver of that name with default options; an unknown name is an Error that lists the known ones.
AnySolver make_solver(std::string_view name);

/// Whether equal rows and proportional columns are merged, and empty ones left out, before a solver sees the problem.
enum class Presolve {
    automatic, // with the solver auto, where a sample says that it pays; prints as auto
    on,        // whatever can be merged, for any solver
    off,
};

std::string_view to_string(Presolve presolve);
void parse(const std::string &name, Presolve &presolve);

/// Where to start: parts of a Result of the same features, outputs and rows, which must outlive the run. Empty parts are unknown.
struct Start {
    std::span<const double> weights, intercepts, dual;
};

/// Cores that this process may use: those of its affinity mask, or fewer where a container's processor quota (cgroup cpu.max) allows
/// less; at least 1.
int available_cores();

/// The rare things.
struct SolveContext {
    Observer observer = {};                       // sees every certification
    PointObserver point_observer = {};            // the same, with the best x so far
    const std::atomic<bool> *interrupt = nullptr; // set by a signal handler or another thread: stop soon
    std::function<bool()> stop = {}; // asked by a working thread, often: true ends the run. Copies are asked, too
    std::uint64_t seed = 1;
    int threads = 1;
    Presolve presolve = Presolve::automatic;
    bool copy = true; // false: no solver or presolve that copies the data, and all others read them where they are
    int cores = 0; // by which a method is chosen; 0: available_cores(). Not by `threads`: their number changes no bit
    const Start *start = nullptr; // certified first; methods that can go on from there do
    bool full_trace = false;      // certify on schedule, also where a method guesses that it is too early
    Team *team = nullptr;         // set by solve() for the methods: threads that are there already
};

/// Solves the problem. Throws Error when the call is wrong; a run that ends badly is a Result that says so.
Result solve(const Problem &problem, const AnySolver &solver = Auto{}, const Stopping &stopping = {},
             const SolveContext &context = {});

} // namespace spdc
