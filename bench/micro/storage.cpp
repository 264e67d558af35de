// What smaller storage would bring: ./run bench storage FILE...
// Bytes of the rows as stored (32-bit columns, values float where exact), with values left out where a row has one value, with 16-bit
// steps from column to column (a step that does not fit takes 65535 and four bytes), and with both; then the time of one product
// Ax over all rows, as stored and with both decoded on the fly. Best of five, processor time of one thread.
#include "kernels.h"
#include "spdc/io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

namespace {

using namespace spdc;

constexpr std::uint16_t escape = 65535;

struct Compact {
    std::vector<std::size_t> begins;  // of the rows, in steps
    std::vector<std::uint16_t> steps; // 65535: the next two are a column
    std::vector<std::int64_t> offsets;
    std::vector<double> row_values; // nan: the row has its own
    std::vector<double> values;
};

template <class Matrix> Compact compacted(const Matrix &matrix, std::size_t &value_bytes) {
    Compact out;
    out.offsets.push_back(0);
    bool all_one = true;
    std::size_t single = 0;
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        const auto row = matrix.row(i);
        out.begins.push_back(out.steps.size());
        std::int32_t previous = 0;
        bool equal = true;
        for (std::int64_t p = 0; p < row.size(); ++p) {
            const std::int32_t step = row.column(p) - previous;
            previous = row.column(p);
            equal = equal && row.value(p) == row.value(0);
            if (step < escape) {
                out.steps.push_back(static_cast<std::uint16_t>(step));
            } else {
                out.steps.insert(out.steps.end(), {escape, static_cast<std::uint16_t>(previous & 0xffff),
                                                   static_cast<std::uint16_t>(previous >> 16)});
            }
        }
        all_one = all_one && equal && (row.size() == 0 || row.value(0) == 1);
        single += equal ? 1 : 0;
        out.row_values.push_back(equal && row.size() > 0 ? row.value(0) : NAN);
        for (std::int64_t p = 0; p < row.size() && !equal; ++p) out.values.push_back(row.value(p));
        out.offsets.push_back(static_cast<std::int64_t>(out.values.size()));
    }
    value_bytes = all_one ? 0 : (single + out.values.size()) * sizeof(typename Matrix::value_type);
    return out;
}

double product(const Compact &data, std::size_t i, std::size_t entries, const double *x) {
    const std::uint16_t *step = data.steps.data() + data.begins[i];
    const double *value = data.values.data() + data.offsets[i];
    const double common = data.row_values[i];
    const bool has_values = common != common;
    std::uint32_t column = 0;
    double sum = 0;
    for (std::size_t p = 0; p < entries; ++p) {
        if (*step != escape) {
            column += *step++;
        } else {
            column = step[1] | static_cast<std::uint32_t>(step[2]) << 16;
            step += 3;
        }
        sum += has_values ? value[p] * x[column] : x[column];
    }
    return has_values ? sum : common * sum;
}

template <class Step> double best_milliseconds(Step step) {
    double best = 1e300;
    for (int round = 0; round < 5; ++round) {
        const std::clock_t start = std::clock();
        step();
        best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
}

template <class Matrix> void measure(const std::string &name, const Matrix &matrix) {
    const auto entries = static_cast<std::size_t>(matrix.nonzeros());
    const std::size_t wide = sizeof(typename Matrix::value_type);
    std::size_t value_bytes = 0;
    const Compact compact = compacted(matrix, value_bytes);
    const std::vector<double> x(static_cast<std::size_t>(matrix.cols()), 1.5);
    double sum = 0, other = 0;
    const double plain = best_milliseconds([&] {
        sum = 0;
        for (std::int64_t i = 0; i < matrix.rows(); ++i) sum += dot(matrix.row(i), x.data());
    });
    const double packed = best_milliseconds([&] {
        other = 0;
        for (std::int64_t i = 0; i < matrix.rows(); ++i) {
            other +=
                product(compact, static_cast<std::size_t>(i), static_cast<std::size_t>(matrix.row(i).size()), x.data());
        }
    });
    const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / 1e6; };
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |{}\n", name,
               megabytes(entries * (4 + wide)), megabytes(entries * 4 + value_bytes),
               megabytes(compact.steps.size() * 2 + entries * wide), megabytes(compact.steps.size() * 2 + value_bytes),
               plain, packed, std::fabs(sum - other) > 1e-9 * std::fabs(sum) ? " DIFFERENT" : "");
}

} // namespace

int main(int count, char **values) {
    fmt::print("| data | MB as stored | values left out | 16-bit steps | both | Ax, ms | Ax from both, ms |\n"
               "|---|---:|---:|---:|---:|---:|---:|\n");
    for (int k = 1; k < count; ++k) {
        const std::string path = values[k];
        const Dataset data = read_dataset(path);
        std::visit([&](const auto &matrix) { measure(path.substr(path.rfind('/') + 1), matrix); }, data.matrix);
    }
    return 0;
}
