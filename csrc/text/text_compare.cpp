#include "text/text_compare.hpp"

#include <algorithm>
#include <optional>

#include "ciwrap/error.hpp"
#include "text/align_lines.hpp"
#include "text/left_out.hpp"
#include "text/line_compare.hpp"
#include "text/line_index.hpp"
#include "text/same_templates.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t refill_below = std::size_t{64} << 10;
constexpr std::size_t refill_to = std::size_t{256} << 10;
constexpr std::size_t first_window = std::size_t{64} << 10;
constexpr std::size_t most_window_lines = std::size_t{1} << 17;

class TextComparer {
  public:
    TextComparer(TextSource& golden, TextSource& value, const TextOptions& options,
                 const Interrupt& interrupt)
        : options_(options),
          interrupt_(interrupt),
          golden_text_(golden),
          value_text_(value),
          golden_(golden),
          value_(value),
          left_out_(options.left_out),
          lines_(options.bound, left_out_),
          notes_(left_out_, options.most_groups) {
        if (options.window_bytes < 2 * most_line_bytes)
            throw Error(ErrorCode::invalid_argument, "a window holds 2 MiB at least");
        found_.lines_left_out.resize(left_out_.line_rules());
    }

    TextComparison compare() {
        for (std::uint64_t turn = 0;; ++turn) {
            if (interrupt_ && turn % 4096 == 0)
                interrupt_();
            refill(golden_);
            refill(value_);
            if (golden_.is_empty() && value_.is_empty())
                break;
            if (take_equal_lines() || leave_out_lines() || take_pair())
                continue;
            find_partners();
        }
        finish(found_.golden, golden_);
        finish(found_.value, value_);
        found_.number_groups = std::move(notes_.numbers.kept);
        found_.number_group_count = notes_.numbers.count();
        found_.masked_groups = std::move(notes_.masked.kept);
        found_.masked_group_count = notes_.masked.count();
        found_.line_groups = std::move(notes_.lines.kept);
        found_.line_group_count = notes_.lines.count();
        return std::move(found_);
    }

  private:
    static void refill(TextWindow& window) {
        if (window.text().size() < refill_below)
            window.fill(refill_to);
    }

    static void finish(TextSide& side, const TextWindow& window) {
        side.byte_count = window.byte_count();
        side.line_count = window.line_number() - 1;
        side.is_utf8 = window.is_utf8();
    }

    // Lines that are equal to the byte, as many as are at hand. Whether there were any.
    bool take_equal_lines() {
        if (!options_.bound.equal_nan || !left_out_.is_by_text())
            return false;
        const EqualLines equal = equal_lines(golden_, value_);
        refuse_long_lines(equal.text);
        found_.number_count += count_numbers(equal.text);
        found_.pair_count += equal.count;
        golden_.consume(equal.text.size(), equal.count);
        value_.consume(equal.text.size(), equal.count);
        return equal.count > 0;
    }

    // A line is refused whether or not it is equal on both sides: pieces of what is at hand are
    // far shorter, so this looks at few of them.
    void refuse_long_lines(std::string_view text) const {
        if (text.size() > most_line_bytes && text.find('\n') > most_line_bytes)
            golden_.refuse_long_line(golden_.line_number());
    }

    // Whether one of the first two lines is left out of the comparison; it is taken, then.
    bool leave_out_lines() {
        if (left_out_.line_rules() == 0)
            return false;
        return leave_out(golden_, found_.golden, true) || leave_out(value_, found_.value, false);
    }

    bool leave_out(TextWindow& window, TextSide& side, bool is_golden) {
        if (window.is_empty())
            return false;
        const std::string_view line = window.first_line();
        const std::size_t rule = left_out_.rule_over({line, window.line_number(), is_golden});
        if (rule == left_out_.line_rules())
            return false;
        note_left_out(line, rule, side, is_golden);
        window.consume(window.taken_by(line), 1);
        return true;
    }

    void note_left_out(std::string_view line, std::size_t rule, TextSide& side, bool is_golden) {
        LinesLeftOut& lines = found_.lines_left_out[rule];
        ++side.ignored_lines;
        ++(is_golden ? lines.golden_count : lines.value_count);
        if (!is_golden)
            return;
        const std::uint64_t numbers = count_numbers(line);
        lines.number_count += numbers;
        found_.ignored_line_numbers += numbers;
    }

    // Whether lines are partners by their position alone. Asked for where numbers differ.
    bool has_same_templates() {
        if (!has_same_templates_) {
            const std::unique_ptr<TextSource> golden = golden_text_.again();
            const std::unique_ptr<TextSource> value = value_text_.again();
            has_same_templates_ = have_same_templates(*golden, *value, left_out_, interrupt_);
        }
        return *has_same_templates_;
    }

    // The first lines, if they are of one template, and nothing in them differs or all of the texts
    // is of the same templates.
    bool take_pair() {
        if (golden_.is_empty() || value_.is_empty())
            return false;
        // Reading a line may move the text of its own window, not that of the other.
        const NumberedLine golden{golden_.first_line(), golden_.line_number(), true};
        const NumberedLine value{value_.first_line(), value_.line_number(), false};
        const LineFinding found = lines_.compare(golden, value);
        if (!found.is_one_shape || (found.differing > 0 && !has_same_templates()))
            return false;
        add(golden, value, found);
        golden_.consume(golden_.taken_by(golden.text), 1);
        value_.consume(value_.taken_by(value.text), 1);
        return true;
    }

    // What `lines_` has found last.
    void add(const NumberedLine& golden, const NumberedLine& value, const LineFinding& one) {
        ++found_.pair_count;
        found_.number_count += one.numbers + one.ignored;
        found_.differing_count += one.differing;
        found_.ignored_count += one.ignored;
        found_.nan_mismatch_count += one.nan_mismatches;
        found_.inf_mismatch_count += one.inf_mismatches;
        found_.max_abs_difference = std::max(found_.max_abs_difference, one.max_abs);
        found_.max_rel_difference = std::max(found_.max_rel_difference, one.max_rel);
        found_.max_bound_share = std::max(found_.max_bound_share, one.max_share);
        const IgnoredPieces& ignored = lines_.pieces();
        if (one.differing == 0 && ignored.golden.empty())
            return;
        const std::uint64_t shape = shape_of(golden.text, ignored.golden);
        notes_.add_masked(golden, value, shape, ignored);
        for (const DifferingNumber& number : lines_.differing())
            notes_.add_number(golden, value, shape, number, ignored);
    }

    // Pairs the lines of a window, and takes as many of them as can be told.
    void find_partners() {
        ours_.clear();
        theirs_.clear();
        for (std::size_t want = first_window;; want *= 4) {
            if (interrupt_)
                interrupt_();
            want = std::min(want, options_.window_bytes);
            const bool all_ours = look_ahead(golden_, ours_, want);
            const bool all_theirs = look_ahead(value_, theirs_, want);
            const bool is_last = want == options_.window_bytes || (all_ours && all_theirs) ||
                                 ours_.lines.size() == most_window_lines ||
                                 theirs_.lines.size() == most_window_lines;
            // Nothing but one side is left.
            const bool is_one_sided = golden_.is_empty() || value_.is_empty();
            if (ours_.lines.empty() && theirs_.lines.empty() && !is_last)
                continue;
            pairs_ = align_lines(ours_.keys, theirs_.keys);
            if ((all_ours && all_theirs) || is_one_sided)
                return take_lines(ours_.lines.size(), theirs_.lines.size());
            const std::size_t sure = sure_pairs(ours_, theirs_, pairs_);
            if (sure > 0 || is_last) {
                if (sure > 0)
                    pairs_.resize(sure);
                return take_up_to_last_pair();
            }
        }
    }

    // Reads and indexes lines up to so many bytes. Whether that is all that there is.
    bool look_ahead(TextWindow& window, LineIndex& index, std::size_t want) {
        window.fill(want);
        const std::string_view text = window.text();
        std::size_t at = index.bytes();
        while (at < text.size() && index.lines.size() < most_window_lines) {
            std::size_t end = text.find('\n', at);
            if (end == std::string_view::npos) {
                if (text.size() - at > most_line_bytes)
                    window.refuse_long_line(window.line_number() + index.lines.size());
                if (!window.has_all())
                    break;
                end = text.size();
            }
            if (end - at > most_line_bytes)
                window.refuse_long_line(window.line_number() + index.lines.size());
            const NumberedLine line{text.substr(at, end - at),
                                    window.line_number() + index.lines.size(), &window == &golden_};
            add_line(line, {at, end, std::min(end + 1, text.size()), 0}, index);
            at = index.bytes();
        }
        return window.has_all() && at == text.size();
    }

    void add_line(const NumberedLine& numbered, LineIndex::Line line, LineIndex& index) {
        line.rule = left_out_.rule_over(numbered);
        if (line.rule == left_out_.line_rules()) {
            left_out_.find(numbered, scratch_);
            index.kept.push_back(index.lines.size());
            index.keys.push_back(key_of(numbered.text, scratch_));
        }
        index.lines.push_back(line);
    }

    void take_up_to_last_pair() {
        if (pairs_.empty())
            return take_lines(ours_.lines.size(), theirs_.lines.size());
        const LinePair& last = pairs_.back();
        take_lines(ours_.kept[last.golden] + 1, theirs_.kept[last.value] + 1);
    }

    // Compares the pairs and takes so many lines of either side; those in between have no partner.
    void take_lines(std::size_t golden_count, std::size_t value_count) {
        std::size_t golden_at = 0;
        std::size_t value_at = 0;
        for (const LinePair& pair : pairs_) {
            const std::size_t golden = ours_.kept[pair.golden];
            const std::size_t value = theirs_.kept[pair.value];
            leave_alone(golden_at, golden, value_at, value);
            take_partners(golden, value);
            golden_at = golden + 1;
            value_at = value + 1;
        }
        leave_alone(golden_at, golden_count, value_at, value_count);
        consume(golden_, ours_, golden_count);
        consume(value_, theirs_, value_count);
    }

    static void consume(TextWindow& window, const LineIndex& index, std::size_t count) {
        if (count > 0)
            window.consume(index.lines[count - 1].next, count);
    }

    void take_partners(std::size_t golden_line, std::size_t value_line) {
        const NumberedLine golden = line_of(golden_, ours_, golden_line);
        const NumberedLine value = line_of(value_, theirs_, value_line);
        const LineFinding found = lines_.compare(golden, value);
        if (!found.is_one_shape) {
            // Two templates of one hash.
            lonely_golden_.assign(1, golden);
            lonely_value_.assign(1, value);
            note_lonely();
            return;
        }
        add(golden, value, found);
    }

    // Lines of either side that have no partner.
    void leave_alone(std::size_t golden_first, std::size_t golden_last, std::size_t value_first,
                     std::size_t value_last) {
        lonely_golden_.clear();
        lonely_value_.clear();
        gather(golden_, ours_, golden_first, golden_last, lonely_golden_, found_.golden, true);
        gather(value_, theirs_, value_first, value_last, lonely_value_, found_.value, false);
        note_lonely();
    }

    void gather(const TextWindow& window, const LineIndex& index, std::size_t first,
                std::size_t last, std::vector<NumberedLine>& lonely, TextSide& side,
                bool is_golden) {
        for (std::size_t i = first; i < last; ++i) {
            const NumberedLine line = line_of(window, index, i);
            if (index.lines[i].rule < left_out_.line_rules())
                note_left_out(line.text, index.lines[i].rule, side, is_golden);
            else
                lonely.push_back(line);
        }
    }

    void note_lonely() {
        for (const NumberedLine& one : lonely_golden_)
            found_.golden.unread_numbers += count_numbers(one.text);
        for (const NumberedLine& one : lonely_value_)
            found_.value.unread_numbers += count_numbers(one.text);
        found_.golden.unpaired_lines += lonely_golden_.size();
        found_.value.unpaired_lines += lonely_value_.size();
        notes_.add_lines(lonely_golden_, lonely_value_);
    }

    NumberedLine line_of(const TextWindow& window, const LineIndex& index, std::size_t i) const {
        const LineIndex::Line& line = index.lines[i];
        return {window.text().substr(line.begin, line.end - line.begin), window.line_number() + i,
                &window == &golden_};
    }

    const TextOptions& options_;
    const Interrupt& interrupt_;
    const TextSource& golden_text_;
    const TextSource& value_text_;
    TextWindow golden_;
    TextWindow value_;
    LeftOut left_out_;
    LineComparer lines_;
    TextNotes notes_;
    std::optional<bool> has_same_templates_;
    TextComparison found_;
    LineIndex ours_;
    LineIndex theirs_;
    std::vector<LinePair> pairs_;
    std::vector<NumberedLine> lonely_golden_;
    std::vector<NumberedLine> lonely_value_;
    std::vector<LinePiece> scratch_;
};

}  // namespace

TextComparison compare_texts(TextSource& golden, TextSource& value, const TextOptions& options,
                             const Interrupt& interrupt) {
    return TextComparer(golden, value, options, interrupt).compare();
}

}  // namespace ciwrap
