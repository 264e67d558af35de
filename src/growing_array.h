// An array of numbers or bytes that grows without being filled with zeros first and, where the system can, without being copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace spdc {

template <class T> class GrowingArray {
  public:
    static_assert(std::is_trivially_copyable_v<T>);

    T *data() noexcept { return data_.get(); }
    const T *data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }
    std::span<const T> view() const noexcept { return {data_.get(), size_}; }

    /// Room for at least `count` more behind the present ones; `hoped_for`: how many the caller expects in the end. Memory that
    /// is never written costs nothing. Throws std::bad_alloc.
    void make_room(std::size_t count, std::size_t hoped_for = 0) {
        if (room() >= count) return;
        constexpr std::size_t least = (std::size_t{1} << 12) / sizeof(T),
                              most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T);
        if (count > most - size_) throw std::bad_alloc();
        const std::size_t needed = std::min(most, std::max({least, size_ + count, capacity_ + capacity_ / 2}));
        try {
            set_capacity(std::min(most, std::max(needed, hoped_for)));
        } catch (const std::bad_alloc &) { // a hope beyond the memory there is must not fail
            set_capacity(needed);
        }
    }
    T *free_space() noexcept { return data_.get() + size_; }
    std::size_t room() const noexcept { return capacity_ - size_; }
    /// Says that `count` of the free places have been written.
    void added(std::size_t count) noexcept { size_ += count; }
    /// Forgets all but the first `count`.
    void cut(std::size_t count) noexcept { size_ = count; }
    /// Gives back the room that is left.
    void trim() {
        if (size_ > 0 && room() > 0) set_capacity(size_);
    }

  private:
    struct Free {
        void operator()(T *memory) const noexcept { std::free(memory); }
    };

    // For large blocks realloc() moves page tables instead of bytes.
    void set_capacity(std::size_t capacity) {
        auto *moved = static_cast<T *>(std::realloc(data_.get(), capacity * sizeof(T)));
        if (moved == nullptr) throw std::bad_alloc();
        static_cast<void>(data_.release()); // realloc has freed or moved it
        data_.reset(moved);
        capacity_ = capacity;
#ifdef __linux__
        constexpr std::size_t page = 4096, large = std::size_t{1} << 22;
        if (const std::size_t bytes = capacity * sizeof(T);
            bytes >= large) { // fewer page faults; a wish, nothing depends on it
            const std::size_t skip = page - reinterpret_cast<std::uintptr_t>(moved) % page;
            madvise(reinterpret_cast<char *>(moved) + skip, bytes - skip, MADV_HUGEPAGE);
        }
#endif
    }

    std::unique_ptr<T, Free> data_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

} // namespace spdc
