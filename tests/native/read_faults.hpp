// Reads that fail, for tests. The test programs link read_faults.cpp in the place of
// csrc/io/read_result.cpp: every answer of the system to a read goes through here.
#pragma once

#include <functional>

#include "io/read_engine.hpp"

namespace ciwrap::testing {

// What becomes of one answer: bytes read, or -errno. One call at a time, from an engine's thread.
using ReadFault = std::function<long(const ReadRequest& read, long result)>;

// Reads go through `fault` as long as this lives. One at a time; engines may outlive it.
class FaultyReads {
  public:
    explicit FaultyReads(ReadFault fault);
    ~FaultyReads();
    FaultyReads(const FaultyReads&) = delete;
    FaultyReads& operator=(const FaultyReads&) = delete;
};

// Answers as if no more than `bytes` had come: what came beyond them is spoiled.
long only(const ReadRequest& read, long result, long bytes);
// Answers that the read failed; all that came is spoiled.
long fail(const ReadRequest& read, int error);

}  // namespace ciwrap::testing
