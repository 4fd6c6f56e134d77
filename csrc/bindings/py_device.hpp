// Python's `DeviceArray`: an array of another library, held where it lies.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device_array.hpp"

namespace ciwrap {

struct PyDeviceArray {
    DeviceArray array;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // in bytes; empty: C order, back to back
    std::int32_t device_type = 0;       // as DLPack numbers them
    std::shared_ptr<void> tensor;       // given back to its maker when nobody holds it any more
    pybind11::object owner;

    bool is_on_host() const;
};

}  // namespace ciwrap
