"""testcode's tests (Quantum ESPRESSO and others): jobconfig, userconfig, extraction by scripts.

What a script extracts is a number under a label. For pw.x these labels are values of our own, read
from the program's output. What other labels mean only their script knows: their rules read what it
printed. Nothing here runs it, nor does any rule: the user's own `run` command does.
"""

from __future__ import annotations

import ast
import configparser
import os
from pathlib import Path
from typing import Any

from ciwrap.errors import UsageError
from ciwrap.importers.imported import Imported, LeftOut, bound_of, read_text, template_of, yaml_text
from ciwrap.logs.rules import NAME

JOBS = "jobconfig"
USERS = ("userconfig", "userconfig.tmp")
SHARED = "ciwrap-values.yaml"
_HEAD = "Imported from testcode's {name} by `ciwrap import testcode`."
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
    categories = {"categories", "user"}
    for name in jobs.sections():
        if name.lower() in categories:
            continue
        program = jobs.get(name, "program", fallback="")
        for where in _folders(folder, name):
            result.test_count += 1
            if where is None:
                result.left_out.append(LeftOut(name, "lies outside the folder"))
            else:
                _add_job(where, folder, program, programs, result)
    if not result.test_count:
        raise UsageError("names no job", file=folder / JOBS)
    optional = {name: {**rule, "optional": True} for name, rule in PW_LABELS.items()}
    if result.files:
        head = _HEAD.format(name=users.name)
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
        result.left_out.append(LeftOut(name, "is not a folder"))
        return
    if not programs.has_section(program):
        result.left_out.append(
            LeftOut(name, f"names the program {program!r}, which does not exist")
        )
        return
    script = _script(programs, program)
    function = programs.get(program, "extract_fn", fallback="")
    values: dict[str, Any] = {}
    printed: dict[str, Any] = {}
    before = len(result.left_out)
    tolerances = _tolerances(programs, program, result)
    if not tolerances and len(result.left_out) == before:
        result.left_out.append(LeftOut(name, "has no tolerance, so nothing of it is compared"))
    for absolute, relative, label, strict in tolerances:
        is_known = script == "extract-pw.sh" and label in PW_LABELS
        if not is_known and (function or not script):
            reason = _BY_FUNCTION if function else _NO_SCRIPT
            reason = reason.format(label=label, function=function)
            result.left_out.append(LeftOut(f"{name} ({label})", reason))
            continue
        bound = {"atol": absolute, "rtol": relative}
        rule: dict[str, Any] = {key: one for key, one in bound.items() if one is not None}
        if len(rule) == 2:
            rule["combine"] = "both" if strict else "either"
        if is_known:
            values[label] = {"like": label, **rule}
        else:
            printed[label] = {**_printed(label), **rule}
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
        result.left_out.append(LeftOut(name, "is named by two sections, of which the first counts"))
    elif checks:
        document = yaml_text(_HEAD.format(name=JOBS), {"checks": checks})
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


def _printed(label: str) -> dict[str, Any]:
    """Where a label stands in what a script printed: alone in a line, its numbers below."""
    template = f"^{template_of(label).removeprefix('{*}')}{{$}}"
    return {"match": template, "lines": {"until": "words"}, "optional": True}


def _tolerances(
    programs: configparser.RawConfigParser, program: str, result: Imported
) -> list[tuple[float | None, float | None, str, bool]]:
    """(absolute, relative, label, whether both have to hold) of a program."""
    text = programs.get(program, "tolerance", fallback="()")
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        result.left_out.append(LeftOut(f"[{program}]", "has a tolerance that is not a plain tuple"))
        return []
    if not isinstance(found, (tuple, list)):
        result.left_out.append(LeftOut(f"[{program}]", "has a tolerance that is not a plain tuple"))
        return []
    if found and not isinstance(found[0], (tuple, list)):
        found = (found,)
    kept: list[tuple[float | None, float | None, str, bool]] = []
    for one in found:
        reason = _why_none(one)
        if reason is not None:
            result.left_out.append(LeftOut(f"[{program}]", reason))
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
