"""SciPy, which is an extra: loaded by the few functions that need it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ciwrap.errors import NotAvailableError


def scipy(part: str, what_for: str) -> Any:
    """The module `scipy.PART`. Raises NotAvailableError, which says what it is needed for."""
    try:
        return import_module(f"scipy.{part}")
    except ModuleNotFoundError as error:
        raise NotAvailableError(
            f"{what_for} needs SciPy, which is not installed",
            remedy="pip install 'ciwrap[stats]'",
        ) from error
