#include "text/text_tokens.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace ciwrap {
namespace {

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

const char* number_end(const char* at, const char* end, char before) {
    if (is_identifier(before))
        return at;
    const char* first = at;
    if (*first == '+' || *first == '-') {
        if (before == ')' || before == ']' || ++first == end)
            return at;
    }
    // Nor behind a row of points, as in `total......12.5`.
    if (first == at && *first == '.' && before == '.')
        return at;
    if (is_letter(*first) && before != '.') {
        const char* after = special_end(first, end);
        return after == first ? at : after;
    }
    const char* whole = skip_digits(first, end);
    if (whole - first == 1 && *first == '0' && whole < end && lower(*whole) == 'x')
        return at;
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

namespace {

// Whether a number may begin with this character.
bool may_begin(char c) {
    return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'n' || c == 'N' || c == 'i' ||
           c == 'I';
}

// Where a word ends: at a blank, or where a number begins; and where that one ends.
struct WordLimit {
    const char* end;
    const char* number_end;  // `end` if none follows
};

WordLimit word_limit(const char* at, const char* end, char before) {
    const char* const first = at;
    while (at < end && !is_blank(*at)) {
        if (at > first && may_begin(*at)) {
            const char* const after = number_end(at, end, before);
            if (after != at)
                return {at, after};
        }
        if (is_identifier(*at)) {
            while (at < end && is_identifier(*at))
                ++at;
            before = 'a';
        } else {
            before = *at++;
        }
    }
    return {at, at};
}

// Numbers are counted by an automaton, a table look-up for each byte: what is equal to the byte on
// both sides, which is most of a log, is read for this alone. A test holds it to `number_end`.
enum State : std::uint8_t {
    between,        // a number may begin
    in_word,        // behind an identifier
    in_zero,        // a zero that a number begins with, or a hexadecimal one
    in_whole,       // digits before a point
    behind_point,   // the mantissa's point and what follows it
    leading_point,  // a point that a number may begin with
    other_point,    // a point that none begins with
    exponent,       // behind its letter
    exponent_sign,
    exponent_digits,
    bare_sign,  // 1.5-: an exponent without a letter, or the next number
    bare_zero,
    bare_1,
    bare_2,
    bare_3,
    special,  // a letter that nan or inf may begin with
    state_count
};

enum Class : std::uint8_t {
    c_other,
    c_zero,
    c_digit,
    c_point,
    c_sign,
    c_e,
    c_d,  // d and q: exponents behind a point alone
    c_special,
    c_x,
    c_letter,
    class_count
};

struct Step {
    std::uint8_t next;
    std::int8_t count;
};

constexpr std::array<std::uint8_t, 256> make_classes() {
    std::array<std::uint8_t, 256> classes{};
    for (unsigned c = 0; c < 256; ++c)
        classes[c] = is_digit(static_cast<char>(c))    ? c_digit
                     : is_letter(static_cast<char>(c)) ? c_letter
                                                       : c_other;
    classes['0'] = c_zero;
    classes['x'] = classes['X'] = c_x;
    classes['.'] = c_point;
    classes['+'] = classes['-'] = c_sign;
    classes['e'] = classes['E'] = c_e;
    for (const char c : {'d', 'D', 'q', 'Q'})
        classes[static_cast<unsigned char>(c)] = c_d;
    for (const char c : {'n', 'N', 'i', 'I'})
        classes[static_cast<unsigned char>(c)] = c_special;
    return classes;
}

using Row = std::array<Step, class_count>;

constexpr std::array<Row, state_count> make_steps() {
    std::array<Row, state_count> all{};
    // Behind no identifier: a digit begins a number, and so does a point with a digit behind it.
    Row open;
    open.fill({in_word, 0});
    open[c_other] = open[c_sign] = {between, 0};
    open[c_zero] = {in_zero, 1};
    open[c_digit] = {in_whole, 1};
    open[c_point] = {leading_point, 0};
    open[c_special] = {special, 0};
    // Behind an identifier.
    Row closed;
    closed.fill({in_word, 0});
    closed[c_other] = closed[c_sign] = {between, 0};
    closed[c_point] = {other_point, 0};
    all[between] = all[leading_point] = all[other_point] = all[exponent_sign] = all[bare_sign] =
        open;
    all[in_word] = all[in_whole] = all[behind_point] = all[exponent] = all[exponent_digits] =
        closed;
    const auto on_digits = [&](State state, Step step) {
        all[state][c_zero] = all[state][c_digit] = step;
    };
    on_digits(leading_point, {behind_point, 1});
    all[leading_point][c_point] = all[other_point][c_point] = {other_point, 0};
    all[leading_point][c_special] = all[other_point][c_special] = {in_word, 0};
    on_digits(in_whole, {in_whole, 0});
    all[in_whole][c_point] = {behind_point, 0};
    all[in_whole][c_e] = {exponent, 0};
    on_digits(behind_point, {behind_point, 0});
    all[behind_point][c_sign] = {bare_sign, 0};
    all[behind_point][c_e] = all[behind_point][c_d] = {exponent, 0};
    on_digits(exponent, {exponent_digits, 0});
    on_digits(exponent_sign, {exponent_digits, 0});
    on_digits(exponent_digits, {exponent_digits, 0});
    all[exponent][c_sign] = {exponent_sign, 0};
    // Counted as the next number until it turns out to be an exponent of three digits.
    all[bare_sign][c_zero] = {bare_zero, 1};
    all[bare_sign][c_digit] = {bare_1, 1};
    all[bare_1] = all[bare_2] = all[bare_3] = all[in_whole];
    on_digits(bare_1, {bare_2, 0});
    on_digits(bare_2, {bare_3, 0});
    on_digits(bare_3, {in_whole, 0});
    all[bare_3][c_other] = {between, -1};
    all[bare_3][c_sign] = {between, -1};
    // A zero counts until it turns out to begin 0x.
    all[in_zero] = all[in_whole];
    all[bare_zero] = all[bare_1];
    all[in_zero][c_x] = all[bare_zero][c_x] = {in_word, -1};
    return all;
}

constexpr std::array<std::uint8_t, 256> class_of = make_classes();
constexpr std::array<Row, state_count> steps = make_steps();

}  // namespace

namespace {

// The automaton on its way through a text.
struct Counter {
    const char* at;
    const char* end;
    std::size_t state = between;
    std::int64_t count = 0;

    bool goes_on() const { return at < end; }

    void step() {
        const Step one = steps[state][class_of[static_cast<unsigned char>(*at)]];
        count += one.count;
        state = one.next;
        ++at;
        if (state == special)
            take_word();
    }

    // A word that begins like nan or inf.
    void take_word() {
        const char* after = special_end(at - 1, end);
        count += after != at - 1 ? 1 : 0;
        at = std::max(after, at);
        state = in_word;
    }

    std::int64_t rest() {
        while (goes_on())
            step();
        return count - (state == bare_3 ? 1 : 0);
    }
};

}  // namespace

std::uint64_t count_numbers(std::string_view text) {
    // Each step waits for the one before, so four parts of the text are gone through at once.
    // Nothing goes on behind a line break.
    constexpr std::size_t lanes = 4;
    constexpr std::size_t worth_it = 2048;
    std::array<Counter, lanes> counters{};
    const char* begin = text.data();
    const char* const end = begin + text.size();
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const char* limit = end;
        if (lane + 1 < lanes && text.size() >= worth_it) {
            const std::size_t from = text.size() / lanes * (lane + 1);
            limit = std::max(begin, text.data() + std::min(text.find('\n', from), text.size()));
        }
        counters[lane] = {begin, limit};
        begin = limit;
    }
    const auto all_go_on = [&] {
        return counters[0].goes_on() && counters[1].goes_on() && counters[2].goes_on() &&
               counters[3].goes_on();
    };
    while (all_go_on())
        for (Counter& one : counters)
            one.step();
    std::int64_t count = 0;
    for (Counter& one : counters)
        count += one.rest();
    return static_cast<std::uint64_t>(count);
}

bool is_nan_word(std::string_view number) {
    if (!number.empty() && (number[0] == '+' || number[0] == '-'))
        number.remove_prefix(1);
    return !number.empty() && lower(number[0]) == 'n';
}

Token TokenReader::next() {
    while (at_ < line_.size() && is_blank(line_[at_]))
        ++at_;
    if (at_ == line_.size())
        return {};
    if (next_ignored_ < ignored_.size() && ignored_[next_ignored_].begin <= at_) {
        const LinePiece piece = ignored_[next_ignored_++];
        at_ = piece.end;
        return {Token::Kind::ignored, line_.substr(piece.begin, piece.end - piece.begin)};
    }
    // Words and numbers end where something ignored begins.
    const std::size_t limit =
        next_ignored_ < ignored_.size() ? ignored_[next_ignored_].begin : line_.size();
    const char* const end = line_.data() + limit;
    const char* const first = line_.data() + at_;
    const char before = at_ == 0 ? ' ' : line_[at_ - 1];
    const char* const after = number_end_ > first ? number_end_ : number_end(first, end, before);
    if (after != first)
        return take(Token::Kind::number, after);
    const WordLimit word = word_limit(first, end, before);
    number_end_ = word.number_end;
    return take(Token::Kind::word, word.end);
}

Token TokenReader::take(Token::Kind kind, const char* end) {
    const std::size_t begin = std::exchange(at_, static_cast<std::size_t>(end - line_.data()));
    return {kind, line_.substr(begin, at_ - begin)};
}

std::string template_of(std::string_view line, std::span<const LinePiece> ignored,
                        std::size_t most_bytes) {
    std::string text;
    TokenReader tokens(line, ignored);
    while (text.size() < most_bytes) {
        const Token token = tokens.next();
        if (token.kind == Token::Kind::end)
            return text;
        if (!text.empty())
            text += ' ';
        if (token.kind == Token::Kind::number)
            text += '#';
        else if (token.kind == Token::Kind::ignored)
            text += "...";
        else
            text += token.text.substr(0, most_bytes);
    }
    return text + "...";
}

}  // namespace ciwrap
