// XXH3-128 with seed 0 (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), our own
// implementation. A fast, non-cryptographic hash: it finds accidents, not attackers.
#pragma once

#include <cstddef>
#include <span>

#include "ciwrap/digest.hpp"

namespace ciwrap {

// Thread-safe. Uses the active CPU level.
Digest xxh3_128(std::span<const std::byte> data);
// Of what the parts would be, copied behind one another.
Digest xxh3_128_of_parts(std::span<const std::span<const std::byte>> parts);

}  // namespace ciwrap
