// Speed of reading: ./run bench reading DATA_DIR
// MB of LIBSVM text per second by one and two threads, plain and xz (MB of the text in it), and milliseconds to open and to check the
// same data as .spdc. Best of five; files are in the page cache. DATA_DIR holds the .xz files.
#include "input_file.h"
#include "output_file.h"
#include "spdc/io.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace {

using namespace spdc;
namespace fs = std::filesystem;

template <class Step> double best_seconds(Step step) {
    double best = 1e300;
    for (int round = 0; round < 5; ++round) {
        const auto start = std::chrono::steady_clock::now();
        step();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

void measure(const fs::path &packed, const fs::path &folder) {
    const std::string plain = folder / "data", binary = folder / "data.spdc";
    {
        const InputFile file(packed);
        OutputFile out(plain);
        out.write(file.text());
        out.commit();
    }
    const double megabytes = static_cast<double>(fs::file_size(plain)) / 1e6;
    fmt::print("| {} | {:.1f} |", packed.stem().string(), megabytes);
    for (const std::string &path : {plain, packed.string()}) {
        for (const int threads : {1, 2}) {
            fmt::print(" {:.0f} |", megabytes / best_seconds([&] { read_dataset(path, {.threads = threads}); }));
        }
    }
    write_dataset(read_dataset(plain), binary);
    const double opening = best_seconds([&] { read_dataset(binary, {.check_entries = false}); });
    const double checking = best_seconds([&] { read_dataset(binary); });
    fmt::print(" {:.1f} | {:.2f} | {:.1f} |\n", static_cast<double>(fs::file_size(binary)) / 1e6, 1e3 * opening,
               1e3 * checking);
}

} // namespace

int main(int count, char **values) {
    if (count != 2 || !fs::is_directory(values[1])) {
        fmt::print(stderr, "usage: ./run bench reading DATA_DIR   (with rcv1v2_subsets.binary.xz, ...)\n");
        return 1;
    }
    std::string folder = (fs::temp_directory_path() / "spdc-bench-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return 1;
    fmt::print(
        "| data | MB of text | 1 thread, MB/s | 2 threads | xz, 1 thread | xz, 2 threads | MB as .spdc | open, ms | "
        "open and check, ms |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (const char *name :
         {"rcv1v2_subsets.binary", "news20_bigram.binary", "covtype.libsvm.binary.scale", "a9a", "dorothea"}) {
        const fs::path packed = fs::path(values[1]) / (std::string(name) + ".xz");
        if (fs::exists(packed)) measure(packed, folder);
    }
    fs::remove_all(folder);
    return 0;
}
