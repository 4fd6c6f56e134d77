// StreamSession.
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "bindings/py_files.hpp"
#include "bindings/py_tree.hpp"
#include "core/stream_session.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace ciwrap {
namespace {

using LeafArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

py::array_t<std::uint8_t> copied(std::span<const std::byte> bytes) {
    return py::array_t<std::uint8_t>(static_cast<py::ssize_t>(bytes.size()),
                                     reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

py::bytes as_bytes(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes the GIL for each call; the function object outlives the comparison.
DifferenceSink make_sink(const py::object& function) {
    if (function.is_none())
        return {};
    const py::handle called = function;
    return [called](std::size_t job, std::span<const std::int64_t> indices,
                    std::span<const std::byte> golden, std::span<const std::byte> value) {
        const py::gil_scoped_acquire held;
        const py::array_t<std::int64_t> positions(static_cast<py::ssize_t>(indices.size()),
                                                  indices.data());
        called(job, positions, copied(golden), copied(value));
    };
}

// Python's `StreamSession`. The session's thread may need the GIL for its sink, so it is not held
// where that thread is waited for.
class PyStreamSession {
  public:
    PyStreamSession(const StreamOptions& options, const Execution& execution, py::object sink)
        : sink_(std::move(sink)),
          session_(std::make_unique<StreamSession>(options, execution, make_sink(sink_))) {}
    ~PyStreamSession() { give_up(); }
    PyStreamSession(const PyStreamSession&) = delete;
    PyStreamSession& operator=(const PyStreamSession&) = delete;

    void give_up() {
        const py::gil_scoped_release released;
        session_.reset();
    }

    std::size_t add(const TreeParameters& parameters, const std::filesystem::path& golden_path,
                    std::uint64_t golden_offset, const std::filesystem::path& new_path,
                    std::uint64_t new_offset, std::uint64_t byte_count,
                    const std::optional<LeafArray>& leaves,
                    const std::optional<PyFileStamp>& golden_stamp,
                    const std::optional<PyFileStamp>& new_stamp) {
        StreamJob job{
            parameters,         golden_path.native(), golden_offset, new_path.native(),
            new_offset,         byte_count,           std::nullopt,  stamp_of(golden_stamp),
            stamp_of(new_stamp)};
        if (leaves)
            job.leaves.emplace(leaves->data(), leaves->data() + leaves->size());
        return session().add(std::move(job));
    }

    py::list take_done(bool wait, const py::object& tick) {
        std::vector<StreamSession::Done> done;
        {
            StreamSession& open = session();
            const auto interrupt = [&] {
                const py::gil_scoped_acquire held;
                check_signals();
                if (!tick.is_none())
                    tick();
            };
            const py::gil_scoped_release released;
            done = open.take_done(wait, interrupt);
        }
        py::list rows;
        for (StreamSession::Done& one : done) {
            StreamOutcome& outcome = one.outcome;
            const bool is_known = !outcome.error;
            rows.append(py::make_tuple(
                one.job, is_known ? py::cast(std::move(outcome.comparison)) : py::none(),
                is_known ? py::none() : as_exception(*outcome.error),
                py::make_tuple(as_bytes(outcome.first_golden), as_bytes(outcome.first_value))));
        }
        return rows;
    }

    std::uint64_t bytes_compared() { return session().bytes_compared(); }

    py::dict close() {
        StreamTotals totals;
        {
            StreamSession& open = session();
            const py::gil_scoped_release released;
            totals = open.close(check_signals);
        }
        return py::dict("bytes_read"_a = totals.bytes_read,
                        "direct_bytes_read"_a = totals.direct_bytes_read,
                        "read_count"_a = totals.read_count, "buffer_bytes"_a = totals.buffer_bytes,
                        "engine"_a = totals.engine);
    }

  private:
    StreamSession& session() {
        if (!session_)
            throw Error(ErrorCode::invalid_argument, "the comparison was given up");
        return *session_;
    }

    py::object sink_;
    std::unique_ptr<StreamSession> session_;
};

std::unique_ptr<PyStreamSession> make_session(const std::string& engine, unsigned queue_depth,
                                              std::size_t memory_bytes, const std::string& direct,
                                              std::size_t max_indices, const std::string& backend,
                                              int threads, py::object sink) {
    StreamOptions options;
    options.engine.kind = parse_engine_kind(engine);
    options.engine.queue_depth = queue_depth;
    options.memory_bytes = memory_bytes;
    options.direct = parse_direct_reads(direct);
    options.max_indices = max_indices;
    return std::make_unique<PyStreamSession>(options, resolve_execution(backend, threads),
                                             std::move(sink));
}

}  // namespace

void register_stream(py::module_& module) {
    py::class_<PyStreamSession>(module, "StreamSession")
        .def(py::init(&make_session), py::kw_only(), py::arg("engine") = "auto",
             py::arg("queue_depth") = 128, py::arg("memory_bytes") = std::size_t{256} << 20,
             py::arg("direct") = "auto", py::arg("max_indices") = 100, py::arg("backend") = "auto",
             py::arg("threads") = 0, py::arg("sink") = py::none())
        .def("add", &PyStreamSession::add, py::arg("parameters"), py::arg("golden_path"),
             py::arg("golden_offset"), py::arg("new_path"), py::arg("new_offset"),
             py::arg("byte_count"), py::arg("leaves") = py::none(), py::kw_only(),
             py::arg("golden_stamp") = py::none(), py::arg("new_stamp") = py::none())
        .def("take_done", &PyStreamSession::take_done, py::arg("wait") = false,
             py::arg("tick") = py::none())
        .def_property_readonly("bytes_compared", &PyStreamSession::bytes_compared)
        .def("close", &PyStreamSession::close)
        .def("give_up", &PyStreamSession::give_up);
}

}  // namespace ciwrap
