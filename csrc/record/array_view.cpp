#include "record/array_view.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "ciwrap/error.hpp"
#include "record/device_library.hpp"

namespace ciwrap::record {
namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::invalid_argument, what);
}

// Copies `count` elements that are `stride` bytes apart.
template <std::size_t bytes>
void copy_strided(std::byte* to, const std::byte* from, std::int64_t stride, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, from += stride, to += bytes)
        std::memcpy(to, from, bytes);
}

void copy_run(std::byte* to, const std::byte* from, std::int64_t stride, std::uint64_t count,
              std::uint64_t bytes) {
    if (stride == static_cast<std::int64_t>(bytes)) {
        std::memcpy(to, from, count * bytes);
        return;
    }
    switch (bytes) {
        case 4:
            return copy_strided<4>(to, from, stride, count);
        case 8:
            return copy_strided<8>(to, from, stride, count);
        case 16:
            return copy_strided<16>(to, from, stride, count);
        default:
            break;
    }
    for (std::uint64_t i = 0; i < count; ++i, from += stride, to += bytes)
        std::memcpy(to, from, bytes);
}

// Elements of a row that are gathered before the next row's: as many as a line of the cache holds.
constexpr std::uint64_t tile_columns = 8;

// Asks for what the rows of some columns lie in. The processor does not guess it, since every
// column is in another page.
void fetch_columns(const std::byte* from, std::int64_t stride, std::uint64_t columns,
                   std::uint64_t bytes) {
    for (std::uint64_t j = 0; j < columns; ++j, from += stride) {
        for (std::uint64_t line = 0; line < bytes; line += 64)
            __builtin_prefetch(from + line);
    }
}

// Copies whole rows of an array whose neighbours in memory are in the next row: a tile at a time,
// so that each line of the cache is read once.
void copy_transposed(std::byte* to, const std::byte* from, std::uint64_t rows,
                     std::int64_t row_stride, std::uint64_t columns, std::int64_t stride,
                     std::uint64_t bytes) {
    for (std::uint64_t j = 0; j < columns; j += tile_columns) {
        const std::uint64_t run = std::min(tile_columns, columns - j);
        const std::byte* row = from + static_cast<std::int64_t>(j) * stride;
        const std::uint64_t next = std::min(tile_columns, columns - j - run);
        fetch_columns(row + static_cast<std::int64_t>(run) * stride, stride, next, rows * bytes);
        for (std::uint64_t i = 0; i < rows; ++i, row += row_stride)
            copy_run(to + (i * columns + j) * bytes, row, stride, run, bytes);
    }
}

}  // namespace

std::string full_dtype(const std::string& dtype) {
    if (dtype == "?")
        return "|b1";
    const bool has_order = !dtype.empty() && std::strchr("<>|=", dtype.front()) != nullptr;
    const std::string bare = has_order ? dtype.substr(1) : dtype;
    const bool is_single = bare.size() == 2 && bare[1] == '1' && std::strchr("iub", bare[0]);
    if (is_single || bare.starts_with("S"))
        return "|" + bare;
    if (has_order && dtype.front() != '=')
        return dtype;
    return (std::endian::native == std::endian::little ? "<" : ">") + bare;
}

ArrayView::ArrayView(const ciwrap_array& array) {
    is_on_device_ = array.location == CIWRAP_DEVICE;
    if (is_on_device_)
        (void)DeviceLibrary::get();
    else if (array.location != CIWRAP_HOST)
        refuse("lies neither on the host nor on a device");
    dtype_ = full_dtype(array.dtype == nullptr ? "" : array.dtype);
    const DataType type = DataType::parse(dtype_);
    element_bytes_ = type.element_bytes();
    scalars_per_element_ = type.scalars_per_element;
    const int count = array.dimensions;
    if (count < 0 || count > CIWRAP_MAX_DIMENSIONS)
        refuse("has " + std::to_string(count) + " dimensions, not 0 to 15");
    element_count_ = 1;
    bool is_packed = true;
    for (int i = 0; i < count; ++i) {
        if (array.extents[i] < 0)
            refuse("has a negative extent");
        const auto extent = static_cast<std::uint64_t>(array.extents[i]);
        shape_.push_back(extent);
        if (extent != 0 && element_count_ > (std::uint64_t{1} << 56) / extent)
            refuse("has more than 2^56 elements");
        element_count_ *= extent;
        is_packed = is_packed && array.strides[i] == 0;
    }
    const auto bytes = static_cast<std::int64_t>(element_bytes_);
    const std::int64_t unit = (array.flags & CIWRAP_BYTE_STRIDES) != 0 ? 1 : bytes;
    std::int64_t packed_stride = bytes;
    for (int i = count; i-- > 0;) {
        const std::int64_t stride = is_packed ? packed_stride : array.strides[i] * unit;
        const std::uint64_t extent = shape_[static_cast<std::size_t>(i)];
        packed_stride *= static_cast<std::int64_t>(extent);
        if (extent == 1)
            continue;
        // An index that goes on where the one inside of it ends is the same dimension.
        if (!dimensions_.empty()) {
            Dimension& inner = dimensions_.back();
            if (stride == inner.stride * static_cast<std::int64_t>(inner.extent)) {
                inner.extent *= extent;
                continue;
            }
        }
        dimensions_.push_back({extent, stride});
    }
    std::reverse(dimensions_.begin(), dimensions_.end());
    data_ = static_cast<const std::byte*>(array.data);
}

bool ArrayView::is_transposed() const {
    const std::size_t count = dimensions_.size();
    return count > 1 &&
           std::abs(dimensions_[count - 2].stride) < std::abs(dimensions_[count - 1].stride);
}

template <class Body>
void ArrayView::as_device_memory(Body&& body) const {
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> strides;
    for (const Dimension& one : dimensions_) {
        extents.push_back(static_cast<std::int64_t>(one.extent));
        strides.push_back(one.stride);
    }
    body(DeviceMemory{data_, extents.size(), extents.data(), strides.data(),
                      static_cast<std::uint32_t>(element_bytes_)});
}

void ArrayView::hash_on_device(std::span<const ChunkBatch> batches,
                               std::uint64_t chunk_count) const {
    as_device_memory([&](const DeviceMemory& memory) {
        DeviceLibrary::get().hash(memory, batches, chunk_count);
    });
}

const std::byte* ArrayView::elements(std::uint64_t first, std::uint64_t count,
                                     std::vector<std::byte>& buffer) const {
    if (is_on_device_) {
        buffer.resize(count * element_bytes_);
        as_device_memory([&](const DeviceMemory& memory) {
            DeviceLibrary::get().copy(memory, first, count, buffer.data());
        });
        return buffer.data();
    }
    const auto bytes = static_cast<std::int64_t>(element_bytes_);
    if (dimensions_.empty() || (dimensions_.size() == 1 && dimensions_[0].stride == bytes))
        return data_ + first * element_bytes_;
    buffer.resize(count * element_bytes_);
    std::vector<std::uint64_t> index(dimensions_.size());
    std::uint64_t rest = first;
    const std::byte* from = data_;
    for (std::size_t i = dimensions_.size(); i-- > 0;) {
        index[i] = rest % dimensions_[i].extent;
        rest /= dimensions_[i].extent;
        from += static_cast<std::int64_t>(index[i]) * dimensions_[i].stride;
    }
    std::byte* to = buffer.data();
    // Where a dimension is at its end, the one outside of it goes on.
    const auto carry = [&](std::size_t i) {
        for (; i > 0 && index[i] == dimensions_[i].extent; --i) {
            from -= static_cast<std::int64_t>(index[i]) * dimensions_[i].stride;
            index[i] = 0;
            ++index[i - 1];
            from += dimensions_[i - 1].stride;
        }
    };
    const std::size_t last = dimensions_.size() - 1;
    const Dimension& inner = dimensions_[last];
    while (count > 0) {
        if (is_transposed() && index[last] == 0 && count >= inner.extent) {
            const Dimension& outer = dimensions_[last - 1];
            const std::uint64_t rows =
                std::min(count / inner.extent, outer.extent - index[last - 1]);
            copy_transposed(to, from, rows, outer.stride, inner.extent, inner.stride,
                            element_bytes_);
            to += rows * inner.extent * element_bytes_;
            count -= rows * inner.extent;
            from += static_cast<std::int64_t>(rows) * outer.stride;
            index[last - 1] += rows;
            carry(last - 1);
            continue;
        }
        const std::uint64_t run = std::min(count, inner.extent - index[last]);
        copy_run(to, from, inner.stride, run, element_bytes_);
        to += run * element_bytes_;
        count -= run;
        from += static_cast<std::int64_t>(run) * inner.stride;
        index[last] += run;
        carry(last);
    }
    return buffer.data();
}

}  // namespace ciwrap::record
