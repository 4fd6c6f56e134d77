"""Trees of values: the core's parameters for a bound, and values streamed into it.

A cell code and its residue stand for a range of values (docs/reference/cell-codes.md). Both grow
with the value, so the ends of the range are found by bisection over all values of the type.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from ciwrap import _core
from ciwrap.arrays.values import as_bytes, storage_dtype
from ciwrap.base.errors import CiwrapError, UsageError
from ciwrap.base.late import numpy as np
from ciwrap.base.progress import NO_PROGRESS
from ciwrap.model import ErrorBound, number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.base.progress import Progress
    from ciwrap.model import VariableId, VariableSettings

_FILE_STEP_BYTES = 256 << 20


class Resources(Struct, frozen=True):
    """What the core may use. engine: "auto", "io_uring" or "pread"; threads: 0 for all."""

    backend: str = "auto"
    threads: int = 0
    engine: str = "auto"

    @property
    def backend_used(self) -> str:
        """The backend by its own name: `auto` is OpenMP where there is more than one thread."""
        if self.backend != "auto":
            return self.backend
        openmp = [item for item in _core.backends() if item["name"] == "openmp" and item["usable"]]
        threads = self.threads or max((int(item["concurrency"]) for item in openmp), default=1)
        return "openmp" if openmp and threads > 1 else "serial"


DEFAULT_RESOURCES = Resources()


def tree_parameters(
    dtype: str,
    settings: VariableSettings,
    *,
    residue_levels: int = 1,
    chunk_bytes: int | None = None,
    arity: int = 16,
    variable: VariableId | str | None = None,
) -> _core.TreeParameters:
    """The core's parameters for a variable of that dtype. Raises UsageError naming the variable."""
    chunk_bytes = settings.chunk_bytes if chunk_bytes is None else chunk_bytes
    try:
        return _tree_parameters(dtype, settings, residue_levels, chunk_bytes, arity)
    except CiwrapError as error:
        error.blame(variable=None if variable is None else str(variable))
        raise


def asked_for(
    made: _core.TreeParameters, settings: VariableSettings, identity: VariableId
) -> _core.TreeParameters:
    """What is asked for now, in chunks and levels as trees were made with. Raises UsageError."""
    return tree_parameters(
        made.dtype,
        settings,
        residue_levels=made.requested_residue_levels,
        chunk_bytes=made.chunk_bytes,
        arity=made.arity,
        variable=identity,
    )


# There are few kinds of variables, and many of each.
@lru_cache(maxsize=1024)
def _tree_parameters(
    dtype: str, settings: VariableSettings, residue_levels: int, chunk_bytes: int, arity: int
) -> _core.TreeParameters:
    bound = settings.bound
    if settings.scale is not None:
        raise UsageError(
            f"atol: {settings.scale.text} is in the scale of a field whose numbers are not at"
            " hand here",
            remedy="give atol as a number",
        )
    return _core.TreeParameters(
        dtype,
        atol=bound.atol,
        rtol=bound.rtol,
        ulps=bound.ulps,
        residue_levels=residue_levels,
        chunk_bytes=chunk_bytes,
        arity=arity,
        equal_nan=settings.equal_nan,
        fill_values=settings.fill_values,
    )


def feed(
    builders: Sequence[_core.TreeBuilder],
    values: Values,
    resources: Resources,
    progress: Progress = NO_PROGRESS,
    *,
    read_again: bool = False,
) -> str | None:
    """Streams all values, once, into several builders; memory is bounded.

    What lies on a device is hashed there; the builders have to be of that device's backend.
    read_again: the values will be, so a file is read through the system's cache. Returns the read
    engine, if one was used.
    """
    if values.device is not None:
        for builder in builders:
            builder.update_device(values.device.array)
        progress.advance(values.byte_count)
        return None
    region = values.region
    if region is None or region.byte_count == 0:
        for _, slab in values.slabs():
            data = as_bytes(slab)
            for builder in builders:
                builder.update(data)
            progress.advance(slab.nbytes)
        return None
    engine = None
    for start in range(0, region.byte_count, _FILE_STEP_BYTES):
        count = min(_FILE_STEP_BYTES, region.byte_count - start)
        engine = _core.update_builders(
            builders,
            region.path,
            region.offset + start,
            count,
            engine=resources.engine,
            direct="never" if read_again else "auto",
        )
        progress.advance(count)
    return engine


def tree_builder(
    parameters: _core.TreeParameters,
    values: Values,
    resources: Resources,
    golden: _core.Tree | None = None,
    *,
    summaries: bool = False,
) -> _core.TreeBuilder:
    """What takes these values in order. golden: to round them by its residues, if it has any.
    summaries: whether chunks are summarised, too. An array on a device is hashed by that device,
    whatever `resources` say.
    """
    device = values.device
    return _core.TreeBuilder(
        parameters,
        values.element_count * parameters.scalars_per_element,
        golden=golden,
        backend=resources.backend if device is None else device.backend,
        threads=resources.threads,
        summaries=summaries,
    )


class BuiltTree(Struct, frozen=True):
    """drift: against a golden that has residues. engine: that read the values, if one did.
    summaries: of its chunks, where they were asked for and codes have them.
    """

    tree: _core.Tree
    drift: _core.Drift | None
    engine: str | None
    summaries: NDArray[np.int64] | None


def build_tree(
    parameters: _core.TreeParameters,
    values: Values,
    *,
    resources: Resources = DEFAULT_RESOURCES,
    golden: _core.Tree | None = None,
    progress: Progress = NO_PROGRESS,
    read_again: bool = False,
    summaries: bool = False,
) -> BuiltTree:
    """The tree of the values, and what else comes of making it.

    read_again: as for `feed`. golden, summaries: as for `tree_builder`. Raises CiwrapError naming
    the file: the core's errors, and the reader's.
    """
    region = values.region
    try:
        builder = tree_builder(parameters, values, resources, golden, summaries=summaries)
        engine = feed([builder], values, resources, progress, read_again=read_again)
        tree = builder.finish()
        return BuiltTree(tree, builder.drift, engine, builder.summaries)
    except CiwrapError as error:
        error.blame(file=None if region is None else region.path)
        raise


EXACT = "exact"
_ROUNDED = 1 << 53  # from here on doubles do not hold every whole number


def bound_of(parameters: _core.TreeParameters) -> ErrorBound:
    """The error bound that parameters were made with."""
    return _error_bound(parameters.atol, parameters.rtol, parameters.ulps)


_error_bound = lru_cache(maxsize=1024)(ErrorBound)


def describe_bound(parameters: _core.TreeParameters) -> str:
    """`exact`, or the bound's text; then whatever else decides equality and is not the default."""
    return _words(bound_of(parameters), parameters.equal_nan, parameters.fill_values)


def settings_text(settings: VariableSettings) -> str:
    """What settings ask for, in the words of `describe_bound`; `atol=1e-12*max rtol=0` where the
    golden's numbers have a part in it.
    """
    scale = settings.scale
    if scale is None:
        return _words(settings.bound, settings.equal_nan, settings.fill_values)
    bound = replace(settings.bound, atol=scale.factor)
    text = _words(bound, settings.equal_nan, settings.fill_values)
    return text.replace(" ", f"*{scale.statistic} ", 1)


def _words(bound: ErrorBound, equal_nan: bool, fill_values: Sequence[float]) -> str:
    parts = [EXACT if bound.is_exact else bound.text]
    if not equal_nan:
        parts.append("equal_nan=false")
    if fill_values:
        values = ", ".join(
            str(value) if isinstance(value, int) else number_text(value) for value in fill_values
        )
        parts.append(f"fill_values=({values})")
    return " ".join(parts)


# What may follow the bound in the words of `describe_bound`.
_MORE = (" equal_nan=", " fill_values=")


def is_wider(was: str, now: str) -> bool:
    """Whether a bound in the words of `describe_bound` lets something pass that another does not:
    by its size, by NaN, or by other fill values. Without fill values a number near to one of them
    is within its bound, which is missing on one side only with them.
    """
    (old, old_more), (new, new_more) = _parse(was), _parse(now)
    # Multiples of different statistics have no order that would hold for every field.
    if new.is_wider_than(old) or (_statistic(was) != _statistic(now) and not new.is_exact):
        return True
    nan_allowed = "equal_nan=false" in old_more and "equal_nan=false" not in new_more
    has_other_fills = _fills(old_more) != _fills(new_more)
    return nan_allowed or (has_other_fills and (_fills(new_more) != "" or not new.is_exact))


def _parse(text: str) -> tuple[ErrorBound, str]:
    """The bound, and what else the words say."""
    cut = min((found for word in _MORE if (found := text.find(word)) >= 0), default=len(text))
    bound = text[:cut].replace(f"*{_statistic(text)}", "")
    return ErrorBound() if bound == EXACT else ErrorBound.parse(bound), text[cut:]


def _statistic(text: str) -> str:
    """What the absolute part of a bound in words is a multiple of."""
    return text.partition("*")[2].partition(" ")[0]


def _fills(more: str) -> str:
    return more.partition("fill_values=")[2]


def kept_fill_values(values: Iterable[float]) -> tuple[float | int, ...]:
    """Fill values as captures keep them: doubles, and whole numbers where a double would round."""
    return tuple(
        one if isinstance(one, int) and _ROUNDED <= abs(one) < 1 << 64 else float(one)
        for one in values
    )


def guaranteed_share(parameters: _core.TreeParameters) -> float:
    """Drift up to this share of the bound raises no alarm; 0 where digests are made by a narrower
    bound than is asked for, a share of which says little of the other.
    """
    return 0.0 if parameters.is_narrowed else parameters.guaranteed_share


def proven_share(parameters: _core.TreeParameters) -> float:
    """In a chunk whose digest differs, a value moved by more than this share of the bound: as
    `guaranteed_share`, unless huge values are compared exactly whatever the bound.
    """
    kind = np.float64 if parameters.dtype[1:] in ("f8", "c16") else np.float32
    is_rounded = parameters.kind != "relative" or parameters.exact_above > float(np.finfo(kind).max)
    return guaranteed_share(parameters) if is_rounded else 0.0


def is_other_bound(asked: _core.TreeParameters, made: _core.TreeParameters) -> bool:
    """Whether what is asked for lets other numbers pass than what digests were made with."""
    if asked == made:
        return False
    words = [_words(_effective_bound(p), p.equal_nan, p.fill_values) for p in (asked, made)]
    return words[0] != words[1]


def has_other_classes(asked: _core.TreeParameters, made: _core.TreeParameters) -> bool:
    """Whether NaN or fill values, which have codes of their own, count otherwise."""
    if asked == made:
        return False
    words = [_words(ErrorBound(), p.equal_nan, p.fill_values) for p in (asked, made)]
    return words[0] != words[1]


def bound_ratio(asked: _core.TreeParameters, made: _core.TreeParameters) -> tuple[float, float]:
    """How many times the bound that digests were made with is the bound that is asked for: at least
    and at most, over all golden values, rounded away from each other.

    (atol + rtol |g|) / (atol + rtol |g|) lies between the quotients of its parts. Steps between
    floats are no share of another bound.
    """
    ours, theirs = _effective_bound(asked), _effective_bound(made)
    if not (ours.is_exact or theirs.is_exact) and bool(ours.ulps) != bool(theirs.ulps):
        return 0.0, math.inf
    parts = [
        (float(one), float(other))
        for one, other in zip(astuple(ours), astuple(theirs), strict=True)
        if one or other
    ]
    least = min((_quotient(one, other, 0.0) for one, other in parts), default=1.0)
    greatest = max((_quotient(one, other, math.inf) for one, other in parts), default=1.0)
    return least, greatest


def _quotient(one: float, other: float, towards: float) -> float:
    """one / other, rounded towards 0 or infinity, but never across 1."""
    if not other:
        return math.inf
    share = one / other
    if not share or one == other:
        return share
    rounded = math.nextafter(share, towards)
    return max(1.0, rounded) if one > other else min(1.0, rounded)


def _effective_bound(parameters: _core.TreeParameters) -> ErrorBound:
    """Whole numbers may be whole numbers apart."""
    bound = bound_of(parameters)
    return ErrorBound(math.floor(bound.atol)) if parameters.dtype[1] in "iu" else bound


# Two codes of what is not rounded, above the lowest integer of the code's width (section 4).
_MISSING, _ZERO = 1, 2


def scalar_parameters(parameters: _core.TreeParameters) -> _core.TreeParameters:
    """The same bound for one scalar: a part of a complex number is a float of half the bytes."""
    dtype = parameters.dtype
    if dtype[1] == "c":
        dtype = f"{dtype[0]}f{int(dtype[2:]) // 2}"
    return _core.TreeParameters(
        dtype,
        atol=parameters.atol,
        rtol=parameters.rtol,
        ulps=parameters.ulps,
        residue_levels=parameters.requested_residue_levels,
        equal_nan=parameters.equal_nan,
        fill_values=parameters.fill_values,
    )


class Preimage(Struct, frozen=True):
    """The values that a code and a residue stand for: all of the type from the first to the last.

    values: the two ends, in the type's storage dtype. missing: it is a fill value, and the ends are
    the first one of these.
    """

    values: NDArray[Any]
    is_missing: bool = False


class Cells:
    """Goes from codes to values, for the parameters of one scalar. Not for bytes and text."""

    def __init__(self, parameters: _core.TreeParameters) -> None:
        self.parameters = parameters
        # Fill values have a code of their own, in the middle of all others.
        self._plain = _core.TreeParameters(
            parameters.dtype,
            atol=parameters.atol,
            rtol=parameters.rtol,
            ulps=parameters.ulps,
            residue_levels=parameters.requested_residue_levels,
        )
        self._storage = np.dtype(storage_dtype(parameters.dtype))
        self._bits = 8 * parameters.scalar_bytes
        self._letter = parameters.dtype[1]
        self._is_float = self._letter in "fb" and parameters.dtype[1:] != "b1"
        self._infinity = {"f2": 0x7C00, "bf2": 0x7F80, "f4": 0x7F800000, "f8": 0x7FF0 << 48}.get(
            parameters.dtype[1:], 0
        )

    @property
    def is_whole_number(self) -> bool:
        return not self._is_float

    def stored(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Bytes as scalars of the type."""
        return np.frombuffer(data.tobytes(), dtype=self._storage)

    def values_of(self, code: int, residue: int) -> Preimage:
        """What a golden's code and residue stand for. Raises ValueError if no value has them."""
        lowest = -(1 << (8 * self.parameters.code_bytes - 1))
        if self.parameters.kind == "exact":
            mask = (1 << self._bits) - 1
            bits = np.array([code & mask] * 2, dtype=f"<u{self._bits // 8}")
            values = self._stored(bits)
            return Preimage(values, is_missing=self._is_first_fill(values[0]))
        if self._is_float and code == lowest:
            return Preimage(self._of_images([self._infinity + 1] * 2))
        if code == lowest + _MISSING and self.parameters.fill_values:
            first = self.parameters.fill_values[0]
            return Preimage(np.array([first, first]).astype(self._storage), is_missing=True)
        if self.parameters.kind == "relative" and code == lowest + _ZERO:
            return Preimage(self._of_images([0, 0]))
        if (
            self.parameters.kind == "steps"
            and self._is_float
            and code in (-lowest - 1, -lowest - 2)
        ):
            return Preimage(
                self._of_images([self._infinity * (1 if code == -lowest - 1 else -1)] * 2)
            )
        return self._between(code, residue)

    def _is_first_fill(self, value: Any) -> bool:
        """Whether a value is what every fill value is, where numbers are not rounded."""
        fills = self.parameters.fill_values
        if not fills:
            return False
        first = np.array(fills[0]).astype(self._storage)
        return bool(value == first or (value != value and first != first))

    def turning_points(self, ends: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """The ends of a range of values, and zero and the new value where they lie between."""
        least, greatest = (self._place(one) for one in ends)
        if least is None or greatest is None:
            return ends
        inside = [0, self._place(new[0])]
        places = [one for one in inside if one is not None and least < one < greatest]
        return self._of_images([least, greatest, *places])

    def _place(self, value: Any) -> int | None:
        """The place of a number in the type's order; None for NaN."""
        stored = np.array([value], dtype=self._storage).tobytes()
        bits = int.from_bytes(stored, "big" if self.parameters.dtype[0] == ">" else "little")
        sign = 1 << (self._bits - 1)
        if self._is_float:
            magnitude = bits & (sign - 1)
            if magnitude > self._infinity:
                return None
            return -magnitude if bits & sign else magnitude
        return bits if self._letter == "u" else (bits ^ sign) - sign

    def _between(self, code: int, residue: int) -> Preimage:
        wanted = (code, residue)
        first = self._first(lambda key: key >= wanted)
        past = self._first(lambda key: key > wanted)
        if first is None or first == past:
            raise ValueError(f"no value has the code {code} and the residue {residue}")
        last = self._range()[1] if past is None else past - 1
        return Preimage(self._of_images([first, last]))

    def _range(self) -> tuple[int, int]:
        """The least and the greatest number, as places among all numbers of the type."""
        if self._is_float:
            # Infinities break the order under a ULP bound, and have their own codes there.
            most = self._infinity - (self.parameters.kind == "steps")
            return -most, most
        half = 1 << (self._bits - 1)
        return (0, 2 * half - 1) if self._letter == "u" else (-half, half - 1)

    def _first(self, holds: Callable[[tuple[int, int]], bool]) -> int | None:
        low, high = self._range()
        if not holds(self._key(high)):
            return None
        while low < high:
            middle = (low + high) // 2
            if holds(self._key(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _key(self, place: int) -> tuple[int, int]:
        codes, residues = _core.cell_codes(self._plain, self._of_images([place]).tobytes())
        code = int(codes[0])
        if self._plain.kind == "relative" and code == -(1 << 63) + _ZERO:
            return 0, 0
        return code, 0 if residues is None else int(residues[0])

    def _of_images(self, places: list[int]) -> NDArray[Any]:
        """The numbers at these places of the type's order; -0 is no place."""
        sign = 1 << (self._bits - 1)
        if self._is_float:
            places = [place if place >= 0 else -place | sign for place in places]
        mask = (1 << self._bits) - 1
        return self._stored(np.array([one & mask for one in places], dtype=f"<u{self._bits // 8}"))

    def _stored(self, bits: NDArray[Any]) -> NDArray[Any]:
        if self.parameters.dtype[0] == ">":
            bits = bits.byteswap()
        return np.frombuffer(bits.tobytes(), dtype=self._storage)
