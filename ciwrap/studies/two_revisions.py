"""`ciwrap run --base`: what another revision writes, against what is written here.

Both sides are run and judged as the present configuration says: it is the question, and only the
program may differ. The other revision lies in a working tree of its own for as long.
"""

from __future__ import annotations

import contextlib
import json
import os
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import CiwrapError, NotComparableError, UsageError
from ciwrap.base.repository import Repository, ask_git, place_below, revision_folder
from ciwrap.check.check import judge_expected
from ciwrap.check.two_sides import HistoryOptions, Work, failed_check
from ciwrap.formats.catalog import Rules
from ciwrap.golden.trees import Resources
from ciwrap.model import CheckResult, Message, MessageLevel, VariableId, Verdict
from ciwrap.project.outputs import Outputs, arrangement_of, outputs_of
from ciwrap.project.settings import Check, CommandSettings, Config
from ciwrap.report.text import plural
from ciwrap.review.project import Project, near
from ciwrap.snapshot.records import package_folders
from ciwrap.snapshot.take import SeenProgram
from ciwrap.studies.repeat.measure import RunOutputs, compare_runs, refuse_shared_files
from ciwrap.studies.timing import moved

# Where these are set, Python leaves no compiled modules, which tell what was imported.
_KEEPS_COMPILED = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}
_SHORT = 10
_MOST_NAMES = 3


class Base(Struct, frozen=True):
    """The revision that the working tree is compared with. reference: as it was given. folder: its
    own working tree, while there is one.
    """

    repository: Repository
    reference: str
    commit: str
    folder: Path

    @property
    def text(self) -> str:
        return f"{self.reference} ({self.commit[:_SHORT]})"

    def moved_check(self, check: Check) -> Check:
        """The check, whose outputs and command are in the base's working tree."""
        place = place_below(check.root, self.repository.top)
        assert place is not None  # `refuse_outside` has looked
        command = None if check.command is None else self._moved(check.command)
        return replace(check, root=near(self.folder / place), command=command)

    def moved_config(self, config: Config) -> Config:
        place = place_below(config.root, self.repository.top)
        assert place is not None
        return replace(
            config,
            root=self.folder / place,
            command=None if config.command is None else self._moved(config.command),
            checks=tuple(map(self.moved_check, config.checks)),
        )

    def moved_project(self, project: Project) -> Project:
        config = self.moved_config(project.own_config)
        checks = tuple(map(self.moved_check, project.checks))
        return replace(project, root=near(config.root), config=config, checks=checks)

    def _moved(self, command: CommandSettings) -> CommandSettings:
        command = moved(command, self.repository.top, self.folder)
        return replace(command, env={**_KEEPS_COMPILED, **command.env})


@contextlib.contextmanager
def base_of(project: Project, reference: str) -> Iterator[Base]:
    """The base, checked out for as long as the block lasts. Raises UsageError for an unknown one
    and for outputs that both sides would write to one place, RepositoryError.
    """
    repository = Repository.around(project.own_config.root)
    reference = repository.base_name(reference)
    commit = repository.base_commit(reference)
    for check in project.checks:
        _refuse_outside(check, repository.top)
    with revision_folder(repository, commit) as folder:
        yield Base(repository, reference, commit, near(folder))


def _refuse_outside(check: Check, top: Path) -> None:
    for output in check.outputs:
        if place_below(check.root / output, top) is None:
            raise UsageError(
                f"the outputs of check {check.name!r} lie outside of the repository ({output}),"
                " where both revisions would write to one place",
                file=check.config_path,
                remedy="have the program write below the repository's folder",
            )


def notes_on(base: Base, config: Config) -> Iterator[Message]:
    """What both sides are, and what whoever reads the verdict has to know of them."""
    repository = base.repository
    here = repository.commit("HEAD")
    changed = repository.changed_files()
    is_left = base.commit != repository.commit(base.reference)
    where = ", where this branch left it" if is_left else ""
    state = f", with changes of {_names(changed)} that are not committed" if changed else ""
    yield Message(
        MessageLevel.NOTE,
        f"A is {base.text}{where}; B is the working tree ({here[:_SHORT]}{state})",
    )
    if base.commit == here and not changed:
        text = "A is the commit that is checked out, so both sides are one and the same program"
        yield Message(MessageLevel.WARNING, text)
    place = place_below(config.path, repository.top)
    then = None if place is None else ask_git(repository.top, "show", f"{base.commit}:{place}")
    if then is None or then != config.path.read_text(encoding="utf-8", errors="replace").strip():
        how = "does not have" if then is None else "has another"
        text = f"A {how} {place or config.path}; the present one holds for both sides"
        yield Message(MessageLevel.NOTE, text)
    entries = repository.entries_at(base.commit)
    submodules = [name for name, entry in entries.items() if entry.is_submodule]
    if submodules:
        text = (
            f"A was run without its submodules ({_names(submodules)}), unless 'build' under"
            " 'timing' or the command begins with `git submodule update --init`"
        )
        yield Message(MessageLevel.WARNING, text)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {plural(more, 'other file')}" if more > 0 else shown


def refuse_shared_program(base: Base, seen: SeenProgram) -> None:
    """Raises NotComparableError where the base's command ran what belongs to the working tree here:
    programs and libraries by their paths, Python packages that were installed from it.
    """
    top, folder = os.path.realpath(base.repository.top), os.path.realpath(base.folder)
    for file in seen.files:
        path = os.path.realpath(file.path)
        if not path.startswith(f"{top}/") or path.startswith(f"{folder}/"):
            continue
        if not any((above / "pyvenv.cfg").exists() for above in Path(path).parents):
            raise NotComparableError(
                f"at {base.text} the command ran {os.path.relpath(path, top)} of the working tree"
                " here, so both sides are one and the same program",
                remedy="name files relative to the folder of ciwrap.yaml, and build them there",
            )
    for site in package_folders(file.path for file in seen.files):
        for metadata in sorted(Path(site).glob("*.dist-info")):
            if _is_installed_from(metadata, top) and not _was_imported(metadata, base.folder):
                name = metadata.name.partition("-")[0]
                raise NotComparableError(
                    f"the Python package {name} is installed from the working tree here (as by `pip"
                    f" install -e .`), and nothing shows that {base.text} imported its own",
                    remedy="let the command begin with PYTHONPATH=src (or where the package lies),"
                    " or let 'build' under 'timing' make an environment of its own",
                )


def _is_installed_from(metadata: Path, top: str) -> bool:
    """Whether a Python package was installed from a folder or from one in it."""
    try:
        url = str(json.loads((metadata / "direct_url.json").read_bytes())["url"])
    except (OSError, ValueError, TypeError, KeyError):
        return False  # from an index, as most are
    parts = urllib.parse.urlsplit(url)
    place = os.path.realpath(urllib.parse.unquote(parts.path))
    return parts.scheme == "file" and f"{place}/".startswith(f"{top}/")


def _was_imported(metadata: Path, folder: Path) -> bool:
    """Whether Python has compiled a module of that package below a folder."""
    names = {metadata.name.partition("-")[0]}
    with contextlib.suppress(OSError):
        names |= set((metadata / "top_level.txt").read_text(encoding="utf-8").split())
    patterns = (
        pattern for name in names for pattern in (f"{name}/__pycache__/*", f"__pycache__/{name}.*")
    )
    return any(True for pattern in patterns for _ in folder.rglob(pattern))


def compare_check(base: Base, check: Check, resources: Resources) -> CheckResult:
    """What the base wrote, against what was written here, by the check's own bounds. What `expect`
    and `range` say is a matter of this side alone. Raises UsageError; all else is in the result.
    """
    there = base.moved_check(check)
    try:
        result = _compare(there, check, resources)
    except CiwrapError as error:
        result = failed_check(check.name, error)
    return named(base, result)


def named(base: Base, result: CheckResult) -> CheckResult:
    """The result with what both sides are called."""
    return replace(result, golden_path=base.text, source_path="the working tree")


def _compare(there: Check, check: Check, resources: Resources) -> CheckResult:
    if check.ensemble:
        raise NotComparableError(
            "is judged by the statistics of its runs, not value by value",
            remedy="`ciwrap run` without --base compares them with the ensemble",
        )

    def is_ignored(identity: VariableId) -> bool:
        return check.is_ignored(identity) or check.expectation_of(identity) is not None

    rules = Rules(
        check.settings_for,
        is_ignored,
        check.strict.variables,
        arrangement_of(check),
        bounds_are_given=True,
        bounds_from=f"check {check.name}",
        by_place=any(" / " in pattern for pattern in check.variable_patterns),
    )
    ours, theirs = (RunOutputs(one.root, outputs_of(one)) for one in (there, check))
    refuse_shared_files(ours, theirs)
    result = compare_runs(
        check.name,
        ours,
        theirs,
        rules,
        resources=resources,
        options=HistoryOptions(is_explained=True),
    )
    return _with_stated(result, check, resources) if check.expected else result


def _with_stated(result: CheckResult, check: Check, resources: Resources) -> CheckResult:
    with Outputs(check) as outputs:
        stated = judge_expected(check, outputs, Work(resources))

    def others(found: Sequence[VariableId]) -> tuple[VariableId, ...]:
        return tuple(one for one in found if check.expectation_of(one) is None)

    return replace(
        result,
        variables=(*result.variables, *stated),
        ignored_variables=others(result.ignored_variables),
        left_out_variables=others(result.left_out_variables),
        verdict=Verdict.worst((result.verdict, *(one.verdict for one in stated))),
    )
