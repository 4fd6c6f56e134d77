// What the C++ library does before a program ends for an exception that nobody caught: it tells the
// exception's name, and brings along all that makes such names readable. No exception leaves
// this library (record_table.cpp), so nothing is told. Of use where the C++ library is part of
// ours.
#include <cstdlib>

namespace __gnu_cxx {

// NOLINTNEXTLINE(bugprone-reserved-identifier): it is theirs
[[noreturn]] void __verbose_terminate_handler();

void __verbose_terminate_handler() {
    std::abort();
}

}  // namespace __gnu_cxx
