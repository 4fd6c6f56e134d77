// Taking what a text begins with, or ends with, off it.
#pragma once

#include <algorithm>
#include <string_view>

namespace ciwrap {

// Each returns whether there was something to take; text is not empty. Its one character says
// nearly always that there is nothing.
inline bool take(std::string_view& rest, std::string_view text) {
    const bool is_there = rest.starts_with(text.front()) && rest.starts_with(text);
    rest.remove_prefix(is_there ? text.size() : 0);
    return is_there;
}

inline bool take_last(std::string_view& rest, std::string_view text) {
    const bool is_there = rest.ends_with(text.back()) && rest.ends_with(text);
    rest.remove_suffix(is_there ? text.size() : 0);
    return is_there;
}

// The longest beginning all of whose characters are meant; and taking it.
template <typename Meant>
std::string_view leading(std::string_view rest, const Meant& is_meant) {
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_meant);
    return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
}

template <typename Meant>
bool take_all(std::string_view& rest, const Meant& is_meant) {
    const std::string_view found = leading(rest, is_meant);
    rest.remove_prefix(found.size());
    return !found.empty();
}

}  // namespace ciwrap
