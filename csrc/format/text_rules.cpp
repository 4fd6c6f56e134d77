#include "format/text_rules.hpp"

#include <cstdint>

#include "format/golden_layout.hpp"

namespace ciwrap {
namespace {

// Takes one code point off the front. Nothing if it is not well-formed UTF-8 in its shortest form.
std::optional<char32_t> take_code_point(std::string_view& text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    const std::size_t length = lead < 0x80    ? 1
                               : lead < 0xc2  ? 0
                               : lead < 0xe0  ? 2
                               : lead < 0xf0  ? 3
                               : lead <= 0xf4 ? 4
                                              : 0;
    if (length == 0 || length > text.size())
        return std::nullopt;
    constexpr unsigned char lead_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    char32_t point = lead & lead_mask[length];
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80)
            return std::nullopt;
        point = (point << 6) | (byte(i) & 0x3fu);
    }
    const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (too_long || surrogate || point > 0x10ffff)
        return std::nullopt;
    text.remove_prefix(length);
    return point;
}

// Control characters, line and paragraph separators, and what changes the direction of writing:
// these would let a name disguise the report that it is printed in.
bool is_forbidden(char32_t point) {
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x61c || point == 0x200e ||
           point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::optional<std::string> name_fault(std::string_view name) {
    if (name.empty())
        return "is empty";
    if (name.size() > layout::max_name_bytes)
        return "is longer than 4096 bytes";
    while (!name.empty()) {
        const std::optional<char32_t> point = take_code_point(name);
        if (!point)
            return "is not valid UTF-8";
        if (is_forbidden(*point))
            return "holds a control character";
    }
    return std::nullopt;
}

std::string printable(std::string_view text) {
    constexpr char hex[] = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const std::string_view before = text;
        const std::optional<char32_t> point = take_code_point(text);
        if (!point)
            text.remove_prefix(1);
        const std::string_view taken = before.substr(0, before.size() - text.size());
        if (point && !is_forbidden(*point)) {
            out += taken;
            continue;
        }
        for (const char c : taken) {
            const auto byte = static_cast<unsigned char>(c);
            out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    return out;
}

}  // namespace ciwrap
