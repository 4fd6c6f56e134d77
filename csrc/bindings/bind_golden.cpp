// GoldenVariable; writing and reading golden files.
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/quantize_plan.hpp"
#include "bindings/py_tree.hpp"
#include "ciwrap/chunk_summary.hpp"
#include "ciwrap/error.hpp"
#include "ciwrap/golden.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

std::span<const std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

py::bytes as_bytes(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::uint64_t> not_negative(const char* what,
                                          const std::optional<std::int64_t>& value) {
    if (!value) {
        return std::nullopt;
    }
    if (*value < 0) {
        throw Error(ErrorCode::invalid_argument,
                    std::string(what) + " must not be negative, not " + std::to_string(*value));
    }
    return static_cast<std::uint64_t>(*value);
}

GoldenVariable make_variable(const std::string& name, const std::vector<std::uint64_t>& shape,
                             const PyTree& tree, const std::optional<std::int64_t>& iteration,
                             const std::optional<std::int64_t>& rank, const py::object& data,
                             const py::object& summaries) {
    GoldenVariable variable;
    variable.name = name;
    variable.iteration = not_negative("iteration", iteration);
    variable.rank = not_negative("rank", rank);
    variable.shape = shape;
    variable.tree = tree.tree;
    const auto copied = [](const py::object& part) {
        const PyBytes held(part);
        const auto bytes = as_numbers(held.bytes());
        return std::make_shared<const UninitializedBytes>(bytes.begin(), bytes.end());
    };
    if (!data.is_none())
        variable.data = copied(data);
    if (!summaries.is_none())
        variable.summaries = copied(summaries);
    check_variable(variable);
    return variable;
}

const char* evidence(const GoldenVariable& variable) {
    if (variable.data) {
        return "data";
    }
    return make_plan(variable.tree->parameters).has_residues() ? "residues" : "tree";
}

std::vector<std::uint8_t> encode(const std::vector<GoldenVariable>& variables) {
    const py::gil_scoped_release released;
    return encode_golden(variables, check_signals);
}

std::vector<GoldenVariable> decode(const py::object& data, const std::string& source,
                                   std::uint64_t max_decoded_bytes) {
    const PyBytes held(data);
    const py::gil_scoped_release released;
    return decode_golden(as_numbers(held.bytes()), source, max_decoded_bytes, check_signals);
}

py::bytes write(const std::filesystem::path& path, const std::vector<GoldenVariable>& variables) {
    const std::vector<std::uint8_t> file = encode(variables);
    {
        const py::gil_scoped_release released;
        write_file(path.string(), file);
    }
    return digest_bytes(golden_root(file, path.string()));
}

py::bytes header_root(const std::filesystem::path& path) {
    Digest root;
    {
        const py::gil_scoped_release released;
        root = read_golden_header(path.string());
    }
    return digest_bytes(root);
}

}  // namespace

void register_golden(py::module_& module) {
    py::class_<GoldenVariable>(module, "GoldenVariable")
        .def(py::init(&make_variable), py::arg("name"), py::arg("shape"), py::arg("tree"),
             py::kw_only(), py::arg("iteration") = py::none(), py::arg("rank") = py::none(),
             py::arg("data") = py::none(), py::arg("summaries") = py::none())
        .def_readonly("name", &GoldenVariable::name)
        .def_readonly("iteration", &GoldenVariable::iteration)
        .def_readonly("rank", &GoldenVariable::rank)
        .def_property_readonly("shape",
                               [](const GoldenVariable& v) { return py::tuple(py::cast(v.shape)); })
        .def_property_readonly("tree", [](const GoldenVariable& v) { return PyTree{v.tree}; })
        .def_property_readonly("evidence", &evidence)
        .def_property_readonly(
            "summaries",
            [](const GoldenVariable& v) -> py::object {
                if (!v.summaries)
                    return py::none();
                const std::size_t rows = v.summaries->size() / sizeof(ChunkSummary);
                py::array_t<std::int64_t> array({rows, summary_numbers});
                std::memcpy(array.mutable_data(), v.summaries->data(), v.summaries->size());
                return array;
            })
        .def_property_readonly("data",
                               [](const GoldenVariable& v) -> py::object {
                                   if (!v.data) {
                                       return py::none();
                                   }
                                   return as_bytes(*v.data);
                               })
        .def("__repr__", [](const GoldenVariable& v) {
            return py::str("GoldenVariable({!r}, {}, iteration={}, rank={}, evidence={!r})")
                .format(v.name, py::tuple(py::cast(v.shape)), v.iteration, v.rank, evidence(v));
        });

    module.def("write_golden", &write, py::arg("path"), py::arg("variables"));
    module.def(
        "encode_golden",
        [](const std::vector<GoldenVariable>& variables) { return as_bytes(encode(variables)); },
        py::arg("variables"));
    module.def("decode_golden", &decode, py::arg("data"), py::kw_only(),
               py::arg("source") = "<memory>",
               py::arg("max_decoded_bytes") = default_max_decoded_bytes);
    module.def(
        "golden_root",
        [](const py::object& data) {
            const PyBytes held(data);
            return digest_bytes(golden_root(as_numbers(held.bytes()), "<memory>"));
        },
        py::arg("data"));
    module.def("read_golden_header", &header_root, py::arg("path"));
}

}  // namespace ciwrap
