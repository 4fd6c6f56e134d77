"""Dependencies point one way; what a part may import is written here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "ciwrap"
MOST_LINES = 500

# Small, and with nothing of ours behind them but errors: any part may use them.
TOOLS = {
    *("errors", "core_errors", "closing", "archive", "documents", "hidden", "patterns", "progress"),
    *("files", "processes", "work_folder"),
}
# What all records are made of, and NumPy, not loaded yet: all may use them.
ANYWHERE = {"structs", "late"}
MAY_IMPORT = {
    "structs": set(),
    "late": set(),
    "errors": set(),
    "closing": set(),
    "core_errors": {"errors"},
    "core_loading": set(),
    "archive": {"errors"},
    "documents": set(),
    "files": {"errors"},
    "work_folder": {"errors", "files"},
    "processes": set(),
    "patterns": {"errors"},
    "progress": set(),
    "hidden": set(),
    "interrupts": set(),
    "repository": {"errors", "interrupts"},
    "worktrees": {"errors", "processes", "repository", "work_folder"},
    "snapshot": {*TOOLS, "model", "golden", "repository", "running", "_core"},
    "bisect": {*TOOLS, "model", "config", "report", "repository", "worktrees", "interrupts"},
    "details": set(),
    "timeline": {"details"},
    "model": {"errors", "details", "timeline"},
    "logs": {"model"},
    "importers": {"errors", "logs"},
    "config": {*TOOLS, "model", "logs"},
    "arrays": {*TOOLS, "_core"},
    "trees": {*TOOLS, "model", "arrays", "_core"},
    "readers": {*TOOLS, "model", "arrays", "logs"},
    "golden": {*TOOLS, "details", "model", "arrays", "trees", "_core"},
    "report": {*TOOLS, "details", "model", "timeline", "snapshot"},
    "catalog": {*TOOLS, "model", "arrays", "readers", "_core"},
    "captures": {*TOOLS, "model", "arrays", "trees", "readers", "catalog", "_core"},
    "compare": {
        *TOOLS,
        *("details", "timeline", "model", "config", "arrays", "trees", "readers"),
        *("catalog", "captures", "golden", "snapshot", "interrupts", "_core"),
    },
    "api": {*TOOLS, "model", "arrays", "trees", "readers", "golden", "compare", "_core"},
    "pytest_plugin": {
        *TOOLS,
        *(
            "model",
            "config",
            "arrays",
            "trees",
            "readers",
            "catalog",
            "golden",
            "compare",
            "report",
            "statistics",
            "timing",
            "review",
            "repeat",
        ),
        *("snapshot", "statistics", "timing"),
    },
    "running": {*TOOLS, "model", "config", "compare", "interrupts", "snapshot"},
    "statistics": {"errors"},
    "repeat": {
        *TOOLS,
        *("model", "config", "arrays", "trees", "readers", "catalog", "captures", "golden"),
        *("compare", "snapshot", "report", "running", "statistics", "interrupts", "_core"),
    },
    "timing": {
        *TOOLS,
        *("model", "config", "snapshot", "report", "repository", "running", "statistics"),
        "worktrees",
    },
    "trend": {*TOOLS, "details", "model", "golden", "report", "snapshot", "statistics", "timing"},
    "ensemble": {
        *TOOLS,
        *("details", "model", "config", "arrays", "catalog", "golden", "compare", "report"),
        "statistics",
    },
    "variability": {*TOOLS, "details", "model", "readers", "report", "statistics", "timing"},
    "selftest": {
        *TOOLS,
        *("model", "config", "arrays", "trees", "readers", "catalog", "golden", "compare"),
        *("review", "interrupts"),
    },
    "testing": {"errors", "arrays", "readers"},
    "demo": {*TOOLS, "model", "config", "trees", "golden", "compare", "report", "_demo"},
    "review": {
        *TOOLS,
        *("details", "model", "config", "arrays", "trees", "readers", "catalog", "captures"),
        *("golden", "compare", "report", "repository", "snapshot", "_core"),
    },
    "changes": {
        *TOOLS,
        *("details", "model", "config", "arrays", "trees", "readers", "golden", "report"),
        *("repository", "ensemble", "statistics"),
    },
    "action": {*TOOLS, "model", "config", "report", "review", "changes", "repository"},
    "cli": {
        *TOOLS,
        *("model", "config", "trees", "readers", "catalog", "captures"),
        *("golden", "details", "report", "compare", "review"),
        *("running", "statistics", "repeat", "timing", "bisect", "trend"),
        *("ensemble", "importers", "logs", "selftest", "variability", "changes"),
        *("interrupts", "repository"),
        *("demo", "snapshot", "native", "online", "_core"),
    },
    "native": {"closing", "errors", "model", "config"},
    "online": {
        *TOOLS,
        *("model", "captures", "golden", "catalog", "compare", "report", "trees", "statistics"),
        "_core",
    },
    "__init__": {"errors", "model", "api", "core_loading", "native"},
    "__main__": {"cli"},
}
# Libraries that only some parts may load, so that the others stay quick and plain.
ONLY_IN = {
    "click": {"cli"},
    "jinja2": {"report"},
    # Elsewhere records are made of `ciwrap.structs`: a dataclass takes 0.5 to 4 ms to make.
    "dataclasses": {"arrays", "action"},
    "msgspec": {
        *("structs", "details", "timeline", "model"),
        *("catalog", "captures", "documents", "golden", "compare", "report", "action", "review"),
        *("selftest", "variability", "changes"),
        *("cli", "repeat", "timing", "bisect", "trend", "ensemble", "snapshot", "online"),
    },
    "pytest": {"testing", "pytest_plugin"},
    "hypothesis": {"testing"},
    "scipy": {"statistics"},
}

SOURCES = sorted(PACKAGE.rglob("*.py"))


def part_of(source: Path) -> str:
    return source.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(source: Path) -> set[str]:
    """Dotted names of all that a file imports, within functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = str(node.module)
            found |= (
                {f"{module}.{alias.name}" for alias in node.names}
                if module == "ciwrap"
                else {module}
            )
    return found


def may_import(part: str, name: str) -> bool:
    first, _, rest = name.partition(".")
    if first == "ciwrap" and rest:
        return rest.split(".")[0] in {part, *ANYWHERE, *MAY_IMPORT[part]}
    return part in ONLY_IN.get(first, {part})


def test_imports_point_one_way() -> None:
    wrong = [
        f"{source.relative_to(PACKAGE)} imports {name}"
        for source in SOURCES
        for name in sorted(imports_of(source))
        if not may_import(part_of(source), name)
    ]
    assert wrong == []


# What judges variables and checks of files, and what it is not to know of: that is handed to it.
JUDGING = (
    *("check", "judge", "findings", "tally", "work", "law", "fit", "parts", "elements", "pairing"),
    *("expected", "misspelt", "golden_side", "circle", "combined", "texts", "series"),
)
EXPLAINING = (
    *("explain", "explaining", "details", "pictures", "maps", "views", "planes", "hints"),
    *("across_ranks", "over_checkpoints", "one_bound", "one_rank", "new_values"),
)


@pytest.mark.parametrize("name", JUDGING)
def test_judging_knows_neither_explanations_nor_recorded_runs(name: str) -> None:
    unknown = {*EXPLAINING, "recorded", "ensemble_runs", "histories", "comparer"}
    found = imports_of(PACKAGE / "compare" / f"{name}.py")
    assert not found & {f"ciwrap.compare.{one}" for one in unknown}
    assert not any(one.startswith(("ciwrap.compare.explain.", "ciwrap.ensemble")) for one in found)


def test_every_part_has_its_rule() -> None:
    assert {part_of(source) for source in SOURCES} <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "part",
    [
        "captures",
        "catalog",
        "compare",
        "config",
        "golden",
        "readers",
        "repeat",
        "report",
        "statistics",
    ],
)
def test_libraries_print_nothing(part: str) -> None:
    for source in (PACKAGE / part).rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", source


def test_files_stay_readable() -> None:
    long = {
        str(source.relative_to(PACKAGE)): count
        for source in SOURCES
        if (count := len(source.read_text(encoding="utf-8").splitlines())) > MOST_LINES
    }
    assert long == {}
