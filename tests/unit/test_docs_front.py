"""The configuration reference and the how-to on readers say what is so: their examples are run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import NO_OTHER_PLUGINS

from ciwrap.model import ErrorBound, VariableId
from ciwrap.model.settings import OWN_FORMATS
from ciwrap.project.config import load_text
from ciwrap.project.schema import (
    BOUND,
    CHECK,
    CONFIG,
    FACTOR,
    LEVEL,
    OPTIONS,
    REPEAT,
    RUN,
    STRICT,
    TIMING,
)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = (DOCS / "reference/configuration.md").read_text(encoding="utf-8")
HOW_TO = (DOCS / "how-to/write-a-reader.md").read_text(encoding="utf-8")


# An editable installation of ciwrap is imported before pytest can rewrite it.
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning", *NO_OTHER_PLUGINS)
QUIET += ("-p", "no:cacheprovider")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks(CONFIGURATION, "yaml"))
def test_examples_load(text: str) -> None:
    assert load_text(text, Path("/project/ciwrap.yaml")).checks


def test_the_example_of_what_wins() -> None:
    check = load_text(blocks(CONFIGURATION, "yaml")[1], Path("/project/ciwrap.yaml")).checks[0]
    assert check.settings_for(VariableId("x")).bound == ErrorBound(atol=1e-3)


def test_the_example_of_a_mistake() -> None:
    text = "\n" * 9 + "checks:\n  mesh:\n    atoll: 1\n    outputs: x\n"
    with pytest.raises(ValueError) as caught:
        load_text(text, Path("ciwrap.yaml"))
    message = str(caught.value).replace(str(Path().absolute()) + "/", "")
    assert message == blocks(CONFIGURATION, "text")[0].strip()


def test_every_key_is_documented() -> None:
    documented = set(re.findall(r"`([a-z_]+)`", CONFIGURATION))
    for section in (CONFIG, CHECK, BOUND, RUN, REPEAT, FACTOR, LEVEL, STRICT, OPTIONS, TIMING):
        assert set(section.keys) <= documented, section.name
    for name, own in OWN_FORMATS.items():
        assert f"| `{name}` | {' '.join(own.suffixes)} |" in CONFIGURATION


def modules_of_the_how_to() -> dict[str, str]:
    reader, test = blocks(HOW_TO, "python")
    return {"myformat.reader": reader, "test_reader": test}


def run_suite(folder: Path, reader: str) -> str:
    """What pytest says of a reader put through the test of the how-to."""
    sources = modules_of_the_how_to()
    (folder / "myformat").mkdir(exist_ok=True)
    (folder / "myformat/__init__.py").touch()
    (folder / "myformat/reader.py").write_text(reader)
    (folder / "test_reader.py").write_text(sources["test_reader"])
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-rf", *QUIET, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout


def test_the_reader_of_the_how_to_passes_its_test(tmp_path: Path) -> None:
    output = run_suite(tmp_path, modules_of_the_how_to()["myformat.reader"])
    summary = re.search(r"^(\d+) passed, 1 skipped in ", output, re.MULTILINE)
    assert summary is not None, output
    assert int(summary[1]) >= 14


@pytest.mark.parametrize(
    ("right", "wrong", "failing"),
    [
        (
            "if self._offset + info.byte_count != self._file.byte_count:",
            "if False:",
            "test_bytes_left_over",
        ),
        ("4 * count)", "4 * max(0, count - 1))", "test_every_shape"),
        ('"<f4", shape, region', '">f4", shape, region', "test_every_dtype"),
        (" or not all(word.isdigit() for word in words)", "", "test_mutated_file"),
    ],
)
def test_the_suite_fails_a_reader_that_is_wrong(
    tmp_path: Path, right: str, wrong: str, failing: str
) -> None:
    source = modules_of_the_how_to()["myformat.reader"]
    assert source.count(right) == 1
    output = run_suite(tmp_path, source.replace(right, wrong))
    assert f"::{failing}" in output, output


def test_the_entry_point_of_the_how_to_is_of_our_group() -> None:
    from ciwrap.formats.find_outputs import ENTRY_POINT_GROUP

    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in blocks(HOW_TO, "toml")[0]


def test_files_to_touch_are_there() -> None:
    """What CONTRIBUTING tells somebody to touch who adds something."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## To add something, touch these")[1].split("\n## ")[0]
    named = [word for word in re.findall(r"`([\w./{},-]+)`", table) if "/" in word]
    files = [file for word in named for file in _unfolded(word)]
    missing = [
        file
        for file in files
        if not any((ROOT / folder / file).exists() for folder in (".", "ciwrap", "csrc"))
    ]
    assert not missing
    assert len(files) > 40


def _unfolded(word: str) -> list[str]:
    before, brace, rest = word.partition("{")
    if not brace:
        return [word]
    inner, _, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inner.split(",")]
