// TreeParameters: what decides the digests.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/fill_value.hpp"
#include "base/quantize_plan.hpp"
#include "bindings/py_tree.hpp"
#include "ciwrap/error.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

std::uint64_t fill_bits(const std::string& dtype, ScalarType scalar, const py::handle& value) {
    if (is_integer(scalar)) {
        py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
        if (!index) {
            PyErr_Clear();
            const double real = value.cast<double>();
            if (std::floor(real) != real || std::fabs(real) >= 0x1p+63) {
                throw Error(ErrorCode::invalid_argument,
                            "a fill value does not fit dtype '" + dtype + "'");
            }
            index = py::int_(static_cast<long long>(real));
        }
        int overflow = 0;
        const long long small = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
        if (overflow < 0)
            throw Error(ErrorCode::invalid_argument,
                        "a fill value does not fit dtype '" + dtype + "'");
        if (overflow == 0)
            return integer_fill_bits(dtype, scalar, small < 0, static_cast<std::uint64_t>(small));
        const unsigned long long large = PyLong_AsUnsignedLongLong(index.ptr());
        if (PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            throw Error(ErrorCode::invalid_argument,
                        "a fill value does not fit dtype '" + dtype + "'");
        }
        return integer_fill_bits(dtype, scalar, false, large);
    }
    return float_fill_bits(dtype, scalar, value.cast<double>());
}

TreeParameters make_parameters(const std::string& dtype, double atol, double rtol,
                               std::uint64_t ulps, std::uint32_t residue_levels,
                               std::uint64_t chunk_bytes, std::uint32_t arity, bool equal_nan,
                               const py::iterable& fill_values) {
    StatedParameters parameters;
    parameters.dtype = dtype;
    parameters.atol = atol;
    parameters.rtol = rtol;
    parameters.ulps = ulps;
    parameters.residue_levels = residue_levels;
    parameters.chunk_bytes = chunk_bytes;
    parameters.arity = arity;
    parameters.equal_nan = equal_nan;
    const ScalarType scalar = DataType::parse(dtype).scalar;
    for (const py::handle value : fill_values) {
        parameters.fill_bits.push_back(fill_bits(dtype, scalar, value));
    }
    return parameters;
}

py::tuple fill_values(const TreeParameters& parameters) {
    const ScalarType scalar = parameters.data_type().scalar;
    py::list values;
    for (const std::uint64_t bits : parameters.fill_bits()) {
        if (is_float(scalar)) {
            values.append(float_fill_value(scalar, bits));
        } else if (is_unsigned(scalar)) {
            values.append(bits);
        } else {
            values.append(signed_fill_value(scalar, bits));
        }
    }
    return py::tuple(values);
}

const char* kind_name(CodeKind kind) {
    switch (kind) {
        case CodeKind::exact:
            return "exact";
        case CodeKind::absolute:
            return "absolute";
        case CodeKind::relative:
            return "relative";
        case CodeKind::steps:
            return "steps";
    }
    return "";
}

// Reads one member of the derived plan.
template <class Member>
auto plan_member(Member member) {
    return [member](const TreeParameters& parameters) { return make_plan(parameters).*member; };
}

}  // namespace

void register_parameters(py::module_& module) {
    py::class_<TreeParameters>(module, "TreeParameters")
        .def(py::init(&make_parameters), py::arg("dtype"), py::kw_only(), py::arg("atol") = 0.0,
             py::arg("rtol") = 0.0, py::arg("ulps") = 0, py::arg("residue_levels") = 1,
             py::arg("chunk_bytes") = 4096, py::arg("arity") = 16, py::arg("equal_nan") = true,
             py::arg("fill_values") = py::tuple())
        .def_property_readonly("dtype", &TreeParameters::dtype)
        .def_property_readonly("atol", &TreeParameters::atol)
        .def_property_readonly("rtol", &TreeParameters::rtol)
        .def_property_readonly("ulps", &TreeParameters::ulps)
        .def_property_readonly("requested_residue_levels", &TreeParameters::residue_levels)
        .def_property_readonly("chunk_bytes", &TreeParameters::chunk_bytes)
        .def_property_readonly("arity", &TreeParameters::arity)
        .def_property_readonly("equal_nan", &TreeParameters::equal_nan)
        .def_property_readonly("fill_values", &fill_values)
        .def_property_readonly("residue_levels", plan_member(&QuantizePlan::levels))
        .def_property_readonly("kind",
                               [](const TreeParameters& p) { return kind_name(make_plan(p).kind); })
        .def_property_readonly("scalar_bytes", plan_member(&QuantizePlan::scalar_bytes))
        .def_property_readonly(
            "scalars_per_element",
            [](const TreeParameters& p) { return p.data_type().scalars_per_element; })
        .def_property_readonly("chunk_scalars", &TreeParameters::chunk_scalars)
        .def_property_readonly("code_bytes", plan_member(&QuantizePlan::code_bytes))
        .def_property_readonly("guaranteed_share", plan_member(&QuantizePlan::guaranteed_share))
        .def_property_readonly("exact_above", plan_member(&QuantizePlan::exact_above))
        .def_property_readonly("suspect_is_proof", &suspect_is_proof)
        .def_property_readonly("is_narrowed", &is_narrowed)
        .def(
            "__eq__", [](const TreeParameters& a, const TreeParameters& b) { return a == b; },
            py::is_operator())
        .def("__repr__", [](const TreeParameters& p) {
            return py::str(
                       "TreeParameters({!r}, atol={!r}, rtol={!r}, ulps={}, residue_levels={}, "
                       "chunk_bytes={})")
                .format(p.dtype(), p.atol(), p.rtol(), p.ulps(), p.residue_levels(),
                        p.chunk_bytes());
        });
}

}  // namespace ciwrap
