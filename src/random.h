// Randomness from a seed, the same on every machine: the standard's distributions are not.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace spdc {

/// xoshiro256** of Blackman and Vigna (2018), seeded by splitmix64.
class Random {
  public:
    explicit Random(std::uint64_t seed) {
        for (std::uint64_t &word : state_) {
            seed += 0x9e3779b97f4a7c15U;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
            word = z ^ (z >> 31);
        }
    }

    std::uint64_t bits() noexcept {
        const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    /// Uniform in [0, 1).
    double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

    /// Uniform in {0, ..., count-1}; the bias of the multiplication is below count / 2^64.
    std::int64_t below(std::int64_t count) noexcept {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::int64_t>((static_cast<Wide>(bits()) * static_cast<Wide>(count)) >> 64);
    }

    template <class Values> void shuffle(Values &&values) noexcept {
        for (std::size_t i = values.size(); i > 1; --i) {
            std::swap(values[i - 1], values[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
        }
    }

  private:
    static std::uint64_t rotate(std::uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }
    std::array<std::uint64_t, 4> state_{};
};

/// Draws from a fixed distribution in constant time (Walker's alias method).
class AliasTable {
  public:
    AliasTable() = default;
    /// Probabilities in proportion to `weights`, all positive.
    explicit AliasTable(std::span<const double> weights);
    std::int64_t draw(Random &random) const noexcept {
        const std::int64_t k = random.below(static_cast<std::int64_t>(keep_.size()));
        const auto slot = static_cast<std::size_t>(k);
        return random.uniform() < keep_[slot] ? k : other_[slot];
    }

  private:
    std::vector<double> keep_;
    std::vector<std::int64_t> other_;
};

} // namespace spdc
