// CSV and TSV with quotes as in RFC 4180. One column is the label, all others are features and must be numbers.
#include "io_text.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

namespace spdc {

namespace {

struct Field {
    const char *place;     // where it begins in the file
    std::string_view text; // without quotes and outer blanks; the byte behind it never continues a number
    bool quoted;
};

NumberStatus parse_field(const Field &field, double &value) {
    const char *p = field.text.data();
    const NumberStatus status = field.text.empty() ? NumberStatus::no_number : parse_number(p, value);
    const bool whole = p == field.text.data() + field.text.size();
    return status == NumberStatus::ok && !whole ? NumberStatus::no_number : status;
}

// Words that stand for "not measured" in files of other programs: never names of columns, never labels.
bool is_missing(std::string_view text) {
    constexpr std::array<std::string_view, 5> words{"", "?", "na", "n/a", "null"};
    const auto same = [text](std::string_view word) {
        return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                          [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
    };
    return std::any_of(words.begin(), words.end(), same);
}

// What makes a first line a header: text, not a number and not a hole in the data.
bool is_text(const Field &field) {
    double ignored = 0;
    return parse_field(field, ignored) == NumberStatus::no_number && !is_missing(field.text);
}

class CsvParser {
  public:
    CsvParser(const InputFile &file, const ReadOptions &options, char delimiter)
        : file_(file), options_(options), text_end_(file.text().data() + file.text().size()), delimiter_(delimiter) {}

    Dataset parse();

  private:
    const char *skip_spaces(const char *p) const noexcept;
    const char *skip_empty_lines(const char *p) const noexcept;
    bool at_field_end(const char *p) const noexcept { return *p == delimiter_ || at_line_end(p, text_end_); }
    const char *first_record() const noexcept;
    void choose_delimiter(const char *p);

    Field read_field(const char *&p, std::string &scratch) const;
    Field read_quoted(const char *&p, std::string &scratch) const;
    std::vector<std::string> read_header(const char *p, std::vector<bool> &texts) const;
    bool read_label_is_text(const char *p) const;
    void find_label_column(const char *p, const std::vector<std::string> &names, const std::vector<bool> &texts);
    bool is_header(const char *p, const std::vector<bool> &texts) const;

    const char *parse_row(const char *p);
    const char *parse_cell(const char *p, std::int64_t column);
    const char *parse_label(const char *p);
    void reserve();
    AnyMatrix take_matrix();
    void take_labels(Dataset &data);
    void take_names(Dataset &data, std::vector<std::string> names) const;
    [[noreturn]] void fail_field(const Field &field, NumberStatus status, const std::string &what) const;
    [[noreturn]] void fail_count(const char *place, std::int64_t count) const;

    const InputFile &file_;
    const ReadOptions &options_;
    const char *text_end_;
    char delimiter_;
    std::int64_t fields_ = 0; // in every record
    std::int64_t label_ = 0;  // column of the label, from 0
    bool label_by_name_ = false;
    std::string scratch_; // holds a quoted field that has quotes inside

    enum class LabelKind { unknown, number, text };
    LabelKind kind_ = LabelKind::unknown;
    std::map<std::string, std::int64_t, std::less<>> labels_; // text label to its number in order of appearance
    std::vector<double> targets_;
    std::vector<double> values_;
    bool all_float_ = true;
};

const char *CsvParser::skip_spaces(const char *p) const noexcept {
    while (*p == ' ' || (*p == '\t' && delimiter_ != '\t')) {
        ++p;
    }
    return p;
}

const char *CsvParser::skip_empty_lines(const char *p) const noexcept {
    while (p != text_end_ && at_line_end(skip_spaces(p), text_end_)) {
        p = next_line(p, text_end_);
    }
    return p;
}

// Comments are taken above the data only: further down a line that begins with # might be a row.
const char *CsvParser::first_record() const noexcept {
    const char *p = skip_empty_lines(file_.text().data());
    while (p != text_end_ && *p == '#') {
        p = skip_empty_lines(next_line(p, text_end_));
    }
    return p;
}

void CsvParser::choose_delimiter(const char *p) {
    const std::string_view line(p, static_cast<std::size_t>(next_line(p, text_end_) - p));
    if (delimiter_ == ',' && line.find(',') == line.npos && line.find(';') != line.npos) {
        delimiter_ = ';';
    }
}

// Moves p to the delimiter or line end behind the field.
Field CsvParser::read_field(const char *&p, std::string &scratch) const {
    p = skip_spaces(p);
    if (*p == '"') {
        return read_quoted(p, scratch);
    }
    const char *const place = p;
    const char *last = p; // behind the last byte that is not a blank
    for (; !at_field_end(p); ++p) {
        last = is_blank(*p) ? last : p + 1;
    }
    return {place, {place, static_cast<std::size_t>(last - place)}, false};
}

Field CsvParser::read_quoted(const char *&p, std::string &scratch) const {
    const char *const place = p;
    const char *part = ++p;
    bool doubled = false;
    scratch.clear();
    for (;; ++p) {
        if (p == text_end_) {
            file_.fail_at(place, "quoted field without an end, expected a closing '\"'");
        }
        if (*p == '"') {
            if (p[1] != '"') {
                break;
            }
            doubled = true;
            scratch.append(part, ++p); // with the first of the two quotes
            part = p + 1;
        }
    }
    const std::string_view rest(part, static_cast<std::size_t>(p - part));
    if (doubled) {
        scratch.append(rest);
    }
    p = skip_spaces(p + 1);
    if (!at_field_end(p)) {
        file_.fail_at(p, fmt::format("{} behind a closing quote, expected {} or the end of the line",
                                     quoted_word(p, text_end_), quoted({&delimiter_, 1})));
    }
    return {place, doubled ? std::string_view(scratch) : rest, true};
}

// The fields of the first record as text, and which of them could be names.
std::vector<std::string> CsvParser::read_header(const char *p, std::vector<bool> &texts) const {
    std::vector<std::string> names;
    std::string scratch;
    for (;; ++p) {
        const Field field = read_field(p, scratch);
        const bool binary = std::any_of(field.text.begin(), field.text.end(), [](char c) {
            return (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == '\x7f';
        });
        if (binary) {
            file_.fail_at(field.place,
                          fmt::format("binary bytes in {}, expected a name or a number", quoted(field.text)));
        }
        names.emplace_back(field.text);
        texts.push_back(is_text(field));
        if (*p != delimiter_) {
            return names;
        }
    }
}

// Whether the label of the record at p is text; false when there is none.
bool CsvParser::read_label_is_text(const char *p) const {
    std::string scratch;
    for (std::int64_t column = 0;; ++column, ++p) {
        const Field field = read_field(p, scratch);
        if (column == label_) {
            return is_text(field);
        }
        if (*p != delimiter_) {
            return false;
        }
    }
}

void CsvParser::find_label_column(const char *p, const std::vector<std::string> &names,
                                  const std::vector<bool> &texts) {
    const std::string &wanted = options_.label_column;
    const char *const end = wanted.data() + wanted.size();
    std::int64_t number = 1;
    const auto [stop, code] = std::from_chars(wanted.data(), end, number);
    if (wanted.empty() || (stop == end && code != std::errc::invalid_argument)) {
        const bool in_range =
            code != std::errc::result_out_of_range && number != 0 && number <= fields_ && number >= -fields_;
        if (!wanted.empty() && !in_range) {
            fail(ErrorKind::invalid_argument,
                 fmt::format("label_column {}, expected a number from 1 to {}, or from -1 to -{} counted from the end, "
                             "or a name in the header of {}",
                             wanted, fields_, fields_, file_.name()));
        }
        label_ = wanted.empty() ? 0 : (number > 0 ? number - 1 : fields_ + number);
        return;
    }
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end() && std::find(texts.begin(), texts.end(), true) == texts.end()) {
        file_.fail_at(p, fmt::format("no header, expected one that names the label column {}", quoted(wanted)));
    }
    if (found == names.end()) {
        fail_unknown(fmt::format("label column in {}", file_.name()), wanted, names);
    }
    label_ = found - names.begin();
    label_by_name_ = true;
}

// A first line with text among the features is a header. Where only its label is text, it is a header when the next
// label is a number: labels are all numbers or all text.
bool CsvParser::is_header(const char *p, const std::vector<bool> &texts) const {
    if (label_by_name_) {
        return true;
    }
    const auto label = static_cast<std::size_t>(label_);
    for (std::size_t column = 0; column < texts.size(); ++column) {
        if (texts[column] && column != label) {
            return true;
        }
    }
    if (!texts[label]) {
        return false;
    }
    std::string scratch;
    while (read_field(p, scratch), *p == delimiter_) {
        ++p;
    }
    p = skip_empty_lines(next_line(p, text_end_));
    return p != text_end_ && !read_label_is_text(p);
}

void CsvParser::fail_field(const Field &field, NumberStatus status, const std::string &what) const {
    if (field.text.empty()) {
        file_.fail_at(field.place, fmt::format("{} is empty, expected a finite number (missing values must be filled "
                                               "or their rows removed first)",
                                               what));
    }
    const bool missing = is_missing(field.text);
    const char *complaint = missing ? "is a missing value" : "is not a number";
    if (status == NumberStatus::not_finite) {
        complaint = "is not finite";
    } else if (status == NumberStatus::too_large) {
        complaint = "is too large for a double";
    }
    file_.fail_at(field.place, fmt::format("{} {} {}, expected a finite number", what, quoted(field.text), complaint));
}

void CsvParser::fail_count(const char *place, std::int64_t count) const {
    file_.fail_at(place, fmt::format("{} fields in this row, expected {} as in the first", count, fields_));
}

const char *CsvParser::parse_cell(const char *p, std::int64_t column) {
    const char *const place = skip_spaces(p);
    const char *q = place;
    double value = 0;
    // Quotes around numbers are rare; without them the number is read where it stands.
    bool good =
        parse_number<padding>(q, value) == NumberStatus::ok && (at_field_end(q) || at_field_end(q = skip_spaces(q)));
    if (!good) {
        q = place;
        const Field field = read_field(q, scratch_);
        const NumberStatus status = parse_field(field, value);
        if (status != NumberStatus::ok) {
            fail_field(field, status, fmt::format("field {}", column + 1));
        }
    }
    all_float_ = all_float_ && fits_float(value);
    values_.push_back(value);
    return q;
}

const char *CsvParser::parse_label(const char *p) {
    const Field field = read_field(p, scratch_);
    double value = 0;
    const NumberStatus status = parse_field(field, value);
    const bool is_number = status == NumberStatus::ok;
    const bool is_hole = field.text.empty() || (!field.quoted && is_missing(field.text));
    if (is_hole || (!is_number && status != NumberStatus::no_number)) {
        fail_field(field, status, "label");
    }
    if (kind_ == LabelKind::unknown) {
        kind_ = is_number ? LabelKind::number : LabelKind::text;
    }
    if (is_number != (kind_ == LabelKind::number)) {
        file_.fail_at(field.place,
                      fmt::format("label {} is {}, but the labels above are {}; expected all numbers or all text",
                                  quoted(field.text), is_number ? "a number" : "text", is_number ? "text" : "numbers"));
    }
    if (is_number) {
        targets_.push_back(value);
        return p;
    }
    const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
    if (std::any_of(field.text.begin(), field.text.end(), is_control)) {
        file_.fail_at(field.place,
                      fmt::format("control bytes in label {}, expected printable text", quoted(field.text)));
    }
    auto found = labels_.find(field.text);
    if (found == labels_.end()) {
        found = labels_.emplace(std::string(field.text), static_cast<std::int64_t>(labels_.size())).first;
    }
    targets_.push_back(static_cast<double>(found->second));
    return p;
}

const char *CsvParser::parse_row(const char *p) {
    const char *const place = p;
    for (std::int64_t column = 0;; ++column, ++p) {
        if (column == fields_) {
            std::int64_t count = column + 1;
            while (read_field(p, scratch_), *p == delimiter_) {
                ++p;
                ++count;
            }
            fail_count(place, count);
        }
        p = column == label_ ? parse_label(p) : parse_cell(p, column);
        if (*p != delimiter_) {
            if (column + 1 != fields_) {
                fail_count(place, column + 1);
            }
            return p;
        }
    }
}

void CsvParser::reserve() {
    const std::string_view text = file_.text();
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    const auto features = static_cast<std::size_t>(fields_ - 1);
    targets_.reserve(lines);
    // A cell takes two bytes at least, which bounds what a file of empty lines could make us ask for.
    const std::size_t most = text.size() / 2 + 1;
    values_.reserve(features > 0 && lines > most / features ? most : lines * features);
}

AnyMatrix CsvParser::take_matrix() {
    const auto rows = static_cast<std::int64_t>(targets_.size());
    const std::int64_t features = fields_ - 1;
    AnyMatrix matrix;
    if (all_float_) {
        std::vector<float> narrow(values_.size());
        std::transform(values_.begin(), values_.end(), narrow.begin(), [](double v) { return static_cast<float>(v); });
        matrix = DenseMatrix<float>::own(rows, features, std::move(narrow));
    } else {
        matrix = DenseMatrix<double>::own(rows, features, std::move(values_));
    }
    return options_.features > features ? with_columns(matrix, options_.features) : matrix;
}

// Labels were numbered as they came; the data set has them in ascending order, so that it does not depend on the order
// of the rows.
void CsvParser::take_labels(Dataset &data) {
    data.targets = std::move(targets_);
    if (kind_ != LabelKind::text) {
        return;
    }
    std::vector<double> rank(labels_.size());
    for (const auto &[name, number] : labels_) {
        rank[static_cast<std::size_t>(number)] = static_cast<double>(data.label_names.size());
        data.label_names.push_back(name);
    }
    for (double &target : data.targets) {
        target = rank[static_cast<std::size_t>(target)];
    }
}

void CsvParser::take_names(Dataset &data, std::vector<std::string> names) const {
    names.erase(names.begin() + label_);
    names.resize(static_cast<std::size_t>(data.features())); // columns added on request have no name
    data.feature_names = std::move(names);
}

Dataset CsvParser::parse() {
    const char *p = first_record();
    if (p == text_end_) {
        file_.fail_at(file_.text().data(), "no rows, expected lines of fields");
    }
    choose_delimiter(p);
    std::vector<bool> texts;
    std::vector<std::string> names = read_header(p, texts);
    fields_ = static_cast<std::int64_t>(names.size());
    find_label_column(p, names, texts);
    if (options_.features > 0 && fields_ - 1 > options_.features) {
        file_.fail_at(p, fmt::format("{} columns beside the label, expected at most the {} features asked for",
                                     fields_ - 1, options_.features));
    }
    const bool header = is_header(p, texts);
    if (header) {
        std::string scratch;
        while (read_field(p, scratch), *p == delimiter_) {
            ++p;
        }
        p = skip_empty_lines(next_line(p, text_end_));
    }
    if (p == text_end_) {
        file_.fail_at(p, "no rows below the header, expected at least one");
    }
    reserve();
    while (p != text_end_) {
        p = skip_empty_lines(next_line(parse_row(p), text_end_));
    }
    Dataset data;
    data.matrix = take_matrix();
    take_labels(data);
    if (header) {
        take_names(data, std::move(names));
    }
    return data;
}

void append_text(std::string &line, const std::string &text, char delimiter) {
    const bool outer_blanks = !text.empty() && (is_blank(text.front()) || is_blank(text.back()));
    const bool special = text.find_first_of("\"\n\r;,\t") != text.npos || text.find(delimiter) != text.npos;
    if (!outer_blanks && !special && !is_missing(text) && text.front() != '#') {
        line += text;
        return;
    }
    line += '"';
    for (const char c : text) {
        line.append(c == '"' ? 2 : 1, c);
    }
    line += '"';
}

template <class Matrix> void write_rows(const Matrix &matrix, const Dataset &data, OutputFile &out, char delimiter) {
    std::string line;
    for (std::int64_t i = 0; i < matrix.rows(); ++i) {
        line.clear();
        const double target = data.targets[static_cast<std::size_t>(i)];
        if (data.label_names.empty()) {
            append_number(line, target);
        } else {
            append_text(line, data.label_names[static_cast<std::size_t>(target)], delimiter);
        }
        const auto row = matrix.row(i);
        std::int64_t p = 0;
        for (std::int64_t column = 0; column < matrix.cols(); ++column) {
            const bool stored = p < row.size() && row.column(p) == column;
            line += delimiter;
            append_number(line, stored ? row.value(p) : 0.0);
            p += stored ? 1 : 0;
        }
        line += '\n';
        out.write(line);
    }
}

} // namespace

Dataset read_csv(const InputFile &file, const ReadOptions &options, char delimiter) {
    return CsvParser(file, options, delimiter).parse();
}

void write_csv(const Dataset &data, OutputFile &out, char delimiter) {
    if (!data.feature_names.empty()) {
        std::string header = "label";
        for (const std::string &name : data.feature_names) {
            header += delimiter;
            append_text(header, name, delimiter);
        }
        out.write(header + '\n');
    }
    std::visit([&](const auto &matrix) { write_rows(matrix, data, out, delimiter); }, data.matrix);
}

} // namespace spdc
