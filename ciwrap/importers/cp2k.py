"""CP2K's regression tests: TEST_FILES.toml in many folders, and the matchers that these name.

The matchers are Python; their file is parsed, and nothing of it runs.
"""

from __future__ import annotations

import ast
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from ciwrap.errors import UsageError
from ciwrap.importers.imported import (
    Imported,
    LeftOut,
    bound_of,
    free_name,
    is_path,
    read_text,
    template_of,
    yaml_text,
)

TESTS = "TEST_FILES.toml"
MATCHERS = "matchers.py"
SHARED = "ciwrap-values.yaml"
_HEAD = "Imported from CP2K's {name} by `ciwrap import cp2k`."
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
        result.files[SHARED] = yaml_text(_HEAD.format(name=MATCHERS), shared)
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
            result.left_out.append(LeftOut(what, "is only run: it compares nothing"))
            continue
        before = len(result.left_out)
        _add_test(name, specs, what, matchers, patterns, checks, result)
        if len(result.left_out) == before:
            result.carried_count += 1
    if checks:
        depth = len(here.relative_to(top).parts)
        for check in checks.values():
            check["include"] = "../" * depth + SHARED
            if "values" not in check:
                del check["include"]
        path = f"{where}/ciwrap.yaml" if where != "." else "ciwrap.yaml"
        result.files[path] = yaml_text(_HEAD.format(name=TESTS), {"checks": checks})


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
            result.left_out.append(LeftOut(what, reason))
            continue
        if matcher["kind"] == "GenericMatcher" and not _has_column(matcher):
            reason = f"has the matcher {matcher_name!r}, whose column is not a whole number"
            result.left_out.append(LeftOut(what, reason))
            continue
        file = given.get("file")
        if not is_path(f"{name}.out" if file is None else file):
            result.left_out.append(LeftOut(what, "names a file that is not a path in ciwrap.yaml"))
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
            result.left_out.append(LeftOut(what, "has a bound or a reference that is not a number"))
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
