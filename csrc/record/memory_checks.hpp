// Whether memory is still the program's, before it is read.
#pragma once

#include <cstddef>

namespace ciwrap::record {

// Whether all of these bytes are mapped. Costs a system call, and reads none of them.
bool is_mapped(const std::byte* first, std::size_t bytes);

// Whether, in a call, they were local variables of a function that has returned. Only on Linux.
bool is_of_returned_function(const std::byte* first);

}  // namespace ciwrap::record
