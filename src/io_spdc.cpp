// The binary format .spdc: the arrays of a Dataset as they are in memory, so that a file is mapped, not read.
//
//   header | names | source | targets | weights | row order | offsets | columns | values | four checksums
//
// Sections begin at multiples of 64 bytes; where they begin follows from the sizes in the header, so that there is no address in
// the file to be wrong. All up to the row order is checked when the file is opened. Offsets, columns and values can be larger than
// memory and are checked when they are first used, in one pass: by their checksums against damage, by the invariants of a matrix
// against whoever computed the checksums, too.
#include "io_spdc.h"

#include "io_text.h"
#include "parallel.h"
#include "random.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <numeric>
#include <ranges>
#include <utility>

namespace spdc {

namespace {

constexpr std::string_view magic("\x89spdc\r\n\x1a", 8); // no text begins like this, and none survives as this
constexpr std::uint32_t version = 2;
constexpr std::uint32_t byte_order = 0x01020304;
constexpr std::uint64_t row_order_seed = 1;

/// Sizes that fit each other and cannot overflow in a SpdcLayout.
bool has_sane_sizes(const SpdcHeader &header) {
    constexpr std::uint64_t most = std::uint64_t{1} << 48, most_columns = std::uint64_t{1} << 31;
    for (const std::uint64_t size : {header.rows, header.entries, header.label_names, header.feature_names,
                                     header.names_bytes, header.source_bytes}) {
        if (size > most) return false;
    }
    if (header.cols > most_columns || header.storage > 3 || header.index_base > 1) return false;
    const bool fits = header.rows == 0 || header.cols <= most / header.rows;
    return !is_dense_storage(header.storage) || (fits && header.entries == header.rows * header.cols);
}

[[noreturn]] void fail_file(const std::string &name, const std::string &what) {
    fail(ErrorKind::bad_file,
         fmt::format("{}: {}; make the file again, with spdc convert, or delete it if --cache made it", name, what));
}

void check_header(const std::string &name, std::string_view bytes, SpdcHeader &header) {
    if (bytes.size() < sizeof header) fail_file(name, "the file ends inside its header");
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.byte_order != byte_order) fail_file(name, "made on a machine of another byte order");
    if (header.version != version) {
        fail_file(name,
                  fmt::format("version {} of the format, but this program reads version {}", header.version, version));
    }
    if (!has_sane_sizes(header)) fail_file(name, "damaged: the sizes in its header cannot be");
    const std::uint64_t expected = SpdcLayout(header).end;
    if (bytes.size() != expected) {
        fail_file(name, fmt::format("damaged: {} bytes, but its header speaks of {}", bytes.size(), expected));
    }
}

template <class T> std::span<const T> section(std::string_view bytes, std::uint64_t begin, std::uint64_t count) {
    return {reinterpret_cast<const T *>(bytes.data() + begin),
            static_cast<std::size_t>(count)}; // aligned: 64 divides begin
}

/// One of the four sums at the end.
std::uint64_t stored_sum(std::string_view bytes, const SpdcLayout &layout, std::size_t which) {
    return section<std::uint64_t>(bytes, layout.sums, 4)[which];
}

std::vector<std::string> take_names(const std::string &name, std::string_view &bytes, std::uint64_t count) {
    std::vector<std::string> names;
    for (std::uint64_t k = 0; k < count; ++k) {
        std::uint32_t length = 0;
        const bool has_length = bytes.size() >= sizeof length;
        if (has_length) std::memcpy(&length, bytes.data(), sizeof length);
        if (!has_length || bytes.size() - sizeof length < length) fail_file(name, "damaged: its names are cut short");
        names.emplace_back(bytes.substr(sizeof length, length));
        bytes.remove_prefix(sizeof length + length);
    }
    return names;
}

/// What check_entries() looks at.
template <class Matrix> struct Entries {
    using Value = typename Matrix::value_type;
    static constexpr bool sparse = std::is_same_v<Matrix, CsrMatrix<Value>>;
    std::span<const std::int64_t> offsets; // empty when dense, as are the columns
    std::span<const std::int32_t> columns;
    std::span<const Value> values;
    std::uint64_t rows, cols;

    std::uint64_t begin_of(std::uint64_t row) const {
        return sparse ? static_cast<std::uint64_t>(offsets[row]) : row * cols;
    }
    void check_rows(std::uint64_t first, std::uint64_t last) const {
        const auto number = static_cast<std::int64_t>(first), width = static_cast<std::int64_t>(cols);
        if constexpr (sparse) {
            Matrix::check_rows(offsets.subspan(first, last - first + 1), columns, values, number, width);
        } else {
            Matrix::check_rows(values.subspan(begin_of(first), begin_of(last) - begin_of(first)), number, width);
        }
    }
    /// The first row from `first` on that does not begin before this entry, or the end.
    std::uint64_t row_from(std::uint64_t first, std::uint64_t entry) const {
        const auto numbers = std::views::iota(first, rows);
        const auto found =
            std::ranges::partition_point(numbers, [&](std::uint64_t row) { return begin_of(row) < entry; });
        return first + static_cast<std::uint64_t>(found - numbers.begin());
    }
};

/// The sums of the blocks of some numbers, to be filled by whoever reads them.
template <class T> class BlockSums {
  public:
    explicit BlockSums(std::span<const T> numbers)
        : numbers_(numbers), sums_((numbers.size() + in_block - 1) / in_block) {}

    static constexpr std::size_t in_block = Checksum::block / sizeof(T);
    std::size_t blocks() const { return sums_.size(); }
    /// Those of [begin, end) that are there.
    void fill(std::size_t begin, std::size_t end) {
        for (std::size_t k = begin; k < std::min(end, sums_.size()); ++k) {
            const auto rest = numbers_.subspan(k * in_block);
            const auto own = rest.first(std::min(in_block, rest.size()));
            sums_[k] = Checksum::of_block(own.data(), own.size_bytes());
        }
    }
    void expect(const std::string &name, const char *what, std::uint64_t stored) const {
        Checksum sum;
        for (const std::uint64_t own : sums_) sum.add_block(own);
        if (sum.value() != stored) fail_file(name, fmt::format("damaged: the {} do not fit their checksum", what));
    }

  private:
    std::span<const T> numbers_;
    std::vector<std::uint64_t> sums_;
};

/// The row offsets fit their checksum, ascend and hold all entries; or it throws.
template <class Matrix>
void check_offsets(const std::string &name, const Entries<Matrix> &entries, std::uint64_t stored, Team &team) {
    const std::span<const std::int64_t> offsets = entries.offsets;
    BlockSums sums(offsets);
    std::atomic<bool> ascend = true;
    team.for_each(static_cast<std::int64_t>(sums.blocks()), static_cast<double>(offsets.size()), [&](std::int64_t k) {
        const auto block = static_cast<std::size_t>(k);
        sums.fill(block, block + 1);
        const auto rest = offsets.subspan(block * sums.in_block);
        const auto own = rest.first(std::min(sums.in_block + 1, rest.size())); // with the first of the next block
        if (!std::is_sorted(own.begin(), own.end())) ascend = false;
    });
    sums.expect(name, "row offsets", stored);
    const std::size_t count = entries.values.size();
    const bool are_valid = ascend && offsets.front() >= 0 && static_cast<std::uint64_t>(offsets.back()) <= count;
    if (!are_valid) Matrix::check_offsets(offsets, count); // says what is wrong
    if (offsets.front() != 0 || entries.begin_of(entries.rows) != count) {
        fail_file(name, "damaged: its rows do not hold all entries");
    }
}

/// The check that waits for the first use of the matrix. Rows are checked and added to the sums in turn, so that each is read from
/// memory, or from the disk, once. Of what is wrong it throws what the first bad row says.
template <class Matrix>
void check_entries(const std::string &name, std::string_view bytes, const SpdcHeader &header, int threads) {
    using Value = typename Matrix::value_type;
    const SpdcLayout layout(header);
    Team team(threads);
    Entries<Matrix> entries{{}, {}, section<Value>(bytes, layout.values, header.entries), header.rows, header.cols};
    if constexpr (Entries<Matrix>::sparse) {
        entries.offsets = section<std::int64_t>(bytes, layout.offsets, header.rows + 1);
        entries.columns = section<std::int32_t>(bytes, layout.columns, header.entries);
        check_offsets(name, entries, stored_sum(bytes, layout, 1), team);
    }
    constexpr std::size_t part = Checksum::block / sizeof(std::int32_t); // entries
    constexpr std::size_t value_blocks = part / BlockSums<Value>::in_block;
    BlockSums columns(entries.columns);
    BlockSums values(entries.values);
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(header.entries) / part + 1);
    team.for_each(std::ssize(errors), static_cast<double>(header.entries), [&](std::int64_t task) {
        const auto k = static_cast<std::size_t>(task);
        columns.fill(k, k + 1);
        values.fill(k * value_blocks, (k + 1) * value_blocks);
        try {
            const std::uint64_t first = entries.row_from(0, k * part);
            entries.check_rows(first, k + 1 < errors.size() ? entries.row_from(first, (k + 1) * part) : header.rows);
        } catch (...) {
            errors[k] = std::current_exception();
        }
    });
    for (const std::exception_ptr &error : errors) {
        if (error) std::rethrow_exception(error);
    }
    columns.expect(name, "columns", stored_sum(bytes, layout, 2));
    values.expect(name, "values", stored_sum(bytes, layout, 3));
}

template <class Matrix>
AnyMatrix view_matrix(const std::string &name, const SharedBytes &file, const SpdcHeader &header, int threads) {
    using Value = typename Matrix::value_type;
    const SpdcLayout layout(header);
    const std::string_view bytes = file.bytes;
    auto check = std::make_shared<DeferredCheck>([name, bytes, header, threads] { // the matrix keeps the bytes alive
        try {
            check_entries<Matrix>(name, bytes, header, threads);
        } catch (const Error &error) {
            if (error.kind() == ErrorKind::bad_file) throw;
            fail_file(name, error.what());
        }
    });
    const auto values = section<Value>(bytes, layout.values, header.entries);
    const auto rows = static_cast<std::int64_t>(header.rows), cols = static_cast<std::int64_t>(header.cols);
    if constexpr (std::is_same_v<Matrix, CsrMatrix<Value>>) {
        return Matrix::trusted(cols, section<std::int64_t>(bytes, layout.offsets, header.rows + 1),
                               section<std::int32_t>(bytes, layout.columns, header.entries), values, file.owner,
                               std::move(check));
    } else {
        return Matrix::trusted(rows, cols, values.data(), cols, file.owner, std::move(check));
    }
}

AnyMatrix view_any_matrix(const std::string &name, const SharedBytes &file, const SpdcHeader &header, int threads) {
    switch (header.storage) {
    case 0: return view_matrix<CsrMatrix<float>>(name, file, header, threads);
    case 1: return view_matrix<CsrMatrix<double>>(name, file, header, threads);
    case 2: return view_matrix<DenseMatrix<float>>(name, file, header, threads);
    default: return view_matrix<DenseMatrix<double>>(name, file, header, threads);
    }
}

/// All but the rows' entries, checked.
SpdcFile open_spdc(const SharedBytes &file, const std::string &name, int threads) {
    const std::string_view bytes = file.bytes;
    SpdcHeader header{};
    check_header(name, bytes, header);
    const SpdcLayout layout(header);
    Checksum sum;
    sum.add(bytes.data(), layout.offsets);
    if (sum.value() != stored_sum(bytes, layout, 0)) {
        fail_file(name, "damaged: its header, names or targets do not fit their checksum");
    }
    SpdcFile found;
    Dataset &data = found.data;
    found.source = bytes.substr(layout.source, header.source_bytes);
    std::string_view names = bytes.substr(layout.names, header.names_bytes);
    data.label_names = take_names(name, names, header.label_names);
    data.feature_names = take_names(name, names, header.feature_names);
    const auto numbers = [&]<class T>(std::vector<T> &out, std::uint64_t begin) {
        const auto all = section<T>(bytes, begin, header.rows);
        out.assign(all.begin(), all.end());
    };
    numbers(data.targets, layout.targets);
    if (header.has_weights != 0) numbers(data.weights, layout.weights);
    numbers(data.row_order, layout.order);
    file.release(layout.offsets);
    data.index_base = static_cast<int>(header.index_base);
    data.matrix = view_any_matrix(name, file, header, threads);
    try {
        Team team(threads);
        check_sides(data, name, team);
    } catch (const Error &error) {
        fail(ErrorKind::bad_file, error.what());
    }
    return found;
}

/// An output with the checksum of what has been written since the last one was taken.
class SectionWriter {
  public:
    explicit SectionWriter(OutputFile &out) : out_(out) {}
    void add(const void *memory, std::size_t bytes) {
        out_.write({static_cast<const char *>(memory), bytes});
        sum_.add(memory, bytes);
        written_ += bytes;
    }
    /// Ends a section; what fills the gap to the next is in the sum only where `counted`.
    void pad(bool counted) {
        static constexpr char zeros[spdc_alignment] = {};
        const std::size_t gap = (spdc_alignment - written_ % spdc_alignment) % spdc_alignment;
        if (counted) {
            add(zeros, gap);
        } else {
            out_.write({zeros, gap});
            written_ += gap;
        }
    }
    std::uint64_t take_sum() { return std::exchange(sum_, Checksum()).value(); }

  private:
    OutputFile &out_;
    Checksum sum_;
    std::size_t written_ = 0;
};

std::string joined_names(const Dataset &data) {
    std::string joined;
    for (const auto *names : {&data.label_names, &data.feature_names}) {
        for (const std::string &name : *names) {
            const auto length = static_cast<std::uint32_t>(name.size());
            joined.append(reinterpret_cast<const char *>(&length), sizeof length);
            joined += name;
        }
    }
    return joined;
}

SpdcHeader header_of(const Dataset &data, std::size_t names_bytes, std::size_t source_bytes) {
    SpdcHeader header{};
    std::copy(magic.begin(), magic.end(), header.magic);
    header.byte_order = byte_order;
    header.version = version;
    header.storage = (is_sparse(data.matrix) ? 0 : 2) + (has_floats(data.matrix) ? 0 : 1);
    header.index_base = static_cast<std::uint32_t>(data.index_base);
    header.rows = static_cast<std::uint64_t>(data.rows());
    header.cols = static_cast<std::uint64_t>(data.features());
    header.entries = static_cast<std::uint64_t>(data.nonzeros());
    header.label_names = data.label_names.size();
    header.feature_names = data.feature_names.size();
    header.names_bytes = names_bytes;
    header.source_bytes = source_bytes;
    header.has_weights = data.weights.empty() ? 0 : 1;
    return header;
}

/// Writes the matrix with its rows as `places` says; returns the sums of offsets, columns and values.
template <class Matrix>
std::array<std::uint64_t, 3> write_matrix(const Matrix &matrix, std::span<const std::int64_t> places,
                                          SectionWriter &out) {
    using Value = typename Matrix::value_type;
    std::array<std::uint64_t, 3> sums{};
    constexpr bool sparse = requires { matrix.offsets(); };
    if constexpr (sparse) {
        std::int64_t offset = 0;
        out.add(&offset, sizeof offset);
        for (const std::int64_t i : places) {
            offset += matrix.row(i).size();
            out.add(&offset, sizeof offset);
        }
    }
    sums[0] = out.take_sum();
    out.pad(false);
    if constexpr (sparse) {
        std::vector<std::int32_t> columns; // 32-bit ones in the file, whatever they are here
        for (const std::int64_t i : places) {
            const auto row = matrix.row(i);
            columns.clear();
            for (std::int64_t p = 0; p < row.size(); ++p) columns.push_back(row.column(p));
            out.add(columns.data(), columns.size() * sizeof(std::int32_t));
        }
    }
    sums[1] = out.take_sum();
    out.pad(false);
    for (const std::int64_t i : places) {
        const auto row = matrix.row(i);
        out.add(row.values, static_cast<std::size_t>(row.size()) * sizeof(Value));
    }
    sums[2] = out.take_sum();
    out.pad(false);
    return sums;
}

} // namespace

bool is_spdc(std::string_view bytes) { return bytes.starts_with(magic); }

SpdcFile read_spdc(InputStream &stream, int threads) {
    if (!is_spdc(stream.peek(magic.size()))) {
        fail(ErrorKind::bad_file, fmt::format("{}: not a .spdc file, which spdc convert makes", stream.name()));
    }
    return open_spdc(stream.map_or_read(), stream.name(), threads);
}

std::string source_of_other_version(InputStream &stream) {
    if (!is_spdc(stream.peek(magic.size()))) return {};
    const SharedBytes file = stream.map_or_read();
    SpdcHeader header{};
    if (file.bytes.size() < sizeof header) return {};
    std::memcpy(&header, file.bytes.data(), sizeof header);
    if (header.byte_order != byte_order || header.version == version || !has_sane_sizes(header)) return {};
    const SpdcLayout layout(header);
    if (file.bytes.size() < layout.targets) return {};
    return std::string(file.bytes.substr(layout.source, header.source_bytes));
}

void write_spdc(const Dataset &data, OutputFile &file, const std::string &source) {
    // Rows that are in random order already stay where they are.
    std::vector<std::int64_t> places(static_cast<std::size_t>(data.rows()));
    std::iota(places.begin(), places.end(), 0);
    if (data.row_order.empty()) Random(row_order_seed).shuffle(places);

    SectionWriter out(file);
    const std::string names = joined_names(data);
    const SpdcHeader header = header_of(data, names.size(), source.size());
    out.add(&header, sizeof header);
    out.add(names.data(), names.size());
    out.pad(true);
    out.add(source.data(), source.size());
    out.pad(true);
    for (const auto *numbers : {&data.targets, &data.weights}) {
        for (std::size_t p = 0; p < places.size() && !numbers->empty(); ++p) {
            out.add(&(*numbers)[static_cast<std::size_t>(places[p])], sizeof(double));
        }
        out.pad(true);
    }
    const std::vector<std::int64_t> &order = data.row_order.empty() ? places : data.row_order;
    out.add(order.data(), order.size() * sizeof(std::int64_t));
    out.pad(true);
    const std::uint64_t lead = out.take_sum();
    const std::array<std::uint64_t, 3> entries =
        std::visit([&](const auto &matrix) { return write_matrix(matrix, places, out); }, data.matrix);
    const std::uint64_t sums[] = {lead, entries[0], entries[1], entries[2]};
    out.add(sums, sizeof sums);
    out.pad(false);
}

} // namespace spdc
