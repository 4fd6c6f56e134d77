// ElementComparer, compare_arrays, Comparison.
#include <algorithm>
#include <optional>

#include "bindings/py_device.hpp"
#include "bindings/py_tree.hpp"
#include "ciwrap/compare.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

double mean(double sum, std::uint64_t count) {
    return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

void update(ElementComparer& comparer, const py::object& golden, const py::object& value,
            std::uint64_t first_element) {
    const PyBytes golden_held(golden);
    const PyBytes value_held(value);
    const py::gil_scoped_release released;
    comparer.update(golden_held.bytes(), value_held.bytes(), first_element);
}

// A side of a piece: a DeviceArray, or anything with the buffer protocol.
class HeldSide {
  public:
    explicit HeldSide(const py::object& object) {
        if (py::isinstance<PyDeviceArray>(object)) {
            side_.array = &object.cast<const PyDeviceArray&>().array;
        } else {
            side_.bytes = bytes_.emplace(object).bytes();
        }
    }
    const ComparedSide& side() const { return side_; }

  private:
    std::optional<PyBytes> bytes_;
    ComparedSide side_;
};

void update_device(ElementComparer& comparer, const py::object& golden, const py::object& value,
                   std::uint64_t first_element, std::uint64_t element_count) {
    const HeldSide golden_held(golden);
    const HeldSide value_held(value);
    const py::gil_scoped_release released;
    comparer.update_device(golden_held.side(), value_held.side(), first_element, element_count);
}

using LeafArray = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

std::span<const std::int64_t> as_span(const LeafArray& leaves) {
    return {leaves.data(), static_cast<std::size_t>(leaves.size())};
}

void check(const TreeParameters& parameters, const Comparison& comparison,
           const LeafArray& suspects, const std::optional<LeafArray>& compared) {
    std::optional<std::span<const std::int64_t>> leaves;
    if (compared)
        leaves = as_span(*compared);
    check_deciders(parameters, comparison, as_span(suspects), leaves);
}

}  // namespace

void register_compare(py::module_& module) {
    py::class_<Comparison>(module, "Comparison")
        .def_readonly("element_count", &Comparison::element_count)
        .def_readonly("differing_count", &Comparison::differing_count)
        .def_readonly("first_index", &Comparison::first_index)
        .def_property_readonly("indices",
                               [](const Comparison& c) {
                                   return py::array_t<std::int64_t>(
                                       static_cast<py::ssize_t>(c.indices.size()),
                                       c.indices.data());
                               })
        .def_readonly("max_abs_difference", &Comparison::max_abs_difference)
        .def_readonly("max_abs_index", &Comparison::max_abs_index)
        .def_property_readonly(
            "mean_abs_difference",
            [](const Comparison& c) { return mean(c.sum_abs_difference, c.finite_count); })
        .def_readonly("max_rel_difference", &Comparison::max_rel_difference)
        .def_readonly("max_rel_index", &Comparison::max_rel_index)
        .def_property_readonly(
            "mean_rel_difference",
            [](const Comparison& c) { return mean(c.sum_rel_difference, c.nonzero_count); })
        .def_readonly("sum_abs_difference", &Comparison::sum_abs_difference)
        .def_readonly("finite_count", &Comparison::finite_count)
        .def_readonly("sum_rel_difference", &Comparison::sum_rel_difference)
        .def_readonly("nonzero_count", &Comparison::nonzero_count)
        .def_readonly("max_bound_share", &Comparison::max_bound_share)
        .def_readonly("nan_mismatch_count", &Comparison::nan_mismatch_count)
        .def_readonly("inf_mismatch_count", &Comparison::inf_mismatch_count)
        .def_readonly("missing_mismatch_count", &Comparison::missing_mismatch_count)
        .def_property_readonly("histogram",
                               [](const Comparison& c) {
                                   return as_array({c.histogram.begin(), c.histogram.end()});
                               })
        .def_property_readonly("differing_leaves", [](const Comparison& c) {
            return as_array(c.differing_leaves.list());
        });

    py::class_<ElementComparer>(module, "ElementComparer")
        .def(py::init([](const TreeParameters& parameters, std::size_t max_indices,
                         const std::string& backend, int threads) {
                 return std::make_unique<ElementComparer>(
                     parameters, max_indices, resolve_execution(backend, threads), check_signals);
             }),
             py::arg("parameters"), py::kw_only(), py::arg("max_indices") = 100,
             py::arg("backend") = "auto", py::arg("threads") = 0)
        .def("update", &update, py::arg("golden"), py::arg("new"), py::kw_only(),
             py::arg("first_element"))
        .def("update_device", &update_device, py::arg("golden"), py::arg("new"), py::kw_only(),
             py::arg("first_element"), py::arg("element_count"))
        .def("finish", &ElementComparer::result);

    module.def("check_deciders", &check, py::arg("parameters"), py::arg("comparison"),
               py::arg("suspects"), py::kw_only(), py::arg("compared_leaves") = py::none());
    module.def(
        "compare_arrays",
        [](const TreeParameters& parameters, const py::object& golden, const py::object& value,
           std::size_t max_indices) {
            ElementComparer comparer(parameters, max_indices, resolve_execution("auto", 0),
                                     check_signals);
            update(comparer, golden, value, 0);
            return comparer.result();
        },
        py::arg("parameters"), py::arg("golden"), py::arg("new"), py::kw_only(),
        py::arg("max_indices") = 100);
    module.def(
        "compare_each",
        [](const TreeParameters& parameters, const py::object& golden, const py::object& value) {
            const PyBytes golden_held(golden);
            const PyBytes value_held(value);
            py::list rows;
            for (const ElementDifference& one :
                 compare_each(parameters, golden_held.bytes(), value_held.bytes())) {
                rows.append(py::make_tuple(one.abs_difference, one.bound_share, one.rel_difference,
                                           one.ulps));
            }
            return rows;
        },
        py::arg("parameters"), py::arg("golden"), py::arg("new"));
}

}  // namespace ciwrap
