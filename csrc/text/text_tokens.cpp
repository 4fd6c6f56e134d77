#include "text/text_tokens.hpp"

#include <array>

namespace ciwrap {
namespace {

enum CharacterKind : std::uint8_t { other = 0, blank = 1, digit = 2, letter = 4 };

constexpr std::array<std::uint8_t, 256> make_kinds() {
    std::array<std::uint8_t, 256> kinds{};
    for (const char c : {' ', '\t', '\r', '\v', '\f'})
        kinds[static_cast<unsigned char>(c)] = blank;
    for (unsigned c = '0'; c <= '9'; ++c)
        kinds[c] = digit;
    for (unsigned c = 'a'; c <= 'z'; ++c)
        kinds[c] = kinds[c - 'a' + 'A'] = letter;
    kinds['_'] = letter;
    return kinds;
}

constexpr std::array<std::uint8_t, 256> kinds = make_kinds();

std::uint8_t kind_of(char c) {
    return kinds[static_cast<unsigned char>(c)];
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

const char* skip_digits(const char* at, const char* end) {
    while (at < end && is_digit(*at))
        ++at;
    return at;
}

// The word `word`, in any case, if no identifier goes on behind it.
const char* word_end(const char* at, const char* end, std::string_view word) {
    if (static_cast<std::size_t>(end - at) < word.size())
        return at;
    for (std::size_t i = 0; i < word.size(); ++i)
        if (lower(at[i]) != word[i])
            return at;
    const char* after = at + word.size();
    return after < end && is_identifier(*after) ? at : after;
}

const char* special_end(const char* at, const char* end) {
    for (const std::string_view word : {"nan", "inf", "infinity"}) {
        const char* after = word_end(at, end, word);
        if (after != at)
            return after;
    }
    return at;
}

// Behind the exponent that begins at `at`, or `at`. has_point: of the number before it; only then
// are Fortran's forms meant.
const char* exponent_end(const char* at, const char* end, bool has_point) {
    if (at == end)
        return at;
    const char c = lower(*at);
    if (c == 'e' || (has_point && (c == 'd' || c == 'q'))) {
        const char* digits = at + 1;
        if (digits < end && (*digits == '+' || *digits == '-'))
            ++digits;
        const char* after = skip_digits(digits, end);
        return after == digits ? at : after;
    }
    if (has_point && (c == '+' || c == '-')) {
        const char* after = skip_digits(at + 1, end);
        const bool goes_on = after < end && (is_identifier(*after) || *after == '.');
        return after - at == 4 && !goes_on ? after : at;
    }
    return at;
}

}  // namespace

bool is_blank(char c) {
    return kind_of(c) == blank;
}

bool is_digit(char c) {
    return kind_of(c) == digit;
}

bool is_letter(char c) {
    return kind_of(c) == letter;
}

bool is_identifier(char c) {
    return kind_of(c) >= digit;
}

const char* number_end(const char* at, const char* end, char before) {
    if (is_identifier(before))
        return at;
    const char* first = at;
    if (*first == '+' || *first == '-') {
        if (before == ')' || before == ']' || ++first == end)
            return at;
    }
    if (is_letter(*first)) {
        const char* after = special_end(first, end);
        return after == first ? at : after;
    }
    const char* whole = skip_digits(first, end);
    const char* after = whole;
    bool has_point = false;
    if (after < end && *after == '.') {
        const char* fraction = skip_digits(after + 1, end);
        const bool has_fraction = fraction > after + 1;
        // `5.` is a number, `5.txt` is one and a word.
        const bool ends = whole > first && (fraction == end || !is_identifier(*fraction) ||
                                            exponent_end(fraction, end, true) != fraction);
        if (has_fraction || ends) {
            has_point = true;
            after = fraction;
        }
    }
    if (after == first)
        return at;
    return exponent_end(after, end, has_point);
}

std::uint64_t count_numbers(std::string_view text) {
    std::uint64_t count = 0;
    const char* at = text.data();
    const char* end = at + text.size();
    char before = ' ';
    while (at < end) {
        const char c = *at;
        const std::uint8_t kind = kind_of(c);
        // Nothing else begins a number.
        if (kind == digit || kind == letter || c == '-' || c == '+' || c == '.') {
            const char* after = number_end(at, end, before);
            if (after != at) {
                ++count;
                before = after[-1] == '.' ? '.' : '0';
                at = after;
                continue;
            }
            if (kind >= digit) {
                while (at < end && is_identifier(*at))
                    ++at;
                before = 'a';
                continue;
            }
        }
        before = c;
        ++at;
    }
    return count;
}

bool is_nan_word(std::string_view number) {
    if (!number.empty() && (number[0] == '+' || number[0] == '-'))
        number.remove_prefix(1);
    return !number.empty() && lower(number[0]) == 'n';
}

Token TokenReader::next() {
    const bool followed = follows_character_;
    const std::size_t start = at_;
    while (at_ < line_.size() && is_blank(line_[at_]))
        ++at_;
    if (at_ == line_.size())
        return {};
    follows_character_ = false;
    if (next_ignored_ < ignored_.size() && ignored_[next_ignored_].begin <= at_) {
        const LinePiece piece = ignored_[next_ignored_++];
        at_ = piece.end;
        return {Token::Kind::ignored, 0, line_.substr(piece.begin, piece.end - piece.begin)};
    }
    // A number ends where something ignored begins.
    const std::size_t limit =
        next_ignored_ < ignored_.size() ? ignored_[next_ignored_].begin : line_.size();
    const char before = at_ == 0 ? ' ' : line_[at_ - 1];
    const char* first = line_.data() + at_;
    const char* after = number_end(first, line_.data() + limit, before);
    if (after != first) {
        const std::string_view text(first, static_cast<std::size_t>(after - first));
        at_ += text.size();
        return {Token::Kind::number, 0, text};
    }
    follows_character_ = true;
    if (followed && at_ > start) {
        // The blank between two words; the word's first character comes next.
        follows_character_ = false;
        return {Token::Kind::character, ' ', {}};
    }
    return {Token::Kind::character, line_[at_++], {}};
}

std::string template_of(std::string_view line, std::span<const LinePiece> ignored,
                        std::size_t most_bytes) {
    std::string text;
    TokenReader tokens(line, ignored);
    bool follows_mark = false;
    while (text.size() < most_bytes) {
        const Token token = tokens.next();
        if (token.kind == Token::Kind::end)
            return text;
        const bool is_mark = token.kind != Token::Kind::character;
        if ((is_mark || follows_mark) && !text.empty())
            text += ' ';
        if (token.kind == Token::Kind::number)
            text += '#';
        else if (token.kind == Token::Kind::ignored)
            text += "...";
        else
            text += token.character;
        follows_mark = is_mark;
    }
    return text + "...";
}

}  // namespace ciwrap
