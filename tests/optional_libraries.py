"""Libraries of file formats that are too large for every run of the tests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


def needs(name: str) -> Any:
    """The module, or a skip."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason="the extra formats-test is not installed")
