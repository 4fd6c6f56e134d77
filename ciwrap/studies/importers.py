"""Imports tests of CP2K, testcode (Quantum ESPRESSO and others) and LAMMPS as checks.

CP2K: TEST_FILES.toml, with matchers in Python that are parsed and never run. testcode: jobconfig
and userconfig; for pw.x its labels are values of our own, what other labels mean only the test's
script knows. LAMMPS: a YAML file of tolerances by thermo column. Nothing here runs a script.
"""

from __future__ import annotations

import ast
import configparser
import math
import os
import re
from collections.abc import Container
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import yaml
from msgspec import Struct, field

from ciwrap.base.documents import DocumentHead
from ciwrap.base.errors import UsageError, WriteFailedError
from ciwrap.formats.log_rules import NAME
from ciwrap.golden.manifest import Count

_FIELD = re.compile(r"\{[^{}]*\}")
MOST_BYTES = 16 << 20


class NotImported(Struct, frozen=True):
    """A test, or a part of one, that was not carried over, and why."""

    what: str
    reason: str


class ImportDocument(DocumentHead, frozen=True):
    """What import made of somebody's tests. tests: how many there are; carried_over: whole."""

    kind: Literal["import"]
    source: str
    written: bool
    tests: Count
    carried_over: Count
    files: tuple[str, ...]
    not_carried_over: tuple[NotImported, ...]
    notes: tuple[str, ...]


class Imported(Struct):
    """files: by their path relative to the folder that they go to. test_count: tests that were
    found; carried_count: those of which everything was carried over, or all but what is in notes.
    """

    files: dict[str, str] = field(default_factory=dict)
    test_count: int = 0
    carried_count: int = 0
    left_out: list[NotImported] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, what: str, reason: str) -> None:
        self.left_out.append(NotImported(what, reason))

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason was given, the most frequent first."""
        counts: dict[str, int] = {}
        for one in self.left_out:
            counts[one.reason] = counts.get(one.reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: -pair[1]))

    def write(self, folder: Path) -> None:
        """Writes all files. Raises UsageError if one already exists, WriteFailedError."""
        for name in self.files:
            if (folder / name).exists():
                raise UsageError(
                    "already exists", file=folder / name, remedy="remove it, or give --output"
                )
        for name, text in self.files.items():
            path = folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise WriteFailedError(
                    f"could not be written: {error.strerror or error}", file=path
                ) from error


def yaml_text(head: str, document: dict[str, Any]) -> str:
    """A document under a comment."""
    body = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return f"{comment}{body}"


def read_text(path: Path) -> str:
    """The text of a file that somebody else wrote. Raises UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(data) > MOST_BYTES:
        raise UsageError("is larger than 16 MiB", file=path)
    return data.decode("utf-8", "replace")


def bound_of(text: Any) -> float | None:
    """A tolerance; None for what is none. YAML reads `1e-4` as text."""
    if isinstance(text, bool):
        return None
    try:
        bound = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return bound if math.isfinite(bound) and bound >= 0 else None


def is_path(text: Any) -> bool:
    """Whether `outputs` takes it as it is: what stands in braces there is a field of a template."""
    return isinstance(text, str) and text != "" and not _FIELD.search(text)


def free_name(name: str, used: Container[str]) -> str:
    """The name, numbered where it is used already."""
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}_{number}"
    return free


def template_of(text: str) -> str:
    """A text as a template that means it literally."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    return f"{{*}}{escaped}" if escaped.startswith("^") else escaped


TESTS = "TEST_FILES.toml"
MATCHERS = "matchers.py"
SHARED = "ciwrap-values.yaml"
_CP2K_HEAD = "Imported from CP2K's {name} by `ciwrap import cp2k`."
# What a pattern of theirs holds that is no regular expression to them, but to us neither.
_SPECIAL = set(".^$\\")


def import_cp2k(folder: Path) -> Imported:
    """The tests below a folder that has CP2K's matchers.py in it, or above it.

    Raises UsageError if there are none.
    """
    root = _root_of(folder)
    matchers = _matchers(root / MATCHERS)
    result = Imported()
    patterns: dict[str, Any] = {}
    for here, folders, names in os.walk(folder):
        folders.sort()
        if TESTS in names:
            _add_folder(Path(here), folder, matchers, patterns, result)
    if not result.test_count:
        raise UsageError(f"there is no {TESTS} here or below", file=folder)
    if patterns:
        shared = {"patterns": dict(sorted(patterns.items()))}
        result.files[SHARED] = yaml_text(_CP2K_HEAD.format(name=MATCHERS), shared)
    return result


def _root_of(folder: Path) -> Path:
    for one in (folder.absolute(), *folder.absolute().parents):
        if (one / MATCHERS).is_file():
            return one
    raise UsageError(
        f"there is no {MATCHERS} here or above", file=folder, remedy="give CP2K's folder 'tests'"
    )


def _matchers(path: Path) -> dict[str, dict[str, Any]]:
    """What is registered, by name: the class and its arguments."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"is not Python: {error}", file=path) from None
    found: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        target, call = node.targets[0], node.value
        if not (isinstance(target, ast.Subscript) and isinstance(call.func, ast.Name)):
            continue
        try:
            name = ast.literal_eval(target.slice)
            values = [ast.literal_eval(one) for one in call.args]
            named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        except (ValueError, TypeError):
            continue
        order: tuple[str, ...] = ("pattern", "col", "regex", "abs_value", "first")
        if call.func.id == "TextPresenceMatcher":
            order = ("text",)
        elif call.func.id != "GenericMatcher":
            order = ()
        given = {**dict(zip(order, values, strict=False)), **named}
        found[str(name)] = {"kind": call.func.id, **given}
    return found


def _pattern(matcher: dict[str, Any]) -> dict[str, Any]:
    """A matcher as a value of ours."""
    rule: dict[str, Any] = {}
    text = str(matcher.get("pattern", ""))
    if matcher.get("regex"):
        rule["regex"] = text
        if not _has_group(text):
            rule["column"] = int(matcher["col"])
    elif _SPECIAL & set(text.replace(". ", "")) - {"."}:
        rule["regex"] = "".join(f"\\{one}" if one in "[]()|+*?" else one for one in text)
        rule["column"] = int(matcher["col"])
    else:
        rule["line"] = template_of(text)
        rule["column"] = int(matcher["col"])
    rule["take"] = "first" if matcher.get("first") else "last"
    if matcher.get("abs_value"):
        rule["absolute"] = True
    return rule


def _has_column(matcher: dict[str, Any]) -> bool:
    """Whether it says which word of the line counts, where its groups do not."""
    col = matcher.get("col")
    is_grouped = bool(matcher.get("regex")) and _has_group(str(matcher.get("pattern", "")))
    return is_grouped or (isinstance(col, int) and not isinstance(col, bool))


def _has_group(text: str) -> bool:
    plain = text.replace("\\\\", "").replace("\\(", "")
    return any(char == "(" and not plain.startswith("(?", at) for at, char in enumerate(plain))


def _add_folder(
    here: Path,
    top: Path,
    matchers: dict[str, dict[str, Any]],
    patterns: dict[str, Any],
    result: Imported,
) -> None:
    """The tests of one folder as a ciwrap.yaml."""
    where = here.relative_to(top).as_posix()
    checks: dict[str, Any] = {}
    for name, specs in _tests(here / TESTS).items():
        result.test_count += 1
        what = f"{where}/{name}"
        if not isinstance(specs, list) or not specs:
            result.leave_out(what, "is only run: it compares nothing")
            continue
        before = len(result.left_out)
        _add_test(name, specs, what, matchers, patterns, checks, result)
        if len(result.left_out) == before:
            result.carried_count += 1
    if checks:
        depth = len(here.relative_to(top).parts)
        for check in checks.values():
            if "values" in check:
                check["include"] = "../" * depth + SHARED
        path = f"{where}/ciwrap.yaml" if where != "." else "ciwrap.yaml"
        result.files[path] = yaml_text(_CP2K_HEAD.format(name=TESTS), {"checks": checks})


def _tests(path: Path) -> dict[str, Any]:
    try:
        tomllib = import_module("tomllib")
    except ModuleNotFoundError:
        raise UsageError("TOML is read with Python 3.11 or later", file=path) from None
    try:
        found: dict[str, Any] = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not TOML: {error}", file=path) from None
    return found


def _add_test(
    name: str,
    specs: list[Any],
    what: str,
    matchers: dict[str, dict[str, Any]],
    patterns: dict[str, Any],
    checks: dict[str, Any],
    result: Imported,
) -> None:
    for spec in specs:
        given = spec if isinstance(spec, dict) else {}
        matcher_name = str(given.get("matcher"))
        matcher = matchers.get(matcher_name)
        if matcher is None or matcher["kind"] not in ("GenericMatcher", "TextPresenceMatcher"):
            reason = f"has the matcher {matcher_name!r}, which matchers.py does not define plainly"
            result.leave_out(what, reason)
            continue
        if matcher["kind"] == "GenericMatcher" and not _has_column(matcher):
            reason = f"has the matcher {matcher_name!r}, whose column is not a whole number"
            result.leave_out(what, reason)
            continue
        file = given.get("file")
        if not is_path(f"{name}.out" if file is None else file):
            result.leave_out(what, "names a file that is not a path in ciwrap.yaml")
            continue
        stem = name.removesuffix(".inp")
        check = checks.setdefault(
            stem if file is None else f"{stem}:{file}",
            {"format": "log", "outputs": f"{name}.out" if file is None else str(file)},
        )
        if matcher["kind"] == "TextPresenceMatcher":
            text = template_of(str(matcher.get("text", "")))
            group = check.setdefault("counts", {})
            group[_free_name(matcher_name, check)] = {"match": text, "range": [1, None]}
            continue
        rule = _expected(given)
        if rule is None:
            result.leave_out(what, "has a bound or a reference that is not a number")
            continue
        patterns.setdefault(matcher_name, _pattern(matcher))
        group = check.setdefault("values", {})
        group[_free_name(matcher_name, check)] = {"like": matcher_name, **rule}


def _expected(spec: dict[str, Any]) -> dict[str, Any] | None:
    """Reference and bound; CP2K's tolerance is relative, unless the reference is 0."""
    tol, ref = spec.get("tol"), spec.get("ref")
    bound = bound_of(tol)
    is_number = isinstance(ref, (int, float)) and not isinstance(ref, bool)
    if bound is None or isinstance(tol, str) or not is_number:
        return None
    return {"expect": ref, ("rtol" if ref else "atol"): bound}


def _free_name(name: str, check: dict[str, Any]) -> str:
    """The matcher's name, numbered where the test has it several times."""
    return free_name(name, {*check.get("values", {}), *check.get("counts", {})})


JOBS = "jobconfig"
USERS = ("userconfig", "userconfig.tmp")
_TESTCODE_HEAD = "Imported from testcode's {name} by `ciwrap import testcode`."
# What QE's extract-pw.sh prints under a label, read from the program's own lines.
PW_LABELS: dict[str, dict[str, Any]] = {
    "e1": {"match": "^! total energy = {e1} {unit:text}", "take": "last"},
    "n1": {"match": "convergence has been achieved in {n1:int} iterations", "take": "last"},
    "f1": {"match": "Total force = {f1} {*}", "take": "first"},
    "p1": {"match": "P= {p1}", "take": "last"},
    "ef1": {"match": "^the Fermi energy is {ef1} {unit:text}"},
    "eh1": {"match": "highest occupied{*}level{*}(ev): {eh1}", "take": "last"},
    "ehl1": {"match": "highest occupied, lowest unoccupied level (ev): {*} {ehl1}", "take": "last"},
    "band": {"match": "bands (ev)", "lines": {"skip": 1, "until": "blank"}},
    "tf1": {"match": "P = {tf1}", "take": "first"},
    "vol": {"match": "new unit-cell volume = {vol} {*}", "take": "last"},
}
_NO_SCRIPT = "has the label {label!r}, and neither extract_cmd nor extract_program prints it"
_BY_FUNCTION = "has the label {label!r}, which a Python function extracts ({function})"
# What a script printed, beside the output that it read.
EXTRACTED = "extracted.out.*"
_BY_SCRIPT = (
    "labels that only a script knows are read from what it printed, with checks called"
    " NAME-extracted: `{script} test.out.X > extracted.out.X`, best as a part of `run`, and the"
    " same of each benchmark"
)


def import_testcode(folder: Path) -> Imported:
    """The jobs below a folder with jobconfig and userconfig. Raises UsageError."""
    users = next((folder / name for name in USERS if (folder / name).is_file()), None)
    if not (folder / JOBS).is_file() or users is None:
        raise UsageError(f"there is no {JOBS} with a userconfig here", file=folder)
    jobs, programs = _sections(folder / JOBS), _sections(users)
    result = Imported()
    for name in jobs.sections():
        if name.lower() in {"categories", "user"}:
            continue
        program = jobs.get(name, "program", fallback="")
        for where in _folders(folder, name):
            result.test_count += 1
            if where is None:
                result.leave_out(name, "lies outside the folder")
            else:
                _add_job(where, folder, program, programs, result)
    if not result.test_count:
        raise UsageError("names no job", file=folder / JOBS)
    optional = {name: {**rule, "optional": True} for name, rule in PW_LABELS.items()}
    if result.files:
        head = _TESTCODE_HEAD.format(name=users.name)
        result.files[SHARED] = yaml_text(head, {"patterns": optional})
    result.notes.append(
        "testcode's benchmarks are the other side: `ciwrap compare BENCHMARK OUTPUT --check NAME`"
    )
    return result


def _folders(top: Path, name: str) -> list[Path] | list[None]:
    """The folders of a section below the top one; None for one that is not below it."""
    inside = Path(os.path.normpath(name))
    if inside.is_absolute() or os.pardir in inside.parts:
        return [None]
    return sorted(top.glob(str(inside))) or [top / inside] if inside.parts else [top]


def _sections(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(read_text(path))
    except configparser.Error as error:
        raise UsageError(f"cannot be read: {' '.join(str(error).split())}", file=path) from None
    return parser


def _add_job(
    where: Path,
    top: Path,
    program: str,
    programs: configparser.RawConfigParser,
    result: Imported,
) -> None:
    name = where.relative_to(top).as_posix()
    if not where.is_dir():
        result.leave_out(name, "is not a folder")
        return
    if not programs.has_section(program):
        result.leave_out(name, f"names the program {program!r}, which does not exist")
        return
    script = _script(programs, program)
    function = programs.get(program, "extract_fn", fallback="")
    values: dict[str, Any] = {}
    printed: dict[str, Any] = {}
    before = len(result.left_out)
    tolerances = _tolerances(programs, program, result)
    if not tolerances and len(result.left_out) == before:
        result.leave_out(name, "has no tolerance, so nothing of it is compared")
    for absolute, relative, label, strict in tolerances:
        is_known = script == "extract-pw.sh" and label in PW_LABELS
        if not is_known and (function or not script):
            reason = _BY_FUNCTION if function else _NO_SCRIPT
            reason = reason.format(label=label, function=function)
            result.leave_out(f"{name} ({label})", reason)
            continue
        bound = {"atol": absolute, "rtol": relative}
        rule: dict[str, Any] = {key: one for key, one in bound.items() if one is not None}
        if len(rule) == 2:
            rule["combine"] = "both" if strict else "either"
        if is_known:
            values[label] = {"like": label, **rule}
        else:
            # It stands alone in a line of what a script printed, its numbers below.
            template = f"^{template_of(label).removeprefix('{*}')}{{$}}"
            below = {"lines": {"until": "words"}, "optional": True}
            printed[label] = {"match": template, **below, **rule}
    checks: dict[str, Any] = {}
    own = Path(name).name or top.resolve().name
    if values:
        include = "../" * len(Path(name).parts) + SHARED
        checks[own] = {"format": "log", "outputs": "test.out.*", "include": include}
        checks[own]["values"] = values
    if printed:
        checks[f"{own}-extracted"] = {"format": "log", "outputs": EXTRACTED, "values": printed}
        note = _BY_SCRIPT.format(script=script)
        result.notes += [] if note in result.notes else [note]
    if checks and f"{name}/ciwrap.yaml" in result.files:
        result.leave_out(name, "is named by two sections, of which the first counts")
    elif checks:
        document = yaml_text(_TESTCODE_HEAD.format(name=JOBS), {"checks": checks})
        result.files[f"{name}/ciwrap.yaml"] = document
    if len(result.left_out) == before:
        result.carried_count += 1


def _script(programs: configparser.RawConfigParser, program: str) -> str:
    """The name of what prints labels and numbers, without its folder; "" if there is none."""
    for key in ("extract_program", "extract_cmd"):
        words = programs.get(program, key, fallback="").split()
        if words:
            return Path(words[0]).name
    return ""


def _tolerances(
    programs: configparser.RawConfigParser, program: str, result: Imported
) -> list[tuple[float | None, float | None, str, bool]]:
    """(absolute, relative, label, whether both have to hold) of a program."""
    text = programs.get(program, "tolerance", fallback="()")
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, (tuple, list)):
        result.leave_out(f"[{program}]", "has a tolerance that is not a plain tuple")
        return []
    if found and not isinstance(found[0], (tuple, list)):
        found = (found,)
    kept: list[tuple[float | None, float | None, str, bool]] = []
    for one in found:
        reason = _why_none(one)
        if reason is not None:
            result.leave_out(f"[{program}]", reason)
            continue
        absolute, relative = (None if n is None else bound_of(n) for n in one[:2])
        kept.append((absolute, relative, str(one[2]), bool((*one, True)[3])))
    return kept


def _why_none(one: Any) -> str | None:
    """Why a tolerance says nothing; None if it does."""
    if not isinstance(one, (tuple, list)) or len(one) < 3:
        return "has a tolerance without a label"
    if any(number is not None and bound_of(number) is None for number in one[:2]):
        return f"has a tolerance that is not a bound, of the label {str(one[2])!r}"
    if not NAME.fullmatch(str(one[2])):
        return f"has the label {str(one[2])!r}, which is not a value name"
    return None


_LAMMPS_HEAD = "Imported from LAMMPS's {name} by `ciwrap import lammps`."
_NUGGET = "nugget"


def import_lammps(path: Path) -> Imported:
    """The tolerances of a configuration as checks of logs. Raises UsageError."""
    try:
        found = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"is not YAML: {' '.join(str(error).split())}", file=path) from None
    if not isinstance(found, dict) or not isinstance(found.get("tolerance"), dict):
        raise UsageError("holds no 'tolerance'", file=path)
    result = Imported(test_count=1)
    checks = {"logs": _check("log.*", found["tolerance"], "tolerance", result)}
    for name, tolerances in _mapping(found, "overrides", result).items():
        result.test_count += 1
        stem = str(name).removeprefix("in.")
        if not isinstance(tolerances, dict):
            result.leave_out(f"overrides.{name}", "is not a mapping of columns")
        elif not is_path(stem):
            reason = "has a name that reads as a template"
            result.leave_out(f"overrides.{name}", reason)
        else:
            # What is not overridden holds as for all.
            own = {**found["tolerance"], **tolerances}
            check = _check(f"log.*{stem}*", own, f"overrides.{name}", result)
            checks[free_name(stem, checks)] = check
    for name in _names(found, "skip", result):
        result.test_count += 1
        result.leave_out(str(name), "is skipped there")
    result.notes.append(
        "LAMMPS's runner compares the last step of each run; these checks compare every row"
    )
    nugget = bound_of(found.get(_NUGGET, 1.0))
    if nugget is None:
        result.leave_out(_NUGGET, "is not a number; rtol is carried over without it")
    if nugget:
        result.notes.append(
            f"a relative tolerance there is of |golden| + {nugget:g}; it was carried over as"
            " rtol, which is stricter"
        )
    result.files["ciwrap.yaml"] = yaml_text(_LAMMPS_HEAD.format(name=path.name), {"checks": checks})
    return result


def _mapping(found: dict[Any, Any], key: str, result: Imported) -> dict[Any, Any]:
    said = found.get(key)
    if said is not None and not isinstance(said, dict):
        result.leave_out(key, "is not a mapping of tests")
    return said if isinstance(said, dict) else {}


def _names(found: dict[Any, Any], key: str, result: Imported) -> list[Any]:
    """A list of tests; one may stand alone."""
    said = [] if found.get(key) is None else found[key]
    if not isinstance(said, (str, list)):
        result.leave_out(key, "is not a list of tests")
        return []
    return [said] if isinstance(said, str) else said


def _check(
    outputs: str, tolerances: dict[Any, Any], where: str, result: Imported
) -> dict[str, Any]:
    variables = {}
    before = len(result.left_out)
    for column, said in tolerances.items():
        bounds = said if isinstance(said, dict) else {}
        parts = {}
        for theirs, ours in (("abs", "atol"), ("rel", "rtol")):
            number = bound_of(bounds.get(theirs))
            if number is None:
                reason = f"gives no number for {theirs!r}"
                result.leave_out(f"{where}.{column}", reason)
            else:
                parts[ours] = number
        if parts:
            # Both have to hold there.
            both = {"combine": "both"} if len(parts) == 2 else {}
            variables[f"thermo.{column}"] = {**parts, **both}
    result.carried_count += len(result.left_out) == before
    return {"format": "log", "use": "lammps", "outputs": outputs, "variables": variables}
