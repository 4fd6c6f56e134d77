// Whether this thread is in a call of the library.
#pragma once

namespace ciwrap::record {

// A call that comes while it is, is from a signal handler, and would wait for itself.
inline thread_local bool is_in_call = false;
// Where the stack of the call begins: what is above is the program's. Null outside of one.
inline thread_local const void* call_frame = nullptr;

class InCall {
  public:
    // frame: of the function that makes it, which the program has called.
    explicit InCall(bool is_in, const void* frame = __builtin_frame_address(0))
        : before_(is_in_call), frame_before_(call_frame) {
        is_in_call = is_in;
        call_frame = frame;
    }
    ~InCall() {
        is_in_call = before_;
        call_frame = frame_before_;
    }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

  private:
    bool before_;
    const void* frame_before_;
};

}  // namespace ciwrap::record
