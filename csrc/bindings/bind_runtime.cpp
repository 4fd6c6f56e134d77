// What this build and machine can do: backends, I/O engines, CPU levels, versions.
#include "base/xxh3.hpp"
#include "bindings/py_tree.hpp"
#include "ciwrap/golden.hpp"
#include "io/read_engine.hpp"
#include "kernels/executor.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace ciwrap {
namespace {

py::list backends() {
    py::list report;
    for (const BackendReport& backend : backend_report()) {
        report.append(py::dict("name"_a = backend.name, "usable"_a = backend.usable,
                               "reason"_a = backend.reason, "concurrency"_a = backend.concurrency));
    }
    return report;
}

py::list engines() {
    py::list report;
    for (const EngineReport& engine : io_engine_report()) {
        report.append(py::dict("name"_a = engine.name, "usable"_a = engine.usable,
                               "reason"_a = engine.reason));
    }
    return report;
}

py::list levels() {
    py::list report;
    for (const CpuLevelReport& level : cpu_level_report()) {
        report.append(py::dict("name"_a = level.name, "usable"_a = level.usable,
                               "reason"_a = level.reason, "active"_a = level.active));
    }
    return report;
}

py::dict versions() {
    return py::dict("kokkos"_a = kokkos_version(), "liburing"_a = liburing_version(),
                    "zstd"_a = zstd_version(), "compiler"_a = __VERSION__);
}

}  // namespace

void register_runtime(py::module_& module) {
    module.def("backends", &backends);
    module.def("io_engines", &engines);
    module.def("cpu_levels", &levels);
    module.def("set_cpu_level", &set_cpu_level, py::arg("name"));
    module.def("library_versions", &versions);
    module.def(
        "xxh3_128",
        [](const py::object& data) { return digest_bytes(xxh3_128(PyBytes(data).bytes())); },
        py::arg("data"));
}

}  // namespace ciwrap
