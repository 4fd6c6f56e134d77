// Which scalars of a chunk moved, and where from, when all that is left of the golden chunk is its
// digest (and residues).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ciwrap/digest.hpp"
#include "ciwrap/parameters.hpp"

namespace ciwrap {

// One scalar that is in another cell than the golden's.
struct MovedScalar {
    std::uint64_t index = 0;       // in the chunk
    std::int64_t golden_code = 0;  // the golden's code, sign-extended from its width
    std::uint8_t residue = 0;      // of the golden; 0 for a plain tree
};

// How long to look. A trial is one golden code tried for one scalar; on a host of 2020 a few
// million take a tenth of a second for chunks of 64 KiB.
struct SolveLimits {
    std::uint64_t most_trials = std::uint64_t{1} << 20;
};

// Finds codes of the golden chunk that hash to `golden_leaf` and differ from those of the new chunk
// in one scalar, or in two; the digest's 128 bits are the proof. Looked for are cells near the new
// one, cells near those of the scalar's neighbours, and the codes of what is not rounded (NaN,
// infinities, zero, missing). Empty: not found, which proves nothing.
//
// data: the new chunk's scalars, in the parameters' byte order. packed_residues: the golden
// chunk's; empty for a tree without. Thread safe, and the same on every machine.
// Error(invalid_argument) if sizes do not fit the parameters.
std::vector<MovedScalar> solve_chunk(const TreeParameters& parameters,
                                     std::span<const std::byte> data, const Digest& golden_leaf,
                                     std::span<const std::uint8_t> packed_residues,
                                     const SolveLimits& limits = {});

}  // namespace ciwrap
