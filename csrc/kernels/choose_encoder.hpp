// Which loop encodes the scalars of a plan: vectors where the level has them, else
// encode_block.hpp.
#pragma once

#include "kernels/encode_block.hpp"
#include "kernels/encode_vector.hpp"
#include "kernels/float_logarithm.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {
namespace {

// Codes, residues and deltas of one block of scalars, all in the first-level cache.
using EncodeFunction = void (*)(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                                std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas);

using Narrow = std::int32_t;
using Wide = std::int64_t;

template <std::size_t ScalarBytes>
struct CodeWidth {
    using Code = Narrow;
};
template <>
struct CodeWidth<8> {
    using Code = Wide;
};
template <ScalarType Type>
using CodeOf = typename CodeWidth<sizeof(typename Image<Type>::Bits)>::Code;

#if defined(CIWRAP_HAVE_SIMD)

template <Rounding Mode, ScalarType Type>
EncodeFunction absolute_encoder() {
    if constexpr (Type == ScalarType::float64) {
        return encode_quick_block<LimitedTiles<Mode, Type, Wide, AbsoluteWideQuick, AbsoluteWide>>;
    } else {
        return encode_quick_block<
            LimitedTiles<Mode, Type, Narrow, AbsoluteNarrowQuick, AbsoluteNarrow>>;
    }
}

template <Rounding Mode, ScalarType Type, int Terms>
EncodeFunction relative_encoder(const QuantizePlan& plan) {
    using Exact = Relative<Terms>;
    using Shortest = EstimatedTiles<Mode, Type, fewest_log_terms, FineRounding, Exact>;
    using Short = EstimatedTiles<Mode, Type, 6, FineRounding, Exact>;
    using Long = EstimatedTiles<Mode, Type, 6, WideRounding, Exact>;
#if defined(CIWRAP_HAVE_WIDE)
    if constexpr (Type == ScalarType::float32 && Mode == Rounding::plain && Terms == 16) {
        if (FloatEstimatedTiles<Exact>::suits(plan))
            return encode_float_block<Exact>;
    }
#endif
    // Instantiations cost time to compile and bytes to ship: 24 terms are for narrow types under
    // bounds too small for any estimate.
    if constexpr (Type == ScalarType::float64 || Terms == 16) {
        if (Shortest::suits(plan))
            return encode_quick_block<Shortest>;
        if (Short::suits(plan))
            return encode_quick_block<Short>;
        if (Long::suits(plan))
            return encode_quick_block<Long>;
    }
    return encode_exact_block<typename Long::Exact>;
}

template <Rounding Mode, ScalarType Type>
EncodeFunction steps_encoder() {
    if constexpr (sizeof(CodeOf<Type>) == 8) {
        return encode_steps<Mode, Type, Wide>;
    } else {
        return encode_exact_block<StepTiles<Mode, Type>>;
    }
}

#else

template <Rounding Mode, ScalarType Type>
EncodeFunction absolute_encoder() {
    return encode_floats<CodeKind::absolute, 24, Mode, Type, CodeOf<Type>>;
}

template <Rounding Mode, ScalarType Type, int Terms>
EncodeFunction relative_encoder(const QuantizePlan&) {
    return encode_floats<CodeKind::relative, Terms, Mode, Type, Wide>;
}

template <Rounding Mode, ScalarType Type>
EncodeFunction steps_encoder() {
    return encode_steps<Mode, Type, CodeOf<Type>>;
}

#endif

template <Rounding Mode, ScalarType Type>
EncodeFunction float_encoder(const QuantizePlan& plan) {
    if (plan.kind == CodeKind::absolute)
        return absolute_encoder<Mode, Type>();
    if (plan.kind == CodeKind::steps)
        return steps_encoder<Mode, Type>();
    if constexpr (Type != ScalarType::float64) {
        if (plan.log_terms == 16)
            return relative_encoder<Mode, Type, 16>(plan);
    }
    return relative_encoder<Mode, Type, 24>(plan);
}

// Half precision under an absolute or relative bound: widened, and then as any floats. A quarter of
// what is shipped would be loops of its own for it.
template <Rounding Mode, ScalarType Type>
void encode_widened(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                    std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas) {
    alignas(64) float wide[block_scalars];
    for (std::size_t i = 0; i < count; ++i)
        wide[i] = Loader<Type>::get(in, i);
    const EncodeFunction encode = float_encoder<Mode, ScalarType::float32>(plan);
    encode(plan, reinterpret_cast<const std::uint8_t*>(wide), count, codes, residues, deltas);
}

template <Rounding Mode, ScalarType Type>
EncodeFunction half_encoder(const QuantizePlan& plan) {
    return plan.kind == CodeKind::steps ? steps_encoder<Mode, Type>() : encode_widened<Mode, Type>;
}

template <Rounding Mode>
EncodeFunction encoder_for(const QuantizePlan& plan) {
    using enum ScalarType;
    switch (plan.scalar) {
        case float16:
            return half_encoder<Mode, float16>(plan);
        case bfloat16:
            return half_encoder<Mode, bfloat16>(plan);
        case float32:
            return float_encoder<Mode, float32>(plan);
        case float64:
            return float_encoder<Mode, float64>(plan);
        case int8:
            return steps_encoder<Mode, int8>();
        case int16:
            return steps_encoder<Mode, int16>();
        case int32:
            return steps_encoder<Mode, int32>();
        case int64:
            return steps_encoder<Mode, int64>();
        case uint8:
            return steps_encoder<Mode, uint8>();
        case uint16:
            return steps_encoder<Mode, uint16>();
        case uint32:
            return steps_encoder<Mode, uint32>();
        case uint64:
            return steps_encoder<Mode, uint64>();
        case boolean:
        case raw:
            break;
    }
    return nullptr;
}

void encode_exact(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                  std::uint8_t* codes, std::uint8_t*, std::uint8_t*) {
    switch (plan.scalar) {
        case ScalarType::float16:
            return encode_exact_floats<std::uint16_t>(0x7c00, 0x7e00, in, count, codes);
        case ScalarType::bfloat16:
            return encode_exact_floats<std::uint16_t>(0x7f80, 0x7fc0, in, count, codes);
        case ScalarType::float32:
            return encode_exact_floats<std::uint32_t>(0x7f800000, 0x7fc00000, in, count, codes);
        case ScalarType::float64:
            return encode_exact_floats<std::uint64_t>(0x7ff0000000000000, 0x7ff8000000000000, in,
                                                      count, codes);
        case ScalarType::boolean:
            for (std::size_t i = 0; i < count; ++i)
                codes[i] = in[i] != 0 ? 1 : 0;
            return;
        default:
            __builtin_memcpy(codes, in, count * plan.scalar_bytes);
    }
}

EncodeFunction choose_encoder(const QuantizePlan& plan, Rounding mode) {
    if (plan.kind == CodeKind::exact)
        return encode_exact;
    if (!plan.has_residues())
        return encoder_for<Rounding::plain>(plan);
    return mode == Rounding::against ? encoder_for<Rounding::against>(plan)
                                     : encoder_for<Rounding::golden>(plan);
}

}  // namespace
}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
