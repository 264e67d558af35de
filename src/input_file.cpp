#include "input_file.h"

#include "spdc/error.h"

#include <fmt/format.h>

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

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <system_error>

namespace spdc {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t output_step = std::size_t{1} << 20; // least room offered to a decompressor at a time

[[noreturn]] void fail_system(const std::string &name, const char *doing, int code) {
    fail(ErrorKind::bad_file, fmt::format("{}: cannot {}: {}", name, doing, std::generic_category().message(code)));
}

[[maybe_unused, noreturn]] void fail_early(const std::string &name, const char *kind) {
    fail(ErrorKind::bad_file,
         fmt::format("{}: {} compressed data end early, expected a complete file (was it cut short?)", name, kind));
}

[[maybe_unused, noreturn]] void fail_corrupted(const std::string &name, const char *kind, const char *why) {
    fail(ErrorKind::bad_file, fmt::format("{}: {} compressed data are corrupted ({}), expected an intact file", name,
                                          kind, why == nullptr ? "no further detail" : why));
}

[[maybe_unused, noreturn]] void fail_left_out(const std::string &name, const char *kind, const char *library) {
    fail(ErrorKind::unsupported, fmt::format("{}: is {} compressed, but this build was made without {}; decompress it "
                                             "first, or install {} and build again",
                                             name, kind, library, library));
}

class Descriptor {
  public:
    Descriptor(int number, bool owned) : number_(number), owned_(owned) {}
    Descriptor(const Descriptor &) = delete;
    Descriptor &operator=(const Descriptor &) = delete;
    ~Descriptor() {
        if (owned_) {
            ::close(number_);
        }
    }
    int number() const noexcept { return number_; }

  private:
    int number_;
    bool owned_;
};

int open_for_reading(const std::string &path) {
    const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (number < 0) {
        fail_system(path, "open", errno);
    }
    return number;
}

ByteBuffer read_all(const Descriptor &input, const std::string &name) {
    struct stat status {};
    if (::fstat(input.number(), &status) != 0) {
        fail_system(name, "read", errno);
    }
    if (S_ISDIR(status.st_mode)) {
        fail(ErrorKind::bad_file, fmt::format("{}: is a directory, expected a file", name));
    }
    ByteBuffer bytes;
    if (S_ISREG(status.st_mode)) {
        bytes.make_room(static_cast<std::size_t>(status.st_size) + 1); // one more, to meet the end without growing
    }
    for (;;) {
        bytes.make_room(1);
        const ssize_t count = ::read(input.number(), bytes.free_space(), bytes.room());
        if (count == 0) {
            return bytes;
        }
        if (count > 0) {
            bytes.added(static_cast<std::size_t>(count));
        } else if (errno != EINTR) {
            fail_system(name, "read", errno);
        }
    }
}

enum class Compression { none, gzip, bzip2, xz, zstd };

// A file cut inside its first bytes still shows what it was meant to be.
bool starts_like(std::string_view bytes, std::string_view magic, std::size_t least) {
    return bytes.size() >= least && bytes.substr(0, magic.size()) == magic.substr(0, bytes.size());
}

bool looks_like_bzip2(std::string_view bytes) {
    if (!starts_like(bytes, "BZh"sv, 3) || bytes.size() < 4 || bytes[3] < '1' || bytes[3] > '9') {
        return false;
    }
    // "BZh9" alone might open a text; the number of a block (pi) or of the end (square root of pi) cannot.
    const std::string_view rest = bytes.substr(4);
    return starts_like(rest, "\x31\x41\x59\x26\x53\x59"sv, 0) || starts_like(rest, "\x17\x72\x45\x38\x50\x90"sv, 0);
}

bool looks_like_zstd(std::string_view bytes) {
    const bool skippable = bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18"sv;
    return skippable || starts_like(bytes, "\x28\xb5\x2f\xfd"sv, 2);
}

Compression compression_of(std::string_view bytes) {
    if (starts_like(bytes, "\x1f\x8b"sv, 2)) {
        return Compression::gzip;
    }
    if (looks_like_bzip2(bytes)) {
        return Compression::bzip2;
    }
    if (starts_like(bytes, "\xfd\x37\x7a\x58\x5a\x00"sv, 2)) {
        return Compression::xz;
    }
    return looks_like_zstd(bytes) ? Compression::zstd : Compression::none;
}

// True when another stream begins after the end of one; false when only zero padding (tapes, some copies) is left.
[[maybe_unused]] bool another_stream(std::string_view rest, std::string_view magic, const std::string &name,
                                     const char *kind) {
    if (rest.find_first_not_of('\0') == std::string_view::npos) {
        return false;
    }
    if (rest.substr(0, magic.size()) == magic) {
        return true;
    }
    if (starts_like(rest, magic, 1)) {
        fail_early(name, kind);
    }
    fail_corrupted(name, kind, "other bytes follow the end");
}

#if defined(SPDC_HAVE_ZLIB) || defined(SPDC_HAVE_BZIP2)
// zlib and bzip2 count in 32 bits, so longer inputs and outputs are handed over in pieces.
unsigned int piece(std::size_t bytes) {
    return static_cast<unsigned int>(std::min<std::size_t>(bytes, std::numeric_limits<unsigned int>::max()));
}
#endif

#ifdef SPDC_HAVE_ZLIB
ByteBuffer unpack_gzip(const std::string &name, std::string_view packed) {
    z_stream stream{};
    if (::inflateInit2(&stream, 15 + 16) != Z_OK) { // largest window, gzip wrapping
        throw std::bad_alloc();
    }
    const std::unique_ptr<z_stream, int (*)(z_stream *)> closer(&stream, &::inflateEnd);
    ByteBuffer out;
    std::string_view rest = packed;
    for (;;) {
        out.make_room(output_step);
        const unsigned int given = piece(rest.size());
        const unsigned int room = piece(out.room());
        // zlib takes its input as pointer to non-const and does not write to it.
        stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(rest.data()));
        stream.avail_in = given;
        stream.next_out = reinterpret_cast<Bytef *>(out.free_space());
        stream.avail_out = room;
        const int status = ::inflate(&stream, Z_NO_FLUSH);
        out.added(room - stream.avail_out);
        rest.remove_prefix(given - stream.avail_in);
        if (status == Z_STREAM_END) {
            if (!another_stream(rest, "\x1f\x8b"sv, name, "gzip")) {
                return out;
            }
            ::inflateReset(&stream);
        } else if (status == Z_BUF_ERROR) { // there was room, so it is input that is missing
            fail_early(name, "gzip");
        } else if (status == Z_MEM_ERROR) {
            throw std::bad_alloc();
        } else if (status != Z_OK) {
            fail_corrupted(name, "gzip", stream.msg);
        }
    }
}
#else
ByteBuffer unpack_gzip(const std::string &name, std::string_view) { fail_left_out(name, "gzip", "zlib"); }
#endif

#ifdef SPDC_HAVE_BZIP2
// One stream from the front of `rest`, which is moved behind it.
void unpack_bzip2_stream(const std::string &name, std::string_view &rest, ByteBuffer &out) {
    bz_stream stream{};
    if (::BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) {
        throw std::bad_alloc();
    }
    const std::unique_ptr<bz_stream, int (*)(bz_stream *)> closer(&stream, &::BZ2_bzDecompressEnd);
    for (;;) {
        out.make_room(output_step);
        const unsigned int given = piece(rest.size());
        const unsigned int room = piece(out.room());
        stream.next_in = const_cast<char *>(rest.data()); // not written to
        stream.avail_in = given;
        stream.next_out = out.free_space();
        stream.avail_out = room;
        const int status = ::BZ2_bzDecompress(&stream);
        out.added(room - stream.avail_out);
        rest.remove_prefix(given - stream.avail_in);
        if (status == BZ_STREAM_END) {
            return;
        }
        if (status == BZ_MEM_ERROR) {
            throw std::bad_alloc();
        }
        if (status != BZ_OK) {
            fail_corrupted(name, "bzip2", status == BZ_DATA_ERROR_MAGIC ? "not a bzip2 stream" : "checksum or code");
        }
        if (rest.empty() && stream.avail_out > 0) {
            fail_early(name, "bzip2");
        }
    }
}

ByteBuffer unpack_bzip2(const std::string &name, std::string_view packed) {
    ByteBuffer out;
    do {
        unpack_bzip2_stream(name, packed, out);
    } while (another_stream(packed, "BZh"sv, name, "bzip2"));
    return out;
}
#else
ByteBuffer unpack_bzip2(const std::string &name, std::string_view) { fail_left_out(name, "bzip2", "libbz2"); }
#endif

#ifdef SPDC_HAVE_LZMA
ByteBuffer unpack_xz(const std::string &name, std::string_view packed) {
    lzma_stream stream = LZMA_STREAM_INIT;
    if (::lzma_stream_decoder(&stream, std::numeric_limits<std::uint64_t>::max(), LZMA_CONCATENATED) != LZMA_OK) {
        throw std::bad_alloc();
    }
    const std::unique_ptr<lzma_stream, void (*)(lzma_stream *)> closer(&stream, &::lzma_end);
    stream.next_in = reinterpret_cast<const std::uint8_t *>(packed.data());
    stream.avail_in = packed.size();
    ByteBuffer out;
    for (;;) {
        out.make_room(output_step);
        const std::size_t room = out.room();
        stream.next_out = reinterpret_cast<std::uint8_t *>(out.free_space());
        stream.avail_out = room;
        const lzma_ret status = ::lzma_code(&stream, LZMA_FINISH);
        out.added(room - stream.avail_out);
        if (status == LZMA_STREAM_END) {
            return out;
        }
        if (status == LZMA_BUF_ERROR) { // there was room, so it is input that is missing
            fail_early(name, "xz");
        }
        if (status == LZMA_MEM_ERROR) {
            throw std::bad_alloc();
        }
        if (status != LZMA_OK) {
            fail_corrupted(name, "xz", status == LZMA_OPTIONS_ERROR ? "unknown options" : "checksum or code");
        }
    }
}
#else
ByteBuffer unpack_xz(const std::string &name, std::string_view) { fail_left_out(name, "xz", "liblzma"); }
#endif

#ifdef SPDC_HAVE_ZSTD
ByteBuffer unpack_zstd(const std::string &name, std::string_view packed) {
    const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx *)> context(::ZSTD_createDCtx(), &::ZSTD_freeDCtx);
    if (context == nullptr) {
        throw std::bad_alloc();
    }
    // Files made with --long=31 need it; refused by old versions of the library, which then read all other files.
    ::ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 31);
    ZSTD_inBuffer input{packed.data(), packed.size(), 0};
    ByteBuffer out;
    for (;;) {
        out.make_room(output_step);
        ZSTD_outBuffer output{out.free_space(), out.room(), 0};
        const std::size_t pending = ::ZSTD_decompressStream(context.get(), &output, &input);
        if (::ZSTD_isError(pending) != 0) {
            fail_corrupted(name, "zstd", ::ZSTD_getErrorName(pending));
        }
        out.added(output.pos);
        if (input.pos == input.size) {
            if (pending == 0) {
                return out;
            }
            if (output.pos < output.size) {
                fail_early(name, "zstd");
            }
        }
    }
}
#else
ByteBuffer unpack_zstd(const std::string &name, std::string_view) { fail_left_out(name, "zstd", "libzstd"); }
#endif

ByteBuffer unpack(const std::string &name, ByteBuffer bytes) {
    switch (compression_of(bytes.view())) {
    case Compression::gzip: return unpack_gzip(name, bytes.view());
    case Compression::bzip2: return unpack_bzip2(name, bytes.view());
    case Compression::xz: return unpack_xz(name, bytes.view());
    case Compression::zstd: return unpack_zstd(name, bytes.view());
    case Compression::none: break;
    }
    return bytes;
}

ByteBuffer read_unpacked(const std::string &path, const std::string &name) {
    const bool standard_input = path == "-";
    const Descriptor input(standard_input ? STDIN_FILENO : open_for_reading(path), !standard_input);
    try {
        ByteBuffer bytes = unpack(name, read_all(input, name));
        bytes.make_room(1);
        *bytes.free_space() = '\0';
        return bytes;
    } catch (const std::bad_alloc &) {
        fail(ErrorKind::bad_file, fmt::format("{}: not enough memory to hold its text", name));
    }
}

} // namespace

void ByteBuffer::Free::operator()(char *memory) const noexcept { std::free(memory); }

void ByteBuffer::make_room(std::size_t bytes) {
    if (room() >= bytes) {
        return;
    }
    constexpr std::size_t least = std::size_t{1} << 12;
    if (bytes > std::numeric_limits<std::size_t>::max() / 2 - size_) {
        throw std::bad_alloc();
    }
    const std::size_t wanted = std::max({least, size_ + bytes, capacity_ + capacity_ / 2});
    auto *larger = static_cast<char *>(std::realloc(data_.get(), wanted));
    if (larger == nullptr) {
        throw std::bad_alloc();
    }
    static_cast<void>(data_.release()); // realloc has freed or moved it
    data_.reset(larger);
    capacity_ = wanted;
}

InputFile::InputFile(const std::string &path)
    : name_(path == "-" ? "standard input" : path), bytes_(read_unpacked(path, name_)), text_(bytes_.view()) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text_.starts_with(byte_order_mark)) {
        text_.remove_prefix(byte_order_mark.size());
    }
}

void InputFile::fail_at(const char *place, const std::string &message) const {
    const std::string_view before(text_.data(), static_cast<std::size_t>(place - text_.data()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    fail(ErrorKind::bad_file, fmt::format("{}:{}:{}: {}", name_, line, column, message));
}

} // namespace spdc
