// What the binding files share: how the core's values look from Python.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "ciwrap/error.hpp"
#include "ciwrap/merkle_tree.hpp"
#include "ciwrap/tree.hpp"

namespace ciwrap {

// The error as one of Python's ciwrap.base.errors, made but not raised.
pybind11::object as_exception(const Error& error);

// Python's `Tree`: an immutable tree, shared.
struct PyTree {
    std::shared_ptr<const MerkleTree> tree;
};

// The bytes of anything with the buffer protocol, C-contiguous; held while this lives.
class PyBytes {
  public:
    explicit PyBytes(const pybind11::object& object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0)
            throw pybind11::error_already_set();
    }
    ~PyBytes() { PyBuffer_Release(&view_); }
    PyBytes(const PyBytes&) = delete;
    PyBytes& operator=(const PyBytes&) = delete;

    std::span<const std::byte> bytes() const {
        return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
    }

  private:
    Py_buffer view_{};
};

// Counts, or indices of chunks.
inline pybind11::array_t<std::int64_t> as_array(const std::vector<std::uint64_t>& numbers) {
    pybind11::array_t<std::int64_t> array(static_cast<pybind11::ssize_t>(numbers.size()));
    std::copy(numbers.begin(), numbers.end(), array.mutable_data());
    return array;
}

// A row of numbers for each chunk.
inline pybind11::array_t<std::int64_t> as_rows(std::span<const ChunkSummary> summaries) {
    pybind11::array_t<std::int64_t> array({summaries.size(), summary_numbers});
    if (!summaries.empty())
        std::memcpy(array.mutable_data(), summaries.data(), summaries.size_bytes());
    return array;
}

inline pybind11::bytes digest_bytes(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

// The `code` of errors in Python.
inline const char* error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument:
            return "invalid_argument";
        case ErrorCode::io:
            return "io";
        case ErrorCode::corrupt_file:
            return "corrupt_file";
        case ErrorCode::unsupported:
            return "unsupported";
        case ErrorCode::too_large:
            return "too_large";
        case ErrorCode::not_available:
            return "not_available";
        case ErrorCode::interrupted:
            return "interrupted";
        case ErrorCode::internal:
            return "internal";
    }
    return "invalid_argument";
}

// Throws what Ctrl-C asks for. May be called without the GIL, from the thread that released it.
inline void check_signals() {
    const pybind11::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0)
        throw pybind11::error_already_set();
}

void register_parameters(pybind11::module_& module);
void register_tree(pybind11::module_& module);
void register_files(pybind11::module_& module);
void register_builder(pybind11::module_& module);
void register_compare(pybind11::module_& module);
void register_device(pybind11::module_& module);
void register_stream(pybind11::module_& module);
void register_golden(pybind11::module_& module);
void register_text(pybind11::module_& module);
void register_runtime(pybind11::module_& module);

}  // namespace ciwrap
