// One line per solver: how its options become a Method. Each is defined in the solver's own file.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>
#include <string>
#include <vector>

namespace spdc {

/// Auto becomes solvers to try one after another, each with the sentence that says why, and about how many passes over the data it
/// is likely to cost: one that goes before it is left only if it would need more. Infinity: only if it breaks down.
struct Choice {
    AnySolver solver;
    std::string reason;
    double cost = 100;
    Patience patience = {};

    Choice after_breakdown() const { return {solver, reason, infinity}; }
};
/// Solvers that suit the problem, what the context allows and its cores, best first.
std::vector<Choice> choose(const Problem &problem, const SolveContext &context);
/// Cores by which a method is chosen.
int cores_of(const SolveContext &context);
/// Whether each output has four cores and entries enough for the threads to share.
bool suits_many_threads(const Problem &problem, const SolveContext &context);
/// Passes that spdc_fast needs on text to a relative gap of 1e-6, about.
double passes_on_text(const Problem &problem);
/// How much alike rows so far apart are: the mean squared cosine of some. Text has 0.001 to 0.01; random rows one over their features; where a
/// few columns outweigh the others it is near 1.
double likeness(const Problem &problem, std::int64_t distance);
constexpr double likeness_of_text = 0.02; // or less
/// sdca for plain l2 penalties and permuted rows: a kernel of spdc_fast.
std::unique_ptr<Method> make_fast_sdca(const Problem &problem, const Sdca &options, const SolveContext &context);

std::unique_ptr<Method> make_method(const Problem &problem, const Spdc &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const SpdcFast &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Sdca &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Newton &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const NewtonCg &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Hybrid &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const WorkingSet &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const AcceleratedGradient &options,
                                    const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Lbfgs &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const ChambollePock &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Sag &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Saga &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Svrg &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Asdca &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const AsdcaMinibatch &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Apcg &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Rpdg &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const SdcaAdmm &options, const SolveContext &context);

} // namespace spdc
