"""Where goldens lie: every check a file of its own, and every file tells its check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin.conftest import summary

from ciwrap.base.errors import UsageError
from ciwrap.golden.places import Place, TestPlace, checks_meant
from ciwrap.golden.store import GoldenStores

if TYPE_CHECKING:
    from plugin.conftest import Suite

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)
identifiers = st.from_regex(r"[A-Za-z_]\w{0,8}", fullmatch=True)
places = st.builds(
    TestPlace,
    st.lists(st.from_regex(r"[\w@.-]{1,6}", fullmatch=True), min_size=1, max_size=3).map(
        lambda parts: "/".join(part.replace("..", "_") + "_" for part in parts) + ".py"
    ),
    st.lists(identifiers | names.filter(lambda text: "::" not in text), min_size=1, max_size=3)
    .map("::".join)
    .filter(lambda text: ":::" not in text and text[0] != ":" and text[-1] != ":"),
    st.none() | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    st.none() | names,
)


@given(places)
def test_a_place_tells_its_check(test: TestPlace) -> None:
    place = test.place
    assert TestPlace.of(place) == test
    assert place.check == test.check
    assert TestPlace.of(place.for_variant("linux-x86_64")) == test
    assert place.for_variant("a/b").variant == "a/b"
    assert place.for_variant("a/b").for_variant(None) == place
    assert ".." not in place.folder.split("/")


@given(places, places)
def test_no_two_checks_share_a_file(one: TestPlace, other: TestPlace) -> None:
    def path(test: TestPlace) -> tuple[str, str]:
        place = test.place
        return place.folder, str(GoldenStores(Path("golden")).at(place).pair_path(place.name))

    if one != other:
        assert path(one) != path(other)


@pytest.mark.parametrize("module", ["../x.py", "/x.py", "a/../../x.py", "test_x.txt", "test_x"])
def test_no_module_leads_out_of_the_folder(module: str) -> None:
    with pytest.raises(UsageError):
        _ = TestPlace(module, "test").place


@pytest.mark.parametrize(
    ("pattern", "check", "means"),
    [
        ("tests/a.py", "tests/a.py::test_x", True),
        ("tests/", "tests/a.py::test_x", True),
        ("tests/a.py::test_x", "tests/a.py::test_x[1]::v", True),
        ("tests/a.py::test_x[1]", "tests/a.py::test_x[1]", True),
        ("tests/a.py::test_x[1]", "tests/a.py::test_x[10]", False),
        ("tests/a.py::test_x[ab]", "tests/a.py::test_x[a]", False),
        ("tests/a.py::test", "tests/a.py::test_x", False),
        ("*::v", "tests/a.py::test_x::v", True),
        ("*[?]*", "tests/a.py::test_x[1]::v", True),
        ("mesh", "mesh", True),
        ("mesh", "mesh2", False),
        ("te", "tests/a.py::test_x", False),
        ("tests/a.py::test_x[1]", "tests/a.py::test_x[1][2]", False),
    ],
)
def test_patterns_of_the_command_line(pattern: str, check: str, means: bool) -> None:
    assert checks_meant(pattern, [check]) == ({check} if means else set())


def test_the_name_of_a_check_is_no_wild_card() -> None:
    """The command that a failure prints accepts what failed, and nothing else."""
    checks = [f"tests/a.py::test_op[{op}]" for op in ("*", "**", "+", "?")]
    for check in checks:
        assert checks_meant(check, checks) == {check}
    assert checks_meant("tests/a.py::test_op[*]", checks[1:]) == set(checks[1:])
    assert checks_meant("*", checks) == set(checks)


def test_what_peers_mix_up_is_kept_apart(suite: Suite) -> None:
    """Ids `a/b` and `a_b`, one method in two classes, names that read like parts of others."""
    suite.write("""
        class TestOne:
            def test_same(self, ciwrap): ciwrap.check(1.0)
            class TestInner:
                def test_same(self, ciwrap): ciwrap.check(2.0)
        class TestTwo:
            def test_same(self, ciwrap): ciwrap.check(3.0)
        @pytest.mark.parametrize("x", ["a/b", "a_b", "a-b", "a.b", "a]-b", "..", "", "A%2Fb", "é"])
        def test_ids(x, ciwrap):
            ciwrap.check(np.array([x], dtype="U8"))
            ciwrap.check(1.0, "x-y")
        def test_names(ciwrap):
            for number, name in enumerate(["a/b", "a_b", "a b", "../../up", "con", "x" * 300]):
                ciwrap.check(number, name)
    """)
    suite.write("def test_names(ciwrap):\n    ciwrap.check(7)\n", "tests/sub/test_it.py")
    suite.run("--ciwrap-update=new", "--import-mode=importlib").assert_outcomes(passed=14)
    assert len(suite.goldens()) == 3 + 2 * 9 + 6 + 1
    assert {path.name for path in suite.root.iterdir() if "up" in path.name} == set()
    assert all(re.fullmatch(r"[\w%./~-]+", name) for name in suite.goldens())
    result = suite.run("--import-mode=importlib", "--ciwrap-unused=fail")
    result.assert_outcomes(passed=14)
    assert result.ret == 0


CASES = """
    @pytest.mark.parametrize("x", ["co", "CO", "Co"])
    def test_a(ciwrap, x): ciwrap.check(np.full(COUNT, len(x) + x.isupper() + SHIFT), "x")
"""


def test_two_tests_of_one_id_share_no_golden(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.parametrize("x", ["a-b", "b"])
        @pytest.mark.parametrize("y", ["c", "c-a"])
        def test_it(x, y, ciwrap): ciwrap.check(float(len(x)))
    """)
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=2, failed=2)
    assert summary(result) == "ciwrap: 2 refused, 2 written"
    assert "another test has the same id; they would share a golden" in result.stdout.str()
    # One test that is asked for twice is one.
    named = "tests/test_it.py::test_it[c-b]"
    assert suite.run("--keep-duplicates", named, named).ret == 0


def test_items_that_a_plugin_makes_have_goldens_of_their_own(suite: Suite) -> None:
    suite.write(
        """
        def pytest_pycollect_makeitem(collector, name, obj):
            make = pytest.Function.from_parent
            if name == "test_it":
                names = [f"{name}[{kind}]" for kind in ("fast", "slow")]
                return [make(collector, name=n, originalname=name, callobj=obj) for n in names]
        """,
        "conftest.py",
    )
    suite.write("def test_it(request, ciwrap): ciwrap.check(float('fast' in request.node.name))")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    assert summary(suite.run("--ciwrap-unused=fail")) == "ciwrap: 2 matched"


def test_names_that_differ_in_case_only(suite: Suite) -> None:
    """Lines of one file are told apart on every file system, and files are not."""
    suite.write(CASES.replace("COUNT", "5").replace("SHIFT", "0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=3)
    suite.run("--ciwrap-unused=fail").assert_outcomes(passed=3)
    suite.write(CASES.replace("COUNT", "5").replace("SHIFT", "1"))
    suite.run().assert_outcomes(failed=3)
    assert len(suite.waiting()) == 3
    assert suite.cli("accept", "tests/test_it.py::test_a[CO]", "-m", "x").returncode == 0
    assert suite.cli("reject", "tests/test_it.py::test_a[Co]").returncode == 0
    assert list(suite.waiting()) == ["tests/test_it.py::test_a[co]::x"]
    suite.run().assert_outcomes(passed=1, failed=2)


def test_place_of_other_files() -> None:
    assert TestPlace.of(Place("", "mesh")) is None
    assert Place("", "mesh").check == "mesh"
    assert TestPlace.of(Place("a", "[x]")) is None


# What the configuration file says otherwise.
PLAIN = ("-p", "no:hypothesispytest", "-p", "no:zarr")


def test_without_any_configuration_the_repository_has_the_goldens(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest's own root follows the current folder then."""
    (suite.root / "pytest.ini").unlink()
    suite.git("init", "-q")
    suite.write("def test_a(ciwrap): ciwrap.check([1.0])", "tests/sub/test_it.py")
    monkeypatch.chdir(suite.root / "tests")
    suite.run(*PLAIN, "--ciwrap-update=new", "sub").assert_outcomes(passed=1)
    assert suite.goldens() == ["tests/sub/test_it/test_a.golden"]
    for folder in (suite.root, suite.root / "tests/sub"):
        monkeypatch.chdir(folder)
        suite.run(*PLAIN).assert_outcomes(passed=1)
    suite.write("def test_a(ciwrap): ciwrap.check([1.5])", "tests/sub/test_it.py")
    suite.run(*PLAIN).assert_outcomes(failed=1)
    assert list(suite.waiting()) == ["tests/sub/test_it.py::test_a"]
    assert sorted(p.parent for p in suite.root.rglob(".ciwrap")) == [suite.root]
