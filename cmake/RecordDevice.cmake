# The second recording library, for arrays on a device: loaded by the first one, with Kokkos in it and
# one symbol. Without CUDA it is of the host as a device of its own, for tests, and is not installed.
if("CUDA" IN_LIST Kokkos_DEVICES)
    set(_ciwrap_device_name ciwrap_record_cuda)
    set(_ciwrap_device_backend cuda)
elseif(CIWRAP_BUILD_TESTS)
    set(_ciwrap_device_name ciwrap_record_portable)
    set(_ciwrap_device_backend portable)
else()
    return()
endif()
add_library(ciwrap_record_device SHARED
    "${PROJECT_SOURCE_DIR}/csrc/record/device/record_device.cpp")
ciwrap_configure_target(ciwrap_record_device)
set_target_properties(ciwrap_record_device PROPERTIES OUTPUT_NAME ${_ciwrap_device_name})
target_compile_definitions(ciwrap_record_device PRIVATE
    CIWRAP_RECORD_BACKEND="${_ciwrap_device_backend}")
target_link_libraries(ciwrap_record_device PRIVATE ciwrap_kernels)
ciwrap_link_alone(ciwrap_record_device)
if(NOT APPLE)
    set(_ciwrap_device_map "${PROJECT_SOURCE_DIR}/csrc/record/device/exports.map")
    target_link_options(ciwrap_record_device PRIVATE "-Wl,--version-script=${_ciwrap_device_map}")
    set_target_properties(ciwrap_record_device PROPERTIES LINK_DEPENDS "${_ciwrap_device_map}")
endif()
if(_ciwrap_device_backend STREQUAL "cuda")
    add_dependencies(ciwrap_record ciwrap_record_device)  # whoever builds one builds both
    install(TARGETS ciwrap_record_device LIBRARY DESTINATION ciwrap/native COMPONENT python)
    install(TARGETS ciwrap_record_device LIBRARY DESTINATION lib COMPONENT record)
endif()
