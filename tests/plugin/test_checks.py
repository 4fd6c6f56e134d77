"""What a check compares, and what it refuses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from plugin.conftest import Suite, summary

if TYPE_CHECKING:
    from pathlib import Path


def file_of(calls: list[str]) -> str:
    """A file with a test for each call."""
    return "\n".join(
        f"def test_{number}(ciwrap, tmp_path):\n    {call}\n" for number, call in enumerate(calls)
    )


def messages_of(result: pytest.RunResult) -> dict[str, str]:
    """What each failed test says, by its name."""
    parts = re.split(r"^_{3,} (test_\d+) _{3,}$", result.stdout.str(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


X = "np.linspace(0, 1, 50)"


MATCHING = [
    (f"ciwrap.check({X}, atol=1e-6)", f"ciwrap.check({X} + 4e-7, atol=1e-6)"),
    (f"ciwrap.check({X}, rtol=1e-6)", f"ciwrap.check({X} * (1 + 4e-7), rtol=1e-6)"),
    (f"ciwrap.check({X}, atol='1e-6*max')", f"ciwrap.check({X} + 4e-7, atol='1e-6*max')"),
    (f"ciwrap.check({X}, ulps=4)", f"ciwrap.check(np.nextafter({X}, 2), ulps=4)"),
    ("ciwrap.check(0.5)", "ciwrap.check(np.float64(0.5))"),
    ("ciwrap.check([1.0, 2.0])", "ciwrap.check(np.array([1.0, 2.0]))"),
    ("ciwrap.check({'a': 1.0, 'b': [2]})", "ciwrap.check({'b': [2], 'a': 1.0})"),
    ("ciwrap.check({'a': {'x': 1.0}})", "ciwrap.check({'a': {'x': 1.0}})"),
    ("ciwrap.check(np.float32([np.nan, 1]))", "ciwrap.check(np.float32([-np.nan, 1]))"),
    ("ciwrap.check(np.array(['a', 'bc']))", "ciwrap.check(np.array(['a', 'bc']))"),
    ("ciwrap.check(np.empty((0, 3)))", "ciwrap.check(np.empty((0, 3)))"),
    (
        "ciwrap.check({'a': 1.0, 'b': 2.0}, bounds={'b': 0.5})",
        "ciwrap.check({'a': 1.0, 'b': 2.2}, bounds={'b': 0.5})",
    ),
    (
        "ciwrap.check({'a': 1.0, 'b': 2.0}, bounds={'b': '0.2*rms'})",
        "ciwrap.check({'a': 1.0, 'b': 2.2}, bounds={'b': '0.2*rms'})",
    ),
    (
        "ciwrap.check({'a': 1.0, 'b': 2.0}, bounds={'b*': {'rtol': 0.5}})",
        "ciwrap.check({'a': 1.0, 'b': 2.2}, bounds={'b*': {'rtol': 0.5}})",
    ),
    (
        "ciwrap.check({'a': 1.0, 't': 2.0}, ignore='t')",
        "ciwrap.check({'a': 1.0, 't': 9.0}, ignore='t')",
    ),
    (
        "ciwrap.check(np.array([(1, 2.0)], dtype=[('i', 'i4'), ('x', 'f8')]))",
        "ciwrap.check(np.array([(1, 2.0)], dtype=[('i', 'i4'), ('x', 'f8')]))",
    ),
]


def test_these_match(suite: Suite) -> None:
    suite.write(file_of([first for first, _ in MATCHING]))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=len(MATCHING))
    suite.write(file_of([second for _, second in MATCHING]))
    suite.run().assert_outcomes(passed=len(MATCHING))


DIFFERING = [
    ("ciwrap.check(1.0)", "ciwrap.check(1.0 + 1e-15)", "1 of 1 value differs"),
    (f"ciwrap.check({X}, atol=1e-6)", f"ciwrap.check({X} + 2e-6, atol=1e-6)", "50 of 50"),
    ("ciwrap.check(np.float32([1]))", "ciwrap.check(np.float64([1]))", "dtype float64"),
    ("ciwrap.check(np.int64([1]))", "ciwrap.check(np.float64([1]))", "dtype float64"),
    ("ciwrap.check(np.ones((2, 3)))", "ciwrap.check(np.ones((3, 2)))", "shape 3x2"),
    ("ciwrap.check(np.ones(3))", "ciwrap.check(np.ones((3, 1)))", "shape 3x1"),
    ("ciwrap.check(np.ones(1))", "ciwrap.check(1.0)", "a single number"),
    ("ciwrap.check({'a': 1, 'b': 2})", "ciwrap.check({'a': 1})", "only in the golden, not"),
    (
        "ciwrap.check({'a': 1})",
        "ciwrap.check({'a': 1, 'b': 2})",
        "only in the outputs, not in the golden",
    ),
    ("ciwrap.check({'a': 1})", "ciwrap.check({'b': 1})", "2 of 2 variables not comparable"),
    ("ciwrap.check([1.0, 2.0])", "ciwrap.check([1.0, np.nan])", "NaN without a match"),
    ("ciwrap.check([1.0, np.nan])", "ciwrap.check([1.0, 2.0])", "NaN without a match"),
    ("ciwrap.check([1.0, np.inf])", "ciwrap.check([1.0, -np.inf])", "infinite without a match"),
    ("ciwrap.check([1e-20])", "ciwrap.check([1e-12])", "1 of 1 value"),
    ("ciwrap.check(1.0, atol=1e-3)", "ciwrap.check(1.0001, atol=1e-6)", "1 of 1 value"),
    ("ciwrap.check({'a': 1.0}, ignore='b')", "ciwrap.check({'a': 1.1}, ignore='b')", "differ"),
    (
        "ciwrap.check(np.array([(1, 2.0)], dtype=[('i', 'i4'), ('x', 'f8')]))",
        "ciwrap.check(np.array([(1, 2.5)], dtype=[('i', 'i4'), ('x', 'f8')]))",
        "array.x: 1 of 1 value",
    ),
]


def test_these_do_not_match(suite: Suite) -> None:
    suite.write(file_of([first for first, _, _ in DIFFERING]))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=len(DIFFERING))
    before = suite.files("golden")
    suite.write(file_of([second for _, second, _ in DIFFERING]))
    result = suite.run()
    result.assert_outcomes(failed=len(DIFFERING))
    messages = messages_of(result)
    for number, (_, second, says) in enumerate(DIFFERING):
        assert says in messages[f"test_{number}"], second
    # Whatever was found waits for review, the goldens are untouched.
    assert {one["kind"] for one in suite.waiting().values()} == {"changed"}
    assert len(suite.waiting()) == len(DIFFERING)
    assert suite.files("golden") == before


REFUSED = [
    ("ciwrap.check('out.npy')", "a string could be a path or a value"),
    ("ciwrap.check(b'abc')", "a string could be a path or a value"),
    ("ciwrap.check({})", "an empty mapping"),
    ("ciwrap.check({1: 1, '1': 2})", "comes from two keys"),
    ("ciwrap.check({'a/b': 1, 'a': {'b': 2}})", "comes from two keys"),
    ("ciwrap.check({'': 1})", "a key is empty"),
    ("ciwrap.check({'a\\x1b[2J': 1})", "a key holds a control character"),
    ("ciwrap.check(1.0, 3)", "the name of a check is not text: 3"),
    ("ciwrap.check(None)", "a value of type NoneType"),
    ("ciwrap.check(object())", "a value of type object"),
    ("ciwrap.check(1.0, atol=-1)", "must be finite and not negative"),
    ("ciwrap.check(1.0, atol=float('nan'))", "must be finite and not negative"),
    ("ciwrap.check(1.0, atol=1e-6, ulps=2)", "ulps excludes atol and rtol"),
    ("ciwrap.check(1.0, evidence='all')", "must be one of auto, data, residues, tree, not 'all'"),
    ("ciwrap.check(1.0, chunk_bytes=3)", "chunk"),
    ("ciwrap.check(1.0, name='')", "the name of a check is empty"),
    ("ciwrap.check(1.0, name='a\\nb')", "holds a control character"),
    ("ciwrap.check(1.0, bounds={'a': {'atoll': 1}})", "knows no 'atoll'"),
    (
        "ciwrap.check({'pressure': 1.0}, atol=1.0, bounds={'presure': 1e-12})",
        "bounds names 'presure', but no variable has that name; did you mean 'pressure'?",
    ),
    ("ciwrap.check(1.0, bounds={'b': 1e-6})", "but no variable has that name; there is 'array'"),
    ("ciwrap.check(1.0, layout='{name}')", "are for files and folders"),
    ("ciwrap.check(1.0, exclud=['a'])", "did you mean 'exclude'"),
    ("ciwrap.check(1.0, atoll=1)", "check() knows no 'atoll'"),
    ("ciwrap.check(tmp_path / 'not there.npy')", "does not exist"),
    ("ciwrap.check(1.0); ciwrap.check(2.0)", "a second check of this test has no name"),
    ("ciwrap.check(1.0, 'a'); ciwrap.check(2.0, 'a')", "is called 'a'"),
]


def test_these_are_refused(suite: Suite) -> None:
    suite.write(file_of([call for call, _ in REFUSED]))
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(failed=len(REFUSED))
    messages = messages_of(result)
    for number, (call, says) in enumerate(REFUSED):
        assert says in messages[f"test_{number}"], call
    # Of what came before a second check of the same name.
    assert len(suite.goldens()) == 2


def test_files_and_folders(suite: Suite, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "iter_0001").mkdir(parents=True)
    np.save(folder / "iter_0001/x.npy", np.arange(5.0))
    np.save(folder / "iter_0001/y.npy", np.arange(3))
    suite.write(f"""
        from pathlib import Path
        def test_folder(ciwrap):
            ciwrap.check(Path({str(folder)!r}), atol=1e-6)
        def test_file(ciwrap):
            ciwrap.check(Path({str(folder / "iter_0001/x.npy")!r}), "x")
    """)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    suite.run().assert_outcomes(passed=2)
    # A file more, a file truncated, a file that nobody can read: none of them passes.
    np.save(folder / "iter_0001/z.npy", np.arange(3))
    result = suite.run()
    result.assert_outcomes(passed=1, failed=1)
    assert "iter 1 / z" in result.stdout.str()
    (folder / "iter_0001/z.npy").unlink()
    data = (folder / "iter_0001/x.npy").read_bytes()
    (folder / "iter_0001/x.npy").write_bytes(data[:-1])
    result = suite.run()
    result.assert_outcomes(failed=2)
    assert "no golden can be made from this" in result.stdout.str()
    (folder / "iter_0001/x.npy").write_bytes(data)
    (folder / "iter_0001/notes.md").write_text("no numbers")
    suite.run().assert_outcomes(passed=1, failed=1)


def test_a_data_frame_is_its_columns_and_index(suite: Suite) -> None:
    before = """
class Index:  # these are as pandas has them
    __module__, name, nlevels, dtype = "pandas", None, 1, np.dtype(int)
    def to_numpy(self): return np.array([0, 1])
class Series(Index):
    __module__, dtype = "pandas", np.dtype(float)
    def __init__(self, values): self.values = values
    def to_numpy(self): return np.asarray(self.values)
class DataFrame:
    __module__, attrs, index = "pandas", {}, Index()
    def __init__(self, **columns): self.data = columns
    @property
    def columns(self): return list(self.data)
    def __getitem__(self, name): return Series(self.data[name])
    def __array__(self, dtype=None, copy=None): raise AssertionError("names would be lost")
"""
    suite.write(before + file_of(["ciwrap.check(DataFrame(a=[1.0, 2.0]))"]))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    suite.write(before + file_of(["ciwrap.check(DataFrame(b=[1.0, 2.0]))"]))
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "2 of 3 variables not comparable" in result.stdout.str()


def test_marker_gives_defaults_and_the_closest_wins(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.ciwrap(atol=1.0, ignore=["t"])
        class TestIt:
            def test_a(self, ciwrap):
                ciwrap.check({"x": 1.0, "t": 1.0})
            @pytest.mark.ciwrap(rtol=0.5)
            def test_b(self, ciwrap):
                ciwrap.check({"x": 1.0, "t": 1.0})
            def test_c(self, ciwrap):
                ciwrap.check({"x": 1.0, "t": 1.0}, atol=0.25)
    """)
    suite.run("--ciwrap-update=new").assert_outcomes(passed=3)
    document = suite.document()
    bounds = [check["variables"][0]["bound"] for check in document["checks"]]
    assert [bound["atol"] for bound in bounds] == [1.0, 0.0, 0.25]
    assert [bound["rtol"] for bound in bounds] == [0.0, 0.5, 0.0]
    assert all(check["ignored_variables"] == [{"name": "t"}] for check in document["checks"])


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("ciwrap(atoll=1e-6)", "the marker ciwrap has no 'atoll'"),
        ("ciwrap(1e-6)", "the marker ciwrap takes keywords only"),
        ("ciwrap(repeat=1)", "at least 2 runs"),
        ("ciwrap(repeat=True)", "at least 2 runs"),
    ],
)
def test_a_wrong_marker_is_an_error(suite: Suite, marker: str, says: str) -> None:
    suite.write(f"@pytest.mark.{marker}\ndef test_it(ciwrap):\n    ciwrap.check(1.0)\n")
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(errors=1)
    assert says in result.stdout.str()
    assert suite.goldens() == []


def test_check_returns_what_it_found(suite: Suite) -> None:
    suite.write("""
        from ciwrap import GoldenMismatch
        def test_it(ciwrap):
            result = ciwrap.check(np.ones(4), "ones", atol=1e-3)
            assert result.verdict == "match"
            assert result.variables[0].element_count == 4
            with pytest.raises(GoldenMismatch) as caught:
                ciwrap.check(1.0, "missing")
            assert caught.value.result.verdict == "not_comparable"
            print("it has a result")
    """)
    suite.write(
        "def test_it(ciwrap):\n    ciwrap.check(np.ones(4), 'ones', atol=1e-3)\n", "tests/test_b.py"
    )
    suite.run("tests/test_b.py", "--ciwrap-update=new").assert_outcomes(passed=1)
    folder = suite.root / "golden/tests"
    (folder / "test_b.goldens").rename(folder / "test_it.goldens")
    result = suite.run("tests/test_it.py")
    # What pytest.raises has caught fails the test nevertheless: nothing was compared.
    result.assert_outcomes(failed=1)
    assert "it has a result" in result.stdout.str()
    assert summary(result) == "ciwrap: 1 matched, 1 new"


def test_what_is_ignored_need_not_be_an_array(suite: Suite) -> None:
    """Results of solvers have a message beside their numbers."""
    text = """
        from ciwrap.base.errors import CiwrapError
        RESULT = {"x": np.arange(3.0), "message": "ok", "jac": object(), "log": {"level": {1, 2}}}
        IGNORE = ["message", "j*", "log/*"]
        def test_a(ciwrap): ciwrap.check(RESULT, ignore=IGNORE)
        @pytest.mark.ciwrap(ignore=IGNORE)
        def test_b(ciwrap): ciwrap.check(RESULT)
        def test_c(ciwrap): ciwrap.check(RESULT, ignore=["message"])
    """
    suite.write(text)
    for arguments, says in (
        (("--ciwrap-update=new",), "ciwrap: 1 refused, 2 written"),
        ((), "ciwrap: 2 matched, 1 refused"),
    ):
        result = suite.run(*arguments)
        result.assert_outcomes(passed=2, failed=1)
        assert summary(result) == says
        assert "leave it out: ignore=['jac']" in result.stdout.str()
    document = suite.document("-k", "not test_c")
    for check in document["checks"]:
        assert [one["name"] for one in check["variables"]] == ["x"]
        names = [one["name"] for one in check["ignored_variables"]]
        assert names == ["jac", "log/level", "message"]
    # Ignored or not, a number is a number; and what is left must still match.
    suite.write(text.replace('"ok"', "1.0").replace("np.arange(3.0)", "np.arange(3.0) + 1"))
    suite.run("-k", "not test_c").assert_outcomes(failed=2)
    suite.write(text.replace('IGNORE = ["message", "j*", "log/*"]', 'IGNORE = ["*"]'))
    result = suite.run("-k", "not test_c")
    result.assert_outcomes(failed=2)


def test_ignored_columns_and_an_ignored_index(suite: Suite) -> None:
    suite.write("""
        class Index:  # these are as pandas has them
            __module__, name, nlevels = "pandas", None, 1
            def __init__(self, values): self.values = np.asarray(values)
            dtype = property(lambda self: self.values.dtype)
            def to_numpy(self): return self.values
        class DataFrame:
            __module__, attrs, index = "pandas", {}, Index(np.zeros(2, "V3"))
            def __init__(self, **columns): self.data = columns
            @property
            def columns(self): return list(self.data)
            def __getitem__(self, name): return Index(self.data[name])
        FRAME = DataFrame(a=[1.0, 2.0], name=np.zeros(2, "V3"))
        def test_a(ciwrap): ciwrap.check(FRAME, ignore=["name", "index"])
        def test_b(ciwrap): ciwrap.check(FRAME, ignore="name")
    """)
    result = suite.run("--ciwrap-update=new")
    result.assert_outcomes(passed=1, failed=1)
    assert "leave it out: ignore=['index']" in result.stdout.str()


def test_a_reference_file_becomes_the_golden_and_keeps_its_bound(suite: Suite) -> None:
    """As the page says: the reference first, what is computed afterwards."""
    np.savetxt(suite.root / "reference.txt", np.linspace(0, 1, 50))
    text = "def test_it(ciwrap): ciwrap.check({}, 'x', rtol=1e-6, atol=1e-9)"
    suite.write(text.format("np.loadtxt('reference.txt')"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=1)
    (suite.root / "reference.txt").unlink()
    for factor, outcome in (("1 + 0.9e-6", "passed"), ("1 + 1.1e-6", "failed")):
        suite.write(text.format(f"np.linspace(0, 1, 50) * ({factor})"))
        suite.run().assert_outcomes(**{outcome: 1})
