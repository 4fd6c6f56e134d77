#include "text/ignored_text.hpp"

#include <algorithm>
#include <optional>

#include "ciwrap/error.hpp"

namespace ciwrap {
namespace {

bool is_same_word(std::string_view word, std::string_view lower_case) {
    return word.size() == lower_case.size() &&
           std::equal(word.begin(), word.end(), lower_case.begin(),
                      [](char a, char b) { return lower(a) == b; });
}

template <std::size_t count>
bool is_one_of(std::string_view word, const std::array<std::string_view, count>& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view one) { return is_same_word(word, one); });
}

constexpr std::array<std::string_view, 23> months{
    "jan",  "feb",  "mar",    "apr",       "may",     "jun",      "jul",     "aug",
    "sep",  "oct",  "nov",    "dec",       "january", "february", "march",   "april",
    "june", "july", "august", "september", "october", "november", "december"};
constexpr std::array<std::string_view, 14> weekdays{
    "mon",    "tue",     "wed",       "thu",      "fri",    "sat",      "sun",
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
constexpr std::array<std::string_view, 20> time_units{
    "s",  "sec", "secs", "second", "seconds", "ms", "msec", "millisecond", "milliseconds", "us",
    "ns", "min", "mins", "minute", "minutes", "h",  "hour", "hours",       "hrs",          "days"};
constexpr std::array<std::string_view, 13> timing_words{
    "cpu",     "wall",    "walltime", "wallclock", "elapsed", "timing", "timings",
    "runtime", "seconds", "cputime",  "clock",     "timer",   "timers"};
constexpr std::array<std::string_view, 18> memory_units{
    "b",   "byte", "bytes", "kb",    "mb",    "gb",     "tb",     "kib",    "mib",
    "gib", "tib",  "kbyte", "mbyte", "gbyte", "kbytes", "mbytes", "gbytes", "kilobytes"};
constexpr std::array<std::string_view, 6> memory_words{"memory", "rss",  "vmpeak",
                                                       "vmrss",  "heap", "memusage"};
constexpr std::array<std::string_view, 4> host_words{"host", "hostname", "node", "nodename"};

// What a line is made of for the sets: runs of letters, runs of digits, single other characters.
struct Piece {
    enum class Kind : std::uint8_t { word, digits, mark };
    Kind kind;
    std::size_t begin;
    std::size_t end;
    bool follows_blank;
};

class Line {
  public:
    Line(std::string_view text, std::vector<Piece>& room) : text_(text), pieces_(room) {
        pieces_.clear();
        bool blank = true;
        for (std::size_t at = 0; at < text.size();) {
            if (is_blank(text[at])) {
                blank = true;
                ++at;
                continue;
            }
            const auto same = is_digit(text[at])    ? &is_digit
                              : is_letter(text[at]) ? &is_letter
                                                    : nullptr;
            std::size_t end = at + 1;
            while (same != nullptr && end < text.size() && same(text[end]))
                ++end;
            const Piece::Kind kind = same == &is_digit    ? Piece::Kind::digits
                                     : same == &is_letter ? Piece::Kind::word
                                                          : Piece::Kind::mark;
            pieces_.push_back({kind, at, end, blank});
            at = end;
            blank = false;
        }
    }

    std::size_t size() const { return pieces_.size(); }
    const Piece& operator[](std::size_t i) const { return pieces_[i]; }
    std::string_view text(std::size_t i) const {
        return text_.substr(pieces_[i].begin, pieces_[i].end - pieces_[i].begin);
    }
    std::string_view whole() const { return text_; }
    bool is_word(std::size_t i) const { return i < size() && pieces_[i].kind == Piece::Kind::word; }
    // Digits, between `least` and `most` of them.
    bool is_digits(std::size_t i, std::size_t least, std::size_t most) const {
        if (i >= size() || pieces_[i].kind != Piece::Kind::digits)
            return false;
        const std::size_t length = pieces_[i].end - pieces_[i].begin;
        return length >= least && length <= most;
    }
    // A single character right behind the piece before it.
    bool is_mark(std::size_t i, std::string_view marks) const {
        return i < size() && pieces_[i].kind == Piece::Kind::mark && !pieces_[i].follows_blank &&
               marks.find(text_[pieces_[i].begin]) != std::string_view::npos;
    }
    // Whether nothing stands between a piece and the one before it.
    bool is_joined(std::size_t i) const { return i < size() && !pieces_[i].follows_blank; }

  private:
    std::string_view text_;
    std::vector<Piece>& pieces_;
};

// Each finder below returns how many pieces from `i` on its set covers; 0: none.

// 2026-11-22, 22.11.2026, 11/22/26.
std::size_t numeric_date(const Line& line, std::size_t i) {
    const bool year_first = line.is_digits(i, 4, 4);
    if (!year_first && !line.is_digits(i, 1, 2))
        return 0;
    if (i > 0 && line.is_joined(i) && line.is_mark(i - 1, "-/."))
        return 0;
    if (!line.is_mark(i + 1, "-/.") || !line.is_digits(i + 2, 1, 2) || !line.is_joined(i + 2) ||
        !line.is_mark(i + 3, "-/.") || !line.is_joined(i + 4) ||
        line.text(i + 1) != line.text(i + 3))
        return 0;
    const bool fits = year_first ? line.is_digits(i + 4, 1, 2)
                                 : line.is_digits(i + 4, 4, 4) ||
                                       (line.text(i + 1) == "/" && line.is_digits(i + 4, 2, 2));
    return fits ? 5 : 0;
}

// Nov 22 2026, 22 Nov 2026, 22-NOV-2026, Sun Nov 22, Sunday.
std::size_t named_date(const Line& line, std::size_t i) {
    const std::size_t first = i;
    if (line.is_word(i) && is_one_of(line.text(i), weekdays)) {
        ++i;
        if (i < line.size() && line.text(i) == ",")
            ++i;
        if (!line.is_word(i) && !line.is_digits(i, 1, 2))
            return i - first;
    }
    const std::size_t begin = i;
    if (line.is_digits(i, 1, 2)) {
        ++i;
        i += line.is_mark(i, "-./") ? 1 : 0;
    }
    if (!line.is_word(i) || !is_one_of(line.text(i), months))
        return begin - first;
    const bool day_first = i > begin;
    ++i;
    i += line.is_mark(i, "-./,") ? 1 : 0;
    if (!day_first) {
        if (!line.is_digits(i, 1, 2))
            return begin - first;
        ++i;
        i += line.is_mark(i, ",") ? 1 : 0;
    }
    if (line.is_digits(i, 4, 4))
        ++i;
    return i - first;
}

// 12:30, 12:30:01.5, and a zone behind it.
std::size_t clock_time(const Line& line, std::size_t i) {
    const std::size_t first = i;
    if (!line.is_digits(i, 1, 4) || !line.is_mark(i + 1, ":") || !line.is_digits(i + 2, 2, 2) ||
        !line.is_joined(i + 2))
        return 0;
    i += 3;
    if (line.is_mark(i, ":") && line.is_digits(i + 1, 2, 2) && line.is_joined(i + 1))
        i += 2;
    if (line.is_mark(i, ".,") && line.is_digits(i + 1, 1, 9) && line.is_joined(i + 1))
        i += 2;
    constexpr std::array<std::string_view, 7> zones{"z", "utc", "gmt", "cet", "cest", "am", "pm"};
    if (line.is_word(i) && is_one_of(line.text(i), zones))
        return i + 1 - first;
    if (line.is_mark(i, "+-") && line.is_digits(i + 1, 2, 4) && line.is_joined(i + 1)) {
        i += 2;
        if (line.is_mark(i, ":") && line.is_digits(i + 1, 2, 2))
            i += 2;
    }
    return i - first;
}

// /home/a, ./b, ../c, ~/d: up to the next blank, quote or bracket.
std::optional<LinePiece> path(std::string_view line, std::size_t at) {
    const char before = at == 0 ? ' ' : line[at - 1];
    if (!is_blank(before) && std::string_view("\"'=:(<[,;").find(before) == std::string_view::npos)
        return std::nullopt;
    const std::string_view rest = line.substr(at);
    const bool begins = rest.starts_with("./") || rest.starts_with("../") ||
                        rest.starts_with("~/") ||
                        (rest.size() > 1 && rest[0] == '/' && is_identifier(rest[1]));
    if (!begins)
        return std::nullopt;
    std::size_t end = at;
    while (end < line.size() && !is_blank(line[end]) &&
           std::string_view("\"'<>()[],;").find(line[end]) == std::string_view::npos)
        ++end;
    return LinePiece{at, end};
}

// 10.0.0.1, node7.cluster.example.org: words and digits with two points or more between them.
std::size_t host_name(const Line& line, std::size_t i) {
    if (i > 0 && line.is_joined(i))
        return 0;
    std::size_t at = i;
    std::size_t points = 0;
    bool has_letter = false;
    bool has_number = false;
    while (at < line.size() && (at == i || line.is_joined(at))) {
        const bool is_point = line.is_mark(at, ".") && at > i;
        if (is_point && !line.is_joined(at + 1))
            break;
        if (!is_point && line[at].kind == Piece::Kind::mark && line.text(at) != "-")
            break;
        points += is_point ? 1 : 0;
        has_letter |= line.is_word(at);
        has_number |= line.is_digits(at, 1, 3);
        ++at;
    }
    const bool is_address = points == 3 && has_number && !has_letter;
    return (points >= 2 && has_letter) || is_address ? at - i : 0;
}

// How many pieces the word after `host` takes, and where it begins.
std::optional<LinePiece> named_host(const Line& line, std::size_t i) {
    if (!line.is_word(i) || !is_one_of(line.text(i), host_words))
        return std::nullopt;
    std::size_t at = i + 1;
    if (line.is_word(at) && is_same_word(line.text(at), "name"))
        ++at;
    while (at < line.size() && (line.text(at) == ":" || line.text(at) == "="))
        ++at;
    if (!line.is_word(at))
        return std::nullopt;
    const std::size_t begin = line[at].begin;
    std::size_t end = begin;
    const std::string_view text = line.whole();
    while (end < text.size() && !is_blank(text[end]) && text[end] != ',' && text[end] != ')')
        ++end;
    return LinePiece{begin, end};
}

// pid 17, PID: 17, process id 17, job id = 17, jobid 17, [17] behind a word of these.
std::optional<LinePiece> process(const Line& line, std::size_t i) {
    if (!line.is_word(i))
        return std::nullopt;
    std::size_t at = i + 1;
    constexpr std::array<std::string_view, 4> words{"pid", "jobid", "processid", "ppid"};
    constexpr std::array<std::string_view, 2> owners{"process", "job"};
    if (!is_one_of(line.text(i), words)) {
        const bool has_id = is_one_of(line.text(i), owners) && line.is_word(at) &&
                            is_same_word(line.text(at), "id");
        if (!has_id)
            return std::nullopt;
        ++at;
    }
    while (at < line.size() && line[at].kind == Piece::Kind::mark)
        ++at;
    if (at >= line.size() || line[at].kind != Piece::Kind::digits)
        return std::nullopt;
    return LinePiece{line[at].begin, line[at].end};
}

template <std::size_t count>
bool speaks_of(const Line& line, const std::array<std::string_view, count>& words) {
    for (std::size_t i = 0; i < line.size(); ++i)
        if (line.is_word(i) && is_one_of(line.text(i), words))
            return true;
    return false;
}

bool speaks_of_time(const Line& line) {
    if (speaks_of(line, timing_words))
        return true;
    // ns/day, s/step, loop time, time per ..., total time, run time.
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        if (!line.is_word(i))
            continue;
        const std::string_view word = line.text(i);
        const std::string_view next = line.text(i + 1);
        constexpr std::array<std::string_view, 5> before{"loop", "total", "run", "execution",
                                                         "computing"};
        constexpr std::array<std::string_view, 3> after{"per", "spent", "taken"};
        if ((is_same_word(next, "time") && is_one_of(word, before)) ||
            (is_same_word(word, "time") && is_one_of(next, after)))
            return true;
        constexpr std::array<std::string_view, 6> rates{"ns", "hours", "timesteps",
                                                        "s",  "steps", "katom"};
        constexpr std::array<std::string_view, 5> per{"day", "ns", "s", "step", "second"};
        if (next == "/" && line.is_word(i + 2) && is_one_of(word, rates) &&
            is_one_of(line.text(i + 2), per))
            return true;
    }
    return false;
}

class Finder {
  public:
    Finder(std::string_view text, unsigned sets, std::vector<LinePiece>& pieces,
           std::vector<Piece>& room)
        : text_(text), sets_(sets), pieces_(pieces), line_(text, room) {}

    void find() {
        for (std::size_t i = 0; i < line_.size(); ++i)
            at_piece(i);
        for (std::size_t at = 0; (sets_ & ignore_paths) != 0 && at < text_.size(); ++at)
            if (const auto found = path(text_, at)) {
                pieces_.push_back(*found);
                at = found->end;
            }
        const bool times = (sets_ & ignore_times) != 0 && speaks_of_time(line_);
        const bool memory = (sets_ & ignore_memory) != 0 && speaks_of(line_, memory_words);
        numbers(times || memory);
        merge();
    }

  private:
    void at_piece(std::size_t i) {
        if ((sets_ & ignore_dates) != 0) {
            take(i, numeric_date(line_, i));
            take(i, named_date(line_, i));
        }
        if ((sets_ & ignore_times) != 0)
            take(i, clock_time(line_, i));
        if ((sets_ & ignore_hosts) != 0) {
            take(i, host_name(line_, i));
            if (const auto found = named_host(line_, i))
                pieces_.push_back(*found);
        }
        if ((sets_ & ignore_pids) != 0)
            if (const auto found = process(line_, i))
                pieces_.push_back(*found);
    }

    void take(std::size_t i, std::size_t count) {
        if (count > 0)
            pieces_.push_back({line_[i].begin, line_[i + count - 1].end});
    }

    // Numbers by their unit; with all_of_them each number of the line.
    void numbers(bool all_of_them) {
        if (!all_of_them && (sets_ & (ignore_times | ignore_memory)) == 0)
            return;
        char before = ' ';
        const char* end = text_.data() + text_.size();
        for (const char* at = text_.data(); at < end;) {
            const char* after = number_end(at, end, before);
            if (after == at) {
                before = *at++;
                continue;
            }
            if (all_of_them || has_unit(after, end))
                pieces_.push_back({static_cast<std::size_t>(at - text_.data()),
                                   static_cast<std::size_t>(after - text_.data())});
            before = after[-1];
            at = after;
        }
    }

    bool has_unit(const char* after, const char* end) const {
        if (after < end && is_blank(*after))
            ++after;
        if (after < end && (*after == '[' || *after == '('))
            ++after;
        const char* last = after;
        while (last < end && is_identifier(*last))
            ++last;
        const std::string_view unit(after, static_cast<std::size_t>(last - after));
        return ((sets_ & ignore_times) != 0 && is_one_of(unit, time_units)) ||
               ((sets_ & ignore_memory) != 0 && is_one_of(unit, memory_units));
    }

    void merge() {
        std::sort(pieces_.begin(), pieces_.end(),
                  [](const LinePiece& a, const LinePiece& b) { return a.begin < b.begin; });
        std::size_t kept = 0;
        for (const LinePiece& one : pieces_) {
            if (kept > 0 && one.begin <= pieces_[kept - 1].end)
                pieces_[kept - 1].end = std::max(pieces_[kept - 1].end, one.end);
            else
                pieces_[kept++] = one;
        }
        pieces_.resize(kept);
    }

    std::string_view text_;
    unsigned sets_;
    std::vector<LinePiece>& pieces_;
    Line line_;
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
    if (sets == 0)
        return;
    static thread_local std::vector<Piece> room;
    Finder(line, sets, pieces, room).find();
}

}  // namespace ciwrap
