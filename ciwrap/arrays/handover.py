"""Arrays that a library hands over by protocol, on the host or on a GPU: DLPack, `__array__`,
`__cuda_array_interface__`. No protocol says what else an array carries; whose arrays are no more
than their elements, `libraries` knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import ArrayValues, DeviceValues, HeldOnDevice, dtype_text
from ciwrap.base.errors import (
    CiwrapError,
    DeviceArrayError,
    UnsupportedDtypeError,
    UsageError,
)
from ciwrap.base.late import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values

# As DLPack numbers devices.
_HOST = (1, 3, 11)  # plain; locked for CUDA; locked for ROCm
_CUDA = (2, 13)  # a device's own memory; managed
_KINDS = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI", 15: "WebGPU"}
# As CUDA numbers streams: the one that all others wait for.
_LEGACY_STREAM = 1
_TO_HOST = "copy it over (CuPy: .get(), PyTorch: .cpu(), JAX: jax.device_get)"


def take_over(array: Any, name: str | None = None) -> NDArray[Any] | Values:
    """The array without a copy, if that can be.

    array: of a library whose arrays are no more than their elements. A view for what NumPy knows,
    else values with a dtype of their own: bfloat16, or an array on a GPU, which stays there. Raises
    UnsupportedDtypeError for what cannot be taken over, DeviceArrayError for a device that this
    build does not compute on.
    """
    device = _device_of(array, name)
    if device is not None and device[0] in _CUDA:
        return _from_dlpack_on_cuda(array, device, name)
    if device is not None and device[0] not in _HOST:
        kind = _KINDS.get(device[0], f"kind {device[0]}")
        raise DeviceArrayError(
            f"the array lies on a device that is not supported ({kind})",
            variable=name,
            remedy=_TO_HOST,
        )
    if device is None:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            return _from_cuda_interface(array, interface, name)
    return _on_host(array, name, has_dlpack=device is not None)


def device_backend() -> str:
    """The core's backend for arrays on CUDA devices. Raises DeviceArrayError if there is none."""
    cuda = next(one for one in _core.backends() if one["name"] == "cuda")
    if not cuda["usable"]:
        raise DeviceArrayError(
            f"the array lies on a GPU, and ciwrap computes on the host here (cuda:"
            f" {cuda['reason']})",
            remedy=f"{_TO_HOST}, or build with CUDA (docs/how-to/gpu.md)",
        )
    return "cuda"


def _device_of(array: Any, name: str | None) -> tuple[int, int] | None:
    """DLPack's kind and number of the device; None for what does not speak DLPack."""
    if not (hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")):
        return None
    try:
        kind, number = array.__dlpack_device__()
        return int(kind), int(number)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DeviceArrayError(
            f"the array does not say where it lies: {error}", variable=name, remedy=_TO_HOST
        ) from error


def _on_host(array: Any, name: str | None, *, has_dlpack: bool) -> NDArray[Any] | Values:
    # A masked array stays one: what it says about its elements must not be lost unseen.
    if not has_dlpack:
        return named_bfloat16(np.asanyarray(array))
    if hasattr(array, "__array__"):
        try:
            return named_bfloat16(np.asanyarray(array))
        except (RuntimeError, TypeError):
            pass  # a type NumPy does not have, or a reason that DLPack gives too
    try:
        held = _core.DeviceArray.from_dlpack(array.__dlpack__())
        view = held.host_view()
    except CiwrapError as error:
        raise UnsupportedDtypeError(
            error.message, variable=name, remedy="give it as a type that NumPy knows"
        ) from error
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UnsupportedDtypeError(
            f"the array cannot be taken over from DLPack: {error}",
            variable=name,
            remedy="copy it to the host as a type NumPy knows",
        ) from error
    return ArrayValues(view, held.dtype) if held.dtype[1:] == "bf2" else view


def named_bfloat16(array: NDArray[Any]) -> NDArray[Any] | Values:
    """ml_dtypes gives NumPy a bfloat16 of two untyped bytes, in either byte order."""
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.name == "bfloat16":
        order = array.dtype.str[:1]
        return ArrayValues(array.view(f"{order}u2"), f"{order}bf2")
    return array


def _from_dlpack_on_cuda(array: Any, device: tuple[int, int], name: str | None) -> Values:
    backend = _backend(name)
    try:
        try:
            capsule = array.__dlpack__(stream=_LEGACY_STREAM, max_version=(1, 0))
        except TypeError:  # a library older than versions
            capsule = array.__dlpack__(stream=_LEGACY_STREAM)
        held = _core.DeviceArray.from_dlpack(capsule, stream=_LEGACY_STREAM)
    except CiwrapError as error:
        raise UnsupportedDtypeError(error.message, variable=name, remedy=_TO_HOST) from error
    except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DeviceArrayError(
            f"the array on CUDA device {device[1]} cannot be taken over from DLPack: {error}",
            variable=name,
            remedy=_TO_HOST,
        ) from error
    return DeviceValues(HeldOnDevice(held, backend))


def _from_cuda_interface(array: Any, interface: Mapping[str, Any], name: str | None) -> Values:
    backend = _backend(name)
    try:
        address = interface["data"][0]
        shape = [int(length) for length in interface["shape"]]
        strides = interface.get("strides")
        typestr = str(interface["typestr"])
        version = int(interface.get("version", 0))
        stream = interface.get("stream")
        if stream is None:
            # Before version 3 nobody said; from then on None means that nothing is to be waited for
            stream = 0 if version >= 3 else _LEGACY_STREAM
        elif stream == 0:
            raise ValueError("stream 0 is ambiguous")
        if interface.get("mask") is not None:
            raise ValueError("it has a mask")
        held = _core.DeviceArray.from_address(
            int(address or 0),
            shape,
            None if strides is None else [int(stride) for stride in strides],
            dtype_text(np.dtype(typestr), variable=name),
            stream=int(stream),
            owner=array,
        )
    except UsageError as error:
        raise UnsupportedDtypeError(error.message, variable=name, remedy=_TO_HOST) from error
    except (IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UnsupportedDtypeError):
            raise
        raise DeviceArrayError(
            f"the array's __cuda_array_interface__ cannot be followed: {error}",
            variable=name,
            remedy=_TO_HOST,
        ) from error
    return DeviceValues(HeldOnDevice(held, backend))


def _backend(name: str | None) -> str:
    try:
        return device_backend()
    except DeviceArrayError as error:
        raise DeviceArrayError(error.message, variable=name, remedy=error.remedy) from None
