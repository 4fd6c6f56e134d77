#include "io/slab_reader.hpp"

#include <algorithm>

#include "ciwrap/error.hpp"

namespace ciwrap {

SlabReader::SlabReader(ReadEngine& engine, const std::string& path, std::uint64_t offset,
                       std::uint64_t length, const SlabOptions& options)
    : engine_(engine),
      range_(path, offset, length, options.direct, Access::in_order, options.stamp) {
    if (options.slab_bytes == 0 || options.buffer_count < 2) {
        throw Error(ErrorCode::invalid_argument,
                    "streaming a file needs slabs of at least one byte and two buffers");
    }
    // A short range needs no more memory than its length.
    slab_bytes_ = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(length, 1, std::uint64_t{options.slab_bytes}));
    const std::uint64_t slabs = (length + slab_bytes_ - 1) / slab_bytes_;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(slabs, options.buffer_count));
    buffers_ = engine.make_buffers(
        count, range_.is_direct() ? StoredRange::room_for(slab_bytes_) : slab_bytes_);
    slabs_.resize(count);
    for (std::size_t index = 0; index < count; ++index) {
        fill(index);
    }
}

void SlabReader::fill(std::size_t index) {
    Slab& slab = slabs_[index];
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(range_.byte_count() - position_, slab_bytes_));
    slab.bytes = {};
    if (length == 0)
        return;
    requests_.clear();
    slab.bytes = {range_.plan(position_, length, buffers_[index].data(), requests_), length};
    slab.batch = engine_.submit(requests_);
    position_ += length;
}

std::span<const std::byte> SlabReader::next() {
    if (error_)
        throw *error_;
    if (slabs_.empty()) {
        return {};
    }
    try {
        if (started_) {
            fill(current_);
            current_ = (current_ + 1) % slabs_.size();
        }
        started_ = true;
        Slab& slab = slabs_[current_];
        slab.batch.wait();
        return slab.bytes;
    } catch (const Error& error) {
        error_ = error;
        throw;
    }
}

}  // namespace ciwrap
