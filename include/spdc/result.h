// What solve() hands back: the best point, its certificate, and how the run ended.
#pragma once

#include "spdc/certificate.h"
#include "spdc/stopping.h"
#include "spdc/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spdc {

struct Result {
    std::string solver;        // which solver ran
    std::string solver_reason; // why, in a sentence
    StopReason stop_reason = StopReason::not_run;
    std::string message; // what to do about it, when there is something to do

    std::int64_t features = 0;
    std::int64_t outputs = 1;
    std::vector<double> weights;    // features x outputs, the outputs of a feature side by side
    std::vector<double> intercepts; // one per output; empty without an intercept
    std::vector<double> dual;       // rows of the data x outputs: the paper's y_i; 0 for rows of weight zero

    std::vector<Certificate> certificates; // one per output
    /// The certificate with the largest relative gap: what the whole result is worth.
    const Certificate &worst() const;
    bool converged() const noexcept { return is_converged(stop_reason); }

    double passes = 0;         // passes over the data of the output that needed most; certification is not counted
    double seconds = 0;        // wall time of solve()
    double seconds_solver = 0; // the same without certification
    int threads = 1;           // threads that were used
    std::uint64_t seed = 1;
    std::int64_t coordinates_touched = 0; // primal coordinates read or written by the row updates, over all passes
    Trace trace;
};

} // namespace spdc
