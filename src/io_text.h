// What the text readers and writers share: numbers, blanks, messages, and the list of formats that io.cpp picks from.
// Scanners here rely on the 0 byte behind InputFile::text(): it is no digit, no blank and no sign, so they stop at it.
#pragma once

#include "input_file.h"
#include "output_file.h"
#include "spdc/io.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace spdc {

Dataset read_libsvm(const InputFile &file, const ReadOptions &options);
void write_libsvm(const Dataset &data, OutputFile &out);

/// CSV and TSV differ in the delimiter only: ',' (or ';' when the first line has no comma), or a tab.
Dataset read_csv(const InputFile &file, const ReadOptions &options, char delimiter);
void write_csv(const Dataset &data, OutputFile &out, char delimiter);

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

/// Reads [+-] digits [. digits] [e [+-] digits] at p and moves p behind it; p stays where no number stands.
///
/// Up to 19 digits fit 64 bits; where the digits are at most 2^53 and the power of ten at most 10^22, both are exact
/// doubles and one multiplication or division rounds once, which is the correctly rounded value (Clinger 1990). This
/// takes nearly all numbers of real files; std::from_chars takes the others.
inline NumberStatus parse_number(const char *&p, double &value) noexcept {
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *const start = p;
    const bool negative = *p == '-';
    const char *q = p + (*p == '-' || *p == '+' ? 1 : 0);
    const char *const digits = q;
    std::uint64_t mantissa = 0; // wraps beyond 19 digits, and is not used then
    for (; is_digit(*q); ++q) {
        mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q - '0');
    }
    std::int64_t count = q - digits;
    std::int64_t fraction = 0;
    if (*q == '.') {
        const char *const point = ++q;
        for (; is_digit(*q); ++q) {
            mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q - '0');
        }
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

/// The quoted word at p, up to a blank, a line end or one of `stops`.
std::string quoted_word(const InputFile &file, const char *p, std::string_view stops = {});

/// Throws for a number that could not be read at `place`: "<what> 'abc' is not a number, expected a finite number".
[[noreturn]] void fail_number(const InputFile &file, const char *place, NumberStatus status, const std::string &what,
                              std::string_view stops = {});

/// Appends the shortest digits that read back as the same double.
void append_number(std::string &line, double value);

/// Appends a whole number.
void append_number(std::string &line, std::int64_t value);

} // namespace spdc
