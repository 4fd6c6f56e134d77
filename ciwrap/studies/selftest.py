"""Plants damage in copies of a check's outputs, and sees whether the check catches it.

Damage is in a value of each variable where it has a meaning, and as small as can be. The real files
are read, changed on the way, and never written; the temporary folder goes away in any case.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.arrays.values import Values
from ciwrap.base.documents import DocumentHead
from ciwrap.base.errors import CiwrapError, ExitCode
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import later_interrupts
from ciwrap.base.words import Word
from ciwrap.check.check import check_catalog
from ciwrap.check.two_sides import Work
from ciwrap.formats.catalog import Catalog
from ciwrap.formats.find_outputs import FoundOutputs, OutputFile
from ciwrap.formats.reader import Source, VariableInfo, as_elements
from ciwrap.golden.scale import in_scale_of
from ciwrap.golden.store import GoldenStore
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources, bound_of, tree_parameters
from ciwrap.model import ErrorBound, VariableId, VariableResult, VariableSettings, Verdict
from ciwrap.project.outputs import arrangement_of, outputs_of
from ciwrap.review.change import Origin, change_of_catalog, write_change
from ciwrap.studies.selftest_texts import Place, caught_places, other_number, places_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ciwrap.arrays.values import TextRules
    from ciwrap.project.settings import Check


def beyond(value: Any, bound: ErrorBound) -> Any | None:
    """The nearest value of the same type that is beyond the bound of `value`, above or, where there
    is none, below. None where there is none at all.
    """
    kind = value.dtype.kind
    if kind == "b":
        return ~value
    if kind in "iu":
        return _beyond_integer(value, bound)
    if kind == "c":
        part = beyond(value.real, bound)
        return None if part is None else value.dtype.type(complex(part, value.imag))
    if kind == "f":
        for direction in (1, -1):
            found = _beyond_float(value, bound, direction)
            if found is not None:
                return found
        return None
    return _other_text(value)


def _beyond_integer(value: Any, bound: ErrorBound) -> Any | None:
    limits = np.iinfo(value.dtype)
    number = int(value)
    step = bound.ulps + 1 if bound.ulps else int(_allowed(Fraction(number), bound)) + 1
    for found in (number + step, number - step):
        if limits.min <= found <= limits.max:
            return value.dtype.type(found)
    return None


def _allowed(value: Fraction, bound: ErrorBound) -> Fraction:
    return Fraction(bound.atol) + Fraction(bound.rtol) * abs(value)


def _beyond_float(value: Any, bound: ErrorBound, direction: int) -> Any | None:
    kind = value.dtype.type
    away, back = kind(direction * np.inf), kind(-direction * np.inf)
    with np.errstate(all="ignore"):
        if bound.ulps:
            for _ in range(bound.ulps + 1):
                value = np.nextafter(value, away)
            return value if np.isfinite(value) else None
        exact = Fraction(float(value))
        allowed = _allowed(exact, bound)
        try:
            found = kind(float(exact + direction * allowed))
        except OverflowError:
            return None

        def is_beyond(one: Any) -> bool:
            return abs(Fraction(float(one)) - exact) > allowed

        while np.isfinite(found) and not is_beyond(found):
            found = np.nextafter(found, away)
        while np.isfinite(found) and is_beyond(nearer := np.nextafter(found, back)):
            found = nearer
    return found if np.isfinite(found) else None


def _other_text(value: Any) -> Any:
    """A text of the same width that is another one."""
    # In bytes, since Python has no text with a number that is no character, which damage may leave.
    unit = "<u4" if value.dtype.kind == "U" else "|u1"
    codes = np.frombuffer(value.astype(value.dtype.newbyteorder("<")).tobytes(), unit).copy()
    if not codes.size:
        codes = np.zeros(1, unit)
    codes[0] = ord("b" if codes[0] == ord("a") else "a")
    return codes.view(f"<{value.dtype.kind}{codes.size}")[0]


def flipped(value: Any) -> Any | None:
    """The value with the other sign; None for a type without signs, or none that can be held."""
    if value.dtype.kind in "fc":
        return -value
    if value.dtype.kind == "i" and value != np.iinfo(value.dtype).min:
        return value.dtype.type(-int(value))
    return None


def sound(elements: NDArray[Any], fill_values: tuple[float | int, ...]) -> NDArray[np.bool_]:
    """Which elements are finite and no fill values, so that damage to them has a meaning."""
    kind = elements.dtype.kind
    found: NDArray[np.bool_] = (
        np.isfinite(elements) if kind in "fc" else np.ones(elements.shape, dtype=bool)
    )
    if kind in "fciu":
        for one in fill_values:
            found &= elements != one
    return found


class Change(Struct, frozen=True):
    """What happens to one variable of a file. element: (flat index, value there). unit: in place
    of the one the file says. text: in place of all of it, where it is a text.
    """

    element: tuple[int, Any] | None = None
    is_lost: bool = False
    unit: str | None = None
    text: bytes | None = None


class DamagedFile(OutputFile, frozen=True):
    """An output some of whose variables are changed on their way. changes: by name in the file."""

    changes: Mapping[str, Change] = field(default_factory=dict)

    def open(self) -> Source:
        """Opens the file as it is; raises as `OutputFile.open` does."""
        return DamagedSource(OutputFile.open(self), self.changes)


def damaged(file: OutputFile, changes: Mapping[str, Change]) -> OutputFile:
    """That file, whose variables are changed while it is read; by their names in the file."""
    return DamagedFile(
        **{name: getattr(file, name) for name in OutputFile.__struct_fields__}, changes=changes
    )


class DamagedSource(Source):
    """An open file with changes; nothing of it is read but through here."""

    def __init__(self, source: Source, changes: Mapping[str, Change]) -> None:
        self._source = source
        self._changes = changes
        self.path = source.path
        infos = []
        for info in source.variables:
            change = changes.get(info.name, Change())
            if change.is_lost:
                continue
            if change.unit is not None:
                labels = {**dict(info.labels), "units": change.unit}
                info = replace(info, labels=tuple(sorted(labels.items())))
            if change.text is not None:
                info = replace(info, shape=(len(change.text),))
            is_changed = change.element is not None or change.text is not None
            infos.append(replace(info, region=None) if is_changed else info)
        self.variables = tuple(infos)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.info(name)
        change = self._changes.get(name, Change())
        if change.text is not None:
            return as_elements(change.text[first_element : first_element + count], "|S1")
        elements = self._source.read(name, first_element, count)
        if change.element is None:
            return elements
        index, value = change.element
        if first_element <= index < first_element + count:
            elements = np.array(elements)
            elements[index - first_element] = value
        return elements

    def close(self) -> None:
        self._source.close()


class Damage(Word):
    """What is planted. BEYOND: the nearest representable value beyond the bound. MASKED: the same,
    in an element that a mask takes out. LOST: the variable is gone. TRUNCATED: half of the file is
    gone.
    """

    BEYOND = "beyond-bound"
    NAN = "nan"
    SIGN = "sign"
    MASKED = "masked"
    LOST = "lost-variable"
    UNIT = "unit"
    TRUNCATED = "truncated-file"


class Planted(msgspec.Struct, frozen=True):
    """One damage to one variable of one checkpoint, or to a file (then name is its path).

    reason: why it was not caught.
    """

    damage: Damage
    name: str
    caught: bool
    iteration: int | None = None
    rank: int | None = None
    reason: str | None = None


class SelftestCheck(msgspec.Struct, frozen=True):
    """What was planted in one check. not_tried: what could not be planted, and why; problem: why
    nothing could.
    """

    name: str
    planted: tuple[Planted, ...] = ()
    not_tried: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def missed(self) -> list[Planted]:
        return [one for one in self.planted if not one.caught]


class SelftestDocument(DocumentHead, frozen=True):
    """All checks. exit_code: 0 all caught, 1 some were not, 3 a check could not be tried."""

    kind: Literal["selftest"]
    checks: tuple[SelftestCheck, ...]
    exit_code: Literal[0, 1, 3]


_UNIT = "units"


class Target(Struct):
    """One variable of one file, and what can be planted in it.

    is_helper: whether others are ordered or masked by it. bound: that it is compared by. not_tried:
    what cannot be planted, and why.
    """

    file: OutputFile
    info: VariableInfo
    identity: VariableId
    settings: VariableSettings
    is_helper: bool
    bound: ErrorBound
    changes: dict[Damage, Change]
    not_tried: list[str]


def find_targets(check: Check, files: tuple[OutputFile, ...], catalog: Catalog) -> list[Target]:
    """Every variable of the outputs. catalog: of the same files, rows as they are.

    Raises the errors of reading, and UsageError.
    """
    found = []
    for file in files:
        with file.open() as source:
            for info in source.variables:
                if info.fault is not None:
                    continue  # the configuration ignores it, or it could not have been captured
                identity = file.variable_id(info)
                settings = check.settings_for(identity, info)
                if settings.scale is not None:
                    values = catalog.values(identity, settings.mask)
                    settings = in_scale_of(values, settings, identity)
                parameters = tree_parameters(info.dtype, settings, variable=identity.text)
                target = Target(file, info, identity, settings, False, bound_of(parameters), {}, [])
                _plan(target, catalog)
                found.append(target)
    helpers = {
        (name, one.identity.iteration)
        for one in found
        for name in (one.settings.mask, one.settings.align_by)
        if name is not None
    }
    for one in found:
        # An id may be named without its file.
        name, iteration = one.identity.name, one.identity.iteration
        ends = (name, *(name[at + 1 :] for at, sign in enumerate(name) if sign == "/"))
        one.is_helper = any((end, iteration) in helpers for end in ends)
    return found


def _plan(target: Target, catalog: Catalog) -> None:
    info = target.info
    target.changes[Damage.LOST] = Change(is_lost=True)
    unit = dict(info.labels).get(_UNIT)
    if unit is not None:
        target.changes[Damage.UNIT] = Change(unit=f"{unit} * 1000")
    if info.text is not None:
        return  # `_Trial._plant_in_text` does
    if info.dtype[1:] == "bf2":
        target.not_tried.append(f"{target.identity.text}: no values of type bfloat16 are planted")
        return
    values = catalog.values(target.identity)
    mask = _mask_of(target, catalog)
    for damage, index, value in _elements(target, values, mask):
        target.changes.setdefault(damage, Change(element=(index, value)))
    if Damage.BEYOND not in target.changes:
        what = "value" if mask is None else "value outside its mask"
        target.not_tried.append(
            f"{target.identity.text}: no {what} has a value beyond its bound"
            if info.element_count
            else f"{target.identity.text}: it has no values"
        )


def _mask_of(target: Target, catalog: Catalog) -> Values | None:
    """The mask, as far as it is there; comparing tells of one that is not."""
    if target.settings.mask is None:
        return None
    identity = target.identity
    try:
        return catalog.values(VariableId(target.settings.mask, identity.iteration, identity.rank))
    except (CiwrapError, KeyError):
        return None


def _elements(
    target: Target, values: Values, mask: Values | None
) -> Iterator[tuple[Damage, int, Any]]:
    """Damages with where and what, until there is one of each that the variable can have."""
    kind = target.info.dtype[1]
    wanted = {Damage.BEYOND}
    wanted |= {Damage.NAN} if kind in "fc" else set()
    wanted |= {Damage.SIGN} if kind in "fci" else set()
    wanted |= {Damage.MASKED} if mask is not None else set()
    for first, slab in values.slabs():
        fits = sound(slab, target.settings.fill_values)
        hidden = (
            np.zeros(slab.shape, dtype=bool)
            if mask is None
            else mask.read(first, slab.size).astype(bool)
        )
        for damage in sorted(wanted):
            place = fits & (hidden if damage is Damage.MASKED else ~hidden)
            found = _element(damage, slab, place, target.bound)
            if found is not None:
                wanted.discard(damage)
                yield damage, first + found[0], found[1]
        if not wanted:
            return


def _element(
    damage: Damage, slab: NDArray[Any], place: NDArray[np.bool_], bound: ErrorBound
) -> tuple[int, Any] | None:
    indices = np.flatnonzero(place)
    if damage is Damage.SIGN:
        # The largest: where even its sign does not matter, none does.
        sizes = np.abs(slab[indices])
        indices = indices[sizes > 0][np.argsort(sizes[sizes > 0])[-1:]]
    # The middle first, and some others, for one may be too large to have anything beyond it.
    for index in [*indices[indices.size // 2 :][:5], *indices[:5]]:
        value: Any
        if damage is Damage.NAN:
            value = slab.dtype.type(np.nan)
        elif damage is Damage.SIGN:
            value = flipped(slab[index])
        else:
            value = beyond(slab[index], bound)
        if value is not None:
            return int(index), value
    return None


_NOBODY = Origin(None, {}, "ciwrap selftest")


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
            store = GoldenStore(folder / "golden")
            with store.locked():
                change = change_of_catalog(check, store, catalog, resources=resources)
                self._golden = write_change(change, store, None, _NOBODY)
            self._baseline = self._judge(catalog)
        with Catalog(FoundOutputs(self._found.files)) as plain:
            self._targets = find_targets(check, self._found.files, plain)

    def _catalog(self, files: Iterable[OutputFile]) -> Catalog:
        return Catalog(replace(self._found, files=tuple(files)), self._arrangement)

    def _judge(self, catalog: Catalog) -> dict[VariableId, VariableResult]:
        """What the check says of each variable."""
        found = check_catalog(self._check, self._golden, catalog, Work(self._resources))
        return {one.id: one for one in found.variables}

    def run(self) -> SelftestCheck:
        planted: list[Planted] = []
        not_tried = [text for one in self._targets for text in one.not_tried]
        # What does not even match itself tells nothing.
        reasons = [(one, _caught(self._baseline, one)) for one in self._targets]
        usable = [one for one, why in reasons if why is None]
        unsound = [
            f"{one.identity.text} does not match itself: {why}"
            for one, why in reasons
            if why is not None
        ]
        for damage in Damage:
            if damage is not Damage.TRUNCATED:
                # Where an id or a mask is wrong all that goes by it is, so these have their turn.
                for is_helper in (False, True):
                    some = [one for one in usable if one.is_helper is is_helper]
                    planted += self._plant(damage, [one for one in some if damage in one.changes])
        for one in usable:
            if one.info.text is not None:
                planted += self._plant_in_text(one, one.info.text)
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
            name, iteration, rank = one.identity.name, one.identity.iteration, one.identity.rank
            yield Planted(damage, name, caught, iteration, rank, reason)

    def _plant_in_text(self, target: Target, rules: TextRules) -> Iterator[Planted]:
        """Another number in every place of a text."""
        with target.file.open() as source:
            text = source.read(target.info.name, 0, target.info.element_count).tobytes()
        identity = target.identity
        bound = target.settings.bound
        compared: list[tuple[Place, bytes]] = []
        lost: list[tuple[Place, str]] = []
        for place in places_of(text, rules):
            number = other_number(place, bound, beyond)
            if place.left_out_by is not None:
                lost.append((place, f"left out by {place.left_out_by}"))
            elif number is not None:
                compared.append((place, number))
        caught = caught_places(text, compared, lambda other: self._judge_text(target, other))
        lost += [
            (place, self._reason(Damage.BEYOND, target))
            for place, _ in compared
            if place.offset not in caught
        ]
        where = identity.name, identity.iteration, identity.rank
        for place, _ in compared:
            if place.offset in caught:
                yield Planted(Damage.BEYOND, where[0], True, *where[1:])
        for place, why in lost:
            yield Planted(Damage.BEYOND, where[0], False, *where[1:], f"{place.words}: {why}")

    def _judge_text(self, target: Target, text: bytes) -> VariableResult | None:
        """What the check says of the variable with this text; None if it has nothing against it."""
        change = {target.info.name: Change(text=text)}
        files = [
            damaged(file, change) if file.path == target.file.path else file
            for file in self._found.files
        ]
        with self._catalog(files) as catalog:
            verdicts = self._judge(catalog)
        return None if _caught(verdicts, target) is None else verdicts[target.identity]

    def _reason(self, damage: Damage, target: Target) -> str:
        """Why nothing was said of a damage."""
        if self._check.is_ignored(target.identity):
            return "the configuration ignores it ('ignore' or 'until_iteration')"
        if damage is Damage.MASKED:
            return f"the mask {target.settings.mask!r} takes the value out"
        if damage is Damage.LOST:
            return "'strict: variables' lets variables go; a warning reports it"
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
                for companion in file.companions:
                    if companion.is_file():
                        shutil.copyfile(companion, target.parent / companion.name)
                _halve(target)
            copies[file.path] = replace(file, path_text=str(target))
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


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ciwrap-selftest-"))
    try:
        yield folder
    finally:
        with later_interrupts():  # a second one would leave half of it for good
            shutil.rmtree(folder, ignore_errors=True)
