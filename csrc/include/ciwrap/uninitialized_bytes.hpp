// A vector of bytes whose resize() leaves new bytes as they are: for buffers of the size of the
// data that are written from end to end, where clearing them first would cost a pass over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ciwrap {

template <class T>
class UninitializedAllocator {
  public:
    using value_type = T;

    UninitializedAllocator() = default;
    template <class U>
    UninitializedAllocator(const UninitializedAllocator<U>&) {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < huge_from)
            return std::allocator<T>().allocate(count);
        // Large pages: the first touch of fresh memory is a good part of the time of filling it.
        const std::size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
        void* memory = std::aligned_alloc(huge_page, rounded);
        if (memory == nullptr)
            throw std::bad_alloc();
#if defined(__linux__)
        (void)madvise(memory, rounded, MADV_HUGEPAGE);  // advice: refusal does no harm
#endif
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < huge_from)
            return std::allocator<T>().deallocate(memory, count);
        std::free(memory);
    }

    template <class U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Arguments>
    void construct(U* at, Arguments&&... arguments) {
        ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }

    friend bool operator==(const UninitializedAllocator&, const UninitializedAllocator&) {
        return true;
    }

  private:
    static constexpr std::size_t huge_page = std::size_t{2} << 20;
    static constexpr std::size_t huge_from = 2 * huge_page;
};

using UninitializedBytes = std::vector<std::uint8_t, UninitializedAllocator<std::uint8_t>>;

}  // namespace ciwrap
