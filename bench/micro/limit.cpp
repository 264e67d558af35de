// How near the kernels are to what the memory allows: ./run bench limit [DATA_DIR]
// Yardstick: Ax, then A'y, in the storage the reader gives, in the same run. Best of several, CPU time where one thread runs, so
// that a busy machine does not spoil it. Without DATA_DIR: the bundled data and generated text.
#include "kernels.h"
#include "random.h"
#include "solvers/methods.h"
#include "spdc/io.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace {

using namespace spdc;
namespace fs = std::filesystem;

constexpr int repetitions = 9;
constexpr double lambda = 1e-6;

struct Seconds {
    double wall = infinity;
    double cpu = infinity;
};

Seconds measure(const std::function<void()> &work) {
    const auto wall = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    work();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count(),
            static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

void keep_best(Seconds &best, const Seconds &now) {
    best = {std::min(best.wall, now.wall), std::min(best.cpu, now.cpu)};
}

/// Ax, then A'y.
class Yardstick {
  public:
    explicit Yardstick(const AnyMatrix &matrix)
        : matrix_(matrix), x_(static_cast<std::size_t>(cols(matrix)), 0.5), y_(static_cast<std::size_t>(rows(matrix))),
          z_(x_.size()) {}

    void run() {
        std::visit(
            [&](const auto &a) {
                for (std::int64_t i = 0; i < a.rows(); ++i) y_[static_cast<std::size_t>(i)] = dot(a.row(i), x_.data());
                std::fill(z_.begin(), z_.end(), 0.0);
                for (std::int64_t i = 0; i < a.rows(); ++i) axpy(y_[static_cast<std::size_t>(i)], a.row(i), z_.data());
            },
            matrix_);
    }

  private:
    const AnyMatrix &matrix_;
    std::vector<double> x_, y_, z_;
};

struct Goal {
    std::string name;
    double spdc_fast = 0; // passes of the yardstick; 0: no goal
    double newton = 0;
    double megabytes = 0; // a second, one thread
};

struct Source {
    Goal goal;
    std::string path; // plain text
};

void row(const Goal &goal, const std::string &what, const std::string &measured, const std::string &wanted) {
    fmt::print("| {} | {} | {} | {} |\n", goal.name, what, measured, wanted);
}

std::string wanted(double goal) { return goal > 0 ? fmt::format("at most {}", goal) : "-"; }

/// A pass of spdc_fast, every row visited, in yardsticks.
void fast_pass(const Goal &goal, const Dataset &data, const AnyLoss &loss) {
    const Problem problem(data, loss, L2{lambda});
    SpdcFast options;
    options.shrinking = false;
    const std::unique_ptr<Method> method = make_method(problem, options, SolveContext{});
    Yardstick yardstick(problem.matrix());
    method->advance(2); // every page has been touched, and logistic steps start warm
    Seconds pass, product;
    for (int k = 0; k < repetitions; ++k) {
        keep_best(product, measure([&] { yardstick.run(); }));
        keep_best(pass, measure([&] { method->advance(1); }));
    }
    row(goal, fmt::format("pass of spdc_fast, {}", loss.name()),
        fmt::format("{:.2f} ({:.2f} of {:.2f} ms)", pass.cpu / product.cpu, 1e3 * pass.cpu, 1e3 * product.cpu),
        wanted(goal.spdc_fast));
}

/// A Newton iteration on all rows, in yardsticks.
void newton_iteration(const Goal &goal, const Dataset &data, const AnyLoss &loss) {
    const Problem problem(data, loss, L2{lambda});
    const std::unique_ptr<Method> method = make_method(problem, Newton{}, SolveContext{});
    method->aim(1e-12);
    Yardstick yardstick(problem.matrix());
    Seconds iteration, product;
    for (int k = 0; k < 30 && !method->exhausted(); ++k) {
        keep_best(product, measure([&] { yardstick.run(); }));
        const double before = method->passes();
        const Seconds now = measure([&] { method->advance(1); });
        const double passes = method->passes() - before;
        if (passes > 0.99 && passes < 1.01) keep_best(iteration, now); // not a sample, not a line search
    }
    row(goal, fmt::format("Newton iteration, {}", loss.name()),
        fmt::format("{:.2f} ({:.2f} of {:.2f} ms)", iteration.cpu / product.cpu, 1e3 * iteration.cpu,
                    1e3 * product.cpu),
        wanted(goal.newton));
}

double reading_speed(const std::string &path, int threads) {
    ReadOptions options;
    options.threads = threads;
    Seconds best;
    for (int k = 0; k < 5; ++k) keep_best(best, measure([&] { read_dataset(path, options); }));
    const double bytes = static_cast<double>(fs::file_size(path));
    return 1e-6 * bytes / (threads == 1 ? best.cpu : best.wall);
}

void reading(const Goal &goal, const std::string &path) {
    const double one = reading_speed(path, 1), two = reading_speed(path, 2);
    const bool judged = goal.megabytes > 0;
    row(goal, "reading, one thread", fmt::format("{:.0f} MB/s", one),
        judged ? fmt::format("at least {:.0f}", goal.megabytes) : "-");
    row(goal, "reading, two threads", fmt::format("{:.0f} MB/s, {:.2f} times one", two, two / one),
        judged ? fmt::format("at least {:.0f}", 1.8 * goal.megabytes) : "-");
}

void measure_all(const Source &source) {
    const Dataset data = read_dataset(source.path);
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{}), AnyLoss(Hinge{})}) {
        fast_pass(source.goal, data, loss);
    }
    if (data.features() <= 2000) {
        for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{})}) {
            newton_iteration(source.goal, data, loss);
        }
    }
    reading(source.goal, source.path);
}

/// The first of the names that is there, plain or compressed.
std::optional<fs::path> find(const fs::path &folder, const std::vector<std::string> &names) {
    for (const std::string &name : names) {
        for (const fs::path &path : {folder / name, folder / (name + ".xz")}) {
            if (fs::exists(path)) return path;
        }
    }
    return {};
}

/// Plain text of it, because decompression has its own speed.
std::string plain(const fs::path &path, const fs::path &work) {
    if (path.extension() != ".xz") return path.string();
    fs::create_directories(work);
    const fs::path copy = work / path.stem();
    if (!fs::exists(copy)) write_dataset(read_dataset(path.string()), copy.string(), Format::libsvm);
    return copy.string();
}

/// Documents of 80 words; word k is as frequent as 1/k (Zipf).
Dataset generated_text() {
    constexpr std::int64_t documents = 20000, words = 80, vocabulary = 200000;
    Random random(7);
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values, targets;
    for (std::int64_t i = 0; i < documents; ++i) {
        std::vector<std::int32_t> row;
        for (std::int64_t p = 0; p < words; ++p) {
            row.push_back(static_cast<std::int32_t>(std::exp(random.uniform() * std::log(vocabulary))) - 1);
        }
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        columns.insert(columns.end(), row.begin(), row.end());
        values.insert(values.end(), row.size(), 1 / std::sqrt(static_cast<double>(row.size())));
        offsets.push_back(static_cast<std::int64_t>(columns.size()));
        targets.push_back(random.uniform() < 0.5 ? -1 : 1);
    }
    Dataset data;
    data.matrix = CsrMatrix<double>::own(vocabulary, offsets, columns, values);
    data.targets = targets;
    return data;
}

std::vector<Source> sources(const std::optional<fs::path> &folder, const fs::path &work) {
    if (!folder) {
        const fs::path text = work / "limit_text";
        fs::create_directories(work);
        write_dataset(generated_text(), text.string(), Format::libsvm);
        std::vector<Source> own(2);
        own[0] = {Goal{"a9a"}, plain("data/a9a.xz", work)};
        own[1] = {Goal{"generated text"}, text.string()};
        return own;
    }
    const std::vector<std::pair<Goal, std::vector<std::string>>> known{
        {{"rcv1", 1.3, 0, 350}, {"rcv1v2_subsets.binary", "rcv1_train.binary"}},
        {{"covtype", 2.5, 3, 0}, {"covtype.libsvm.binary.scale"}},
        {{"news20", 1.3, 0, 350}, {"news20_bigram.binary", "news20", "news20.binary"}},
    };
    std::vector<Source> found;
    for (const auto &[goal, names] : known) {
        if (const auto path = find(*folder, names)) found.push_back({goal, plain(*path, work)});
    }
    if (found.empty()) {
        fail(ErrorKind::bad_file, fmt::format("{} has none of rcv1, covtype, news20", folder->string()));
    }
    return found;
}

} // namespace

int main(int count, char **arguments) {
    if (count > 2) {
        fmt::print(stderr, "usage: ./run bench limit [DATA_DIR]\n");
        return 1;
    }
    try {
        std::optional<fs::path> folder;
        if (count > 1) folder = arguments[1];
        const std::vector<Source> all = sources(folder, "build/bench/data");
        fmt::print("| data | what | measured, in Ax + A'y | goal |\n|---|---|---:|---:|\n");
        for (const Source &source : all) measure_all(source);
    } catch (const Error &error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
