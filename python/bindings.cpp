// The Python module spdc._core: conversions and forwards. What a user sees is in python/spdc.
//
// Arrays enter as views that keep their Python owner alive, results leave as arrays that own their memory. The interpreter lock is
// free while the library works.
#include "../cli/verify.h"
#include "spdc/spdc.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace spdc {

namespace {

// ---- arrays in

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> std::span<const T> span_of(const Vector<T> &array) { return {array.data(), array.shape(0)}; }

std::vector<double> numbers(const std::optional<Vector<double>> &array) {
    if (!array) return {};
    return {array->data(), array->data() + array->shape(0)};
}

/// Keeps Python objects alive for the library, whose threads may let go of them without the interpreter lock.
std::shared_ptr<const void> owner_of(nb::object object) {
    return {new nb::object(std::move(object)), [](const void *held) {
                if (!nb::is_alive()) return; // the interpreter is gone, and the object with it
                const nb::gil_scoped_acquire lock;
                delete static_cast<const nb::object *>(held);
            }};
}

template <class Value> Dataset dense(const Table<Value> &values) {
    const auto rows = static_cast<std::int64_t>(values.shape(0)), cols = static_cast<std::int64_t>(values.shape(1));
    const std::shared_ptr<const void> owner = owner_of(nb::cast(values));
    const nb::gil_scoped_release unlocked;
    Dataset data;
    data.matrix = DenseMatrix<Value>(rows, cols, values.data(), cols, owner);
    return data;
}

template <class Value, class Index>
Dataset csr(std::int64_t cols, const Vector<std::int64_t> &offsets, const Vector<Index> &columns,
            const Vector<Value> &values) {
    const std::shared_ptr<const void> owner = owner_of(nb::make_tuple(offsets, columns, values));
    const nb::gil_scoped_release unlocked;
    Dataset data;
    data.matrix =
        CsrMatrix<Value, Index>::with_unseen_values(cols, span_of(offsets), span_of(columns), span_of(values), owner);
    return data;
}

Dataset matrix_of(const Dataset &data) {
    Dataset alone;
    alone.matrix = data.matrix;
    return alone;
}

// ---- arrays out

template <class T> nb::object array_of(std::vector<T> numbers, std::int64_t columns = 0) {
    auto *const kept = new std::vector<T>(std::move(numbers));
    const nb::capsule owner(kept, [](void *held) noexcept { delete static_cast<std::vector<T> *>(held); });
    const auto step = static_cast<std::size_t>(std::max<std::int64_t>(columns, 1));
    const std::size_t shape[] = {kept->size() / step, step};
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), columns > 0 ? 2 : 1, shape, owner));
}

template <class T> nb::object view_of(std::span<const T> numbers, nb::handle owner) {
    return nb::cast(nb::ndarray<nb::numpy, const T>(numbers.data(), {numbers.size()}, owner));
}

/// The matrix as NumPy sees it: one array, or offsets, columns and values.
nb::object arrays(nb::handle_t<Dataset> self) {
    const auto &data = nb::cast<const Dataset &>(self);
    check(data.matrix);
    return std::visit(
        [&](const auto &matrix) -> nb::object {
            using Matrix = std::remove_cvref_t<decltype(matrix)>;
            using Value = typename Matrix::value_type;
            const auto rows = static_cast<std::size_t>(matrix.rows());
            if constexpr (requires { matrix.offsets(); }) {
                return nb::make_tuple(view_of(matrix.offsets(), self), view_of(matrix.columns(), self),
                                      view_of(matrix.values(), self));
            } else {
                const auto cols = static_cast<std::size_t>(matrix.cols());
                const Value *const values = rows > 0 ? matrix.row(0).values : nullptr;
                return nb::cast(nb::ndarray<nb::numpy, const Value>(values, {rows, cols}, self));
            }
        },
        data.matrix);
}

/// The trace by columns.
nb::dict columns_of(const Trace &trace) {
    nb::dict columns;
    TracePoint{}.columns([&](const char *name, const auto &) { columns[name] = nb::list(); });
    for (const TracePoint &point : trace) {
        point.columns([&](const char *name, const auto &value) { nb::cast<nb::list>(columns[name]).append(value); });
    }
    return columns;
}

nb::dict dict_of(const Certificate &certificate) {
    nb::dict dict;
    dict["primal"] = certificate.primal;
    dict["dual"] = certificate.dual;
    dict["gap"] = certificate.gap;
    dict["relative_gap"] = certificate.relative_gap;
    dict["radius"] = certificate.radius;
    return dict;
}

nb::dict dict_of(Result result, std::vector<double> dual) {
    nb::list certificates;
    for (const Certificate &certificate : result.certificates) certificates.append(dict_of(certificate));
    nb::dict dict;
    dict["solver"] = result.solver;
    dict["solver_reason"] = result.solver_reason;
    dict["stop_reason"] = to_string(result.stop_reason);
    dict["converged"] = result.converged();
    dict["message"] = result.message;
    dict["weights"] = array_of(std::move(result.weights), result.outputs);
    dict["intercepts"] = array_of(std::move(result.intercepts));
    dict["dual"] = array_of(std::move(dual), result.outputs);
    dict["certificates"] = certificates;
    dict["passes"] = result.passes;
    dict["seconds"] = result.seconds;
    dict["seconds_solver"] = result.seconds_solver;
    dict["threads"] = result.threads;
    dict["seed"] = result.seed;
    dict["trace"] = columns_of(result.trace);
    return dict;
}

// ---- options: every field of a struct is a keyword, with _ for -

std::string keyword(const Field &field) {
    std::string name = field.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

template <class Value> void set_field(const std::string &name, nb::handle given, Value &value) {
    try {
        if constexpr (requires(std::string text) { parse(text, value); }) {
            parse(nb::cast<std::string>(given), value);
        } else {
            value = nb::cast<Value>(given);
        }
    } catch (const nb::cast_error &) {
        fail(ErrorKind::invalid_argument,
             name + " = " + nb::cast<std::string>(nb::repr(given)) + ": this option takes another type");
    }
}

/// For set_fields(), which takes out what it knows: the caller's dictionary stays whole.
nb::dict copy_of(const nb::dict &dict) { return nb::cast<nb::dict>(dict.attr("copy")()); }

/// Takes the fields of `options` out of the dictionary; None leaves the default.
template <class Options> void set_fields(Options &options, nb::dict &given) {
    Options::fields(options, [&](const Field &field, auto &value) {
        const std::string name = keyword(field);
        if (!given.contains(name.c_str())) return;
        const nb::object object = given[name.c_str()];
        nb::del(given[name.c_str()]);
        if (!object.is_none()) set_field(name, object, value);
    });
}

template <class Options> void list_fields(std::vector<std::string> &names) {
    Options options;
    Options::fields(options, [&](const Field &field, auto &) { names.push_back(keyword(field)); });
}

template <class Variant, std::size_t... I> std::vector<std::string> all_fields(std::index_sequence<I...>) {
    std::vector<std::string> names;
    (list_fields<std::variant_alternative_t<I, Variant>>(names), ...);
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

template <class Variant> std::vector<std::string> all_fields() {
    return all_fields<Variant>(std::make_index_sequence<std::variant_size_v<Variant>>{});
}

/// Makes `what` (a loss or a solver) take the options that belong to it; those it does not have are an error.
template <class Variant> void set_variant(Variant &variant, std::string_view what, const nb::dict &dict) {
    nb::dict given = copy_of(dict);
    std::visit(
        [&](auto &options) {
            set_fields(options, given);
            for (const auto &[name, value] : given) {
                std::vector<std::string> known;
                list_fields<std::remove_cvref_t<decltype(options)>>(known);
                if (known.empty()) known.emplace_back("none");
                fail_unknown("option of " + std::string(what) + " " + std::string(options.name),
                             nb::cast<std::string>(name), known);
            }
        },
        variant);
}

AnyLoss loss_of(const std::string &name, const nb::dict &options) {
    AnyLoss loss = make_loss(name);
    set_variant(loss.variant(), "loss", options);
    return loss;
}

// ---- the problem and its solution

using MaybeVector = std::optional<Vector<double>>;

/// What a problem is made of, but for targets and weights that were given with it: the problem has its own.
struct Job {
    Dataset data;
    ProblemOptions options;
    Problem problem;
};

Dataset with(Dataset data, const Vector<double> &targets, const MaybeVector &weights) {
    data.targets = from_user_order(data, numbers(targets));
    if (weights && weights->size() > 0) data.weights = from_user_order(data, numbers(weights));
    return data;
}

Job make_job(Dataset data, const Vector<double> &targets, std::vector<std::string> label_names,
             const MaybeVector &weights, const AnyLoss &loss, ProblemOptions options) {
    const nb::gil_scoped_release unlocked;
    data.targets.clear(); // of a file
    data.label_names = std::move(label_names);
    // without any penalty it would list all features
    const Problem problem(with(data, targets, weights), loss, L2{1}, options);
    return {std::move(data), std::move(options), problem};
}

void set_penalty(Job &job, double l1, double l2, double lower, double upper) {
    job.problem = job.problem.with(make_regularizer(l1, l2, {lower, upper}));
}

double largest_l1(const Job &job) {
    double largest = 0;
    for (std::int64_t k = 0; k < job.problem.outputs(); ++k) {
        largest = std::max(largest, l1_max(job.problem.output(k)));
    }
    return largest;
}

/// By the clock of a call that began so many seconds before the library's.
TracePoint later(TracePoint point, double elapsed) {
    point.seconds += elapsed;
    point.seconds_solver += elapsed;
    return point;
}

/// Runs the library and serves Python meanwhile: Ctrl-C and the callback, on the calling thread. With one thread the library asks
/// for that itself; with several it works on threads of its own, and the calling one waits for what there is to do.
class Run {
  public:
    /// `elapsed`: seconds of the call before the library's clock starts.
    Run(nb::object callback, double elapsed) : callback_(std::move(callback)), elapsed_(elapsed) {}

    /// Needs the interpreter lock, and frees it while it runs.
    Result solve(const Problem &problem, const AnySolver &solver, const Stopping &stopping, SolveContext context) {
        const bool has_callback = !callback_.is_none();
        features_ = static_cast<std::size_t>(problem.features());
        const nb::gil_scoped_release unlocked;
        if (context.threads == 1) {
            // The library may ask again at once to learn why a run ended: the answer stays the same.
            context.stop = [this] { return interrupt_ || (is_time_to_look() && !serve({})); };
            if (has_callback) context.point_observer = [this](const auto &point, auto x) { return serve({&point, x}); };
            return spdc::solve(problem, solver, stopping, context);
        }
        context.interrupt = &interrupt_;
        if (has_callback) context.point_observer = [this](const auto &point, auto x) { return ask({&point, x}); };
        std::thread thread([&] { work(problem, solver, stopping, context); });
        attend();
        thread.join();
        if (error_) std::rethrow_exception(error_);
        return std::move(result_);
    }
    /// The exception of Ctrl-C or of the callback that ended the run, or None. Also that of a Ctrl-C nobody has looked for yet: it
    /// would come out of the next line of Python, without the result.
    nb::object exception() {
        serve({});
        return exception_;
    }

  private:
    static constexpr std::chrono::milliseconds between_looks_{25};

    /// A point, or nothing but the time for signals.
    struct Question {
        const TracePoint *point = nullptr;
        std::span<const double> x = {};

        nb::object object(std::size_t features, double elapsed) const {
            nb::object object = nb::cast(later(*point, elapsed));
            object.attr("coef") = array_of(std::vector(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(features)));
            object.attr("intercept") = x.size() > features ? x.back() : 0.0;
            return object;
        }
    };

    bool is_time_to_look() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_look_ < between_looks_) return false;
        last_look_ = now;
        return true;
    }

    /// Looks for signals, and asks the callback about the point if there is one. Only False ends the run, so that a callback may
    /// return nothing.
    bool serve(const Question &question) {
        const nb::gil_scoped_acquire lock;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (question.point && !interrupt_)
                return !callback_(question.object(features_, elapsed_)).is(nb::bool_(false));
        } catch (nb::python_error &error) {
            if (exception_.is_none()) exception_ = nb::borrow(error.value());
            interrupt_ = true;
        }
        return !interrupt_;
    }

    void work(const Problem &problem, const AnySolver &solver, const Stopping &stopping, const SolveContext &context) {
        try {
            result_ = spdc::solve(problem, solver, stopping, context);
        } catch (...) {
            error_ = std::current_exception();
        }
        const std::lock_guard guard(mutex_);
        is_done_ = true;
        changed_.notify_all();
    }

    /// On a working thread: has the calling one serve().
    bool ask(const Question &question) {
        std::unique_lock lock(mutex_);
        question_ = &question;
        changed_.notify_all();
        changed_.wait(lock, [&] { return question_ == nullptr; });
        return go_on_;
    }

    void attend() {
        std::unique_lock lock(mutex_);
        while (!is_done_) {
            changed_.wait_for(lock, between_looks_, [&] { return is_done_ || question_; });
            if (is_done_) return;
            const Question *const question = question_;
            lock.unlock();
            const bool go_on = serve(question ? *question : Question{});
            lock.lock();
            if (!question) continue;
            go_on_ = go_on;
            question_ = nullptr;
            changed_.notify_all();
        }
    }

    nb::object callback_, exception_ = nb::none();
    const double elapsed_;
    std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
    std::atomic<bool> interrupt_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    const Question *question_ = nullptr;
    std::size_t features_ = 0;
    bool go_on_ = true, is_done_ = false;
    Result result_;
    std::exception_ptr error_;
};

/// The numbers of a start where the caller has them.
struct GivenStart {
    MaybeVector weights, intercepts, dual;
    std::vector<double> shuffled_dual; // where the data's rows are in another order than the caller's

    Start view() const {
        const auto numbers = [](const MaybeVector &array) {
            return array ? span_of(*array) : std::span<const double>();
        };
        return {numbers(weights), numbers(intercepts), shuffled_dual.empty() ? numbers(dual) : shuffled_dual};
    }
};

nb::tuple solve_job(const Job &job, const std::string &solver_name, const nb::dict &solver_options,
                    const nb::dict &stopping_options, std::uint64_t seed, int threads, const std::string &presolve,
                    bool copy, const GivenStart *start, nb::object callback, double elapsed) {
    AnySolver solver = make_solver(solver_name);
    set_variant(solver, "solver", solver_options);
    Stopping stopping;
    nb::dict given = copy_of(stopping_options);
    set_fields(stopping, given);
    if (stopping.max_seconds > 0) stopping.max_seconds = std::max(stopping.max_seconds - elapsed, 1e-9);
    SolveContext context;
    context.seed = seed;
    context.threads = threads;
    context.copy = copy;
    parse(presolve, context.presolve);
    const Start begin = start ? start->view() : Start{};
    if (start) context.start = &begin;
    Run run(std::move(callback), elapsed);
    Result result = run.solve(job.problem, solver, stopping, context);
    result.seconds += elapsed;
    result.seconds_solver += elapsed;
    for (TracePoint &point : result.trace) point = later(std::move(point), elapsed);
    std::vector<double> dual = in_user_order(job.data, std::move(result.dual), result.outputs);
    return nb::make_tuple(dict_of(std::move(result), std::move(dual)), run.exception());
}

GivenStart make_start(const Job &job, MaybeVector weights, MaybeVector intercepts, MaybeVector dual) {
    GivenStart start{std::move(weights), std::move(intercepts), std::move(dual), {}};
    if (start.dual && !job.data.row_order.empty()) {
        start.shuffled_dual = from_user_order(job.data, numbers(start.dual), job.problem.outputs());
    }
    return start;
}

/// Recomputes the certificate with the command line's own formulas, which share none with the library. Targets and row weights are
/// those the job was made with.
nb::dict verify_job(const Job &job, const Vector<double> &targets, const MaybeVector &row_weights,
                    const Vector<double> &weights, const Vector<double> &intercepts, const Vector<double> &dual,
                    const std::vector<std::pair<double, double>> &stated, double tolerance) {
    Result result;
    result.features = job.problem.features();
    result.outputs = job.problem.outputs();
    result.weights = numbers(weights);
    result.intercepts = numbers(intercepts);
    const auto outputs = static_cast<std::size_t>(result.outputs);
    const auto features = static_cast<std::size_t>(result.features), rows = static_cast<std::size_t>(job.data.rows());
    if (result.weights.size() != features * outputs || dual.size() != rows * outputs || stated.size() != outputs ||
        result.intercepts.size() != (job.problem.has_intercept() ? outputs : 0)) {
        fail(ErrorKind::invalid_argument,
             "verify: the result belongs to other data: its features, labels or rows differ");
    }
    for (const auto &[primal, bound] : stated) result.certificates.push_back({primal, bound, primal - bound});
    std::vector<double> y = from_user_order(job.data, numbers(dual), result.outputs);
    const auto found = [&] {
        const nb::gil_scoped_release unlocked;
        check(job.data.matrix);
        const Dataset data = with(job.data, targets, row_weights);
        const Model model = make_model(data, job.options, job.problem, result, tolerance);
        return cli::verify(model, data, job.options.penalty_factors, y, tolerance);
    }();
    nb::list certificates;
    for (const cli::VerifiedOutput &output : found.outputs) {
        const Certificate certificate{static_cast<double>(output.primal), static_cast<double>(output.dual),
                                      static_cast<double>(output.gap), static_cast<double>(output.relative_gap),
                                      found.radius};
        certificates.append(dict_of(certificate));
    }
    nb::dict dict;
    dict["certificates"] = certificates;
    dict["objections"] = found.objections;
    return dict;
}

Dataset read(const std::string &path, const std::string &format, std::optional<int> index_base, std::int64_t features,
             const std::string &label_column, int threads, bool check_entries) {
    ReadOptions options;
    options.format = parse_format(format);
    options.index_base = index_base;
    options.features = features;
    options.label_column = label_column;
    options.threads = threads;
    options.check_entries = check_entries;
    return read_dataset(path, options);
}

PyObject *exception_type(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::invalid_argument: return PyExc_ValueError;
    case ErrorKind::bad_file: return PyExc_OSError;
    case ErrorKind::unsupported: return PyExc_NotImplementedError;
    default: return PyExc_RuntimeError;
    }
}

std::vector<std::string> fields_of(const TracePoint &point) {
    std::vector<std::string> names;
    point.columns([&](const char *name, const auto &) { names.emplace_back(name); });
    return names;
}

std::string repr(const TracePoint &point) {
    std::string text = "TracePoint(";
    point.columns([&](const char *name, const auto &value) {
        text +=
            std::string(text.back() == '(' ? "" : ", ") + name + "=" + nb::cast<std::string>(nb::repr(nb::cast(value)));
    });
    return text + ")";
}

} // namespace

NB_MODULE(_core, module) {
    module.attr("__version__") = SPDC_VERSION;
    nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
        try {
            std::rethrow_exception(pointer);
        } catch (const Error &error) {
            PyErr_SetString(exception_type(error.kind()), error.what());
        }
    });

    nb::class_<TracePoint>(
        module, "TracePoint", nb::dynamic_attr(),
        "The state of a run at one certification; a callback's also has coef and intercept, the best so far.")
        .def_ro("output", &TracePoint::output, "which output of a one-vs-rest problem")
        .def_ro("passes", &TracePoint::passes, "passes over the data so far; certification is not counted")
        .def_ro("seconds", &TracePoint::seconds, "wall time since the start")
        .def_ro("seconds_solver", &TracePoint::seconds_solver, "the same without certification")
        .def_ro("primal", &TracePoint::primal, "best objective so far")
        .def_ro("dual", &TracePoint::dual, "best lower bound so far")
        .def_ro("gap", &TracePoint::gap, "primal - dual")
        .def_ro("relative_gap", &TracePoint::relative_gap, "gap / max(|primal|, |dual|)")
        .def_ro("nonzeros", &TracePoint::nonzeros, "features with a weight")
        .def_ro("omega", &TracePoint::omega, "primal weight of spdc_fast, else NaN")
        .def_ro("solver", &TracePoint::solver, "which solver worked")
        .def("__repr__", &repr);

    nb::class_<Dataset>(module, "Dataset", nb::is_weak_referenceable(), "A matrix and what stands beside it.")
        .def_prop_ro("shape", [](const Dataset &data) { return std::pair(data.rows(), data.features()); })
        .def_prop_ro("nonzeros", &Dataset::nonzeros)
        .def_prop_ro("targets", [](const Dataset &data) { return array_of(in_user_order(data, data.targets)); })
        .def_prop_ro("weights",
                     [](const Dataset &data) {
                         return data.weights.empty() ? nb::none() : array_of(in_user_order(data, data.weights));
                     })
        .def_ro("label_names", &Dataset::label_names)
        .def_ro("feature_names", &Dataset::feature_names)
        .def_ro("index_base", &Dataset::index_base)
        .def("arrays", &arrays, "The matrix: a table, or offsets, columns and values.")
        .def("matrix", &matrix_of, "The matrix alone, without a copy.")
        .def(
            "check", [](const Dataset &data) { check(data.matrix); }, nb::call_guard<nb::gil_scoped_release>(),
            "Looks at the values, where solve() or verify() would do so otherwise.")
        .def(
            "in_user_order", [](const Dataset &data) { return in_user_order(data); },
            nb::call_guard<nb::gil_scoped_release>());

    module.def("dense", &dense<float>, "values"_a);
    module.def("dense", &dense<double>, "values"_a);
    module.def("csr", &csr<float, std::int32_t>, "cols"_a, "offsets"_a, "columns"_a, "values"_a);
    module.def("csr", &csr<double, std::int32_t>, "cols"_a, "offsets"_a, "columns"_a, "values"_a);
    module.def("csr", &csr<float, std::int64_t>, "cols"_a, "offsets"_a, "columns"_a, "values"_a);
    module.def("csr", &csr<double, std::int64_t>, "cols"_a, "offsets"_a, "columns"_a, "values"_a);
    module.def("available_cores", &available_cores, "Cores that this process may use.");
    module.def("read", &read, "path"_a, "format"_a, "index_base"_a.none(), "features"_a, "label_column"_a, "threads"_a,
               "check_entries"_a, nb::call_guard<nb::gil_scoped_release>());

    nb::class_<GivenStart>(module, "Start", "Where a run starts.");
    nb::class_<Job>(module, "Job", "A problem, and what it was made of.")
        .def_prop_ro("rows", [](const Job &job) { return job.problem.data_rows(); })
        .def_prop_ro("outputs", [](const Job &job) { return job.problem.outputs(); })
        .def_prop_ro("total_weight", [](const Job &job) { return job.problem.total_weight(); })
        .def_prop_ro("label_names",
                     [](const Job &job) {
                         const auto names = job.problem.label_names();
                         return std::vector<std::string>(names.begin(), names.end());
                     })
        .def("l1_max", &largest_l1, nb::call_guard<nb::gil_scoped_release>())
        .def("set_penalty", &set_penalty, "l1"_a, "l2"_a, "lower"_a, "upper"_a)
        .def("start", &make_start, "weights"_a.none(), "intercepts"_a.none(), "dual"_a.none())
        .def("solve", &solve_job, "solver"_a, "solver_options"_a, "stopping"_a, "seed"_a, "threads"_a, "presolve"_a,
             "copy"_a, "start"_a.none(), "callback"_a.none(), "elapsed"_a)
        .def("verify", &verify_job, "targets"_a, "row_weights"_a.none(), "weights"_a, "intercepts"_a, "dual"_a,
             "stated"_a, "tolerance"_a);
    module.def(
        "job",
        [](const Dataset &data, const Vector<double> &targets, std::vector<std::string> label_names,
           const MaybeVector &weights, const std::string &loss, const nb::dict &loss_options,
           const std::string &intercept, const MaybeVector &penalty_factors,
           std::map<std::string, double> class_weights, bool balanced, bool copy) {
            ProblemOptions options{parse_intercept(intercept), numbers(penalty_factors), std::move(class_weights),
                                   balanced, copy};
            return make_job(data, targets, std::move(label_names), weights, loss_of(loss, loss_options),
                            std::move(options));
        },
        "data"_a, "targets"_a, "label_names"_a, "weights"_a.none(), "loss"_a, "loss_options"_a, "intercept"_a,
        "penalty_factors"_a.none(), "class_weights"_a, "balanced"_a, "copy"_a);

    module.attr("LOSSES") = nb::cast(loss_names());
    module.attr("SOLVERS") = nb::cast(solver_names());
    module.attr("LOSS_OPTIONS") = nb::cast(all_fields<AnyLoss::Variant>());
    module.attr("SOLVER_OPTIONS") = nb::cast(all_fields<AnySolver>());
    module.attr("TRACE_COLUMNS") = nb::cast(fields_of({}));
}

} // namespace spdc
