#include "core/piece_comparer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ciwrap/error.hpp"
#include "core/compare_block.hpp"
#include "core/piece_tallies.hpp"

namespace ciwrap {
namespace {

// Elements to a block. Sums are taken per block and added up in the order of the blocks, so that
// the mean does not depend on the number of threads.
constexpr std::uint64_t block_elements = compare_block_elements;

void take_larger(double& largest, std::int64_t& index, double candidate,
                 std::int64_t candidate_index) {
    if (candidate_index >= 0 && (index < 0 || candidate > largest)) {
        largest = candidate;
        index = candidate_index;
    }
}

}  // namespace

std::size_t share_bin(double share) {
    if (share == 0.0)
        return 0;
    if (share < 0x1p-16)
        return 1;
    if (!(share < 0x1p+15))
        return share_bins - 1;
    const auto exponent = static_cast<int>(std::bit_cast<std::uint64_t>(share) >> 52) - 1023;
    return static_cast<std::size_t>(exponent + 18);
}

void Comparison::append(const Comparison& later, std::size_t max_indices) {
    element_count += later.element_count;
    differing_count += later.differing_count;
    if (first_index < 0)
        first_index = later.first_index;
    for (const std::int64_t index : later.indices) {
        if (indices.size() >= max_indices)
            break;
        indices.push_back(index);
    }
    take_larger(max_abs_difference, max_abs_index, later.max_abs_difference, later.max_abs_index);
    take_larger(max_rel_difference, max_rel_index, later.max_rel_difference, later.max_rel_index);
    max_bound_share = std::max(max_bound_share, later.max_bound_share);
    sum_abs_difference += later.sum_abs_difference;
    sum_rel_difference += later.sum_rel_difference;
    finite_count += later.finite_count;
    nonzero_count += later.nonzero_count;
    nan_mismatch_count += later.nan_mismatch_count;
    inf_mismatch_count += later.inf_mismatch_count;
    missing_mismatch_count += later.missing_mismatch_count;
    for (std::size_t bin = 0; bin < share_bins; ++bin)
        histogram[bin] += later.histogram[bin];
    differing_leaves.insert(later.differing_leaves);
}

PieceComparer::PieceComparer(TreeParameters parameters, std::size_t max_indices,
                             Execution execution, Interrupt interrupt)
    : parameters_(std::move(parameters)),
      plan_(make_plan(parameters_)),
      type_(parameters_.data_type()),
      max_indices_(max_indices),
      execution_(is_device(execution.backend) ? resolve_execution("auto", 0) : execution),
      backend_(execution.backend),
      is_on_device_(is_device(backend_) && has_compare_kernel(parameters_, type_)),
      interrupt_(std::move(interrupt)) {}

DeviceComparer& PieceComparer::device() {
    if (!device_)
        device_ = make_device_comparer(backend_);
    return *device_;
}

void PieceComparer::begin_piece(std::uint64_t first_element, std::uint64_t count) {
    if (first_element < next_element_) {
        throw Error(ErrorCode::invalid_argument, "pieces to compare must come in ascending order");
    }
    next_element_ = first_element + count;
}

void PieceComparer::update(std::span<const std::byte> golden, std::span<const std::byte> value,
                           std::uint64_t first_element) {
    const std::uint64_t element_bytes = type_.element_bytes();
    if (golden.size() != value.size() || golden.size() % element_bytes != 0) {
        throw Error(ErrorCode::invalid_argument,
                    "the two pieces to compare must be equally long and hold whole values");
    }
    const std::uint64_t count = golden.size() / element_bytes;
    if (is_on_device_)
        return update_device({golden, nullptr}, {value, nullptr}, first_element, count);
    begin_piece(first_element, count);
    compare_piece(reinterpret_cast<const std::uint8_t*>(golden.data()),
                  reinterpret_cast<const std::uint8_t*>(value.data()), first_element, count,
                  nullptr);
}

void PieceComparer::update(std::span<const std::byte> golden, std::span<const std::byte> value,
                           std::uint64_t first_element, const PieceTallies& made) {
    const std::uint64_t count = golden.size() / type_.element_bytes();
    begin_piece(first_element, count);
    compare_piece(reinterpret_cast<const std::uint8_t*>(golden.data()),
                  reinterpret_cast<const std::uint8_t*>(value.data()), first_element, count, &made);
}

void PieceComparer::compare_piece(const std::uint8_t* golden, const std::uint8_t* value,
                                  std::uint64_t first_element, std::uint64_t count,
                                  const PieceTallies* made) {
    const std::uint64_t element_bytes = type_.element_bytes();
    // Elements that are brought over one after the other leave nothing to do side by side.
    const Execution execution = golden == nullptr ? Execution{} : execution_;
    // Waves bound the memory for block results and the time between two looks for an interrupt.
    constexpr std::uint64_t blocks_per_wave = 1024;
    std::vector<Comparison> parts;
    for (std::uint64_t wave = 0; wave < count; wave += blocks_per_wave * block_elements) {
        const std::uint64_t in_wave = std::min(count - wave, blocks_per_wave * block_elements);
        const std::uint64_t blocks = (in_wave - 1) / block_elements + 1;
        parts.assign(blocks, Comparison{});
        parallel_ranges(execution, blocks, 8, [&](std::uint64_t first, std::uint64_t last, int) {
            for (std::uint64_t block = first; block < last; ++block) {
                const std::uint64_t element = wave + block * block_elements;
                const std::uint64_t at = element * element_bytes;
                const CompareInput input{golden == nullptr ? nullptr : golden + at,
                                         golden == nullptr ? nullptr : value + at,
                                         std::min(block_elements, count - element),
                                         first_element + element};
                compare_block(parameters_, plan_, type_, input, max_indices_, parts[block], made,
                              element);
            }
        });
        for (const Comparison& part : parts)
            result_.append(part, max_indices_);
        if (interrupt_)
            interrupt_();
    }
}

ElementComparer::ElementComparer(const TreeParameters& parameters, std::size_t max_indices,
                                 const Execution& execution, Interrupt interrupt)
    : comparer_(std::make_unique<PieceComparer>(parameters, max_indices, execution,
                                                std::move(interrupt))) {}
ElementComparer::~ElementComparer() = default;
ElementComparer::ElementComparer(ElementComparer&& other) noexcept = default;
ElementComparer& ElementComparer::operator=(ElementComparer&& other) noexcept = default;

void ElementComparer::update(std::span<const std::byte> golden, std::span<const std::byte> value,
                             std::uint64_t first_element) {
    comparer_->update(golden, value, first_element);
}

void ElementComparer::update_device(const ComparedSide& golden, const ComparedSide& value,
                                    std::uint64_t first_element, std::uint64_t element_count) {
    comparer_->update_device(golden, value, first_element, element_count);
}

const Comparison& ElementComparer::result() const {
    return comparer_->result();
}

}  // namespace ciwrap
