#include "record/array_view.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "ciwrap/error.hpp"
#include "kernels/cpu_level.hpp"
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

[[noreturn]] void refuse_strides() {
    refuse("has strides that lead beyond any memory");
}

// Up to 2^62, so that it can be taken back and forth.
std::int64_t scaled(std::int64_t stride, std::int64_t by) {
    std::int64_t product = 0;
    constexpr std::int64_t most = std::int64_t{1} << 62;
    if (__builtin_mul_overflow(stride, by, &product) || product > most || product < -most)
        refuse_strides();
    return product;
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
    if ((array.flags & ~CIWRAP_BYTE_STRIDES) != 0)
        refuse("has unknown flags");
    if (array.dtype == nullptr || *array.dtype == '\0')
        refuse("has no type that can be recorded");
    dtype_ = full_dtype(array.dtype);
    const DataType type = DataType::parse(dtype_);
    element_bytes_ = type.element_bytes();
    scalars_per_element_ = type.scalars_per_element;
    const int count = array.dimensions;
    if (count < 0 || count > CIWRAP_MAX_DIMENSIONS)
        refuse("has " + std::to_string(count) + " dimensions, not 0 to 15");
    element_count_ = 1;
    std::uint64_t product = 1;  // of all that is not 0
    bool is_packed = true;
    for (int i = 0; i < count; ++i) {
        if (array.extents[i] < 0)
            refuse("has a negative extent");
        const auto extent = static_cast<std::uint64_t>(array.extents[i]);
        shape_.push_back(extent);
        if (extent != 0 && product > (std::uint64_t{1} << 56) / extent)
            refuse("has more than 2^56 values");
        product *= extent == 0 ? 1 : extent;
        element_count_ *= extent;
        is_packed = is_packed && array.strides[i] == 0;
    }
    const auto bytes = static_cast<std::int64_t>(element_bytes_);
    const std::int64_t unit = (array.flags & CIWRAP_BYTE_STRIDES) != 0 ? 1 : bytes;
    std::int64_t packed_stride = bytes;
    std::int64_t span = 0;  // from the first byte that it may lie at to the last
    for (int i = count; i-- > 0;) {
        const std::uint64_t extent = shape_[static_cast<std::size_t>(i)];
        if (extent == 1)
            continue;
        const std::int64_t stride = is_packed ? packed_stride : scaled(array.strides[i], unit);
        packed_stride = scaled(packed_stride, static_cast<std::int64_t>(extent));
        if (__builtin_add_overflow(
                span, std::abs(scaled(stride, static_cast<std::int64_t>(extent))), &span))
            refuse_strides();
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
    if (element_count_ == 0)
        dimensions_.clear();
    data_ = static_cast<const std::byte*>(array.data);
}

const std::byte* ArrayView::first_byte() const {
    const std::byte* first = data_;
    for (const Dimension& one : dimensions_) {
        if (one.stride < 0)
            first += one.stride * static_cast<std::int64_t>(one.extent - 1);
    }
    return first;
}

std::uint64_t ArrayView::span_bytes() const {
    std::uint64_t bytes = element_count_ == 0 ? 0 : element_bytes_;
    for (const Dimension& one : dimensions_)
        bytes += static_cast<std::uint64_t>(std::abs(one.stride)) * (one.extent - 1);
    return bytes;
}

bool ArrayView::is_transposed() const {
    const std::size_t count = dimensions_.size();
    return count > 1 &&
           std::abs(dimensions_[count - 2].stride) < std::abs(dimensions_[count - 1].stride);
}

bool ArrayView::is_packed() const {
    return dimensions_.empty() ||
           (dimensions_.size() == 1 &&
            dimensions_[0].stride == static_cast<std::int64_t>(element_bytes_));
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
    if (!is_on_device_)
        return ElementReader(*this, first).next(count, buffer);
    buffer.resize(count * element_bytes_);
    as_device_memory([&](const DeviceMemory& memory) {
        DeviceLibrary::get().copy(memory, first, count, buffer.data());
    });
    return buffer.data();
}

const std::byte* ArrayView::elements_by_rows(std::uint64_t first, std::uint64_t count,
                                             std::vector<std::byte>& buffer) const {
    const std::uint64_t columns = dimensions_.back().extent;
    const std::uint64_t lead = first % columns;
    const std::uint64_t rest = (columns - (first + count) % columns) % columns;
    // More than a quarter on top would cost more than rows that are cut.
    if (lead + rest > count / 4)
        return elements(first, count, buffer);
    const std::byte* const rows =
        ElementReader(*this, first - lead).next(lead + count + rest, buffer);
    return rows + lead * element_bytes_;
}

ElementReader::ElementReader(const ArrayView& view, std::uint64_t first)
    : view_(view), from_(view.data_) {
    std::uint64_t rest = first;
    for (std::size_t i = view.dimensions_.size(); i-- > 0;) {
        const ArrayView::Dimension& one = view.dimensions_[i];
        // The outermost index may be behind the last one.
        index_[i] = i == 0 ? rest : rest % one.extent;
        rest /= one.extent;
        from_ += static_cast<std::int64_t>(index_[i]) * one.stride;
    }
}

const std::byte* ElementReader::next(std::uint64_t count, std::vector<std::byte>& buffer) {
    const auto& dimensions = view_.dimensions_;
    const std::uint64_t bytes = view_.element_bytes_;
    if (dimensions.empty())
        return from_;
    const std::size_t last = dimensions.size() - 1;
    const bool is_dense = dimensions[last].stride == static_cast<std::int64_t>(bytes);
    if (is_dense && count <= dimensions[last].extent - index_[last]) {
        const std::byte* const found = from_;
        pass(last, count);
        return found;
    }
    buffer.resize(count * bytes);
    for (std::byte* to = buffer.data(); count > 0;) {
        const std::uint64_t copied =
            view_.is_transposed() && index_[last] == 0 && count >= dimensions[last].extent
                ? copy_rows(to, count)
                : copy_part_of_row(to, count);
        to += copied * bytes;
        count -= copied;
    }
    return buffer.data();
}

std::uint64_t ElementReader::copy_rows(std::byte* to, std::uint64_t count) {
    const std::size_t last = view_.dimensions_.size() - 1;
    const ArrayView::Dimension& inner = view_.dimensions_[last];
    const ArrayView::Dimension& outer = view_.dimensions_[last - 1];
    const std::uint64_t rows = std::min(count / inner.extent, outer.extent - index_[last - 1]);
    const std::uint64_t bytes = view_.element_bytes_;
    if (outer.stride == static_cast<std::int64_t>(bytes) && (bytes == 4 || bytes == 8)) {
        level_kernels().copy_columns({reinterpret_cast<const std::uint8_t*>(from_), inner.stride,
                                      reinterpret_cast<std::uint8_t*>(to), rows, inner.extent,
                                      bytes});
    } else {
        copy_transposed(to, from_, rows, outer.stride, inner.extent, inner.stride, bytes);
    }
    pass(last - 1, rows);
    return rows * inner.extent;
}

std::uint64_t ElementReader::copy_part_of_row(std::byte* to, std::uint64_t count) {
    const std::size_t last = view_.dimensions_.size() - 1;
    const ArrayView::Dimension& inner = view_.dimensions_[last];
    const std::uint64_t run = std::min(count, inner.extent - index_[last]);
    copy_run(to, from_, inner.stride, run, view_.element_bytes_);
    pass(last, run);
    return run;
}

// Goes on by so many of one dimension. Where it is at its end, the one outside of it goes on.
void ElementReader::pass(std::size_t i, std::uint64_t count) {
    const auto& dimensions = view_.dimensions_;
    from_ += static_cast<std::int64_t>(count) * dimensions[i].stride;
    index_[i] += count;
    for (; i > 0 && index_[i] == dimensions[i].extent; --i) {
        from_ -= static_cast<std::int64_t>(index_[i]) * dimensions[i].stride;
        index_[i] = 0;
        ++index_[i - 1];
        from_ += dimensions[i - 1].stride;
    }
}

}  // namespace ciwrap::record
