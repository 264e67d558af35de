// What the text readers and writers share: numbers, blanks, messages, and the list of formats that io.cpp picks from.
// Scanners here rely on a 0 byte behind the text: it is no digit, no blank and no sign, so they stop at it.
#pragma once

#include "input_file.h"
#include "output_file.h"
#include "spdc/io.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace spdc {

Dataset read_libsvm(InputStream &stream, const ReadOptions &options);
void write_libsvm(const Dataset &data, OutputFile &out);

/// CSV and TSV differ in the delimiter only: ',' (or ';' when the first line has no comma), or a tab.
Dataset read_csv(const InputFile &file, const ReadOptions &options, char delimiter);
void write_csv(const Dataset &data, OutputFile &out, char delimiter);

/// The binary format. `source`: what a cache says of the text it was made from, else empty.
struct SpdcFile {
    Dataset data;
    std::string source;
};
/// Applies the index base and the features asked for to data that were stored without them.
void fit_to_options(Dataset &data, const ReadOptions &options, const std::string &name);
bool is_spdc(std::string_view bytes);
SpdcFile read_spdc(InputStream &stream, int threads);
/// The `source` in a file of another version of the format, all of which begin alike; nothing where it is none.
std::string source_of_other_version(InputStream &stream);
void write_spdc(const Dataset &data, OutputFile &out, const std::string &source = {});

inline bool is_digit(char c) noexcept { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

inline const char *skip_blanks(const char *p) noexcept {
    while (is_blank(*p)) {
        ++p;
    }
    return p;
}

/// A line ends at \n, at \r\n, or with the text; a lone \r is no line end.
inline bool at_line_end(const char *p, const char *text_end) noexcept {
    return *p == '\n' || p == text_end || (*p == '\r' && (p + 1 == text_end || p[1] == '\n'));
}

/// The start of the next line, from anywhere on this one.
const char *next_line(const char *p, const char *text_end) noexcept;

enum class NumberStatus { ok, no_number, not_finite, too_large };

/// The value of text that parse_number has found to be a number, by std::from_chars. Too small becomes 0.
NumberStatus convert_number(const char *begin, const char *end, double &value) noexcept;

/// Whether "nan" or "inf" in any case stands at p, behind a sign or not.
bool is_not_finite_word(const char *p) noexcept;

/// Appends the digits at q to the number and moves q behind them. With eight bytes that can be read at any place, up to eight
/// digits are one step without a branch on how many there are: pairs of neighbours become one number, then pairs of those. It is
/// those branches that cost: the lengths of numbers cannot be foretold.
template <std::size_t readable> inline void add_digits(const char *&q, std::uint64_t &number) noexcept {
    static constexpr std::uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    if constexpr (readable >= 8 && std::endian::native == std::endian::little) {
        for (;;) {
            std::uint64_t eight = 0;
            std::memcpy(&eight, q, 8);
            eight ^= 0x3030303030303030; // digits become 0 ... 9, all else at least 10
            const std::uint64_t others = (eight | (eight + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0;
            const int count = std::countr_zero(others) / 8;     // digits in front of the first byte that is none
            eight = count == 0 ? 0 : eight << (64 - 8 * count); // zeros in front instead of what is behind
            eight = (10 * eight + (eight >> 8)) & 0x00ff00ff00ff00ff;
            eight = (100 * eight + (eight >> 16)) & 0x0000ffff0000ffff;
            number = powers[count] * number + ((10000 * eight + (eight >> 32)) & 0xffffffff);
            q += count;
            if (count < 8) return;
        }
    }
    for (; is_digit(*q); ++q) {
        number = 10 * number + static_cast<std::uint64_t>(*q - '0');
    }
}

/// Reads [+-] digits [. digits] [e [+-] digits] at p and moves p behind it; p stays where no number stands. `readable`: how many
/// bytes can be read from any place up to the end of the text.
///
/// Up to 19 digits fit 64 bits; where the digits are at most 2^53 and the power of ten at most 10^22, both are exact
/// doubles and one multiplication or division rounds once, which is the correctly rounded value (Clinger 1990). This
/// takes nearly all numbers of real files; std::from_chars takes the others.
template <std::size_t readable = 1> inline NumberStatus parse_number(const char *&p, double &value) noexcept {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *const start = p;
    const bool negative = *p == '-';
    const char *q = p + (*p == '-' || *p == '+' ? 1 : 0);
    const char *const digits = q;
    std::uint64_t mantissa = 0; // wraps beyond 19 digits, and is not used then
    add_digits<1>(q, mantissa); // few in front of the point
    std::int64_t count = q - digits;
    std::int64_t fraction = 0;
    if (*q == '.') {
        const char *const point = ++q;
        add_digits<readable>(q, mantissa);
        fraction = q - point;
        count += fraction;
    }
    if (count == 0) {
        return is_not_finite_word(start) ? NumberStatus::not_finite : NumberStatus::no_number;
    }
    bool simple = FLT_EVAL_METHOD == 0 && count <= 19 && fraction <= 22 && mantissa <= (std::uint64_t{1} << 53);
    if (*q == 'e' || *q == 'E') {
        const char *exponent = q + 1;
        exponent += *exponent == '-' || *exponent == '+' ? 1 : 0;
        if (is_digit(*exponent)) { // otherwise the number ends before the letter
            while (is_digit(*exponent)) {
                ++exponent;
            }
            q = exponent;
            simple = false;
        }
    }
    p = q;
    if (!simple) {
        return convert_number(start, q, value);
    }
    const double magnitude = static_cast<double>(mantissa) / powers[fraction];
    value = negative ? -magnitude : magnitude;
    return NumberStatus::ok;
}

/// Whether float holds the value exactly, so that a matrix of such values can be stored in half the memory.
inline bool fits_float(double value) noexcept {
    return std::abs(value) <= static_cast<double>(FLT_MAX) && static_cast<double>(static_cast<float>(value)) == value;
}

/// Text for a message: in quotes, cut when long, bytes that do not print as \xNN.
std::string quoted(std::string_view text);

/// The quoted word at p, up to a blank or a line end.
std::string quoted_word(const char *p, const char *text_end);

/// What is wrong with a number that could not be read at p: "<what> 'abc' is not a number, expected a finite number".
std::string number_message(const char *p, const char *text_end, NumberStatus status, const std::string &what);

/// Appends the shortest digits that read back as the same double.
void append_number(std::string &line, double value);

/// Appends a whole number.
void append_number(std::string &line, std::int64_t value);

} // namespace spdc
