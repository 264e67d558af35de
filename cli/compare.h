// What a comparison found: a table, a JSON object, curves.
#pragma once

#include "arguments.h"
#include "report.h"
#include "spdc/result.h"

#include <optional>
#include <string>
#include <vector>

namespace spdc::cli {

/// A point of a run: the worst gap over the outputs.
struct CoursePoint {
    double passes = 0, seconds = 0, gap = infinity; // seconds without certification
};

/// One solver on one problem.
struct ComparedRun {
    NamedSolver solver;
    double l1 = 0, l2 = 0;
    std::string refusal; // why it was not run; empty when it was
    std::string ran;     // the solver that ended the run: auto picks one
    StopReason stop_reason = StopReason::not_run;
    std::vector<CoursePoint> course;
    double primal = 0, dual = 0; // of the worst output
    int threads = 1;
    std::string trace; // the file, or empty
    bool missed() const { return refusal.empty() && !is_converged(stop_reason); }
};

/// Fills in what the run left behind.
void take_result(const Result &result, ComparedRun &run);

/// The first point at which the gap was at most `stage`, if there is one.
std::optional<CoursePoint> reached(const ComparedRun &run, double stage);

/// 1e-2, 1e-4, 1e-6 and 1e-8 as far as the tolerance goes, and the tolerance.
std::vector<double> stages(double tolerance);

/// A name for the file of a run's trace, of characters that every system takes.
std::string trace_name(const ComparedRun &run);

std::string compare_text(const CompareArguments &arguments, const Dataset &data, const std::vector<ComparedRun> &runs);
std::string compare_json(const CompareArguments &arguments, const Dataset &data, const std::vector<ComparedRun> &runs);
/// Gap against passes and against seconds, a row for each l2.
std::string compare_svg(const CompareArguments &arguments, const std::vector<ComparedRun> &runs);

} // namespace spdc::cli
