"""Goldens that no test uses any more, as far as this session can know."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.errors import CorruptFileError, UsageError
from ciwrap.golden.listing import stored_places
from ciwrap.golden.lock import writer_lock
from ciwrap.golden.paths import is_shortened
from ciwrap.golden.places import Place, TestPlace
from ciwrap.golden.unused import (
    UnusedGolden,
    UnusedList,
    list_path,
    read_unused,
    write_unused,
)
from ciwrap.pytest_plugin.file_of_tests import TestFile
from ciwrap.pytest_plugin.judge import NEW
from ciwrap.review.project_state import lacking_files, other_state_words, state_of
from ciwrap.work_folder import keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from ciwrap.golden.unused import ProjectState
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
    files: dict[str, TestFile] = {}
    for path, found in collected.tests.items():
        try:
            folder = TestPlace(project.module_of(Path(path)), "").place.folder
        except UsageError:
            continue
        file = files.setdefault(folder, TestFile(Path(path)))
        file.add(found, is_partial=path in collected.partial)
    unused, gone = [], []
    # Of a damaged file each check is told when it is made.
    for place in stored_places(project.golden_dir, faults=[]):
        plain = place.for_variant(None)
        test = TestPlace.of(place) if place.folder else None
        if test is None or plain in used:
            continue
        is_doctest = _is_doctest(test)
        if is_doctest and not config.getoption("doctestmodules", False):
            continue
        if plain.folder in files:
            is_for_us = place.variant is None or place.variant in project.variants
            if files[plain.folder].does_not_use(test, results, is_for_us=is_for_us):
                unused.append(place)
        elif not (is_doctest or _is_named_as_tests(test, config)):
            continue  # The golden of a check of the configuration, in the folder of a platform.
        elif not is_shortened(plain.folder) and _is_gone(project.root / test.module, config):
            gone.append((place, test.module))
    # A sparse checkout lacks files that nobody has deleted.
    lacking = set(lacking_files(project)) if gone else set()
    return sorted([*unused, *(place for place, module in gone if module not in lacking)])


def _is_doctest(test: TestPlace) -> bool:
    """Whether this is the check of a docstring: `test_a.area`, `test_a.__doc__`.

    The file's other tests do not tell whether it is there.
    """
    return "." in test.test


def _is_named_as_tests(test: TestPlace, config: pytest.Config) -> bool:
    """Whether pytest would look for tests in a file of this name."""
    return any(PurePosixPath(test.module).match(one) for one in config.getini("python_files"))


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
    """Keeps the list for `ciwrap prune`. What earlier sessions found of the same tests stays,
    unless it is used.
    """
    path = list_path(project.root)
    if not unused and not path.exists():
        return
    used = used_places(results)
    state = state_of(project)
    keep_out_of_git(path.parent)
    with writer_lock(path.parent, doing="noting unused goldens"):
        kept = {
            one.place: one
            for one in _noted(project, state)
            if one.place.for_variant(None) not in used and _root(project, one.place) == one.root
        }
        kept |= {one.place: one for one in with_roots(project, unused)}
        write_unused(project.root, UnusedList(state=state, unused=tuple(sorted(kept.values()))))


def _noted(project: TestedProject, state: ProjectState) -> tuple[UnusedGolden, ...]:
    """What is known already of the tests as they are."""
    try:
        before = read_unused(project.root)
    except CorruptFileError:
        return ()
    return () if before is None or other_state_words(before.state, state) else before.unused


def with_roots(project: TestedProject, places: Iterable[Place]) -> list[UnusedGolden]:
    return [UnusedGolden(one.folder, one.name, _root(project, one)) for one in places]


def _root(project: TestedProject, place: Place) -> str | None:
    return project.goldens.at(place).root_of(place.name)
