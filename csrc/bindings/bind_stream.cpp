// StreamJob, stream_compare.
#include <algorithm>
#include <optional>
#include <utility>

#include "bindings/py_tree.hpp"
#include "core/stream_compare.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace ciwrap {
namespace {

using LeafArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

StreamJob make_job(const TreeParameters& parameters, std::string golden_path,
                   std::uint64_t golden_offset, std::string new_path, std::uint64_t new_offset,
                   std::uint64_t byte_count, const std::optional<LeafArray>& leaves) {
    StreamJob job{parameters,    std::move(golden_path),
                  golden_offset, std::move(new_path),
                  new_offset,    byte_count,
                  std::nullopt};
    if (leaves)
        job.leaves.emplace(leaves->data(), leaves->data() + leaves->size());
    return job;
}

DirectReads parse_direct(const std::string& name) {
    if (name == "auto")
        return DirectReads::automatic;
    if (name == "always")
        return DirectReads::always;
    if (name == "never")
        return DirectReads::never;
    throw Error(ErrorCode::invalid_argument,
                "unknown kind of direct reads '" + name + "'; known: auto, always, never");
}

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

py::object error_or_none(const StreamOutcome& outcome) {
    if (!outcome.error)
        return py::none();
    const py::object type = py::module_::import("ciwrap._core").attr("CoreError");
    py::object error = type(outcome.error->what());
    error.attr("code") = error_code_name(outcome.error->code());
    return error;
}

py::dict stream(const std::vector<StreamJob>& jobs, const std::string& engine, unsigned queue_depth,
                std::size_t memory_bytes, const std::string& direct, std::size_t max_indices,
                const std::string& backend, int threads, const py::object& sink) {
    StreamOptions options;
    options.engine.kind = parse_engine_kind(engine);
    options.engine.queue_depth = queue_depth;
    options.memory_bytes = memory_bytes;
    options.direct = parse_direct(direct);
    options.max_indices = max_indices;
    const DifferenceSink taken = make_sink(sink);
    StreamReport report;
    {
        const py::gil_scoped_release released;
        report = stream_compare(jobs, options, resolve_execution(backend, threads), check_signals,
                                taken);
    }
    py::list comparisons;
    py::list errors;
    py::list first_values;
    for (StreamOutcome& outcome : report.outcomes) {
        errors.append(error_or_none(outcome));
        first_values.append(
            py::make_tuple(as_bytes(outcome.first_golden), as_bytes(outcome.first_value)));
        comparisons.append(std::move(outcome.comparison));
    }
    return py::dict("comparisons"_a = comparisons, "errors"_a = errors,
                    "first_values"_a = first_values, "bytes_read"_a = report.bytes_read,
                    "direct_bytes_read"_a = report.direct_bytes_read,
                    "read_count"_a = report.read_count, "buffer_bytes"_a = report.buffer_bytes,
                    "reads_in_flight"_a = report.reads_in_flight, "engine"_a = report.engine);
}

}  // namespace

void register_stream(py::module_& module) {
    py::class_<StreamJob>(module, "StreamJob")
        .def(py::init(&make_job), py::arg("parameters"), py::arg("golden_path"),
             py::arg("golden_offset"), py::arg("new_path"), py::arg("new_offset"),
             py::arg("byte_count"), py::arg("leaves") = py::none());
    module.def("stream_compare", &stream, py::arg("jobs"), py::kw_only(),
               py::arg("engine") = "auto", py::arg("queue_depth") = 128,
               py::arg("memory_bytes") = std::size_t{256} << 20, py::arg("direct") = "auto",
               py::arg("max_indices") = 100, py::arg("backend") = "auto", py::arg("threads") = 0,
               py::arg("sink") = py::none());
}

}  // namespace ciwrap
