"""Goldens that no test uses: found when that can be known, and never because a test failed."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from plugin.conftest import Suite, summary

import ciwrap

TWO = """
    def test_a(ciwrap): ciwrap.check(1.0)
    def test_b(ciwrap): ciwrap.check(2.0); ciwrap.check(3.0, "more")
"""


@pytest.fixture
def two(suite: Suite) -> Suite:
    suite.write(TWO)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    return suite


def without(suite: Suite, *lines: str) -> None:
    text = TWO
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    suite.write(text)


def test_a_check_that_is_gone(two: Suite) -> None:
    without(two, '; ciwrap.check(3.0, "more")')
    result = two.run()
    assert (result.ret, summary(result)) == (0, "ciwrap: 2 matched, 1 unused")
    assert "  unused: golden/tests/test_it.goldens (test_b-more)" in result.outlines
    assert two.run("--ciwrap-unused=fail").ret == 1
    assert two.run("-o", "ciwrap_unused=fail").ret == 1
    result = two.run("--ciwrap-unused=ignore")
    assert (result.ret, summary(result)) == (0, "ciwrap: 2 matched")
    assert two.run("-o", "ciwrap_unused=sometimes").ret != 0
    assert len(two.goldens()) == 3
    result = two.run("--ciwrap-unused=delete")
    assert (result.ret, summary(result)) == (0, "ciwrap: 2 matched, 1 unused and deleted")
    assert sorted(two.files("golden")) == ["tests/test_it.goldens"]
    assert two.goldens() == ["tests/test_it/test_a.golden", "tests/test_it/test_b.golden"]
    assert summary(two.run("--ciwrap-unused=fail")) == "ciwrap: 2 matched"


def test_a_project_that_cannot_be_written(two: Suite) -> None:
    """Nothing is wrong with the numbers: the session ends as if the list had been noted."""
    without(two, "def test_a(ciwrap): ciwrap.check(1.0)")
    work = two.root / ".ciwrap"
    shutil.rmtree(work, ignore_errors=True)
    work.write_text("no folder")
    result = two.run()
    assert (result.ret, summary(result)) == (0, "ciwrap: 2 matched, 1 unused")
    text = result.stdout.str()
    assert "warning: what is unused is not noted for `ciwrap prune`: " in text
    assert "to delete what no test uses" not in text
    assert two.run("--ciwrap-unused=fail").ret == 1


def test_a_test_that_is_gone(two: Suite) -> None:
    without(two, "def test_a(ciwrap): ciwrap.check(1.0)")
    result = two.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (1, "ciwrap: 2 matched, 1 unused")


def test_all_tests_are_gone(suite: Suite) -> None:
    """Of tests at the top of the project, and where no snapshots are kept."""
    suite.write("def test_a(ciwrap): ciwrap.check(1.0)", "test_top.py")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    shutil.rmtree(suite.root / "golden/.snapshots")
    suite.write("def test_b(): pass", "test_top.py")
    result = suite.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (1, "ciwrap: 1 unused")


def test_a_file_that_is_gone(two: Suite) -> None:
    (two.root / "tests/test_it.py").rename(two.root / "tests/test_other.py")
    result = two.run("--ciwrap-unused=fail")
    assert "2 new, 3 unused" in summary(result)
    # Another folder was asked for: what is below this one was not looked for.
    two.write("def test_c(): pass", "more/test_c.py")
    assert summary(two.run("more", "--ciwrap-unused=fail")) == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("-k", "test_b"),
        ("tests/test_it.py::test_b",),
        ("--deselect", "tests/test_it.py::test_a"),
        ("--lf",),
        ("-x",),
        ("--maxfail=1",),
        ("--collect-only",),
    ],
)
def test_not_all_tests_were_looked_at(two: Suite, arguments: tuple[str, ...]) -> None:
    without(two, '; ciwrap.check(3.0, "more")')
    if arguments[0] in ("-x", "--maxfail=1", "--lf"):
        two.write(TWO.replace('; ciwrap.check(3.0, "more")', "").replace("1.0", "1.5"))
        two.run().assert_outcomes(passed=1, failed=1)
    before = two.goldens()
    result = two.run("--ciwrap-unused=delete", *arguments)
    assert "unused" not in summary(result)
    assert two.goldens() == before


@pytest.mark.parametrize(
    "text",
    [
        "def test_b(ciwrap): raise RuntimeError",
        "def test_b(ciwrap): ciwrap.check(2.5); ciwrap.check(3.0, 'more')",
        "def test_b(ciwrap): pytest.skip('not here')",
        "@pytest.mark.skip\ndef test_b(ciwrap): pass",
        "@pytest.mark.xfail\ndef test_b(ciwrap): raise RuntimeError",
        "@pytest.fixture\ndef broken(): raise RuntimeError\ndef test_b(ciwrap, broken): pass",
    ],
)
def test_a_test_that_did_not_run_to_its_end(two: Suite, text: str) -> None:
    two.write(f"def test_a(ciwrap): ciwrap.check(1.0)\n{text}")
    before = two.goldens()
    result = two.run("--ciwrap-unused=delete")
    assert "unused" not in summary(result)
    assert two.goldens() == before


def test_a_file_that_cannot_be_imported(two: Suite) -> None:
    (two.root / "tests/test_it.py").write_text("import no_such_module")
    two.run("--ciwrap-unused=delete", "--continue-on-collection-errors")
    assert len(two.goldens()) == 3


def test_goldens_of_the_configuration_are_not_judged(two: Suite) -> None:
    (two.root / "ciwrap.yaml").write_text("version: 1\nchecks: {mesh: {outputs: out.npy}}\n")
    (two.root / "golden/mesh.golden").write_bytes(b"whatever it is")
    result = two.run("--ciwrap-unused=delete")
    assert (result.ret, summary(result)) == (0, "ciwrap: 3 matched")
    assert "mesh.golden" in two.goldens()


def test_goldens_of_the_configuration_for_one_platform_are_not_judged(two: Suite) -> None:
    """As `--golden-dir golden/linux-arm64` and the action's platform-key place them."""
    (two.root / "ciwrap.yaml").write_text("version: 1\nchecks: {mesh: {outputs: out.txt}}\n")
    (two.root / "out.txt").write_text("1 2 3\n")
    assert two.cli("accept", "--golden-dir", "golden/linux-arm64").returncode == 0
    result = two.run("--ciwrap-unused=delete")
    assert (result.ret, summary(result)) == (0, "ciwrap: 3 matched")
    assert "linux-arm64/mesh.golden" in two.goldens()


def test_a_test_named_by_its_package(two: Suite) -> None:
    cases = """
        @pytest.mark.parametrize("case", [1, 2])
        def test_c(case, ciwrap): ciwrap.check(float(case))
    """
    two.write("", "pack/__init__.py")
    two.write(cases, "pack/test_c.py")
    two.run("--ciwrap-update=new").assert_outcomes(passed=4)
    before = two.goldens()
    named = ("--pyargs", "pack.test_c::test_c[1]", "--ciwrap-unused=delete")
    done = two.subprocess(*named, PYTHONPATH=f"{two.root}:{os.environ.get('PYTHONPATH', '')}")
    assert "ciwrap: 1 matched\n" in done.stdout
    assert two.goldens() == before


def test_tests_that_a_plugin_leaves_out_before_all_others(two: Suite) -> None:
    before = two.goldens()
    two.write(
        """
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(config, items):
            config.hook.pytest_deselected(items=items[1:])
            del items[1:]
            return (yield)
        """,
        "conftest.py",
    )
    without(two, '; ciwrap.check(3.0, "more")')
    two.write(TWO.replace("def test_b(ciwrap):", "def test_c(ciwrap):"))
    assert "unused" not in summary(two.run("--ciwrap-unused=delete"))
    assert two.goldens() == before


@pytest.mark.parametrize(
    "kept",
    [
        "if np is None:\n    class TestHeir(Base): pass",
        "if np is None:\n    def test_b(ciwrap): pass",
        "if np is None:\n    test_b = Base().test_it",
        "if np is None:\n    from elsewhere import test_b",
    ],
)
def test_tests_of_other_machines_whatever_makes_them(suite: Suite, kept: str) -> None:
    base = "class Base:\n    def test_it(self, ciwrap): ciwrap.check(1.0)\n"
    here = "class TestHeir(Base): pass\ndef test_b(ciwrap): ciwrap.check(2.0)\n"
    suite.write(base + here)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    before = suite.goldens()
    name = "TestHeir" if "Heir" in kept else "test_b"
    there = [line for line in here.splitlines() if name not in line]
    suite.write("\n".join([base, *there, kept]))
    result = suite.run("--ciwrap-unused=delete")
    assert (result.ret, summary(result)) == (0, "ciwrap: 1 matched")
    assert suite.goldens() == before
    suite.write("\n".join([base, *there]))
    assert summary(suite.run()) == "ciwrap: 1 matched, 1 unused"


def test_goldens_of_other_machines_are_kept(two: Suite) -> None:
    two.run("--ciwrap-variant=arm64", "--ciwrap-update=new").assert_outcomes(passed=2)
    two.write(TWO.replace("1.0", "1.5"))
    two.run("--ciwrap-variant=arm64", "--ciwrap-update=failed", "--ciwrap-reason=other CPU")
    two.write(TWO)
    result = two.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (0, "ciwrap: 3 matched")


def test_prune(two: Suite) -> None:
    done = two.cli("prune", "--yes")
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, "no unused golden was found")
    without(two, '; ciwrap.check(3.0, "more")')
    assert "to delete what no test uses: ciwrap prune" in two.run().stdout.str()
    # A run of a part finds out nothing new, and forgets nothing.
    two.run("-k", "test_a")
    path = "golden/tests/test_it.goldens (test_b-more)"
    done = two.cli("prune", "--dry-run")
    assert (done.returncode, done.stdout) == (0, f"unused  {path}\n")
    done = two.cli("prune")
    assert done.returncode == 2
    assert "nothing was deleted" in done.stderr
    assert len(two.goldens()) == 3
    done = two.cli("prune", "--yes")
    assert done.stdout == f"unused  {path}\ndeleted  {path}\n"
    assert len(two.goldens()) == 2


def test_prune_keeps_what_has_changed_or_is_used_again(two: Suite) -> None:
    without(two, '; ciwrap.check(3.0, "more")', "def test_a(ciwrap): ciwrap.check(1.0)")
    assert summary(two.run()).endswith("2 unused")
    two.write(TWO.replace("1.0", "1.5"))
    two.run("-k", "test_a", "--ciwrap-update=failed", "--ciwrap-reason=new")
    two.run("tests/test_it.py::test_b")
    done = two.cli("prune", "--yes")
    assert done.stdout.startswith("no unused golden was found")
    assert len(two.goldens()) == 3


def test_goldens_that_programs_write_are_nobodys(two: Suite) -> None:
    """`Golden.write` of the Python API, into the folder of the goldens."""
    (two.root / "ciwrap.yaml").write_text("version: 1\nchecks: {mesh: {outputs: out.npy}}\n")
    own = ("golden/own.golden", "golden/test_gone/own.golden", "golden/tests/test_it/test_c.golden")
    for name in own:
        (two.root / name).parent.mkdir(parents=True, exist_ok=True)
        ciwrap.make_golden({"x": np.arange(3.0)}).write(two.root / name)
    result = two.run("--ciwrap-unused=delete")
    assert (result.ret, summary(result)) == (0, "ciwrap: 3 matched")
    done = two.cli("prune", "--yes")
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, "no unused golden was found")
    assert all((two.root / name).exists() for name in own)


def test_prune_takes_goldens_of_checks_that_are_gone(suite: Suite) -> None:
    config = "version: 1\nchecks: {mesh: {outputs: out.csv}, old: {outputs: out.csv}}\n"
    (suite.root / "ciwrap.yaml").write_text(config)
    (suite.root / "out.csv").write_text("x\n1.0\n2.0\n")
    assert suite.cli("accept").returncode == 0
    (suite.root / "ciwrap.yaml").write_text(config.replace(", old: {outputs: out.csv}", ""))
    assert suite.cli("prune", "--yes").returncode == 0
    assert suite.goldens() == ["mesh.golden"]


def test_the_strict_mode_is_offered(two: Suite) -> None:
    """An early return is known by its unused golden only."""
    without(two, '; ciwrap.check(3.0, "more")')
    offer = "  to let them fail the run: ciwrap_unused = fail"
    assert offer in two.run().outlines
    assert offer not in two.run("-o", "ciwrap_unused=fail").outlines
    (two.root / "out.csv").write_text("x\n1.0\n2.0\n")
    done = two.cli("init")
    assert "`ciwrap_unused = fail` in pytest's configuration" in " ".join(done.stdout.split())
    (two.root / "ciwrap.yaml").unlink()
    (two.root / "pytest.ini").unlink()
    (two.root / "tests").rename(two.root / "other")
    assert "ciwrap_unused" not in two.cli("init").stdout


DOC = """
    def area():
        '''
        >>> getfixture("ciwrap").check(1.0).verdict.value
        'match'
        '''
    def test_it(ciwrap): ciwrap.check(2.0)
"""


def test_the_golden_of_a_docstring_is_judged_only_where_docstrings_are_run(suite: Suite) -> None:
    suite.write(DOC)
    suite.run("--doctest-modules", "--ciwrap-update=new").assert_outcomes(passed=2)
    for arguments, ret in (((), 0), (("--doctest-modules",), 0)):
        result = suite.run("--ciwrap-unused=fail", *arguments)
        assert (result.ret, "unused:" in result.stdout.str()) == (ret, False)
    suite.cli("prune", "--yes")
    assert len(suite.goldens()) == 2
    suite.write("def test_it(ciwrap): ciwrap.check(2.0)")
    assert suite.run("--ciwrap-unused=fail").ret == 0
    result = suite.run("--ciwrap-unused=fail", "--doctest-modules")
    assert (result.ret, summary(result)) == (1, "ciwrap: 1 matched, 1 unused")


MODULE_DOC = """
'''
>>> getfixture("ciwrap").check(1.0, "d").verdict.value
'match'
'''
def test_it(ciwrap): ciwrap.check(2.0, "d")
"""


def test_the_docstring_of_a_module_is_no_function_of_its_name(suite: Suite) -> None:
    """tests/test_it.py has a docstring, which pytest calls test_it, and a test of that name."""
    suite.write("")
    path = suite.root / "tests/test_it.py"
    path.write_text(MODULE_DOC.lstrip())
    suite.run("--doctest-modules", "--ciwrap-update=new").assert_outcomes(passed=2)
    for arguments in ((), ("--doctest-modules",)):
        result = suite.run("--ciwrap-unused=fail", *arguments)
        assert (result.ret, "unused:" in result.stdout.str()) == (0, False)
    suite.cli("prune", "--yes")
    assert [suite.golden(name).check for name in ("test_it-d", "test_it%2E__doc__-d")]
    path.write_text("def test_it(ciwrap): ciwrap.check(2.0, 'd')")
    assert suite.run("--ciwrap-unused=fail").ret == 0
    assert suite.run("--ciwrap-unused=fail", "--doctest-modules").ret == 1


def test_a_renamed_test_is_known_by_its_numbers(suite: Suite) -> None:
    text = """
        def test_a(ciwrap): ciwrap.check([1.0, 2.0], atol=1e-6)
        def test_b(ciwrap): ciwrap.check([1.0, 3.0], atol=1e-6)
    """
    suite.write(text)
    suite.run("--ciwrap-update=new")
    suite.write(text.replace("test_a", "test_renamed"))
    says = (
        "tests/test_it.py::test_renamed has the same numbers as the unused"
        " golden/tests/test_it.goldens (test_a): moved?"
    )
    assert f"  {says}" in suite.run().outlines
    notes = [one for one in suite.document()["messages"] if one["level"] == "note"]
    assert [one["text"] for one in notes] == [says]
    # Other numbers, another bound, or two goldens that it could be: nothing is said.
    for other in (
        text.replace("test_a", "test_renamed").replace("2.0", "2.5"),
        text.replace("test_a", "test_renamed").replace("1e-6", "1e-7"),
    ):
        suite.write(other)
        assert "moved?" not in suite.run().stdout.str()
    suite.write(text.replace("3.0", "2.0"))
    suite.run("--ciwrap-update=failed", "--ciwrap-reason=equal ones")
    suite.write("def test_c(ciwrap): ciwrap.check([1.0, 2.0], atol=1e-6)")
    assert "moved?" not in suite.run().stdout.str()


def test_a_file_whose_name_is_too_long_for_a_folder(suite: Suite) -> None:
    """The folder of its goldens does not tell which file it is: none of them is unused for that."""
    name = f"tests/test_{'é' * 40}.py"
    suite.write("def test_other(): pass")
    suite.write(TWO, name)
    assert suite.run("--ciwrap-update=new").ret == 0
    assert summary(suite.run("-k", "other", "--ciwrap-unused=fail")) == ""
    assert summary(suite.run("--ciwrap-unused=fail")) == "ciwrap: 3 matched"
    suite.write(TWO.replace('; ciwrap.check(3.0, "more")', ""), name)
    result = suite.run("--ciwrap-unused=fail")
    assert (result.ret, summary(result)) == (1, "ciwrap: 2 matched, 1 unused")
    (suite.root / name).unlink()
    assert summary(suite.run("--ciwrap-unused=fail")) == ""
