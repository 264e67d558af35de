// Where results are written. A regular file appears whole or not at all: it is written under a temporary name beside
// the target and renamed at the end, so that an interrupted or failed run leaves the former file as it was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace spdc {

class OutputFile {
  public:
    /// Opens `path` for writing; "-" is standard output. A symbolic link is followed, and the file it names is replaced,
    /// not the link. A target that is no regular file (device, pipe, /dev/fd/N) is written directly and never renamed
    /// over. The permissions of an existing file are kept. Throws Error(bad_file), as all functions here do.
    explicit OutputFile(const std::string &path);

    /// Without a commit() the temporary file is removed and the target is as before.
    ~OutputFile();

    OutputFile(const OutputFile &) = delete;
    OutputFile &operator=(const OutputFile &) = delete;

    /// As messages call it.
    const std::string &name() const noexcept { return name_; }

    /// Adds text; it is kept in a buffer and handed to the system in large pieces.
    void write(std::string_view text);

    /// Writes the last piece, closes, and gives the file its name. Call it once, after the last write.
    void commit();

  private:
    void open_beside(const std::string &target);
    void keep_permissions();
    void flush();
    void write_now(std::string_view text);
    void discard() noexcept;
    [[noreturn]] void fail_system(const char *doing, int code);

    std::string name_;
    std::string target_;    // the file to replace; empty when written directly
    std::string temporary_; // empty when written directly or done
    std::string buffer_;
    int descriptor_ = -1;
    bool owned_ = true; // standard output is not ours to close
};

/// Numbers as text, with a memory of the last ones: the weights of features that share their rows are equal, four in five of news20's.
class NumberText {
  public:
    static constexpr std::size_t longest = 24; // characters
    /// Writes the shortest digits that read back as the same double, with room for the longest; returns where they end.
    char *put(char *place, double value);
    char *put(char *place, std::int64_t value);

  private:
    struct Entry {
        std::uint64_t bits = 0; // of the number
        std::uint8_t size = 0;  // of its text; 0: there is none yet
        std::array<char, longest> digits{};
    };
    std::array<Entry, 1024> entries_; // by a hash
};

/// Writes a line to a place and returns where it ends.
using PutLine = std::function<char *(std::size_t k, char *place, NumberText &numbers)>;
/// Writes `count` lines. put() has room for `longest` characters and is called on several threads at a time, each with numbers of its own.
void write_lines(OutputFile &out, std::size_t count, std::size_t longest, int threads, const PutLine &put);

} // namespace spdc
