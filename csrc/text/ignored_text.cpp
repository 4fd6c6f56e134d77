#include "text/ignored_text.hpp"

#include <algorithm>
#include <string>

#include "ciwrap/error.hpp"
#include "text/sign_words.hpp"
#include "text/take_text.hpp"
#include "text/text_readings.hpp"

namespace ciwrap {
namespace {

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
    // The character so many before the last one.
    char before(std::size_t back = 0) const { return at_ <= back ? ' ' : line_[at_ - back - 1]; }
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
        if (may_begin_sign(rest()) && (date() || clock() || padded_clock() || address()))
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
        std::string_view between = line_.substr(date_end_, at_ - date_end_);
        take_all(between, is_blank);
        take(between, "at");  // 2026/11/22 at 10:01:17.386
        return date_end_ > 0 &&
               (between == "T" || std::all_of(between.begin(), between.end(), is_blank));
    }

    static bool is_before_date(std::string_view behind) {
        return take_all(behind, is_blank) && take_date(behind) && ends(behind, "-+/.:'");
    }

    bool date() {
        std::string_view behind = rest();
        if (is_among(before(), ".-+/:'") || !take_date(behind))
            return false;
        const bool has_time = behind.size() > 1 && behind[0] == 'T' && is_digit(behind[1]);
        if (!has_time && !ends(behind, "-+/.:'"))
            return false;
        cover(rest(), behind, ignore_dates);
        date_end_ = at_;
        at_ += has_time ? 1 : 0;
        return true;
    }

    bool clock() {
        const bool has_date = is_behind_date();
        std::string_view behind = rest();
        if ((!has_date && is_among(before(), ".-+/:'")) || !take_clock(behind))
            return false;
        if (has_date)
            take_clock_end(behind);
        return ends(behind) && cover(rest(), behind, ignore_times);
    }

    // 23: 5:20  30Nov2026. Only beside a date: ratios are printed so as well.
    bool padded_clock() {
        const bool is_hour_padded =
            at_ > 0 && before() == ' ' && leading(rest(), is_digit).size() == 1;
        const std::size_t blanks = is_hour_padded ? 1 : 0;
        std::string_view behind = line_.substr(at_ - blanks);
        if (is_among(before(blanks), ".-+/:'") || !take_padded_clock(behind) ||
            behind.starts_with(':') || !ends(behind))
            return false;
        return (is_behind_date() || is_before_date(behind)) && cover(rest(), behind, ignore_times);
    }

    // 10.0.0.17
    bool address() {
        std::string_view behind = rest();
        if (is_among(before(), ".-+,'") || !take_address(behind))
            return false;
        const bool has_port = !behind.empty() && behind[0] == ':';
        return (has_port || ends(behind)) && cover(rest(), behind, ignore_hosts);
    }

    // at 16h28
    bool minute(std::string_view behind) {
        std::string_view end = behind;
        return take_minute(end) && ends(end) && cover(behind, end, ignore_times);
    }

    bool name() {
        std::string_view behind = rest();
        if (take_minute_name(behind))
            return minute(behind);
        if (take_quantity_name(behind, Quantity::time))
            return measure(Quantity::time, behind);
        if (take_quantity_name(behind, Quantity::memory))
            return measure(Quantity::memory, behind);
        return take_process_name(behind) ? process(behind) : host(behind);
    }

    // What is directly behind the name of a quantity, and directly beside a unit of it.
    bool measure(Quantity quantity, std::string_view behind) {
        take_connector(behind);
        const bool has_unit = take_unit(behind, quantity);
        if (!take_all(behind, [](char c) { return is_blank(c) || is_among(c, ":=.<>~"); }) ||
            behind.empty() || !is_digit(behind[0]))
            return false;
        std::string_view end = behind;
        if (quantity == Quantity::time && take_duration(end))
            return cover(behind, end, ignore_times);
        if (has_unit)
            end.remove_prefix(number_size(end));
        else if (!take_measure(end, quantity))
            return false;
        const IgnoredSets set = quantity == Quantity::time ? ignore_times : ignore_memory;
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
        std::string_view behind = rest();
        if (is_among(before(), ".-+") || !take_measure(behind, Quantity::time) ||
            !is_number_of_its_own(rest()))
            return false;
        std::string_view ahead = behind;
        take_all(ahead, is_blank);
        return take_quantity_name(ahead, Quantity::time) && cover(rest(), behind, ignore_times);
    }

    bool process(std::string_view behind) {
        if (!take_all(behind, [](char c) { return is_blank(c) || is_among(c, ":=#"); }))
            return false;
        std::string_view end = behind;
        return take_all(end, is_digit) && ends(end) && cover(behind, end, ignore_pids);
    }

    bool host(std::string_view behind) {
        if (!take_host_name(behind))
            return false;
        take_all(behind, [](char c) { return is_blank(c) || is_among(c, "\"'"); });
        if (behind.empty() || !is_letter(behind[0]) || number_size(behind) > 0)
            return false;
        std::string_view end = behind;
        take_all(end, [](char c) { return is_identifier(c) || is_among(c, "-."); });
        return cover(behind, end, ignore_hosts);
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
