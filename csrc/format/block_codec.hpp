// Residues and data as stored: blocks of 1 MiB, each compressed on its own (tree-format.md section
// 4).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ciwrap/golden.hpp"

namespace ciwrap {

// unit: bytes that belong together and may be shuffled; 1: nothing to shuffle.
std::vector<std::uint8_t> pack_blocks(std::span<const std::uint8_t> raw, std::uint32_t unit,
                                      const Poll& poll);

// Throws; gets what is wrong, as a clause that follows "the residues of variable 'x'".
using Refuse = std::function<void(const std::string&)>;

// raw_bytes comes from the shape, not from the file. Memory is taken as blocks turn out to be
// there.
UninitializedBytes unpack_blocks(std::span<const std::uint8_t> stored, std::uint64_t raw_bytes,
                                 std::uint32_t unit, const Refuse& refuse, const Poll& poll);

}  // namespace ciwrap
