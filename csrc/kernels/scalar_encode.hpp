// One scalar, all the way: from its stored bytes to code, residue and drift
// (docs/reference/cell-codes.md, sections 2 to 7). What device kernels run per thread; the host's
// vector loops give the same bits and are tested against it.
#pragma once

#include <cstdint>

#include "kernels/scalar_codes.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

inline constexpr std::int32_t not_rounded = -1;

struct EncodedScalar {
    std::uint64_t code = 0;            // low code_bytes bytes
    std::uint8_t residue = 0;          // of a golden
    std::int32_t delta = not_rounded;  // |drift| in fine steps, against golden residues
    bool is_nan = false;               // and not missing
};

// Facts about the floating-point formats, by scalar type.
struct FloatFacts {
    std::uint64_t infinity;
    std::uint64_t nan;
};

CIWRAP_FUNCTION FloatFacts float_facts(ScalarType type) {
    switch (type) {
        case ScalarType::float16:
            return {0x7c00, 0x7e00};
        case ScalarType::bfloat16:
            return {0x7f80, 0x7fc0};
        case ScalarType::float32:
            return {0x7f800000, 0x7fc00000};
        default:
            return {0x7ff0000000000000, 0x7ff8000000000000};
    }
}

// The stored bytes of scalar `index` as an unsigned integer, in the machine's order.
CIWRAP_FUNCTION std::uint64_t stored_bits(const QuantizePlan& plan, const std::uint8_t* in,
                                          std::uint64_t index) {
    const std::uint8_t* at = in + index * plan.scalar_bytes;
    std::uint64_t bits = 0;
    for (std::uint32_t b = 0; b < plan.scalar_bytes; ++b) {
        const std::uint32_t from = plan.swap_unit > 1 ? plan.scalar_bytes - 1 - b : b;
        bits |= static_cast<std::uint64_t>(at[from]) << (8 * b);
    }
    return bits;
}

CIWRAP_FUNCTION std::uint64_t canonical_scalar(const QuantizePlan& plan, std::uint64_t bits) {
    if (plan.scalar == ScalarType::boolean)
        return bits != 0 ? 1 : 0;
    if (!is_float(plan.scalar))
        return bits;
    const FloatFacts facts = float_facts(plan.scalar);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << (8 * plan.scalar_bytes - 1));
    if (magnitude == 0)
        return 0;
    return magnitude > facts.infinity ? facts.nan : bits;
}

CIWRAP_FUNCTION float narrow_value(ScalarType type, std::uint64_t bits) {
    switch (type) {
        case ScalarType::float16:
            return widen_float16(static_cast<std::uint16_t>(bits));
        case ScalarType::bfloat16:
            return widen_bfloat16(static_cast<std::uint16_t>(bits));
        default:
            return bits_as<float>(static_cast<std::uint32_t>(bits));
    }
}

CIWRAP_FUNCTION double wide_value(ScalarType type, std::uint64_t bits) {
    return type == ScalarType::float64 ? bits_as<double>(bits)
                                       : static_cast<double>(narrow_value(type, bits));
}

// Section 7's integer image.
CIWRAP_FUNCTION std::int64_t scalar_image(const QuantizePlan& plan, std::uint64_t bits) {
    const std::uint32_t unused = 64 - 8 * plan.scalar_bytes;
    const std::uint64_t top = std::uint64_t{1} << (8 * plan.scalar_bytes - 1);
    if (is_float(plan.scalar)) {
        const auto magnitude = static_cast<std::int64_t>(bits & ~top);
        return (bits & top) != 0 ? -magnitude : magnitude;
    }
    if (is_unsigned(plan.scalar))
        bits ^= top;
    return bits_as<std::int64_t>(bits << unused) >> unused;
}

// From a fine step, kept as cell and residue, to code, residue and delta.
CIWRAP_FUNCTION void place(const QuantizePlan& plan, std::int64_t cell, std::int32_t residue,
                           bool against, std::uint8_t golden_residue, EncodedScalar& out) {
    if (against) {
        const std::int32_t difference = residue - static_cast<std::int32_t>(golden_residue);
        const std::int32_t carry = difference > plan.half ? 1 : difference < -plan.half ? -1 : 0;
        const std::int32_t delta = difference - carry * plan.levels;
        cell += carry;
        out.delta = delta < 0 ? -delta : delta;
    } else {
        out.residue = static_cast<std::uint8_t>(residue);
    }
    out.code = static_cast<std::uint64_t>(cell);
}

CIWRAP_FUNCTION void encode_float(const QuantizePlan& plan, std::uint64_t bits, bool against,
                                  std::uint8_t golden_residue, EncodedScalar& out) {
    const bool narrow = plan.code_bytes == 4;
    const std::uint64_t lowest = narrow ? 0xffffffff80000000u : 0x8000000000000000u;
    const std::uint64_t value_bits = narrow
                                         ? bits_as<std::uint32_t>(narrow_value(plan.scalar, bits))
                                         : bits_as<std::uint64_t>(wide_value(plan.scalar, bits));
    const std::uint64_t sign = narrow ? 0x80000000u : 0x8000000000000000u;
    const std::uint64_t magnitude = value_bits & ~sign;
    if (out.is_nan) {
        out.code = lowest;
        return;
    }
    if (plan.kind == CodeKind::relative && plan.zero_is_special && magnitude == 0) {
        out.code = lowest + 2;
        return;
    }
    if (magnitude >= plan.special_bits) {
        const std::uint64_t beyond = static_cast<std::uint64_t>(plan.special_shift) + magnitude;
        out.code = (value_bits & sign) != 0 ? std::uint64_t{0} - beyond : beyond;
        return;
    }
    CellAndResidue split{0, 0};
    if (plan.kind == CodeKind::absolute && narrow) {
        const double fine = fine_absolute(narrow_value(plan.scalar, bits), plan);
        split = plan.has_residues() ? split_cell(fine, plan) : CellAndResidue{whole_value(fine), 0};
    } else {
        const double x = wide_value(plan.scalar, bits);
        const TwoDigits fine = plan.kind == CodeKind::absolute ? fine_absolute(x, plan)
                               : plan.log_terms == 16          ? fine_relative<16>(x, plan)
                                                               : fine_relative<24>(x, plan);
        split = plan.has_residues() ? split_cell(fine, plan) : CellAndResidue{whole_value(fine), 0};
    }
    place(plan, split.cell, split.residue, against, golden_residue, out);
}

CIWRAP_FUNCTION void encode_step(const QuantizePlan& plan, std::uint64_t bits, bool against,
                                 std::uint8_t golden_residue, EncodedScalar& out) {
    const std::uint64_t lowest = plan.code_bytes == 4 ? 0xffffffff80000000u : 0x8000000000000000u;
    if (out.is_nan) {
        out.code = lowest;
        return;
    }
    const std::int64_t image = scalar_image(plan, bits);
    if (is_float(plan.scalar)) {
        const auto infinity = static_cast<std::int64_t>(float_facts(plan.scalar).infinity);
        if (image == infinity || image == -infinity) {
            out.code = ~lowest - (image > 0 ? 0 : 1);
            return;
        }
    }
    const std::int64_t fine = floor_divide(image, plan.step);
    const std::int64_t cell = plan.has_residues() ? floor_divide(fine, plan.levels) : fine;
    const auto residue = static_cast<std::int32_t>(
        plan.has_residues() ? wrapping_subtract(fine, wrapping_multiply(cell, plan.levels)) : 0);
    place(plan, cell, residue, against, golden_residue, out);
}

// `against`: relative to a golden with residues, whose residue of this scalar is golden_residue.
// stored: the scalar's bytes in the machine's order. Not for `raw`.
CIWRAP_FUNCTION EncodedScalar encode_bits(const QuantizePlan& plan, std::uint64_t stored,
                                          bool against, std::uint8_t golden_residue) {
    EncodedScalar out;
    const std::uint64_t bits = canonical_scalar(plan, stored);
    for (std::uint32_t f = 0; f < plan.fill_count; ++f) {
        if (bits != plan.fill_bits[f])
            continue;
        const std::uint64_t lowest =
            plan.code_bytes == 4 ? 0xffffffff80000000u : 0x8000000000000000u;
        out.code = plan.kind == CodeKind::exact ? plan.fill_bits[0] : lowest + 1;
        return out;
    }
    out.is_nan = is_float(plan.scalar) && bits == float_facts(plan.scalar).nan;
    switch (plan.kind) {
        case CodeKind::exact:
            out.code = bits;
            break;
        case CodeKind::steps:
            encode_step(plan, bits, against, golden_residue, out);
            break;
        default:
            encode_float(plan, bits, against, golden_residue, out);
    }
    return out;
}

CIWRAP_FUNCTION EncodedScalar encode_scalar(const QuantizePlan& plan, const std::uint8_t* in,
                                            std::uint64_t index, bool against,
                                            std::uint8_t golden_residue) {
    return encode_bits(plan, stored_bits(plan, in, index), against, golden_residue);
}

// Residue of scalar `index` of a chunk, out of the chunk's packed ones.
CIWRAP_FUNCTION std::uint8_t packed_residue(const QuantizePlan& plan, const std::uint8_t* packed,
                                            std::uint64_t index) {
    std::uint32_t value = packed[index / plan.packed];
    for (std::uint64_t skip = index % plan.packed; skip > 0; --skip)
        value /= static_cast<std::uint32_t>(plan.levels);
    return static_cast<std::uint8_t>(value % static_cast<std::uint32_t>(plan.levels));
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
