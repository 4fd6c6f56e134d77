#include "text/ignored_text.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "ciwrap/error.hpp"
#include "text/take_text.hpp"
#include "text/text_readings.hpp"

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
// one or more.
constexpr std::array<std::string_view, 18> date_forms{
    "Y-M-D",    "Y/M/D",     "Y.M.D",         "D.M.Y",           "D/M/Y",   "M/D/Y",
    "dNY",      "d-N-Y",     "d N Y",         "N d Y",           "N d, Y",  "W d N Y",
    "W, d N Y", "W, N d, Y", "W N d h:m:s Y", "W N d h:m:s Z Y", "W N d Y", "W N d"};
constexpr std::string_view time_form = "h:m:s";

// Names of what stands behind them. A blank stands for a blank, - or _, or for nothing.
constexpr std::array<std::string_view, 9> time_names{
    "cpu time",     "cpu",     "wall time",  "wall clock time", "wall clock",
    "elapsed time", "elapsed", "clock time", "execution time"};
constexpr std::array<std::string_view, 8> memory_names{
    "resident set size", "memory", "ram", "rss", "vmpeak", "vmrss", "vmhwm", "heap"};
constexpr std::array<std::string_view, 4> process_names{"pid", "ppid", "process id", "job id"};
constexpr std::array<std::string_view, 2> host_names{"host name", "node name"};

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
    return all;
}

constexpr Beginnings beginnings = make_beginnings();

// Whether a sign may begin with a letter, or with the digits of a date, a time or an address.
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

bool is_among(char c, std::string_view characters) {
    return characters.find(c) != std::string_view::npos;
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

bool take_part(std::string_view& rest, char part) {
    switch (part) {
        case 'Y':
            return take_number(rest, 4, 4, 1900, 2099);
        case 'M':
            return take_number(rest, 2, 2, 1, 12);
        case 'D':
            return take_number(rest, 2, 2, 1, 31);
        case 'd':
            return take_number(rest, 1, 2, 1, 31);
        case 'h':
            return take_number(rest, 2, 2, 0, 23);
        case 'm':
            return take_number(rest, 2, 2, 0, 59);
        case 's':
            return take_number(rest, 2, 2, 0, 60);
        case 'N':
            return take_word(rest, months);
        case 'W':
            return take_word(rest, weekdays);
        case 'Z':
            return take_all(rest, is_letter);
        case ' ':
            return take_all(rest, is_blank);
        default:
            return take(rest, std::string_view(&part, 1));
    }
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

// 3.2 s, 1m23.45s, 12 MB: numbers with a unit behind each.
bool take_measure(std::string_view& rest, Words units) {
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

// 0:00:03, 12:30:01.5
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

// Reads a line once, from front to back.
class Finder {
  public:
    Finder(std::string_view line, unsigned sets, std::vector<LinePiece>& pieces)
        : line_(line), sets_(sets), pieces_(pieces) {}

    void find() {
        while (at_ < line_.size()) {
            const char c = line_[at_];
            if (is_among(c, "/.~") ? path() : is_identifier(c) && sign())
                continue;
            ++at_;
            // What follows an identifier begins nothing.
            while (is_identifier(c) && at_ < line_.size() && is_identifier(line_[at_]))
                ++at_;
        }
    }

  private:
    std::string_view rest() const { return line_.substr(at_); }
    char before() const { return at_ == 0 ? ' ' : line_[at_ - 1]; }
    std::size_t offset(std::string_view part) const {
        return static_cast<std::size_t>(part.data() - line_.data());
    }

    // Takes the line from `begin` up to where `behind` begins. Always true.
    bool cover(std::string_view begin, std::string_view behind, IgnoredSets set) {
        if ((sets_ & set) != 0)
            pieces_.push_back({offset(begin), offset(behind), set});
        at_ = offset(behind);
        return true;
    }

    bool sign() {
        if (may_begin_sign(rest()) && (date() || time() || address()))
            return true;
        return is_digit(line_[at_]) ? measure_before_name() : may_begin_sign(rest()) && name();
    }

    // Whether a date, a time or a whole number ends here: no digit goes on behind one of the marks.
    static bool ends(std::string_view behind, std::string_view marks = "-+/.:',") {
        if (behind.empty())
            return true;
        const bool goes_on = behind.size() > 1 && is_digit(behind[1]);
        return !is_identifier(behind[0]) && !(goes_on && is_among(behind[0], marks));
    }

    bool is_behind_date() const {
        const std::string_view between = line_.substr(date_end_, at_ - date_end_);
        return date_end_ > 0 &&
               (between == "T" || std::all_of(between.begin(), between.end(), is_blank));
    }

    bool date() {
        if (is_among(before(), ".-+/:'"))
            return false;
        for (const std::string_view form : date_forms) {
            std::string_view behind = rest();
            if (!take_form(behind, form))
                continue;
            const bool has_time = behind.size() > 1 && behind[0] == 'T' && is_digit(behind[1]);
            if (!has_time && !ends(behind, "-+/.:'"))
                continue;
            cover(rest(), behind, ignore_dates);
            date_end_ = at_;
            at_ += has_time ? 1 : 0;
            return true;
        }
        return false;
    }

    bool time() {
        const bool has_date = is_behind_date();
        std::string_view behind = rest();
        if ((!has_date && is_among(before(), ".-+/:'")) || !take_form(behind, time_form))
            return false;
        if (has_date)
            take_zone(behind);
        return ends(behind) && cover(rest(), behind, ignore_times);
    }

    // Fraction and zone, which angles could have as well: behind a date alone.
    static void take_zone(std::string_view& behind) {
        if (behind.size() > 1 && is_among(behind[0], ".,") && is_digit(behind[1])) {
            behind.remove_prefix(1);
            take_all(behind, is_digit);
        }
        std::string_view zone = behind;
        if (take(zone, "Z"))
            behind = zone;
        else if ((take(zone, "+") || take(zone, "-")) && take_part(zone, 'h')) {
            take(zone, ":");
            if (take_part(zone, 'm'))
                behind = zone;
        }
    }

    bool name() {
        std::string_view behind = rest();
        if (take_any_name(behind, time_names))
            return measure(ignore_times, behind);
        if (take_any_name(behind, memory_names))
            return measure(ignore_memory, behind);
        if (take_any_name(behind, process_names))
            return process(behind);
        return host(behind);
    }

    static Words units_of(IgnoredSets set) {
        return set == ignore_times ? time_units : memory_units;
    }

    // [s], (kbytes), in seconds
    static bool take_unit_before(std::string_view& rest, Words units) {
        std::string_view ahead = rest;
        take_all(ahead, is_blank);
        const bool has_word = take(ahead, "in ");
        if (!has_word && !take(ahead, "[") && !take(ahead, "("))
            return false;
        take(ahead, "in ");
        if (!take_word(ahead, units) || !(has_word || take(ahead, "]") || take(ahead, ")")))
            return false;
        rest = ahead;
        return true;
    }

    // What is directly behind the name of a time or of memory, and directly beside a unit.
    bool measure(IgnoredSets set, std::string_view behind) {
        std::string_view ahead = behind;
        take_all(ahead, is_blank);
        if (is_one_of(word_of(ahead), connectors)) {
            behind = ahead;
            take_all(behind, [](char c) { return is_letter(c) || is_blank(c) || c == '-'; });
        }
        const bool has_unit = take_unit_before(behind, units_of(set));
        if (!take_all(behind, [](char c) { return is_blank(c) || is_among(c, ":=.<>~"); }) ||
            behind.empty() || !is_digit(behind[0]))
            return false;
        std::string_view end = behind;
        if (set == ignore_times && take_duration(end))
            return cover(behind, end, set);
        if (has_unit)
            end.remove_prefix(number_size(end));
        else if (!take_measure(end, units_of(set)))
            return false;
        return is_number_of_its_own(behind) && cover(behind, end, set);
    }

    static std::size_t number_size(std::string_view text) {
        return static_cast<std::size_t>(number_end(text.data(), text.data() + text.size(), ' ') -
                                        text.data());
    }

    bool is_number_of_its_own(std::string_view number) const {
        return stands_alone({line_, number.substr(0, number_size(number))});
    }

    // 0.05s CPU
    bool measure_before_name() {
        if (is_among(before(), ".-+"))
            return false;
        std::string_view behind = rest();
        if (!take_measure(behind, time_units) || !is_number_of_its_own(rest()))
            return false;
        std::string_view ahead = behind;
        take_all(ahead, is_blank);
        return take_any_name(ahead, time_names) && cover(rest(), behind, ignore_times);
    }

    bool process(std::string_view behind) {
        if (!take_all(behind, [](char c) { return is_blank(c) || is_among(c, ":=#"); }))
            return false;
        std::string_view end = behind;
        return take_all(end, is_digit) && ends(end) && cover(behind, end, ignore_pids);
    }

    // hostname n7, hostname = n7, host: n7
    bool host(std::string_view behind) {
        const bool is_sure = take_any_name(behind, host_names);
        if (!is_sure && !take_name(behind, "host"))
            return false;
        take_all(behind, is_blank);
        if (!take(behind, ":") && !is_sure)
            return false;
        take_all(behind, [](char c) { return is_blank(c) || is_among(c, "=\"'"); });
        if (behind.empty() || !is_letter(behind[0]) || number_size(behind) > 0)
            return false;
        std::string_view end = behind;
        take_all(end, [](char c) { return is_identifier(c) || is_among(c, "-."); });
        return cover(behind, end, ignore_hosts);
    }

    // 10.0.0.17
    bool address() {
        std::string_view behind = rest();
        if (is_among(before(), ".-+,'"))
            return false;
        for (int group = 0; group < 4; ++group)
            if ((group > 0 && !take(behind, ".")) || !take_number(behind, 1, 3, 0, 255))
                return false;
        const bool has_port = !behind.empty() && behind[0] == ':';
        return (has_port || ends(behind)) && cover(rest(), behind, ignore_hosts);
    }

    // /home/a, ./b, ../c, ~/d
    bool path() {
        if (!is_blank(before()) && !is_among(before(), "\"'=:(<[,;"))
            return false;
        std::string_view behind = rest();
        const bool is_relative = take(behind, "./") || take(behind, "../") || take(behind, "~/");
        if ((!is_relative && !take(behind, "/")) || behind.empty() ||
            !(is_letter(behind[0]) || behind[0] == '.'))
            return false;
        const std::string_view within = behind;
        take_all(behind, [](char c) {
            return is_identifier(c) || is_among(c, "/.-+~@%") ||
                   static_cast<unsigned char>(c) > 127;
        });
        const std::string_view folders = within.substr(0, within.size() - behind.size());
        return (is_relative || folders.find('/') != std::string_view::npos) &&
               cover(rest(), behind, ignore_paths);
    }

    std::string_view line_;
    unsigned sets_;
    std::vector<LinePiece>& pieces_;
    std::size_t at_ = 0;
    std::size_t date_end_ = 0;  // behind the last date
};

}  // namespace

IgnoredSets ignored_set(std::string_view name) {
    for (const NamedIgnoredSet& one : named_ignored_sets)
        if (one.name == name)
            return one.set;
    throw Error(
        ErrorCode::invalid_argument,
        "'" + std::string(name) + "' is not one of dates, times, paths, hosts, pids, memory");
}

void find_ignored(std::string_view line, unsigned sets, std::vector<LinePiece>& pieces) {
    pieces.clear();
    if (sets != 0)
        Finder(line, sets, pieces).find();
}

}  // namespace ciwrap
