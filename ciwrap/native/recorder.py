"""Recording arrays of a running Python program."""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from ciwrap.closing import Closing
from ciwrap.errors import InvalidBoundError, NotAvailableError, UsageError
from ciwrap.native.library import library_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIMENSIONS = 15
_VERSION = 1
_HOST, _DEVICE = 0, 1
_BYTE_STRIDES = 1


class _Array(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("location", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("dimensions", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("extents", ctypes.c_int64 * _DIMENSIONS),
        ("strides", ctypes.c_int64 * _DIMENSIONS),
        ("atol", ctypes.c_double),
        ("rtol", ctypes.c_double),
    )


class _Divergence(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("iteration", ctypes.c_int64),
        ("point", ctypes.c_char_p),
        ("variable", ctypes.c_char_p),
        ("suspect_chunks", ctypes.c_uint64),
        ("chunks", ctypes.c_uint64),
    )


_RUN, _ID = ctypes.c_void_p, ctypes.c_int64
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Divergence))
_ARRAY = ctypes.POINTER(_Array)


class _Table(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("open", ctypes.CFUNCTYPE(_RUN, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)),
        ("add", ctypes.CFUNCTYPE(_ID, _RUN, _ARRAY)),
        ("replace", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ID, _ARRAY)),
        ("move", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ID, ctypes.c_void_p)),
        ("remove", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ID)),
        ("prepare", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ID, ctypes.c_char_p)),
        ("work", ctypes.CFUNCTYPE(ctypes.c_int, _RUN)),
        ("complete", ctypes.CFUNCTYPE(ctypes.c_int, _RUN)),
        ("checkpoint", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ID, ctypes.c_char_p, ctypes.c_int)),
        ("errors", ctypes.CFUNCTYPE(_ID, _RUN)),
        ("close", ctypes.CFUNCTYPE(_ID, _RUN)),
        ("find", ctypes.CFUNCTYPE(_ID, _RUN, ctypes.c_char_p)),
        ("should_stop", ctypes.CFUNCTYPE(ctypes.c_int, _RUN)),
        ("on_divergence", ctypes.CFUNCTYPE(None, _RUN, _CALLBACK, ctypes.c_void_p)),
    )


def _load() -> _Table | None:
    """The library's functions; None, with a line on stderr, if there is no library of use."""
    try:
        path = os.environ.get("CIWRAP_RECORD_LIBRARY") or str(library_path())
        find = ctypes.CDLL(path).ciwrap_record_table
    except (OSError, AttributeError, NotAvailableError) as error:
        print(f"ciwrap: nothing is recorded: {error}", file=sys.stderr)
        return None
    find.restype, find.argtypes = ctypes.POINTER(_Table), (ctypes.c_uint32,)
    table = find(_VERSION)
    if not table or table.contents.size < ctypes.sizeof(_Table):
        print(f"ciwrap: nothing is recorded: {path} is too old", file=sys.stderr)
        return None
    found: _Table = table.contents
    return found


class Divergence(NamedTuple):
    """A checkpoint of this process that does not match what it is held against.

    variable: the first one that does not; suspect_chunks: of its chunks, how many do not match.
    """

    iteration: int
    point: str
    variable: str
    suspect_chunks: int
    chunks: int


class Recorder(Closing):
    """This process's part of a recorded run, where CIWRAP_RECORD names a folder; else nothing.

    `ciwrap record -- COMMAND` sets that variable. name: of the program. comm: an mpi4py
    communicator, for rank and number of ranks; without one they can be given. No method raises for
    what cannot be recorded: it is counted, told on stderr once, and ends `ciwrap record` with 3.

    Raises UsageError for a rank beyond the number of ranks, and for a name that is not text.
    """

    def __init__(
        self, name: str = "run", *, comm: Any = None, rank: int = 0, ranks: int = 1
    ) -> None:
        if comm is not None:
            rank, ranks = comm.Get_rank(), comm.Get_size()
        rank, ranks = _place(rank, ranks)
        self._table = _load() if os.environ.get("CIWRAP_RECORD") else None
        self._run = None
        if self._table is not None:
            self._run = self._table.open(_text(name), rank, ranks)
        self._is_closed = False
        self._comm = comm
        # Another thread's arrays are not to be recorded as ours; a callback may record, too.
        self._lock = threading.RLock()
        self._process = os.getpid()  # in a child of fork() the lock may be held for ever
        self._callback: Any = None  # has to live as long as the library may call it
        self._ids: dict[str, int] = {}
        self._bounds: dict[str, tuple[float, float]] = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is recorded."""
        return self._run is not None

    def bound(self, name: str, *, atol: float = 0.0, rtol: float = 0.0) -> None:
        """The bound of an array not yet recorded, unless ciwrap.yaml has another one.

        Raises UsageError for what is not a bound.
        """
        if self.is_on:
            self._bounds[name] = _bound(name, atol, rtol)

    def record(self, iteration: int, point: str = "", /, **arrays: Any) -> None:
        """Records these arrays as they are now; when it returns, they are the program's again.

        iteration: not negative. point: where in the iteration, as "after hydro". arrays: NumPy
        arrays, any slices of them, numbers, and what has DLPack on the host. Of several threads one
        records at a time; a child of fork() records nothing. Raises UsageError for an iteration
        that is not a whole number of 64 bits, a point that is not text, and a run that was closed.
        """
        if not (self.is_on or self._is_closed):
            return
        if os.getpid() != self._process:
            if self._table is not None and self._run is not None:
                self._table.checkpoint(self._run, 0, b"", 0)  # which says so
            return
        with self._lock:
            self._record(_iteration(iteration), _text(point), arrays)

    def _record(self, iteration: int, point: bytes, arrays: Mapping[str, Any]) -> None:
        if self._table is None or self._run is None:
            raise UsageError(
                f"iteration {iteration} is recorded after the run was closed",
                remedy="close the Recorder once all is recorded",
            )
        held = []  # until they are hashed
        for name, array in arrays.items():
            described, keep = _described(name, array, self._bounds.get(name, (-1.0, -1.0)))
            held.append(keep)
            if name in self._ids:
                self._table.replace(self._run, self._ids[name], ctypes.byref(described))
            else:
                number = self._table.add(self._run, ctypes.byref(described))
                if number >= 0:
                    self._ids[name] = number
        for name in self._ids.keys() - arrays.keys():
            self._table.remove(self._run, self._ids[name])
        self._table.checkpoint(self._run, iteration, point, 0)
        del held

    def should_stop(self) -> bool:
        """Whether the program is to end, since it does not match what it is held against.

        Under `ciwrap record --against RUN --on-divergence stop`. With a communicator the answer is
        the same in all processes, and all of them have to ask.
        """
        mine = self._table is not None and self._run is not None
        mine = mine and bool(self._table.should_stop(self._run))  # type: ignore[union-attr]
        return mine if self._comm is None else bool(self._comm.allreduce(int(mine)))

    def on_divergence(self, callback: Callable[[Divergence], None]) -> None:
        """Calls a function at every checkpoint that does not match what the run is held against.

        Under `ciwrap record --against RUN --on-divergence callback`, before `record` returns.
        """
        if self._table is None or self._run is None:
            return

        def told(_: int | None, pointer: Any) -> None:
            found = pointer.contents
            texts = (found.point.decode(), found.variable.decode())
            callback(Divergence(found.iteration, *texts, found.suspect_chunks, found.chunks))

        self._callback = _CALLBACK(told)
        self._table.on_divergence(self._run, self._callback, None)

    @property
    def errors(self) -> int:
        """How many things could not be recorded so far."""
        if self._table is None or self._run is None:
            return 0
        return int(self._table.errors(self._run))

    def close(self) -> int:
        """Ends the journal once all is written; the number of errors."""
        if os.getpid() != self._process:
            return 0
        with self._lock:
            if self._table is None or self._run is None:
                return 0
            run, self._run = self._run, None
            self._is_closed = True
            return int(self._table.close(run))


def _place(rank: Any, ranks: Any) -> tuple[int, int]:
    """Raises UsageError for a rank that is none, or that ctypes would cut to 32 bits."""
    try:
        place = operator.index(rank), operator.index(ranks)
    except TypeError:
        place = -1, 0
    if not 0 <= place[0] < place[1] < 2**31:
        raise UsageError(f"there is no rank {rank!r} of {ranks!r}")
    return place


def _bound(name: str, atol: Any, rtol: Any) -> tuple[float, float]:
    """Raises UsageError; to the library a negative number is one that was not given."""
    from ciwrap.model.rules import ErrorBound

    try:
        found = ErrorBound(atol, rtol)
    except InvalidBoundError as error:
        raise UsageError(f"the bound of {name!r}: {error}") from None
    return found.atol, found.rtol


def _iteration(given: Any) -> int:
    """Raises UsageError for what ctypes would cut to 64 bits: another iteration."""
    try:
        number = operator.index(given)
    except TypeError:
        number = 2**64
    if not -(2**63) <= number < 2**63:
        raise UsageError(f"iteration {given!r} is not a whole number of 64 bits")
    return number


def _text(name: str) -> bytes:
    """As the library takes it: to C a NUL is the end, and half a surrogate has no UTF-8.

    Raises UsageError for what is not text.
    """
    if not isinstance(name, str):
        raise UsageError(f"{name!r} is not text, as the name of a program or a point is")
    return name.replace("\0", "\\0").encode("utf-8", "backslashreplace")


def _described(name: str, array: Any, bound: tuple[float, float]) -> tuple[_Array, Any]:
    """What the library is told of an array, and what has to live until it has been read."""
    found = _Array(ctypes.sizeof(_Array), _HOST, _text(name), b"|V1", None, 0, _BYTE_STRIDES)
    found.atol, found.rtol = bound
    try:
        return _with_data(found, array)
    except Exception as error:  # of any library; ours refuses that "type", and counts it
        found.dtype = _text(f"|{type(array).__name__}: {error}")
        return found, None


def _with_data(found: _Array, array: Any) -> tuple[_Array, Any]:
    import numpy as np

    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack_device__"):
        if int(array.__dlpack_device__()[0]) != 1:  # not the host's memory
            return _on_device(found, array), array
        array = np.from_dlpack(array)
    if np.ma.is_masked(array):
        raise UsageError("masked elements have no values; record filled(), and the mask")
    values = np.asarray(array)
    if values.size > 1 and not any(values.strides):  # to the library that is back to back
        values = values.copy()
    found.dtype = values.dtype.str.encode()
    found.dimensions = values.ndim
    for i, (extent, stride) in enumerate(zip(values.shape, values.strides, strict=True)):
        if i < _DIMENSIONS:
            found.extents[i], found.strides[i] = extent, stride
    found.data = values.ctypes.data
    return found, values


def _on_device(found: _Array, array: Any) -> _Array:
    """The same for memory of a CUDA device, of an array that says where it lies; else without
    data, which the library counts as an error.
    """
    found.location = _DEVICE
    told = getattr(array, "__cuda_array_interface__", None)
    if told is None or (told.get("strides") and not any(told["strides"])):
        return found
    found.dtype = told["typestr"].encode()
    found.dimensions = len(told["shape"])
    strides = told.get("strides") or (0,) * len(told["shape"])  # all 0: back to back
    for i, (extent, stride) in enumerate(zip(told["shape"], strides, strict=True)):
        if i < _DIMENSIONS:
            found.extents[i], found.strides[i] = extent, stride
    found.data = told["data"][0]
    return found
