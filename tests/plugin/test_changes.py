"""`ciwrap changes` on goldens of tests: whichever of several files counts is what is looked at."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from plugin.conftest import INI

if TYPE_CHECKING:
    from plugin.conftest import Suite


def told(suite: Suite) -> set[tuple[str | None, str | None, bool, str]]:
    done = suite.cli("changes", "--base", "HEAD", "--json", "c.json")
    assert done.returncode == 0, done.stderr
    document = json.loads((suite.root / "c.json").read_text())
    return {
        (one["check"], one.get("variable"), one["wider"], one["text"])
        for one in document["changes"]
    }


TEST = "def test_it(ciwrap): ciwrap.check(X, 'x', atol=A)"
NAME = "tests/test_it.py::test_it::x"


def write(suite: Suite, value: str, atol: str) -> None:
    suite.write(TEST.replace("X", value).replace("A", atol))


@pytest.fixture
def tested(suite: Suite) -> Suite:
    """A repository whose test has a golden for all machines."""
    suite.git("init", "-q")
    write(suite, "1.0", "1e-6")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    (suite.root / ".gitignore").write_text(".ciwrap/\n__pycache__/\n")
    suite.git("add", "-A")
    suite.git("commit", "-qm", "base")
    return suite


def test_a_golden_of_one_kind_of_machine_takes_the_place_of_the_common_one(tested: Suite) -> None:
    """It counts before the common golden, so its bound is compared with that one's."""
    write(tested, "2.0", "10")
    words = ("--ciwrap-variant=ours", "--ciwrap-update=all", "--ciwrap-reason=why")
    tested.run(*words).assert_outcomes(passed=1)
    found = told(tested)
    assert (NAME, "x", True, "atol=1e-6 rtol=0 -> atol=10 rtol=0") in found
    assert any(text.startswith("a golden for ours alone, where the common") for *_, text in found)
    tested.git("add", "-A")
    tested.git("commit", "-qm", "variant")
    shutil.rmtree(tested.root / "golden/tests/@ours", ignore_errors=True)
    for path in (tested.root / "golden/tests").rglob("*@ours*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    assert (NAME, None, False, "the golden for ours is gone; the common one counts") in told(tested)


def test_a_replaced_golden_names_the_variables_that_hold_other_numbers(tested: Suite) -> None:
    write(tested, "{'u': [1.0, U], 'v': 2.0, 'w': W}".replace("U", "2.0").replace("W", "3"), "0")
    words = ("--ciwrap-update=all", "--ciwrap-reason=why")
    tested.run(*words).assert_outcomes(passed=1)
    tested.git("commit", "-qam", "three")
    write(tested, "{'u': [1.0, 2.5], 'v': 2.0, 'w': 4}", "0")
    tested.run(*words).assert_outcomes(passed=1)
    assert tested.cli("changes", "--base", "HEAD", "--json", "c.json").returncode == 0
    (found,) = json.loads((tested.root / "c.json").read_text())["changes"]
    assert found["moved"] == ["u", "w"]
    assert found["text"] == "golden replaced: 2 of 3 variables have other digests: u, w"


def test_a_journal_that_is_committed_counts(tested: Suite) -> None:
    """Tests read it before the file, so it may not hide what it says."""
    shared = tested.root / "golden/tests/test_it.goldens"
    old = shared.read_bytes()
    write(tested, "2.0", "10")
    tested.run("--ciwrap-update=all", "--ciwrap-reason=why").assert_outcomes(passed=1)
    new = shared.read_bytes()
    shared.write_bytes(old)
    kept = set(old.split(b"\n"))
    more = [line for line in new.split(b"\n") if line not in kept]
    journal = shared.with_name("test_it.goldens.next")
    journal.write_bytes(b"\n".join(more) + b"\n")
    tested.run().assert_outcomes(passed=1)  # so it counts
    found = told(tested)
    assert (NAME, "x", True, "atol=1e-6 rtol=0 -> atol=10 rtol=0") in found
    assert any(text.startswith("golden replaced: 1 of 1") for *_, text in found)


def test_a_pair_beside_a_line_is_neither(tested: Suite) -> None:
    """As for the test, for which neither counts."""
    write(tested, "__import__('numpy').zeros(9000)", "1e-6")
    shared = tested.root / "golden/tests/test_it.goldens"
    old = shared.read_bytes()
    tested.run("--ciwrap-update=failed", "--ciwrap-reason=why").assert_outcomes(passed=1)
    shared.write_bytes(old)
    tested.run().assert_outcomes(failed=1)
    assert any(text == "the manifest of its golden cannot be read" for *_, text in told(tested))


WIDER = (NAME, "x", True, "atol=1e-6 rtol=0 -> atol=10 rtol=0")


def accept_wider(suite: Suite, *options: str) -> None:
    write(suite, "1.0", "10")
    words = ("--ciwrap-update=all", "--ciwrap-reason=why")
    suite.run(*words, *options).assert_outcomes(passed=1)


@pytest.mark.parametrize("folder", ["g3", "golden/v2"])
@pytest.mark.parametrize("is_option", [False, True])
def test_wider_bounds_beside_goldens_that_no_test_reads_any_more(
    tested: Suite, folder: str, is_option: bool
) -> None:
    said = f"ciwrap_golden_dir={folder}"
    ini = INI.replace("config\n", f"config -o {said}\n") if is_option else f"{INI}{said}\n"
    (tested.root / "pytest.ini").write_text(f"[other]\nciwrap_golden_dir = golden\n{ini}")
    accept_wider(tested)
    assert (tested.root / "golden/tests/test_it.goldens").exists()
    found = told(tested)
    assert WIDER in found
    assert (None, None, False, f"goldens of tests read from: golden -> {folder}") in found


def test_goldens_in_the_new_folder_alone_are_gone_from_the_old_one(tested: Suite) -> None:
    (tested.root / "pytest.ini").write_text("[pytest]\nciwrap_golden_dir = none\n")
    assert (NAME, None, True, "its golden is gone") in told(tested)


def test_a_configuration_in_the_folder_of_the_tests(tested: Suite) -> None:
    """pytest tests, as CI may say, then has its root and its goldens there."""
    (tested.root / "pytest.ini").write_text("[pytest]\nciwrap_unused = fail\n")
    tested.git("add", "-A")
    tested.git("commit", "-qm", "a root")
    assert told(tested) == set()
    (tested.root / "tests/pytest.ini").write_text(INI)
    accept_wider(tested, "tests")
    assert (tested.root / "tests/golden").exists()
    want = "tests/pytest.ini is new: a pytest started for the tests below it goes by it"
    assert (None, None, None, f"{want}, with goldens in tests/golden") in told(tested)


SETTINGS = {
    "addopts = --ciwrap-update=failed --ciwrap-update-in-ci": {
        ("--ciwrap-update: not set -> failed", True),
        ("--ciwrap-update-in-ci: not set -> set", True),
        ("ciwrap_unused: fail -> not set", True),
    },
    "ciwrap_unused = warn": {("ciwrap_unused: fail -> warn", True)},
    "ciwrap_unused = fail\nciwrap_all = true": {("ciwrap_all: not set -> true", False)},
    "ciwrap_unused = fail\nciwrap_variants = a b": {("ciwrap_variants: not set -> a b", None)},
    "ciwrap_unused = delete": {("ciwrap_unused: fail -> delete", False)},
}


@pytest.mark.parametrize("said", SETTINGS)
def test_settings_of_ours_in_the_configuration_of_pytest(tested: Suite, said: str) -> None:
    (tested.root / "pytest.ini").write_text("[pytest]\nciwrap_unused = fail\n")
    tested.git("add", "-A")
    tested.git("commit", "-qm", "settings")
    (tested.root / "pytest.ini").write_text(f"[pytest]\n{said}\n")
    want = {(None, None, wider, f"pytest's setting {text}") for text, wider in SETTINGS[said]}
    assert told(tested) == want
