#include "spdc/trace.h"

#include "io_text.h"
#include "output_file.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

namespace spdc {

namespace {

bool is_csv(const std::string &path) { return path.ends_with(".csv"); }

template <class Value> void append_csv(std::string &line, const Value &value) {
    if constexpr (std::is_arithmetic_v<Value>) {
        append_number(line, value);
    } else {
        line += value; // the name of a solver: nothing to quote
    }
}

// Infinity and NaN have no JSON number.
template <class Value> void append_json(std::string &line, const Value &value) {
    if constexpr (!std::is_arithmetic_v<Value>) {
        line += fmt::format("\"{}\"", value);
    } else if (!std::isfinite(static_cast<double>(value))) {
        line += "null";
    } else {
        append_number(line, value);
    }
}

void append_row(std::string &line, const TracePoint &point) {
    point.columns([&](const char *, const auto &value) {
        append_csv(line, value);
        line += ',';
    });
    line.back() = '\n';
}

void append_object(std::string &line, const TracePoint &point) {
    line += '{';
    point.columns([&](const char *name, const auto &value) {
        line += fmt::format("\"{}\": ", name);
        append_json(line, value);
        line += ", ";
    });
    line.replace(line.size() - 2, 2, "}\n");
}

} // namespace

void check_trace_name(const std::string &path) {
    if (is_csv(path) || path.ends_with(".jsonl")) return;
    fail(ErrorKind::invalid_argument,
         fmt::format("trace '{}': expected a name that ends in .csv or .jsonl, which says the format", path));
}

void write_trace(const Trace &trace, const std::string &path) {
    check_trace_name(path);
    OutputFile out(path);
    std::string line;
    if (is_csv(path)) {
        TracePoint{}.columns([&](const char *name, const auto &) { line += fmt::format("{},", name); });
        line.back() = '\n';
        out.write(line);
    }
    for (const TracePoint &point : trace) {
        line.clear();
        is_csv(path) ? append_row(line, point) : append_object(line, point);
        out.write(line);
    }
    out.commit();
}

} // namespace spdc
