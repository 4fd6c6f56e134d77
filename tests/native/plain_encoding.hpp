// Cell codes, residues, drift and packing by a plain loop over the scalar arithmetic, for comparing
// every faster way with.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "base/quantize_plan.hpp"
#include "kernels/scalar_codes.hpp"

namespace ciwrap {
namespace {

namespace scalar = CIWRAP_LEVEL_NAMESPACE;

using Bytes = std::vector<std::uint8_t>;

struct Encoded {
    std::uint64_t code;
    std::uint8_t residue;  // of a golden
    std::uint8_t delta;    // against a golden's residue; 255: not rounded
};

std::uint64_t bits_at(const QuantizePlan& plan, const std::uint8_t* data, std::size_t i) {
    std::uint64_t bits = 0;
    for (std::uint32_t byte = 0; byte < plan.scalar_bytes; ++byte) {
        const std::uint32_t place = plan.swap_unit > 1 ? plan.scalar_bytes - 1 - byte : byte;
        bits |= std::uint64_t{data[i * plan.scalar_bytes + byte]} << (8 * place);
    }
    return bits;
}

void put_bits(const QuantizePlan& plan, std::uint64_t bits, std::uint8_t* to) {
    for (std::uint32_t byte = 0; byte < plan.scalar_bytes; ++byte) {
        const std::uint32_t place = plan.swap_unit > 1 ? plan.scalar_bytes - 1 - byte : byte;
        to[byte] = static_cast<std::uint8_t>(bits >> (8 * place));
    }
}

double value_of(ScalarType type, std::uint64_t bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    switch (type) {
        case ScalarType::float16:
            return scalar::widen_float16(half);
        case ScalarType::bfloat16:
            return scalar::widen_bfloat16(half);
        case ScalarType::float32:
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        default:
            return std::bit_cast<double>(bits);
    }
}

std::uint64_t encoding_for(const QuantizePlan& plan, double magnitude) {
    if (plan.code_bytes == 4)
        return std::bit_cast<std::uint32_t>(static_cast<float>(magnitude));
    return std::bit_cast<std::uint64_t>(magnitude);
}

std::int64_t lowest_code(const QuantizePlan& plan) {
    return plan.code_bytes == 4 ? std::numeric_limits<std::int32_t>::min()
                                : std::numeric_limits<std::int64_t>::min();
}

Encoded rounded(const QuantizePlan& plan, std::int64_t cell, std::int64_t residue,
                std::uint8_t golden, bool against) {
    std::int64_t delta = residue - golden;
    if (against && delta > plan.half) {
        ++cell;
        delta -= plan.levels;
    } else if (against && delta < -plan.half) {
        --cell;
        delta += plan.levels;
    }
    return {static_cast<std::uint64_t>(cell), static_cast<std::uint8_t>(residue),
            static_cast<std::uint8_t>(std::abs(delta))};
}

template <class Fine>
Encoded rounded(const QuantizePlan& plan, Fine fine, std::uint8_t golden, bool against) {
    if (!plan.has_residues())
        return {static_cast<std::uint64_t>(scalar::whole_value(fine)), 0, 255};
    const scalar::CellAndResidue split = scalar::split_cell(fine, plan);
    return rounded(plan, split.cell, split.residue, golden, against);
}

Encoded special(std::int64_t code) {
    return {static_cast<std::uint64_t>(code), 0, 255};
}

Encoded encode_float(const QuantizePlan& plan, std::uint64_t bits, std::uint8_t golden,
                     bool against) {
    const double x = value_of(plan.scalar, bits);
    const double magnitude = std::abs(x);
    const std::int64_t lowest = lowest_code(plan);
    if (x != x)
        return special(lowest);
    if (plan.kind == CodeKind::relative && plan.zero_is_special && x == 0.0)
        return special(lowest + 2);
    const auto encoding = static_cast<std::int64_t>(encoding_for(plan, magnitude));
    if (static_cast<std::uint64_t>(encoding) >= plan.special_bits) {
        const std::int64_t code = plan.special_shift + encoding;
        return special(std::signbit(x) ? -code : code);
    }
    if (plan.kind == CodeKind::relative) {
        return plan.log_terms == 16
                   ? rounded(plan, scalar::fine_relative<16>(x, plan), golden, against)
                   : rounded(plan, scalar::fine_relative<24>(x, plan), golden, against);
    }
    if (plan.scalar == ScalarType::float64)
        return rounded(plan, scalar::fine_absolute(x, plan), golden, against);
    return rounded(plan, scalar::fine_absolute(static_cast<float>(x), plan), golden, against);
}

Encoded encode_steps(const QuantizePlan& plan, std::uint64_t bits, std::uint8_t golden,
                     bool against) {
    const unsigned unused = 64 - 8 * plan.scalar_bytes;
    const std::uint64_t sign = std::uint64_t{1} << (8 * plan.scalar_bytes - 1);
    std::int64_t image = 0;
    if (is_float(plan.scalar)) {
        const double x = value_of(plan.scalar, bits);
        const std::int64_t highest = -(lowest_code(plan) + 1);
        if (x != x)
            return special(lowest_code(plan));
        if (std::abs(x) == std::numeric_limits<double>::infinity())
            return special(x > 0.0 ? highest : highest - 1);
        image = static_cast<std::int64_t>(bits & ~sign);
        if ((bits & sign) != 0)
            image = -image;
    } else {
        const std::uint64_t value = is_unsigned(plan.scalar) ? bits ^ sign : bits;
        image = static_cast<std::int64_t>(value << unused) >> unused;
    }
    const std::int64_t fine = scalar::floor_divide(image, plan.step);
    if (!plan.has_residues())
        return {static_cast<std::uint64_t>(fine), 0, 255};
    const std::int64_t cell = scalar::floor_divide(fine, plan.levels);
    const std::int64_t residue = fine % plan.levels;
    return rounded(plan, cell, residue < 0 ? residue + plan.levels : residue, golden, against);
}

std::uint64_t canonical_bits(const QuantizePlan& plan, std::uint64_t bits) {
    if (plan.scalar == ScalarType::boolean)
        return bits != 0 ? 1 : 0;
    if (!is_float(plan.scalar))
        return bits;
    const double x = value_of(plan.scalar, bits);
    if (x == 0.0)
        return 0;
    if (x == x)
        return bits;
    switch (plan.scalar) {
        case ScalarType::float16:
            return 0x7e00;
        case ScalarType::bfloat16:
            return 0x7fc0;
        case ScalarType::float32:
            return 0x7fc00000;
        default:
            return 0x7ff8000000000000;
    }
}

Encoded encode_scalar(const QuantizePlan& plan, std::uint64_t bits, std::uint8_t golden,
                      bool against) {
    const std::uint64_t canonical = canonical_bits(plan, bits);
    for (std::uint32_t f = 0; f < plan.fill_count; ++f) {
        if (canonical != plan.fill_bits[f])
            continue;
        const auto missing = static_cast<std::uint64_t>(lowest_code(plan)) + 1;
        return {plan.kind == CodeKind::exact ? plan.fill_bits[0] : missing, 0, 255};
    }
    switch (plan.kind) {
        case CodeKind::exact:
            return {canonical, 0, 255};
        case CodeKind::steps:
            return encode_steps(plan, bits, golden, against);
        default:
            return encode_float(plan, bits, golden, against);
    }
}

struct Block {
    Bytes codes;
    Bytes residues;
    Bytes deltas;
    bool has_nan = false;  // one that is not missing
};

Block encode_plainly(const QuantizePlan& plan, const std::uint8_t* data, std::size_t count,
                     const std::uint8_t* golden) {
    Block block;
    block.codes.resize(count * plan.code_bytes);
    block.residues.resize(count);
    block.deltas.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t bits = bits_at(plan, data, i);
        const Encoded one =
            encode_scalar(plan, bits, golden == nullptr ? std::uint8_t{0} : golden[i], golden);
        std::memcpy(block.codes.data() + i * plan.code_bytes, &one.code, plan.code_bytes);
        block.residues[i] = one.residue;
        block.deltas[i] = one.delta;
        const std::uint64_t canonical = canonical_bits(plan, bits);
        const bool missing =
            std::count(plan.fill_bits, plan.fill_bits + plan.fill_count, canonical) > 0;
        if (is_float(plan.scalar) && !missing) {
            const double x = value_of(plan.scalar, bits);
            block.has_nan = block.has_nan || x != x;
        }
    }
    return block;
}

Bytes pack_plainly(const QuantizePlan& plan, const Bytes& residues) {
    Bytes packed(plan.residue_bytes(residues.size()));
    std::uint32_t weight = 1;
    for (std::size_t i = 0; i < residues.size(); ++i) {
        weight = i % plan.packed == 0 ? 1 : weight * static_cast<std::uint32_t>(plan.levels);
        packed[i / plan.packed] =
            static_cast<std::uint8_t>(packed[i / plan.packed] + weight * residues[i]);
    }
    return packed;
}

}  // namespace
}  // namespace ciwrap
