# Compiles for Linux on arm64 with the cross compiler of Debian and Ubuntu, and runs what it made under
# qemu (tools/arm64-tests installs both).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(_ciwrap_triple aarch64-linux-gnu)

# Debian has the compiler of its own version under a plain name only if its meta-package is there.
find_program(CMAKE_C_COMPILER NAMES ${_ciwrap_triple}-gcc ${_ciwrap_triple}-gcc-14
    ${_ciwrap_triple}-gcc-13 ${_ciwrap_triple}-gcc-12 REQUIRED)
find_program(CMAKE_CXX_COMPILER NAMES ${_ciwrap_triple}-g++ ${_ciwrap_triple}-g++-14
    ${_ciwrap_triple}-g++-13 ${_ciwrap_triple}-g++-12 REQUIRED)

# Libraries and headers are that machine's; programs are this one's.
set(CMAKE_FIND_ROOT_PATH /usr/${_ciwrap_triple})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)

find_program(_ciwrap_qemu NAMES qemu-aarch64-static qemu-aarch64)
if(_ciwrap_qemu)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${_ciwrap_qemu};-L;/usr/${_ciwrap_triple}")
endif()
