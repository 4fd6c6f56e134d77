# Finds or makes Kokkos (>= 4.5, < 6) and leaves the target Kokkos::kokkos.
#
#   1. one that is installed (a site's CUDA or HIP build is used as it is),
#   2. the official release archive,
#   3. the same source as carried by the source distribution of pygenten, for machines that reach
#      only a Python package index.
#
# 2 and 3 are built once, static and for the portable CPU baseline, into CIWRAP_CACHE_DIR.

if(APPLE)  # whose compiler has no OpenMP
    set(_ciwrap_backends "Serial")
else()
    set(_ciwrap_backends "Serial;OpenMP")
endif()
set(CIWRAP_BACKENDS "${_ciwrap_backends}" CACHE STRING
    "Kokkos backends of a Kokkos that is built here: Serial, OpenMP, Threads, Cuda, Hip")
set(CIWRAP_KOKKOS_FROM "auto" CACHE STRING "auto, installed, archive or sdist")
set_property(CACHE CIWRAP_KOKKOS_FROM PROPERTY STRINGS auto installed archive sdist)
set(CIWRAP_KOKKOS_OPTIONS "" CACHE STRING "Further -D options for a Kokkos that is built here")

set(_ciwrap_kokkos_archive_version 4.7.01)
set(_ciwrap_kokkos_archive_sha256 404cf33e76159e83b8b4ad5d86f6899d442b5da4624820ab457412116cdcd201)
set(_ciwrap_kokkos_archive_url
    "https://github.com/kokkos/kokkos/releases/download/4.7.01/kokkos-4.7.01.tar.gz")
set(_ciwrap_kokkos_sdist_version 4.7.0)
set(_ciwrap_kokkos_sdist_sha256 e620f05c742905e2db705d875f1cac92ef0ed453f9e6734e9beda26cc0f9cce7)

set(CIWRAP_CUDA_COMPAT "${CMAKE_CURRENT_LIST_DIR}/cuda13_compat.hpp")

# _ciwrap_target_options(<options> <key>): what tells CMake the machine to compile for, as definitions
# for the build of Kokkos, and as text that differs where these do. Both are empty for this machine.
function(_ciwrap_target_options options_out key_out)
    set(names CMAKE_TOOLCHAIN_FILE CMAKE_SYSROOT CMAKE_CXX_COMPILER_TARGET CMAKE_CXX_FLAGS
        CMAKE_OSX_ARCHITECTURES CMAKE_OSX_DEPLOYMENT_TARGET CMAKE_OSX_SYSROOT)
    if(CMAKE_CROSSCOMPILING)
        list(APPEND names CMAKE_SYSTEM_NAME CMAKE_SYSTEM_PROCESSOR)
    endif()
    set(options "")
    set(key "")
    foreach(name IN LISTS names)
        set(value "${${name}}")
        if(value STREQUAL "")
            continue()
        endif()
        string(REPLACE ";" "\\;" escaped "${value}")
        list(APPEND options "-D${name}=${escaped}")
        if(name STREQUAL "CMAKE_TOOLCHAIN_FILE")
            file(SHA256 "${value}" value)
        endif()
        string(APPEND key ";${name}=${value}")
    endforeach()
    if("Cuda" IN_LIST CIWRAP_BACKENDS)
        list(FILTER options EXCLUDE REGEX "^-DCMAKE_CXX_FLAGS=")
        list(APPEND options "-DCMAKE_CXX_FLAGS=-include ${CIWRAP_CUDA_COMPAT} ${CMAKE_CXX_FLAGS}")
    endif()
    set(${options_out} "${options}" PARENT_SCOPE)
    set(${key_out} "${key}" PARENT_SCOPE)
endfunction()

function(_ciwrap_kokkos_prefix version out)
    set(toolkit "")
    if("Cuda" IN_LIST CIWRAP_BACKENDS)
        set(toolkit ";${CUDAToolkit_ROOT}")
    endif()
    _ciwrap_target_options(_ target)
    # The file behind it: c++ and g++ are often one compiler, which need not build Kokkos twice.
    file(REAL_PATH "${CMAKE_CXX_COMPILER}" compiler)
    string(SHA256 key "${compiler};${CMAKE_CXX_COMPILER_ID};${CMAKE_CXX_COMPILER_VERSION};\
${CMAKE_SYSTEM_PROCESSOR};${CIWRAP_BACKENDS};${CIWRAP_KOKKOS_OPTIONS};recipe 1${toolkit}${target}")
    string(SUBSTRING ${key} 0 12 key)
    set(${out} "${CIWRAP_CACHE_DIR}/kokkos-${version}-${key}" PARENT_SCOPE)
endfunction()

function(_ciwrap_build_kokkos source prefix)
    message(STATUS "ciwrap: building Kokkos (${CIWRAP_BACKENDS}) into ${prefix}")
    set(build "${prefix}.build")
    file(REMOVE_RECURSE "${prefix}" "${build}")
    _ciwrap_target_options(options _)
    foreach(backend IN LISTS CIWRAP_BACKENDS)
        string(TOUPPER "${backend}" upper)
        list(APPEND options "-DKokkos_ENABLE_${upper}=ON")
    endforeach()
    if("Cuda" IN_LIST CIWRAP_BACKENDS)
        # The architecture nvcc_wrapper takes when none is given, as in tests of the compiler: CUDA
        # 13 has dropped sm_70.
        file(READ "${source}/bin/nvcc_wrapper" wrapper)
        string(REPLACE "default_arch=\"sm_70\"" "default_arch=\"sm_80\"" wrapper "${wrapper}")
        file(WRITE "${source}/bin/nvcc_wrapper" "${wrapper}")
    endif()
    if(CMAKE_MAKE_PROGRAM)
        list(APPEND options "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}")
    endif()
    ciwrap_run("configuring Kokkos" "${prefix}.log"
        "${CMAKE_COMMAND}" -S "${source}" -B "${build}" -G "${CMAKE_GENERATOR}"
        -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_STANDARD=20 -DCMAKE_BUILD_TYPE=Release
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_CXX_VISIBILITY_PRESET=hidden
        -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON -DBUILD_SHARED_LIBS=OFF
        -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_INSTALL_LIBDIR=lib
        -DKokkos_ENABLE_DEPRECATED_CODE_4=OFF -DKokkos_ENABLE_LIBDL=OFF
        -DKokkos_ENABLE_TESTS=OFF -DKokkos_ENABLE_EXAMPLES=OFF ${options} ${CIWRAP_KOKKOS_OPTIONS})
    set(jobs 2)
    if(DEFINED ENV{CMAKE_BUILD_PARALLEL_LEVEL})
        set(jobs $ENV{CMAKE_BUILD_PARALLEL_LEVEL})
    endif()
    ciwrap_run("building Kokkos" "${prefix}.log"
        "${CMAKE_COMMAND}" --build "${build}" --target install --parallel ${jobs})
    file(REMOVE_RECURSE "${build}")
    file(TOUCH "${prefix}/complete")
endfunction()

# Sets <out> to a prefix with a finished Kokkos, or to empty when the source cannot be had.
function(_ciwrap_kokkos_from how out)
    set(${out} "" PARENT_SCOPE)
    _ciwrap_kokkos_prefix(${_ciwrap_kokkos_${how}_version} prefix)
    if(NOT EXISTS "${prefix}/complete")
        ciwrap_lock_cache(kokkos)
        if(NOT EXISTS "${prefix}/complete")
            set(work "${prefix}.source")
            file(REMOVE_RECURSE "${work}")
            if(how STREQUAL "archive")
                ciwrap_fetch_url("${_ciwrap_kokkos_archive_url}" ${_ciwrap_kokkos_archive_sha256} tar)
                set(members "")
                set(source "${work}/kokkos-${_ciwrap_kokkos_archive_version}")
            else()
                ciwrap_fetch_sdist(pygenten 0.1.5 ${_ciwrap_kokkos_sdist_sha256} tar)
                set(members PATTERNS "pygenten-0.1.5/tpls/kokkos/*")
                set(source "${work}/pygenten-0.1.5/tpls/kokkos")
            endif()
            if(NOT tar)
                return()
            endif()
            file(ARCHIVE_EXTRACT INPUT "${tar}" DESTINATION "${work}" ${members})
            _ciwrap_build_kokkos("${source}" "${prefix}")
            file(REMOVE_RECURSE "${work}")
        endif()
    endif()
    set(${out} "${prefix}" PARENT_SCOPE)
endfunction()

function(_ciwrap_resolve_kokkos out)
    if(CIWRAP_KOKKOS_FROM STREQUAL "auto")
        # A build that is already there saves the way to the network.
        foreach(how IN ITEMS archive sdist)
            _ciwrap_kokkos_prefix(${_ciwrap_kokkos_${how}_version} prefix)
            if(EXISTS "${prefix}/complete")
                set(${out} "${prefix}" PARENT_SCOPE)
                return()
            endif()
        endforeach()
        set(ways archive sdist)
    else()
        set(ways ${CIWRAP_KOKKOS_FROM})
    endif()
    foreach(how IN LISTS ways)
        _ciwrap_kokkos_from(${how} prefix)
        if(prefix)
            set(${out} "${prefix}" PARENT_SCOPE)
            return()
        endif()
    endforeach()
    message(FATAL_ERROR
        "ciwrap: no Kokkos. Install one (4.5 or newer, before 6) and set CMAKE_PREFIX_PATH, or "
        "let this machine reach ${_ciwrap_kokkos_archive_url} or a Python package index")
endfunction()

if(CIWRAP_KOKKOS_FROM MATCHES "^(auto|installed)$")
    find_package(Kokkos 4.5 CONFIG QUIET)
    if(Kokkos_FOUND AND Kokkos_VERSION VERSION_GREATER_EQUAL 6)
        message(FATAL_ERROR "ciwrap: Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} is newer than tried "
                            "(4.5 up to 6); set CIWRAP_KOKKOS_FROM=archive or sdist")
    endif()
    if(NOT Kokkos_FOUND AND CIWRAP_KOKKOS_FROM STREQUAL "installed")
        message(FATAL_ERROR "ciwrap: CIWRAP_KOKKOS_FROM=installed, but no Kokkos >= 4.5 is found; "
                            "set CMAKE_PREFIX_PATH or Kokkos_ROOT")
    endif()
endif()
if(NOT Kokkos_FOUND)
    _ciwrap_resolve_kokkos(_ciwrap_kokkos)
    # Found anew below: those of a Kokkos taken by an earlier run may be gone.
    unset(Kokkos_COMPILE_LAUNCHER CACHE)
    unset(Kokkos_NVCC_WRAPPER CACHE)
    find_package(Kokkos 4.5 CONFIG REQUIRED PATHS "${_ciwrap_kokkos}" NO_DEFAULT_PATH
        NO_CMAKE_FIND_ROOT_PATH)  # what was built for another machine lies on this one
    # Not remembered: the cached prefix changes with the options it was built with.
    unset(Kokkos_DIR CACHE)
endif()
message(STATUS "ciwrap: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES})")

# ciwrap_use_kokkos(<target>): links Kokkos, without passing it on to users of the target.
function(ciwrap_use_kokkos target)
    target_link_libraries(${target} PRIVATE Kokkos::kokkos)
    if("CUDA" IN_LIST Kokkos_DEVICES)
        set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # not tried with nvcc
        # --fmad=false: device code rounds as host code does (compare -ffp-contract=off). What nvcc
        # generates is not pedantic about line directives. A device function that calls a host
        # function compiles with a warning, and fails when it runs.
        target_compile_options(${target} PRIVATE
            --fmad=false -Werror=cross-execution-space-call -include "${CIWRAP_CUDA_COMPAT}" -Wno-pedantic)
    endif()
endfunction()
