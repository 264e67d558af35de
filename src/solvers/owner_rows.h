// The rows of a matrix split over owners of features: what each thread of spdc_owners.cpp reads in place of whole rows.
//
// Features are numbered anew by falling count and dealt to the owners in turns, so that each has the same work to within one entry
// a row and its hot features side by side. Rows stand in batches of 63, in the order given; the entries of a batch stand owner
// by owner, row by row. Beside them: the Gram matrix of the rows of any batch.
//
// A feature that one row alone has needs no owner: what moves it is that row, so it is a_j times a number of the row, which is all that
// has to be kept. Of the word pairs of news20 these are two in three.
#pragma once

#include "huge_pages.h"
#include "parallel.h"
#include "spdc/matrix.h"
#include "spdc_fast.h"

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace spdc {

inline constexpr int batch_rows = 63; // nine letters of seven
inline constexpr int gram_row = 64;   // numbers from one row of a Gram matrix to the next

/// A number in the upper half of a float's bits: 8 bits of precision at half the memory, widened by a shift.
using HalfFloat = std::uint16_t;
HalfFloat to_half(float value) noexcept;
inline float from_half(HalfFloat half) noexcept {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16);
}

class OwnerRows {
  public:
    /// `order`: which row of the matrix stands at each place. Zeros are left out. `row_values`: as Problem::row_values() gives them.
    OwnerRows(const AnyMatrix &matrix, std::span<const double> row_values, std::span<const std::int32_t> order,
              int owners, Team &team);

    int owners() const noexcept { return owners_; }
    /// Features of the owner that has most.
    std::int64_t width() const noexcept { return width_; }
    /// Whether several rows have the feature.
    bool has_owner(std::int64_t feature) const noexcept { return is_owned(slots_[index(feature)]); }
    // Of features that have an owner.
    int owner_of(std::int64_t feature) const noexcept { return static_cast<int>(slots_[index(feature)] & mask()); }
    std::int64_t slot_of(std::int64_t feature) const noexcept { return slots_[index(feature)] >> bits_; }
    /// |a|^2 by place; given away, not kept.
    std::vector<double> take_squared_norms() noexcept { return std::move(norms2_); }
    /// The part of it that lone features have, those of one row alone; likewise.
    std::vector<double> take_lone_norms() noexcept { return std::move(lone_norms2_); }
    /// x_j = a_j factors[r] for the lone features j of the r-th row of a batch.
    void spread(std::int64_t batch, const double *factors, double *x) const noexcept;

    /// Where to find the pieces of the row at a place.
    struct Row {
        std::int32_t place;
        std::int64_t piece, start;
    };
    Row locate(std::int32_t place) const noexcept {
        const std::int64_t batch = place / batch_rows;
        return {place, batch * (batch_rows * owners_ + 1) + place % batch_rows, starts_[index(batch)]};
    }
    /// out[k] = <a, zu> over the owner's features, for each of the rows. `later`: rows whose turn comes next.
    void dots(int owner, std::span<const Row> rows, std::span<const Row> later, const ZU *zu, ZU *out) const noexcept;
    /// zu += moves[k] a over the owner's features, for each of the rows.
    void add(int owner, std::span<const Row> rows, const ZU *moves, ZU *zu) const noexcept;

    /// Memory that a thread needs to compute Gram matrices.
    struct Scratch {
        std::vector<std::int32_t, UnfilledHugePageAllocator<std::int32_t>> last; // slot -> the last entry with it
        std::int32_t first = 0; // entries below belong to earlier batches and owners
        struct Link {
            std::int32_t before; // the entry before it with the same slot
            std::int32_t row;
            float value;
        };
        std::vector<Link> links;
        std::vector<std::int32_t> meeting; // links to a feature that a row before has, too
        std::vector<float> products;
    };
    void reserve(Scratch &scratch) const;
    static void clear(Scratch &scratch) noexcept;
    /// The Gram matrix of up to batch_rows rows, gram_row numbers from one to the next; the diagonal is 0, and so are rows and columns
    /// beyond places.size().
    void gram(std::span<const std::int32_t> places, Scratch &scratch, HalfFloat *out) const;

  private:
    template <class T> using Large = std::vector<T, UnfilledHugePageAllocator<T>>;
    /// Slots of 16 bits where they are enough. Value: as in the matrix, or Same where a row's entries have one.
    template <class Value, class Slot> struct Entries {
        static constexpr bool is_same = std::is_same_v<Value, Same>;
        /// Of a batch, row by row.
        struct Lone {
            std::vector<std::int32_t> columns;
            std::vector<Value> values; // none where rows have one
        };
        Large<Slot> slots;
        Large<Value> values; // of the entries, or of the rows by place
        std::vector<Lone> lone;

        auto values_of(std::int32_t place, std::int64_t begin) const noexcept {
            if constexpr (is_same) return values[index(place)];
            if constexpr (!is_same) return values.data() + begin;
        }
    };
    using AnyEntries =
        std::variant<Entries<float, std::uint16_t>, Entries<float, std::uint32_t>, Entries<double, std::uint16_t>,
                     Entries<double, std::uint32_t>, Entries<Same, std::uint16_t>, Entries<Same, std::uint32_t>>;
    struct Piece {
        std::int64_t begin, end;
    };

    static std::size_t index(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
    static bool is_owned(std::uint32_t slot) noexcept { return slot != ~std::uint32_t{0}; }
    std::uint32_t mask() const noexcept { return (std::uint32_t{1} << bits_) - 1; }
    /// The owner's entries of a row.
    Piece piece(int owner, const Row &row) const noexcept {
        const std::uint32_t *const p = pieces_.data() + row.piece + owner * batch_rows;
        return {row.start + p[0], row.start + p[1]};
    }
    template <class Matrix> void number_features(const Matrix &matrix, Team &team);
    void deal(std::int64_t rows, Team &team);
    std::uint32_t slot_at(std::int64_t place) const noexcept;
    template <class E>
    std::int32_t chain(const E &entries, int owner, std::span<const std::int32_t> places, Scratch &scratch) const;
    static void add_chained(Scratch &scratch) noexcept;
    void add_hot(Scratch &scratch) const noexcept;
    template <class Matrix> void measure_rows(const Matrix &matrix, std::span<const std::int32_t> order, Team &team);
    template <class Value, class Matrix>
    void split(const Matrix &matrix, std::span<const std::int32_t> order, Team &team);
    /// Kept from batch to batch: the slots of its entries, which are far apart, and those that have none.
    template <class Lone> struct SplitScratch {
        std::vector<std::uint32_t> found;
        Lone lone;
    };
    template <class Matrix, class E>
    void split_batch(const Matrix &matrix, std::span<const std::int32_t> order, std::int64_t batch, E &entries,
                     SplitScratch<typename E::Lone> &scratch);

    int owners_, bits_ = 0;
    std::int64_t width_ = 0, hot_ = 0; // the first slots of an owner: features of many rows
    Large<std::uint32_t> slots_; // feature -> slot among its owner's, and the owner in the lowest bits; or all bits set
    std::vector<double> norms2_, lone_norms2_;
    std::vector<std::int64_t> starts_;     // of each batch in the entries
    std::vector<std::uint32_t> pieces_;    // a batch: where each owner's piece of each row begins, then the end
    std::vector<std::uint32_t> lone_ends_; // by place, in the lone entries of the batch
    AnyEntries entries_;
};

/// c += first g, e += second g, for a row g of a Gram matrix.
void add_products(const HalfFloat *gram, float first, float second, float *c, float *e) noexcept;

} // namespace spdc
