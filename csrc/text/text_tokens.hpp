// What a line of text is made of: numbers, and the words between them.
//
// A number follows no letter, digit or underscore: `H2O` and `fp64` are words, `E=-1.0,` holds one.
// It is a decimal number with or without an exponent (Fortran's D and its exponents of three digits
// without a letter, 1.5-100, among them), or one of the words nan, inf and infinity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ciwrap {

// A piece of a line, as offsets of its bytes. end: behind the last one.
struct LinePiece {
    std::size_t begin;
    std::size_t end;
};

bool is_blank(char c);
bool is_digit(char c);
bool is_letter(char c);
// Letters of ASCII, digits and the underscore.
bool is_identifier(char c);

// Where the number that begins at `at` ends; `at` itself if none does. before: the character in
// front of it, a blank at the beginning of a line.
const char* number_end(const char* at, const char* end, char before);

// Any number of lines.
std::uint64_t count_numbers(std::string_view text);

// Whether a number is one of the words nan, +nan, -NaN.
bool is_nan_word(std::string_view number);

struct Token {
    enum class Kind : std::uint8_t { end, character, number, ignored };
    Kind kind = Kind::end;
    char character = 0;      // of a word, or one blank between two of them
    std::string_view text;  // of a number, or of what is ignored; a part of the line

    // Whether two tokens stand for the same in a line's template.
    bool is_like(const Token& other) const {
        return kind == other.kind && character == other.character;
    }
};

// The tokens of one line. White space counts between two words alone, and there as one blank: a
// number that got longer takes the blanks before it.
class TokenReader {
  public:
    // ignored: ascending pieces that do not overlap. All is to outlive this.
    explicit TokenReader(std::string_view line, std::span<const LinePiece> ignored = {})
        : line_(line), ignored_(ignored) {}

    Token next();

  private:
    std::string_view line_;
    std::span<const LinePiece> ignored_;
    std::size_t at_ = 0;
    std::size_t next_ignored_ = 0;
    bool follows_character_ = false;
};

// A line with `#` for its numbers and `...` for what is ignored, of at most so many bytes.
std::string template_of(std::string_view line, std::span<const LinePiece> ignored,
                        std::size_t most_bytes);

}  // namespace ciwrap
