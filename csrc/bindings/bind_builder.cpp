// TreeBuilder, build_tree, Drift.
#include <optional>
#include <vector>

#include "bindings/py_device.hpp"
#include "bindings/py_tree.hpp"
#include "ciwrap/error.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

std::shared_ptr<const MerkleTree> tree_or_null(const std::optional<PyTree>& golden) {
    return golden ? golden->tree : nullptr;
}

PyTree build(const TreeParameters& parameters, const py::object& data,
             const std::optional<PyTree>& golden, const std::string& backend, int threads) {
    const PyBytes held(data);
    const DataType type = parameters.data_type();
    if (held.bytes().size() % type.element_bytes() != 0) {
        throw Error(
            ErrorCode::invalid_argument,
            "the data are not a whole number of values of dtype '" + parameters.dtype() + "'");
    }
    const py::gil_scoped_release released;
    TreeBuilder builder(parameters, held.bytes().size() / type.scalar_bytes, tree_or_null(golden),
                        resolve_execution(backend, threads), check_signals);
    builder.update(held.bytes());
    return {builder.finish()};
}

template <class Value>
py::array copied(const std::vector<Value>& values) {
    return py::array_t<Value>(static_cast<py::ssize_t>(values.size()), values.data());
}

}  // namespace

void register_builder(py::module_& module) {
    py::class_<Drift>(module, "Drift")
        .def_readonly("scalar_count", &Drift::scalar_count)
        .def_readonly("max_level", &Drift::max_level)
        .def_readonly("max_share", &Drift::max_share)
        .def_property_readonly("histogram",
                               [](const Drift& drift) {
                                   return copied(std::vector<std::int64_t>(drift.histogram.begin(),
                                                                           drift.histogram.end()));
                               })
        .def_property_readonly("leaf_max_level",
                               [](const Drift& drift) { return copied(drift.leaf_max_level); });

    py::class_<TreeBuilder>(module, "TreeBuilder")
        .def(py::init([](const TreeParameters& parameters, std::uint64_t scalar_count,
                         const std::optional<PyTree>& golden, const std::string& backend,
                         int threads, bool summaries) {
                 return std::make_unique<TreeBuilder>(
                     parameters, scalar_count, tree_or_null(golden),
                     resolve_execution(backend, threads), check_signals, summaries);
             }),
             py::arg("parameters"), py::arg("scalar_count"), py::kw_only(),
             py::arg("golden") = py::none(), py::arg("backend") = "auto", py::arg("threads") = 0,
             py::arg("summaries") = false)
        .def(
            "update",
            [](TreeBuilder& builder, const py::object& data) {
                const PyBytes held(data);
                const py::gil_scoped_release released;
                builder.update(held.bytes());
            },
            py::arg("data"))
        .def(
            "update_device",
            [](TreeBuilder& builder, const PyDeviceArray& held) {
                const py::gil_scoped_release released;
                builder.update_device(held.array);
            },
            py::arg("array"))
        .def("finish",
             [](TreeBuilder& builder) {
                 const py::gil_scoped_release released;
                 return PyTree{builder.finish()};
             })
        .def_property_readonly("drift", &TreeBuilder::drift)
        .def_property_readonly("summaries", [](const TreeBuilder& builder) -> py::object {
            if (builder.summaries().empty())
                return py::none();
            return as_rows(builder.summaries());
        });

    module.def("build_tree", &build, py::arg("parameters"), py::arg("data"), py::kw_only(),
               py::arg("golden") = py::none(), py::arg("backend") = "auto", py::arg("threads") = 0);
}

}  // namespace ciwrap
