// Blocks of scalars to codes with the vectors of simd.hpp, tile by tile. The same interface and the
// same bits as the scalar loops of encode_block.hpp.
//
// Most scalars can be rounded in fewer steps than section 5 and 6 spell out. So there are two kinds
// of tiles: quick ones, which notice when they hold a scalar for which that is not so, and exact
// ones, which then do the tile again. Special scalars get their codes last, in exact tiles alone.
#pragma once

#include <type_traits>

#include "kernels/prefetch_distance.hpp"
#include "kernels/tile_codes.hpp"
#include "kernels/vector_logarithm.hpp"

#if defined(CIWRAP_HAVE_SIMD)

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// --- exact tiles -------------------------------------------------------------------------------

template <CodeKind Kind, Rounding Mode, ScalarType Type, class Code>
[[gnu::noinline]] static void encode_special(const QuantizePlan& plan, const std::uint8_t* in,
                                             const TileOutput& out) {
    using Vectors = CodeVectors<Code>;
    using Bits = typename Vectors::Bits;
    const SpecialScalars<Kind, Code> special(plan);
    const TileInput<Type, Kind> input(in);
    for (std::size_t i = 0; i < tile; i += vector_bytes / sizeof(Code)) {
        typename Vectors::Real x;
        if constexpr (sizeof(Code) == 8) {
            x = input.at(i);
        } else {
            x = input.floats_at(i);
        }
        const Bits rounded = special.rounded(x);
        std::uint8_t* codes = out.codes + i * sizeof(Code);
        store_vector(codes, select(rounded, load_vector<Bits>(codes), special.code(x)));
        mark_special<Mode>(out, i, lane_bits(~rounded));
    }
}

// Absolute and relative bounds, any scalars; FineSteps rounds all that are not special.
template <CodeKind Kind, Rounding TileMode, ScalarType TileType, class TileCode, class FineSteps>
class ExactTiles {
  public:
    static constexpr Rounding Mode = TileMode;
    static constexpr ScalarType Type = TileType;
    using Code = TileCode;
    // A logarithm is long enough that a loop around it costs nothing, and there are many of them.
    static constexpr Loop steps = Kind == CodeKind::relative ? Loop::compact : Loop::laid_out;

    [[gnu::always_inline]] explicit ExactTiles(const QuantizePlan& plan)
        : plan_(plan), vectors_(plan), steps_(plan), special_(plan) {}

    [[gnu::always_inline]] void encode(const std::uint8_t* in, const TileOutput& out) const {
        using Bits = typename CodeVectors<Code>::Bits;
        const TileInput<Type, Kind> input(in);
        Bits rounded = ~Bits{};
        encode_rounded<Code, Mode, steps>(
            input, vectors_,
            out, [&](F64 x) __attribute__((always_inline)) { return steps_.fine(x, vectors_); },
            [&](std::size_t i, F64 x0, F64 x1) __attribute__((always_inline)) {
                if constexpr (sizeof(Code) == 4) {
                    rounded &= special_.rounded(input.floats_at(i));
                } else {
                    rounded &= special_.rounded(x0) & special_.rounded(x1);
                }
                (void)i, (void)x0, (void)x1;
            });
        if (lane_bits(~rounded) != 0) [[unlikely]]
            encode_special<Kind, Mode, Type, Code>(plan_, in, out);
    }

  private:
    const QuantizePlan& plan_;
    const VectorPlan vectors_;
    const FineSteps steps_;
    const SpecialScalars<Kind, Code> special_;
};

// --- quick tiles -------------------------------------------------------------------------------

// Tiles to do exactly where a quick one failed: with a scalar beyond the limit others are to be
// expected nearby, one in doubt comes alone.
inline constexpr std::size_t tiles_beyond_limit = 8;

// Absolute bounds, scalars below QuickSteps' limit.
template <Rounding TileMode, ScalarType TileType, class TileCode, class QuickSteps, class FineSteps>
class LimitedTiles {
  public:
    static constexpr Rounding Mode = TileMode;
    static constexpr ScalarType Type = TileType;
    using Code = TileCode;
    using Exact = ExactTiles<CodeKind::absolute, Mode, Type, Code, FineSteps>;

    [[gnu::always_inline]] explicit LimitedTiles(const QuantizePlan& plan)
        : plan_(plan), vectors_(plan), steps_(plan), limit_(splat(limit(plan))) {}

    // Returns how many tiles must be done exactly, beginning with this one.
    [[gnu::always_inline]] std::size_t encode(const std::uint8_t* in, const TileOutput& out) const {
        Seen seen;
        const TileInput<Type, CodeKind::absolute> input(in);
        encode_rounded<Code, Mode>(input, vectors_, out, fine(), check(input, seen));
        return are_right(seen) ? 0 : tiles_beyond_limit;
    }

    using Seen = std::conditional_t<QuickSteps::has_small_steps, BelowTwo, BelowLimit<Code>>;

    // Codes, a vector at a time, to `put`; right if all that was seen is below the limit.
    template <class Put>
    [[gnu::always_inline]] Remainders round(const std::uint8_t* in, const std::uint8_t* residues,
                                            Seen& seen, Put&& put) const {
        const TileInput<Type, CodeKind::absolute> input(in);
        return round_tile<Code, Mode>(input, vectors_, residues, fine(), check(input, seen), put);
    }
    [[gnu::always_inline]] bool are_right(const Seen& seen) const {
        if constexpr (QuickSteps::has_small_steps)
            return seen.all();
        else
            return seen.all(limit_);
    }

  private:
    using Limits = SpecialCode<Code>;
    using Unsigned = typename Limits::Unsigned;
    using Bits = typename CodeVectors<Code>::Bits;
    using Real = typename CodeVectors<Code>::Real;

    static typename Limits::Real limit(const QuantizePlan& plan) {
        using Result = typename Limits::Real;
        const auto special = bits_as<Result>(static_cast<Unsigned>(plan.special_bits));
        const double quick = QuickSteps::limit(plan);
        return quick < static_cast<double>(special) ? static_cast<Result>(quick) : special;
    }

    [[gnu::always_inline]] auto fine() const {
        return [this](F64 x) __attribute__((always_inline)) {
            return steps_.fine(x, vectors_);
        };
    }
    [[gnu::always_inline]] auto check(const TileInput<Type, CodeKind::absolute>& input,
                                      Seen& seen) const {
        return [&, this ](std::size_t i, F64 x0, F64 x1) __attribute__((always_inline)) {
            if constexpr (QuickSteps::has_small_steps) {
                seen.add(steps_.product(x0, vectors_), steps_.product(x1, vectors_));
            } else if constexpr (sizeof(Code) == 4) {
                seen.add(input.floats_at(i), limit_, not_sign_);
            } else {
                seen.add(x0, limit_, not_sign_);
                seen.add(x1, limit_, not_sign_);
            }
            (void)i, (void)x0, (void)x1;
        };
    }

    const QuantizePlan& plan_;
    const VectorPlan vectors_;
    const QuickSteps steps_;
    const Real limit_;
    const Bits not_sign_ = opaque(splat(static_cast<Unsigned>(~Limits::sign_bit)));
};

// Relative bounds, by estimate.
template <Rounding TileMode, ScalarType TileType, int Terms, class EstimateRounding,
          class FineSteps>
class EstimatedTiles {
  public:
    static constexpr Rounding Mode = TileMode;
    static constexpr ScalarType Type = TileType;
    using Code = std::int64_t;
    using Exact = ExactTiles<CodeKind::relative, Mode, Type, Code, FineSteps>;

    static bool suits(const QuantizePlan& plan) {
        return EstimateRounding::suits(plan, log2_doubt<Terms>(plan));
    }

    [[gnu::always_inline]] explicit EstimatedTiles(const QuantizePlan& plan)
        : plan_(plan), vectors_(plan), estimate_(plan), rounding_(plan, log2_doubt<Terms>(plan)) {}

    [[gnu::always_inline]] std::size_t encode(const std::uint8_t* in, const TileOutput& out) const {
        typename LogEstimate<Terms>::Range range;
        typename EstimateRounding::Seen seen;
        encode_rounded<Code, Mode>(
            TileInput<Type, CodeKind::relative>(in), vectors_, out,
            [&](F64 x) __attribute__((always_inline)) {
                return rounding_.round(estimate_.step(x, vectors_, range), vectors_, seen);
            },
            [](std::size_t, F64, F64) {});
        if (lane_bits(~estimate_.ordinary(range)) != 0) [[unlikely]]
            return tiles_beyond_limit;
        return rounding_.certain(seen) ? 0 : 1;
    }

  private:
    const QuantizePlan& plan_;
    const VectorPlan vectors_;
    const LogEstimate<Terms> estimate_;
    const EstimateRounding rounding_;
};

// --- steps of scalars of up to 4 bytes ---------------------------------------------------------

template <Rounding TileMode, ScalarType TileType>
class StepTiles {
  public:
    static constexpr Rounding Mode = TileMode;
    static constexpr ScalarType Type = TileType;
    using Code = std::int32_t;

    // A step of 2^33 and more takes every image to 0 or -1, as 2^33 does.
    [[gnu::always_inline]] explicit StepTiles(const QuantizePlan& plan)
        : plan_(plan), vectors_(plan) {
        const double step = static_cast<double>(plan.step);
        const double inverse = 1.0 / (step < 0x1p+33 ? step : 0x1p+33);
        inverse_ = splat(inverse);
        offset_ = splat(0.5 * inverse - 0.5);
    }

    [[gnu::always_inline]] void encode(const std::uint8_t* in, const TileOutput& out) const {
        const TileInput<Type, CodeKind::steps> images(in);
        encode_rounded<Code, Mode>(
            images, vectors_, out,
            [&](F64 image) __attribute__((always_inline)) {
                return VectorStep{multiply_add(image, inverse_, offset_) + vectors_.magic};
            },
            [](std::size_t, F64, F64) {});
        if constexpr (is_float(Type))
            mark_infinite(images.buffer, out);
    }

  private:
    using Limits = SpecialCode<Code>;
    static constexpr std::int32_t infinity = [] {
        if constexpr (is_float(Type))
            return static_cast<std::int32_t>(Image<Type>::infinity);
        return 0;
    }();

    [[gnu::always_inline]] static void mark_infinite(const std::int32_t* images,
                                                     const TileOutput& out) {
        std::int32_t any = 0;
        for (std::size_t i = 0; i < tile; ++i) {
            any |= (images[i] >= infinity || images[i] <= -infinity) ? 1 : 0;
        }
        if (any == 0) [[likely]]
            return;
        for (std::size_t i = 0; i < tile; ++i) {
            if (images[i] < infinity && images[i] > -infinity)
                continue;
            const std::int32_t code = images[i] == infinity    ? -(Limits::lowest + 1)
                                      : images[i] == -infinity ? -(Limits::lowest + 2)
                                                               : Limits::lowest;
            store<std::int32_t>(out.codes, i, code);
            mark_special<Mode>(out, i, 1);
        }
    }

    const QuantizePlan& plan_;
    const VectorPlan vectors_;
    F64 inverse_;
    F64 offset_;
};

// --- blocks ------------------------------------------------------------------------------------

CIWRAP_VECTOR_FUNCTION TileOutput advanced(const TileOutput& out, std::size_t scalars,
                                           std::size_t code_bytes) {
    const auto from = [&](std::uint8_t* bytes) {
        return bytes == nullptr ? nullptr : bytes + scalars;
    };
    return {out.codes + scalars * code_bytes, from(out.residues), from(out.deltas)};
}

// Lines that the tile `prefetch_distance` behind this one will need. Addresses behind the end of
// the data do no harm.
template <std::size_t TileBytes>
CIWRAP_VECTOR_FUNCTION void prefetch_tile(const std::uint8_t* in) {
    const auto ahead = reinterpret_cast<std::uintptr_t>(in) + prefetch_distance;
    for (std::size_t line = 0; line < TileBytes; line += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(ahead + line), 0, 2);
}

// `count` is a whole number of tiles.
template <class Exact>
[[gnu::noinline]] static void encode_exactly(const QuantizePlan& plan, const std::uint8_t* in,
                                             std::size_t count, const TileOutput& out) {
    constexpr std::size_t bytes = sizeof(typename Image<Exact::Type>::Bits);
    const Exact tiles(plan);
    for (std::size_t i = 0; i < count; i += tile) {
        prefetch_tile<tile * bytes>(in + i * bytes);
        tiles.encode(in + i * bytes, advanced(out, i, sizeof(typename Exact::Code)));
    }
}

// Less than a tile: as a tile of its own, filled up with zeros.
template <class Exact>
[[gnu::noinline]] static void encode_rest(const QuantizePlan& plan, const std::uint8_t* in,
                                          std::size_t count, const TileOutput& out) {
    constexpr std::size_t bytes = sizeof(typename Image<Exact::Type>::Bits);
    constexpr std::size_t code_bytes = sizeof(typename Exact::Code);
    std::uint8_t scalars[tile * bytes] = {};
    std::uint8_t codes[tile * code_bytes];
    std::uint8_t residues[tile] = {};
    std::uint8_t deltas[tile];
    __builtin_memcpy(scalars, in, count * bytes);
    if (Exact::Mode == Rounding::against)
        __builtin_memcpy(residues, out.residues, count);
    encode_exactly<Exact>(plan, scalars, tile, {codes, residues, deltas});
    __builtin_memcpy(out.codes, codes, count * code_bytes);
    if (Exact::Mode == Rounding::golden)
        __builtin_memcpy(out.residues, residues, count);
    if (Exact::Mode == Rounding::against)
        __builtin_memcpy(out.deltas, deltas, count);
}

template <class Exact>
static void encode_exact_block(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                               std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas) {
    constexpr std::size_t bytes = sizeof(typename Image<Exact::Type>::Bits);
    const TileOutput out{codes, residues, deltas};
    const std::size_t whole = count - count % tile;
    encode_exactly<Exact>(plan, in, whole, out);
    if (whole == count)
        return;
    encode_rest<Exact>(plan, in + whole * bytes, count - whole,
                       advanced(out, whole, sizeof(typename Exact::Code)));
}

template <class Quick>
static void encode_quick_block(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                               std::uint8_t* codes, std::uint8_t* residues, std::uint8_t* deltas) {
    using Exact = typename Quick::Exact;
    constexpr std::size_t bytes = sizeof(typename Image<Quick::Type>::Bits);
    constexpr std::size_t code_bytes = sizeof(typename Quick::Code);
    const TileOutput out{codes, residues, deltas};
    const std::size_t whole = count - count % tile;
    const Quick tiles(plan);
    for (std::size_t i = 0; i < whole;) {
        const TileOutput here = advanced(out, i, code_bytes);
        prefetch_tile<tile * bytes>(in + i * bytes);
        const std::size_t again = tiles.encode(in + i * bytes, here) * tile;
        if (again == 0) [[likely]] {
            i += tile;
            continue;
        }
        const std::size_t n = again < whole - i ? again : whole - i;
        encode_exactly<Exact>(plan, in + i * bytes, n, here);
        i += n;
    }
    if (whole == count)
        return;
    encode_rest<Exact>(plan, in + whole * bytes, count - whole, advanced(out, whole, code_bytes));
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
