// Readers and writers of LIBSVM text, CSV and TSV, through the public functions.
#include "spdc/error.h"
#include "spdc/io.h"
#include "support/files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <random>
#include <sstream>
#include <type_traits>

namespace spdc {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using Rows = std::vector<std::vector<double>>;

// Any matrix as full rows: slow and obvious.
Rows dense(const Dataset &data) {
    return std::visit(
        [](const auto &matrix) {
            Rows rows(static_cast<std::size_t>(matrix.rows()),
                      std::vector<double>(static_cast<std::size_t>(matrix.cols())));
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                for (std::int64_t p = 0; p < matrix.row(i).size(); ++p) {
                    rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(matrix.row(i).column(p))] =
                        matrix.row(i).value(p);
                }
            }
            return rows;
        },
        data.matrix);
}

Dataset read_text(const std::string &name, std::string_view text, const ReadOptions &options = {}) {
    const TempDir dir;
    return read_dataset(dir.write(name, text), options);
}

// The message without the folder in front of the file's name.
std::string message_of(const std::string &name, std::string_view text, const ReadOptions &options = {},
                       ErrorKind kind = ErrorKind::bad_file) {
    const TempDir dir;
    const std::string path = dir.write(name, text);
    std::string message = error_of(kind, [&] { read_dataset(path, options); });
    if (const std::size_t found = message.find(path); found != message.npos) {
        message.replace(found, path.size(), name);
    }
    return message;
}

Dataset svm(std::string_view text, const ReadOptions &options = {}) { return read_text("d.svm", text, options); }
Dataset csv(std::string_view text, const ReadOptions &options = {}) { return read_text("d.csv", text, options); }
Dataset csv_label(std::string_view text, const std::string &column) { return csv(text, {.label_column = column}); }
std::string bad_svm(std::string_view text, const ReadOptions &options = {}) {
    return message_of("d.svm", text, options);
}
std::string bad_csv(std::string_view text, const ReadOptions &options = {}) {
    return message_of("d.csv", text, options);
}

TEST(LibsvmReader, ReadsRowsLabelsAndShape) {
    const Dataset data = svm("+1 1:0.5 3:2\n-1 2:1\n");
    EXPECT_EQ(dense(data), (Rows{{0.5, 0, 2}, {0, 1, 0}}));
    EXPECT_THAT(data.targets, ElementsAre(1, -1));
    EXPECT_EQ(data.index_base, 1);
    EXPECT_TRUE(data.label_names.empty());
}

TEST(LibsvmReader, TakesEveryLayoutTheFormatAllows) {
    const Rows expected{{1, 2}, {0, 0}, {0, 3}};
    for (const char *text : {
             "1 1:1 2:2\n0\n-1 2:3\n",                                       // plain
             "1 1:1 2:2\r\n0\r\n-1 2:3\r\n",                                 // CRLF
             "1 1:1 2:2\n0\n-1 2:3",                                         // no final newline
             "1 1:1 2:2\r\n0\r\n-1 2:3\r",                                   // cut inside the last CRLF
             "# head\n\n1 1:1 2:2 # a: 7:7\n \t \n0#none\n-1 2:3#x\n\n#end", // comments and blank lines
             "1\t1:1\t\t2:2 \n  0  \n-1    2:3\t\n",                         // tabs and many blanks
             "1 qid:4 1:1 2:2\n0 qid:5\n-1 qid:12345678901234567890 2:3\n",  // queries
             "+1 1:+1 2:+2.0\n+0 1:0\n-1 1:0.0 2:30e-1\n",                   // signs, exponents, zeros
             "\xef\xbb\xbf"
             "1 01:1 2:2\n0\n-1 2:3\n", // byte order mark, leading zero
         }) {
        const Dataset data = svm(text);
        EXPECT_EQ(dense(data), expected) << text;
        EXPECT_THAT(data.targets, ElementsAre(1, 0, -1)) << text;
    }
}

TEST(LibsvmReader, DoesNotStoreExplicitZeros) {
    const Dataset data = svm("1 1:0 2:5 9:0\n");
    EXPECT_EQ(data.nonzeros(), 1);
    EXPECT_EQ(data.features(), 9);
}

TEST(LibsvmReader, DetectsBaseZeroEvenInALaterRow) {
    const Dataset data = svm("1 1:1 2:2\n-1 0:7\n");
    EXPECT_EQ(data.index_base, 0);
    EXPECT_EQ(dense(data), (Rows{{0, 1, 2}, {7, 0, 0}}));
    EXPECT_EQ(svm("1 0:0 1:4\n").index_base, 0);
}

TEST(LibsvmReader, ForcedBaseShiftsColumns) {
    const Dataset data = svm("1 1:1\n", {.index_base = 0});
    EXPECT_EQ(data.index_base, 0);
    EXPECT_EQ(dense(data), (Rows{{0, 1}}));
    EXPECT_EQ(dense(svm("1 1:1\n", {.index_base = 1})), (Rows{{1}}));
}

TEST(LibsvmReader, FeaturesAskedForAreTheWidth) {
    EXPECT_EQ(svm("1 2:1\n", {.features = 5}).features(), 5);
    EXPECT_EQ(svm("1 5:1\n", {.features = 5}).features(), 5);
    EXPECT_EQ(bad_svm("1 1:1 6:1\n", {.features = 5}),
              "d.svm:1:7: index 6 is beyond the 5 features asked for, expected at most 5");
    EXPECT_THAT(bad_svm("1 5:1\n", {.index_base = 0, .features = 5}), HasSubstr("expected at most 4"));
    EXPECT_THAT(bad_svm("1 1:1 5:1\n1 0:1\n", {.features = 5}),
                testing::AllOf(HasSubstr("d.svm:1:7: index 5"), HasSubstr("begin at 0")));
}

TEST(LibsvmReader, StoresFloatsOnlyWhenNothingIsLost) {
    EXPECT_TRUE(std::holds_alternative<CsrMatrix<float>>(svm("1 1:0.5 2:-3\n0 1:16777216\n").matrix));
    EXPECT_TRUE(std::holds_alternative<CsrMatrix<double>>(svm("1 1:0.5 2:0.0499\n").matrix));
    EXPECT_TRUE(std::holds_alternative<CsrMatrix<double>>(svm("1 1:16777217\n").matrix));
    EXPECT_TRUE(std::holds_alternative<CsrMatrix<double>>(svm("1 1:1e300\n").matrix));
    EXPECT_EQ(dense(svm("1 1:0.0499\n"))[0][0], 0.0499);
}

TEST(LibsvmReader, LargestIndexFits) {
    EXPECT_EQ(svm("1 2147483647:1\n").features(), 2147483647);
    EXPECT_EQ(svm("1 0:1 2147483647:1\n").features(), 2147483648);
}

TEST(LibsvmReader, RejectsBadLabels) {
    EXPECT_EQ(bad_svm("1 1:1\nnan 1:1\n"), "d.svm:2:1: label 'nan' is not finite, expected a finite number");
    EXPECT_THAT(bad_svm("-inf 1:1\n"), HasSubstr("d.svm:1:1: label '-inf' is not finite"));
    EXPECT_THAT(bad_svm("1e999 1:1\n"), HasSubstr("label '1e999' is too large for a double"));
    EXPECT_THAT(bad_svm("spam 1:1\n"), HasSubstr("d.svm:1:1: label 'spam' is not a number"));
    EXPECT_THAT(bad_svm("1,2 1:1\n"), HasSubstr("label '1,2' is not a number"));
    EXPECT_EQ(bad_svm("1 1:1\n  1:0.5 2:1\n"), "d.svm:2:3: no label before '1:0.5', expected 'label index:value ...'");
    EXPECT_THAT(bad_svm("qid:3 1:1\n"), HasSubstr("label 'qid:3' is not a number"));
}

TEST(LibsvmReader, RejectsBadValues) {
    EXPECT_EQ(bad_svm("1 1:1\n1 1:2 4:NaN\n"),
              "d.svm:2:9: value of feature 4: 'NaN' is not finite, expected a finite number");
    EXPECT_THAT(bad_svm("1 1:inf\n"), HasSubstr("d.svm:1:5: value of feature 1: 'inf' is not finite"));
    EXPECT_THAT(bad_svm("1 1:1e999\n"), HasSubstr("'1e999' is too large for a double"));
    EXPECT_THAT(bad_svm("1 1:abc\n"), HasSubstr("'abc' is not a number"));
    EXPECT_THAT(bad_svm("1 1:1.5x\n"), HasSubstr("'1.5x' is not a number"));
    EXPECT_THAT(bad_svm("1 1:0x10\n"), HasSubstr("'0x10' is not a number"));
    EXPECT_THAT(bad_svm("1 1:1:2\n"), HasSubstr("'1:2' is not a number"));
    EXPECT_THAT(bad_svm("1 1:\n"), HasSubstr("d.svm:1:5: value of feature 1: '' is not a number"));
    EXPECT_THAT(bad_svm("1 1: 2\n"), HasSubstr("is not a number"));
    EXPECT_EQ(dense(svm("1 1:1e-400 2:1\n")), (Rows{{0, 1}}));
}

TEST(LibsvmReader, RejectsBadIndices) {
    EXPECT_EQ(bad_svm("1 0:1\n", {.index_base = 1}),
              "d.svm:1:3: index 0, expected 1 or more because the index base is set to 1");
    EXPECT_THAT(bad_svm("1 -3:1\n"), HasSubstr("d.svm:1:3: negative index in '-3:1', expected"));
    EXPECT_THAT(bad_svm("1 2147483648:1\n"), HasSubstr("'2147483648:1' is too large, expected at most 2147483647"));
    EXPECT_THAT(bad_svm("1 99999999999999999999999:1\n"), HasSubstr("is too large"));
    EXPECT_THAT(bad_svm("1 7\n"), HasSubstr("d.svm:1:3: no colon behind the index in '7', expected 'index:value'"));
    EXPECT_THAT(bad_svm("1 1.5:2\n"), HasSubstr("no colon"));
    EXPECT_THAT(bad_svm("1 x:2\n"), HasSubstr("d.svm:1:3: unexpected 'x:2', expected 'index:value'"));
    EXPECT_THAT(bad_svm("1 qid:x 1:2\n"), HasSubstr("unexpected 'qid:x'"));
    EXPECT_THAT(bad_svm("1 :2\n"), HasSubstr("unexpected ':2'"));
}

TEST(LibsvmReader, RejectsDescendingIndex) {
    EXPECT_EQ(bad_svm("1 1:1\n\n1 5:1 3:1\n"),
              "d.svm:3:7: index 3 after index 5, expected ascending indices without repetition");
}

TEST(LibsvmReader, RejectsRepeatedIndex) {
    EXPECT_THAT(bad_svm("1 5:1 5:1\n"), HasSubstr("d.svm:1:7: index 5 after index 5"));
    EXPECT_THAT(bad_svm("1 5:0 5:1\n"), HasSubstr("index 5 after index 5"));
}

TEST(LibsvmReader, RejectsFilesWithoutRows) {
    for (const char *text : {"", "\n", " \t \r\n\n", "# only\n# comments"}) {
        EXPECT_THAT(bad_svm(text), HasSubstr("d.svm:1:1: no rows, expected")) << text;
    }
}

TEST(LibsvmReader, RejectsBinaryBytes) {
    EXPECT_EQ(bad_svm(std::string_view("\x00\x01\x02\n", 4)),
              "d.svm:1:1: label '\\x00\\x01\\x02' is not a number, expected a finite number");
    EXPECT_THAT(bad_svm(std::string_view("1 1:1\0", 6)), HasSubstr("d.svm:1:5: value of feature 1: '1\\x00'"));
    EXPECT_THAT(bad_svm("1 1:1\r1 2:2\n"), HasSubstr("is not a number"));
    EXPECT_THAT(bad_svm("1 \xc3\xa4:1\n"), HasSubstr("unexpected '\\xc3\\xa4:1'"));
}

TEST(LibsvmReader, ReadsALineOfTenMegabytes) {
    std::string line = "1";
    std::int64_t index = 0;
    while (line.size() < 10'000'000) {
        line += ' ' + std::to_string(++index) + ":1";
    }
    EXPECT_EQ(svm(line + "\n-1 2:1\n").nonzeros(), index + 1);
    EXPECT_THAT(bad_svm(line + " x"), HasSubstr("d.svm:1:" + std::to_string(line.size() + 2) + ": unexpected 'x'"));
    const std::string garbage = bad_svm(std::string(10'000'000, 'x'));
    EXPECT_LT(garbage.size(), 200U);
    EXPECT_THAT(bad_svm("1 1:" + std::string(10'000'000, '7')), HasSubstr("too large"));
}

TEST(LibsvmReader, DoesNotAskTheLocale) {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    for (const char *name : {"de_DE.UTF-8", "fr_FR.UTF-8"}) {
        std::setlocale(LC_ALL, name); // where it is installed
        EXPECT_EQ(dense(svm("1 1:0.5\n")), (Rows{{0.5}}));
    }
    std::setlocale(LC_ALL, before.c_str());
}

// The twin: ten lines that nobody needs to doubt.
Dataset slow_libsvm(const std::string &text, int base) {
    Dataset data;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    std::int64_t width = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        data.targets.push_back(std::strtod(word.c_str(), nullptr));
        while (words >> word) {
            columns.push_back(std::stoi(word) - base);
            values.push_back(std::strtod(word.c_str() + word.find(':') + 1, nullptr));
            width = std::max<std::int64_t>(width, columns.back() + 1);
        }
        offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    data.matrix = CsrMatrix<double>::own(width, offsets, columns, values);
    return data;
}

TEST(LibsvmReader, EqualsTheTenLineParserOnRandomData) {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int round = 0; round < 50; ++round) {
        const int base = round % 2;
        std::ostringstream text;
        for (int row = 0; row < 40; ++row) {
            text.precision(1 + static_cast<int>(random() % 17));
            text << normal(random);
            int index = row == 0 ? base : base + static_cast<int>(random() % 5);
            for (int entry = 0; entry < 8; ++entry, index += 1 + static_cast<int>(random() % 9)) {
                text << ' ' << index << ':' << normal(random) * std::pow(10.0, static_cast<int>(random() % 40) - 20);
            }
            text << '\n';
        }
        const Dataset fast = svm(text.str());
        const Dataset slow = slow_libsvm(text.str(), base);
        ASSERT_EQ(fast.index_base, base);
        ASSERT_EQ(fast.targets, slow.targets);
        ASSERT_EQ(dense(fast), dense(slow));
    }
}

TEST(Readers, RandomBytesParseOrThrowButNeverCrash) {
    const TempDir dir;
    std::mt19937 random(5);
    const std::string alphabet = "0123456789 ::,;\t\n\r\"#+-.eEqidnaf\x01\xff";
    for (int round = 0; round < 6000; ++round) {
        std::string bytes;
        const auto size = random() % 60;
        for (unsigned i = 0; i < size; ++i) {
            const bool any = random() % 16 == 0;
            bytes += any ? static_cast<char>(random() % 256) : alphabet[random() % alphabet.size()];
        }
        const std::string path = dir.write("noise", bytes);
        for (const Format format : {Format::automatic, Format::libsvm, Format::csv, Format::tsv}) {
            try {
                check(read_dataset(path, {.format = format}), "noise");
            } catch (const Error &error) {
                ASSERT_EQ(error.kind(), ErrorKind::bad_file) << error.what();
            }
        }
    }
}

TEST(CsvReader, ReadsNumbersWithTheLabelFirst) {
    const Dataset data = csv("1,0.5,2\n-1,0,1\n");
    EXPECT_EQ(dense(data), (Rows{{0.5, 2}, {0, 1}}));
    EXPECT_THAT(data.targets, ElementsAre(1, -1));
    EXPECT_TRUE(data.feature_names.empty());
    EXPECT_EQ(data.index_base, 1);
    EXPECT_TRUE(std::holds_alternative<DenseMatrix<float>>(data.matrix));
    EXPECT_TRUE(std::holds_alternative<DenseMatrix<double>>(csv("1,0.1\n").matrix));
}

TEST(CsvReader, TakesEveryLayoutTheFormatAllows) {
    for (const char *text : {
             "y,a,b\n1,2,3\n4,5,6\n",                                    // header
             "\"y\",\"a\",\"b\"\r\n\"1\",\"2\",\"3\"\r\n4,5,6",          // quotes, CRLF, no final newline
             "# made by hand\n\n y , a , b \n 1 , 2,3\n\n  \n4,5,6\n\n", // comments above, blanks
             "y;a;b\n1;2;3\n4;5;6\n",                                    // semicolons
             "\xef\xbb\xbfy,a,b\n1,2,3\n+4,5.0,6e0\n",                   // byte order mark
         }) {
        const Dataset data = csv(text);
        EXPECT_EQ(dense(data), (Rows{{2, 3}, {5, 6}})) << text;
        EXPECT_THAT(data.targets, ElementsAre(1, 4)) << text;
        EXPECT_THAT(data.feature_names, ElementsAre("a", "b")) << text;
    }
    EXPECT_EQ(dense(read_text("d.tsv", "1\t2\t3\n4\t 5\t6\n")), (Rows{{2, 3}, {5, 6}}));
}

TEST(CsvReader, FindsTheLabelColumnByNameOrNumber) {
    const std::string text = "a,y,b\n2,1,3\n5,4,6\n";
    for (const char *column : {"y", "2", "-2"}) {
        const Dataset data = csv_label(text, column);
        EXPECT_EQ(dense(data), (Rows{{2, 3}, {5, 6}})) << column;
        EXPECT_THAT(data.targets, ElementsAre(1, 4));
        EXPECT_THAT(data.feature_names, ElementsAre("a", "b"));
    }
    EXPECT_THAT(csv_label("1,2,3\n", "-1").targets, ElementsAre(3));
}

TEST(CsvReader, RefusesALabelColumnThatIsNotThere) {
    const auto message = [](const char *text, const char *column) {
        return message_of("d.csv", text, {.label_column = column}, ErrorKind::invalid_argument);
    };
    EXPECT_THAT(message("a,label\n1,2\n", "lable"), HasSubstr("'lable'; did you mean 'label'? known: a, label"));
    EXPECT_THAT(message("a,b\n1,2\n", "3"), HasSubstr("label_column 3, expected a number from 1 to 2"));
    EXPECT_THAT(message("a,b\n1,2\n", "-3"), HasSubstr("label_column -3"));
    EXPECT_THAT(message("a,b\n1,2\n", "0"), HasSubstr("label_column 0"));
    EXPECT_THAT(message("a,b\n1,2\n", "99999999999999999999"), HasSubstr("label_column 99999999999999999999"));
    EXPECT_THAT(bad_csv("1,2\n3,4\n", {.label_column = "y"}),
                HasSubstr("d.csv:1:1: no header, expected one that names"));
}

TEST(CsvReader, NumbersTextLabelsInAscendingOrder) {
    const Dataset data = csv("setosa,1\nvirginica,2\n\"a, b\",3\nsetosa,4\n");
    EXPECT_THAT(data.label_names, ElementsAre("a, b", "setosa", "virginica"));
    EXPECT_THAT(data.targets, ElementsAre(1, 2, 0, 1));
    EXPECT_EQ(data.rows(), 4);
}

TEST(CsvReader, TellsAHeaderFromAFirstRow) {
    EXPECT_EQ(csv("y,1,2\n0,5,6\n").rows(), 1);              // numbers as names, label a number below
    EXPECT_EQ(csv("a,1,2\nb,5,6\n").rows(), 2);              // text labels, no header
    EXPECT_EQ(csv("species,w,h\na,1,2\nb,5,6\n").rows(), 2); // text labels below a header
    EXPECT_EQ(csv("a,1,2\n").rows(), 1);                     // one row with a text label
    EXPECT_EQ(csv("1,,x\n1,2,3\n").rows(), 1);               // an unnamed column beside a named one
    EXPECT_THAT(bad_csv("1,,3\n1,2,3\n"), HasSubstr("d.csv:1:3: field 2 is empty")); // a hole is no name
    EXPECT_THAT(bad_csv("1,NA,3\n1,2,3\n"), HasSubstr("d.csv:1:3: field 2 'NA' is a missing value"));
}

TEST(CsvReader, UnderstandsQuotes) {
    const Dataset data = csv("y,\"a \"\"b\"\"\",\"c,\nd\"\n\"p\"\"q\",\"1\",2\nr,3,4\n");
    EXPECT_THAT(data.feature_names, ElementsAre("a \"b\"", "c,\nd"));
    EXPECT_THAT(data.label_names, ElementsAre("p\"q", "r"));
    EXPECT_EQ(dense(data), (Rows{{1, 2}, {3, 4}}));
    EXPECT_EQ(bad_csv("1,2\n1,\"2\n"), "d.csv:2:3: quoted field without an end, expected a closing '\"'");
    EXPECT_THAT(bad_csv("1,\"2\"x\n"), HasSubstr("d.csv:1:6: 'x' behind a closing quote, expected ','"));
}

TEST(CsvReader, RejectsHolesAndWordsInTheFeatures) {
    EXPECT_THAT(bad_csv("y,a\n1,2\n1,\n"), HasSubstr("d.csv:3:3: field 2 is empty, expected a finite number"));
    EXPECT_THAT(bad_csv("y,a\n1,nan\n"), HasSubstr("d.csv:2:3: field 2 'nan' is not finite"));
    EXPECT_THAT(bad_csv("y,a\n1,-Inf\n"), HasSubstr("field 2 '-Inf' is not finite"));
    EXPECT_THAT(bad_csv("y,a\n1,1e999\n"), HasSubstr("field 2 '1e999' is too large"));
    EXPECT_THAT(bad_csv("y,a\n1,red\n"), HasSubstr("d.csv:2:3: field 2 'red' is not a number"));
    EXPECT_THAT(bad_csv("y,a\n1,?\n"), HasSubstr("field 2 '?' is a missing value"));
    EXPECT_THAT(bad_csv("y,a\n1,1 2\n"), HasSubstr("field 2 '1 2' is not a number"));
}

TEST(CsvReader, RejectsBadLabels) {
    EXPECT_THAT(bad_csv("y,a\n1,2\n,3\n"), HasSubstr("d.csv:3:1: label is empty"));
    EXPECT_THAT(bad_csv("y,a\n1,2\nnan,3\n"), HasSubstr("d.csv:3:1: label 'nan' is not finite"));
    EXPECT_THAT(bad_csv("y,a\n1,2\nb,3\n"),
                HasSubstr("d.csv:3:1: label 'b' is text, but the labels above are numbers"));
    EXPECT_THAT(bad_csv("y,a\nb,2\n1,3\n"), HasSubstr("label '1' is a number, but the labels above are text"));
    EXPECT_THAT(bad_csv("y,a\nb\x01,2\n"), HasSubstr("control bytes in label 'b\\x01'"));
}

TEST(CsvReader, RejectsRaggedAndEmptyFiles) {
    EXPECT_EQ(bad_csv("1,2,3\n1,2\n"), "d.csv:2:1: 2 fields in this row, expected 3 as in the first");
    EXPECT_THAT(bad_csv("1,2,3\n1,2,3,4,\"5\"\n"), HasSubstr("d.csv:2:1: 5 fields in this row, expected 3"));
    EXPECT_THAT(bad_csv(""), HasSubstr("d.csv:1:1: no rows"));
    EXPECT_THAT(bad_csv(" \n\r\n# comment\n"), HasSubstr("d.csv:1:1: no rows"));
    EXPECT_THAT(bad_csv("y,a,b\n"), HasSubstr("no rows below the header"));
    EXPECT_THAT(bad_csv(std::string_view("\x00\x01\x02,\x03\n", 6)), HasSubstr("binary bytes"));
}

TEST(CsvReader, FeaturesAskedForAreTheWidth) {
    const Dataset data = csv("y,a\n1,2\n", {.features = 3});
    EXPECT_EQ(dense(data), (Rows{{2, 0, 0}}));
    EXPECT_NO_THROW(check(data, "padded"));
    EXPECT_THAT(bad_csv("1,2,3\n", {.features = 1}), HasSubstr("2 columns beside the label, expected at most the 1"));
}

TEST(Formats, AreSeenInTheNameOrTheText) {
    EXPECT_EQ(read_text("d.CSV", "1,2\n").features(), 1);
    EXPECT_EQ(read_text("d.tsv.gz", "1\t2\n").features(), 1); // a compressed name on plain text
    EXPECT_EQ(read_text("d", "# c, d\n\n1 7:2\n").features(), 7);
    EXPECT_EQ(read_text("d", "1\t7:2\n").features(), 7);
    EXPECT_EQ(read_text("d.txt", "1,2,3\n").features(), 2);
    EXPECT_EQ(read_text("d.txt", "1;2;3\n").features(), 2);
    EXPECT_EQ(read_text("d.txt", "a,12:30\n1,2\n").features(), 1);
    EXPECT_EQ(read_text("d.txt", "1\t2\t3\n").features(), 2);
    EXPECT_EQ(read_text("d.txt", "1\n2 3:1\n").features(), 3);
    EXPECT_EQ(read_text("d.csv", "1 4:2\n", {.format = Format::libsvm}).features(), 4);
}

TEST(Formats, HaveNames) {
    EXPECT_EQ(parse_format("auto"), Format::automatic);
    EXPECT_EQ(parse_format("libsvm"), Format::libsvm);
    EXPECT_EQ(parse_format("csv"), Format::csv);
    EXPECT_EQ(parse_format("tsv"), Format::tsv);
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [] { parse_format("libsm"); }),
                HasSubstr("unknown format 'libsm'; did you mean 'libsvm'?"));
}

TEST(Formats, RejectBadOptions) {
    const auto message = [](const ReadOptions &options) {
        return message_of("d.svm", "1 1:1\n", options, ErrorKind::invalid_argument);
    };
    EXPECT_THAT(message({.index_base = 2}), HasSubstr("index_base 2, expected 0 or 1"));
    EXPECT_THAT(message({.features = -1}), HasSubstr("features -1"));
    EXPECT_THAT(message({.features = std::int64_t{1} << 40}), HasSubstr("features 1099511627776"));
}

TEST(ReadNumbers, TakesOneOrMoreALine) {
    const TempDir dir;
    EXPECT_THAT(read_numbers(dir.write("w", "# weights\n1\n\n 2.5 # two\r\n-3e1")), ElementsAre(1, 2.5, -30));
    EXPECT_THAT(read_numbers(dir.write("w", "1 2\n3\t4\n"), 2), ElementsAre(1, 2, 3, 4));
}

TEST(ReadNumbers, RejectsOtherText) {
    const TempDir dir;
    const auto message = [&](std::string_view text, std::int64_t columns) {
        return error_of(ErrorKind::bad_file, [&] { read_numbers(dir.write("w", text), columns); });
    };
    EXPECT_THAT(message("1\nx\n", 1), EndsWith("w:2:1: 'x' is not a number, expected a finite number"));
    EXPECT_THAT(message("1\n2 3\n", 1), EndsWith("w:2:3: '3' after the last number, expected 1 a line"));
    EXPECT_THAT(message("1 2\n3\n", 2), EndsWith("w:2:2: 1 numbers on this line, expected 2"));
    EXPECT_THAT(message("nan\n", 1), HasSubstr("not finite"));
    EXPECT_THAT(message("1e999\n", 1), HasSubstr("too large"));
    EXPECT_THAT(message("1,2\n", 1), HasSubstr("'1,2' is not a number"));
    EXPECT_THAT(message("# none\n", 1), HasSubstr("w:1:1: no numbers"));
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [] { read_numbers("w", 0); }), HasSubstr("0 columns"));
}

void expect_same(const Dataset &a, const Dataset &b) {
    EXPECT_EQ(dense(a), dense(b));
    EXPECT_EQ(a.matrix.index(), b.matrix.index());
    EXPECT_EQ(a.targets, b.targets);
    EXPECT_EQ(a.label_names, b.label_names);
    EXPECT_EQ(a.feature_names, b.feature_names);
    EXPECT_EQ(a.index_base, b.index_base);
}

Dataset round_trip(const Dataset &data, const std::string &name) {
    const TempDir dir;
    write_dataset(data, dir.file(name));
    return read_dataset(dir.file(name));
}

TEST(Writers, LibsvmRoundTripsKeepEveryBit) {
    for (const char *text : {"1 1:0.1 3:1e-300\n-1\n0.3 2:123456789.123\n", "1 0:1 5:0.5\n2 3:1\n", "1 1:16777216\n",
                             "1\n", "1 0:0 3:1 9:0\n2 4:1\n", "1 0:0\n", "1 4:0\n"}) {
        const Dataset data = svm(text);
        expect_same(round_trip(data, "out.svm"), data);
    }
}

TEST(Writers, LibsvmFirstRowMarksBaseAndWidthWhereTheDataWouldNot) {
    const TempDir dir;
    Dataset data = svm("1 2:7\n2\n", {.index_base = 0, .features = 5});
    write_dataset(data, dir.file("out"));
    EXPECT_EQ(read_file(dir.file("out")), "1 0:0 2:7 4:0\n2\n");
    data.index_base = 1;
    write_dataset(data, dir.file("out"));
    EXPECT_EQ(read_file(dir.file("out")), "1 3:7 5:0\n2\n");
}

TEST(Writers, DenseDataToLibsvmSkipZeros) {
    const TempDir dir;
    write_dataset(csv("1,0,2\n0.1,3,0\n"), dir.file("out.svm"));
    EXPECT_EQ(read_file(dir.file("out.svm")), "1 2:2\n0.1 1:3\n");
}

TEST(Writers, CsvAndTsvRoundTripsKeepEveryBit) {
    for (const char *text :
         {"1,0.1,2\n-1,1e-300,4\n", "label,a,\"b,\"\"c\"\n1,2,3\n", "label,a,b\nno,1,2\n\" yes\",3,4\n",
          "label,a\n\"#1\",1\n\"NA\",2\n\"x;y\"\"\",3\n", "b;1;2\na;3;4\n"}) {
        const Dataset data = csv(text);
        expect_same(round_trip(data, "out.csv"), data);
        expect_same(round_trip(data, "out.tsv"), data);
    }
}

TEST(Writers, SparseDataToCsvShowZeros) {
    const TempDir dir;
    write_dataset(svm("1 2:2\n-1 1:0.1\n"), dir.file("out.csv"));
    EXPECT_EQ(read_file(dir.file("out.csv")), "1,0,2\n-1,0.1,0\n");
}

TEST(Writers, LibsvmRefusesTextLabelsButTakesNumericNames) {
    const TempDir dir;
    Dataset data = csv("setosa,1\nvirginica,2\n");
    EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { write_dataset(data, dir.file("out.svm")); }),
                HasSubstr("label 'setosa' is text, but LIBSVM labels are numbers; write CSV or TSV"));
    EXPECT_FALSE(std::filesystem::exists(dir.file("out.svm")));
    data.label_names = {"-1", "7.5"};
    write_dataset(data, dir.file("out.svm"));
    EXPECT_EQ(read_file(dir.file("out.svm")), "-1 1:1\n7.5 1:2\n");
}

TEST(Writers, RefuseCompressedNamesAndBrokenData) {
    const TempDir dir;
    Dataset data = svm("1 1:1\n");
    EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { write_dataset(data, dir.file("out.svm.gz")); }),
                HasSubstr("compressed files are read but not written"));
    data.targets.clear();
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [&] { write_dataset(data, dir.file("out.svm")); }),
                HasSubstr("0 targets"));
}

TEST(Writers, ReportAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) {
        GTEST_SKIP() << "no /dev/full here";
    }
    EXPECT_THAT(error_of(ErrorKind::bad_file, [] { write_dataset(svm("1 1:1\n"), "/dev/full"); }),
                HasSubstr("No space left on device"));
}

} // namespace
} // namespace spdc
