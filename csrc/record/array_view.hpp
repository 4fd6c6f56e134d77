// A program's array as the recorder sees it: elements in index order, wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/parameters.hpp"
#include "kernels/level_kernels.hpp"
#include "record/include/ciwrap/record.h"

namespace ciwrap::record {

// A dtype as NumPy's array protocol has it, of one in short: "f8" is "<f8", "?" is "|b1". Throws
// Error(invalid_argument) if it is none of ours.
std::string full_dtype(const std::string& dtype);

class ArrayView {
  public:
    ArrayView() = default;
    // Throws Error(invalid_argument) for what cannot be recorded: negative extents, too many
    // dimensions; Error(not_available) for memory on a device without the library for that.
    explicit ArrayView(const ciwrap_array& array);

    void move(const void* data) { data_ = static_cast<const std::byte*>(data); }
    const std::vector<std::uint64_t>& shape() const { return shape_; }
    const std::string& dtype() const { return dtype_; }
    // Whether there is anything to read, or need not be.
    bool has_data() const { return data_ != nullptr || element_count_ == 0; }
    std::uint64_t element_count() const { return element_count_; }
    std::uint64_t scalar_count() const { return element_count_ * scalars_per_element_; }
    std::uint64_t element_bytes() const { return element_bytes_; }

    bool is_on_device() const { return is_on_device_; }
    // The address of its lowest byte, and how many bytes there are to the end of the highest.
    const std::byte* first_byte() const;
    std::uint64_t span_bytes() const;
    // Whether neighbours in memory are in the next row.
    bool is_transposed() const;
    // Whether elements lie back to back, in the order of their indices.
    bool is_packed() const;

    // Makes the leaves of trees of all elements, on the device. Throws Error(not_available) with
    // what the device says.
    void hash_on_device(std::span<const ChunkBatch> batches, std::uint64_t chunk_count) const;
    // Elements [first, first + count), back to back: where they lie, or copied into `buffer`.
    // Throws Error(not_available) if a device does not give them.
    const std::byte* elements(std::uint64_t first, std::uint64_t count,
                              std::vector<std::byte>& buffer) const;
    // The same of an array that is transposed, on the host: rows that begin or end within are
    // copied as a whole, since what is next to their elements in memory is of other rows.
    const std::byte* elements_by_rows(std::uint64_t first, std::uint64_t count,
                                      std::vector<std::byte>& buffer) const;

  private:
    friend class ElementReader;

    struct Dimension {
        std::uint64_t extent;
        std::int64_t stride;  // in bytes
    };

    // Calls body with the memory as the library for devices wants it.
    template <class Body>
    void as_device_memory(Body&& body) const;

    const std::byte* data_ = nullptr;
    bool is_on_device_ = false;
    std::string dtype_;
    std::vector<std::uint64_t> shape_;
    std::vector<Dimension> dimensions_;  // without those of one index; neighbours joined
    std::uint64_t element_count_ = 0;
    std::uint64_t element_bytes_ = 1;
    std::uint64_t scalars_per_element_ = 1;
};

// Elements of an array in host memory, in the order of their indices, from one of them on.
class ElementReader {
  public:
    // The view must outlive it.
    ElementReader(const ArrayView& view, std::uint64_t first);

    // The next `count`, back to back: where they lie, or copied into `buffer`.
    const std::byte* next(std::uint64_t count, std::vector<std::byte>& buffer);

  private:
    std::uint64_t copy_rows(std::byte* to, std::uint64_t count);
    std::uint64_t copy_part_of_row(std::byte* to, std::uint64_t count);
    void pass(std::size_t dimension, std::uint64_t count);

    const ArrayView& view_;
    const std::byte* from_;
    std::uint64_t index_[CIWRAP_MAX_DIMENSIONS] = {};
};

}  // namespace ciwrap::record
