# Makes the target ciwrap_zstd: Zstandard at one pinned version, whatever the system has.
#
# Golden files hold compressed sections and must be byte-identical on every machine; two versions
# of zstd may compress the same bytes differently. The amalgamated source comes with the source
# distribution of the PyPI package zstandard, whose Python module (the same version) is what the
# tests compare with.

set(_ciwrap_zstandard_version 0.25.0)
set(_ciwrap_zstandard_sha256 7713e1179d162cf5c7906da876ec2ccb9c3a9dcbdffef0cc7f70c3667a205f0b)

set(_ciwrap_zstd_sha256 68181bcc33ce17fdd4acc8b954abfb32e1d40bfc332235cdff8c6c95c341dab1)

function(_ciwrap_zstd_source out)
    # Our own source distribution brings it along (tools/build-sdist).
    set(carried "${PROJECT_SOURCE_DIR}/third_party/zstd")
    ciwrap_hash_is("${carried}/zstd.c" ${_ciwrap_zstd_sha256} present)
    if(present)
        set(${out} "${carried}" PARENT_SCOPE)
        return()
    endif()
    set(source "${CIWRAP_CACHE_DIR}/zstandard-${_ciwrap_zstandard_version}")
    if(NOT EXISTS "${source}/complete")
        ciwrap_lock_cache(zstandard)
        if(NOT EXISTS "${source}/complete")
            ciwrap_fetch_sdist(zstandard ${_ciwrap_zstandard_version} ${_ciwrap_zstandard_sha256} tar)
            if(NOT tar)
                message(FATAL_ERROR "ciwrap: the source of Zstandard could not be fetched from the "
                                    "Python package index (zstandard==${_ciwrap_zstandard_version})")
            endif()
            set(work "${source}.part")
            file(REMOVE_RECURSE "${source}" "${work}")
            file(ARCHIVE_EXTRACT INPUT "${tar}" DESTINATION "${work}"
                 PATTERNS "zstandard-${_ciwrap_zstandard_version}/zstd/*")
            file(RENAME "${work}/zstandard-${_ciwrap_zstandard_version}/zstd" "${source}")
            file(REMOVE_RECURSE "${work}")
            file(TOUCH "${source}/complete")
        endif()
    endif()
    set(${out} "${source}" PARENT_SCOPE)
endfunction()

_ciwrap_zstd_source(_ciwrap_zstd_dir)
add_library(ciwrap_zstd STATIC "${_ciwrap_zstd_dir}/zstd.c")
target_include_directories(ciwrap_zstd SYSTEM PUBLIC "${_ciwrap_zstd_dir}")
# One thread and no assembly: less to build, and the same bytes. What only levels above ours
# (csrc/format/golden_layout.hpp: 3, the strategy dfast) would use is left out: 100 KB of the wheel.
target_compile_definitions(ciwrap_zstd PRIVATE
    ZSTD_DISABLE_ASM=1 ZSTD_LEGACY_SUPPORT=0
    ZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR ZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR
    ZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR ZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR
    ZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR ZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR)
target_compile_options(ciwrap_zstd PRIVATE -w -ffunction-sections -fdata-sections
    $<IF:$<CONFIG:Debug>,-O1,-O2>)
set_target_properties(ciwrap_zstd PROPERTIES
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF)
