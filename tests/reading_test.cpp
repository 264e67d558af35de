// LIBSVM text read by several threads: the same data and the same complaints as one thread gives.
#include "input_file.h"
#include "spdc/error.h"
#include "spdc/io.h"
#include "support/files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace spdc {
namespace {

using test::error_of;
using test::TempDir;
using testing::HasSubstr;

constexpr int thread_counts[] = {1, 2, 3, 8};

template <class Row> bool same_row(const Row &a, const Row &b) {
    if (a.size() != b.size()) return false;
    for (std::int64_t p = 0; p < a.size(); ++p) {
        if (a.column(p) != b.column(p) || a.value(p) != b.value(p)) return false;
    }
    return true;
}

void expect_same(const Dataset &a, const Dataset &b) {
    ASSERT_EQ(a.matrix.index(), b.matrix.index());
    ASSERT_EQ(a.rows(), b.rows());
    ASSERT_EQ(a.features(), b.features());
    ASSERT_EQ(a.nonzeros(), b.nonzeros());
    ASSERT_EQ(a.index_base, b.index_base);
    ASSERT_EQ(a.targets, b.targets);
    std::visit(
        [&](const auto &matrix) {
            const auto &other = std::get<std::decay_t<decltype(matrix)>>(b.matrix);
            for (std::int64_t i = 0; i < matrix.rows(); ++i) ASSERT_TRUE(same_row(matrix.row(i), other.row(i))) << i;
        },
        a.matrix);
}

/// Random rows, comments and blank lines of every length, of `bytes` bytes or a little more; `last_value` in the last row.
std::string random_text(std::size_t bytes, unsigned seed, const std::string &last_value, int base = 1) {
    std::mt19937 random(seed);
    std::string text;
    while (text.size() < bytes) {
        if (random() % 50 == 0) text += "# " + std::string(random() % 300, 'x') + "\n\n";
        text += random() % 2 == 0 ? "+1" : "-1";
        int index = base - 1;
        for (unsigned entry = random() % 40; entry > 0; --entry) {
            index += 1 + static_cast<int>(random() % 1000);
            text += ' ' + std::to_string(index) + ':' + std::to_string(random() % 64) + (random() % 2 == 0 ? ".5" : "");
        }
        text += random() % 3 == 0 ? " \r\n" : "\n";
    }
    return text + "1 7:" + last_value;
}

TEST(ParallelReading, AnyNumberOfThreadsGivesTheSameData) {
    const TempDir dir;
    for (const char *last : {"1", "0.1"}) { // the last value alone makes all of them double
        for (const int base : {0, 1}) {
            const std::string path = dir.write("d", random_text(1500000, 3, last, base));
            const Dataset one = read_dataset(path);
            EXPECT_EQ(one.index_base, base);
            EXPECT_EQ(std::holds_alternative<CsrMatrix<float>>(one.matrix), std::string(last) == "1");
            for (const int threads : thread_counts) expect_same(read_dataset(path, {.threads = threads}), one);
        }
    }
}

TEST(ParallelReading, LinesLongerThanABlockAreWhole) {
    const TempDir dir;
    std::string line = "1";
    for (int index = 1; line.size() < 3 * LineBlocks::block_bytes; ++index) line += ' ' + std::to_string(index) + ":2";
    const std::string path = dir.write("d", "-1 1:1\n" + line + "\n-1 2:1\n" + line + "\n#" +
                                                std::string(2 * LineBlocks::block_bytes, '1') + "\n" + line);
    const Dataset one = read_dataset(path);
    EXPECT_EQ(one.rows(), 5);
    EXPECT_EQ(one.nonzeros(), 3 * one.features() + 2);
    for (const int threads : thread_counts) expect_same(read_dataset(path, {.threads = threads}), one);
}

TEST(ParallelReading, TheFirstMistakeIsReportedWithItsLine) {
    const TempDir dir;
    const std::string good = random_text(1500000, 5, "1");
    std::vector<std::size_t> lines{0};
    for (std::size_t at = 0; (at = good.find('\n', at)) != good.npos; ++at) lines.push_back(at + 1);
    std::mt19937 random(9);
    for (const char *mistake : {"spam 1:1", "1 3:1 2:1", "1 1:nan", "1 1:1 x", "1 1", "2:1", "1 -3:1",
                                "1 99999999999:1", "1 1:1e999", "1 1:", "1 1:1\r1"}) {
        std::string text = good;
        const std::size_t first = random() % lines.size(), second = first + random() % (lines.size() - first);
        text.insert(lines[second], std::string(mistake) + "\n");
        text.insert(lines[first], std::string(mistake) + "\n");
        const std::string path = dir.write("d", text);
        const std::string one = error_of(ErrorKind::bad_file, [&] { read_dataset(path); });
        EXPECT_THAT(one, HasSubstr("d:" + std::to_string(first + 1) + ":")) << mistake;
        for (const int threads : thread_counts) {
            EXPECT_EQ(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.threads = threads}); }), one);
        }
    }
}

TEST(ParallelReading, AnIndexThatABaseSeenLaterForbidsKeepsItsPlace) {
    const TempDir dir;
    const std::string filler(2 * LineBlocks::block_bytes, '\n');
    const std::string path = dir.write("d.svm", filler + "1 1:1 5:1\n" + filler + "1 5:1\n" + filler + "1 0:1\n");
    for (const int threads : thread_counts) {
        EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.features = 5, .threads = threads}); }),
                    HasSubstr("d.svm:" + std::to_string(filler.size() + 1) + ":7: index 5 is beyond the 5 features"));
    }
}

TEST(ParallelReading, FormatIsFoundBehindLongComments) {
    const TempDir dir;
    const std::string comments = "#" + std::string(LineBlocks::block_bytes, ':') + "\n#1 1:1\n";
    EXPECT_TRUE(std::holds_alternative<DenseMatrix<float>>(read_dataset(dir.write("c", comments + "1,2\n")).matrix));
    EXPECT_TRUE(std::holds_alternative<CsrMatrix<float>>(read_dataset(dir.write("l", comments + "1 2:1")).matrix));
}

TEST(ParallelReading, ThreadsMustBePositive) {
    const TempDir dir;
    const std::string path = dir.write("d", "1 1:1\n");
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [&] { read_dataset(path, {.threads = 0}); }),
                HasSubstr("threads 0, expected at least 1"));
}

} // namespace
} // namespace spdc
