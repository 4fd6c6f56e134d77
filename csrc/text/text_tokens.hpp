// What a line of text is made of: numbers, and the words between them.
//
// A number follows no letter, digit or underscore: `H2O` and `fp64` are words, `E=-1.0,` holds one,
// and `0x1F` is a word.
// It is a decimal number with or without an exponent (Fortran's D and its exponents of three digits
// without a letter, 1.5-100, among them), or one of the words nan, inf and infinity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ciwrap {

// A piece of a line, as offsets of its bytes. end: behind the last one. set: of IgnoredSets.
struct LinePiece {
    std::size_t begin;
    std::size_t end;
    unsigned set = 0;
};

// Of ASCII alone. A line break is no blank.
constexpr bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}
constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
// Of letters; all else as it is.
constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
// A letter or the underscore.
constexpr bool is_letter(char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_';
}
constexpr bool is_identifier(char c) {
    return is_digit(c) || is_letter(c);
}
// No byte of digits has another upper half, nor has it with 6 more.
inline bool are_eight_digits(const char* at) {
    constexpr std::uint64_t upper_halves = 0xf0f0f0f0f0f0f0f0;
    constexpr std::uint64_t sixes = 0x0606060606060606;
    constexpr std::uint64_t digits = 0x3030303030303030;
    std::uint64_t eight = 0;
    std::memcpy(&eight, at, sizeof eight);
    return (eight & upper_halves) == digits && ((eight + sixes) & upper_halves) == digits;
}

inline const char* skip_digits(const char* at, const char* end) {
    while (end - at >= 8 && are_eight_digits(at))
        at += 8;
    while (at < end && is_digit(*at))
        ++at;
    return at;
}

inline bool has_sign(std::string_view number) {
    return !number.empty() && (number[0] == '+' || number[0] == '-');
}

// Where the number that begins at `at` ends; `at` itself if none does. before: the character in
// front of it, a blank at the beginning of a line.
const char* number_end(const char* at, const char* end, char before);

// Any number of lines.
std::uint64_t count_numbers(std::string_view text);

// Whether a number is one of the words nan, +nan, -NaN.
bool is_nan_word(std::string_view number);

struct Token {
    enum class Kind : std::uint8_t { end, word, number, ignored };
    Kind kind = Kind::end;
    std::string_view text{};  // a part of the line

    // Whether two tokens stand for the same in a line's template.
    bool is_like(const Token& other) const {
        return kind == other.kind && (kind != Kind::word || text == other.text);
    }
};

// The tokens of one line. A word goes to the next blank or number, so white space counts between
// two words alone: a number that got longer takes the blanks before it.
class TokenReader {
  public:
    // ignored: ascending pieces that do not overlap. All is to outlive this.
    explicit TokenReader(std::string_view line, std::span<const LinePiece> ignored = {})
        : line_(line), ignored_(ignored) {}

    Token next();

    // What is not read yet; and reading on behind so many bytes of it. To be used only where
    // nothing is ignored, and between a blank and what goes before it.
    std::string_view rest() const { return line_.substr(at_); }
    void skip(std::size_t bytes) { at_ += bytes; }
    bool is_at_blank() const { return at_ < line_.size() && is_blank(line_[at_]); }

  private:
    // What goes from here up to `end`.
    Token take(Token::Kind kind, const char* end);

    std::string_view line_;
    std::span<const LinePiece> ignored_;
    std::size_t at_ = 0;
    std::size_t next_ignored_ = 0;
    const char* number_end_ = nullptr;  // of the number that the last word ended at
};

// A line with `#` for its numbers and `...` for what is ignored, of at most so many bytes.
std::string template_of(std::string_view line, std::span<const LinePiece> ignored,
                        std::size_t most_bytes);

}  // namespace ciwrap
