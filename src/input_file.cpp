#include "input_file.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
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
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace spdc {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t least_room = std::size_t{1} << 12; // offered to the system and to decompressors

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

// Some bytes of an open file; 0 at its end.
std::size_t read_some(const Descriptor &input, const std::string &name, char *place, std::size_t room) {
    for (;;) {
        const ssize_t count = ::read(input.number(), place, room);
        if (count >= 0) {
            return static_cast<std::size_t>(count);
        }
        if (errno != EINTR) {
            fail_system(name, "read", errno);
        }
    }
}

// The bytes of a regular file; 0 for what has no size, such as a pipe.
std::size_t size_of(const Descriptor &input, const std::string &name) {
    struct stat status {};
    if (::fstat(input.number(), &status) != 0) {
        fail_system(name, "read", errno);
    }
    if (S_ISDIR(status.st_mode)) {
        fail(ErrorKind::bad_file, fmt::format("{}: is a directory, expected a file", name));
    }
    return S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0;
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

// A decoder is made of packed bytes, which stay where they are, and gives some plain ones at every call of read(), none at the end.
#ifdef SPDC_HAVE_ZLIB
class GzipDecoder {
  public:
    GzipDecoder(const std::string &name, std::string_view packed) : name_(name), rest_(packed) {
        if (::inflateInit2(&stream_, 15 + 16) != Z_OK) { // largest window, gzip wrapping
            throw std::bad_alloc();
        }
    }
    GzipDecoder(const GzipDecoder &) = delete;
    GzipDecoder &operator=(const GzipDecoder &) = delete;
    ~GzipDecoder() { ::inflateEnd(&stream_); }
    std::string_view rest() const noexcept { return rest_; }

    std::size_t read(char *place, std::size_t room) {
        std::size_t made = 0;
        while (made == 0 && !done_) {
            const unsigned int given = piece(rest_.size()), asked = piece(room);
            // zlib takes its input as pointer to non-const and does not write to it.
            stream_.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(rest_.data()));
            stream_.avail_in = given;
            stream_.next_out = reinterpret_cast<Bytef *>(place);
            stream_.avail_out = asked;
            const int status = ::inflate(&stream_, Z_NO_FLUSH);
            made = asked - stream_.avail_out;
            rest_.remove_prefix(given - stream_.avail_in);
            if (status == Z_STREAM_END) {
                done_ = !another_stream(rest_, "\x1f\x8b"sv, name_, "gzip");
                ::inflateReset(&stream_);
            } else if (status == Z_BUF_ERROR) { // there was room, so it is input that is missing
                fail_early(name_, "gzip");
            } else if (status == Z_MEM_ERROR) {
                throw std::bad_alloc();
            } else if (status != Z_OK) {
                fail_corrupted(name_, "gzip", stream_.msg);
            }
        }
        return made;
    }

  private:
    std::string name_;
    std::string_view rest_;
    z_stream stream_{};
    bool done_ = false;
};
#endif

#ifdef SPDC_HAVE_BZIP2
class Bzip2Decoder {
  public:
    Bzip2Decoder(const std::string &name, std::string_view packed) : name_(name), rest_(packed) { open(); }
    Bzip2Decoder(const Bzip2Decoder &) = delete;
    Bzip2Decoder &operator=(const Bzip2Decoder &) = delete;
    ~Bzip2Decoder() { ::BZ2_bzDecompressEnd(&stream_); }
    std::string_view rest() const noexcept { return rest_; }

    std::size_t read(char *place, std::size_t room) {
        std::size_t made = 0;
        while (made == 0 && !done_) {
            const unsigned int given = piece(rest_.size()), asked = piece(room);
            stream_.next_in = const_cast<char *>(rest_.data()); // not written to
            stream_.avail_in = given;
            stream_.next_out = place;
            stream_.avail_out = asked;
            const int status = ::BZ2_bzDecompress(&stream_);
            made = asked - stream_.avail_out;
            rest_.remove_prefix(given - stream_.avail_in);
            if (status == BZ_STREAM_END) {
                done_ = !another_stream(rest_, "BZh"sv, name_, "bzip2");
                ::BZ2_bzDecompressEnd(&stream_);
                open();
            } else if (status == BZ_MEM_ERROR) {
                throw std::bad_alloc();
            } else if (status != BZ_OK) {
                fail_corrupted(name_, "bzip2",
                               status == BZ_DATA_ERROR_MAGIC ? "not a bzip2 stream" : "checksum or code");
            } else if (rest_.empty() && stream_.avail_out > 0) {
                fail_early(name_, "bzip2");
            }
        }
        return made;
    }

  private:
    void open() {
        stream_ = {};
        if (::BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) {
            throw std::bad_alloc();
        }
    }

    std::string name_;
    std::string_view rest_;
    bz_stream stream_{};
    bool done_ = false;
};
#endif

#ifdef SPDC_HAVE_LZMA
class XzDecoder {
  public:
    XzDecoder(const std::string &name, std::string_view packed) : name_(name) {
        if (::lzma_stream_decoder(&stream_, std::numeric_limits<std::uint64_t>::max(), LZMA_CONCATENATED) != LZMA_OK) {
            throw std::bad_alloc();
        }
        stream_.next_in = reinterpret_cast<const std::uint8_t *>(packed.data());
        stream_.avail_in = packed.size();
    }
    XzDecoder(const XzDecoder &) = delete;
    XzDecoder &operator=(const XzDecoder &) = delete;
    ~XzDecoder() { ::lzma_end(&stream_); }
    std::string_view rest() const noexcept {
        return {reinterpret_cast<const char *>(stream_.next_in), stream_.avail_in};
    }

    std::size_t read(char *place, std::size_t room) {
        std::size_t made = 0;
        while (made == 0 && !done_) {
            stream_.next_out = reinterpret_cast<std::uint8_t *>(place);
            stream_.avail_out = room;
            const lzma_ret status = ::lzma_code(&stream_, LZMA_FINISH);
            made = room - stream_.avail_out;
            done_ = status == LZMA_STREAM_END;
            if (status == LZMA_BUF_ERROR) { // there was room, so it is input that is missing
                fail_early(name_, "xz");
            } else if (status == LZMA_MEM_ERROR) {
                throw std::bad_alloc();
            } else if (status != LZMA_OK && !done_) {
                fail_corrupted(name_, "xz", status == LZMA_OPTIONS_ERROR ? "unknown options" : "checksum or code");
            }
        }
        return made;
    }

  private:
    std::string name_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    bool done_ = false;
};
#endif

#ifdef SPDC_HAVE_ZSTD
class ZstdDecoder {
  public:
    ZstdDecoder(const std::string &name, std::string_view packed)
        : name_(name), input_{packed.data(), packed.size(), 0}, context_(::ZSTD_createDCtx(), &::ZSTD_freeDCtx) {
        if (context_ == nullptr) {
            throw std::bad_alloc();
        }
        // Files made with --long=31 need it; refused by old versions of the library, which then read all other files.
        ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 31);
    }
    std::string_view rest() const noexcept {
        return {static_cast<const char *>(input_.src) + input_.pos, input_.size - input_.pos};
    }

    std::size_t read(char *place, std::size_t room) {
        ZSTD_outBuffer output{place, room, 0};
        while (output.pos == 0 && !done_) {
            const std::size_t pending = ::ZSTD_decompressStream(context_.get(), &output, &input_);
            if (::ZSTD_isError(pending) != 0) {
                fail_corrupted(name_, "zstd", ::ZSTD_getErrorName(pending));
            }
            done_ = input_.pos == input_.size && pending == 0;
            if (input_.pos == input_.size && !done_ && output.pos < output.size) {
                fail_early(name_, "zstd");
            }
        }
        return output.pos;
    }

  private:
    std::string name_;
    ZSTD_inBuffer input_;
    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx *)> context_;
    bool done_ = false;
};
#endif

using Source = std::function<std::size_t(char *, std::size_t, std::size_t &)>;

template <class Decoder> [[maybe_unused]] Source decode_by(const std::string &name, ByteBuffer bytes) {
    struct State {
        ByteBuffer packed;
        Decoder decoder;
        State(const std::string &file, ByteBuffer all) : packed(std::move(all)), decoder(file, text_of(packed)) {}
    };
    return [state = std::make_shared<State>(name, std::move(bytes))](char *place, std::size_t room,
                                                                     std::size_t &position) {
        const std::size_t count = state->decoder.read(place, room);
        position = state->packed.size() - state->decoder.rest().size();
        return count;
    };
}

// `packed`: the whole file.
Source decoder_of(Compression kind, const std::string &name, [[maybe_unused]] ByteBuffer packed) {
    switch (kind) {
    case Compression::gzip:
#ifdef SPDC_HAVE_ZLIB
        return decode_by<GzipDecoder>(name, std::move(packed));
#else
        fail_left_out(name, "gzip", "zlib");
#endif
    case Compression::bzip2:
#ifdef SPDC_HAVE_BZIP2
        return decode_by<Bzip2Decoder>(name, std::move(packed));
#else
        fail_left_out(name, "bzip2", "libbz2");
#endif
    case Compression::xz:
#ifdef SPDC_HAVE_LZMA
        return decode_by<XzDecoder>(name, std::move(packed));
#else
        fail_left_out(name, "xz", "liblzma");
#endif
    case Compression::zstd:
#ifdef SPDC_HAVE_ZSTD
        return decode_by<ZstdDecoder>(name, std::move(packed));
#else
        fail_left_out(name, "zstd", "libzstd");
#endif
    case Compression::none: break;
    }
    fail(ErrorKind::internal, "not compressed");
}

// Adds `padding` zeros that do not count.
void pad(ByteBuffer &text) {
    text.make_room(padding);
    std::memset(text.free_space(), 0, padding);
}

// All that is left of a stream.
ByteBuffer read_all(InputStream &stream) {
    ByteBuffer bytes;
    bytes.make_room(stream.size() + least_room); // more than there is, to meet the end without growing
    for (;;) {
        bytes.make_room(least_room);
        const std::size_t count = stream.read(bytes.free_space(), bytes.room());
        if (count == 0) {
            return bytes;
        }
        bytes.added(count);
    }
}

} // namespace

InputStream::InputStream(const std::string &path) : name_(path == "-" ? "standard input" : path), path_(path) {
    const bool standard_input = path == "-";
    const auto input =
        std::make_shared<Descriptor>(standard_input ? STDIN_FILENO : open_for_reading(path), !standard_input);
    size_ = size_of(*input, name_);
    source_ = [input, name = name_](char *place, std::size_t room, std::size_t &position) {
        const std::size_t count = read_some(*input, name, place, room);
        position += count;
        return count;
    };
    constexpr std::size_t longest_magic = 10;
    const Compression kind = compression_of(peek(longest_magic));
    if (kind != Compression::none) {
        ByteBuffer packed = read_all(*this);
        ahead_ = {};
        taken_ = position_ = 0;
        size_ = packed.size();
        compressed_ = true;
        source_ = decoder_of(kind, name_, std::move(packed));
    }
}

std::size_t InputStream::read(char *place, std::size_t room) {
    if (taken_ == ahead_.size()) {
        return source_(place, room, position_);
    }
    const std::size_t count = std::min(room, ahead_.size() - taken_);
    std::memcpy(place, ahead_.data() + taken_, count);
    taken_ += count;
    return count;
}

std::string_view InputStream::peek(std::size_t count) {
    while (ahead_.size() - taken_ < count) {
        ahead_.make_room(std::max(count, least_room));
        const std::size_t added = source_(ahead_.free_space(), ahead_.room(), position_);
        if (added == 0) {
            break;
        }
        ahead_.added(added);
    }
    return text_of(ahead_).substr(taken_);
}

void InputStream::skip_byte_order_mark() {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (peek(byte_order_mark.size()).starts_with(byte_order_mark)) {
        taken_ += byte_order_mark.size();
    }
}

SharedBytes InputStream::map_or_read() {
    if (size_ == 0 || compressed_ || path_ == "-") {
        auto bytes = std::make_shared<ByteBuffer>(read_all(*this));
        return {text_of(*bytes), bytes, false};
    }
    const Descriptor input(open_for_reading(path_), true);
    const std::size_t size = size_of(input, name_);
    void *const memory = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.number(), 0);
    if (memory == MAP_FAILED) {
        fail_system(name_, "map into memory", size == 0 ? EINVAL : errno);
    }
    const std::shared_ptr<const void> owner(memory, [size](void *mapped) { ::munmap(mapped, size); });
    return {{static_cast<const char *>(memory), size}, owner, true};
}

void SharedBytes::release(std::size_t count) const noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    // nobody writes to the mapping, so what is read again comes from the file
    if (is_mapped) ::madvise(const_cast<char *>(bytes.data()), count / page * page, MADV_DONTNEED);
}

void InputStream::check_rest() {
    ByteBuffer ignored;
    ignored.make_room(compressed_ ? LineBlocks::block_bytes : 0);
    while (compressed_ && read(ignored.data(), ignored.room()) > 0) {
    }
}

bool LineBlocks::next(ByteBuffer &block) {
    block.cut(0);
    block.make_room(rest_.size() + block_bytes + padding);
    std::copy_n(rest_.data(), rest_.size(), block.free_space());
    block.added(rest_.size());
    rest_.cut(0);
    for (;;) {
        block.make_room(block_bytes + padding);
        const std::size_t count = stream_.read(block.free_space(), block_bytes);
        const std::string_view fresh(block.free_space(), count);
        block.added(count);
        const std::size_t newline = fresh.rfind('\n');
        if (newline != fresh.npos) {
            const std::size_t behind = count - newline - 1;
            rest_.make_room(behind);
            std::copy_n(fresh.data() + newline + 1, behind, rest_.free_space());
            rest_.added(behind);
            block.cut(block.size() - behind);
        }
        if (newline != fresh.npos || count == 0) {
            pad(block);
            return block.size() > 0;
        }
    }
}

InputFile::InputFile(const std::string &path) : InputFile(InputStream(path)) {}

InputFile::InputFile(InputStream stream) : name_(stream.name()) {
    try {
        stream.skip_byte_order_mark();
        bytes_ = read_all(stream);
        pad(bytes_);
    } catch (const std::bad_alloc &) {
        fail(ErrorKind::bad_file, fmt::format("{}: not enough memory to hold its text", name_));
    }
}

void InputFile::fail_at(const char *place, const std::string &message) const {
    const std::string_view before(text().data(), static_cast<std::size_t>(place - text().data()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    fail(ErrorKind::bad_file, fmt::format("{}:{}:{}: {}", name_, line, column, message));
}

} // namespace spdc
