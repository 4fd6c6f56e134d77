// Two texts, token by token: a line is a template, words with marks for its numbers, and numbers.
// Lines of one template are compared number by number; a line without partner was not compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ciwrap/execution.hpp"
#include "text/left_out.hpp"
#include "text/text_notes.hpp"
#include "text/text_number.hpp"
#include "text/text_window.hpp"

namespace ciwrap {

struct TextOptions {
    TextBound bound;
    LeftOutRules left_out;
    std::size_t window_bytes = std::size_t{8} << 20;  // in which the partner of a line is searched
    std::size_t most_groups = 200;
};

// What one side holds.
struct TextSide {
    std::uint64_t byte_count = 0;
    std::uint64_t line_count = 0;
    std::uint64_t unpaired_lines = 0;
    std::uint64_t ignored_lines = 0;
    std::uint64_t unread_numbers = 0;  // in lines without partner
    bool is_utf8 = true;
};

// Lines that one rule leaves out. numbers: in those of the golden.
struct LinesLeftOut {
    std::uint64_t golden_count = 0;
    std::uint64_t value_count = 0;
    std::uint64_t number_count = 0;
};

// number_count: numbers of lines that have a partner; ignored_count of them were not compared.
// ignored_line_numbers: numbers in lines of the golden that were left out.
struct TextComparison {
    TextSide golden;
    TextSide value;
    std::uint64_t pair_count = 0;  // of lines
    std::uint64_t number_count = 0;
    std::uint64_t differing_count = 0;
    std::uint64_t ignored_count = 0;
    std::uint64_t ignored_line_numbers = 0;
    std::uint64_t nan_mismatch_count = 0;
    std::uint64_t inf_mismatch_count = 0;
    double max_abs_difference = 0.0;
    double max_rel_difference = 0.0;
    double max_bound_share = 0.0;
    std::vector<NumberGroup> number_groups;
    std::uint64_t number_group_count = 0;
    std::vector<MaskedGroup> masked_groups;
    std::uint64_t masked_group_count = 0;
    std::vector<LinesLeftOut> lines_left_out;  // by rule, as in LeftOut::rule_over
    std::vector<LineGroup> line_groups;
    std::uint64_t line_group_count = 0;
};

// Memory is bounded by the window, whatever the texts. Throws Error: invalid_argument for a pattern
// that fits every line, corrupt_file for a NUL byte or a file that was written meanwhile, too_large
// for a line of more than most_line_bytes, and what reading throws.
TextComparison compare_texts(TextSource& golden, TextSource& value, const TextOptions& options,
                             const Interrupt& interrupt = {});

}  // namespace ciwrap
