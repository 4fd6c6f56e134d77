"""Hostile inputs, names and programs under act: nothing of them runs, or speaks for the action."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from action.act_runs import commit, git
from action.conftest import CONFIG
from action.test_act_check import outputs, workflow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from action.act_runs import Act, Job

# A program whose outputs have names that are orders, and which gives some itself.
EVIL = """\
import os, pathlib, struct
out = pathlib.Path("out")
out.mkdir(exist_ok=True)
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }".ljust(117) + "\\n"
data = b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(16)
names = ["$(touch pwned)", "`touch pwned`", ";touch pwned;", "a\\n::error::forged",
         "##[error]forged",
         "::add-mask::e", "<details><img src=x>", "-rf", "x' --reason 'y", "\\x1b[2J", "@everyone"]
for name in names:
    (out / f"{name}.npy").write_bytes(data)
print("::error::forged by the program")
print("::set-output name=status::match")
print("::add-mask::ciwrap")
for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "CIWRAP_STATUS"):
    path = os.environ.get(name)
    if path:
        open(path, "a").write("status=match\\n")
        open("pwned", "w").write(name)
"""


# What a program printed last stands as it is, between marks that it cannot close.
_FENCED = re.compile(r"^(`{3,})text\n.*?\n\1$", re.DOTALL | re.MULTILINE)


def assert_harmless(act: Act, job: Job) -> None:
    assert not list(act.folder.rglob("pwned"))
    given = {one["command"] for step in job.steps.values() for one in step.commands}
    # The end of `stop-commands` is a word that only the action knew.
    given = {one for one in given if not re.fullmatch("[0-9a-f]{32}", one)}
    # What act calls ignored are orders that came while commands were stopped.
    assert given <= {"set-output", "error", "warning", "summary", "group", "endgroup",
                     "stop-commands", "resume-commands", "ignored"}, given  # fmt: skip
    for kind, _, text in job.annotations:
        assert not text.startswith("forged"), (kind, text)
    assert "<img" not in _FENCED.sub("", job.summary)


def test_names_and_programs(act: Act, project: Callable[..., Path]) -> None:
    folder = project(workflow(), goldens=False, **{"simulate.py": EVIL})
    job = act.run(folder).job("check")
    assert job.result == "failure"
    assert outputs(act)["status"] == "not-comparable"
    assert_harmless(act, job)


def test_last_words(act: Act, project: Callable[..., Path]) -> None:
    """What a program prints that crashes is shown, and is text there."""
    words = "print('```\\n</details><img src=x>\\n````\\n::error::forged')\n"
    folder = project(workflow(), **{"simulate.py": f"{words}raise SystemExit(3)\n"})
    job = act.run(folder).job("check")
    assert outputs(act)["status"] == "error"
    assert "`````text\n```\n</details><img src=x>\n````\n::error::forged\n`````" in job.summary
    assert_harmless(act, job)


def test_names_in_the_configuration(act: Act, project: Callable[..., Path]) -> None:
    name = "x::error::y $(touch pwned) </details><img src=x> @all"
    config = CONFIG.replace("  mesh:", f'  "{name}":')
    folder = project(workflow(), goldens=False, **{"ciwrap.yaml": config})
    job = act.run(folder).job("check")
    assert outputs(act)["status"] == "not-comparable"
    assert_harmless(act, job)


@pytest.mark.parametrize(
    "name",
    ["config", "checks", "golden-dir", "report", "artifact-name", "platform-key", "extras",
     "python-version", "version", "fail-on"],
)  # fmt: skip
def test_inputs(act: Act, project: Callable[..., Path], name: str) -> None:
    text = '$(touch pwned) \\"; touch pwned; #'
    job = act.run(project(workflow(f'{name}: "{text}"'))).job("check")
    if name != "report":
        assert job.result == "failure"
    assert_harmless(act, job)


def test_a_branch_name(act: Act, project: Callable[..., Path]) -> None:
    folder = project(workflow())
    git(folder, "checkout", "-q", "-b", "x$(touch${IFS}pwned)`id`;id")
    commit(folder)
    job = act.run(folder).job("check")
    assert job.result == "success"
    assert_harmless(act, job)
