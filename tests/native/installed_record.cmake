# The recording library below a prefix, as a site without Python installs it: the examples are built
# against it by CMake and by pkg-config, and run without recording, with it, and where the library
# is gone.
#
#   cmake -DBUILD=... -DEXAMPLES=... -DWORK=... [-DKokkos_DIR=...] -P installed_record.cmake
cmake_minimum_required(VERSION 3.24)
set(ENV{OMP_PROC_BIND} false) # Kokkos would say something of it

function(run what)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${what} failed (${code}):\n${out}")
    endif()
    set(told "${out}" PARENT_SCOPE)
endfunction()

# What a program says, with these variables; whether it left a journal of some size is `expected`.
function(expect program expected pattern)
    set(folder "${WORK}/run")
    file(REMOVE_RECURSE "${folder}")
    run("${program} ${ARGN}" "${CMAKE_COMMAND}" -E env "CIWRAP_RECORD=${folder}" ${ARGN}
        "${program}")
    set(journal "${folder}/000/rank-000000.cwr")
    set(size 0)
    if(EXISTS "${journal}")
        file(SIZE "${journal}" size)
    endif()
    if(expected AND size LESS 1000)
        message(FATAL_ERROR "${program} left a journal of ${size} bytes\n${told}")
    elseif(NOT expected AND EXISTS "${folder}")
        message(FATAL_ERROR "${program} left ${folder}")
    elseif(NOT told MATCHES "${pattern}")
        message(FATAL_ERROR "${program} said:\n${told}")
    endif()
endfunction()

function(try program)
    expect("${program}" TRUE "^$" "CIWRAP_RECORD_LIBRARY=${prefix}/lib/libciwrap_record.so")
    expect("${program}" TRUE "^$" "LD_LIBRARY_PATH=${prefix}/lib")
    expect("${program}" FALSE "^$" "CIWRAP_RECORD=")
    expect("${program}" FALSE "^ciwrap: nothing is recorded: [^\n]*\n$"
        "CIWRAP_RECORD_LIBRARY=${prefix}/nowhere.so")
endfunction()

file(REMOVE_RECURSE "${WORK}")
# A name with a blank in it, as sites have.
set(prefix "${WORK}/site prefix")
run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --component record --prefix "${prefix}")

set(tree "${WORK}/examples")
run("configure" "${CMAKE_COMMAND}" -S "${EXAMPLES}" -B "${tree}" -DWITH_MPI=OFF
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DKokkos_DIR=${Kokkos_DIR}")
run("build" "${CMAKE_COMMAND}" --build "${tree}")
set(tried "")
foreach(name IN ITEMS waves advection)
    if(EXISTS "${tree}/${name}")
        try("${tree}/${name}")
        list(APPEND tried "${name}")
    endif()
endforeach()

find_program(PKG_CONFIG pkg-config)
find_program(CC cc)
if(PKG_CONFIG AND CC)
    file(WRITE "${WORK}/counts.c" "#include <ciwrap/record.h>
int main(void) {
    int32_t counts[1000] = {0};
    int n;
    ciwrap_run* run = ciwrap_open(\"counts\", 0, 1);
    ciwrap_array told = {sizeof told, CIWRAP_HOST, \"counts\", \"i4\", counts, 1, 0, {1000}, {0},
                         -1, -1};
    ciwrap_add(run, &told);
    for (n = 0; n < 5; ++n) {
        counts[n] = n;
        ciwrap_checkpoint(run, n, CIWRAP_IN_PLACE);
    }
    return ciwrap_close(run) ? 1 : 0;
}
")
    run("compile" "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${prefix}/lib/pkgconfig"
        sh -c "eval ${CC} -std=c99 -Wall -Wextra -Werror '${WORK}/counts.c' -o '${WORK}/counts' \
            $('${PKG_CONFIG}' --cflags --libs ciwrap-record)")
    try("${WORK}/counts")
    list(APPEND tried counts)
endif()
if(NOT tried)
    message(FATAL_ERROR "there is no compiler that any example could be built with")
endif()
message(STATUS "built and run: ${tried}")
