#include "core/patched_hash.hpp"

#include <algorithm>
#include <cstring>

namespace ciwrap {

namespace hash = CIWRAP_LEVEL_NAMESPACE;

namespace {

constexpr std::size_t last_key = sizeof hash::xxh3_secret - hash::stripe_bytes - 7;

std::uint64_t product(std::uint64_t keyed) {
    return (keyed & 0xffffffffu) * (keyed >> 32);
}

// The inverse of hash::avalanche_xxh3.
std::uint64_t before_avalanche(std::uint64_t h) {
    std::uint64_t inverse = hash::prime_mx1;  // right to 3 bits; every turn doubles them
    for (int turn = 0; turn < 5; ++turn)
        inverse *= 2 - hash::prime_mx1 * inverse;
    h ^= h >> 32;
    h *= inverse;
    return h ^ (h >> 37);
}

}  // namespace

PatchedHash::PatchedHash(std::vector<std::uint8_t> input, std::size_t code_bytes)
    : input_(std::move(input)), code_bytes_(code_bytes) {
    const std::size_t bytes = input_.size();
    if (bytes <= hash::longest_short_input)
        return;
    full_blocks_ = (bytes - 1) / hash::block_bytes;
    added_.resize(full_blocks_ + 1);
    sums_.resize(full_blocks_ + 1);
    hash::Accumulators sum;
    for (std::size_t block = 0; block <= full_blocks_; ++block) {
        hash::Accumulators& added = added_[block];
        std::fill(std::begin(added.lane), std::end(added.lane), 0);
        const std::size_t from = block * hash::block_bytes;
        const std::size_t stripes = block < full_blocks_ ? hash::stripes_per_block
                                                         : (bytes - 1 - from) / hash::stripe_bytes;
        hash::accumulate(added, input_.data() + from, hash::xxh3_secret, stripes);
        if (block == full_blocks_) {
            hash::accumulate(added, input_.data() + bytes - hash::stripe_bytes,
                             hash::xxh3_secret + last_key, 1);
        }
        for (int lane = 0; lane < 8; ++lane)
            sum.lane[lane] += added.lane[lane];
        sums_[block] = sum;
        if (block < full_blocks_)
            hash::scramble(sum);
    }
    for (int pair = 0; pair < lane_pairs; ++pair) {
        term_[static_cast<std::size_t>(pair)] =
            merged(pair, sum.lane[2 * pair], sum.lane[2 * pair + 1]);
    }
}

std::int64_t PatchedHash::code(std::size_t index) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, input_.data() + index * code_bytes_, code_bytes_);
    const auto unused = static_cast<int>(64 - 8 * code_bytes_);
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

bool PatchedHash::has_place(std::size_t index) const {
    if (sums_.empty())
        return false;
    const std::size_t end = index * code_bytes_ + code_bytes_;
    return input_.size() % hash::stripe_bytes == 0 || end <= input_.size() - hash::stripe_bytes;
}

int PatchedHash::pair_of(std::size_t index) const {
    return static_cast<int>(index * code_bytes_ % hash::stripe_bytes / 16);
}

PatchedHash::Place PatchedHash::place_of(std::size_t index) const {
    const std::size_t at = index * code_bytes_;
    const std::size_t stripe = at / hash::stripe_bytes;
    const std::size_t lane = at % hash::stripe_bytes / 8;
    const bool is_last = at >= input_.size() - hash::stripe_bytes;
    const std::size_t key = is_last ? last_key : 8 * (stripe % hash::stripes_per_block);
    return {is_last ? full_blocks_ : stripe / hash::stripes_per_block, static_cast<int>(lane),
            hash::load64(hash::xxh3_secret + key + 8 * lane), at / 8 * 8};
}

std::uint64_t PatchedHash::merged(int pair, std::uint64_t even, std::uint64_t odd) const {
    const std::uint8_t* secret = hash::xxh3_secret + 11 + 16 * pair;
    return hash::multiply_fold(even ^ hash::load64(secret), odd ^ hash::load64(secret + 8));
}

void PatchedHash::terms(std::size_t index, std::span<const std::int64_t> codes,
                        std::span<std::uint64_t> terms) const {
    const Place at = place_of(index);
    const int even = at.lane & ~1;
    const std::uint64_t word = hash::load64(input_.data() + at.word);
    const std::size_t shift = 8 * (index * code_bytes_ - at.word);
    const std::uint64_t ones =
        code_bytes_ == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * code_bytes_)) - 1;
    // sum[0]: of the even lane; one column a code, for the compiler to take together.
    std::uint64_t sum[2][most_at_once] = {};
    const std::size_t own = static_cast<std::size_t>(at.lane & 1);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::uint64_t replaced =
            (word & ~(ones << shift)) | ((static_cast<std::uint64_t>(codes[i]) & ones) << shift);
        sum[own][i] =
            sums_[at.block].lane[at.lane] + product(replaced ^ at.key) - product(word ^ at.key);
        sum[own ^ 1][i] = sums_[at.block].lane[at.lane ^ 1] + replaced - word;
    }
    for (std::size_t block = at.block; block < full_blocks_; ++block) {
        for (int lane = 0; lane < 2; ++lane) {
            const std::uint64_t next = added_[block + 1].lane[even + lane];
            for (std::uint64_t& each : sum[lane])
                each = hash::scramble_lane(each, even + lane) + next;
        }
    }
    for (std::size_t i = 0; i < codes.size(); ++i)
        terms[i] = merged(even / 2, sum[0][i], sum[1][i]);
}

std::uint64_t PatchedHash::sum_of_terms(const Digest& digest) const {
    const std::uint64_t low = hash::swap64(hash::load64(digest.bytes.data() + 8));
    return before_avalanche(low) - input_.size() * hash::prime64_1;
}

void PatchedHash::write(std::size_t index, std::int64_t code) {
    std::memcpy(input_.data() + index * code_bytes_, &code, code_bytes_);
}

Digest PatchedHash::with(std::span<const Patch> patches) {
    std::array<std::int64_t, 2> before{};
    std::size_t first = input_.size();
    for (std::size_t i = 0; i < patches.size(); ++i) {
        before[i] = code(patches[i].index);
        write(patches[i].index, patches[i].code);
        first = std::min(first, patches[i].index * code_bytes_);
    }
    Digest digest;
    if (sums_.empty()) {
        digest = hash::hash_bytes(input_.data(), input_.size());
    } else {
        // The last stripe reaches back by up to 63 bytes.
        const std::size_t block = std::min(first / hash::block_bytes, full_blocks_);
        hash::Accumulators sum;
        if (block > 0) {
            sum = sums_[block - 1];
            hash::scramble(sum);
        }
        const std::size_t from = block * hash::block_bytes;
        hash::accumulate_piece(sum, input_.data() + from, input_.size() - from, true);
        digest = hash::canonical(hash::merge_all(sum, input_.size()));
    }
    for (std::size_t i = patches.size(); i-- > 0;)
        write(patches[i].index, before[i]);
    return digest;
}

}  // namespace ciwrap
