#include "output_file.h"

#include "parallel.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace spdc {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

// The open descriptor that a name such as /dev/stdout stands for. Opening the name anew would give a second position in
// the file, or rename over what a shell's redirection holds open.
std::optional<int> named_descriptor(std::string_view path) {
    if (path == "/dev/stdout") {
        return STDOUT_FILENO;
    }
    if (path == "/dev/stderr") {
        return STDERR_FILENO;
    }
    for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
        int number = 0;
        if (path.starts_with(folder)) {
            const char *end = path.data() + path.size();
            const auto [stop, code] = std::from_chars(path.data() + folder.size(), end, number);
            if (code == std::errc{} && stop == end && number >= 0) {
                return number;
            }
        }
    }
    return std::nullopt;
}

// The name a chain of symbolic links ends at, which need not exist yet.
std::string link_target(const std::string &path) {
    namespace fs = std::filesystem;
    constexpr int longest_chain = 40; // as the kernel; a loop has been refused by stat before
    fs::path current = path;
    std::error_code code;
    for (int step = 0; step < longest_chain && fs::is_symlink(fs::symlink_status(current, code)); ++step) {
        const fs::path next = fs::read_symlink(current, code);
        if (code) {
            break;
        }
        current = next.is_absolute() ? next : current.parent_path() / next;
    }
    return current.string();
}

} // namespace

OutputFile::OutputFile(const std::string &path) : name_(path) {
    buffer_.reserve(buffer_bytes);
    if (path == "-") {
        name_ = "standard output";
        descriptor_ = STDOUT_FILENO;
        owned_ = false;
        return;
    }
    if (const std::optional<int> number = named_descriptor(path)) {
        descriptor_ = ::fcntl(*number, F_DUPFD_CLOEXEC, 0);
        if (descriptor_ < 0) {
            fail_system("open for writing", errno);
        }
        return;
    }
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) {
        fail_system("open for writing", errno);
    }
    if (exists && !S_ISREG(status.st_mode)) {
        descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (descriptor_ < 0) {
            fail_system("open for writing", errno);
        }
        return;
    }
    // A rename needs only the folder's permission; a file made read-only is meant to stay.
    if (exists && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
        fail_system("open for writing", errno);
    }
    open_beside(link_target(path));
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::open_beside(const std::string &target) {
    target_ = target;
    const std::filesystem::path folder = std::filesystem::path(target).parent_path();
    if (target.empty() || target.back() == '/') {
        fail_system("open for writing", target.empty() ? ENOENT : EISDIR);
    }
    constexpr int most_tries = 1000; // names left by a killed process of the same number, and other threads' files
    for (int attempt = 0; attempt < most_tries; ++attempt) {
        // Short and without the target's name, which may already be as long as a name can be.
        temporary_ = (folder / fmt::format(".spdc-{}-{}.tmp", ::getpid(), attempt)).string();
        descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ >= 0) {
            keep_permissions();
            return;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    const int code = errno;
    temporary_.clear();
    fail_system("open for writing", code);
}

void OutputFile::keep_permissions() {
    struct stat status {};
    if (::stat(target_.c_str(), &status) != 0) {
        return; // a new file: the process's mask has decided
    }
    // Only root can give files away; for others the new file is their own, which is all that can be done.
    if (::fchown(descriptor_, status.st_uid, status.st_gid) != 0) {
        errno = 0;
    }
    if (::fchmod(descriptor_, status.st_mode & 0777) != 0) {
        fail_system("set the permissions", errno);
    }
}

void OutputFile::write(std::string_view text) {
    if (buffer_.size() + text.size() > buffer_bytes) {
        flush();
    }
    if (text.size() > buffer_bytes) {
        write_now(text);
    } else {
        buffer_.append(text);
    }
}

void OutputFile::flush() {
    write_now(buffer_);
    buffer_.clear();
}

void OutputFile::write_now(std::string_view rest) {
    while (!rest.empty()) {
        const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
        if (count >= 0) {
            rest.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno != EINTR) {
            fail_system("write", errno);
        }
    }
}

void OutputFile::commit() {
    if (descriptor_ < 0) {
        fail(ErrorKind::internal, fmt::format("{}: committed twice", name_));
    }
    flush();
    if (owned_) {
        const int descriptor = descriptor_;
        descriptor_ = -1; // closed even when close() reports a late write error
        if (::close(descriptor) != 0) {
            fail_system("write", errno);
        }
    }
    descriptor_ = -1;
    if (!temporary_.empty()) {
        if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
            fail_system("replace", errno);
        }
        temporary_.clear();
    }
}

void OutputFile::discard() noexcept {
    if (descriptor_ >= 0 && owned_) {
        ::close(descriptor_);
    }
    descriptor_ = -1;
    if (!temporary_.empty()) {
        ::unlink(temporary_.c_str());
        temporary_.clear();
    }
}

// A constructor that throws runs no destructor, hence the discard here.
void OutputFile::fail_system(const char *doing, int code) {
    discard();
    fail(ErrorKind::bad_file, fmt::format("{}: cannot {}: {}", name_, doing, std::generic_category().message(code)));
}

char *NumberText::put(char *place, double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    static_assert(std::tuple_size_v<decltype(entries_)> == 1 << 10);
    Entry &entry = entries_[(bits * 0x9e3779b97f4a7c15U) >> (64 - 10)];
    if (entry.bits != bits || entry.size == 0) {
        entry.bits = bits;
        const std::to_chars_result result = std::to_chars(entry.digits.data(), entry.digits.data() + longest, value);
        entry.size = static_cast<std::uint8_t>(result.ptr - entry.digits.data());
    }
    std::memcpy(place, entry.digits.data(), longest); // of a fixed size, which is a few instructions
    return place + entry.size;
}

char *NumberText::put(char *place, std::int64_t value) { return std::to_chars(place, place + longest, value).ptr; }

void write_lines(OutputFile &out, std::size_t count, std::size_t longest, int threads, const PutLine &put) {
    struct Page {
        std::vector<char> text;
        std::size_t size = 0;
        NumberText numbers;
    };
    constexpr double entries = 10; // of a matrix: so long a line takes, about
    const std::size_t lines = std::max<std::size_t>(1, buffer_bytes / longest); // of a page
    if (threads < 1) {
        fail(ErrorKind::invalid_argument, fmt::format("{}: threads = {}, need at least 1", out.name(), threads));
    }
    std::vector<Page> pages(std::min((count + lines - 1) / lines, static_cast<std::size_t>(threads)));
    Team team(static_cast<int>(pages.size()));
    for (std::size_t first = 0; first < count; first += lines * pages.size()) {
        const std::size_t used = std::min((count - first + lines - 1) / lines, pages.size());
        team.for_each(static_cast<std::int64_t>(used), entries * static_cast<double>(count), [&](std::int64_t number) {
            Page &page = pages[static_cast<std::size_t>(number)];
            page.text.resize(lines * longest);
            const std::size_t begin = first + static_cast<std::size_t>(number) * lines;
            char *place = page.text.data();
            for (std::size_t k = begin; k < std::min(begin + lines, count); ++k) place = put(k, place, page.numbers);
            page.size = static_cast<std::size_t>(place - page.text.data());
        });
        for (std::size_t k = 0; k < used; ++k) out.write({pages[k].text.data(), pages[k].size});
    }
}

} // namespace spdc
