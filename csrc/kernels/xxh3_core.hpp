// XXH3-128, seed 0, default secret: our own implementation of the published algorithm
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for hosts and devices.
// Everything is little-endian; a big-endian host would need swaps in load32 and load64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/xxh3_lanes.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

CIWRAP_FUNCTION std::uint32_t swap32(std::uint32_t x) {
    return (x << 24) | ((x & 0xff00u) << 8) | ((x >> 8) & 0xff00u) | (x >> 24);
}

CIWRAP_FUNCTION std::uint64_t swap64(std::uint64_t x) {
    return (static_cast<std::uint64_t>(swap32(static_cast<std::uint32_t>(x))) << 32) |
           swap32(static_cast<std::uint32_t>(x >> 32));
}

struct Hash128 {
    std::uint64_t low;
    std::uint64_t high;
};

CIWRAP_FUNCTION Hash128 multiply_wide(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
    return {a * b, __umul64hi(a, b)};
#else
    __extension__ using Product = unsigned __int128;
    const Product product = static_cast<Product>(a) * b;
    return {static_cast<std::uint64_t>(product), static_cast<std::uint64_t>(product >> 64)};
#endif
}

CIWRAP_FUNCTION std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
    const Hash128 product = multiply_wide(a, b);
    return product.low ^ product.high;
}

CIWRAP_FUNCTION std::uint64_t avalanche_xxh3(std::uint64_t h) {
    h ^= h >> 37;
    h *= prime_mx1;
    return h ^ (h >> 32);
}

CIWRAP_FUNCTION std::uint64_t avalanche_xxh64(std::uint64_t h) {
    h ^= h >> 33;
    h *= prime64_2;
    h ^= h >> 29;
    h *= prime64_3;
    return h ^ (h >> 32);
}

// --- inputs of up to 240 bytes
// ---------------------------------------------------------------------------------

CIWRAP_FUNCTION Hash128 hash_up_to_16(const std::uint8_t* in, std::size_t length) {
    const std::uint8_t* secret = xxh3_secret;
    if (length > 8) {
        const std::uint64_t flip_low = load64(secret + 32) ^ load64(secret + 40);
        const std::uint64_t flip_high = load64(secret + 48) ^ load64(secret + 56);
        const std::uint64_t first = load64(in);
        std::uint64_t last = load64(in + length - 8);
        Hash128 mixed = multiply_wide(first ^ last ^ flip_low, prime64_1);
        mixed.low += static_cast<std::uint64_t>(length - 1) << 54;
        last ^= flip_high;
        mixed.high += last + (last & 0xffffffffu) * (prime32_2 - 1);
        mixed.low ^= swap64(mixed.high);
        Hash128 result = multiply_wide(mixed.low, prime64_2);
        result.high += mixed.high * prime64_2;
        return {avalanche_xxh3(result.low), avalanche_xxh3(result.high)};
    }
    if (length >= 4) {
        const std::uint64_t both =
            load32(in) + (static_cast<std::uint64_t>(load32(in + length - 4)) << 32);
        const std::uint64_t keyed = both ^ (load64(secret + 16) ^ load64(secret + 24));
        Hash128 result =
            multiply_wide(keyed, prime64_1 + (static_cast<std::uint64_t>(length) << 2));
        result.high += result.low << 1;
        result.low ^= result.high >> 3;
        result.low ^= result.low >> 35;
        result.low *= prime_mx2;
        result.low ^= result.low >> 28;
        result.high = avalanche_xxh3(result.high);
        return result;
    }
    if (length > 0) {
        const std::uint32_t low = (static_cast<std::uint32_t>(in[0]) << 16) |
                                  (static_cast<std::uint32_t>(in[length >> 1]) << 24) |
                                  in[length - 1] | (static_cast<std::uint32_t>(length) << 8);
        const std::uint32_t swapped = swap32(low);
        const std::uint32_t high = (swapped << 13) | (swapped >> 19);
        const std::uint64_t flip_low = load32(secret) ^ load32(secret + 4);
        const std::uint64_t flip_high = load32(secret + 8) ^ load32(secret + 12);
        return {avalanche_xxh64(low ^ flip_low), avalanche_xxh64(high ^ flip_high)};
    }
    return {avalanche_xxh64(load64(secret + 64) ^ load64(secret + 72)),
            avalanche_xxh64(load64(secret + 80) ^ load64(secret + 88))};
}

CIWRAP_FUNCTION std::uint64_t mix16(const std::uint8_t* in, const std::uint8_t* secret) {
    return multiply_fold(load64(in) ^ load64(secret), load64(in + 8) ^ load64(secret + 8));
}

CIWRAP_FUNCTION void mix32(Hash128& sum, const std::uint8_t* first, const std::uint8_t* second,
                           const std::uint8_t* secret) {
    sum.low += mix16(first, secret);
    sum.low ^= load64(second) + load64(second + 8);
    sum.high += mix16(second, secret + 16);
    sum.high ^= load64(first) + load64(first + 8);
}

CIWRAP_FUNCTION Hash128 hash_17_to_240(const std::uint8_t* in, std::size_t length) {
    const std::uint8_t* secret = xxh3_secret;
    const std::uint64_t length64 = length;
    Hash128 sum{length64 * prime64_1, 0};
    if (length <= 128) {
        for (std::size_t i = (length - 1) / 32 + 1; i-- > 0;) {
            mix32(sum, in + 16 * i, in + length - 16 * (i + 1), secret + 32 * i);
        }
    } else {
        for (std::size_t i = 32; i < 160; i += 32)
            mix32(sum, in + i - 32, in + i - 16, secret + i - 32);
        sum = {avalanche_xxh3(sum.low), avalanche_xxh3(sum.high)};
        for (std::size_t i = 160; i <= length; i += 32) {
            mix32(sum, in + i - 32, in + i - 16, secret + 3 + i - 160);
        }
        mix32(sum, in + length - 16, in + length - 32, secret + 136 - 17 - 16);
    }
    const std::uint64_t low = sum.low + sum.high;
    const std::uint64_t high = sum.low * prime64_1 + sum.high * prime64_4 + length64 * prime64_2;
    return {avalanche_xxh3(low), 0 - avalanche_xxh3(high)};
}

// --- longer inputs
// ---------------------------------------------------------------------------------------------

CIWRAP_FUNCTION std::uint64_t merge(const Accumulators& sums, const std::uint8_t* secret,
                                    std::uint64_t start) {
    for (int pair = 0; pair < 4; ++pair) {
        start += multiply_fold(sums.lane[2 * pair] ^ load64(secret + 16 * pair),
                               sums.lane[2 * pair + 1] ^ load64(secret + 16 * pair + 8));
    }
    return avalanche_xxh3(start);
}

CIWRAP_FUNCTION Hash128 merge_all(const Accumulators& sums, std::uint64_t length) {
    return {
        merge(sums, xxh3_secret + 11, length * prime64_1),
        merge(sums, xxh3_secret + sizeof xxh3_secret - stripe_bytes - 11, ~(length * prime64_2))};
}

// Adds the blocks of a piece of a long input. Every piece but the last is a whole number of blocks.
// The last stripe of the input may reach back before the piece: those up to 63 bytes must still
// stand in front of it.
CIWRAP_FUNCTION void accumulate_piece(Accumulators& sums, const std::uint8_t* piece,
                                      std::size_t bytes, bool is_last) {
    const std::size_t full_blocks = is_last ? (bytes - 1) / block_bytes : bytes / block_bytes;
    accumulate_blocks(sums, piece, full_blocks);
    if (!is_last)
        return;
    const std::size_t done = full_blocks * block_bytes;
    accumulate(sums, piece + done, xxh3_secret, (bytes - 1 - done) / stripe_bytes);
    accumulate(sums, piece + bytes - stripe_bytes,
               xxh3_secret + sizeof xxh3_secret - stripe_bytes - 7, 1);
}

CIWRAP_FUNCTION Digest canonical(Hash128 hash) {
    const std::uint64_t words[2] = {swap64(hash.high), swap64(hash.low)};
    Digest digest;
    __builtin_memcpy(&digest, words, sizeof digest);
    return digest;
}

CIWRAP_FUNCTION Digest hash_bytes(const std::uint8_t* in, std::size_t length) {
    if (length <= 16)
        return canonical(hash_up_to_16(in, length));
    if (length <= longest_short_input)
        return canonical(hash_17_to_240(in, length));
    Accumulators sums;
    accumulate_piece(sums, in, length, true);
    return canonical(merge_all(sums, length));
}

#if defined(CIWRAP_CPU_LEVEL)
// Bytes that are hashed as if all parts were copied behind one another.
class PartsHasher {
  public:
    explicit PartsHasher(std::size_t length) : length_(length) {}

    void add(const std::uint8_t* part, std::size_t bytes) {
        while (bytes > 0) {
            // Whole blocks are taken where they lie, but for the last of all.
            const std::size_t left = length_ - done_;
            const std::size_t whole = (bytes < left ? bytes : left - 1) / block_bytes * block_bytes;
            if (held_ == 0 && whole > 0) {
                accumulate_piece(sums_, part, whole, false);
                __builtin_memcpy(buffer_, part + whole - stripe_bytes, stripe_bytes);
                part += whole;
                bytes -= whole;
                done_ += whole;
                continue;
            }
            const std::size_t room = block_bytes - held_;
            const std::size_t taken = bytes < room ? bytes : room;
            __builtin_memcpy(held() + held_, part, taken);
            part += taken;
            bytes -= taken;
            held_ += taken;
            if (held_ < block_bytes || done_ + held_ == length_)
                continue;
            accumulate_piece(sums_, held(), block_bytes, false);
            __builtin_memcpy(buffer_, held() + block_bytes - stripe_bytes, stripe_bytes);
            done_ += block_bytes;
            held_ = 0;
        }
    }

    Digest digest() {
        if (length_ <= longest_short_input)
            return hash_bytes(held(), length_);
        accumulate_piece(sums_, held(), held_, true);
        return canonical(merge_all(sums_, length_));
    }

  private:
    std::uint8_t* held() { return buffer_ + stripe_bytes; }

    const std::size_t length_;
    std::size_t done_ = 0;  // bytes of whole blocks that are in the sums
    std::size_t held_ = 0;  // and behind them in the buffer
    Accumulators sums_;
    // The last stripe of the block before, and the block.
    std::uint8_t buffer_[stripe_bytes + block_bytes];
};
#endif

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
