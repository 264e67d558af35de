#include "newton_rows.h"

#include "random.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::size_t round_up(std::size_t count, std::size_t unit) { return (count + unit - 1) / unit * unit; }

template <class Vector> void add_to(Vector &sum, const Vector &term) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

/// visit(begin, end) for the upper halves of the rows of a square.
template <class Visit> void each_upper_row(std::size_t size, Visit visit) {
    for (std::size_t row = 0; row < size; ++row) {
        interruption_point(static_cast<std::int64_t>(8 * (size - row))); // maybe new pages
        visit(row * size + row, (row + 1) * size);
    }
}

void add_to_upper(RowVector &sum, const RowVector &term, std::size_t size) {
    if (sum.empty()) return;
    each_upper_row(size, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) sum[i] += term[i];
    });
}

void clear_upper(RowVector &sum, std::size_t size) {
    if (sum.empty()) return;
    each_upper_row(size,
                   [&](std::size_t begin, std::size_t end) { std::fill(sum.data() + begin, sum.data() + end, 0.0); });
}

} // namespace

void RowSums::clear() {
    loss = young = products = weight = largest = 0;
    for (auto *array : {&gradient, &excess}) std::fill(array->begin(), array->end(), 0.0);
    std::fill(mixed.begin(), mixed.end(), 0.0);
    clear_upper(columns, panel_size);
    clear_upper(tail, tail_size);
}

void RowSums::add(const RowSums &other) {
    loss += other.loss;
    young += other.young;
    products += other.products;
    weight += other.weight;
    largest = std::max(largest, other.largest);
    add_to(gradient, other.gradient);
    add_to(excess, other.excess);
    add_to(mixed, other.mixed);
    add_to_upper(columns, other.columns, panel_size);
    add_to_upper(tail, other.tail, tail_size);
}

std::byte *Room::take(std::size_t bytes) {
    constexpr std::size_t piece = std::size_t{1} << 20;
    bytes = round_up(bytes, 64); // a thread's own lines of the cache
    const std::lock_guard guard(mutex_);
    if (bytes > left_) {
        left_ = std::max(bytes, piece);
        pieces_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
        next_ = pieces_.back().get();
    }
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
}

namespace {

/// Adds up the sums of parts in the order of the parts: every so many parts to one total, in turns, so that threads that finish at a time
/// have different ones. Nobody waits for a part ahead of his: who finishes the one whose turn it is adds it, and those behind it that
/// are there. Without locks, because with 16 threads parts come every microsecond.
class OrderedSum {
  public:
    /// Of each thread `depth` sums, which it fills one after the other: so far it may get ahead.
    OrderedSum(std::span<RowSums *const> totals, std::size_t parts, std::span<RowSums> spare, std::size_t depth)
        : totals_(totals), finished_(parts), turns_(totals.size()), spare_(spare), is_taken_(spare.size()),
          depth_(depth) {
        for (std::size_t k = 0; k < turns_.size(); ++k) turns_[k].value = k;
    }

    /// Where the next part that this thread takes is to be summed up: sums(place), all zero.
    std::size_t take(int thread) {
        const std::size_t begin = at(thread) * depth_;
        std::size_t place = begin;
        while (is_taken_[place].value.load(std::memory_order_acquire) != 0) {
            if (++place < begin + depth_) continue;
            place = begin;
            std::this_thread::yield();
        }
        spare_[place].clear();
        return place;
    }
    RowSums &sums(std::size_t place) const { return spare_[place]; }

    /// All sequentially consistent: either we see that it is this part's turn, or who made it so sees the part.
    void give(std::size_t place, std::size_t part) {
        is_taken_[place].value = 1;
        finished_[part].value = place + 1;
        RowSums &total = *totals_[part % totals_.size()];
        std::atomic<std::size_t> &next = turns_[part % totals_.size()].value;
        for (std::size_t turn = next; turn < finished_.size() && finished_[turn].value > 0; next = turn) {
            const std::size_t found = finished_[turn].value.exchange(0); // two may have seen it
            if (found == 0) return;
            total.add(spare_[found - 1]);
            is_taken_[found - 1].value.store(0, std::memory_order_release);
            turn += totals_.size();
        }
    }

  private:
    struct alignas(64) Number {
        std::atomic<std::size_t> value{0};
    };
    const std::span<RowSums *const> totals_;
    std::vector<Number> finished_; // the place of a part's sums, from 1
    std::vector<Number> turns_;    // the next part of each total
    const std::span<RowSums> spare_;
    std::vector<Number> is_taken_;
    const std::size_t depth_;
};

} // namespace

RowBlocks::RowBlocks(const Problem &problem, std::uint64_t seed, LentTeam threads, Source source,
                     std::span<const std::int32_t> some)
    : problem_(problem), kernels_(newton_kernels()), crew_(std::move(threads)), team_(crew_), some_(some),
      rows_(some.empty() ? at(problem.rows()) : some.size()) {
    runs_.resize((rows_ + run - 1) / run);
    std::iota(runs_.begin(), runs_.end(), 0);
    if (source == Source::copied) shuffle(seed);
    choose_panel(problem);
    // the panel of a block and its weighted copy should stay in the second-level cache
    block_rows_ = panel_ <= 128 ? 256 : (panel_ <= 512 ? 128 : 64);
    blocks_ = (rows_ + block_rows_ - 1) / block_rows_;
    const double share = static_cast<double>(rows_) / static_cast<double>(std::max<std::int64_t>(problem.rows(), 1));
    block_work_ =
        share * static_cast<double>(problem.nonzeros()) / static_cast<double>(std::max<std::size_t>(blocks_, 1));
    are_sparse_ = 2 * problem.nonzeros() < problem.rows() * problem.features();
    if (source == Source::in_place) return;
    panel_values_.resize(padded_rows() * panel_);
    tails_.resize(blocks_);
}

/// Runs of 8 rows in random order: random enough for a sample, and a run is read from memory at one go.
void RowBlocks::shuffle(std::uint64_t seed) { Random(seed).shuffle(std::span(runs_).first(rows_ / run)); }

/// Columns of which more than a quarter is filled, judged by the first rows of the shuffled order.
void RowBlocks::choose_panel(const Problem &problem) {
    const std::size_t looked_at = std::min<std::size_t>(rows_, 4096);
    constexpr std::size_t chunk = 512;
    std::vector<std::vector<std::int64_t>> counts((looked_at + chunk - 1) / chunk);
    std::vector<std::int64_t> filled(at(problem.dimension()), 0);
    team_.for_each(static_cast<std::int64_t>(counts.size()), static_cast<double>(problem.nonzeros()),
                   [&](std::int64_t k) {
                       auto &own = counts[at(k)];
                       own.resize(filled.size());
                       std::visit(
                           [&](const auto &matrix) {
                               for (std::size_t p = at(k) * chunk; p < std::min((at(k) + 1) * chunk, looked_at); ++p) {
                                   const auto row = matrix.row(row_at(p));
                                   for (std::int64_t q = 0; q < row.size(); ++q)
                                       own[at(row.column(q))] += row.value(q) != 0 ? 1 : 0;
                               }
                           },
                           problem.matrix());
                   });
    for (const auto &own : counts)
        std::transform(own.begin(), own.end(), filled.begin(), filled.begin(), std::plus<>());
    if (problem.has_intercept()) filled.back() = static_cast<std::int64_t>(looked_at);
    place_.assign(filled.size(), -1);
    for (const bool dense : {true, false}) {
        for (std::size_t j = 0; j < filled.size(); ++j) {
            if ((4 * at(filled[j]) > looked_at) != dense) continue;
            place_[j] = static_cast<std::int32_t>(panel_ + tail_);
            ++(dense ? panel_ : tail_);
        }
    }
}

/// Eight rows are turned into columns beside each other first: in the panel they are 2 KB apart, which is one set of the cache. No
/// branch on where an entry goes: one in the tail is written to a column too many of the panel, one in the panel to a place of
/// the tail that the next entry takes. The tail may have room left behind its last offset.
template <class Matrix>
void RowBlocks::make_block(const Matrix &matrix, std::size_t k, std::vector<double> &columns, double *panel,
                           TailRows &tail) const {
    constexpr std::size_t group = 8;
    constexpr bool is_sparse = requires { matrix.offsets(); };
    const bool is_whole = !is_sparse && tail_ == 0; // a row is in the panel as it is
    const std::size_t begin = k * block_rows_, count = std::min(block_rows_, rows_ - begin);
    columns.resize((panel_ + 1) * group);
    tail.offsets.assign(block_rows_ + 1, 0);
    std::size_t last = 0;
    for (std::size_t first = 0; first < block_rows_; first += group) {
        std::fill(columns.begin(), columns.end(), 0.0);
        if constexpr (is_sparse) { // first where rows begin, later their entries
            if (first + 4 * group < count) __builtin_prefetch(&matrix.offsets()[at(row_at(begin + first + 4 * group))]);
        }
        for (std::size_t i = first; i < std::min(first + group, count); ++i) {
            const auto row = matrix.row(row_at(begin + i));
            if (i + 2 * group < count) matrix.row(row_at(begin + i + 2 * group)).prefetch(0);
            if (tail.values.size() < last + at(row.size()) + 1) {
                tail.values.resize(2 * (last + at(row.size()) + 1));
                tail.columns.resize(tail.values.size());
            }
            for (std::int64_t q = 0; is_whole && q < row.size(); ++q) columns[at(q) * group + i - first] = row.value(q);
            for (std::int64_t q = 0; !is_whole && q < row.size(); ++q) {
                const std::size_t place = at(place_[at(row.column(q))]);
                const double value = row.value(q);
                columns[std::min(place, panel_) * group + i - first] = value;
                tail.columns[last] = static_cast<std::uint16_t>(place - panel_);
                tail.values[last] = value;
                last += (place >= panel_) & (value != 0) ? 1 : 0; // dense data have zeros
            }
            if (problem_.has_intercept()) columns[at(place_.back()) * group + i - first] = 1;
            tail.offsets[i + 1] = static_cast<std::int32_t>(last);
        }
        for (std::size_t c = 0; c < panel_; ++c) {
            std::copy_n(columns.data() + c * group, group, panel + c * block_rows_ + first);
        }
    }
    for (std::size_t i = count; i < block_rows_; ++i) tail.offsets[i + 1] = tail.offsets[i];
}

/// Block k, made unless it is there: in the copy, or in `scratch` where there is none.
RowBlocks::Block RowBlocks::block(std::size_t k, RowScratch &scratch) const {
    const bool copied = !tails_.empty();
    if (copied ? !tails_[k].offsets : scratch.block != k) {
        if (!copied) scratch.panel.resize(block_rows_ * panel_);
        double *const panel = copied ? panel_values_.data() + k * block_rows_ * panel_ : scratch.panel.data();
        std::visit([&](const auto &matrix) { make_block(matrix, k, scratch.group, panel, scratch.tail); },
                   problem_.matrix());
        scratch.block = k;
        if (copied) tails_[k] = keep(scratch.tail);
    }
    const TailRows &own = scratch.tail;
    const TailBlock tail = copied ? tails_[k] : TailBlock{own.offsets.data(), own.columns.data(), own.values.data()};
    const double *const panel = copied ? panel_values_.data() + k * block_rows_ * panel_ : scratch.panel.data();
    return {{panel, panel_, block_rows_, block_rows_}, tail};
}

/// A copy without the room behind the last offset.
TailBlock RowBlocks::keep(const TailRows &tail) const {
    const std::size_t rows = tail.offsets.size(), entries = at(tail.offsets.back());
    std::byte *const room =
        room_.take(entries * (sizeof(double) + sizeof(std::uint16_t)) + rows * sizeof(std::int32_t));
    auto *const values = reinterpret_cast<double *>(room);
    auto *const offsets = reinterpret_cast<std::int32_t *>(values + entries);
    auto *const columns = reinterpret_cast<std::uint16_t *>(offsets + rows);
    std::copy_n(tail.values.data(), entries, values);
    std::copy_n(tail.offsets.data(), rows, offsets);
    std::copy_n(tail.columns.data(), entries, columns);
    return {offsets, columns, values};
}

void RowBlocks::fill_targets(RowVector &b) const {
    fill(b, [&](std::int64_t i) { return problem_.targets()[at(i)]; });
}

void RowBlocks::fill_importance(RowVector &omega) const {
    fill(omega, [&](std::int64_t i) { return problem_.importance(i); });
}

template <class Visit> void RowBlocks::each_entry(std::size_t k, Visit &&visit) const {
    const std::size_t begin = k * block_rows_, count = std::min(block_rows_, rows_ - begin);
    std::visit(
        [&](const auto &matrix) {
            for (std::size_t i = 0; i < count; ++i) {
                const auto row = matrix.row(row_at(begin + i));
                for (std::int64_t q = 0; q < row.size(); ++q) visit(i, at(place_[at(row.column(q))]), row.value(q));
                if (problem_.has_intercept()) visit(i, at(place_.back()), 1.0);
            }
        },
        problem_.matrix());
}

void RowBlocks::predict(std::size_t k, const double *x, double *z, RowScratch &scratch) const {
    std::fill(z, z + block_rows_, 0.0);
    if (reads_rows(k, scratch)) {
        each_entry(k, [&](std::size_t i, std::size_t place, double value) { z[i] += value * x[place]; });
        return;
    }
    const auto [panel, rows] = block(k, scratch);
    if (panel_ > 0) kernels_.predict(panel, x, z);
    const double *const tail_x = x + panel_;
    for (std::size_t i = 0; i < block_rows_; ++i) {
        for (std::int32_t q = rows.offsets[i]; q < rows.offsets[i + 1]; ++q)
            z[i] += rows.values[q] * tail_x[rows.columns[q]];
    }
}

void RowBlocks::combine(std::size_t k, const double *w, double *g, RowScratch &scratch) const {
    if (reads_rows(k, scratch)) {
        each_entry(k, [&](std::size_t i, std::size_t place, double value) { g[place] += w[i] * value; });
        return;
    }
    const auto [panel, rows] = block(k, scratch);
    if (panel_ > 0) kernels_.combine(panel, w, g);
    double *const tail_g = g + panel_;
    for (std::size_t i = 0; i < block_rows_; ++i) {
        const double own = w[i];
        if (own == 0) continue; // as beyond a margin
        const std::int32_t end = rows.offsets[i + 1];
        for (std::int32_t q = rows.offsets[i]; q < end; ++q) tail_g[rows.columns[q]] += own * rows.values[q];
    }
}

void RowBlocks::add_hessian(std::size_t k, const double *h, RowScratch &scratch, RowSums &sums) const {
    std::size_t active = 0;
    for (std::size_t i = 0; i < block_rows_; ++i) {
        if (h[i] == 0) continue;
        scratch.active[active] = static_cast<std::int32_t>(i);
        scratch.active_h[active++] = h[i];
    }
    if (active == 0) return;
    const auto [all, tail] = this->block(k, scratch);
    ColumnBlock block = all;
    // copying the active rows costs about as much as 8 products with a column
    const bool compacts = active * (panel_ + 16) < block_rows_ * panel_;
    if (compacts) block = {scratch.compact.data(), panel_, block_rows_, round_up(active, 4)};
    for (std::size_t c = 0; c < panel_; ++c) {
        double *const weighted = scratch.weighted.data() + c * block_rows_;
        const double *const column = all.column(c);
        if (!compacts) {
            for (std::size_t i = 0; i < block_rows_; ++i) weighted[i] = h[i] * column[i];
            continue;
        }
        double *const compact = scratch.compact.data() + c * block_rows_;
        for (std::size_t i = 0; i < active; ++i) {
            compact[i] = column[scratch.active[i]];
            weighted[i] = scratch.active_h[i] * compact[i];
        }
        for (std::size_t i = active; i < block.rows; ++i) compact[i] = weighted[i] = 0;
    }
    const ColumnBlock weighted{scratch.weighted.data(), panel_, block_rows_, block.rows};
    for (std::size_t c = 0; c < panel_; c += 256) {
        if (c > 0) scratch.pause();
        const ColumnBlock some{weighted.column(c), std::min<std::size_t>(256, panel_ - c), weighted.stride, block.rows};
        const ColumnBlock rest{block.column(c), panel_ - c, block.stride, block.rows};
        kernels_.gram(some, rest, 0, sums.columns.data() + c * panel_ + c, panel_);
    }
    if (tail_ == 0) return;
    const std::size_t stride = round_up(panel_, 4);
    constexpr std::size_t line = 8; // numbers of a cache line: written as a whole
    for (std::size_t first = 0; first < panel_; first += line) {
        const std::size_t last = std::min(first + line, panel_);
        for (std::size_t i = 0; i < active; ++i) {
            const double *const row = weighted.values + (compacts ? i : at(scratch.active[i]));
            for (std::size_t c = first; c < last; ++c) scratch.scaled[i * stride + c] = row[c * block_rows_];
        }
    }
    // pieces of about a million products
    const double entries = tail.offsets[block_rows_] / static_cast<double>(block_rows_);
    const double products = entries * (0.5 * entries + static_cast<double>(stride)) + 1;
    const std::size_t piece = std::max<std::size_t>(1, static_cast<std::size_t>(1e6 / products));
    for (std::size_t i = 0; i < active; i += piece) {
        if (i > 0) scratch.pause();
        kernels_.tail(tail, scratch.active.data() + i, std::min(piece, active - i), scratch.active_h.data() + i,
                      scratch.scaled.data() + i * stride,
                      {sums.columns.data(), sums.mixed.data(), sums.tail.data(), panel_, stride, tail_});
    }
}

void RowBlocks::sum(std::size_t blocks, bool with_hessian, RowSums &total, const BlockWork &work) const {
    // more parts share out better, but each has sums of its own: large ones with many features, and without a Hessian parts are
    // soon done, so that handing them over would take as long
    const bool small = dimension() <= 256;
    const std::size_t most = small ? (with_hessian ? 128 : 64) : 16;
    const std::size_t parts = blocks < 16 ? 1 : std::min<std::size_t>(blocks / (small ? 2 : 16), most);
    const std::size_t depth = small ? 2 : 1, total_count = small ? std::min<std::size_t>(parts, 4) : 1;
    // made before the threads run: a lack of memory is the caller's to hear of
    const std::size_t crew = std::min(parts, static_cast<std::size_t>(team_.size()));
    std::vector<RowSums> &spare = spare_sums_[with_hessian ? 1 : 0], &more = more_totals_[with_hessian ? 1 : 0];
    while (spare.size() < depth * crew) {
        spare.push_back(make_sums(with_hessian));
        spare.back().clear(); // new pages: here it can be interrupted
    }
    while (more.size() + 1 < total_count) more.push_back(make_sums(with_hessian));
    const bool fits = total.panel_size == (with_hessian ? panel_ : 0) && total.tail_size == (with_hessian ? tail_ : 0);
    if (!fits || total.gradient.size() != dimension()) total = make_sums(with_hessian);
    std::vector<RowSums *> totals{&total};
    for (std::size_t k = 1; k < total_count; ++k) totals.push_back(&more[k - 1]);
    for (RowSums *sums : totals) sums->clear();
    if (scratches_.size() < crew) scratches_.resize(crew);
    OrderedSum sum(totals, parts, spare, depth);
    std::atomic<std::size_t> next_part{0};
    std::atomic<bool> is_broken = false;
    std::exception_ptr error;
    std::once_flag failed;
    const auto fail = [&] { // nobody starts another part, and the caller hears of it
        std::call_once(failed, [&] { error = std::current_exception(); });
        is_broken = true;
        next_part = parts;
    };
    const auto prepare = [&](int thread) {
        RowScratch &scratch = scratches_[at(thread)];
        if (scratch.w.empty()) scratch = make_scratch();
        scratch.pause = [&, thread] { // the first thread hears of an interrupt, the others from it
            if (thread == 0) team_.check();
            if (is_broken) throw Interrupted{};
        };
    };
    const auto run_part = [&](std::size_t part, RowScratch &scratch, RowSums &sums) {
        for (std::size_t k = part_begin(part, parts, blocks); k < part_begin(part + 1, parts, blocks); ++k) {
            scratch.pause();
            scratch.block = RowScratch::no_block; // who made a panel before depends on the number of threads
            work(k, scratch, sums);
        }
    };
    const auto body = [&](int thread) {
        if (at(thread) >= crew) return;
        try {
            prepare(thread);
        } catch (...) {
            fail();
        }
        for (;;) {
            // before the part: the first one that is not finished always has its sums
            const std::size_t place = sum.take(thread);
            const std::size_t part = next_part++;
            if (part >= parts) return;
            try {
                run_part(part, scratches_[at(thread)], sum.sums(place));
            } catch (...) { // interrupted, or no memory for a block
                fail();
            }
            sum.give(place, part);
        }
    };
    if (parts == 1) {
        body(0);
    } else {
        team_.run(body);
        threads_ = team_.size();
    }
    if (error) std::rethrow_exception(error);
    for (std::size_t k = 1; k < total_count; ++k) total.add(*totals[k]);
}

void RowBlocks::each(std::size_t blocks, const std::function<void(std::size_t)> &work) const {
    const std::size_t group = std::max<std::size_t>(blocks / 128, 1); // of blocks: who takes one makes the others wait
    const int ran = team_.for_each(static_cast<std::int64_t>((blocks + group - 1) / group),
                                   block_work_ * static_cast<double>(blocks), [&](std::int64_t g) {
                                       const std::size_t end = std::min(blocks, (at(g) + 1) * group);
                                       for (std::size_t k = at(g) * group; k < end; ++k) work(k);
                                   });
    threads_ = std::max(threads_, ran);
}

RowScratch RowBlocks::make_scratch() const {
    RowScratch scratch;
    scratch.weighted.resize(panel_ * block_rows_);
    scratch.compact.resize(panel_ * block_rows_);
    if (tail_ > 0) scratch.scaled.resize(round_up(panel_, 4) * block_rows_);
    for (auto *array : {&scratch.w, &scratch.h, &scratch.active_h, &scratch.y, &scratch.excess}) {
        array->resize(block_rows_);
    }
    scratch.active.resize(block_rows_);
    return scratch;
}

RowSums RowBlocks::make_sums(bool with_hessian) const {
    RowSums sums;
    sums.gradient.resize(dimension());
    sums.excess.resize(dimension());
    if (!with_hessian) return sums;
    sums.panel_size = panel_;
    sums.tail_size = tail_;
    sums.columns.resize(panel_ * panel_);
    sums.mixed.resize(tail_ * round_up(panel_, 4));
    sums.tail.resize(tail_ * tail_);
    return sums;
}

void RowBlocks::assemble(const RowSums &sums, double scale, Eigen::MatrixXd &hessian) const {
    const std::size_t d = dimension(), stride = round_up(panel_, 4);
    hessian.resize(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(d));
    constexpr std::size_t chunk = 32; // columns: so many that a line of the mixed part is read once
    const auto fill_column = [&](std::size_t column) {
        double *const to = hessian.data() + column * d;
        if (column < panel_) {
            for (std::size_t k = column; k < panel_; ++k) to[k] = scale * sums.columns[column * panel_ + k];
            return;
        }
        const double *const from = sums.tail.data() + (column - panel_) * tail_;
        for (std::size_t k = column - panel_; k < tail_; ++k) to[panel_ + k] = scale * from[k];
    };
    team_.for_each(static_cast<std::int64_t>((d + chunk - 1) / chunk), 0.5 * static_cast<double>(d * d),
                   [&](std::int64_t piece) {
                       const std::size_t begin = at(piece) * chunk, end = std::min(begin + chunk, d);
                       for (std::size_t column = begin; column < end; ++column) fill_column(column);
                       for (std::size_t j = 0; j < tail_; ++j) {
                           for (std::size_t column = begin; column < std::min(end, panel_); ++column) {
                               hessian.data()[column * d + panel_ + j] = scale * sums.mixed[j * stride + column];
                           }
                       }
                   });
}

} // namespace spdc
