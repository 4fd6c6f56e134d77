#include "io/slab_reader.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/error.hpp"

namespace ciwrap {

SlabReader::SlabReader(ReadEngine& engine, const InputFile& file, std::uint64_t offset,
                       std::uint64_t length, const SlabOptions& options)
    : engine_(engine), file_(file), position_(offset), end_(offset + length) {
    if (options.slab_bytes == 0 || options.buffer_count < 2) {
        throw Error(ErrorCode::invalid_argument,
                    "streaming a file needs slabs of at least one byte and two buffers");
    }
    file.require_range(offset, length);
    // A short range needs no more memory than its length.
    slab_bytes_ = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(length, 1, std::uint64_t{options.slab_bytes}));
    const std::uint64_t slabs = (length + slab_bytes_ - 1) / slab_bytes_;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(slabs, options.buffer_count));
    // Advice only: what the system makes of it changes no result.
    (void)::posix_fadvise(file.descriptor(), static_cast<off_t>(offset), static_cast<off_t>(length),
                          POSIX_FADV_SEQUENTIAL);
    buffers_ = engine.make_buffers(count, slab_bytes_);
    slabs_.resize(count);
    for (std::size_t index = 0; index < count; ++index) {
        fill(index);
    }
}

void SlabReader::fill(std::size_t index) {
    Slab& slab = slabs_[index];
    slab.bytes = static_cast<std::size_t>(std::min<std::uint64_t>(end_ - position_, slab_bytes_));
    const ReadRequest request{&file_, position_, slab.bytes, buffers_[index].data()};
    slab.batch = engine_.submit({&request, 1});
    position_ += slab.bytes;
}

std::span<const std::byte> SlabReader::next() {
    if (slabs_.empty()) {
        return {};
    }
    if (started_) {
        fill(current_);
        current_ = (current_ + 1) % slabs_.size();
    }
    started_ = true;
    Slab& slab = slabs_[current_];
    slab.batch.wait();
    return buffers_[current_].first(slab.bytes);
}

}  // namespace ciwrap
