#include "format/block_codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "format/byte_planes.hpp"
#include "format/golden_layout.hpp"

namespace ciwrap {
namespace {

using layout::block_bytes;
using layout::block_shuffled;

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class Compressor {
  public:
    explicit Compressor(std::size_t largest_block)
        : context_(ZSTD_createCCtx()), frame_(ZSTD_compressBound(largest_block)) {
        if (!context_)
            throw std::bad_alloc();
        set(ZSTD_c_compressionLevel, layout::zstd_level);
        set(ZSTD_c_contentSizeFlag, 1);
        set(ZSTD_c_checksumFlag, 0);
        set(ZSTD_c_dictIDFlag, 0);
    }

    // Valid until the next call.
    std::span<const std::uint8_t> compress(std::span<const std::uint8_t> block) {
        const std::size_t size = ZSTD_compress2(context_.get(), frame_.data(), frame_.size(),
                                                block.data(), block.size());
        if (ZSTD_isError(size) != 0) {
            throw std::runtime_error(std::string("zstd: ") + ZSTD_getErrorName(size));
        }
        return {frame_.data(), size};
    }

  private:
    void set(ZSTD_cParameter parameter, int value) {
        if (ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), parameter, value)) != 0) {
            throw std::runtime_error("zstd refuses a parameter");
        }
    }

    std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
    std::vector<std::uint8_t> frame_;
};

// What tree-format.md allows, so that zstd never needs more memory than the block.
bool is_plain_frame(std::span<const std::uint8_t> frame, std::size_t content_bytes) {
    constexpr std::uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    return frame.size() > 4 && std::equal(std::begin(magic), std::end(magic), frame.begin()) &&
           (frame[4] & 0x3f) == 0x20 &&
           ZSTD_getFrameContentSize(frame.data(), frame.size()) == content_bytes &&
           ZSTD_findFrameCompressedSize(frame.data(), frame.size()) == frame.size();
}

}  // namespace

// Another version may compress to other bytes, and goldens must be the same everywhere.
static_assert(ZSTD_VERSION_NUMBER == 10507, "tree-format.md section 4 names zstd 1.5.7");

std::vector<std::uint8_t> pack_blocks(std::span<const std::uint8_t> raw, std::uint32_t unit,
                                      const Poll& poll) {
    if (raw.empty())
        return {};
    const std::size_t count = (raw.size() - 1) / block_bytes + 1;
    std::vector<std::uint8_t> stored(count * sizeof(std::uint32_t));
    std::vector<std::uint8_t> best;
    const std::size_t largest_block = std::min(block_bytes, raw.size());
    std::vector<std::uint8_t> planes(unit > 1 ? largest_block : 0);
    Compressor compressor(largest_block);
    for (std::size_t index = 0; index < count; ++index) {
        if (poll)
            poll();
        const auto block = raw.subspan(index * block_bytes,
                                       std::min(block_bytes, raw.size() - index * block_bytes));
        std::uint32_t flag = 0;
        best.assign(block.begin(), block.end());
        if (const auto frame = compressor.compress(block); frame.size() < best.size()) {
            best.assign(frame.begin(), frame.end());
        }
        if (unit > 1) {
            to_planes(block.data(), planes.data(), block.size() / unit, unit);
            const auto frame = compressor.compress({planes.data(), block.size()});
            if (frame.size() < best.size()) {
                best.assign(frame.begin(), frame.end());
                flag = block_shuffled;
            }
        }
        const std::uint32_t entry = static_cast<std::uint32_t>(best.size()) | flag;
        std::memcpy(stored.data() + index * sizeof entry, &entry, sizeof entry);
        stored.insert(stored.end(), best.begin(), best.end());
    }
    return stored;
}

UninitializedBytes unpack_blocks(std::span<const std::uint8_t> stored, std::uint64_t raw_bytes,
                                 std::uint32_t unit, const Refuse& refuse, const Poll& poll) {
    const std::uint64_t count = raw_bytes / block_bytes + (raw_bytes % block_bytes != 0 ? 1 : 0);
    if (count > stored.size() / sizeof(std::uint32_t))
        refuse("have a block table that is cut off");
    std::span<const std::uint8_t> rest = stored.subspan(count * sizeof(std::uint32_t));
    UninitializedBytes raw;
    // A guess that suits what real data compress to; more is taken when it has proved to be there.
    raw.reserve(std::min<std::uint64_t>(raw_bytes, stored.size() * 16 + block_bytes));
    std::vector<std::uint8_t> planes;
    std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    if (!context)
        throw std::bad_alloc();
    for (std::uint64_t index = 0; index < count; ++index) {
        if (poll)
            poll();
        std::uint32_t entry = 0;
        std::memcpy(&entry, stored.data() + index * sizeof entry, sizeof entry);
        const bool shuffled = (entry & block_shuffled) != 0;
        const std::size_t size = entry & ~block_shuffled;
        const std::size_t wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, raw_bytes - raw.size()));
        const auto fault = [&](const char* what) {
            refuse("have a block (number " + std::to_string(index) + ") " + what);
        };
        if (size == 0 || size > wanted || size > rest.size())
            fault("whose size is wrong");
        if (shuffled && (size == wanted || unit == 1))
            fault("that cannot be shuffled");
        const auto piece = rest.first(size);
        rest = rest.subspan(size);
        if (size == wanted) {
            raw.insert(raw.end(), piece.begin(), piece.end());
            continue;
        }
        if (!is_plain_frame(piece, wanted))
            fault("that is not a plain zstd frame of its size");
        const std::size_t at = raw.size();
        raw.resize(at + wanted);
        if (shuffled)
            planes.resize(wanted);
        std::uint8_t* target = shuffled ? planes.data() : raw.data() + at;
        const std::size_t got =
            ZSTD_decompressDCtx(context.get(), target, wanted, piece.data(), piece.size());
        if (got != wanted)
            fault("that cannot be decompressed");
        if (shuffled)
            from_planes(planes.data(), raw.data() + at, wanted / unit, unit);
    }
    if (!rest.empty())
        refuse("have bytes after their last block");
    return raw;
}

std::string zstd_version() {
    return ZSTD_versionString();
}

}  // namespace ciwrap
