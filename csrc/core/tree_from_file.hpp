// Trees of arrays that are stored in files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ciwrap/tree.hpp"
#include "io/slab_reader.hpp"

namespace ciwrap {

// Gives several builders the next byte_count bytes, from a file that is read once for all of them,
// ahead while they are hashed. Throws Error as SlabReader does, and corrupt_file if the file was
// written while it was read: the builders are of no use then.
void update_from_file(std::span<TreeBuilder* const> builders, ReadEngine& engine,
                      const std::string& path, std::uint64_t offset, std::uint64_t byte_count,
                      const SlabOptions& options = {}, const Interrupt& interrupt = {});

}  // namespace ciwrap
