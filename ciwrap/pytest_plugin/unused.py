"""Goldens that no test uses any more, as far as this session can know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError, UsageError
from ciwrap.golden.listing import delete_goldens, stored_places
from ciwrap.golden.paths import is_shortened
from ciwrap.golden.places import Place, TestPlace
from ciwrap.golden.unused import UnusedGolden, read_unused, write_unused
from ciwrap.pytest_plugin.judge import NEW

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from ciwrap.pytest_plugin.collected import Collected
    from ciwrap.pytest_plugin.results import Results
    from ciwrap.pytest_plugin.tested_project import TestedProject


def used_places(results: Results) -> set[Place]:
    """Places of all goldens that tests asked for, whatever became of the checks."""
    return {
        Place(*record["place"]).for_variant(None)
        for record in results.records()
        if record["place"] is not None
    }


def find_unused(
    project: TestedProject, results: Results, collected: Collected, config: pytest.Config
) -> list[Place]:
    """Goldens whose test is gone, or ran to its end without using them.

    Nothing is said of files of which not all tests were collected, nor of a test that did not pass:
    it may have ended before its check.
    """
    used = used_places(results)
    # By folder of goldens: one with a shortened name does not tell its file.
    tests: dict[str, dict[tuple[str, str | None], list[str]]] = {}
    partial = set()
    for path, found in collected.tests.items():
        try:
            folder = TestPlace(project.module_of(Path(path)), "").place.folder
        except UsageError:
            continue
        if path in collected.partial:
            partial.add(folder)
        names = tests.setdefault(folder, {})
        for test_id, name in found.items():
            names.setdefault(name, []).append(test_id)
    unused = []
    # Of a damaged file each check is told when it is made.
    for place in stored_places(project.golden_dir, faults=[]):
        plain = place.for_variant(None)
        test = TestPlace.of(place) if place.folder else None
        if test is None or plain in used or plain.folder in partial:
            continue
        if _is_doctest(test) and not config.getoption("doctestmodules", False):
            continue
        if plain.folder in tests:
            ids = tests[plain.folder].get((test.test, test.param), [])
            if all(results.has_passed(one) for one in ids):
                unused.append(place)
        elif not is_shortened(plain.folder) and _is_gone(project.root / test.module, config):
            unused.append(place)
    return unused


def _is_doctest(test: TestPlace) -> bool:
    """Whether this is the check of a docstring: `test_a.area`, `test_a.__doc__`.

    The file's other tests do not tell whether it is there.
    """
    return "." in test.test


def moved_goldens(
    project: TestedProject, unused: Iterable[Place], results: Results
) -> list[tuple[str, Place]]:
    """New checks, each with the one unused golden that has the same numbers: perhaps its old one.

    Goldens of one root hold the same variables, compared by the same bounds.
    """
    olds: dict[str, list[Place]] = {}
    for place in unused:
        root = _root(project, place)
        if root is not None:
            olds.setdefault(root, []).append(place)
    found = []
    for record in results.records() if olds else ():
        if record["outcome"] != NEW or not record["pending"]:
            continue
        place = Place(*record["place"])
        root = project.pending.store(place).root_of(place.name)
        if root is not None and len(olds.get(root, ())) == 1:
            found.append((record["check"], olds[root][0]))
    return found


def _is_gone(file: Path, config: pytest.Config) -> bool:
    """Whether the file of a test is deleted, and would have been collected if it were not."""
    if file.exists():
        return False
    folders = [Path(config.invocation_params.dir, str(one).split("::")[0]) for one in config.args]
    return any(file.is_relative_to(folder) for folder in folders)


def note_unused(project: TestedProject, unused: list[Place], results: Results) -> None:
    """Keeps the list for `ciwrap prune`; what earlier sessions found stays, unless it is used."""
    used = used_places(results)
    try:
        before = read_unused(project.root)
    except CorruptFileError:
        before = []
    kept = {
        one.place: one
        for one in before
        if one.place.for_variant(None) not in used and _root(project, one.place) == one.root
    }
    for place in unused:
        kept[place] = UnusedGolden(place.folder, place.name, _root(project, place))
    write_unused(project.root, kept.values())


def delete_unused(project: TestedProject, unused: list[Place]) -> None:
    delete_goldens(project.golden_dir, unused)


def _root(project: TestedProject, place: Place) -> str | None:
    return project.goldens.at(place).root_of(place.name)
