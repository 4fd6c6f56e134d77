"""From a failure to a new golden: review, accept, reject, and what is kept of it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pexpect
import pytest
from plugin.review_suite import manifest, write

if TYPE_CHECKING:
    from plugin.conftest import Suite


def test_git_does_not_see_what_waits(changed: Suite) -> None:
    assert changed.git("status", "--short") == "M tests/test_it.py"


def test_review_without_a_terminal_tells_what_to_type(changed: Suite) -> None:
    before = changed.files("golden")
    done = changed.cli("review", "--json", "review.json")
    assert done.returncode == 0
    assert "would be replaced  tests/test_it.py::test_a::a" in done.stdout
    assert "100 of 100 values differ by more than the bound (atol=0.001)" in done.stdout
    assert "  ciwrap accept tests/test_it.py::test_a::a --reason '...'" in done.stdout
    document = json.loads((changed.root / "review.json").read_text())
    assert [check["largest_bound_share"] for check in document["checks"]] == [
        pytest.approx(500),
        pytest.approx(500),
    ]
    assert changed.files("golden") == before
    assert len(changed.waiting()) == 2


def test_accept_one(changed: Suite) -> None:
    commit = changed.git("rev-parse", "HEAD")
    old = manifest(changed, "test_b")["binary"]["root"]
    done = changed.cli("accept", "tests/test_it.py::test_b")
    assert done.returncode == 2
    assert "needs a reason; nothing was written" in done.stderr
    assert changed.cli("accept", "tests/test_it.py::test_b", "-m", " ").returncode == 2
    done = changed.cli("accept", "tests/test_it.py::test_b", "--dry-run")
    assert done.returncode == 0
    assert manifest(changed, "test_b")["binary"]["root"] == old
    done = changed.cli("accept", "tests/test_it.py::test_b", "--reason", "As measured: 2.5")
    assert done.returncode == 0, done.stderr
    assert "replaced  tests/test_it.py::test_b" in done.stdout
    entry = manifest(changed, "test_b")["accepted"][-1]
    assert entry["why"] == "As measured: 2.5"
    assert entry["commit"] == f"{commit}-dirty"
    assert entry["old_root"] == old
    assert entry["new_root"] == manifest(changed, "test_b")["binary"]["root"]
    assert entry["largest_bound_share"] == pytest.approx(500)
    assert "bounds" not in entry
    assert "pending" not in manifest(changed, "test_b")
    assert list(changed.waiting()) == ["tests/test_it.py::test_a::a"]
    changed.run().assert_outcomes(passed=1, failed=1)
    assert changed.cli("accept", "nothing like it").returncode == 2
    assert changed.cli("accept", "--pending", "-m", "both").returncode == 0
    changed.run().assert_outcomes(passed=2)


def test_reject(changed: Suite) -> None:
    before = changed.files("golden")
    assert changed.cli("reject").returncode == 2
    done = changed.cli("reject", "*::a", "--reason", "A bug in the push")
    assert done.stdout == "rejected  tests/test_it.py::test_a::a\n"
    assert list(changed.waiting()) == ["tests/test_it.py::test_b"]
    done = changed.cli("reject", "--all", "--json", "reject.json")
    assert done.returncode == 0
    assert changed.waiting() == {}
    assert changed.files("golden") == before
    log = (changed.root / ".ciwrap/rejected.jsonl").read_text().splitlines()
    assert [json.loads(line)["why"] for line in log] == ["A bug in the push", None]
    assert changed.cli("review").stdout == "nothing waits for review\n"


@pytest.fixture
def two_files(suite: Suite) -> Suite:
    """Two test files with a golden each, both of which wait to be replaced."""
    for name in ("a", "b"):
        text = f"def test_{name}(ciwrap): ciwrap.check(np.full(9, SHIFT))"
        suite.write(text.replace("SHIFT", "1.0"), f"tests/test_{name}.py")
    suite.run("--ciwrap-update=new").assert_outcomes(passed=2)
    for name in ("a", "b"):
        suite.write(
            f"def test_{name}(ciwrap): ciwrap.check(np.full(9, 2.0))", f"tests/test_{name}.py"
        )
    suite.run().assert_outcomes(failed=2)
    return suite


def test_what_was_accepted_before_an_error_is_said(two_files: Suite) -> None:
    in_the_way = two_files.root / "golden/tests/test_b.goldens.whole.next"
    in_the_way.mkdir()
    done = two_files.cli("accept", "tests", "--reason", "x")
    assert done.returncode == 3
    words = "; accepted before that: tests/test_a.py::test_a, tests/test_b.py::test_b; "
    assert words in done.stderr
    assert two_files.waiting() == {}
    in_the_way.rmdir()
    two_files.run().assert_outcomes(passed=2)


def test_what_was_rejected_before_an_error_is_said(changed: Suite) -> None:
    (changed.root / ".ciwrap/pending/tests/test_it.goldens.whole.next").mkdir()
    done = changed.cli("reject", "tests/test_it.py::test_a")
    assert done.returncode == 3
    assert "; rejected before that: tests/test_it.py::test_a::a; " in done.stderr


def test_a_document_that_cannot_be_written_hides_nothing(two_files: Suite) -> None:
    nowhere = ("--json", "nowhere/x.json")
    done = two_files.cli("accept", "tests/test_a.py", "--reason", "x", *nowhere)
    assert done.returncode == 3
    assert "replaced  tests/test_a.py::test_a" in done.stdout
    done = two_files.cli("reject", "--all", *nowhere)
    assert done.returncode == 3
    assert "rejected  tests/test_b.py::test_b" in done.stdout


def test_a_wider_bound_is_told_apart_from_new_values(suite: Suite) -> None:
    write(suite)
    suite.run("--ciwrap-update=new")
    write(suite, 1.05, bound=1e-2)
    suite.run().assert_outcomes(passed=1, failed=1)
    done = suite.cli("review")
    assert "redefined  a: 100 of 100 values" in done.stdout
    assert "bound atol=0.001 rtol=0 -> atol=0.01 rtol=0  (WIDER)" in done.stdout
    assert suite.cli("accept", "--pending", "-m", "noisy machine").returncode == 0
    entry = manifest(suite, "test_a-a")["accepted"][-1]
    assert entry["bounds"] == ["a: atol=0.001 rtol=0 -> atol=0.01 rtol=0 (wider)"]
    suite.run().assert_outcomes(passed=2)


def test_another_bound_needs_no_new_golden(suite: Suite) -> None:
    """The same numbers match, whatever the test asks for; others are judged by what it asks."""
    write(suite)
    suite.run("--ciwrap-update=new")
    before = suite.files("golden")
    for bound, shift in ((1e-2, 5e-3), (1e-9, 0.0), (1e-3, 5e-4)):
        write(suite, 1.0 + shift, bound=bound)
        suite.run().assert_outcomes(passed=2)
        write(suite, 1.0 + 3 * shift + 1e-8, bound=bound)
        suite.run().assert_outcomes(passed=1, failed=1)
        suite.cli("reject", "--all")
    assert suite.files("golden") == before


def test_how_far_residues_moved_is_what_the_run_found(suite: Suite) -> None:
    text = "def test_it(ciwrap): ciwrap.check(np.arange(1e4) + X, atol=1e-3, evidence='residues')"
    suite.write(text.replace("X", "0"))
    suite.run("--ciwrap-update=new")
    suite.write(text.replace("X", "(np.arange(1e4) > 9990)"))
    suite.run().assert_outcomes(failed=1)
    done = suite.cli("review")
    assert "changed  array: 1 of 20 blocks differs" in done.stdout
    (suite.root / ".ciwrap/pending/tests/test_it/test_it.result.json").write_text("{}")
    done = suite.cli("review")
    assert "changed  array: how far it moved is not known" in done.stdout


def test_a_golden_that_changed_meanwhile_is_not_replaced(changed: Suite) -> None:
    kept = changed.root / "kept"
    shutil.copytree(changed.root / ".ciwrap", kept)
    assert changed.cli("accept", "--pending", "-m", "first").returncode == 0
    write(changed, 3.5, 3.5)
    changed.run("--ciwrap-update=failed", "--ciwrap-reason=second").assert_outcomes(passed=2)
    before = changed.files("golden")
    shutil.copytree(kept, changed.root / ".ciwrap", dirs_exist_ok=True)
    done = changed.cli("accept", "--pending", "-m", "late")
    assert done.returncode == 3
    assert "the golden there has changed since this one was made" in done.stderr
    assert changed.files("golden") == before
    done = changed.cli("review")
    assert "error: " in done.stdout


@pytest.mark.parametrize("damage", ["number", "cut", "name"])
def test_a_damaged_pending_golden_is_not_accepted(changed: Suite, damage: str) -> None:
    path = changed.root / ".ciwrap/pending/tests/test_it.goldens"
    text = path.read_text()
    if damage == "number":
        at = text.index('["test_b"') + 40
        text = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    elif damage == "cut":
        text = text[:-20]
    else:
        text = text.replace('["test_b"', '["test_c"')
    path.write_text(text)
    before = changed.files("golden")
    # One that is damaged keeps all from being accepted: either everything or nothing.
    done = changed.cli("accept", "--pending", "-m", "x")
    assert done.returncode == 3
    assert "none of the goldens in it can be used" in done.stderr
    assert "`ciwrap reject --all`" in done.stderr
    assert changed.files("golden") == before
    done = changed.cli("review")
    assert done.returncode == 3
    assert "error: " in done.stdout
    # The way out that the message names.
    done = changed.cli("reject", "--all")
    assert done.returncode == 0, done.stderr
    assert "deleted  .ciwrap/pending/tests/test_it.goldens (damaged)" in done.stdout
    assert not path.exists()
    changed.run().assert_outcomes(failed=2)
    assert changed.cli("accept", "--pending", "-m", "x").returncode == 0


def test_what_waits_beside_a_damaged_file_can_be_decided(changed: Suite) -> None:
    (changed.root / "tests/test_other.py").write_text(
        "import numpy as np\ndef test_o(ciwrap): ciwrap.check(np.ones(3))\n"
    )
    changed.run()
    path = changed.root / ".ciwrap/pending/tests/test_it.goldens"
    path.write_text(path.read_text()[:-20])
    done = changed.cli("accept", "tests/test_other.py")
    assert done.returncode == 0, done.stderr
    done = changed.cli("review")
    assert done.stdout.startswith("error: .ciwrap/pending/tests/test_it.goldens: it is cut off")
    # The damaged one may be meant.
    done = changed.cli("reject", "tests/test_it.py")
    assert done.returncode == 3
    assert "it is cut off" in done.stderr


def test_the_goldens_of_a_damaged_file_are_made_whole_by_accepting(changed: Suite) -> None:
    """The line that is damaged is lost; the other one stays, and so does who accepted it."""
    path = changed.root / "golden/tests/test_it.goldens"
    whole = path.read_text()
    path.write_text(whole.replace('["test_b"', '["test_x"'))
    write(changed)
    changed.run().assert_outcomes(failed=2)
    done = changed.cli("accept", "--pending", "--reason", "It was damaged")
    assert done.returncode == 0, done.stderr
    changed.run().assert_outcomes(passed=2)
    assert manifest(changed, "test_a-a")["accepted"][0]["why"] == "first golden"


def test_of_a_merge_that_is_not_resolved_somebody_has_to_choose(changed: Suite) -> None:
    path = changed.root / "golden/tests/test_it.goldens"
    lines = path.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith('["test_b"'))
    marked = [*lines[:at], "<<<<<<< a", lines[at], "=======", ">>>>>>> b", *lines[at + 1 :], ""]
    path.write_text("\n".join(marked))
    write(changed)
    changed.run().assert_outcomes(failed=2)
    done = changed.cli("accept", "--pending", "--reason", "x")
    assert done.returncode == 3
    assert "delete the marks of the merge" in done.stderr
    assert path.read_text() == "\n".join(marked)
    path.write_text("\n".join([*lines, ""]))
    changed.run().assert_outcomes(passed=2)


def test_prune_goes_on_beside_a_damaged_file(changed: Suite) -> None:
    other = changed.root / "tests/test_other.py"
    other.write_text("import numpy as np\ndef test_o(ciwrap): ciwrap.check(np.ones(3))\n")
    changed.run("--ciwrap-update=new")
    other.write_text("def test_p(): pass\n")
    changed.run()
    path = changed.root / "golden/tests/test_it.goldens"
    path.write_text(path.read_text().replace('["test_b"', '["test_x"'))
    before = path.read_text()
    done = changed.cli("prune", "--yes")
    assert done.returncode == 0, done.stderr
    assert "left as it is  golden/tests/test_it.goldens: line" in done.stdout
    assert "deleted  golden/tests/test_other.goldens (test_o)" in done.stdout
    assert path.read_text() == before


def interview(
    suite: Suite, answers: list[tuple[str, str]], code: int | None = 0, **env: str
) -> str:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ciwrap", "review"],
        cwd=str(suite.root),
        env=suite.environment(TERM="dumb", **env),
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 80),
    )
    said = ""
    for prompt, answer in answers:
        child.expect_exact(prompt)
        said += child.before + child.after
        child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code, said + child.before
    return said + child.before


def test_review_at_a_terminal(changed: Suite) -> None:
    said = interview(
        changed,
        [
            ("[q]uit:", "what?"),
            ("[q]uit:", "a"),
            ("why are the new numbers right", "Second-order push"),
            ("[q]uit:", "r"),
        ],
    )
    assert "100 of 100 values differ by more than the bound (atol=0.001)" in said
    assert "made 20" in said
    assert "1 accepted, 1 rejected" in said
    assert changed.waiting() == {}
    assert manifest(changed, "test_a-a")["accepted"][-1]["why"] == "Second-order push"
    changed.run().assert_outcomes(passed=1, failed=1)


CLEARED = re.compile(r"\x1b\[H\x1b\[2J|\x1b\[2J\x1b\[1;1H")


def keyed(suite: Suite, keys: str, **env: str) -> list[str]:
    """The screens of a review at 80 x 30 that takes keys, `-` for a reason; after each key what has
    been written since the screen was cleared last.
    """
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ciwrap", "review"],
        cwd=str(suite.root),
        env=suite.environment(
            TERM="xterm", PAGER="cat", BROWSER="true", NO_COLOR="1", COLUMNS="80", **env
        ),
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 80),
    )
    screens, screen = [], ""
    for key in keys:
        child.expect_exact("are the new numbers right" if key == "-" else "[q]uit: ")
        screen = CLEARED.split(screen + child.before + child.after)[-1]
        screens.append(screen)
        child.send("as measured\r" if key == "-" else key)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return [*screens, child.before]


def rows(screen: str) -> int:
    """Of a terminal 80 columns wide."""
    return sum(max(1, -(-len(line) // 80)) for line in screen.splitlines())


FIELDS = (
    """\
import numpy as np
def test_fields(ciwrap):
    rng = np.random.default_rng(1)
    noise = SPREAD * rng.random((40, 60))
    ciwrap.check({f"a_name_that_is_long_{n}": CHANGE for n, x in enumerate(noise)}, atol=1e-9)
    # the source is longer than a screen
"""
    + "    # a line\n" * 30
)


def fields(suite: Suite, change: str, spread: float) -> None:
    text = FIELDS.replace("CHANGE", change).replace("SPREAD", repr(spread))
    suite.write(f"{text}    assert True\n", "tests/test_fields.py")


def test_every_key_leaves_a_screen_that_fits(changed: Suite) -> None:
    """80 x 30: what has no room is said to be left out, and `d` has all of it."""
    fields(changed, "x + 2.0**n", 1.0)
    changed.run("--ciwrap-update=new", "tests/test_fields.py")
    fields(changed, "x + 2.0**n", 2.0)
    changed.run()
    first, details, again, source, help_, opened, back, after, *_ = keyed(changed, "dxt?obsq")
    for screen in (first, again, help_, opened, back, after):
        assert rows(screen) <= 30, screen
    assert "--- 1 of 3 ---" in first
    assert "--- 1 of 3 ---" in again
    # Longer than the screen: through the pager, nothing cut.
    assert first.count("a_name_that_is_long") < 12
    assert "more lines: [d]" in first
    assert all(f"a_name_that_is_long_{n}:" in details for n in range(20))
    assert "assert True" in source
    assert "any other key shows the change again" in help_
    assert "opened .ciwrap/review.html" in opened
    assert "none before this one was left for later" in back


def test_what_changes_alike_is_shown_once(changed: Suite) -> None:
    fields(changed, "x + 0.5", 1.0)
    changed.run("--ciwrap-update=new", "tests/test_fields.py")
    fields(changed, "-x - 0.5", 1.0)
    changed.run()
    first, *_ = keyed(changed, "q")
    assert rows(first) <= 30
    assert first.count("the sign is flipped") == 1
    said = " ".join(first.split())
    assert "likewise: a_name_that_is_long_" in said
    assert "and 34 more" in said


def test_what_is_described_otherwise_can_be_reviewed(changed: Suite) -> None:
    text = (
        "import numpy as np\n"
        "def test_bound(ciwrap): ciwrap.check(N * np.ones(3), atol=10.0**-4 * N)\n"
        "def test_shape(ciwrap): ciwrap.check(np.ones(2 + N))\n"
        "def test_type(ciwrap): ciwrap.check(np.ones(3, f'f{8 // N}'))\n"
    )
    changed.write(text.replace("N", "1"), "tests/test_other.py")
    changed.run("--ciwrap-update=new", "tests/test_other.py")
    changed.write(text.replace("N", "2"), "tests/test_other.py")
    changed.run("tests/test_other.py").assert_outcomes(failed=3)
    _, _, bound, shape, type_, _, _ = keyed(changed, "sssra-")
    assert "(WIDER)" in bound
    assert "shape (3,) -> (4,)" in shape
    assert "dtype <f8 -> <f4" in type_
    accepted, rejected = "tests/test_other.py::test_type", "tests/test_other.py::test_shape"
    assert {accepted, rejected}.isdisjoint(changed.waiting())


@pytest.mark.parametrize(
    ("answer", "folder", "code", "said"),
    [
        ("a", "golden", 0, "1 accepted, 1 left for later"),
        # The list of what waits cannot be brought up to date either.
        ("r", ".ciwrap/pending", 3, "1 rejected, 1 left for later"),
    ],
)
def test_review_counts_what_was_done_before_an_error(
    changed: Suite, answer: str, folder: str, code: int, said: str
) -> None:
    """The line is in the journal, and counts; the shared file could not be put in place."""
    in_the_way = changed.root / folder / "tests/test_it.goldens.whole.next"
    in_the_way.mkdir()
    why = [("why are the new numbers right", "x")] if answer == "a" else []
    output = interview(
        changed, [("[q]uit:", answer), *why, ("[q]uit:", "q")], code=3 if answer == "r" else 0
    )
    assert "what was written last lies in test_it.goldens.next beside it, and counts" in output
    assert said in output


def test_review_takes_one_key_without_enter(changed: Suite) -> None:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ciwrap", "review"],
        cwd=str(changed.root),
        env=changed.environment(TERM="xterm"),
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 80),
    )
    said = ""
    for prompt, keys in [
        ("[q]uit:", "\x1b[A"),  # an arrow is no answer
        ("[q]uit:", "ar"),  # nor is what was pasted
        ("[q]uit:", "?"),
        ("[q]uit:", "\r"),
        ("[q]uit:", "b"),
        ("[q]uit:", "a"),
        ("why are the new numbers right", "Second-order push\r"),
        ("[q]uit:", "q"),
    ]:
        child.expect_exact(prompt)
        said += child.before + child.after
        child.send(keys)
    child.expect(pexpect.EOF)
    child.close()
    said += child.before
    assert child.exitstatus == 0, said
    assert said.count("please answer with one of these letters") == 2
    # Each line of the help stands by itself, whatever the terminal's width.
    assert "  s  decide later (Enter does so, too)" in said.splitlines()
    assert "  q  end; what is not decided stays" in said.splitlines()
    assert "1 accepted, 1 left for later" in said
    assert manifest(changed, "test_a-a")["accepted"][-1]["why"] == "Second-order push"
    assert list(changed.waiting()) == ["tests/test_it.py::test_b"]


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_a_review_that_is_ended_leaves_the_terminal_as_it_was(changed: Suite, key: str) -> None:
    env = changed.environment(TERM="xterm", PS1="$ ")  # that of an environment may be none
    child = pexpect.spawn("/bin/sh", env=env, encoding="utf-8")
    child.expect_exact("$ ")
    child.sendline(f"cd '{changed.root}'; stty -g >before; '{sys.executable}' -m ciwrap review")
    child.expect_exact("[q]uit:", timeout=60)
    child.send(key)
    child.sendline("stty -g >after; exit")
    child.expect(pexpect.EOF, timeout=60)
    child.close()
    assert (changed.root / "before").read_text() == (changed.root / "after").read_text()
    assert len(changed.waiting()) == 2


def test_review_goes_back_shows_details_and_helps(changed: Suite) -> None:
    said = interview(
        changed,
        [("[q]uit:", answer) for answer in ("b", "?", "s", "d", "b", "r", "q")],
    )
    assert "none before this one was left for later" in said
    # Each line of the help stands by itself, whatever the terminal's width.
    assert "  s  decide later (Enter does so, too)" in said.splitlines()
    assert "  q  end; what is not decided stays" in said.splitlines()
    details = said.partition("--- 2 of 2 ---")[2].partition("---")[0]
    assert "|difference| 0.5" in details
    assert re.findall(r"--- \d of 2 ---", said) == [
        "--- 1 of 2 ---",
        "--- 1 of 2 ---",
        "--- 2 of 2 ---",
        "--- 1 of 2 ---",
        "--- 2 of 2 ---",
    ]
    assert "1 rejected, 1 left for later" in said
    assert list(changed.waiting()) == ["tests/test_it.py::test_b"]


@pytest.mark.parametrize("answer", ["a", "r"])
def test_review_decides_nothing_that_it_has_not_shown(changed: Suite, answer: str) -> None:
    """While somebody looks at the numbers, another test run leaves newer ones."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "ciwrap", "review", "tests/test_it.py::test_b"],
        cwd=str(changed.root),
        env=changed.environment(TERM="dumb"),
        encoding="utf-8",
        timeout=60,
        dimensions=(30, 80),
    )
    child.expect_exact("[q]uit:")
    assert "golden 2.0, new 2.5" in child.before
    goldens = changed.files("golden")
    write(changed, 1.5, 3.5)
    changed.run().assert_outcomes(failed=2)
    child.sendline(answer)
    if answer == "a":
        child.expect_exact("why are the new numbers right")
        child.sendline("As measured: 2.5")
    child.expect(pexpect.EOF)
    child.close()
    assert "was replaced or removed meanwhile" in child.before
    assert "1 left for later" in child.before
    assert changed.files("golden") == goldens
    assert len(changed.waiting()) == 2
    done = changed.cli("accept", "tests/test_it.py::test_b", "-m", "As measured: 3.5")
    assert done.returncode == 0, done.stderr
    changed.run().assert_outcomes(passed=1, failed=1)


MANY = """
    @pytest.mark.parametrize("n", range(4))
    def test_p(n, ciwrap):
        ciwrap.check(np.full(5, float(n)) * (1.0 if n == 3 else FACTOR) + SHIFT, atol=1e-3)
"""


def test_review_accepts_those_that_change_alike_together(suite: Suite) -> None:
    suite.write(MANY.replace("FACTOR", "1.0").replace("SHIFT", "0.0"))
    suite.run("--ciwrap-update=new").assert_outcomes(passed=4)
    suite.write(MANY.replace("FACTOR", "1.0").replace("SHIFT", "(0.5 if n < 3 else 70.0)"))
    suite.run().assert_outcomes(failed=4)
    said = interview(
        suite,
        [
            ("[q]uit:", "s"),
            ("[q]uit:", "g"),
            ("why are the new numbers right", "Shifted"),
            ("[q]uit:", "q"),
        ],
    )
    first = said.partition("--- 1 of 4 ---")[2].partition("--- 2 of 4 ---")[0]
    assert "2 other checks change alike ([g] accepts all):" in first
    assert "test_p[3]" not in first
    assert "3 accepted, 1 left for later" in said
    assert list(suite.waiting()) == ["tests/test_it.py::test_p[3]"]
    assert suite.golden("test_p[1]").manifest.accepted[-1].why == "Shifted"
    suite.run().assert_outcomes(passed=3, failed=1)


def test_review_shows_the_test_and_opens_its_page(changed: Suite) -> None:
    opened = changed.root / "opened"
    said = interview(
        changed,
        [("[q]uit:", "t"), ("[q]uit:", "o"), ("[q]uit:", "q")],
        BROWSER=f"sh -c 'echo $0 > {opened}' %s",
    )
    assert "def test_a(ciwrap" in said
    assert "opened .ciwrap/review.html" in said
    page = changed.root / ".ciwrap/review.html"
    assert opened.read_text().strip() == page.resolve().as_uri()
    assert "test_it.py::test_a" in page.read_text()
    assert len(changed.waiting()) == 2


def test_review_accepts_all_with_one_reason(changed: Suite) -> None:
    said = interview(changed, [("[q]uit:", "A"), ("why are the new numbers right", "Both")])
    assert "2 accepted" in said
    assert manifest(changed, "test_b")["accepted"][-1]["why"] == "Both"
    changed.run().assert_outcomes(passed=2)


def test_review_can_be_left(changed: Suite) -> None:
    said = interview(changed, [("[q]uit:", "s"), ("[q]uit:", "q")])
    assert "2 left for later" in said
    assert len(changed.waiting()) == 2


def test_accept_for_one_kind_of_machine(changed: Suite) -> None:
    done = changed.cli("accept", "tests/test_it.py::test_b", "--variant", "arm64")
    assert done.returncode == 0, done.stderr
    assert "golden/tests/test_it/@arm64.goldens" in done.stdout
    assert "tests/test_it/@arm64/test_b.golden" in changed.goldens()
    changed.run("--ciwrap-variant=arm64").assert_outcomes(passed=1, failed=1)
    write(changed)
    changed.run().assert_outcomes(passed=2)


CONFIG = "version: 1\ndefaults: {atol: 1e-6}\nchecks:\n  mesh: {outputs: out.csv}\n"


def test_checks_of_the_configuration_wait_too(suite: Suite) -> None:
    (suite.root / "ciwrap.yaml").write_text(CONFIG)
    (suite.root / "out.csv").write_text("x\n1.0\n2.0\n")
    done = suite.cli("check", "--pending")
    assert done.returncode == 3
    assert "1 golden waits for review: ciwrap review\n" in done.stdout
    assert suite.waiting()["mesh"]["kind"] == "new"
    assert suite.waiting()["mesh"]["golden_path"] == "golden/mesh.golden"
    assert suite.cli("accept", "--pending").returncode == 0
    assert suite.cli("check", "--pending").returncode == 0
    (suite.root / "out.csv").write_text("x\n1.0\n2.5\n")
    assert suite.cli("check", "--pending").returncode == 1
    assert suite.waiting()["mesh"]["kind"] == "changed"
    done = suite.cli("review")
    assert "1 of 2 values differs by more than the bound (atol=1e-6)" in done.stdout
    (suite.root / "out.csv").write_text("x\n1.0\n2.0\n")
    assert suite.cli("check", "--pending").returncode == 0
    assert suite.waiting() == {}
    # Without --pending nothing is written but what is asked for.
    (suite.root / "out.csv").write_text("x\n1.0\n2.5\n")
    assert suite.cli("check").returncode == 1
    assert suite.waiting() == {}
    assert suite.cli("check", "--pending=kept").returncode == 1
    assert (suite.root / "kept/mesh.golden").exists()
    done = suite.cli("accept", "--from", "kept", "--reason", "as measured")
    assert done.returncode == 0, done.stderr
    assert suite.cli("check").returncode == 0


def test_what_cannot_be_captured_does_not_wait(suite: Suite) -> None:
    (suite.root / "ciwrap.yaml").write_text(CONFIG)
    (suite.root / "out.csv").write_text("x\n1.0\nnothing\n")
    done = suite.cli("check", "--pending")
    assert done.returncode == 3
    assert "mesh: nothing waits for review" in done.stdout
    assert suite.waiting() == {}


def test_a_run_whose_command_failed_leaves_nothing(suite: Suite) -> None:
    (suite.root / "out.csv").write_text("x\n1.0\n")
    (suite.root / "ciwrap.yaml").write_text(CONFIG + "run: echo x > out.csv; exit 1\n")
    assert suite.cli("run", "--pending").returncode == 3
    assert suite.waiting() == {}
    (suite.root / "ciwrap.yaml").write_text(CONFIG + "run: true\n")
    assert suite.cli("run", "--pending").returncode == 3  # stale outputs
    assert suite.waiting() == {}
    (suite.root / "ciwrap.yaml").write_text(CONFIG + 'run: printf "x\\n3.0\\n" > out.csv\n')
    done = suite.cli("run", "--pending")
    assert done.returncode == 3
    assert "1 golden waits for review: ciwrap review\n" in done.stdout
    assert list(suite.waiting()) == ["mesh"]
