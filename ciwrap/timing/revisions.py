"""Revisions of a repository as sides of a comparison: checked out and built."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.errors import CommandFailedError, one_line
from ciwrap.repository import place_below
from ciwrap.running.run_command import ending_of, run_command
from ciwrap.structs import Struct, replace
from ciwrap.timing.measure import Side
from ciwrap.worktrees import revision_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.config import CommandSettings
    from ciwrap.repository import Repository

_SHORT = 10


class Recipe(Struct, frozen=True):
    """How a revision is built and what is then timed.

    Both commands are those of the working tree; they run in the same place of the other one.
    """

    timed: CommandSettings
    build: CommandSettings | None = None


@contextlib.contextmanager
def working_tree_side(name: str, repository: Repository, recipe: Recipe) -> Iterator[Side]:
    """The working tree as it is, built. Raises CommandFailedError."""
    _build(name, recipe.build)
    changed = ", with changes" if repository.changed_files() else ""
    commit = repository.commit("HEAD")
    yield Side(name, recipe.timed, f"working tree ({commit[:_SHORT]}{changed})", commit)


@contextlib.contextmanager
def revision_side(
    name: str, reference: str, repository: Repository, recipe: Recipe
) -> Iterator[Side]:
    """A revision, checked out in a working tree of its own and built, as long as the block lasts.

    Raises UsageError for an unknown revision, RepositoryError, CommandFailedError.
    """
    commit = repository.commit(reference)
    with revision_folder(repository, commit) as folder:
        build = None if recipe.build is None else _moved(recipe.build, repository.top, folder)
        _build(f"{name} ({reference})", build)
        timed = _moved(recipe.timed, repository.top, folder)
        yield Side(name, timed, f"{reference} ({commit[:_SHORT]})", commit)


def _moved(command: CommandSettings, top: Path, folder: Path) -> CommandSettings:
    """The command at the same place of another working tree. A place outside of it stays."""
    place = place_below(command.working_dir, top)
    return command if place is None else replace(command, working_dir=folder / place)


def _build(what: str, command: CommandSettings | None) -> None:
    if command is None:
        return
    outcome = run_command(command)
    if outcome.exit_code != 0:
        raise CommandFailedError(
            f"the build of {what} ({one_line(outcome.command)}) {ending_of(outcome)},"
            " so no run times are compared"
        )
