#include "record/bounds_table.hpp"

#include <fnmatch.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <type_traits>

#include "base/fill_value.hpp"
#include "base/read_decimal.hpp"
#include "ciwrap/error.hpp"

namespace ciwrap::record {
namespace {

template <class Number>
Number number(const std::string& text) {
    Number value{};
    std::from_chars_result read{};
    if constexpr (std::is_same_v<Number, double>)
        read = read_decimal(text, value);
    else
        read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size())
        throw Error(ErrorCode::corrupt_file, "'" + text + "' is no number");
    return value;
}

std::uint64_t fill_bits(const std::string& dtype, ScalarType type, double value) {
    if (!is_integer(type))
        return float_fill_bits(dtype, type, value);
    if (value != std::floor(value) || std::abs(value) > 0x1p+53)
        throw Error(ErrorCode::invalid_argument, "a fill value does not fit dtype '" + dtype + "'");
    const auto whole = static_cast<std::int64_t>(value);
    return integer_fill_bits(dtype, type, whole < 0, static_cast<std::uint64_t>(whole));
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

// Not by std::ifstream, which would bring half of the C++ library into ours.
std::optional<std::string> read_text(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                               &std::fclose);
    if (!file)
        return std::nullopt;
    std::string text;
    char part[4096];
    while (const std::size_t count = std::fread(part, 1, sizeof part, file.get()))
        text.append(part, count);
    if (std::ferror(file.get()) != 0)
        return std::nullopt;
    return text;
}

}  // namespace

// `*` is any text, `?` one character, `[a-z]` and `[!a-z]` sets.
bool BoundsTable::Row::matches(const std::string& name) const {
    return is_exact ? pattern == name : fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

BoundsTable::Row BoundsTable::parse(const std::string& line) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() != 7)
        throw Error(ErrorCode::corrupt_file, "a line has not 7 fields");
    Row row{fields[0] == "=", fields[1], {}, {}, {}, {}, {}};
    if (fields[2] != "-") {
        const std::vector<std::string> parts = split(fields[2], ' ');
        if (parts.size() != 3)
            throw Error(ErrorCode::corrupt_file, "'" + fields[2] + "' is no bound");
        row.bound = Bound{number<double>(parts[0]), number<double>(parts[1]),
                          number<std::uint64_t>(parts[2])};
    }
    if (fields[3] != "-")
        row.equal_nan = number<int>(fields[3]) != 0;
    if (fields[4] != "-")
        row.chunk_bytes = number<std::uint64_t>(fields[4]);
    if (fields[5] != "-") {
        row.fill_values.emplace();
        for (const std::string& text : split(fields[5], ','))
            row.fill_values->push_back(number<double>(text));
    }
    if (fields[6] != "-")
        row.residue_levels = number<std::uint32_t>(fields[6]);
    return row;
}

BoundsTable::BoundsTable(const std::string& path) {
    const std::optional<std::string> text = read_text(path);
    if (!text || text->empty())
        throw Error(ErrorCode::io, path + ": cannot be read");
    std::vector<std::string> lines = split(*text, '\n');
    if (lines.back().empty())
        lines.pop_back();  // behind the last line's end
    if (lines[0] != "ciwrap-bounds 2")
        throw Error(ErrorCode::corrupt_file, path + ": is no table of bounds");
    try {
        for (std::size_t i = 1; i < lines.size(); ++i)
            rows_.push_back(parse(lines[i]));
    } catch (const Error& error) {
        throw Error(error.code(), path + ": " + error.what());
    }
}

TreeParameters BoundsTable::parameters_for(const std::string& name, StatedParameters stated) const {
    std::optional<std::vector<double>> fills;
    for (const Row& row : rows_) {
        if (!row.matches(name))
            continue;
        if (row.bound) {
            stated.atol = row.bound->atol;
            stated.rtol = row.bound->rtol;
            stated.ulps = row.bound->ulps;
        }
        stated.equal_nan = row.equal_nan.value_or(stated.equal_nan);
        stated.chunk_bytes = row.chunk_bytes.value_or(stated.chunk_bytes);
        stated.residue_levels = row.residue_levels.value_or(stated.residue_levels);
        if (row.fill_values)
            fills = row.fill_values;
    }
    if (fills) {
        const ScalarType type = DataType::parse(stated.dtype).scalar;
        stated.fill_bits.clear();
        for (const double value : *fills)
            stated.fill_bits.push_back(fill_bits(stated.dtype, type, value));
    }
    return TreeParameters(stated);
}

}  // namespace ciwrap::record
