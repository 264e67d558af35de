// The bytes of an input: a file or standard input, decompressed.
#pragma once

#include "growing_array.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace spdc {

using ByteBuffer = GrowingArray<char>;

inline std::string_view text_of(const ByteBuffer &bytes) noexcept { return {bytes.data(), bytes.size()}; }

/// Bytes and what keeps them alive; aligned as malloc() aligns.
struct SharedBytes {
    std::string_view bytes;
    std::shared_ptr<const void> owner;
    bool is_mapped = false;

    /// The first `count` bytes are not needed again soon: a mapped file gives their memory back.
    void release(std::size_t count) const noexcept;
};

/// The bytes one after another. Compression is undone piece by piece, so that the text need not be in memory as a whole.
class InputStream {
  public:
    /// Opens `path` ("-" is standard input), plain or gzip, bzip2, xz or zstd, told apart by the first bytes. Throws
    /// Error(bad_file), or Error(unsupported) for a compression this build was made without; so do all functions here.
    explicit InputStream(const std::string &path);

    /// What messages call it: the path, or "standard input".
    const std::string &name() const noexcept { return name_; }

    /// Writes up to `room` bytes to `place` and returns how many, at least one unless the end is reached.
    std::size_t read(char *place, std::size_t room);

    /// The next bytes without taking them: `count`, or more, or all there are.
    std::string_view peek(std::size_t count);

    /// Takes away a byte order mark, if there is one.
    void skip_byte_order_mark();

    /// Reads to the end when the input is compressed: damaged bytes may look like faulty text before their checksum comes.
    void check_rest();

    /// All bytes, if none has been read: a plain file memory-mapped, anything else read. A mapped file must not be changed while it
    /// is in use; to replace it by another of the same name is safe.
    SharedBytes map_or_read();

    /// Bytes of the file, 0 when unknown, and how many of them have been taken. Of a compressed file, compressed ones.
    std::size_t size() const noexcept { return size_; }
    std::size_t position() const noexcept { return position_; }

  private:
    using Source = std::function<std::size_t(char *place, std::size_t room, std::size_t &position)>;

    std::string name_, path_;
    Source source_;
    ByteBuffer ahead_;      // peeked at
    std::size_t taken_ = 0; // of ahead_
    std::size_t size_ = 0, position_ = 0;
    bool compressed_ = false;
};

/// Whole lines of a stream, in blocks that fit a processor's own cache.
class LineBlocks {
  public:
    static constexpr std::size_t block_bytes = std::size_t{1} << 18;

    explicit LineBlocks(InputStream &stream) : stream_(stream) {}

    /// Replaces `block` by the next lines, at least one; only the last of the stream may lack its line end. Behind the block
    /// stand `padding` bytes of 0. False at the end.
    bool next(ByteBuffer &block);

  private:
    InputStream &stream_;
    ByteBuffer rest_; // the beginning of a line
};

/// Bytes of 0 behind every text, so that a scanner of digits or blanks stops there by itself and may load eight bytes at once.
constexpr std::size_t padding = 8;

/// A text that is whole in memory, for parsers that go back and forth in it and count lines only when an error asks.
class InputFile {
  public:
    explicit InputFile(const std::string &path);
    explicit InputFile(InputStream stream);

    const std::string &name() const noexcept { return name_; }

    /// The text without a byte order mark, `padding` bytes of 0 behind it.
    std::string_view text() const noexcept { return text_of(bytes_); }

    /// Throws Error(bad_file) "name:line:column: message" for a place inside text() or at its end; both count from 1,
    /// columns in bytes.
    [[noreturn]] void fail_at(const char *place, const std::string &message) const;

  private:
    std::string name_;
    ByteBuffer bytes_;
};

} // namespace spdc
