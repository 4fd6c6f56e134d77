#include "read_faults.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "io/read_result.hpp"

namespace ciwrap {
namespace testing {
namespace {

std::mutex mutex;
ReadFault active;

}  // namespace

FaultyReads::FaultyReads(ReadFault fault) {
    const std::lock_guard lock(mutex);
    active = std::move(fault);
}

FaultyReads::~FaultyReads() {
    const std::lock_guard lock(mutex);
    active = nullptr;
}

long only(const ReadRequest& read, long result, long bytes) {
    if (result <= bytes)
        return result;
    std::memset(read.destination + bytes, 0xa5, read.length - static_cast<std::size_t>(bytes));
    return bytes;
}

long fail(const ReadRequest& read, int error) {
    std::memset(read.destination, 0xa5, read.length);
    return -error;
}

}  // namespace testing

long read_result(const ReadRequest& read, long result) {
    const std::lock_guard lock(testing::mutex);
    return testing::active ? testing::active(read, result) : result;
}

}  // namespace ciwrap
