#include "io/read_engine.hpp"

#include <unistd.h>

#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <variant>

#include "ciwrap/error.hpp"
#include "io/pread_reader.hpp"
#include "io/read_queue.hpp"
#include "io/uring_reader.hpp"

namespace ciwrap {

EngineKind parse_engine_kind(std::string_view name) {
    if (name == "auto") {
        return EngineKind::automatic;
    }
    if (name == "io_uring") {
        return EngineKind::io_uring;
    }
    if (name == "pread") {
        return EngineKind::pread;
    }
    throw Error(ErrorCode::invalid_argument,
                "unknown I/O engine '" + std::string(name) + "'; known: auto, io_uring, pread");
}

std::vector<EngineReport> io_engine_report() {
    const std::optional<std::string> reason = UringReader::why_unusable();
    return {{"io_uring", !reason, reason.value_or("")}, {"pread", true, ""}};
}

std::string liburing_version() {
    return UringReader::library_version();
}

// --- ReadBatch

ReadBatch::ReadBatch(std::shared_ptr<ReadQueue> queue, std::shared_ptr<BatchState> state)
    : queue_(std::move(queue)), state_(std::move(state)) {}

ReadBatch::~ReadBatch() {
    finish();
}

ReadBatch& ReadBatch::operator=(ReadBatch&& other) noexcept {
    finish();
    queue_ = std::move(other.queue_);
    state_ = std::move(other.state_);
    return *this;
}

void ReadBatch::finish() noexcept {
    if (state_) {
        queue_->wait(*state_);
        state_.reset();
    }
}

void ReadBatch::wait() {
    if (!state_) {
        return;
    }
    const std::optional<Error> error = queue_->wait(*state_);
    state_.reset();
    if (error) {
        throw *error;
    }
}

// --- ReadEngine

struct ReadEngine::Impl {
    std::shared_ptr<ReadQueue> queue = std::make_shared<ReadQueue>();
    std::variant<std::monostate, UringReader, PreadReader> reader;
    std::string fallback_reason;
};

ReadEngine::ReadEngine(const EngineOptions& options) : impl_(std::make_unique<Impl>()) {
    if (options.queue_depth < 1 || options.queue_depth > 4096) {
        throw Error(ErrorCode::invalid_argument, "I/O queue depth " +
                                                     std::to_string(options.queue_depth) +
                                                     " is out of range (1 to 4096)");
    }
    if (options.kind != EngineKind::pread) {
        try {
            impl_->reader.emplace<UringReader>(impl_->queue, options.queue_depth);
            return;
        } catch (const Error& error) {
            if (options.kind == EngineKind::io_uring || error.code() != ErrorCode::not_available) {
                throw Error(error.code(),
                            std::string("I/O engine io_uring cannot be used: ") + error.what());
            }
            impl_->fallback_reason = error.what();
        }
    }
    impl_->reader.emplace<PreadReader>(impl_->queue, options.threads);
}

ReadEngine::~ReadEngine() = default;

std::string_view ReadEngine::name() const noexcept {
    return std::holds_alternative<UringReader>(impl_->reader) ? "io_uring" : "pread";
}

const std::string& ReadEngine::fallback_reason() const noexcept {
    return impl_->fallback_reason;
}

ReadBatch ReadEngine::submit(std::span<const ReadRequest> requests) {
    for (const ReadRequest& request : requests) {
        request.file->require_range(request.offset, request.length);
    }
    return {impl_->queue, impl_->queue->push(requests)};
}

void ReadEngine::read(std::span<const ReadRequest> requests) {
    submit(requests).wait();
}

// --- ReadBuffers

namespace {

std::size_t page_bytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

ReadBuffers ReadEngine::make_buffers(std::size_t count, std::size_t bytes, bool is_registered) {
    const std::size_t page = page_bytes();
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2;
    if (bytes > most - page || (count != 0 && (bytes + page) > most / count)) {
        throw Error(ErrorCode::invalid_argument, "I/O buffers of " + std::to_string(count) + " x " +
                                                     std::to_string(bytes) +
                                                     " bytes exceed the address space");
    }
    ReadBuffers buffers;
    buffers.stride_ = (bytes + page - 1) / page * page;
    buffers.bytes_ = bytes;
    buffers.count_ = count;
    const std::size_t total = buffers.stride_ * count;
    if (total == 0) {
        return buffers;
    }
    buffers.memory_ = static_cast<std::byte*>(::operator new (total, std::align_val_t{page}));
    if (auto* uring = std::get_if<UringReader>(&impl_->reader); uring != nullptr && is_registered) {
        if (uring->register_memory({buffers.memory_, total})) {
            buffers.registered_with_ = this;
        }
    }
    return buffers;
}

ReadBuffers::~ReadBuffers() {
    if (memory_ == nullptr) {
        return;
    }
    if (registered_with_ != nullptr) {
        std::get<UringReader>(registered_with_->impl_->reader).unregister_memory();
    }
    ::operator delete (memory_, std::align_val_t{page_bytes()});
}

ReadBuffers::ReadBuffers(ReadBuffers&& other) noexcept {
    *this = std::move(other);
}

ReadBuffers& ReadBuffers::operator=(ReadBuffers&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(count_, other.count_);
    std::swap(bytes_, other.bytes_);
    std::swap(stride_, other.stride_);
    std::swap(registered_with_, other.registered_with_);
    return *this;
}

}  // namespace ciwrap
