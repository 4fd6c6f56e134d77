"""A project of two tests whose numbers change, for what is done about their goldens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from ciwrap.golden.manifest import dump_manifest

if TYPE_CHECKING:
    from plugin.conftest import Suite


TEXT = """
    def test_a(ciwrap): ciwrap.check(np.full(100, A), "a", atol=BOUND)
    def test_b(ciwrap): ciwrap.check(np.full(100, B), atol=1e-3)
"""


def write(suite: Suite, a: float = 1.0, b: float = 2.0, bound: float = 1e-3) -> None:
    text = TEXT.replace("A)", f"{a})").replace("B)", f"{b})").replace("BOUND", repr(bound))
    suite.write(text)


def manifest(suite: Suite, name: str) -> Any:
    return yaml.safe_load(dump_manifest(suite.golden(name).manifest))
