# The extension module ciwrap._core, from every .cpp of csrc/bindings.

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT pybind11_DIR)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
        OUTPUT_VARIABLE _pybind11_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(_pybind11_dir)
        set(pybind11_DIR "${_pybind11_dir}")
    endif()
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 3 CONFIG REQUIRED)

file(GLOB _ciwrap_bindings CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/csrc/bindings/*.cpp")
if(NOT _ciwrap_bindings)
    set(_ciwrap_bindings "${PROJECT_BINARY_DIR}/module_without_bindings.cpp")
    file(CONFIGURE OUTPUT "${_ciwrap_bindings}" CONTENT [[
#include <pybind11/pybind11.h>
PYBIND11_MODULE(_core, module) { module.attr("__version__") = CIWRAP_VERSION; }
]] @ONLY)
endif()

# NO_EXTRAS: pybind11 would switch link-time optimisation on.
pybind11_add_module(_core MODULE NO_EXTRAS ${_ciwrap_bindings})
ciwrap_configure_target(_core)
# Bindings convert arguments and call; at -O3 they would be a quarter of the wheel.
target_compile_options(_core PRIVATE $<$<CONFIG:Release>:-Os>)
target_link_libraries(_core PRIVATE ciwrap_core_lib ciwrap_text)
# Most of the time of compiling a bind_*.cpp goes into these.
target_precompile_headers(_core PRIVATE
    <pybind11/numpy.h> <pybind11/pybind11.h> <pybind11/stl.h>)
ciwrap_unite(_core 6)
ciwrap_link_alone(_core)
install(TARGETS _core LIBRARY DESTINATION ciwrap COMPONENT python)

add_subdirectory("${PROJECT_SOURCE_DIR}/csrc/demo")
