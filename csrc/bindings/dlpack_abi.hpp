// The memory layout of DLPack's capsules (https://dmlc.github.io/dlpack/latest/), of the
// unversioned form and of version 1.
#pragma once

#include <cstdint>

namespace ciwrap::dlpack {

enum DeviceType : std::int32_t {
    cpu = 1,
    cuda = 2,
    cuda_host = 3,
    rocm_host = 11,
    cuda_managed = 13,
};

enum TypeCode : std::uint8_t {
    signed_integer = 0,
    unsigned_integer = 1,
    floating = 2,
    bfloat = 4,
    complex_floating = 5,
    boolean = 6,
};

struct Tensor {
    void* data;
    std::int32_t device_type;
    std::int32_t device_id;
    std::int32_t ndim;
    std::uint8_t type_code;
    std::uint8_t type_bits;
    std::uint16_t type_lanes;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null: C order, back to back
    std::uint64_t byte_offset;
};

struct Managed {
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};

struct ManagedVersioned {
    std::uint32_t major;
    std::uint32_t minor;
    void* context;
    void (*deleter)(ManagedVersioned*);
    std::uint64_t flags;
    Tensor tensor;
};

static_assert(sizeof(void*) == 8 && sizeof(Tensor) == 48 && sizeof(Managed) == 64 &&
              sizeof(ManagedVersioned) == 80);

}  // namespace ciwrap::dlpack
