#include "base/tree_parameters.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

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

void TreeParameters::validate() const {
    const DataType type = data_type();
    const bool bounds_valid =
        std::isfinite(atol) && std::isfinite(rtol) && atol >= 0.0 && rtol >= 0.0;
    if (!bounds_valid)
        refuse("an error bound must be finite and not negative");
    if (ulps > 0 && (atol > 0.0 || rtol > 0.0))
        refuse("a ULP bound excludes atol and rtol");
    if (ulps > 0 && !is_float(type.scalar))
        refuse("a ULP bound needs a floating-point dtype, not '" + dtype + "'");
    const bool levels_valid =
        residue_levels == 1 ||
        (residue_levels >= 3 && residue_levels <= 255 && residue_levels % 2 == 1);
    if (!levels_valid) {
        refuse("residue_levels must be 1 or odd from 3 to 255, not " +
               std::to_string(residue_levels));
    }
    if (chunk_bytes < min_chunk_bytes || chunk_bytes > max_chunk_bytes) {
        refuse("chunk_bytes must be from 64 to 16777216, not " + std::to_string(chunk_bytes));
    }
    if (arity < 2 || arity > 256)
        refuse("arity must be from 2 to 256, not " + std::to_string(arity));
    if (fill_bits.size() > max_fill_values)
        refuse("more than 16 fill values");
    if (!fill_bits.empty() && !is_float(type.scalar) && !is_integer(type.scalar)) {
        refuse("fill values need a numeric dtype, not '" + dtype + "'");
    }
    for (auto value = fill_bits.begin(); value != fill_bits.end(); ++value) {
        if (std::find(fill_bits.begin(), value, *value) != value)
            refuse("a fill value is listed twice");
        if (type.scalar_bytes < 8 && (*value >> (8 * type.scalar_bytes)) != 0) {
            refuse("a fill value does not fit dtype '" + dtype + "'");
        }
    }
}

std::uint64_t TreeParameters::chunk_scalars() const {
    const DataType type = data_type();
    const std::uint64_t scalars = std::max<std::uint64_t>(1, chunk_bytes / type.scalar_bytes);
    return type.scalars_per_element == 2 && scalars > 1 ? scalars & ~std::uint64_t{1} : scalars;
}

std::uint64_t TreeParameters::leaf_count(std::uint64_t scalar_count) const {
    return scalar_count == 0 ? 1 : (scalar_count - 1) / chunk_scalars() + 1;
}

}  // namespace ciwrap
