#include "ciwrap/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::invalid_argument, what);
}

struct KindAndSize {
    char kind;
    std::uint32_t bytes;
    ScalarType scalar;
};

constexpr KindAndSize known_types[] = {
    {'f', 2, ScalarType::float16}, {'f', 4, ScalarType::float32}, {'f', 8, ScalarType::float64},
    {'i', 1, ScalarType::int8},    {'i', 2, ScalarType::int16},   {'i', 4, ScalarType::int32},
    {'i', 8, ScalarType::int64},   {'u', 1, ScalarType::uint8},   {'u', 2, ScalarType::uint16},
    {'u', 4, ScalarType::uint32},  {'u', 8, ScalarType::uint64},  {'b', 1, ScalarType::boolean},
};

std::uint32_t parse_size(const std::string& dtype, std::size_t from) {
    const std::string digits = dtype.substr(from);
    const bool plain =
        !digits.empty() && digits.size() <= 8 && digits.front() != '0' &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!plain)
        refuse("dtype '" + dtype + "' has no valid size");
    return static_cast<std::uint32_t>(std::stoul(digits));
}

void check_fill_values(const StatedParameters& stated, const DataType& type) {
    const std::vector<std::uint64_t>& fills = stated.fill_bits;
    if (fills.size() > max_fill_values)
        refuse("more than 16 fill values");
    if (!fills.empty() && !is_float(type.scalar) && !is_integer(type.scalar)) {
        refuse("fill values need a numeric dtype, not '" + stated.dtype + "'");
    }
    for (auto value = fills.begin(); value != fills.end(); ++value) {
        if (std::find(fills.begin(), value, *value) != value)
            refuse("a fill value is listed twice");
        if (type.scalar_bytes < 8 && (*value >> (8 * type.scalar_bytes)) != 0) {
            refuse("a fill value does not fit dtype '" + stated.dtype + "'");
        }
    }
}

void check(const StatedParameters& stated, const DataType& type) {
    const bool bounds_valid = std::isfinite(stated.atol) && std::isfinite(stated.rtol) &&
                              stated.atol >= 0.0 && stated.rtol >= 0.0;
    if (!bounds_valid)
        refuse("an error bound must be finite and not negative");
    if (stated.ulps > 0 && (stated.atol > 0.0 || stated.rtol > 0.0))
        refuse("a ULP bound excludes atol and rtol");
    const std::uint32_t levels = stated.residue_levels;
    if (levels != 1 && (levels < 3 || levels > 255 || levels % 2 == 0))
        refuse("residue_levels must be 1 or odd from 3 to 255, not " + std::to_string(levels));
    if (stated.chunk_bytes < min_chunk_bytes || stated.chunk_bytes > max_chunk_bytes) {
        refuse("chunk_bytes must be from 64 to 16777216, not " +
               std::to_string(stated.chunk_bytes));
    }
    if (stated.arity < 2 || stated.arity > 256)
        refuse("arity must be from 2 to 256, not " + std::to_string(stated.arity));
    check_fill_values(stated, type);
}

// What the type does not know is dropped, which is stricter.
void reduce_bound(StatedParameters& stated, const DataType& type) {
    const bool has_atol = is_float(type.scalar) || is_integer(type.scalar);
    // One zero: -0.0 as a bound must not make another file.
    if (!has_atol || stated.atol == 0.0)
        stated.atol = 0.0;
    if (!is_float(type.scalar) || stated.rtol == 0.0)
        stated.rtol = 0.0;
    if (!is_float(type.scalar))
        stated.ulps = 0;
}

}  // namespace

DataType DataType::parse(const std::string& dtype) {
    if (dtype.size() < 3 || std::string("<>|").find(dtype.front()) == std::string::npos) {
        refuse("dtype '" + dtype + "' is not of the form '<f4'");
    }
    DataType type;
    type.big_endian = dtype.front() == '>';
    const bool has_order = dtype.front() != '|';
    if (dtype.substr(1) == "bf2" && has_order) {
        type.scalar = ScalarType::bfloat16;
        type.scalar_bytes = type.swap_unit = 2;
        return type;
    }
    const char kind = dtype[1];
    const std::uint32_t bytes = parse_size(dtype, 2);
    if (kind == 'S' || kind == 'U') {
        const std::uint32_t unit = kind == 'U' ? 4 : 1;
        if (bytes > max_chunk_bytes / unit)
            refuse("dtype '" + dtype + "' is longer than 16 MiB");
        if (has_order != (kind == 'U'))
            refuse("dtype '" + dtype + "' has a wrong byte order mark");
        type.scalar = ScalarType::raw;
        type.scalar_bytes = bytes * unit;
        type.swap_unit = unit;
        return type;
    }
    const bool complex = kind == 'c' && (bytes == 8 || bytes == 16);
    for (const KindAndSize& known : known_types) {
        const bool same = complex ? known.kind == 'f' && known.bytes * 2 == bytes
                                  : known.kind == kind && known.bytes == bytes;
        if (!same)
            continue;
        if (has_order == (bytes == 1))
            refuse("dtype '" + dtype + "' has a wrong byte order mark");
        type.scalar = known.scalar;
        type.scalar_bytes = type.swap_unit = known.bytes;
        type.scalars_per_element = complex ? 2 : 1;
        return type;
    }
    refuse("dtype '" + dtype +
           "' is not supported (floats of 2, 4, 8 bytes, '<bf2', complex of 8 or 16 bytes, "
           "integers, bool, "
           "fixed-width bytes and unicode are)");
}

TreeParameters::TreeParameters(StatedParameters stated)
    : values_(std::move(stated)), type_(DataType::parse(values_.dtype)) {
    check(values_, type_);
    reduce_bound(values_, type_);
}

std::uint64_t TreeParameters::allowed_steps() const {
    if (!is_integer(type_.scalar))
        return values_.ulps;
    const double whole = std::floor(values_.atol);
    return whole < 0x1p+64 ? static_cast<std::uint64_t>(whole)
                           : std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t TreeParameters::chunk_scalars() const {
    const std::uint64_t scalars =
        std::max<std::uint64_t>(1, values_.chunk_bytes / type_.scalar_bytes);
    return type_.scalars_per_element == 2 && scalars > 1 ? scalars & ~std::uint64_t{1} : scalars;
}

std::uint64_t TreeParameters::leaf_count(std::uint64_t scalar_count) const {
    return scalar_count == 0 ? 1 : (scalar_count - 1) / chunk_scalars() + 1;
}

}  // namespace ciwrap
