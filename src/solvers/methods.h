// One line per solver: how its options become a Method. Each is defined in the solver's own file.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>
#include <string>
#include <vector>

namespace spdc {

/// Auto becomes solvers to try one after another, each with the sentence that says why.
struct Choice {
    AnySolver solver;
    std::string reason;
    bool is_patient = false; // left only when it breaks down, not when it is slow
};
std::vector<Choice> choose(const Problem &problem);
/// Passes that spdc_fast is likely to need to a relative gap of 1e-6.
double predicted_passes(const Problem &problem);

std::unique_ptr<Method> make_method(const Problem &problem, const Spdc &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const SpdcFast &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Sdca &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Newton &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const NewtonCg &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const Hybrid &options, const SolveContext &context);
std::unique_ptr<Method> make_method(const Problem &problem, const WorkingSet &options, const SolveContext &context);

} // namespace spdc
