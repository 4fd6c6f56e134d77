// Two decide whether a chunk differs: its digests, and its elements. Where both have looked,
// neither may contradict the other; a contradiction is a fault of ours and must never become a
// verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/tree_parameters.hpp"
#include "core/element_compare.hpp"

namespace ciwrap {

// Whether a chunk whose digests differ surely holds a differing element: where codes decide
// exactly, that is for a bound of zero, for integers, booleans, bytes and text without one, and for
// bounds in steps whose residues tell every step apart. Everywhere else such a chunk may be a false
// alarm. With residues: of a tree that was made against the other.
bool suspect_is_proof(const TreeParameters& parameters);

// Throws Error(internal) if
// - an element differs in a chunk that is not among the suspects, whose digests agree, or
// - no element differs in a suspect that was compared, though suspect_is_proof(parameters).
// suspects: chunks whose digests differ. compared: those whose elements were compared; none: all.
// Both ascending.
void check_deciders(const TreeParameters& parameters, const Comparison& comparison,
                    std::span<const std::int64_t> suspects,
                    std::optional<std::span<const std::int64_t>> compared);

}  // namespace ciwrap
