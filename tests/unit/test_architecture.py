"""The rooms of the package stand in one order, and imports point one way along it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[2] / "ciwrap"
# Each room may import those before it, and the compiled core.
ROOMS = (
    *("base", "model", "arrays", "formats", "golden", "snapshot", "project", "check", "explain"),
    *("statistics", "report", "runs", "recording", "review", "studies"),
    *("testing", "api", "cli", "pytest_plugin", "action", "__main__", "__init__"),
)
# Nobody imports these.
ENDS = {"testing", "cli", "pytest_plugin", "action", "__main__"}
AGAINST_THE_ORDER: dict[str, set[str]] = {
    "__main__": {"cli"},
}
# Libraries that only some rooms may load, so that the others stay quick and plain.
ONLY_IN = {
    "click": {"cli"},
    "jinja2": {"report"},
    "pytest": {"testing", "pytest_plugin"},
    "hypothesis": {"testing"},
    "scipy": {"statistics"},
}
PRINTS = {"cli", "pytest_plugin", "action", "testing"}
MOST_LINES = 1200
MOST_LINES_OF_A_FUNCTION = 80

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room_of(source: Path) -> str:
    return source.relative_to(PACKAGE).with_suffix("").parts[0]


def tree_of(source: Path) -> ast.Module:
    return ast.parse(source.read_text(encoding="utf-8"))


def imports_of(source: Path) -> set[str]:
    """Dotted names of all that a file imports, within functions too."""
    found: set[str] = set()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: imports are absolute"
            module = str(node.module)
            found |= (
                {f"{module}.{alias.name}" for alias in node.names}
                if module == "ciwrap"
                else {module}
            )
    return found


def faults(source: Path) -> Iterator[str]:
    room = room_of(source)
    for name in sorted(imports_of(source)):
        first, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if first in ONLY_IN and room not in ONLY_IN[first]:
            yield f"{source.relative_to(PACKAGE)} imports {first}"
        if first != "ciwrap" or other in {"", room, "__version__", "_core", "_demo"}:
            continue
        allowed = other in ROOMS and ROOMS.index(other) < ROOMS.index(room) and other not in ENDS
        if not allowed and other not in AGAINST_THE_ORDER.get(room, set()):
            yield f"{source.relative_to(PACKAGE)} imports {name}"


def test_imports_point_one_way() -> None:
    assert [fault for source in SOURCES for fault in faults(source)] == []


def test_every_room_has_its_place() -> None:
    assert {room_of(source) for source in SOURCES} == set(ROOMS)


def test_every_exception_is_needed() -> None:
    for room, others in AGAINST_THE_ORDER.items():
        imported = {
            name.split(".")[1]
            for source in SOURCES
            if room_of(source) == room
            for name in imports_of(source)
            if name.startswith("ciwrap.")
        }
        assert others <= imported, room


def test_every_room_says_what_it_is() -> None:
    for source in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(tree_of(source)), source


def test_libraries_print_nothing() -> None:
    """But for warnings on stderr."""
    printing = {
        str(source.relative_to(PACKAGE))
        for source in SOURCES
        if room_of(source) not in PRINTS
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not any(keyword.arg == "file" for keyword in node.keywords)
    }
    assert printing == set()


def test_files_and_functions_stay_readable() -> None:
    for source in SOURCES:
        assert len(source.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, source
        for node in ast.walk(tree_of(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= MOST_LINES_OF_A_FUNCTION, f"{source}: {node.name}"


def test_most_imports_stand_at_the_top() -> None:
    """Within functions stand those that only few calls need: a command, an explanation, a page, the
    words of what differs.
    """
    inside = {
        f"{source.relative_to(PACKAGE)}:{found.lineno}"
        for source in SOURCES
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.FunctionDef)
        for found in ast.walk(node)
        if isinstance(found, ast.ImportFrom) and str(found.module).startswith("ciwrap")
    }
    assert len(inside) < 115
