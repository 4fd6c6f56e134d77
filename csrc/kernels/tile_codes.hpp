// A tile of scalars, as vectors: read, told whether special, rounded, and written as codes,
// residues and deltas. What rounds them is the caller's.
#pragma once

#include "kernels/encode_block.hpp"
#include "kernels/vector_codes.hpp"

#if defined(CIWRAP_HAVE_SIMD)

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

template <ScalarType Type, bool IsImage>
struct StoredScalar {
    using Value = std::int32_t;
};
template <ScalarType Type>
struct StoredScalar<Type, false> {
    using Value = typename Loader<Type>::Value;
};

// A tile as floats or integers the vector units take: in place where it is stored as such, else
// widened into `buffer`.
template <ScalarType Type, CodeKind Kind>
struct TileInput {
    static constexpr bool is_image = Kind == CodeKind::steps;
    static constexpr bool in_place =
        !is_image && (Type == ScalarType::float32 || Type == ScalarType::float64);
    using Stored = typename StoredScalar<Type, is_image>::Value;

    [[gnu::always_inline]] explicit TileInput(const std::uint8_t* in) : from(in) {
        if constexpr (!in_place) {
            for (std::size_t i = 0; i < tile; ++i) {
                if constexpr (is_image) {
                    buffer[i] = static_cast<Stored>(Image<Type>::get(in, i));
                } else {
                    buffer[i] = Loader<Type>::get(in, i);
                }
            }
        }
    }

    [[gnu::always_inline]] F64 at(std::size_t i) const {
        const std::uint8_t* scalar = begin() + i * sizeof(Stored);
        if constexpr (is_image) {
            return widen_integers(scalar);
        } else if constexpr (sizeof(Stored) == 8) {
            return load_vector<F64>(scalar);
        } else {
            return widen_floats(scalar);
        }
    }

    // From the i-th scalar on, if they are floats of up to 4 bytes.
    [[gnu::always_inline]] F32 floats_at(std::size_t i) const {
        static_assert(sizeof(Stored) == 4 && !is_image);
        return load_vector<F32>(begin() + i * sizeof(Stored));
    }

    [[gnu::always_inline]] const std::uint8_t* begin() const {
        if constexpr (in_place) {
            return from;
        } else {
            return reinterpret_cast<const std::uint8_t*>(buffer);
        }
    }

    const std::uint8_t* from;
    alignas(vector_bytes) Stored buffer[in_place ? 1 : tile];
};

template <class Code>
struct CodeVectors;
template <>
struct CodeVectors<std::int32_t> {
    using Bits = U32;
    using Real = F32;
};
template <>
struct CodeVectors<std::int64_t> {
    using Bits = U64;
    using Real = F64;
};

// Which scalars are special under an absolute or relative bound, and what their codes are.
template <CodeKind Kind, class Code>
struct SpecialScalars {
    using Limits = SpecialCode<Code>;
    using Unsigned = typename Limits::Unsigned;
    using Bits = typename CodeVectors<Code>::Bits;
    using Real = typename CodeVectors<Code>::Real;

    [[gnu::always_inline]] explicit SpecialScalars(const QuantizePlan& plan)
        : from(real_of(splat(static_cast<Unsigned>(plan.special_bits)))),
          shift(splat(static_cast<Unsigned>(plan.special_shift))),
          zero_is_special(Kind == CodeKind::relative && plan.zero_is_special) {}

    // All ones where x is not special. NaN is less than nothing.
    [[gnu::always_inline]] Bits rounded(Real x) const {
        const Bits below = reinterpret_cast<Bits>(real_of(bits_of(x) & not_sign) < from);
        if (!zero_is_special)
            return below;
        return below & reinterpret_cast<Bits>(x != Real{});
    }

    [[gnu::always_inline]] Bits code(Real x) const {
        const Bits sign = sign_mask(x);
        const Bits beyond = shift + (bits_of(x) & not_sign);
        constexpr auto lowest = static_cast<Unsigned>(Limits::lowest);
        const Bits code =
            select(reinterpret_cast<Bits>(x == x), (beyond ^ sign) - sign, splat(lowest));
        if (!zero_is_special)
            return code;
        return select(reinterpret_cast<Bits>(x == Real{}), splat(lowest + 2), code);
    }

    Real from;
    Bits shift;
    Bits not_sign = opaque(splat(static_cast<Unsigned>(~Limits::sign_bit)));
    bool zero_is_special;
};

// Whether all scalars that were added are below a limit; NaN is not.
template <class Code>
class BelowLimit {
    using Bits = typename CodeVectors<Code>::Bits;
    using Real = typename CodeVectors<Code>::Real;

  public:
    [[gnu::always_inline]] void add(Real x, Real limit, Bits not_sign) {
#if defined(CIWRAP_HAVE_WIDE)
        // Magnitudes are in the order of their bits, NaN beyond all others.
        (void)limit;
        seen_ = larger(seen_, bits_of(x) & not_sign);
#else
        seen_ |= ~reinterpret_cast<Bits>(real_of(bits_of(x) & not_sign) < limit);
#endif
    }

    [[gnu::always_inline]] bool all(Real limit) const {
#if defined(CIWRAP_HAVE_WIDE)
        return lane_bits(reinterpret_cast<Bits>(seen_ >= bits_of(limit))) == 0;
#else
        (void)limit;
        return lane_bits(seen_) == 0;
#endif
    }

  private:
    Bits seen_{};
};

// Whether all that was added is below 2: none has the highest bit of the exponent set.
class BelowTwo {
  public:
    [[gnu::always_inline]] void add(F64 x0, F64 x1) {
#if defined(CIWRAP_HAVE_WIDE)
        constexpr int any = 0xfe;
        seen_ = (U64)_mm512_ternarylogic_epi64((__m512i)seen_, (__m512i)x0, (__m512i)x1, any);
#else
        seen_ |= bits_of(x0) | bits_of(x1);
#endif
    }
    [[gnu::always_inline]] bool all() const {
        return lane_bits(seen_ << 1) == 0;
    }

  private:
    U64 seen_{};
};

// --- one tile ----------------------------------------------------------------------------------

// Residues are read (against) or written (golden), deltas written (against), both a byte a scalar.
struct TileOutput {
    std::uint8_t* codes;
    std::uint8_t* residues;
    std::uint8_t* deltas;
};

// The residue of a special scalar, or its delta: no drift is known of it.
template <Rounding Mode>
CIWRAP_VECTOR_FUNCTION void mark_special(const TileOutput& out, std::size_t first,
                                         std::uint32_t lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const std::size_t i = first + static_cast<std::size_t>(__builtin_ctz(lanes));
        if constexpr (Mode == Rounding::golden)
            out.residues[i] = 0;
        if constexpr (Mode == Rounding::against)
            out.deltas[i] = 255;
    }
}

// What is taken from fine steps before they are divided by the number of levels k, plus
// rounding_magic: h = (k - 1) / 2, or golden residues s. Then the nearest multiple of k is the one
// below f, or the one that leaves the least |delta| = |f - s - k code|: k is odd, so what is left
// over is at least 1/(2k) away from where rounding could go wrong.
template <Rounding Mode, class Step>
CIWRAP_VECTOR_FUNCTION F64 centre(const Step&, const std::uint8_t* residues,
                                  const VectorPlan& plan) {
    if constexpr (Mode == Rounding::against)
        return real_of(load_bytes(residues) | plan.magic_bits);
    return plan.half;
}
template <Rounding Mode>
CIWRAP_VECTOR_FUNCTION F64 centre(const SmallStep&, const std::uint8_t* residues,
                                  const VectorPlan& plan) {
    if constexpr (Mode == Rounding::against)
        return real_of(load_bytes(residues) | bits_of(plan.small_magic));
    return plan.small_half;
}

// |remainder - s| of a tile, of which `deltas` has the remainders' lowest bytes: no difference is
// greater than 127.
CIWRAP_VECTOR_FUNCTION void take_magnitudes(std::uint8_t* deltas, const std::uint8_t* residues) {
    for (std::size_t i = 0; i < tile; i += vector_bytes) {
        const U8 delta = load_vector<U8>(deltas + i) - load_vector<U8>(residues + i);
        store_vector(deltas + i, smaller(delta, U8{} - delta));
    }
}

// Whether the steps of a loop over a tile are laid out one after the other.
enum class Loop { laid_out, compact };

// Takes the codes of a tile, a vector at a time, from the i-th on.
template <class Code>
struct StoreCodes {
    std::uint8_t* to;

    [[gnu::always_inline]] void operator()(std::size_t i,
                                           typename CodeVectors<Code>::Bits codes) const {
        store_vector(to + sizeof(Code) * i, codes);
    }
};

// What is left over of a tile's fine steps once cells are taken from them: of mixed_low_halves, the
// lowest 16 bits of each lane.
struct Remainders {
    U32 mixed[tile / lanes32];
};

// Codes of a tile from fine(x)'s fine steps, as if no scalar were special. `check(i, x0, x1)` sees
// all scalars, 2 * lanes64 from the i-th on at a time. `residues` are read (against) if there are
// any.
template <class Code, Rounding Mode, Loop Steps = Loop::laid_out, class Input, class FineSteps,
          class Check, class Put>
[[gnu::always_inline]] static inline Remainders round_tile(const Input& input,
                                                           const VectorPlan& plan,
                                                           const std::uint8_t* residues,
                                                           FineSteps&& fine, Check&& check,
                                                           Put&& put) {
    Remainders remainders;
    const auto encode_step = [&](std::size_t j) __attribute__((always_inline)) {
        const std::size_t i = j * lanes32;
        const F64 x[2] = {input.at(i), input.at(i + lanes64)};
        check(i, x[0], x[1]);
        U64 code[2];
        U64 low[2];
#pragma GCC unroll 2
        for (std::size_t v = 0; v < 2; ++v) {
            const auto step = fine(x[v]);
            if constexpr (Mode == Rounding::plain) {
                code[v] = whole_code<Code>(step, plan);
            } else {
                const std::size_t read = Mode == Rounding::against ? i + v * lanes64 : 0;
                const F64 taken = centre<Mode>(step, residues + read, plan);
                code[v] = cell_code<Code>(step, taken, plan);
                low[v] = low_bits(step, plan);
            }
        }
        if constexpr (sizeof(Code) == 4) {
            put(i, in_order(mixed_low_halves(code[0], code[1])));
        } else {
            put(i, code[0]);
            put(i + lanes64, code[1]);
        }
        if constexpr (Mode != Rounding::plain) {
            remainders.mixed[j] = mixed_low_halves(low[0], low[1]) -
                                  times_low(mixed_low_halves(code[0], code[1]), plan.levels);
        }
    };
    if constexpr (Steps == Loop::laid_out) {
#pragma GCC unroll tile_unroll
        for (std::size_t j = 0; j < tile / lanes32; ++j)
            encode_step(j);
    } else {
#pragma GCC unroll 1
        for (std::size_t j = 0; j < tile / lanes32; ++j)
            encode_step(j);
    }
    return remainders;
}

// The same, into memory.
template <class Code, Rounding Mode, Loop Steps = Loop::laid_out, class Input, class FineSteps,
          class Check>
[[gnu::always_inline]] static inline void encode_rounded(const Input& input, const VectorPlan& plan,
                                                         const TileOutput& out, FineSteps&& fine,
                                                         Check&& check) {
    const Remainders remainders = round_tile<Code, Mode, Steps>(input, plan, out.residues, fine,
                                                                check, StoreCodes<Code>{out.codes});
    if constexpr (Mode == Rounding::golden)
        store_bytes(out.residues, remainders.mixed);
    if constexpr (Mode == Rounding::against) {
        store_bytes(out.deltas, remainders.mixed);
        take_magnitudes(out.deltas, out.residues);
    }
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
