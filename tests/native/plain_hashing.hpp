// What tests of CPU levels share: the levels of this machine, random numbers, chunks hashed by a
// plain loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/executor.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/xxh3_core.hpp"
#include "plain_encoding.hpp"

namespace ciwrap {
namespace {

inline std::vector<const LevelKernels*> usable_levels() {
    std::vector<const LevelKernels*> levels;
    for (const CpuLevelReport& level : cpu_level_report()) {
        if (!level.usable)
            continue;
        set_cpu_level(level.name);
        levels.push_back(&level_kernels());
    }
    set_cpu_level("auto");
    return levels;
}

struct Random {
    std::uint64_t state;
    std::uint64_t operator()() {
        state += 0x9E3779B97F4A7C15;
        std::uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
};

inline std::uint64_t narrowed(ScalarType type, double x) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    switch (type) {
        case ScalarType::float64:
            return std::bit_cast<std::uint64_t>(x);
        case ScalarType::float32:
            return bits;
        case ScalarType::bfloat16:
            return bits >> 16;
        default: {  // float16, truncated; too small or large becomes zero or infinity
            const std::uint32_t exponent = (bits >> 23) & 0xff;
            const std::uint32_t sign = (bits >> 16) & 0x8000;
            if (exponent < 113)
                return sign;
            if (exponent > 142)
                return sign | 0x7c00;
            return sign | ((exponent - 112) << 10) | ((bits >> 13) & 0x3ff);
        }
    }
}

// A run near the golden one: most scalars moved by less than the bound, a few by anything.
inline Bytes moved(const TreeParameters& parameters, Bytes data, Random& random) {
    const QuantizePlan plan = make_plan(parameters);
    for (std::size_t i = 0; i < data.size(); i += plan.scalar_bytes) {
        if (random() % 16 == 0 || plan.scalar == ScalarType::boolean)
            continue;
        std::uint64_t bits = bits_at(plan, data.data() + i, 0);
        if (is_float(plan.scalar) && parameters.ulps() == 0) {
            const double x = value_of(plan.scalar, bits);
            const double by = parameters.atol() + parameters.rtol() * std::abs(x);
            bits = narrowed(plan.scalar, x + by * (2.0 * random.uniform() - 1.0));
        } else {
            bits += random() % 9 - 4;
        }
        put_bits(plan, bits, data.data() + i);
    }
    return data;
}

inline std::string described(const TreeParameters& p) {
    return p.dtype() + " atol " + std::to_string(p.atol()) + " rtol " + std::to_string(p.rtol()) +
           " ulps " + std::to_string(p.ulps()) + " k " + std::to_string(p.residue_levels());
}

// Where two runs of bytes first differ; their length if nowhere.
inline std::size_t first_difference(const Bytes& a, const Bytes& b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

struct Hashed {
    std::vector<Digest> leaves;
    Bytes residues;
    Bytes leaf_levels;
    std::vector<std::uint64_t> histogram;
};

inline bool is_unmatchable(const Digest& digest) {
    return std::memcmp(&digest, &unmatchable_digest, sizeof digest) == 0;
}

// Golden and new run over one loop of chunks; `golden` null: the golden run.
inline Hashed hash_plainly(const QuantizePlan& plan, const Bytes& data, std::uint64_t count,
                           const Bytes* golden_data, const Hashed* golden) {
    Hashed result;
    result.histogram.resize(static_cast<std::size_t>(plan.half) + 1);
    for (std::uint64_t done = 0; done < count || done == 0; done += plan.chunk_scalars) {
        const std::size_t n = std::min(plan.chunk_scalars, count - done);
        const std::uint8_t* from = data.data() + done * plan.scalar_bytes;
        Block reference;
        if (golden_data != nullptr) {
            reference =
                encode_plainly(plan, golden_data->data() + done * plan.scalar_bytes, n, nullptr);
        }
        const bool against = golden_data != nullptr && plan.has_residues();
        const Block block =
            encode_plainly(plan, from, n, against ? reference.residues.data() : nullptr);
        Digest leaf = scalar::hash_bytes(block.codes.data(), block.codes.size());
        if (block.has_nan && !plan.equal_nan)
            leaf = unmatchable_digest;
        result.leaves.push_back(leaf);
        if (plan.has_residues()) {
            const Bytes packed = pack_plainly(plan, block.residues);
            result.residues.insert(result.residues.end(), packed.begin(), packed.end());
        }
        if (golden == nullptr)
            continue;
        const Digest& before = golden->leaves[result.leaves.size() - 1];
        const bool match = std::memcmp(&leaf, &before, sizeof leaf) == 0 && !is_unmatchable(leaf);
        std::uint8_t largest = 0;
        for (const std::uint8_t delta : block.deltas) {
            if (!match || !against || delta == 255)
                continue;
            largest = std::max(largest, delta);
            ++result.histogram[delta];
        }
        result.leaf_levels.push_back(match ? largest : no_match_level);
    }
    return result;
}

}  // namespace
}  // namespace ciwrap
