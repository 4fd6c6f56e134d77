// The kernel that compares tiles of floating-point numbers on a device: a team for each unit. It
// does the operations of the host's kernel (levels/compare_floats.cpp) in the host's order.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/compare_floats.hpp"
#include "kernels/device_compare.hpp"
#include "kernels/device_share_bins.hpp"
#include "kernels/scalar_codes.hpp"

namespace ciwrap::device_compare {

inline constexpr std::uint32_t lanes = 4;  // as wide as the host's vectors: sums go by lanes
inline constexpr std::uint32_t tiles_at_once = 32;  // of a team
inline constexpr double infinity = __builtin_inf();
inline constexpr std::uint32_t padded_tile =
    compare_tile + 1;  // threads on one column: no bank twice

// Of a unit, as it comes back.
struct UnitTally {
    double sum_abs;
    double sum_rel;
    double max_abs;
    double max_rel;
    double max_share;
    std::int64_t max_abs_scalar;
    std::int64_t max_rel_scalar;
    std::uint32_t finite_count;
    std::uint32_t nonzero_count;
    std::uint32_t any_differs;
    std::uint32_t any_undecided;
    std::uint32_t histogram[share_bins];
    std::uint32_t padding[2];
};
static_assert(sizeof(UnitTally) % 8 == 0);

// Of a tile, until its team has added it up. Maxima are -1 where there is nothing to take one of.
struct TileTally {
    double sum_abs[lanes];
    double sum_rel[lanes];
    double max_abs;
    double max_rel;
    double max_share;
    std::uint32_t finite_count;
    std::uint32_t nonzero_count;
    std::uint32_t differs;
    std::uint32_t undecided;
};

struct Scratch {
    std::uint64_t golden[tiles_at_once * padded_tile];  // the scalars' bits
    std::uint64_t value[tiles_at_once * padded_tile];
    TileTally tiles[tiles_at_once];
    double sum_abs[lanes];
    double sum_rel[lanes];
    double max_abs;
    double max_rel;
    double max_share;
    std::int64_t max_abs_tile;
    std::int64_t max_rel_tile;
    std::uint32_t finite_count;
    std::uint32_t nonzero_count;
    std::uint32_t any_differs;
    std::uint32_t any_undecided;
    std::uint32_t histogram[share_bins];
};

template <class Space>
class CompareFloats {
  public:
    using Policy = Kokkos::TeamPolicy<Space>;
    using Team = typename Policy::member_type;

    const std::uint8_t* golden;
    const std::uint8_t* value;
    const CompareUnit* units;
    const std::uint64_t* first_tiles;  // of each unit, in `differs` and `undecided`
    UnitTally* tallies;
    std::uint32_t* differs;
    std::uint8_t* undecided;

    KOKKOS_FUNCTION void operator()(const Team& team) const {
        auto& scratch =
            *static_cast<Scratch*>(team.team_shmem().get_shmem_aligned(sizeof(Scratch), 64));
        const auto index = static_cast<std::size_t>(team.league_rank());
        const CompareUnit& unit = units[index];
        if (unit.scalar_bytes == 8) {
            run<double>(team, index, unit, scratch);
        } else {
            run<float>(team, index, unit, scratch);
        }
    }

  private:
    template <class Real>
    KOKKOS_FUNCTION void run(const Team& team, std::size_t index, const CompareUnit& unit,
                             Scratch& scratch) const {
        clear(team, scratch);
        for (std::uint32_t first = 0; first < unit.tile_count; first += tiles_at_once) {
            const std::uint32_t left = unit.tile_count - first;
            const std::uint32_t count = left < tiles_at_once ? left : tiles_at_once;
            load<Real>(team, golden + unit.golden_offset, first, count, scratch.golden);
            load<Real>(team, value + unit.value_offset, first, count, scratch.value);
            team.team_barrier();
            Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](const std::uint32_t t) {
                TileTally& tile = scratch.tiles[t];
                const std::uint64_t* g = scratch.golden + t * padded_tile;
                const std::uint64_t* v = scratch.value + t * padded_tile;
                if (is_same(g, v)) {
                    count_equal<Real>(unit, g, tile, scratch.histogram);
                } else {
                    compare<Real>(unit, g, v, tile, scratch.histogram);
                }
                differs[first_tiles[index] + first + t] = tile.differs;
                undecided[first_tiles[index] + first + t] =
                    static_cast<std::uint8_t>(tile.undecided);
            });
            team.team_barrier();
            add_up(team, first, count, scratch);
            team.team_barrier();
        }
        Kokkos::single(Kokkos::PerTeam(team), [&] { finish<Real>(unit, scratch, tallies[index]); });
    }

    KOKKOS_FUNCTION static void clear(const Team& team, Scratch& scratch) {
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<std::uint32_t>(share_bins)),
                             [&](const std::uint32_t bin) { scratch.histogram[bin] = 0; });
        Kokkos::single(Kokkos::PerTeam(team), [&] {
            for (std::uint32_t lane = 0; lane < lanes; ++lane)
                scratch.sum_abs[lane] = scratch.sum_rel[lane] = 0.0;
            scratch.max_abs = scratch.max_rel = -1.0;
            scratch.max_share = 0.0;
            scratch.max_abs_tile = scratch.max_rel_tile = -1;
            scratch.finite_count = scratch.nonzero_count = 0;
            scratch.any_differs = scratch.any_undecided = 0;
        });
        team.team_barrier();
    }

    // The stored bytes of a scalar.
    template <class Bits>
    KOKKOS_FUNCTION static Bits load_bits(const std::uint8_t* from, std::uint64_t index) {
        const std::uint8_t* at = from + index * sizeof(Bits);
        if (reinterpret_cast<std::uintptr_t>(at) % sizeof(Bits) == 0)
            return *reinterpret_cast<const Bits*>(at);
        Bits bits = 0;  // devices fault on unaligned loads
        for (std::size_t b = 0; b < sizeof(Bits); ++b)
            bits |= static_cast<Bits>(at[b]) << (8 * b);
        return bits;
    }

    // Neighbouring threads load neighbouring scalars.
    template <class Real>
    KOKKOS_FUNCTION static void load(const Team& team, const std::uint8_t* from,
                                     std::uint32_t first, std::uint32_t count, std::uint64_t* to) {
        using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
        const std::uint64_t scalar = std::uint64_t{first} * compare_tile;
        Kokkos::parallel_for(
            Kokkos::TeamThreadRange(team, count * static_cast<std::uint32_t>(compare_tile)),
            [&](const std::uint32_t i) {
                to[i / compare_tile * padded_tile + i % compare_tile] =
                    load_bits<Bits>(from, scalar + i);
            });
    }

    template <class Real>
    KOKKOS_FUNCTION static double number(std::uint64_t bits) {
        if constexpr (sizeof(Real) == 8) {
            return bits_as<double>(bits);
        } else {
            return static_cast<double>(bits_as<float>(static_cast<std::uint32_t>(bits)));
        }
    }

    KOKKOS_FUNCTION static double magnitude(double value) {
        return bits_as<double>(bits_as<std::uint64_t>(value) & ~(std::uint64_t{1} << 63));
    }

    KOKKOS_FUNCTION static bool is_same(const std::uint64_t* g, const std::uint64_t* v) {
        std::uint64_t different = 0;
        for (std::uint32_t i = 0; i < compare_tile; ++i)
            different |= g[i] ^ v[i];
        return different == 0;
    }

    KOKKOS_FUNCTION static void clear(TileTally& tile) {
        for (std::uint32_t lane = 0; lane < lanes; ++lane)
            tile.sum_abs[lane] = tile.sum_rel[lane] = 0.0;
        tile.max_abs = tile.max_rel = -1.0;
        tile.max_share = 0.0;
        tile.finite_count = tile.nonzero_count = tile.differs = tile.undecided = 0;
    }

    // As TileComparer::count_equal of the host.
    template <class Real>
    KOKKOS_FUNCTION static void count_equal(const CompareUnit& unit, const std::uint64_t* g,
                                            TileTally& tile, std::uint32_t* histogram) {
        clear(tile);
        std::uint32_t numbers = 0;
        for (std::uint32_t i = 0; i < compare_tile; ++i) {
            const double size = magnitude(number<Real>(g[i]));
            tile.finite_count += size < infinity ? 1 : 0;
            tile.nonzero_count += size < infinity && size > 0.0 ? 1 : 0;
            numbers += size <= infinity ? 1 : 0;
        }
        if (unit.equal_nan == 0 && numbers != compare_tile) {
            clear(tile);
            tile.undecided = 1;
            return;
        }
        if (tile.finite_count > 0)
            tile.max_abs = 0.0;
        if (tile.nonzero_count > 0)
            tile.max_rel = 0.0;
        Kokkos::atomic_add(&histogram[0],
                           static_cast<std::uint32_t>(compare_tile) / unit.scalars_per_element);
    }

    // As TileComparer::compare of the host, operation by operation.
    template <class Real>
    KOKKOS_FUNCTION static void compare(const CompareUnit& unit, const std::uint64_t* g_bits,
                                        const std::uint64_t* v_bits, TileTally& tile,
                                        std::uint32_t* histogram) {
        clear(tile);
        const bool is_relative = unit.rtol != 0.0;
        TileHistogram bins;
        std::uint32_t earlier_ratio = 0;
        bool is_doubtful = !is_relative && unit.atol > 0.0 &&
                           !(unit.atol > smallest_bound && unit.atol < largest_sum);
        double most_rel = 0.0;
        double most_bound = 0.0;
        tile.max_abs = 0.0;
        for (std::uint32_t i = 0; i < compare_tile; ++i) {
            const double g = number<Real>(g_bits[i]);
            const double v = number<Real>(v_bits[i]);
            const double size = magnitude(g);
            const double difference = magnitude(v - g);
            const double bound = unit.atol + unit.rtol * size;
            const bool within = difference <= bound * (1.0 - 0x1p-49);
            const bool beyond = difference >= bound * (1.0 + 0x1p-49);
            const bool has_size = size > 0.0;
            is_doubtful = is_doubtful || !(within || beyond);
            if (is_relative) {
                is_doubtful =
                    is_doubtful || (bound <= smallest_bound && (has_size || unit.atol > 0.0));
                most_bound = bound > most_bound ? bound : most_bound;
            }
            tile.differs |= (within ? 0u : 1u) << i;
            tile.nonzero_count += has_size ? 1 : 0;
            tile.sum_abs[i % lanes] += difference;
            tile.max_abs = difference > tile.max_abs ? difference : tile.max_abs;
            const double relative = has_size ? difference / size : 0.0;
            tile.sum_rel[i % lanes] += relative;
            most_rel = relative > most_rel ? relative : most_rel;
            const bool moved = difference > 0.0;
            if (is_relative) {
                const double share = moved ? difference / bound : 0.0;
                tile.max_share = share > tile.max_share ? share : tile.max_share;
            }
            const std::uint32_t ratio = ratio_of(difference, bound);
            if (unit.scalars_per_element == 1) {
                bins.add(bin_of(ratio));
            } else if (i % 2 == 0) {
                earlier_ratio = ratio;
            } else {
                bins.add(bin_of(ratio > earlier_ratio ? ratio : earlier_ratio));
            }
        }
        for (std::uint32_t lane = 0; lane < lanes; ++lane)
            is_doubtful = is_doubtful || !(tile.sum_abs[lane] + most_bound < largest_sum);
        if (is_doubtful) {
            clear(tile);
            tile.undecided = 1;
            return;
        }
        tile.finite_count = compare_tile;
        tile.max_rel = tile.nonzero_count > 0 ? most_rel : -1.0;
        bins.flush(histogram);
    }

    // Tiles in their order, so that sums are the host's to the bit.
    KOKKOS_FUNCTION static void add_up(const Team& team, std::uint32_t first, std::uint32_t count,
                                       Scratch& scratch) {
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 2 * lanes + 3), [&](std::uint32_t what) {
            for (std::uint32_t t = 0; t < count; ++t) {
                const TileTally& tile = scratch.tiles[t];
                if (what < lanes) {
                    if (tile.undecided == 0)
                        scratch.sum_abs[what] += tile.sum_abs[what];
                } else if (what < 2 * lanes) {
                    if (tile.undecided == 0)
                        scratch.sum_rel[what - lanes] += tile.sum_rel[what - lanes];
                } else if (what == 2 * lanes) {
                    take_larger(tile.max_abs, first + t, scratch.max_abs, scratch.max_abs_tile);
                } else if (what == 2 * lanes + 1) {
                    take_larger(tile.max_rel, first + t, scratch.max_rel, scratch.max_rel_tile);
                } else {
                    scratch.max_share =
                        tile.max_share > scratch.max_share ? tile.max_share : scratch.max_share;
                    scratch.finite_count += tile.finite_count;
                    scratch.nonzero_count += tile.nonzero_count;
                    scratch.any_differs |= tile.differs;
                    scratch.any_undecided |= tile.undecided;
                }
            }
        });
    }

    KOKKOS_FUNCTION static void take_larger(double found, std::uint32_t tile, double& most,
                                            std::int64_t& most_tile) {
        if (found > most) {
            most = found;
            most_tile = tile;
        }
    }

    template <class Real>
    KOKKOS_FUNCTION void finish(const CompareUnit& unit, const Scratch& scratch,
                                UnitTally& out) const {
        out.sum_abs =
            (scratch.sum_abs[0] + scratch.sum_abs[1]) + (scratch.sum_abs[2] + scratch.sum_abs[3]);
        out.sum_rel =
            (scratch.sum_rel[0] + scratch.sum_rel[1]) + (scratch.sum_rel[2] + scratch.sum_rel[3]);
        out.max_abs = out.max_rel = 0.0;
        out.max_abs_scalar = out.max_rel_scalar = -1;
        if (scratch.max_abs_tile >= 0) {
            out.max_abs = scratch.max_abs;
            out.max_abs_scalar = find<Real>(unit, scratch.max_abs_tile, scratch.max_abs, false);
        }
        if (scratch.max_rel_tile >= 0) {
            out.max_rel = scratch.max_rel;
            out.max_rel_scalar = find<Real>(unit, scratch.max_rel_tile, scratch.max_rel, true);
        }
        out.max_share = scratch.max_share;
        if (unit.rtol == 0.0 && scratch.max_abs > 0.0)
            out.max_share = unit.atol > 0.0 ? scratch.max_abs / unit.atol : infinity;
        out.finite_count = scratch.finite_count;
        out.nonzero_count = scratch.nonzero_count;
        out.any_differs = scratch.any_differs;
        out.any_undecided = scratch.any_undecided;
        for (std::size_t bin = 0; bin < share_bins; ++bin)
            out.histogram[bin] = scratch.histogram[bin];
    }

    // The first scalar of the tile with that difference.
    template <class Real>
    KOKKOS_FUNCTION std::int64_t find(const CompareUnit& unit, std::int64_t tile, double most,
                                      bool is_relative) const {
        using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
        const std::uint64_t first = static_cast<std::uint64_t>(tile) * compare_tile;
        for (std::uint64_t i = first; i < first + compare_tile; ++i) {
            const double g = number<Real>(load_bits<Bits>(golden + unit.golden_offset, i));
            const double v = number<Real>(load_bits<Bits>(value + unit.value_offset, i));
            const double difference = magnitude(v - g);
            const bool is_it =
                is_relative ? g != 0.0 && difference / magnitude(g) == most : difference == most;
            if (is_it)
                return static_cast<std::int64_t>(i);
        }
        return -1;
    }
};

}  // namespace ciwrap::device_compare
