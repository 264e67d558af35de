#include "owner_rows.h"

#include "row_views.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

namespace spdc {

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Finer than octaves: features of one bucket differ by an eighth in their count. Falling counts give rising buckets.
constexpr std::size_t buckets = 33 * 8;
std::size_t bucket_of(std::uint32_t count) noexcept {
    const int octave = std::bit_width(count);
    const std::uint32_t eighth = octave > 3 ? (count >> (octave - 4)) & 7 : 0;
    return buckets - 1 - (at(octave) * 8 + eighth);
}

constexpr std::int64_t line = 64 / sizeof(ZU); // of the cache, in slots

constexpr std::int64_t most_hot = 256; // features of an owner: their columns should stay in the cache

constexpr std::int64_t chunks = 64; // of the features, for shared work with one result

__attribute__((always_inline)) inline void add_products_to(const HalfFloat *gram, float first, float second,
                                                           float *__restrict c, float *__restrict e) noexcept {
    for (int k = 0; k < gram_row; ++k) {
        const float product = from_half(gram[k]);
        c[k] += first * product;
        e[k] += second * product;
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) void add_products_avx2(const HalfFloat *gram, float first, float second, float *c,
                                                       float *e) noexcept {
    add_products_to(gram, first, second, c, e);
}
const bool has_avx2 = __builtin_cpu_supports("avx2");
#endif

} // namespace

HalfFloat to_half(float value) noexcept {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    return static_cast<HalfFloat>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16); // to nearest, ties to even
}

/// The next row waits for it. Products are never fused with sums: the bits are the same with wide vectors and without.
void add_products(const HalfFloat *gram, float first, float second, float *c, float *e) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
    if (has_avx2) return add_products_avx2(gram, first, second, c, e);
#endif
    add_products_to(gram, first, second, c, e);
}

OwnerRows::OwnerRows(const AnyMatrix &matrix, std::span<const double> row_values, std::span<const std::int32_t> order,
                     int owners, Team &team)
    : owners_(owners), bits_(std::bit_width(static_cast<unsigned>(owners - 1))) {
    visit_rows(matrix, row_values, [&]<class Matrix>(const Matrix &m) {
        number_features(m, team);
        measure_rows(m, order, team);
        if constexpr (requires { typename Matrix::value_type; }) {
            split<typename Matrix::value_type>(m, order, team);
        } else {
            split<Same>(m, order, team);
        }
    });
}

template <class Value, class Matrix>
void OwnerRows::split(const Matrix &matrix, std::span<const std::int32_t> order, Team &team) {
    const auto fill = [&](auto &entries) {
        make_numbers(team, entries.slots, at(starts_.back()));
        make_numbers(team, entries.values, std::is_same_v<Value, Same> ? order.size() : at(starts_.back()));
        if constexpr (std::is_same_v<Value, Same>) {
            for (std::size_t p = 0; p < order.size(); ++p) entries.values[p] = {matrix.values[at(order[p])]};
        }
        entries.lone.resize(starts_.size() - 1);
        const auto batches = static_cast<std::int64_t>(starts_.size()) - 1;
        team.for_each(chunks, [&](std::int64_t chunk) {
            SplitScratch<typename std::decay_t<decltype(entries)>::Lone> scratch;
            for (std::int64_t batch = batches * chunk / chunks; batch < batches * (chunk + 1) / chunks; ++batch) {
                split_batch(matrix, order, batch, entries, scratch);
            }
        });
    };
    if (width_ <= std::numeric_limits<std::uint16_t>::max()) {
        fill(entries_.emplace<Entries<Value, std::uint16_t>>());
    } else {
        fill(entries_.emplace<Entries<Value, std::uint32_t>>());
    }
}

/// Each thread counts the entries in a range of columns: no two write the same counter.
template <class Matrix> void OwnerRows::number_features(const Matrix &matrix, Team &team) {
    const std::vector<std::int64_t> borders = column_parts(matrix, team.size());
    make_numbers(team, slots_, at(matrix.cols()));
    fill_zeros(team, slots_.data(), slots_.size());
    team.for_each(static_cast<std::int64_t>(borders.size()) - 1, [&](std::int64_t range) {
        const std::int64_t first = borders[at(range)], last = borders[at(range) + 1];
        const double share = static_cast<double>(range) / static_cast<double>(borders.size() - 1);
        each_row_from(matrix, first, share, [&](std::int64_t, const auto &row, std::int64_t q) {
            for (; q < row.size() && row.column(q) < last; ++q) {
                slots_[at(row.column(q))] += row.value(q) != 0 ? 1 : 0;
            }
        });
    });
    deal(matrix.rows(), team);
}

/// Slots from counts. A counting sort by bucket: where a feature stands depends on the features before it in its bucket and on the buckets
/// above.
void OwnerRows::deal(std::int64_t rows, Team &team) {
    const auto d = static_cast<std::int64_t>(slots_.size());
    std::vector<std::array<std::int64_t, buckets>> tops(at(chunks));
    team.for_each(chunks, [&](std::int64_t chunk) {
        tops[at(chunk)].fill(0);
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            ++tops[at(chunk)][bucket_of(slots_[at(j)])];
        }
    });
    std::int64_t rank = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        if (bucket == bucket_of(1)) break; // the others have no owner
        if (bucket <= bucket_of(static_cast<std::uint32_t>(rows / 16))) {
            hot_ = std::min(most_hot, rank / owners_ / line * line);
        }
        for (auto &top : tops) rank += std::exchange(top[bucket], rank);
    }
    const std::int64_t lines = (rank - hot_ * owners_ + line - 1) / line;
    width_ = hot_ + (lines + owners_ - 1) / owners_ * line;
    team.for_each(chunks, [&](std::int64_t chunk) {
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            const std::uint32_t count = slots_[at(j)];
            slots_[at(j)] = count <= 1 ? ~std::uint32_t{0} : slot_at(tops[at(chunk)][bucket_of(count)]++);
        }
    });
}

/// Hot features are dealt one by one, others by lines of the cache: neighbours often come from the same rows.
std::uint32_t OwnerRows::slot_at(std::int64_t place) const noexcept {
    const std::int64_t rest = place - hot_ * owners_, deal = rest < 0 ? place : rest / line;
    const std::int64_t round = deal / owners_, turn = deal % owners_;
    const std::int64_t owner = round % 2 == 0 ? turn : owners_ - 1 - turn; // to and fro evens out the falling counts
    const std::int64_t slot = rest < 0 ? round : hot_ + round * line + rest % line;
    return static_cast<std::uint32_t>(slot << bits_ | owner);
}

template <class Matrix>
void OwnerRows::measure_rows(const Matrix &matrix, std::span<const std::int32_t> order, Team &team) {
    const auto n = static_cast<std::int64_t>(order.size()), batches = (n + batch_rows - 1) / batch_rows;
    norms2_.resize(at(n));
    starts_.resize(at(batches) + 1);
    team.for_each(batches, [&](std::int64_t batch) {
        std::int64_t entries = 0;
        for (std::int64_t p = batch * batch_rows; p < std::min(n, (batch + 1) * batch_rows); ++p) {
            const auto row = matrix.row(order[at(p)]);
            if constexpr (!requires { typename Matrix::value_type; }) { // one value
                const double value = row.size() > 0 ? row.value(0) : 0;
                norms2_[at(p)] = static_cast<double>(row.size()) * value * value;
                entries += value != 0 ? row.size() : 0;
                continue;
            }
            double norm2 = 0;
            for (std::int64_t q = 0; q < row.size(); ++q) {
                norm2 += row.value(q) * row.value(q);
                entries += row.value(q) != 0 ? 1 : 0;
            }
            norms2_[at(p)] = norm2;
        }
        starts_[at(batch) + 1] = entries;
    });
    for (std::size_t batch = 0; batch + 1 < starts_.size(); ++batch) starts_[batch + 1] += starts_[batch];
    pieces_.resize(at(batches * (batch_rows * owners_ + 1)));
    lone_norms2_.resize(at(n));
    lone_ends_.resize(at(n));
}

/// Counts the entries of each piece, then puts them there; lone ones at once.
template <class Matrix, class E>
void OwnerRows::split_batch(const Matrix &matrix, std::span<const std::int32_t> order, std::int64_t batch, E &entries,
                            SplitScratch<typename E::Lone> &scratch) {
    using Slot = typename decltype(entries.slots)::value_type;
    using Value = typename decltype(entries.values)::value_type;
    const auto n = static_cast<std::int64_t>(order.size());
    const std::int64_t first = batch * batch_rows, rows = std::min<std::int64_t>(batch_rows, n - first);
    std::uint32_t *const begins = pieces_.data() + batch * (batch_rows * owners_ + 1);
    auto &[found, lone] = scratch;
    found.resize(at(starts_[at(batch) + 1] - starts_[at(batch)]));
    lone.columns.clear();
    lone.values.clear();
    const auto each_entry = [&](auto &&visit) {
        std::size_t k = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto row = matrix.row(order[at(first + r)]);
            for (std::int64_t q = 0; q < row.size(); ++q) {
                if (row.value(q) != 0) visit(r, row.column(q), row.value(q), found[k++]);
            }
        }
    };
    each_entry([&](std::int64_t r, std::int32_t column, double value, std::uint32_t &slot) {
        slot = slots_[at(column)];
        if (is_owned(slot)) {
            ++begins[(slot & mask()) * batch_rows + r];
            return;
        }
        lone.columns.push_back(column);
        if constexpr (!E::is_same) lone.values.push_back(static_cast<Value>(value));
        lone_norms2_[at(first + r)] += value * value;
        ++lone_ends_[at(first + r)];
    });
    for (std::int64_t p = first + 1; p < first + rows; ++p) lone_ends_[at(p)] += lone_ends_[at(p) - 1];
    entries.lone[at(batch)] = lone; // without the room that is left
    std::uint32_t total = 0;
    for (std::int64_t k = 0; k <= batch_rows * owners_; ++k) total += std::exchange(begins[k], total);
    each_entry([&](std::int64_t r, std::int32_t, [[maybe_unused]] double value, std::uint32_t slot) {
        if (!is_owned(slot)) return;
        const std::int64_t q = starts_[at(batch)] + begins[(slot & mask()) * batch_rows + r]++;
        entries.slots[at(q)] = static_cast<Slot>(slot >> bits_);
        if constexpr (!E::is_same) entries.values[at(q)] = static_cast<Value>(value);
    });
    for (std::int64_t k = batch_rows * owners_; k > 0; --k) begins[k] = begins[k - 1]; // each begin has become its end
    begins[0] = 0;
}

void OwnerRows::spread(std::int64_t batch, const double *factors, double *x) const noexcept {
    const std::int64_t first = batch * batch_rows;
    std::visit(
        [&](const auto &entries) {
            const auto &lone = entries.lone[at(batch)];
            std::size_t q = 0;
            for (std::int64_t p = first; q < lone.columns.size(); ++p) {
                for (; q < lone_ends_[at(p)]; ++q) {
                    double value = 0;
                    if constexpr (std::decay_t<decltype(entries)>::is_same) value = entries.values[at(p)].value;
                    if constexpr (!std::decay_t<decltype(entries)>::is_same) value = lone.values[q];
                    x[lone.columns[q]] = value * factors[p - first];
                }
            }
        },
        entries_);
}

void OwnerRows::dots(int owner, std::span<const Row> rows, std::span<const Row> later, const ZU *zu,
                     ZU *out) const noexcept {
    std::visit(
        [&](const auto &entries) {
            for (std::size_t k = 0; k < rows.size(); ++k) {
                if (k < later.size()) {
                    const std::int64_t begin = piece(owner, later[k]).begin;
                    __builtin_prefetch(entries.slots.data() + begin);
                    if constexpr (!std::decay_t<decltype(entries)>::is_same) {
                        __builtin_prefetch(entries.values.data() + begin);
                    }
                }
                const Piece p = piece(owner, rows[k]);
                out[k] =
                    dot(entries.slots.data() + p.begin, entries.values_of(rows[k].place, p.begin), p.end - p.begin, zu);
            }
        },
        entries_);
}

void OwnerRows::add(int owner, std::span<const Row> rows, const ZU *moves, ZU *zu) const noexcept {
    std::visit(
        [&](const auto &entries) {
            for (std::size_t k = 0; k < rows.size(); ++k) {
                const Piece p = piece(owner, rows[k]);
                spdc::add(moves[k], entries.slots.data() + p.begin, entries.values_of(rows[k].place, p.begin),
                          p.end - p.begin, zu);
            }
        },
        entries_);
}

void OwnerRows::reserve(Scratch &scratch) const {
    scratch.last.resize(at(width_));
    scratch.products.resize(batch_rows * gram_row);
}

void OwnerRows::clear(Scratch &scratch) noexcept {
    std::fill(scratch.last.begin(), scratch.last.end(), -1);
    scratch.first = 0;
}

/// Links every entry of the owner in these rows to the one before it with the same feature, and lists those that have one: which, no
/// branch predictor knows. Says how many entries there are.
template <class E>
std::int32_t OwnerRows::chain(const E &entries, int owner, std::span<const std::int32_t> places,
                              Scratch &scratch) const {
    std::int64_t most = 0;
    for (const std::int32_t place : places) {
        const Piece p = piece(owner, locate(place));
        most += p.end - p.begin;
    }
    if (scratch.links.size() < at(most)) scratch.links.resize(at(most));
    scratch.meeting.resize(at(most) + 1);
    std::int32_t *const last = scratch.last.data(), *meeting = scratch.meeting.data();
    std::int32_t k = 0;
    for (std::size_t r = 0; r < places.size(); ++r) {
        const Piece p = piece(owner, locate(places[r]));
        const auto values = entries.values_of(places[r], p.begin);
        for (std::int64_t q = p.begin; q < p.end; ++q, ++k) {
            const auto slot = entries.slots[at(q)];
            const std::int32_t before = std::exchange(last[slot], scratch.first + k) - scratch.first;
            scratch.links[at(k)] = {before, static_cast<std::int32_t>(r), static_cast<float>(values[q - p.begin])};
            *meeting = k;
            meeting += slot >= hot_ && before >= 0 ? 1 : 0;
        }
    }
    scratch.meeting.resize(at(meeting - scratch.meeting.data()));
    return k;
}

/// Each entry meets those before it in its chain.
void OwnerRows::add_chained(Scratch &scratch) noexcept {
    for (const std::int32_t k : scratch.meeting) {
        const Scratch::Link &own = scratch.links[at(k)];
        float *const products = scratch.products.data() + own.row * gram_row;
        for (std::int32_t before = own.before; before >= 0;) {
            const Scratch::Link &link = scratch.links[at(before)];
            products[link.row] += own.value * link.value;
            before = link.before;
        }
    }
}

/// Each row that has the feature meets those before it, and some that do not have it, four at a time.
void OwnerRows::add_hot(Scratch &scratch) const noexcept {
    for (std::int64_t slot = 0; slot < hot_; ++slot) {
        alignas(64) float column[gram_row] = {};
        std::uint64_t rows = 0; // a bit for each that has it
        for (std::int32_t k = scratch.last[at(slot)] - scratch.first; k >= 0; k = scratch.links[at(k)].before) {
            column[scratch.links[at(k)].row] = scratch.links[at(k)].value;
            rows |= std::uint64_t{1} << scratch.links[at(k)].row;
        }
        for (; rows != 0; rows &= rows - 1) {
            const int r = std::countr_zero(rows);
            float *const products = scratch.products.data() + r * gram_row;
            for (int c = 0; c <= (r | 3); ++c) products[c] += column[r] * column[c];
        }
    }
}

/// Owner by owner, entries of the same feature are chained; features of many rows, which most pairs have, stand in columns then. Entries are
/// numbered on from owner to owner and batch to batch, so that old chains need not be cleared.
void OwnerRows::gram(std::span<const std::int32_t> places, Scratch &scratch, HalfFloat *out) const {
    std::fill(scratch.products.begin(), scratch.products.end(), 0.0F);
    std::visit(
        [&](const auto &entries) {
            for (int owner = 0; owner < owners_; ++owner) {
                if (scratch.first > std::numeric_limits<std::int32_t>::max() / 2) clear(scratch);
                const std::int32_t count = chain(entries, owner, places, scratch);
                add_chained(scratch);
                add_hot(scratch);
                scratch.first += count;
            }
        },
        entries_);
    const float *const products = scratch.products.data();
    for (int r = 0; r < batch_rows; ++r) {
        for (int c = 0; c < batch_rows; ++c) {
            out[r * gram_row + c] = to_half(r == c ? 0 : products[std::max(r, c) * gram_row + std::min(r, c)]);
        }
        out[r * gram_row + batch_rows] = 0;
    }
}

} // namespace spdc
