"""What a result says, without all that it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.model import Verdict

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, VariableResult


def said(result: VariableResult | CheckResult) -> dict[str, Any]:
    """The name, the verdict, and whatever is not as in a result that has nothing else."""
    plain = type(result)(result.name, Verdict.DIFFER)
    names = result.__struct_fields__
    return {
        name: getattr(result, name)
        for name in names
        if name in ("name", "verdict") or getattr(result, name) != getattr(plain, name)
    }
