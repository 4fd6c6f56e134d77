#include "core/tree_from_file.hpp"

namespace ciwrap {

void update_from_file(std::span<TreeBuilder* const> builders, ReadEngine& engine,
                      const std::string& path, std::uint64_t offset, std::uint64_t byte_count,
                      const SlabOptions& options, const Interrupt& interrupt) {
    SlabReader reader(engine, path, offset, byte_count, options);
    for (;;) {
        const std::span<const std::byte> slab = reader.next();
        if (slab.empty())
            return reader.require_unchanged();
        for (TreeBuilder* const builder : builders)
            builder->update(slab);
        if (interrupt)
            interrupt();
    }
}

}  // namespace ciwrap
