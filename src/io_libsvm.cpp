// LIBSVM / svmlight text: one row a line, "label index:value index:value ... # comment", indices ascending.
#include "io_text.h"
#include "parallel.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

namespace spdc {

namespace {

constexpr std::int64_t largest_index = std::numeric_limits<std::int32_t>::max();

/// The digits at p, which is moved behind them; largest_index + 1 when there are too many.
std::int64_t parse_index(const char *&p) noexcept {
    const char *const digits = p;
    std::uint64_t index = 0;
    add_digits<padding>(p, index);
    if (p - digits > 18) { // too many for 64 bits, unless most are zeros in front
        index = 0;
        for (const char *q = digits; q != p; ++q) {
            index = std::min<std::uint64_t>(10 * index + static_cast<std::uint64_t>(*q - '0'), largest_index + 1);
        }
    }
    return static_cast<std::int64_t>(std::min<std::uint64_t>(index, largest_index + 1));
}

/// A place in the text, both numbers from 1.
struct Place {
    std::int64_t line = 0, column = 0;
};

/// What the parser of a block found wrong; lines count from the block's first, since it cannot know how many came before.
struct Misread {
    Place place;
    std::string message;
};

/// The rows of one block of lines. Kept from block to block, so that its memory stays in the cache.
class BlockParser {
  public:
    explicit BlockParser(const ReadOptions &options)
        : forced_base_(options.index_base), features_(options.features), limit_(largest_index) {
        if (features_ > 0) {
            limit_ = std::min(limit_, features_ - 1 + forced_base_.value_or(1));
        }
    }

    /// Replaces what is below by the rows of this text, which has `padding` zeros behind it. Throws Misread.
    void parse(std::string_view text);

    GrowingArray<double> targets;
    GrowingArray<std::int64_t> ends;    // of the rows, in columns and values
    GrowingArray<std::int32_t> columns; // from 0, or from -1 where an index is 0 and no base is forced
    GrowingArray<double> values;
    std::int64_t lines = 0;
    std::int64_t last_index = -1;  // largest seen
    std::optional<Place> at_limit; // of the first index beyond the features asked for should the base turn out to be 0
    bool zero_seen = false;
    bool all_float = true;

  private:
    const char *parse_label(const char *p);
    const char *parse_entries(const char *p);
    const char *skip_query(const char *p) const;
    bool at_row_end(const char *p) const noexcept { return at_line_end(p, text_end_) || *p == '#'; }
    Place place_of(const char *p) const noexcept { return {lines + 1, p - line_ + 1}; }
    [[noreturn]] void fail_at(const char *p, std::string message) const {
        throw Misread{place_of(p), std::move(message)};
    }
    [[noreturn]] void fail_entry(const char *p) const;
    [[noreturn]] void fail_index(const char *token, std::int64_t index, std::int64_t previous) const;

    std::optional<int> forced_base_;
    std::int64_t features_;
    std::int64_t limit_; // largest index allowed, as far as known before the base is
    const char *text_end_ = nullptr;
    const char *line_ = nullptr; // where the present line begins
};

void BlockParser::parse(std::string_view text) {
    text_end_ = text.data() + text.size();
    targets.cut(0);
    ends.cut(0);
    columns.cut(0);
    values.cut(0);
    // No row takes less than two bytes, "1\n", and no entry less than four, " 1:1".
    targets.make_room(text.size() / 2 + 1);
    ends.make_room(text.size() / 2 + 1);
    columns.make_room(text.size() / 4 + 1);
    values.make_room(text.size() / 4 + 1);
    lines = 0;
    last_index = -1;
    at_limit.reset();
    zero_seen = false;
    all_float = true;
    for (line_ = text.data(); line_ != text_end_; ++lines) {
        const char *p = skip_blanks(line_);
        if (!at_row_end(p)) {
            p = parse_entries(parse_label(p));
        }
        line_ = *p == '\n' ? p + 1 : next_line(p, text_end_);
    }
}

const char *BlockParser::parse_label(const char *p) {
    const char *const place = p;
    double label = 0;
    NumberStatus status = parse_number(p, label);
    if (status == NumberStatus::ok && !is_blank(*p) && !at_row_end(p)) {
        if (*p == ':') {
            fail_at(place,
                    fmt::format("no label before {}, expected 'label index:value ...'", quoted_word(place, text_end_)));
        }
        status = NumberStatus::no_number;
    }
    if (status != NumberStatus::ok) {
        fail_at(place, number_message(place, text_end_, status, "label"));
    }
    *targets.free_space() = label;
    targets.added(1);
    return p;
}

const char *BlockParser::parse_entries(const char *p) {
    const std::int64_t base = forced_base_.value_or(1);
    std::int64_t previous = forced_base_.value_or(0) - 1;
    const char *token = p;
    std::int32_t *column = columns.free_space();
    double *number = values.free_space();
    bool exact = all_float;
    for (;;) {
        p = skip_blanks(p);
        if (!is_digit(*p)) {
            if (at_row_end(p)) {
                break;
            }
            p = skip_query(p);
            continue;
        }
        token = p;
        const std::int64_t index = parse_index(p);
        if (*p != ':') {
            fail_entry(token);
        }
        if (index <= previous || index > limit_) {
            fail_index(token, index, previous);
        }
        zero_seen |= index == 0;
        previous = index;
        const char *const place = ++p;
        double value = 0;
        const NumberStatus status = parse_number<padding>(p, value);
        if (status != NumberStatus::ok || !(is_blank(*p) || at_row_end(p))) {
            fail_at(place,
                    number_message(place, text_end_, status == NumberStatus::ok ? NumberStatus::no_number : status,
                                   fmt::format("value of feature {}:", index)));
        }
        exact = exact && fits_float(value);
        *column = static_cast<std::int32_t>(index - base);
        *number = value;
        column += value != 0 ? 1 : 0;
        number += value != 0 ? 1 : 0;
    }
    all_float = exact;
    columns.cut(static_cast<std::size_t>(column - columns.data()));
    values.cut(columns.size());
    *ends.free_space() = static_cast<std::int64_t>(columns.size());
    ends.added(1);
    last_index = std::max(last_index, previous); // indices ascend, so the last of a row is its largest
    if (previous == features_ && features_ > 0 && !at_limit) {
        at_limit = place_of(token);
    }
    return p;
}

// "qid:N" groups rows for ranking; there is nothing here to use it for.
const char *BlockParser::skip_query(const char *p) const {
    const std::string_view rest(p, static_cast<std::size_t>(text_end_ - p));
    if (!rest.starts_with("qid:") || !is_digit(p[4])) {
        fail_entry(p);
    }
    const char *q = p + 4;
    while (is_digit(*q)) {
        ++q;
    }
    if (!is_blank(*q) && !at_row_end(q)) {
        fail_entry(p);
    }
    return q;
}

void BlockParser::fail_entry(const char *p) const {
    const std::string word = quoted_word(p, text_end_);
    if (*p == '-' && is_digit(p[1])) {
        fail_at(p,
                fmt::format("negative index in {}, expected an index of {} or more", word, forced_base_.value_or(0)));
    }
    if (is_digit(*p)) {
        fail_at(p, fmt::format("no colon behind the index in {}, expected 'index:value'", word));
    }
    fail_at(p, fmt::format("unexpected {}, expected 'index:value', 'qid:N', '#' or the end of the line", word));
}

void BlockParser::fail_index(const char *token, std::int64_t index, std::int64_t previous) const {
    if (index > largest_index) {
        fail_at(token, fmt::format("index in {} is too large, expected at most {}", quoted_word(token, text_end_),
                                   largest_index));
    }
    if (index > limit_) {
        fail_at(token, fmt::format("index {} is beyond the {} features asked for, expected at most {}", index,
                                   features_, limit_));
    }
    if (forced_base_ == 1 && index == 0) {
        fail_at(token, "index 0, expected 1 or more because the index base is set to 1");
    }
    fail_at(token,
            fmt::format("index {} after index {}, expected ascending indices without repetition", index, previous));
}

/// The rows of all blocks, in order.
class Assembly {
  public:
    Assembly(const std::string &name, const ReadOptions &options) : name_(name), options_(options) {
        offsets_.make_room(1);
        *offsets_.free_space() = 0;
        offsets_.added(1);
    }

    /// Adds the next block. `share`: which part of the input has been read, 0 when unknown.
    void append(const BlockParser &block, double share);
    Dataset take();
    /// What to throw for a place in the block that comes next.
    Error error_at(const Place &place, const std::string &message) const {
        return {ErrorKind::bad_file, fmt::format("{}:{}:{}: {}", name_, lines_ + place.line, place.column, message)};
    }

  private:
    template <class Value> CsrMatrix<Value> take_matrix(GrowingArray<Value> values, int base);
    void add_values(std::span<const double> values, std::size_t hoped_for);

    const std::string &name_;
    const ReadOptions &options_;
    std::vector<double> targets_;
    GrowingArray<std::int64_t> offsets_;
    GrowingArray<std::int32_t> columns_;
    GrowingArray<float> floats_; // while all values fit, then doubles_
    GrowingArray<double> doubles_;
    std::int64_t lines_ = 0;
    std::int64_t last_index_ = -1;
    std::optional<Place> at_limit_; // lines of the whole text
    bool zero_seen_ = false;
    bool all_float_ = true;
};

void Assembly::append(const BlockParser &block, double share) {
    const auto hoped_for = [share](std::size_t count) { // a little more, because blocks differ
        return share > 0 ? static_cast<std::size_t>(1.05 * static_cast<double>(count) / std::min(share, 1.0)) : 0;
    };
    const std::size_t rows = block.targets.size(), entries = block.columns.size();
    if (targets_.capacity() < targets_.size() + rows) {
        targets_.reserve(std::max(targets_.size() + targets_.size() / 2 + rows, hoped_for(targets_.size() + rows)));
    }
    targets_.insert(targets_.end(), block.targets.data(), block.targets.data() + rows);

    const auto before = static_cast<std::int64_t>(columns_.size());
    offsets_.make_room(rows, hoped_for(offsets_.size() + rows));
    std::transform(block.ends.data(), block.ends.data() + rows, offsets_.free_space(),
                   [before](std::int64_t end) { return before + end; });
    offsets_.added(rows);

    columns_.make_room(entries, hoped_for(columns_.size() + entries));
    std::copy_n(block.columns.data(), entries, columns_.free_space());
    columns_.added(entries);
    if (all_float_ && !block.all_float) {
        doubles_.make_room(floats_.size() + entries, hoped_for(columns_.size()));
        std::copy_n(floats_.data(), floats_.size(), doubles_.data());
        doubles_.added(floats_.size());
        floats_ = {};
        all_float_ = false;
    }
    add_values(block.values.view(), hoped_for(columns_.size()));

    if (block.at_limit && !at_limit_) {
        at_limit_ = {lines_ + block.at_limit->line, block.at_limit->column};
    }
    lines_ += block.lines;
    last_index_ = std::max(last_index_, block.last_index);
    zero_seen_ |= block.zero_seen;
}

void Assembly::add_values(std::span<const double> values, std::size_t hoped_for) {
    if (all_float_) {
        floats_.make_room(values.size(), hoped_for);
        std::transform(values.begin(), values.end(), floats_.free_space(),
                       [](double value) { return static_cast<float>(value); });
        floats_.added(values.size());
    } else {
        doubles_.make_room(values.size(), hoped_for);
        std::copy(values.begin(), values.end(), doubles_.free_space());
        doubles_.added(values.size());
    }
}

template <class Value> CsrMatrix<Value> Assembly::take_matrix(GrowingArray<Value> values, int base) {
    struct Owner {
        GrowingArray<std::int64_t> offsets;
        GrowingArray<std::int32_t> columns;
        GrowingArray<Value> values;
    };
    offsets_.trim();
    columns_.trim();
    values.trim();
    if (!options_.index_base && base == 0) { // the blocks took it for 1
        for (std::size_t p = 0; p < columns_.size(); ++p) {
            ++columns_.data()[p];
        }
    }
    const std::int64_t cols =
        options_.features > 0 ? options_.features : std::max<std::int64_t>(0, last_index_ - base + 1);
    const auto owner =
        std::make_shared<const Owner>(Owner{std::move(offsets_), std::move(columns_), std::move(values)});
    return CsrMatrix<Value>::trusted(cols, owner->offsets.view(), owner->columns.view(), owner->values.view(), owner);
}

Dataset Assembly::take() {
    if (targets_.empty()) {
        fail(ErrorKind::bad_file,
             fmt::format("{}:1:1: no rows, expected lines of the form 'label index:value ...'", name_));
    }
    Dataset data;
    data.index_base = options_.index_base.value_or(zero_seen_ ? 0 : 1);
    if (data.index_base == 0 && at_limit_) {
        const std::int64_t most = options_.features;
        fail(
            ErrorKind::bad_file,
            fmt::format("{}:{}:{}: index {} is beyond the {} features asked for, expected at most {} (indices begin at "
                        "0 in this file)",
                        name_, at_limit_->line, at_limit_->column, most, most, most - 1));
    }
    if (all_float_) {
        data.matrix = take_matrix(std::move(floats_), data.index_base);
    } else {
        data.matrix = take_matrix(std::move(doubles_), data.index_base);
    }
    data.targets = std::move(targets_);
    return data;
}

/// Threads that take blocks, one after another, and parse them side by side; they are added in the order of the text, so what is
/// found wrong is what is wrong first in the text, for any number of threads. Whichever thread comes next reads, and
/// decompresses, while the others parse; whichever finishes the block that is next adds it and those that have waited for it.
class Readers {
  public:
    Readers(InputStream &stream, const ReadOptions &options)
        : stream_(stream), options_(options), blocks_(stream), assembly_(stream.name(), options) {}

    Dataset read(int threads);

  private:
    struct Task {
        explicit Task(const ReadOptions &options) : rows(options) {}
        std::int64_t number = 0;
        double share = 0; // of the input that has been read
        ByteBuffer text;
        BlockParser rows;
        std::exception_ptr problem;
    };
    using TaskPointer = std::unique_ptr<Task>;
    void work();
    TaskPointer take_idle();
    TaskPointer take();
    void add(TaskPointer task);
    void append(const Task &task);

    InputStream &stream_;
    const ReadOptions &options_;
    std::atomic<bool> ended_ = false;

    std::mutex reading_; // guards stream_ and
    LineBlocks blocks_;
    std::int64_t taken_ = 0;

    std::mutex adding_; // guards all below; those from assembly_ on belong to the thread that has set appending_
    std::condition_variable idle_changed_;
    std::vector<TaskPointer> idle_;  // the last one used is the first to be used again: it is in the cache
    std::vector<TaskPointer> ready_; // parsed, waiting for their turn, at their number modulo the size
    std::int64_t added_ = 0;
    bool appending_ = false;
    Assembly assembly_;
    std::exception_ptr problem_; // the first in the text
    bool misread_ = false;       // it is one of the text, not of the stream
};

Readers::TaskPointer Readers::take_idle() {
    std::unique_lock lock(adding_);
    idle_changed_.wait(lock, [&] { return !idle_.empty(); });
    TaskPointer task = std::move(idle_.back());
    idle_.pop_back();
    return task;
}

// Nothing at the end.
Readers::TaskPointer Readers::take() {
    TaskPointer task = take_idle();
    task->problem = nullptr;
    {
        const std::lock_guard lock(reading_);
        try {
            if (!ended_ && blocks_.next(task->text)) {
                task->number = taken_++;
                task->share = stream_.size() > 0
                                  ? static_cast<double>(stream_.position()) / static_cast<double>(stream_.size())
                                  : 0;
                return task;
            }
        } catch (...) {
            task->problem = std::current_exception();
            task->number = taken_++;
        }
        ended_ = true;
        if (task->problem) {
            return task;
        }
    }
    const std::lock_guard lock(adding_);
    idle_.push_back(std::move(task));
    idle_changed_.notify_all(); // others wait for one to find the end with
    return nullptr;
}

void Readers::append(const Task &task) {
    if (problem_) {
        return;
    }
    try {
        if (task.problem) {
            std::rethrow_exception(task.problem);
        }
        assembly_.append(task.rows, task.share);
    } catch (const Misread &misread) {
        problem_ = std::make_exception_ptr(assembly_.error_at(misread.place, misread.message));
        misread_ = true;
    } catch (...) {
        problem_ = std::current_exception();
    }
    if (problem_) {
        ended_ = true;
    }
}

void Readers::add(TaskPointer task) {
    const auto place = [this](std::int64_t number) -> TaskPointer & {
        return ready_[static_cast<std::size_t>(number) % ready_.size()];
    };
    std::unique_lock lock(adding_);
    const std::int64_t number = task->number;
    place(number) = std::move(task);
    if (appending_) {
        return; // that thread will come to it
    }
    appending_ = true;
    while (TaskPointer next = std::move(place(added_))) {
        lock.unlock();
        append(*next);
        lock.lock();
        ++added_;
        idle_.push_back(std::move(next));
        idle_changed_.notify_one();
    }
    appending_ = false;
}

void Readers::work() {
    while (TaskPointer task = take()) {
        if (!task->problem) {
            try {
                task->rows.parse(text_of(task->text));
            } catch (...) {
                task->problem = std::current_exception();
            }
        }
        add(std::move(task));
    }
}

Dataset Readers::read(int threads) {
    stream_.skip_byte_order_mark();
    const std::size_t blocks = stream_.size() / LineBlocks::block_bytes + 1; // more, where bytes are packed
    const bool small = stream_.peek(2 * LineBlocks::block_bytes).size() < 2 * LineBlocks::block_bytes;
    const std::size_t team = small ? 1 : std::min<std::size_t>(static_cast<std::size_t>(threads), 2 * blocks);
    ready_.resize(4 * team); // so many blocks may wait for a slow one
    for (std::size_t k = 0; k < ready_.size(); ++k) {
        idle_.push_back(std::make_unique<Task>(options_));
    }
    run_team(static_cast<int>(team), [this](int) { work(); });
    if (misread_) {
        stream_.check_rest();
    }
    if (problem_) {
        std::rethrow_exception(problem_);
    }
    return assembly_.take();
}

} // namespace

Dataset read_libsvm(InputStream &stream, const ReadOptions &options) {
    return Readers(stream, options).read(options.threads);
}

} // namespace spdc
