// FileStamp, update_builders, joined_planes: what is read from files.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "bindings/py_files.hpp"
#include "bindings/py_tree.hpp"
#include "core/tree_from_file.hpp"
#include "format/byte_planes.hpp"

namespace py = pybind11;

namespace ciwrap {
namespace {

std::string update_builders(const std::vector<TreeBuilder*>& builders,
                            const std::filesystem::path& path, std::uint64_t offset,
                            std::uint64_t byte_count, const std::string& engine_name,
                            std::size_t slab_bytes, const std::string& direct,
                            const std::optional<PyFileStamp>& stamp) {
    if (std::ranges::find(builders, nullptr) != builders.end())
        throw py::type_error("None is not a TreeBuilder");
    SlabOptions options{.direct = parse_direct_reads(direct), .stamp = stamp_of(stamp)};
    if (slab_bytes != 0)
        options.slab_bytes = slab_bytes;
    const py::gil_scoped_release released;
    ReadEngine engine({.kind = parse_engine_kind(engine_name)});
    update_from_file(builders, engine, path.native(), offset, byte_count, options, check_signals);
    return std::string(engine.name());
}

// Numbers whose bytes lie in planes, one after the other.
py::array_t<std::uint8_t> joined_planes(const py::object& planes, std::size_t unit) {
    const PyBytes given(planes);
    const std::size_t bytes = given.bytes().size();
    if (unit == 0 || bytes % unit != 0)
        throw py::value_error("the bytes are no whole number of units");
    py::array_t<std::uint8_t> joined(static_cast<py::ssize_t>(bytes));
    std::uint8_t* const to = joined.mutable_data();
    const py::gil_scoped_release released;
    from_planes(reinterpret_cast<const std::uint8_t*>(given.bytes().data()), to, bytes / unit,
                unit);
    return joined;
}

}  // namespace

void register_files(py::module_& module) {
    py::class_<PyFileStamp>(module, "FileStamp")
        .def(py::init([](const std::filesystem::path& path) {
                 return PyFileStamp{path.native(), FileStamp::of(path.native())};
             }),
             py::arg("path"))
        .def_property_readonly(
            "path",
            [](const PyFileStamp& self) {
                return py::module_::import("os").attr("fsdecode")(py::bytes(self.path));
            })
        .def_property_readonly("size", [](const PyFileStamp& self) { return self.stamp.size; })
        .def_property_readonly("modified_ns",
                               [](const PyFileStamp& self) { return self.stamp.modified_ns; })
        .def("require_unchanged",
             [](const PyFileStamp& self) { require_unchanged(self.path, self.stamp); })
        .def(
            "__eq__", [](const PyFileStamp& a, const PyFileStamp& b) { return a.stamp == b.stamp; },
            py::is_operator());

    module.def("update_builders", &update_builders, py::arg("builders"), py::arg("path"),
               py::arg("offset"), py::arg("byte_count"), py::kw_only(), py::arg("engine") = "auto",
               py::arg("slab_bytes") = 0, py::arg("direct") = "auto",
               py::arg("stamp") = py::none());
    module.def("joined_planes", &joined_planes, py::arg("planes"), py::arg("unit"));
}

}  // namespace ciwrap
