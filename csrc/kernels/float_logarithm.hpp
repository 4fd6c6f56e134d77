// Plain codes of float32 under relative bounds, with AVX-512: estimates as vector_logarithm.hpp has
// them, in lanes of 4 bytes instead of 8. The few scalars in doubt are rounded one by one.
#pragma once

#include <cmath>

#include "kernels/encode_vector.hpp"

#if defined(CIWRAP_HAVE_WIDE)

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

CIWRAP_VECTOR_FUNCTION F32 fused(F32 a, F32 b, F32 c) {
    return _mm512_fmadd_ps(a, b, c);
}

// Of a table of 16 numbers, the one that the lowest four bits of each lane name.
CIWRAP_VECTOR_FUNCTION F32 look_up(F32 table, U32 places) {
    return _mm512_maskz_permutexvar_ps(every16, (__m512i)places, table);
}
CIWRAP_VECTOR_FUNCTION U32 look_up(U32 table, U32 places) {
    return (U32)_mm512_maskz_permutexvar_epi32(every16, (__m512i)places, (__m512i)table);
}

// The product of the lower halves of all lanes, the upper ones being zero.
CIWRAP_VECTOR_FUNCTION U32 times_short(U32 a, U32 b) {
    return (U32)_mm512_maskz_madd_epi16(every16, (__m512i)a, (__m512i)b);
}

// Integers below 2^31 as floats.
CIWRAP_VECTOR_FUNCTION F32 to_float(U32 whole) {
    return _mm512_maskz_cvtepi32_ps(every16, (__m512i)whole);
}

// Signed 32-bit lanes as codes of 8 bytes.
CIWRAP_VECTOR_FUNCTION void store_codes(std::uint8_t* to, U32 codes) {
    const auto all = (__m512i)codes;
    const __m256i first = _mm512_maskz_extracti64x4_epi64(0xf, all, 0);
    const __m256i second = _mm512_maskz_extracti64x4_epi64(0xf, all, 1);
    store_vector(to, _mm512_maskz_cvtepi32_epi64(every8, first));
    store_vector(to + vector_bytes, _mm512_maskz_cvtepi32_epi64(every8, second));
}

// A bit for each lane in which a is b or more.
CIWRAP_VECTOR_FUNCTION std::uint32_t lanes_from(F32 a, F32 b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}

// The greatest float that is not above a positive x.
CIWRAP_FUNCTION float float_below(double x) {
    const auto nearest = static_cast<float>(x);
    return static_cast<double>(nearest) > x ? std::nextafter(nearest, 0.0F) : nearest;
}

// log2(y) * scale, y = 2^e m, 1 <= m < 2, is the sum of three parts: whole steps of e, of the
// exponent's offset and of log2(c), c being close to m; what those leave of a step; and scale *
// log2(1 + t) with t = m/c - 1, |t| <= 1/33, a polynomial (Chebyshev interpolation of
// log2(1 + t) / t). Only the latter two are floats, and below 2^10 in all, so that little of a step
// is rounded away.
//
// With u = 2^-24, in units of scale: the polynomial is within 2^-29.9, its rounded coefficients,
// its four roundings and that of t make less than 0.2 u, and adding the steps that are left 0.05 u.
// A y of one rounded sum adds u / ln 2, and so does the rounding of its slope, which is u at most.
// In steps: what e leaves is below 2^7 in all, and rounded twice, by less than 2^-17 and 2^-18.
inline constexpr double log2_terms_float[4] = {0x1.715475d002858p+0, -0x1.71547578dcea3p-1,
                                               0x1.ecb61d126b133p-2, -0x1.718e60d6ac4a6p-2};

class FloatLog {
  public:
    [[gnu::always_inline]] explicit FloatLog(const QuantizePlan& plan)
        : slope_(splat(plan.zero_is_special ? 1.0F : static_cast<float>(plan.offset_slope))),
          intercept_(splat(plan.zero_is_special ? 0.0F : 1.0F)) {
        const double whole_scale = std::floor(plan.scale + 0.5);
        whole_scale_ = splat(static_cast<std::uint32_t>(whole_scale));
        left_scale_ = splat(static_cast<float>(plan.scale - whole_scale));
        for (int j = 0; j < 4; ++j)
            coefficient_[j] = splat(static_cast<float>(log2_terms_float[j] * plan.scale));
        for (std::size_t i = 0; i < 16; ++i) {
            const auto inverse = static_cast<float>(inverse_mantissas[i]);
            const double steps =
                plan.scale * (plan.exponent_offset - std::log2(static_cast<double>(inverse))) -
                127.0 * plan.scale;
            const double whole = std::floor(steps + 0.5);
            inverses_[i] = inverse;
            left_[i] = static_cast<float>(steps - whole);
            // The bits of rounding_magic go with what rounds by it.
            whole_[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)) - magic_bits;
        }
    }

    // Steps, and where they may be wrong.
    struct Steps {
        U32 whole;
        F32 distance;  // from the estimate to `whole`
    };

    [[gnu::always_inline]] Steps of(F32 magnitude) const {
        const U32 bits = bits_of(fused(magnitude, slope_, intercept_));
        const U32 exponent = bits >> 23;
        const U32 sixteenth = bits >> 19;
        const F32 mantissa = real_of((bits & fraction_bits_) | bits_of(one_));
        const F32 t = fused(mantissa, look_up(inverses_, sixteenth), -one_);
        F32 sum = fused(coefficient_[3], t, coefficient_[2]);
        sum = fused(sum, t, coefficient_[1]);
        sum = fused(sum, t, coefficient_[0]);
        const F32 left =
            fused(to_float(exponent), left_scale_, fused(sum, t, look_up(left_, sixteenth)));
        const F32 marked = left + magic_;
        const U32 whole = times_short(exponent, whole_scale_) + look_up(whole_, sixteenth);
        return {whole + bits_of(marked), left - (marked - magic_)};
    }

    static double doubt(const QuantizePlan& plan) {
        double of_log = 0.5 * unit;
        if (!plan.zero_is_special) {
            const double slope = static_cast<double>(static_cast<float>(plan.offset_slope));
            of_log += 1.5 * (std::fabs(slope / plan.offset_slope - 1.0) + unit);
        }
        return plan.scale * of_log + 0x1p-16;
    }

    // So few scalars are in doubt that it pays. Half the bits of a lane hold the whole steps of a
    // scale, and no product leaves the range of floats.
    static bool suits(const QuantizePlan& plan) {
        const bool has_slope =
            plan.zero_is_special || (plan.offset_slope > 0x1p-100 && plan.offset_slope < 0x1p+100);
        return has_slope && plan.scale < 0x1p+14 && doubt(plan) < 0x1p-8;
    }

  private:
    static constexpr double unit = 0x1p-24;
    static constexpr float magic = 0x1.8p+23F;
    static constexpr std::uint32_t magic_bits = __builtin_bit_cast(std::uint32_t, magic);

    F32 slope_;
    F32 intercept_;
    U32 whole_scale_;
    F32 left_scale_;
    F32 coefficient_[4];
    F32 inverses_;
    F32 left_;
    U32 whole_;
    F32 magic_ = opaque(splat(magic));
    F32 one_ = opaque(splat(1.0F));
    U32 fraction_bits_ = opaque(splat((std::uint32_t{1} << 23) - 1));
};

template <class FineSteps>
class FloatEstimatedTiles {
  public:
    using Exact = ExactTiles<CodeKind::relative, Rounding::plain, ScalarType::float32, std::int64_t,
                             FineSteps>;

    static bool suits(const QuantizePlan& plan) { return FloatLog::suits(plan); }

    [[gnu::always_inline]] explicit FloatEstimatedTiles(const QuantizePlan& plan)
        : log_(plan),
          certain_(splat(float_below(0.5 - FloatLog::doubt(plan)))),
          lowest_(splat(lowest(plan))),
          ordinary_(splat(beyond(plan) - lowest(plan))) {}

    // Returns whether all scalars are ordinary: if not, the codes are of no use. A bit of
    // `doubtful` for each one whose code may be the next one.
    [[gnu::always_inline]] bool encode(const std::uint8_t* in, std::uint8_t* codes,
                                       std::uint64_t& doubtful) const {
        U32 most{};
        doubtful = 0;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < tile; i += lanes32) {
            const U32 bits = load_vector<U32>(in + sizeof(float) * i);
            const U32 magnitude = bits & not_sign_;
            most = larger(most, magnitude - lowest_);
            const FloatLog::Steps steps = log_.of(real_of(magnitude));
            const F32 distance = real_of(bits_of(steps.distance) & not_sign_);
            doubtful |= std::uint64_t{lanes_from(distance, certain_)} << i;
            const U32 sign = sign_mask(real_of(bits));
            store_codes(codes + sizeof(std::int64_t) * i, (steps.whole ^ sign) - sign);
        }
        // NaN and infinity have larger bits than all numbers.
        return lane_bits(reinterpret_cast<U32>(most >= ordinary_)) == 0;
    }

  private:
    // Magnitudes from the first of these bits on, and below the second, are rounded, their y being
    // a normal float.
    static std::uint32_t lowest(const QuantizePlan& plan) {
        return plan.zero_is_special ? bits_as<std::uint32_t>(0x1p-126F) : 0;
    }
    static std::uint32_t beyond(const QuantizePlan& plan) {
        const auto special_from = bits_as<double>(plan.special_bits);
        const double slope = plan.zero_is_special ? 1.0 : plan.offset_slope;
        const double finite = 0x1p+126 / (slope < 1.0 ? 1.0 : slope);
        return bits_as<std::uint32_t>(float_below(special_from < finite ? special_from : finite));
    }

    const FloatLog log_;
    const F32 certain_;
    const U32 lowest_;
    const U32 ordinary_;
    const U32 not_sign_ = opaque(splat(std::uint32_t{0x7fffffff}));
};

// Scalars in doubt, which are rounded a vector at a time.
template <class FineSteps>
class DoubtfulScalars {
  public:
    DoubtfulScalars(const QuantizePlan& plan, const std::uint8_t* in, std::uint8_t* codes)
        : plan_(plan), in_(in), codes_(codes) {}

    // Of the tile that begins with this scalar.
    [[gnu::always_inline]] void add(std::size_t first, std::uint64_t which) {
        for (; which != 0; which &= which - 1) {
            places_[count_++] = static_cast<std::uint32_t>(first) +
                                static_cast<std::uint32_t>(__builtin_ctzll(which));
        }
        if (count_ >= lanes64) [[unlikely]]
            round_all();
    }

    [[gnu::noinline]] void round_all() {
        const VectorPlan vectors(plan_);
        const FineSteps steps(plan_);
        for (std::size_t i = 0; i < count_; i += lanes64) {
            const std::size_t n = count_ - i < lanes64 ? count_ - i : lanes64;
            double x[lanes64] = {};
            std::int64_t codes[lanes64];
            for (std::size_t j = 0; j < n; ++j)
                x[j] = static_cast<double>(Loader<ScalarType::float32>::get(in_, places_[i + j]));
            const auto fine =
                steps.fine(load_vector<F64>(reinterpret_cast<std::uint8_t*>(x)), vectors);
            store_vector(reinterpret_cast<std::uint8_t*>(codes),
                         whole_code<std::int64_t>(fine, vectors));
            for (std::size_t j = 0; j < n; ++j)
                store(codes_, places_[i + j], codes[j]);
        }
        count_ = 0;
    }

  private:
    const QuantizePlan& plan_;
    const std::uint8_t* in_;
    std::uint8_t* codes_;
    std::size_t count_ = 0;
    std::uint32_t places_[lanes64 + tile];
};

template <class FineSteps>
static void encode_float_block(const QuantizePlan& plan, const std::uint8_t* in, std::size_t count,
                               std::uint8_t* codes, std::uint8_t*, std::uint8_t*) {
    using Exact = typename FloatEstimatedTiles<FineSteps>::Exact;
    const std::size_t whole = count - count % tile;
    const FloatEstimatedTiles<FineSteps> tiles(plan);
    DoubtfulScalars<FineSteps> doubtful(plan, in, codes);
    const auto output = [&](std::size_t i) {
        return TileOutput{codes + sizeof(std::int64_t) * i, nullptr, nullptr};
    };
    for (std::size_t i = 0; i < whole;) {
        const std::uint8_t* from = in + sizeof(float) * i;
        prefetch_tile<tile * sizeof(float)>(from);
        std::uint64_t which;
        if (tiles.encode(from, output(i).codes, which)) [[likely]] {
            if (which != 0)
                doubtful.add(i, which);
            i += tile;
            continue;
        }
        const std::size_t rest = whole - i;
        const std::size_t n = rest < tiles_beyond_limit * tile ? rest : tiles_beyond_limit * tile;
        encode_exactly<Exact>(plan, from, n, output(i));
        i += n;
    }
    doubtful.round_all();
    if (whole < count)
        encode_rest<Exact>(plan, in + sizeof(float) * whole, count - whole, output(whole));
}

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE

#endif
