// What each command was asked to do. Parsing checks everything that can be checked without the data.
#pragma once

#include "spdc/io.h"
#include "spdc/losses.h"
#include "spdc/model.h"
#include "spdc/problem.h"
#include "spdc/solvers.h"
#include "spdc/stopping.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spdc::cli {

using Arguments = std::vector<std::string>;

/// How data are read.
struct DataOptions : ReadOptions {
    bool cache = false; // keep a .spdc file beside the text
};

/// A penalty as given: a number, or a fraction of lambda_max.
struct Penalty {
    double value = 0;
    bool is_fraction = false;
};

struct TrainArguments {
    std::string data, model;
    DataOptions read;
    std::string weights, penalty_factors; // files, or empty
    AnyLoss loss;
    std::optional<Penalty> l1;
    std::optional<double> l2, C;
    Interval bounds;
    ProblemOptions problem; // without the penalty factors, which are in a file
    AnySolver solver;
    Stopping stopping;
    std::uint64_t seed = 1;
    int threads = 1;
    Presolve presolve = Presolve::automatic;
    std::string trace, dual; // files, or empty
    bool json = false, quiet = false, best_effort = false;
};

/// A solver of a comparison, as it was written: spdc:sampling=weighted:step-scale=1.
struct NamedSolver {
    std::string text;
    AnySolver solver;
};

/// The problem and the limits are those of train; each solver meets each l2.
struct CompareArguments : TrainArguments {
    std::vector<NamedSolver> solvers;
    std::vector<double> l2s; // empty: train's default
    std::string plot;        // a file, or empty; trace is a folder here
};

struct PredictArguments {
    std::string model, data, out = "-";
    DataOptions read;
    Prediction kind = Prediction::label;
};

struct EvaluateArguments {
    std::string model, data;
    DataOptions read;
    bool json = false;
};

struct InfoArguments {
    std::string path;
    DataOptions read;
    std::optional<AnyLoss> loss;
    Intercept intercept = Intercept::none;
    bool json = false;
};

struct ConvertArguments {
    std::string in, out;
    DataOptions read;
    Format to = Format::automatic;
};

struct VerifyArguments {
    std::string model, data, dual;
    DataOptions read;
    std::string weights, penalty_factors;
    std::optional<double> tolerance;
    bool json = false;
};

/// All throw HelpPage when help is asked for, and Error(invalid_argument).
TrainArguments parse_train(const Arguments &arguments);
CompareArguments parse_compare(const Arguments &arguments);
PredictArguments parse_predict(const Arguments &arguments);
EvaluateArguments parse_evaluate(const Arguments &arguments);
InfoArguments parse_info(const Arguments &arguments);
ConvertArguments parse_convert(const Arguments &arguments);
VerifyArguments parse_verify(const Arguments &arguments);

} // namespace spdc::cli
