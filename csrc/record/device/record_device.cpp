// The second library's one exported function, over the kernels that ciwrap hashes with on devices.
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>

#include "ciwrap/execution.hpp"
#include "kernels/device_array.hpp"
#include "kernels/device_hasher.hpp"
#include "record/device/device_table.hpp"

namespace ciwrap::record {
namespace {

// As CUDA numbers streams: the one that waits for all others but those made to be independent.
constexpr std::uintptr_t default_stream = 1;

DeviceArray array_of(const DeviceMemory& memory) {
    DeviceArray array =
        make_device_array(memory.data, std::span(memory.extents, memory.dimensions),
                          std::span(memory.strides, memory.dimensions), memory.element_bytes);
    array.stream = default_stream;
    return array;
}

// One user at a time. Never destroyed: programs may record until their very end, when the device's
// driver may be gone.
class Device {
  public:
    static Device& get() {
        static auto* const device = new Device;
        return *device;
    }

    void hash(const DeviceMemory& memory, std::span<const ChunkBatch> batches,
              std::uint64_t chunk_count) {
        const std::lock_guard lock(mutex_);
        if (!hasher_) {
            resolve_execution(CIWRAP_RECORD_BACKEND, 1);
            hasher_ = make_device_hasher(backend);
        }
        const DeviceArray array = array_of(memory);
        hasher_->accept(array);
        for (const ChunkBatch& batch : batches)
            hasher_->hash_resident(array, 0, batch, chunk_count, nullptr);
        hasher_->finish();
    }

    void copy(const DeviceMemory& memory, std::uint64_t first, std::uint64_t count, std::byte* to) {
        const std::lock_guard lock(mutex_);
        resolve_execution(CIWRAP_RECORD_BACKEND, 1);
        copy_to_host(backend, array_of(memory), first, count, to);
    }

  private:
    static constexpr Backend backend =
        CIWRAP_RECORD_BACKEND[0] == 'c' ? Backend::cuda : Backend::portable;

    std::mutex mutex_;
    std::unique_ptr<DeviceHasher> hasher_;
};

template <class Call>
bool told(char* why, std::size_t why_bytes, Call call) {
    try {
        call();
        return true;
    } catch (const std::exception& error) {
        std::snprintf(why, why_bytes, "%s", error.what());
        return false;
    }
}

constexpr DeviceTable table = {
    [](const DeviceMemory& memory, const ChunkBatch* batches, std::size_t batch_count,
       std::uint64_t chunk_count, char* why, std::size_t why_bytes) {
        return told(why, why_bytes, [&] {
            Device::get().hash(memory, std::span(batches, batch_count), chunk_count);
        });
    },
    [](const DeviceMemory& memory, std::uint64_t first, std::uint64_t count, std::byte* to,
       char* why, std::size_t why_bytes) {
        return told(why, why_bytes, [&] { Device::get().copy(memory, first, count, to); });
    },
};

}  // namespace
}  // namespace ciwrap::record

extern "C" __attribute__((visibility("default"))) const ciwrap::record::DeviceTable*
ciwrap_record_device_table(const char* version) {
    return std::strcmp(version, CIWRAP_VERSION) == 0 ? &ciwrap::record::table : nullptr;
}
