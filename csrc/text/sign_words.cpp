#include "text/sign_words.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "text/take_text.hpp"
#include "text/text_tokens.hpp"

namespace ciwrap {
namespace {

using Words = std::string_view;  // in lower case, with a blank behind each

constexpr Words months =
    "jan feb mar apr may jun jul aug sep oct nov dec january february march april june july "
    "august september october november december ";
constexpr Words weekdays =
    "mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday ";
constexpr Words time_units =
    "s sec secs second seconds ms msec millisecond milliseconds us min mins minute minutes "
    "h hr hrs hour hours d day days ";
constexpr Words memory_units =
    "b byte bytes kb mb gb tb kib mib gib tib kbyte mbyte gbyte kbytes mbytes gbytes "
    "kilobytes megabytes gigabytes ";
// What may stand, with words behind it, between a name and its number: CPU time per MD step.
constexpr Words connectors = "per for used usage spent taken is was ";

// How a date is written. Y: a year from 1900 to 2099; M D h m s: two digits each; d: a day of one
// or two; N: the name of a month; W: of a day of the week; Z: of a time zone. A blank stands for
// one or more, H for the letter.
constexpr std::array<std::string_view, 18> date_forms{
    "Y-M-D",    "Y/M/D",     "Y.M.D",         "D.M.Y",           "D/M/Y",   "M/D/Y",
    "dNY",      "d-N-Y",     "d N Y",         "N d Y",           "N d, Y",  "W d N Y",
    "W, d N Y", "W, N d, Y", "W N d h:m:s Y", "W N d h:m:s Z Y", "W N d Y", "W N d"};
constexpr std::string_view time_form = "h:m:s";
constexpr std::size_t clock_size = 8;
constexpr std::string_view minute_form = "hHm";

// Names of what stands behind them. A blank stands for a blank, - or _, or for nothing.
constexpr std::array<std::string_view, 11> time_names{
    "cpu time", "cpu",        "wall time",      "wall clock time",  "wall clock", "elapsed time",
    "elapsed",  "clock time", "execution time", "computation time", "job time"};
constexpr std::array<std::string_view, 8> memory_names{
    "resident set size", "memory", "ram", "rss", "vmpeak", "vmrss", "vmhwm", "heap"};
constexpr std::array<std::string_view, 4> process_names{"pid", "ppid", "process id", "job id"};
constexpr std::array<std::string_view, 2> host_names{"host name", "node name"};
constexpr std::array<std::string_view, 1> minute_names{"at"};

// Which pairs of letters a word of the tables begins with: most words of a log are none of them,
// and are not looked at further.
constexpr std::size_t letters = 26;
using Beginnings = std::array<bool, letters * letters>;

constexpr std::size_t pair_of(char first, char second) {
    return static_cast<std::size_t>(first - 'a') * letters + static_cast<std::size_t>(second - 'a');
}

constexpr Beginnings make_beginnings() {
    Beginnings all{};
    for (const Words words : {months, weekdays})
        for (std::size_t at = 0; at < words.size(); at = words.find(' ', at) + 1)
            all[pair_of(words[at], words[at + 1])] = true;
    const auto add = [&](const auto& names) {
        for (const std::string_view name : names)
            all[pair_of(name[0], name[1])] = true;
    };
    add(time_names);
    add(memory_names);
    add(process_names);
    add(host_names);
    add(minute_names);
    return all;
}

constexpr Beginnings beginnings = make_beginnings();

bool is_one_of(std::string_view word, Words words) {
    if (word.empty())
        return false;
    const auto is_same = [](char a, char b) { return lower(a) == b; };
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = words.find(' ', at);
        if (end - at == word.size() &&
            std::equal(word.begin(), word.end(), words.begin() + at, is_same))
            return true;
        at = end + 1;
    }
    return false;
}

// Letters without the underscore.
std::string_view word_of(std::string_view rest) {
    return leading(rest, [](char c) { return is_letter(c) && c != '_'; });
}

bool take_word(std::string_view& rest, Words words) {
    const std::string_view word = word_of(rest);
    if (!is_one_of(word, words))
        return false;
    rest.remove_prefix(word.size());
    return true;
}

// Digits, `least` to `most` of them, of a number within the limits.
bool take_number(std::string_view& rest, std::size_t least, std::size_t most, int low, int high) {
    const std::string_view digits = leading(rest, is_digit);
    if (digits.size() < least || digits.size() > most)
        return false;
    int value = 0;
    for (const char c : digits)
        value = 10 * value + (c - '0');
    rest.remove_prefix(digits.size());
    return value >= low && value <= high;
}

// A part of a form that is a number: of `least` to `most` digits, from `low` to `high`.
struct NumberPart {
    char part;
    std::size_t least;
    std::size_t most;
    int low;
    int high;
};
constexpr std::array<NumberPart, 7> number_parts{{{'Y', 4, 4, 1900, 2099},
                                                  {'M', 2, 2, 1, 12},
                                                  {'D', 2, 2, 1, 31},
                                                  {'d', 1, 2, 1, 31},
                                                  {'h', 2, 2, 0, 23},
                                                  {'m', 2, 2, 0, 59},
                                                  {'s', 2, 2, 0, 60}}};

// And what else stands for more than itself.
struct OtherPart {
    char part;
    bool (*take)(std::string_view& rest);
};
constexpr std::array<OtherPart, 5> other_parts{
    {{'N', [](std::string_view& rest) { return take_word(rest, months); }},
     {'W', [](std::string_view& rest) { return take_word(rest, weekdays); }},
     {'Z', [](std::string_view& rest) { return take_all(rest, is_letter); }},
     {'H', [](std::string_view& rest) { return take(rest, "h"); }},
     {' ', [](std::string_view& rest) { return take_all(rest, is_blank); }}}};

bool take_part(std::string_view& rest, char part) {
    for (const NumberPart& one : number_parts)
        if (one.part == part)
            return take_number(rest, one.least, one.most, one.low, one.high);
    for (const OtherPart& one : other_parts)
        if (one.part == part)
            return one.take(rest);
    return take(rest, std::string_view(&part, 1));
}

bool take_form(std::string_view& rest, std::string_view form) {
    return std::all_of(form.begin(), form.end(), [&](char part) { return take_part(rest, part); });
}

bool take_name(std::string_view& rest, std::string_view name) {
    std::string_view ahead = rest;
    for (const char c : name) {
        if (c == ' ')
            take_all(ahead, [](char one) { return is_blank(one) || one == '-' || one == '_'; });
        else if (!ahead.empty() && lower(ahead[0]) == c)
            ahead.remove_prefix(1);
        else
            return false;
    }
    if (!ahead.empty() && is_identifier(ahead[0]))
        return false;
    rest = ahead;
    return true;
}

template <std::size_t count>
bool take_any_name(std::string_view& rest, const std::array<std::string_view, count>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return take_name(rest, name); });
}

Words units_of(Quantity quantity) {
    return quantity == Quantity::time ? time_units : memory_units;
}

}  // namespace

bool may_begin_sign(std::string_view rest) {
    if (!is_digit(rest[0])) {
        const char first = lower(rest[0]);
        const char second = rest.size() > 1 ? lower(rest[1]) : ' ';
        const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
        return is_small(first) && is_small(second) && beginnings[pair_of(first, second)];
    }
    const std::size_t size = leading(rest, is_digit).size();
    const char next = size < rest.size() ? rest[size] : ' ';
    const bool is_blank_before_word =
        is_blank(next) && size + 1 < rest.size() && is_letter(rest[size + 1]);
    return size <= 4 &&
           (is_blank_before_word || is_letter(next) ||
            (next > ' ' && std::string_view("-/.:").find(next) != std::string_view::npos));
}

bool is_among(char c, std::string_view characters) {
    return characters.find(c) != std::string_view::npos;
}

bool take_date(std::string_view& rest) {
    for (const std::string_view form : date_forms) {
        std::string_view behind = rest;
        if (take_form(behind, form)) {
            rest = behind;
            return true;
        }
    }
    return false;
}

bool take_clock(std::string_view& rest) {
    return take_form(rest, time_form);
}

bool take_padded_clock(std::string_view& rest) {
    std::string clock(rest.substr(0, clock_size));
    for (std::size_t tens = 0; tens < clock.size(); tens += 3)
        if (clock[tens] == ' ')
            clock[tens] = '0';
    std::string_view padded = clock;
    if (!take_clock(padded))
        return false;
    rest.remove_prefix(clock_size);
    return true;
}

bool take_minute_name(std::string_view& rest) {
    std::string_view behind = rest;
    if (!take_any_name(behind, minute_names) || !take_all(behind, is_blank))
        return false;
    rest = behind;
    return true;
}

bool take_minute(std::string_view& rest) {
    return take_form(rest, minute_form);
}

// Fraction and zone, which angles could have as well.
void take_clock_end(std::string_view& rest) {
    if (rest.size() > 1 && is_among(rest[0], ".,") && is_digit(rest[1])) {
        rest.remove_prefix(1);
        take_all(rest, is_digit);
    }
    std::string_view zone = rest;
    if (take(zone, "Z")) {
        rest = zone;
    } else if ((take(zone, "+") || take(zone, "-")) && take_part(zone, 'h')) {
        take(zone, ":");
        if (take_part(zone, 'm'))
            rest = zone;
    }
}

bool take_address(std::string_view& rest) {
    for (int group = 0; group < 4; ++group)
        if ((group > 0 && !take(rest, ".")) || !take_number(rest, 1, 3, 0, 255))
            return false;
    return true;
}

bool take_quantity_name(std::string_view& rest, Quantity quantity) {
    return quantity == Quantity::time ? take_any_name(rest, time_names)
                                      : take_any_name(rest, memory_names);
}

bool take_process_name(std::string_view& rest) {
    return take_any_name(rest, process_names);
}

bool take_host_name(std::string_view& rest) {
    if (take_any_name(rest, host_names)) {
        take_all(rest, is_blank);
        take(rest, ":") || take(rest, "=");
        return true;
    }
    if (!take_name(rest, "host"))
        return false;
    take_all(rest, is_blank);
    return take(rest, ":");
}

void take_connector(std::string_view& rest) {
    std::string_view ahead = rest;
    take_all(ahead, is_blank);
    if (!is_one_of(word_of(ahead), connectors))
        return;
    rest = ahead;
    take_all(rest, [](char c) { return is_letter(c) || is_blank(c) || c == '-'; });
}

bool take_unit(std::string_view& rest, Quantity quantity) {
    std::string_view ahead = rest;
    take_all(ahead, is_blank);
    const bool has_word = take(ahead, "in ");
    if (!has_word && !take(ahead, "[") && !take(ahead, "("))
        return false;
    if (!take_word(ahead, units_of(quantity)) ||
        !(has_word || take(ahead, "]") || take(ahead, ")")))
        return false;
    rest = ahead;
    return true;
}

bool take_measure(std::string_view& rest, Quantity quantity) {
    const Words units = units_of(quantity);
    bool is_any = false;
    for (;;) {
        std::string_view ahead = rest;
        take_all(ahead, [&](char c) { return is_any && is_blank(c); });
        if (ahead.empty() || !is_digit(ahead[0]))
            return is_any;
        ahead.remove_prefix(static_cast<std::size_t>(
            number_end(ahead.data(), ahead.data() + ahead.size(), ' ') - ahead.data()));
        take_all(ahead, is_blank);
        const std::string_view unit = word_of(ahead);
        ahead.remove_prefix(unit.size());
        const bool goes_on = !ahead.empty() && is_digit(ahead[0]);
        if (!is_one_of(unit, units) && !(unit == "m" && goes_on))
            return is_any;
        if (!ahead.empty() && !goes_on && (is_identifier(ahead[0]) || is_among(ahead[0], "^*/")))
            return is_any;
        rest = ahead;
        is_any = true;
    }
}

bool take_duration(std::string_view& rest) {
    std::string_view ahead = rest;
    if (!take_number(ahead, 1, 4, 0, 9999) || !take_form(ahead, ":m:s"))
        return false;
    if (take(ahead, "."))
        take_all(ahead, is_digit);
    if (!ahead.empty() && (is_identifier(ahead[0]) || ahead[0] == ':'))
        return false;
    rest = ahead;
    return true;
}

}  // namespace ciwrap
