#include "record/bounds_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <type_traits>

#include "base/fill_value.hpp"
#include "base/read_decimal.hpp"
#include "ciwrap/error.hpp"
#include "record/name_pattern.hpp"

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
        throw Error(ErrorCode::corrupt_file, "'" + text + "' is not a number");
    return value;
}

// As the dtype holds them; what it cannot hold no element can equal.
std::vector<std::uint64_t> fill_bits(ScalarType type, const std::vector<double>& values) {
    std::vector<std::uint64_t> held;
    for (const double value : values) {
        const std::optional<std::uint64_t> bits = rounded_fill_bits(type, value);
        if (bits && std::find(held.begin(), held.end(), *bits) == held.end())
            held.push_back(*bits);
    }
    return held;
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
    std::size_t count = sizeof part;
    while (count == sizeof part) {
        count = std::fread(part, 1, sizeof part, file.get());
        text.append(part, count);
    }
    if (std::ferror(file.get()) != 0)
        return std::nullopt;
    return text;
}

}  // namespace

bool BoundsTable::Row::matches(const std::string& name) const {
    return is_exact ? pattern == name : name_matches(pattern, name);
}

BoundsTable::Row BoundsTable::parse(const std::string& line) {
    const std::vector<std::string> fields = split(line, '\t');
    if (fields.size() != 7)
        throw Error(ErrorCode::corrupt_file, "a line has not 7 fields");
    Row row{fields[0] == "=", fields[1], {}, {}, {}, {}, {}};
    if (fields[2] != "-") {
        const std::vector<std::string> parts = split(fields[2], ' ');
        if (parts.size() != 3)
            throw Error(ErrorCode::corrupt_file, "'" + fields[2] + "' is not a bound");
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
    if (lines[0] != "ciwrap-bounds 3")
        throw Error(ErrorCode::corrupt_file, path + ": is not a table of bounds");
    try {
        for (std::size_t i = 1; i < lines.size(); ++i)
            add(lines[i]);
    } catch (const Error& error) {
        throw Error(error.code(), path + ": " + error.what());
    }
}

void BoundsTable::add(const std::string& line) {
    const std::string said = line.substr(std::min<std::size_t>(line.size(), 2));
    if (line.starts_with("!\t"))
        ignored_.push_back(said);
    else if (line.starts_with(">\t"))
        last_iteration_ = number<std::int64_t>(said);
    else
        rows_.push_back(parse(line));
}

bool BoundsTable::is_ignored(const std::string& name, std::int64_t iteration, int rank) const {
    if (last_iteration_ && iteration > *last_iteration_)
        return true;
    const auto means = [](const std::string& pattern, const std::string& text) {
        return pattern == text || name_matches(pattern, text);
    };
    return std::any_of(ignored_.begin(), ignored_.end(), [&](const std::string& pattern) {
        if (means(pattern, name))
            return true;
        if (pattern.find(" / ") == std::string::npos)
            return false;
        return means(pattern, "iter " + std::to_string(iteration) + " / rank " +
                                  std::to_string(rank) + " / " + name);
    });
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
        stated.fill_bits = fill_bits(type, *fills);
    }
    return TreeParameters(stated);
}

}  // namespace ciwrap::record
