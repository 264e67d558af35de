// What a run looked like: one point per certification, and one per change of spdc_fast's omega in between.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace spdc {

struct TracePoint {
    std::int64_t output = 0;   // which output of a one-vs-rest problem
    double passes = 0;         // passes over the data so far, fractional; certification is not counted
    double seconds = 0;        // wall time since the start of solve()
    double seconds_solver = 0; // the same without certification
    double primal = 0;         // best so far
    double dual = 0;           // best so far
    double gap = 0;
    double relative_gap = 0;
    std::int64_t nonzeros = 0;                               // features with a weight
    double omega = std::numeric_limits<double>::quiet_NaN(); // primal weight of spdc_fast; others have none
    std::string solver = {};                                 // which solver worked: auto may change it

    /// Calls visit(name, value) for every column, in the order of the files.
    template <class Visit> void columns(Visit &&visit) const {
        visit("output", output);
        visit("passes", passes);
        visit("seconds", seconds);
        visit("seconds_solver", seconds_solver);
        visit("primal", primal);
        visit("dual", dual);
        visit("gap", gap);
        visit("relative_gap", relative_gap);
        visit("nonzeros", nonzeros);
        visit("omega", omega);
        visit("solver", solver);
    }
};

using Trace = std::vector<TracePoint>;

/// Sees every point as it comes; returns false to ask the run to stop.
using Observer = std::function<bool(const TracePoint &)>;
/// The same with the best x of the point's output: its weights, then its intercept if there is one.
using PointObserver = std::function<bool(const TracePoint &, std::span<const double> x)>;

/// Comma-separated values with a header, or one JSON object per line, by the name's ending: .csv or .jsonl.
void write_trace(const Trace &trace, const std::string &path);

/// Throws Error(invalid_argument) unless write_trace could write under that name.
void check_trace_name(const std::string &path);

} // namespace spdc
