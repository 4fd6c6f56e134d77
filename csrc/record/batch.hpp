// One checkpoint of a process while it is hashed, by any number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record/array_view.hpp"
#include "tree/tree_parts.hpp"

namespace ciwrap::record {

// A variable at a checkpoint.
struct Recorded {
    Recorded(std::uint32_t id, const ArrayView& array, const TreeParameters& parameters)
        : variable(id), view(array), parts(parameters, array.scalar_count(), nullptr) {}

    std::uint32_t variable;
    ArrayView view;
    TreeParts parts;
};

struct Batch {
    std::int64_t iteration = 0;
    std::uint32_t point = 0;
    std::vector<std::unique_ptr<Recorded>> variables;
    // What is not there: which variable, and why.
    std::vector<std::pair<std::uint32_t, std::string>> holes;

    // Cuts all variables into pieces of about 256 KiB.
    void cut();
    // Hashes pieces until none is left. From any number of threads.
    void work();
    std::uint64_t tree_bytes() const;
    std::uint64_t data_bytes() const;

  private:
    struct Piece {
        Recorded* variable;
        std::uint64_t first_leaf;
        std::uint64_t leaf_count;
    };
    std::vector<Piece> pieces_;
    std::atomic<std::size_t> next_{0};
};

}  // namespace ciwrap::record
