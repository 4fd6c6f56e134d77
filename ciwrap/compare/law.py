"""The law of every verdict, in one place.

A user's mistake ends the command. Whatever else goes wrong makes what it concerns "not comparable".
Nothing that was not compared matches: a result begins as "not comparable" and says so until a
comparison has filled it in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.arrays.values import Signature
from ciwrap.errors import ExitCode, one_line
from ciwrap.model import CheckResult, Message, MessageLevel, VariableResult, Verdict
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.errors import CiwrapError
    from ciwrap.model import ErrorBound, Evidence, VariableId, VariableSettings

_NOTHING = Signature("", (-1,))  # like no variable that there is
_NOT_YET = "it was not compared"


def begun(
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
