// The number scanner that all text readers share, against the standard library.
#include "io_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace spdc {
namespace {

TEST(Numbers, FastPathEqualsTheStandardLibraryBitForBit) {
    std::mt19937_64 random(11);
    std::vector<std::string> texts{"0",
                                   "-0",
                                   ".5",
                                   "5.",
                                   "+1",
                                   "9007199254740992",
                                   "9007199254740993",
                                   "1e22",
                                   "1e23",
                                   "1.e5",
                                   "1E-5",
                                   "1e+5",
                                   "0.1",
                                   "4.9e-324",
                                   "1e308",
                                   "1e-310",
                                   "00000.",
                                   "1e0000",
                                   "0.00000000000000000000000000000000001"};
    for (int i = 0; i < 20000; ++i) {
        std::string digits = std::to_string(random() >> (random() % 64));
        if (random() % 4 != 0) {
            digits.insert(random() % (digits.size() + 1), ".");
        }
        if (random() % 4 == 0) {
            digits += "e" + std::to_string(static_cast<int>(random() % 600) - 300);
        }
        texts.push_back((random() % 3 == 0 ? "-" : "") + digits);
    }
    for (const std::string &text : texts) {
        const char *p = text.c_str();
        double value = 0;
        const double expected = std::strtod(text.c_str(), nullptr);
        const NumberStatus status = parse_number(p, value);
        ASSERT_EQ(p, text.c_str() + text.size()) << text;
        if (std::isinf(expected)) {
            ASSERT_EQ(status, NumberStatus::too_large) << text;
        } else {
            ASSERT_EQ(status, NumberStatus::ok) << text;
            ASSERT_EQ(std::memcmp(&value, &expected, sizeof value), 0) << text;
        }
        const std::string padded = text + std::string(padding, '\0');
        const char *q = padded.c_str();
        double same = 0;
        ASSERT_EQ(parse_number<padding>(q, same), status) << text;
        ASSERT_EQ(q, padded.c_str() + text.size()) << text;
        ASSERT_EQ(std::memcmp(&value, &same, sizeof value), 0) << text;
    }
}

TEST(Numbers, TooSmallIsZeroAndTooLargeIsNot) {
    const std::string long_zero = "0." + std::string(500, '0') + "1";
    const std::string long_digits = "1" + std::string(500, '0');
    for (const std::string &text : {std::string("1e-400"), std::string("-1e-400"), long_zero, long_digits + "e-1000",
                                    std::string("1e-99999999999999999999999"), std::string("0e99999999999999999999")}) {
        const char *p = text.c_str();
        double value = 1;
        EXPECT_EQ(parse_number(p, value), NumberStatus::ok) << text;
        EXPECT_EQ(value, 0) << text;
    }
    for (const std::string &text : {std::string("1e999"), std::string("-1e400"), long_digits, long_zero + "e1000",
                                    std::string("1e99999999999999999999999")}) {
        const char *p = text.c_str();
        double value = 1;
        EXPECT_EQ(parse_number(p, value), NumberStatus::too_large) << text;
    }
}

TEST(Numbers, WordsAndHalvesAreNoNumbers) {
    for (const char *text : {"", "-", "+", ".", "+.", "e5", "abc", "--1", "+-1"}) {
        const char *p = text;
        double value = 0;
        EXPECT_EQ(parse_number(p, value), NumberStatus::no_number) << text;
        EXPECT_EQ(p, text);
    }
    for (const char *text : {"nan", "-NaN", "inf", "+Infinity"}) {
        const char *p = text;
        double value = 0;
        EXPECT_EQ(parse_number(p, value), NumberStatus::not_finite) << text;
    }
}

TEST(Numbers, EightDigitsAtOnceAreTheSameAsOneByOne) {
    std::mt19937_64 random(13);
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (std::uint64_t count = random() % 20; count > 0; --count) text += static_cast<char>('0' + random() % 10);
        text += static_cast<char>(random() % 256); // ends the number, or continues it
        text += std::to_string(random()) + std::string(padding, '\0');
        const char *p = text.c_str(), *q = text.c_str();
        std::uint64_t slow = 1, fast = 1;
        add_digits<1>(p, slow);
        add_digits<padding>(q, fast);
        ASSERT_EQ(p, q) << text;
        ASSERT_EQ(slow, fast) << text;
    }
}

} // namespace
} // namespace spdc
