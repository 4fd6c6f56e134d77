"""What every comparison of two sides shares: the rules of verdicts, pairing, and feeding the core.

A user's mistake ends the command. Whatever else goes wrong makes what it concerns "not comparable".
A result begins as "not comparable" and stays so until a comparison has filled it in. Both sides
have to have one dtype, one shape and the same labels before their values are compared.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import (
    CUT_LABEL,
    DEFAULT_SLAB_BYTES,
    ConvertedValues,
    RoundedValues,
    Signature,
    as_bytes,
    is_bfloat16,
    is_mixed_precision,
    item_bytes,
    text_literals,
    widen_bfloat16,
)
from ciwrap.base.errors import (
    CiwrapError,
    DtypeMismatchError,
    ExitCode,
    LabelMismatchError,
    MaskError,
    ShapeMismatchError,
    one_line,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.progress import NO_PROGRESS, Progress
from ciwrap.formats.source_files import CheckpointKey
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    DifferingElement,
    Message,
    MessageLevel,
    VariableId,
    VariableResult,
    Verdict,
    fit_fill_values,
)
from ciwrap.model.settings import MASK_LABEL, SCALE_LABEL, SCALES, StrictDtype
from ciwrap.model.variable_result import Number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap.arrays.values import Labels, Values
    from ciwrap.formats.catalog import Catalog, Rules
    from ciwrap.model import ErrorBound, Evidence, VariableSettings

_NOTHING = Signature("", (-1,))  # like no variable that there is
_NOT_YET = "it was not compared"


def uncompared(
    identity: VariableId,
    reference: Signature | None,
    new: Signature | None,
    *,
    bound: ErrorBound | None = None,
    evidence: Evidence | None = None,
    settings: VariableSettings | None = None,
    source_path: str | None = None,
    aligned_by: str | None = None,
    golden_root: str | None = None,
) -> VariableResult:
    """The result of a variable before anything of it was compared: not comparable.

    reference, new: what both sides hold; None for a side that does not have the variable.
    """
    # What the reference holds is said only where it is not what the new run holds.
    other = reference if reference is not None and reference != new else None
    theirs = new or _NOTHING
    return VariableResult(
        name=identity.name,
        verdict=Verdict.NOT_COMPARABLE,
        iteration=identity.iteration,
        rank=identity.rank,
        reason=_NOT_YET,
        evidence=evidence,
        dtype=None if new is None else new.dtype,
        shape=None if new is None else new.shape,
        labels=() if new is None else new.labels,
        golden_dtype=None if other is None or other.dtype == theirs.dtype else other.dtype,
        golden_shape=None if other is None or other.shape == theirs.shape else other.shape,
        golden_labels=() if other is None or other.labels == theirs.labels else other.labels,
        bound=bound,
        mask=None if settings is None else settings.mask,
        combine=None if settings is None or settings.combine == "sum" else settings.combine,
        period=None if settings is None else settings.period or None,
        has_fill_values=settings is not None and bool(settings.fill_values),
        source_path=source_path,
        aligned_by=aligned_by,
        golden_root=golden_root,
        byte_count=None if new is None else new.byte_count,
    )


def says_why(result: VariableResult) -> bool:
    """Whether the result of a variable that was not compared names a reason for that."""
    return result.reason != _NOT_YET


def refuse_mistakes(error: CiwrapError) -> None:
    """Raises the error if it is a user's mistake, which no result hides."""
    if error.exit_code is ExitCode.USAGE:
        raise error


def not_comparable(result: VariableResult, error: CiwrapError) -> VariableResult:
    """The result of a variable that an error kept from being compared.

    Raises the error if it is a user's mistake.
    """
    refuse_mistakes(error)
    return replace(
        result, verdict=Verdict.NOT_COMPARABLE, reason=reason_of(error), differing_count=None
    )


def failed_check(name: str, error: CiwrapError, golden_path: str | None = None) -> CheckResult:
    """The result of a check that an error kept from beginning. Raises as `not_comparable`."""
    refuse_mistakes(error)
    return CheckResult(
        name, Verdict.NOT_COMPARABLE, messages=(message_of(error),), golden_path=golden_path
    )


def reason_of(error: CiwrapError) -> str:
    """An error as a variable's reason: file, message, remedy, but not the variable once more."""
    text = f"{error.file}: {error.message}" if error.file else error.message
    return one_line(f"{text}; {error.remedy}" if error.remedy else text)


def message_of(error: CiwrapError, level: MessageLevel = MessageLevel.ERROR) -> Message:
    """An error as a message beside the variables."""
    return Message(level, str(error), slug=error.slug, file=error.file, variable=error.variable)


_LABEL_NAMES = {"dims": "dimension names", MASK_LABEL: "mask"}


class Wording(Struct, frozen=True):
    """How messages speak of the two sides of a comparison.

    between: holds {new} and {reference}. sides: where the one is, and the other. if_missing,
    if_extra: what to do about a variable that only the first side has, or only the second. remedy:
    where the two do not fit; None if there is none to give. is_read_twice: whether files of either
    side may be what cannot be read; else only the second side's.
    """

    between: str
    sides: tuple[str, str]
    if_missing: str
    if_extra: str
    remedy: str | None = None
    is_read_twice: bool = False


RUNS = Wording(
    "{reference} in A, {new} in B",
    ("in A", "in B"),
    "write it in both runs",
    "write it in both runs",
    is_read_twice=True,
)
GOLDEN = Wording(
    "{new}, but the golden has {reference}",
    ("in the golden", "in the outputs"),
    "have the program write it, or accept the new outputs if it is gone for good",
    "accept the new outputs, or name it under 'ignore'",
    "if that is right, accept the new outputs",
)


def refuse_incompatible(
    reference: Signature, new: Signature, wording: Wording, *, is_strict: bool = True
) -> None:
    """Raises LabelMismatchError or ShapeMismatchError if two variables cannot be compared.

    is_strict: whether shapes have to be the same, and not only sizes.
    """
    refuse_other_labels(reference.labels, new.labels, wording)
    ours, theirs = reference.shape, new.shape
    if ours != theirs and (is_strict or math.prod(ours) != math.prod(theirs)):
        text = wording.between.format(reference=_shape_text(ours), new=_shape_text(theirs))
        raise ShapeMismatchError(f"shape {text}", remedy=wording.remedy)


def labels_with_mask(labels: Labels, settings: VariableSettings) -> Labels:
    """The labels with the name of the mask: a golden holds zeros where that is true, which would
    match real ones wherever the variable has another mask, or none.
    """
    if settings.mask is None:
        return labels
    return tuple(sorted((*labels, (MASK_LABEL, settings.mask))))


def with_statistics(labels: Labels, statistics: Mapping[str, float]) -> Labels:
    """A golden's labels with the statistics of its numbers."""
    text = " ".join(f"{name}={value!r}" for name, value in statistics.items())
    return tuple(sorted((*labels, (SCALE_LABEL, text))))


def without_statistics(labels: Labels) -> Labels:
    """What a golden's labels say of the variable itself."""
    return tuple(one for one in labels if one[0] != SCALE_LABEL)


def kept_statistics(labels: Labels) -> dict[str, float] | None:
    """The statistics among a golden's labels; None if it keeps none, or not all."""
    said = dict(labels).get(SCALE_LABEL, "")
    pairs = [part.partition("=") for part in said.split()]
    try:
        found = {name: float(value) for name, _, value in pairs}
    except ValueError:
        return None
    is_whole = found.keys() == SCALES.keys() and all(0 <= x < math.inf for x in found.values())
    return found if is_whole else None


def refuse_other_labels(reference: Labels, new: Labels, wording: Wording) -> None:
    """Raises LabelMismatchError for the first label that one side has otherwise, or not at all."""
    if reference == new:
        return
    refuse_cut(reference, new, wording)
    ours, theirs = dict(reference), dict(new)
    key = next(key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key))
    text = wording.between.format(
        reference=_label_text(ours.get(key)), new=_label_text(theirs.get(key))
    )
    name = _LABEL_NAMES.get(key, f"label {key!r}:")
    raise LabelMismatchError(f"{name} {text}", remedy=wording.remedy)


def refuse_cut(reference: Labels, new: Labels, wording: Wording) -> None:
    """Raises LabelMismatchError if one side alone may have lost digits of its last number."""
    if (CUT_LABEL in reference) != (CUT_LABEL in new):
        where = wording.sides[0 if CUT_LABEL in reference else 1]
        raise LabelMismatchError(
            f"{where} the text ends with its last number, without a line break: digits may be"
            " missing",
            remedy="is the program still writing it?",
        )


def refuse_unseen_mask(
    identity: VariableId,
    settings: VariableSettings,
    mask_of: Callable[[VariableId], str | None],
    is_compared: Callable[[VariableId], bool],
) -> None:
    """Raises MaskError for a variable whose mask is not compared itself, or only where another mask
    leaves it: whatever it takes out would be left out unseen.

    mask_of: of any variable, as it is configured.
    """
    if settings.mask is None:
        return
    mask = VariableId(settings.mask, identity.iteration, identity.rank)
    if mask_of(mask) is not None:
        raise MaskError(
            f"its mask {settings.mask!r} has a mask itself, {mask_of(mask)!r}, so it is compared in"
            " part",
            variable=identity.text,
            remedy="let the mask have none",
        )
    if not is_compared(mask):
        raise MaskError(
            f"its mask {settings.mask!r} is not compared itself, so nothing says that both sides"
            " leave out the same values",
            variable=identity.text,
            remedy="do not ignore the mask, and accept the outputs anew if there is a golden",
        )


def refuse_empty(new: Values, settings: VariableSettings) -> None:
    """Raises MaskError if the mask leaves no element to compare."""
    if new.element_count and new.masked_count == new.element_count:
        count = new.element_count
        taken = "the one value that there is" if count == 1 else f"all {count:,} values"
        raise MaskError(
            f"the mask {settings.mask!r} takes out {taken}, so nothing of it was compared",
            remedy="fix the mask, or name the variable under 'ignore'",
        )


def in_dtype(new: Values, dtype: str, wording: Wording, *, is_strict: bool) -> Values:
    """The new values in the reference's dtype.

    Raises DtypeMismatchError if that is another one and has to be the same; reading does for a
    value that the other dtype cannot hold.
    """
    if new.dtype == dtype:
        return new
    if is_strict:
        refuse_other_dtype(replace(new.signature, dtype=dtype), new.signature, wording)
    return ConvertedValues(new, dtype)


def common_dtype(reference: Values, new: Values, settings: VariableSettings) -> str | None:
    """The dtype in which values are compared that only are stored otherwise; None if they are not.

    That is: in another byte order, texts of another length, and numbers that are written out, as in
    CSV, where those of one side happen to be whole.
    """
    one, other = reference.dtype, new.dtype
    if one == other or settings.strict_dtype is StrictDtype.STORED:
        return None
    if one[1:] == other[1:]:
        return one
    if one[1:2] in "SU" and one[1:2] == other[1:2]:
        return max(one, other, key=item_bytes)
    if {one[1:], other[1:]} == {"i8", "f8"} and (reference.is_written or new.is_written):
        return one if one[1:] == "f8" else other
    return None


def as_dtype(values: Values, dtype: str) -> Values:
    """The values in a dtype; reading raises DtypeMismatchError for one that it cannot hold."""
    return values if values.dtype == dtype else ConvertedValues(values, dtype)


def refuse_other_dtype(reference: Signature, new: Signature, wording: Wording) -> None:
    """Raises DtypeMismatchError if the two are of different types."""
    if reference.dtype != new.dtype:
        one, other = _dtype_text(reference.dtype), _dtype_text(new.dtype)
        text = wording.between.format(reference=one, new=other)
        raise DtypeMismatchError(f"dtype {text}", remedy=wording.remedy)


def as_compared(
    reference: Values, new: Values, settings: VariableSettings, wording: Wording = RUNS
) -> tuple[Values, Values, VariableSettings]:
    """Both sides in one dtype and sign, and the settings for that. Raises DtypeMismatchError, and
    ParameterMismatchError for a dtype that has no signs.
    """
    reference, new, settings = _in_one_dtype(reference, new, settings, wording)
    if settings.up_to_sign != "none":
        from ciwrap.check.signs import SignedValues

        new = SignedValues(reference, new, settings)
    return reference, new, settings


def _in_one_dtype(
    reference: Values, new: Values, settings: VariableSettings, wording: Wording
) -> tuple[Values, Values, VariableSettings]:
    """Both sides as they are compared, and the settings for that. Raises DtypeMismatchError."""
    if settings.mixed_precision and is_mixed_precision(reference.dtype, new.dtype):
        rounded = RoundedValues(reference), RoundedValues(new)
        return *rounded, fit_fill_values(settings, rounded[0].dtype)
    common = common_dtype(reference, new, settings)
    if common is not None:
        settings = fit_fill_values(settings, common)
        return as_dtype(reference, common), as_dtype(new, common), settings
    new = in_dtype(new, reference.dtype, wording, is_strict=is_strict_on(settings))
    return reference, new, settings


def is_strict_on(settings: VariableSettings) -> bool:
    """Whether another dtype, beyond how it is stored, is refused."""
    return settings.strict_dtype is not StrictDtype.NONE


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "() (a single number)"


def _dtype_text(dtype: str) -> str:
    """`float64 (<f8)`: the name people use and the one that is exact."""
    if dtype[1:] == "bf2":
        return f"bfloat16 ({dtype})"
    return f"{np.dtype(dtype).name} ({dtype})"


def _label_text(label: str | None) -> str:
    return "none" if label is None else repr(label)


if TYPE_CHECKING:
    # (first element, golden, new) of the pieces that hold all differing elements, in order.
    Pieces: TypeAlias = Callable[[], Iterator[tuple[int, NDArray[Any], NDArray[Any]]]]


class Explainer(Protocol):
    """Says of values that differ where they lie and what they have in common. Each method gives
    back results that say more than those it was given.
    """

    def elements(
        self,
        result: VariableResult,
        comparison: _core.Comparison,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        pieces: Pieces,
        read: ReadBoth,
    ) -> VariableResult:
        """Of elements that differ. leaves: of the tree, that do not match. shape: the golden's."""

    def chunks(
        self,
        result: VariableResult,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        new: Values,
        means: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> VariableResult:
        """Of chunks that do not match the golden's, of which there are no data. means: of each
        chunk of both sides, as far as they are known.
        """

    def together(
        self,
        results: list[VariableResult],
        gone: Collection[VariableId],
        extra: Collection[VariableId],
    ) -> list[VariableResult]:
        """Of one checkpoint, beside the others of its variable, and beside ids. gone: variables
        that the reference alone has, as far as files could be read. extra: that the new side has.
        """

    def from_elsewhere(
        self,
        results: list[VariableResult],
        golden: Mapping[VariableId, _core.GoldenVariable],
        outputs: Catalog,
        judge: Callable[[VariableResult, VariableId], VariableResult],
    ) -> None:
        """Says in the list whether the numbers of the first difference belong to another iteration,
        rank or variable. judge: compares its values with another variable of the golden.
        """


class Work(Struct):
    """The first argument of everything that compares. Not for several threads at once.

    engine: that read files ("io_uring", "pread"), None as long as none did. data_bytes_read: of
    both sides' data. explain: loads what explains differences, asked only where something differs;
    None if nobody wants to know.
    """

    resources: Resources = DEFAULT_RESOURCES
    progress: Progress = NO_PROGRESS
    engine: str | None = None
    data_bytes_read: int = 0
    explain: Callable[[], Explainer] | None = None


_MEMORY_BYTES = 256 << 20


class HistoryOptions(Struct, frozen=True):
    """memory_bytes: for the buffers of stage two. detail_bytes: of differing variables, what may be
    read once more for the samples and maps that a report draws. is_common: whether the iterations
    that one run has and the other does not reach are left out. is_explained: whether the first
    difference is looked at once more, to say what its elements have in common. has_timelines:
    whether a result that matches throughout has its timelines, too, which only documents and every
    detail show. is_brief: whether of thousands that do not match most say little, as
    `ciwrap.model.results` says.
    """

    memory_bytes: int = _MEMORY_BYTES
    detail_bytes: int = 64 << 20
    is_common: bool = False
    is_explained: bool = False
    has_timelines: bool = True
    is_brief: bool = False


class WrongAnswerError(Exception):
    """What came back says nothing of what was asked."""


class PartSums(msgspec.Struct, frozen=True):
    """What was compared of a variable's part, and what its means are made of: sums over pairs of
    finite numbers, and how many pairs these are (relative: with a reference other than 0).
    """

    variable: VariableId
    element_count: int
    sum_abs: Number
    finite_count: int
    sum_rel: Number
    nonzero_count: int


class Findings(msgspec.Struct):
    """What was found. Several findings add up, whoever made them.

    missing, extra: what only one side has, as results that say that nothing was compared. ignored:
    left out as the rules say; left_out: those of them that the reference holds; uncommon: how many
    of the ignored ones are of iterations that were not to be compared. notes: what to report
    besides.
    """

    results: list[VariableResult] = field(default_factory=list)
    missing: list[VariableResult] = field(default_factory=list)
    extra: list[VariableResult] = field(default_factory=list)
    ignored: list[VariableId] = field(default_factory=list)
    left_out: list[VariableId] = field(default_factory=list)
    uncommon: int = 0
    errors: list[CiwrapError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Checkpoints whose capture no longer holds: run, checkpoint, why.
    stale: list[tuple[str, CheckpointKey, str]] = field(default_factory=list)
    # Why a tree that should have been used was not.
    unused: list[str] = field(default_factory=list)
    # Checkpoints that nobody came to compare, and why.
    lost: list[tuple[CheckpointKey, str]] = field(default_factory=list)
    # Of variables that are compared in parts.
    sums: list[PartSums] = field(default_factory=list)
    capture_bytes_read: int = 0
    data_bytes_read: int = 0
    # Of the files of a checkpoint, on the side that has more of them.
    attributes_left_out: int = 0
    engine: str | None = None
    # The signal that ended the comparison before all was compared.
    ended_by: str | None = None

    def add(self, other: Findings) -> None:
        """Takes in what another one holds: lists and counts add up, of the rest the last counts."""
        for name in self.__struct_fields__:
            ours, theirs = getattr(self, name), getattr(other, name)
            if isinstance(ours, list):
                ours += theirs
            else:
                setattr(self, name, ours + theirs if isinstance(ours, int) else theirs or ours)


MOST_RANGES = 20
MOST_ELEMENTS = 10
MOST_INDICES = 100
# Up to about so many, a loop is faster than several calls of NumPy.
_FEW = 64

# Both sides' elements from a flat index on, and so many: one-dimensional arrays.
ReadBoth: TypeAlias = "Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]]"
# Both sides' elements at these flat indices.
ReadElements: TypeAlias = "Callable[[Sequence[int]], tuple[NDArray[Any], NDArray[Any]]]"


@lru_cache(maxsize=1024)  # of very many arrays few are distinct: they share their tuples
def to_index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An element's position in C order as its index in the variable's own dimensions."""
    if len(shape) == 1:
        return (int(flat),)
    index = []
    for size in reversed(shape):
        flat, position = divmod(int(flat), size)
        index.append(position)
    return tuple(reversed(index))


def chunk_elements(parameters: _core.TreeParameters) -> int:
    return max(1, parameters.chunk_scalars // parameters.scalars_per_element)


def runs_of(leaves: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending leaves as runs of neighbours: (first, last), both included."""
    if leaves.size < _FEW:
        runs: list[tuple[int, int]] = []
        for leaf in leaves.tolist():
            if runs and leaf == runs[-1][1] + 1:
                runs[-1] = (runs[-1][0], leaf)
            else:
                runs.append((leaf, leaf))
        return runs
    breaks = np.flatnonzero(np.diff(leaves) != 1)
    firsts = leaves[np.concatenate(([0], breaks + 1))]
    lasts = leaves[np.concatenate((breaks, [leaves.size - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def suspect_pieces(
    parameters: _core.TreeParameters,
    values: Values,
    leaves: NDArray[np.int64] | None,
    slab_bytes: int = DEFAULT_SLAB_BYTES,
) -> Iterator[tuple[int, int]]:
    """(first element, count) of the chunks in `leaves` (None: all), of at most a slab each."""
    step = max(1, slab_bytes // max(1, values.item_bytes))
    if leaves is None:
        ranges = [(0, values.element_count)]
    else:
        per_chunk = chunk_elements(parameters)
        ranges = [
            (first * per_chunk, min((last + 1) * per_chunk, values.element_count))
            for first, last in runs_of(leaves)
        ]
    for begin, end in ranges:
        for first in range(begin, end, step):
            yield first, min(step, end - first)


def suspect_ranges(
    suspects: NDArray[np.int64],
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    count: int,
) -> tuple[tuple[ChunkRange, ...], int, int]:
    """Suspect leaves (ascending) as ranges of elements.

    Returns the first few ranges, how many there are, and how many elements lie in all of them.
    """
    if suspects.size == 0:
        return (), 0, 0
    per_chunk = chunk_elements(parameters)
    runs = runs_of(suspects)
    ranges = []
    for first_leaf, last_leaf in runs[:MOST_RANGES]:
        first = first_leaf * per_chunk
        last = min((last_leaf + 1) * per_chunk, count) - 1
        ranges.append(
            ChunkRange(
                first_element=first,
                last_element=last,
                first_index=to_index(first, shape),
                last_index=to_index(last, shape),
                chunk_count=last_leaf - first_leaf + 1,
            )
        )
    short = (int(suspects[-1]) + 1) * per_chunk - count
    total = int(suspects.size) * per_chunk - max(0, short)
    return tuple(ranges), len(runs), total


def value_texts(elements: NDArray[Any], dtype: str) -> list[str]:
    """Each element as a text that reads back as the same value: `0.1`, `nan`, `b'ab'`."""
    if is_bfloat16(dtype):
        elements = widen_bfloat16(elements)
    if elements.dtype.kind in "SU":
        return text_literals(elements)
    return [str(element) for element in elements]


def read_each(read: ReadBoth, flats: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Elements here and there, by a function that reads some in a row."""
    golden, new = zip(*(read(flat, 1) for flat in flats), strict=True)
    return _joined(golden), _joined(new)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    # np.concatenate would turn the bytes of arrays that are stored in the other order.
    data = b"".join(as_bytes(part).tobytes() for part in parts)
    return np.frombuffer(data, dtype=parts[0].dtype)


def judged_elements(
    flats: Sequence[int],
    parameters: _core.TreeParameters,
    shape: tuple[int, ...],
    read: ReadElements,
) -> tuple[DifferingElement, ...]:
    """Elements by flat index, with both values and how far the core sees them apart."""
    if not flats:
        return ()
    golden, new = read(flats)
    rows = zip(
        flats,
        value_texts(golden, parameters.dtype),
        value_texts(new, parameters.dtype),
        _core.compare_each(parameters, as_bytes(golden), as_bytes(new)),
        strict=True,
    )
    return tuple(
        DifferingElement(
            index=to_index(flat, shape),
            golden=one,
            new=two,
            abs_difference=difference,
            bound_share=share,
            rel_difference=relative,
            ulps=ulps,
        )
        for flat, one, two, (difference, share, relative, ulps) in rows
    )


class Side(Protocol):
    """What one side holds: variables by identity, and the files they come from."""

    @property
    def identities(self) -> AbstractSet[VariableId]: ...
    def signature(self, identity: VariableId) -> Signature: ...
    def path_of(self, identity: VariableId) -> str | None: ...
    def fault_of(self, identity: VariableId) -> CiwrapError | None: ...


class EmptySide:
    """A side that holds no variable."""

    identities: frozenset[VariableId] = frozenset()

    def signature(self, identity: VariableId) -> Signature:
        raise KeyError(identity)

    def path_of(self, identity: VariableId) -> str | None:
        raise KeyError(identity)

    def fault_of(self, identity: VariableId) -> CiwrapError | None:
        raise KeyError(identity)


def pair_up(outcome: Findings, rules: Rules, reference: Side, new: Side) -> list[VariableId]:
    """The variables that both sides hold and that are to be compared, in order.

    The outcome gets those that are ignored, those of them that the reference holds as left out, and
    those that one side alone has.
    """
    both = []
    # By the key: comparing one with another takes as long, and sets come in no order.
    either = {*reference.identities, *new.identities}
    for identity in sorted(either, key=attrgetter("sort_key")):
        is_ours, is_theirs = identity in reference.identities, identity in new.identities
        if rules.is_ignored(identity):
            outcome.ignored.append(identity)
            if is_ours:
                outcome.left_out.append(identity)
        elif is_ours and is_theirs:
            both.append(identity)
        elif is_ours:
            alone = uncompared(identity, reference.signature(identity), None)
            outcome.missing.append(_with_fault(alone, reference))
        else:
            path = new.path_of(identity)
            alone = uncompared(identity, None, new.signature(identity), source_path=path)
            outcome.extra.append(_with_fault(alone, new))
    return both


def _with_fault(alone: VariableResult, side: Side) -> VariableResult:
    """The result, with the reason why nothing can be read of the variable where it is, if so."""
    fault = side.fault_of(alone.id)
    return alone if fault is None else not_comparable(alone, fault)


# The core cuts what it is given into waves, two of which are under way at a time.
_DEVICE_SLAB_BYTES = 1 << 30


def compare_elements(
    work: Work,
    parameters: _core.TreeParameters,
    reference: Values,
    new: Values,
    leaves: NDArray[np.int64] | None = None,
    *,
    reference_trees: Sequence[_core.TreeBuilder] = (),
    new_trees: Sequence[_core.TreeBuilder] = (),
) -> _core.Comparison:
    """Compares the elements of two variables of one dtype and shape, reading each once.

    leaves: the chunks to compare, ascending; None: all. reference_trees, new_trees: builders that
    take all of a side's values on the way, where all chunks are compared. Where one side lies on a
    device, that compares, and what of the other is on the host goes there. Memory: some MiB of each
    side. Raises CiwrapError for what cannot be read.
    """
    device = reference.device or new.device
    comparer = _core.ElementComparer(
        parameters,
        max_indices=MOST_INDICES,
        backend=work.resources.backend if device is None else device.backend,
        threads=work.resources.threads,
    )
    if device is not None:
        _feed_whole(reference, reference_trees)
        _feed_whole(new, new_trees)
        for first, count in suspect_pieces(parameters, reference, leaves, _DEVICE_SLAB_BYTES):
            comparer.update_device(
                _on_device(reference, first, count),
                _on_device(new, first, count),
                first_element=first,
                element_count=count,
            )
        return comparer.finish()
    for first, count in suspect_pieces(parameters, reference, leaves):
        ours, theirs = as_bytes(reference.read(first, count)), as_bytes(new.read(first, count))
        for builder in reference_trees:
            builder.update(ours)
        for builder in new_trees:
            builder.update(theirs)
        comparer.update(ours, theirs, first_element=first)
        work.progress.advance(theirs.nbytes)
    return comparer.finish()


def _feed_whole(values: Values, builders: Sequence[_core.TreeBuilder]) -> None:
    for builder in builders:
        if values.device is not None:
            builder.update_device(values.device.array)
        else:
            for _, slab in values.slabs():
                builder.update(as_bytes(slab))


def _on_device(values: Values, first: int, count: int) -> Any:
    """An array on a device as a whole, or the bytes of some elements."""
    if values.device is not None:
        return values.device.array
    return as_bytes(values.read(first, count))
