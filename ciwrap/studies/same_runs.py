"""What honest runs of a command print anew: signs and places of texts, and how far numbers of
arrays move.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ciwrap import _core
from ciwrap.arrays.values import TEXT_SETS, SectionPlace, TextRules
from ciwrap.base.late import numpy as np
from ciwrap.check.texts import section_rows
from ciwrap.formats.find_outputs import Choice
from ciwrap.formats.look import paths_below
from ciwrap.formats.reader import Source, VariableInfo
from ciwrap.formats.tables import parse_floats
from ciwrap.project.run_command import failure_of, run_command
from ciwrap.project.settings import CommandSettings

# Numbers of a text that differ by less are noise, which a bound takes.
MOST_NOISE = 1e-6
# A bound is so many times what the runs differ by, and at most this part of an array's spread.
_TIMES = 10
_PART_OF_SPREAD = 1e-3
_MOST_ROUNDS = 20
_LEAST_EXPONENT = -16  # doubles have no finer relative differences
_LONGEST_SHOWN = 40
_OF_TIMES = re.compile(r"\btimings?\b", re.IGNORECASE)


class Change(Struct, frozen=True):
    """What runs print anew. what: a place in a text, or a variable. shown: of two of them."""

    what: str
    shown: str


class Noise(Struct, frozen=True):
    """How runs of an output differ. signs: sets of `ignore`, sections and places: for
    `ignore_places`, rtol and atol, of a text. bounds: an atol for variables. variables: those that
    move too far for a bound. problem: why they do not match even so.
    """

    signs: tuple[str, ...] = ()
    sections: tuple[SectionPlace, ...] = ()
    places: tuple[Change, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    bounds: Mapping[str, float] = {}
    variables: tuple[Change, ...] = ()
    problem: str | None = None


# A file by what a write changes: times, size and inode.
_Stamps = Mapping[Path, tuple[int, int, int]]


class SomeRuns(Struct, frozen=True):
    """A command that has run several times in a folder. earlier: where the files are that each run
    but the last wrote. written_last: those that the last run wrote, and unwritten: those that no
    run wrote, with '/', relative to the folder.
    """

    folder: Path
    earlier: tuple[Path, ...]
    written_last: frozenset[str]
    unwritten: tuple[str, ...]


def run_often(command: Sequence[str], count: int, folder: Path, keep: Path) -> SomeRuns:
    """Runs a command `count` times in a folder, and keeps what each run but the last wrote in a
    folder of its own.

    Raises CommandFailedError, and UsageError and OSError as `run_command` does.
    """
    first = before = _stamps(folder)
    earlier = tuple(keep / str(number) for number in range(count - 1))
    for kept in earlier:
        _run(command, folder)
        after = _stamps(folder)
        for path in _written(before, after):
            target = kept / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if (folder / path).is_dir():
                shutil.copytree(folder / path, target)
            else:
                shutil.copy2(folder / path, target)
        before = after
    _run(command, folder)
    after = _stamps(folder)
    written_last = frozenset(one.as_posix() for one in _written(before, after))
    written = set(_written(first, after))
    unwritten = tuple(one.as_posix() for one in after if one not in written)
    return SomeRuns(folder, earlier, written_last, unwritten)


def _run(command: Sequence[str], folder: Path) -> None:
    outcome = run_command(CommandSettings(tuple(command), folder))
    if outcome.exit_code != 0:
        raise failure_of(outcome, so="so nothing was proposed")


def _stamps(folder: Path) -> _Stamps:
    return {path.relative_to(folder): _stamp(path) for path in paths_below(folder, Choice())}


def _stamp(path: Path) -> tuple[int, int, int]:
    """Of a folder that is one output: of the newest file in it."""
    files = [path] if not path.is_dir() else [one for one in path.rglob("*") if one.is_file()]
    each = [one.lstat() for one in files]
    return max(((one.st_mtime_ns, one.st_size, one.st_ino) for one in each), default=(0, 0, 0))


def _written(before: _Stamps, after: _Stamps) -> Iterator[Path]:
    return (path for path, stamp in after.items() if before.get(path) != stamp)


def text_noise(earlier: Sequence[Path], last: Path, folder: Path) -> Noise:
    """Of a text in each of several runs of a command in a folder. Raises as `_core.compare_texts`
    does.
    """
    signs = _signs_in(last, folder)
    sections: list[SectionPlace] = []
    places: dict[str, Change] = {}

    def compared(rtol: float, atol: float = 0.0) -> list[dict[str, Any]]:
        how: dict[str, Any] = {"ignore": signs, "ignore_places": list(places)}
        how.update(rtol=rtol, atol=atol)
        rules = TextRules(sections=tuple(sections))
        each = [(one, section_rows(rules, one, last)) for one in earlier]
        return [_core.compare_texts(one, last, sections=rows, **how) for one, rows in each]

    while more := _signs_of(compared(MOST_NOISE), signs):
        signs += more
    for table in _tables_of_times(last):
        without = _unpaired(compared(MOST_NOISE))
        sections.append(table)
        if _unpaired(compared(MOST_NOISE)) >= without:
            sections.pop()
    # Only now, since what a sign covers is another word of a place.
    for _ in range(_MOST_ROUNDS):
        new = _places_of(compared(MOST_NOISE), places)
        if not new:
            break
        places.update(new)
    found = compared(MOST_NOISE)
    groups = [group for one in found for group in one["number_groups"]]
    beyond = max((float(one["max_abs_difference"]) for one in groups), default=0.0)
    atol = _rounded_up(_TIMES * beyond)
    if not _is_next_to_zero(atol, last, groups):
        atol = 0.0
    rtol = _least_rtol(lambda rtol: sum(one["differing_count"] for one in compared(rtol, atol)))
    each = zip(compared(rtol, atol), earlier, strict=True)
    problems = [_problem(one, path, last) for one, path in each]
    problem = next((one for one in problems if one is not None), None)
    changed = tuple(places.values())
    return Noise(tuple(signs), tuple(sections), changed, rtol, atol, problem=problem)


def _tables_of_times(path: Path) -> list[SectionPlace]:
    """The paragraphs of a text that say in their first line that they are of timings. Rows of
    times come and go from run to run, and so do the bars beside them.
    """
    lines = ["", *path.read_bytes().decode("utf-8", "replace").splitlines()]
    firsts = [new for old, new in itertools.pairwise(lines) if new.strip() and not old.strip()]
    tables = []
    for first, following in itertools.zip_longest(firsts, firsts[1:]):
        start = _heading(first)
        end = None if following is None else _heading(following)
        has_end = end is not None or following is None
        if start is not None and has_end and _OF_TIMES.search(start):
            tables.append(SectionPlace("", start, end))
    return tables


def _heading(line: str) -> str | None:
    """A template of how a line begins, up to its colon; None if that may change, or is no text."""
    words, colon, _ = line.strip().partition(":")
    is_fixed = words.isprintable() and not re.search(r"[0-9{}\ufffd]", words)
    return f"^{words}{colon}" if words and is_fixed else None


def _unpaired(found: Sequence[Mapping[str, Any]]) -> int:
    return sum(one[side]["unpaired_lines"] for one in found for side in ("golden", "new"))


def _least_rtol(differing: Callable[[float], int]) -> float:
    """Ten times the least power of ten under which no more numbers differ than under MOST_NOISE."""
    fewest = differing(MOST_NOISE)
    if differing(0.0) == fewest:
        return 0.0
    exponents = range(_LEAST_EXPONENT, 0)
    return next(float(f"1e{n + 1}") for n in exponents if differing(float(f"1e{n}")) == fewest)


def _is_next_to_zero(atol: float, path: Path, beyond: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every place of a text has numbers far beyond an atol, but for those that need it."""
    if not 0 < atol <= MOST_NOISE:
        return False
    in_need = {(group["template"], group["number"]) for group in beyond}
    text = path.read_bytes()
    for one in _core.text_places(text):
        value = parse_floats([text[one["offset"] : one["offset"] + one["size"]].decode()])
        is_large = value is None or value[0] == 0 or abs(value[0]) * _PART_OF_SPREAD >= atol
        if not is_large and (one["template"], one["number"]) not in in_need:
            return False
    return True


def _signs_in(path: Path, folder: Path) -> list[str]:
    """The signs of a text that will change, even if these runs were too quick: those over numbers,
    and paths if it names the folder of the runs or the user's, which are others elsewhere.
    """
    text = path.read_bytes()
    signs = {one["left_out_by"] for one in _core.text_places(text, ignore=TEXT_SETS)}
    folders = {str(folder.resolve()), os.environ.get("HOME", "")} - {"", "/"}
    is_named = any(os.fsencode(one) in text for one in folders)
    return sorted(signs - {None, "paths"} | ({"paths"} if is_named else set()))


def _signs_of(found: Sequence[Mapping[str, Any]], known: Sequence[str]) -> list[str]:
    groups = [group for one in found for group in (*one["number_groups"], *one["line_groups"])]
    return sorted({sign for group in groups for sign in group["remedies"]} - set(known))


def _places_of(
    found: Sequence[Mapping[str, Any]], known: Mapping[str, Change]
) -> dict[str, Change]:
    places: dict[str, Change] = {}
    for group in (group for one in found for group in one["number_groups"]):
        place = group["place"].decode("utf-8", "replace")
        # What moves by less, next to zero, is no time, and no other thing to leave out.
        has_moved = group["max_abs_difference"] > MOST_NOISE
        if has_moved and place and place not in {**known, **places} and place.isprintable():
            golden, new = group["golden"], group["new"]
            shown = f"line {golden['line']:,}: {_shown(golden)} / {_shown(new)}"
            places[place] = Change(place, shown)
    return places


def _shown(place: Mapping[str, Any]) -> str:
    text: str = place["text"].decode("utf-8", "replace")
    return text[:_LONGEST_SHOWN]


def _problem(found: Mapping[str, Any], first: Path, second: Path) -> str | None:
    unpaired = found["golden"]["unpaired_lines"] + found["new"]["unpaired_lines"]
    if unpaired:
        group = found["line_groups"][0]
        one = group["golden"] or group["new"]
        lines = "line has" if unpaired == 1 else "lines have"
        return f"the runs differ: {unpaired:,} {lines} no partner, as line {one['line']:,}"
    if found["differing_count"]:
        group = found["number_groups"][0]
        line = group["golden"]["line"]
        why = "" if group["place"] else ", in a line without words to name it by"
        shown = f"{_shown(group['golden'])} / {_shown(group['new'])}"
        return f"the runs differ, as line {line:,}: {shown}{why}"
    is_unread = found["golden"]["unread_numbers"] or found["new"]["unread_numbers"]
    is_equal = first.read_bytes() == second.read_bytes()
    return "it has numbers that are not read" if is_unread and not is_equal else None


def _source_noise(first: Source, second: Source) -> Noise:
    """Of two open files. Raises the errors of reading."""
    theirs = {info.name: info for info in second.variables}
    bounds: dict[str, float] = {}
    moved: list[Change] = []
    if [info.name for info in first.variables] != list(theirs):
        return Noise(problem="the runs write other variables")
    for info in first.variables:
        other = theirs[info.name]
        if (info.dtype[:2], info.shape) != (other.dtype[:2], other.shape):
            return Noise(problem=f"{info.name} has another type or shape")
        if info.fault is not None:
            continue
        change = _moved(first, second, info)
        if change is None:
            continue
        bound, shown = change
        if bound is None:
            moved.append(Change(info.called or info.name, shown))
        else:
            bounds[info.called or info.name] = bound
    return Noise(bounds=bounds, variables=tuple(moved))


def _moved(first: Source, second: Source, info: VariableInfo) -> tuple[float | None, str] | None:
    """A bound for what two runs of a variable differ by, None if it would be too wide, and the
    first two values that differ; None if none do.
    """
    shown = ""
    largest, low, high = 0.0, math.inf, -math.inf
    is_number = info.dtype[1] == "f"
    for ours, theirs in zip(first.slabs(info.name), second.slabs(info.name), strict=True):
        is_other = ours != theirs
        if is_number:
            is_other &= ~(np.isnan(ours) & np.isnan(theirs))
        if is_other.any() and not shown:
            at = int(np.flatnonzero(is_other)[0])
            shown = f"{ours[at]} / {theirs[at]}"
        if is_number and ours.size:
            finite = ours[np.isfinite(ours)].astype(np.float64)
            low = min(low, float(finite.min(initial=math.inf)))
            high = max(high, float(finite.max(initial=-math.inf)))
            with np.errstate(all="ignore"):
                apart = np.abs(np.subtract(theirs, ours, dtype=np.float64))[is_other]
            largest = max(largest, float(np.max(apart, initial=0.0)))
    if not shown:
        return None
    spread = high - low if high > low else abs(high)
    bound = _rounded_up(_TIMES * largest)
    is_noise = is_number and math.isfinite(bound) and 0 < bound <= spread * _PART_OF_SPREAD
    return (bound if is_noise else None), shown


def _rounded_up(value: float) -> float:
    """To one digit, which is what a bound means to say."""
    if not (0 < value < math.inf):
        return value
    unit = 10.0 ** math.floor(math.log10(value))
    return float(f"{math.ceil(value / unit) * unit:.1g}")


def text_lines(noise: Noise) -> tuple[str, ...]:
    """The keys of a check of the text, as lines of ciwrap.yaml."""
    lines = []
    if noise.signs or noise.sections or noise.places:
        lines.append("# What these runs print anew. Take out what may not change.")
        lines.append("options:")
    if noise.signs:
        lines.append(f"  ignore: [{', '.join(noise.signs)}]")
    if noise.sections or noise.places:
        lines.append("  ignore_places:")
        lines += [f"    - {_in_yaml(one)}  # timings" for one in noise.sections]
        lines += [f"    - {json.dumps(one.what)}  # {one.shown}" for one in noise.places]
    if noise.rtol:
        lines.append(f"rtol: {noise.rtol:g}  # at least {_TIMES} times what the runs differ by")
    if noise.atol:
        lines.append(f"atol: {noise.atol:g}  # for numbers next to zero, which differ")
    return tuple(lines)


def _in_yaml(section: SectionPlace) -> str:
    """A section that is left out whole."""
    end = "" if section.end is None else f", end: {json.dumps(section.end)}"
    return f"{{section: {{start: {json.dumps(section.start)}{end}}}}}"


def file_noise(
    earlier: Sequence[Path],
    last: Path,
    format_name: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Noise:
    """Of a file that a reader opens: that of the format, else as its suffix or content says. Raises
    the errors of reading.
    """
    file = Choice(format_name=format_name, options=options).of(last, last.name)
    reader, options = file.reader, file.options
    bounds: dict[str, float] = {}
    moved: dict[str, Change] = {}
    for one in earlier:
        with reader.open(one, options=options) as ours, reader.open(last, options=options) as other:
            noise = _source_noise(ours, other)
        if noise.problem is not None:
            return noise
        for name, bound in noise.bounds.items():
            bounds[name] = max(bound, bounds.get(name, 0.0))
        moved.update((change.what, change) for change in noise.variables)
    bounds = {name: bound for name, bound in bounds.items() if name not in moved}
    return Noise(bounds=bounds, variables=tuple(moved.values()))
