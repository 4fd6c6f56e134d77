// Deterministic mutations of golden files: the same seed, the same changes, on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ciwrap/golden.hpp"
#include "golden_map.hpp"

namespace ciwrap::fuzz {

// SplitMix64.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }  // bound > 0
    bool one_in(std::uint64_t count) { return below(count) == 0; }

  private:
    std::uint64_t state_;
};

// Blind changes: bits, bytes, cuts, insertions, repetitions, pieces of another file. At most
// `count`.
void mutate_bytes(Bytes& file, const Bytes& other, Random& random);

// Changes that know the format: numbers in header and directory, lengths that lie or are adjusted,
// blocks, entries that are repeated, dropped or exchanged. Digests are left as they were.
void mutate_structure(Bytes& file, Random& random);

// Changes of the contents that leave a sound golden: leaves, residues, data, names, order.
std::vector<GoldenVariable> mutate_contents(std::vector<GoldenVariable> variables, Random& random);

}  // namespace ciwrap::fuzz
