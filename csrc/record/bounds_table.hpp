// The bounds that the configuration asks for, and what it leaves out, as `ciwrap record` hands them
// over: a flat text table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ciwrap/parameters.hpp"

namespace ciwrap::record {

// One line for each rule of bounds: tab-separated `kind pattern bound equal_nan chunk_bytes
// fill_values residue_levels`. kind: `=` for a name, `*` for a shell pattern. bound: `atol rtol
// ulps`. fill_values: joined by commas. `-` says nothing. Of the lines that match a name the later
// one counts, field by field. Beside them lines `! pattern` (what is ignored) and one `> iteration`
// (the last one that is not).
class BoundsTable {
  public:
    BoundsTable() = default;
    // Reads a table. Throws Error(io, corrupt_file) naming the file.
    explicit BoundsTable(const std::string& path);

    bool has_bounds() const { return !rows_.empty(); }
    // The parameters for a variable. stated: what counts where no line says otherwise. Throws
    // Error(invalid_argument).
    TreeParameters parameters_for(const std::string& name, StatedParameters stated) const;
    // Whether a difference in it is of no account. name: as comparisons have it, `NAME@POINT`.
    bool is_ignored(const std::string& name, std::int64_t iteration, int rank) const;

  private:
    struct Bound {
        double atol;
        double rtol;
        std::uint64_t ulps;
    };
    struct Row {
        bool is_exact;
        std::string pattern;
        std::optional<Bound> bound;
        std::optional<bool> equal_nan;
        std::optional<std::uint64_t> chunk_bytes;
        std::optional<std::vector<double>> fill_values;
        std::optional<std::uint32_t> residue_levels;

        bool matches(const std::string& name) const;
    };
    static Row parse(const std::string& line);
    void add(const std::string& line);

    std::vector<Row> rows_;
    std::vector<std::string> ignored_;
    std::optional<std::int64_t> last_iteration_;
};

}  // namespace ciwrap::record
