"""A commented first ciwrap.yaml, made from the outputs that a project already has."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath

from msgspec import Struct

from ciwrap.base.files import inner_path, suffixes_of
from ciwrap.base.patterns import PathPattern, with_counters

_TIME = re.compile(r"\d{1,18}(?:\.\d{1,18})?(?:e[-+]?\d{1,2})?")
_TIME_FIELD = "{iteration}"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
# Formats whose array is named after the file.
_NAMED_BY_FILE = {".npy", ".bin", ".raw"}
_MOST_LISTED = 12
MOST_CHECKS = 30
_INEXACT = re.compile(r"[<>|=]?(f|c|bf)\d+")


# Of a text that is compared token by token.
AS_TEXT = (("format", "tokens"),)


class FoundVariable(Struct, frozen=True):
    """A variable of an output, as its reader lists it."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class FoundFile(Struct, frozen=True):
    """An output. path: relative to the configuration, with '/'. keys: what a check of it says of
    how it is read, as keys and values of ciwrap.yaml. lines: what else it says, as lines of
    ciwrap.yaml. bounds: an atol of variables. ignored: variables that are left out, and why.
    """

    path: str
    variables: tuple[FoundVariable, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    bounds: Mapping[str, float] = {}
    ignored: Mapping[str, str] = {}


class _Group(Struct, frozen=True):
    """Files that one entry of `outputs` means. more: further ones that nobody has looked into.
    exclude: others that the entry would mean.
    """

    pattern: str
    files: tuple[FoundFile, ...]
    more: int = 0
    exclude: tuple[str, ...] = ()

    @property
    def iteration_step(self) -> Decimal | None:
        """What the times in the paths are multiples of; None if they are none, or whole numbers."""
        parts = PurePosixPath(self.pattern).parts
        if _TIME_FIELD not in parts:
            return None
        at = parts.index(_TIME_FIELD)
        times = [Fraction(PurePosixPath(file.path).parts[at]) for file in self.files]
        below = math.lcm(*(one.denominator for one in times))
        unit = Fraction(math.gcd(*(int(one * below) for one in times)), below)
        if below == 1 or not unit:
            return None
        return Decimal(unit.numerator) / Decimal(unit.denominator)

    @property
    def is_template(self) -> bool:
        return "{" in self.pattern


class StarterCheck(Struct, frozen=True):
    """One check of a starter. array_count: of all its variables in all files and iterations that
    were looked into. keys: as in FoundFile, where nobody has looked for variables. unopened: files
    that nobody has looked into.
    """

    name: str
    outputs: tuple[str, ...]
    file_count: int
    variable_count: int
    array_count: int
    keys: tuple[tuple[str, str], ...] = ()
    unopened: int = 0


class Starter(Struct, frozen=True):
    """A configuration that loads as it stands, and the checks in it. left_out: how many of the
    files that nobody has looked into no check means. unlisted: how many of the others, since there
    would be too many checks.
    """

    checks: tuple[StarterCheck, ...]
    text: str
    left_out: int = 0
    unlisted: int = 0


_HEAD = """\
# yaml-language-server: $schema=.ciwrap/ciwrap.schema.json
# What ciwrap compares, and how closely. `ciwrap accept` makes the goldens, `ciwrap check` compares.
# All keys: docs/reference/configuration.md of ciwrap
version: 1

# Where the goldens go. Commit this folder.
golden_dir: golden

# The command that makes the outputs; `ciwrap run` runs it and then checks.
{run}

defaults:
  # A value v passes if |v - golden| <= atol + rtol * |golden|. 0 asks for equal numbers, which is
  # right for deterministic programs; others need a bound above their noise, which
  # `ciwrap repeat --write-bounds` measures.
  atol: 0
  # rtol: 1e-9
  # atol: 1e-12*max        # in the scale of the golden's numbers: max, range, std, rms or mean
  # ulps: 4                # instead of atol and rtol: this many floating-point numbers apart

  # What a golden keeps: `auto` keeps small data as they are, of larger ones a few bits per value.
  # evidence: auto         # or data, residues, tree
  # fill_values: [-999]    # mean "missing": missing equals missing only

checks:
"""
_NOTHING = """\
  # No outputs were found yet. Name files, folders, globs, or a template such as
  # out/iter_{iteration:d}/rank_{rank:d}/{name}.npy
  results:
    outputs: out
"""


def make_starter(
    found: Iterable[FoundFile],
    *,
    command: str | None = None,
    others: Collection[str] = (),
    unopened: Sequence[str] = (),
) -> Starter:
    """A configuration that checks these files.

    Files whose paths differ in an iteration, a rank or a variable's name only share one check.
    Without any files it holds an example to fill in. command: what makes the outputs, if that is
    known. others: files that are there, and of which there is to be no check. unopened: files that
    nobody has looked into; those that lie where the found ones do belong to their checks.
    """
    further = Counter(map(_template, unopened))
    groups = _groups(sorted(found, key=lambda file: file.path), further, others)
    text = _HEAD.replace("{run}", run_line(command)) + ("" if groups else _NOTHING)
    checks: list[StarterCheck] = []
    names = _check_names([group.pattern for group in groups[:MOST_CHECKS]])
    for name, group in zip(names, groups, strict=False):
        listed = _listed(group)
        arrays = sum(map(len, listed.values()))
        count = len(group.files) + group.more
        keys = group.files[0].keys
        outputs = (group.pattern,)
        checks.append(StarterCheck(name, outputs, count, len(listed), arrays, keys, group.more))
        text += "\n".join(_check(name, group, listed)) + "\n\n"
    left_out = len(unopened) - sum(group.more for group in groups[:MOST_CHECKS])
    unlisted = sum(len(group.files) for group in groups[MOST_CHECKS:])
    return Starter(tuple(checks), text.rstrip("\n") + "\n", left_out, unlisted)


def _groups(
    files: Sequence[FoundFile], further: Mapping[str, int], others: Collection[str]
) -> list[_Group]:
    """Files by the template that their paths share; alone, under their own path. further: how many
    files that nobody has looked into have a template.
    """
    by_pattern: dict[tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]], list[FoundFile]] = {}
    for file in files:
        by_pattern.setdefault((_template(file.path), file.keys, file.lines), []).append(file)
    groups: list[_Group] = []
    for (pattern, keys, _), members in sorted(by_pattern.items()):
        has_history = "{iteration:" in pattern or "{rank" in pattern
        more = 0 if keys else further.get(pattern, 0)
        if len(members) == 1 and not has_history and not more:
            groups.append(_Group(members[0].path, tuple(members)))
            continue
        glob = PathPattern(pattern)
        own = {file.path for file in members}
        alike = [one for one in (*(file.path for file in files), *others) if one not in own]
        exclude = tuple(sorted(one for one in alike if glob.match(one)))
        groups.append(_Group(pattern, tuple(members), more, exclude))
    return groups


def _template(path: str) -> str:
    *folders, name = PurePosixPath(path).parts
    suffix = suffixes_of(PurePosixPath(path))
    parts = with_counters([*folders, name.removesuffix(suffix)])
    parts[-1] += suffix
    times = [number for number, part in enumerate(parts[:-1]) if _TIME.fullmatch(part)]
    if len(times) == 1 and not any("{iteration" in part for part in parts):
        parts[times[0]] = _TIME_FIELD
    if "{" not in parts[-1] and suffix:
        # Tables and archives name their variables themselves; several of them are told apart by
        # file.
        parts[-1] = "{name}" + suffix
    return "/".join(parts)


def _listed(group: _Group) -> dict[str, list[FoundVariable]]:
    """The arrays of each variable, by the name that rules know it by."""
    listed: dict[str, list[FoundVariable]] = {}
    for file in group.files:
        for variable in file.variables:
            listed.setdefault(_name_in_check(group, file, variable.name), []).append(variable)
    return listed


def _check(name: str, group: _Group, listed: Mapping[str, list[FoundVariable]]) -> list[str]:
    lines = [f"  {quoted(name)}:", f"    outputs: {quoted(group.pattern)}"]
    if group.is_template:
        count = len(group.files) + group.more
        lines[1] += f"  # {count} file{'s' if count > 1 else ''} now"
    if group.exclude:
        lines.append(f"    exclude: [{', '.join(map(quoted, group.exclude))}]")
    lines += [f"    {key}: {value}" for key, value in group.files[0].keys]
    lines += [f"    {one}" for one in _with_step(group)]
    lines += _left_out(group)
    bounds = _bounds(group)
    if bounds:
        lines += ["    # 10 times what the runs differ by.", "    variables:"]
        lines += [f"      {quoted(one)}: {{atol: {atol:g}}}" for one, atol in bounds.items()]
    if listed and not bounds:
        lines.append(
            "    # Bounds of single variables, by name or pattern, in place of the defaults:"
        )
        lines.append("    # variables:")
    others = [one for one in listed.items() if one[0] not in bounds]
    for variable_name, variables in others[:_MOST_LISTED]:
        lines.append(_variable(variable_name, variables))
    if len(others) > _MOST_LISTED:
        lines.append(f"    #   (and {len(others) - _MOST_LISTED} more)")
    return lines


def _with_step(group: _Group) -> list[str]:
    """What the files say of their check, and what an iteration adds to the times of their paths."""
    lines = list(group.files[0].lines)
    if group.iteration_step is None:
        return lines
    step = f"iteration_step: {group.iteration_step:f}"
    if "options:" not in lines:
        return [f"options: {{{step}}}", *lines]
    at = lines.index("options:") + 1
    return [*lines[:at], f"  {step}", *lines[at:]]


def _left_out(group: _Group) -> list[str]:
    """What runs show to change too far for a bound."""
    ignored = {
        _name_in_check(group, file, name): why
        for file in group.files
        for name, why in file.ignored.items()
    }
    if not ignored:
        return []
    head = "    ignore:  # What these runs make anew. Take out what may not change."
    return [head, *(f"      - {quoted(name)}  # {why}" for name, why in ignored.items())]


def _bounds(group: _Group) -> dict[str, float]:
    bounds: dict[str, float] = {}
    for file in group.files:
        for variable, atol in file.bounds.items():
            name = _name_in_check(group, file, variable)
            bounds[name] = max(atol, bounds.get(name, 0.0))
    return bounds


def _variable(name: str, variables: list[FoundVariable]) -> str:
    dtypes = ", ".join(sorted({variable.dtype for variable in variables}))
    shapes = sorted({variable.shape for variable in variables})
    shown = " or ".join(_shape_text(shape) for shape in shapes[:3])
    shown += " ..." if len(shapes) > 3 else ""
    is_inexact = any(_INEXACT.fullmatch(variable.dtype) for variable in variables)
    bound = "{atol: 1e-6}" if is_inexact else "{atol: 0}"
    return f"    #   {quoted(name)}: {bound}  # {dtypes}, {shown}"


def _name_in_check(group: _Group, file: FoundFile, variable: str) -> str:
    """What the variable is called within the check (see ciwrap.formats.find_outputs)."""
    path = inner_path(PurePosixPath(file.path))
    if not group.is_template or "{name}" not in group.pattern:
        return variable
    if path.suffix in _NAMED_BY_FILE:
        return variable
    return f"{path.stem}/{variable}"


def _shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) if shape else "one number"


def _check_names(patterns: Sequence[str]) -> list[str]:
    """A name for each check: the shortest that no other could have, else a numbered one."""
    possible = [_possible_names(pattern) for pattern in patterns]
    counts = Counter(name for names in possible for name in set(names))
    chosen: list[str] = []
    for names in possible:
        alone = [name for name in names if counts[name] == 1]
        numbered = (f"{names[-1]}_{number}" for number in itertools.count(2))
        wanted = itertools.chain(alone, names[-1:], numbered)
        chosen.append(next(one for one in wanted if one not in chosen))
    return chosen


def _possible_names(pattern: str) -> list[str]:
    """What a check may be called: the file without its suffix, with it, and with its folders."""
    parts = [part for part in PurePosixPath(pattern).parts if "{" not in part]
    last = inner_path(PurePosixPath(parts[-1] if parts else "results"))
    each = (last.stem, last.name, "_".join((*parts[:-1], last.name)))
    return [_NOT_IN_NAMES.sub("_", one).strip("._-") or "results" for one in each]


def run_line(command: str | None) -> str:
    """The line that says what makes the outputs, as a comment if nobody has said it."""
    return "# run: ./simulate --output out" if command is None else f"run: {quoted(command)}"


def quoted(text: str) -> str:
    """The text as a YAML scalar, in quotes only where it needs them."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return json.dumps(text)
