"""Recording arrays of a running program: the native library, its headers, and the table it reads.

The table holds the bounds of ciwrap.yaml and what it ignores, one line for each layer of settings
in the order in which they count (docs/reference/recording-format.md); for Kokkos programs that know
nothing of ciwrap, also which Views are recorded, and when.
"""

from __future__ import annotations

import ctypes
import operator
import os
import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ciwrap.base.errors import InvalidBoundError, NotAvailableError, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import Closing
from ciwrap.model import SETTINGS, VariableSettings
from ciwrap.model.settings import ErrorBound, OnTrees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ciwrap.model import SettingsLayer
    from ciwrap.project.settings import Check

FOLDER = Path(__file__).parents[1] / "native"
_SOURCE = Path(__file__).resolve().parents[2] / "csrc" / "record"
_SUFFIX = "dylib" if sys.platform == "darwin" else "so"
LIBRARY_NAME = f"libciwrap_record.{_SUFFIX}"
_KOKKOS_NAME = f"libciwrap_kokkos.{_SUFFIX}"


def library_path() -> Path:
    """The recording library. Raises NotAvailableError."""
    return _library(LIBRARY_NAME)


def kokkos_path() -> Path:
    """What KOKKOS_TOOLS_LIBS has to name. Raises NotAvailableError."""
    return _library(_KOKKOS_NAME)


def _library(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        target = name.removeprefix("lib").partition(".")[0]
        raise NotAvailableError(
            "was not built with this installation of ciwrap",
            file=path,
            remedy=f"build the target {target} (CONTRIBUTING.md), or install a wheel",
        )
    return path


def include_folder() -> Path:
    """The folder that a compiler is given with -I: it holds ciwrap/record.h."""
    return _folder("include")


def fortran_folder() -> Path:
    """The folder of ciwrap_record.f90 and its half in C."""
    return _folder("fortran")


def cmake_folder() -> Path:
    """What `find_package(ciwrap-record)` is given as ciwrap-record_DIR."""
    return _folder("cmake")


def pkg_config_folder() -> Path:
    """What PKG_CONFIG_PATH has to hold for `pkg-config ciwrap-record`."""
    return _folder("pkgconfig")


def _folder(name: str) -> Path:
    """Raises NotAvailableError for an installation that left it out."""
    folders = (FOLDER / name, _SOURCE / name)
    found = next((one for one in folders if one.is_dir()), None)
    if found is None:
        raise NotAvailableError(
            "was not installed with ciwrap", file=folders[0], remedy="install a wheel of ciwrap"
        )
    return found


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
        ("expose", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, _ARRAY)),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, ctypes.c_char_p, ctypes.c_size_t)),
        ("report", ctypes.CFUNCTYPE(ctypes.c_int, _RUN, ctypes.c_char_p)),
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
    """A checkpoint of this process that does not match its reference.

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
    what cannot be recorded: it is counted, printed to stderr once, and ends `ciwrap record` with 3.

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
        self._bounds: dict[str, tuple[float, float]] = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is recorded."""
        return self._run is not None

    def bound(self, name: str, *, atol: float = 0.0, rtol: float = 0.0) -> None:
        """The bound of an array not yet recorded, unless ciwrap.yaml has another one.

        Raises UsageError for what is not a bound.
        """
        if not self.is_on:
            return
        try:
            # To the library a negative number is one that was not given.
            found = ErrorBound(atol, rtol)
        except InvalidBoundError as error:
            raise UsageError(f"the bound of {name!r}: {error}") from None
        self._bounds[name] = found.atol, found.rtol

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
                self._table.prepare(self._run, 0, b"")  # which says so
            return
        with self._lock:
            self._record(_iteration(iteration), _text(point), arrays)

    def _record(self, iteration: int, point: bytes, arrays: Mapping[str, Any]) -> None:
        if self._table is None or self._run is None:
            raise UsageError(
                f"iteration {iteration} is recorded after the run was closed",
                remedy="close the Recorder once all is recorded",
            )
        if self._table.prepare(self._run, iteration, point) != 0:
            return
        run = self._run  # a callback may close us
        try:
            for name, array in arrays.items():
                described, keep = _described(name, array, self._bounds.get(name, (-1.0, -1.0)))
                self._table.expose(run, ctypes.byref(described))
                del keep  # it was hashed
        finally:
            self._table.complete(run)

    def should_stop(self) -> bool:
        """Whether the program is to end, since it does not match its reference.

        Under `ciwrap record --against RUN --on-divergence stop`. With a communicator the answer is
        the same in all processes, and all of them have to ask.
        """
        mine = self._table is not None and self._run is not None
        mine = mine and bool(self._table.should_stop(self._run))  # type: ignore[union-attr]
        return mine if self._comm is None else bool(self._comm.allreduce(int(mine)))

    def on_divergence(self, callback: Callable[[Divergence], None]) -> None:
        """Calls a function at every checkpoint that does not match the reference of the run.

        Under `ciwrap record --against RUN --on-divergence callback`, before `record` returns.
        """
        if self._table is None or self._run is None:
            return

        def call(_: int | None, pointer: Any) -> None:
            found = pointer.contents
            texts = (found.point.decode(), found.variable.decode())
            callback(Divergence(found.iteration, *texts, found.suspect_chunks, found.chunks))

        self._callback = _CALLBACK(call)
        self._table.on_divergence(self._run, self._callback, None)

    @property
    def errors(self) -> int:
        """How many things could not be recorded so far."""
        if self._table is None or self._run is None:
            return 0
        return int(self._table.errors(self._run))

    @property
    def last_error(self) -> str:
        """What could not be recorded last, and why; "" for nothing."""
        if self._table is None or self._run is None:
            return ""
        text = ctypes.create_string_buffer(512)
        self._table.last_error(self._run, text, len(text))
        return text.value.decode(errors="backslashreplace")

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
    """What the library gets of an array, and what has to live until it has been read."""
    found = _Array(ctypes.sizeof(_Array), _HOST, _text(name), b"|V1", None, 0, _BYTE_STRIDES)
    found.atol, found.rtol = bound
    try:
        return _with_data(found, array)
    except Exception as error:  # of any library; ours refuses that "type", and counts it
        found.dtype = _text(f"|{type(array).__name__}: {error}")
        return found, None


def _with_data(found: _Array, array: Any) -> tuple[_Array, Any]:
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack_device__"):
        if int(array.__dlpack_device__()[0]) != 1:  # not the host's memory
            return _on_device(found, array), array
        array = np.from_dlpack(array)
    if np.ma.is_masked(array):
        raise UsageError("masked values cannot be recorded; record filled(), and the mask")
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


if TYPE_CHECKING:
    _Row = tuple[str, str, SettingsLayer]  # kind, pattern, and what it says

HEAD = "ciwrap-bounds 3"


def bounds_table(
    check: Check | None, layer: SettingsLayer, *, residues: bool = False
) -> str | None:
    """The table for a check's variables, with `layer` over all of it; None if it would say nothing.

    residues: whether trees have residues, of so many levels as the settings say.

    Raises UsageError for what trees that are made while a program runs cannot do.
    """
    rows = [("*", "*", one) for one in (() if check is None else check.layers)]
    rows += [] if check is None else _ruled(check)
    rows.append(("*", "*", layer))
    _refuse_taken_back(rows)
    lines = [f"*\t*\t-\t-\t-\t-\t{VariableSettings().residue_levels}"] if residues else []
    lines += [_line(*row, residues=residues) for row in rows]
    said = [line for line in lines if not line.endswith("\t-" * 5)]
    said += () if check is None else _left_out(check)
    return "\n".join((HEAD, *said, "")) if said else None


def _left_out(check: Check) -> Iterator[str]:
    """What ends no program that runs."""
    for pattern in check.ignore:
        _refuse_broken_line(pattern)
        yield f"!\t{pattern}"
    if check.until_iteration is not None:
        yield f">\t{check.until_iteration}"


def refuse_beyond_trees(check: Check) -> None:
    """Raises UsageError for a check of which trees alone do not tell how it ends."""
    for layer in check.layers:
        _refuse_beyond_trees("*", layer)
    for rule in check.rules:
        _refuse_beyond_trees(rule.pattern, rule.settings)


def _ruled(check: Check) -> list[_Row]:
    """What stands under `variables`: globs first, then names. A glob is a name, too: of the
    variable that is called so, such as `x[0]`.
    """
    for rule in check.rules:
        if " / " in rule.pattern:
            raise UsageError(
                f"the rule {rule.pattern!r} is of one iteration or rank",
                file=check.config_path,
                remedy="record with a check whose bounds are the same for all of them",
            )
    globs = [("*", one.pattern, one.settings) for one in check.rules if not one.is_exact]
    return globs + [("=", one.pattern, one.settings) for one in check.rules]


def _refuse_taken_back(rows: list[_Row]) -> None:
    """The table can say which fill values there are, and not that there are none any more."""
    has_fills = False
    for _, pattern, layer in rows:
        fills = layer.given.get("fill_values")
        if has_fills and fills is not None and not fills:
            raise UsageError(
                f"`fill_values: []` of {pattern!r} takes fill values back, which a recorded run"
                " cannot",
                remedy="give fill_values to those variables alone that have them",
            )
        has_fills = has_fills or bool(fills)


def _line(kind: str, pattern: str, layer: SettingsLayer, *, residues: bool) -> str:
    _refuse_broken_line(pattern)
    _refuse_beyond_trees(pattern, layer)
    _refuse_rounded(pattern, layer)
    return "\t".join((kind, pattern, *_fields(layer, residues=residues)))


def _refuse_broken_line(pattern: str) -> None:
    if "\t" in pattern or "\n" in pattern:
        raise UsageError(f"the pattern {pattern!r} holds a tab or a line break")


def _refuse_beyond_trees(pattern: str, layer: SettingsLayer) -> None:
    scale = layer.given.get("scale")
    if scale is not None:
        raise UsageError(
            f"atol: {scale.text} of {pattern!r} needs the data, and a recorded run has none",
            remedy="record with a check that gives atol as a number",
        )
    for name, setting in SETTINGS.items():
        is_beyond = setting.on_trees is OnTrees.BEYOND and setting.field in layer.given
        if is_beyond and layer.given[setting.field] not in (None, setting.default):
            raise UsageError(
                f"`{name}` of {pattern!r} needs the data, and a recorded run has none",
                remedy="record with a check without it",
            )


def _refuse_rounded(pattern: str, layer: SettingsLayer) -> None:
    """The recording library reads doubles: a rounded fill value would be another number."""
    for one in layer.given.get("fill_values") or ():
        if isinstance(one, int) and float(one) != one:
            raise UsageError(
                f"the fill value {one} of {pattern!r} is a whole number that no double holds, and a"
                " recorded run takes fill values as doubles",
                remedy="record with a check without it, and compare files instead",
            )


def _fields(layer: SettingsLayer, *, residues: bool) -> Iterator[str]:
    said = layer.given
    bound = said.get("bound")
    yield "-" if bound is None else f"{bound.atol!r} {bound.rtol!r} {bound.ulps}"
    yield "-" if "equal_nan" not in said else str(int(said["equal_nan"]))
    yield "-" if "chunk_bytes" not in said else str(said["chunk_bytes"])
    fills = said.get("fill_values")
    yield ",".join(repr(float(one)) for one in fills) if fills else "-"
    yield str(said["residue_levels"]) if residues and "residue_levels" in said else "-"


_VIEW = re.compile(
    r"[^=\n]+=(f2|f4|f8|c8|c16|[iu][1248]|\?)(\[[1-9][0-9]*(,[1-9][0-9]*){0,14}\])?(/left)?"
)
# Of Kokkos from 3.5 on, and before; where both are known they have to be the same.
_TOOLS = ("KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY")


def kokkos_environment(views: Sequence[str], step: str | None) -> dict[str, str]:
    """The variables under which Kokkos loads our tool; {} if no View is asked for.

    views: PATTERN=DTYPE, PATTERN=DTYPE[EXTENT,...], each with /left if the first index varies
    fastest. step: the region or kernel at whose end a checkpoint is recorded. Raises UsageError and
    NotAvailableError.
    """
    if not views and step is None:
        return {}
    if not views or not step:
        raise UsageError(
            "--view says what of a Kokkos program is recorded, and --step when",
            remedy="give both",
        )
    for text in views:
        if not _VIEW.fullmatch(text):
            raise UsageError(
                f"--view {text!r} is not understood",
                remedy="write 'temperature=f8', 'v*=f4[60,80]' or 'v*=f4[60,80]/left'",
            )
    others = [os.environ[name] for name in _TOOLS if os.environ.get(name)]
    tools = ";".join((str(kokkos_path()), *others[:1]))
    return {
        **dict.fromkeys(_TOOLS, tools),
        "CIWRAP_RECORD_VIEWS": "\n".join(views),
        "CIWRAP_RECORD_STEP": step,
    }
