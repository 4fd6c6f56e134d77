"""`ciwrap.time(a, b)`: run times of two calls, in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plugin.conftest import summary

if TYPE_CHECKING:
    from plugin.conftest import Suite

# A hundredfold: no busy machine turns that round.
SLOWER = """
    import time
    CALLS = []

    def quick():
        CALLS.append("a")
        time.sleep(0.0005)

    def slow():
        CALLS.append("b")
        time.sleep(0.05)

    def test_it(ciwrap):
        found = ciwrap.time(quick, slow, NAME pairs=8, warm_up=2 MORE)
        assert str(found.verdict) == "changed"
        assert found.pairs == 8
        assert 1 < found.lower < found.change < found.upper
        assert CALLS[:4] == ["a", "b", "a", "b"]
        pairs = ["".join(CALLS[n : n + 2]) for n in range(4, 20, 2)]
        assert sorted(pairs) == ["ab"] * 4 + ["ba"] * 4
        assert len(CALLS) == 20
"""


def written(suite: Suite, name: str = "", more: str = "") -> None:
    suite.write(SLOWER.replace("NAME", name).replace("MORE", more))


def test_a_slower_call_is_told_of_and_fails_nothing(suite: Suite) -> None:
    written(suite, name='"solver",')
    result = suite.run("--junit-xml=junit.xml")
    result.assert_outcomes(passed=1)
    assert summary(result) == "ciwrap: 1 timed"
    head = "*time: tests/test_it.py::test_it::solver: changed: B takes * more time than A; B takes "
    result.stdout.fnmatch_lines([f"{head}* with 95 % confidence, from 8 pairs"])
    junit = (suite.root / "junit.xml").read_text()
    assert 'name="ciwrap time tests/test_it.py::test_it::solver" value="changed: B takes' in junit


def test_the_gate_is_for_those_who_ask(suite: Suite) -> None:
    written(suite, more=", gate=True")
    result = suite.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*test_it: changed: B takes * with 99 % confidence, from 8 *"])
    assert summary(result) == "ciwrap: 1 timed"


def test_the_configuration_says_how(suite: Suite) -> None:
    text = "timing: {pairs: 3, margin: 0.1, gate: true, warm_up: 0}\nchecks: {x: {outputs: out}}\n"
    (suite.root / "ciwrap.yaml").write_text(text)
    suite.write("""
        def test_it(ciwrap):
            found = ciwrap.time(lambda: sum(range(1000)), lambda: sum(range(1000)))
            assert (found.pairs, found.margin, found.confidence) == (3, 0.1, 0.99)
            assert (str(found.verdict), found.lower) == ("inconclusive", None)
    """)
    suite.run().assert_outcomes(passed=1)


def test_timings_are_in_the_documents_beside_checks(suite: Suite) -> None:
    suite.write("""
        def test_it(ciwrap):
            ciwrap.check(np.arange(3.0))
            ciwrap.time(lambda: None, lambda: None, "one", pairs=1)
            ciwrap.time(lambda: None, lambda: None, "two", pairs=1)
    """)
    suite.run("--ciwrap-update=new")
    document = suite.document()
    assert document["verdict"] == "match"
    told = [one["text"] for one in document["messages"] if one["text"].startswith("time: ")]
    assert [text.split(": ")[1] for text in told] == [
        "tests/test_it.py::test_it::one",
        "tests/test_it.py::test_it::two",
    ]
    assert "inconclusive" in told[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("ciwrap.time(1, len)", "takes two functions without arguments, not int"),
        ("ciwrap.time(len, len, pairs=0)", "time(): pairs"),
        ("ciwrap.time(len, len, margin='much')", "time(): margin"),
        ("ciwrap.time(lambda: 1 / 0, lambda: None)", "ZeroDivisionError"),
    ],
)
def test_what_has_no_meaning(suite: Suite, call: str, words: str) -> None:
    suite.write(f"""
        def test_it(ciwrap):
            {call}
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()


def test_it_has_no_place_beside_repeat(suite: Suite) -> None:
    suite.write("""
        @pytest.mark.ciwrap(repeat=3)
        def test_it(ciwrap):
            ciwrap.check(1.0)
            ciwrap.time(lambda: None, lambda: None)
    """)
    result = suite.run()
    result.assert_outcomes(failed=1)
    assert "repeat=N cannot be used with it" in result.stdout.str()


def test_workers_say_that_others_ran_meanwhile(suite: Suite) -> None:
    pytest.importorskip("xdist")
    suite.write("""
        def test_it(ciwrap):
            ciwrap.time(lambda: None, lambda: None, pairs=2)
    """)
    told = suite.subprocess("-n", "2").stdout
    assert "ciwrap: 1 timed" in told
    assert "other tests may have run at the same time" in told
