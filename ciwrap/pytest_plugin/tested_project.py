"""The project that the tests belong to: its folder, its goldens, the machine it runs on."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.config.loading import find_config, load_config
from ciwrap.config.settings import DEFAULT_GOLDEN_DIR
from ciwrap.errors import ConfigMissingError, UsageError
from ciwrap.golden.places import TestPlace
from ciwrap.golden.stores import GoldenStores
from ciwrap.pytest_plugin.collected import test_name
from ciwrap.review.project import Project, root_without_config
from ciwrap.work_folder import PENDING_DIR

if TYPE_CHECKING:
    import pytest

    from ciwrap.golden.places import Place


class TestedProject(Project, frozen=True, kw_only=True):
    """A project as its tests see it.

    root: without a ciwrap.yaml, pytest's; without a configuration of pytest, the repository's,
    since pytest's would follow the current folder. variants: whose goldens are looked for before
    the common ones; own_variant: what this machine was called by --ciwrap-variant.
    """

    __test__ = False  # pytest takes classes called Test... for tests

    variants: tuple[str, ...] = ()
    own_variant: str | None = None

    def module_of(self, path: Path) -> str:
        """A test file's path in the project, with '/'. Raises UsageError for one outside it."""
        try:
            if path.is_relative_to(self.root):
                return path.relative_to(self.root).as_posix()
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise UsageError(
                f"the test lies outside the project, {self.root}",
                file=path,
                remedy="put a ciwrap.yaml, or pytest's configuration, above all tests",
            ) from None

    def test_place(self, item: pytest.Item, name: str | None) -> TestPlace:
        test, param = test_name(item)
        return TestPlace(self.module_of(item.path), test, param, name)

    def shown(self, path: Path) -> str:
        """A path as people read it: relative to the project if it lies in it."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    def where(self, place: Place) -> str:
        """Where a golden lies, as people read it; with its name, if it shares a file."""
        return self.shown(Path(self.goldens.at(place).shown(place.name)))

    def candidates(self, place: Place) -> list[Place]:
        """Where a golden may lie, the best place first."""
        return [place.for_variant(variant) for variant in (*self.variants, None)]


def find_project(config: pytest.Config) -> TestedProject:
    """Raises ConfigError for a ciwrap.yaml that cannot be used, UsageError."""
    try:
        own = load_config(find_config(config.rootpath))
    except ConfigMissingError:
        own = None
    root = config.rootpath if own is None else own.root
    is_fixed = config.inipath is not None or (root / "setup.py").exists()
    if own is None and not is_fixed:
        root = root_without_config(root)
    named = config.getini("ciwrap_golden_dir")
    if named:
        golden_dir = Path(config.inipath.parent if config.inipath else config.rootpath, named)
    else:
        golden_dir = root / DEFAULT_GOLDEN_DIR if own is None else own.golden_dir
    golden_dir = Path(os.path.normpath(golden_dir))
    own_variant = config.option.ciwrap_variant or None
    chain = [own_variant] if own_variant else []
    chain += [_fill(text) for text in config.getini("ciwrap_variants")]
    project = TestedProject(
        root=root,
        golden_dir=golden_dir,
        goldens=GoldenStores(golden_dir, is_kept=True),
        pending_dir=root / PENDING_DIR,
        keeps_pending=True,
        config=own,
        variants=tuple(dict.fromkeys(chain)),
        own_variant=own_variant,
    )
    _ = project.golden_dir_text
    _ = project.pending  # one for all threads that tests may start
    return project


def _fill(text: str) -> str:
    facts = {
        "system": platform.system().lower(),
        "machine": platform.machine().lower(),
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
    }
    try:
        return text.format(**facts)
    except (KeyError, ValueError, IndexError, AttributeError):
        raise UsageError(
            f"ciwrap_variants: {text!r} has an unknown field",
            remedy="the fields are {system}, {machine} and {python}",
        ) from None
