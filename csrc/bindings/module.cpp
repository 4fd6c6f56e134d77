#include <pybind11/pybind11.h>

#include <string_view>

#include "bindings/py_tree.hpp"
#include "ciwrap/error.hpp"

namespace {

void register_errors(pybind11::module_& module) {
    // Whatever the core raises is an error of ciwrap.base.errors; this is their common base.
    module.attr("CoreError") = pybind11::module_::import("ciwrap.base.errors").attr("CiwrapError");
    // NOLINTNEXTLINE(performance-unnecessary-value-param): as pybind11 asks for it
    pybind11::register_exception_translator([](std::exception_ptr pointer) {
        try {
            if (pointer)
                std::rethrow_exception(pointer);
        } catch (const ciwrap::Error& error) {
            const pybind11::object made = ciwrap::as_exception(error);
            PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
        }
    });
}

}  // namespace

pybind11::object ciwrap::as_exception(const Error& error) {
    namespace py = pybind11;
    // Messages name files, whose names may be any bytes.
    const std::string_view message = error.what();
    const auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
        message.data(), static_cast<py::ssize_t>(message.size()), "backslashreplace"));
    if (!text)
        throw py::error_already_set();
    return py::module_::import("ciwrap.base.errors")
        .attr("core_error")(error_code_name(error.code()), text);
}

PYBIND11_MODULE(_core, module) {
    module.doc() = "Error-bounded Merkle trees: the compiled core of ciwrap.";
    module.attr("__version__") = CIWRAP_VERSION;
    register_errors(module);
    ciwrap::register_parameters(module);
    ciwrap::register_tree(module);
    ciwrap::register_device(module);
    ciwrap::register_builder(module);
    ciwrap::register_files(module);
    ciwrap::register_compare(module);
    ciwrap::register_stream(module);
    ciwrap::register_golden(module);
    ciwrap::register_text(module);
    ciwrap::register_runtime(module);
}
