"""Arrays of a GPU library that does not exist: DLPack and CUDA array interfaces of host memory.

With the core's backend `portable` in the place of CUDA, whose device memory is the host's, they go
all the way that arrays of a real GPU go. CIWRAP_DEVICE_BACKEND=cuda (tools/gpu-check) puts them
into the memory of a real one.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ciwrap

if TYPE_CHECKING:
    import numpy as np

BACKEND = os.environ.get("CIWRAP_DEVICE_BACKEND", "portable")

CPU, CUDA, CUDA_HOST, ROCM, MANAGED = 1, 2, 3, 10, 13

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


# A tensor stays until its deleter is called, whatever becomes of the array; these stay for ever.
_kept: list[Any] = []

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def placed(values: np.ndarray[Any, Any]) -> int:
    """The address of the array's first element in the device's memory, its strides as they are."""
    address = int(values.__array_interface__["data"][0])
    if BACKEND != "cuda" or values.size == 0:
        return address
    # Behind what the installed package is found by.
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from benchmarks import cuda_memory

    reach = [
        (length - 1) * stride for length, stride in zip(values.shape, values.strides, strict=True)
    ]
    low = address + sum(step for step in reach if step < 0)
    high = address + sum(step for step in reach if step > 0) + values.dtype.itemsize
    memory = cuda_memory.DeviceMemory(high - low)
    memory.fill(low, high - low)
    _kept.append(memory)
    return memory.address + (address - low)


class DlpackArray:
    """Exports `values` by DLPack alone, as lying on a device of that kind.

    taken, given_back: capsules asked for, and those whose deleter was called. stream: the one that
    was asked for last. code, bits, lanes, offset, no_strides: what the tensor says otherwise.
    """

    def __init__(
        self,
        values: np.ndarray[Any, Any],
        device: int = CUDA,
        *,
        versioned: bool = True,
        code: int | None = None,
        bits: int | None = None,
        lanes: int = 1,
        offset: int = 0,
        no_strides: bool = False,
    ) -> None:
        self.values = values
        self.device = device
        self.taken = self.given_back = 0
        self.stream: Any = "never asked"
        self._versioned = versioned
        self._code = _CODES.get(values.dtype.kind) if code is None else code
        self._bits = 8 * values.dtype.itemsize if bits is None else bits
        self._lanes = lanes
        self._offset = offset
        self._no_strides = no_strides

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if not self._versioned and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.stream = options.get("stream")
        values = self.values
        if self.device in (CUDA, MANAGED):
            address = placed(values)
        else:
            address = values.__array_interface__["data"][0]
        integers = ctypes.c_int64 * max(1, values.ndim)
        shape = integers(*values.shape)
        strides = integers(*(stride // values.dtype.itemsize for stride in values.strides))
        tensor = _Tensor(
            address - self._offset,
            self.device,
            0,
            values.ndim,
            self._code,
            self._bits,
            self._lanes,
            shape,
            None if self._no_strides else strides,
            self._offset,
        )

        def give_back(_: Any) -> None:
            self.given_back += 1

        deleter = _DELETER(give_back)
        managed: Any
        if self._versioned:
            managed, name = _Versioned(1, 0, None, deleter, 0, tensor), b"dltensor_versioned"
        else:
            managed, name = _Managed(tensor, None, deleter), b"dltensor"
        _kept.append((shape, strides, deleter, managed, name, values))
        self.taken += 1
        return _new_capsule(ctypes.addressof(managed), name, None)


class CudaArray:
    """Exports `values` by `__cuda_array_interface__` alone."""

    def __init__(self, values: np.ndarray[Any, Any], **more: Any) -> None:
        self.values = values
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (placed(values) if values.size else 0, True),
            "strides": values.strides,
            "version": 3,
            "stream": None,
            **more,
        }


for _kind in (DlpackArray, CudaArray):
    ciwrap.register_type(_kind, "array")


def wrap(values: np.ndarray[Any, Any], how: str) -> Any:
    """The array as one of the makes: "dlpack", "old dlpack" or "cuda"."""
    if how == "cuda":
        return CudaArray(values)
    return DlpackArray(values, versioned=how == "dlpack")
