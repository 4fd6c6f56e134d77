#include "record/last_error.hpp"

#include <cstdio>
#include <new>

namespace ciwrap::record {

const char* words_of(const std::exception& error) noexcept {
    return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? no_memory : error.what();
}

void LastError::tell(int code, const char* what) noexcept {
    {
        // Never waits: this may be a signal handler, in whose thread the lock is held.
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock) {
            code_ = code;
            (void)std::snprintf(text_, sizeof text_, "%s", what);
        }
    }
    if (count_.fetch_add(1) == 0)
        (void)std::fprintf(stderr, "ciwrap: %s (further errors are counted)\n", what);
}

int LastError::last(char* text, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (bytes > 0)
        (void)std::snprintf(text, bytes, "%s", text_);
    return code_;
}

}  // namespace ciwrap::record
