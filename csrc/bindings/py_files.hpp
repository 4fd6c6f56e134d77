// What the binding files share about files.
#pragma once

#include <optional>
#include <string>

#include "io/file_stamp.hpp"

namespace ciwrap {

// Python's `FileStamp`.
struct PyFileStamp {
    std::string path;
    FileStamp stamp;
};

inline std::optional<FileStamp> stamp_of(const std::optional<PyFileStamp>& held) {
    return held ? std::optional(held->stamp) : std::nullopt;
}

}  // namespace ciwrap
