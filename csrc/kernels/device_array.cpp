#include "kernels/device_array.hpp"

#include <utility>

#include "kernels/device_space.hpp"

namespace ciwrap {

DeviceArray make_device_array(const void* data, std::span<const std::int64_t> shape,
                              std::span<const std::int64_t> strides, std::uint32_t item_bytes) {
    DeviceArray array;
    array.data = static_cast<const std::uint8_t*>(data);
    array.item_bytes = item_bytes;
    array.element_count = 1;
    if (item_bytes == 0 || (!strides.empty() && strides.size() != shape.size()))
        throw Error(ErrorCode::invalid_argument, "an array needs a stride for each dimension");
    for (const std::int64_t length : shape) {
        if (length < 0)
            throw Error(ErrorCode::invalid_argument, "a dimension of an array is negative");
        const auto size = static_cast<std::uint64_t>(length);
        if (size > 0 && array.element_count > (std::uint64_t{1} << 60) / item_bytes / size)
            throw Error(ErrorCode::invalid_argument, "an array of more than 2^60 bytes");
        array.element_count *= size;
    }
    if (strides.empty() || array.element_count <= 1)
        return array;
    StridedLayout& layout = array.layout;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == 1)
            continue;
        const auto size = static_cast<std::uint64_t>(shape[d]);
        const std::uint32_t known = layout.dimension_count;
        if (known > 0 && layout.strides[known - 1] == strides[d] * shape[d]) {
            layout.shape[known - 1] *= size;
            layout.strides[known - 1] = strides[d];
            continue;
        }
        if (known == max_array_dimensions)
            throw Error(ErrorCode::invalid_argument, "an array of more than 32 dimensions");
        layout.shape[known] = size;
        layout.strides[known] = strides[d];
        ++layout.dimension_count;
    }
    if (layout.dimension_count == 1 && layout.strides[0] == std::int64_t{item_bytes})
        layout = {};
    return array;
}

void require_here(Backend backend, const DeviceArray& array) {
    if (array.element_count == 0)
        return;
    device::with_space(backend, [&](auto in) {
        using Space = typename decltype(in)::Space;
        [[maybe_unused]] const typename device::Traits<Space>::Guard guard;
        device::Traits<Space>::require_here(array);
    });
}

void copy_to_host(Backend backend, const DeviceArray& array, std::uint64_t first,
                  std::uint64_t count, std::byte* to) {
    if (first > array.element_count || count > array.element_count - first)
        throw Error(ErrorCode::invalid_argument, "values outside the array");
    if (count == 0)
        return;
    require_here(backend, array);
    device::with_space(backend, [&](auto in) {
        using Space = typename decltype(in)::Space;
        using Traits = device::Traits<Space>;
        [[maybe_unused]] const typename Traits::Guard guard;
        device::Lanes<Space> lanes;
        device::Lane<Space>& lane = lanes[0];
        if (array.stream != 0)
            Traits::wait_for_stream(array.stream);
        constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;
        const std::uint64_t step = std::max<std::uint64_t>(1, most_bytes / array.item_bytes);
        for (std::uint64_t done = 0; done < count; done += step) {
            const std::uint64_t now = std::min(step, count - done);
            std::uint8_t* room = array.layout.is_contiguous()
                                     ? nullptr
                                     : lane.input.fit(std::min(step, count) * array.item_bytes);
            const std::uint8_t* from =
                device::in_order(lane.on, array, array.item_bytes, first + done, now, room);
            Traits::copy(lane.on, to + done * array.item_bytes, from, now * array.item_bytes);
        }
        Traits::wait(lane.on);
    });
}

LockedMemory::LockedMemory(Backend backend, std::span<std::byte> memory) {
    if (memory.empty() || !is_device(backend))
        return;
    const bool is_locked = device::with_space(backend, [&](auto in) {
        using Space = typename decltype(in)::Space;
        [[maybe_unused]] const typename device::Traits<Space>::Guard guard;
        return device::Traits<Space>::lock(memory.data(), memory.size());
    });
    if (is_locked)
        locked_ = memory.data();
}

LockedMemory::~LockedMemory() {
#if defined(KOKKOS_ENABLE_CUDA)
    if (locked_ != nullptr)
        device::Traits<Kokkos::Cuda>::unlock(locked_);
#endif
}

LockedMemory::LockedMemory(LockedMemory&& other) noexcept
    : locked_(std::exchange(other.locked_, nullptr)) {}

LockedMemory& LockedMemory::operator=(LockedMemory&& other) noexcept {
    std::swap(locked_, other.locked_);
    return *this;
}

}  // namespace ciwrap
