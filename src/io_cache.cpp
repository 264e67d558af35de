// FILE.spdc beside FILE: made by the first reading, used by the next ones as long as it can only be what that reading found.
#include "io_spdc.h"
#include "io_text.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace spdc {

namespace {

constexpr std::string_view first_words = "cache of ";

/// The first and the last 64 KiB of a file of `size` bytes.
std::uint64_t sum_of_ends(int descriptor, std::int64_t size) {
    constexpr std::int64_t most = std::int64_t{1} << 16;
    std::string bytes(static_cast<std::size_t>(most), '\0');
    Checksum sum;
    for (const std::int64_t begin : {std::int64_t{0}, std::max<std::int64_t>(0, size - most)}) {
        const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), begin);
        sum.add(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return sum.value();
}

/// What tells one state of a file from another, and the options that decide what is made of it. Not among them: the number of
/// features, which is applied to what is stored.
std::optional<std::string> describe(const std::string &path, const ReadOptions &options) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        if (descriptor >= 0) ::close(descriptor);
        return std::nullopt;
    }
    const std::uint64_t sum = sum_of_ends(descriptor, status.st_size);
    ::close(descriptor);
    return fmt::format("{}{}\nsize {}\nmodified {}.{:09}\ninode {} {}\nends {:016x}\nformat {}\nlabel column {}\n",
                       first_words, std::filesystem::path(path).filename().string(), status.st_size,
                       status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_dev, status.st_ino, sum,
                       static_cast<int>(options.format), options.label_column);
}

// How an index base was asked for; the last line of a description.
std::string base_line(std::optional<int> base) {
    return base ? fmt::format("index base {}\n", *base) : "index base any\n";
}

// Whether a reading with `asked` finds what one with `made` found. To force what was found anyway, or to let be found what can
// only have been found, makes no difference: base 1, forced, allows no index 0.
bool same_base(std::string_view made, std::optional<int> asked, int found) {
    return made == base_line(asked) || (asked && *asked == found) || (!asked && made == base_line(1));
}

bool is_cache_of_other_version(const std::string &path) {
    try {
        InputStream stream(path);
        return source_of_other_version(stream).starts_with(first_words);
    } catch (const Error &) {
        return false; // not to be read: the error that is there already says why
    }
}

/// The cache at `path`: nothing there, one to use, or one to replace. Anything else is not ours and stays.
std::optional<Dataset> usable_cache(const std::string &path, const std::string &description,
                                    const ReadOptions &options) {
    std::error_code code;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, code))) return std::nullopt;
    const std::string explanation = "exists and is no cache that --cache made; move it away, or read without --cache";
    SpdcFile file;
    try {
        InputStream stream(path);
        file = read_spdc(stream, options.threads);
    } catch (const Error &error) {
        if (is_cache_of_other_version(path)) return std::nullopt;
        fail(ErrorKind::bad_file, fmt::format("{}: {} ({})", path, explanation, error.what()));
    }
    if (!file.source.starts_with(first_words)) fail(ErrorKind::bad_file, fmt::format("{}: {}", path, explanation));
    const std::string_view source = file.source;
    if (!source.starts_with(description)) return std::nullopt;
    if (!same_base(source.substr(description.size()), options.index_base, file.data.index_base)) return std::nullopt;
    return std::move(file.data);
}

/// Reads the text and makes the cache; gives the cache's data, so that the first run computes what the next ones will.
Dataset read_and_cache(const std::string &path, const std::string &cache, const std::string &description,
                       const ReadOptions &options, std::string &warning) {
    ReadOptions plain = options;
    plain.features = 0;
    Dataset data = read_dataset(path, plain);
    if (describe(path, options) != description) {
        warning = fmt::format("{} changed while it was read; no cache is made", path);
        return data;
    }
    try {
        OutputFile out(cache);
        write_spdc(data, out, description + base_line(options.index_base));
        out.commit();
        return usable_cache(cache, description, options).value_or(std::move(data));
    } catch (const Error &error) {
        warning = fmt::format("no cache is made: {}", error.what());
        return data;
    }
}

} // namespace

Dataset read_dataset_cached(const std::string &path, const ReadOptions &options, std::string &warning) {
    warning.clear();
    const std::optional<std::string> description = describe(path, options);
    if (!description || is_spdc(InputStream(path).peek(16))) return read_dataset(path, options);
    const std::string cache = path + ".spdc";
    std::optional<Dataset> data = usable_cache(cache, *description, options);
    if (!data) data = read_and_cache(path, cache, *description, options, warning);
    const bool too_many = options.features > 0 && data->features() > options.features;
    if (too_many) return read_dataset(path, options); // the text knows where the first index beyond them stands
    fit_to_options(*data, options, cache);
    if (options.check_entries) check(data->matrix);
    return std::move(*data);
}

} // namespace spdc
