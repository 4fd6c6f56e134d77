// Whole lines that are left out of a comparison of texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ciwrap {

// A line as people write it: `*` stands for any text, all else for itself; white space counts as
// one blank, and not at all at either end.
class LinePattern {
  public:
    // Throws Error(invalid_argument) for one that any line fits.
    explicit LinePattern(std::string_view text);

    bool fits(std::string_view line) const;

  private:
    std::vector<std::string> parts_;  // between the stars; at least one
};

}  // namespace ciwrap
