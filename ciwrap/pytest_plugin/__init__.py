"""The pytest plugin: the fixture `ciwrap`, its marker and options.

`hooks` is what pytest loads at its start; everything else is loaded when a test asks for the
fixture, so a test run without it pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ciwrap.pytest_plugin.fixture import CiwrapFixture

__all__ = ["CiwrapFixture"]


def __getattr__(name: str) -> Any:
    if name == "CiwrapFixture":
        from ciwrap.pytest_plugin.fixture import CiwrapFixture

        return CiwrapFixture
    raise AttributeError(f"module 'ciwrap.pytest_plugin' has no attribute {name!r}")
