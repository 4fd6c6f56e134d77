// A record's payload, taken apart from its beginning on (docs/reference/recording-format.md).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/error.hpp"
#include "ciwrap/parameters.hpp"
#include "record/record_scan.hpp"

namespace ciwrap::record {

// Throws Error(corrupt_file), naming the file, for a payload that is too short.
class PayloadReader {
  public:
    PayloadReader(std::string path, std::span<const std::byte> payload)
        : path_(std::move(path)), left_(payload) {}

    std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
    std::uint64_t u64() { return number(8); }
    double f64() { return std::bit_cast<double>(number(8)); }
    std::string text() {
        const std::span<const std::byte> found = take(u32());
        return {reinterpret_cast<const char*>(found.data()), found.size()};
    }
    std::vector<std::uint64_t> shape() { return numbers(); }
    StatedParameters parameters() {
        StatedParameters found;
        found.dtype = text();
        found.atol = f64();
        found.rtol = f64();
        found.ulps = u64();
        found.residue_levels = u32();
        found.arity = u32();
        found.chunk_bytes = u64();
        found.equal_nan = u32() != 0;
        found.fill_bits = numbers();
        return found;
    }
    std::span<const std::byte> rest() const { return left_; }

  private:
    std::vector<std::uint64_t> numbers() {
        std::vector<std::uint64_t> found;
        for (std::uint32_t count = u32(); count > 0; --count)
            found.push_back(u64());
        return found;
    }
    std::uint64_t number(std::size_t bytes) { return get_number(take(bytes).data(), bytes); }
    std::span<const std::byte> take(std::size_t count) {
        if (count > left_.size())
            throw Error(ErrorCode::corrupt_file, path_ + ": is damaged");
        const auto found = left_.first(count);
        left_ = left_.subspan(count);
        return found;
    }

    std::string path_;
    std::span<const std::byte> left_;
};

}  // namespace ciwrap::record
