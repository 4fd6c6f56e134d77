# What programs load while they run: no Kokkos, OpenMP, zlib or zstd, and one symbol.
set(_ciwrap_record_table "${PROJECT_SOURCE_DIR}/csrc/record/record_table.cpp")
set(_ciwrap_record_terminate "${PROJECT_SOURCE_DIR}/csrc/record/terminate.cpp")
ciwrap_add_library(ciwrap_record_parts record
    "${_ciwrap_record_table}" "${_ciwrap_record_terminate}")
target_link_libraries(ciwrap_record_parts PUBLIC ciwrap_tree Threads::Threads)
add_library(ciwrap_record SHARED "${_ciwrap_record_table}")
ciwrap_configure_target(ciwrap_record)
target_link_libraries(ciwrap_record PRIVATE ciwrap_record_parts)
ciwrap_link_alone(ciwrap_record)
if(NOT APPLE)  # where the C++ library is the system's, and ciwrap_link_alone is enough
    set(_ciwrap_record_map "${PROJECT_SOURCE_DIR}/csrc/record/exports.map")
    target_link_options(ciwrap_record PRIVATE "-Wl,--version-script=${_ciwrap_record_map}")
    set_target_properties(ciwrap_record PROPERTIES LINK_DEPENDS "${_ciwrap_record_map}")
    if(NOT CIWRAP_SANITIZE)
        target_sources(ciwrap_record PRIVATE "${_ciwrap_record_terminate}")
        target_link_options(ciwrap_record PRIVATE -static-libstdc++ -static-libgcc)
    endif()
endif()

# What Kokkos loads as a tool: plain C, which loads the library above when it is asked to record.
add_library(ciwrap_kokkos SHARED "${PROJECT_SOURCE_DIR}/csrc/record/kokkos/ciwrap_kokkos.c")
set_target_properties(ciwrap_kokkos PROPERTIES C_STANDARD 99 POSITION_INDEPENDENT_CODE ON)
target_include_directories(ciwrap_kokkos PRIVATE "${PROJECT_SOURCE_DIR}/csrc/record/include")
target_compile_options(ciwrap_kokkos PRIVATE -Wall -Wextra -Wpedantic
    $<$<BOOL:${CIWRAP_WARNINGS_AS_ERRORS}>:-Werror>)
target_link_libraries(ciwrap_kokkos PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
if(NOT APPLE)
    set(_ciwrap_kokkos_map "${PROJECT_SOURCE_DIR}/csrc/record/kokkos/exports.map")
    target_link_options(ciwrap_kokkos PRIVATE "-Wl,--version-script=${_ciwrap_kokkos_map}")
    set_target_properties(ciwrap_kokkos PROPERTIES LINK_DEPENDS "${_ciwrap_kokkos_map}")
endif()

# ciwrap_install_record(<component> <library> <headers> <fortran> <cmake> <pkgconfig> <file>): the
# folders for the library and for what programs are built with; the file for pkg-config.
function(ciwrap_install_record component library headers fortran cmake pkgconfig pc_file)
    set(from "${PROJECT_SOURCE_DIR}/csrc/record")
    install(TARGETS ciwrap_record ciwrap_kokkos LIBRARY DESTINATION ${library} COMPONENT ${component})
    install(DIRECTORY "${from}/include/" DESTINATION ${headers} COMPONENT ${component})
    install(DIRECTORY "${from}/fortran/" DESTINATION ${fortran} COMPONENT ${component})
    install(DIRECTORY "${from}/cmake/" DESTINATION ${cmake} COMPONENT ${component})
    install(FILES "${pc_file}" DESTINATION ${pkgconfig} COMPONENT ${component})
endfunction()

# A wheel has the folders of the source tree, so paths in them are the same in both. Below a prefix
# (`cmake --install BUILD --component record --prefix PREFIX`) everything is where others look.
set(_ciwrap_pc "${PROJECT_SOURCE_DIR}/csrc/record/pkgconfig/ciwrap-record.pc")
file(READ "${_ciwrap_pc}" _ciwrap_pc_text)
string(REPLACE "\${pcfiledir}/.." "\${pcfiledir}/../.." _ciwrap_pc_text "${_ciwrap_pc_text}")
string(REPLACE "\${prefix}/fortran" "\${prefix}/share/ciwrap/fortran"
    _ciwrap_pc_text "${_ciwrap_pc_text}")
set(_ciwrap_prefix_pc "${PROJECT_BINARY_DIR}/record/ciwrap-record.pc")
file(WRITE "${_ciwrap_prefix_pc}" "${_ciwrap_pc_text}")
ciwrap_install_record(python ciwrap/native ciwrap/native/include ciwrap/native/fortran
    ciwrap/native/cmake ciwrap/native/pkgconfig "${_ciwrap_pc}")
ciwrap_install_record(record lib include share/ciwrap/fortran lib/cmake/ciwrap-record
    lib/pkgconfig "${_ciwrap_prefix_pc}")
