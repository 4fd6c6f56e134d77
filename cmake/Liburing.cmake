# Looks for a static liburing and makes the target ciwrap_liburing; without one the read engine is
# built on pread alone. Sets CIWRAP_HAVE_IO_URING.

option(CIWRAP_IO_URING "Build the io_uring read engine when liburing is found" ON)
set(CIWRAP_HAVE_IO_URING FALSE)

if(CIWRAP_IO_URING AND NOT CIWRAP_POSIX_ONLY)
    find_path(LIBURING_INCLUDE_DIR liburing.h)
    find_library(LIBURING_LIBRARY NAMES liburing.a)
    if(LIBURING_INCLUDE_DIR AND LIBURING_LIBRARY)
        include(CheckCXXSourceCompiles)
        set(CMAKE_REQUIRED_INCLUDES "${LIBURING_INCLUDE_DIR}")
        set(CMAKE_REQUIRED_LIBRARIES "${LIBURING_LIBRARY}")
        check_cxx_source_compiles("
            #include <liburing.h>
            int main() {
                io_uring ring;
                if (io_uring_queue_init(4, &ring, 0) < 0) return 0;
                iovec vectors[1] = {};
                io_uring_register_buffers(&ring, vectors, 1);
                io_uring_prep_read_fixed(io_uring_get_sqe(&ring), 0, nullptr, 0, 0, 0);
                io_uring_queue_exit(&ring);
            }" CIWRAP_LIBURING_WORKS)
        unset(CMAKE_REQUIRED_INCLUDES)
        unset(CMAKE_REQUIRED_LIBRARIES)
        if(CIWRAP_LIBURING_WORKS)
            set(CIWRAP_HAVE_IO_URING TRUE)
            # The header states no version before 2.4; the pkg-config file beside the library does.
            get_filename_component(_liburing_dir "${LIBURING_LIBRARY}" DIRECTORY)
            set(CIWRAP_LIBURING_VERSION "unknown")
            if(EXISTS "${_liburing_dir}/pkgconfig/liburing.pc")
                file(STRINGS "${_liburing_dir}/pkgconfig/liburing.pc" _line REGEX "^Version:")
                string(REGEX REPLACE "^Version: *" "" CIWRAP_LIBURING_VERSION "${_line}")
            endif()
            add_library(ciwrap_liburing STATIC IMPORTED)
            set_target_properties(ciwrap_liburing PROPERTIES
                IMPORTED_LOCATION "${LIBURING_LIBRARY}"
                INTERFACE_INCLUDE_DIRECTORIES "${LIBURING_INCLUDE_DIR}")
        endif()
    endif()
endif()

if(CIWRAP_HAVE_IO_URING)
    message(STATUS "ciwrap: read engines io_uring (liburing ${CIWRAP_LIBURING_VERSION}) and pread")
elseif(CIWRAP_POSIX_ONLY)
    message(STATUS "ciwrap: read engine pread only: built without Linux's own calls")
else()
    message(STATUS "ciwrap: read engine pread only: no static liburing found "
                   "(Debian, Ubuntu: liburing-dev)")
endif()
