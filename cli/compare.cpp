#include "compare.h"

#include "plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace spdc::cli {

namespace {

constexpr std::size_t cell = 11; // width of a number in the table

/// The l2 of the runs, each once, in their order.
std::vector<double> penalties(const std::vector<ComparedRun> &runs) {
    std::vector<double> found;
    for (const ComparedRun &run : runs) {
        if (std::find(found.begin(), found.end(), run.l2) == found.end()) found.push_back(run.l2);
    }
    return found;
}

std::string solver_name(const ComparedRun &run) { return run.solver.text.substr(0, run.solver.text.find(':')); }

std::string number(double value) {
    return value < 9999.5 ? fmt::format("{:.4g}", value) : fmt::format("{:.0f}", value);
}

std::string row(const ComparedRun &run, const std::vector<double> &stages, std::size_t name_width) {
    std::string text = fmt::format("{:<{}}", run.solver.text, name_width);
    if (!run.refusal.empty()) return text + "  refused: " + run.refusal + "\n";
    for (const double stage : stages) {
        const std::optional<CoursePoint> point = reached(run, stage);
        const double gap = point ? point->gap : (run.course.empty() ? infinity : run.course.back().gap);
        text += fmt::format("{0:>{3}}{1:>{3}}{2:>{3}}", point ? number(point->passes) : "-",
                            point ? number(point->seconds) : "-", fmt::format("{:.1e}", gap), cell);
    }
    if (run.missed()) text += fmt::format("  {}", to_string(run.stop_reason));
    if (run.ran != solver_name(run)) text += fmt::format("  ({})", run.ran);
    return text + "\n";
}

std::string heading(const std::vector<double> &stages, std::size_t name_width) {
    std::string first = std::string(name_width, ' '), second = fmt::format("{:<{}}", "solver", name_width);
    for (const double stage : stages) {
        const std::string power = fmt::format("{:.0e}", stage);
        first += fmt::format("{:>{}}", "gap " + (std::stod(power) == stage ? power : fmt::format("{:.1e}", stage)),
                             3 * cell);
        second += fmt::format("{0:>{3}}{1:>{3}}{2:>{3}}", "passes", "seconds", "gap", cell);
    }
    return first + "\n" + second + "\n";
}

Json run_json(const ComparedRun &run, const std::vector<double> &stages) {
    Json json;
    json["solver"] = run.solver.text;
    json["l1"] = run.l1;
    json["l2"] = run.l2;
    json["colour"] = colour_of(solver_name(run));
    if (!run.refusal.empty()) {
        json["refused"] = run.refusal;
        return json;
    }
    json["ran"] = run.ran;
    json["converged"] = is_converged(run.stop_reason);
    json["stop_reason"] = to_string(run.stop_reason);
    json["primal"] = run.primal;
    json["dual"] = run.dual;
    const CoursePoint last = run.course.empty() ? CoursePoint{} : run.course.back();
    json["relative_gap"] = last.gap;
    json["passes"] = last.passes;
    json["seconds"] = last.seconds;
    json["threads"] = run.threads;
    json["stages"] = Json::array();
    for (const double stage : stages) {
        const std::optional<CoursePoint> point = reached(run, stage);
        Json entry = {{"gap", stage}, {"passes", nullptr}, {"seconds", nullptr}, {"relative_gap", nullptr}};
        if (point)
            entry = {
                {"gap", stage}, {"passes", point->passes}, {"seconds", point->seconds}, {"relative_gap", point->gap}};
        json["stages"].push_back(entry);
    }
    json["trace"] = run.trace.empty() ? Json() : Json(run.trace);
    return json;
}

/// Runs of one solver with different options share its colour and differ in their dashes.
std::string dashes(const std::vector<ComparedRun> &runs, const ComparedRun &run) {
    static const std::vector<std::string> patterns = {"", "7 3", "2 3", "9 3 2 3", "12 4"};
    std::vector<std::string> texts;
    for (const ComparedRun &other : runs) {
        const bool is_new = std::find(texts.begin(), texts.end(), other.solver.text) == texts.end();
        if (is_new && solver_name(other) == solver_name(run)) texts.push_back(other.solver.text);
    }
    const auto place = std::find(texts.begin(), texts.end(), run.solver.text) - texts.begin();
    return patterns[static_cast<std::size_t>(place) % patterns.size()];
}

} // namespace

void take_result(const Result &result, ComparedRun &run) {
    run.ran = result.solver;
    run.stop_reason = result.stop_reason;
    run.primal = result.worst().primal;
    run.dual = result.worst().dual;
    run.threads = result.threads;
    Trace trace = result.trace;
    std::stable_sort(trace.begin(), trace.end(), [](const auto &a, const auto &b) { return a.seconds < b.seconds; });
    std::vector<double> gaps(static_cast<std::size_t>(result.outputs), infinity);
    CoursePoint point;
    for (const TracePoint &now : trace) { // of several outputs the worst counts
        gaps[static_cast<std::size_t>(now.output)] = now.relative_gap;
        point = {std::max(point.passes, now.passes), std::max(point.seconds, now.seconds_solver),
                 *std::max_element(gaps.begin(), gaps.end())};
        run.course.push_back(point);
    }
}

std::optional<CoursePoint> reached(const ComparedRun &run, double stage) {
    const auto found =
        std::find_if(run.course.begin(), run.course.end(), [&](const CoursePoint &p) { return p.gap <= stage; });
    return found == run.course.end() ? std::optional<CoursePoint>() : *found;
}

std::vector<double> stages(double tolerance) {
    std::vector<double> found;
    for (const double stage : {1e-2, 1e-4, 1e-6, 1e-8}) {
        if (stage > 1.001 * tolerance) found.push_back(stage);
    }
    found.push_back(tolerance);
    return found;
}

std::string trace_name(const ComparedRun &run) {
    std::string name = run.solver.text;
    std::replace(name.begin(), name.end(), ':', ',');
    return fmt::format("{},l2={}.csv", name, run.l2);
}

std::string compare_text(const CompareArguments &arguments, const Dataset &data, const std::vector<ComparedRun> &runs) {
    std::size_t name_width = 8;
    for (const ComparedRun &run : runs) name_width = std::max(name_width, run.solver.text.size());
    const std::vector<double> columns = stages(arguments.stopping.tolerance);
    std::string text;
    for (const double l2 : penalties(runs)) {
        if (!text.empty()) text += "\n";
        text += fmt::format("{} rows, {} features, loss {}, {}l2 = {:g}; seconds are without certification\n",
                            data.rows(), data.features(), arguments.loss.name(),
                            runs.front().l1 > 0 ? fmt::format("l1 = {:g}, ", runs.front().l1) : "", l2);
        text += heading(columns, name_width);
        for (const ComparedRun &run : runs) {
            if (run.l2 == l2) text += row(run, columns, name_width);
        }
    }
    return text;
}

std::string compare_json(const CompareArguments &arguments, const Dataset &data, const std::vector<ComparedRun> &runs) {
    Json json;
    json["data"] = arguments.data;
    json["rows"] = data.rows();
    json["features"] = data.features();
    json["nonzeros"] = data.nonzeros();
    json["loss"] = arguments.loss.name();
    json["loss_parameters"] = parameters_json(arguments.loss);
    json["tolerance"] = arguments.stopping.tolerance;
    json["seed"] = arguments.seed;
    json["runs"] = Json::array();
    for (const ComparedRun &run : runs) json["runs"].push_back(run_json(run, stages(arguments.stopping.tolerance)));
    return to_text(json);
}

std::string compare_svg(const CompareArguments &arguments, const std::vector<ComparedRun> &runs) {
    std::vector<Panel> panels;
    for (const double l2 : penalties(runs)) {
        const std::string title = fmt::format("{}, l2 = {:g}", arguments.loss.name(), l2);
        Panel passes{title, "passes over the data", "certified relative gap", {}};
        Panel seconds{title, "seconds without certification", "certified relative gap", {}};
        for (const ComparedRun &run : runs) {
            if (run.l2 != l2 || !run.refusal.empty()) continue;
            Curve curve{run.solver.text, colour_of(solver_name(run)), dashes(runs, run), {}, {}};
            for (const CoursePoint &point : run.course) {
                curve.x.push_back(point.passes);
                curve.y.push_back(point.gap);
            }
            passes.curves.push_back(curve);
            for (std::size_t k = 0; k < run.course.size(); ++k) curve.x[k] = run.course[k].seconds;
            // before the first pass there is nothing to see, only how long the preparations took
            if (!curve.x.empty() && run.course.front().passes == 0) curve.x.front() = 0;
            seconds.curves.push_back(curve);
        }
        panels.push_back(std::move(passes));
        panels.push_back(std::move(seconds));
    }
    return draw(panels, 2, 0.1 * arguments.stopping.tolerance);
}

} // namespace spdc::cli
