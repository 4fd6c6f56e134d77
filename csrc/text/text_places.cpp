#include "text/text_places.hpp"

#include <algorithm>
#include <unordered_set>

#include "text/text_notes.hpp"
#include "text/text_readings.hpp"

namespace ciwrap {
namespace {

constexpr std::size_t most_place_template = 160;

class PlaceFinder {
  public:
    PlaceFinder(std::string_view text, const LeftOut& left_out, std::size_t most)
        : text_(text), left_out_(left_out), most_(most) {}

    std::vector<NumberPlace> find() {
        std::uint64_t number = 1;
        for (std::size_t at = 0; at < text_.size() && found_.size() < most_; ++number) {
            const std::size_t end = std::min(text_.find('\n', at), text_.size());
            take_line({text_.substr(at, end - at), number});
            at = end + 1;
        }
        return std::move(found_);
    }

  private:
    void take_line(const NumberedLine& numbered) {
        const std::string_view line = numbered.text;
        const std::size_t rule = left_out_.rule_over(numbered);
        left_out_.find(numbered, pieces_);
        const std::uint64_t shape = mixed(shape_of(line, {}), rule);
        TokenReader tokens(line);
        std::uint64_t ordinal = 0;
        for (Token one = tokens.next(); one.kind != Token::Kind::end; one = tokens.next()) {
            if (one.kind != Token::Kind::number)
                continue;
            const unsigned set = set_over(line, one.text);
            if (found_.size() < most_ && seen_.insert(mixed(mixed(shape, ordinal), set)).second)
                found_.push_back({template_of(line, {}, most_place_template), ordinal + 1,
                                  numbered.number,
                                  static_cast<std::size_t>(one.text.data() - text_.data()),
                                  one.text.size(), set, rule, !stands_alone({line, one.text})});
            ++ordinal;
        }
    }

    unsigned set_over(std::string_view line, std::string_view number) const {
        const auto begin = static_cast<std::size_t>(number.data() - line.data());
        for (const LinePiece& one : pieces_)
            if (begin < one.end && one.begin < begin + number.size())
                return one.set;
        return 0;
    }

    std::string_view text_;
    const LeftOut& left_out_;
    std::size_t most_;
    std::vector<NumberPlace> found_;
    std::unordered_set<std::uint64_t> seen_;
    std::vector<LinePiece> pieces_;
};

}  // namespace

std::vector<NumberPlace> number_places(std::string_view text, const LeftOut& left_out,
                                       std::size_t most) {
    return PlaceFinder(text, left_out, most).find();
}

}  // namespace ciwrap
