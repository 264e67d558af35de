// The forms of Newton's method; the solver `newton` picks one by the loss and by which of rows and features are fewer.
#pragma once

#include "method.h"
#include "newton_system.h"

#include <memory>

namespace spdc {

/// Smooth losses, many rows: passes over blocks of rows, a growing sample first.
std::unique_ptr<Method> make_fused_newton(const Problem &problem, const SolveContext &context);

/// Smooth losses, any system.
std::unique_ptr<Method> make_plain_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system);

/// Losses whose duals live in intervals, any system.
std::unique_ptr<Method> make_barrier_newton(const Problem &problem, std::unique_ptr<NewtonSystem> system);

} // namespace spdc
