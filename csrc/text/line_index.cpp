#include "text/line_index.hpp"

#include <algorithm>
#include <cstdint>

#include "text/text_notes.hpp"

namespace ciwrap {
namespace {

// So many lines in a row that say the same on both sides are no accident.
constexpr std::size_t sure_run = 3;
constexpr std::size_t near_digits = 5;

// A number cut to a few digits: what noise leaves as it is, but for numbers next to a border.
std::uint64_t near_hash(std::uint64_t hash, std::string_view number) {
    std::size_t digits = 0;
    bool in_fraction = false;
    for (std::size_t i = 0; i < number.size(); ++i) {
        const char c = number[i];
        in_fraction |= c == '.';
        if (is_digit(c)) {
            const bool is_leading = digits == 0 && c == '0';
            if (digits >= near_digits && in_fraction)
                continue;
            hash = mixed(hash, static_cast<unsigned char>(digits >= near_digits ? 'x' : c));
            digits += is_leading ? 0 : 1;
        } else {
            if (is_letter(c) || (i > 0 && c == '-'))
                digits = 0;  // the exponent counts whole
            hash = mixed(hash, static_cast<unsigned char>(c));
        }
    }
    return hash;
}

}  // namespace

LineKey key_of(std::string_view line, std::span<const LinePiece> ignored) {
    TokenReader tokens(line, ignored);
    LineKey key{1, 1};
    for (;;) {
        const Token token = tokens.next();
        if (token.kind == Token::Kind::end)
            return key;
        key.shape = mixed(key.shape, token);
        key.near = mixed(key.near, key.shape);
        if (token.kind == Token::Kind::number)
            key.near = near_hash(key.near, token.text);
    }
}

std::size_t sure_pairs(const LineIndex& golden, const LineIndex& value,
                       std::span<const LinePair> pairs) {
    std::size_t run = 0;
    std::size_t alike = 0;
    std::size_t sure = 0;
    std::size_t alike_before = 0;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
        const LinePair& one = pairs[k];
        const bool is_alike = golden.keys[one.golden].near == value.keys[one.value].near;
        const bool goes_on =
            k > 0 && pairs[k - 1].golden + 1 == one.golden && pairs[k - 1].value + 1 == one.value;
        alike += is_alike ? 1 : 0;
        run = is_alike ? (goes_on ? run + 1 : 1) : 0;
        if (run >= sure_run) {
            sure = k + 1;
            alike_before = alike;
        }
    }
    if (sure == 0)
        return 0;
    const std::size_t lines = std::min(pairs[sure - 1].golden, pairs[sure - 1].value) + 1;
    return 2 * alike_before >= lines ? sure : 0;
}

}  // namespace ciwrap
