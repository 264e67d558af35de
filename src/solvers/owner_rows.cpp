#include "owner_rows.h"

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

constexpr std::int64_t chunks = 64; // of the features, for shared work with one result

} // namespace

HalfFloat to_half(float value) noexcept {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    return static_cast<HalfFloat>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16); // to nearest, ties to even
}

OwnerRows::OwnerRows(const AnyMatrix &matrix, std::span<const double> row_values, std::span<const std::int32_t> order,
                     int owners, Team &team)
    : owners_(owners), bits_(std::bit_width(static_cast<unsigned>(owners - 1))) {
    std::visit(
        [&]<class Matrix>(const Matrix &m) {
            number_features(m, team);
            measure_rows(m, order, team);
            if (row_values.empty()) {
                split<typename Matrix::value_type>(m, row_values, order, team);
            } else {
                split<Same>(m, row_values, order, team);
            }
        },
        matrix);
}

template <class Value, class Matrix>
void OwnerRows::split(const Matrix &matrix, std::span<const double> row_values, std::span<const std::int32_t> order,
                      Team &team) {
    const auto fill = [&](auto &entries) {
        entries.slots.resize(at(starts_.back()));
        entries.values.resize(std::is_same_v<Value, Same> ? order.size() : at(starts_.back()));
        if constexpr (std::is_same_v<Value, Same>) {
            for (std::size_t p = 0; p < order.size(); ++p) entries.values[p] = {row_values[at(order[p])]};
        }
        team.for_each(static_cast<std::int64_t>(starts_.size()) - 1,
                      [&](std::int64_t batch) { split_batch(matrix, order, batch, entries); });
    };
    if (width_ <= std::numeric_limits<std::uint16_t>::max()) {
        fill(entries_.emplace<Entries<Value, std::uint16_t>>());
    } else {
        fill(entries_.emplace<Entries<Value, std::uint32_t>>());
    }
}

/// Each thread counts the entries in a range of columns: no two write the same counter.
template <class Matrix> void OwnerRows::number_features(const Matrix &matrix, Team &team) {
    const std::int64_t d = matrix.cols(), ranges = team.size() == 1 ? 1 : 2 * team.size();
    Large<std::uint32_t> counts;
    counts.resize(at(d));
    team.for_each(ranges, [&](std::int64_t range) {
        const std::int64_t first = d * range / ranges, last = d * (range + 1) / ranges;
        std::fill(counts.begin() + first, counts.begin() + last, 0);
        for (std::int64_t i = 0; i < matrix.rows(); ++i) {
            const auto row = matrix.row(i);
            for (std::int64_t q = row.lower_bound(first); q < row.size() && row.column(q) < last; ++q) {
                counts[at(row.column(q))] += row.value(q) != 0 ? 1 : 0;
            }
        }
    });
    deal(counts, team);
}

/// A counting sort by bucket: where a feature stands depends on the features before it in its bucket and on the buckets above.
void OwnerRows::deal(std::span<const std::uint32_t> counts, Team &team) {
    const auto d = static_cast<std::int64_t>(counts.size());
    std::vector<std::array<std::int64_t, buckets>> tops(at(chunks));
    team.for_each(chunks, [&](std::int64_t chunk) {
        tops[at(chunk)].fill(0);
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            ++tops[at(chunk)][bucket_of(counts[at(j)])];
        }
    });
    std::int64_t rank = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        if (bucket == bucket_of(0)) width_ = (rank + owners_ - 1) / owners_; // features without entries come last
        for (auto &top : tops) rank += std::exchange(top[bucket], rank);
    }
    slots_.resize(at(d));
    team.for_each(chunks, [&](std::int64_t chunk) {
        for (std::int64_t j = d * chunk / chunks; j < d * (chunk + 1) / chunks; ++j) {
            const std::int64_t place = tops[at(chunk)][bucket_of(counts[at(j)])]++;
            const std::int64_t round = place / owners_, turn = place % owners_;
            const std::int64_t owner =
                round % 2 == 0 ? turn : owners_ - 1 - turn; // to and fro evens out the falling counts
            slots_[at(j)] = static_cast<std::uint32_t>(round << bits_ | owner);
        }
    });
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
}

/// Counts the entries of each piece, then puts them there.
template <class Matrix, class E>
void OwnerRows::split_batch(const Matrix &matrix, std::span<const std::int32_t> order, std::int64_t batch, E &entries) {
    const auto n = static_cast<std::int64_t>(order.size());
    const std::int64_t first = batch * batch_rows, rows = std::min<std::int64_t>(batch_rows, n - first);
    std::uint32_t *const begins = pieces_.data() + batch * (batch_rows * owners_ + 1);
    const auto each_entry = [&](auto &&visit) {
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto row = matrix.row(order[at(first + r)]);
            for (std::int64_t q = 0; q < row.size(); ++q) {
                if (row.value(q) == 0) continue;
                const std::uint32_t slot = slots_[at(row.column(q))];
                visit(begins + (slot & mask()) * batch_rows + r, slot >> bits_, row.values[q]);
            }
        }
    };
    each_entry([](std::uint32_t *count, std::uint32_t, auto) { ++*count; });
    std::uint32_t total = 0;
    for (std::int64_t k = 0; k <= batch_rows * owners_; ++k) total += std::exchange(begins[k], total);
    using Slot = typename decltype(entries.slots)::value_type;
    Slot *const slots = entries.slots.data() + starts_[at(batch)];
    each_entry([&](std::uint32_t *begin, std::uint32_t slot, auto value) {
        slots[*begin] = static_cast<Slot>(slot);
        if constexpr (!E::is_same) entries.values[at(starts_[at(batch)] + *begin)] = value;
        ++*begin;
    });
    for (std::int64_t k = batch_rows * owners_; k > 0; --k) begins[k] = begins[k - 1]; // each begin has become its end
    begins[0] = 0;
}

void OwnerRows::dots(int owner, std::span<const std::int32_t> places, const ZU *zu, ZU *out) const noexcept {
    std::visit(
        [&](const auto &entries) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                const Piece p = piece(owner, places[k]);
                out[k] =
                    dot(entries.slots.data() + p.begin, entries.values_of(places[k], p.begin), p.end - p.begin, zu);
            }
        },
        entries_);
}

void OwnerRows::add(int owner, std::span<const std::int32_t> places, const ZU *moves, ZU *zu) const noexcept {
    std::visit(
        [&](const auto &entries) {
            for (std::size_t k = 0; k < places.size(); ++k) {
                const Piece p = piece(owner, places[k]);
                spdc::add(moves[k], entries.slots.data() + p.begin, entries.values_of(places[k], p.begin),
                          p.end - p.begin, zu);
            }
        },
        entries_);
}

void OwnerRows::reserve(Scratch &scratch) const {
    scratch.last.resize(at(width_));
    scratch.products.resize(batch_rows * batch_rows);
}

void OwnerRows::clear(Scratch &scratch) noexcept {
    std::fill(scratch.last.begin(), scratch.last.end(), -1);
    scratch.first = 0;
}

/// Owner by owner, entries of the same feature are chained, and each meets those before it in its chain. Entries are numbered on from
/// owner to owner and batch to batch, so that old chains need not be cleared.
void OwnerRows::gram(std::span<const std::int32_t> places, Scratch &scratch, HalfFloat *out) const {
    std::fill(scratch.products.begin(), scratch.products.end(), 0.0);
    double *const products = scratch.products.data();
    std::int32_t *const last = scratch.last.data();
    std::visit(
        [&](const auto &entries) {
            const auto *const slots = entries.slots.data();
            for (int owner = 0; owner < owners_; ++owner) {
                if (scratch.first > std::numeric_limits<std::int32_t>::max() / 2) clear(scratch);
                const std::int32_t first = scratch.first;
                scratch.links.clear();
                for (std::size_t r = 0; r < places.size(); ++r) {
                    const Piece p = piece(owner, places[r]);
                    const auto values = entries.values_of(places[r], p.begin);
                    for (std::int64_t q = p.begin; q < p.end; ++q) {
                        const auto value = static_cast<double>(values[q - p.begin]);
                        const std::int32_t top = last[slots[q]];
                        for (std::int32_t k = top; k >= first; k = scratch.links[at(k - first)].before) {
                            const Scratch::Link &link = scratch.links[at(k - first)];
                            products[r * batch_rows + at(link.row)] += value * link.value;
                        }
                        last[slots[q]] = first + static_cast<std::int32_t>(scratch.links.size());
                        scratch.links.push_back({top, static_cast<std::int32_t>(r), value});
                    }
                }
                scratch.first += static_cast<std::int32_t>(scratch.links.size());
            }
        },
        entries_);
    for (int r = 0; r < batch_rows; ++r) {
        for (int c = 0; c < batch_rows; ++c) {
            const double product = r == c ? 0 : products[r > c ? r * batch_rows + c : c * batch_rows + r];
            out[r * batch_rows + c] = to_half(static_cast<float>(product));
        }
    }
}

} // namespace spdc
