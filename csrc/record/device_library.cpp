#include "record/device_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "ciwrap/error.hpp"

namespace ciwrap::record {
namespace {

// As CIWRAP_RECORD_DEVICE_LIBRARY says, else beside this library.
std::string device_library_path() {
    const char* const asked = std::getenv("CIWRAP_RECORD_DEVICE_LIBRARY");
    if (asked != nullptr && *asked != '\0')
        return asked;
    static const char here = 0;
    Dl_info found{};
    std::string name = "libciwrap_record_cuda.so";
    if (dladdr(&here, &found) == 0 || found.dli_fname == nullptr)
        return name;
    const std::string path = found.dli_fname;
    return path.substr(0, path.rfind('/') + 1) + name;
}

void require(bool went_well, const char* why) {
    if (!went_well)
        throw Error(ErrorCode::not_available, why);
}

}  // namespace

DeviceLibrary::DeviceLibrary() {
    const std::string path = device_library_path();
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        fault_ = dlerror();
        return;
    }
    void* const symbol = dlsym(handle, device_table_name);
    if (symbol != nullptr)
        table_ = reinterpret_cast<FindDeviceTable>(symbol)(CIWRAP_VERSION);
    if (table_ == nullptr)
        fault_ = path + " is of another version";
}

const DeviceLibrary& DeviceLibrary::get() {
    static const auto* const library = new DeviceLibrary;
    if (library->table_ == nullptr) {
        throw Error(
            ErrorCode::not_available,
            "lies on a device, and the library that reads it is not there: " + library->fault_);
    }
    return *library;
}

void DeviceLibrary::hash(const DeviceMemory& memory, std::span<const ChunkBatch> batches,
                         std::uint64_t chunk_count) const {
    char why[512] = {};
    require(table_->hash(memory, batches.data(), batches.size(), chunk_count, why, sizeof why),
            why);
}

void DeviceLibrary::copy(const DeviceMemory& memory, std::uint64_t first, std::uint64_t count,
                         std::byte* to) const {
    char why[512] = {};
    require(table_->copy(memory, first, count, to, why, sizeof why), why);
}

}  // namespace ciwrap::record
