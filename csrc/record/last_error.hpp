// How many errors there were, and the words of the last one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>

namespace ciwrap::record {

inline constexpr const char* no_memory = "memory ran out";
// What an exception says.
const char* words_of(const std::exception& error) noexcept;

// Thread safe, and takes no memory: it also has to tell that there is none.
class LastError {
  public:
    // Counts an error, and prints the first one on stderr. code: one of record.h.
    void tell(int code, const char* what) noexcept;
    // The code of the last error. Its words are written to `text`, as far as they fit.
    int last(char* text, std::size_t bytes) noexcept;
    std::int64_t count() const noexcept { return count_.load(); }

  private:
    std::atomic<std::int64_t> count_{0};
    std::mutex mutex_;
    int code_ = 0;
    char text_[512] = {};
};

}  // namespace ciwrap::record
