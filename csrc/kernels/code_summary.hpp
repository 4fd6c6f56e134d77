// The summary of a chunk's codes, block by block, on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/quantize_plan.hpp"
#include "ciwrap/chunk_summary.hpp"
#include "kernels/encode_block.hpp"

namespace ciwrap::CIWRAP_LEVEL_NAMESPACE {

// One chunk after the other: `begin`, `add` for each of its blocks, `end`.
class CodeSummary {
  public:
    explicit CodeSummary(const QuantizePlan& plan)
        : plan_(plan),
          is_steps_(plan.kind == CodeKind::steps),
          has_infinities_(is_float(plan.scalar)),
          // The first special code comes right after the last rounded one.
          most_(plan.special_shift + static_cast<std::int64_t>(plan.special_bits) - 1) {}

    void begin() {
        found_ = {};
        least_ = INT64_MAX;
        greatest_ = INT64_MIN;
        sum_ = 0;
        moment_ = 0;
        place_ = 0;
    }

    void add(const std::uint8_t* codes, std::size_t count) {
        if (plan_.code_bytes == 4)
            add_codes<std::int32_t>(codes, count);
        else
            add_codes<std::int64_t>(codes, count);
        place_ += count;
    }

    ChunkSummary end() const {
        ChunkSummary found = found_;
        if (least_ <= greatest_) {
            found.least = least_;
            found.greatest = greatest_;
            found.sum = static_cast<std::int64_t>(sum_);
            found.moment = static_cast<std::int64_t>(moment_);
        }
        return found;
    }

  private:
    // Loops that compilers turn into vector code; special scalars are rare, and go the long way.
    // Codes lie in rows, a sum for each column. The sum of these sums after each row has the first
    // row as often as there are rows, and the last one once: so the moment takes no product of each
    // code, which few processors have for 64 bits.
    template <class Code>
    void add_codes(const std::uint8_t* codes, std::size_t count) {
        constexpr std::int64_t lowest = SpecialCode<Code>::lowest;
        constexpr std::size_t columns = 32 / sizeof(Code);
        Code least_of[columns];
        Code greatest_of[columns];
        std::uint64_t sum_of[columns] = {};
        std::uint64_t sum_of_sums[columns] = {};
        for (std::size_t column = 0; column < columns; ++column) {
            least_of[column] = static_cast<Code>(-(lowest + 1));
            greatest_of[column] = static_cast<Code>(lowest);
        }
        const std::size_t rows = count / columns;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                const Code code = load<Code>(codes, row * columns + column);
                least_of[column] = code < least_of[column] ? code : least_of[column];
                greatest_of[column] = code > greatest_of[column] ? code : greatest_of[column];
                sum_of[column] += static_cast<std::uint64_t>(std::int64_t{code});
                sum_of_sums[column] += sum_of[column];
            }
        }
        Code least = least_of[0];
        Code greatest = greatest_of[0];
        std::uint64_t sum = 0;
        std::uint64_t moment = 0;
        for (std::size_t column = 0; column < columns; ++column) {
            least = least_of[column] < least ? least_of[column] : least;
            greatest = greatest_of[column] > greatest ? greatest_of[column] : greatest;
            sum += sum_of[column];
            moment += columns * (rows * sum_of[column] - sum_of_sums[column]);
            moment += column * sum_of[column];
        }
        for (std::size_t i = rows * columns; i < count; ++i) {
            const Code code = load<Code>(codes, i);
            least = code < least ? code : least;
            greatest = code > greatest ? code : greatest;
            const auto wide = static_cast<std::uint64_t>(std::int64_t{code});
            sum += wide;
            moment += wide * i;
        }
        const bool has_special = is_steps_ ? (has_infinities_ || plan_.fill_count > 0) &&
                                                 (least <= lowest + 1 || greatest >= -(lowest + 2))
                                           : least < -most_ || greatest > most_;
        if (has_special)
            return add_each<Code>(codes, count);
        take(least, greatest);
        sum_ += sum;
        moment_ += moment + sum * place_;
    }

    template <class Code>
    void add_each(const std::uint8_t* codes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t code = load<Code>(codes, i);
            if (count_special<Code>(code))
                continue;
            take(code, code);
            sum_ += static_cast<std::uint64_t>(code);
            moment_ += static_cast<std::uint64_t>(code) * (place_ + i);
        }
    }

    void take(std::int64_t least, std::int64_t greatest) {
        least_ = least < least_ ? least : least_;
        greatest_ = greatest > greatest_ ? greatest : greatest_;
    }

    // Whether a code is of a scalar that is not rounded; each of these by its value alone.
    template <class Code>
    bool count_special(std::int64_t code) {
        constexpr std::int64_t lowest = SpecialCode<Code>::lowest;
        const std::int64_t infinity =
            plan_.special_shift + static_cast<std::int64_t>(SpecialCode<Code>::infinity_bits);
        std::int64_t* count = nullptr;
        if (plan_.fill_count > 0 && code == lowest + 1)
            count = &found_.missing;
        else if (is_steps_)
            count = !has_infinities_        ? nullptr
                    : code == lowest        ? &found_.nan
                    : code == -(lowest + 1) ? &found_.plus_infinity
                    : code == -(lowest + 2) ? &found_.minus_infinity
                                            : nullptr;
        else if (code >= -most_ && code <= most_)
            count = nullptr;
        else if (code == lowest)
            count = &found_.nan;
        else if (plan_.zero_is_special && code == lowest + 2)
            count = &found_.zero;
        else if (code == infinity)
            count = &found_.plus_infinity;
        else if (code == -infinity)
            count = &found_.minus_infinity;
        else
            count = &found_.huge;
        if (count != nullptr)
            ++*count;
        return count != nullptr;
    }

    const QuantizePlan& plan_;
    const bool is_steps_;
    const bool has_infinities_;
    const std::int64_t most_;
    ChunkSummary found_;
    std::int64_t least_ = 0;
    std::int64_t greatest_ = 0;
    std::uint64_t sum_ = 0;
    std::uint64_t moment_ = 0;
    std::uint64_t place_ = 0;
};

}  // namespace ciwrap::CIWRAP_LEVEL_NAMESPACE
