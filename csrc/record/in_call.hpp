// Whether this thread is in a call of the library.
#pragma once

namespace ciwrap::record {

// A call that comes while it is, is from a signal handler, and would wait for itself.
inline thread_local bool is_in_call = false;

class InCall {
  public:
    explicit InCall(bool is_in) : before_(is_in_call) { is_in_call = is_in; }
    ~InCall() { is_in_call = before_; }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;

  private:
    bool before_;
};

}  // namespace ciwrap::record
