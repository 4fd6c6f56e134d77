// Rows of a table whose cells are plainly numbers or plain words, which is what most tables are.
// Anything else (quotes, hexadecimal numbers, numbers that no double is) is left to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ciwrap {

// delimiter: '\0' for white space. comments: what lines begin with that are no rows.
struct TableForm {
    char delimiter = '\0';
    std::vector<std::string> comments;
};

// What the cells of a column are. An empty cell is no whole number, and no word.
struct ColumnFacts {
    bool is_whole = true;          // all are whole numbers
    bool is_number = true;         // none is a word
    bool is_empty = true;          // all are empty
    std::size_t longest_cell = 0;  // in bytes, with the blanks that a delimiter leaves beside it
};

struct TableFacts {
    std::size_t row_count = 0;
    std::vector<ColumnFacts> columns;
};

// Where the values of a column go: one of these is not empty. A text goes into its column of
// UTF-32, `width` units a row, with zeros behind it.
struct ColumnTarget {
    std::span<std::int64_t> wholes{};
    std::span<double> doubles{};
    std::span<std::uint32_t> texts{};
    std::size_t width = 0;
};

// lines: whole lines in ASCII without quotes. is_known: columns whose cells need no look. None if
// a row has another number of cells.
std::optional<TableFacts> scan_table(std::string_view lines, const TableForm& form,
                                     const std::vector<bool>& is_known);

// Reads the rows, and says how many there are; an empty cell is NaN. None if there are more than
// `most_rows`, or a cell has no value of its column's type, or a double that does not say all of
// it.
std::optional<std::size_t> read_table(std::string_view lines, const TableForm& form,
                                      std::span<const ColumnTarget> columns, std::size_t most_rows);

}  // namespace ciwrap
