// Whether two texts say the same but for their numbers.
#pragma once

#include "ciwrap/execution.hpp"
#include "text/left_out.hpp"
#include "text/text_window.hpp"

namespace ciwrap {

// Whether the lines of both texts, but for those that a pattern leaves out, have the same templates
// in the same order. Reads both from where they are. Throws what reading throws.
bool have_same_templates(TextSource& golden, TextSource& value, const LeftOut& left_out,
                         const Interrupt& interrupt);

}  // namespace ciwrap
