"""Workflows and action.yml before anybody runs them: checkers, pins, permissions, injections."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ciwrap.action.github import MODES, PREFIX, FailOn, read_inputs

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXAMPLES = sorted((ROOT / "examples/workflows").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
HOW_TO = (ROOT / "docs/how-to/github-action.md").read_text(encoding="utf-8")


def tool(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{name} is not installed (tools/act-tests installs it)")
    return found


def run_clean(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint() -> None:
    run_clean(tool("actionlint"), *map(str, (*WORKFLOWS, *EXAMPLES)))


def test_zizmor() -> None:
    run_clean(
        tool("zizmor"), "--offline", "--strict-collection", "--config", ".github/zizmor.yml",
        "action.yml", ".github/workflows", *map(str, EXAMPLES),
    )  # fmt: skip


def test_schemas() -> None:
    check = tool("check-jsonschema")
    run_clean(check, "--builtin-schema", "vendor.github-actions", "action.yml")
    run_clean(
        check, "--builtin-schema", "vendor.github-workflows", *map(str, (*WORKFLOWS, *EXAMPLES))
    )


def steps_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    if "runs" in document:
        return list(document["runs"]["steps"])
    return [step for job in document["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize(
    "path", [ROOT / "action.yml", *WORKFLOWS, *EXAMPLES], ids=lambda path: str(path.name)
)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for step in steps_of(document):
        assert "${{" not in step.get("run", ""), step
        used = step.get("uses", "")
        assert used in ("", "./", "YOUR_ORGANISATION/ciwrap@v1") or re.fullmatch(
            r".+@[0-9a-f]{40}", used
        )


@pytest.mark.parametrize("path", [*WORKFLOWS, *EXAMPLES], ids=lambda path: str(path.name))
def test_rights_are_given_job_by_job(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document["permissions"] == {}
    for job in document["jobs"].values():
        rights = job["permissions"]
        writes = {name for name, value in rights.items() if value == "write"}
        if any(step.get("with", {}).get("comment") for step in job["steps"]):
            writes -= {"pull-requests"}  # docs/explanation/security.md says what that means
        runs_code = any(
            "run" in step or step.get("with", {}).get("mode", "check") in ("check", "update")
            for step in job["steps"]
            if "run" in step or "ciwrap" in step.get("uses", "") or step.get("uses") == "./"
        )
        takes_candidates = any("source" in step.get("with", {}) for step in job["steps"])
        assert not (writes and runs_code) or takes_candidates, job


def test_only_steps_that_run_no_program_have_the_token() -> None:
    for step in steps_of(ACTION):
        if "token" in str(step.get("env", {})):
            assert step["name"] == "Write"
            assert set(re.findall(r"inputs\.mode == '([a-z]+)'", step["if"])) == {
                "comment", "accept", "trend", "update",
            }  # fmt: skip
            assert "inputs.comment == 'true' && steps.check.outputs" in step["if"]
            # With these two, the same step that may run a program is left out, or has another job.
            assert "inputs.mode == 'trend' && inputs.store != ''" in step["if"]
    assert steps_of(ACTION)[-1]["name"] == "Gate"


def test_every_input_reaches_the_program_and_the_page() -> None:
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", HOW_TO, re.MULTILINE))
    for name, given in ACTION["inputs"].items():
        assert name in table, f"the input {name} is not in the how-to"
        assert given["description"]
    handed = str([step.get("env", {}) for step in steps_of(ACTION)] + ACTION["runs"]["steps"])
    for name in ACTION["inputs"]:
        assert f"inputs.{name} " in handed or f"inputs.{name}}}" in handed, name
    for name in set(re.findall(rf"{PREFIX}([A-Z_]+)", handed)):
        assert name.lower().replace("_", "-") in ACTION["inputs"]
    for name in ACTION["outputs"]:
        assert f"`{name}`" in HOW_TO, f"the output {name} is not in the how-to"


def test_only_whole_versions_are_released() -> None:
    """A pattern of tags that `v1` fits would publish again whenever that tag is moved."""
    document = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8"))
    (pattern,) = document[True]["push"]["tags"]  # YAML 1.1 reads `on` as true
    assert pattern == "v[0-9]+.[0-9]+.[0-9]+"
    assert document["jobs"]["wheels"]["needs"] == document["jobs"]["sdist"]["needs"] == "version"


@pytest.mark.parametrize(
    ("reference", "code"),
    [("refs/heads/main", 0), ("refs/tags/v0.0.0", 1), ("refs/tags/v1", 1), ("VERSION", 0)],
)
def test_a_tag_is_the_version(reference: str, code: int) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.findall(r'^version = "(.*)"$', text, re.MULTILINE)[0]
    given = f"refs/tags/v{version}" if reference == "VERSION" else reference
    command = [sys.executable, str(ROOT / "tools/check-version"), given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr


def test_no_page_uses_a_name_that_is_not_ours() -> None:
    """There is no release: neither an index nor an account of that name is ours."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *EXAMPLES]
    pages += (ROOT / "examples").rglob("README.md")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for name in (
            r"uses: ciwrap/",
            r"pip install (-[-a-z]+ )*'?ciwrap\b",
            "https://pypi.org/project/ciwrap",
        ):
            assert not re.search(name, text), (page, name)


def test_defaults_of_action_and_program_agree() -> None:
    given = {
        PREFIX + name.upper().replace("-", "_"): str(one.get("default", ""))
        for name, one in ACTION["inputs"].items()
    }
    assert read_inputs(given) == read_inputs({})
    assert all(f"**{mode}**" in HOW_TO for mode in MODES)
    assert all(f"`{one.value}`" in HOW_TO for one in FailOn)


def test_the_page_shows_the_workflow_that_is_tested() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", HOW_TO, re.DOTALL)
    assert (ROOT / "examples/workflows/check.yml").read_text(encoding="utf-8") in blocks
    written = (ROOT / "ciwrap/cli/templates/github.yml").read_text(encoding="utf-8")
    assert written in blocks
    for path in EXAMPLES:
        assert path.name in HOW_TO
