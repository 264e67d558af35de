#include "spdc/io.h"

#include "io_text.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace spdc {

namespace {

std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char &c : lower) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; // std::tolower would ask the locale
    }
    return lower;
}

bool is_compressed_name(const std::string &path) {
    const std::string lower = lower_case(path);
    return lower.ends_with(".gz") || lower.ends_with(".bz2") || lower.ends_with(".xz") || lower.ends_with(".zst");
}

// automatic when the name says nothing.
Format format_of_name(const std::string &path) {
    std::string name = lower_case(path);
    if (is_compressed_name(name)) {
        name.erase(name.rfind('.'));
    }
    if (name.ends_with(".csv")) {
        return Format::csv;
    }
    if (name.ends_with(".tsv") || name.ends_with(".tab")) {
        return Format::tsv;
    }
    if (name.ends_with(".spdc")) {
        return Format::spdc;
    }
    if (name.ends_with(".libsvm") || name.ends_with(".svm") || name.ends_with(".svmlight")) {
        return Format::libsvm;
    }
    return Format::automatic;
}

// "index:" behind a blank, as between a label and its first feature. The blank keeps times of day (12:30) in CSV out.
bool has_index(std::string_view line) {
    for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
        std::size_t first = colon;
        while (first > 0 && is_digit(line[first - 1])) {
            --first;
        }
        if (first < colon && first > 0 && is_blank(line[first - 1])) {
            return true;
        }
    }
    return false;
}

// The first line that is neither blank nor a comment, without its line end; nothing when `text` has no such line.
std::optional<std::string_view> first_line(std::string_view text) {
    const char *const end = text.data() + text.size();
    for (const char *p = text.data(); p != end;) {
        const char *const next = next_line(p, end);
        const std::string_view line(p, static_cast<std::size_t>(next - p));
        const std::size_t first = line.find_first_not_of(" \t\r\n");
        if (first != line.npos && line[first] != '#') {
            return line;
        }
        p = next;
    }
    return std::nullopt;
}

Format format_of_line(std::string_view line) {
    if (has_index(line)) {
        return Format::libsvm;
    }
    if (line.find_first_of(",;") != line.npos) {
        return Format::csv;
    }
    return line.find('\t') != line.npos ? Format::tsv : Format::libsvm;
}

// By the first line with data, which must be there as a whole.
Format format_of_stream(InputStream &stream) {
    stream.skip_byte_order_mark();
    for (std::size_t count = LineBlocks::block_bytes;; count *= 2) {
        const std::string_view text = stream.peek(count);
        const std::optional<std::string_view> line = first_line(text);
        const bool is_all = text.size() < count;
        if (line && (is_all || line->ends_with('\n'))) {
            return format_of_line(*line);
        }
        if (is_all) {
            return Format::libsvm; // says what it expects
        }
    }
}

void check_options(const ReadOptions &options) {
    if (options.index_base && *options.index_base != 0 && *options.index_base != 1) {
        fail(ErrorKind::invalid_argument, fmt::format("index_base {}, expected 0 or 1", *options.index_base));
    }
    constexpr std::int64_t most_features = std::int64_t{1} << 31;
    if (options.features < 0 || options.features > most_features) {
        fail(ErrorKind::invalid_argument,
             fmt::format("features {}, expected 1 to {}, or 0 for as many as the data have", options.features,
                         most_features));
    }
    if (options.threads < 1) {
        fail(ErrorKind::invalid_argument, fmt::format("threads {}, expected at least 1", options.threads));
    }
}

Dataset take_spdc(InputStream &stream, const ReadOptions &options) {
    Dataset data = read_spdc(stream, options.threads).data;
    if (!options.label_column.empty()) {
        fail(ErrorKind::bad_file,
             fmt::format("{}: a .spdc file has its label already, but label column '{}' is asked for; "
                         "convert the text again with that label column",
                         stream.name(), options.label_column));
    }
    fit_to_options(data, options, stream.name());
    if (options.check_entries) {
        check(data.matrix);
    }
    return data;
}

// Whether a validated number that overflowed or underflowed is large. Such numbers are beyond 10^+-300, so the place of
// the first digit that counts decides.
bool is_large(const char *p, const char *end) noexcept {
    std::int64_t place = 0; // power of ten of the first digit that is not 0
    bool found = false;
    bool behind_point = false;
    for (; p != end && *p != 'e' && *p != 'E'; ++p) {
        if (*p == '.') {
            behind_point = true;
        } else if (is_digit(*p)) {
            found = found || *p != '0';
            place += (found && !behind_point ? 1 : 0) - (!found && behind_point ? 1 : 0);
        }
    }
    if (p == end) {
        return place > 0;
    }
    ++p;
    const bool negative = *p == '-';
    p += *p == '-' || *p == '+' ? 1 : 0;
    std::int64_t exponent = 0;
    constexpr std::int64_t enough = std::int64_t{1} << 60; // more digits than any text has
    for (; p != end && exponent < enough / 10; ++p) {
        exponent = 10 * exponent + (*p - '0');
    }
    return place + (negative ? -exponent : exponent) > 0;
}

// One line of read_numbers; returns where it stopped, at the line's end.
const char *read_line_of_numbers(const InputFile &file, const char *p, std::int64_t columns,
                                 std::vector<double> &numbers) {
    const char *const end = file.text().data() + file.text().size();
    for (std::int64_t column = 0;; ++column) {
        p = skip_blanks(p);
        if (at_line_end(p, end) || *p == '#') {
            if (column != 0 && column != columns) {
                file.fail_at(p, fmt::format("{} numbers on this line, expected {}", column, columns));
            }
            return p;
        }
        if (column == columns) {
            file.fail_at(p, fmt::format("{} after the last number, expected {} a line", quoted_word(p, end), columns));
        }
        const char *const place = p;
        double value = 0;
        NumberStatus status = parse_number(p, value);
        if (status == NumberStatus::ok && !is_blank(*p) && *p != '#' && !at_line_end(p, end)) {
            status = NumberStatus::no_number;
        }
        if (status != NumberStatus::ok) {
            file.fail_at(place, number_message(place, end, status, ""));
        }
        numbers.push_back(value);
    }
}

} // namespace

void fit_to_options(Dataset &data, const ReadOptions &options, const std::string &name) {
    const bool sparse = is_sparse(data.matrix);
    if (sparse && options.index_base && *options.index_base != data.index_base) {
        fail(ErrorKind::bad_file,
             fmt::format("{}: made with index base {}, but {} is asked for; convert the text again "
                         "with --index-base {}",
                         name, data.index_base, *options.index_base, *options.index_base));
    }
    if (options.features == 0) {
        return;
    }
    if (data.features() > options.features) {
        fail(ErrorKind::bad_file, fmt::format("{}: {} features, expected at most the {} asked for", name,
                                              data.features(), options.features));
    }
    data.matrix = with_columns(data.matrix, options.features);
    if (!data.feature_names.empty()) {
        data.feature_names.resize(static_cast<std::size_t>(options.features));
    }
}

Format parse_format(const std::string &name) {
    const std::vector<std::string> known{"auto", "libsvm", "csv", "tsv", "spdc"};
    constexpr Format formats[] = {Format::automatic, Format::libsvm, Format::csv, Format::tsv, Format::spdc};
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
        fail_unknown("format", name, known);
    }
    return formats[found - known.begin()];
}

Dataset read_dataset(const std::string &path, const ReadOptions &options) {
    check_options(options);
    try {
        InputStream stream(path);
        Format format = options.format;
        if (format == Format::automatic) {
            format = is_spdc(stream.peek(16)) ? Format::spdc : format_of_name(path);
        }
        if (format == Format::automatic) {
            format = format_of_stream(stream);
        }
        switch (format) {
        case Format::csv: return read_csv(InputFile(std::move(stream)), options, ',');
        case Format::tsv: return read_csv(InputFile(std::move(stream)), options, '\t');
        case Format::spdc: return take_spdc(stream, options);
        case Format::libsvm:
        case Format::automatic: break;
        }
        return read_libsvm(stream, options);
    } catch (const std::bad_alloc &) {
        fail(ErrorKind::bad_file, fmt::format("{}: not enough memory to hold its data", path));
    }
}

void write_dataset(const Dataset &data, const std::string &path, Format format) {
    check(data, path);
    if (is_compressed_name(path)) {
        fail(ErrorKind::unsupported,
             fmt::format("{}: compressed files are read but not written; write plain text and compress it", path));
    }
    OutputFile out(path);
    switch (format == Format::automatic ? format_of_name(path) : format) {
    case Format::csv: write_csv(in_user_order(data), out, ','); break;
    case Format::tsv: write_csv(in_user_order(data), out, '\t'); break;
    case Format::spdc: write_spdc(data, out); break;
    case Format::libsvm:
    case Format::automatic: write_libsvm(in_user_order(data), out); break;
    }
    out.commit();
}

std::vector<double> read_numbers(const std::string &path, std::int64_t columns) {
    if (columns < 1) {
        fail(ErrorKind::invalid_argument, fmt::format("read_numbers: {} columns, expected at least 1", columns));
    }
    const InputFile file(path);
    const std::string_view text = file.text();
    const char *const end = text.data() + text.size();
    std::vector<double> numbers;
    for (const char *p = text.data(); p != end;) {
        p = next_line(read_line_of_numbers(file, p, columns, numbers), end);
    }
    if (numbers.empty()) {
        file.fail_at(text.data(), "no numbers, expected at least one line");
    }
    return numbers;
}

const char *next_line(const char *p, const char *text_end) noexcept {
    const void *newline = std::memchr(p, '\n', static_cast<std::size_t>(text_end - p));
    return newline == nullptr ? text_end : static_cast<const char *>(newline) + 1;
}

bool is_not_finite_word(const char *p) noexcept {
    p += *p == '-' || *p == '+' ? 1 : 0;
    const auto matches = [p](const char *word) {
        std::size_t i = 0;
        while (word[i] != '\0' && (p[i] | 0x20) == word[i]) { // sets the lower-case bit of a letter
            ++i;
        }
        return word[i] == '\0';
    };
    return matches("nan") || matches("inf");
}

NumberStatus convert_number(const char *begin, const char *end, double &value) noexcept {
    begin += *begin == '+' ? 1 : 0; // from_chars takes no plus
    value = 0;
    const std::from_chars_result result = std::from_chars(begin, end, value);
    if (result.ec == std::errc::invalid_argument) {
        return NumberStatus::no_number;
    }
    // Implementations differ in what they report and store when the number is out of range.
    if (result.ec == std::errc::result_out_of_range || !std::isfinite(value)) {
        if (is_large(begin, end)) {
            return NumberStatus::too_large;
        }
        value = *begin == '-' ? -0.0 : 0.0;
    }
    return NumberStatus::ok;
}

std::string quoted(std::string_view text) {
    constexpr std::size_t longest = 40;
    std::string out = "'";
    for (const char c : text.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            out += c;
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        }
    }
    return out + (text.size() > longest ? "...'" : "'");
}

std::string quoted_word(const char *p, const char *text_end) {
    const char *q = p;
    while (!at_line_end(q, text_end) && (q == p || !is_blank(*q))) {
        ++q;
    }
    return quoted({p, static_cast<std::size_t>(q - p)});
}

std::string number_message(const char *p, const char *text_end, NumberStatus status, const std::string &what) {
    const char *complaint = "is not a number";
    if (status == NumberStatus::not_finite) {
        complaint = "is not finite";
    } else if (status == NumberStatus::too_large) {
        complaint = "is too large for a double";
    }
    return fmt::format("{}{}{} {}, expected a finite number", what, what.empty() ? "" : " ", quoted_word(p, text_end),
                       complaint);
}

void append_number(std::string &line, double value) {
    char digits[32]; // the longest shortest double has 24 characters
    const std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, value);
    line.append(digits, result.ptr);
}

void append_number(std::string &line, std::int64_t value) {
    char digits[32];
    const std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, value);
    line.append(digits, result.ptr);
}

} // namespace spdc
