// Where numbers stand in a text: each number of each template, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/left_out.hpp"

namespace ciwrap {

// The first number in a place. number: which of its line's, from 1. line: from 1. offset, size: of
// its bytes. set: that leaves it out (IgnoredSets, or `ignored_place`); 0: none.
// line_rule: of those that leave out its line, as in LeftOut::rule_over. is_part: it has to be
// written alike
// (`stands_alone`).
struct NumberPlace {
    std::string line_template;
    std::uint64_t number = 0;
    std::uint64_t line = 0;
    std::size_t offset = 0;
    std::size_t size = 0;
    unsigned set = 0;
    std::size_t line_rule = 0;
    bool is_part = false;
};

// Places that are left out in different ways are several. At most so many are found.
std::vector<NumberPlace> number_places(std::string_view text, const LeftOut& left_out,
                                       std::size_t most);

}  // namespace ciwrap
