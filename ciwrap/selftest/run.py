"""Plants damage in copies of a check's outputs, and sees whether the check catches it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from ciwrap.catalog.catalog import Catalog
from ciwrap.compare.check import check_catalog
from ciwrap.compare.outputs import arrangement_of, outputs_of
from ciwrap.compare.work import Work
from ciwrap.errors import CiwrapError, ExitCode
from ciwrap.golden.store import GoldenStore
from ciwrap.model import VariableId, Verdict
from ciwrap.readers.layout import FoundOutputs
from ciwrap.review.capture_change import change_of_catalog
from ciwrap.review.write_change import Origin, write_change
from ciwrap.selftest.document import Damage, Planted, SelftestCheck
from ciwrap.selftest.plants import damaged
from ciwrap.selftest.targets import Target, find_targets
from ciwrap.structs import replace
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ciwrap.config import Check
    from ciwrap.golden.pair import StoredGolden
    from ciwrap.model import VariableResult
    from ciwrap.readers.layout import OutputFile
    from ciwrap.selftest.plants import Change

_NOBODY = Origin(None, {}, "ciwrap selftest")
_VALUES = (Damage.BEYOND, Damage.NAN, Damage.SIGN, Damage.MASKED)


def try_check(
    check: Check, folder: Path, *, resources: Resources = DEFAULT_RESOURCES
) -> SelftestCheck:
    """Plants every damage in every variable of what the check finds now.

    folder: empty, for a golden of the outputs as they are, and for copies; the outputs themselves
    are only read. Raises UsageError; whatever else keeps the check from being tried is its problem.
    """
    if check.ensemble:
        problem = "its golden is an ensemble, whose statistics one planted value says nothing of"
        return SelftestCheck(check.name, problem=problem)
    try:
        return _Trial(check, folder, resources).run()
    except CiwrapError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        return SelftestCheck(check.name, problem=str(error))


class _Trial:
    def __init__(self, check: Check, folder: Path, resources: Resources) -> None:
        self._check = check
        self._folder = folder
        self._resources = resources
        self._found = outputs_of(check)
        self._arrangement = arrangement_of(check)
        with self._catalog(self._found.files) as catalog:
            self._golden = self._golden_of(catalog)
            self._baseline = self._judge(catalog)
        with Catalog(FoundOutputs(self._found.files)) as plain:
            self._targets = find_targets(check, self._found.files, plain)

    def _catalog(self, files: Iterable[OutputFile]) -> Catalog:
        return Catalog(replace(self._found, files=tuple(files)), self._arrangement)

    def _golden_of(self, catalog: Catalog) -> StoredGolden:
        store = GoldenStore(self._folder / "golden")
        with store.locked():
            change = change_of_catalog(self._check, store, catalog, resources=self._resources)
            return write_change(change, store, None, _NOBODY)

    def _judge(self, catalog: Catalog) -> dict[VariableId, VariableResult]:
        """What the check says of each variable."""
        found = check_catalog(self._check, self._golden, catalog, Work(self._resources))
        return {one.id: one for one in found.variables}

    def run(self) -> SelftestCheck:
        planted: list[Planted] = []
        not_tried = [text for one in self._targets for text in one.not_tried]
        # What does not even match itself tells nothing.
        usable = [one for one in self._targets if _caught(self._baseline, one) is None]
        unsound = [
            f"{one.identity.text} does not match itself: {found}"
            for one in self._targets
            if (found := _caught(self._baseline, one)) is not None
        ]
        for damage in Damage:
            if damage is not Damage.TRUNCATED:
                # Where an id or a mask is wrong all that goes by it is, so these have their turn.
                for is_helper in (False, True):
                    some = [one for one in usable if one.is_helper is is_helper]
                    planted += self._plant(damage, [one for one in some if damage in one.changes])
        planted += self._truncate(not_tried)
        problem = unsound[0] if unsound else None
        return SelftestCheck(self._check.name, tuple(planted), tuple(not_tried), problem)

    def _plant(self, damage: Damage, targets: list[Target]) -> Iterator[Planted]:
        """One damage in all of these variables at once; each is judged by itself."""
        if not targets:
            return
        changes: dict[Path, dict[str, Change]] = {}
        for one in targets:
            changes.setdefault(one.file.path, {})[one.info.name] = one.changes[damage]
        files = [
            damaged(file, changes[file.path]) if file.path in changes else file
            for file in self._found.files
        ]
        with self._catalog(files) as catalog:
            verdicts = self._judge(catalog)
        for one in targets:
            caught = _caught(verdicts, one) is not None
            reason = None if caught else self._reason(damage, one)
            yield Planted(
                damage,
                one.identity.name,
                caught,
                one.identity.iteration,
                one.identity.rank,
                reason,
            )

    def _reason(self, damage: Damage, target: Target) -> str:
        """Why nothing was said of a damage."""
        if self._check.is_ignored(target.identity):
            return "the configuration ignores it ('ignore' or 'until_iteration')"
        if damage is Damage.MASKED:
            return f"the mask {target.settings.mask!r} takes the element out"
        if damage is Damage.LOST:
            return "'strict: variables' lets variables go; a warning tells of it"
        if damage is Damage.SIGN:
            change = target.changes[damage].element
            assert change is not None
            return f"{change[1]} is within the bound ({target.bound.text}) of its opposite"
        return "the check says that it matches"

    def _truncate(self, not_tried: list[str]) -> Iterator[Planted]:
        """Half of every file, in copies."""
        copies: dict[Path, OutputFile] = {}
        for file in self._found.files:
            relative = os.path.relpath(file.path, self._check.root)
            if relative.startswith(os.pardir):
                not_tried.append(f"{file.path}: it lies outside the configuration's folder")
                continue
            target = self._folder / "copies" / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.path.is_dir():
                shutil.copytree(file.path, target)
                inside = [path for path in target.rglob("*") if path.is_file()]
                _halve(max(inside, key=lambda path: path.stat().st_size, default=None))
            else:
                shutil.copyfile(file.path, target)
                for companion in file.reader.companions(file.path):
                    if companion.is_file():
                        shutil.copyfile(companion, target.parent / companion.name)
                _halve(target)
            copies[file.path] = replace(file, path=target)
        if not copies:
            return
        with self._catalog(copies.get(file.path, file) for file in self._found.files) as catalog:
            verdicts = self._judge(catalog)
            blamed = {error.file for error in catalog.errors}
        for path, copy in copies.items():
            own = [one for one in self._targets if one.file.path == path]
            caught = str(copy.path) in blamed or any(_caught(verdicts, one) for one in own)
            reason = None if caught else "what is left of it reads as the whole did"
            if not caught and all(self._check.is_ignored(one.identity) for one in own):
                reason = "the configuration ignores all that is in it"
            yield Planted(Damage.TRUNCATED, str(path), caught, reason=reason)
        shutil.rmtree(self._folder / "copies", ignore_errors=True)


def _caught(results: Mapping[VariableId, VariableResult], target: Target) -> str | None:
    """What a check has against a variable; None if nothing."""
    identity = target.identity
    # Rows of all ranks that were aligned together have no rank.
    found = results.get(identity) or results.get(VariableId(identity.name, identity.iteration))
    if found is None or found.verdict is Verdict.MATCH:
        return None
    return found.reason or str(found.verdict)


def _halve(path: Path | None) -> None:
    """Of an empty store, nothing can be taken."""
    if path is not None:
        os.truncate(path, path.stat().st_size // 2)
