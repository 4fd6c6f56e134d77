#include "text/line_pattern.hpp"

#include <algorithm>

#include "ciwrap/error.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

std::string with_single_blanks(std::string_view text) {
    std::string kept;
    bool blank = false;
    for (const char c : text) {
        if (is_blank(c)) {
            blank = !kept.empty();
            continue;
        }
        if (blank)
            kept += ' ';
        blank = false;
        kept += c;
    }
    return kept;
}

}  // namespace

LinePattern::LinePattern(std::string_view text) {
    const std::string tidy = with_single_blanks(text);
    std::size_t from = 0;
    for (std::size_t star = tidy.find('*'); star != std::string::npos;
         star = tidy.find('*', from)) {
        parts_.push_back(tidy.substr(from, star - from));
        from = star + 1;
    }
    parts_.push_back(tidy.substr(from));
    const bool fits_all = std::all_of(parts_.begin(), parts_.end(), [](const std::string& part) {
        return part.find_first_not_of(' ') == std::string::npos;
    });
    if (fits_all && parts_.size() > 1)
        throw Error(ErrorCode::invalid_argument, "'" + tidy + "' leaves out every line");
}

bool LinePattern::fits(std::string_view line) const {
    const std::string tidy = with_single_blanks(line);
    const std::string_view text = tidy;
    if (parts_.size() == 1)
        return text == parts_.front();
    if (!text.starts_with(parts_.front()) || !text.ends_with(parts_.back()) ||
        text.size() < parts_.front().size() + parts_.back().size())
        return false;
    // The first place that a part fits leaves the most to those behind it.
    std::size_t at = parts_.front().size();
    const std::size_t last = text.size() - parts_.back().size();
    for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
        const std::size_t found = text.find(parts_[i], at);
        if (found == std::string_view::npos)
            return false;
        at = found + parts_[i].size();
    }
    return at <= last;
}

}  // namespace ciwrap
