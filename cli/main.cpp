// spdc: one function per command; errors become exit codes.
#include "arguments.h"
#include "command_line.h"
#include "compare.h"
#include "info.h"
#include "metrics.h"
#include "progress.h"
#include "report.h"
#include "verify.h"

#include "spdc/spdc.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <new>

#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace spdc::cli {

namespace {

enum ExitCode { done = 0, usage = 1, bad_input = 2, not_certified = 3, internal = 4 };

class Stopwatch {
  public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    /// Of all threads of the process.
    double cpu_seconds() const { return static_cast<double>(std::clock() - cpu_start_) / CLOCKS_PER_SEC; }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::clock_t cpu_start_ = std::clock();
};

std::atomic<bool> interrupted = false; // a signal handler may touch no other kind of variable that changes
static_assert(std::atomic<bool>::is_always_lock_free);

// The first Ctrl-C asks the run to stop; the second finds the default action restored and ends the program.
void stop_on_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN); // a reader of the progress that leaves must not end the run
}

// New memory costs the system about a microsecond for each 4 KB, a tenth of a run of milliseconds and more. For small data arrays come from
// a heap of large pages, where the system has them for the asking, and what is given back is used again; with more data that could be
// more memory than is promised.
void prepare_heap(const Dataset &data) {
    if (data.nonzeros() > 1'000'000) return;
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
    constexpr int heap = 32 << 20;
    constexpr std::uintptr_t page = 4096;
    mallopt(M_MMAP_THRESHOLD, 2 * heap); // so that these are of the heap
    mallopt(M_TRIM_THRESHOLD, 2 * heap);
    if (void *const memory = std::malloc(heap)) {
        const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
        madvise(reinterpret_cast<void *>(begin), heap - page, MADV_HUGEPAGE);
        std::free(memory);
    }
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
#endif
}

std::string said_of_lost_pages; // made before it may be needed: a handler has no memory to make it

void say_of_lost_pages(int, siginfo_t *info, void *) {
    if (info->si_code != BUS_ADRERR) { // a fault of our own
        std::signal(SIGBUS, SIG_DFL);
        return;
    }
    static std::atomic_flag is_said;
    while (is_said.test_and_set()) ::pause(); // several threads may meet it
    [[maybe_unused]] const auto count = ::write(STDERR_FILENO, said_of_lost_pages.data(), said_of_lost_pages.size());
    ::_exit(bad_input);
}

// A mapped file that somebody cuts short, or whose disk fails, answers with a signal where a file that is read returns an error.
void expect_lost_pages(const std::string &path) {
    said_of_lost_pages =
        fmt::format("spdc: {}: became shorter, or its disk failed, while it was in use; write a changed "
                    "file under another name and rename it\n",
                    path);
    struct sigaction action {};
    action.sa_sigaction = say_of_lost_pages;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
}

void print(const std::string &text, std::FILE *stream = stdout) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
    if (written && std::fflush(stream) == 0) return;
    fail(ErrorKind::bad_file, fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

// Runs a step that concerns a file: whatever is wrong there is bad input, not bad usage.
template <class Step> auto with_file(Step step) {
    try {
        return step();
    } catch (const Error &error) {
        if (error.kind() == ErrorKind::internal) throw;
        fail(ErrorKind::bad_file, error.what());
    }
}

// Runs a step that may find the data unfit: the library knows the fault, but not the file's name.
template <class Step> auto with_path(const std::string &path, Step step) {
    try {
        return step();
    } catch (const Error &error) {
        if (error.kind() != ErrorKind::bad_file) throw;
        fail(ErrorKind::bad_file, fmt::format("{}: {}", path, error.what()));
    }
}

// Reading: a compression this build lacks is the file's matter; an option that no file could make right stays usage.
Dataset read(const std::string &path, const DataOptions &options) {
    if (options.cache && path == "-") fail(ErrorKind::invalid_argument, "--cache needs a file, not standard input");
    expect_lost_pages(options.cache ? path + " or its cache" : path);
    try {
        if (!options.cache) return read_dataset(path, options);
        std::string warning;
        Dataset data = read_dataset_cached(path, options, warning);
        if (!warning.empty()) std::fputs(fmt::format("spdc: warning: {}\n", warning).c_str(), stderr);
        return data;
    } catch (const Error &error) {
        if (error.kind() != ErrorKind::unsupported) throw;
        fail(ErrorKind::bad_file, error.what());
    }
}

Model read_model(const std::string &path) {
    return with_file([&] { return load_model(path); });
}

// Weights into the data, factors returned; both checked against the sizes they belong to.
std::vector<double> read_weights_and_factors(const std::string &weights, const std::string &factors,
                                             std::int64_t features, Dataset &data) {
    if (!weights.empty()) {
        with_file([&] {
            data.weights = read_numbers(weights);
            check_sides(data, weights);
            data.weights = from_user_order(data, std::move(data.weights));
        });
    }
    if (factors.empty()) return {};
    std::vector<double> numbers = with_file([&] { return read_numbers(factors); });
    if (static_cast<std::int64_t>(numbers.size()) != features) {
        fail(ErrorKind::bad_file, fmt::format("{}: {} penalty factors, expected one for each of the {} features",
                                              factors, numbers.size(), features));
    }
    const auto negative = std::find_if(numbers.begin(), numbers.end(), [](double factor) { return factor < 0; });
    if (negative != numbers.end()) {
        fail(ErrorKind::bad_file, fmt::format("{}: penalty factor {} of feature {}, expected 0 or more", factors,
                                              *negative, negative - numbers.begin() + 1));
    }
    return numbers;
}

bool same_file(const std::string &a, const std::string &b) {
    std::error_code code;
    return a == b || (std::filesystem::is_regular_file(a, code) && std::filesystem::equivalent(a, b, code));
}

// Before any work: every output can be written, and none takes the place of another file of this call.
void check_files(const std::vector<std::string> &inputs, const std::vector<std::string> &outputs) {
    if (std::count(inputs.begin(), inputs.end(), "-") > 1) {
        fail(ErrorKind::invalid_argument, "standard input can be read once only: two inputs are -");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].empty()) continue;
        for (const std::string &input : inputs) {
            if (!input.empty() && input != "-" && same_file(outputs[i], input)) {
                fail(ErrorKind::invalid_argument, fmt::format("{} is both read and written", outputs[i]));
            }
        }
        for (std::size_t k = 0; k < i; ++k) {
            if (!outputs[k].empty() && !outputs[i].starts_with("/dev/") && same_file(outputs[i], outputs[k])) {
                fail(ErrorKind::invalid_argument, fmt::format("{} is named for two outputs", outputs[i]));
            }
        }
        check_writable(outputs[i]);
    }
}

// The problem, and the penalties that depend on the data: l2 = 1/W or 1/(C W), l1 as a fraction of lambda_max.
Problem make_problem(const TrainArguments &train, const Dataset &data, const ProblemOptions &options) {
    return with_path(train.data, [&] {
        const Problem base(data, train.loss, L2{1}, options); // without any penalty it would list all features
        const double weight = base.total_weight();
        const double l1 = train.l1 ? train.l1->value * (train.l1->is_fraction ? lambda_max(base) : 1) : 0;
        const double l2 = train.l2 ? *train.l2 : (train.C ? 1 / (*train.C * weight) : (train.l1 ? 0 : 1 / weight));
        return base.with(make_regularizer(l1, l2, train.bounds));
    });
}

Result run_solver(const TrainArguments &train, const AnySolver &solver, const Problem &problem, bool full_trace,
                  const std::string &task = {}) {
    std::unique_ptr<Progress> progress;
    if (!train.quiet) progress = std::make_unique<Progress>(train.stopping.tolerance, problem.outputs(), task);
    SolveContext context;
    context.seed = train.seed;
    context.threads = train.threads;
    context.presolve = train.presolve;
    context.full_trace = full_trace;
    context.interrupt = &interrupted;
    context.observer = [&](const TracePoint &point) {
        if (progress) progress->show(point);
        return true;
    };
    return solve(problem, solver, train.stopping, context);
}

void write_outputs(const TrainArguments &train, const Dataset &data, const Model &model, const Result &result) {
    if (!train.model.empty()) save_model(model, train.model, train.threads);
    if (!train.dual.empty()) save_dual(result, data, train.dual, train.threads);
    if (!train.trace.empty()) write_trace(result.trace, train.trace);
}

int train(const Arguments &arguments) {
    const TrainArguments train = parse_train(arguments);
    const bool uses_stdout = train.model == "-" || train.dual == "-";
    if (uses_stdout && train.json) {
        fail(ErrorKind::invalid_argument, "--json and an output - would both write to standard output");
    }
    check_files({train.data, train.weights, train.penalty_factors}, {train.model, train.dual, train.trace});

    const Stopwatch loading;
    Dataset data = read(train.data, train.read);
    ProblemOptions options = train.problem;
    options.threads = train.threads;
    options.penalty_factors = read_weights_and_factors(train.weights, train.penalty_factors, data.features(), data);
    const double seconds_loading = loading.seconds();

    const Stopwatch working;
    prepare_heap(data);
    with_file([&] { check(data.matrix); }); // of a memory-mapped file: reads it
    const Problem problem = make_problem(train, data, options);
    stop_on_signals();
    const Result result = run_solver(train, train.solver, problem, false);
    const auto model_of = train.model.empty() ? describe_model : make_model;
    const Model model = model_of(data, options, problem, result, train.stopping.tolerance);
    write_outputs(train, data, model, result);
    const TrainReport report{train, data, model, result, working.seconds(), working.cpu_seconds(), seconds_loading};
    print(train.json ? train_json(report) : train_text(report), uses_stdout ? stderr : stdout);
    return result.converged() || train.best_effort ? done : not_certified;
}

// One pair of a comparison; a solver that does not take the problem says why.
ComparedRun run_compared(const CompareArguments &compare, const NamedSolver &solver, const Problem &problem,
                         const std::string &place) {
    const PenaltyParts penalty = std::visit([](const auto &g) { return g.parts(); }, problem.regularizer().variant());
    ComparedRun run;
    run.solver = solver;
    run.l1 = penalty.l1;
    run.l2 = penalty.l2;
    try {
        const std::string task = fmt::format("{} {}, l2 {:g}: ", place, solver.text, run.l2);
        const Result result = run_solver(compare, solver.solver, problem, true, task);
        take_result(result, run);
        if (!compare.trace.empty()) {
            run.trace = (std::filesystem::path(compare.trace) / trace_name(run)).string();
            write_trace(result.trace, run.trace);
        }
    } catch (const Error &error) {
        if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::invalid_argument) throw;
        run.refusal = error.what();
    }
    return run;
}

// Every solver on every penalty, until Ctrl-C.
std::vector<ComparedRun> run_comparison(const CompareArguments &compare, const Dataset &data,
                                        const ProblemOptions &options) {
    std::vector<ComparedRun> runs;
    std::vector<std::optional<double>> penalties(compare.l2s.begin(), compare.l2s.end());
    if (penalties.empty()) penalties.emplace_back();
    const std::size_t count = penalties.size() * compare.solvers.size();
    for (const std::optional<double> &l2 : penalties) {
        TrainArguments one = compare;
        one.l2 = l2;
        const Problem problem = make_problem(one, data, options);
        for (const NamedSolver &solver : compare.solvers) {
            if (interrupted) return runs;
            const std::string place = fmt::format("[{}/{}]", runs.size() + 1, count);
            runs.push_back(run_compared(compare, solver, problem, place));
        }
    }
    return runs;
}

void make_folder(const std::string &path) {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    if (!code && std::filesystem::is_directory(path, code))
        return check_writable((std::filesystem::path(path) / "new.csv").string());
    fail(ErrorKind::bad_file, fmt::format("{}: cannot make this folder", path));
}

int compare(const Arguments &arguments) {
    const CompareArguments compare = parse_compare(arguments);
    check_files({compare.data, compare.weights, compare.penalty_factors}, {compare.plot});
    if (!compare.trace.empty()) make_folder(compare.trace);
    Dataset data = read(compare.data, compare.read);
    ProblemOptions options = compare.problem;
    options.threads = compare.threads;
    options.penalty_factors = read_weights_and_factors(compare.weights, compare.penalty_factors, data.features(), data);
    with_file([&] { check(data.matrix); });
    stop_on_signals();
    const std::vector<ComparedRun> runs = run_comparison(compare, data, options);
    if (!compare.plot.empty()) write_text(compare_svg(compare, runs), compare.plot);
    print(compare.json ? compare_json(compare, data, runs) : compare_text(compare, data, runs));
    if (interrupted)
        std::fputs("spdc: interrupted; this is what was finished, and the last run as far as it got\n", stderr);
    const auto is_refused = [](const ComparedRun &run) { return !run.refusal.empty(); };
    if (!interrupted && std::all_of(runs.begin(), runs.end(), is_refused)) return usage;
    const bool missed =
        interrupted || std::any_of(runs.begin(), runs.end(), [](const auto &run) { return run.missed(); });
    return missed && !compare.best_effort ? not_certified : done;
}

// Data for a model: read with the model's index base, and checked to have its features.
Dataset read_for(const Model &model, const std::string &path, DataOptions options) {
    if (!options.index_base) options.index_base = model.index_base;
    Dataset data = read(path, options);
    check_features(model, data.matrix, path);
    return data;
}

int predict(const Arguments &arguments) {
    const PredictArguments predict = parse_predict(arguments);
    check_files({predict.model, predict.data}, {predict.out});
    const Model model = read_model(predict.model);
    check_prediction(model, predict.kind);
    const Dataset data = read_for(model, predict.data, predict.read);
    write_predictions(model, data, predict.kind, predict.out);
    return done;
}

int evaluate(const Arguments &arguments) {
    const EvaluateArguments evaluate = parse_evaluate(arguments);
    check_files({evaluate.model, evaluate.data}, {});
    const Model model = read_model(evaluate.model);
    const Dataset data = read_for(model, evaluate.data, evaluate.read);
    Json json;
    json["rows"] = data.rows();
    std::string text = fmt::format("{:<15} {}\n", "rows", data.rows());
    for (const Metric &metric : with_path(evaluate.data, [&] { return cli::evaluate(model, data); })) {
        json[metric.name] = metric.value ? Json(*metric.value) : Json();
        text += metric.value ? fmt::format("{:<15} {:<12.8g}", metric.name, *metric.value)
                             : fmt::format("{:<15} {:<12}", metric.name, "undefined");
        text += metric.note.empty() ? "" : fmt::format(" ({})", metric.note);
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    }
    print(evaluate.json ? to_text(json) : text);
    return done;
}

Json describe(const InfoArguments &info) {
    if (is_model_file(info.path)) return model_info(read_model(info.path));
    const Dataset data = read(info.path, info.read);
    return with_path(info.path, [&] { return data_info(info, data); });
}

int info(const Arguments &arguments) {
    const InfoArguments info = parse_info(arguments);
    const Json json = describe(info);
    print(info.json ? to_text(json) : info_text(json));
    return done;
}

int convert(const Arguments &arguments) {
    const ConvertArguments convert = parse_convert(arguments);
    check_files({convert.in}, {convert.out});
    const Dataset data = read(convert.in, convert.read);
    with_file([&] { write_dataset(data, convert.out, convert.to); });
    return done;
}

// Whether a file of the training is given exactly when the model was trained with one.
void check_given(const char *option, const std::string &path, bool used) {
    if (used && path.empty()) {
        fail(ErrorKind::invalid_argument,
             fmt::format("the model was trained with {0}: give the same file as {0}", option));
    }
    if (!used && !path.empty()) {
        fail(ErrorKind::invalid_argument, fmt::format("the model was trained without {}", option));
    }
}

std::string verification_text(const Verification &found, double tolerance) {
    std::string text;
    for (std::size_t k = 0; k < found.outputs.size(); ++k) {
        const VerifiedOutput &output = found.outputs[k];
        if (found.outputs.size() > 1) text += fmt::format("output {}\n", k + 1);
        text += fmt::format("primal        {:.17g}\ndual          {:.17g}\n", static_cast<double>(output.primal),
                            static_cast<double>(output.dual));
        text += fmt::format("gap           {:.6g}\nrelative gap  {:.6g}\n", static_cast<double>(output.gap),
                            static_cast<double>(output.relative_gap));
    }
    if (found.objections.empty()) {
        text += fmt::format("certified: the numbers agree with the model's, and the gap is within {:.6g}\n", tolerance);
    }
    for (const std::string &objection : found.objections) text += fmt::format("NOT CERTIFIED: {}\n", objection);
    return text;
}

Json verification_json(const Verification &found, double tolerance) {
    Json list = Json::array();
    for (const VerifiedOutput &output : found.outputs) {
        list.push_back({{"primal", static_cast<double>(output.primal)},
                        {"dual", static_cast<double>(output.dual)},
                        {"gap", static_cast<double>(output.gap)},
                        {"relative_gap", static_cast<double>(output.relative_gap)}});
    }
    return {{"certified", found.objections.empty()},
            {"relative_gap", found.worst_relative_gap},
            {"tolerance", tolerance},
            {"certificate_radius", found.radius},
            {"certificates", list},
            {"objections", found.objections}};
}

int verify(const Arguments &arguments) {
    const VerifyArguments verify = parse_verify(arguments);
    check_files({verify.model, verify.data, verify.dual, verify.weights, verify.penalty_factors}, {});
    const Model model = read_model(verify.model);
    check_given("--weights", verify.weights, model.row_weights);
    check_given("--penalty-factors", verify.penalty_factors, model.penalty_factors);
    Dataset data = read_for(model, verify.data, verify.read);
    if (data.features() > model.features) {
        fail(ErrorKind::bad_file, fmt::format("{}: {} features, but the model was trained on {}", verify.data,
                                              data.features(), model.features));
    }
    if (!model.is_classifier() && !data.label_names.empty()) {
        fail(ErrorKind::bad_file, fmt::format("{}: the targets are text, but the model predicts numbers", verify.data));
    }
    const std::vector<double> factors =
        read_weights_and_factors(verify.weights, verify.penalty_factors, model.features, data);
    std::vector<double> dual = with_file([&] { return read_numbers(verify.dual, model.outputs); });
    if (static_cast<std::int64_t>(dual.size()) != data.rows() * model.outputs) {
        fail(ErrorKind::bad_file,
             fmt::format("{}: {} lines, expected one for each of the {} rows of {}", verify.dual,
                         static_cast<std::int64_t>(dual.size()) / model.outputs, data.rows(), verify.data));
    }
    dual = from_user_order(data, std::move(dual), model.outputs);
    const double tolerance = verify.tolerance.value_or(model.tolerance);
    const Verification found =
        with_path(verify.data, [&] { return cli::verify(model, data, factors, dual, tolerance); });
    print(verify.json ? to_text(verification_json(found, tolerance)) : verification_text(found, tolerance));
    return found.objections.empty() ? done : not_certified;
}

int help(const Arguments &arguments);

struct Command {
    const char *name;
    const char *summary;
    int (*run)(const Arguments &);
};

constexpr Command commands[] = {
    {"train", "fit a model and prove how far from optimal it is", train},
    {"compare", "run several solvers on the same problem", compare},
    {"predict", "predict every row of a data set", predict},
    {"evaluate", "compare predictions with labels or targets", evaluate},
    {"info", "describe a data set or a model", info},
    {"convert", "write a data set in another format", convert},
    {"verify", "check a model's certificate independently", verify},
    {"help", "print this page, or that of a command", help},
};

std::string overview() {
    std::string text = "spdc " SPDC_VERSION ": linear models with a certificate of how far from optimal they are\n\n"
                       "Usage: spdc COMMAND [OPTIONS] ...\n\nCommands:\n";
    for (const Command &command : commands) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
    return text + "\nOptions:\n  -h, --help     print this page\n  --version      print the version\n\n"
                  "Example:\n  spdc train data.svm model && spdc evaluate model test.svm\n\n"
                  "spdc help COMMAND lists the options of a command.\n";
}

const Command &find_command(const std::string &name) {
    for (const Command &command : commands) {
        if (name == command.name) return command;
    }
    std::vector<std::string> names;
    for (const Command &command : commands) names.emplace_back(command.name);
    fail_unknown("command", name, names);
}

int help(const Arguments &arguments) {
    if (arguments.empty() || arguments.front() == "help" || arguments.front().starts_with('-')) {
        print(overview());
        return done;
    }
    return find_command(arguments.front()).run({"--help"});
}

int run(const Arguments &arguments) {
    if (arguments.empty()) {
        print(overview(), stderr);
        return usage;
    }
    const std::string &first = arguments.front();
    if (first == "--version") {
        print("spdc " SPDC_VERSION "\n");
        return done;
    }
    if (first == "-h" || first == "--help") return help({});
    return find_command(first).run({arguments.begin() + 1, arguments.end()});
}

int exit_code(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::invalid_argument:
    case ErrorKind::unsupported: return usage;
    case ErrorKind::bad_file: return bad_input;
    case ErrorKind::communication:
    case ErrorKind::internal: break;
    }
    return internal;
}

int say(const std::string &message, int code) {
    std::fputs(fmt::format("spdc: {}\n", message).c_str(), stderr);
    return code;
}

int run_and_report(const Arguments &arguments) {
    try {
        return run(arguments);
    } catch (const HelpPage &page) {
        print(page.text);
        return done;
    } catch (const Error &error) {
        return say(error.what(), exit_code(error.kind()));
    } catch (const std::bad_alloc &) {
        return say("out of memory", internal);
    } catch (const std::exception &error) {
        return say(fmt::format("internal error: {}", error.what()), internal);
    }
}

} // namespace

} // namespace spdc::cli

int main(int count, char **values) {
    try {
        return spdc::cli::run_and_report({values + std::min(count, 1), values + count});
    } catch (const std::exception &error) { // help that could not be printed
        return spdc::cli::say(error.what(), spdc::cli::bad_input);
    }
}
