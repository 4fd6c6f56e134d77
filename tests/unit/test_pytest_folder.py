"""Where goldens of tests lie, as `ciwrap changes` reads it, is where pytest itself reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import NO_OTHER_PLUGINS

from ciwrap.studies.changes.pytest_files import file_that_counts
from ciwrap.studies.changes.state import WorkingTree

if TYPE_CHECKING:
    from pathlib import Path

SAYS = "[pytest]\nciwrap_golden_dir = kept\n"
TOML = '[tool.pytest.ini_options]\nciwrap_golden_dir = "kept"\n'
CASES: dict[str, tuple[dict[str, str], str | None]] = {
    "ini": ({"pytest.ini": SAYS}, "kept"),
    "a comment": ({"pytest.ini": "[pytest]\n# ciwrap_golden_dir = kept\n"}, None),
    "a file without a word goes before": ({"pytest.ini": "", "pyproject.toml": TOML}, None),
    "a hidden one, too": ({".pytest.ini": "[pytest]\n", "pyproject.toml": TOML}, None),
    "a file that is not of pytest": (
        {"pyproject.toml": "[project]\nname = 'a'\n", "tox.ini": SAYS},
        "kept",
    ),
    "tox.ini without its section": ({"tox.ini": "[tox]\n", "setup.cfg": "[tool:pytest]\n"}, None),
    "another section": ({"tox.ini": "[other]\nciwrap_golden_dir = no\n" + SAYS}, "kept"),
    "toml": ({"pyproject.toml": TOML}, "kept"),
    "toml, indented": ({"pyproject.toml": TOML.replace("ciwrap", "  ciwrap")}, "kept"),
    "toml, quoted": (
        {"pyproject.toml": TOML.replace("ciwrap_golden_dir", '"ciwrap_golden_dir"')},
        "kept",
    ),
    "toml, dotted": (
        {"pyproject.toml": 'tool.pytest.ini_options.ciwrap_golden_dir = "kept"\n'},
        "kept",
    ),
    "toml, in a table": (
        {"pyproject.toml": "[tool.pytest]\nini_options = {ciwrap_golden_dir = 'kept'}\n"},
        "kept",
    ),
    "toml, a comment": (
        {"pyproject.toml": '[tool.pytest.ini_options]\n# ciwrap_golden_dir = "kept"\n'},
        None,
    ),
    "a decoy in another section": (
        {"pytest.ini": "[other]\nciwrap_golden_dir = decoy\n" + SAYS},
        "kept",
    ),
    "a decoy in a text of several lines": (
        {"pyproject.toml": '[project]\nreadme = """\nciwrap_golden_dir = "decoy"\n"""\n' + TOML},
        "kept",
    ),
    "toml, escaped": (
        {"pyproject.toml": TOML.replace("ciwrap_golden_dir", '"ciwrap_golden_d\\u0069r"')},
        "kept",
    ),
    "a value on the next line": ({"pytest.ini": "[pytest]\nciwrap_golden_dir =\n  kept\n"}, "kept"),
    "joined with its option": (
        {"pytest.ini": "[pytest]\naddopts = -ociwrap_golden_dir=kept\n"},
        "kept",
    ),
    "two words": (
        {"pyproject.toml": TOML + 'addopts = ["-o", "ciwrap_golden_dir=moved"]\n'},
        "moved",
    ),
    "in an option": (
        {"pytest.ini": SAYS + "addopts = -q -o ciwrap_golden_dir=moved\n"},
        "moved",
    ),
    "in an option of toml": (
        {"pyproject.toml": TOML + 'addopts = ["--override-ini=ciwrap_golden_dir=moved"]\n'},
        "moved",
    ),
    "above": ({"../pytest.ini": SAYS}, "../kept"),
    "not above where there is one here": ({"../pytest.ini": SAYS, "pytest.ini": ""}, None),
}


class Ask:
    """A plugin that keeps where pytest has goldens of tests."""

    def pytest_configure(self, config: pytest.Config) -> None:
        self.said = config.getini("ciwrap_golden_dir")


@pytest.mark.parametrize("name", CASES)
def test_it_is_read_as_pytest_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files, wanted = CASES[name]
    here = tmp_path / "here"
    here.mkdir()
    for file, text in files.items():
        (here / file).write_text(text)
    found = file_that_counts(WorkingTree(tmp_path), "here").golden_dir
    assert found == (None if wanted is None else {"../kept": "kept"}.get(wanted, f"here/{wanted}"))
    monkeypatch.chdir(here)
    ask = Ask()
    pytest.main(["-q", "-p", "no:cacheprovider", "--co", *NO_OTHER_PLUGINS], plugins=[ask])
    assert (ask.said or "") == (wanted or "").removeprefix("../")
