// InputFile and OutputFile: compression, standard streams, devices, links, permissions, full disks.
#include "input_file.h"
#include "io_text.h"
#include "output_file.h"
#include "spdc/io.h"
#include "support/files.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef SPDC_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef SPDC_HAVE_BZIP2
#include <bzlib.h>
#endif
#ifdef SPDC_HAVE_LZMA
#include <lzma.h>
#endif
#ifdef SPDC_HAVE_ZSTD
#include <zstd.h>
#endif

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace spdc {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

// Digits that do not repeat, so that compressed files have blocks to cut and to damage.
std::string sample_text(std::size_t lines = 20000) {
    std::mt19937 random(7);
    std::string text;
    for (std::size_t i = 0; i < lines; ++i) {
        text += "1 3:" + std::to_string(random()) + "\n";
    }
    return text;
}

struct Codec {
    const char *name;
    std::string magic;
    bool built_in;
    std::function<std::string(const std::string &)> pack;
};

#ifdef SPDC_HAVE_ZLIB
std::string pack_gzip(const std::string &text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef *>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}
#endif
#ifdef SPDC_HAVE_BZIP2
std::string pack_bzip2(const std::string &text) {
    std::string out(text.size() + text.size() / 50 + 700, '\0');
    auto size = static_cast<unsigned int>(out.size());
    EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char *>(text.data()),
                                       static_cast<unsigned int>(text.size()), 1, 0, 0),
              BZ_OK);
    out.resize(size);
    return out;
}
#endif
#ifdef SPDC_HAVE_LZMA
std::string pack_xz(const std::string &text) {
    std::string out(lzma_stream_buffer_bound(text.size()), '\0');
    std::size_t size = 0;
    EXPECT_EQ(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t *>(text.data()),
                                      text.size(), reinterpret_cast<std::uint8_t *>(out.data()), &size, out.size()),
              LZMA_OK);
    out.resize(size);
    return out;
}
#endif
#ifdef SPDC_HAVE_ZSTD
std::string pack_zstd(const std::string &text) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1); // as the zstd program does
    std::string out(ZSTD_compressBound(text.size()), '\0');
    const std::size_t size = ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
    EXPECT_EQ(ZSTD_isError(size), 0U);
    out.resize(size);
    ZSTD_freeCCtx(context);
    return out;
}
#endif

std::vector<Codec> codecs() {
    std::vector<Codec> all{{"gzip", "\x1f\x8b\x08", false, {}},
                           {"bzip2", "BZh91AY&SY", false, {}},
                           {"xz", std::string("\xfd\x37zXZ\x00", 6), false, {}},
                           {"zstd", "\x28\xb5\x2f\xfd", false, {}}};
#ifdef SPDC_HAVE_ZLIB
    all[0].built_in = true;
    all[0].pack = pack_gzip;
#endif
#ifdef SPDC_HAVE_BZIP2
    all[1].built_in = true;
    all[1].pack = pack_bzip2;
#endif
#ifdef SPDC_HAVE_LZMA
    all[2].built_in = true;
    all[2].pack = pack_xz;
#endif
#ifdef SPDC_HAVE_ZSTD
    all[3].built_in = true;
    all[3].pack = pack_zstd;
#endif
    return all;
}

std::vector<Codec> built_in_codecs() {
    std::vector<Codec> present;
    for (const Codec &codec : codecs()) {
        if (codec.built_in) {
            present.push_back(codec);
        }
    }
    return present;
}

std::string bad_input(const std::string &path) {
    return error_of(ErrorKind::bad_file, [&] { InputFile file(path); });
}

TEST(InputFile, ReadsPlainTextAndEndsItWithAZeroByte) {
    const TempDir dir;
    const InputFile file(dir.write("a", "1 2:3\n"));
    EXPECT_EQ(file.text(), "1 2:3\n");
    EXPECT_EQ(file.text().data()[6], '\0');
}

TEST(InputFile, TakesAwayAByteOrderMark) {
    const TempDir dir;
    EXPECT_EQ(InputFile(dir.write("a", "\xef\xbb\xbf"
                                       "a,b"))
                  .text(),
              "a,b");
}

TEST(InputFile, ReadsEveryCompressionWhateverTheNameSays) {
    const TempDir dir;
    const std::string text = sample_text();
    for (const Codec &codec : built_in_codecs()) {
        EXPECT_EQ(InputFile(dir.write("data.txt", codec.pack(text))).text(), text) << codec.name;
        EXPECT_EQ(InputFile(dir.write("data.txt", codec.pack(""))).text(), "") << codec.name;
    }
}

TEST(InputFile, ReadsConcatenatedCompressedStreams) {
    const TempDir dir;
    for (const Codec &codec : built_in_codecs()) {
        const std::string bytes = codec.pack("1 1:1\n") + codec.pack("") + codec.pack("2 1:2\n");
        EXPECT_EQ(InputFile(dir.write("a", bytes)).text(), "1 1:1\n2 1:2\n") << codec.name;
    }
}

TEST(InputStream, GivesTheSameLinesHoweverTheyAreRead) {
    const TempDir dir;
    const std::string text = sample_text(100000) + "no end";
    const std::string plain = dir.write("plain", text);
    std::vector<std::string> paths{plain};
    for (const Codec &codec : codecs()) {
        if (codec.built_in) paths.push_back(dir.write(codec.name, codec.pack(text)));
    }
    for (const std::string &path : paths) {
        InputStream stream(path);
        EXPECT_EQ(stream.peek(100).substr(0, 100), text.substr(0, 100));
        std::string found(3, ' ');
        EXPECT_EQ(stream.read(found.data(), 3), 3U);
        LineBlocks blocks(stream);
        for (ByteBuffer block; blocks.next(block);) {
            found += text_of(block);
            EXPECT_TRUE(found.ends_with('\n') || found.size() == text.size());
            EXPECT_EQ(std::string_view(block.data() + block.size(), padding), std::string_view("\0\0\0\0\0\0\0\0", 8));
        }
        EXPECT_TRUE(found == text) << path;
        EXPECT_EQ(stream.position(), stream.size());
    }
}

// Damaged bytes may read like faulty text; that they are damaged is the better news.
TEST(InputStream, DamageIsReportedBeforeWhatItDoesToTheText) {
    const TempDir dir;
    const std::string text = sample_text() + "spam\n" + sample_text();
    for (const Codec &codec : codecs()) {
        if (!codec.built_in) continue;
        const std::string bytes = codec.pack(text);
        const std::string cut = dir.write("cut", bytes.substr(0, bytes.size() - 20)), whole = dir.write("whole", bytes);
        for (const int threads : {1, 2, 8}) {
            const ReadOptions options{.threads = threads};
            EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(whole, options); }),
                        HasSubstr("whole:20001:1:"));
            EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { read_dataset(cut, options); }),
                        HasSubstr("compressed data"))
                << codec.name;
        }
    }
}

TEST(InputFile, SaysThatCompressedDataEndEarly) {
    const TempDir dir;
    const std::string text = sample_text();
    for (const Codec &codec : built_in_codecs()) {
        const std::string whole = codec.pack(text);
        for (const std::size_t size : {whole.size() - 1, whole.size() - 4, whole.size() / 2, std::size_t{40},
                                       std::size_t{12}, codec.magic.size()}) {
            const std::string path = dir.write("cut", whole.substr(0, size));
            EXPECT_THAT(bad_input(path), HasSubstr(std::string(codec.name) + " compressed data end early"))
                << "first " << size << " of " << whole.size();
        }
        const std::string second_cut = whole + whole.substr(0, whole.size() / 2);
        EXPECT_THAT(bad_input(dir.write("cut", second_cut)), HasSubstr("compressed data end early")) << codec.name;
    }
}

TEST(InputFile, NoticesDamagedCompressedData) {
    const TempDir dir;
    const std::string text = sample_text();
    for (const Codec &codec : built_in_codecs()) {
        std::string bytes = codec.pack(text);
        for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 16; ++i) {
            bytes[i] = static_cast<char>(~bytes[i]);
        }
        EXPECT_THAT(bad_input(dir.write("bad", bytes)), HasSubstr(std::string(codec.name) + " compressed data"))
            << codec.name;
        const std::string followed = codec.pack(text) + "these bytes belong to nobody";
        EXPECT_THAT(bad_input(dir.write("bad", followed)), HasSubstr("corrupted")) << codec.name;
    }
}

TEST(InputFile, SurvivesEveryDamagedByteOfASmallStream) {
    const TempDir dir;
    for (const Codec &codec : built_in_codecs()) {
        const std::string bytes = codec.pack(sample_text(10));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            std::string damaged = bytes;
            damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
            try {
                InputFile file(dir.write("bad", damaged));
            } catch (const Error &error) {
                EXPECT_EQ(error.kind(), ErrorKind::bad_file) << error.what();
            }
        }
    }
}

TEST(InputFile, SaysWhichLibraryABuildLeftOut) {
    const TempDir dir;
    for (const Codec &codec : codecs()) {
        if (!codec.built_in) {
            const std::string path = dir.write("a", codec.magic + "more");
            EXPECT_THAT(error_of(ErrorKind::unsupported, [&] { InputFile file(path); }),
                        HasSubstr(std::string("is ") + codec.name + " compressed, but this build was made without"));
        }
    }
}

TEST(InputFile, TakesTextThatBeginsLikeBzip2ForText) {
    const TempDir dir;
    EXPECT_EQ(InputFile(dir.write("a", "BZh9,b\n")).text(), "BZh9,b\n");
}

TEST(InputFile, NamesMissingFilesAndDirectories) {
    const TempDir dir;
    EXPECT_THAT(bad_input(dir.file("none")), HasSubstr("none: cannot open: No such file"));
    EXPECT_THAT(bad_input(dir.path().string()), HasSubstr("is a directory, expected a file"));
}

// Root may read and write everything, so be somebody else for a while.
class AsOrdinaryUser {
  public:
    AsOrdinaryUser() : was_root_(::geteuid() == 0) {
        if (was_root_) {
            EXPECT_EQ(::seteuid(65534), 0);
        }
    }
    AsOrdinaryUser(const AsOrdinaryUser &) = delete;
    AsOrdinaryUser &operator=(const AsOrdinaryUser &) = delete;
    ~AsOrdinaryUser() {
        if (was_root_) {
            EXPECT_EQ(::seteuid(0), 0);
        }
    }

  private:
    bool was_root_;
};

TEST(InputFile, NamesUnreadableFiles) {
    const TempDir dir;
    const std::string path = dir.write("secret", "1 1:1\n");
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
    const AsOrdinaryUser user;
    EXPECT_THAT(bad_input(path), HasSubstr("secret: cannot open: Permission denied"));
}

TEST(InputFile, ReadsPipesToTheirEnd) {
    const TempDir dir;
    const std::string path = dir.file("pipe");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string text = sample_text();
    std::thread writer([&] { std::ofstream(path) << text; });
    const InputFile file(path);
    writer.join();
    EXPECT_EQ(file.text(), text);
}

TEST(InputFile, ReadsStandardInputAsDash) {
    const TempDir dir;
    const std::string path = dir.write("a", "1 1:1\nx\n");
    const int saved = ::dup(STDIN_FILENO);
    const int opened = ::open(path.c_str(), O_RDONLY);
    ::dup2(opened, STDIN_FILENO);
    const InputFile file("-");
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
    ::close(opened);
    EXPECT_EQ(file.text(), "1 1:1\nx\n");
    EXPECT_EQ(error_of(ErrorKind::bad_file, [&] { file.fail_at(file.text().data() + 6, "bad"); }),
              "standard input:2:1: bad");
}

void write_all(const std::string &path, std::string_view text) {
    OutputFile out(path);
    out.write(text);
    out.commit();
}

std::string bad_output(const std::string &path, std::string_view text = "text") {
    return error_of(ErrorKind::bad_file, [&] { write_all(path, text); });
}

std::size_t count_files(const TempDir &dir) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()));
}

TEST(OutputFile, AppearsAtCommitAndLeavesNothingElse) {
    const TempDir dir;
    const std::string path = dir.file("out");
    const std::string text = sample_text();
    {
        OutputFile out(path);
        out.write(text);
        out.write("end\n");
        EXPECT_FALSE(fs::exists(path));
        out.commit();
    }
    EXPECT_EQ(read_file(path), text + "end\n");
    EXPECT_EQ(count_files(dir), 1U);
}

TEST(OutputFile, LeavesTheFormerFileWithoutCommit) {
    const TempDir dir;
    const std::string path = dir.write("out", "former");
    {
        OutputFile out(path);
        out.write(sample_text());
    }
    EXPECT_EQ(read_file(path), "former");
    EXPECT_EQ(count_files(dir), 1U);
}

TEST(OutputFile, TwoAtOnceDoNotMeet) {
    const TempDir dir;
    OutputFile first(dir.file("a"));
    OutputFile second(dir.file("b"));
    first.write("first");
    second.write("second");
    second.commit();
    first.commit();
    EXPECT_EQ(read_file(dir.file("a")), "first");
    EXPECT_EQ(read_file(dir.file("b")), "second");
}

TEST(OutputFile, KeepsThePermissionsOfAnExistingFile) {
    const TempDir dir;
    const std::string path = dir.write("out", "former");
    ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
    write_all(path, "new");
    EXPECT_EQ(read_file(path), "new");
    EXPECT_EQ(static_cast<unsigned>(fs::status(path).permissions()), 0640U);
}

TEST(OutputFile, GivesANewFileTheUsualPermissions) {
    const TempDir dir;
    const mode_t mask = ::umask(022);
    write_all(dir.file("out"), "new");
    ::umask(mask);
    EXPECT_EQ(static_cast<unsigned>(fs::status(dir.file("out")).permissions()), 0644U);
}

TEST(OutputFile, WritesThroughSymbolicLinks) {
    const TempDir dir;
    fs::create_directory(dir.path() / "sub");
    const std::string real = dir.write("sub/real", "former");
    fs::create_symlink("sub/real", dir.file("middle"));
    fs::create_symlink("middle", dir.file("link"));
    write_all(dir.file("link"), "new");
    EXPECT_TRUE(fs::is_symlink(dir.file("link")));
    EXPECT_TRUE(fs::is_symlink(dir.file("middle")));
    EXPECT_EQ(read_file(real), "new");
    fs::create_symlink("sub/later", dir.file("dangling"));
    write_all(dir.file("dangling"), "later");
    EXPECT_TRUE(fs::is_symlink(dir.file("dangling")));
    EXPECT_EQ(read_file(dir.file("sub/later")), "later");
}

TEST(OutputFile, WritesPipesDirectly) {
    const TempDir dir;
    const std::string path = dir.file("pipe");
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    std::string received;
    std::thread reader([&] { received = read_file(path); });
    write_all(path, "through");
    reader.join();
    EXPECT_EQ(received, "through");
    EXPECT_TRUE(fs::is_fifo(path));
}

TEST(OutputFile, NeverRenamesOverADevice) {
    write_all("/dev/null", "gone");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(OutputFile, ReportsAFullDisk) {
    if (!fs::exists("/dev/full")) {
        GTEST_SKIP() << "no /dev/full here";
    }
    EXPECT_EQ(bad_output("/dev/full"), "/dev/full: cannot write: No space left on device");
    EXPECT_EQ(bad_output("/dev/full", sample_text(100000)), "/dev/full: cannot write: No space left on device");
    EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(OutputFile, ReportsWhatCannotBeOpened) {
    const TempDir dir;
    const std::string file = dir.write("file", "");
    EXPECT_THAT(bad_output(dir.path().string()), HasSubstr("Is a directory"));
    EXPECT_THAT(bad_output(dir.file("no/such/folder")), HasSubstr("cannot open for writing: No such file"));
    EXPECT_THAT(bad_output(file + "/below"), HasSubstr("Not a directory"));
    EXPECT_THAT(bad_output(""), HasSubstr("cannot open for writing"));
    EXPECT_THAT(bad_output(dir.file("new/")), HasSubstr("cannot open for writing"));
    EXPECT_THAT(bad_output("/dev/fd/987654"), HasSubstr("Bad file descriptor"));
}

TEST(OutputFile, DoesNotReplaceAReadOnlyFile) {
    const TempDir dir;
    const std::string path = dir.write("fixed", "former");
    ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
    ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
    const AsOrdinaryUser user;
    EXPECT_THAT(bad_output(path), HasSubstr("Permission denied"));
    EXPECT_EQ(read_file(path), "former");
}

TEST(OutputFile, ReportsAFolderThatMayNotBeWritten) {
    const TempDir dir;
    ASSERT_EQ(::chmod(dir.path().c_str(), 0555), 0);
    const AsOrdinaryUser user;
    EXPECT_THAT(bad_output(dir.file("new")), HasSubstr("new: cannot open for writing: Permission denied"));
}

TEST(OutputFile, WritesStandardOutputAsDashAndByItsNames) {
    const TempDir dir;
    for (const std::string path : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
        const int saved = ::dup(STDOUT_FILENO);
        const int opened = ::open(dir.file("shown").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        std::fflush(stdout);
        ::dup2(opened, STDOUT_FILENO);
        write_all(path, "one ");
        write_all(path, "two");
        ::dup2(saved, STDOUT_FILENO);
        ::close(saved);
        ::close(opened);
        EXPECT_EQ(read_file(dir.file("shown")), "one two") << path;
    }
}

TEST(WrittenLines, HaveTheDigitsOfEachNumberWhateverCameBefore) {
    std::mt19937_64 random(3);
    std::vector<double> numbers{0.0, -0.0, 5e-324, -1.7976931348623157e+308, -2.2250738585072014e-308, 1e23};
    for (int k = 0; k < 5000; ++k) numbers.push_back(std::bit_cast<double>(random()));
    for (int k = 0; k < 5000; ++k) numbers.push_back(numbers[random() % numbers.size()]);
    NumberText text;
    for (const double number : numbers) {
        if (!std::isfinite(number)) continue;
        char place[NumberText::longest];
        std::string expected;
        append_number(expected, number);
        EXPECT_EQ(std::string(place, text.put(place, number)), expected);
    }
}

TEST(WrittenLines, AreInOrderForAnyNumberOfThreads) {
    const TempDir dir;
    for (const std::size_t count : {0UL, 1UL, 100000UL}) {
        std::string expected;
        for (std::size_t k = 0; k < count; ++k) {
            append_number(expected, static_cast<std::int64_t>(k));
            expected += ' ';
            append_number(expected, 1 / (1.0 + static_cast<double>(k % 77)));
            expected += '\n';
        }
        for (const int threads : {1, 2, 5}) {
            OutputFile out(dir.file("lines"));
            write_lines(out, count, 2 * NumberText::longest + 2, threads,
                        [](std::size_t k, char *place, NumberText &numbers) {
                            place = numbers.put(place, static_cast<std::int64_t>(k));
                            *place++ = ' ';
                            place = numbers.put(place, 1 / (1.0 + static_cast<double>(k % 77)));
                            *place++ = '\n';
                            return place;
                        });
            out.commit();
            EXPECT_EQ(read_file(dir.file("lines")), expected) << count << " lines, " << threads << " threads";
        }
    }
}

} // namespace
} // namespace spdc
