#include "arguments.h"

#include "command_line.h"
#include "field_options.h"
#include "spdc/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace spdc::cli {

namespace {

constexpr std::int64_t most_features = std::int64_t{1} << 31;

void add_read_options(CommandLine &line, DataOptions &read) {
    line.group("Data");
    line.option("--format", "NAME", "auto, libsvm, csv, tsv or spdc (default auto: by file name, else by the text)",
                [&read](const std::string &text) { read.format = parse_format(text); });
    line.option("--index-base", "0|1", "number of the first feature in LIBSVM text (default: 0 when an index is 0)",
                [&read](const std::string &text) {
                    read.index_base = static_cast<int>(parse_integer("index-base", text, 0, 1));
                });
    line.option("--label-column", "NAME|N", "CSV: the label's column, by name or from 1, -1 the last (default 1)",
                read.label_column);
}

void add_cache_option(CommandLine &line, DataOptions &read) {
    line.flag("--cache", "keep the data as DATA.spdc beside DATA, and read that next time unless DATA has changed",
              read.cache);
}

void add_threads_option(CommandLine &line, int &threads) {
    threads = available_cores();
    line.option(
        "--threads", "N", fmt::format("threads (default: the cores this process may use, here {})", threads),
        [&threads](const std::string &text) { threads = static_cast<int>(parse_integer("threads", text, 1, 4096)); });
}

void add_features_option(CommandLine &line, ReadOptions &read) {
    line.option(
        "--features", "D", "number of features; an index beyond it is an error (default: as the data have)",
        [&read](const std::string &text) { read.features = parse_integer("features", text, 1, most_features); });
}

void add_row_and_feature_files(CommandLine &line, std::string &weights, std::string &penalty_factors) {
    line.option("--weights", "FILE", "row weights, one per line; their sum is W", weights);
    line.option("--penalty-factors", "FILE", "one per feature, multiplies its penalty; 0: not penalised",
                penalty_factors);
}

void add_intercept_option(CommandLine &line, Intercept &intercept) {
    line.option("--intercept", "KIND", "none, free (not penalised) or penalized (default none)",
                [&intercept](const std::string &text) { intercept = parse_intercept(text); });
}

/// --loss and the options of all losses; take() gives the one that was chosen.
class LossOptions {
  public:
    void add_to(CommandLine &line, const std::string &default_help) {
        line.option("--loss", "NAME", fmt::format("{} (default {})", fmt::join(loss_names(), ", "), default_help),
                    name_);
        fields_.collect<AnyLoss::Variant>();
        fields_.add_to(line);
    }
    bool given() const { return !name_.empty(); }
    AnyLoss take() {
        AnyLoss loss = given() ? make_loss(name_) : AnyLoss();
        std::visit([&](auto &chosen) { fields_.assign(chosen); }, loss.variant());
        fields_.refuse_rest(loss.name());
        return loss;
    }

  private:
    std::string name_;
    FieldOptions fields_{"loss"};
};

/// --solver and the options of all solvers.
class SolverOptions {
  public:
    void add_to(CommandLine &line) {
        line.option("--solver", "NAME", fmt::format("{} (default auto)", fmt::join(solver_names(), ", ")), name_);
        fields_.collect<AnySolver>();
        fields_.add_to(line);
    }
    AnySolver take() {
        AnySolver solver = make_solver(name_);
        std::visit([&](auto &chosen) { fields_.assign(chosen); }, solver);
        fields_.refuse_rest(name_);
        return solver;
    }

  private:
    std::string name_ = "auto";
    FieldOptions fields_{"solver"};
};

// A number, or a fraction of lambda_max: 0.1max.
Penalty parse_l1(const std::string &text) {
    Penalty penalty;
    penalty.is_fraction = text.ends_with("max");
    const std::string number = penalty.is_fraction ? text.substr(0, text.size() - 3) : text;
    penalty.value = number.empty() && penalty.is_fraction ? 1.0 : parse_number("l1", number);
    check_range({"l1", "", 0}, penalty.value);
    return penalty;
}

// "balanced", or label=weight,label=weight; a label may hold '=', since the last one counts.
void parse_class_weights(const std::vector<std::string> &texts, ProblemOptions &problem) {
    for (const std::string &text : texts) {
        if (text == "balanced") {
            problem.balanced = true;
            continue;
        }
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string pair = text.substr(begin, end - begin);
            const std::size_t equals = pair.rfind('=');
            if (equals == pair.npos || equals == 0) {
                fail(ErrorKind::invalid_argument,
                     fmt::format("--class-weight '{}': expected balanced or label=weight,label=weight", text));
            }
            const std::string label = pair.substr(0, equals);
            const double weight = parse_number("class-weight", pair.substr(equals + 1));
            check_range({"class-weight", "", 0}, weight);
            if (!problem.class_weights.emplace(label, weight).second) {
                fail(ErrorKind::invalid_argument, fmt::format("--class-weight: two weights for the label {}", label));
            }
            begin = end + 1;
        }
    }
    if (problem.balanced && !problem.class_weights.empty()) {
        fail(ErrorKind::invalid_argument, "--class-weight: either balanced or label=weight, not both");
    }
}

void check_penalties(const TrainArguments &train, bool nonnegative, bool lower) {
    if (train.C && train.l2) {
        fail(ErrorKind::invalid_argument, "--C and --l2 exclude each other: C means l2 = 1/(C W)");
    }
    if (nonnegative && lower) {
        fail(ErrorKind::invalid_argument, "--nonnegative and --lower exclude each other: the former means --lower 0");
    }
    const double l1 = train.l1 && !train.l1->is_fraction ? train.l1->value : 0;
    make_regularizer(l1, train.l2.value_or(0), train.bounds);
}

constexpr const char *train_description =
    "Fits a linear model: minimises P(x) = (1/W) sum_i w_i phi(a_i'x, b_i) + l1 |x|_1 + (l2/2) |x|^2, W the sum of the "
    "row "
    "weights (the number of rows without weights), and proves how far from the minimum the model is.";

constexpr const char *train_examples =
    R"(  spdc train data.svm model                        logistic regression, l2 = 1/W (C = 1)
  spdc train --loss hinge -c 10 data.svm model     a support vector machine, LIBLINEAR's C = 10
  spdc train --l1 0.1max data.svm model            few features: a tenth of the smallest l1 that leaves none
  spdc train --loss squared --intercept free --label-column price houses.csv model
  spdc train --tolerance 1e-8 --dual y.txt data.svm model && spdc verify model data.svm y.txt

Exit codes: 0 done and certified, 1 usage, 2 bad input or unwritable output, 3 stopped before the tolerance
(the model is written and says its gap; --best-effort makes this 0), 4 internal error.)";

double parse_l2(const std::string &text) {
    const double l2 = parse_number("l2", text);
    check_range({"l2", "", 0}, l2);
    return l2;
}

/// Those of train; --l2 itself is the command's, which calls this first.
void add_penalty_options(CommandLine &line, TrainArguments &train, bool &nonnegative, bool &lower) {
    line.option("-c,--C", "C", "the same in LIBLINEAR's scale: l2 = 1/(C W)", [&](const std::string &text) {
        check_range({"C", "", 0, infinity, Bound::open}, *(train.C = parse_number("C", text)));
    });
    line.option("--l1", "L1",
                "strength of l1 |x|_1; 0.1max is a tenth of lambda_max, at which all weights are 0 (default 0)",
                [&](const std::string &text) { train.l1 = parse_l1(text); });
    line.option("--lower", "A", "lower bound of every weight, at most 0 (default -inf)", [&](const std::string &text) {
        train.bounds.lower = parse_bound("lower", text);
        lower = true;
    });
    line.option("--upper", "B", "upper bound of every weight, at least 0 (default inf)",
                [&](const std::string &text) { train.bounds.upper = parse_bound("upper", text); });
    line.flag("--nonnegative", "the same as --lower 0", nonnegative);
    add_intercept_option(line, train.problem.intercept);
}

void add_report_options(CommandLine &line, TrainArguments &train) {
    line.flag("--json", "print the result as one JSON object", train.json);
    line.flag("-q,--quiet", "no progress on standard error", train.quiet);
    line.flag("--best-effort", "exit 0 even when the tolerance was not reached", train.best_effort);
}

void add_output_options(CommandLine &line, TrainArguments &train) {
    line.group("Output");
    line.option("--dual", "FILE", "write the dual variables, which spdc verify needs", train.dual);
    line.option("--trace", "FILE", "write the course of the run; the name ends in .csv or .jsonl",
                [&train](const std::string &text) { check_trace_name(train.trace = text); });
    add_report_options(line, train);
}

void add_run_options(CommandLine &line, TrainArguments &train) {
    add_threads_option(line, train.threads);
    line.option(
        "--presolve", "WHEN",
        "merge equal rows and proportional columns: auto (with --solver auto, where it pays), on or off (default "
        "auto)",
        [&train](const std::string &text) { parse(text, train.presolve); });
    line.option("--seed", "N", "seed of all random choices (default 1)", [&train](const std::string &text) {
        const std::int64_t most = std::numeric_limits<std::int64_t>::max();
        train.seed = static_cast<std::uint64_t>(parse_integer("seed", text, 0, most));
    });
}

constexpr const char *data_help = "LIBSVM, CSV, TSV or .spdc, plain or .gz .bz2 .xz .zst; - is standard input";

constexpr const char *compare_description =
    "Runs several solvers on the same problem and prints when each had certified a relative gap of 1e-2, 1e-4, 1e-6 "
    "and "
    "1e-8, down to the tolerance: passes over the data and seconds, certification not counted.";

constexpr const char *compare_examples =
    R"(  spdc compare data.svm --solvers spdc,sdca,lbfgs --loss smoothed_hinge --l2 1e-4,1e-6
  spdc compare data.svm --solvers spdc,spdc:sampling=weighted:step-scale=1 --plot gaps.svg --trace curves

Exit codes: as for train; 3 when some solver that takes the problem did not reach the tolerance.)";

/// The options of train and compare that say which problem is solved and when to stop.
class ProblemAndLimits {
  public:
    explicit ProblemAndLimits(const Stopping &defaults = {}) { stopping_.collect_struct<Stopping>("", defaults); }

    /// --l2 is the command's own.
    void add_to(CommandLine &line, TrainArguments &train, const char *l2_type, const char *l2_help,
                CommandLine::Setter set_l2) {
        line.group("Loss");
        loss_.add_to(line, "logistic");
        line.group("Penalty");
        line.option("--l2", l2_type, l2_help, std::move(set_l2));
        add_penalty_options(line, train, nonnegative_, lower_);
        add_read_options(line, train.read);
        add_cache_option(line, train.read);
        add_features_option(line, train.read);
        add_row_and_feature_files(line, train.weights, train.penalty_factors);
        line.repeatable("--class-weight", "SPEC",
                        "balanced, or label=weight,...: multiplies the weight of a label's rows", class_weights_);
        line.group("Stopping");
        stopping_.add_to(line);
    }

    /// After parsing.
    void take(TrainArguments &train) {
        train.loss = loss_.take();
        train.read.threads = train.threads;
        train.read.check_entries = false; // the solving begins with it
        stopping_.assign(train.stopping);
        parse_class_weights(class_weights_, train.problem);
        if (nonnegative_) train.bounds.lower = 0;
        check_penalties(train, nonnegative_, lower_);
    }

  private:
    LossOptions loss_;
    FieldOptions stopping_{""};
    std::vector<std::string> class_weights_;
    bool nonnegative_ = false, lower_ = false;
};

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

// NAME:option=value:option=value
NamedSolver parse_named_solver(const std::string &text) {
    const std::vector<std::string> parts = split(text, ':');
    if (parts.front().empty()) fail(ErrorKind::invalid_argument, "--solvers: a name is missing");
    NamedSolver named{text, make_solver(parts.front())};
    std::vector<std::string> given;
    for (std::size_t k = 1; k < parts.size(); ++k) {
        const std::size_t equals = parts[k].find('=');
        if (equals == parts[k].npos) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("--solvers '{}': expected option=value after ':', not '{}'", text, parts[k]));
        }
        given.push_back(parts[k].substr(0, equals));
        if (std::count(given.begin(), given.end(), given.back()) > 1) {
            fail(ErrorKind::invalid_argument, fmt::format("--solvers '{}': {} is given twice", text, given.back()));
        }
        std::visit(
            [&](auto &options) {
                parse_named("the solver " + parts.front(), given.back(), parts[k].substr(equals + 1), options);
            },
            named.solver);
    }
    return named;
}

std::vector<NamedSolver> parse_solvers(const std::string &text) {
    std::vector<NamedSolver> solvers;
    for (const std::string &part : split(text, ',')) {
        const auto is_same = [&](const NamedSolver &other) { return other.text == part; };
        if (std::any_of(solvers.begin(), solvers.end(), is_same)) {
            fail(ErrorKind::invalid_argument, fmt::format("--solvers: {} is named twice", part));
        }
        solvers.push_back(parse_named_solver(part));
    }
    return solvers;
}

} // namespace

TrainArguments parse_train(const Arguments &arguments) {
    TrainArguments train;
    ProblemAndLimits problem;
    SolverOptions solver;
    CommandLine line("spdc train", train_description, train_examples);
    line.positional("DATA", train.data, data_help);
    line.positional("MODEL", train.model, "where to write the model; without it nothing is saved", false);
    problem.add_to(line, train, "L2", "strength of (l2/2) |x|^2 (default 1/W, or 0 when --l1 is given)",
                   [&](const std::string &text) { train.l2 = parse_l2(text); });
    line.group("Solver");
    solver.add_to(line);
    add_run_options(line, train);
    add_output_options(line, train);
    line.parse(arguments);
    train.solver = solver.take();
    problem.take(train);
    return train;
}

CompareArguments parse_compare(const Arguments &arguments) {
    CompareArguments compare;
    compare.stopping.tolerance = 1e-6;
    ProblemAndLimits problem(compare.stopping);
    CommandLine line("spdc compare", compare_description, compare_examples);
    line.positional("DATA", compare.data, data_help);
    line.group("Solvers");
    line.option("--solvers", "LIST",
                fmt::format("names with commas between them, each with options where they are not the default: "
                            "NAME:option=value:...; known: {} (default auto,spdc)",
                            fmt::join(solver_names(), ", ")),
                [&](const std::string &text) { compare.solvers = parse_solvers(text); });
    add_run_options(line, compare);
    problem.add_to(line, compare, "L2[,L2...]",
                   "strengths of (l2/2) |x|^2, one comparison each (default 1/W, or 0 when --l1 is given)",
                   [&](const std::string &text) {
                       for (const std::string &part : split(text, ',')) {
                           const double l2 = parse_l2(part);
                           if (std::find(compare.l2s.begin(), compare.l2s.end(), l2) != compare.l2s.end()) {
                               fail(ErrorKind::invalid_argument, fmt::format("--l2: {} is named twice", part));
                           }
                           compare.l2s.push_back(l2);
                       }
                       compare.l2 = compare.l2s.front();
                   });
    line.group("Output");
    line.option("--plot", "FILE", "draw the gaps against passes and seconds; the name ends in .svg",
                [&](const std::string &text) {
                    if (!text.ends_with(".svg")) {
                        fail(ErrorKind::invalid_argument,
                             fmt::format("--plot '{}': expected a name that ends in .svg", text));
                    }
                    compare.plot = text;
                });
    line.option("--trace", "DIR", "write the course of each run into this folder, one .csv file for each pair",
                [&](const std::string &text) {
                    if (text.empty()) fail(ErrorKind::invalid_argument, "--trace '': expected the name of a folder");
                    compare.trace = text;
                });
    add_report_options(line, compare);
    line.parse(arguments);
    if (compare.solvers.empty()) compare.solvers = parse_solvers("auto,spdc");
    problem.take(compare);
    return compare;
}

PredictArguments parse_predict(const Arguments &arguments) {
    PredictArguments predict;
    CommandLine line("spdc predict", "Predicts every row of DATA, one line each.",
                     "  spdc predict model test.svm\n"
                     "  spdc predict --output probability model test.csv predictions.txt");
    line.positional("MODEL", predict.model, "a model that spdc train wrote");
    line.positional("DATA", predict.data, "data with a label column, whose values are not used; - is standard input");
    line.positional("OUT", predict.out, "where to write (default: standard output)", false);
    line.group("Output");
    line.option("--output", "KIND",
                "label (in regression the predicted value), score (a'x + intercept, one per output) or probability "
                "(loss logistic; of the larger of two labels, else one per label) (default label)",
                [&](const std::string &text) { predict.kind = parse_prediction(text); });
    add_read_options(line, predict.read);
    add_cache_option(line, predict.read);
    add_threads_option(line, predict.read.threads);
    line.parse(arguments);
    return predict;
}

EvaluateArguments parse_evaluate(const Arguments &arguments) {
    EvaluateArguments evaluate;
    CommandLine line(
        "spdc evaluate",
        "Compares predictions with the labels or targets of DATA: accuracy, AUC and log loss, or RMSE, MAE, R2 "
        "and deviance.",
        "  spdc evaluate model test.svm\n  spdc evaluate --json model test.svm");
    line.positional("MODEL", evaluate.model, "a model that spdc train wrote");
    line.positional("DATA", evaluate.data, "data with labels or targets; - is standard input");
    line.group("Output");
    line.flag("--json", "print one JSON object", evaluate.json);
    add_read_options(line, evaluate.read);
    add_cache_option(line, evaluate.read);
    add_threads_option(line, evaluate.read.threads);
    line.parse(arguments);
    return evaluate;
}

InfoArguments parse_info(const Arguments &arguments) {
    InfoArguments info;
    LossOptions loss;
    CommandLine line("spdc info", "Describes a data set or a model.",
                     "  spdc info data.svm\n  spdc info --loss squared data.csv\n  spdc info --json model");
    line.positional("FILE", info.path, "a data set or a model; - is data on standard input");
    line.group("Output");
    line.flag("--json", "print one JSON object", info.json);
    line.group("Data: lambda_max is computed for");
    loss.add_to(line, "logistic, or squared when the targets are no labels");
    add_intercept_option(line, info.intercept);
    add_read_options(line, info.read);
    add_cache_option(line, info.read);
    add_threads_option(line, info.read.threads);
    add_features_option(line, info.read);
    line.parse(arguments);
    const bool given = loss.given();
    const AnyLoss chosen = loss.take();
    if (given) info.loss = chosen;
    return info;
}

ConvertArguments parse_convert(const Arguments &arguments) {
    ConvertArguments convert;
    CommandLine line("spdc convert", "Reads a data set and writes it in another format.",
                     "  spdc convert data.csv data.svm\n  spdc convert data.svm data.spdc\n  spdc convert --to csv "
                     "data.svm.xz - | head");
    line.positional("IN", convert.in, "LIBSVM, CSV, TSV or .spdc, plain or compressed; - is standard input");
    line.positional("OUT", convert.out,
                    "the format is that of the name, .csv, .tsv or .spdc, else LIBSVM; - is standard output");
    line.group("Output");
    line.option("--to", "NAME", "format to write: libsvm, csv, tsv or spdc (default: by the name)",
                [&](const std::string &text) { convert.to = parse_format(text); });
    add_read_options(line, convert.read);
    add_threads_option(line, convert.read.threads);
    add_features_option(line, convert.read);
    line.parse(arguments);
    return convert;
}

VerifyArguments parse_verify(const Arguments &arguments) {
    VerifyArguments verify;
    CommandLine line(
        "spdc verify",
        "Recomputes primal, dual and gap from the data, the model and the dual variables alone, and compares "
        "them with what the model states. Exit code 0: certified; 3: not.",
        "  spdc train --dual y.txt data.svm model && spdc verify model data.svm y.txt");
    line.positional("MODEL", verify.model, "a model that spdc train wrote");
    line.positional("DATA", verify.data, "the data it was trained on");
    line.positional("DUAL", verify.dual, "the file that train --dual wrote");
    line.group("Check");
    line.option("--tolerance", "T", "largest relative gap to accept (default: the one the model was trained to)",
                [&](const std::string &text) {
                    const Field field{"tolerance", "", 0, infinity, Bound::open};
                    check_range(field, *(verify.tolerance = parse_number("tolerance", text)));
                });
    line.flag("--json", "print one JSON object", verify.json);
    add_read_options(line, verify.read);
    add_cache_option(line, verify.read);
    add_threads_option(line, verify.read.threads);
    add_row_and_feature_files(line, verify.weights, verify.penalty_factors);
    line.parse(arguments);
    return verify;
}

} // namespace spdc::cli
