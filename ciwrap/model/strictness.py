"""Which mismatches between a golden and a run are errors, and which are only told of."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from ciwrap.errors import UsageError
from ciwrap.model.forms import (
    FALSE_WORDS,
    FLAG,
    TRUE_WORDS,
    Form,
    FormError,
    accept_flag,
    nearest,
    read_arguments,
    shown,
)
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class StrictVariables(str, Enum):
    """Which variables on one side only make a check not comparable.

    BOTH: all. ALLOW_NEW: those that the run lost; new ones are noted. NONE: no variable, and each
    is told of. There is no word for the reverse: what a run may lose is named under `ignore`.
    """

    BOTH = "true"
    ALLOW_NEW = "allow-new"
    NONE = "false"

    @property
    def refuses_missing(self) -> bool:
        return self is not StrictVariables.NONE

    @property
    def refuses_extra(self) -> bool:
        return self is StrictVariables.BOTH


def _refused(value: object) -> FormError:
    word = StrictVariables.ALLOW_NEW.value
    near = nearest(value, [word, "new-allowed"]) if isinstance(value, str) else None
    return FormError(
        f"must be true, false or {word}, not {shown(value)}",
        suggestion=None if near is None else word,
    )


def _parse(value: object) -> StrictVariables:
    text = value.lower() if isinstance(value, str) else ""
    if text == StrictVariables.ALLOW_NEW.value:
        return StrictVariables.ALLOW_NEW
    if text not in TRUE_WORDS | FALSE_WORDS:
        raise _refused(value)
    return StrictVariables.BOTH if text in TRUE_WORDS else StrictVariables.NONE


def _accept(value: object) -> StrictVariables:
    if isinstance(value, str) and value == StrictVariables.ALLOW_NEW.value:
        return StrictVariables.ALLOW_NEW
    try:
        return StrictVariables.BOTH if accept_flag(value) else StrictVariables.NONE
    except FormError:
        raise _refused(value) from None


class Strictness(Struct, frozen=True):
    """Which mismatches make a check not comparable. dtype, shape: false where another one may do.

    A relaxed dtype is compared after an exact conversion; a relaxed shape, element by element; with
    a relaxed count, series of a log are compared at the steps that both have.
    """

    dtype: bool = True
    shape: bool = True
    count: bool = True
    variables: StrictVariables = StrictVariables.BOTH

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any] | None, where: str) -> Strictness:
        """As a program says it. Raises UsageError."""
        if arguments is not None and not hasattr(arguments, "items"):
            raise UsageError(f"{where} must be a mapping, not {shown(arguments)}")
        forms = {name: form for name, (form, _) in STRICT_KEYS.items()}
        return cls(**read_arguments(arguments or {}, forms, where))


# By name, what each key of `strict` takes and means.
STRICT_KEYS: Mapping[str, tuple[Form, str]] = {
    "dtype": (FLAG, "whether another dtype is an error (true)"),
    "shape": (FLAG, "whether another shape is an error (true)"),
    "count": (FLAG, "whether series of a log need the same steps (true)"),
    "variables": (
        Form(
            _parse,
            _accept,
            schema={"anyOf": [{"type": "boolean"}, {"const": StrictVariables.ALLOW_NEW.value}]},
        ),
        "whether variables on one side only are errors (true); `allow-new`: those the run lost",
    ),
}
