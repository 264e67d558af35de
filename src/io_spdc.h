// How a .spdc file is laid out; see io_spdc.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace spdc {

constexpr std::uint64_t spdc_alignment = 64;

struct SpdcHeader {
    char magic[8];
    std::uint32_t byte_order;
    std::uint32_t version;
    std::uint32_t storage; // sparse 0, dense 2; one more with doubles
    std::uint32_t index_base;
    std::uint64_t rows, cols, entries;
    std::uint64_t label_names, feature_names, names_bytes;
    std::uint64_t source_bytes;
    std::uint64_t has_weights;
    std::uint64_t spare[5];
};
static_assert(sizeof(SpdcHeader) == 128);

/// Four lanes of words; every step can be undone, so that a change inside one word always changes the sum.
class BlockSum {
  public:
    void add(const void *memory, std::size_t bytes) {
        const char *p = static_cast<const char *>(memory);
        size_ += bytes;
        while (bytes > 0) {
            if (held_ == 0 && bytes >= sizeof hold_) {
                const std::size_t whole = bytes / sizeof hold_;
                for (std::size_t k = 0; k < whole; ++k) step(p + k * sizeof hold_);
                p += whole * sizeof hold_;
                bytes -= whole * sizeof hold_;
                continue;
            }
            const std::size_t count = std::min(bytes, sizeof hold_ - held_);
            std::memcpy(hold_ + held_, p, count);
            p += count;
            bytes -= count;
            held_ += count;
            if (held_ == sizeof hold_) {
                step(hold_);
                held_ = 0;
            }
        }
    }
    std::uint64_t size() const { return size_; }
    std::uint64_t value() const {
        BlockSum last = *this;
        std::memset(last.hold_ + last.held_, 0, sizeof hold_ - last.held_);
        last.step(last.hold_);
        std::uint64_t sum = size_;
        for (const std::uint64_t lane : last.lanes_) sum = mix(sum, lane);
        return sum ^ (sum >> 32);
    }
    static std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
        return std::rotl((lane ^ word) * 0x9e3779b97f4a7c15U, 29);
    }

  private:
    void step(const char *p) {
        std::array<std::uint64_t, 4> words;
        std::memcpy(words.data(), p, sizeof words);
        for (std::size_t k = 0; k < 4; ++k) lanes_[k] = mix(lanes_[k], words[k]);
    }

    std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
    char hold_[32] = {};
    std::size_t held_ = 0;
    std::uint64_t size_ = 0;
};

/// The sum of the sums of blocks of 256 KB, so that threads can share them.
class Checksum {
  public:
    static constexpr std::size_t block = std::size_t{1} << 18;

    static std::uint64_t of_block(const void *memory, std::size_t bytes) {
        BlockSum sum;
        sum.add(memory, bytes);
        return sum.value();
    }
    void add(const void *memory, std::size_t bytes) {
        for (const char *p = static_cast<const char *>(memory); bytes > 0;) {
            const std::size_t count = std::min<std::size_t>(bytes, block - open_.size());
            open_.add(p, count);
            p += count;
            bytes -= count;
            if (open_.size() == block) add_block(std::exchange(open_, {}).value());
        }
    }
    /// The next block after whole ones, of which there is the sum already.
    void add_block(std::uint64_t sum) { total_ = BlockSum::mix(total_, sum); }
    std::uint64_t value() const {
        Checksum last = *this;
        if (open_.size() > 0) last.add_block(open_.value());
        return last.total_ ^ (last.total_ >> 32);
    }

  private:
    BlockSum open_;
    std::uint64_t total_ = 0;
};

constexpr bool is_dense_storage(std::uint32_t storage) { return storage >= 2; }
constexpr bool is_double_storage(std::uint32_t storage) { return storage % 2 == 1; }

/// Where the sections begin.
struct SpdcLayout {
    std::uint64_t names, source, targets, weights, order, offsets, columns, values, sums, end;

    explicit SpdcLayout(const SpdcHeader &header) {
        const bool dense = is_dense_storage(header.storage);
        std::uint64_t next = sizeof(SpdcHeader);
        const auto section = [&next](std::uint64_t bytes) {
            const std::uint64_t begin = next;
            next += (bytes + spdc_alignment - 1) / spdc_alignment * spdc_alignment;
            return begin;
        };
        names = section(header.names_bytes);
        source = section(header.source_bytes);
        targets = section(8 * header.rows);
        weights = section(header.has_weights != 0 ? 8 * header.rows : 0);
        order = section(8 * header.rows);
        offsets = section(dense ? 0 : 8 * (header.rows + 1));
        columns = section(dense ? 0 : 4 * header.entries);
        values = section((is_double_storage(header.storage) ? 8 : 4) * header.entries);
        sums = section(4 * sizeof(std::uint64_t));
        end = next;
    }
};

} // namespace spdc
