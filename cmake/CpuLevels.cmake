# The inner loops are compiled once per CPU level of the target architecture and chosen at run
# time; everything else stays at the compiler's baseline, so one build runs on every machine.

# macOS compiles for what is named there, whatever the machine.
set(_ciwrap_processor "${CMAKE_SYSTEM_PROCESSOR}")
if(CMAKE_OSX_ARCHITECTURES)
    set(_ciwrap_processor "${CMAKE_OSX_ARCHITECTURES}")
    if(_ciwrap_processor MATCHES ";")
        message(FATAL_ERROR "ciwrap: one architecture at a time, not ${_ciwrap_processor}: "
                            "the inner loops are compiled once per level of an architecture")
    endif()
endif()

if(_ciwrap_processor MATCHES "^(x86_64|AMD64|amd64)$")
    set(CIWRAP_CPU_LEVELS v1 v3 v4)
    # For processors of before 2013; the largest part of the wheel, so for size.
    set(CIWRAP_CPU_LEVEL_FLAGS_v1 $<$<CONFIG:Release>:-Os>)
    set(CIWRAP_CPU_LEVEL_FLAGS_v3 -march=x86-64-v3)
    set(CIWRAP_CPU_LEVEL_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)
elseif(_ciwrap_processor MATCHES "^(aarch64|arm64|ARM64)$")
    set(CIWRAP_CPU_LEVELS neon) # part of every such processor
    set(CIWRAP_CPU_LEVEL_FLAGS_neon "")
else()
    set(CIWRAP_CPU_LEVELS generic)
    set(CIWRAP_CPU_LEVEL_FLAGS_generic "")
endif()

# ciwrap_add_cpu_levels(<target> <sources...>): adds the sources to <target>, compiled once per
# level with CIWRAP_CPU_LEVEL defined to its name. The baseline's objects come first: should an
# inline function ever be emitted in several of them, the linker keeps the one that runs anywhere.
# Nothing in them throws; without the tables for it they define no symbol in common.
function(ciwrap_add_cpu_levels target)
    if(NOT ARGN)
        return()
    endif()
    # Checks of addresses as calls: as many of them, in half the time that GCC needs to compile them
    # in place, which is the longest step of a sanitized build.
    set(calls "")
    if(CIWRAP_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set(calls --param=asan-instrumentation-with-call-threshold=0)
    endif()
    foreach(level IN LISTS CIWRAP_CPU_LEVELS)
        set(objects ${target}_level_${level})
        add_library(${objects} OBJECT ${ARGN})
        ciwrap_configure_target(${objects})
        target_compile_options(${objects} PRIVATE
            -fno-exceptions $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>
            ${calls} ${CIWRAP_CPU_LEVEL_FLAGS_${level}})
        target_compile_definitions(${objects} PRIVATE CIWRAP_CPU_LEVEL=${level})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endforeach()
    foreach(level IN LISTS CIWRAP_CPU_LEVELS)
        target_compile_definitions(${target} PUBLIC CIWRAP_HAVE_CPU_LEVEL_${level}=1)
    endforeach()
endfunction()
