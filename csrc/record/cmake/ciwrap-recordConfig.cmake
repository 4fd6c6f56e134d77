# For programs that record their arrays. Nothing is linked: a program loads the library when it is
# asked to record, and runs without it otherwise.
#
#   find_package(ciwrap-record REQUIRED)
#   target_link_libraries(model PRIVATE ciwrap::record)          # C, C++
#   target_link_libraries(model PRIVATE ciwrap::record_fortran)  # Fortran, with C enabled, too;
#                                                    # after find_package(MPI) with communicators
#
# ciwrap_record_LIBRARY is the library, if it is here: a program without `ciwrap record` around it
# finds it by CIWRAP_RECORD_LIBRARY.

set(_ciwrap_record_root "")
# In a Python package or a source tree, and below a prefix (lib/cmake/ciwrap-record).
foreach(_ciwrap_record_up IN ITEMS .. ../../..)
    if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/${_ciwrap_record_up}/include/ciwrap/record.h")
        get_filename_component(_ciwrap_record_root
            "${CMAKE_CURRENT_LIST_DIR}/${_ciwrap_record_up}" ABSOLUTE)
        break()
    endif()
endforeach()
if(NOT _ciwrap_record_root)
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
        "${CMAKE_CURRENT_LIST_DIR} has no include/ciwrap/record.h above it")
    return()
endif()

unset(ciwrap_record_LIBRARY)
foreach(_ciwrap_record_folder IN ITEMS "" lib/)
    foreach(_ciwrap_record_suffix IN ITEMS .so .dylib)
        set(_ciwrap_record_file
            "${_ciwrap_record_root}/${_ciwrap_record_folder}libciwrap_record${_ciwrap_record_suffix}")
        if(NOT DEFINED ciwrap_record_LIBRARY AND EXISTS "${_ciwrap_record_file}")
            set(ciwrap_record_LIBRARY "${_ciwrap_record_file}")
        endif()
    endforeach()
endforeach()

if(NOT TARGET ciwrap::record)
    add_library(ciwrap::record INTERFACE IMPORTED)
    set_target_properties(ciwrap::record PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_ciwrap_record_root}/include"
        INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()

# Compiled with the program: a .mod file belongs to one compiler.
get_property(_ciwrap_record_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("Fortran" IN_LIST _ciwrap_record_languages AND "C" IN_LIST _ciwrap_record_languages
   AND NOT TARGET ciwrap::record_fortran)
    set(_ciwrap_record_fortran "${_ciwrap_record_root}/fortran")
    if(NOT EXISTS "${_ciwrap_record_fortran}")
        set(_ciwrap_record_fortran "${_ciwrap_record_root}/share/ciwrap/fortran")
    endif()
    add_library(ciwrap_record_fortran STATIC EXCLUDE_FROM_ALL
        "${_ciwrap_record_fortran}/ciwrap_record.f90"
        "${_ciwrap_record_fortran}/ciwrap_record_fortran.c")
    set_target_properties(ciwrap_record_fortran PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/ciwrap_record_modules")
    target_include_directories(ciwrap_record_fortran INTERFACE
        "${CMAKE_CURRENT_BINARY_DIR}/ciwrap_record_modules")
    target_link_libraries(ciwrap_record_fortran PUBLIC ciwrap::record)
    if(TARGET MPI::MPI_C)
        target_compile_definitions(ciwrap_record_fortran PRIVATE CIWRAP_RECORD_MPI)
        target_link_libraries(ciwrap_record_fortran PUBLIC MPI::MPI_C)
    endif()
    add_library(ciwrap::record_fortran ALIAS ciwrap_record_fortran)
endif()
