#include "core/compare_block.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/exact_bound.hpp"
#include "kernels/scalar_codes.hpp"

namespace ciwrap {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What one pair of scalars comes to.
struct Pair {
    bool differs = false;
    bool finite = false;  // numbers on both sides, so that a difference has a meaning
    double difference = 0.0;
    double relative = 0.0;  // to a golden that is not 0
    bool has_relative = false;
    double share = 0.0;  // of the bound
};

template <class Bits>
Bits load_bits(const std::uint8_t* at, bool swap) {
    Bits bits;
    std::memcpy(&bits, at, sizeof bits);
    if (!swap)
        return bits;
    Bits swapped = 0;
    for (std::size_t i = 0; i < sizeof(Bits); ++i) {
        swapped = static_cast<Bits>(swapped << 8 | (bits >> (8 * i) & 0xff));
    }
    return swapped;
}

bool is_fill(const QuantizePlan& plan, std::uint64_t canonical_bits) {
    return std::find(plan.fill_bits, plan.fill_bits + plan.fill_count, canonical_bits) !=
           plan.fill_bits + plan.fill_count;
}

// A rounded quotient must not say otherwise than the exact verdict.
double fit_share(double share, bool differs) {
    return differs ? std::max(share, std::nextafter(1.0, 2.0)) : std::min(share, 1.0);
}

double share_of_steps(std::uint64_t steps, std::uint64_t bound, bool differs) {
    if (bound == 0)
        return infinity;
    return fit_share(static_cast<double>(steps) / static_cast<double>(bound), differs);
}

template <ScalarType Type>
struct FloatFormat;
template <>
struct FloatFormat<ScalarType::float16> {
    using Bits = std::uint16_t;
    static constexpr Bits infinity_bits = 0x7c00, nan_bits = 0x7e00;
    static double widen(Bits bits) { return level_kokkos::widen_float16(bits); }
};
template <>
struct FloatFormat<ScalarType::bfloat16> {
    using Bits = std::uint16_t;
    static constexpr Bits infinity_bits = 0x7f80, nan_bits = 0x7fc0;
    static double widen(Bits bits) { return level_kokkos::widen_bfloat16(bits); }
};
template <>
struct FloatFormat<ScalarType::float32> {
    using Bits = std::uint32_t;
    static constexpr Bits infinity_bits = 0x7f800000, nan_bits = 0x7fc00000;
    static double widen(Bits bits) { return std::bit_cast<float>(bits); }
};
template <>
struct FloatFormat<ScalarType::float64> {
    using Bits = std::uint64_t;
    static constexpr Bits infinity_bits = 0x7ff0000000000000, nan_bits = 0x7ff8000000000000;
    static double widen(Bits bits) { return std::bit_cast<double>(bits); }
};

template <ScalarType Type>
struct FloatPair {
    using Format = FloatFormat<Type>;
    using Bits = typename Format::Bits;
    static constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));

    static Bits magnitude(Bits bits) { return static_cast<Bits>(bits & static_cast<Bits>(~sign)); }
    static Bits canonical(Bits bits) {
        if (magnitude(bits) == 0)
            return 0;
        return magnitude(bits) > Format::infinity_bits ? Format::nan_bits : bits;
    }
    static std::int64_t image(Bits bits) {
        const auto steps = static_cast<std::int64_t>(magnitude(bits));
        return (bits & sign) != 0 ? -steps : steps;
    }

    static Pair compare(const TreeParameters& parameters, const QuantizePlan& plan, Bits golden,
                        Bits value, Comparison& counts) {
        golden = canonical(golden);
        value = canonical(value);
        Pair pair;
        if (plan.fill_count > 0) {
            const bool missing = is_fill(plan, golden);
            if (missing != is_fill(plan, value)) {
                ++counts.missing_mismatch_count;
                pair.differs = true;
                return pair;
            }
            if (missing)
                return pair;
        }
        const bool golden_nan = golden == Format::nan_bits;
        const bool value_nan = value == Format::nan_bits;
        if (golden_nan || value_nan) {
            pair.differs = !(golden_nan && value_nan && plan.equal_nan);
            if (pair.differs)
                ++counts.nan_mismatch_count;
            return pair;
        }
        const bool infinite =
            magnitude(golden) == Format::infinity_bits || magnitude(value) == Format::infinity_bits;
        if (infinite) {
            pair.differs = golden != value;
            if (pair.differs)
                ++counts.inf_mismatch_count;
            return pair;
        }
        const double g = Format::widen(golden);
        const double v = Format::widen(value);
        pair.finite = true;
        pair.has_relative = g != 0.0;
        if (golden == value)
            return pair;
        pair.difference = std::fabs(v - g);
        if (pair.has_relative)
            pair.relative = relative_difference(g, v);
        if (parameters.ulps() > 0) {
            const std::int64_t a = image(golden);
            const std::int64_t b = image(value);
            const std::uint64_t steps =
                a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
                      : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
            pair.differs = steps > parameters.ulps();
            pair.share = share_of_steps(steps, parameters.ulps(), pair.differs);
        } else {
            pair.differs = !within_bound(g, v, parameters.atol(), parameters.rtol());
            pair.share = share_of_bound(g, v, parameters.atol(), parameters.rtol());
            pair.share = fit_share(pair.share, pair.differs);
        }
        return pair;
    }
};

template <class Integer>
Pair compare_integers(const TreeParameters& parameters, const QuantizePlan& plan, Integer golden,
                      Integer value, Comparison& counts) {
    using Unsigned = std::make_unsigned_t<Integer>;
    Pair pair;
    if (plan.fill_count > 0) {
        const bool missing = is_fill(plan, static_cast<Unsigned>(golden));
        if (missing != is_fill(plan, static_cast<Unsigned>(value))) {
            ++counts.missing_mismatch_count;
            pair.differs = true;
            return pair;
        }
        if (missing)
            return pair;
    }
    const auto wide = [](Integer x) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    };
    std::uint64_t steps = 0;
    if constexpr (std::is_signed_v<Integer>) {
        steps = golden > value ? wide(golden) - wide(value) : wide(value) - wide(golden);
    } else {
        steps = golden > value ? std::uint64_t{golden} - value : std::uint64_t{value} - golden;
    }
    pair.finite = true;
    pair.difference = static_cast<double>(steps);
    pair.has_relative = golden != 0;
    if (pair.has_relative)
        pair.relative = pair.difference / std::fabs(static_cast<double>(golden));
    // Unlike the codes (which cap the steps at 2^62), the verdict on an element knows no cap.
    const std::uint64_t bound = parameters.allowed_steps();
    pair.differs = steps > bound;
    pair.share = steps == 0 ? 0.0 : share_of_steps(steps, bound, pair.differs);
    return pair;
}

// Gathers the scalars of one element (complex: two) and writes the element down.
class ElementTally {
  public:
    ElementTally(const QuantizePlan& plan, const DataType& type, Comparison& result,
                 std::size_t max_indices)
        : result_(result),
          max_indices_(max_indices),
          marker_(plan, type, result.differing_leaves) {}

    void add(const Pair& pair) {
        differs_ = differs_ || pair.differs;
        if (!pair.finite) {
            if (pair.differs)
                share_ = infinity;
            return;
        }
        ++result_.finite_count;
        result_.sum_abs_difference += pair.difference;
        difference_ = std::max(difference_, pair.difference);
        any_finite_ = true;
        share_ = std::max(share_, pair.share);
        if (pair.has_relative) {
            ++result_.nonzero_count;
            result_.sum_rel_difference += pair.relative;
            relative_ = std::max(relative_, pair.relative);
            any_nonzero_ = true;
        }
    }

    void end(std::int64_t index) {
        ++result_.element_count;
        ++result_.histogram[share_bin(share_)];
        result_.max_bound_share = std::max(result_.max_bound_share, share_);
        if (differs_) {
            ++result_.differing_count;
            marker_.mark(static_cast<std::uint64_t>(index));
            if (result_.first_index < 0)
                result_.first_index = index;
            if (result_.indices.size() < max_indices_)
                result_.indices.push_back(index);
        }
        if (any_finite_ &&
            (result_.max_abs_index < 0 || difference_ > result_.max_abs_difference)) {
            result_.max_abs_difference = difference_;
            result_.max_abs_index = index;
        }
        if (any_nonzero_ && (result_.max_rel_index < 0 || relative_ > result_.max_rel_difference)) {
            result_.max_rel_difference = relative_;
            result_.max_rel_index = index;
        }
        difference_ = relative_ = share_ = 0.0;
        differs_ = any_finite_ = any_nonzero_ = false;
    }

  private:
    Comparison& result_;
    std::size_t max_indices_;
    LeafMarker marker_;
    double difference_ = 0.0;
    double relative_ = 0.0;
    double share_ = 0.0;
    bool differs_ = false;
    bool any_finite_ = false;
    bool any_nonzero_ = false;
};

template <class Bits, class Compare>
void compare_scalars(const QuantizePlan& plan, const DataType& type, const CompareInput& input,
                     std::size_t max_indices, Comparison& result, Compare&& compare) {
    ElementTally tally(plan, type, result, max_indices);
    for (std::uint64_t element = 0; element < input.element_count; ++element) {
        for (std::uint32_t part = 0; part < type.scalars_per_element; ++part) {
            const std::uint64_t at = (element * type.scalars_per_element + part) * sizeof(Bits);
            tally.add(compare(load_bits<Bits>(input.golden + at, type.big_endian),
                              load_bits<Bits>(input.value + at, type.big_endian)));
        }
        tally.end(static_cast<std::int64_t>(input.first_element + element));
    }
}

template <ScalarType Type>
void compare_floats(const TreeParameters& parameters, const QuantizePlan& plan,
                    const DataType& type, const CompareInput& input, std::size_t max_indices,
                    Comparison& result) {
    using Bits = typename FloatFormat<Type>::Bits;
    compare_scalars<Bits>(plan, type, input, max_indices, result, [&](Bits golden, Bits value) {
        return FloatPair<Type>::compare(parameters, plan, golden, value, result);
    });
}

template <class Integer>
void compare_integer_block(const TreeParameters& parameters, const QuantizePlan& plan,
                           const DataType& type, const CompareInput& input, std::size_t max_indices,
                           Comparison& result) {
    using Bits = std::make_unsigned_t<Integer>;
    compare_scalars<Bits>(plan, type, input, max_indices, result, [&](Bits golden, Bits value) {
        return compare_integers(parameters, plan, std::bit_cast<Integer>(golden),
                                std::bit_cast<Integer>(value), result);
    });
}

void compare_booleans(const TreeParameters&, const QuantizePlan& plan, const DataType& type,
                      const CompareInput& input, std::size_t max_indices, Comparison& result) {
    compare_scalars<std::uint8_t>(plan, type, input, max_indices, result,
                                  [](std::uint8_t golden, std::uint8_t value) {
                                      Pair pair;
                                      pair.finite = true;
                                      pair.has_relative = golden != 0;
                                      pair.differs = (golden != 0) != (value != 0);
                                      pair.difference = pair.differs ? 1.0 : 0.0;
                                      pair.relative = pair.has_relative ? pair.difference : 0.0;
                                      pair.share = pair.differs ? infinity : 0.0;
                                      return pair;
                                  });
}

// Bytes and unicode have no difference, only equality.
void compare_raw(const TreeParameters&, const QuantizePlan& plan, const DataType& type,
                 const CompareInput& input, std::size_t max_indices, Comparison& result) {
    ElementTally tally(plan, type, result, max_indices);
    for (std::uint64_t element = 0; element < input.element_count; ++element) {
        const std::uint64_t at = element * type.scalar_bytes;
        Pair pair;
        pair.differs = std::memcmp(input.golden + at, input.value + at, type.scalar_bytes) != 0;
        tally.add(pair);
        tally.end(static_cast<std::int64_t>(input.first_element + element));
    }
}

}  // namespace

CompareFunction choose_compare(const QuantizePlan& plan) {
    switch (plan.scalar) {
        case ScalarType::float16:
            return compare_floats<ScalarType::float16>;
        case ScalarType::bfloat16:
            return compare_floats<ScalarType::bfloat16>;
        case ScalarType::float32:
            return compare_floats<ScalarType::float32>;
        case ScalarType::float64:
            return compare_floats<ScalarType::float64>;
        case ScalarType::int8:
            return compare_integer_block<std::int8_t>;
        case ScalarType::int16:
            return compare_integer_block<std::int16_t>;
        case ScalarType::int32:
            return compare_integer_block<std::int32_t>;
        case ScalarType::int64:
            return compare_integer_block<std::int64_t>;
        case ScalarType::uint8:
            return compare_integer_block<std::uint8_t>;
        case ScalarType::uint16:
            return compare_integer_block<std::uint16_t>;
        case ScalarType::uint32:
            return compare_integer_block<std::uint32_t>;
        case ScalarType::uint64:
            return compare_integer_block<std::uint64_t>;
        case ScalarType::boolean:
            return compare_booleans;
        case ScalarType::raw:
            break;
    }
    return compare_raw;
}

}  // namespace ciwrap
