// Reading and writing data sets: LIBSVM text, CSV and TSV, plain or compressed.
#pragma once

#include "spdc/dataset.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spdc {

enum class Format { automatic, libsvm, csv, tsv, spdc };

/// Name as on the command line: auto, libsvm, csv, tsv, spdc.
Format parse_format(const std::string &name);

struct ReadOptions {
    /// automatic: by file name (.csv, .tsv, before .gz/.bz2/.xz/.zst), else by the first line of the text.
    Format format = Format::automatic;

    /// Force the number of the first feature of LIBSVM text (0 or 1); otherwise 0 when some index is 0, else 1.
    std::optional<int> index_base = {};

    /// At least this many columns; an index beyond them is an error. 0: as many as the data have.
    std::int64_t features = 0;

    /// CSV/TSV: the label's column by name (needs a header) or by number from 1; negative numbers count from the end.
    /// Empty: the first column.
    std::string label_column = {};

    /// Threads that read LIBSVM text; the data and the errors are the same for any number.
    int threads = 1;

    /// .spdc: read and check every entry now, which takes as long as reading the file does. False: leave it to check() or to the
    /// first Problem; until then only sizes, targets, weights and names may be used.
    bool check_entries = true;
};

/// Reads a file, or standard input when path is "-". Compression is seen in the bytes, not in the name.
/// Throws Error(bad_file) as "path:line:column: what was found, what was expected"; columns count bytes from 1.
///
/// A .spdc file, seen in its first bytes whatever the name, is memory-mapped: its pages are read when they are used, and the
/// data may be larger than memory. An index base that is not the file's is an error, for its columns are what they are.
///
/// LIBSVM text gives a CsrMatrix without its explicit zeros, CSV and TSV a DenseMatrix; values are float when every one
/// of them is exact in float, else double. A CSV label may be text, all rows or none; features must be finite numbers.
/// Its first line is a header when a feature's field is text, or when only the label's is and the next label is a number.
Dataset read_dataset(const std::string &path, const ReadOptions &options = {});

/// The same by way of a cache, `path` + ".spdc": used when it was made of the file as it is now (size, time of modification, inode,
/// first and last 64 KiB) with the same options, else made anew. A file of that name that is no cache is an Error(bad_file) and stays
/// as it is. When no cache can be written, `warning` says why, else it is empty. Without effect for what is no regular file and
/// for .spdc files.
Dataset read_dataset_cached(const std::string &path, const ReadOptions &options, std::string &warning);

/// Writes LIBSVM text, CSV, TSV or .spdc; automatic: by file name, libsvm unless it says otherwise. Values in the shortest digits
/// that read back the same. The file appears whole or not at all. Compressed files are not written.
///
/// LIBSVM text counts features from data.index_base and leaves zeros out; where the data would not show a reader that base
/// or the number of features, the first row has an explicit zero there. It has no names: feature names are dropped, and
/// text labels are an Error(unsupported) unless all of them are numbers. CSV and TSV have the label first, and a header
/// when the features have names. Row weights are not in these formats; write them to a file of their own. Rows are in the
/// user's order.
///
/// .spdc holds everything, and the rows in a random order that is the same every time.
void write_dataset(const Dataset &data, const std::string &path, Format format = Format::automatic);

/// One number per line (row weights, penalty factors, dual variables); blank lines and # comments skipped, compression
/// as above. With `columns` > 1, that many numbers a line, returned row after row.
std::vector<double> read_numbers(const std::string &path, std::int64_t columns = 1);

} // namespace spdc
