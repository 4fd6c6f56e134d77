# cmake -DNM=... -DOBJECTS=a.o;b.o -P cpu_level_symbols.cmake
#
# Code compiled for AVX2 or AVX-512 must never be what the linker picks for a function that the
# baseline calls too. That happens to inline functions and templates which are not inlined: each
# object then defines them, weakly, and the linker keeps one. So such objects may define weak
# functions only under a name of their own level (namespace level_v3, level_v4).
set(found "")
foreach(object IN LISTS OBJECTS)
    execute_process(COMMAND "${NM}" --defined-only --demangle "${object}"
        OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    if(NOT symbols MATCHES "::level_v[34]::")
        message(FATAL_ERROR "${object} defines nothing of its CPU level; is it the right file?")
    endif()
    string(REPLACE ";" "," symbols "${symbols}")
    string(REGEX MATCHALL "[^\n]* W [^\n]*" weak "${symbols}")
    list(FILTER weak EXCLUDE REGEX "::level_v[34]::")
    foreach(symbol IN LISTS weak)
        string(APPEND found "  ${object}: ${symbol}\n")
    endforeach()
endforeach()
if(found)
    message(FATAL_ERROR "weak functions in objects of a higher CPU level:\n${found}")
endif()
