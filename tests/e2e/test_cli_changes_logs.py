"""`ciwrap changes` on what is looked for in logs and other texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.test_cli_changes import changes, edit
from git_repository import GitRepository

from ciwrap.cli.main import run

CONFIG = """\
checks:
  heat:
    format: log
    outputs: out.txt
    include: [rules.yaml]
    values:
      total: {match: "E = {total}", atol: 1e-6}
      first: {match: "F = {first}", take: first}
      late: {match: "L = {late}", section: {start: begin, end: end}}
      each: {match: "X = {each}", step: cycle}
    tables:
      rows: {header: "a b", iteration: a}
    steps:
      cycle: "cycle {iteration:int}"
    counts:
      warnings: "warning"
    require: [converged]
    forbid: [NaN, diverged]
  words:
    outputs: words.txt
    format: tokens
    options: {ignore: [times], ignore_lines: ["*host*"]}
  plain:
    outputs: words.txt
    formats: {"*.txt": {format: tokens, options: {ignore: [dates]}}}
"""
RULES = 'values: {shared: {match: "S = {shared}", atol: 1e-3}}\n'
LOG = """\
converged
E = 1
S = 4
F = 2
begin
L = 3
end
cycle 1
X = 5
warning
a b
1 2.5
2 3.5
"""


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    repository = GitRepository.make(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write()
        Path("out.txt").write_text(LOG)
        Path("words.txt").write_text("in 3 s on host a\nsum 4.5\n")
        assert run(["accept"]) == 0
        assert run(["check"]) == 0
        repository.commit("base", {})
    return folder


def write() -> None:
    Path("ciwrap.yaml").write_text(CONFIG)
    Path("rules.yaml").write_text(RULES)


@pytest.fixture(autouse=True)
def here(origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(origin)
    write()


# What is replaced by what; of which variable it is told, whether that is wider, and the words.
PLANTED = {
    "gone": ('      total: {match: "E = {total}", atol: 1e-6}\n', "", "total", True,
             "values: is no longer looked for"),
    "the last": ("take: first", "take: last", "first", False, "values: take: first -> last"),
    "one of all": ('"E = {total}",', '"E = {total}", take: last,', "total", True,
                   "values: take: all -> last"),
    "may be missing": ("atol: 1e-6", "atol: 1e-6, optional: true", "total", True,
                       "values: optional: false -> true"),
    "without its sign": ("atol: 1e-6", "atol: 1e-6, absolute: true", "total", True,
                         "values: absolute: false -> true"),
    "one of two": ("atol: 1e-6", "atol: 1e-6, duplicates: last", "total", True,
                   "values: duplicates: error -> last"),
    "another template": ("E = {total}", "E0 = {total}", "total", False,
                         "values: match: E = {total} -> E0 = {total}"),
    "in a section": ("take: first", "take: first, section: {start: begin}", "first", True,
                     "values: section: none -> start begin"),
    "in all of the log": (", section: {start: begin, end: end}", "", "late", False,
                          "values: section: start begin, end end -> none"),
    "without its step": (", step: cycle", "", "each", True, "values: step: cycle -> none"),
    "another step": ("cycle {iteration:int}", "turn {iteration:int}", "cycle", False,
                     "steps: match: cycle {iteration:int} -> turn {iteration:int}"),
    "rows without labels": (", iteration: a}", "}", "rows", True,
                            "tables: iteration: a -> none"),
    "a table gone": ('    tables:\n      rows: {header: "a b", iteration: a}\n', "", "rows", True,
                     "tables: is no longer looked for"),
    "a count gone": ('    counts:\n      warnings: "warning"\n', "", "warnings", True,
                     "counts: is no longer looked for"),
    "a value more": ("    tables:\n", '      more: "M = {more}"\n    tables:\n', "more", False,
                     "values: is newly looked for"),
    "not required": ("    require: [converged]\n", "", None, True,
                     "require: 'converged' is asked of the log no more"),
    "required": ("[converged]", "[converged, E]", None, False,
                 "require: 'E' is asked of the log now"),
    "not forbidden": ("[NaN, diverged]", "[NaN]", None, True,
                      "forbid: 'diverged' is forbidden in the log no more"),
    "forbidden": ("[NaN, diverged]", "[NaN, diverged, Inf]", None, False,
                  "forbid: 'Inf' is forbidden in the log now"),
    "more tokens ignored": ("ignore: [times]", "ignore: [times, paths]", None, True,
                            "options: ignore: times -> paths, times"),
    "other tokens ignored": ("ignore: [times]", "ignore: [paths]", None, True,
                             "options: ignore: times -> paths"),
    "fewer tokens ignored": ("ignore: [times]", "ignore: []", None, False,
                             "options: ignore: times -> none"),
    "more lines ignored": ('["*host*"]', '["*host*", "*sum*"]', None, True,
                           "options: ignore_lines: *host* -> *host*, *sum*"),
    "of some files": ("ignore: [dates]", "ignore: [dates, times]", None, True,
                      "formats: *.txt: options: ignore: dates -> dates, times"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_edits(name: str) -> None:
    old, new, variable, wider, text = PLANTED[name]
    edit((old, new))()
    # What a value's rule said of its bound goes with it.
    (one,) = [found for found in changes() if found["what"] != "bound"]
    assert (one["variable"], one["wider"], one["text"]) == (variable, wider, text)
    assert one["what"] == ("check" if variable is None else "variable")
    lines = Path("ciwrap.yaml").read_text().splitlines()
    # The line of what is told, or the check that said it.
    assert text.split(":")[0] in lines[one["line"] - 1] or lines[one["line"] - 1] == "  heat:"


def test_what_an_included_file_no_longer_says() -> None:
    Path("rules.yaml").write_text(RULES.replace("atol", "optional: true, atol"))
    (one,) = changes()
    assert (one["variable"], one["wider"]) == ("shared", True)
    Path("rules.yaml").write_text('patterns: {p: {match: "S = {p}"}}\n')
    assert [(one["variable"], one["wider"], one["text"]) for one in changes()] == [
        ("shared", True, "values: is no longer looked for"),
        ("shared", False, "atol=0.001 rtol=0 -> exact"),
    ]


def test_another_format_has_no_rules_any_more() -> None:
    Path("ciwrap.yaml").write_text("checks:\n  heat: {outputs: out.txt, format: tokens}\n")
    found = [one for one in changes() if one["check"] == "heat"]
    texts = [one["text"] for one in found if one["wider"]]
    assert "values: is no longer looked for" in texts
    assert "require: 'converged' is asked of the log no more" in texts
    assert "format: log -> tokens" in [one["text"] for one in found]


HARMLESS = {
    "defaults": ('"E = {total}",', '"E = {total}", take: all, duplicates: error, optional: false,'),
    "a longer form": ('warnings: "warning"', 'warnings: {match: "warning"}'),
    "a longer form of steps": ('"cycle {iteration:int}"',
                               '{match: "cycle {iteration:int}", covers: after}'),
    "order": ("[NaN, diverged]", "[diverged, NaN]"),
    "a comment": ("    require:", "    # absolute: true\n    require:"),
    "quotes": ("[converged]", "['converged']"),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_edits(name: str) -> None:
    edit(HARMLESS[name])()
    assert changes() == []


def test_the_order_of_rules_is_no_change() -> None:
    total = '      total: {match: "E = {total}", atol: 1e-6}\n'
    text = CONFIG.replace(total, "").replace("    tables:\n", f"{total}    tables:\n")
    assert text != CONFIG
    Path("ciwrap.yaml").write_text(text)
    assert changes() == []
