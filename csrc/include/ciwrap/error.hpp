// Errors that cross a module boundary.
//
// Every failure that a user can cause or meet (a bad argument, a file that cannot be read, a golden
// that is damaged) is thrown as ciwrap::Error with a code that callers may act on and a one-line
// message that names the file or variable. Broken invariants of our own are assertions, not Errors.
#pragma once

#include <stdexcept>
#include <string>

namespace ciwrap {

enum class ErrorCode {
    invalid_argument,  // the caller asked for something that has no meaning
    io,                // the operating system refused or failed; the message quotes its reason
    corrupt_file,      // bytes that are not what their format or checksum promises
    unsupported,       // well-formed, but of a kind or version that this build does not know
    too_large,         // more than the caller allows (the limit is the caller's own)
    not_available,     // a backend, engine or device that this machine or build does not have
    interrupted,       // a signal asked a long call to stop
    internal,          // two of our own answers contradict each other: never a verdict
};

class Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

    ErrorCode code() const noexcept { return code_; }

  private:
    ErrorCode code_;
};

}  // namespace ciwrap
