// One line per solver: how its options become a Method. Each is defined in the solver's own file.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>

namespace spdc {

/// Auto becomes a solver and the sentence that says why.
struct Choice {
    AnySolver solver;
    std::string reason;
};
Choice choose(const Problem &problem);
/// Passes that spdc_fast is likely to need to a relative gap of 1e-6.
double predicted_passes(const Problem &problem);

std::unique_ptr<Method> make_method(const Problem &problem, const Spdc &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const SpdcFast &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Sdca &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Newton &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const WorkingSet &options, const SolveContext &context);

} // namespace spdc
