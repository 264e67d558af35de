// The binary format .spdc: round trips, and no bytes that crash or that pass for other data.
#include "io_spdc.h"
#include "io_text.h"
#include "spdc/error.h"
#include "spdc/io.h"
#include "support/files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace spdc {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using testing::HasSubstr;

/// Everything, in the user's order, as one text.
std::string dump(const Dataset &shuffled) {
    const Dataset data = in_user_order(shuffled);
    std::string text = "storage " + std::to_string(data.matrix.index()) + " base " + std::to_string(data.index_base) +
                       " cols " + std::to_string(data.features()) + "\n";
    for (const std::string &name : data.label_names) text += "label " + name + "\n";
    for (const std::string &name : data.feature_names) text += "feature " + name + "\n";
    std::visit(
        [&](const auto &matrix) {
            for (std::int64_t i = 0; i < matrix.rows(); ++i) {
                append_number(text, data.targets[static_cast<std::size_t>(i)]);
                text += " weight ";
                append_number(text, data.weights.empty() ? -1.0 : data.weights[static_cast<std::size_t>(i)]);
                for (std::int64_t p = 0; p < matrix.row(i).size(); ++p) {
                    text += ' ' + std::to_string(matrix.row(i).column(p)) + ':';
                    append_number(text, matrix.row(i).value(p));
                }
                text += '\n';
            }
        },
        data.matrix);
    return text;
}

Dataset read_text(const std::string &name, const std::string &text) {
    const TempDir dir;
    return read_dataset(dir.write(name, text));
}

/// One data set of each storage, with and without names, weights and rows that are empty.
std::vector<Dataset> samples() {
    std::vector<Dataset> all{read_text("a", "1 1:0.5 3:2\n-1\n-1 2:1\n1 1:3 2:4 3:5\n"),
                             read_text("b", "1 0:0.1 7:2\n2 2:1e-300\n3\n"),
                             read_text("c.csv", "1,2,3\n-1,0,0.5\n7,8,9\n"),
                             read_text("d.csv", "label,x,\"y \"\"z\"\nno,0.1,2\nyes,3,4\nperhaps,5,6\n"),
                             read_text("e", "1\n2\n"),
                             read_text("f.csv", "label\n1\n2\n")};
    all[1].weights = {1, 0, 2.5};
    return all;
}

std::string spdc_bytes(const Dataset &data) {
    const TempDir dir;
    write_dataset(data, dir.file("x.spdc"));
    return read_file(dir.file("x.spdc"));
}

TEST(SpdcFile, RoundTripsKeepEverything) {
    const TempDir dir;
    for (const Dataset &data : samples()) {
        const std::string path = dir.file("x.spdc");
        write_dataset(data, path);
        const Dataset back = read_dataset(path);
        EXPECT_EQ(dump(back), dump(data));
        EXPECT_EQ(back.row_order.size(), data.targets.size());
        write_dataset(back, dir.file("y.spdc")); // what is shuffled stays as it is
        EXPECT_EQ(read_file(dir.file("y.spdc")), read_file(path));
    }
}

TEST(SpdcFile, IsKnownByItsBytesAndReadFromAnywhere) {
    const TempDir dir;
    const Dataset data = samples()[0];
    const std::string path = dir.write("plain.csv", spdc_bytes(data));
    EXPECT_EQ(dump(read_dataset(path)), dump(data));
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.format = Format::libsvm}); }),
                HasSubstr("is not a number"));
    const std::string text = dir.write("t.spdc", "1 1:1\n");
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(text); }), HasSubstr("not a .spdc file"));
}

TEST(SpdcFile, RowsAreInARandomOrderThatTheUserDoesNotSee) {
    const TempDir dir;
    std::string text;
    for (int i = 0; i < 1000; ++i) text += std::to_string(i) + " 1:1\n";
    const Dataset data = read_text("d", text);
    write_dataset(data, dir.file("x.spdc"));
    const Dataset back = read_dataset(dir.file("x.spdc"));
    double moved = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
        EXPECT_EQ(back.targets[i], static_cast<double>(back.row_order[i]));
        moved += std::abs(back.targets[i] - static_cast<double>(i));
    }
    EXPECT_NEAR(moved / 1000, 333, 50); // of a random permutation
    std::vector<double> numbers(2000);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    EXPECT_EQ(from_user_order(back, in_user_order(back, numbers, 2), 2), numbers);
    EXPECT_EQ(in_user_order(back, back.targets), data.targets);
    write_dataset(back, dir.file("back.svm"));
    EXPECT_EQ(read_file(dir.file("back.svm")), text);
}

TEST(SpdcFile, OpeningLeavesTheEntriesAlone) {
    const TempDir dir;
    std::string bytes = spdc_bytes(samples()[1]);
    bytes[bytes.size() - 128 + 1] ^= 1; // in the values
    const std::string path = dir.write("x.spdc", bytes);
    const Dataset data = read_dataset(path, {.check_entries = false});
    EXPECT_EQ(data.rows(), 3);
    for (int round = 0; round < 2; ++round) { // it stays wrong
        EXPECT_THAT(
            error_of(ErrorKind::bad_file, [&] { check(data, "data"); }),
            HasSubstr("x.spdc: damaged: the values do not fit their checksum; make the file again, with spdc convert, "
                      "or delete it if --cache made it"));
    }
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { select_rows(data.matrix, data.row_order); }), HasSubstr("damaged"));
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path); }), HasSubstr("damaged"));
}

TEST(SpdcFile, ThreadsFindTheSameDamage) {
    constexpr std::int64_t rows = 3000, cols = 100; // enough entries for threads to be worth it
    Dataset data;
    data.matrix = DenseMatrix<float>::own(rows, cols, std::vector<float>(rows * cols, 2.0F));
    data.targets.assign(rows, 1.0);
    const TempDir dir;
    std::string bytes = spdc_bytes(data);
    const std::size_t values =
        bytes.size() - 64 - rows * cols * sizeof(float); // whole lines of 64 bytes, then the sums
    const auto found = [&](const std::string &damaged, int threads) {
        const std::string path = dir.write("x.spdc", damaged);
        return error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.threads = threads}); });
    };
    EXPECT_EQ(read_dataset(dir.write("x.spdc", bytes), {.threads = 3}).rows(), rows);
    bytes[values + 4 * cols * 2000] ^= 1;
    EXPECT_THAT(found(bytes, 3), HasSubstr("the values do not fit their checksum"));
    for (const std::size_t row : {2500, 700}) { // two NaN: the first is named
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(bytes.data() + values + row * cols * sizeof nan, &nan, sizeof nan);
    }
    EXPECT_THAT(found(bytes, 3), HasSubstr("row 700"));
    EXPECT_EQ(found(bytes, 3), found(bytes, 1));
}

TEST(SpdcFile, OptionsThatTheFileCannotFollowAreErrors) {
    const TempDir dir;
    const std::string path = dir.write("x.spdc", spdc_bytes(samples()[0]));
    EXPECT_EQ(read_dataset(path, {.index_base = 1, .features = 9}).features(), 9);
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.index_base = 0}); }),
                HasSubstr("made with index base 1, but 0 is asked for"));
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.features = 2}); }),
                HasSubstr("3 features, expected at most the 2 asked for"));
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.label_column = "2"}); }),
                HasSubstr("label column"));
}

TEST(SpdcFile, EveryDamagedByteIsFoundOrMeansNothing) {
    const TempDir dir;
    for (const Dataset &data : samples()) {
        const std::string bytes = spdc_bytes(data), good = dump(data);
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            for (const unsigned char flip : {1, 0x80, 0xff}) {
                std::string damaged = bytes;
                damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
                const std::string path = dir.write("x.spdc", damaged);
                try {
                    ASSERT_EQ(dump(read_dataset(path)), good) << at;
                } catch (const Error &error) {
                    ASSERT_EQ(error.kind(), ErrorKind::bad_file) << error.what();
                }
            }
        }
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const std::string path = dir.write("x.spdc", bytes.substr(0, size));
            EXPECT_NE(error_of(ErrorKind::bad_file, [&] { read_dataset(path); }), "") << size;
        }
        EXPECT_NE(error_of(ErrorKind::bad_file, [&] { read_dataset(dir.write("x.spdc", bytes + '\0')); }), "");
    }
}

/// Changes some bytes and mends the checksums, as somebody would who wants to be believed.
std::string forged(std::string file, std::size_t place, std::int64_t number, std::size_t bytes) {
    std::memcpy(file.data() + place, &number, bytes);
    SpdcHeader header{};
    std::memcpy(&header, file.data(), sizeof header);
    const SpdcLayout layout(header);
    if (std::max({header.rows, header.entries}) > file.size() || layout.end != file.size()) return file;
    const std::uint64_t wide = header.storage % 2 == 1 ? 8 : 4;
    const std::uint64_t sections[][2] = {{0, layout.offsets},
                                         {layout.offsets, header.storage < 2 ? 8 * (header.rows + 1) : 0},
                                         {layout.columns, header.storage < 2 ? 4 * header.entries : 0},
                                         {layout.values, wide * header.entries}};
    for (std::size_t k = 0; k < 4; ++k) {
        Checksum sum;
        sum.add(file.data() + sections[k][0], sections[k][1]);
        const std::uint64_t value = sum.value();
        std::memcpy(file.data() + layout.sums + 8 * k, &value, 8);
    }
    return file;
}

TEST(SpdcFile, ChecksumsOfBlocksAreThoseOfTheWhole) {
    std::mt19937_64 random(7);
    std::vector<char> bytes(3 * Checksum::block + 1000);
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, Checksum::block - 1, Checksum::block,
                                   Checksum::block + 1, 3 * Checksum::block, bytes.size()}) {
        Checksum whole, pieces, blocks;
        whole.add(bytes.data(), size);
        for (std::size_t begin = 0; begin < size;) {
            const std::size_t count = std::min<std::size_t>(1 + random() % 100000, size - begin);
            pieces.add(bytes.data() + begin, count);
            begin += count;
        }
        for (std::size_t begin = 0; begin < size; begin += Checksum::block) {
            blocks.add_block(Checksum::of_block(bytes.data() + begin, std::min(Checksum::block, size - begin)));
        }
        EXPECT_EQ(pieces.value(), whole.value()) << size;
        EXPECT_EQ(blocks.value(), whole.value()) << size;
        if (size == 0) continue;
        bytes[random() % size] ^= 1;
        Checksum other;
        other.add(bytes.data(), size);
        EXPECT_NE(other.value(), whole.value()) << size;
    }
}

TEST(SpdcFile, ForgingNothingChangesNothing) {
    for (const Dataset &data : samples()) {
        const std::string bytes = spdc_bytes(data);
        std::int64_t same = 0;
        std::memcpy(&same, bytes.data() + 200, 8);
        EXPECT_EQ(forged(bytes, 200, same, 8), bytes);
    }
}

TEST(SpdcFile, RightChecksumsDoNotMakeWrongDataRight) {
    const TempDir dir;
    std::mt19937_64 random(3);
    int refused = 0, tries = 0;
    for (const Dataset &data : samples()) {
        const std::string bytes = spdc_bytes(data);
        for (std::size_t place = 8; place + 8 <= bytes.size(); place += 4) {
            for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 40,
                                              std::int64_t{0x7ff0000000000000}, static_cast<std::int64_t>(random())}) {
                for (const std::size_t width : {4, 8}) {
                    ++tries;
                    try {
                        dump(read_dataset(dir.write("x.spdc", forged(bytes, place, number, width))));
                    } catch (const Error &error) {
                        ASSERT_EQ(error.kind(), ErrorKind::bad_file) << error.what();
                        ++refused;
                    }
                }
            }
        }
    }
    EXPECT_GT(refused, tries / 10);
    EXPECT_LT(refused, tries); // some are other data, well formed
}

/// Rows are checked many at a time, on several threads; what is wrong is said of the first one all the same.
TEST(SpdcFile, TheFirstBadEntryIsNamedForAnyThreads) {
    const TempDir dir;
    constexpr std::int64_t rows = 210000, width = 3; // enough for the threads to share
    std::string text;
    for (std::int64_t i = 0; i < rows; ++i) text += i % 2 == 0 ? "1 1:1 3:2.5 7:3\n" : "-1 2:0.1 3:2 5:0.3\n";
    const std::string bytes = spdc_bytes(read_dataset(dir.write("x.svm", text)));
    SpdcHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    ASSERT_EQ(header.entries, static_cast<std::uint64_t>(rows * width));
    ASSERT_EQ(header.storage, 1U);
    const SpdcLayout layout(header);
    constexpr std::int64_t first = 41234, later = 52000;
    const auto value_at = [&](std::int64_t entry) { return layout.values + 8 * static_cast<std::uint64_t>(entry); };
    const auto column_at = [&](std::int64_t entry) { return layout.columns + 4 * static_cast<std::uint64_t>(entry); };
    constexpr std::int64_t infinite = 0x7ff0000000000000;
    const std::string bad_value = forged(bytes, value_at(first * width + 2), infinite, 8),
                      bad_column = forged(bytes, column_at(first * width + 1), 7, 4),
                      bad_offset = forged(bytes, layout.offsets + 8 * first, (first - 1) * width - 1, 8),
                      // where a thread's part of the offsets ends and the next begins
        offset_between = forged(bytes, layout.offsets + 8 * 32768, 32767 * width - 1, 8),
                      last_offset = forged(bytes, layout.offsets + 8 * rows, rows * width + 1, 8);
    std::string damaged = bytes;
    ++damaged[layout.offsets + 8 * later];
    for (const int threads : {1, 4}) {
        const auto error = [&](const std::string &file) {
            const std::string path = dir.write("x.spdc", forged(file, value_at(later * width), infinite, 8));
            return error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.threads = threads}); });
        };
        EXPECT_THAT(error(bad_value), HasSubstr("row 41234, column")) << threads;
        EXPECT_THAT(error(bad_value), HasSubstr("value inf")) << threads;
        EXPECT_THAT(error(bad_column), HasSubstr("row 41234: column 7 after column")) << threads;
        EXPECT_THAT(error(bytes), HasSubstr("row 52000, column")) << threads;
        EXPECT_THAT(error(bad_offset), HasSubstr("offset 123698 of row 41234 follows 123699")) << threads;
        EXPECT_THAT(error(offset_between), HasSubstr("offset 98300 of row 32768 follows 98301")) << threads;
        EXPECT_THAT(error(last_offset), HasSubstr("last offset 630001, expected at most the 630000 entries"))
            << threads;
        const std::string path = dir.write("damaged.spdc", damaged);
        EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(path, {.threads = threads}); }),
                    HasSubstr("the row offsets do not fit their checksum"))
            << threads;
    }
}

} // namespace
} // namespace spdc
