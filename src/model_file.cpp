// The model file: "spdc-model 1", lines of "key value", "weights K", K lines of "index value..." (docs/formats.md).
#include "io_text.h"
#include "output_file.h"
#include "spdc/error.h"
#include "spdc/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace spdc {

namespace {

constexpr std::string_view magic = "spdc-model";
constexpr std::int64_t version = 1;
constexpr std::int64_t most_features = std::int64_t{1} << 31;
constexpr std::int64_t most_outputs = 1'000'000;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct CertificateKey {
    const char *name;
    double Certificate::*member;
};
constexpr CertificateKey certificate_keys[] = {{"primal", &Certificate::primal},
                                               {"dual", &Certificate::dual},
                                               {"gap", &Certificate::gap},
                                               {"relative_gap", &Certificate::relative_gap},
                                               {"certificate_radius", &Certificate::radius}};

// Labels stand side by side on a line: blanks, '=', '%' and bytes that do not print are written as %XX.
std::string escaped(const std::string &label) {
    std::string out;
    for (const char c : label) {
        const bool plain = c > ' ' && c != '=' && c != '%' && c != '\x7f';
        out += plain || static_cast<unsigned char>(c) >= 0x80 ? std::string(1, c)
                                                              : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

class Writer {
  public:
    explicit Writer(const std::string &path) : out_(path) {}

    void text(std::string_view key, std::string_view value) { out_.write(fmt::format("{} {}\n", key, value)); }
    void number(std::string_view key, double value) { numbers(key, {value}); }
    void numbers(std::string_view key, const std::vector<double> &values) {
        std::string line(key);
        for (const double value : values) {
            line += ' ';
            append_number(line, value);
        }
        out_.write(line += '\n');
    }
    OutputFile &file() { return out_; }

  private:
    OutputFile out_;
};

void write_labels(const Model &model, Writer &out) {
    std::string labels, weights;
    for (const std::string &label : model.labels)
        labels += fmt::format("{}{}", labels.empty() ? "" : " ", escaped(label));
    for (const auto &[label, weight] : model.class_weights) {
        weights += fmt::format("{}{}=", weights.empty() ? "" : " ", escaped(label));
        append_number(weights, weight);
    }
    if (!labels.empty()) out.text("labels", labels);
    if (!weights.empty()) out.text("class_weights", weights);
}

// A name as fields() gives it, as a key: batch-size is batch_size.
std::string key_of(const Field &field) {
    std::string key = field.name;
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

void write_header(const Model &model, Writer &out) {
    out.text(magic, std::to_string(version));
    out.text("loss", model.loss.name());
    std::visit(
        [&](const auto &loss) {
            loss.fields(loss, [&](const Field &field, const auto &value) {
                out.number(key_of(field), static_cast<double>(value));
            });
        },
        model.loss.variant());
    write_labels(model, out);
    out.text("features", std::to_string(model.features));
    out.text("index_base", std::to_string(model.index_base));
    out.text("outputs", std::to_string(model.outputs));
    out.text("intercept_kind", to_string(model.intercept));
    out.numbers("intercept", model.intercepts.empty() ? std::vector<double>(at(model.outputs), 0.0) : model.intercepts);
    out.number("l1", model.l1);
    out.number("l2", model.l2);
    out.number("lower", model.bounds.lower);
    out.number("upper", model.bounds.upper);
    out.text("row_weights", model.row_weights ? "yes" : "no");
    out.text("penalty_factors", model.penalty_factors ? "yes" : "no");
    for (const CertificateKey &key : certificate_keys) {
        std::vector<double> values;
        for (const Certificate &certificate : model.certificates) values.push_back(certificate.*key.member);
        out.numbers(key.name, values);
    }
    out.number("tolerance", model.tolerance);
    out.text("stop_reason", model.stop_reason);
    out.text("solver", model.solver);
}

// A place in the file and the words of one line, without their blanks.
using Words = std::vector<std::string_view>;

class Reader {
  public:
    explicit Reader(const std::string &path) : file_(path), next_(file_.text().data()) {}

    Model read();

  private:
    Words next_words();
    void read_version();
    void read_header();
    Words take(const std::string &key);
    Words take_optional(const std::string &key);
    std::string_view word(const std::string &key);
    double number(std::string_view text, bool may_be_infinite) const;
    double number(const std::string &key, bool may_be_infinite = false);
    std::vector<double> numbers(const std::string &key, std::int64_t count, bool may_be_infinite);
    std::int64_t integer(std::string_view text, std::int64_t least, std::int64_t most) const;
    bool yes_or_no(const std::string &key);
    std::string label(std::string_view text) const;
    void read_loss(Model &model);
    void read_labels(Model &model);
    void read_penalties(Model &model);
    void read_weights(Model &model);
    [[noreturn]] void fail_word(std::string_view text, const std::string &message) const {
        file_.fail_at(text.data(), message);
    }

    InputFile file_;
    const char *next_;
    std::map<std::string, Words, std::less<>> header_;
    std::int64_t count_ = 0;       // of lines behind "weights"
    std::string_view count_place_; // where it stands
};

// The words of the next line; {} at the end of the file.
Words Reader::next_words() {
    const char *const end = file_.text().data() + file_.text().size();
    Words words;
    const char *p = next_;
    next_ = next_line(p, end);
    while (true) {
        p = skip_blanks(p);
        if (at_line_end(p, end)) return words;
        const char *const begin = p;
        while (!is_blank(*p) && !at_line_end(p, end)) ++p;
        words.emplace_back(begin, static_cast<std::size_t>(p - begin));
    }
}

void Reader::read_version() {
    const Words words = next_words();
    if (words.size() != 2 || words[0] != magic) {
        file_.fail_at(file_.text().data(), fmt::format("not a model, expected the first line '{} {}'", magic, version));
    }
    if (words[1] != std::to_string(version)) {
        fail_word(words[1], fmt::format("a model of version {}, but this program reads version {} only",
                                        spdc::quoted(words[1]), version));
    }
}

void Reader::read_header() {
    const char *const end = file_.text().data() + file_.text().size();
    while (true) {
        const char *const line = next_;
        if (line == end) file_.fail_at(line, "the file ends, expected a line 'weights K'");
        Words words = next_words();
        if (words.empty()) file_.fail_at(line, "empty line, expected 'key value'");
        const std::string key(words.front().substr(0, 64));
        if (words.size() == 1) fail_word(words.front(), fmt::format("{} without a value", spdc::quoted(key)));
        const std::string_view place = words.front();
        words.erase(words.begin());
        if (key == "weights") {
            if (words.size() > 1)
                fail_word(words[1], fmt::format("{} after the number of weights", spdc::quoted(words[1])));
            count_ = integer(words.front(), 0, most_features);
            count_place_ = words.front();
            return;
        }
        if (!header_.emplace(key, std::move(words)).second)
            fail_word(place, fmt::format("{} twice", spdc::quoted(key)));
    }
}

Words Reader::take_optional(const std::string &key) {
    const auto found = header_.find(key);
    if (found == header_.end()) return {};
    Words words = std::move(found->second);
    header_.erase(found);
    return words;
}

Words Reader::take(const std::string &key) {
    Words words = take_optional(key);
    if (words.empty()) fail_word(count_place_, fmt::format("no line '{}' above the weights", key));
    return words;
}

std::string_view Reader::word(const std::string &key) {
    const Words words = take(key);
    if (words.size() > 1) fail_word(words[1], fmt::format("{} after the value of {}", spdc::quoted(words[1]), key));
    return words.front();
}

double Reader::number(std::string_view text, bool may_be_infinite) const {
    double value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = code == std::errc{} && stop == text.data() + text.size();
    if (!whole || std::isnan(value) || (std::isinf(value) && !may_be_infinite)) {
        fail_word(text, fmt::format("{}, expected a {}number", spdc::quoted(text), may_be_infinite ? "" : "finite "));
    }
    return value;
}

double Reader::number(const std::string &key, bool may_be_infinite) { return number(word(key), may_be_infinite); }

std::vector<double> Reader::numbers(const std::string &key, std::int64_t count, bool may_be_infinite) {
    const Words words = take(key);
    if (static_cast<std::int64_t>(words.size()) != count) {
        fail_word(words.front(), fmt::format("{} values of {}, expected one per output: {}", words.size(), key, count));
    }
    std::vector<double> values;
    for (const std::string_view text : words) values.push_back(number(text, may_be_infinite));
    return values;
}

std::int64_t Reader::integer(std::string_view text, std::int64_t least, std::int64_t most) const {
    std::int64_t value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = code == std::errc{} && stop == text.data() + text.size();
    if (!whole || value < least || value > most) {
        fail_word(text, fmt::format("{}, expected a whole number from {} to {}", spdc::quoted(text), least, most));
    }
    return value;
}

bool Reader::yes_or_no(const std::string &key) {
    const std::string_view text = word(key);
    if (text != "yes" && text != "no")
        fail_word(text, fmt::format("{} {}, expected yes or no", key, spdc::quoted(text)));
    return text == "yes";
}

std::string Reader::label(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = static_cast<unsigned char>(text[i]);
        if (text[i] == '%') {
            const std::string_view digits = text.substr(i + 1, 2);
            const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
            if (code != std::errc{} || stop != digits.data() + 2) {
                fail_word(text, fmt::format("{}, expected two hexadecimal digits after %", spdc::quoted(text)));
            }
            i += 2;
        }
        out += static_cast<char>(value);
    }
    return out;
}

// Messages about names and ranges are the library's own; the place is added here.
template <class Call> void at_place(const InputFile &file, std::string_view place, Call call) {
    try {
        call();
    } catch (const Error &error) {
        file.fail_at(place.data(), error.what());
    }
}

void Reader::read_loss(Model &model) {
    const std::string_view name = word("loss");
    at_place(file_, name, [&] { model.loss = make_loss(name); });
    std::visit(
        [&](auto &loss) {
            loss.fields(loss, [&](const Field &field, auto &value) {
                const std::string_view text = word(key_of(field));
                value = number(text, true);
                at_place(file_, text, [&] { check_range(field, value); });
            });
        },
        model.loss.variant());
}

void Reader::read_labels(Model &model) {
    const Words labels = model.is_classifier() ? take("labels") : Words{};
    for (const std::string_view text : labels) model.labels.push_back(label(text));
    for (const std::string_view text : take_optional("class_weights")) {
        const std::size_t equals = text.rfind('=');
        if (equals == text.npos) fail_word(text, fmt::format("{}, expected label=weight", spdc::quoted(text)));
        const double weight = number(text.substr(equals + 1), false);
        if (weight < 0) fail_word(text, fmt::format("{}, expected a weight of at least 0", spdc::quoted(text)));
        model.class_weights[label(text.substr(0, equals))] = weight;
    }
    const std::string_view outputs = word("outputs");
    model.outputs = integer(outputs, 1, most_outputs);
    if (!model.is_classifier()) {
        if (model.outputs != 1) fail_word(outputs, "more than one output in regression, expected 1");
        return;
    }
    std::vector<std::string> sorted = model.labels;
    std::sort(sorted.begin(), sorted.end());
    const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (labels.size() < 2 || !distinct) fail_word(labels.front(), "expected two or more different labels");
    const auto expected = static_cast<std::int64_t>(labels.size() == 2 ? 1 : labels.size());
    if (model.outputs != expected) {
        fail_word(outputs,
                  fmt::format("{} outputs for {} labels, expected {}", model.outputs, labels.size(), expected));
    }
}

void Reader::read_penalties(Model &model) {
    const std::string_view kind = word("intercept_kind");
    at_place(file_, kind, [&] { model.intercept = parse_intercept(std::string(kind)); });
    const std::vector<double> intercepts = numbers("intercept", model.outputs, false);
    if (model.intercept != Intercept::none) model.intercepts = intercepts;
    model.l1 = number("l1");
    model.l2 = number("l2");
    model.bounds = {number("lower", true), number("upper", true)};
    at_place(file_, count_place_, [&] { make_regularizer(model.l1, model.l2, model.bounds); });
    model.row_weights = yes_or_no("row_weights");
    model.penalty_factors = yes_or_no("penalty_factors");
    model.certificates.resize(at(model.outputs));
    for (const CertificateKey &key : certificate_keys) {
        const std::vector<double> values = numbers(key.name, model.outputs, true);
        for (std::size_t k = 0; k < values.size(); ++k) model.certificates[k].*key.member = values[k];
    }
    model.tolerance = number("tolerance", true);
    model.stop_reason = word("stop_reason");
    model.solver = word("solver");
}

// Nothing is allocated by what K claims, only by the lines that are there.
void Reader::read_weights(Model &model) {
    const char *const end = file_.text().data() + file_.text().size();
    if (count_ > model.features) {
        fail_word(count_place_, fmt::format("{} weights for {} features", count_, model.features));
    }
    for (std::int64_t k = 0; k < count_; ++k) {
        if (next_ == end) file_.fail_at(end, fmt::format("the file ends after {} of {} weights", k, count_));
        const char *const line = next_;
        const Words words = next_words();
        if (static_cast<std::int64_t>(words.size()) != model.outputs + 1) {
            file_.fail_at(line, fmt::format("{} words, expected an index and {} values", words.size(), model.outputs));
        }
        const std::int64_t index = integer(words.front(), 1, model.features) - 1;
        if (!model.index.empty() && index <= model.index.back()) {
            fail_word(words.front(),
                      fmt::format("index {} after {}, expected ascending indices", index + 1, model.index.back() + 1));
        }
        model.index.push_back(index);
        for (std::size_t i = 1; i < words.size(); ++i) model.values.push_back(number(words[i], false));
    }
    while (next_ != end) {
        const Words words = next_words();
        if (!words.empty())
            fail_word(words.front(), fmt::format("{} after the last weight", spdc::quoted(words.front())));
    }
}

Model Reader::read() {
    Model model;
    read_version();
    read_header();
    read_loss(model);
    read_labels(model);
    model.features = integer(word("features"), 0, most_features);
    model.index_base = static_cast<int>(integer(word("index_base"), 0, 1));
    read_penalties(model);
    if (!header_.empty()) {
        const auto &[key, words] = *header_.begin();
        fail_word(words.front(), fmt::format("value of the unknown key {}", spdc::quoted(key)));
    }
    read_weights(model);
    return model;
}

} // namespace

void save_model(const Model &model, const std::string &path, int threads) {
    Writer out(path);
    write_header(model, out);
    out.text("weights", std::to_string(model.index.size()));
    const std::size_t outputs = at(model.outputs);
    const auto put = [&](std::size_t k, char *place, NumberText &numbers) {
        place = numbers.put(place, model.index[k] + 1);
        for (std::size_t output = 0; output < outputs; ++output) {
            *place++ = ' ';
            place = numbers.put(place, model.values[k * outputs + output]);
        }
        *place++ = '\n';
        return place;
    };
    write_lines(out.file(), model.index.size(), (outputs + 1) * (NumberText::longest + 1), threads, put);
    out.file().commit();
}

Model load_model(const std::string &path) { return Reader(path).read(); }

bool is_model_file(const std::string &path) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return false; // what is read from a pipe is gone
    std::ifstream file(path, std::ios::binary);
    std::string start(magic.size() + 1, '\0');
    file.read(start.data(), static_cast<std::streamsize>(start.size()));
    return file && start == std::string(magic) + ' ';
}

} // namespace spdc
