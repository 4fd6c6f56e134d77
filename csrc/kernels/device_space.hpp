// What device code needs of an execution space beyond what Kokkos offers alike for all: copies that
// do not wait, and the streams of others. Included by csrc/kernels/device_*.cpp only.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "kernels/device_array.hpp"

namespace ciwrap::device {

template <class Space>
struct Traits;

// The host as a device of its own, for tests.
template <>
struct Traits<Kokkos::Serial> {
    using Memory = Kokkos::HostSpace;
    using Pinned = Kokkos::HostSpace;
    struct Guard {};  // makes the device the thread's current one

    static void copy(const Kokkos::Serial&, void* to, const void* from, std::size_t bytes) {
        if (bytes > 0)
            std::memcpy(to, from, bytes);
    }
    static void clear(const Kokkos::Serial&, void* memory, std::size_t bytes) {
        std::memset(memory, 0, bytes);
    }
    static void wait(const Kokkos::Serial&) {}
    static void wait_for_stream(std::uintptr_t) {}
    static std::vector<Kokkos::Serial> spaces(std::size_t count) {
        return std::vector<Kokkos::Serial>(count);
    }
    static bool is_pinned(const void*, std::size_t) { return false; }
    static void require_here(const DeviceArray&) {}
    static bool lock(void*, std::size_t) { return false; }
    static void unlock(void*) {}
};

#if defined(KOKKOS_ENABLE_CUDA)
template <>
struct Traits<Kokkos::Cuda> {
    using Memory = Kokkos::CudaSpace;
    using Pinned = Kokkos::CudaHostPinnedSpace;

    static void require(cudaError_t status, const char* what) {
        if (status != cudaSuccess) {
            throw Error(ErrorCode::not_available,
                        std::string("CUDA: ") + what + ": " + cudaGetErrorString(status));
        }
    }

    class Guard {
      public:
        Guard() {
            require(cudaGetDevice(&before_), "which device is current");
            if (before_ != Kokkos::device_id())
                require(cudaSetDevice(Kokkos::device_id()), "making the device current");
        }
        ~Guard() {
            if (before_ != Kokkos::device_id())
                (void)cudaSetDevice(before_);
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

      private:
        int before_ = 0;
    };

    static void copy(const Kokkos::Cuda& on, void* to, const void* from, std::size_t bytes) {
        if (bytes > 0) {
            require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on.cuda_stream()),
                    "copying");
        }
    }
    static void clear(const Kokkos::Cuda& on, void* memory, std::size_t bytes) {
        require(cudaMemsetAsync(memory, 0, bytes, on.cuda_stream()), "clearing memory");
    }
    // Not Kokkos' fence, which ends the process where the device tells of a fault: that may be a
    // fault of somebody else's kernel, long before ours.
    static void wait(const Kokkos::Cuda& on) {
        require(cudaStreamSynchronize(on.cuda_stream()), "waiting for the device");
    }
    // Waits for what makes an array, too: a fault in it has to be met here, where it can be told,
    // and not by Kokkos when it starts a kernel.
    static void wait_for_stream(std::uintptr_t stream) {
        require(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)),
                "waiting for the stream that makes the array");
    }
    // Streams of their own, which the legacy stream of other libraries does not wait for.
    static std::vector<Kokkos::Cuda> spaces(std::size_t count) {
        std::vector<Kokkos::Cuda> made;
        for (std::size_t i = 0; i < count; ++i) {
            cudaStream_t stream = nullptr;
            require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
            made.emplace_back(stream, Kokkos::Impl::ManageStream::yes);
        }
        return made;
    }
    // All of it: a range of which a part alone is locked cannot be copied from in one go.
    static bool is_pinned(const void* memory, std::size_t bytes) {
        const auto is_locked = [](const void* at) {
            cudaPointerAttributes found{};
            if (cudaPointerGetAttributes(&found, at) != cudaSuccess) {
                (void)cudaGetLastError();
                return false;
            }
            return found.type == cudaMemoryTypeHost;
        };
        return bytes > 0 && is_locked(memory) &&
               is_locked(static_cast<const std::uint8_t*>(memory) + bytes - 1);
    }
    static void require_here(const DeviceArray& array) {
        cudaPointerAttributes found{};
        require(cudaPointerGetAttributes(&found, array.data), "whose memory the array is");
        const int here = Kokkos::device_id();
        const bool is_device =
            found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
        const int there = is_device ? found.device : array.device_id;
        if (!is_device || (array.device_id >= 0 && there != array.device_id)) {
            throw Error(ErrorCode::invalid_argument,
                        "the array is not where it says: its memory is not that of a CUDA device");
        }
        if (there != here) {
            throw Error(
                ErrorCode::not_available,
                "the array is on CUDA device " + std::to_string(there) +
                    ", computed is on device " + std::to_string(here) +
                    "; move it there, or start with KOKKOS_DEVICE_ID=" + std::to_string(there));
        }
    }
    static bool lock(void* memory, std::size_t bytes) {
        if (cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess)
            return true;
        (void)cudaGetLastError();  // a limit on locked memory: copies are then slower, and right
        return false;
    }
    static void unlock(void* memory) { (void)cudaHostUnregister(memory); }
};
#endif

// An execution space as a value.
template <class T>
struct In {
    using Space = T;
};

// Calls work(In<Space>{}) with the execution space of a device backend.
template <class Work>
auto with_space(Backend backend, Work&& work) {
#if defined(KOKKOS_ENABLE_CUDA)
    if (backend == Backend::cuda)
        return work(In<Kokkos::Cuda>{});
#endif
    if (backend != Backend::portable)
        throw Error(ErrorCode::not_available, "this build has no such device backend");
    return work(In<Kokkos::Serial>{});
}

// Memory that only grows, its content lost when it does.
template <class MemorySpace>
class Buffer {
  public:
    Buffer() = default;
    ~Buffer() { release(); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::uint8_t* fit(std::size_t bytes) {
        if (bytes > bytes_) {
            release();
            const std::size_t wanted = std::bit_ceil(std::max(bytes, std::size_t{4096}));
            try {
                memory_ = static_cast<std::uint8_t*>(
                    Kokkos::kokkos_malloc<MemorySpace>("ciwrap::buffer", wanted));
            } catch (const std::exception&) {
                throw Error(ErrorCode::not_available,
                            "the device (or memory to copy from and to "
                            "it) has no room for " +
                                std::to_string(wanted) + " bytes");
            }
            bytes_ = wanted;
        }
        return memory_;
    }
    std::uint8_t* data() const { return memory_; }

  private:
    void release() {
        if (memory_ != nullptr)
            Kokkos::kokkos_free<MemorySpace>(memory_);
        memory_ = nullptr;
        bytes_ = 0;
    }

    std::uint8_t* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

// One of two that take turns: while the one computes, the other's data come and go.
template <class Space>
struct Lane {
    explicit Lane(Space space) : on(std::move(space)) {}

    Space on;
    Buffer<typename Traits<Space>::Memory> input;
    Buffer<typename Traits<Space>::Memory> output;
    Buffer<typename Traits<Space>::Pinned> staged_input;
    Buffer<typename Traits<Space>::Pinned> staged_output;
};

inline constexpr std::size_t lane_count = 2;

// Streams and memory are dear to make: they are handed on from one user to the next, and given up
// before Kokkos is.
template <class Space>
class Lanes {
  public:
    Lanes() : lanes_(take()) {}
    ~Lanes() {
        if (Kokkos::is_finalized()) {
            for (auto& lane : lanes_)
                (void)lane.release();  // what its memory belonged to has gone
            return;
        }
        const std::lock_guard<std::mutex> held(store().mutex);
        if (store().kept.size() < most_kept)
            store().kept.push_back(std::move(lanes_));
    }
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    Lane<Space>& operator[](std::size_t index) { return *lanes_[index]; }

    // Until nothing is under way any more on whatever memory the lanes were given. Says nothing of
    // faults: who gives up has one to tell already, or no use for what was computed.
    void settle() noexcept {
        if (Kokkos::is_finalized())
            return;
        try {
            [[maybe_unused]] const typename Traits<Space>::Guard guard;
            for (const auto& lane : lanes_)
                Traits<Space>::wait(lane->on);
        } catch (const Error&) {
            return;  // the device does not answer, so nothing is under way
        }
    }

  private:
    using Set = std::vector<std::unique_ptr<Lane<Space>>>;
    struct Store {
        std::mutex mutex;
        std::vector<Set> kept;
        bool is_hooked = false;
    };
    static constexpr std::size_t most_kept = 2;

    static Store& store() {
        static Store* store = new Store;  // never destroyed: users may live until the very end
        return *store;
    }

    static Set take() {
        {
            const std::lock_guard<std::mutex> held(store().mutex);
            if (!store().is_hooked) {
                Kokkos::push_finalize_hook([] {
                    const std::lock_guard<std::mutex> again(store().mutex);
                    store().kept.clear();
                });
                store().is_hooked = true;
            }
            if (!store().kept.empty()) {
                Set set = std::move(store().kept.back());
                store().kept.pop_back();
                return set;
            }
        }
        Set set;
        for (Space& space : Traits<Space>::spaces(lane_count))
            set.push_back(std::make_unique<Lane<Space>>(std::move(space)));
        return set;
    }

    Set lanes_;
};

// Scalar `index` of the array (its elements cut into scalars of so many bytes), to its place behind
// `to`.
struct GatherScalars {
    const std::uint8_t* from;
    StridedLayout layout;
    std::uint64_t item_bytes;
    std::uint64_t scalar_bytes;
    std::uint64_t first;
    std::uint8_t* to;

    KOKKOS_FUNCTION void operator()(const std::uint64_t i) const {
        const std::uint64_t parts = item_bytes / scalar_bytes;
        std::uint64_t element = (first + i) / parts;
        std::int64_t offset = static_cast<std::int64_t>((first + i) % parts * scalar_bytes);
        for (std::uint32_t d = layout.dimension_count; d-- > 0;) {
            offset += static_cast<std::int64_t>(element % layout.shape[d]) * layout.strides[d];
            element /= layout.shape[d];
        }
        for (std::uint64_t b = 0; b < scalar_bytes; ++b)
            to[i * scalar_bytes + b] = from[offset + static_cast<std::int64_t>(b)];
    }
};

// `count` scalars from `first` on, back to back: where they lie if they do, else gathered into
// `room` (count * scalar_bytes bytes of device memory), not waited for.
template <class Space>
const std::uint8_t* in_order(const Space& on, const DeviceArray& array, std::uint64_t scalar_bytes,
                             std::uint64_t first, std::uint64_t count, std::uint8_t* room) {
    if (array.layout.is_contiguous())
        return array.data + first * scalar_bytes;
    Kokkos::parallel_for(
        "ciwrap::gather",
        Kokkos::RangePolicy<Space, Kokkos::IndexType<std::uint64_t>>(on, 0, count),
        GatherScalars{array.data, array.layout, array.item_bytes, scalar_bytes, first, room});
    return room;
}

}  // namespace ciwrap::device
