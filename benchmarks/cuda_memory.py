"""Memory of a CUDA device through its driver alone: no toolkit and no array library is needed."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np


class CudaError(RuntimeError):
    """The driver's answer to a call that failed."""


@lru_cache(maxsize=1)
def driver() -> Any:
    """libcuda, with device 0's primary context (which everybody in the process shares) current.

    Raises OSError without a driver, CudaError without a device.
    """
    library = ctypes.CDLL("libcuda.so.1")
    _require(library, library.cuInit(0))
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _require(library, library.cuDeviceGet(ctypes.byref(device), 0))
    _require(library, library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _require(library, library.cuCtxSetCurrent(context))
    return library


def _require(library: Any, status: int) -> None:
    if status != 0:
        name = ctypes.c_char_p()
        library.cuGetErrorName(status, ctypes.byref(name))
        raise CudaError((name.value or b"CUDA error").decode())


def device_name() -> str:
    text = ctypes.create_string_buffer(200)
    _require(driver(), driver().cuDeviceGetName(text, len(text), 0))
    return text.value.decode()


def synchronize() -> None:
    _require(driver(), driver().cuCtxSynchronize())


class DeviceMemory:
    """Some bytes on the device; given back with this object."""

    def __init__(self, byte_count: int) -> None:
        self._library = driver()
        self.byte_count = byte_count
        pointer = ctypes.c_uint64()
        _require(
            self._library,
            self._library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(max(1, byte_count))),
        )
        self.address = int(pointer.value)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._library.cuMemFree_v2(ctypes.c_uint64(self.address))

    def fill(self, address: int, byte_count: int) -> None:
        """From host memory; returns when it is there."""
        _require(
            self._library,
            self._library.cuMemcpyHtoD_v2(
                ctypes.c_uint64(self.address), ctypes.c_void_p(address), ctypes.c_size_t(byte_count)
            ),
        )
        synchronize()

    def copy_from(self, other: DeviceMemory) -> None:
        """From device memory; returns when it is done."""
        _require(
            self._library,
            self._library.cuMemcpyDtoD_v2(
                ctypes.c_uint64(self.address),
                ctypes.c_uint64(other.address),
                ctypes.c_size_t(self.byte_count),
            ),
        )
        synchronize()


class LockedArray:
    """A NumPy array (`array`) in host memory that the device can copy from by itself."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._library = driver()
        pointer = ctypes.c_void_p()
        _require(
            self._library,
            self._library.cuMemHostAlloc(
                ctypes.byref(pointer), ctypes.c_size_t(values.nbytes), ctypes.c_uint(1)
            ),
        )
        self._address = int(pointer.value or 0)
        held = (ctypes.c_uint8 * values.nbytes).from_address(self._address)
        self.array = np.frombuffer(held, dtype=values.dtype).reshape(values.shape)
        self.array[...] = values

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            self._library.cuMemFreeHost(ctypes.c_void_p(self._address))


class DeviceArray:
    """Values on the device, with `__cuda_array_interface__`."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        values = np.ascontiguousarray(values)
        self.memory = DeviceMemory(values.nbytes)
        if values.nbytes:
            self.memory.fill(values.ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.memory.address if values.nbytes else 0, False),
            "strides": None,
            "version": 3,
            "stream": None,
        }
