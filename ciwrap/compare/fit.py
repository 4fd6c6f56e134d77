"""Both sides of a variable as they are compared: of one dtype and shape, with the same labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.arrays.convert import (
    ConvertedValues,
    RoundedValues,
    is_mixed_precision,
)
from ciwrap.arrays.values import CUT_LABEL
from ciwrap.errors import (
    DtypeMismatchError,
    LabelMismatchError,
    MaskError,
    ShapeMismatchError,
)
from ciwrap.late import numpy as np
from ciwrap.model import VariableId, fit_fill_values
from ciwrap.model.variable_settings import MASK_LABEL
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.arrays.values import Labels, Signature, Values
    from ciwrap.model import VariableSettings

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
    "{reference} on one side, {new} on the other",
    ("on the first side", "on the second side"),
    "write it in both runs",
    "write it in both runs",
    is_read_twice=True,
)
GOLDEN = Wording(
    "{new}, but the golden has {reference}",
    ("in the golden", "in the outputs"),
    "have the program write it; if it is gone for good, accept the new outputs",
    "accept the new outputs, or name it under 'ignore'",
    "if that is right, accept the new outputs",
)


def refuse_misfit(
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
            " leave out the same elements",
            variable=identity.text,
            remedy="do not ignore the mask, and accept the outputs anew if there is a golden",
        )


def refuse_empty(new: Values, settings: VariableSettings) -> None:
    """Raises MaskError if the mask leaves no element to compare."""
    if new.element_count and new.masked_count == new.element_count:
        count = new.element_count
        taken = "the one element that there is" if count == 1 else f"all {count:,} elements"
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


def refuse_other_dtype(reference: Signature, new: Signature, wording: Wording) -> None:
    """Raises DtypeMismatchError if the two are of different types."""
    if reference.dtype != new.dtype:
        one, other = _dtype_text(reference.dtype), _dtype_text(new.dtype)
        text = wording.between.format(reference=one, new=other)
        raise DtypeMismatchError(f"dtype {text}", remedy=wording.remedy)


def in_one_dtype(
    reference: Values, new: Values, settings: VariableSettings, wording: Wording = RUNS
) -> tuple[Values, Values, VariableSettings]:
    """Both sides as they are compared, and the settings for that. Raises DtypeMismatchError."""
    if settings.mixed_precision and is_mixed_precision(reference.dtype, new.dtype):
        rounded = RoundedValues(reference), RoundedValues(new)
        return *rounded, fit_fill_values(settings, rounded[0].dtype)
    new = in_dtype(new, reference.dtype, wording, is_strict=settings.strict_dtype)
    return reference, new, settings


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "() (a single number)"


def _dtype_text(dtype: str) -> str:
    """`float64 (<f8)`: the name people use and the one that is exact."""
    if dtype[1:] == "bf2":
        return f"bfloat16 ({dtype})"
    return f"{np.dtype(dtype).name} ({dtype})"


def _label_text(label: str | None) -> str:
    return "none" if label is None else repr(label)
