"""`ciwrap changes`: planted edits are told in the right words, harmless ones not at all."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from git_repository import GitRepository

from ciwrap.cli.main import run
from ciwrap.formats.reader import MEANING
from ciwrap.model import SETTINGS, Strictness
from ciwrap.project.settings import Check

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = """\
version: 1
# The programme under test.
run: ./simulate
defaults: {rtol: 1e-9}
checks:
  mesh:
    outputs: out/a.npz
    atol: 1e-6   # of temperature
    variables:
      pressure: {atol: 1e-3}
      land: {atol: 0}
      "exact*": {atol: 0, rtol: 0}
    ignore: [wall_*]
    strict: {variables: allow-new}
  tree:
    outputs: tree.npy
    evidence: residues
    ulps: 4
"""
BIG = np.linspace(1, 2, 4000)


def save(shift: float = 0.0, **more: Any) -> None:
    Path("out").mkdir(exist_ok=True)
    arrays = {
        "temperature": np.arange(40.0) + shift,
        "pressure": np.arange(40.0),
        "land": np.arange(40) % 2 == 0,
        "exact_count": np.arange(4),
        "wall_time": np.float64(1.0),
        **more,
    }
    np.savez("out/a.npz", **{name: one for name, one in arrays.items() if one is not None})
    np.save("tree.npy", BIG)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin") / "r"
    repository = GitRepository.make(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        save()
        Path("ciwrap.yaml").write_text(CONFIG)
        Path(".gitignore").write_text("/out/\n/tree.npy\n.ciwrap/\n")
        assert run(["accept"]) == 0
    repository.commit("base", {})
    return folder


@pytest.fixture
def here(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "r"
    shutil.copytree(origin, folder)
    monkeypatch.chdir(folder)
    return folder


def changes(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    assert run(["changes", "--base", "HEAD", "--json", "c.json", *arguments]) == code
    document = json.loads(Path("c.json").read_text())
    Path("c.json").unlink()
    found: list[dict[str, Any]] = document.get("changes", [])
    return found


def edit(*pairs: tuple[str, str]) -> Callable[[], None]:
    def apply() -> None:
        text = Path("ciwrap.yaml").read_text()
        for old, new in pairs:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        Path("ciwrap.yaml").write_text(text)

    return apply


def accepted(first: Callable[[], None], *more: str) -> Callable[[], None]:
    def apply() -> None:
        first()
        assert run(["accept", "--reason", "A better push", *more]) == 0

    return apply


@dataclass(frozen=True)
class Told:
    """What has to be said: check, variable, what, whether wider, and a part of the words."""

    check: str | None
    variable: str | None
    what: str
    wider: bool
    text: str


def remove(*names: str) -> None:
    for name in names:
        Path(name).unlink()


def move_goldens() -> None:
    edit(("version: 1\n", "version: 1\ngolden_dir: new\n"))()
    Path("golden").rename("new")


def moved_config() -> None:
    Path("sub").mkdir()
    Path("sub/ciwrap.yaml").write_text(
        CONFIG.replace("out/", "../out/").replace("tree.npy", "../tree.npy")
    )
    Path("ciwrap.yaml").unlink()


def rename(old: str, new: str) -> Callable[[], None]:
    """As with `git mv`: the check, its golden, and what the manifest says of its name."""

    def apply() -> None:
        edit((f"  {old}:\n", f"  {new}:\n"))()
        for suffix in ("golden", "golden.yaml"):
            Path(f"golden/{old}.{suffix}").rename(f"golden/{new}.{suffix}")
        manifest = Path(f"golden/{new}.golden.yaml")
        text = manifest.read_text()
        assert text.count(f"check: {old}\n") == 1
        manifest.write_text(text.replace(f"check: {old}\n", f"check: {new}\n"))

    return apply


def after(*steps: Callable[[], None]) -> Callable[[], None]:
    def apply() -> None:
        for step in steps:
            step()

    return apply


RENAMED = Told("bush", None, "check", False, "called tree before; its golden is the same")

PLANTED: dict[str, tuple[Callable[[], None], list[Told]]] = {
    "a wider bound of a check": (
        edit(("atol: 1e-6 ", "atol: 1e-2 ")),
        [Told("mesh", "temperature", "bound", True, "atol=1e-6 rtol=0 -> atol=0.01 rtol=0")],
    ),
    "a wider bound of one variable": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-1}")),
        [Told("mesh", "pressure", "bound", True, "atol=0.001 rtol=0 -> atol=0.1 rtol=0")],
    ),
    "a narrower bound": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-4}")),
        [Told("mesh", "pressure", "bound", False, "atol=0.001 rtol=0 -> atol=0.0001 rtol=0")],
    ),
    "exact no longer": (
        edit(('"exact*": {atol: 0, rtol: 0}', '"exact*": {atol: 2}')),
        [Told("mesh", "exact_count", "bound", True, "exact -> atol=2 rtol=0")],
    ),
    "more ulps": (
        edit(("ulps: 4", "ulps: 400")),
        [Told("tree", "tree", "bound", True, "ulps=4 -> ulps=400")],
    ),
    "another kind of bound": (
        edit(("ulps: 4", "atol: 1e-12")),
        [Told("tree", "tree", "bound", True, "ulps=4 -> atol=1e-12 rtol=0")],
    ),
    "fill values": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-3, fill_values: [7]}")),
        [Told("mesh", "pressure", "bound", True, "fill_values=(7)")],
    ),
    "NaN equals nothing now": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-3, equal_nan: false}")),
        [Told("mesh", "pressure", "bound", False, "equal_nan=false")],
    ),
    "ignored": (
        edit(("[wall_*]", "[wall_*, temperature]")),
        [Told("mesh", "temperature", "ignore", True, "is ignored now")],
    ),
    "ignored and accepted": (
        accepted(edit(("[wall_*]", "[wall_*, temperature]"))),
        [
            Told("mesh", "temperature", "ignore", True, "is ignored now"),
            Told("mesh", None, "values", False, "golden replaced: 0 of 3"),
        ],
    ),
    "ignored before it is there": (
        edit(("[wall_*]", "[wall_*, cpu]")),
        [Told("mesh", "cpu", "ignore", False, "no golden holds anything of that name")],
    ),
    "until an iteration": (
        edit(("    strict:", "    until_iteration: 5\n    strict:")),
        [Told("mesh", None, "ignore", True, "compared until iteration: none -> 5")],
    ),
    "lax about variables": (
        edit(("variables: allow-new", "variables: false")),
        [Told("mesh", None, "strict", True, "new ones allowed -> allowed")],
    ),
    "strict about variables": (
        edit(("variables: allow-new", "variables: true")),
        [Told("mesh", None, "strict", False, "new ones allowed -> refused")],
    ),
    "lax about types and shapes": (
        edit(("variables: allow-new", "variables: allow-new, dtype: false, shape: false")),
        [
            Told("mesh", None, "strict", True, "another dtype: refused -> allowed"),
            Told("mesh", None, "strict", True, "another shape is allowed now"),
        ],
    ),
    "a mask": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-3, mask: land}")),
        [Told("mesh", "pressure", "variable", True, "mask: none -> land")],
    ),
    "a period": (
        edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-3, rtol: 0, period: 360}")),
        [Told("mesh", "pressure", "bound", True, "period: none -> 360")],
    ),
    "lower evidence, accepted": (
        accepted(edit(("evidence: residues", "evidence: tree")), "tree"),
        [
            Told("tree", "tree", "evidence", True, " -> tree"),
            Told("tree", None, "values", False, "golden replaced"),
        ],
    ),
    "lower evidence, only asked for": (
        edit(("evidence: residues", "evidence: tree")),
        [Told("tree", "tree", "evidence", False, "asked for: residues -> tree")],
    ),
    "a golden replaced": (
        accepted(lambda: save(1e-3)),
        [Told("mesh", None, "values", False, "golden replaced: 1 of 4 variables")],
    ),
    "a variable gone": (
        accepted(lambda: save(pressure=None)),
        [
            Told("mesh", "pressure", "variable", True, "is gone from the golden"),
            Told("mesh", None, "values", False, "golden replaced"),
        ],
    ),
    "a variable more": (
        accepted(lambda: save(humidity=np.zeros(3))),
        [
            Told("mesh", "humidity", "variable", False, "a new variable of the golden"),
            Told("mesh", None, "values", False, "golden replaced"),
        ],
    ),
    "a smaller shape": (
        accepted(lambda: save(pressure=np.arange(20.0))),
        [
            Told("mesh", "pressure", "variable", True, "shape 40 -> 20"),
            Told("mesh", None, "values", False, "golden replaced"),
        ],
    ),
    "a check gone": (
        edit(("  tree:\n    outputs: tree.npy\n    evidence: residues\n    ulps: 4\n", "")),
        [Told("tree", None, "check", True, "the check is gone, with 1 variable")],
    ),
    "a check more": (
        edit(("  tree:\n", "  more: {outputs: tree.npy}\n  tree:\n")),
        [Told("more", None, "check", False, "a new check")],
    ),
    "a check renamed": (rename("tree", "bush"), [RENAMED]),
    "a check renamed, with a wider bound and less that is compared": (
        after(
            rename("tree", "bush"),
            edit(("ulps: 4", "ulps: 400\n    exclude: [x]\n    strict: {shape: false}")),
        ),
        [
            RENAMED,
            Told("bush", "tree", "bound", True, "ulps=4 -> ulps=400"),
            Told("bush", None, "check", True, "excluded files: none -> x"),
            Told("bush", None, "strict", True, "another shape is allowed now"),
        ],
    ),
    "a check renamed, and ignored": (
        after(rename("tree", "bush"), edit(("ulps: 4", "ulps: 4\n    ignore: ['*']"))),
        [RENAMED, Told("bush", "tree", "ignore", True, "is ignored now")],
    ),
    "a check renamed, and accepted anew": (
        after(
            edit(("  tree:\n", "  bush:\n")),
            lambda: remove("golden/tree.golden", "golden/tree.golden.yaml"),
            accepted(lambda: None, "bush"),
        ),
        [RENAMED, Told("bush", None, "values", False, "the log of its golden is another one")],
    ),
    "a check renamed, and its golden replaced": (
        accepted(after(rename("tree", "bush"), lambda: np.save("tree.npy", BIG + 1)), "bush"),
        [
            Told("tree", None, "check", True, "the check is gone, with 1 variable"),
            Told("bush", None, "check", False, "a new check"),
            Told("bush", None, "values", False, "a first golden"),
        ],
    ),
    "a check renamed, and its golden left behind": (
        edit(("  tree:\n", "  bush:\n")),
        [
            Told("tree", None, "check", True, "the check is gone, with 1 variable"),
            Told("bush", None, "check", False, "a new check"),
        ],
    ),
    "another reader of some files": (
        edit(("    ulps: 4", "    ulps: 4\n    formats: {'*.txt': text}")),
        [Told("tree", None, "check", False, "formats: *.txt: none -> text")],
    ),
    "less of what files hold": (
        edit(("    ulps: 4", "    ulps: 4\n    options: {ignore: [times], skip_rows: 2}")),
        [
            Told("tree", None, "check", True, "options: ignore: none -> times"),
            Told("tree", None, "check", True, "options: skip_rows: 0 -> 2"),
        ],
    ),
    "fewer attributes": (
        edit(("    ulps: 4", "    ulps: 4\n    options: {attributes: [units]}")),
        [
            Told(
                "tree",
                None,
                "check",
                True,
                "options: attributes: _FillValue, _Unsigned, add_offset, ",
            )
        ],
    ),
    "more attributes": (
        edit(("    ulps: 4", "    ulps: 4\n    options: {attributes: true}")),
        [Told("tree", None, "check", False, "valid_range -> true")],
    ),
    "fewer outputs": (
        edit(("outputs: out/a.npz", "outputs: out/a*.npz\n    exclude: [out/b.npz]")),
        [
            Told("mesh", None, "check", True, "outputs: out/a.npz -> out/a*.npz"),
            Told("mesh", None, "check", True, "excluded files: none -> out/b.npz"),
        ],
    ),
    "an ensemble": (
        edit(("    ulps: 4", "    ulps: 4\n    ensemble: ['runs/*']")),
        [Told("tree", None, "check", True, "ensemble: none -> runs/*")],
    ),
    "no command": (
        edit(("run: ./simulate\n", "")),
        [Told(None, None, "check", True, "command: ./simulate -> none")],
    ),
    "goldens from elsewhere": (
        move_goldens,
        [Told(None, None, "check", False, "goldens read from: golden -> new")],
    ),
    "a golden gone": (
        lambda: remove("golden/tree.golden", "golden/tree.golden.yaml"),
        [Told("tree", None, "check", True, "its golden is gone")],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_edits(here: Path, name: str) -> None:
    apply, wanted = PLANTED[name]
    apply()
    found = changes()
    told = [
        next(
            (
                want
                for want in wanted
                if (one["check"], one["variable"], one["what"], one["wider"])
                == (want.check, want.variable, want.what, want.wider)
                and want.text in one["text"]
            ),
            one,
        )
        for one in found
    ]
    assert sorted(map(str, told)) == sorted(map(str, wanted))
    assert [one["wider"] for one in found] == sorted((one["wider"] for one in found), reverse=True)


DEFAULT_OPTIONS = (
    "skip_rows: 0, comment: ['#'], empty_is_nan: true, header: auto,"
    f" attributes: [{', '.join(reversed(MEANING))}]"
)
HARMLESS: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "a comment": edit(("# The programme under test.", "# Another comment: atol: 7")),
    "no comment": edit(("   # of temperature", "")),
    "a comment at the end": lambda: Path("ciwrap.yaml").write_text(CONFIG + "# end\n"),
    "the order of keys": edit(
        ("version: 1\n", ""), ("defaults: {rtol: 1e-9}\n", "defaults: {rtol: 1e-9}\nversion: 1\n")
    ),
    "the order of variables": edit(
        ("      pressure: {atol: 1e-3}\n", ""),
        ("      land: {atol: 0}\n", "      land: {atol: 0}\n      pressure: {atol: 1e-3}\n"),
    ),
    "the order of checks": lambda: Path("ciwrap.yaml").write_text(
        CONFIG.replace(CONFIG[CONFIG.index("  tree:") :], "").replace(
            "checks:\n", "checks:\n" + CONFIG[CONFIG.index("  tree:") :]
        )
    ),
    "another notation of a number": edit(("atol: 1e-6 ", "atol: 0.000001 ")),
    "another notation of a list": edit(("outputs: tree.npy", "outputs: [tree.npy]")),
    "quotes": edit(("outputs: tree.npy", "outputs: 'tree.npy'")),
    "a block": edit(("strict: {variables: allow-new}", "strict:\n      variables: allow-new")),
    "an anchor": edit(
        ("pressure: {atol: 1e-3}", "pressure: &mine {atol: 1e-3}"),
        ("land: {atol: 0}", "land: {atol: 0}"),
    ),
    "an anchor that is used": edit(
        ('"exact*": {atol: 0, rtol: 0}', '"exact*": &none {atol: 0, rtol: 0}\n      nothing: *none')
    ),
    "line breaks": lambda: Path("ciwrap.yaml").write_bytes(CONFIG.replace("\n", "\r\n").encode()),
    "a byte order mark": lambda: Path("ciwrap.yaml").write_bytes(b"\xef\xbb\xbf" + CONFIG.encode()),
    "a default written out": edit(("ulps: 4", "ulps: 4\n    equal_nan: true")),
    "a default of strict": edit(("allow-new}", "allow-new, dtype: true}")),
    "defaults of the reader": edit(
        ("    ulps: 4", f"    ulps: 4\n    options: {{{DEFAULT_OPTIONS}}}"),
    ),
    "a setting of nothing": edit(("land: {atol: 0}", "land: {atol: 0}\n      sea: {atol: 9}")),
    "the order of ignored names": edit(("[wall_*]", "['wall_*']")),
    "outputs that move within their bounds": lambda: save(1e-9),
    "accepting what is kept": accepted(lambda: save(1e-9)),
    "another file of the repository": lambda: Path("README.md").write_text("atol: 7"),
    "how often to repeat": lambda: Path("ciwrap.yaml").write_text(CONFIG + "repeat: {runs: 3}\n"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_edits(here: Path, name: str) -> None:
    HARMLESS[name]()
    assert changes() == []


def test_a_renamed_anchor(here: Path) -> None:
    text = CONFIG.replace("pressure: {atol: 1e-3}", "pressure: &A {atol: 1e-3}\n      wind: *A")
    GitRepository(here).commit("with an anchor", {"ciwrap.yaml": text})
    Path("ciwrap.yaml").write_text(text.replace("&A", "&loose").replace("*A", "*loose"))
    assert changes() == []


def test_who_why_and_by_how_much(here: Path) -> None:
    accepted(lambda: save(5e-7))()
    assert changes() == []  # kept, since it is within the bounds
    accepted(lambda: save(3e-6))()
    (one,) = changes()
    assert one["why"] == "A better push"
    assert one["share"] == pytest.approx(3, rel=1e-3)
    assert one["who"]
    accepted(lambda: save(5e-6))()
    (one,) = changes()
    assert one["share"] == pytest.approx(3, rel=1e-3)


def test_what_was_compared_exactly_moved_by_more_than_any_bound(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted(lambda: save(exact_count=np.arange(4) + 1))()
    capsys.readouterr()
    (one,) = changes()
    assert one["share"] == "inf"
    assert "(by more than any multiple of the old bounds; accepted by" in capsys.readouterr().out


def test_names_of_checks_that_are_alike_are_not_guessed(here: Path) -> None:
    """Two goldens of one root: nothing says which of them a new name is of."""
    tree = CONFIG[CONFIG.index("  tree:") :]
    twin = tree.replace("  tree:", "  twin:")
    Path("ciwrap.yaml").write_text(CONFIG + twin)
    assert run(["accept", "twin"]) == 0
    GitRepository(here).commit("a twin", {})
    remove("golden/twin.golden", "golden/twin.golden.yaml")
    Path("ciwrap.yaml").write_text(CONFIG)
    rename("tree", "bush")()
    found = [(one["check"], one["wider"], one["text"]) for one in changes()]
    assert [(check, wider) for check, wider, _ in found] == [
        ("tree", True),
        ("twin", True),
        ("bush", False),
        ("bush", False),
    ]
    assert not any("before" in text for *_, text in found)


def test_a_golden_that_nobody_accepted(here: Path) -> None:
    accepted(lambda: save(1.0))()
    manifest = Path("golden/mesh.golden.yaml")
    head, _, log = manifest.read_text().partition("accepted:\n")
    first = log[: log.index("- when", 1)]
    manifest.write_text(f"{head}accepted:\n{first}")
    (one,) = changes()
    assert "nobody is named who accepted it" in one["text"]
    manifest.write_text(f"{head}accepted:\n{log[len(first) :]}")
    (one,) = changes()
    assert "its log does not continue" in one["text"]


def test_lines(here: Path) -> None:
    edit(("pressure: {atol: 1e-3}", "pressure: {atol: 1e-1}"))()
    (one,) = changes()
    assert (one["file"], one["line"]) == ("ciwrap.yaml", 10)
    edit(("[wall_*]", "[wall_*, temperature]"))()
    assert {one["line"] for one in changes()} == {10, 13}


def test_a_configuration_that_moved(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved_config()
    Path("golden").rename("sub/golden")
    monkeypatch.chdir("sub")
    assert run(["changes", "--base", "HEAD", "--json", "c.json"]) == 0
    found = json.loads(Path("c.json").read_text())["changes"]
    texts = [one["text"] for one in found]
    assert "configuration read from: ciwrap.yaml -> sub/ciwrap.yaml" in texts
    assert "goldens read from: golden -> sub/golden" in texts


def test_a_golden_of_another_platform(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["accept", "--golden-dir", "golden/arm"]) == 0
    found = changes()
    assert {one["check"] for one in found} == {"arm/mesh", "arm/tree"}
    assert {one["text"] for one in found} == {"a first golden"}
    capsys.readouterr()
    changes()
    assert "moved" not in capsys.readouterr().out  # there was none before
    assert changes("--golden-dir", "golden/arm")[0]["check"] == "mesh"


STATED = """\
checks:
  heat:
    format: log
    outputs: out.txt
    values:
      total: {match: "E = {total}", expect: 1, atol: 1e-6}
      low: {match: "L = {low}", range: [0, 1]}
      other: {match: "O = {other}", atol: 1e-6, rtol: 1e-6, combine: both}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("1, atol: 1e-6", "1, atol: 9", ("total", "bound", True, "atol=1e-6 rtol=0 -> atol=9")),
        ("1, atol: 1e-6", "1, atol: 1e-9", ("total", "bound", False, "-> atol=1e-9")),
        ("[0, 1]", "[0, 2]", ("low", "variable", True, "is another one")),
        ("[0, 1]", "[0.5, 1]", ("low", "variable", False, "is another one")),
        ("expect: 1,", "range: [0, 2],", ("total", "variable", True, "is another one")),
        ("combine: both", "combine: either", ("other", "bound", True, "both -> either")),
        ("combine: both", "combine: sum", ("other", "bound", True, "both -> sum")),
    ],
)
def test_values_that_the_configuration_states(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    told: tuple[str, str, bool, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text(STATED)
    Path("out.txt").write_text("E = 1\nL = 0.5\nO = 3\n")
    assert run(["accept"]) == 0
    repository.commit("base", {})
    edit((old, new))()
    (found,) = changes()
    assert (found["variable"], found["what"], found["wider"]) == told[:3]
    assert told[3] in found["text"]


def test_rules_that_are_included_are_those_of_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("sub").mkdir()
    Path("sub/ciwrap.yaml").write_text(
        "checks:\n  heat: {format: log, outputs: ../out.txt, include: [../rules.yaml]}\n"
    )
    Path("rules.yaml").write_text('values: {total: {match: "E = {total}", expect: 1, atol: 1e-6}}')
    Path("out.txt").write_text("E = 1\n")
    repository.commit("base", {})
    monkeypatch.chdir("sub")
    assert changes() == []
    Path("../rules.yaml").write_text('values: {total: {match: "E = {total}", expect: 1, atol: 9}}')
    (found,) = changes()
    assert (found["variable"], found["what"], found["wider"]) == ("total", "bound", True)
    Path("../rules.yaml").write_text('values: {total: {match: "E = {total}", range: [0, 9]}}')
    (found,) = changes()
    assert (found["variable"], found["what"], found["wider"]) == ("total", "variable", True)


def test_a_base_that_cannot_be_read(here: Path) -> None:
    GitRepository(here).commit("broken", {"ciwrap.yaml": "checks: ["})
    Path("ciwrap.yaml").write_text(CONFIG)
    (one,) = changes()
    assert "cannot be read" in one["text"]
    assert one["wider"] is None
    Path("ciwrap.yaml").write_text(CONFIG.replace("atol: 1e-6 ", "atol: 10 "))
    assert [one["wider"] for one in changes()] == [None]
    Path("ciwrap.yaml").write_text(CONFIG)
    # Its goldens are those that lie where the configuration of today has them.
    accepted(lambda: save(1e-3))()
    assert [one["what"] for one in changes()] == ["check", "values"]
    assert not any("a first golden" in one["text"] for one in changes())


@pytest.mark.parametrize("golden_dir", ["golden", "new"])
def test_goldens_that_go_while_a_configuration_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_dir: str
) -> None:
    """Tests have goldens without one."""
    monkeypatch.chdir(tmp_path)
    repository = GitRepository.make(tmp_path)
    Path("ciwrap.yaml").write_text("checks: {mesh: {outputs: x.csv}}\n")
    Path("x.csv").write_text("1\n2\n")
    assert run(["accept"]) == 0
    remove("ciwrap.yaml")
    repository.commit("base", {})
    remove("golden/mesh.golden", "golden/mesh.golden.yaml")
    text = f"golden_dir: {golden_dir}\nchecks: {{other: {{outputs: x.csv}}}}\n"
    Path("ciwrap.yaml").write_text(text)
    found = {(one["check"], one["text"], one["wider"]) for one in changes()}
    assert ("mesh", "its golden is gone", True) in found
    moved = (None, "goldens read from: golden -> new", False)
    assert (moved in found) is (golden_dir == "new")


def test_a_manifest_of_the_base_that_cannot_be_read(here: Path) -> None:
    """As one of Git LFS, or of a later release: whether less is checked, nothing tells."""
    whole = Path("golden/tree.golden.yaml").read_text()
    GitRepository(here).commit("pointer", {"golden/tree.golden.yaml": "version https://git-lfs"})
    Path("golden/tree.golden.yaml").write_text(whole)
    assert [(one["check"], one["wider"]) for one in changes()] == [("tree", None)]
    remove("golden/tree.golden", "golden/tree.golden.yaml")
    assert [(one["check"], one["wider"]) for one in changes()] == [("tree", None)]


def test_a_check_whose_name_holds_a_slash_is_found_where_it_stands(here: Path) -> None:
    text = CONFIG + "  a/mesh: {outputs: tree.npy}\n"
    GitRepository(here).commit("more", {"ciwrap.yaml": text})
    Path("ciwrap.yaml").write_text(text.replace("mesh: {outputs", "mesh: {exclude: x, outputs"))
    (found,) = changes()
    assert (found["check"], found["line"]) == ("a/mesh", len(text.splitlines()))


def test_mistakes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["changes", "--base", "nothing"]) == 2
    assert "no commit 'nothing'" in capsys.readouterr().err
    assert run(["changes", "--base", "--all"]) == 2
    assert run(["changes", "--base", "HEAD", "--golden-dir", "/tmp"]) == 2
    assert "outside the repository" in capsys.readouterr().err
    Path("ciwrap.yaml").write_text("checks: [")
    assert run(["changes", "--base", "HEAD"]) == 2
    assert "ciwrap.yaml" in capsys.readouterr().err


def test_the_working_tree_stays_as_it_is(here: Path) -> None:
    repository = GitRepository(here)
    edit(("atol: 1e-6 ", "atol: 1e-2 "))()
    before = repository.state()
    changes()
    assert repository.state() == before


# What of a check the command holds against what it was, and what says nothing of what is checked.
TOLD = {
    *("outputs", "exclude", "layout", "format", "formats", "options", "duplicates", "ensemble"),
    *("command", "ignore", "strict", "until_iteration", "expected"),
    *("layers", "rules", "value_rules", "exact_names"),  # through the settings of variables
}
NOT_TOLD = {"name", "root", "config_path", "line"}
TOLD_SETTINGS = {
    *("atol", "rtol", "ulps", "combine", "equal_nan", "fill_values", "period", "mixed_precision"),
    *("evidence", "mask", "align_by", "across_ranks", "up_to_sign"),
}
BUDGETS = {"data_budget_bytes", "residues_budget_bytes"}  # the evidence tells


def test_no_field_of_a_check_is_forgotten() -> None:
    """Whoever adds one decides here, and in studies/changes, whether it changes what is checked."""
    assert set(Check.__struct_fields__) == TOLD | NOT_TOLD
    assert set(SETTINGS) == TOLD_SETTINGS | {"chunk_bytes", "residue_levels"} | BUDGETS
    assert set(Strictness.__struct_fields__) == {"dtype", "shape", "count", "variables"}


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        ("", "options: {ignore_lines: ['step *']}", True),
        ("", "options: {ignore_places: ['t {}']}", True),
        ("", "options: {ignore_places: ['t {}', {section: {start: Timing}}]}", True),
        (
            "options: {ignore_places: ['t {}', {section: {start: Timing}}]}",
            "options: {ignore_places: [{section: {start: Timing}}, 't {}']}",
            False,
        ),
        ("", "options: {ignore: [dates]}", True),
        ("options: {ignore: dates}", "options: {ignore: [dates, times]}", True),
        ("options: {ignore: [dates, times]}", "options: {ignore: [times]}", False),
        ("", "options: {comment: '#'}", False),
        ("", "options: {comment: ['#', 'e']}", True),
        ("options: {skip_rows: 2}", "options: {skip_rows: 3}", True),
        ("options: {skip_rows: 2}", "options: {skip_rows: 1}", False),
        ("", "options: {attributes: false}", True),
        ("", "options: {attributes: true}", False),
        ("options: {attributes: [units]}", "options: {attributes: [long_name]}", True),
        ("options: {attributes: [units]}", "options: {attributes: [units, axis]}", False),
        ("", "formats: {'*.log': {format: tokens, options: {ignore: [dates]}}}", True),
        ("formats: {'*.npy': {format: npy, options: {attributes: true}}}", "", True),
        ("formats: {'*.npy': {format: npy, options: {skip_rows: 2}}}", "", False),
    ],
)
def test_options_that_leave_something_out(here: Path, before: str, after: str, wider: bool) -> None:
    """A reader that passes over lines or rows checks less, whatever the format."""
    text = "version: 1\nchecks:\n  log:\n    outputs: out/a.log\n"
    (here / "ciwrap.yaml").write_text(text + (f"    {before}\n" if before else ""))
    GitRepository(here).commit("options", {})
    (here / "ciwrap.yaml").write_text(f"{text}    {after}\n")
    found = changes()
    assert {(one["check"], one["what"]) for one in found} <= {("log", "check")}
    assert any(one["wider"] for one in found) == wider
