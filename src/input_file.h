// The text of an input: a file or standard input, decompressed, whole in memory. Whole, because a parser that sees all
// bytes needs no buffer edges in its inner loop, and because line numbers are then counted only when an error asks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spdc {

/// Bytes that grow without being filled with zeros first (a std::string would write every byte twice).
class ByteBuffer {
  public:
    const char *data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }
    std::string_view view() const noexcept { return {data_.get(), size_}; }

    /// Room for at least `bytes` more behind the present ones. Throws std::bad_alloc.
    void make_room(std::size_t bytes);
    char *free_space() noexcept { return data_.get() + size_; }
    std::size_t room() const noexcept { return capacity_ - size_; }
    /// Says that `bytes` of the free space have been written.
    void added(std::size_t bytes) noexcept { size_ += bytes; }

  private:
    struct Free {
        void operator()(char *memory) const noexcept;
    };
    std::unique_ptr<char, Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

class InputFile {
  public:
    /// Reads all of `path` ("-" is standard input), plain or gzip, bzip2, xz or zstd, told apart by the first bytes.
    /// Throws Error(bad_file), or Error(unsupported) for a compression this build was made without.
    explicit InputFile(const std::string &path);

    /// What messages call it: the path, or "standard input".
    const std::string &name() const noexcept { return name_; }

    /// The text without a byte order mark. One byte past its end can be read and is 0, so that a scanner of digits or
    /// blanks stops there by itself.
    std::string_view text() const noexcept { return text_; }

    /// Throws Error(bad_file) "name:line:column: message" for a place inside text() or at its end; both count from 1,
    /// columns in bytes.
    [[noreturn]] void fail_at(const char *place, const std::string &message) const;

  private:
    std::string name_;
    ByteBuffer bytes_;
    std::string_view text_;
};

} // namespace spdc
