# Third-party sources, pinned by SHA-256 and kept in a cache outside the build tree, so that a
# second build (another preset, a fresh clone) neither downloads nor compiles them again.

if(NOT CIWRAP_CACHE_DIR)
    if(DEFINED ENV{CIWRAP_CACHE_DIR})
        set(_ciwrap_cache "$ENV{CIWRAP_CACHE_DIR}")
    elseif(DEFINED ENV{XDG_CACHE_HOME})
        set(_ciwrap_cache "$ENV{XDG_CACHE_HOME}/ciwrap")
    elseif(DEFINED ENV{HOME})
        set(_ciwrap_cache "$ENV{HOME}/.cache/ciwrap")
    else()
        set(_ciwrap_cache "${CMAKE_BINARY_DIR}/cache")
    endif()
    set(CIWRAP_CACHE_DIR "${_ciwrap_cache}" CACHE PATH
        "Where pinned third-party sources and their builds are kept")
endif()

# Held by the calling function until it returns: two configurations at once must not build the
# same dependency into the same directory.
macro(ciwrap_lock_cache name)
    file(MAKE_DIRECTORY "${CIWRAP_CACHE_DIR}")
    file(LOCK "${CIWRAP_CACHE_DIR}/${name}.lock" GUARD FUNCTION TIMEOUT 1200 RESULT_VARIABLE _lock)
    if(NOT _lock EQUAL 0)
        message(FATAL_ERROR "${CIWRAP_CACHE_DIR}/${name}.lock is held by another build (${_lock}); "
                            "wait for it, or remove the file")
    endif()
endmacro()

# ciwrap_hash_is(<file> <sha256> <out>): whether the file exists and has that hash.
function(ciwrap_hash_is file sha256 out)
    set(${out} FALSE PARENT_SCOPE)
    if(EXISTS "${file}")
        file(SHA256 "${file}" actual)
        if(actual STREQUAL sha256)
            set(${out} TRUE PARENT_SCOPE)
        endif()
    endif()
endfunction()

# ciwrap_fetch_url(<url> <sha256> <out>): path of the downloaded file, or empty. Gives up after a
# few seconds where there is no way to the host, since another source may follow.
function(ciwrap_fetch_url url sha256 out)
    set(${out} "" PARENT_SCOPE)
    get_filename_component(name "${url}" NAME)
    set(file "${CIWRAP_CACHE_DIR}/downloads/${name}")
    ciwrap_hash_is("${file}" ${sha256} present)
    if(NOT present)
        # A first byte tells soon enough whether the host can be reached.
        file(DOWNLOAD "${url}" "${file}.probe" RANGE_START 0 RANGE_END 0 TIMEOUT 10 STATUS status)
        file(REMOVE "${file}.probe")
        list(GET status 0 code)
        if(NOT code EQUAL 0)
            list(GET status 1 why)
            message(STATUS "ciwrap: ${url}: not reachable (${why})")
            return()
        endif()
        file(DOWNLOAD "${url}" "${file}.part" INACTIVITY_TIMEOUT 20 TIMEOUT 300 STATUS status)
        ciwrap_hash_is("${file}.part" ${sha256} good)
        if(NOT good)
            file(REMOVE "${file}.part")
            message(STATUS "ciwrap: ${url}: download failed or its SHA-256 is not ${sha256}")
            return()
        endif()
        file(RENAME "${file}.part" "${file}")
    endif()
    set(${out} "${file}" PARENT_SCOPE)
endfunction()

# ciwrap_fetch_sdist(<package> <version> <sha256> <out>): path of a source distribution taken from
# the configured Python package index, or empty. pip checks the hash before it looks inside; none
# of the package's own code is built.
function(ciwrap_fetch_sdist package version sha256 out)
    set(${out} "" PARENT_SCOPE)
    set(directory "${CIWRAP_CACHE_DIR}/downloads")
    set(file "${directory}/${package}-${version}.tar.gz")
    ciwrap_hash_is("${file}" ${sha256} present)
    if(NOT present)
        message(STATUS "ciwrap: fetching the source distribution ${package} ${version} with pip")
        set(work "${directory}/${package}-${version}.part")
        file(REMOVE_RECURSE "${work}")
        file(MAKE_DIRECTORY "${work}")
        file(WRITE "${work}/requirements.txt" "${package}==${version} --hash=sha256:${sha256}\n")
        set(log "")
        foreach(python IN ITEMS "${Python_EXECUTABLE}" python3)
            # When pip itself runs this build, its private variables must not reach the inner pip.
            execute_process(
                COMMAND "${CMAKE_COMMAND}" -E env --unset=PIP_BUILD_TRACKER --unset=PYTHONPATH
                        PIP_NO_BUILD_ISOLATION= PIP_REQUIRE_VIRTUALENV=0
                        "${python}" -m pip download --quiet --disable-pip-version-check --no-deps
                        --no-binary=${package} --dest "${work}" --requirement "${work}/requirements.txt"
                RESULT_VARIABLE status OUTPUT_VARIABLE log ERROR_VARIABLE log TIMEOUT 600)
            ciwrap_hash_is("${work}/${package}-${version}.tar.gz" ${sha256} good)
            if(good)
                break()
            endif()
        endforeach()
        if(NOT good)
            file(REMOVE_RECURSE "${work}")
            message(STATUS "ciwrap: pip download ${package}==${version} failed (${status}):\n${log}")
            return()
        endif()
        file(RENAME "${work}/${package}-${version}.tar.gz" "${file}")
        file(REMOVE_RECURSE "${work}")
    endif()
    set(${out} "${file}" PARENT_SCOPE)
endfunction()

# ciwrap_run(<what> <log file> <command...>): runs a step of a dependency's build; its output is
# shown only when it fails.
function(ciwrap_run what log)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
    file(APPEND "${log}" "${text}")
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "ciwrap: ${what} failed (${status}); log in ${log}:\n${text}")
    endif()
endfunction()
