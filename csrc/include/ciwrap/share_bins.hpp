// How finely a comparison tells how much of the bound differences take up. Plain, for kernels too.
#pragma once

#include <cstddef>

namespace ciwrap {

inline constexpr std::size_t share_bins = 34;

}  // namespace ciwrap
