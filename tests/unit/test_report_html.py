"""The page: self-contained, safe, bounded, and saying what it should."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace
from report_scenarios import HOSTILE, hostile, many

from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    Details,
    ErrorBound,
    Evidence,
    Message,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.results import ProjectOptions
from ciwrap.model.variable_result import SUSPECT, Picture, cells_text
from ciwrap.report.page import nice, render_html
from ciwrap.report.terminal import accept_command

MOST_PAGE_BYTES = 5_000_000


class Page(HTMLParser):
    """All elements with their attributes, the text, and what stands in scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside:
            (self.scripts if self._inside[-1] == "script" else self.styles).append(data)
        else:
            self.text += data

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def differing(**more: Any) -> VariableResult:
    facts: dict[str, Any] = {
        "evidence": Evidence.DATA,
        "bound": ErrorBound(1e-6),
        "element_count": 10,
        "differing_count": 1,
        "first_index": (3,),
        "max_bound_share": 42.0,
        "shape": (10,),
    }
    return VariableResult("x", Verdict.DIFFER, **{**facts, **more})


def run_of(*variables: VariableResult, **more: Any) -> RunResult:
    verdict = Verdict.worst(variable.verdict for variable in variables)
    return RunResult(verdict, (CheckResult("c", verdict, variables, **more),))


def test_hostile_texts_stay_texts() -> None:
    text = render_html(hostile())
    page = Page(text)
    assert len(page.scripts) == len(page.styles) == 1
    assert {tag for tag, _ in page.elements}.isdisjoint(
        {"img", "iframe", "object", "embed", "base"}
    )
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
    for text_shown in ("<script>alert(1)</script>", "{{ 7 * 7 }}{% raw %}", "\\u202egnp.exe"):
        assert text_shown in page.text
    # What is invisible, moves the cursor or turns the reading direction is written as an escape.
    shown = page.text.replace("\n", "")
    odd = {char for char in shown if not char.isprintable()} - {"\u00a0"}
    assert not odd
    # The longest is the end of a command's output, in a box of its own.
    assert max(len(word) for word in page.text.split()) <= 4000


def test_every_hostile_name_can_be_found() -> None:
    page = Page(render_html(hostile()))
    for text in HOSTILE:
        start = text[:8].encode("unicode_escape").decode() if not text.isprintable() else text[:8]
        assert start in page.text, text


def test_nothing_is_loaded_and_only_our_script_runs() -> None:
    text = render_html(hostile())
    page = Page(text)
    (policy,) = [
        attributes["content"]
        for attributes in page.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:")
    for found, kind in ((page.scripts[0], "script"), (page.styles[0], "style")):
        digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    for _, attributes in page.elements:
        assert "style" not in attributes
        for name in ("src", "href", "action", "srcset", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/png;", "data:,")), value


def test_links_within_the_page_lead_somewhere() -> None:
    page = Page(render_html(many(200, 20)))
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    targets = {a["href"] for a in page.all("a")} | {a["href"] for a in page.all("use")}
    assert {str(target).removeprefix("#") for target in targets} <= ids
    assert len([1 for _, attributes in page.elements if "id" in attributes]) == len(ids)


def test_ten_thousand_checks_and_a_hundred_million_elements_fit() -> None:
    run = many()
    assert sum(v.differing_count or 0 for c in run.checks for v in c.variables) > 0.99e8
    text = render_html(run)
    assert len(text.encode()) < MOST_PAGE_BYTES
    assert text.count("<tr data-v=") == 10_000
    assert "more variables that do not match" in text


def test_the_largest_names_and_pictures_fit() -> None:
    cells = bytes(range(256)) * 60
    picture = Picture(1, 96, 160, (0, 0), 0.0, 1.0, *(3 * (cells_text(cells),)), row_axis=0)
    checks = tuple(
        CheckResult(
            f"{number}{'n' * 10_000}",
            Verdict.DIFFER,
            (differing(shape=(96, 160), first_index=(0, 3), details=Details(picture=picture)),),
        )
        for number in range(10_000)
    )
    text = render_html(RunResult(Verdict.DIFFER, checks))
    assert len(text.encode()) < MOST_PAGE_BYTES
    assert "more variables, not listed here" in text


def test_what_comes_first() -> None:
    """The verdict, then the sentence, then the findings: the earliest before the worst."""
    early = differing(iteration=2, rank=1, differing_count=3, max_bound_share=2.0)
    late = replace(differing(iteration=3, rank=0), name="y", max_bound_share=1e6)
    fine = [
        VariableResult(name, Verdict.MATCH, iteration=1, element_count=1, differing_count=0)
        for name in ("x", "y", "z")
    ]
    text = Page(render_html(run_of(late, early, *fine))).text
    at = 0
    for words in (
        "Numbers differ",
        (
            "First difference: iteration 2, rank 1, x: 3 of 10 values differ by more than the bound"
            " (atol=1e-6)"
        ),
        "Variables, the first to differ, then the worst",
        "First difference: iteration 2, rank 1, x",
        "First difference: iteration 3, rank 0, y",
    ):
        at = text.index(words, at) + len(words)


def test_an_unknown_size_is_said_to_be_unknown() -> None:
    undecided = differing(
        evidence=Evidence.RESIDUES,
        residue_levels=15,
        guaranteed_share=0.875,
        differing_count=None,
        differing_count_at_least=0,
        differing_count_at_most=5,
        max_bound_share=None,
        suspect_chunks=1,
        chunk_count=2,
    )
    text = Page(render_html(run_of(undecided))).text
    assert "1 of 2 blocks may differ" in text
    assert "residues only: the golden does not keep the values" in text
    assert "names the value where that could be found out" in text


def test_the_environments_stand_side_by_side() -> None:
    golden = {"cpu": "old one", "numpy": "2.0", "OMP_NUM_THREADS": "1", "LANG": "C"}
    run = run_of(differing(), golden_environment=golden)
    run = replace(run, environment={"cpu": "new one", "numpy": "2.0", "LANG": "C"})
    text = Page(render_html(run)).text
    assert "as far as it was seen, is not that of the golden: CPU, OMP_NUM_THREADS differ." in text
    assert re.search(r"CPU\s*old one\s*new one", text)
    assert "is not that of the golden" not in render_html(replace(run, environment=golden))


def test_a_command_of_the_environment_has_a_button_that_copies_it() -> None:
    run = run_of(differing(), golden_environment={"OMP_NUM_THREADS": "1"})
    page = Page(render_html(replace(run, environment={"OMP_NUM_THREADS": "8"})))
    assert "ciwrap repeat --vary OMP_NUM_THREADS=1,8" in page.text
    copied = [facts["data-copy"] for name, facts in page.elements if "data-copy" in facts]
    assert "prove-1-1" in copied


def test_what_the_top_says_is_not_said_again() -> None:
    words = "golden/x.golden: there is no golden; make it with `ciwrap accept x`"
    error = Message(MessageLevel.ERROR, words)
    run = RunResult(
        Verdict.NOT_COMPARABLE, (CheckResult("x", Verdict.NOT_COMPARABLE, messages=(error,)),)
    )
    assert render_html(run).count("there is no golden; make it with <code>ciwrap accept x") == 1


def test_numbers_options_and_code_stay_whole() -> None:
    assert nice("up to 4.8e-07 apart") == 'up to <span class="nw">4.8e-07</span> apart'
    assert nice("`ciwrap run --base`") == '<code>ciwrap run <span class="nw">--base</span></code>'
    assert nice("new - golden, a-b, <--x>") == "new - golden, a-b, &lt;--x&gt;"


@pytest.mark.parametrize(
    ("commit", "shown"),
    [("ab12" * 10, "ab12ab12ab12"), ("ab12" * 10 + "-dirty", "ab12ab12ab12-dirty")],
)
def test_the_head_names_the_beginning_of_a_commit(commit: str, shown: str) -> None:
    run = replace(run_of(differing()), environment={"git_commit": commit})
    assert f"commit <code>{shown}</code>" in render_html(run)


def test_no_environment_is_no_difference() -> None:
    run = run_of(differing(), golden_environment={"cpu": "old one"})
    text = Page(render_html(run)).text
    assert "is not that of the golden" not in text
    assert "not recorded" in text


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/somebody/secret/run/x.npy", ".../run/x.npy"),
        ("run/x.npy", "run/x.npy"),
    ],
)
def test_absolute_paths_are_cut(path: str, shown: str) -> None:
    run = run_of(
        VariableResult("x", Verdict.NOT_COMPARABLE, reason=f"{path}: is truncated"),
        differing(source_path=path),
        golden_path=path,
        messages=(Message(MessageLevel.ERROR, f"{path}: is gone", file=path),),
    )
    text = render_html(run)
    assert "secret" not in text
    assert f"{shown}: is truncated" in text
    assert f"{shown}: is gone" in text


def test_words_with_slashes_are_no_paths() -> None:
    reason = "1/2 of it, km/h and https://a.example/b/c stay; /usr/lib/x.so is everybody's"
    run = run_of(VariableResult("x", Verdict.NOT_COMPARABLE, reason=reason))
    assert reason in Page(render_html(run)).text


def test_names_that_a_shell_would_take_apart_are_quoted() -> None:
    check = CheckResult("a b;rm", Verdict.DIFFER, (differing(),), golden_path="golden/a.golden")
    run = RunResult(Verdict.DIFFER, (check,))
    assert "ciwrap accept 'a b;rm' --reason 'WHY'" in Page(render_html(run)).text
    odd = replace(run, checks=(replace(check, name="a\nb"),))
    assert "ciwrap accept --reason 'WHY'" in Page(render_html(odd)).text
    compared = replace(run, kind="compare")
    assert "ciwrap accept" not in render_html(compared)
    stated = replace(run, checks=(replace(check, golden_path=None),))
    assert "ciwrap accept" not in render_html(stated)


def test_the_command_finds_the_goldens_that_were_compared() -> None:
    """Also where they are not the configured ones; of several platforms a line for each."""
    check = CheckResult("x", Verdict.DIFFER, (differing(),), golden_path="golden/x.golden")
    there = replace(check, accept_options=ProjectOptions("a b.yaml", "golden/arm"))
    command = "ciwrap accept x --config 'a b.yaml' --golden-dir golden/arm --reason 'WHY'"
    assert command in Page(render_html(RunResult(Verdict.DIFFER, (there,)))).text
    both = RunResult(Verdict.DIFFER, (replace(check, label="x86"), replace(there, label="arm")))
    assert accept_command(both) == f"ciwrap accept x --reason 'WHY'\n{command}"


def test_a_name_is_never_taken_for_an_option() -> None:
    check = CheckResult("--json=x", Verdict.DIFFER, (differing(),), golden_path="golden/x.golden")
    assert (
        accept_command(RunResult(Verdict.DIFFER, (check,)))
        == "ciwrap accept --reason 'WHY' -- --json=x"
    )


def test_a_document_cannot_name_axes_that_are_not_there() -> None:
    picture = Picture(5, 1, 2, (0,), 0.0, 1.0, *(3 * (cells_text(bytes((0, SUSPECT))),)))
    assert "[3]" in render_html(run_of(differing(details=Details(picture=picture))))


def test_a_run_without_any_check_is_shown() -> None:
    run = RunResult(
        Verdict.NOT_COMPARABLE, messages=(Message(MessageLevel.ERROR, "no such file: a"),)
    )
    text = Page(render_html(run)).text
    assert "Nothing could be compared" in text
    assert text.count("no such file: a") == 1


def test_failed_commands_that_are_not_shown_are_counted() -> None:
    failed = CommandOutcome("make run", "/", 2, 1.0, output_tail="boom")
    checks = tuple(CheckResult(f"c{n}", Verdict.NOT_COMPARABLE, command=failed) for n in range(8))
    text = render_html(RunResult(Verdict.NOT_COMPARABLE, checks))
    assert text.count("<b>Command</b>") == 5
    assert "... and 3 more failed commands; the JSON result has them all." in text


def test_of_variables_that_match_all_are_counted_though_not_all_are_listed() -> None:
    equal = tuple(
        VariableResult(f"{n:05}{'x' * 90}", Verdict.MATCH, bound=ErrorBound(1.0), differing_count=0)
        for n in range(12_000)
    )
    text = Page(render_html(run_of(*equal))).text
    (summary,) = re.findall(r"The first ([0-9,]+) of 12,000 variables that match", text)
    (rest,) = re.findall(r"and ([0-9,]+) more variables, not listed here .matching.", text)
    assert int(summary.replace(",", "")) + int(rest.replace(",", "")) == 12_000


def test_a_name_from_right_to_left_does_not_move_the_numbers_beside_it() -> None:
    name = "\u05e9\u05dc\u05d5\u05dd"
    assert nice(f"changes {name}: 4 of 8") == f"changes <bdi>{name}</bdi>: 4 of 8"
    assert nice(f"<{name}> & 1") == f"<bdi>&lt;{name}&gt;</bdi> &amp; 1"
    assert nice("a < b: 4 of 8") == "a &lt; b: 4 of 8"


def test_facts_that_are_no_difference_are_not_called_equal() -> None:
    """The commit is another one in every change, and says nothing of the machine."""
    golden, new = ({"cpu": "some", "git_commit": number * 40} for number in "01")
    same = differing()
    text = Page(render_html(replace(run_of(same, golden_environment=golden), environment=new))).text
    assert "2 facts, equal on both sides but for git commit" in text
    text = Page(render_html(replace(run_of(same, golden_environment=new), environment=new))).text
    assert "2 facts, equal on both sides" in text


def test_what_is_not_the_worst_is_not_said_to_come_first_as_such() -> None:
    worse = VariableResult("y", Verdict.NOT_COMPARABLE, reason="it is gone")
    text = Page(render_html(run_of(differing(), worse))).text
    assert "Variables, the first to differ, then the worst" in text
    assert "Variables, worst first" in Page(render_html(run_of(differing()))).text
