// Shell patterns for names of variables, as the configuration has them.
#pragma once

#include <string_view>

namespace ciwrap::record {

// Whether a pattern means a name: `*` is any text, `?` one character, `[a-z]` and `[!a-z]` (or
// `[^a-z]`) sets, up to the first `]`; a `[` without one, or with nothing before it, is itself.
// Both are UTF-8; a byte that is none is a character. Not by fnmatch(3), in which a character of a
// program without a locale is a byte.
bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace ciwrap::record
