#include "io/uring_reader.hpp"

#if CIWRAP_HAVE_IO_URING
#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#endif

namespace ciwrap {

#if CIWRAP_HAVE_IO_URING

namespace {

std::string explain(const char* step, int error) {
    std::string what = std::string(step) + ": " + std::generic_category().message(error);
    switch (error) {
        case EPERM:
        case EACCES:
            return what +
                   " (forbidden by a container's seccomp profile or kernel.io_uring_disabled)";
        case ENOSYS:
            return what + " (the kernel or sandbox has no io_uring)";
        case ENOMEM:
            return what + " (too little lockable memory, see ulimit -l)";
        default:
            return what;
    }
}

// Owns a ring that has answered a request. Some sandboxes allow one to be made and then refuse to
// let it be entered, so setting it up proves nothing yet.
class Ring {
  public:
    explicit Ring(unsigned entries) {
        if (const int result = io_uring_queue_init(entries, &ring_, 0); result < 0) {
            throw Error(ErrorCode::not_available, explain("io_uring_setup", -result));
        }
        try {
            require_reads();
            require_answer();
        } catch (...) {
            io_uring_queue_exit(&ring_);
            throw;
        }
    }
    ~Ring() { io_uring_queue_exit(&ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    io_uring* get() { return &ring_; }

  private:
    void require_reads() {
        io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
        if (probe == nullptr) {
            throw Error(ErrorCode::not_available, "the kernel's io_uring is older than 5.6");
        }
        const bool reads = io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
        io_uring_free_probe(probe);
        if (!reads) {
            throw Error(ErrorCode::not_available, "the kernel's io_uring cannot read files");
        }
    }

    void require_answer() {
        io_uring_prep_nop(io_uring_get_sqe(&ring_));
        int result = 0;
        do {
            result = io_uring_submit_and_wait(&ring_, 1);
        } while (result == -EINTR);
        io_uring_cqe* answer = nullptr;
        if (result >= 0) {
            result = io_uring_peek_cqe(&ring_, &answer);
        }
        if (result < 0) {
            throw Error(ErrorCode::not_available, explain("io_uring_enter", -result));
        }
        io_uring_cqe_seen(&ring_, answer);
    }

    io_uring ring_{};
};

}  // namespace

struct UringReader::Impl {
    Impl(std::shared_ptr<ReadQueue> shared_queue, unsigned depth)
        : queue(std::move(shared_queue)), ring(depth), slots(depth) {
        free_slots.reserve(depth);
        for (std::size_t i = 0; i < depth; ++i) {
            free_slots.push_back(depth - 1 - i);
        }
        server = std::thread([this] { serve(); });
    }

    ~Impl() {
        queue->close();
        server.join();
    }

    void serve() {
        std::vector<QueuedRead> taken;
        for (;;) {
            const bool idle = free_slots.size() == slots.size();
            const bool open = queue->take(taken, free_slots.size(), idle);
            if (!open && taken.empty() && idle) {
                return;
            }
            for (QueuedRead& read : taken) {
                const std::size_t slot = free_slots.back();
                free_slots.pop_back();
                slots[slot] = std::move(read);
                prepare(slot);
            }
            taken.clear();
            submit_and_reap();
        }
    }

    // The ring has as many entries as there are slots, and each slot has at most one.
    void prepare(std::size_t slot) {
        const ReadRequest& rest = slots[slot].rest;
        io_uring_sqe* entry = io_uring_get_sqe(ring.get());
        const auto length = static_cast<unsigned>(rest.length);
        if (is_registered(rest)) {
            io_uring_prep_read_fixed(entry, rest.file->descriptor(), rest.destination, length,
                                     rest.offset, 0);
        } else {
            io_uring_prep_read(entry, rest.file->descriptor(), rest.destination, length,
                               rest.offset);
        }
        io_uring_sqe_set_data64(entry, slot);
    }

    bool is_registered(const ReadRequest& read) {
        const std::lock_guard lock(registration);
        return !registered.empty() && read.destination >= registered.data() &&
               read.destination + read.length <= registered.data() + registered.size();
    }

    // Waits for at least one read. Requests that are submitted meanwhile begin after it; there is
    // something in flight then, so the disk is not idle.
    void submit_and_reap() {
        const int result = io_uring_submit_and_wait(ring.get(), 1);
        if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
            // A ring that has answered before is broken: the kernel may or may not write to the
            // destinations still. Nothing that returns from here would be safe.
            std::abort();
        }
        unsigned head = 0;
        unsigned seen = 0;
        io_uring_cqe* answer = nullptr;
        again.clear();
        io_uring_for_each_cqe(ring.get(), head, answer) {
            ++seen;
            handle(static_cast<std::size_t>(answer->user_data), answer->res);
        }
        io_uring_cq_advance(ring.get(), seen);
        for (const std::size_t slot : again) {
            prepare(slot);
        }
    }

    void handle(std::size_t slot, int result) {
        try {
            if (!advance(slots[slot], result)) {
                again.push_back(slot);
                return;
            }
            queue->finish(slots[slot]);
        } catch (const Error& error) {
            queue->finish(slots[slot], &error);
        }
        slots[slot] = {};
        free_slots.push_back(slot);
    }

    std::shared_ptr<ReadQueue> queue;
    Ring ring;
    std::vector<QueuedRead> slots;        // reads in flight, by the number that their entry carries
    std::vector<std::size_t> free_slots;  // the server's alone, as are slots and again
    std::vector<std::size_t> again;       // short reads, to be continued
    std::mutex registration;
    std::span<const std::byte> registered;
    std::thread server;
};

UringReader::UringReader(std::shared_ptr<ReadQueue> queue, unsigned queue_depth) {
    try {
        impl_ = std::make_unique<Impl>(std::move(queue), queue_depth);
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::not_available,
                    std::string("no thread can be started: ") + error.what());
    }
}

UringReader::~UringReader() = default;

std::optional<std::string> UringReader::why_unusable() {
    try {
        const Ring probe(4);
        return std::nullopt;
    } catch (const Error& error) {
        return error.what();
    }
}

std::string UringReader::library_version() {
    return CIWRAP_LIBURING_VERSION;
}

bool UringReader::register_memory(std::span<std::byte> memory) {
    const std::lock_guard lock(impl_->registration);
    // The kernel takes at most 1 GiB in one buffer.
    if (!impl_->registered.empty() || memory.size() > (std::size_t{1} << 30)) {
        return false;
    }
    const iovec vector{memory.data(), memory.size()};
    if (io_uring_register_buffers(impl_->ring.get(), &vector, 1) != 0) {
        return false;
    }
    impl_->registered = memory;
    return true;
}

void UringReader::unregister_memory() {
    const std::lock_guard lock(impl_->registration);
    impl_->registered = {};
    io_uring_unregister_buffers(impl_->ring.get());
}

#else  // built without liburing

struct UringReader::Impl {};

UringReader::UringReader(std::shared_ptr<ReadQueue>, unsigned) {
    throw Error(ErrorCode::not_available, *why_unusable());
}
UringReader::~UringReader() = default;
std::optional<std::string> UringReader::why_unusable() {
#if CIWRAP_POSIX_ONLY
    return "not in this build (Linux alone has it, and it was made without Linux's own calls)";
#else
    return "not in this build (liburing was not found)";
#endif
}
std::string UringReader::library_version() {
    return "none";
}
bool UringReader::register_memory(std::span<std::byte>) {
    return false;
}
void UringReader::unregister_memory() {}

#endif

}  // namespace ciwrap
