#include "record/name_pattern.hpp"

#include <cstddef>
#include <string>

namespace ciwrap::record {
namespace {

// The characters of a text; a byte that is not UTF-8 is one beyond all of Unicode.
std::u32string characters(std::string_view text) {
    std::u32string found;
    for (std::size_t i = 0; i < text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t more = lead < 0x80    ? 0
                                 : lead >= 0xF0 ? 3
                                 : lead >= 0xE0 ? 2
                                 : lead >= 0xC0 ? 1
                                                : text.size();
        bool is_whole = more < text.size() - i;
        char32_t value = more == 0 ? lead : lead & (0x3Fu >> more);
        for (std::size_t k = 1; is_whole && k <= more; ++k) {
            const auto next = static_cast<unsigned char>(text[i + k]);
            is_whole = (next & 0xC0u) == 0x80u;
            value = value << 6 | (next & 0x3Fu);
        }
        found += is_whole ? value : 0x110000u + lead;
        i += is_whole ? more + 1 : 1;
    }
    return found;
}

// Where the set that begins at `at` ends, past its `]`; npos if there is none.
std::size_t set_end(const std::u32string& pattern, std::size_t at) {
    const std::size_t end = pattern.find(U']', at + 1);
    return end == std::u32string::npos || end == at + 1 ? std::u32string::npos : end + 1;
}

bool is_in_set(const std::u32string& pattern, std::size_t begin, std::size_t end, char32_t one) {
    std::size_t i = begin + 1;
    const bool is_negated = end - begin > 3 && (pattern[i] == U'!' || pattern[i] == U'^');
    if (is_negated)
        ++i;
    bool is_in = false;
    for (const std::size_t last = end - 1; i < last; ++i) {
        const char32_t low = pattern[i];
        const bool is_range = i + 2 < last && pattern[i + 1] == U'-';
        if (is_range)
            i += 2;
        is_in = is_in || (low <= one && one <= pattern[i]);
    }
    return is_in != is_negated;
}

}  // namespace

bool name_matches(std::string_view pattern_text, std::string_view name_text) {
    const std::u32string pattern = characters(pattern_text);
    const std::u32string name = characters(name_text);
    constexpr std::size_t nowhere = std::u32string::npos;
    std::size_t p = 0;
    std::size_t n = 0;
    // The last star, and where the text that it stands for ends for now.
    std::size_t star = nowhere;
    std::size_t star_end = 0;
    while (n < name.size()) {
        const bool has_more = p < pattern.size();
        if (has_more && pattern[p] == U'*') {
            star = p++;
            star_end = n;
            continue;
        }
        const std::size_t end = has_more && pattern[p] == U'[' ? set_end(pattern, p) : nowhere;
        const bool fits = has_more && (end != nowhere       ? is_in_set(pattern, p, end, name[n])
                                       : pattern[p] == U'?' ? true
                                                            : pattern[p] == name[n]);
        if (fits) {
            p = end != nowhere ? end : p + 1;
            ++n;
        } else if (star != nowhere) {
            p = star + 1;
            n = ++star_end;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == U'*')
        ++p;
    return p == pattern.size();
}

}  // namespace ciwrap::record
