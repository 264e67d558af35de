// Memory for large arrays that are read in random order: with 2 MB pages the processor finds an address without walking tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace spdc {

constexpr std::size_t huge_page = std::size_t{1} << 21;

/// Asks for large pages where whole ones fit: a wish; without it everything works, slower.
inline void advise_huge_pages([[maybe_unused]] void *memory, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef __linux__
    const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / huge_page * huge_page;
    if (begin < end) madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

/// Has the system clear the pages that lie in this memory now, if it can: without it the first write does.
inline void touch_pages([[maybe_unused]] void *memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_POPULATE_WRITE)
    constexpr std::uintptr_t page = 4096;
    const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
    if (begin < end) madvise(reinterpret_cast<void *>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
}

/// Gives the system back what lies free between pieces of memory in use, if it can: a wish, too.
inline void return_free_memory() noexcept {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

template <class T> struct HugePageAllocator {
    using value_type = T;

    HugePageAllocator() = default;
    template <class U> HugePageAllocator(const HugePageAllocator<U> &) noexcept {} // NOLINT: allocators convert

    T *allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        // small ones have lines of the cache to themselves: each thread may have its own
        const std::size_t alignment = bytes >= huge_page ? huge_page : std::max<std::size_t>(alignof(T), 64);
        const std::size_t whole = (bytes / alignment + 1) * alignment;
        void *const memory = std::aligned_alloc(alignment, whole);
        if (!memory) throw std::bad_alloc();
        advise_huge_pages(memory, bytes); // a last page that is not full would cost memory
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t) noexcept { std::free(memory); }
    bool operator==(const HugePageAllocator &) const noexcept { return true; }
};

/// The same for arrays that are filled anyway: resize() leaves new numbers as they are, so that memory is not touched twice.
template <class T> struct UnfilledHugePageAllocator : HugePageAllocator<T> {
    template <class U> struct rebind { using other = UnfilledHugePageAllocator<U>; };
    UnfilledHugePageAllocator() = default;
    template <class U> UnfilledHugePageAllocator(const UnfilledHugePageAllocator<U> &) noexcept {} // NOLINT: as above
    template <class U> void construct(U *place) noexcept { ::new (static_cast<void *>(place)) U; }
};

/// For the largest array of a run that others of the same size follow: it goes back to the system when it is let go. malloc would keep it as a
/// gap, and once something small that stays has been put there, the next one finds no room and takes as much again.
template <class T> struct ReturningAllocator {
    using value_type = T;

    ReturningAllocator() = default;
    template <class U> ReturningAllocator(const ReturningAllocator<U> &) noexcept {} // NOLINT: allocators convert

    T *allocate(std::size_t count) {
#ifdef __linux__
        if (count * sizeof(T) >= smallest_) {
            void *const pages =
                mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (pages == MAP_FAILED) throw std::bad_alloc();
            advise_huge_pages(pages, count * sizeof(T));
            touch_pages(pages, count * sizeof(T));
            return static_cast<T *>(pages);
        }
#endif
        return std::allocator<T>().allocate(count);
    }
    void deallocate(T *memory, std::size_t count) noexcept {
#ifdef __linux__
        if (count * sizeof(T) >= smallest_) {
            munmap(memory, count * sizeof(T));
            return;
        }
#endif
        std::allocator<T>().deallocate(memory, count);
    }
    bool operator==(const ReturningAllocator &) const noexcept { return true; }

  private:
    static constexpr std::size_t smallest_ = std::size_t{1} << 18; // bytes: below, two calls of the system cost more
};

/// Room for so many numbers in a plain vector, of large pages.
template <class T> void reserve_huge_pages(std::vector<T> &numbers, std::size_t count) {
    if (numbers.capacity() >= count) return;
    numbers.reserve(count);
    advise_huge_pages(numbers.data(), count * sizeof(T));
}

} // namespace spdc
