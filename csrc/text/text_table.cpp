#include "text/text_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "text/text_number.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t most_digits_of_int64 = 18;
constexpr double largest_exact = 0x1p53;  // whole numbers up to here are exact in a double

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    return text;
}

std::string_view without_plus(std::string_view text) {
    return text.starts_with('+') ? text.substr(1) : text;
}

bool is_whole_cell(std::string_view text) {
    return !text.empty() && is_digit(text.back()) && is_whole_number(text);
}

// What Python takes for blanks or line breaks, and this does not.
bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < ' ' && !is_blank(c); });
}

// Calls take(row, column, cell) for each cell, blanks beside it included, until one is not taken.
// The number of rows; none if a cell was not taken, or a row has another number of cells.
class TableRows {
  public:
    TableRows(std::string_view lines, const TableForm& form, std::size_t column_count)
        : lines_(lines), form_(form), column_count_(column_count) {}

    template <typename Take>
    std::optional<std::size_t> each_cell(const Take& take) const {
        std::size_t row = 0;
        for (std::size_t at = 0; at < lines_.size();) {
            const std::size_t end = std::min(lines_.find('\n', at), lines_.size());
            const std::string_view line = lines_.substr(at, end - at);
            at = end + 1;
            if (!is_row(line))
                continue;
            if (!(form_.delimiter == '\0' ? each_word(line, row, take)
                                          : each_part(line, row, take)))
                return std::nullopt;
            ++row;
        }
        return row;
    }

  private:
    bool is_row(std::string_view line) const {
        const std::string_view text = trimmed(line);
        if (text.empty())
            return form_.delimiter != '\0' && line.find(form_.delimiter) != std::string_view::npos;
        return std::none_of(form_.comments.begin(), form_.comments.end(),
                            [&](const std::string& mark) { return text.starts_with(mark); });
    }

    template <typename Take>
    bool each_word(std::string_view line, std::size_t row, const Take& take) const {
        std::size_t column = 0;
        const char* at = line.data();
        const char* const end = at + line.size();
        for (;;) {
            while (at < end && is_blank(*at))
                ++at;
            if (at == end)
                return column == column_count_;
            const char* const first = at;
            while (at < end && !is_blank(*at))
                ++at;
            const std::string_view cell(first, static_cast<std::size_t>(at - first));
            if (column == column_count_ || !take(row, column, cell))
                return false;
            ++column;
        }
    }

    template <typename Take>
    bool each_part(std::string_view line, std::size_t row, const Take& take) const {
        if (line.ends_with('\r'))
            line.remove_suffix(1);
        for (std::size_t column = 0; column < column_count_; ++column) {
            const std::size_t end = std::min(line.find(form_.delimiter), line.size());
            if (!take(row, column, line.substr(0, end)))
                return false;
            if (end == line.size())
                return column + 1 == column_count_;
            line.remove_prefix(end + 1);
        }
        return false;
    }

    std::string_view lines_;
    const TableForm& form_;
    std::size_t column_count_;
};

bool is_number_cell(std::string_view text) {
    return number_end(text.data(), text.data() + text.size(), ' ') == text.data() + text.size();
}

bool read_whole(std::string_view text, std::int64_t& value) {
    // -00 is the degrees of an angle, whose sign a zero loses.
    if (!is_whole_cell(text) || text.size() > most_digits_of_int64 || text.starts_with("-00"))
        return false;
    const std::string_view digits = without_plus(text);
    return std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc();
}

// Whether a cell is digits with or without a point and an exponent, as nearly all are, and is read.
// Such a cell is a number by `number_end`, too: nan and inf end with a letter.
bool read_digits(std::string_view text, double& value) {
    return (is_digit(text.back()) || text.back() == '.') && read_plain(text, value);
}

bool read_real(std::string_view text, double& value) {
    if (text.empty()) {
        value = std::numeric_limits<double>::quiet_NaN();
        return true;
    }
    if (text.starts_with("-00"))
        return false;
    if (!read_digits(text, value)) {
        const std::optional<ReadNumber> number =
            is_number_cell(text) ? read_number(text) : std::nullopt;
        if (!number || number->is_too_small)
            return false;
        value = number->value;
    }
    return !(std::fabs(value) >= largest_exact && is_whole_cell(text));
}

bool write_text(std::string_view text, std::span<std::uint32_t> place) {
    if (text.size() > place.size() || has_control(text))
        return false;
    const auto end = std::transform(text.begin(), text.end(), place.begin(),
                                    [](char c) { return static_cast<unsigned char>(c); });
    std::fill(end, place.end(), 0U);
    return true;
}

bool write_cell(const ColumnTarget& column, std::size_t row, std::string_view cell) {
    if (column.width > 0)
        return write_text(cell, column.texts.subspan(row * column.width, column.width));
    if (!column.wholes.empty())
        return read_whole(trimmed(cell), column.wholes[row]);
    return read_real(trimmed(cell), column.doubles[row]);
}

}  // namespace

std::optional<TableFacts> scan_table(std::string_view lines, const TableForm& form,
                                     const std::vector<bool>& is_known) {
    TableFacts facts;
    facts.columns.resize(is_known.size());
    const auto note = [&](std::size_t, std::size_t column, std::string_view cell) {
        if (is_known[column])
            return true;
        ColumnFacts& found = facts.columns[column];
        const std::string_view text = trimmed(cell);
        found.longest_cell = std::max(found.longest_cell, cell.size());
        const bool is_number = text.empty() || is_number_cell(text);
        found.is_empty = found.is_empty && text.empty();
        found.is_whole = found.is_whole && is_whole_cell(text);
        found.is_number = found.is_number && is_number;
        return is_number || !has_control(cell);
    };
    const std::optional<std::size_t> rows = TableRows(lines, form, is_known.size()).each_cell(note);
    if (!rows)
        return std::nullopt;
    facts.row_count = *rows;
    return facts;
}

std::optional<std::size_t> read_table(std::string_view lines, const TableForm& form,
                                      std::span<const ColumnTarget> columns,
                                      std::size_t most_rows) {
    const auto write = [&](std::size_t row, std::size_t column, std::string_view cell) {
        return row < most_rows && write_cell(columns[column], row, cell);
    };
    return TableRows(lines, form, columns.size()).each_cell(write);
}

}  // namespace ciwrap
