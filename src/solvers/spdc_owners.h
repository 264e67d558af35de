// spdc_fast on several threads.
#pragma once

#include "method.h"
#include "spdc/solvers.h"

#include <memory>
#include <optional>

namespace spdc {

struct OwnersOptions {
    int owners;
    std::optional<double> omega;
    bool shrinking;
    bool is_sdca;
    bool changes_threads = false; // at every call of advance(), for tests; else where cores are taken away
};

std::unique_ptr<Method> make_owners(const Problem &problem, const OwnersOptions &options, const SolveContext &context);

} // namespace spdc
