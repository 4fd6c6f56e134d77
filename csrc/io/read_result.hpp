// What the system answers to a read, on its way to whoever looks at it. Internal to csrc/io.
#pragma once

#include "io/read_engine.hpp"

namespace ciwrap {

// Gives `result` back: the bytes read, or -errno, of one system call for `read`. It has a source
// file of its own, so that the native tests can link another one in its place, which makes reads
// fail, come short, or lets something happen between two of them. Called by the engine's threads.
long read_result(const ReadRequest& read, long result);

}  // namespace ciwrap
