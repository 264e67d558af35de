// Writing LIBSVM text.
#include "io_text.h"
#include "spdc/error.h"

#include <fmt/format.h>

namespace spdc {

namespace {

// Which of the two outer columns hold a value anywhere.
struct OuterColumns {
    bool first = false;
    bool last = false;
};

template <class Matrix> OuterColumns outer_columns(const Matrix &matrix) {
    OuterColumns used;
    for (std::int64_t i = 0; i < matrix.rows() && !(used.first && used.last); ++i) {
        const auto row = matrix.row(i);
        for (std::int64_t p = 0; p < row.size(); ++p) {
            used.first |= row.column(p) == 0 && row.value(p) != 0;
            used.last |= row.column(p) == matrix.cols() - 1 && row.value(p) != 0;
        }
    }
    return used;
}

void append_entry(std::string &line, std::int64_t index, double value) {
    line += ' ';
    append_number(line, index);
    line += ':';
    append_number(line, value);
}

// A reader guesses base and width from the indices it meets. Where the data would mislead it, the first row says more
// by writing its zero at the first (base 0) or the last feature.
template <class Row> void append_first_row(std::string &line, const Row &row, const Dataset &data, OuterColumns used) {
    const std::int64_t last = data.features() - 1;
    const bool mark_first = data.index_base == 0 && !used.first && last >= 0;
    const bool mark_last = !used.last && last >= 0 && !(mark_first && last == 0);
    if (mark_first) {
        append_entry(line, 0, 0.0);
    }
    for (std::int64_t p = 0; p < row.size(); ++p) {
        if (row.value(p) != 0) {
            append_entry(line, row.column(p) + data.index_base, row.value(p));
        }
    }
    if (mark_last) {
        append_entry(line, last + data.index_base, 0.0);
    }
}

template <class Matrix>
void write_rows(const Matrix &matrix, const Dataset &data, const std::vector<double> &labels, OutputFile &out) {
    std::string line;
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        const auto row = matrix.row(i);
        line.clear();
        append_number(line, labels[static_cast<std::size_t>(i)]);
        if (i == 0) {
            append_first_row(line, row, data, outer_columns(matrix));
        } else {
            for (std::int64_t p = 0; p < row.size(); ++p) {
                if (row.value(p) != 0) {
                    append_entry(line, row.column(p) + data.index_base, row.value(p));
                }
            }
        }
        line += '\n';
        out.write(line);
    }
}

// The format has numbers for labels only. Names that are numbers are written as such; numbering other names would be a
// choice the reader of the file could not undo.
std::vector<double> numeric_labels(const Dataset &data) {
    std::vector<double> numbers;
    for (const std::string &name : data.label_names) {
        const char *p = name.c_str();
        double value = 0;
        if (parse_number(p, value) != NumberStatus::ok || p != name.c_str() + name.size()) {
            fail(ErrorKind::unsupported, fmt::format("label {} is text, but LIBSVM labels are numbers; write CSV or "
                                                     "TSV, or give the labels numbers first",
                                                     quoted(name)));
        }
        numbers.push_back(value);
    }
    if (numbers.empty()) {
        return data.targets;
    }
    std::vector<double> labels;
    labels.reserve(data.targets.size());
    for (const double target : data.targets) {
        labels.push_back(numbers[static_cast<std::size_t>(target)]);
    }
    return labels;
}

} // namespace

void write_libsvm(const Dataset &data, OutputFile &out) {
    const std::vector<double> labels = numeric_labels(data);
    std::visit([&](const auto &matrix) { write_rows(matrix, data, labels, out); }, data.matrix);
}

} // namespace spdc
