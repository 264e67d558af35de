// Memory for large arrays that are read in random order: with 2 MB pages the processor finds an address without walking tables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace spdc {

template <class T> struct HugePageAllocator {
    using value_type = T;
    static constexpr std::size_t page = std::size_t{1} << 21;

    HugePageAllocator() = default;
    template <class U> HugePageAllocator(const HugePageAllocator<U> &) noexcept {} // NOLINT: allocators convert

    T *allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        const bool large = bytes >= page;
        const std::size_t alignment = large ? page : std::max(alignof(T), alignof(std::max_align_t));
        void *memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
        if (!memory) throw std::bad_alloc();
#ifdef __linux__
        if (large) madvise(memory, bytes, MADV_HUGEPAGE); // a wish; without it everything works, slower
#endif
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

} // namespace spdc
