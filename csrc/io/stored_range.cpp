#include "io/stored_range.hpp"

#include <algorithm>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

constexpr std::uint64_t round_down(std::uint64_t x) {
    return x / direct_alignment * direct_alignment;
}
constexpr std::uint64_t round_up(std::uint64_t x) {
    return round_down(x + direct_alignment - 1);
}
// Less than this is not worth a second descriptor.
constexpr std::uint64_t smallest_direct_range = std::uint64_t{1} << 20;

std::optional<InputFile> open_direct(const InputFile& cached, std::uint64_t offset,
                                     std::uint64_t byte_count, DirectReads direct) {
    if (direct == DirectReads::never)
        return std::nullopt;
    if (direct == DirectReads::automatic &&
        (byte_count < smallest_direct_range || cached.is_mostly_cached(offset, byte_count))) {
        return std::nullopt;
    }
    try {
        InputFile opened(cached.path(), ReadMode::direct);
        // Another file may have taken the name since.
        require_unchanged(cached.path(), cached.stamp(), opened.descriptor());
        return opened;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_available)
            return std::nullopt;
        throw;
    }
}

}  // namespace

DirectReads parse_direct_reads(std::string_view name) {
    if (name == "auto")
        return DirectReads::automatic;
    if (name == "always")
        return DirectReads::always;
    if (name == "never")
        return DirectReads::never;
    throw Error(ErrorCode::invalid_argument, "unknown kind of direct reads '" + std::string(name) +
                                                 "'; known: auto, always, never");
}

StoredRange::StoredRange(const std::string& path, std::uint64_t offset, std::uint64_t byte_count,
                         DirectReads direct, Access access, const std::optional<FileStamp>& stamp)
    : cached_(path), offset_(offset), byte_count_(byte_count) {
    if (stamp)
        ciwrap::require_unchanged(path, *stamp, cached_.descriptor());
    cached_.require_range(offset, byte_count);
    cached_.expect(access, offset, byte_count);
    direct_ = open_direct(cached_, offset, byte_count, direct);
}

const std::byte* StoredRange::plan(std::uint64_t from, std::size_t length, std::byte* memory,
                                   std::vector<ReadRequest>& requests) const {
    const std::uint64_t begin = offset_ + from;
    const std::uint64_t end = begin + length;
    if (!direct_) {
        requests.push_back({&cached_, begin, length, memory});
        return memory;
    }
    // The block at the end of a file is not whole, so it comes through the cache.
    const std::uint64_t first = round_down(begin);
    const std::uint64_t last = std::min(round_up(end), round_down(direct_->size()));
    const auto at = [&](std::uint64_t byte) { return memory + (byte - first); };
    if (last > first) {
        requests.push_back({&*direct_, first, static_cast<std::size_t>(last - first), at(first)});
    }
    if (end > std::max(last, begin)) {
        const std::uint64_t rest = std::max(last, begin);
        requests.push_back({&cached_, rest, static_cast<std::size_t>(end - rest), at(rest)});
    }
    return at(begin);
}

}  // namespace ciwrap
