// What text may stand in a golden file, and how any text is put into a one-line message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ciwrap {

// Why a variable cannot have this name; nothing if it can.
std::optional<std::string> name_fault(std::string_view name);

// The text with everything that is not harmless, printable UTF-8 escaped.
std::string printable(std::string_view text);

}  // namespace ciwrap
