# How every C++ file of ours is compiled.
#
# Digests must not depend on the compiler, the level of optimisation or the machine. So: nothing
# that lets the compiler contract, reorder or approximate floating-point arithmetic, no
# -march=native, and no link-time optimisation (code compiled for one CPU level must never be
# inlined into, or merged with, that of another).

set(CIWRAP_FP_FLAGS -ffp-contract=off -fno-math-errno -fno-trapping-math)
set(CIWRAP_WARNING_FLAGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O3 -DNDEBUG")
# Assertions stay on where the developer builds.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g")

# ciwrap_configure_target(<target>): language level, warnings, arithmetic, visibility, sanitizers.
function(ciwrap_configure_target target)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_include_directories(${target} PUBLIC
        ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/include)
    # Sections of their own, so that the linker can leave out what nobody calls.
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections
        ${CIWRAP_FP_FLAGS} ${CIWRAP_WARNING_FLAGS} $<$<BOOL:${CIWRAP_WARNINGS_AS_ERRORS}>:-Werror>)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON
        POSITION_INDEPENDENT_CODE ON
        INTERPROCEDURAL_OPTIMIZATION OFF)
    if(CIWRAP_SANITIZE)
        target_compile_options(${target} PUBLIC
            -fsanitize=${CIWRAP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
        target_link_options(${target} PUBLIC -fsanitize=${CIWRAP_SANITIZE})
    endif()
endfunction()

# ciwrap_unite(<target> <count>): compiles <count> files at once. Most of the time goes into headers and
# templates that all of them have.
function(ciwrap_unite target count)
    set_target_properties(${target} PROPERTIES
        UNITY_BUILD ${CIWRAP_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

# ciwrap_link_alone(<target>): nothing of the static libraries inside a shared one may meet the same
# library in the program that loads it. On macOS all names that are hidden when they are compiled stay so,
# and others are looked up in the library that they were linked with.
function(ciwrap_link_alone target)
    if(APPLE)
        target_link_options(${target} PRIVATE -Wl,-dead_strip)
    else()
        target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
    endif()
endfunction()
