// Stage two: the elements of two arrays, with both sides' data at hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ciwrap/device_array.hpp"
#include "ciwrap/execution.hpp"
#include "ciwrap/leaf_set.hpp"
#include "ciwrap/parameters.hpp"
#include "ciwrap/share_bins.hpp"

namespace ciwrap {

// Bin of |v - g| / bound: 0: equal; 1: below 2^-16; i in 2..32: [2^(i-18), 2^(i-17)); 33: from 2^15
// on, or not finite.
std::size_t share_bin(double share);

struct Comparison {
    std::uint64_t element_count = 0;
    std::uint64_t differing_count = 0;
    std::int64_t first_index = -1;      // of the first differing element; -1: none
    std::vector<std::int64_t> indices;  // of the first differing elements, ascending
    double max_abs_difference = 0.0;
    std::int64_t max_abs_index = -1;
    double max_rel_difference = 0.0;
    std::int64_t max_rel_index = -1;
    double max_bound_share = 0.0;
    double sum_abs_difference = 0.0;
    double sum_rel_difference = 0.0;
    std::uint64_t finite_count = 0;   // scalars the sums run over: finite on both sides
    std::uint64_t nonzero_count = 0;  // those with a golden other than zero
    std::uint64_t nan_mismatch_count = 0;
    std::uint64_t inf_mismatch_count = 0;
    std::uint64_t missing_mismatch_count = 0;
    std::array<std::uint64_t, share_bins> histogram{};
    LeafSet differing_leaves;  // chunks that hold a differing element

    // Takes what a later stretch found.
    void append(const Comparison& later, std::size_t max_indices);
};

// One side of a piece: its bytes on the host, or the elements of an array on a device that the
// piece is (as many, counted from the piece's first_element).
struct ComparedSide {
    std::span<const std::byte> bytes;
    const DeviceArray* array = nullptr;
};

class PieceComparer;

// Compares two streams of elements. The verdict on every element is exact, without rounding. Not
// thread safe.
//
// With a device backend, float32, float64 and complex numbers of them under absolute and relative
// bounds are compared on the device; other types and bounds on the host, whatever the backend. The
// result is the same to the bit.
class ElementComparer {
  public:
    ElementComparer(const TreeParameters& parameters, std::size_t max_indices,
                    const Execution& execution, Interrupt interrupt = {});
    ~ElementComparer();
    ElementComparer(ElementComparer&& other) noexcept;
    ElementComparer& operator=(ElementComparer&& other) noexcept;

    // Equally long pieces of whole elements, both in the byte order of `parameters`. Pieces in
    // ascending order, gaps allowed. Error(invalid_argument) otherwise.
    void update(std::span<const std::byte> golden, std::span<const std::byte> value,
                std::uint64_t first_element);

    // The same for pieces of which at least one lies on the device of the backend. What has no
    // kernel there is brought over, a few MiB at a time. Error(invalid_argument) for a host
    // backend; not_available if an array is on another device.
    void update_device(const ComparedSide& golden, const ComparedSide& value,
                       std::uint64_t first_element, std::uint64_t element_count);

    const Comparison& result() const;

  private:
    std::unique_ptr<PieceComparer> comparer_;
};

// How far two elements are apart; all empty where that has no meaning: bytes and texts, and a NaN,
// an infinity or a fill value on one side only.
struct ElementDifference {
    std::optional<double> abs_difference;
    std::optional<double> bound_share;
    std::optional<double> rel_difference;  // none beside a golden of zero
    std::optional<std::uint64_t> ulps;     // of real floats of 2 (binary16), 4 or 8 bytes
};

// Every element by itself. Throws Error(invalid_argument) as ElementComparer::update does.
std::vector<ElementDifference> compare_each(const TreeParameters& parameters,
                                            std::span<const std::byte> golden,
                                            std::span<const std::byte> value);

// Two decide whether a chunk differs: its digests, and its elements. Where both have looked,
// neither may contradict the other; a contradiction is a fault of ours and must never become a
// verdict.

// Throws Error(internal) if
// - an element differs in a chunk that is not among the suspects, whose digests agree, or
// - no element differs in a suspect that was compared, though suspect_is_proof(parameters).
// suspects: chunks whose digests differ. compared: those whose elements were compared; none: all.
// Both ascending.
void check_deciders(const TreeParameters& parameters, const Comparison& comparison,
                    std::span<const std::int64_t> suspects,
                    std::optional<std::span<const std::int64_t>> compared);

}  // namespace ciwrap
