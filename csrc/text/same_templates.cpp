#include "text/same_templates.hpp"

#include "text/line_compare.hpp"
#include "text/text_notes.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t at_hand = std::size_t{256} << 10;
constexpr std::uint64_t lines_between_interrupts = 4096;

class TemplateComparer {
  public:
    TemplateComparer(TextSource& golden, TextSource& value, const LeftOut& left_out)
        : golden_(golden), value_(value), left_out_(left_out) {}

    bool compare(const Interrupt& interrupt) {
        for (std::uint64_t turn = 0;; ++turn) {
            if (interrupt && turn % lines_between_interrupts == 0)
                interrupt();
            golden_.fill(at_hand);
            value_.fill(at_hand);
            if (golden_.is_empty() && value_.is_empty())
                return true;
            if (skip_equal_lines() || skip_left_out(golden_, true) || skip_left_out(value_, false))
                continue;
            if (golden_.is_empty() || value_.is_empty() || !skip_alike_lines())
                return false;
        }
    }

  private:
    bool skip_equal_lines() {
        if (!left_out_.is_by_text())
            return false;
        const EqualLines equal = equal_lines(golden_, value_);
        golden_.consume(equal.text.size(), equal.count);
        value_.consume(equal.text.size(), equal.count);
        return equal.count > 0;
    }

    bool skip_left_out(TextWindow& window, bool is_golden) const {
        if (left_out_.line_rules() == 0 || window.is_empty())
            return false;
        const std::string_view line = window.first_line();
        if (left_out_.rule_over({line, window.line_number(), is_golden}) == left_out_.line_rules())
            return false;
        window.consume(window.taken_by(line), 1);
        return true;
    }

    bool skip_alike_lines() {
        const std::string_view golden = golden_.first_line();
        const std::string_view value = value_.first_line();
        if (!left_out_.is_nothing())
            pieces_.find({golden, golden_.line_number(), true},
                         {value, value_.line_number(), false}, left_out_);
        TokenReader ours(golden, pieces_.golden);
        TokenReader theirs(value, pieces_.value);
        for (Token one = ours.next();; one = ours.next()) {
            if (!one.is_like(theirs.next()))
                return false;
            if (one.kind == Token::Kind::end)
                break;
        }
        golden_.consume(golden_.taken_by(golden), 1);
        value_.consume(value_.taken_by(value), 1);
        return true;
    }

    TextWindow golden_;
    TextWindow value_;
    const LeftOut& left_out_;
    IgnoredPieces pieces_;
};

}  // namespace

bool have_same_templates(TextSource& golden, TextSource& value, const LeftOut& left_out,
                         const Interrupt& interrupt) {
    return TemplateComparer(golden, value, left_out).compare(interrupt);
}

}  // namespace ciwrap
