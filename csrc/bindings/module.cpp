#include <pybind11/pybind11.h>

#include "base/error.hpp"
#include "bindings/py_tree.hpp"

namespace {

void register_errors(pybind11::module_& module) {
    static pybind11::exception<ciwrap::Error> core_error(module, "CoreError");
    pybind11::register_exception_translator([](std::exception_ptr pointer) {
        try {
            if (pointer)
                std::rethrow_exception(pointer);
        } catch (const ciwrap::Error& error) {
            const pybind11::handle type = core_error;
            pybind11::object raised = type(error.what());
            raised.attr("code") = ciwrap::error_code_name(error.code());
            PyErr_SetObject(core_error.ptr(), raised.ptr());
        }
    });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
    module.doc() = "Error-bounded Merkle trees: the compiled core of ciwrap.";
    module.attr("__version__") = CIWRAP_VERSION;
    register_errors(module);
    ciwrap::register_parameters(module);
    ciwrap::register_tree(module);
    ciwrap::register_device(module);
    ciwrap::register_builder(module);
    ciwrap::register_compare(module);
    ciwrap::register_stream(module);
    ciwrap::register_golden(module);
    ciwrap::register_runtime(module);
}
