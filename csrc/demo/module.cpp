// ciwrap._demo: the demonstration's simulation, and the memory-read kernel the benchmarks measure
// themselves against.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bench/read_bandwidth.hpp"
#include "demo/particle_mesh.hpp"

namespace py = pybind11;

namespace {

using ciwrap::demo::ParticleMesh;

template <typename T>
py::array_t<T> copy_of(const std::vector<T>& values) {
    return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

// The rows of the mesh that belong to a rank.
template <typename T>
py::array_t<T> slab_of(const std::vector<T>& mesh, std::size_t rank) {
    constexpr std::size_t kSlabRows = ParticleMesh::kRows / ParticleMesh::kRanks;
    if (rank >= ParticleMesh::kRanks) {
        throw py::index_error("no such rank");
    }
    return py::array_t<T>({kSlabRows, ParticleMesh::kColumns},
                          mesh.data() + rank * kSlabRows * ParticleMesh::kColumns);
}

py::dict state_of(const ParticleMesh& mesh, std::size_t rank) {
    const ciwrap::demo::Particles& p = mesh.particles(rank);
    py::dict state;
    state["id"] = copy_of(p.id);
    state["x"] = copy_of(p.x);
    state["y"] = copy_of(p.y);
    state["vx"] = copy_of(p.vx);
    state["vy"] = copy_of(p.vy);
    state["density"] = slab_of(mesh.density(), rank);
    state["potential"] = slab_of(mesh.potential(), rank);
    return state;
}

std::uint64_t read_pass(const py::buffer& data, std::size_t threads) {
    const py::buffer_info info = data.request();
    const auto bytes = static_cast<std::size_t>(info.size * info.itemsize);
    const auto* words = static_cast<const std::uint64_t*>(info.ptr);
    const py::gil_scoped_release release;
    return ciwrap::bench::sum_words(words, bytes / sizeof(std::uint64_t), threads);
}

}  // namespace

PYBIND11_MODULE(_demo, module) {
    module.doc() = "The simulation of `ciwrap demo`, and a memory-read kernel for the benchmarks.";
    py::class_<ParticleMesh>(module, "ParticleMesh")
        .def(py::init<std::uint64_t, std::size_t, std::size_t>(), py::kw_only(), py::arg("seed"),
             py::arg("particles_per_rank"), py::arg("threads"))
        .def("step", &ParticleMesh::step, py::call_guard<py::gil_scoped_release>())
        .def("plant_boundary_sign_error", &ParticleMesh::plant_boundary_sign_error, py::arg("rank"))
        .def("state", &state_of, py::arg("rank"));
    module.def("read_pass", &read_pass, py::arg("data"), py::arg("threads"));
}
